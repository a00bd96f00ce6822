/*
 * Programs of a lease on two GPUs: each GPU has an account with the whole quota, and all memory is charged to that of
 * the GPU which it lies on.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memory_test.h"

enum { ROOM = 512 * MIB - CONTEXT, PART = 16 * MIB, MOST = 64 };

static CUcontext on[2];

static void enter(int gpu) { CHECK(CU(cuCtxSetCurrent, on[gpu]) == ABI_SUCCESS, "set current"); }

/* Bytes that the driver has given out on a GPU. */
static uint64_t given(int gpu) {
  CUcontext before = NULL;
  OF_DRIVER(cuCtxGetCurrent, &before);
  OF_DRIVER(cuCtxSetCurrent, on[gpu]);
  uint64_t bytes = real_bytes();
  OF_DRIVER(cuCtxSetCurrent, before);
  return bytes;
}

static void exact(int line) {
  for (int gpu = 0; gpu < 2; gpu++) {
    CHECK(ledger_bytes_of(gpu) == given(gpu), "line %d: GPU %d: charged %lld, given %lld", line, gpu,
          (long long)ledger_bytes_of(gpu), (long long)given(gpu));
  }
}
#define EXACT_BOTH() exact(__LINE__)

static void begin_both(void) {
  open_library();
  CHECK(CU(cuInit, 0) == ABI_SUCCESS, "cuInit");
  open_driver();
  for (int gpu = 0; gpu < 2; gpu++) CHECK(CU(cuDevicePrimaryCtxRetain, &on[gpu], gpu) == ABI_SUCCESS, "retain %d", gpu);
  enter(0);
  EXACT_BOTH();
}

static CUdeviceptr fill(int gpu, size_t bytes) {
  CUdeviceptr p = 0;
  enter(gpu);
  CHECK(CU(cuMemAlloc_v2, &p, bytes) == ABI_SUCCESS, "%zu bytes on GPU %d", bytes, gpu);
  return p;
}

static void refused(int gpu, size_t bytes) {
  CUdeviceptr p = 0;
  enter(gpu);
  CHECK(CU(cuMemAlloc_v2, &p, bytes) == ABI_OUT_OF_MEMORY, "%zu bytes on GPU %d", bytes, gpu);
}

static void shows(int gpu, uint64_t left) {
  size_t free = 0, total = 0;
  enter(gpu);
  CHECK(CU(cuMemGetInfo_v2, &free, &total) == ABI_SUCCESS && free == left && total == QUOTA, "GPU %d shows %zu of %zu",
        gpu, free, total);
}

void role_gang(void) {
  begin_both();
  shows(0, ROOM);
  refused(0, ROOM + 1); /* while the other is empty */
  CUdeviceptr first = fill(0, ROOM);
  EXACT_BOTH();
  shows(0, 0);
  shows(1, ROOM);
  refused(0, 1);
  CUdeviceptr second = fill(1, ROOM);
  EXACT_BOTH();
  refused(1, 1);
  enter(1); /* a free gives back on the GPU of its memory, whichever is current */
  CHECK(CU(cuMemFree_v2, first) == ABI_SUCCESS, "free");
  EXACT_BOTH();
  refused(1, 1);
  first = fill(0, ROOM);
  enter(0);
  CHECK(CU(cuMemFreeAsync, second, NULL) == ABI_SUCCESS && CU(cuCtxSynchronize) == ABI_SUCCESS, "free in order");
  EXACT_BOTH();
  enter(1);
  second = fill(1, ROOM);
  enter(0);
  CHECK(CU(cuDevicePrimaryCtxReset_v2, 1) == ABI_SUCCESS, "reset");
  CHECK(ledger_bytes_of(0) == QUOTA && ledger_bytes_of(1) == 0, "after a reset: %lld, %lld",
        (long long)ledger_bytes_of(0), (long long)ledger_bytes_of(1));
}

/* ---- every kind of memory ---- */

struct prop {
  int type, handle_types, location_type, location_id;
  char rest[72];
};

