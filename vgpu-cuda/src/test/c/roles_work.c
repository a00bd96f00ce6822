/* Roles for the tests of work: test_work.c. */
#include "roles_work.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../main/shm/shm.h"
#include "cuda_calls.h"
#include "fake_seat.h"
#include "stub_driver.h"
#include "test.h"

void *stub_symbol(const char *name) {
  void *(*open_real)(const char *, int) = NULL;
  void *found = dlsym(dlopen("libc.so.6", RTLD_NOW), "dlopen"); /* not the hook's, which would return the hook */
  memcpy(&open_real, &found, sizeof open_real);
  void *library = open_real(getenv("STUB_PATH"), RTLD_NOW | RTLD_NOLOAD);
  found = library == NULL ? NULL : dlsym(library, name);
  if (found == NULL) abort();
  return found;
}

struct stub_counts *stub(void) {
  struct stub_counts *(*ask)(void) = NULL;
  void *found = stub_symbol("stub_counts");
  memcpy(&ask, &found, sizeof ask);
  return ask();
}

static CUcontext begin(void) {
  CUcontext context = NULL;
  CHECK(cuInit(0) == ABI_SUCCESS, "cuInit");
  CHECK(cuDevicePrimaryCtxRetain(&context, 0) == ABI_SUCCESS, "retain");
  CHECK(cuCtxSetCurrent(context) == ABI_SUCCESS, "set current");
  return context;
}

static CUfunction kernel(const char *ns) {
  CUfunction function = NULL;
  CHECK(cuModuleGetFunction(&function, NULL, ns) == ABI_SUCCESS, "function");
  return function;
}

/*
 * "NS SYNC PAUSE_US": launches kernels until the test has created the file "stop". Waits after every SYNCth, then
 * pauses.
 */
static void role_load(const char *argument) {
  char path[256], ns[32];
  unsigned sync = 0, pause_us = 0;
  CHECK(sscanf(argument, "%31s %u %u", ns, &sync, &pause_us) == 3, "argument %s", argument);
  snprintf(path, sizeof path, "%s/stop", getenv("VGPU_RUN_DIR"));
  begin();
  CUfunction function = kernel(ns);
  for (unsigned i = 1; access(path, F_OK) != 0; i++) {
    CHECK(launch(function, NULL) == ABI_SUCCESS, "launch");
    if (sync == 0 || i % sync != 0) continue;
    CHECK(cuCtxSynchronize() == ABI_SUCCESS, "sync");
    if (pause_us > 0) usleep(pause_us);
  }
}

static char *report_page(void) {
  static char *report;
  if (report == NULL) {
    char path[256];
    snprintf(path, sizeof path, "%s/leases/test/report", getenv("VGPU_RUN_DIR"));
    int fd = open(path, O_RDWR | O_CLOEXEC);
    report = mmap(NULL, SHM_REPORT_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
  }
  return report;
}

static struct shm_slot *own_slot(void) {
  struct shm_slot *slots = (void *)(report_page() + SHM_SLOTS_OFFSET);
  for (uint64_t i = 1; i < SHM_SLOT_COUNT; i++) {
    if (slots[i].pid == (uint32_t)getpid()) return &slots[i];
  }
  abort();
}

enum { SOME = 5 /* fewer than a batch may have */ };

static void *launch_some(void *argument) {
  CUstream stream = argument;
  begin();
  CUfunction function = kernel("1000");
  for (int i = 0; i < SOME; i++) CHECK(launch(function, stream) == ABI_SUCCESS, "launch");
  usleep(5000); /* so old that the monitor closes their batch */
  CHECK((stream == NULL ? cuCtxSynchronize() : cuStreamSynchronize(stream)) == ABI_SUCCESS, "sync");
  return NULL; /* launches nothing any more */
}

/* A thread's launches are counted once it has waited for them, whichever thread closed the batch. */
static void role_counted(const char *unused) {
  (void)unused;
  CUstream stream = NULL;
  begin();
  CHECK(cuStreamCreate(&stream, 0) == ABI_SUCCESS, "stream");
  for (uint64_t round = 1; round <= 10; round++) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, launch_some, round % 2 == 0 ? NULL : stream) == 0, "thread");
    pthread_join(thread, NULL);
    CHECK(GET(own_slot()->launches) == SOME * round, "%llu launches of %llu",
          (unsigned long long)GET(own_slot()->launches), (unsigned long long)(SOME * round));
  }
}

