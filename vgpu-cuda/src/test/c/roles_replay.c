/*
 * Programs of test_memory.c that call the driver as runtime libraries do. Each runs bare, on a GPU as large as the
 * quota, and under the hook. Both runs end alike and print the same, byte for byte, including the free memory after
 * each step.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "memory_test.h"

enum { LIBRARIES = 3000, THREADS = 8, BLOCKS = 64, SESSION = 689 };

static const char PTX[] =
    ".version 6.0\n.target sm_50\n.address_size 64\n.global .align 4 .b8 weights[4096];\n"
    ".visible .entry vgpu_null() { ret; }\n"
    ".visible .entry vgpu_spin(.param .u64 ns) { ret; }\n"
    ".visible .entry vgpu_fill(.param .u64 p, .param .u32 value, .param .u64 n) { ret; }\n"
    ".visible .entry vgpu_saxpy(.param .f32 a, .param .u64 x, .param .u64 y, .param .u64 n) { ret; }\n";

/* A call that must succeed. */
#define DO(name, ...) CHECK(CU(name, ##__VA_ARGS__) == ABI_SUCCESS, #name)

static int hooked;
static CUfunction spin, fill, saxpy;

/* Prints what a program can see. Under the hook the charge must also equal what the driver gave. */
static void step(const char *what) {
  size_t left = 0, total = 0;
  CHECK(CU(cuMemGetInfo_v2, &left, &total) == ABI_SUCCESS, "%s", what);
  printf("%s: %zu of %zu\n", what, left, total);
  if (hooked) EXACT(what);
}

static void tell(const char *what, long long value) { printf("%s: %lld\n", what, value); }

static void start_program(void) {
  open_library();
  hooked = dlsym(library, "vgpu_hook_version") != NULL;
  if (hooked) {
    begin();
  } else {
    DO(cuInit, 0);
    DO(cuDevicePrimaryCtxRetain, &context, 0);
    DO(cuCtxSetCurrent, context);
  }
}

static void load_kernels(void) {
  void *module = NULL;
  DO(cuModuleLoadData, &module, PTX);
  DO(cuModuleGetFunction, &spin, module, "vgpu_spin");
  DO(cuModuleGetFunction, &fill, module, "vgpu_fill");
  DO(cuModuleGetFunction, &saxpy, module, "vgpu_saxpy");
}

static abi_result launch(CUfunction function, CUstream stream, void **params) {
  return CU(cuLaunchKernel, function, 1u, 1u, 1u, 32u, 1u, 1u, 0u, stream, params, NULL);
}

static abi_result spin_for(uint64_t ns, CUstream stream) { return launch(spin, stream, (void *[]){&ns}); }

static abi_result fill_with(CUdeviceptr p, uint32_t value, uint64_t n, CUstream stream) {
  return launch(fill, stream, (void *[]){&p, &value, &n});
}

static uint32_t word_at(CUdeviceptr p) {
  uint32_t value = 0;
  DO(cuMemcpyDtoH_v2, &value, p, sizeof value);
  return value;
}

/* A runtime registers all linked libraries, and uses a few kernels of them. */
void role_replay_libraries(void) {
  static void *libraries[LIBRARIES];
  int loaded = 0, launched = 0, unloaded = 0;
  start_program();
  for (int i = 0; i < LIBRARIES; i++) {
    loaded += CU(cuLibraryLoadData, &libraries[i], PTX, NULL, NULL, 0u, NULL, NULL, 0u) == ABI_SUCCESS;
  }
  tell("loaded", loaded);
  step("libraries");
  for (int i = 0; i < LIBRARIES; i += 500) {
    void *kernel = NULL, *module = NULL;
    CUfunction function = NULL;
    CUdeviceptr weights = 0;
    size_t bytes = 0;
    DO(cuLibraryGetKernel, &kernel, libraries[i], "vgpu_null");
    DO(cuKernelGetFunction, &function, kernel);
    DO(cuLibraryGetModule, &module, libraries[i]);
    CHECK(CU(cuModuleGetGlobal_v2, &weights, &bytes, module, "weights") == ABI_SUCCESS && bytes == 4096, "a variable");
    tell("no such kernel", CU(cuLibraryGetKernel, &kernel, libraries[i], "none"));
    for (int j = 0; j < 10; j++) launched += launch(function, NULL, NULL) == ABI_SUCCESS;
  }
  tell("launched", launched);
  for (int i = 0; i < LIBRARIES; i++) unloaded += CU(cuLibraryUnload, libraries[i]) == ABI_SUCCESS;
  tell("unloaded", unloaded);
  tell("unloaded twice", CU(cuLibraryUnload, libraries[0]));
  step("end");
}

