/*
 * For gpu-check: which driver its names resolve to, the CUDA runtime without a framework, and faults reported by NVML.
 */
#define _GNU_SOURCE
#include "program.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static void print_name(const char *name) {
  void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  void *function = library == NULL ? NULL : dlsym(library, "cuInit");
  Dl_info info;
  printf("\"%s\":\"%s\"", name,
         library == NULL                                    ? "none"
         : function == NULL || dladdr(function, &info) == 0 ? "without cuInit"
                                                            : info.dli_fname);
}

/* names DRIVER: from the driver's own directory, which library's cuInit each name resolves to; JSON */
int mode_names(int count, char **arguments) {
  char directory[4096];
  if (count != 1 || strlen(arguments[0]) >= sizeof directory || arguments[0][0] != '/') {
    return 2;
  }
  strcpy(directory, arguments[0]);
  *strrchr(directory, '/') = '\0';
  if (chdir(directory[0] == '\0' ? "/" : directory) != 0) {
    fail("chdir", 0);
  }
  printf("{");
  print_name("libcuda.so.1");
  printf(",");
  print_name("libcuda.so");
  printf(",");
  print_name("./libcuda.so.1");
  printf(",");
  print_name("./libcuda.so");
  printf(",");
  print_name(arguments[0]);
  printf("}\n");
  fflush(stdout);
  _exit(0);
}

/* ---- the CUDA runtime ---- */

enum { RUNTIME_BYTES = 64 << 20, FILLS = 200 };

static void *runtime;

static void *runtime_function(const char *name) {
  void *found = dlsym(runtime, name);
  if (found == NULL) {
    fail(name, 0);
  }
  return found;
}

/* cudart LIBRARY: calls the runtime only; prints what it reports, then waits for the end of its input */
int mode_cudart(int count, char **arguments) {
  int (*version)(int *);
  int (*allocate)(void **, size_t);
  int (*info)(size_t *, size_t *);
  int (*fill)(void *, int, size_t, void *);
  int (*synchronize)(void);
  char line[64];
  void *memory = NULL;
  size_t free_bytes = 0, total = 0;
  int number = 0;
  runtime = count == 1 ? dlopen(arguments[0], RTLD_NOW) : NULL;
  if (runtime == NULL) {
    say("error dlopen %s", count == 1 ? dlerror() : "of what?");
    return 1;
  }
  *(void **)&version = runtime_function("cudaRuntimeGetVersion");
  *(void **)&allocate = runtime_function("cudaMalloc");
  *(void **)&info = runtime_function("cudaMemGetInfo");
  *(void **)&fill = runtime_function("cudaMemsetAsync");
  *(void **)&synchronize = runtime_function("cudaDeviceSynchronize");
  check(version(&number), "cudaRuntimeGetVersion");
  check(info(&free_bytes, &total), "cudaMemGetInfo"); /* creates the primary context */
  check(allocate(&memory, RUNTIME_BYTES), "cudaMalloc");
  for (int i = 0; i < FILLS; i++) {
    check(fill(memory, i, RUNTIME_BYTES, NULL), "cudaMemsetAsync");
  }
  check(synchronize(), "cudaDeviceSynchronize");
  say("{\"version\":%d,\"total\":%zu,\"free_before\":%zu,\"asked\":%d}", number, total, free_bytes, RUNTIME_BYTES);
  while (next_line(line, sizeof line)) {
  }
  return 0;
}

/* ---- Xids ---- */

enum { XID_EVENT = 8, TIMED_OUT = 10, WAIT_MS = 1000 };

struct event {
  void *device;
  unsigned long long type, data;
  unsigned gpu_instance, compute_instance;
};

/* xids FILE: writes "ready", or why NVML reports none, then a line for each Xid; ends with its parent */
int mode_xids(int count, char **arguments) {
  int (*init)(void);
  int (*handle)(unsigned, void **);
  int (*make)(void **);
  int (*register_for)(void *, unsigned long long, void *);
  int (*wait)(void *, struct event *, unsigned);
  const char *path = getenv("VGPU_NVML");
  void *library = dlopen(path != NULL ? path : "libnvidia-ml.so.1", RTLD_NOW), *device, *set;
  FILE *file = count == 1 ? fopen(arguments[0], "a") : NULL;
  pid_t parent = getppid();
  if (file == NULL) {
    return 2;
  }
  prctl(PR_SET_PDEATHSIG, (unsigned long)SIGKILL, 0ul, 0ul, 0ul);
  *(void **)&init = dlsym(library, "nvmlInit_v2");
  *(void **)&handle = dlsym(library, "nvmlDeviceGetHandleByIndex_v2");
  *(void **)&make = dlsym(library, "nvmlEventSetCreate");
  *(void **)&register_for = dlsym(library, "nvmlDeviceRegisterEvents");
  *(void **)&wait = dlsym(library, "nvmlEventSetWait_v2");
  int code = library == NULL || init == NULL || handle == NULL || make == NULL || register_for == NULL || wait == NULL;
  code = code != 0 ? -1 : init();
  code = code != 0 ? code : handle(0, &device);
  code = code != 0 ? code : make(&set);
  code = code != 0 ? code : register_for(device, XID_EVENT, set);
  fprintf(file, code == 0 ? "ready\n" : "NVML tells of none: error %d\n", code);
  fflush(file);
  while (code == 0 && getppid() == parent) {
    struct event event = {0};
    code = wait(set, &event, WAIT_MS);
    if (code == 0) {
      fprintf(file, "Xid %llu\n", event.data);
      fflush(file);
    }
    code = code == TIMED_OUT ? 0 : code;
  }
  return 0;
}
