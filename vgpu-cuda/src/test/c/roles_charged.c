/*
 * Roles that compare the charge with the stub GPU's own account, and count the driver calls for measuring: test_work.c.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../main/c/region/region.h"
#include "../../main/shm/shm.h"
#include "cuda_calls.h"
#include "fake_seat.h"
#include "roles_work.h"
#include "stub_driver.h"
#include "test.h"

static struct stub_calls *own_calls(void) {
  struct stub_calls *(*ask)(void) = NULL;
  void *found = stub_symbol("stub_calls");
  memcpy(&ask, &found, sizeof ask);
  return ask();
}

/* The counts of both sides. */
struct account {
  uint64_t charged_ns, real_ns;
};

static struct account counted(void) { return (struct account){.charged_ns = work_gpu_ns(), .real_ns = stub()->gpu_ns}; }

/* The monitor may still have to harvest. */
static void await_harvest(void) {
  for (int i = 0; i < 30000 && GET(work_slot()->busy) != 0; i++) usleep(1000);
  usleep(5000);
}

/*
 * The figures are for reading. Checked here: no more is added than a busy machine's delays between a start event and
 * its launch may add: `more_ns`. Returns the charged part, of which callers check that no work is left out.
 */
static double charged_of(const char *what, struct account before, double more_ns) {
  await_harvest();
  struct account after = counted();
  double charged = (double)(after.charged_ns - before.charged_ns), real = (double)(after.real_ns - before.real_ns);
  printf("  %s: charged %.2f of %.2f ms\n", what, charged / 1e6, real / 1e6);
  CHECK(charged < real * 1.5 + more_ns, "%s: %.3f", what, charged / real);
  return charged / real;
}

static void compare_least(const char *what, struct account before, double least, double more_ns) {
  double part = charged_of(what, before, more_ns);
  CHECK(part > least, "%s: %.3f", what, part);
}

/* of the time that the GPU had */
static const double LEAST = 0.98;

static void compare(const char *what, struct account before, double more_ns) {
  compare_least(what, before, LEAST, more_ns);
}

enum { STREAMS = 4 };

static void make_streams(CUstream streams[STREAMS]) {
  for (int i = 0; i < STREAMS; i++) CHECK(cuStreamCreate(&streams[i], 0) == ABI_SUCCESS, "stream");
}

static void run(CUfunction function, CUstream stream, int launches, int each) {
  for (int i = 1; i <= launches; i++) {
    CHECK(launch(function, stream) == ABI_SUCCESS, "launch");
    if (each > 0 && i % each == 0) CHECK(cuStreamSynchronize(stream) == ABI_SUCCESS, "sync");
  }
}

/*
 * On a busy machine a long round after short ones is not told from a thread that waited for a processor (rounds.c), and
 * is charged too little: hence several tries.
 */
static void cheap_then_dear(CUfunction cheap, CUfunction dear, CUstream stream, int each) {
  double part = 0;
  for (int tries = 0; tries < 5 && part <= LEAST; tries++) {
    struct account before = counted();
    for (int round = 0; round < 8; round++) {
      run(cheap, stream, 2000, each);
      run(dear, stream, 20, each);
    }
    CHECK(cuStreamSynchronize(stream) == ABI_SUCCESS, "sync");
    double now = charged_of(each == 0 ? "cheap, then dear" : "cheap, then dear, waited for", before, 150e6);
    part = now > part ? now : part;
  }
  CHECK(part > LEAST, "cheap, then dear, waited for after each %d: at best %.3f", each, part);
}

