/* Programs of test_memory.c with memory pools, and with frees in stream order. */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "memory_test.h"

static void *free_it(void *pointer) {
  CU(cuCtxSetCurrent, context);
  return CU(cuMemFree_v2, *(CUdeviceptr *)pointer) == ABI_SUCCESS ? pointer : NULL;
}

static void hold_up(void *gate) {
  while (!__atomic_load_n((int *)gate, __ATOMIC_ACQUIRE)) usleep(100);
}

/* A free behind other work in its stream: a wait for another stream comes first, and gives nothing back. */
static void pool_freed_late(void) {
  CUdeviceptr p = 0;
  CUstream held = NULL, other = NULL;
  int gate = 0;
  CHECK(CU(cuStreamCreate, &held, 1) == ABI_SUCCESS && CU(cuStreamCreate, &other, 1) == ABI_SUCCESS, "streams");
  CHECK(CU(cuMemAllocAsync, &p, (size_t)(70 * MIB), held) == ABI_SUCCESS, "alloc");
  CHECK(CU(cuLaunchHostFunc, held, hold_up, &gate) == ABI_SUCCESS && CU(cuMemFreeAsync, p, held) == ABI_SUCCESS,
        "free behind it");
  CHECK(CU(cuStreamSynchronize, other) == ABI_SUCCESS, "another stream's wait");
  EXACT("a free that is not due");
  __atomic_store_n(&gate, 1, __ATOMIC_RELEASE);
  CHECK(CU(cuStreamSynchronize, held) == ABI_SUCCESS, "the stream's own wait");
  EXACT("a free that came late");
  CHECK(CU(cuStreamDestroy_v2, held) == ABI_SUCCESS && CU(cuStreamDestroy_v2, other) == ABI_SUCCESS, "destroy");
}

/*
 * Memory of a destroyed pool, and plain allocations, freed in stream order: the driver gives them back when the stream
 * reaches the free. Freed before the pool was destroyed, and after.
 */
static void freed_later(int before_destroy, int plain) {
  struct {
    struct abi_pool_props known;
    char rest[72];
  } props = {{1, 0, {ABI_LOCATION_DEVICE, 0}}, ""};
  CUmemoryPool mine = NULL;
  CUstream held[6] = {NULL};
  CUdeviceptr p[6] = {0};
  static int gates[6];
  memset(gates, 0, sizeof gates);
  CHECK(CU(cuMemPoolCreate, &mine, &props) == ABI_SUCCESS, "own pool");
  for (int i = 0; i < 6; i++) {
    CHECK(CU(cuStreamCreate, &held[i], 1) == ABI_SUCCESS, "stream");
    if (plain) CHECK(CU(cuMemAlloc_v2, &p[i], (size_t)(40 * MIB)) == ABI_SUCCESS, "plain");
    else CHECK(CU(cuMemAllocFromPoolAsync, &p[i], (size_t)(40 * MIB), mine, held[i]) == ABI_SUCCESS, "from it");
    CHECK(CU(cuStreamWaitValue32_v2, held[i], (CUdeviceptr)(uintptr_t)&gates[i], 1, 0) == ABI_SUCCESS,
          "something before it");
  }
  if (!before_destroy) CHECK(CU(cuMemPoolDestroy, mine) == ABI_SUCCESS, "destroyed");
  for (int i = 0; i < 6; i++) CHECK(CU(cuMemFreeAsync, p[i], held[i]) == ABI_SUCCESS, "free behind it");
  EXACT("freed, and not due");
  if (before_destroy) CHECK(CU(cuMemPoolDestroy, mine) == ABI_SUCCESS, "destroyed");
  EXACT("destroyed, and not due");
  for (int i = 0; i < 6; i++) {
    __atomic_store_n(&gates[i], 1, __ATOMIC_RELEASE);
    CHECK(CU(cuStreamSynchronize, held[i]) == ABI_SUCCESS, "wait");
    if (!before_destroy && plain) EXACT("one by one");
    CHECK(ledger_bytes() >= real_bytes(), "too little: %lld of %lld", (long long)ledger_bytes(),
          (long long)real_bytes());
  }
  EXACT("all came");
  for (int i = 0; i < 6; i++) CU(cuStreamDestroy_v2, held[i]);
}

