/*
 * A driver for tests: one GPU that runs one kernel after the other on the wall clock, without threads. What a kernel takes is its
 * name's number of nanoseconds. With STUB_SHARED=file, processes share that GPU's memory, and the file keeps the greatest sum ever
 * allocated. It also tells on the hook: events of its in a captured stream, calls that would end a capture.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "../../main/c/cuda_abi.h"
#include "stub_driver.h"

#define API __attribute__((visibility("default"))) abi_result

struct CUctx_st { int device, primary; };
struct CUstream_st { uint64_t ready, waits; int capturing; struct CUctx_st *context; };
struct CUevent_st { uint64_t at; struct CUctx_st *context; };
struct CUfunc_st { uint64_t ns; };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct CUctx_st primary = {0, 1};
static struct CUstream_st legacy;
static __thread struct CUstream_st per_thread;
static __thread struct CUctx_st *stack[16];
static __thread int depth, capture_mode;
static int initialized, captures, retained;
static uint64_t gpu_ready;
static struct stub_counts counts;
static struct stub_shared *shared, private_shared;
static struct stub_process *process;

enum { STUB_INVALIDATED = 2 };
#define TABLE 65536
static struct { uint64_t key, bytes; } table[TABLE];

__attribute__((visibility("default"))) struct stub_counts *stub_counts(void) { return &counts; }

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void map_shared(void) {
  const char *path = getenv("STUB_SHARED");
  shared = &private_shared;
  if (path != NULL) {
    int fd = open(path, O_RDWR | O_CLOEXEC);
    void *pages = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0) close(fd);
    if (pages != MAP_FAILED) shared = pages;
  }
  for (int i = 0; i < STUB_PROCESSES && process == NULL; i++) {
    int32_t none = 0;
    if (__atomic_compare_exchange_n(&shared->process[i].pid, &none, (int32_t)getpid(), 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
      process = &shared->process[i];
    }
  }
}

/* The sum is taken over again each time, under a lock that the dead leave: exact whoever was killed where. */
static int account(int64_t bytes) {
  if (process == NULL) return -1;
  if (shared != &private_shared) {
    if (pthread_mutex_lock(&shared->lock) == 130 /* EOWNERDEAD */) pthread_mutex_consistent(&shared->lock);
  } else {
    pthread_mutex_lock(&lock);
  }
  process->held = (uint64_t)((int64_t)process->held + bytes);
  uint64_t sum = 0;
  for (int i = 0; i < STUB_PROCESSES; i++) sum += shared->process[i].held;
  if (sum > shared->most) shared->most = sum;
  int full = sum > STUB_MEMORY;
  if (full) process->held -= (uint64_t)bytes;
  if (shared != &private_shared) pthread_mutex_unlock(&shared->lock);
  else pthread_mutex_unlock(&lock);
  return full ? -1 : 0;
}

static uint64_t remember(uint64_t key, uint64_t bytes) {
  pthread_mutex_lock(&lock);
  size_t at = (key * 0x9e3779b97f4a7c15u) >> 48;
  while (table[at].key > 1) at = (at + 1) % TABLE;
  table[at].key = key;
  table[at].bytes = bytes;
  pthread_mutex_unlock(&lock);
  return key;
}

static uint64_t recall(uint64_t key) {
  uint64_t bytes = 0;
  pthread_mutex_lock(&lock);
  size_t at = (key * 0x9e3779b97f4a7c15u) >> 48;
  while (table[at].key != 0 && table[at].key != key) at = (at + 1) % TABLE;
  if (table[at].key == key) {
    bytes = table[at].bytes;
    table[at].key = 1;
  }
  pthread_mutex_unlock(&lock);
  return bytes;
}

static uint64_t next_address(uint64_t bytes) {
  static uint64_t next = 0x700000000000u;
  return __atomic_fetch_add(&next, (bytes + 511) / 512 * 512, __ATOMIC_RELAXED);
}

static struct CUstream_st *of(CUstream stream) {
  if (stream == NULL || stream == ABI_STREAM_LEGACY) return &legacy;
  return stream == ABI_STREAM_PER_THREAD ? &per_thread : stream;
}

static int ended;

/* A driver ends by a handler, and takes its time. */
static void end_driver(void) {
  __atomic_store_n(&ended, 1, __ATOMIC_SEQ_CST);
  usleep(30000);
}

/* What a call of a driver that has ended does. */
static void must_live(void) {
  if (__atomic_load_n(&ended, __ATOMIC_SEQ_CST)) abort();
}

