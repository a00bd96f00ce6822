/* Programs of test_memory.c that mix the legacy stream with blocking streams, bare and under the hook. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fake_seat.h"
#include "memory_test.h"

enum { ROUNDS = 8, KERNELS = 300, KERNEL_NS = 20000, WAIT_MS = 30000 };

static const char PTX[] =
    ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry vgpu_spin(.param .u64 ns) { ret; }\n";

static CUfunction spin;
static CUdeviceptr word;
static CUstream waits, writes;
static CUevent passed;
static const struct shm_slot *slot; /* NULL: the driver alone */

static void prepare(void) {
  void *module = NULL;
  open_library();
  if (dlsym(library, "vgpu_hook_version") != NULL) {
    begin();
    slot = own_slot();
  } else {
    CHECK(CU(cuInit, 0) == ABI_SUCCESS && CU(cuDevicePrimaryCtxRetain, &context, 0) == ABI_SUCCESS, "context");
    CHECK(CU(cuCtxSetCurrent, context) == ABI_SUCCESS, "context");
  }
  CHECK(CU(cuModuleLoadData, &module, PTX) == ABI_SUCCESS &&
            CU(cuModuleGetFunction, &spin, module, "vgpu_spin") == ABI_SUCCESS,
        "kernel");
  CHECK(CU(cuMemAlloc_v2, &word, (size_t)4096) == ABI_SUCCESS && CU(cuEventCreate, &passed, 0u) == ABI_SUCCESS, "word");
  CHECK(CU(cuStreamCreate, &waits, 0u) == ABI_SUCCESS && CU(cuStreamCreate, &writes, 0u) == ABI_SUCCESS, "streams");
}

static void launch_in(CUstream stream, uint64_t ns) {
  void *arguments[] = {&ns};
  CHECK(CU(cuLaunchKernel, spin, 1u, 1u, 1u, 32u, 1u, 1u, 0u, stream, arguments, NULL) == ABI_SUCCESS, "launch");
}

static void await_idle(void) {
  uint64_t until = seat_now() + WAIT_MS * 1000000ull;
  while (slot != NULL && GET(slot->busy) != 0 && seat_now() < until) usleep(100);
}

static void *wait_for_all(void *tid) {
  CU(cuCtxSetCurrent, context);
  __atomic_store_n((int *)tid, (int)syscall(SYS_gettid), __ATOMIC_SEQ_CST);
  CHECK(CU(cuCtxSynchronize) == ABI_SUCCESS, "sync");
  return NULL;
}

/* Whether a thread of this process sleeps: in the call for which it was started, or on its way there. */
static int sleeps(int tid) {
  char path[64], state = 0;
  snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
  FILE *file = fopen(path, "re");
  if (file == NULL) return 1;
  if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1) state = 'S';
  fclose(file);
  return state == 'S';
}

static void await_asleep(const int *tid) {
  uint64_t until = seat_now() + WAIT_MS * 1000000ull;
  while ((GET(*tid) == 0 || !sleeps(GET(*tid))) && seat_now() < until) usleep(100);
}

static void check_charge(double real) {
  await_idle();
  if (slot == NULL) return;
  double charged = (double)GET(slot->gpu_ns);
  fprintf(stderr, "  %.1f ms of kernels: charged %.1f ms\n", real / 1e6, charged / 1e6);
  CHECK(charged > real * 0.7 && charged < real * 2, "charged %.3f", charged / real);
}

enum way { BY_ITSELF, BY_A_QUERY, BY_A_WAIT };
static const char *const WAYS[] = {"left alone", "then a query", "then a wait in another thread"};

/* Lets the waiting stream go on, by another one. */
static void await_write(const char *way) {
  CHECK(CU(cuStreamWriteValue32_v2, writes, word, 1u, 0u) == ABI_SUCCESS, "write");
  CHECK(CU(cuEventRecord, passed, waits) == ABI_SUCCESS, "event");
  uint64_t until = seat_now() + WAIT_MS * 1000000ull;
  while (CU(cuEventQuery, passed) == ABI_NOT_READY && seat_now() < until) usleep(100);
  if (CU(cuEventQuery, passed) == ABI_SUCCESS) return;
  printf("the write never comes, %s\n", way);
  fflush(stdout);
  _exit(1);
}

static void play_round(enum way way) {
  pthread_t thread;
  int tid = 0;
  CHECK(CU(cuStreamWriteValue32_v2, NULL, word, 0u, 0u) == ABI_SUCCESS && CU(cuCtxSynchronize) == ABI_SUCCESS, "reset");
  for (int i = 0; i < KERNELS; i++) launch_in(NULL, KERNEL_NS);
  CHECK(CU(cuStreamWaitValue32_v2, waits, word, 1u, 0u) == ABI_SUCCESS, "wait");
  if (way == BY_ITSELF) await_idle();
  if (way == BY_A_QUERY) (void)CU(cuStreamQuery, waits);
  if (way == BY_A_WAIT) {
    CHECK(pthread_create(&thread, NULL, wait_for_all, &tid) == 0, "thread");
    await_asleep(&tid);
  }
  await_write(WAYS[way]);
  if (way == BY_A_WAIT) pthread_join(thread, NULL);
  CHECK(CU(cuCtxSynchronize) == ABI_SUCCESS, "sync");
}

/*
 * A blocking stream waits for a word that another one writes later. A kernel in the legacy stream before both delays
 * neither. An event that the hook recorded there in between would: it would follow the wait, and the write would follow
 * it.
 */
void role_replay_legacy(void) {
  prepare();
  for (int way = BY_ITSELF; way <= BY_A_WAIT; way++) {
    for (int i = 0; i < ROUNDS; i++) play_round((enum way)way);
    printf("a wait and its write, beside the legacy stream, %s: over\n", WAYS[way]);
  }
  check_charge(3.0 * ROUNDS * KERNELS * KERNEL_NS);
}