enum { BUSY_FREES = 12, BUSY_BYTES = 10 * MIB };

/* A stream that is never idle: its charge follows what the driver gives back, by a few frees at most. */
static void freed_in_a_busy_stream(void) {
  static int gates[BUSY_FREES];
  CUdeviceptr p[BUSY_FREES] = {0};
  CUstream busy = NULL;
  CHECK(CU(cuStreamCreate, &busy, 1) == ABI_SUCCESS, "stream");
  for (int i = 0; i < BUSY_FREES; i++) CHECK(CU(cuMemAlloc_v2, &p[i], (size_t)BUSY_BYTES) == ABI_SUCCESS, "plain");
  uint64_t all = real_bytes();
  for (int i = 0; i < BUSY_FREES; i++) {
    CHECK(CU(cuStreamWaitValue32_v2, busy, (CUdeviceptr)(uintptr_t)&gates[i], 1, 0) == ABI_SUCCESS,
          "something before it");
    CHECK(CU(cuMemFreeAsync, p[i], busy) == ABI_SUCCESS, "free behind it");
    if (i == 0) continue;
    /* The stream reaches the free before, and stands before this one. */
    __atomic_store_n(&gates[i - 1], 1, __ATOMIC_RELEASE);
    for (int tries = 0; tries < 30000 && real_bytes() > all - (uint64_t)i * BUSY_BYTES; tries++) usleep(1000);
  }
  uint64_t given = real_bytes(), charged = ledger_bytes();
  CHECK(given == all - (uint64_t)(BUSY_FREES - 1) * BUSY_BYTES, "reached: %lld left", (long long)given);
  CHECK(charged >= given && charged <= given + 3 * BUSY_BYTES, "charged %lld, given %lld", (long long)charged,
        (long long)given);
  __atomic_store_n(&gates[BUSY_FREES - 1], 1, __ATOMIC_RELEASE);
  CHECK(CU(cuStreamSynchronize, busy) == ABI_SUCCESS && CU(cuStreamDestroy_v2, busy) == ABI_SUCCESS, "wait");
  EXACT("freed in a busy stream");
}

static const char PTX[] =
    ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry vgpu_spin(.param .u64 ns) { ret; }\n";

/*
 * A free is still due when its stream is destroyed, and a new stream has the same handle. It stays charged, although the
 * emulator gives memory back early that no host holds up.
 */
