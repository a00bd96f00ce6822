/*
 * To be preloaded into a program that QEMU runs for another architecture. Such a program cannot start another one of its
 * architecture, because the kernel does not know it. So this starts QEMU with it. VGPU_QEMU names QEMU, VGPU_QEMU_EXEC
 * this library.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST_ARGUMENTS = 64, MOST_VARIABLES = 512, TEXT = 8192 };

extern char **environ;

static int is_ours(const char *path) {
  Elf64_Ehdr header;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t size = fd < 0 ? 0 : read(fd, &header, sizeof header);
  if (fd >= 0) close(fd);
  return size == (ssize_t)sizeof header && memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
         header.e_machine == EM_AARCH64;
}

static const char *value_in(char *const *variables, const char *name) {
  size_t length = strlen(name);
  for (; variables != NULL && *variables != NULL; variables++) {
    if (strncmp(*variables, name, length) == 0 && (*variables)[length] == '=') return *variables + length + 1;
  }
  return NULL;
}

/*
 * The variables for QEMU itself: without those that the dynamic linker of this machine would follow. They go to the
 * program as QEMU's option -E.
 */
static void host_variables(char *const *from, char **into) {
  size_t count = 0;
  for (; from != NULL && *from != NULL && count < MOST_VARIABLES - 1; from++) {
    if (strncmp(*from, "LD_", 3) != 0) into[count++] = *from;
  }
  into[count] = NULL;
}

int execve(const char *path, char *const arguments[], char *const variables[]) {
  static __thread char preload[TEXT], search[TEXT], file[PATH_MAX];
  const char *qemu = getenv("VGPU_QEMU"), *ours = getenv("VGPU_QEMU_EXEC");
  const char *also = value_in(variables, "LD_PRELOAD"), *places = value_in(variables, "LD_LIBRARY_PATH");
  char *all[MOST_ARGUMENTS + 12], *host[MOST_VARIABLES];
  if (qemu == NULL || ours == NULL || realpath(path, file) == NULL || !is_ours(file)) {
    return (int)syscall(SYS_execve, path, arguments, variables);
  }
  int before = also != NULL && strncmp(also, ours, strlen(ours)) == 0;
  snprintf(preload, sizeof preload, "LD_PRELOAD=%s%s%s", before ? "" : ours, before || also == NULL ? "" : ":",
           also == NULL ? "" : also);
  snprintf(search, sizeof search, "LD_LIBRARY_PATH=%s", places == NULL ? "" : places);
  size_t count = 0;
  all[count++] = (char *)(uintptr_t)qemu;
  all[count++] = "-L";
  all[count++] = "/";
  all[count++] = "-E";
  all[count++] = preload;
  if (places != NULL) {
    all[count++] = "-E";
    all[count++] = search;
  }
  if (arguments[0] != NULL) {
    all[count++] = "-0";
    all[count++] = arguments[0];
  }
  all[count++] = file;
  for (size_t i = 1; arguments[0] != NULL && arguments[i] != NULL && i < MOST_ARGUMENTS; i++)
    all[count++] = arguments[i];
  all[count] = NULL;
  host_variables(variables, host);
  return (int)syscall(SYS_execve, qemu, all, host);
}

static int collect(const char *first, va_list values, char **into) {
  int count = 0;
  for (const char *at = first; at != NULL && count < MOST_ARGUMENTS - 1; at = va_arg(values, const char *)) {
    into[count++] = (char *)(uintptr_t)at;
  }
  into[count] = NULL;
  return count;
}

int execv(const char *path, char *const arguments[]) { return execve(path, arguments, environ); }

int execl(const char *path, const char *first, ...) {
  char *arguments[MOST_ARGUMENTS];
  va_list values;
  va_start(values, first);
  collect(first, values, arguments);
  va_end(values);
  return execve(path, arguments, environ);
}

/* Without file actions and attributes, which no test uses. */
int posix_spawn(pid_t *restrict pid, const char *restrict path, const posix_spawn_file_actions_t *restrict actions,
                const posix_spawnattr_t *restrict attributes, char *const arguments[restrict],
                char *const variables[restrict]) {
  if (actions != NULL || attributes != NULL) return ENOSYS;
  pid_t child = fork();
  if (child < 0) return errno;
  if (child == 0) {
    execve(path, arguments, variables);
    _exit(127);
  }
  *pid = child;
  return 0;
}