/* Several runtimes share a primary context: each retains it, and one resets it while others use it. */
void role_replay_primary(void) {
  CUdeviceptr p = 0;
  unsigned flags = 0;
  int active = -1;
  start_program();
  for (int round = 0; round < 5; round++) {
    CUcontext again = NULL;
    load_kernels();
    CHECK(CU(cuDevicePrimaryCtxRetain, &again, 0) == ABI_SUCCESS && again == context, "retained twice");
    DO(cuMemAlloc_v2, &p, (size_t)(round + 1) * 1000000);
    tell("fill", fill_with(p, 7, 1000, NULL));
    tell("word", word_at(p + 3996));
    step("in use");
    DO(cuDevicePrimaryCtxRelease_v2, 0);
    step("one user left");
    if (round % 2 == 0) tell("reset", CU(cuDevicePrimaryCtxReset_v2, 0));
    tell("release", CU(cuDevicePrimaryCtxRelease_v2, 0)); /* also after a reset */
    DO(cuDevicePrimaryCtxGetState, 0, &flags, &active);
    tell("active", active);
    tell("alloc without", CU(cuMemAlloc_v2, &p, (size_t)4096));
    if (hooked) CHECK(ledger_bytes() == 0, "nothing is left: %llu", (unsigned long long)ledger_bytes());
    DO(cuDevicePrimaryCtxRetain, &context, 0);
    DO(cuCtxSetCurrent, context);
    tell("freed with its context", CU(cuMemFree_v2, p));
    step("anew");
  }
}

struct worker {
  uint32_t value, seen;
  int failed;
};

static void *work(void *data) {
  struct worker *worker = data;
  CUstream own = ABI_STREAM_PER_THREAD;
  CUevent done = NULL;
  worker->failed += CU(cuCtxSetCurrent, context) != ABI_SUCCESS;
  worker->failed += CU(cuEventCreate, &done, 2u) != ABI_SUCCESS;
  for (uint32_t i = 0; i < 100; i++) {
    CUdeviceptr p = 0;
    uint32_t value = worker->value + i, seen = 0;
    uint64_t n = 256;
    worker->failed += CU(cuMemAllocAsync, &p, (size_t)(1024 + 1024 * i), own) != ABI_SUCCESS;
    void *params[] = {&p, &value, &n};
    worker->failed += CU(cuLaunchKernel_ptsz, fill, 1u, 1u, 1u, 32u, 1u, 1u, 0u, NULL, params, NULL) != ABI_SUCCESS;
    worker->failed += CU(cuMemcpyDtoHAsync_v2, &seen, p, sizeof seen, own) != ABI_SUCCESS;
    worker->failed += CU(cuEventRecord_ptsz, done, NULL) != ABI_SUCCESS;
    worker->failed += CU(cuMemFreeAsync, p, own) != ABI_SUCCESS;
    worker->failed += CU(cuEventSynchronize, done) != ABI_SUCCESS;
    worker->seen += seen;
  }
  worker->failed += CU(cuStreamSynchronize_ptsz, NULL) != ABI_SUCCESS;
  worker->failed += CU(cuEventDestroy_v2, done) != ABI_SUCCESS;
  return NULL;
}

/* Each thread uses its own default stream, with memory in that stream's order. */
void role_replay_threads(void) {
  static struct worker workers[THREADS];
  pthread_t threads[THREADS];
  start_program();
  load_kernels();
  for (uint32_t i = 0; i < THREADS; i++) {
    workers[i].value = 1000 * i;
    pthread_create(&threads[i], NULL, work, &workers[i]);
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
    tell("seen", workers[i].seen);
    tell("failed", workers[i].failed);
  }
  DO(cuCtxSynchronize);
  step("end");
}

