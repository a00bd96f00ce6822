/* For gpu-check: programs that hold memory in ways in which a ledger may drift from NVML. */
#define _GNU_SOURCE
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HELD_BYTES = 64 << 20, MODULE_BYTES = 48 << 20, EXPORTED_BYTES = 256 << 20, HANDLE_BYTES = 64 };

struct handle {
  char bytes[HANDLE_BYTES];
};

static struct driver driver;

static void *start_here(void *unused) {
  driver_start(&driver);
  return unused;
}

static void start(bool in_a_thread) {
  pthread_t thread;
  if (!in_a_thread) {
    start_here(NULL);
  } else if (pthread_create(&thread, NULL, start_here, NULL) != 0 || pthread_join(thread, NULL) != 0 ||
             driver.context_set(driver.context) != CUDA_SUCCESS) {
    fail("a thread's cuInit", 0);
  }
}

static void export_to(const char *path) {
  CUresult (*get)(struct handle *, CUdeviceptr);
  CUdeviceptr memory;
  struct handle handle;
  *(void **)&get = driver_function("cuIpcGetMemHandle");
  check(driver.memory_alloc(&memory, EXPORTED_BYTES), "cuMemAlloc");
  check(get(&handle, memory), "cuIpcGetMemHandle");
  FILE *file = fopen(path, "w");
  if (file == NULL || fwrite(&handle, sizeof handle, 1, file) != 1 || fclose(file) != 0) {
    fail("writing the handle", errno);
  }
}

static void import_from(const char *path) {
  CUresult (*take)(CUdeviceptr *, struct handle, unsigned);
  CUdeviceptr memory;
  struct handle handle;
  *(void **)&take = driver_function("cuIpcOpenMemHandle_v2");
  FILE *file = fopen(path, "r");
  if (file == NULL || fread(&handle, sizeof handle, 1, file) != 1 || fclose(file) != 0) {
    fail("reading the handle", errno);
  }
  check(take(&memory, handle, 1), "cuIpcOpenMemHandle");
}

/* memory plain|thread|modules|export FILE|import FILE: then waits for the end of its input */
int mode_memory(int count, char **arguments) {
  CUdeviceptr held;
  char line[64];
  if (count < 1 || (count < 2 && strstr("export import", arguments[0]) != NULL)) {
    return 2;
  }
  setenv("CUDA_CACHE_DISABLE", "1", 1);
  start(strcmp(arguments[0], "thread") == 0);
  check(driver.memory_alloc(&held, HELD_BYTES), "cuMemAlloc");
  if (strcmp(arguments[0], "modules") == 0) {
    cold_launches(&driver, cold_module(&driver, MODULE_BYTES));
  } else if (strcmp(arguments[0], "export") == 0) {
    export_to(arguments[1]);
  } else if (strcmp(arguments[0], "import") == 0) {
    import_from(arguments[1]);
  }
  check(spin(&driver, 1000), "cuLaunchKernel");
  check(driver.context_synchronize(), "cuCtxSynchronize");
  say("ready");
  while (next_line(line, sizeof line)) {
  }
  return 0;
}

static bool write_file(const char *path, const char *text) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  bool written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
  if (fd >= 0) {
    close(fd);
  }
  return written;
}

/*
 * The namespace's own /proc, as every container has it. The driver looks its process up there by the pid that it has in
 * the namespace: with the other /proc, cuInit fails with 304.
 */
static void mount_proc(void) {
  if (mount("none", "/proc", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
      mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) != 0) {
    fail("unshare: mounting /proc", errno);
  }
}

/* aside MODE ...: runs the mode in a new pid namespace; prints "error unshare CODE" if that is not permitted */
int mode_aside(int count, char **arguments) {
  char map[64];
  int status = 0;
  uid_t user = getuid();
  gid_t group = getgid();
  if (count < 1) {
    return 2;
  }
  if (unshare(CLONE_NEWPID | CLONE_NEWNS) != 0) {
    if (unshare(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS) != 0) {
      fail("unshare", errno);
    }
    snprintf(map, sizeof map, "%u %u 1", user, user);
    bool is_mapped = write_file("/proc/self/uid_map", map) && write_file("/proc/self/setgroups", "deny");
    snprintf(map, sizeof map, "%u %u 1", group, group);
    if (!is_mapped || !write_file("/proc/self/gid_map", map)) {
      fail("a user namespace", errno);
    }
  }
  pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, (unsigned long)SIGKILL, 0ul, 0ul, 0ul);
    mount_proc();
    arguments[-1] = (char *)"gpu_program";
    execv("/proc/self/exe", arguments - 1);
    _exit(127);
  }
  if (child < 0 || waitpid(child, &status, 0) != child) {
    fail("fork", errno);
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
