/* For gpu-check: how much host time single calls of the driver take. */
#define _GNU_SOURCE
#include "program.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* The queue is emptied after this many calls, because a call that waits for room in the queue is not measured here. */
enum { CALLS = 3000, EMPTIED_EVERY = 256, PAIR_BYTES = 4 << 20, BUSY_NS = 100000000 };

struct calls {
  struct driver driver;
  CUresult (*capturing)(CUstream, int *);
  CUresult (*exchange)(int *);
  CUstream stream;
  CUevent timed, untimed, other;
  CUdeviceptr pointer;
  int mode;
  uint64_t ns[CALLS];
};

typedef CUresult call(struct calls *calls);

static CUresult nothing(struct calls *calls) {
  (void)calls;
  return CUDA_SUCCESS;
}

static CUresult launch(struct calls *calls) {
  return calls->driver.launch(calls->driver.null_kernel, 1, 1, 1, 32, 1, 1, 0, calls->stream, NULL, NULL);
}

static CUresult record(struct calls *calls) { return calls->driver.event_record(calls->timed, calls->stream); }

static CUresult record_untimed(struct calls *calls) {
  return calls->driver.event_record(calls->untimed, calls->stream);
}

static CUresult query(struct calls *calls) { return calls->driver.event_query(calls->timed); }

static CUresult elapsed(struct calls *calls) {
  float ms;
  return calls->driver.event_elapsed(&ms, calls->other, calls->timed);
}

static CUresult capturing(struct calls *calls) {
  int status;
  return calls->capturing(calls->stream, &status);
}

static CUresult exchange(struct calls *calls) { return calls->exchange(&calls->mode); }

static CUresult allocate(struct calls *calls) { return calls->driver.memory_alloc(&calls->pointer, PAIR_BYTES); }

static CUresult release(struct calls *calls) { return calls->driver.memory_free(calls->pointer); }

static void print(struct calls *calls, const char *name, size_t count) {
  uint64_t middle = median(calls->ns, count); /* the values are sorted now */
  printf(",\"%s\":{\"p50_ns\":%llu,\"p99_ns\":%llu,\"max_ns\":%llu}", name, (unsigned long long)middle,
         (unsigned long long)calls->ns[count * 99 / 100], (unsigned long long)calls->ns[count - 1]);
}

/* Times the first call of each iteration. The second call is not timed. */
static void measure(struct calls *calls, const char *name, call *timed, call *then, size_t count) {
  for (size_t i = 0; i < count; i++) {
    uint64_t begin = now_ns();
    CUresult result = timed(calls);
    calls->ns[i] = now_ns() - begin;
    check(result == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : result, name);
    check(then(calls), name);
    if (i % EMPTIED_EVERY == 0 && timed != query) {
      check(calls->driver.context_synchronize(), "cuCtxSynchronize");
    }
  }
  print(calls, name, count);
}

/* Prints which questions about a stream end its capture, with their codes. */
static void print_capture_ended_by(struct calls *calls) {
  static const char *const QUESTIONS[] = {"cuStreamGetCtx", "cuStreamGetFlags",  "cuStreamGetPriority",
                                          "cuStreamGetId",  "cuStreamGetDevice", "cuStreamQuery"};
  const char *between = "";
  printf(",\"capture_ended_by\":\"");
  for (size_t i = 0; i < sizeof QUESTIONS / sizeof *QUESTIONS; i++) {
    CUresult (*question)(CUstream, void *) = NULL;
    uint64_t answer[2];
    CUgraph graph = NULL;
    int status = 1;
    *(void **)&question = dlsym(RTLD_DEFAULT, QUESTIONS[i]);
    if (question == NULL) {
      continue;
    }
    check(calls->driver.capture_begin(calls->stream, 2), "cuStreamBeginCapture");
    CUresult result = question(calls->stream, answer);
    check(calls->capturing(calls->stream, &status), "cuStreamIsCapturing");
    calls->driver.capture_end(calls->stream, &graph);
    if (status != 1) {
      printf("%s%s %d", between, QUESTIONS[i], (int)result);
      between = ", ";
    }
  }
  printf("\"");
}

