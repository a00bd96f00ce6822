/*
 * Programs under several leases at once; their tests are in test_tenants.c. Argument: the run directories of B and C.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda_calls.h"
#include "../../main/c/top/top.h"
#include "stub_driver.h"
#include "test.h"

enum { MIB = 1 << 20 };

static int64_t add(const char *directory) {
  char run_dir[256], reason[512];
  snprintf(run_dir, sizeof run_dir, "VGPU_RUN_DIR=%s", directory);
  const char *env[] = {run_dir, "VGPU_LEASE=test", NULL};
  int64_t handle = vgpu_tenant_add(env, reason, sizeof reason);
  static int said;
  if (handle < 0 && !said++) printf("  refused: %s\n", reason);
  return handle;
}

static size_t left(void) {
  size_t free = 0, total = 0;
  CHECK(cuMemGetInfo_v2(&free, &total) == ABI_SUCCESS, "cuMemGetInfo");
  return free;
}

static CUcontext begin(void) {
  CUcontext context = NULL;
  CHECK(cuInit(0) == ABI_SUCCESS && cuDevicePrimaryCtxRetain(&context, 0) == ABI_SUCCESS, "begin");
  CHECK(cuCtxSetCurrent(context) == ABI_SUCCESS, "set current");
  return context;
}

struct pair {
  int64_t b, c;
};

/* This process is under A by its environment; B and C are added. */
static struct pair begin_three(const char *argument) {
  char first[128];
  const char *comma = strchr(argument, ',');
  begin();
  snprintf(first, sizeof first, "%.*s", (int)(comma - argument), argument);
  struct pair handles = {add(first), add(comma + 1)};
  CHECK(handles.b > 0 && handles.c > 0 && handles.b != handles.c, "handles %lld %lld", (long long)handles.b,
        (long long)handles.c);
  return handles;
}

static void *free_it(void *pointer) {
  CHECK(cuMemFree_v2((CUdeviceptr)(uintptr_t)pointer) == ABI_SUCCESS, "free by another thread");
  return NULL;
}

static void in_thread(void *(*body)(void *), void *argument) {
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, body, argument) == 0, "thread");
  pthread_join(thread, NULL);
}

