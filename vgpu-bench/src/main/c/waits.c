/*
 * For gpu-check: how long calls of one thread delay an event query of another thread; the hook's own thread makes such
 * queries all the time. Also which stream's work waits behind which.
 */
#define _GNU_SOURCE
#include "program.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SAMPLES = 1 << 16, PAUSE_NS = 20000, REST_NS = 100000000, LOAD_NS = 50000000, FREED_BYTES = 256 << 20 };

struct asker {
  const struct driver *driver;
  CUevent event;
  atomic_bool is_ready, ends;
  size_t count;
  uint64_t longest_ns;
  uint64_t ns[SAMPLES];
  CUresult without_context; /* result of the query in a thread without a context */
};

static struct asker asker;

static void *ask(void *unused) {
  (void)unused;
  asker.without_context = asker.driver->event_query(asker.event);
  check(asker.driver->context_set(asker.driver->context), "cuCtxSetCurrent");
  while (!atomic_load(&asker.ends)) {
    uint64_t begin = now_ns();
    check(asker.driver->event_query(asker.event), "cuEventQuery");
    uint64_t took = now_ns() - begin;
    asker.ns[asker.count++ % SAMPLES] = took;
    asker.longest_ns = took > asker.longest_ns ? took : asker.longest_ns;
    atomic_store(&asker.is_ready, true);
    rest_ns(PAUSE_NS);
  }
  return NULL;
}

struct actor {
  struct driver driver;
  size_t pinned_bytes;
  CUresult (*host_alloc)(void **, size_t, unsigned);
  CUresult (*host_free)(void *);
  void *pinned;
  CUdeviceptr memory;
  CUmodule module;
};

static void do_nothing(struct actor *actor) {
  (void)actor;
  rest_ns(REST_NS);
}

static void pin(struct actor *actor) {
  check(actor->host_alloc(&actor->pinned, actor->pinned_bytes, 0), "cuMemHostAlloc");
}

static void unpin(struct actor *actor) { check(actor->host_free(actor->pinned), "cuMemFreeHost"); }

static void allocate(struct actor *actor) {
  check(actor->driver.memory_alloc(&actor->memory, FREED_BYTES), "cuMemAlloc");
}

static void free_under_load(struct actor *actor) {
  check(spin(&actor->driver, LOAD_NS), "cuLaunchKernel");
  check(actor->driver.memory_free(actor->memory), "cuMemFree");
  check(actor->driver.context_synchronize(), "cuCtxSynchronize");
}

static void wait_for_load(struct actor *actor) {
  check(spin(&actor->driver, LOAD_NS), "cuLaunchKernel");
  check(actor->driver.context_synchronize(), "cuCtxSynchronize");
}

static void compile(struct actor *actor) { actor->module = cold_module(&actor->driver, 32 << 20); }

static void launch_first(struct actor *actor) { cold_launches(&actor->driver, actor->module); }

static const struct {
  const char *name;
  void (*act)(struct actor *actor);
} ACTIONS[] = {{"nothing", do_nothing},
               {"pin", pin},
               {"unpin", unpin},
               {"allocate", allocate},
               {"free_under_load", free_under_load},
               {"synchronize", wait_for_load},
               {"jit", compile},
               {"first_launch", launch_first}};

static void act(struct actor *actor, size_t which) {
  pthread_t thread;
  asker.count = 0;
  asker.longest_ns = 0;
  atomic_store(&asker.is_ready, false);
  atomic_store(&asker.ends, false);
  if (pthread_create(&thread, NULL, ask, NULL) != 0) {
    fail("pthread_create", 0);
  }
  while (!atomic_load(&asker.is_ready)) {
    rest_ns(PAUSE_NS);
  }
  uint64_t begin = now_ns();
  ACTIONS[which].act(actor);
  uint64_t took = now_ns() - begin;
  atomic_store(&asker.ends, true);
  pthread_join(thread, NULL);
  size_t kept = asker.count < SAMPLES ? asker.count : SAMPLES;
  uint64_t middle = median(asker.ns, kept); /* the values are sorted now */
  printf("%s\"%s\":{\"took_ms\":%.3f,\"queries\":%zu,\"p50_us\":%.3f,\"p99_us\":%.3f,\"longest_us\":%.3f}",
         which == 0 ? "{" : ",", ACTIONS[which].name, (double)took / 1e6, asker.count, (double)middle / 1e3,
         (double)asker.ns[kept * 99 / 100] / 1e3, (double)asker.longest_ns / 1e3);
}