/* Copies are counted separately and pass a shut gate. Work on the processors is not tested here. */
static void role_copies(const char *unused) {
  (void)unused;
  char text[64];
  CUstream stream = NULL;
  begin();
  CHECK(cuStreamCreate(&stream, 0) == ABI_SUCCESS, "stream");
  for (int i = 0; i < 200; i++) CHECK(cuMemcpyHtoDAsync_v2(4096, text, sizeof text, stream) == ABI_SUCCESS, "copy");
  for (int i = 0; i < 100; i++) CHECK(cuMemcpyDtoH_v2(text, 4096, sizeof text) == ABI_SUCCESS, "copy back");
  CHECK(cuStreamSynchronize(stream) == ABI_SUCCESS, "sync");
  uint64_t copied = GET(own_slot()->copy_ns), worked = GET(own_slot()->gpu_ns), launches = GET(own_slot()->launches);
  printf("  300 copies of 1 us: %.0f us of copy engines, %.0f us of GPU time\n", (double)copied / 1e3,
         (double)worked / 1e3);
  CHECK(copied > 200000 && worked == 0 && launches == 0, "%llu copied, %llu worked, %llu launches",
        (unsigned long long)copied, (unsigned long long)worked, (unsigned long long)launches);
}

/*
 * Batched copies and copies with attributes count as copies if they cross between host and device. from = to: within
 * the device.
 */
static void copy_batches(CUstream stream, uint64_t to, uint64_t from) {
  uint64_t targets[2] = {to, to}, sources[2] = {from, from};
  size_t sizes[2] = {64, 64};
  struct abi_batch_3d operation = {.source = {.type = ABI_OPERAND_POINTER, .pointer = from},
                                   .target = {.type = ABI_OPERAND_POINTER, .pointer = to}};
  CHECK(cuMemcpyBatchAsync_v2(targets, sources, sizes, 2, NULL, NULL, 0, stream) == ABI_SUCCESS, "batch");
  CHECK(cuMemcpy3DBatchAsync_v2(1, &operation, 0, stream) == ABI_SUCCESS, "3D batch");
  CHECK(cuMemcpyWithAttributesAsync(to, from, 64, NULL, stream) == ABI_SUCCESS, "with attributes");
  CHECK(cuMemcpy3DWithAttributesAsync(&operation, 0, stream) == ABI_SUCCESS, "3D with attributes");
}

/* Of many copies only the last is within the device. */
static void copy_many(CUstream stream, uint64_t device, uint64_t host) {
  enum { COPIES = 300 };
  static uint64_t targets[COPIES], sources[COPIES];
  static size_t sizes[COPIES];
  static struct abi_batch_3d operations[COPIES];
  for (int i = 0; i < COPIES; i++) {
    targets[i] = device;
    sources[i] = i == COPIES - 1 ? device : host;
    sizes[i] = 64;
    operations[i] = (struct abi_batch_3d){.source = {.type = ABI_OPERAND_POINTER, .pointer = sources[i]},
                                          .target = {.type = ABI_OPERAND_POINTER, .pointer = device}};
  }
  CHECK(cuMemcpyBatchAsync_v2(targets, sources, sizes, COPIES, NULL, NULL, 0, stream) == ABI_SUCCESS, "batch");
  CHECK(cuMemcpy3DBatchAsync_v2(COPIES, operations, 0, stream) == ABI_SUCCESS, "3D batch");
}