static struct {
  CUdeviceptr address;
  size_t bytes;
  int used;
} blocks[BLOCKS];

/* Frees cached blocks that are not in use. */
static int trim(void) {
  int count = 0;
  for (int i = 0; i < BLOCKS; i++) {
    if (blocks[i].address == 0 || blocks[i].used) continue;
    DO(cuMemFree_v2, blocks[i].address);
    blocks[i].address = 0;
    count++;
  }
  return count;
}

/* A cached block that is large enough, or a new one. On out-of-memory the cache is freed and the call retried. */
static abi_result cached_alloc(int i, size_t bytes, int *trimmed) {
  for (int j = 0; j < BLOCKS; j++) {
    if (blocks[j].address != 0 && !blocks[j].used && blocks[j].bytes >= bytes && blocks[j].bytes < 2 * bytes) {
      CUdeviceptr address = blocks[j].address;
      size_t has = blocks[j].bytes;
      blocks[j].address = 0;
      if (blocks[i].address != 0) CHECK(CU(cuMemFree_v2, blocks[i].address) == ABI_SUCCESS, "free");
      blocks[i].address = address, blocks[i].bytes = has, blocks[i].used = 1;
      return ABI_SUCCESS;
    }
  }
  if (blocks[i].address != 0) CHECK(CU(cuMemFree_v2, blocks[i].address) == ABI_SUCCESS, "free");
  blocks[i].address = 0;
  abi_result result = CU(cuMemAlloc_v2, &blocks[i].address, bytes);
  if (result == ABI_OUT_OF_MEMORY) {
    *trimmed += trim();
    result = CU(cuMemAlloc_v2, &blocks[i].address, bytes);
  }
  blocks[i].bytes = bytes;
  blocks[i].used = result == ABI_SUCCESS;
  if (result != ABI_SUCCESS) blocks[i].address = 0;
  return result;
}

void role_replay_allocator(void) {
  unsigned seed = test_seed();
  int trimmed = 0, refused = 0;
  start_program();
  for (int i = 0; i < 5000; i++) {
    int k = rand_r(&seed) % BLOCKS;
    size_t bytes = (size_t)(1 + rand_r(&seed) % 4096) * ((size_t)rand_r(&seed) % 4 == 0 ? 24576 : 512);
    if (blocks[k].used) blocks[k].used = 0;
    else refused += cached_alloc(k, bytes, &trimmed) == ABI_OUT_OF_MEMORY;
    if (i % 500 == 0) step("in the middle");
  }
  tell("blocks trimmed", trimmed);
  tell("refused", refused);
  step("full");
  for (int i = 0; i < BLOCKS; i++) blocks[i].used = 0;
  tell("given back", trim());
  step("empty");
}

/* A captured step of a training loop, launched many times, changed, and launched again. */
void role_replay_graphs(void) {
  CUstream stream = NULL, side = NULL;
  CUevent fork = NULL, join = NULL;
  CUdeviceptr x = 0, y = 0;
  void *graph = NULL;
  CUgraphExec exec = NULL;
  start_program();
  load_kernels();
  uint64_t n = 1024;
  DO(cuStreamCreate, &stream, 1u);
  DO(cuStreamCreate, &side, 1u);
  DO(cuEventCreate, &fork, 2u);
  DO(cuEventCreate, &join, 2u);
  DO(cuMemAlloc_v2, &x, (size_t)4096);
  DO(cuMemAlloc_v2, &y, (size_t)4096);
  CHECK(fill_with(x, 0x3f800000, n, NULL) == ABI_SUCCESS && fill_with(y, 0, n, NULL) == ABI_SUCCESS, "1.0 and 0.0");
  for (int round = 0; round < 3; round++) {
    float a = (float)(round + 1);
    CUdeviceptr scratch = 0;
    DO(cuStreamBeginCapture_v2, stream, 0);
    DO(cuMemAllocAsync, &scratch, (size_t)(3 * MIB), stream);
    DO(cuEventRecord, fork, stream);
    DO(cuStreamWaitEvent, side, fork, 0u);
    DO(cuMemsetD32Async, scratch, 9u, (size_t)n, side);
    CHECK(launch(saxpy, stream, (void *[]){&a, &x, &y, &n}) == ABI_SUCCESS, "kernel");
    DO(cuEventRecord, join, side);
    DO(cuStreamWaitEvent, stream, join, 0u);
    DO(cuMemFreeAsync, scratch, stream);
    tell("end", CU(cuStreamEndCapture, stream, &graph));
    if (graph == NULL) continue;
    DO(cuGraphInstantiateWithFlags, &exec, graph, 0ull);
    for (int i = 0; i < 200; i++) CHECK(CU(cuGraphLaunch, exec, stream) == ABI_SUCCESS, "launch");
    DO(cuStreamSynchronize, stream);
    tell("word", word_at(y));
    step("launched");
    DO(cuGraphExecDestroy, exec);
    DO(cuGraphDestroy, graph);
    tell("trim", CU(cuDeviceGraphMemTrim, 0));
    step("trimmed");
    graph = NULL;
  }
}