/* Kernels of mixed lengths; short ones until they are measured, then long ones; in one stream and in four; graphs. */
void role_charged(const char *unused) {
  (void)unused;
  static const char *const LENGTHS[] = {"5000", "500000", "20000", "100000", "2000"};
  CUfunction kernels[5];
  CUstream streams[STREAMS];
  work_begin();
  make_streams(streams);
  for (int i = 0; i < 5; i++) kernels[i] = work_kernel(LENGTHS[i]);
  for (int each = 0; each <= 10; each += 5) {
    struct account before = counted();
    for (int i = 0; i < 400; i++) run(kernels[i * 7 % 5], streams[0], 1, each > 0 && i % each == 0);
    CHECK(cuStreamSynchronize(streams[0]) == ABI_SUCCESS, "sync");
    compare(each == 0 ? "mixed lengths, never waited for" : "mixed lengths, waited for", before, 50e6);
  }
  for (int each = 0; each <= 10; each += 10) cheap_then_dear(kernels[4], kernels[1], streams[0], each);
  struct account before = counted();
  for (int i = 0; i < 800; i++) run(kernels[i % 4], streams[i / 3 % STREAMS], 1, 0);
  CHECK(cuCtxSynchronize() == ABI_SUCCESS, "sync");
  compare("four streams", before, 50e6);
  before = counted();
  for (int i = 0; i < 200; i++) {
    CHECK(cuGraphLaunch((CUgraphExec)(uintptr_t)(i % 2 == 0 ? 300000 : 30000), streams[0]) == ABI_SUCCESS, "graph");
    run(kernels[i % 4 == 0 ? 2 : 4], streams[0], 3, 0);
  }
  CHECK(cuStreamSynchronize(streams[0]) == ABI_SUCCESS, "sync");
  compare("graphs among kernels", before, 50e6);
}

/*
 * Functions that are loaded at their first launch: behind work, in the middle of a batch, and alone. Loading is not GPU
 * time.
 */
void role_lazy(const char *unused) {
  (void)unused;
  enum { FUNCTIONS = 64, KNOWN = 5 };
  CUstream stream = NULL;
  CUfunction fresh[2 * FUNCTIONS];
  setenv("STUB_LOAD_US", "0", 1);
  work_begin();
  CHECK(cuStreamCreate(&stream, 0) == ABI_SUCCESS, "stream");
  CUfunction known = work_kernel("20000");
  run(known, stream, 500, 0);
  CHECK(cuStreamSynchronize(stream) == ABI_SUCCESS, "sync");
  for (int i = 0; i < 2 * FUNCTIONS; i++) fresh[i] = work_kernel("50000");
  setenv("STUB_LOAD_US", "3000", 1);
  struct account before = counted();
  for (int i = 0; i < 2 * FUNCTIONS; i++) {
    int among = i < FUNCTIONS;
    if (among) run(known, stream, KNOWN, 0);
    run(fresh[i], stream, 1, 0);
    if (among) run(known, stream, KNOWN, 0);
    CHECK(cuStreamSynchronize(stream) == ABI_SUCCESS, "sync");
  }
  compare("functions loaded when launched", before, 25e6);
}

static void wait_by(CUstream stream, int how) {
  char text[4];
  CUevent event = NULL;
  if (how == 0) CHECK(cuStreamSynchronize(stream) == ABI_SUCCESS, "sync");
  if (how == 1) CHECK(cuCtxSynchronize() == ABI_SUCCESS, "sync");
  if (how == 2) CHECK(cuMemcpyDtoH_v2(text, 4096, sizeof text) == ABI_SUCCESS, "fetch");
  if (how == 3)
    CHECK(cuMemcpyDtoHAsync_v2(text, 4096, sizeof text, stream) == ABI_SUCCESS &&
              cuStreamSynchronize(stream) == ABI_SUCCESS,
          "fetch");
  if (how == 4) {
    CHECK(cuEventCreate(&event, 0) == ABI_SUCCESS && cuEventRecord(event, stream) == ABI_SUCCESS, "event");
    while (cuEventQuery(event) == ABI_NOT_READY) continue;
    CHECK(cuEventDestroy_v2(event) == ABI_SUCCESS, "event");
  }
}

static void rounds(CUfunction function, CUstream stream, int count, int size, int how) {
  for (int i = 0; i < count; i++) {
    run(function, stream, size, 0);
    wait_by(stream, how);
  }
}

/*
 * Programs that wait for each kernel, or for a few: many of their rounds are not measured. Then their kernels change,
 * or the way they wait.
 */
