/* For gpu-check: the driver's own checkpoint of another process, phase by phase. Uses no part of vgpu. */
#define _GNU_SOURCE
#include "program.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOCK_TIMEOUT_MS = 10000 };

/* 64 bytes. Only the first word is used, and only for the lock; the others are zero. */
struct arguments {
  unsigned timeout_ms;
  unsigned char reserved[60];
};

typedef CUresult (*checkpoint_call)(int pid, struct arguments *arguments);

static checkpoint_call find(const char *name) {
  checkpoint_call call = NULL;
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  void *found = library == NULL ? NULL : dlsym(library, name);
  memcpy(&call, &found, sizeof call);
  return call;
}

/* Runs a phase and prints "phase NAME code N ms T". */
static CUresult phase(const char *name, const char *symbol, int pid, unsigned timeout_ms) {
  struct arguments arguments = {timeout_ms, {0}};
  checkpoint_call call = find(symbol);
  if (call == NULL) {
    say("phase %s code -1 ms 0", name);
    return -1;
  }
  uint64_t begin = now_ns();
  CUresult result = call(pid, &arguments);
  say("phase %s code %d ms %.3f", name, result, (double)(now_ns() - begin) / 1e6);
  return result;
}

/* checkpoint PID: 'suspend', 'resume'. On any failure, the process is unlocked. */
int mode_checkpoint(int count, char **arguments) {
  struct driver driver;
  char line[64];
  if (count != 1) {
    return 2;
  }
  int pid = atoi(arguments[0]);
  driver_load(&driver);
  check(driver.init(0), "cuInit");
  say("ready");
  while (next_line(line, sizeof line)) {
    CUresult result = CUDA_SUCCESS;
    if (strcmp(line, "suspend") == 0) {
      result = phase("lock", "cuCheckpointProcessLock", pid, LOCK_TIMEOUT_MS);
      if (result == CUDA_SUCCESS) {
        result = phase("checkpoint", "cuCheckpointProcessCheckpoint", pid, 0);
        if (result != CUDA_SUCCESS) {
          phase("unlock", "cuCheckpointProcessUnlock", pid, 0);
        }
      }
    } else {
      result = phase("restore", "cuCheckpointProcessRestore", pid, 0);
      CUresult unlocked = phase("unlock", "cuCheckpointProcessUnlock", pid, 0);
      result = result == CUDA_SUCCESS ? unlocked : result;
    }
    say("done code %d", result);
  }
  return 0;
}