enum { FREES = 6 };

/*
 * The same with a free in the legacy stream before the wait, from a pool of the program's. Further frees follow in other
 * streams, or the pool is destroyed.
 */
void role_replay_legacy_frees(void) {
  struct {
    struct abi_pool_props known;
    char rest[72];
  } props = {{1, 0, {ABI_LOCATION_DEVICE, 0}}, ""};
  prepare();
  for (int destroyed = 0; destroyed < 2; destroyed++) {
    CUmemoryPool pool = NULL;
    CUstream streams[FREES] = {NULL};
    CUdeviceptr p[FREES] = {0};
    CHECK(CU(cuMemPoolCreate, &pool, &props) == ABI_SUCCESS, "pool");
    for (int i = 0; i < FREES; i++) {
      CHECK(i == 0 || CU(cuStreamCreate, &streams[i], 1u) == ABI_SUCCESS, "stream");
      CHECK(CU(cuMemAllocFromPoolAsync, &p[i], (size_t)MIB, pool, streams[i]) == ABI_SUCCESS, "memory");
    }
    CHECK(CU(cuStreamWriteValue32_v2, NULL, word, 0u, 0u) == ABI_SUCCESS && CU(cuCtxSynchronize) == ABI_SUCCESS,
          "reset");
    for (int i = destroyed ? 1 : FREES; i < FREES; i++)
      CHECK(CU(cuMemFreeAsync, p[i], streams[i]) == ABI_SUCCESS, "free");
    CHECK(CU(cuMemFreeAsync, p[0], NULL) == ABI_SUCCESS, "a free in the legacy stream");
    CHECK(CU(cuStreamWaitValue32_v2, waits, word, 1u, 0u) == ABI_SUCCESS, "wait");
    for (int i = destroyed ? FREES : 1; i < FREES; i++)
      CHECK(CU(cuMemFreeAsync, p[i], streams[i]) == ABI_SUCCESS, "free");
    if (destroyed) CHECK(CU(cuMemPoolDestroy, pool) == ABI_SUCCESS, "destroy");
    await_write(destroyed ? "then its pool was destroyed" : "then frees in other streams");
    CHECK(CU(cuCtxSynchronize) == ABI_SUCCESS, "sync");
    if (slot != NULL) EXACT("freed");
    if (!destroyed) CHECK(CU(cuMemPoolDestroy, pool) == ABI_SUCCESS, "destroy");
  }
  printf("frees in the legacy stream: over\n");
}

enum { LOOP = 40, CAPTURES = 20, LONGER_NS = 20000000 };

/* Rounds alike, then a longer one. */
static void *loop_in_legacy(void *tid) {
  CU(cuCtxSetCurrent, context);
  for (int i = 0; i <= LOOP; i++) {
    launch_in(NULL, i < LOOP ? KERNEL_NS : LONGER_NS);
    if (i == LOOP) __atomic_store_n((int *)tid, (int)syscall(SYS_gettid), __ATOMIC_SEQ_CST);
    CHECK(CU(cuStreamSynchronize, NULL) == ABI_SUCCESS, "sync");
  }
  return NULL;
}

/*
 * A thread waits for each of its kernels in the legacy stream. During the last one, another thread captures a blocking
 * stream. Querying the legacy stream meanwhile would make the capture fail.
 */
void role_replay_legacy_capture(void) {
  void *graph = NULL;
  pthread_t thread;
  prepare();
  for (int i = 0; i < CAPTURES; i++) {
    int tid = 0;
    CHECK(pthread_create(&thread, NULL, loop_in_legacy, &tid) == 0, "thread");
    await_asleep(&tid);
    CHECK(CU(cuStreamBeginCapture_v2, waits, 2) == ABI_SUCCESS, "begin");
    launch_in(waits, KERNEL_NS);
    pthread_join(thread, NULL);
    printf("capture %d: %d\n", i, (int)CU(cuStreamEndCapture, waits, &graph));
    CHECK(graph == NULL || CU(cuGraphDestroy, graph) == ABI_SUCCESS, "destroy");
    CHECK(CU(cuCtxSynchronize) == ABI_SUCCESS, "sync");
  }
  check_charge((double)CAPTURES * (LOOP * KERNEL_NS + LONGER_NS));
}

/*
 * Work in a blocking stream that is not waited for, then the legacy stream waits for the host. The blocking stream
 * waits too, which is not charged to the work before.
 */
void role_replay_legacy_waits(void) {
  enum { WAIT_US = 30000 };
  CUstream apart = NULL;
  prepare();
  CHECK(CU(cuStreamCreate, &apart, 1u) == ABI_SUCCESS, "stream");
  for (int i = 0; i < ROUNDS; i++) {
    CHECK(CU(cuStreamWriteValue32_v2, apart, word, 0u, 0u) == ABI_SUCCESS && CU(cuCtxSynchronize) == ABI_SUCCESS,
          "reset");
    for (int k = 0; k < KERNELS; k++) launch_in(writes, KERNEL_NS);
    CHECK(CU(cuStreamWaitValue32_v2, NULL, word, 1u, 0u) == ABI_SUCCESS, "wait");
    usleep(WAIT_US); /* what the host does meanwhile */
    CHECK(CU(cuStreamWriteValue32_v2, apart, word, 1u, 0u) == ABI_SUCCESS && CU(cuCtxSynchronize) == ABI_SUCCESS,
          "sync");
    printf("round %d\n", i);
  }
  check_charge((double)ROUNDS * KERNELS * KERNEL_NS);
}