API cuInit(unsigned flags) {
  (void)flags;
  pthread_mutex_lock(&lock);
  if (!initialized) map_shared();
  if (!initialized && getenv("STUB_ENDS") != NULL) atexit(end_driver);
  __atomic_store_n(&initialized, 1, __ATOMIC_RELEASE);
  pthread_mutex_unlock(&lock);
  return process == NULL ? ABI_OUT_OF_MEMORY : ABI_SUCCESS;
}

API cuDriverGetVersion(int *version) {
  *version = 13000;
  return ABI_SUCCESS;
}

API cuDeviceGetCount(int *count) {
  *count = 1;
  return initialized ? ABI_SUCCESS : ABI_NOT_INITIALIZED;
}

API cuDeviceGet(CUdevice *device, int ordinal) {
  *device = ordinal;
  return initialized ? (ordinal == 0 ? ABI_SUCCESS : 101) : ABI_NOT_INITIALIZED;
}

API cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
  (void)device;
  *bytes = STUB_MEMORY;
  return ABI_SUCCESS;
}

API cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
  if (free_bytes == NULL || total == NULL) return ABI_INVALID_VALUE;
  uint64_t sum = 0;
  for (int i = 0; i < STUB_PROCESSES; i++) sum += shared->process[i].held;
  *total = STUB_MEMORY;
  *free_bytes = STUB_MEMORY - sum;
  return ABI_SUCCESS;
}

API cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  (void)device;
  if (!__atomic_load_n(&initialized, __ATOMIC_ACQUIRE)) return ABI_NOT_INITIALIZED;
  if (__atomic_fetch_add(&retained, 1, __ATOMIC_SEQ_CST) == 0 && account(STUB_CONTEXT) != 0) {
    retained--;
    return ABI_OUT_OF_MEMORY;
  }
  *context = &primary;
  return ABI_SUCCESS;
}

API cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  (void)device;
  if (retained == 0) return ABI_INVALID_CONTEXT;
  if (__atomic_sub_fetch(&retained, 1, __ATOMIC_SEQ_CST) == 0) account(-(int64_t)STUB_CONTEXT);
  return ABI_SUCCESS;
}

API cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device) {
  (void)flags;
  if (account(STUB_CONTEXT) != 0) return ABI_OUT_OF_MEMORY;
  *context = calloc(1, sizeof **context);
  (*context)->device = device;
  stack[depth++] = *context;
  return ABI_SUCCESS;
}

API cuGLCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device) { return cuCtxCreate_v2(context, flags, device); }

API cuCtxDestroy_v2(CUcontext context) {
  if (depth > 0 && stack[depth - 1] == context) depth--;
  account(-(int64_t)STUB_CONTEXT);
  free(context);
  return ABI_SUCCESS;
}

API cuCtxSetCurrent(CUcontext context) {
  if (depth == 0) depth = 1;
  stack[depth - 1] = context;
  if (context == NULL) depth--;
  return ABI_SUCCESS;
}

API cuCtxGetCurrent(CUcontext *context) {
  *context = depth == 0 ? NULL : stack[depth - 1];
  return __atomic_load_n(&initialized, __ATOMIC_ACQUIRE) ? ABI_SUCCESS : ABI_NOT_INITIALIZED;
}

API cuCtxPushCurrent_v2(CUcontext context) {
  if (depth == 16) return ABI_INVALID_CONTEXT;
  stack[depth++] = context;
  return ABI_SUCCESS;
}

API cuCtxPopCurrent_v2(CUcontext *context) {
  if (depth == 0) return ABI_INVALID_CONTEXT;
  *context = stack[--depth];
  return ABI_SUCCESS;
}

static void wait_until(uint64_t ns) {
  for (uint64_t now = now_ns(); now < ns; now = now_ns()) {
    struct timespec span = {(time_t)((ns - now) / 1000000000u), (long)((ns - now) % 1000000000u)};
    nanosleep(&span, NULL);
  }
}

API cuCtxSynchronize(void) {
  pthread_mutex_lock(&lock);
  uint64_t until = gpu_ready;
  pthread_mutex_unlock(&lock);
  wait_until(until);
  return ABI_SUCCESS;
}

API cuStreamCreate(CUstream *stream, unsigned flags) {
  (void)flags;
  *stream = calloc(1, sizeof **stream);
  (*stream)->context = depth == 0 ? NULL : stack[depth - 1];
  return depth == 0 ? ABI_INVALID_CONTEXT : ABI_SUCCESS;
}

