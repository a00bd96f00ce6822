#include "log.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void emu_log(const char *format, ...) {
    const char *where = getenv("VGPU_EMULATOR_LOG");
    if (where == NULL || where[0] == '\0') {
        return;
    }
    char line[1024] = "vgpu emulator: ";
    size_t used = strlen(line);
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line + used, sizeof line - used - 1, format, arguments);
    va_end(arguments);
    if (length < 0) {
        return;
    }
    used = strlen(line);
    line[used++] = '\n';
    int fd = 2;
    if (where[0] == '/') {
        fd = open(where, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    }
    ssize_t written = fd < 0 ? -1 : write(fd, line, used);
    (void)written;
    if (fd > 2) {
        close(fd);
    }
}