static void freed_in_a_destroyed_stream(void) {
  void *module = NULL;
  CUfunction spin = NULL;
  CUdeviceptr p = 0, q = 0;
  CUstream first = NULL, second = NULL;
  CUevent reached = NULL;
  uint64_t ns = 500000000;
  void *arguments[] = {&ns};
  CHECK(CU(cuModuleLoadData, &module, PTX) == ABI_SUCCESS &&
            CU(cuModuleGetFunction, &spin, module, "vgpu_spin") == ABI_SUCCESS,
        "kernel");
  CHECK(CU(cuMemAlloc_v2, &p, (size_t)BUSY_BYTES) == ABI_SUCCESS &&
            CU(cuMemAlloc_v2, &q, (size_t)BUSY_BYTES) == ABI_SUCCESS,
        "plain");
  CHECK(CU(cuStreamCreate, &first, 1) == ABI_SUCCESS, "stream");
  CHECK(CU(cuLaunchKernel, spin, 1u, 1u, 1u, 32u, 1u, 1u, 0u, first, arguments, NULL) == ABI_SUCCESS, "launch");
  CHECK(OF_DRIVER(cuEventCreate, &reached, 2u) == ABI_SUCCESS &&
            OF_DRIVER(cuEventRecord, reached, first) == ABI_SUCCESS,
        "event");
  CHECK(CU(cuMemFreeAsync, p, first) == ABI_SUCCESS && CU(cuStreamDestroy_v2, first) == ABI_SUCCESS, "free behind it");
  CHECK(CU(cuStreamCreate, &second, 1) == ABI_SUCCESS && second == first, "the emulator gives a handle again");
  CHECK(CU(cuMemFreeAsync, q, second) == ABI_SUCCESS && CU(cuStreamSynchronize, second) == ABI_SUCCESS, "free");
  uint64_t given = real_bytes(), charged = ledger_bytes();
  if (OF_DRIVER(cuEventQuery, reached) == ABI_NOT_READY) {
    CHECK(charged == given + BUSY_BYTES, "charged %lld, given %lld", (long long)charged, (long long)given);
  }
  CHECK(CU(cuCtxSynchronize) == ABI_SUCCESS && CU(cuStreamDestroy_v2, second) == ABI_SUCCESS, "wait");
  EXACT("freed in a destroyed stream");
}

void role_pools_later(void) {
  begin();
  freed_later(0, 0);
  freed_later(1, 0);
  freed_later(0, 1);
  freed_in_a_busy_stream();
  freed_in_a_destroyed_stream();
}

void role_pools(void) {
  CUdeviceptr p[40] = {0};
  CUmemoryPool pool = NULL, mine = NULL;
  uint64_t keep = UINT64_MAX, reserved = 0;
  struct {
    struct abi_pool_props known;
    char rest[72];
  } props = {{1, 0, {ABI_LOCATION_DEVICE, 0}}, ""};
  begin();
  CHECK(CU(cuDeviceGetDefaultMemPool, &pool, 0) == ABI_SUCCESS, "default pool");
  for (int i = 0; i < 10; i++) CHECK(CU(cuMemAllocAsync, &p[i], (size_t)(5 * MIB + i), NULL) == ABI_SUCCESS, "async");
  EXACT("used in a pool");
  for (int i = 0; i < 10; i += 2) CHECK(CU(cuMemFreeAsync, p[i], NULL) == ABI_SUCCESS, "free");
  EXACT("kept by a pool");
  CHECK(CU(cuCtxSynchronize) == ABI_SUCCESS, "sync");
  EXACT("given back after a wait");
  pool_freed_late();
  CUcontext second = NULL;
  CHECK(CU(cuCtxCreate_v2, &second, 0, 0) == ABI_SUCCESS && CU(cuCtxSetCurrent, context) == ABI_SUCCESS,
        "a second context");
  CHECK(CU(cuMemAllocAsync, &p[10], (size_t)(40 * MIB), NULL) == ABI_SUCCESS &&
            CU(cuMemFreeAsync, p[10], NULL) == ABI_SUCCESS,
        "another");
  CHECK(CU(cuCtxDestroy_v2, second) == ABI_SUCCESS, "destroyed");
  EXACT("whatever a context that goes makes the pool give back");
  CHECK(CU(cuMemPoolSetAttribute, pool, 4, &keep) == ABI_SUCCESS, "release threshold");
  for (int i = 1; i < 10; i += 2) CHECK(CU(cuMemFreeAsync, p[i], NULL) == ABI_SUCCESS, "free");
  CHECK(CU(cuStreamSynchronize, NULL) == ABI_SUCCESS, "sync");
  EXACT("kept by its threshold");
  CHECK(CU(cuMemPoolGetAttribute, pool, 5, &reserved) == ABI_SUCCESS && reserved > 0, "it keeps");
  CHECK(CU(cuMemPoolTrimTo, pool, (size_t)0) == ABI_SUCCESS, "trim");
  EXACT("trimmed");
  CHECK(CU(cuMemAllocAsync, &p[0], (size_t)(400 * MIB), NULL) == ABI_SUCCESS &&
            CU(cuMemFreeAsync, p[0], NULL) == ABI_SUCCESS,
        "large");
  CHECK(CU(cuMemAlloc_v2, &p[1], (size_t)(300 * MIB)) == ABI_SUCCESS, "what the pool keeps makes room under the quota");
  EXACT("made room");
  CHECK(CU(cuMemAllocAsync, &p[2], (size_t)(200 * MIB), NULL) == ABI_OUT_OF_MEMORY, "no room");
  CHECK(CU(cuMemFreeAsync, p[1], NULL) == ABI_SUCCESS, "a plain allocation freed in stream order");
  EXACT("freed in stream order");
  CHECK(CU(cuMemPoolCreate, &mine, &props) == ABI_SUCCESS, "own pool");
  CHECK(CU(cuMemAllocFromPoolAsync, &p[0], (size_t)(40 * MIB), mine, NULL) == ABI_SUCCESS, "from it");
  EXACT("from an own pool");
  CHECK(CU(cuMemPoolDestroy, mine) == ABI_SUCCESS && CU(cuMemPoolDestroy, mine) == ABI_INVALID_VALUE, "destroyed");
  EXACT("destroyed, not empty");
  pthread_t thread;
  void *freed = NULL;
  pthread_create(&thread, NULL, free_it, &p[0]);
  pthread_join(thread, &freed);
  CHECK(freed != NULL, "another thread frees it");
  EXACT("destroyed and empty");
  CHECK(CU(cuMemAllocAsync, &p[0], (size_t)MIB, NULL) == ABI_SUCCESS, "for the reset");
  CHECK(CU(cuDevicePrimaryCtxReset_v2, 0) == ABI_SUCCESS, "reset");
  CHECK(CU(cuDevicePrimaryCtxRetain, &context, 0) == ABI_SUCCESS && CU(cuCtxSetCurrent, context) == ABI_SUCCESS,
        "again");
  EXACT("reset");
}