/*
 * A compiler of graphs captures step after step into one graph, with work in the same stream before: nothing but these
 * steps may be in it.
 */
void role_replay_captures(void) {
  enum { STEPS = 4 };
  CUstream stream = NULL;
  void *graph = NULL, *ended = NULL, *last = NULL;
  CUgraphExec exec = NULL;
  CUdeviceptr x = 0, y = 0;
  start_program();
  load_kernels();
  uint64_t n = 1024;
  float a = 1;
  DO(cuStreamCreate, &stream, 1u);
  DO(cuMemAlloc_v2, &x, (size_t)4096);
  DO(cuMemAlloc_v2, &y, (size_t)4096);
  CHECK(fill_with(x, 0x3f800000, n, NULL) == ABI_SUCCESS && fill_with(y, 0, n, NULL) == ABI_SUCCESS, "1.0 and 0.0");
  DO(cuCtxSynchronize);
  DO(cuGraphCreate, &graph, 0u);
  for (int i = 0; i < STEPS; i++) {
    CUdeviceptr scratch = 0;
    size_t nodes = 0, before = 1;
    for (int k = 0; k < 20; k++) CHECK(launch(saxpy, stream, (void *[]){&a, &x, &y, &n}) == ABI_SUCCESS, "before");
    DO(cuStreamBeginCaptureToGraph, stream, graph, last == NULL ? NULL : &last, NULL, (size_t)(last != NULL), 0);
    DO(cuMemAllocAsync, &scratch, (size_t)(3 * MIB), stream);
    CHECK(launch(saxpy, stream, (void *[]){&a, &x, &y, &n}) == ABI_SUCCESS, "kernel");
    DO(cuMemFreeAsync, scratch, stream);
    DO(cuStreamUpdateCaptureDependencies, stream, NULL, (size_t)0, 0u);
    CHECK(CU(cuStreamGetCaptureInfo_v2, stream, &(int){0}, NULL, NULL, (const void *const **)&ended, &before) ==
              ABI_SUCCESS,
          "info");
    CHECK(before == 1, "%zu", before);
    last = *(void **)ended;
    tell("end", CU(cuStreamEndCapture, stream, &ended));
    CHECK(ended == graph && CU(cuGraphGetNodes, graph, NULL, &nodes) == ABI_SUCCESS, "its own graph");
    tell("nodes", (long long)nodes);
    DO(cuGraphInstantiateWithFlags, &exec, graph, 0ull);
    for (int k = 0; k < 10; k++) CHECK(CU(cuGraphLaunch, exec, stream) == ABI_SUCCESS, "launch");
    DO(cuStreamSynchronize, stream);
    tell("word", word_at(y));
    step("launched");
    DO(cuGraphExecDestroy, exec);
    tell("trim", CU(cuDeviceGraphMemTrim, 0));
    step("trimmed");
  }
  DO(cuGraphDestroy, graph);
}