void role_tenants_memory(const char *argument) {
  struct pair to = begin_three(argument);
  CUdeviceptr a = 0, b = 0, c = 0, more = 0;
  CHECK(left() == 63u * MIB, "A pays for the context: %zu", left());
  CHECK(vgpu_tenant_bind(to.b) == 0 && left() == 32u * MIB, "B has all of its quota: %zu", left());
  CHECK(cuMemAlloc_v2(&b, 32u * MIB) == ABI_SUCCESS && cuMemAlloc_v2(&more, 1) == ABI_OUT_OF_MEMORY,
        "B's quota, exactly");
  CHECK(vgpu_tenant_bind(to.c) == to.b && left() == 16u * MIB, "C: %zu", left());
  CHECK(cuMemAlloc_v2(&c, 1) == ABI_SUCCESS && left() == 16u * MIB - 256, "C's first byte");
  CHECK(vgpu_tenant_bind(0) == to.c && left() == 63u * MIB, "A again: %zu", left());
  CHECK(cuMemAlloc_v2(&a, 63u * MIB) == ABI_SUCCESS && cuMemAlloc_v2(&more, 1) == ABI_OUT_OF_MEMORY, "A's quota");
  in_thread(free_it, (void *)(uintptr_t)b);
  CHECK(left() == 0, "A is not refunded what was B's");
  vgpu_tenant_bind(to.b);
  CHECK(left() == 32u * MIB, "B is, whichever thread frees: %zu", left());
  CHECK(cuMemFree_v2(a) == ABI_SUCCESS && cuMemFree_v2(c) == ABI_SUCCESS && left() == 32u * MIB,
        "A's and C's, freed in B's scope");
  CHECK(cuMemFree_v2(c) == ABI_INVALID_VALUE && left() == 32u * MIB, "twice");
  vgpu_tenant_bind(to.c);
  CHECK(left() == 16u * MIB, "C's are back: %zu", left());

  struct abi_mem_prop property = {1, 0, {ABI_LOCATION_DEVICE, 0}};
  uint64_t handle = 0;
  CHECK(cuMemCreate(&handle, 8u * MIB, &property, 0) == ABI_SUCCESS && left() == 8u * MIB, "C's handle");
  vgpu_tenant_bind(to.b);
  CHECK(cuMemRelease(handle) == ABI_SUCCESS && left() == 32u * MIB, "released in B's scope");
  vgpu_tenant_bind(to.c);
  CHECK(left() == 16u * MIB, "C's again: %zu", left());

  CUcontext context = NULL;
  CHECK(cuCtxCreate_v2(&context, 0, 0) == ABI_SUCCESS && left() == 15u * MIB, "C's context");
  CHECK(cuMemAlloc_v2(&c, 15u * MIB) == ABI_SUCCESS && left() == 0, "C's in it");
  vgpu_tenant_bind(to.b);
  CHECK(cuMemAlloc_v2(&b, 20u * MIB) == ABI_SUCCESS && left() == 12u * MIB, "B's in it");
  vgpu_tenant_bind(0);
  CHECK(cuMemAlloc_v2(&a, 60u * MIB) == ABI_SUCCESS && left() == 3u * MIB, "A's in it");
  CHECK(cuCtxDestroy_v2(context) == ABI_SUCCESS && left() == 63u * MIB, "all of A goes with it: %zu", left());
  vgpu_tenant_bind(to.b);
  CHECK(left() == 32u * MIB, "and of B: %zu", left());
  vgpu_tenant_bind(to.c);
  CHECK(left() == 16u * MIB, "and of C, with the context: %zu", left());
}

static CUfunction kernel(const char *ns) {
  CUfunction function = NULL;
  CHECK(cuModuleGetFunction(&function, NULL, ns) == ABI_SUCCESS, "function");
  return function;
}

static void repeat(CUstream stream, int count) {
  CUfunction function = kernel("1000000");
  for (int i = 0; i < count; i++) CHECK(launch(function, stream) == ABI_SUCCESS, "launch");
  CHECK(cuStreamSynchronize(stream) == ABI_SUCCESS, "synchronise");
}

/*
 * 10 ms of A, launched in B's scope; 20 ms of B, in C's scope and in none; 30 ms of C by its graph in B's stream, and 5
 * ms in the default stream.
 */
void role_tenants_streams(const char *argument) {
  struct pair to = begin_three(argument);
  CUstream of_a = NULL, of_b = NULL;
  CUgraphExec graph = NULL;
  CHECK(cuStreamCreate(&of_a, 0) == ABI_SUCCESS, "A's stream");
  vgpu_tenant_bind(to.b);
  CHECK(cuStreamCreate(&of_b, 0) == ABI_SUCCESS, "B's stream");
  repeat(of_a, 10);
  vgpu_tenant_bind(to.c);
  repeat(of_b, 10);
  CHECK(cuGraphInstantiateWithFlags(&graph, (void *)(uintptr_t)3000000, 0) == ABI_SUCCESS, "C's graph");
  repeat(NULL, 5);
  vgpu_tenant_bind(0);
  repeat(of_b, 5);
  for (int i = 0; i < 10; i++) CHECK(cuGraphLaunch(graph, of_b) == ABI_SUCCESS, "graph");
  repeat(of_b, 5);
  CHECK(cuGraphExecDestroy(graph) == ABI_SUCCESS, "destroy");
  CHECK(cuStreamDestroy_v2(of_b) == ABI_SUCCESS && cuStreamDestroy_v2(of_a) == ABI_SUCCESS, "destroy");
  repeat(NULL, 0);
}

static void *launch_one(void *stream) {
  CHECK(launch(kernel("1000"), stream) == ABI_SUCCESS, "launch");
  return NULL;
}

