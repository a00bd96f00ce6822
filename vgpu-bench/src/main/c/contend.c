/*
 * For gpu-check: a program that competes for the GPU's time, beside others. Uses no part of vgpu.
 *
 * Its kernels do a fixed amount of work. A kernel that waits for the clock would also end while other programs have the
 * GPU, and so hide how the time is divided. Kernels queue, so that the GPU always has work of this program. Only those
 * that have ended are counted.
 */
#define _GNU_SOURCE
#include "program.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Has the name that the emulator knows, which takes the loops for nanoseconds. */
static const char PTX[] = ".version 6.0\n"
                          ".target sm_52\n"
                          ".address_size 64\n"
                          ".visible .entry vgpu_spin(.param .u64 loops)\n"
                          "{\n"
                          "  .reg .u64 %t<2>;\n"
                          "  .reg .u32 %x<4>;\n"
                          "  .reg .pred %p<2>;\n"
                          "  .shared .align 4 .u32 sink;\n"
                          "  ld.param.u64 %t1, [loops];\n"
                          "  mov.u32 %x1, %tid.x;\n"
                          "  mov.u32 %x2, 1664525;\n"
                          "  mov.u32 %x3, 1013904223;\n"
                          "again:\n"
                          "  mad.lo.u32 %x1, %x1, %x2, %x3;\n"
                          "  sub.u64 %t1, %t1, 1;\n"
                          "  setp.ne.u64 %p1, %t1, 0;\n"
                          "  @%p1 bra again;\n"
                          "  st.volatile.shared.u32 [sink], %x1;\n"
                          "  ret;\n"
                          "}\n";

enum { BATCH = 4, BATCHES = 16, MOST_ARRIVALS = 1000, TRIES = 20, ROUNDS = 2 };
enum { PAUSED_LOOK_NS = 1000000, FIRST_LOOPS = 10000 };

static struct driver driver;
static CUfunction work;
static bool is_fixed; /* the kernel does not wait for the clock */
static CUevent arrived;
static atomic_ullong loops = FIRST_LOOPS;
static atomic_bool running, paused;
static atomic_ullong kernels;
static atomic_int error;

static CUresult launch_one(void) {
  uint64_t count = loops;
  void *parameters[] = {&count};
  return driver.launch(work, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL);
}

/* Launches a batch and its event. */
static CUresult submit(CUevent event) {
  for (int i = 0; i < BATCH; i++) {
    CUresult result = launch_one();
    if (result != CUDA_SUCCESS) {
      return result;
    }
  }
  return driver.event_record(event, NULL);
}

/* Waits for one batch. What it has launched ends before it pauses. */
static void *keep_busy(void *unused) {
  CUevent events[BATCHES];
  uint64_t begun = 0, ended = 0;
  (void)unused;
  CUresult result = driver.context_set(driver.context);
  for (int i = 0; i < BATCHES && result == CUDA_SUCCESS; i++) {
    result = driver.event_create(&events[i], 2 /* no time */);
  }
  while (result == CUDA_SUCCESS) {
    if (running && begun - ended < BATCHES) {
      paused = false;
      result = submit(events[begun++ % BATCHES]);
    } else if (begun != ended) {
      result = driver.event_synchronize(events[ended++ % BATCHES]);
      kernels += BATCH;
    } else {
      paused = true;
      rest_ns(PAUSED_LOOK_NS);
    }
  }
  error = result;
  return NULL;
}

/* Runs one kernel. Returns how long it took until its end was seen; 0: it did not end in time. */
static uint64_t run_one(uint64_t until_ns) {
  uint64_t began = now_ns(), now;
  CUresult result;
  check(launch_one(), "cuLaunchKernel");
  check(driver.event_record(arrived, NULL), "cuEventRecord");
  do {
    result = driver.event_query(arrived);
    now = now_ns();
  } while (result == CUDA_ERROR_NOT_READY && now < until_ns);
  if (result != CUDA_ERROR_NOT_READY) {
    check(result, "cuEventQuery");
  }
  return result == CUDA_SUCCESS ? now - began : 0;
}

/* Sets the kernels' length, while nothing else is on the GPU. */
static void set_length(uint64_t us) {
  uint64_t ns[TRIES], took = 0;
  for (int round = 0; round <= ROUNDS; round++) {
    for (int i = 0; i < TRIES; i++) {
      ns[i] = run_one(now_ns() + 1000000000u);
    }
    took = median(ns, TRIES);
    if (took == 0) {
      fail("a kernel did not end", 0);
    }
    loops = round < ROUNDS ? loops * us * 1000 / took : loops;
  }
  say("length loops %llu took_ns %llu fixed %d", (unsigned long long)loops, (unsigned long long)took, is_fixed);
}

/* Single kernels, each after a rest. Their latency is from the launch until the end was seen. */
static void arrive(unsigned times, uint64_t rest, uint64_t limit_ms) {
  static uint64_t took[MOST_ARRIVALS];
  uint64_t seed = 7, until = now_ns() + limit_ms * 1000000;
  unsigned done = 0;
  bool late = false;
  while (done < times && done < MOST_ARRIVALS && !late && now_ns() < until) {
    rest_ns(rest / 2 + random_next(&seed) % rest);
    took[done] = run_one(until);
    late = took[done] == 0;
    done += !late;
  }
  uint64_t p50 = median(took, done);
  say("arrive done %u late %d p50_ns %llu p99_ns %llu max_ns %llu", done, late, (unsigned long long)p50,
      (unsigned long long)(done > 0 ? took[(done - 1) * 99 / 100] : 0),
      (unsigned long long)(done > 0 ? took[done - 1] : 0));
}

static void start(void) {
  CUmodule module;
  driver_start(&driver);
  work = driver.spin_kernel;
  is_fixed = driver.module_load(&module, PTX) == CUDA_SUCCESS &&
             driver.module_function(&work, module, "vgpu_spin") == CUDA_SUCCESS;
  check(driver.event_create(&arrived, 2), "cuEventCreate");
  run_one(now_ns() + 1000000000u);
}

/* contend: 'length US', 'loops N', 'start', 'pause', 'read', 'arrive TIMES REST_US LIMIT_MS' */
int mode_contend(int count, char **arguments) {
  char line[128];
  pthread_t thread;
  (void)arguments;
  if (count != 0) {
    return 2;
  }
  start();
  if (pthread_create(&thread, NULL, keep_busy, NULL) != 0) {
    fail("pthread_create", errno);
  }
  say("ready");
  while (next_line(line, sizeof line)) {
    unsigned long long number;
    unsigned times, rest_us, limit_ms;
    if (strcmp(line, "read") == 0) {
      say("read now_ns %llu kernels %llu paused %d error %d", (unsigned long long)now_ns(), (unsigned long long)kernels,
          paused, error);
    } else if (sscanf(line, "length %llu", &number) == 1) {
      set_length(number);
    } else if (sscanf(line, "loops %llu", &number) == 1) {
      loops = number;
      say("%s", line);
    } else if (sscanf(line, "arrive %u %u %u", &times, &rest_us, &limit_ms) == 3 && rest_us > 0) {
      arrive(times, rest_us * UINT64_C(1000), limit_ms);
    } else {
      running = strcmp(line, "start") == 0;
      say("%s", line);
    }
  }
  _exit(0); /* the driver's own end would wait for stopped work */
}