static void role_copies_batched(const char *unused) {
  (void)unused;
  char text[64];
  CUstream stream = NULL;
  CUdeviceptr device = 0;
  begin();
  CHECK(cuStreamCreate(&stream, 0) == ABI_SUCCESS && cuMemAlloc_v2(&device, 4096) == ABI_SUCCESS, "stream");
  for (int i = 0; i < 20; i++)
    copy_batches(stream, device, (uint64_t)(uintptr_t)text), copy_batches(stream, (uint64_t)(uintptr_t)text, device);
  CHECK(cuStreamSynchronize(stream) == ABI_SUCCESS, "sync");
  CHECK(GET(own_slot()->copy_ns) > 100000 && GET(own_slot()->gpu_ns) == 0, "%llu copied, %llu worked",
        (unsigned long long)GET(own_slot()->copy_ns), (unsigned long long)GET(own_slot()->gpu_ns));
  uint64_t copied = GET(own_slot()->copy_ns);
  for (int i = 0; i < 20; i++) copy_batches(stream, device, device);
  CHECK(cuStreamSynchronize(stream) == ABI_SUCCESS, "sync");
  CHECK(GET(own_slot()->copy_ns) == copied && GET(own_slot()->gpu_ns) > 50000,
        "within the device: %llu copied, %llu worked", (unsigned long long)GET(own_slot()->copy_ns),
        (unsigned long long)GET(own_slot()->gpu_ns));
  copied = GET(own_slot()->copy_ns);
  uint64_t worked = GET(own_slot()->gpu_ns);
  copy_many(stream, device, (uint64_t)(uintptr_t)text);
  CHECK(cuStreamSynchronize(stream) == ABI_SUCCESS, "sync");
  CHECK(GET(own_slot()->copy_ns) == copied && GET(own_slot()->gpu_ns) > worked + 500000,
        "its last copy: %llu copied, %llu worked", (unsigned long long)(GET(own_slot()->copy_ns) - copied),
        (unsigned long long)(GET(own_slot()->gpu_ns) - worked));
}

/* A stream's waits are not charged. */
static void role_waits(const char *unused) {
  (void)unused;
  CUstream stream = NULL;
  begin();
  CHECK(cuStreamCreate(&stream, 0) == ABI_SUCCESS, "stream");
  CUfunction function = kernel("1000000");
  for (int i = 0; i < 10; i++) {
    CHECK(launch(function, stream) == ABI_SUCCESS, "before");
    CHECK(cuStreamWaitValue32_v2(stream, 4096, 1, 0) == ABI_SUCCESS, "wait");
    CHECK(launch(function, stream) == ABI_SUCCESS, "after");
    CHECK(cuStreamSynchronize(stream) == ABI_SUCCESS, "sync");
  }
  double measured = (double)GET(own_slot()->gpu_ns) / 1e6;
  printf("  20 ms of kernels, 200 ms of waits in between: charged %.2f ms\n", measured);
  CHECK(measured > 18 && measured < 100, "%.2f ms", measured);
}

/* The ledger says when work ended on the GPU, also if it began long after its launch. */
static void role_begins_late(const char *unused) {
  (void)unused;
  enum { WAIT_MS = 40, ROUNDS = 10 };
  CUstream stream = NULL;
  begin();
  CHECK(cuStreamCreate(&stream, 0) == ABI_SUCCESS, "stream");
  CUfunction function = kernel("1000000");
  for (int i = 0; i < ROUNDS; i++) {
    CHECK(launch(function, stream) == ABI_SUCCESS && cuStreamSynchronize(stream) == ABI_SUCCESS, "at once");
    uint64_t asked = seat_now();
    CHECK(cuStreamWaitValue32_v2(stream, 4096, WAIT_MS, 0) == ABI_SUCCESS, "wait");
    CHECK(launch(function, stream) == ABI_SUCCESS && cuStreamSynchronize(stream) == ABI_SUCCESS, "behind the wait");
    const struct shm_ledger *ledger = (void *)(report_page() + SHM_LEDGER_OFFSET);
    double after = (double)(int64_t)(GET(ledger->busy_until_ns) - asked) / 1e6;
    CHECK(after > WAIT_MS / 2, "launched behind the wait, and over %.2f ms after its begin, says the ledger", after);
  }
}