/*
 * B's gate is shut, C's is open: one thread waits for B, the others go on. The test opens B's gate when it sees that B
 * waits and C has worked.
 */
void role_tenants_gates(const char *argument) {
  struct pair to = begin_three(argument);
  CUstream of_b = NULL;
  pthread_t waiting;
  vgpu_tenant_bind(to.b);
  CHECK(cuStreamCreate(&of_b, 0) == ABI_SUCCESS, "B's stream");
  vgpu_tenant_bind(to.c);
  CHECK(pthread_create(&waiting, NULL, launch_one, of_b) == 0, "thread");
  repeat(NULL, 20);
  pthread_join(waiting, NULL);
  CHECK(cuStreamSynchronize(of_b) == ABI_SUCCESS, "synchronise");
}

static int64_t handle_of_b;
static uint32_t stage;

static void await_stage(uint32_t wanted) {
  while (__atomic_load_n(&stage, __ATOMIC_SEQ_CST) != wanted) usleep(100);
}

static void set_stage(uint32_t reached) { __atomic_store_n(&stage, reached, __ATOMIC_SEQ_CST); }

/* A thread that is bound to B when B is dropped. */
static void *bound_to_b(void *context) {
  CUdeviceptr pointer = 0;
  CUstream stream = NULL;
  CUcontext made = NULL;
  CHECK(cuCtxSetCurrent(context) == ABI_SUCCESS && vgpu_tenant_bind(handle_of_b) == 0, "bind");
  repeat(NULL, 1);
  set_stage(1);
  await_stage(2);
  CHECK(cuMemAlloc_v2(&pointer, 1) == ABI_NOT_PERMITTED, "an allocation after the end");
  CHECK(cuStreamCreate(&stream, 0) == ABI_NOT_PERMITTED, "a stream after the end");
  CHECK(cuCtxCreate_v2(&made, 0, 0) == ABI_NOT_PERMITTED, "a context after the end");
  CHECK(launch(kernel("1000"), NULL) == ABI_NOT_PERMITTED, "a launch after the end");
  CHECK(cuCtxSynchronize() == ABI_SUCCESS, "waiting goes on");
  CHECK(vgpu_tenant_bind(0) == handle_of_b, "what it was bound to");
  CHECK(launch(kernel("1000"), NULL) == ABI_SUCCESS, "unbound: A again");
  CHECK(vgpu_tenant_bind(handle_of_b) == -1, "a handle that is none any more");
  return NULL;
}