API cuStreamDestroy_v2(CUstream stream) {
  free(stream);
  return ABI_SUCCESS;
}

API cuStreamGetCtx(CUstream stream, CUcontext *context) {
  *context = of(stream)->context;
  return ABI_SUCCESS;
}

API cuStreamSynchronize(CUstream stream) {
  pthread_mutex_lock(&lock);
  uint64_t until = of(stream)->ready;
  int capturing = of(stream)->capturing;
  if (capturing) of(stream)->capturing = STUB_INVALIDATED;
  pthread_mutex_unlock(&lock);
  if (capturing) return 900; /* CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED */
  wait_until(until);
  return ABI_SUCCESS;
}

API cuStreamSynchronize_ptsz(CUstream stream) { return cuStreamSynchronize(stream == NULL ? ABI_STREAM_PER_THREAD : stream); }

API cuStreamQuery(CUstream stream) {
  pthread_mutex_lock(&lock);
  uint64_t until = of(stream)->ready;
  pthread_mutex_unlock(&lock);
  return now_ns() >= until ? ABI_SUCCESS : ABI_NOT_READY;
}

API cuEventCreate(CUevent *event, unsigned flags) {
  (void)flags;
  if (depth == 0) return ABI_INVALID_CONTEXT;
  *event = calloc(1, sizeof **event);
  (*event)->context = stack[depth - 1];
  __atomic_fetch_add(&counts.events, 1, __ATOMIC_RELAXED);
  return ABI_SUCCESS;
}

API cuEventDestroy_v2(CUevent event) {
  free(event);
  __atomic_fetch_sub(&counts.events, 1, __ATOMIC_RELAXED);
  return ABI_SUCCESS;
}

API cuEventRecord(CUevent event, CUstream stream) {
  if (depth == 0) return ABI_INVALID_CONTEXT;
  struct CUstream_st *queue = of(stream);
  pthread_mutex_lock(&lock);
  if (queue->capturing) counts.polluted++;
  if (stream == ABI_STREAM_LEGACY) counts.legacy_records++;
  uint64_t now = now_ns();
  event->at = queue->ready > now ? queue->ready : now;
  counts.records++;
  pthread_mutex_unlock(&lock);
  return ABI_SUCCESS;
}

/* STUB_SLOW_QUERY: a thread may be kept from its processor just before it asks. */
API cuEventQuery(CUevent event) {
  must_live();
  if (depth == 0) return ABI_INVALID_CONTEXT;
  if (getenv("STUB_SLOW_QUERY") != NULL) usleep(300);
  pthread_mutex_lock(&lock);
  uint64_t at = event->at;
  if (captures > 0 && capture_mode != ABI_CAPTURE_MODE_RELAXED) counts.violations++;
  pthread_mutex_unlock(&lock);
  return now_ns() >= at ? ABI_SUCCESS : ABI_NOT_READY;
}

API cuEventSynchronize(CUevent event) {
  pthread_mutex_lock(&lock);
  uint64_t at = event->at;
  pthread_mutex_unlock(&lock);
  wait_until(at);
  return ABI_SUCCESS;
}

API cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end) {
  pthread_mutex_lock(&lock);
  *milliseconds = (float)((double)(int64_t)(end->at - start->at) / 1e6);
  pthread_mutex_unlock(&lock);
  return ABI_SUCCESS;
}

API cuThreadExchangeStreamCaptureMode(int *mode) {
  int before = capture_mode;
  capture_mode = *mode;
  *mode = before;
  return ABI_SUCCESS;
}

static abi_result set_capturing(CUstream stream, int on) {
  pthread_mutex_lock(&lock);
  int failed = of(stream)->capturing == STUB_INVALIDATED;
  of(stream)->capturing = on;
  captures += on ? 1 : -1;
  pthread_mutex_unlock(&lock);
  return failed ? 901 /* CUDA_ERROR_STREAM_CAPTURE_INVALIDATED */ : ABI_SUCCESS;
}

API cuStreamBeginCapture_v2(CUstream stream, int mode) {
  (void)mode;
  return set_capturing(stream, 1);
}

/* The capture is over also where it has failed. */
API cuStreamEndCapture(CUstream stream, void **graph) {
  *graph = &counts;
  return set_capturing(stream, 0);
}