void role_rounds(const char *unused) {
  (void)unused;
  static const char *const WAITS[] = {"for the stream", "for the context", "for a result", "for a result on its way",
                                      "by polling"};
  enum { HOWS = 5, ROUNDS = 300, MOST = ROUNDS * 3 / 2 };
  CUstream stream = NULL;
  char text[96];
  work_begin();
  CHECK(cuStreamCreate(&stream, 0) == ABI_SUCCESS, "stream");
  CUfunction brief = work_kernel("20000"), longer = work_kernel("300000");
  uint64_t fewest = UINT64_MAX;
  for (int how = 0; how < HOWS; how++) {
    if (how == 2) stream = NULL; /* the stream of that copy */
    for (int size = 1; size <= 5; size += 4) {
      struct account before = counted();
      uint64_t records = own_calls()->records;
      rounds(brief, stream, ROUNDS, size, how);
      records = own_calls()->records - records;
      snprintf(text, sizeof text, "%d rounds of %d, waited %s, %llu records", ROUNDS, size, WAITS[how],
               (unsigned long long)records);
      compare_least(text, before, 0.85, 20e6); /* the stub's time includes the copies */
      fewest = records < fewest ? records : fewest;
    }
    struct account before = counted();
    for (int i = 0; i < 20; i++) {
      rounds(brief, stream, 12, 1, 0);
      rounds(i % 2 == 0 ? longer : brief, stream, 3, i % 2 == 0 ? 1 : 4, how);
    }
    snprintf(text, sizeof text, "rounds that differ, waited %s", WAITS[how]);
    compare_least(text, before, 0.85, 20e6);
  }
  for (int length = 30000; length <= 200000; length += 170000) {
    struct account before = counted();
    uint64_t records = own_calls()->records;
    for (int i = 0; i < ROUNDS; i++) {
      CHECK(cuGraphLaunch((CUgraphExec)(uintptr_t)length, stream) == ABI_SUCCESS && cuCtxSynchronize() == ABI_SUCCESS,
            "graph");
    }
    snprintf(text, sizeof text, "%d graphs of %d us, %llu records", ROUNDS, length / 1000,
             (unsigned long long)(own_calls()->records - records));
    compare_least(text, before, 0.95, 20e6);
  }
  /* A measured round has two records. On a busy machine few rounds are alike. */
  for (int tries = 0; tries < 5 && fewest >= MOST; tries++) {
    uint64_t records = own_calls()->records;
    rounds(brief, stream, ROUNDS, 1, 0);
    records = own_calls()->records - records;
    fewest = records < fewest ? records : fewest;
  }
  CHECK(fewest < MOST, "of each %d rounds at least %llu records", ROUNDS, (unsigned long long)fewest);
}

/* A round without an event whose wait has failed: the hook does not know whether it is over. 0: none came. */
static int silent_round(CUfunction function, CUstream stream) {
  enum { ROUNDS = 100 };
  for (int i = 0; i < ROUNDS; i++) {
    rounds(function, stream, 1, 1, 0);
    uint64_t records = own_calls()->records;
    __atomic_store_n(&stub()->waits_fail, 1, __ATOMIC_SEQ_CST);
    CHECK(launch(function, stream) == ABI_SUCCESS && cuStreamSynchronize(stream) == 999, "a wait that fails");
    __atomic_store_n(&stub()->waits_fail, 0, __ATOMIC_SEQ_CST);
    if (own_calls()->records == records) return 1;
    CHECK(cuStreamSynchronize(stream) == ABI_SUCCESS, "sync");
  }
  return 0;
}

/* Then the stream is captured, or gone, and must not be asked any more. Not every round is caught, on a busy machine. */
void role_rounds_end(const char *unused) {
  (void)unused;
  enum { TRIES = 20 };
  CUfunction function;
  int found = 0;
  work_begin();
  function = work_kernel("20000");
  for (int i = 0; i < 2 * TRIES; i++) {
    CUstream stream = NULL;
    void *graph = NULL;
    CHECK(cuStreamCreate(&stream, 0) == ABI_SUCCESS, "stream");
    found += silent_round(function, stream);
    if (i % 2 == 0) CHECK(cuStreamBeginCapture_v2(stream, 0) == ABI_SUCCESS, "begin");
    else CHECK(cuStreamDestroy_v2(stream) == ABI_SUCCESS, "destroy");
    await_harvest();
    if (i % 2 == 0) CHECK(cuStreamEndCapture(stream, &graph) == ABI_SUCCESS, "the capture was ended by a question");
  }
  printf("  %d rounds of %d without an event\n", found, 2 * TRIES);
  CHECK(found > 0 && stub()->gone_queries == 0, "%llu questions to destroyed streams",
        (unsigned long long)stub()->gone_queries);
}

