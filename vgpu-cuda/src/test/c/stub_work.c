/*
 * The stub driver's GPU: runs one kernel after the other on the wall clock, without threads. A kernel's name is its
 * duration in nanoseconds. It also records misuse by the hook: events in a captured stream, and calls that would end a
 * capture.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "stub_driver.h"
#include "stub_parts.h"

struct CUstream_st {
  uint64_t ready, waits;
  int capturing, gone;
  CUcontext context;
};
struct CUevent_st {
  uint64_t at;
  CUcontext context;
};
struct CUfunc_st {
  uint64_t ns;
  int loaded;
};

static struct CUstream_st legacy;
static __thread struct CUstream_st per_thread;
static __thread int capture_mode;
static int captures;
static uint64_t gpu_ready;
static struct stub_counts counts;

enum { STUB_INVALIDATED = 2 };

__attribute__((visibility("default"))) struct stub_counts *stub_counts(void) { return &counts; }
static __thread struct stub_calls calls;
__attribute__((visibility("default"))) struct stub_calls *stub_calls(void) { return &calls; }

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static struct CUstream_st *of(CUstream stream) {
  if (stream == NULL || stream == ABI_STREAM_LEGACY) return &legacy;
  return stream == ABI_STREAM_PER_THREAD ? &per_thread : stream;
}

static void wait_until(uint64_t ns) {
  for (uint64_t now = now_ns(); now < ns; now = now_ns()) {
    struct timespec span = {(time_t)((ns - now) / 1000000000u), (long)((ns - now) % 1000000000u)};
    nanosleep(&span, NULL);
  }
}

API cuCtxSynchronize(void) {
  pthread_mutex_lock(&stub_lock);
  uint64_t until = gpu_ready;
  pthread_mutex_unlock(&stub_lock);
  wait_until(until);
  return ABI_SUCCESS;
}

API cuStreamCreate(CUstream *stream, unsigned flags) {
  (void)flags;
  *stream = calloc(1, sizeof **stream);
  (*stream)->context = stub_current();
  return (*stream)->context == NULL ? ABI_INVALID_CONTEXT : ABI_SUCCESS;
}

API cuStreamDestroy_v2(CUstream stream) {
  pthread_mutex_lock(&stub_lock);
  stream->gone = 1; /* it stays, so that misuse is seen */
  pthread_mutex_unlock(&stub_lock);
  return ABI_SUCCESS;
}

API cuStreamGetCtx(CUstream stream, CUcontext *context) {
  *context = of(stream)->context;
  return ABI_SUCCESS;
}

/* As driver 580.159 does it: the question ends a capture. */
API cuStreamGetFlags(CUstream stream, unsigned *flags) {
  pthread_mutex_lock(&stub_lock);
  int capturing = of(stream)->capturing;
  if (capturing) of(stream)->capturing = STUB_INVALIDATED;
  pthread_mutex_unlock(&stub_lock);
  *flags = 0;
  return capturing ? 900 /* CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED */ : ABI_SUCCESS;
}

API cuStreamSynchronize(CUstream stream) {
  pthread_mutex_lock(&stub_lock);
  uint64_t until = of(stream)->ready;
  int capturing = of(stream)->capturing;
  if (capturing) of(stream)->capturing = STUB_INVALIDATED;
  pthread_mutex_unlock(&stub_lock);
  if (capturing) return 900; /* CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED */
  wait_until(until);
  return __atomic_load_n(&counts.waits_fail, __ATOMIC_SEQ_CST) ? 999 : ABI_SUCCESS;
}

API cuStreamSynchronize_ptsz(CUstream stream) {
  return cuStreamSynchronize(stream == NULL ? ABI_STREAM_PER_THREAD : stream);
}

API cuStreamQuery(CUstream stream) {
  pthread_mutex_lock(&stub_lock);
  struct CUstream_st *queue = of(stream);
  uint64_t until = queue->ready;
  int capturing = queue->capturing;
  if (capturing) queue->capturing = STUB_INVALIDATED;
  counts.gone_queries += queue->gone != 0;
  pthread_mutex_unlock(&stub_lock);
  if (capturing) return 900; /* CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED */
  return now_ns() >= until ? ABI_SUCCESS : ABI_NOT_READY;
}

API cuEventCreate(CUevent *event, unsigned flags) {
  (void)flags;
  if (stub_current() == NULL) return ABI_INVALID_CONTEXT;
  *event = calloc(1, sizeof **event);
  (*event)->context = stub_current();
  __atomic_fetch_add(&counts.events, 1, __ATOMIC_RELAXED);
  return ABI_SUCCESS;
}