static void physical(int type, int gpu) {
  struct prop where = {1, 0, type, gpu, ""};
  uint64_t handle = 0;
  CUdeviceptr at = 0;
  CHECK(CU(cuMemCreate, &handle, (size_t)(4 * MIB), &where, 0ull) == ABI_SUCCESS, "create");
  EXACT_BOTH();
  CHECK(CU(cuMemAddressReserve, &at, (size_t)(4 * MIB), (size_t)0, 0ull, 0ull) == ABI_SUCCESS, "address");
  CHECK(CU(cuMemMap, at, (size_t)(4 * MIB), (size_t)0, handle, 0ull) == ABI_SUCCESS, "map");
  CHECK(CU(cuMemRelease, handle) == ABI_SUCCESS, "release");
  EXACT_BOTH();
  CHECK(CU(cuMemUnmap, at, (size_t)(4 * MIB)) == ABI_SUCCESS, "unmap");
  EXACT_BOTH();
  CHECK(CU(cuMemCreate, &handle, (size_t)(4 * MIB), &where, 0ull) == ABI_SUCCESS, "create again");
  CHECK(CU(cuMemRelease, handle) == ABI_SUCCESS, "release");
  EXACT_BOTH();
  CHECK(CU(cuMemCreate, &handle, (size_t)(512 * MIB), &where, 0ull) == ABI_OUT_OF_MEMORY, "more than the quota");
}

/* A pool of `gpu`, used in a stream of that GPU while `here` is current. */
static void own_pool(int gpu, int here, int type, int location) {
  struct prop where = {type, 0, location, gpu, ""};
  void *pool = NULL;
  CUstream stream = NULL;
  CUdeviceptr p = 0;
  enter(gpu);
  CHECK(CU(cuStreamCreate, &stream, 1) == ABI_SUCCESS, "stream");
  CHECK(CU(cuMemPoolCreate, &pool, &where) == ABI_SUCCESS, "pool");
  enter(here);
  CHECK(CU(cuMemAllocFromPoolAsync, &p, (size_t)(3 * MIB), pool, stream) == ABI_SUCCESS, "from the pool");
  EXACT_BOTH();
  CHECK(CU(cuMemFreeAsync, p, stream) == ABI_SUCCESS && CU(cuStreamSynchronize, stream) == ABI_SUCCESS, "free");
  EXACT_BOTH();
  CHECK(CU(cuMemPoolDestroy, pool) == ABI_SUCCESS, "destroy");
  EXACT_BOTH();
  CHECK(CU(cuStreamDestroy_v2, stream) == ABI_SUCCESS, "stream");
}

static void device_pools(int gpu, int here) {
  void *pool = NULL;
  CUstream stream = NULL;
  CUdeviceptr p = 0;
  enter(gpu);
  CHECK(CU(cuStreamCreate, &stream, 1) == ABI_SUCCESS, "stream");
  enter(here);
  CHECK(CU(cuDeviceGetDefaultMemPool, &pool, gpu) == ABI_SUCCESS, "default pool");
  CHECK(CU(cuMemAllocFromPoolAsync, &p, (size_t)(3 * MIB), pool, stream) == ABI_SUCCESS, "from the default pool");
  EXACT_BOTH();
  CHECK(CU(cuMemFreeAsync, p, stream) == ABI_SUCCESS && CU(cuStreamSynchronize, stream) == ABI_SUCCESS, "free");
  EXACT_BOTH();
  enter(gpu);
  CHECK(CU(cuMemAllocAsync, &p, (size_t)(400 * MIB), stream) == ABI_SUCCESS, "of the current pool");
  EXACT_BOTH();
  CUdeviceptr more = 0;
  CHECK(CU(cuMemAllocAsync, &more, (size_t)(100 * MIB), stream) == ABI_OUT_OF_MEMORY, "more than the quota");
  CHECK(CU(cuMemFreeAsync, p, stream) == ABI_SUCCESS && CU(cuStreamSynchronize, stream) == ABI_SUCCESS, "free");
  EXACT_BOTH();
  CHECK(CU(cuStreamDestroy_v2, stream) == ABI_SUCCESS, "stream");
}

static void others(int gpu) {
  struct abi_array shape = {1000, 100, 0x20, 4};
  CUarray array = NULL;
  CUdeviceptr p = 0;
  size_t pitch = 0;
  CUcontext made = NULL;
  enter(gpu);
  CHECK(CU(cuArrayCreate_v2, &array, &shape) == ABI_SUCCESS, "array");
  EXACT_BOTH();
  CHECK(CU(cuMemAllocPitch_v2, &p, &pitch, (size_t)1000, (size_t)1000, 4) == ABI_SUCCESS, "pitch");
  EXACT_BOTH();
  enter(1 - gpu);
  CHECK(CU(cuArrayDestroy, array) == ABI_SUCCESS && CU(cuMemFree_v2, p) == ABI_SUCCESS, "free");
  EXACT_BOTH();
  uint64_t before = ledger_bytes_of(gpu);
  CHECK(CU(cuCtxCreate_v2, &made, 0, gpu) == ABI_SUCCESS, "context");
  CHECK(ledger_bytes_of(gpu) == before + CONTEXT, "a context: %lld more", (long long)(ledger_bytes_of(gpu) - before));
  CHECK(CU(cuMemAlloc_v2, &p, (size_t)MIB) == ABI_SUCCESS, "in it");
  EXACT_BOTH();
  CHECK(CU(cuCtxDestroy_v2, made) == ABI_SUCCESS, "destroy");
  EXACT_BOTH();
}