/* calls: prints one JSON object */
int mode_calls(int count, char **arguments) {
  static struct calls calls = {.mode = 2};
  (void)count;
  (void)arguments;
  driver_start(&calls.driver);
  *(void **)&calls.capturing = driver_function("cuStreamIsCapturing");
  *(void **)&calls.exchange = driver_function("cuThreadExchangeStreamCaptureMode");
  check(calls.driver.stream_create(&calls.stream, 1), "cuStreamCreate");
  check(calls.driver.event_create(&calls.timed, 0), "cuEventCreate");
  check(calls.driver.event_create(&calls.other, 0), "cuEventCreate");
  check(calls.driver.event_create(&calls.untimed, 2), "cuEventCreate");
  check(calls.driver.event_record(calls.other, calls.stream), "cuEventRecord");
  check(launch(&calls), "cuLaunchKernel");
  check(calls.driver.context_synchronize(), "cuCtxSynchronize");
  int mode = 0;
  CUresult (*loading)(int *);
  *(void **)&loading = driver_function("cuModuleGetLoadingMode");
  check(loading(&mode), "cuModuleGetLoadingMode");
  printf("{\"calls\":%d,\"is_lazy\":%d", CALLS, mode == 2);
  measure(&calls, "clock", nothing, nothing, CALLS);
  measure(&calls, "launch", launch, nothing, CALLS);
  measure(&calls, "record", record, nothing, CALLS);
  measure(&calls, "record_behind_launch", record, launch, CALLS);
  measure(&calls, "record_untimed", record_untimed, nothing, CALLS);
  check(record(&calls), "cuEventRecord");
  check(calls.driver.context_synchronize(), "cuCtxSynchronize");
  measure(&calls, "query", query, nothing, CALLS);
  measure(&calls, "elapsed", elapsed, nothing, CALLS);
  measure(&calls, "is_capturing", capturing, nothing, CALLS);
  measure(&calls, "exchange_capture_mode", exchange, nothing, CALLS);
  measure(&calls, "allocate", allocate, release, CALLS / 10);
  check(spin(&calls.driver, BUSY_NS), "cuLaunchKernel");
  check(calls.driver.event_record(calls.timed, NULL), "cuEventRecord");
  measure(&calls, "query_not_ready", query, nothing, CALLS / 10);
  check(calls.driver.context_synchronize(), "cuCtxSynchronize");
  print_capture_ended_by(&calls);
  puts("}");
  fflush(stdout);
  return 0;
}

/* ---- a process that allocates all the time ---- */

enum { KEPT = 1 << 16, PAUSE_NS = 5000000 };

static struct {
  pthread_mutex_t lock;
  struct calls calls;
  size_t count;
  uint64_t ns[KEPT];
} pairs = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *allocate_always(void *unused) {
  check(pairs.calls.driver.context_set(pairs.calls.driver.context), "cuCtxSetCurrent");
  for (;;) {
    uint64_t begin = now_ns();
    check(allocate(&pairs.calls), "cuMemAlloc");
    uint64_t took = now_ns() - begin;
    check(release(&pairs.calls), "cuMemFree");
    pthread_mutex_lock(&pairs.lock);
    pairs.ns[pairs.count++ % KEPT] = took;
    pthread_mutex_unlock(&pairs.lock);
    rest_ns(PAUSE_NS);
  }
  return unused;
}

/* allocs: 'read' prints how long allocations took since the previous read */
int mode_allocs(int count, char **arguments) {
  pthread_t thread;
  char line[64];
  (void)count;
  (void)arguments;
  driver_start(&pairs.calls.driver);
  if (pthread_create(&thread, NULL, allocate_always, NULL) != 0) {
    fail("pthread_create", 0);
  }
  say("ready");
  while (next_line(line, sizeof line)) {
    pthread_mutex_lock(&pairs.lock);
    size_t kept = pairs.count < KEPT ? pairs.count : KEPT;
    uint64_t middle = median(pairs.ns, kept); /* the values are sorted now */
    say("allocs p50_ns %llu p99_ns %llu max_ns %llu count %zu", (unsigned long long)middle,
        (unsigned long long)(kept == 0 ? 0 : pairs.ns[kept * 99 / 100]),
        (unsigned long long)(kept == 0 ? 0 : pairs.ns[kept - 1]), pairs.count);
    pairs.count = 0;
    pthread_mutex_unlock(&pairs.lock);
  }
  exit(0);
}