/* A stream that waits for its host delays only one call, and no other streams of the process. */
static void role_stalled(const char *unused) {
  (void)unused;
  enum { WAIT_MS = 30000, COPIES = 1000, KERNELS = 200 };
  char text[64];
  CUstream waits = NULL, works = NULL;
  begin();
  CHECK(cuStreamCreate(&waits, 0) == ABI_SUCCESS && cuStreamCreate(&works, 0) == ABI_SUCCESS, "streams");
  CHECK(cuStreamWaitValue32_v2(waits, 4096, WAIT_MS, 0) == ABI_SUCCESS, "wait");
  for (int i = 0; i < COPIES; i++) CHECK(cuMemcpyHtoDAsync_v2(4096, text, 1 << 20, waits) == ABI_SUCCESS, "copy");
  CHECK(cuStreamQuery(waits) == ABI_NOT_READY, "all that took as long as the wait");
  for (int i = 0; i < KERNELS; i++) CHECK(launch(kernel("20000"), works) == ABI_SUCCESS, "beside it");
  CHECK(cuStreamQuery(waits) == ABI_NOT_READY, "what is beside it took as long as the wait");
  CHECK(launch(kernel("1000000"), waits) == ABI_SUCCESS, "behind the wait");
}

/* Ends with work in flight, which the monitor queries. */
static void role_exits(const char *unused) {
  (void)unused;
  setenv("STUB_ENDS", "1", 1);
  begin();
  CUfunction function = kernel("500000000");
  CHECK(launch(function, NULL) == ABI_SUCCESS, "launch");
  usleep(5000);
  exit(failures == 0 ? 0 : 1);
}

/* A long unmeasured kernel does not count as a stream that waits for its host: not all later launches pass. */
static void role_long_first(const char *unused) {
  (void)unused;
  enum { EACH_NS = 60000000, LAUNCHES = 30 };
  begin();
  CUfunction function = kernel("60000000");
  for (int i = 0; i < LAUNCHES; i++) CHECK(launch(function, NULL) == ABI_SUCCESS, "launch");
  CHECK(cuCtxSynchronize() == ABI_SUCCESS, "sync");
  printf("  kernels of 60 ms: at most %.2f ms ahead\n", (double)stub()->most_ahead_ns / 1e6);
  CHECK(stub()->most_ahead_ns < LAUNCHES / 2 * (uint64_t)EACH_NS, "%llu ns ahead",
        (unsigned long long)stub()->most_ahead_ns);
}

/* A process is stopped with an open batch, and resumed. The time in between is not charged. */
static void role_stopped(const char *unused) {
  (void)unused;
  enum { STOPS = 6, STOP_MS = 60 };
  CUstream stream = NULL;
  begin();
  CHECK(cuStreamCreate(&stream, 0) == ABI_SUCCESS, "stream");
  CUfunction function = kernel("2000");
  for (int i = 0; i < STOPS; i++) {
    for (int k = 0; k < 300 + i; k++) CHECK(launch(function, stream) == ABI_SUCCESS, "launch");
    pid_t own = getpid(), helper = fork();
    if (helper == 0) {
      while (getppid() == own) usleep(STOP_MS * 1000), kill(own, SIGCONT); /* again, if the stop is delayed */
      _exit(0);
    }
    for (int k = 0; k < 30; k++) CHECK(launch(function, stream) == ABI_SUCCESS, "launch");
    raise(SIGSTOP);
    CHECK(cuStreamSynchronize(stream) == ABI_SUCCESS, "sync");
    kill(helper, SIGKILL);
    waitpid(helper, NULL, 0);
  }
  double measured = (double)GET(own_slot()->gpu_ns) / 1e6;
  printf("  %d stops of %d ms, %.1f ms of kernels: charged %.2f ms\n", STOPS, STOP_MS, (double)stub()->gpu_ns / 1e6,
         measured);
  CHECK(measured < STOP_MS / 2, "%.2f ms", measured);
}