static void graph(int gpu) {
  struct abi_mem_alloc_node params = {.pool = {1, 0, {ABI_LOCATION_DEVICE, gpu}}, .bytes = MIB};
  void *graph = NULL, *node = NULL;
  CUgraphExec exec = NULL;
  enter(gpu);
  CHECK(CU(cuGraphCreate, &graph, 0) == ABI_SUCCESS, "graph");
  CHECK(CU(cuGraphAddMemAllocNode, &node, graph, NULL, (size_t)0, &params) == ABI_SUCCESS, "node");
  CHECK(CU(cuGraphInstantiateWithFlags, &exec, graph, 0ull) == ABI_SUCCESS, "instantiate");
  CHECK(CU(cuGraphLaunch, exec, NULL) == ABI_SUCCESS && CU(cuCtxSynchronize) == ABI_SUCCESS, "launch");
  EXACT_BOTH();
  CHECK(CU(cuMemFreeAsync, params.address, NULL) == ABI_SUCCESS && CU(cuCtxSynchronize) == ABI_SUCCESS, "free");
  CHECK(CU(cuDeviceGraphMemTrim, gpu) == ABI_SUCCESS, "trim");
  EXACT_BOTH();
}

void role_gang_kinds(void) {
  begin_both();
  for (int gpu = 0; gpu < 2 && failures == 0; gpu++) {
    for (int here = 0; here < 2; here++) {
      enter(here);
      physical(ABI_LOCATION_DEVICE, gpu);
      own_pool(gpu, here, 1, ABI_LOCATION_DEVICE);
      device_pools(gpu, here);
    }
    others(gpu);
    graph(gpu);
  }
}

/* ---- graphs of a lease that has one account for all its GPUs ---- */

static void exact_in_all(const char *what) {
  uint64_t both = given(0) + given(1);
  CHECK(ledger_bytes() == both, "%s: charged %lld, given %lld", what, (long long)ledger_bytes(), (long long)both);
}

/* A graph that allocates on these GPUs is launched into a stream of the first of them while `here` is current. */
static void graph_elsewhere(int first, int last, int here) {
  void *graph = NULL, *node = NULL;
  CUgraphExec exec = NULL;
  CUstream stream = NULL;
  CUdeviceptr made[2] = {0};
  enter(first);
  CHECK(CU(cuStreamCreate, &stream, 1) == ABI_SUCCESS && CU(cuGraphCreate, &graph, 0) == ABI_SUCCESS, "graph");
  for (int gpu = first; gpu <= last; gpu++) {
    struct abi_mem_alloc_node params = {.pool = {1, 0, {ABI_LOCATION_DEVICE, gpu}}, .bytes = 40 * MIB};
    CHECK(CU(cuGraphAddMemAllocNode, &node, graph, NULL, (size_t)0, &params) == ABI_SUCCESS, "node");
    made[gpu] = params.address;
  }
  CHECK(CU(cuGraphInstantiateWithFlags, &exec, graph, 0ull) == ABI_SUCCESS, "instantiate");
  enter(here);
  CHECK(CU(cuGraphLaunch, exec, stream) == ABI_SUCCESS && CU(cuStreamSynchronize, stream) == ABI_SUCCESS, "launch");
  exact_in_all("launched");
  for (int gpu = first; gpu <= last; gpu++) {
    CHECK(CU(cuMemFreeAsync, made[gpu], stream) == ABI_SUCCESS && CU(cuStreamSynchronize, stream) == ABI_SUCCESS,
          "free");
    CHECK(CU(cuDeviceGraphMemTrim, gpu) == ABI_SUCCESS, "trim");
  }
  exact_in_all("trimmed");
  CHECK(CU(cuGraphExecDestroy, exec) == ABI_SUCCESS && CU(cuGraphDestroy, graph) == ABI_SUCCESS, "destroy");
  CHECK(CU(cuStreamDestroy_v2, stream) == ABI_SUCCESS, "stream");
}