void role_tenants_drop(const char *argument) {
  struct pair to = begin_three(argument);
  CUcontext context = NULL;
  CUdeviceptr b = 0;
  CUstream of_b = NULL;
  pthread_t thread;
  cuCtxGetCurrent(&context);
  CHECK(vgpu_tenant_bind(1 << 20) == -1 && vgpu_tenant_bind(-5) == -1 && vgpu_tenant_bind(63) == -1,
        "handles that are none");
  CHECK(vgpu_tenant_drop(0) == -1 && vgpu_tenant_drop(1 << 20) == -1, "drops of none");
  handle_of_b = to.b;
  vgpu_tenant_bind(to.b);
  CHECK(cuMemAlloc_v2(&b, 4u * MIB) == ABI_SUCCESS && cuStreamCreate(&of_b, 0) == ABI_SUCCESS, "B's");
  vgpu_tenant_bind(0);
  CHECK(pthread_create(&thread, NULL, bound_to_b, context) == 0, "thread");
  await_stage(1);
  CHECK(vgpu_tenant_drop(to.b) == 0 && vgpu_tenant_drop(to.b) == -1, "drop, once");
  set_stage(2);
  pthread_join(thread, NULL);
  CHECK(launch(kernel("1000"), of_b) == ABI_NOT_PERMITTED, "its stream starts nothing");
  CHECK(cuMemFree_v2(b) == ABI_SUCCESS && cuStreamDestroy_v2(of_b) == ABI_SUCCESS, "what it had can still be freed");
  CHECK(left() == 63u * MIB, "A has nothing to do with it: %zu", left());
  repeat(NULL, 1);

  /* More leases come and go than a process can have at once. */
  char first[128];
  snprintf(first, sizeof first, "%.*s", (int)(strchr(argument, ',') - argument), argument);
  int64_t handle = -1, before = to.b;
  for (int i = 0; i < 100 && failures == 0; i++, before = handle) {
    for (int tries = 0; tries < 600 && (handle = add(first)) < 0; tries++) usleep(10000);
    CHECK(handle > 0 && handle != before, "lease %d: %lld", i, (long long)handle);
    CHECK(vgpu_tenant_bind(before) == -1 && vgpu_tenant_bind(handle) == 0, "handles are not taken for each other");
    CHECK(cuMemAlloc_v2(&b, MIB) == ABI_SUCCESS && cuMemFree_v2(b) == ABI_SUCCESS, "its memory");
    repeat(NULL, 1);
    vgpu_tenant_bind(0);
    CHECK(vgpu_tenant_drop(handle) == 0, "drop");
  }
  CHECK(add(getenv("VGPU_RUN_DIR")) == -2, "A a second time");

  /* The first lease is dropped too: unbound threads then belong to the next. */
  CHECK(vgpu_tenant_drop(1) == 0 && left() == 16u * MIB, "C's: %zu", left());
  CHECK(vgpu_tenant_drop(to.c) == 0 && cuMemAlloc_v2(&b, 1) == ABI_NOT_PERMITTED, "nobody is left");
}

static void await_end(void) {
  CUdeviceptr p = 0;
  abi_result result = ABI_SUCCESS;
  for (int i = 0; i < 30000 && (result = cuMemAlloc_v2(&p, 1)) == ABI_SUCCESS; i++) {
    CHECK(cuMemFree_v2(p) == ABI_SUCCESS, "free");
    usleep(1000);
  }
  CHECK(result == ABI_NOT_PERMITTED, "the lease's end: %d", result);
}

/* A thread that is bound to B when B is lost. It stays without a lease, even if another lease gets B's index. */
static void *outlives_b(void *context) {
  CUdeviceptr p = 0;
  CHECK(cuCtxSetCurrent(context) == ABI_SUCCESS && vgpu_tenant_bind(handle_of_b) == 0, "bind");
  repeat(NULL, 1);
  CHECK(cuMemAlloc_v2(&p, MIB) == ABI_SUCCESS, "B's memory"); /* tells the test to begin */
  await_end();
  CHECK(cuMemFree_v2(p) == ABI_SUCCESS, "what it had can still be freed");
  set_stage(1);
  await_stage(2);
  CHECK(cuMemAlloc_v2(&p, 1) == ABI_NOT_PERMITTED, "an allocation under a lease that has B's index");
  CHECK(vgpu_tenant_bind(0) == handle_of_b && vgpu_tenant_bind(handle_of_b) == -1, "a handle that is none any more");
  return NULL;
}

/* B loses its slot to another process, and later A, the lease of unbound threads. */
void role_tenants_lost(const char *argument) {
  struct pair to = begin_three(argument);
  CUcontext context = NULL;
  CUdeviceptr p = 0;
  pthread_t thread;
  char first[128];
  snprintf(first, sizeof first, "%.*s", (int)(strchr(argument, ',') - argument), argument);
  handle_of_b = to.b;
  cuCtxGetCurrent(&context);
  CHECK(pthread_create(&thread, NULL, outlives_b, context) == 0, "thread");
  await_stage(1);
  int64_t handle = -1;
  for (int i = 0; i < 100 && (handle & 0xff) != (to.b & 0xff) && failures == 0; i++) {
    if (handle > 0) CHECK(vgpu_tenant_drop(handle) == 0, "drop");
    for (int tries = 0; tries < 600 && (handle = add(first)) < 0; tries++) usleep(10000);
    CHECK(handle > 0 && handle != to.b, "lease %d: %lld", i, (long long)handle);
  }
  CHECK((handle & 0xff) == (to.b & 0xff), "B's index was not used again");
  set_stage(2);
  pthread_join(thread, NULL);
  CHECK(vgpu_tenant_drop(handle) == 0, "drop");
  vgpu_tenant_bind(to.c);
  CHECK(cuMemAlloc_v2(&p, MIB) == ABI_SUCCESS, "C's memory"); /* tells the test to go on */
  vgpu_tenant_bind(0);
  for (int i = 0; i < 30000 && left() != 15u * MIB; i++) usleep(1000);
  CHECK(left() == 15u * MIB, "unbound threads are not C's: %zu", left());
}