API cuEventDestroy_v2(CUevent event) {
  free(event);
  __atomic_fetch_sub(&counts.events, 1, __ATOMIC_RELAXED);
  return ABI_SUCCESS;
}

/* pauses: simulates a thread that loses its processor just after the record. */
API cuEventRecord(CUevent event, CUstream stream) {
  if (stub_current() == NULL) return ABI_INVALID_CONTEXT;
  struct CUstream_st *queue = of(stream);
  pthread_mutex_lock(&stub_lock);
  if (queue->capturing) counts.polluted++;
  if (stream == ABI_STREAM_LEGACY) counts.legacy_records++;
  uint64_t now = now_ns();
  event->at = queue->ready > now ? queue->ready : now;
  counts.records++;
  calls.records++;
  pthread_mutex_unlock(&stub_lock);
  uint32_t wished = 1;
  if (__atomic_compare_exchange_n(&counts.pauses, &wished, 2, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) usleep(2000);
  return ABI_SUCCESS;
}

static void wait_for_lock(void) {
  int32_t holder = __atomic_load_n(&counts.held_up_by, __ATOMIC_SEQ_CST);
  if (holder == 0 || holder == gettid()) return;
  __atomic_fetch_add(&counts.held_up, 1, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(&counts.held_up_by, __ATOMIC_SEQ_CST) != 0) usleep(100);
  __atomic_fetch_sub(&counts.held_up, 1, __ATOMIC_SEQ_CST);
}

/* STUB_SLOW_QUERY: simulates a thread that loses its processor just before the query. */
API cuEventQuery(CUevent event) {
  stub_must_live();
  if (stub_current() == NULL) return ABI_INVALID_CONTEXT;
  if (getenv("STUB_SLOW_QUERY") != NULL) usleep(300);
  calls.queries++;
  wait_for_lock();
  pthread_mutex_lock(&stub_lock);
  uint64_t at = event->at;
  if (captures > 0 && capture_mode != ABI_CAPTURE_MODE_RELAXED) counts.violations++;
  pthread_mutex_unlock(&stub_lock);
  return now_ns() >= at ? ABI_SUCCESS : ABI_NOT_READY;
}

API cuEventSynchronize(CUevent event) {
  pthread_mutex_lock(&stub_lock);
  uint64_t at = event->at;
  pthread_mutex_unlock(&stub_lock);
  wait_until(at);
  return ABI_SUCCESS;
}

API cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end) {
  stub_must_live();
  if (getenv("STUB_SLOW_QUERY") != NULL) usleep(300);
  calls.elapsed++;
  wait_for_lock();
  pthread_mutex_lock(&stub_lock);
  if (captures > 0 && capture_mode != ABI_CAPTURE_MODE_RELAXED) counts.violations++;
  int done = now_ns() >= start->at && now_ns() >= end->at;
  if (done) *milliseconds = (float)((double)(int64_t)(end->at - start->at) / 1e6);
  pthread_mutex_unlock(&stub_lock);
  return done ? ABI_SUCCESS : ABI_NOT_READY;
}

API cuThreadExchangeStreamCaptureMode(int *mode) {
  int before = capture_mode;
  capture_mode = *mode;
  *mode = before;
  return ABI_SUCCESS;
}

static abi_result set_capturing(CUstream stream, int on) {
  pthread_mutex_lock(&stub_lock);
  int failed = of(stream)->capturing == STUB_INVALIDATED;
  of(stream)->capturing = on;
  captures += on ? 1 : -1;
  pthread_mutex_unlock(&stub_lock);
  return failed ? 901 /* CUDA_ERROR_STREAM_CAPTURE_INVALIDATED */ : ABI_SUCCESS;
}

API cuStreamBeginCapture_v2(CUstream stream, int mode) {
  (void)mode;
  return set_capturing(stream, 1);
}

/* The capture ends even if it has failed. */
API cuStreamEndCapture(CUstream stream, void **graph) {
  *graph = &counts;
  return set_capturing(stream, 0);
}

API cuStreamBeginCaptureToCig(CUstream stream, void *params) {
  (void)params;
  return set_capturing(stream, 1);
}

API cuStreamBeginRecaptureToGraph(CUstream stream, int mode, void *graph, void *callback, void *data) {
  (void)mode, (void)graph, (void)callback, (void)data;
  return set_capturing(stream, 1);
}

API cuStreamEndCaptureToCig(CUstream stream) { return set_capturing(stream, 0); }

API cuStreamIsCapturing(CUstream stream, int *status) {
  pthread_mutex_lock(&stub_lock);
  *status = of(stream)->capturing;
  pthread_mutex_unlock(&stub_lock);
  return ABI_SUCCESS;
}

