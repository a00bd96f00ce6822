/* The hooked programs of test_hook.c: each role is a function that runs in its own process. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cuda_calls.h"
#include "../../main/shm/shm.h"
#include "roles_work.h"
#include "stub_driver.h"
#include "test.h"

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* This process's GPU time as the seat reads it: from the report file. */
static uint64_t measured_gpu_ns(void) {
  static char *report;
  if (report == NULL) {
    char path[256];
    snprintf(path, sizeof path, "%s/leases/test/report", getenv("VGPU_RUN_DIR"));
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    report = mmap(NULL, SHM_REPORT_SIZE, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
  }
  const struct shm_slot *slots = (const void *)(report + SHM_SLOTS_OFFSET);
  for (uint64_t i = 1; i < SHM_SLOT_COUNT; i++) {
    if (slots[i].pid == (uint32_t)getpid()) return __atomic_load_n(&slots[i].gpu_ns, __ATOMIC_ACQUIRE);
  }
  return 0;
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

static void role_attach(const char *unused) {
  (void)unused;
  int version = 0;
  uint64_t since = now_ns();
  CHECK(cuInit(0) == ABI_SUCCESS, "cuInit");
  printf("  cuInit %llu us\n", (unsigned long long)(now_ns() - since) / 1000);
  CHECK(cuInit(0) == ABI_SUCCESS, "cuInit again");
  CHECK(cuDriverGetVersion(&version) == ABI_SUCCESS && version == 13000, "passed through: %d", version);
  CHECK(cuProfilerStart() == ABI_NOT_SUPPORTED, "a function that the driver lacks");
  CHECK(cuMemcpyPeer(0, NULL, 0, NULL, 0) == ABI_NOT_SUPPORTED, "a handled function that the driver lacks");
  CUcontext context = NULL;
  CUevent event = NULL;
  float ms = -1;
  CHECK(cuCtxCreate_v2(&context, 0, 0) == ABI_SUCCESS, "a context");
  CHECK(cuEventCreate(&event, 0) == ABI_SUCCESS && cuEventElapsedTime_v2(&ms, event, event) == ABI_SUCCESS,
        "an older form");
  CHECK(ms >= 0 && ms <= 0, "answers for a newer one: %f", (double)ms);
  CHECK(cuCtxSynchronize_v2((CUcontext)&ms) == ABI_SUCCESS, "also where the older one has fewer arguments");
}

static size_t room(void) {
  size_t left = 0, total = 0;
  CHECK(cuMemGetInfo_v2(&left, &total) == ABI_SUCCESS && total == 64u << 20, "total %zu", total);
  return left;
}

static int is_to_stop(void) { /* the test has created the file "stop" */
  char path[256];
  snprintf(path, sizeof path, "%s/stop", getenv("VGPU_RUN_DIR"));
  return access(path, F_OK) == 0;
}

static void await_stop(void) {
  while (!is_to_stop()) usleep(1000);
}

static void role_memory(const char *unused) {
  (void)unused;
  CUdeviceptr a = 0, b = 0;
  size_t pitch = 0, bytes = 0;
  CUcontext context = begin(), second = NULL;
  CHECK(room() == 63u << 20, "after the context %zu", room());
  CHECK(cuDeviceTotalMem_v2(&bytes, 0) == ABI_SUCCESS && bytes == 64u << 20, "total %zu", bytes);
  CHECK(cuMemGetInfo_v2(NULL, NULL) == ABI_INVALID_VALUE, "NULL is answered by the driver");
  CHECK(cuMemAlloc_v2(&a, 63u << 20) == ABI_SUCCESS && room() == 0, "exactly the rest");
  CHECK(cuMemAlloc_v2(&b, 1) == ABI_OUT_OF_MEMORY, "one byte more");
  CHECK(cuMemAlloc_v2(NULL, 1) == ABI_INVALID_VALUE && cuMemAlloc_v2(&b, 0) == ABI_INVALID_VALUE,
        "the driver's own refusals");
  CHECK(cuMemFree_v2(a + 64) == ABI_INVALID_VALUE && room() == 0, "a failed free gives nothing back");
  CHECK(cuMemFree_v2(a) == ABI_SUCCESS && room() == 63u << 20, "all back");
  CHECK(cuMemAlloc_v2(&a, 1) == ABI_SUCCESS && room() == (63u << 20) - 256, "whole units");
  CHECK(cuMemFreeAsync(a, NULL) == ABI_SUCCESS && room() == 63u << 20, "freed by the other way");
  CHECK(cuMemAllocAsync(&a, 1 << 20, NULL) == ABI_SUCCESS && cuMemFree_v2(a) == ABI_SUCCESS && room() == 63u << 20,
        "async");
  CHECK(cuMemAllocPitch_v2(&a, &pitch, 100, 1000, 4) == ABI_SUCCESS && room() == (63u << 20) - 1024000,
        "the real pitch");
  CHECK(cuMemFree_v2(a) == ABI_SUCCESS && room() == 63u << 20, "pitch back");
  CHECK(cuMemAllocPitch_v2(&a, &pitch, 600, 63 * 1024 + 512, 4) == ABI_OUT_OF_MEMORY && room() == 63u << 20,
        "pitch too wide");

  struct abi_mem_prop property = {1, 0, {ABI_LOCATION_DEVICE, 0}};
  uint64_t handle = 0;
  CHECK(cuMemCreate(&handle, 32u << 20, &property, 0) == ABI_SUCCESS && room() == 31u << 20, "handle");
  CHECK(cuMemMap(0x10000000, 16u << 20, 0, handle, 0) == ABI_SUCCESS, "map");
  CHECK(cuMemMap(0x11000000, 16u << 20, 16u << 20, handle, 0) == ABI_SUCCESS, "map");
  CHECK(cuMemRelease(handle) == ABI_SUCCESS && room() == 31u << 20, "released, still mapped");
  CHECK(cuMemUnmap(0x10000000, 32u << 20) == ABI_SUCCESS && room() == 63u << 20, "unmapped: both mappings");
  CHECK(cuMemCreate(&handle, 64u << 20, &property, 0) == ABI_OUT_OF_MEMORY, "handle too large");

  struct abi_array shape = {1024, 1024, 0x20, 1};
  CUarray array = NULL;
  CHECK(cuArrayCreate_v2(&array, &shape) == ABI_SUCCESS && room() == 59u << 20, "array");
  CHECK(cuArrayDestroy(array) == ABI_SUCCESS && room() == 63u << 20, "array back");

  CHECK(cuCtxCreate_v2(&second, 0, 0) == ABI_SUCCESS && room() == 62u << 20, "second context");
  CHECK(cuMemAlloc_v2(&a, 10u << 20) == ABI_SUCCESS && room() == 52u << 20, "in the second context");
  CHECK(cuCtxDestroy_v2(second) == ABI_SUCCESS && room() == 63u << 20, "its memory goes with it");
  CHECK(cuGLCtxCreate_v2(&second, 0, 0) == ABI_SUCCESS && room() == 62u << 20, "a context for OpenGL");
  CHECK(cuCtxDestroy_v2(second) == ABI_SUCCESS && room() == 63u << 20, "destroyed");
  CHECK(cuCtxSetCurrent(context) == ABI_SUCCESS, "back");
  CHECK(cuMemAlloc_v2(&a, 1 << 20) == ABI_SUCCESS, "for the primary context to take");
  CHECK(cuDevicePrimaryCtxRelease_v2(0) == ABI_SUCCESS && room() == 64u << 20, "last release: %zu", room());
}

static void role_proc_address(const char *unused) {
  (void)unused;
  void *found = NULL, *self = dlopen(NULL, RTLD_NOW);
  int status = -1;
  CHECK(cuInit(0) == ABI_SUCCESS, "cuInit");
#define EXPECT(symbol, version, flags, name)                                                           \
  found = NULL;                                                                                        \
  CHECK(cuGetProcAddress_v2(symbol, &found, version, flags, &status) == ABI_SUCCESS, symbol);          \
  CHECK(found == dlsym(self, name), "%s of %d, flags %d is not our %s", symbol, version, flags, name); \
  CHECK(cuGetProcAddress(symbol, &found, version, flags) == ABI_SUCCESS && found == dlsym(self, name), symbol)
  EXPECT("cuMemAlloc", 12000, 0, "cuMemAlloc_v2");
  EXPECT("cuMemAlloc", 12000, 2, "cuMemAlloc_v2");
  EXPECT("cuLaunchKernel", 12000, 0, "cuLaunchKernel");
  EXPECT("cuLaunchKernel", 12000, 1, "cuLaunchKernel");
  EXPECT("cuLaunchKernel", 12000, 2, "cuLaunchKernel_ptsz");
  EXPECT("cuStreamSynchronize", 13000, 2, "cuStreamSynchronize_ptsz");
  EXPECT("cuCtxCreate", 4000, 0, "cuCtxCreate_v2");
  EXPECT("cuInit", 14000, 0, "cuInit");
  CHECK(cuGetProcAddress_v2("cuDriverGetVersion", &found, 13000, 0, &status) == ABI_SUCCESS, "passed");
  CHECK(found != NULL && found != dlsym(self, "cuDriverGetVersion"), "passed to the driver's own");
  CHECK(cuGetProcAddress_v2("cuNothing", &found, 13000, 0, &status) == ABI_NOT_FOUND && found == NULL, "unknown");
}

static void role_dlopen(const char *driver) {
  CHECK(cuInit(0) == ABI_SUCCESS, "cuInit");
  void *by_path = dlopen("/usr/lib/nowhere/libcuda.so.1", RTLD_NOW), *by_name = dlopen("libcuda.so.1", RTLD_NOW);
  CHECK(by_path != NULL && by_path == by_name, "the driver by its path is the hook");
  CHECK(dlsym(by_path, "vgpu_hook_version") != NULL, "it is the hook");
  CHECK(dlopen(driver, RTLD_NOW) == by_path, "so is the driver by another name");
  void *other = dlopen(getenv("STUB_NVML"), RTLD_NOW);
  CHECK(other != NULL && dlsym(other, "vgpu_hook_version") == NULL, "other libraries are themselves");
  CHECK(dlopen("/nonexistent.so", RTLD_NOW) == NULL && dlerror() != NULL, "errors are the C library's");
}

/* waited: both streams have batches in flight when the capture begins, and the monitor queries them. */
static void role_capture(const char *waited) {
  CUstream stream = NULL, other = NULL;
  void *graph = NULL;
  begin();
  CHECK(cuStreamCreate(&stream, 0) == ABI_SUCCESS && cuStreamCreate(&other, 0) == ABI_SUCCESS, "streams");
  CUfunction function = kernel(*waited == '\0' ? "20000" : "300000");
  for (int round = 0; round < 20; round++) {
    for (int i = 0; i < 10; i++) launch(function, stream), launch(function, other);
    if (*waited != '\0') usleep(1500);
    CHECK(cuStreamBeginCapture_v2(stream, 0) == ABI_SUCCESS, "begin");
    for (int i = 0; i < 200; i++) launch(function, stream), launch(function, other);
    usleep(2000);
    CHECK(cuStreamEndCapture(stream, &graph) == ABI_SUCCESS, "end");
    CHECK(cuGraphLaunch((CUgraphExec)(uintptr_t)100000, stream) == ABI_SUCCESS, "graph");
  }
  CHECK(cuCtxSynchronize() == ABI_SUCCESS, "sync");
  CHECK(stub()->polluted == 0 && stub()->violations == 0, "%llu events in captures, %llu forbidden calls",
        (unsigned long long)stub()->polluted, (unsigned long long)stub()->violations);
}

static void role_fork(const char *unused) {
  (void)unused;
  CUdeviceptr a = 0, b = 0;
  begin();
  CHECK(cuMemAlloc_v2(&a, 40u << 20) == ABI_SUCCESS, "parent");
  pid_t pid = fork();
  if (pid == 0) {
    /* The child shares nothing, attaches by itself, and is under the same quota. */
    CHECK(cuInit(0) == ABI_SUCCESS, "cuInit in the child");
    CHECK(cuMemAlloc_v2(&b, 30u << 20) == ABI_OUT_OF_MEMORY, "over the quota in the child");
    CHECK(cuMemAlloc_v2(&b, 20u << 20) == ABI_SUCCESS, "within the quota in the child");
    _exit(failures == 0 ? 0 : 1);
  }
  int status = -1;
  waitpid(pid, &status, 0);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "child: %d", status);
  pid = fork();
  if (pid == 0) _exit(0); /* without cuInit, and without exec */
  waitpid(pid, &status, 0);
  usleep(30000);
  for (int i = 0; i < 30000 && room() != (63u << 20) - (40u << 20); i++) usleep(1000); /* the seat may be delayed */
  CHECK(room() == (63u << 20) - (40u << 20), "the child's memory is back, the parent's is not: %zu", room());
  CHECK(cuMemFree_v2(a) == ABI_SUCCESS && room() == 63u << 20, "parent goes on");
}

static void role_close_descriptors(const char *unused) {
  (void)unused;
  begin();
  for (int fd = 3; fd < 1024; fd++) close(fd);
  int first = dup(1), last = -1;
  for (int i = 0; i < 1000; i++) last = dup(1); /* the hook's old descriptor number now belongs to the program */
  CUfunction function = kernel("1000000");
  for (int i = 0; i < 50; i++) launch(function, NULL);
  CHECK(cuCtxSynchronize() == ABI_SUCCESS, "sync");
  await_stop(); /* until it has connected again */
  CHECK(first >= 0 && last >= 0 && close(last) == 0 && close(first) == 0, "the program's own are left alone");
}

/* The measured GPU time matches the stub's own figure, with and without synchronisation. */
static void role_gpu_time(const char *ns) {
  CUstream stream = NULL;
  uint64_t each = strtoull(ns, NULL, 10), most = 120000000u / each;
  if (most < 3) most = 3;
  begin();
  CHECK(cuStreamCreate(&stream, 0) == ABI_SUCCESS, "stream");
  CUfunction function = kernel(ns);
  for (int synchronous = 0; synchronous < 2; synchronous++) {
    uint64_t before = measured_gpu_ns(), real = stub()->gpu_ns;
    for (uint64_t i = 0; i < most; i++) {
      launch(function, stream);
      if (synchronous) cuStreamSynchronize(stream);
    }
    cuStreamSynchronize(stream);
    for (int i = 0; i < 30000 && (double)(measured_gpu_ns() - before) <= (double)(stub()->gpu_ns - real) * 0.9; i++)
      usleep(1000);
    double measured = (double)(measured_gpu_ns() - before), expected = (double)(stub()->gpu_ns - real);
    printf("  %s ns each, %s: measured %.2f of %.2f ms\n", ns, synchronous ? "synchronised" : "free", measured / 1e6,
           expected / 1e6);
    /* The figures are for reading. The checks allow for any delay of a busy machine between a record and its launch. */
    CHECK(measured > expected * 0.9, "too little: %.3f", measured / expected);
    CHECK(measured < expected * 4 + 50e6, "too much: %.3f", measured / expected);
  }
}

/* Launches until the test has created the file "stop". */
static void role_launch(const char *unused) {
  (void)unused;
  CUstream stream = NULL;
  begin();
  CHECK(cuStreamCreate(&stream, 0) == ABI_SUCCESS, "stream");
  CUfunction function = kernel("300000");
  while (!is_to_stop()) CHECK(launch(function, stream) == ABI_SUCCESS, "launch");
  CHECK(cuStreamSynchronize(stream) == ABI_SUCCESS && cuStreamDestroy_v2(stream) == ABI_SUCCESS, "end");
}

/*
 * Alternates work and pauses, as a server does, until the test has created the file "stop". Forks at times if asked to.
 */
static void role_serve(const char *forks) {
  begin();
  CUfunction function = kernel("20000000");
  while (!is_to_stop()) {
    CHECK(launch(function, NULL) == ABI_SUCCESS, "launch");
    pid_t pid = *forks == '\0' ? -1 : fork();
    if (pid == 0) _exit(0); /* with its parent's pages mapped, or not */
    if (pid > 0) waitpid(pid, NULL, 0);
    CHECK(cuCtxSynchronize() == ABI_SUCCESS, "sync");
    usleep(5000);
  }
}

/* Works, once the test has created the file "stop" if it is to be told, and ends while its bit still lingers. */
static void role_serve_once(const char *told) {
  begin();
  CUfunction small = kernel("50000");
  while (*told != '\0' && !is_to_stop()) launch(small, NULL), cuCtxSynchronize();
  for (int i = 0; i < 50; i++) launch(small, NULL), cuCtxSynchronize(); /* a chain; one round would not show its end */
  CHECK(launch(kernel("20000000"), NULL) == ABI_SUCCESS && cuCtxSynchronize() == ABI_SUCCESS, "work");
}

struct bound {
  CUstream *streams;
  int count;
  const char *ns;
};

static void *launch_round(void *argument) {
  const struct bound *bound = argument;
  CUcontext context = NULL;
  cuDevicePrimaryCtxRetain(&context, 0);
  cuCtxSetCurrent(context);
  CUfunction function = kernel(bound->ns);
  uint64_t until = now_ns() + 150000000u;
  for (int i = 0; now_ns() < until; i++)
    CHECK(launch(function, bound->streams[i % bound->count]) == ABI_SUCCESS, "launch");
  return NULL;
}

/* With any number of streams and threads, the GPU's queue stays near the bound (2 ms) once the kernels are measured. */
static void role_bound(const char *ns) {
  CUstream streams[32];
  begin();
  for (int i = 0; i < 32; i++) CHECK(cuStreamCreate(&streams[i], 0) == ABI_SUCCESS, "stream");
  for (int streams_used = 1; streams_used <= 32; streams_used *= 4) {
    for (int threads = 1; threads <= 4; threads *= 4) {
      pthread_t thread[4];
      struct bound bound = {streams, streams_used, ns};
      stub()->most_ahead_ns = 0;
      uint64_t began = now_ns(), before = stub()->gpu_ns;
      for (int i = 0; i < threads; i++) pthread_create(&thread[i], NULL, launch_round, &bound);
      for (int i = 0; i < threads; i++) pthread_join(thread[i], NULL);
      cuCtxSynchronize();
      printf("  kernels of %s ns, %2d streams, %d threads: at most %.2f ms ahead, GPU busy %.1f %%\n", ns, streams_used,
             threads, (double)stub()->most_ahead_ns / 1e6,
             100.0 * (double)(stub()->gpu_ns - before) / (double)(now_ns() - began));
      CHECK(stub()->most_ahead_ns < 40000000u, "%.2f ms ahead", (double)stub()->most_ahead_ns / 1e6);
    }
  }
}

/* Small kernels with a wait after each, then kernels with pauses. */
static void role_small_kernels(const char *unused) {
  (void)unused;
  begin();
  CUfunction function = kernel("20000");
  for (int i = 0; i < 2000; i++) launch(function, NULL), cuStreamSynchronize(NULL);
  for (int i = 0; i < 20; i++) launch(function, NULL), cuStreamSynchronize(NULL), usleep(2000);
}

static void role_revoked(const char *unused) {
  (void)unused;
  CUdeviceptr a = 0, b = 0;
  abi_result result = ABI_SUCCESS;
  begin();
  CHECK(cuMemAlloc_v2(&a, 1 << 20) == ABI_SUCCESS, "before");
  CUfunction function = kernel("300000");
  for (uint64_t until = now_ns() + PATIENCE_NS; now_ns() < until && result == ABI_SUCCESS;)
    result = launch(function, NULL);
  CHECK(result == ABI_NOT_PERMITTED, "a launch gave %d", result);
  CHECK(cuMemAlloc_v2(&b, 1) == ABI_NOT_PERMITTED, "an allocation");
  CHECK(cuCtxSynchronize() == ABI_SUCCESS && cuMemFree_v2(a) == ABI_SUCCESS, "syncs and frees go on");
}

static void role_refused(const char *unused) {
  (void)unused;
  CUdevice device = 0;
  CHECK(cuInit(0) == ABI_SYSTEM_NOT_READY && cuInit(0) == ABI_SYSTEM_NOT_READY, "cuInit");
  CHECK(cuDeviceGet(&device, 0) == ABI_NOT_INITIALIZED, "nothing works");
}

enum { MOST_WAKES = 2000 }; /* of a thread that waits 10 s for the seat's answer: 20 a second, and the retries */

static void *join_late(void *unused) {
  (void)unused;
  CHECK(cuInit(0) == ABI_SYSTEM_NOT_READY, "cuInit");
  struct rusage waited;
  CHECK(getrusage(RUSAGE_THREAD, &waited) == 0, "getrusage");
  CHECK(waited.ru_nvcsw < MOST_WAKES, "it woke %ld times while no answer came", waited.ru_nvcsw);
  return NULL;
}

/*
 * It gives up while its HELLO is unread, and lives on. So does a child, forked meanwhile, that also has the connection.
 */
static void role_late(const char *unused) {
  (void)unused;
  char path[128];
  pthread_t joins;
  CHECK(pthread_create(&joins, NULL, join_late, NULL) == 0, "thread");
  usleep(500000);
  pid_t parent = getpid();
  if (fork() == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (getppid() == parent) usleep(1000);
    _exit(0);
  }
  pthread_join(joins, NULL);
  snprintf(path, sizeof path, "%s/refused", getenv("VGPU_RUN_DIR"));
  close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  await_stop();
}

static void role_open_mode(const char *unused) {
  (void)unused;
  CUdeviceptr a = 0;
  setenv("VGPU_FAILURE_MODE", "open", 1);
  begin();
  CHECK(cuMemAlloc_v2(&a, 1u << 30) == ABI_SUCCESS && cuMemFree_v2(a) == ABI_SUCCESS, "no limit");
  CHECK(launch(kernel("1000"), NULL) == ABI_SUCCESS && cuCtxSynchronize() == ABI_SUCCESS, "work");
}

static void check_sums(struct stub_many found, const char *what) {
  CHECK(found.integers == 0x5555555555555555 + 54 && found.weighted == 0x5555555555555555 + 384, "%s: %llx, %llx", what,
        (unsigned long long)found.integers, (unsigned long long)found.weighted);
  CHECK(found.reals == 55.5 && found.weighted_reals == 385.5, "%s: %f, %f", what, found.reals, found.weighted_reals);
}

/* The first call of each binds it, the second one goes straight to the driver. */
static void role_passed_on(const char *unused) {
  (void)unused;
  CHECK(cuInit(0) == ABI_SUCCESS, "cuInit");
  for (int i = 0; i < 2; i++) {
    check_sums(cuDeviceGetNvSciSyncAttributes(0x5555555555555555, 1.5, 2, 2.0, 3, 3.0, 4, 4.0, 5, 5.0, 6, 6.0, 7, 7.0,
                                              8, 8.0, 9, 9.0, 10, 10.0),
               "all arguments");
    check_sums(cuDeviceGetTexture1DLinearMaxWidth(10, (uint64_t)0x5555555555555555, 1.5, (uint64_t)2, 2.0, (uint64_t)3,
                                                  3.0, (uint64_t)4, 4.0, (uint64_t)5, 5.0, (uint64_t)6, 6.0,
                                                  (uint64_t)7, 7.0, (uint64_t)8, 8.0, (uint64_t)9, 9.0, (uint64_t)10,
                                                  10.0),
               "variable arguments");
  }
}

static const struct {
  const char *name;
  void (*run)(const char *argument);
} roles[] = {
    {"passed-on", role_passed_on},
    {"attach", role_attach},
    {"memory", role_memory},
    {"proc-address", role_proc_address},
    {"dlopen", role_dlopen},
    {"capture", role_capture},
    {"fork", role_fork},
    {"close-descriptors", role_close_descriptors},
    {"gpu-time", role_gpu_time},
    {"launch", role_launch},
    {"serve", role_serve},
    {"serve-once", role_serve_once},
    {"bound", role_bound},
    {"small-kernels", role_small_kernels},
    {"revoked", role_revoked},
    {"refused", role_refused},
    {"late", role_late},
    {"open-mode", role_open_mode},
    {"churn", role_churn},
    {"fill", role_fill},
    {"churn-for", role_churn_and_launch},
    {"set-user", role_set_user},
    {"fork-first", role_fork_attaching},
    {"denied", role_denied},
    {"tenants-memory", role_tenants_memory},
    {"tenants-streams", role_tenants_streams},
    {"tenants-gates", role_tenants_gates},
    {"tenants-drop", role_tenants_drop},
    {"tenants-lost", role_tenants_lost},
    {"tenants-fork", role_tenants_fork},
    {"tenants-churn", role_tenants_churn},
};

int run_as(const char *role, const char *argument) {
  for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
    if (strcmp(roles[i].name, role) != 0) continue;
    roles[i].run(argument);
    return failures == 0 ? 0 : 1;
  }
  return run_work_role(role, argument);
}