static void check_calls(const char *what, int rounds, const struct stub_calls *before) {
  const struct stub_calls *after = own_calls();
  double records = (double)(after->records - before->records) / rounds,
         elapsed = (double)(after->elapsed - before->elapsed) / rounds,
         queries = (double)(after->queries - before->queries) / rounds;
  printf("  %s: %.2f records, %.2f elapsed, %.2f queries a round\n", what, records, elapsed, queries);
  CHECK(records < 2.2 && elapsed < 1.5 && queries < 0.2, "%s", what);
}

/* Number of events that small copies record with this state of level 2. */
static unsigned long long copy_records(CUstream stream, uint64_t state, uint64_t why) {
  enum { COPIES = 20 };
  char text[4] = {0};
  struct shm_slot *slot = work_slot();
  uint32_t state_before = GET(slot->level2), why_before = GET(slot->level2_reason);
  __atomic_store_n(&slot->level2_reason, (uint32_t)why, __ATOMIC_SEQ_CST);
  __atomic_store_n(&slot->level2, (uint32_t)state, __ATOMIC_SEQ_CST);
  uint64_t before = own_calls()->records;
  for (int i = 0; i < COPIES; i++) {
    CHECK(cuMemcpyHtoDAsync_v2(4096, text, sizeof text, stream) == ABI_SUCCESS &&
              cuStreamSynchronize(stream) == ABI_SUCCESS,
          "copy");
  }
  uint64_t records = own_calls()->records - before;
  __atomic_store_n(&slot->level2, state_before, __ATOMIC_SEQ_CST);
  __atomic_store_n(&slot->level2_reason, why_before, __ATOMIC_SEQ_CST);
  return records;
}

/*
 * Small copies are measured if the process may be stopped during one. Otherwise it would look idle then, and nothing
 * would resume it.
 */
static void check_small_copies(CUstream stream) {
  CHECK(copy_records(stream, SHM_LEVEL2_OFF, SHM_LEVEL2_WHY_CLASS) == 0, "never stopped: measured");
  CHECK(copy_records(stream, SHM_LEVEL2_READY, SHM_LEVEL2_WHY_NONE) > 0, "may be stopped: not measured");
  CHECK(copy_records(stream, SHM_LEVEL2_OFF, SHM_LEVEL2_WHY_NONE) > 0, "may be stopped later: not measured");
}

/* Rounds in several streams are all measured. Each stream has two events, and its end is asked on two clocks. */
static void check_calls_of_streams(CUfunction function) {
  enum { ROUNDS = 200, EACH = 10 };
  CUstream streams[STREAMS];
  make_streams(streams);
  struct stub_calls before = *own_calls();
  for (int i = 1; i <= ROUNDS * EACH; i++) {
    CHECK(launch(function, streams[i % STREAMS]) == ABI_SUCCESS, "launch");
    if (i % EACH == 0) CHECK(cuCtxSynchronize() == ABI_SUCCESS, "sync");
  }
  const struct stub_calls *after = own_calls();
  double records = (double)(after->records - before.records) / ROUNDS,
         elapsed = (double)(after->elapsed - before.elapsed) / ROUNDS;
  printf("  %d kernels in %d streams waited for: %.2f records, %.2f elapsed a round\n", EACH, STREAMS, records,
         elapsed);
  CHECK(records < 3 * STREAMS && elapsed < 3 * STREAMS, "%.2f records, %.2f elapsed", records, elapsed);
}