/* There is no module. A function's name is its duration in nanoseconds. */
API cuModuleGetFunction(CUfunction *function, void *module, const char *name) {
  (void)module;
  *function = calloc(1, sizeof **function);
  (*function)->ns = strtoull(name, NULL, 10);
  return ABI_SUCCESS;
}

static abi_result run(uint64_t ns, CUstream stream) {
  struct CUstream_st *queue = of(stream);
  pthread_mutex_lock(&stub_lock);
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
  pthread_mutex_unlock(&stub_lock);
  return ABI_SUCCESS;
}

/* STUB_LOAD_US: how long the first launch of a function takes before the kernel reaches the GPU. */
static void load(CUfunction function) {
  const char *us = getenv("STUB_LOAD_US");
  uint64_t until = now_ns() + (us == NULL ? 0 : strtoull(us, NULL, 10) * 1000);
  wait_until(until);
  function->loaded = 1;
}

API cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared_bytes, CUstream stream, void **params, void **extra) {
  (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared_bytes, (void)params, (void)extra;
  if (function->ns == 0) {
    counts.null_launches++; /* not atomic: used by the benchmark only */
    return ABI_SUCCESS;
  }
  if (!function->loaded) load(function);
  return run(function->ns, stream);
}

API cuLaunchKernel_ptsz(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                        unsigned bz, unsigned shared_bytes, CUstream stream, void **params, void **extra) {
  return cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared_bytes, stream == NULL ? ABI_STREAM_PER_THREAD : stream,
                        params, extra);
}

/*
 * A graph handle is its duration in nanoseconds. An odd one has one node, whose handle is the graph's: a conditional
 * node, or if the second bit is set, a child graph that has one.
 */
enum { TYPE_CHILD = 4, TYPE_CONDITIONAL = 13 };

API cuGraphConditionalHandleCreate(uint64_t *handle, void *graph, CUcontext context, unsigned initial, unsigned flags) {
  (void)graph, (void)context, (void)initial, (void)flags;
  *handle = 1;
  return ABI_SUCCESS;
}

API cuGraphGetNodes(void *graph, void **nodes, size_t *count) {
  *count = (uintptr_t)graph & 1;
  if (nodes != NULL && *count == 1) *nodes = graph;
  return ABI_SUCCESS;
}

API cuGraphNodeGetType(void *node, int *type) {
  *type = ((uintptr_t)node & 2) != 0 ? TYPE_CHILD : TYPE_CONDITIONAL;
  return ABI_SUCCESS;
}

API cuGraphChildGraphNodeGetGraph(void *node, void **graph) {
  *graph = (void *)((uintptr_t)node - 2);
  return ABI_SUCCESS;
}

API cuGraphInstantiateWithFlags(CUgraphExec *graph, void *of_ns, unsigned long long flags) {
  (void)flags;
  *graph = of_ns;
  return ABI_SUCCESS;
}

API cuGraphExecDestroy(CUgraphExec graph) {
  (void)graph;
  return ABI_SUCCESS;
}

API cuGraphLaunch(CUgraphExec graph, CUstream stream) {
  uint64_t ns = (uint64_t)(uintptr_t)graph, other = __atomic_load_n(&counts.conditional_ns, __ATOMIC_RELAXED);
  return run((ns & 1) != 0 && other != 0 ? other : ns, stream);
}

/* The awaited value arrives 20 ms later, or after as many milliseconds as the value says. */
API cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, uint32_t value, unsigned flags) {
  (void)address, (void)flags;
  struct CUstream_st *queue = of(stream);
  pthread_mutex_lock(&stub_lock);
  uint64_t now = now_ns();
  queue->waits = queue->ready = (queue->ready > now ? queue->ready : now) + (value <= 1 ? 20 : value) * 1000000ull;
  pthread_mutex_unlock(&stub_lock);
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

/* Device memory has high addresses here: see next_address. */
API cuPointerGetAttribute(void *value, int attribute, CUdeviceptr pointer) {
  if (attribute != 2 || pointer >> 40 != 0x70) return ABI_INVALID_VALUE;
  *(unsigned *)value = 2;
  return ABI_SUCCESS;
}

API cuMemcpyBatchAsync_v2(void *to, void *from, void *sizes, size_t count, void *attributes, void *indices,
                          size_t attribute_count, CUstream stream) {
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

API cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, CUstream stream) {
  (void)to, (void)from, (void)bytes;
  return run(1000, stream);
}

API cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes) {
  (void)to, (void)from, (void)bytes;
  run(1000, NULL);
  return cuStreamSynchronize(NULL);
}
