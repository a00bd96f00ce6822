#include "log.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void write_line(const char *where, const char *format, va_list arguments) {
    char line[1024] = "vgpu emulator: ";
    size_t used = strlen(line);
    if (vsnprintf(line + used, sizeof line - used - 1, format, arguments) < 0) {
        return;
    }
    used = strlen(line);
    line[used++] = '\n';
    int fd = 2;
    if (where != NULL && where[0] == '/') {
        fd = open(where, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    }
    ssize_t written = fd < 0 ? -1 : write(fd, line, used);
    (void)written;
    if (fd > 2) {
        close(fd);
    }
}

void emu_log(const char *format, ...) {
    const char *where = getenv("VGPU_EMULATOR_LOG");
    if (where == NULL || where[0] == '\0') {
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    write_line(where, format, arguments);
    va_end(arguments);
}

void emu_complain(const char *format, ...) {
    static bool has_complained;
    if (__atomic_exchange_n(&has_complained, true, __ATOMIC_RELAXED)) {
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    write_line(getenv("VGPU_EMULATOR_LOG"), format, arguments);
    va_end(arguments);
}