/* waits MIB: prints one JSON object; pins MIB of host memory */
int mode_waits(int count, char **arguments) {
  static struct actor actor;
  if (count != 1) {
    return 2;
  }
  setenv("CUDA_CACHE_DISABLE", "1", 1);
  actor.pinned_bytes = (size_t)atol(arguments[0]) << 20;
  driver_start(&actor.driver);
  *(void **)&actor.host_alloc = driver_function("cuMemHostAlloc");
  *(void **)&actor.host_free = driver_function("cuMemFreeHost");
  asker.driver = &actor.driver;
  check(actor.driver.event_create(&asker.event, 0), "cuEventCreate");
  check(actor.driver.event_record(asker.event, NULL), "cuEventRecord");
  check(actor.driver.context_synchronize(), "cuCtxSynchronize");
  for (size_t i = 0; i < sizeof ACTIONS / sizeof *ACTIONS; i++) {
    act(&actor, i);
  }
  printf(",\"query_without_context\":%d}\n", asker.without_context);
  fflush(stdout);
  return 0;
}

/* ---- streams ---- */

enum { MS = 1000000, TRIES = 3, HANGS_NS = 2000000000, WAIT_GEQ = 0 };

struct streams {
  struct driver driver;
  CUstream long_stream;
  uint64_t long_ns;
  atomic_bool is_launched;
};

static CUresult launch_in(const struct driver *driver, CUstream stream, uint64_t ns) {
  void *parameters[] = {&ns};
  return driver->launch(driver->spin_kernel, 1, 1, 1, 32, 1, 1, 0, stream, parameters, NULL);
}

/* The other thread: launches a long kernel in its stream. */
static void *launch_long(void *argument) {
  struct streams *streams = argument;
  check(streams->driver.context_set(streams->driver.context), "cuCtxSetCurrent");
  check(launch_in(&streams->driver, streams->long_stream, streams->long_ns), "cuLaunchKernel");
  atomic_store(&streams->is_launched, true);
  check(streams->driver.stream_synchronize(streams->long_stream), "cuStreamSynchronize");
  return NULL;
}

/* How long a short kernel, a tenth of the long one, takes if its thread launches it shortly after the long one; ms. */
static double behind_ms(struct streams *streams, CUstream long_stream, CUstream short_stream) {
  uint64_t took[TRIES];
  int tries = streams->long_ns > 10 * MS ? 1 : TRIES;
  for (int i = 0; i < tries; i++) {
    pthread_t thread;
    streams->long_stream = long_stream;
    atomic_store(&streams->is_launched, false);
    if (pthread_create(&thread, NULL, launch_long, streams) != 0) {
      fail("pthread_create", 0);
    }
    while (!atomic_load(&streams->is_launched)) {
      rest_ns(PAUSE_NS);
    }
    rest_ns(MS);
    uint64_t begin = now_ns();
    check(launch_in(&streams->driver, short_stream, streams->long_ns / 10), "cuLaunchKernel");
    check(streams->driver.stream_synchronize(short_stream), "cuStreamSynchronize");
    took[i] = now_ns() - begin;
    pthread_join(thread, NULL);
    check(streams->driver.context_synchronize(), "cuCtxSynchronize");
  }
  return (double)median(took, (size_t)tries) / 1e6;
}