/* How many driver calls the measurement costs a program that waits for each kernel. */
void role_calls(const char *unused) {
  (void)unused;
  enum { ROUNDS = 300 };
  CUstream stream = NULL;
  char text[4];
  work_begin();
  CHECK(cuStreamCreate(&stream, 0) == ABI_SUCCESS, "stream");
  CUfunction function = work_kernel("20000");
  run(function, stream, 50, 1);
  struct stub_calls before = *own_calls();
  run(function, stream, ROUNDS, 1);
  check_calls("waited for", ROUNDS, &before);
  run(function, NULL, 50, 1);
  before = *own_calls();
  for (int i = 0; i < ROUNDS; i++) {
    CHECK(launch(function, NULL) == ABI_SUCCESS && cuMemcpyDtoH_v2(text, 4096, sizeof text) == ABI_SUCCESS, "fetch");
  }
  check_calls("fetched", ROUNDS, &before);
  run(function, stream, 2000, 0);
  before = *own_calls();
  run(function, stream, 2000, 0);
  const struct stub_calls *after = own_calls();
  printf("  2000 never waited for: %llu records, %llu elapsed, %llu queries\n",
         (unsigned long long)(after->records - before.records), (unsigned long long)(after->elapsed - before.elapsed),
         (unsigned long long)(after->queries - before.queries));
  CHECK(cuStreamSynchronize(stream) == ABI_SUCCESS, "sync");
  check_calls_of_streams(function);
  check_small_copies(stream);
}

static abi_result begin_capture(CUstream stream, int how) {
  if (how == 0) return cuStreamBeginCapture_v2(stream, 0);
  return how == 1 ? cuStreamBeginCaptureToCig(stream, NULL)
                  : cuStreamBeginRecaptureToGraph(stream, 0, NULL, NULL, NULL);
}

/* Whatever begins a capture closes the stream's open batch. Several tries: the monitor may have closed it before. */
void role_captures_close(const char *unused) {
  (void)unused;
  enum { TRIES = 100 };
  CUstream stream = NULL;
  void *graph = NULL;
  work_begin();
  CUfunction function = work_kernel("20000");
  CHECK(cuStreamCreate(&stream, 0) == ABI_SUCCESS, "stream");
  for (int how = 0; how < 3; how++) {
    int closed = 0;
    for (int i = 0; i < TRIES && !closed; i++) {
      run(function, stream, 5, 0);
      uint64_t before = own_calls()->records;
      CHECK(begin_capture(stream, how) == ABI_SUCCESS, "begin");
      closed = own_calls()->records > before;
      CHECK(cuStreamEndCapture(stream, &graph) == ABI_SUCCESS && cuStreamSynchronize(stream) == ABI_SUCCESS, "end");
    }
    CHECK(closed, "capture %d leaves the batch open", how);
  }
}

static CUcontext shared;

static void *launch_cancelled(void *function) {
  CHECK(cuCtxSetCurrent(shared) == ABI_SUCCESS, "set current");
  pthread_cancel(pthread_self());
  CHECK(launch(function, NULL) == ABI_SUCCESS, "a launch of a thread that is being cancelled");
  pthread_testcancel();
  return NULL;
}

/* A thread that is cancelled in the middle of a launch leaves the hook first. The launch tells the seat that work begins. */
void role_cancelled(const char *unused) {
  (void)unused;
  shared = work_begin();
  CUfunction function = work_kernel("1000");
  pthread_t thread;
  void *end = NULL;
  alarm(60); /* ends a launch that waits for ever */
  for (int i = 0; i < 3; i++) {
    run(function, NULL, 1, 1);
    for (int waits = 0; GET(work_slot()->busy) != 0 && waits < 30000; waits++) usleep(1000);
    usleep(10000);
    CHECK(pthread_create(&thread, NULL, launch_cancelled, function) == 0 && pthread_join(thread, &end) == 0, "thread");
    CHECK(end == PTHREAD_CANCELED, "it is cancelled");
  }
  run(function, NULL, 100, 10);
}