void role_tenants_fork(const char *argument) {
  struct pair to = begin_three(argument);
  int status = -1;
  vgpu_tenant_bind(to.b);
  repeat(NULL, 1);
  pid_t pid = fork();
  if (pid == 0) {
    CUdeviceptr pointer = 0;
    begin();
    CHECK(left() == 31u * MIB, "the child is B's: %zu", left());
    CHECK(cuMemAlloc_v2(&pointer, 31u * MIB) == ABI_SUCCESS && left() == 0, "and pays there");
    repeat(NULL, 1);
    CHECK(vgpu_tenant_bind(to.c) == -1, "its parent's handles are nothing to it");
    _exit(failures == 0 ? 0 : 1);
  }
  CHECK(waitpid(pid, &status, 0) == pid && status == 0, "the child: %d", status);
  repeat(NULL, 1);
  vgpu_tenant_bind(to.c);
  CHECK(left() == 16u * MIB, "C: %zu", left());
}

struct churner {
  CUcontext context;
  int64_t handles[3];
  unsigned seed;
};

/* Allocates in one scope, frees in another. Nothing stays charged, and no quota is exceeded. */
static void *churn(void *argument) {
  struct churner *of = argument;
  CUdeviceptr held[16] = {0};
  CUfunction function = kernel("1000");
  cuCtxSetCurrent(of->context);
  for (int i = 0; i < 3000; i++) {
    unsigned at = (of->seed = of->seed * 1664525u + 1013904223u) >> 16;
    vgpu_tenant_bind(of->handles[at % 3]);
    CUdeviceptr *slot = &held[at / 3 % 16];
    if (*slot != 0) {
      CHECK(cuMemFree_v2(*slot) == ABI_SUCCESS, "free");
      *slot = 0;
    } else if (cuMemAlloc_v2(slot, 1 + (at & 0xfffff)) != ABI_SUCCESS) {
      *slot = 0;
    }
    if (i % 50 == 0) CHECK(launch(function, NULL) == ABI_SUCCESS, "launch");
  }
  for (int i = 0; i < 16; i++) {
    if (held[i] != 0) CHECK(cuMemFree_v2(held[i]) == ABI_SUCCESS, "free");
  }
  return NULL;
}

void role_tenants_churn(const char *argument) {
  struct pair to = begin_three(argument);
  pthread_t threads[6];
  struct churner of[6];
  CUcontext context = NULL;
  cuCtxGetCurrent(&context);
  for (int i = 0; i < 6; i++) {
    of[i] = (struct churner){context, {0, to.b, to.c}, test_seed() + (unsigned)i * 7919u};
    CHECK(pthread_create(&threads[i], NULL, churn, &of[i]) == 0, "thread");
  }
  for (int i = 0; i < 6; i++) pthread_join(threads[i], NULL);
  CHECK(cuCtxSynchronize() == ABI_SUCCESS && left() == 63u * MIB, "A: %zu", left());
  vgpu_tenant_bind(to.b);
  CHECK(left() == 32u * MIB, "B: %zu", left());
  vgpu_tenant_bind(to.c);
  CHECK(left() == 16u * MIB, "C: %zu", left());
}