void role_graphs_elsewhere(void) {
  open_library();
  CHECK(CU(cuInit, 0) == ABI_SUCCESS, "cuInit");
  open_driver();
  for (int gpu = 0; gpu < 2; gpu++) CHECK(CU(cuDevicePrimaryCtxRetain, &on[gpu], gpu) == ABI_SUCCESS, "retain %d", gpu);
  for (int here = 0; here < 2; here++) {
    graph_elsewhere(0, 0, here);
    graph_elsewhere(1, 1, here);
    graph_elsewhere(0, 1, here);
  }
}

/* Managed pools, and memory of a part of a GPU. */
void role_gang_newer(void) {
  begin_both();
  for (int i = 0; i < 4 && failures == 0; i++) {
    enter(i / 2);
    physical(A_DOMAIN, i % 2);
    own_pool(i % 2, i / 2, 1, A_DOMAIN);
    own_pool(i % 2, i / 2, 2, ABI_LOCATION_DEVICE);
  }
}

/* ---- several processes: one is killed ---- */

void role_gang_other(void) {
  begin_both();
  fill(0, 100 * MIB);
  fill(1, 200 * MIB);
  CHECK(write(1, "1", 1) == 1, "tell");
  for (unsigned i = 0;; i++) { /* until it is killed, in the middle of a change */
    CUdeviceptr p = 0;
    enter((int)(i % 2));
    if (CU(cuMemAlloc_v2, &p, (size_t)(i % 8 + 1) * MIB) == ABI_SUCCESS) CU(cuMemFree_v2, p);
  }
}

static void kill_one(unsigned after_us) {
  int ends[2];
  char begun;
  CHECK(pipe(ends) == 0, "pipe");
  pid_t pid = fork();
  if (pid == 0) {
    dup2(ends[1], 1);
    execl("/proc/self/exe", "test_memory", "--role", "gang-other", (char *)NULL);
    _exit(127);
  }
  close(ends[1]);
  CHECK(read(ends[0], &begun, 1) == 1, "it begins");
  close(ends[0]);
  usleep(after_us);
  CHECK(ledger_bytes_of(0) >= 100 * MIB && ledger_bytes_of(1) >= 200 * MIB, "the other's: %lld, %lld",
        (long long)ledger_bytes_of(0), (long long)ledger_bytes_of(1));
  kill(pid, SIGKILL);
  waitpid(pid, NULL, 0);
}

void role_gang_killed(void) {
  begin_both();
  CUdeviceptr first = fill(0, 7 * MIB), second = fill(1, 9 * MIB);
  uint64_t before[2] = {ledger_bytes_of(0), ledger_bytes_of(1)};
  for (unsigned i = 0; i < 12; i++) {
    kill_one(2000 + i * 777);
    for (int wait = 0; wait < 30000 && (ledger_bytes_of(0) != before[0] || ledger_bytes_of(1) != before[1]); wait++)
      usleep(1000);
    CHECK(ledger_bytes_of(0) == before[0] && ledger_bytes_of(1) == before[1], "round %u: %lld, %lld", i,
          (long long)ledger_bytes_of(0), (long long)ledger_bytes_of(1));
  }
  CHECK(CU(cuMemFree_v2, first) == ABI_SUCCESS && CU(cuMemFree_v2, second) == ABI_SUCCESS, "free");
  fill(0, ROOM);
  fill(1, ROOM);
}

/* ---- contexts are measured on each GPU by itself ---- */

void role_measured_gang(void) {
  open_library();
  CHECK(CU(cuInit, 0) == ABI_SUCCESS, "cuInit");
  open_driver();
  for (int gpu = 0; gpu < 2; gpu++) CHECK(CU(cuDevicePrimaryCtxRetain, &on[gpu], gpu) == ABI_SUCCESS, "retain %d", gpu);
  for (int wait = 0; wait < 30000 && (ledger_bytes_of(0) != given(0) || ledger_bytes_of(1) != given(1)); wait++)
    usleep(1000);
  EXACT_BOTH();
  fill(1, 20 * MIB);
  void *module = NULL;
  enter(1);
  CHECK(CU(cuModuleLoadData, &module, ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k() { ret; }") ==
            ABI_SUCCESS,
        "module");
  for (int wait = 0; wait < 30000 && (ledger_bytes_of(0) != given(0) || ledger_bytes_of(1) != given(1)); wait++)
    usleep(1000);
  EXACT_BOTH();
  CHECK(given(1) > given(0) + 20 * MIB, "the module is on the second GPU");
  CHECK(CU(cuDevicePrimaryCtxRelease_v2, 1) == ABI_SUCCESS, "release");
  CHECK(ledger_bytes_of(1) == 0, "nothing is left there: %lld", (long long)ledger_bytes_of(1));
}
