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
enum { LARGE = 8 * MIB, SMALL = 4096, STREAMS = 2, LOOKS = 20 };

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

/* The memory stays where it is while copies into it are in flight. Moving it ends no capture. */
void role_movable(void) {
  static int gate;
  char path[256], *host = NULL;
  void *graph = NULL;
  CUdeviceptr p[STREAMS] = {0};
  CUstream streams[STREAMS] = {NULL}, captured = NULL;
  static const size_t bytes[] = {LARGE, SMALL};
  snprintf(path, sizeof path, "%s/leases/test/grant", getenv("VGPU_RUN_DIR"));
  int fd = open(path, O_RDWR | O_CLOEXEC);
  char *pages = mmap(NULL, SHM_GRANT_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  grant = (void *)(pages + SHM_GRANT_OFFSET);
  grant->memory_flags = (uint32_t)SHM_MEMORY_MOVABLE;
  grant->preemption_class = SHM_CLASS_OFFLINE;
  begin();
  CHECK(CU(cuMemAllocHost_v2, (void **)&host, (size_t)LARGE) == ABI_SUCCESS, "host memory");
  memset(host, 'v', LARGE);
  CHECK(CU(cuStreamCreate, &captured, 1) == ABI_SUCCESS, "stream");
  for (int i = 0; i < STREAMS; i++) {
    CHECK(CU(cuStreamCreate, &streams[i], 1) == ABI_SUCCESS && CU(cuMemAlloc_v2, &p[i], (size_t)LARGE) == ABI_SUCCESS, "memory");
    CHECK(CU(cuStreamWaitValue32_v2, streams[i], (CUdeviceptr)(uintptr_t)&gate, 1, 0) == ABI_SUCCESS, "something before it");
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
  CHECK(GET(own_slot()->moved_bytes) == STREAMS * LARGE, "moved: %llu", (unsigned long long)GET(own_slot()->moved_bytes));
  order(0);
  await_done("back");
  set_gate((uint32_t)SHM_GRANT_OPEN);
  CHECK(CU(cuStreamEndCapture, captured, &graph) == ABI_SUCCESS, "the capture");
  for (int i = 0; i < STREAMS; i++) CHECK(is_full(p[i], host, bytes[i]), "what copy %d has written", i);
  for (int i = 0; i < STREAMS; i++) CHECK(CU(cuMemFree_v2, p[i]) == ABI_SUCCESS, "free");
  EXACT("freed");
}