API cuStreamBeginCaptureToCig(CUstream stream, void *params) {
  (void)params;
  return set_capturing(stream, 1);
}

API cuStreamEndCaptureToCig(CUstream stream) { return set_capturing(stream, 0); }

API cuStreamIsCapturing(CUstream stream, int *status) {
  pthread_mutex_lock(&lock);
  *status = of(stream)->capturing;
  pthread_mutex_unlock(&lock);
  return ABI_SUCCESS;
}

/* The "module" is nothing, a function's name is how many nanoseconds it takes. */
API cuModuleGetFunction(CUfunction *function, void *module, const char *name) {
  (void)module;
  *function = calloc(1, sizeof **function);
  (*function)->ns = strtoull(name, NULL, 10);
  return ABI_SUCCESS;
}

static abi_result run(uint64_t ns, CUstream stream) {
  struct CUstream_st *queue = of(stream);
  pthread_mutex_lock(&lock);
  if (!queue->capturing) {
    uint64_t from = now_ns();
    if (gpu_ready > from && gpu_ready - from > counts.most_ahead_ns) counts.most_ahead_ns = gpu_ready - from;
    if (queue->ready > from) from = queue->ready;
    int waits = queue->waits > now_ns(); /* then others run meanwhile */
    if (!waits && gpu_ready > from) from = gpu_ready;
    queue->ready = from + ns;
    if (!waits) gpu_ready = queue->ready;
    counts.gpu_ns += ns;
    counts.launches++;
    if (counts.first_ns == 0) counts.first_ns = from;
    counts.last_ns = queue->ready;
  }
  pthread_mutex_unlock(&lock);
  return ABI_SUCCESS;
}

API cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared_bytes, CUstream stream, void **params, void **extra) {
  (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared_bytes, (void)params, (void)extra;
  if (function->ns == 0) {
    counts.null_launches++; /* not atomic: for the bench */
    return ABI_SUCCESS;
  }
  return run(function->ns, stream);
}

API cuLaunchKernel_ptsz(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                        unsigned shared_bytes, CUstream stream, void **params, void **extra) {
  return cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared_bytes, stream == NULL ? ABI_STREAM_PER_THREAD : stream, params,
                        extra);
}

/* A graph is how long it takes. */
API cuGraphInstantiateWithFlags(CUgraphExec *graph, void *of_ns, unsigned long long flags) {
  (void)flags;
  *graph = of_ns;
  return ABI_SUCCESS;
}

API cuGraphExecDestroy(CUgraphExec graph) {
  (void)graph;
  return ABI_SUCCESS;
}

API cuGraphLaunch(CUgraphExec graph, CUstream stream) { return run((uint64_t)(uintptr_t)graph, stream); }

/* Something that somebody else brings about: here, 20 ms later, or as many as the value says. */
API cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, uint32_t value, unsigned flags) {
  (void)address, (void)flags;
  struct CUstream_st *queue = of(stream);
  pthread_mutex_lock(&lock);
  uint64_t now = now_ns();
  queue->waits = queue->ready = (queue->ready > now ? queue->ready : now) + (value <= 1 ? 20 : value) * 1000000ull;
  pthread_mutex_unlock(&lock);
  return ABI_SUCCESS;
}

API cuMemsetD32_v2(uint64_t pointer, unsigned value, size_t count) {
  (void)pointer, (void)value, (void)count;
  return run(1000, NULL);
}

API cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, CUstream stream) {
  (void)to, (void)from, (void)bytes;
  return run(1000, stream);
}

/* Device memory has high addresses here: next_address. */
API cuPointerGetAttribute(void *value, int attribute, CUdeviceptr pointer) {
  if (attribute != 2 || pointer >> 40 != 0x70) return ABI_INVALID_VALUE;
  *(unsigned *)value = 2;
  return ABI_SUCCESS;
}

API cuMemcpyBatchAsync_v2(void *to, void *from, void *sizes, size_t count, void *attributes, void *indices, size_t attribute_count,
                          CUstream stream) {
  (void)to, (void)from, (void)sizes, (void)attributes, (void)indices, (void)attribute_count;
  return run(1000 * count, stream);
}

API cuMemcpy3DBatchAsync_v2(size_t count, void *list, unsigned long long flags, CUstream stream) {
  (void)list, (void)flags;
  return run(1000 * count, stream);
}

