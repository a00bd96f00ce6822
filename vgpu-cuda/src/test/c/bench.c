/*
 * The hook's cost: nanoseconds per launch, and per alloc and free with 0, 1,000 and 10,000 live allocations. The same
 * program runs bare and hooked, since it opens libcuda.so.1 by name. Prints the median over blocks. Usage: bench
 * launch|alloc
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../main/c/region/driver.h"

enum { BLOCKS = 400, LAUNCHES = 512, PAIRS = 256 };

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void *library;

static void *look(const char *name) {
  void *found = dlsym(library, name);
  if (found == NULL) {
    fprintf(stderr, "no %s\n", name);
    exit(1);
  }
  return found;
}

#define CALL(type, name)        \
  __typeof__(type) name##_p;    \
  void *name##_v = look(#name); \
  memcpy(&name##_p, &name##_v, sizeof name##_v)

static void fine(int result, const char *what) {
  if (result == 0) return;
  fprintf(stderr, "%s: %d\n", what, result);
  exit(1);
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *values, size_t count) {
  qsort(values, count, sizeof *values, by_size);
  return values[count / 2];
}

static void bench_launch(void) {
  CALL(abi_result(*)(CUfunction *, void *, const char *), cuModuleGetFunction);
  CALL(abi_result(*)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                     void **, void **),
       cuLaunchKernel);
  CALL(abi_result(*)(void), cuCtxSynchronize);
  CUfunction function = NULL;
  void *module = NULL;
  const char *name = "0";
  if (dlsym(library, "cuModuleLoadData") != NULL && getenv("BENCH_PTX") != NULL) {
    CALL(abi_result(*)(void **, const void *), cuModuleLoadData);
    fine(cuModuleLoadData_p(
             &module, ".version 6.0\n.target sm_52\n.address_size 64\n.visible .entry vgpu_null()\n{\n ret;\n}\n"),
         "module");
    name = "vgpu_null";
  }
  fine(cuModuleGetFunction_p(&function, module, name), "function");
  double block[BLOCKS];
  for (int i = -20; i < BLOCKS; i++) {
    uint64_t since = now_ns();
    for (int j = 0; j < LAUNCHES; j++)
      fine(cuLaunchKernel_p(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL), "launch");
    if (i >= 0) block[i] = (double)(now_ns() - since) / LAUNCHES;
    fine(cuCtxSynchronize_p(), "synchronize");
  }
  double middle = median(block, BLOCKS);
  printf("launch %.2f ns (p10 %.2f)\n", middle, block[BLOCKS / 10]);
}

static void bench_alloc(void) {
  CALL(abi_result(*)(CUdeviceptr *, size_t), cuMemAlloc_v2);
  CALL(abi_result(*)(CUdeviceptr), cuMemFree_v2);
  static CUdeviceptr live[10000];
  size_t held = 0;
  for (size_t wanted = 0; wanted <= 10000; wanted = wanted == 0 ? 1000 : wanted * 10) {
    double block[BLOCKS];
    for (; held < wanted; held++) fine(cuMemAlloc_v2_p(&live[held], 65536), "alloc");
    for (int i = -5; i < BLOCKS; i++) {
      uint64_t since = now_ns();
      for (int j = 0; j < PAIRS; j++) {
        CUdeviceptr pointer;
        fine(cuMemAlloc_v2_p(&pointer, 65536), "alloc");
        fine(cuMemFree_v2_p(pointer), "free");
      }
      if (i >= 0) block[i] = (double)(now_ns() - since) / PAIRS;
    }
    double middle = median(block, BLOCKS);
    printf("alloc+free, %zu live: %.1f ns (p10 %.1f)\n", wanted, middle, block[BLOCKS / 10]);
  }
}

int main(int count, char **arguments) {
  CUcontext context = NULL;
  library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == NULL || count != 2) {
    fprintf(stderr, "%s\n", library == NULL ? dlerror() : "usage: bench launch|alloc");
    return 2;
  }
  CALL(abi_result(*)(unsigned), cuInit);
  CALL(abi_result(*)(CUcontext *, int), cuDevicePrimaryCtxRetain);
  CALL(abi_result(*)(CUcontext), cuCtxSetCurrent);
  fine(cuInit_p(0), "cuInit");
  fine(cuDevicePrimaryCtxRetain_p(&context, 0), "retain");
  fine(cuCtxSetCurrent_p(context), "set current");
  if (strcmp(arguments[1], "launch") == 0) bench_launch();
  else bench_alloc();
  return 0;
}