/* Waits until another thread is blocked in the driver. */
static int await_held_up(void) {
  for (int i = 0; i < 10000 && GET(stub()->held_up) == 0; i++) usleep(1000);
  return GET(stub()->held_up) != 0;
}

/*
 * Another call holds the driver's lock when the monitor queries an event. The process still counts as alive, and its
 * work is charged.
 */
static void role_held_up(const char *unused) {
  (void)unused;
  enum { FIRST_NS = 30000000, SECOND_NS = 200000000 };
  static const uint64_t LONG_NS = 250000000;
  CUstream first = NULL, second = NULL;
  begin();
  CHECK(cuStreamCreate(&first, 0) == ABI_SUCCESS && cuStreamCreate(&second, 0) == ABI_SUCCESS, "streams");
  __atomic_store_n(&stub()->held_up_by, gettid(), __ATOMIC_SEQ_CST);
  CHECK(launch(kernel("30000000"), first) == ABI_SUCCESS, "launch");
  CHECK(await_held_up(), "the monitor does not ask");
  CHECK(launch(kernel("200000000"), second) == ABI_SUCCESS, "launch");
  uint64_t since = GET(own_slot()->heartbeat_ns);
  for (int i = 0; i < 30000 && GET(own_slot()->heartbeat_ns) - since < LONG_NS; i++) usleep(1000);
  CHECK(GET(own_slot()->heartbeat_ns) - since >= LONG_NS, "it looks stopped");
  __atomic_store_n(&stub()->held_up_by, 0, __ATOMIC_SEQ_CST);
  CHECK(cuCtxSynchronize() == ABI_SUCCESS, "sync");
  double measured = (double)GET(own_slot()->gpu_ns), expected = (double)(FIRST_NS + SECOND_NS);
  printf("  held up while %.0f ms of kernels ran: charged %.2f ms\n", expected / 1e6, measured / 1e6);
  CHECK(measured > expected / 2, "%.2f ms", measured / 1e6);
}

enum { SILENT_ROUNDS = 30, SILENT_MORE = 2 };
static pthread_barrier_t silence;

/* Ends each round with launches that are not waited for: the batch stays open. */
static void *fall_silent(void *unused) {
  (void)unused;
  begin();
  CUfunction function = kernel("20000");
  for (int round = 0; round < SILENT_ROUNDS; round++) {
    for (int i = 0; i < 1 + 2 + SILENT_MORE; i++) {
      CHECK(cuLaunchKernel_ptsz(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL) == ABI_SUCCESS, "launch");
    }
    pthread_barrier_wait(&silence);
    pthread_barrier_wait(&silence);
  }
  return NULL;
}

/*
 * A batch that a thread leaves open in its per-thread default stream ends all the same, without an event in the legacy
 * stream.
 */