/* Work in a stream is measured, whatever number of streams had work before. */
void role_many_streams(const char *unused) {
  (void)unused;
  enum { MANY = 1100 };
  CUstream streams[MANY];
  work_begin();
  CUfunction small = work_kernel("2000"), large = work_kernel("1000000");
  for (int i = 0; i < MANY; i++) {
    CHECK(cuStreamCreate(&streams[i], 0) == ABI_SUCCESS, "stream");
    run(small, streams[i], 1, 1);
  }
  struct account before = counted();
  run(large, streams[MANY - 1], 10, 0);
  CHECK(cuStreamSynchronize(streams[MANY - 1]) == ABI_SUCCESS, "sync");
  compare_least("the last of many streams", before, 0.8, 50e6);
  before = counted();
  run(large, streams[0], 10, 0);
  CHECK(cuStreamSynchronize(streams[0]) == ABI_SUCCESS, "sync");
  compare_least("the first of them again", before, 0.8, 50e6);
  for (int i = 0; i < MANY; i++) CHECK(cuStreamDestroy_v2(streams[i]) == ABI_SUCCESS, "destroy");
}

/* There are as many contexts as the hook can measure and charge, and no more. */
void role_many_contexts(const char *unused) {
  (void)unused;
  enum { MANY = 1024 };
  static CUcontext contexts[MANY];
  CUcontext current = NULL;
  int made = 0;
  abi_result result = ABI_SUCCESS;
  work_begin();
  CUfunction large = work_kernel("1000000");
  while (made < MANY && (result = cuCtxCreate_v2(&contexts[made], 0, 0)) == ABI_SUCCESS) {
    CHECK(cuCtxPopCurrent_v2(&current) == ABI_SUCCESS && current == contexts[made], "pop");
    made++;
  }
  CHECK(made == (int)VGPU_CONTEXTS - 1 && result == ABI_OUT_OF_MEMORY, "%d contexts, then %d", made, result);
  CHECK(cuCtxPushCurrent_v2(contexts[made - 1]) == ABI_SUCCESS, "push");
  struct account before = counted();
  run(large, NULL, 10, 0);
  CHECK(cuStreamSynchronize(NULL) == ABI_SUCCESS, "sync");
  compare_least("in the last of many contexts", before, 0.8, 50e6);
  CHECK(cuCtxDestroy_v2(contexts[made - 1]) == ABI_SUCCESS, "destroy");
  CHECK(cuCtxCreate_v2(&contexts[made - 1], 0, 0) == ABI_SUCCESS, "one more, instead of one that is gone");
  for (int i = 0; i < made; i++) CHECK(cuCtxDestroy_v2(contexts[i]) == ABI_SUCCESS, "destroy");
}

/* The part of what is charged meanwhile that is told as launch-bound. */
static double bound_part(const struct shm_slot *slot, uint64_t bound_ns, uint64_t charged_ns) {
  await_harvest();
  return (double)(GET(slot->launch_bound_ns) - bound_ns) / (double)(GET(slot->gpu_ns) - charged_ns);
}

/*
 * A program whose host code is slower than its kernels is told as launch-bound, whatever the machine's load. One that
 * keeps the GPU busy is not, nor one that waits for each round.
 */
void role_launch_bound(const char *unused) {
  (void)unused;
  CUstream stream = NULL;
  work_begin();
  CHECK(cuStreamCreate(&stream, 0) == ABI_SUCCESS, "stream");
  const struct shm_slot *slot = work_slot();
  CUfunction small = work_kernel("15000"), large = work_kernel("100000");
  for (int i = 0; i < 2000; i++) {
    CHECK(launch(small, stream) == ABI_SUCCESS, "launch");
    for (uint64_t began = seat_now(); seat_now() - began < 40000;) continue;
  }
  double part = bound_part(slot, 0, 0);
  printf("  a kernel of 15 us each 40 us: %.2f launch-bound\n", part);
  CHECK(part > 0.7, "%.2f launch-bound", part);
  for (int each = 0; each <= 2; each += 2) {
    CHECK(cuStreamSynchronize(stream) == ABI_SUCCESS, "sync");
    uint64_t bound_ns = GET(slot->launch_bound_ns), charged_ns = GET(slot->gpu_ns);
    run(large, stream, 2000, each);
    CHECK(cuStreamSynchronize(stream) == ABI_SUCCESS, "sync");
    part = bound_part(slot, bound_ns, charged_ns);
    printf("  kernels of 100 us, waited for after each %d: %.2f launch-bound\n", each, part);
    CHECK(part < 0.3, "%.2f launch-bound", part);
  }
}