/* A device's own pool that the program has only used by its handle: a reset ends its memory as well. */
void role_pools_reset(void) {
  CUmemoryPool pool = NULL;
  CUdeviceptr p = 0;
  begin();
  CHECK(CU(cuDeviceGetDefaultMemPool, &pool, 0) == ABI_SUCCESS, "default pool");
  for (int i = 0; i < 3; i++) {
    CHECK(CU(cuMemAllocFromPoolAsync, &p, (size_t)(300 * MIB), pool, NULL) == ABI_SUCCESS, "from it");
    EXACT("from it");
    CHECK(CU(cuDevicePrimaryCtxReset_v2, 0) == ABI_SUCCESS, "reset");
    CHECK(CU(cuDevicePrimaryCtxRetain, &context, 0) == ABI_SUCCESS && CU(cuCtxSetCurrent, context) == ABI_SUCCESS,
          "again");
    EXACT("reset");
  }
}

static void from_pool(CUmemoryPool pool, int on_gpu, const char *what) {
  CUdeviceptr p = 0, large = 0;
  uint64_t before = real_bytes();
  CHECK(CU(cuMemAllocFromPoolAsync, &p, (size_t)(40 * MIB), pool, NULL) == ABI_SUCCESS, "%s: alloc", what);
  CHECK((real_bytes() > before) == on_gpu, "%s: %lld bytes of the GPU", what, (long long)(real_bytes() - before));
  EXACT(what);
  abi_result result = CU(cuMemAllocFromPoolAsync, &large, (size_t)QUOTA, pool, NULL);
  CHECK(result == (on_gpu ? ABI_OUT_OF_MEMORY : ABI_SUCCESS), "%s: beyond the quota: %d", what, result);
  if (result == ABI_SUCCESS) CHECK(CU(cuMemFreeAsync, large, NULL) == ABI_SUCCESS, "%s: free", what);
  CHECK(CU(cuMemFreeAsync, p, NULL) == ABI_SUCCESS && CU(cuCtxSynchronize) == ABI_SUCCESS, "%s: free", what);
  EXACT(what);
}