/* Whether an event in the legacy stream waits for the work of a blocking stream; 0 or 1. */
static int legacy_event_waits(const struct driver *driver, CUstream blocking) {
  CUevent event;
  check(driver->event_create(&event, 2), "cuEventCreate");
  check(launch_in(driver, blocking, 50 * MS), "cuLaunchKernel");
  check(driver->event_record(event, NULL), "cuEventRecord");
  rest_ns(10 * MS);
  CUresult result = driver->event_query(event);
  check(result == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : result, "cuEventQuery");
  check(driver->context_synchronize(), "cuCtxSynchronize");
  return result == CUDA_ERROR_NOT_READY;
}

/* How long a stream waits for a word that later work in another blocking stream writes; -1: for ever. */
static double later_ms(const struct driver *driver, CUstream waiting, CUstream writing) {
  CUresult (*wait)(CUstream, CUdeviceptr, uint32_t, unsigned);
  CUresult (*write)(CUstream, CUdeviceptr, uint32_t, unsigned);
  CUresult (*fill)(CUdeviceptr, unsigned, size_t);
  CUevent done;
  CUdeviceptr word;
  *(void **)&wait = driver_function("cuStreamWaitValue32_v2");
  *(void **)&write = driver_function("cuStreamWriteValue32_v2");
  *(void **)&fill = driver_function("cuMemsetD32_v2");
  check(driver->event_create(&done, 2), "cuEventCreate");
  check(driver->memory_alloc(&word, 256), "cuMemAlloc");
  check(fill(word, 0, 64), "cuMemsetD32");
  check(driver->context_synchronize(), "cuCtxSynchronize");
  uint64_t begin = now_ns();
  check(launch_in(driver, waiting, 1000), "cuLaunchKernel");
  check(wait(waiting, word, 1, WAIT_GEQ), "cuStreamWaitValue32");
  check(launch_in(driver, waiting, 1000), "cuLaunchKernel");
  check(driver->event_record(done, waiting), "cuEventRecord");
  rest_ns(20 * MS); /* time for an observer, such as the hook's thread, to record an event between the two */
  check(launch_in(driver, writing, 1000), "cuLaunchKernel");
  check(write(writing, word, 1, 0), "cuStreamWriteValue32");
  while (driver->event_query(done) == CUDA_ERROR_NOT_READY) {
    if (now_ns() - begin > HANGS_NS) {
      return -1;
    }
    rest_ns(MS / 10);
  }
  return (double)(now_ns() - begin) / 1e6;
}

/* streams [quick]: prints one JSON object; quick: only the shorter kernels */
int mode_streams(int count, char **arguments) {
  static struct streams streams;
  static CUstream blocking[2], others[2];
  CUstream per_thread = (CUstream)2;
  (void)arguments;
  driver_start(&streams.driver);
  for (unsigned i = 0; i < 2; i++) {
    check(streams.driver.stream_create(&blocking[i], 0), "cuStreamCreate");
    check(streams.driver.stream_create(&others[i], 1), "cuStreamCreate");
  }
  check(spin(&streams.driver, MS), "cuLaunchKernel");
  check(streams.driver.context_synchronize(), "cuCtxSynchronize");
  printf("{\"behind_ms\":{");
  for (unsigned i = 0; i < (count == 0 ? 2u : 1u); i++) {
    static const unsigned long_ms[] = {8, 100};
    streams.long_ns = (uint64_t)long_ms[i] * MS;
    printf("%s\"%u\":{\"per_thread\":%.3f,", i == 0 ? "" : ",", long_ms[i],
           behind_ms(&streams, per_thread, per_thread));
    printf("\"blocking\":%.3f,", behind_ms(&streams, blocking[0], blocking[1]));
    printf("\"non_blocking\":%.3f,", behind_ms(&streams, others[0], others[1]));
    /* The control: the legacy stream waits for blocking streams. */
    printf("\"legacy\":%.3f}", behind_ms(&streams, blocking[0], NULL));
  }
  printf("},");
  printf("\"legacy_event_waits\":%d,", legacy_event_waits(&streams.driver, blocking[0]));
  printf("\"later_ms\":%.3f}\n", later_ms(&streams.driver, blocking[0], blocking[1]));
  fflush(stdout);
  _exit(0); /* a stream may wait for ever */
}