API cuMemcpyWithAttributesAsync(uint64_t to, uint64_t from, size_t bytes, void *attributes, CUstream stream) {
  (void)to, (void)from, (void)bytes, (void)attributes;
  return run(1000, stream);
}

API cuMemcpy3DWithAttributesAsync(void *operation, unsigned long long flags, CUstream stream) {
  (void)operation, (void)flags;
  return run(1000, stream);
}

API cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes) {
  (void)to, (void)from, (void)bytes;
  run(1000, NULL);
  return cuStreamSynchronize(NULL);
}

API cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes) {
  if (pointer == NULL || bytes == 0) return ABI_INVALID_VALUE;
  if (getenv("STUB_FAST") == NULL) {
    if (account((int64_t)bytes) != 0) return ABI_OUT_OF_MEMORY;
    *pointer = remember(next_address(bytes), bytes);
  } else {
    *pointer = next_address(bytes);
  }
  return ABI_SUCCESS;
}

API cuMemFree_v2(CUdeviceptr pointer) {
  uint64_t bytes = recall(pointer);
  if (bytes == 0) return ABI_INVALID_VALUE;
  account(-(int64_t)bytes);
  return ABI_SUCCESS;
}

API cuMemAllocAsync(CUdeviceptr *pointer, size_t bytes, CUstream stream) {
  (void)stream;
  return cuMemAlloc_v2(pointer, bytes);
}

API cuMemFreeAsync(CUdeviceptr pointer, CUstream stream) {
  (void)stream;
  return cuMemFree_v2(pointer);
}

API cuMemAllocPitch_v2(CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height, unsigned element) {
  (void)element;
  *pitch = (width + 1023) / 1024 * 1024; /* wider than usual */
  return cuMemAlloc_v2(pointer, *pitch * height);
}

API cuMemCreate(uint64_t *handle, size_t size, const struct abi_mem_prop *property, unsigned long long flags) {
  (void)property, (void)flags;
  return cuMemAlloc_v2((CUdeviceptr *)handle, size);
}

API cuMemRelease(uint64_t handle) { return cuMemFree_v2(handle); }

API cuMemMap(CUdeviceptr pointer, size_t size, size_t offset, uint64_t handle, unsigned long long flags) {
  (void)pointer, (void)size, (void)offset, (void)handle, (void)flags;
  return ABI_SUCCESS;
}

API cuMemUnmap(CUdeviceptr pointer, size_t size) {
  (void)pointer, (void)size;
  return ABI_SUCCESS;
}

API cuArrayCreate_v2(CUarray *handle, const struct abi_array *shape) {
  uint64_t address;
  abi_result result = cuMemAlloc_v2((CUdeviceptr *)&address, shape->width * (shape->height == 0 ? 1 : shape->height) * 4);
  *handle = (CUarray)(uintptr_t)address;
  return result;
}

API cuArrayDestroy(CUarray array) { return cuMemFree_v2((uintptr_t)array); }

struct named { const char *name; void *address; };
#define NAMED(name) {#name, (void *)(uintptr_t)&name}
static const struct named known[] = {
    NAMED(cuInit), NAMED(cuMemAlloc_v2), NAMED(cuMemFree_v2), NAMED(cuLaunchKernel), NAMED(cuLaunchKernel_ptsz),
    NAMED(cuStreamSynchronize), NAMED(cuStreamSynchronize_ptsz), NAMED(cuDriverGetVersion), NAMED(cuCtxCreate_v2),
};

/* Answers only by the address: cuMemAlloc means cuMemAlloc_v2, and so on. */
API cuGetProcAddress_v2(const char *symbol, void **found_at, int version, uint64_t flags, int *found) {
  size_t length = strlen(symbol);
  (void)version;
  *found_at = NULL;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    const char *name = known[i].name, *rest = name + length;
    if (strncmp(name, symbol, length) != 0) continue;
    if (strcmp(rest, "_ptsz") == 0 && (flags & ABI_PROC_PER_THREAD_STREAM) != 0) *found_at = known[i].address;
    if ((*rest == '\0' || strcmp(rest, "_v2") == 0) && *found_at == NULL) *found_at = known[i].address;
  }
  if (found != NULL) *found = *found_at == NULL ? 1 : ABI_PROC_FOUND;
  return *found_at == NULL ? ABI_NOT_FOUND : ABI_SUCCESS;
}

API cuGetProcAddress(const char *symbol, void **found_at, int version, uint64_t flags) {
  return cuGetProcAddress_v2(symbol, found_at, version, flags, NULL);
}