/* Pools of host memory, which is not charged; and of managed memory and of a part of a GPU, which is. */
void role_pools_elsewhere(void) {
  static const struct {
    const char *what;
    int type, on_gpu;
    struct abi_location location;
  } others[] = {
      {"host", 1, 0, {ABI_LOCATION_HOST, 0}},
      {"a node of the host", 1, 0, {ABI_LOCATION_HOST_NUMA, 0}},
      {"managed", 2, 1, {ABI_LOCATION_NONE, 0}},
      {"managed, on the host", 2, 1, {ABI_LOCATION_HOST, 0}},
      {"managed, on a GPU", 2, 1, {ABI_LOCATION_DEVICE, 0}},
      {"a locality domain", 1, 1, {A_DOMAIN, 0}},
  };
  begin();
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    struct {
      struct abi_pool_props known;
      char rest[72];
    } props = {{others[i].type, 0, others[i].location}, ""};
    CUmemoryPool mine = NULL, usual = NULL, chosen = NULL;
    struct abi_location location = others[i].location;
    CHECK(CU(cuMemGetDefaultMemPool, &usual, &location, others[i].type) == ABI_SUCCESS, "%s: the default",
          others[i].what);
    from_pool(usual, others[i].on_gpu, others[i].what);
    CHECK(CU(cuMemPoolCreate, &mine, &props) == ABI_SUCCESS, "%s: create", others[i].what);
    from_pool(mine, others[i].on_gpu, others[i].what);
    CHECK(CU(cuMemGetMemPool, &chosen, &location, others[i].type) == ABI_SUCCESS && chosen == usual, "%s: the current",
          others[i].what);
    from_pool(chosen, others[i].on_gpu, others[i].what);
    CHECK(CU(cuMemPoolDestroy, mine) == ABI_SUCCESS, "%s: destroy", others[i].what);
  }
  struct {
    struct abi_mem_prop known;
    char rest[32];
  } domain = {{1, 0, {A_DOMAIN, 0}}, ""};
  uint64_t handle = 0;
  CHECK(CU(cuMemCreate, &handle, (size_t)(4 * MIB), &domain, 0ull) == ABI_SUCCESS, "memory of a domain");
  EXACT("memory of a domain");
  CHECK(CU(cuMemRelease, handle) == ABI_SUCCESS, "release");
  EXACT("released");
}

/* An allocation node made by the form of CUDA 13.4. */
void role_graphs_newer(void) {
  struct {
    int type, reserved[3];
    struct abi_mem_alloc_node allocation;
  } params = {.type = 10, .allocation = {.pool = {1, 0, {ABI_LOCATION_DEVICE, 0}}, .bytes = 5 * MIB}};
  abi_result (*add)(void **, void *, void *const *, const void *, size_t, void *) = NULL;
  void *graph = NULL, *node = NULL, *found = NULL;
  CUgraphExec exec = NULL;
  int how = 0;
  begin();
  CHECK(CU(cuGraphCreate, &graph, 0) == ABI_SUCCESS, "graph");
  CHECK(CU(cuGetProcAddress_v2, "cuGraphAddNode", &found, 13040, 0ull, &how) == ABI_SUCCESS && found != NULL,
        "the newest form");
  memcpy(&add, &found, sizeof found);
  CHECK(add(&node, graph, NULL, NULL, 0, &params) == ABI_SUCCESS, "node");
  CHECK(CU(cuGraphInstantiateWithFlags, &exec, graph, 0ull) == ABI_SUCCESS &&
            CU(cuGraphLaunch, exec, NULL) == ABI_SUCCESS,
        "launch");
  EXACT("launched");
}
