#include "base/log.h"
#include "settings.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST = 256, NAME_SIZE = 96, VALUE_SIZE = 160, FILE_LIMIT = 32 * 1024 };

typedef struct {
    char name[NAME_SIZE];
    char value[VALUE_SIZE];
} setting;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char path[600];
static setting settings[MOST];
static size_t count;
static struct stat seen;
static bool is_seen;

static void add(char *item) {
    while (*item == ' ' || *item == '\t') {
        item++;
    }
    item[strcspn(item, "\r")] = '\0';
    char *equals = strchr(item, '=');
    if (item[0] == '\0' || item[0] == '#') {
        return;
    }
    if (equals == NULL || count == MOST || equals - item >= NAME_SIZE ||
        strlen(equals + 1) >= VALUE_SIZE) {
        emu_log("a setting of NVML cannot be used: %s", item);
        return;
    }
    *equals = '\0';
    snprintf(settings[count].name, NAME_SIZE, "%s", item);
    snprintf(settings[count].value, VALUE_SIZE, "%s", equals + 1);
    count++;
}

static void add_all(char *text, const char *separators) {
    char *position = NULL;
    for (char *item = strtok_r(text, separators, &position); item != NULL;
         item = strtok_r(NULL, separators, &position)) {
        add(item);
    }
}

static void read_all(int fd) {
    static char text[FILE_LIMIT];
    const char *variable = getenv("VGPU_EMULATOR_NVML");
    count = 0;
    if (variable != NULL && strlen(variable) < sizeof text) {
        memcpy(text, variable, strlen(variable) + 1);
        add_all(text, ",");
    }
    size_t used = 0;
    ssize_t length = 0;
    while (fd >= 0 && used < sizeof text - 1 &&
           (length = read(fd, text + used, sizeof text - 1 - used)) > 0) {
        used += (size_t)length;
    }
    text[used] = '\0';
    add_all(text, "\n");
}

static bool same(const struct stat *a, const struct stat *b) {
    return a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* A direct system call, as in state_file.c. */
static void refresh(void) {
    struct stat now;
    memset(&now, 0, sizeof now);
    bool is_there = syscall(SYS_newfstatat, AT_FDCWD, path, &now, 0) == 0;
    if (is_seen && same(&now, &seen)) {
        return;
    }
    int fd = is_there ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    read_all(fd);
    if (fd >= 0) {
        close(fd);
    }
    seen = now;
    is_seen = true;
}

void emu_nvml_settings_open(const char *directory) {
    pthread_mutex_lock(&lock);
    snprintf(path, sizeof path, "%s/nvml", directory);
    is_seen = false;
    pthread_mutex_unlock(&lock);
}

static bool find(const char *name, char *value, size_t size) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(settings[i].name, name) == 0) {
            snprintf(value, size, "%s", settings[i].value);
            return true;
        }
    }
    return false;
}

bool emu_nvml_text(const char *name, int index, char *value, size_t size) {
    char of_one[NAME_SIZE];
    pthread_mutex_lock(&lock);
    refresh();
    bool found = false;
    if (count > 0 && index >= 0) {
        snprintf(of_one, sizeof of_one, "%s.%d", name, index);
        found = find(of_one, value, size);
    }
    found = found || (count > 0 && find(name, value, size));
    pthread_mutex_unlock(&lock);
    return found;
}

uint64_t emu_nvml_number(const char *name, int index, uint64_t otherwise) {
    char value[VALUE_SIZE];
    if (!emu_nvml_text(name, index, value, sizeof value)) {
        return otherwise;
    }
    return value[0] == '-' ? (uint64_t)strtoll(value, NULL, 0) : strtoull(value, NULL, 0);
}
