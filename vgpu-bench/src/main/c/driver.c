#define _GNU_SOURCE
#include "program.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

static const char PTX[] = ".version 6.0\n"
                          ".target sm_52\n"
                          ".address_size 64\n"
                          ".visible .entry vgpu_null()\n"
                          "{\n"
                          "  ret;\n"
                          "}\n"
                          ".visible .entry vgpu_spin(.param .u64 ns)\n"
                          "{\n"
                          "  .reg .u64 %t<5>;\n"
                          "  .reg .pred %p<2>;\n"
                          "  ld.param.u64 %t1, [ns];\n"
                          "  mov.u64 %t2, %globaltimer;\n"
                          "again:\n"
                          "  mov.u64 %t3, %globaltimer;\n"
                          "  sub.u64 %t4, %t3, %t2;\n"
                          "  setp.lt.u64 %p1, %t4, %t1;\n"
                          "  @%p1 bra again;\n"
                          "  ret;\n"
                          "}\n";

_Noreturn void fail(const char *what, long code) {
  say("error %s %ld", what, code);
  exit(1);
}

void check(CUresult result, const char *what) {
  if (result != CUDA_SUCCESS) {
    fail(what, result);
  }
}

void driver_load(struct driver *driver) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (library == NULL) {
    say("error dlopen %s", dlerror());
    exit(1);
  }
#define DRIVER_LOOKUP(name, symbol, parameters)     \
  *(void **)&driver->name = dlsym(library, symbol); \
  if (driver->name == NULL) {                       \
    fail("missing " symbol, 0);                     \
  }
  DRIVER_CALLS(DRIVER_LOOKUP)
#undef DRIVER_LOOKUP
}

void *driver_function(const char *name) {
  void *found = dlsym(dlopen("libcuda.so.1", RTLD_NOW), name);
  if (found == NULL) {
    fail(name, 0);
  }
  return found;
}

void driver_start(struct driver *driver) {
  CUdevice device;
  CUmodule module;
  driver_load(driver);
  check(driver->init(0), "cuInit");
  check(driver->device_get(&device, 0), "cuDeviceGet");
  check(driver->context_create(&driver->context, 0, device), "cuCtxCreate");
  check(driver->module_load(&module, PTX), "cuModuleLoadData");
  check(driver->module_function(&driver->null_kernel, module, "vgpu_null"), "cuModuleGetFunction");
  check(driver->module_function(&driver->spin_kernel, module, "vgpu_spin"), "cuModuleGetFunction");
}

CUgraphExec graph_of(const struct driver *driver, CUfunction kernel, unsigned grid, unsigned count, uint64_t ns) {
  void *parameters[] = {&ns};
  CUstream stream;
  CUgraph graph;
  CUgraphExec exec;
  check(driver->stream_create(&stream, 1), "cuStreamCreate");
  check(driver->capture_begin(stream, 0), "cuStreamBeginCapture");
  for (unsigned i = 0; i < count; i++) {
    check(driver->launch(kernel, grid, 1, 1, 32, 1, 1, 0, stream, parameters, NULL), "cuLaunchKernel, captured");
  }
  check(driver->capture_end(stream, &graph), "cuStreamEndCapture");
  check(driver->graph_instantiate(&exec, graph, 0), "cuGraphInstantiate");
  return exec;
}

CUresult spin(const struct driver *driver, uint64_t ns) {
  void *parameters[] = {&ns};
  return driver->launch(driver->spin_kernel, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL);
}

void say(const char *format, ...) {
  va_list values;
  va_start(values, format);
  vprintf(format, values);
  va_end(values);
  putchar('\n');
  fflush(stdout);
}

bool next_line(char *line, size_t size) {
  if (fgets(line, (int)size, stdin) == NULL) {
    return false;
  }
  line[strcspn(line, "\n")] = '\0';
  return true;
}

uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void rest_ns(uint64_t ns) {
  static _Thread_local bool is_exact;
  if (!is_exact) {
    is_exact = true;
    prctl(PR_SET_TIMERSLACK, 1000ul, 0ul, 0ul, 0ul);
  }
  nanosleep(&(struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)}, NULL);
}

uint64_t random_next(uint64_t *state) { /* xorshift64* */
  uint64_t x = *state;
  x ^= x >> 12;
  x ^= x << 25;
  x ^= x >> 27;
  *state = x;
  return x * 2685821657736338717u;
}

static int compare(const void *left, const void *right) {
  uint64_t a = *(const uint64_t *)left;
  uint64_t b = *(const uint64_t *)right;
  return (a > b) - (a < b);
}

uint64_t median(uint64_t *values, size_t count) {
  qsort(values, count, sizeof *values, compare);
  return count == 0 ? 0 : values[count / 2];
}