/* A linear algebra library: one workspace per stream, from a pool that keeps freed memory until it is trimmed. */
void role_replay_workspaces(void) {
  struct {
    struct abi_pool_props known;
    char rest[72];
  } props = {{1, 0, {ABI_LOCATION_DEVICE, 0}}, ""};
  CUmemoryPool pool = NULL;
  CUstream streams[4] = {NULL};
  CUdeviceptr p[64] = {0};
  uint64_t keep = UINT64_MAX;
  int refused = 0;
  start_program();
  load_kernels();
  DO(cuMemPoolCreate, &pool, &props);
  DO(cuMemPoolSetAttribute, pool, 4, &keep);
  for (int i = 0; i < 4; i++) CHECK(CU(cuStreamCreate, &streams[i], 1u) == ABI_SUCCESS, "stream");
  for (int round = 0; round < 20; round++) {
    for (int i = 0; i < 4; i++) {
      CUdeviceptr workspace = 0;
      DO(cuMemAllocFromPoolAsync, &workspace, (size_t)(4 + round % 5 * 7) * MIB, pool, streams[i]);
      CHECK(fill_with(workspace, (uint32_t)round, 64, streams[i]) == ABI_SUCCESS, "kernel");
      DO(cuMemFreeAsync, workspace, streams[i]);
    }
    for (int i = 0; i < 4; i++) CHECK(CU(cuStreamSynchronize, streams[i]) == ABI_SUCCESS, "synchronize");
    if (round % 5 == 4) step("kept");
  }
  tell("trim", CU(cuMemPoolTrimTo, pool, (size_t)0));
  step("trimmed");
  for (int i = 0; i < 64; i++) {
    refused += CU(cuMemAllocFromPoolAsync, &p[i], (size_t)(32 * MIB), pool, streams[0]) == ABI_OUT_OF_MEMORY;
  }
  tell("refused", refused);
  step("full");
  for (int i = 0; i < 64; i++) {
    if (p[i] != 0) CHECK(CU(cuMemFreeAsync, p[i], streams[0]) == ABI_SUCCESS, "free");
  }
  DO(cuStreamSynchronize, streams[0]);
  DO(cuMemPoolDestroy, pool);
  step("end");
}

/* GPU time of a session: the least of several, since a process that is delayed between launches leaves the GPU idle. */
static float session_ms(CUstream stream, CUevent first, CUevent last, CUdeviceptr p, uint32_t *host, float expected) {
  float least = 1e9f, ms = 0;
  for (int i = 0; i < 100 && least > expected; i++) {
    CHECK(spin_for(100000000, stream) == ABI_SUCCESS && CU(cuEventRecord, first, stream) == ABI_SUCCESS, "begin");
    for (int j = 0; j < SESSION; j++) CHECK(spin_for(31000, stream) == ABI_SUCCESS, "launch %d", j);
    DO(cuEventRecord, last, stream);
    CHECK(fill_with(p, 42, 1024, stream) == ABI_SUCCESS, "output");
    DO(cuMemcpyDtoHAsync_v2, host, p, (size_t)4096, stream);
    DO(cuStreamSynchronize, stream);
    DO(cuEventElapsedTime, &ms, first, last);
    least = ms < least ? ms : least;
  }
  return least;
}

/* An inference session: 689 launches, 22 ms of GPU time. */
void role_replay_inference(void) {
  CUstream stream = NULL;
  CUevent first = NULL, last = NULL;
  CUdeviceptr weights = 0, p = 0;
  uint32_t *host = NULL;
  start_program();
  load_kernels();
  DO(cuStreamCreate, &stream, 1u);
  DO(cuEventCreate, &first, 0u);
  DO(cuEventCreate, &last, 0u);
  DO(cuMemAlloc_v2, &weights, (size_t)(100 * MIB));
  DO(cuMemAlloc_v2, &p, (size_t)4096);
  DO(cuMemHostAlloc, (void **)&host, (size_t)4096, 0u);
  step("weights");
  float expected = (float)SESSION * 0.031f;
  tell("session, us", (long long)(session_ms(stream, first, last, p, host, expected + 0.0005f) * 1000 + 0.5f));
  tell("output", host[1023]);
  DO(cuMemFreeHost, host);
  DO(cuMemFree_v2, p);
  DO(cuMemFree_v2, weights);
  step("end");
}
