#include "trusted.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A direct system call, because glibc's lstat() has a symbol version newer than 2.17. */
static bool look_at(const char *path, struct stat *found) {
    return syscall(SYS_newfstatat, AT_FDCWD, path, found, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Checks one component of a path that contains no links. */
static int check(const char *part, bool is_last, char *problem, size_t size) {
    struct stat found;
    struct stat top;
    if (!look_at(part, &found) || !look_at("/", &top)) {
        snprintf(problem, size, "cannot look at a directory: path=%s error=%s", part,
                 strerror(errno));
        return -1;
    }
    if (found.st_uid != geteuid() && found.st_uid != 0 && found.st_uid != top.st_uid) {
        snprintf(problem, size,
                 "it belongs to another user: path=%s uid=%lu, this process has uid=%lu", part,
                 (unsigned long)found.st_uid, (unsigned long)geteuid());
        return -1;
    }
    bool group = (found.st_mode & S_IWGRP) != 0 && found.st_gid != found.st_uid;
    bool sticky = S_ISDIR(found.st_mode) && (found.st_mode & S_ISVTX) != 0 && !is_last;
    if ((group || (found.st_mode & S_IWOTH) != 0) && !sticky) {
        snprintf(problem, size, "other users can write to it: path=%s mode=%lo; chmod go-w it",
                 part, (unsigned long)(found.st_mode & 07777));
        return -1;
    }
    return 0;
}

static int check_all(char *real, bool is_whole, char *problem, size_t size) {
    if (real[1] == '\0') {
        return check("/", is_whole, problem, size);
    }
    int result = check("/", false, problem, size);
    for (char *end = real + 1; result == 0 && end != NULL;) {
        end = strchr(end, '/');
        if (end != NULL) {
            *end = '\0';
        }
        result = check(real, is_whole && end == NULL, problem, size);
        if (end != NULL) {
            *end++ = '/';
        }
    }
    return result;
}

int emu_trust_directory(char *path, size_t size, char *problem, size_t problem_size) {
    char above[PATH_MAX];
    char real[PATH_MAX];
    char whole[2 * PATH_MAX];
    char given[PATH_MAX];
    int length = snprintf(given, sizeof given, "%s%s", path[0] == '/' ? "" : "./", path);
    if (length < 0 || (size_t)length >= sizeof given) {
        snprintf(problem, problem_size, "the path is too long: %s", path);
        return -1;
    }
    memcpy(above, given, sizeof above);
    /* The longest part of the path that exists. */
    while (realpath(above, real) == NULL) {
        char *slash = strrchr(above, '/');
        if (errno != ENOENT || slash == NULL) {
            snprintf(problem, problem_size, "cannot look at a directory: path=%s error=%s", above,
                     strerror(errno));
            return -1;
        }
        slash[slash == above ? 1 : 0] = '\0';
    }
    const char *rest = given + strlen(above);
    rest += *rest == '/' ? 1 : 0;
    if (check_all(real, *rest == '\0', problem, problem_size) != 0) {
        return -1;
    }
    const char *between = *rest == '\0' || real[1] == '\0' ? "" : "/";
    snprintf(whole, sizeof whole, "%s%s%s", real, between, rest);
    if (strlen(whole) >= size) {
        snprintf(problem, problem_size, "the path is too long: %s", whole);
        return -1;
    }
    memcpy(path, whole, strlen(whole) + 1);
    return 0;
}
