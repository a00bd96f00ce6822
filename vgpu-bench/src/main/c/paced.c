/* For gpu-check: work of known GPU time, to compare with what the lease is charged; and exits with work in flight. */
#define _GNU_SOURCE
#include "program.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Launches kernels of equal length, each due a gap after the start of the previous one. Without a gap they queue. */
static void run_paced(const struct driver *driver, unsigned us, unsigned gap_us, unsigned count, bool waits) {
  uint64_t begin = now_ns();
  for (unsigned i = 0; i < count; i++) {
    uint64_t due = begin + (uint64_t)gap_us * 1000u * i;
    while (now_ns() < due) {
    }
    check(spin(driver, (uint64_t)us * 1000u), "cuLaunchKernel");
    if (waits) {
      check(driver->context_synchronize(), "cuCtxSynchronize");
    }
  }
  check(driver->context_synchronize(), "cuCtxSynchronize");
  say("paced wall_ns %llu kernels %u", (unsigned long long)(now_ns() - begin), count);
}

static void run_cold(const struct driver *driver) {
  uint64_t begin = now_ns();
  CUmodule module = cold_module(driver, 0);
  uint64_t loaded = now_ns();
  cold_launches(driver, module);
  uint64_t first = now_ns();
  cold_launches(driver, module);
  say("cold load_ns %llu first_ns %llu again_ns %llu", (unsigned long long)(loaded - begin),
      (unsigned long long)(first - loaded), (unsigned long long)(now_ns() - first));
}

/* paced: 'cold', 'paced US GAP_US COUNT', 'waited US GAP_US COUNT' */
int mode_paced(int count, char **arguments) {
  struct driver driver;
  char line[128];
  (void)count;
  (void)arguments;
  setenv("CUDA_CACHE_DISABLE", "1", 1);
  driver_start(&driver);
  check(spin(&driver, 1000), "cuLaunchKernel");
  check(driver.context_synchronize(), "cuCtxSynchronize");
  say("ready");
  while (next_line(line, sizeof line)) {
    unsigned us, gap_us, kernels;
    if (strcmp(line, "cold") == 0) {
      run_cold(&driver);
    } else if (sscanf(line, "paced %u %u %u", &us, &gap_us, &kernels) == 3) {
      run_paced(&driver, us, gap_us, kernels, false);
    } else if (sscanf(line, "waited %u %u %u", &us, &gap_us, &kernels) == 3) {
      run_paced(&driver, us, gap_us, kernels, true);
    } else {
      return 2;
    }
  }
  return 0;
}

/* ---- leaving ---- */

enum { LEFT_KERNELS = 4, LEFT_NS = 10000000, BEFORE_NS = 2000000 };

static struct driver left;

static CUresult launch_some(void) {
  CUresult result = CUDA_SUCCESS;
  for (int i = 0; i < LEFT_KERNELS && result == CUDA_SUCCESS; i++) {
    result = spin(&left, LEFT_NS);
  }
  return result;
}

static void *exit_beside(void *unused) {
  (void)unused;
  rest_ns(BEFORE_NS);
  exit(0);
}

/* Like the destructor of a static object. The driver may have shut down by now, and then returns an error. */
static void call_at_end(int code, void *unused) {
  (void)code;
  (void)unused;
  CUdeviceptr pointer;
  CUresult result = left.memory_alloc(&pointer, 4096);
  say("{\"code\":%d}", result);
  if (result == CUDA_SUCCESS) {
    spin(&left, 1000);
    left.context_synchronize();
  }
}

/* leave exit|thread|handler: exits with 0 while its kernels run */
int mode_leave(int count, char **arguments) {
  if (count != 1) {
    return 2;
  }
  /* Registered before the driver's handler, so it runs after it. */
  if (strcmp(arguments[0], "handler") == 0 && on_exit(call_at_end, NULL) != 0) {
    fail("on_exit", 0);
  }
  driver_start(&left);
  check(launch_some(), "cuLaunchKernel");
  if (strcmp(arguments[0], "thread") == 0) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, exit_beside, NULL) != 0) {
      fail("pthread_create", 0);
    }
    while (launch_some() == CUDA_SUCCESS) { /* is inside a call when the driver shuts down */
      left.context_synchronize();
    }
    pthread_join(thread, NULL);
  }
  exit(0);
}
