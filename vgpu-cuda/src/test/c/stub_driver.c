/*
 * A driver for tests: devices, contexts, memory, entry points. Its GPU is in stub_work.c. With STUB_SHARED=file,
 * processes share that GPU's memory, and the file keeps the greatest total ever allocated.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "stub_driver.h"
#include "stub_parts.h"

struct CUctx_st {
  int device, primary;
};

pthread_mutex_t stub_lock = PTHREAD_MUTEX_INITIALIZER;
static struct CUctx_st primary = {0, 1};
static __thread struct CUctx_st *stack[16];
static __thread int depth;
static int initialized, retained;
static struct stub_shared *shared, private_shared;
static struct stub_process *process;

#define TABLE 65536
static struct { uint64_t key, bytes; } table[TABLE];

CUcontext stub_current(void) { return depth == 0 ? NULL : stack[depth - 1]; }

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
    if (__atomic_compare_exchange_n(&shared->process[i].pid, &none, (int32_t)getpid(), 0, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST)) {
      process = &shared->process[i];
    }
  }
}

/* Sums up anew each time, under a robust lock: exact wherever a process was killed. */
static int account(int64_t bytes) {
  if (process == NULL) return -1;
  if (shared != &private_shared) {
    stub_share(shared);
  } else {
    pthread_mutex_lock(&stub_lock);
  }
  process->held = (uint64_t)((int64_t)process->held + bytes);
  uint64_t sum = 0;
  for (int i = 0; i < STUB_PROCESSES; i++) sum += shared->process[i].held;
  if (sum > shared->most) shared->most = sum;
  int full = sum > STUB_MEMORY;
  if (full) process->held -= (uint64_t)bytes;
  if (shared != &private_shared) pthread_mutex_unlock(&shared->lock);
  else pthread_mutex_unlock(&stub_lock);
  return full ? -1 : 0;
}

static uint64_t remember(uint64_t key, uint64_t bytes) {
  pthread_mutex_lock(&stub_lock);
  size_t at = (key * 0x9e3779b97f4a7c15u) >> 48;
  while (table[at].key > 1) at = (at + 1) % TABLE;
  table[at].key = key;
  table[at].bytes = bytes;
  pthread_mutex_unlock(&stub_lock);
  return key;
}

static uint64_t recall(uint64_t key) {
  uint64_t bytes = 0;
  pthread_mutex_lock(&stub_lock);
  size_t at = (key * 0x9e3779b97f4a7c15u) >> 48;
  while (table[at].key != 0 && table[at].key != key) at = (at + 1) % TABLE;
  if (table[at].key == key) {
    bytes = table[at].bytes;
    table[at].key = 1;
  }
  pthread_mutex_unlock(&stub_lock);
  return bytes;
}

static uint64_t next_address(uint64_t bytes) {
  static uint64_t next = 0x700000000000u;
  return __atomic_fetch_add(&next, (bytes + 511) / 512 * 512, __ATOMIC_RELAXED);
}

static int ended;

/* The driver ends in an exit handler, and takes some time. */
static void end_driver(void) {
  __atomic_store_n(&ended, 1, __ATOMIC_SEQ_CST);
  usleep(30000);
}

void stub_must_live(void) {
  if (__atomic_load_n(&ended, __ATOMIC_SEQ_CST)) abort();
}

API cuInit(unsigned flags) {
  (void)flags;
  pthread_mutex_lock(&stub_lock);
  if (!initialized) map_shared();
  if (!initialized && getenv("STUB_ENDS") != NULL) atexit(end_driver);
  __atomic_store_n(&initialized, 1, __ATOMIC_RELEASE);
  pthread_mutex_unlock(&stub_lock);
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

API cuGLCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device) {
  return cuCtxCreate_v2(context, flags, device);
}

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
  abi_result result = cuMemAlloc_v2((CUdeviceptr *)&address,
                                    shape->width * (shape->height == 0 ? 1 : shape->height) * 4);
  *handle = (CUarray)(uintptr_t)address;
  return result;
}

API cuArrayDestroy(CUarray array) { return cuMemFree_v2((uintptr_t)array); }

struct named {
  const char *name;
  void *address;
};
#define NAMED(name) \
  { #name, (void *)(uintptr_t)&name }
static const struct named known[] = {
    NAMED(cuInit),
    NAMED(cuMemAlloc_v2),
    NAMED(cuMemFree_v2),
    NAMED(cuLaunchKernel),
    NAMED(cuLaunchKernel_ptsz),
    NAMED(cuStreamSynchronize),
    NAMED(cuStreamSynchronize_ptsz),
    NAMED(cuDriverGetVersion),
    NAMED(cuCtxCreate_v2),
};

/* Answers by address only: cuMemAlloc means cuMemAlloc_v2, and so on. */
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

/* ---- functions that the hook passes on: stub_driver.h ---- */

__attribute__((visibility("default"))) struct stub_many
cuDeviceGetNvSciSyncAttributes(uint64_t i1, double r1, uint64_t i2, double r2, uint64_t i3, double r3, uint64_t i4,
                               double r4, uint64_t i5, double r5, uint64_t i6, double r6, uint64_t i7, double r7,
                               uint64_t i8, double r8, uint64_t i9, double r9, uint64_t i10, double r10) {
  return (struct stub_many){
      .integers = i1 + i2 + i3 + i4 + i5 + i6 + i7 + i8 + i9 + i10,
      .weighted = i1 + 2 * i2 + 3 * i3 + 4 * i4 + 5 * i5 + 6 * i6 + 7 * i7 + 8 * i8 + 9 * i9 + 10 * i10,
      .reals = r1 + r2 + r3 + r4 + r5 + r6 + r7 + r8 + r9 + r10,
      .weighted_reals = r1 + 2 * r2 + 3 * r3 + 4 * r4 + 5 * r5 + 6 * r6 + 7 * r7 + 8 * r8 + 9 * r9 + 10 * r10,
  };
}

__attribute__((visibility("default"))) struct stub_many cuDeviceGetTexture1DLinearMaxWidth(int pairs, ...) {
  struct stub_many sum = {0};
  va_list values;
  va_start(values, pairs);
  for (int place = 1; place <= pairs; place++) {
    uint64_t integer = va_arg(values, uint64_t);
    double real = va_arg(values, double);
    sum.integers += integer;
    sum.weighted += (uint64_t)place * integer;
    sum.reals += real;
    sum.weighted_reals += place * real;
  }
  va_end(values);
  return sum;
}