static void role_silent(const char *unused) {
  (void)unused;
  CUstream stream = NULL;
  void *graph = NULL;
  pthread_t thread;
  begin();
  CHECK(cuStreamCreate(&stream, 0) == ABI_SUCCESS && cuStreamBeginCapture_v2(stream, 0) == ABI_SUCCESS, "capture");
  CHECK(cuStreamSynchronize(stream) == 900 && cuStreamEndCapture(stream, &graph) == 901, "that fails");
  CHECK(pthread_barrier_init(&silence, NULL, 2) == 0 && pthread_create(&thread, NULL, fall_silent, NULL) == 0,
        "thread");
  for (int round = 0; round < SILENT_ROUNDS; round++) {
    pthread_barrier_wait(&silence);
    for (int i = 0; i < 10000 && GET(own_slot()->busy) != 0; i++) usleep(1000);
    CHECK(GET(own_slot()->busy) == 0, "work that does not end");
    pthread_barrier_wait(&silence);
  }
  pthread_join(thread, NULL);
  double measured = (double)GET(own_slot()->gpu_ns), expected = (double)stub()->gpu_ns;
  printf("  %.2f ms of kernels: charged %.2f ms\n", expected / 1e6, measured / 1e6);
  CHECK(measured > expected / 2 && measured < 4 * expected + 50e6, "%.3f", measured / expected);
  CHECK(stub()->legacy_records == 0, "%llu events in the legacy stream", (unsigned long long)stub()->legacy_records);
}

static void hold(const char *bytes) { setenv("STUB_NVML_BYTES", bytes, 1); }

/* Waits until contexts take this many MiB of the quota. */
static int await_taken(size_t mib) {
  size_t left = 0, total = 0;
  for (int i = 0; i < 10000; i++) {
    if (cuMemGetInfo_v2(&left, &total) == ABI_SUCCESS && total - left == mib << 20) return 1;
    usleep(1000);
  }
  return 0;
}

static void *begin_here(void *unused) {
  (void)unused;
  char pid[16];
  snprintf(pid, sizeof pid, "%d", gettid());
  setenv("STUB_NVML_PID", pid, 1);
  begin();
  CHECK(await_taken(8), "%llu", (unsigned long long)GET(own_slot()->overhead_bytes));
  return NULL;
}

/* The driver identifies the process by one of its threads, which then ends. */
static void role_thread_pid(const char *unused) {
  (void)unused;
  CUcontext second = NULL;
  pthread_t thread;
  setenv("VGPU_NVML", getenv("STUB_NVML"), 1);
  hold("8388608");
  CHECK(pthread_create(&thread, NULL, begin_here, NULL) == 0 && pthread_join(thread, NULL) == 0, "thread");
  hold("12582912");
  CHECK(cuCtxCreate_v2(&second, 0, 0) == ABI_SUCCESS, "a second context");
  CHECK(await_taken(12), "after the thread");
}

static const struct {
  const char *name;
  void (*run)(const char *argument);
} roles[] = {
    {"load", role_load},
    {"counted", role_counted},
    {"copies", role_copies},
    {"graphs", role_graphs},
    {"graphs-long", role_graphs_long},
    {"graphs-conditional", role_graphs_conditional},
    {"waits", role_waits},
    {"begins-late", role_begins_late},
    {"stopped", role_stopped},
    {"thread-pid", role_thread_pid},
    {"exits", role_exits},
    {"stalled", role_stalled},
    {"long-first", role_long_first},
    {"copies-batched", role_copies_batched},
    {"capture-other", role_capture_other},
    {"capture-new", role_capture_new},
    {"launch-bound", role_launch_bound},
    {"silent", role_silent},
    {"held-up", role_held_up},
    {"charged", role_charged},
    {"lazy", role_lazy},
    {"calls", role_calls},
    {"slips", role_slips},
    {"rounds", role_rounds},
    {"rounds-end", role_rounds_end},
    {"captures-close", role_captures_close},
    {"cancelled", role_cancelled},
    {"many-streams", role_many_streams},
    {"many-contexts", role_many_contexts},
};

struct shm_slot *work_slot(void) {
  return own_slot();
}
uint64_t work_gpu_ns(void) { return GET(own_slot()->gpu_ns); }
CUcontext work_begin(void) { return begin(); }
CUfunction work_kernel(const char *ns) { return kernel(ns); }

int run_work_role(const char *role, const char *argument) {
  for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
    if (strcmp(roles[i].name, role) != 0) continue;
    roles[i].run(argument);
    return failures == 0 ? 0 : 1;
  }
  return 2;
}
