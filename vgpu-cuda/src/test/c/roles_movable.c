/* Programs of test_memory.c with movable memory. They give the seat's orders themselves, in the grant page. */
#include <fcntl.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fake_seat.h"
#include "memory_test.h"

#define SET(x, v) __atomic_store_n(&(x), (v), __ATOMIC_SEQ_CST)
static const char PTX[] =
    ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry vgpu_spin(.param .u64 ns) { ret; }\n";
enum { LARGE = 8 * MIB, SMALL = 4096, STREAMS = 2, LOOKS = 20, ROUNDS = 3, SHORT_KERNELS = 100 };
static const uint64_t SHORT_NS = 10000, LONG_NS = 200000000;

static struct shm_grant *grant;

static void set_gate(uint32_t flags) {
  SET(grant->word, ((GET(grant->word) >> SHM_GRANT_COUNT_SHIFT) + 1) << SHM_GRANT_COUNT_SHIFT | flags);
  syscall(SYS_futex, &grant->word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

static void order(uint64_t flags) {
  SET(grant->move_bytes, UINT64_MAX);
  SET(grant->move_order, ((GET(grant->move_order) >> 1) + 1) << 1 | (uint32_t)flags);
}

static int is_done(void) { return GET(own_slot()->move_done) == GET(grant->move_order); }

static void await_done(const char *what) {
  for (uint64_t until = seat_now() + PATIENCE_NS; !is_done() && seat_now() < until;) usleep(1000);
  CHECK(is_done() && GET(own_slot()->move_error) == 0, "%s: error %u", what, GET(own_slot()->move_error));
}

/* Until the monitor has looked some times, or has done what it must not do. */
static void await_looks(void) {
  uint64_t seen = 0, until = seat_now() + PATIENCE_NS;
  for (int looks = 0; looks < LOOKS && !is_done() && seat_now() < until; usleep(100)) {
    uint64_t now = GET(own_slot()->heartbeat_ns);
    looks += now != seen;
    seen = now;
  }
}

static int is_full(CUdeviceptr from, const char *expected, size_t bytes) {
  static char found[LARGE];
  return CU(cuMemcpyDtoH_v2, found, from, bytes) == ABI_SUCCESS && memcmp(found, expected, bytes) == 0;
}

static void begin_movable(void) {
  char path[256];
  snprintf(path, sizeof path, "%s/leases/test/grant", getenv("VGPU_RUN_DIR"));
  int fd = open(path, O_RDWR | O_CLOEXEC);
  char *pages = mmap(NULL, SHM_GRANT_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  grant = (void *)(pages + SHM_GRANT_OFFSET);
  grant->memory_flags = (uint32_t)SHM_MEMORY_MOVABLE;
  grant->preemption_class = SHM_CLASS_OFFLINE;
  begin();
}

/* The memory stays where it is while copies into it are in flight. Moving it ends no capture. */
void role_movable(void) {
  static int gate;
  char *host = NULL;
  void *graph = NULL;
  CUdeviceptr p[STREAMS] = {0};
  CUstream streams[STREAMS] = {NULL}, captured = NULL;
  static const size_t bytes[] = {LARGE, SMALL};
  begin_movable();
  CHECK(CU(cuMemAllocHost_v2, (void **)&host, (size_t)LARGE) == ABI_SUCCESS, "host memory");
  memset(host, 'v', LARGE);
  CHECK(CU(cuStreamCreate, &captured, 1) == ABI_SUCCESS, "stream");
  for (int i = 0; i < STREAMS; i++) {
    CHECK(CU(cuStreamCreate, &streams[i], 1) == ABI_SUCCESS && CU(cuMemAlloc_v2, &p[i], (size_t)LARGE) == ABI_SUCCESS,
          "memory");
    CHECK(CU(cuStreamWaitValue32_v2, streams[i], (CUdeviceptr)(uintptr_t)&gate, 1, 0) == ABI_SUCCESS,
          "something before it");
    CHECK(CU(cuMemcpyHtoDAsync_v2, p[i], host, bytes[i], streams[i]) == ABI_SUCCESS, "a copy");
  }
  EXACT("movable memory");
  CHECK(CU(cuStreamBeginCapture_v2, captured, 0) == ABI_SUCCESS, "a capture");
  set_gate(0);
  order(SHM_MOVE_OUT);
  await_looks();
  CHECK(!is_done() && GET(own_slot()->moved_bytes) == 0, "moved under a copy");
  SET(gate, 1);
  await_done("out");
  CHECK(GET(own_slot()->moved_bytes) == STREAMS * LARGE, "moved: %llu",
        (unsigned long long)GET(own_slot()->moved_bytes));
  order(0);
  await_done("back");
  set_gate((uint32_t)SHM_GRANT_OPEN);
  CHECK(CU(cuStreamEndCapture, captured, &graph) == ABI_SUCCESS, "the capture");
  for (int i = 0; i < STREAMS; i++) CHECK(is_full(p[i], host, bytes[i]), "what copy %d has written", i);
  for (int i = 0; i < STREAMS; i++) CHECK(CU(cuMemFree_v2, p[i]) == ABI_SUCCESS, "free");
  EXACT("freed");
}

static void spin(CUfunction function, uint64_t ns) {
  void *arguments[] = {&ns};
  CHECK(CU(cuLaunchKernel, function, 1u, 1u, 1u, 32u, 1u, 1u, 0u, ABI_STREAM_PER_THREAD, arguments, NULL) ==
            ABI_SUCCESS,
        "launch");
}

/*
 * Only its own thread can ask a per-thread default stream whether it is idle. The memory stays while the last of many
 * kernels runs there, which shares a batch with the others, and moving it ends no capture.
 */
void role_movable_threads(void) {
  void *module = NULL, *graph = NULL;
  CUfunction function = NULL;
  CUdeviceptr p = 0;
  CUstream captured = NULL;
  CUevent last = NULL;
  static char host[LARGE];
  begin_movable();
  memset(host, 'v', LARGE);
  CHECK(CU(cuModuleLoadData, &module, PTX) == ABI_SUCCESS &&
            CU(cuModuleGetFunction, &function, module, "vgpu_spin") == ABI_SUCCESS,
        "kernel");
  CHECK(CU(cuStreamCreate, &captured, 1) == ABI_SUCCESS && OF_DRIVER(cuEventCreate, &last, 2u) == ABI_SUCCESS,
        "stream");
  CHECK(CU(cuMemAlloc_v2, &p, (size_t)LARGE) == ABI_SUCCESS, "memory");
  CHECK(CU(cuMemcpyHtoDAsync_v2, p, host, (size_t)LARGE, captured) == ABI_SUCCESS,
        "a copy"); /* the legacy stream is not asked */
  for (int round = 0; round < ROUNDS && failures == 0; round++) {
    CHECK(CU(cuStreamBeginCapture_v2, captured, 0) == ABI_SUCCESS, "a capture");
    for (int i = 0; i < SHORT_KERNELS + round; i++) spin(function, SHORT_NS);
    spin(function, LONG_NS);
    /* by the driver itself, so that the hook does not take part */
    CHECK(OF_DRIVER(cuEventRecord, last, ABI_STREAM_PER_THREAD) == ABI_SUCCESS, "event");
    set_gate(0);
    order(SHM_MOVE_OUT);
    await_done("out");
    CHECK(OF_DRIVER(cuEventQuery, last) == ABI_SUCCESS, "moved under a kernel");
    order(0);
    await_done("back");
    set_gate((uint32_t)SHM_GRANT_OPEN);
    CHECK(CU(cuStreamEndCapture, captured, &graph) == ABI_SUCCESS, "the capture");
  }
  CHECK(is_full(p, host, LARGE), "what was in it");
  CHECK(CU(cuMemFree_v2, p) == ABI_SUCCESS, "free");
}
