/* Allocations and their frees: reserve, then the driver, then keep or give back; and what a program sees of its memory. */
#include "hook.h"

abi_result vgpu__refusal(void) {
  return (LOAD_ACQUIRE(vgpu_hook.grant->word) & SHM_GRANT_REVOKED) != 0 ? ABI_NOT_PERMITTED : ABI_OUT_OF_MEMORY;
}

static abi_result vgpu__settle(abi_result result, enum vgpu_kind kind, uint64_t key, uint64_t bytes, unsigned context) {
  if (LOAD(vgpu_hook.mode) != VGPU_ATTACHED) return result;
  /* A record that finds no room stays charged until the process ends: never too little. */
  if (result != ABI_SUCCESS) vgpu__give_back(bytes);
  else vgpu__table_put(kind, key, bytes, context);
  return result;
}

/* What the driver will refuse is the driver's to refuse. */
#define CHARGED(asked, pointer, kind, key, context, call)                \
  uint64_t charged = (pointer) == NULL ? 0 : (asked);                    \
  if (charged != 0 && vgpu__reserve(charged) != 0) return vgpu__refusal(); \
  abi_result result = (call);                                            \
  if (charged == 0) return result;                                       \
  return vgpu__settle(result, kind, result == ABI_SUCCESS ? (uint64_t)(key) : 0, charged, context)

abi_result cuMemAlloc(uint32_t *pointer, unsigned bytes) {
  CHARGED(bytes, pointer, KIND_POINTER, *pointer, vgpu__context_number(), REAL(cuMemAlloc)(pointer, bytes));
}

abi_result cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes) {
  CHARGED(bytes, pointer, KIND_POINTER, *pointer, vgpu__context_number(), REAL(cuMemAlloc_v2)(pointer, bytes));
}

abi_result cuMemAllocManaged(CUdeviceptr *pointer, size_t bytes, unsigned flags) {
  CHARGED(bytes, pointer, KIND_POINTER, *pointer, vgpu__context_number(), REAL(cuMemAllocManaged)(pointer, bytes, flags));
}

abi_result cuMemAllocAsync(CUdeviceptr *pointer, size_t bytes, CUstream stream) {
  CHARGED(bytes, pointer, KIND_POOL, *pointer, 0, REAL(cuMemAllocAsync)(pointer, bytes, stream));
}

abi_result cuMemAllocAsync_ptsz(CUdeviceptr *pointer, size_t bytes, CUstream stream) {
  CHARGED(bytes, pointer, KIND_POOL, *pointer, 0, REAL(cuMemAllocAsync_ptsz)(pointer, bytes, stream));
}

abi_result cuMemAllocFromPoolAsync(CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool, CUstream stream) {
  CHARGED(bytes, pointer, KIND_POOL, *pointer, 0, REAL(cuMemAllocFromPoolAsync)(pointer, bytes, pool, stream));
}

abi_result cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool, CUstream stream) {
  CHARGED(bytes, pointer, KIND_POOL, *pointer, 0, REAL(cuMemAllocFromPoolAsync_ptsz)(pointer, bytes, pool, stream));
}

/* The driver chooses the pitch. Reserved is a usual one; if its own is wider, the rest is reserved or the memory goes back. */
static const uint64_t USUAL_PITCH = 512;

static uint64_t vgpu__area(uint64_t pitch, uint64_t height) {
  uint64_t bytes;
  return __builtin_mul_overflow(pitch, height, &bytes) ? UINT64_MAX : bytes;
}

static uint64_t vgpu__usual_area(uint64_t width, uint64_t height) {
  uint64_t pitch = width > UINT64_MAX - USUAL_PITCH ? width : (width + USUAL_PITCH - 1) / USUAL_PITCH * USUAL_PITCH;
  return vgpu__area(pitch, height);
}

/* What is to be charged beyond `reserved` for `real` bytes, in whole units. */
static uint64_t vgpu__beyond(uint64_t reserved, uint64_t real) {
  uint64_t before = (reserved + SHM_MEMORY_UNIT - 1) / SHM_MEMORY_UNIT;
  uint64_t after = (real + SHM_MEMORY_UNIT - 1) / SHM_MEMORY_UNIT;
  return after > before ? (after - before) * SHM_MEMORY_UNIT : 0;
}

abi_result cuMemAllocPitch_v2(CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height, unsigned element) {
  uint64_t reserved = pointer == NULL || pitch == NULL ? 0 : vgpu__usual_area(width, height);
  if (reserved == 0) return REAL(cuMemAllocPitch_v2)(pointer, pitch, width, height, element);
  if (vgpu__reserve(reserved) != 0) return vgpu__refusal();
  abi_result result = REAL(cuMemAllocPitch_v2)(pointer, pitch, width, height, element);
  if (result == ABI_SUCCESS) {
    uint64_t real = vgpu__area(*pitch, height);
    if (real > reserved && vgpu__reserve(vgpu__beyond(reserved, real)) != 0) {
      if (REAL(cuMemFree_v2)(*pointer) == ABI_SUCCESS) vgpu__give_back(reserved);
      return vgpu__refusal();
    }
    if (real > reserved) reserved = real;
  }
  return vgpu__settle(result, KIND_POINTER, result == ABI_SUCCESS ? *pointer : 0, reserved, vgpu__context_number());
}

abi_result cuMemAllocPitch(uint32_t *pointer, unsigned *pitch, unsigned width, unsigned height, unsigned element) {
  CHARGED(vgpu__usual_area(width, height), pointer, KIND_POINTER, *pointer, vgpu__context_number(),
          REAL(cuMemAllocPitch)(pointer, pitch, width, height, element));
}

/* Takes the record first: the moment the driver has freed it, another thread may be given the same address. */
#define FREED(kinds_first, kinds_second, key, call)                                        \
  enum vgpu_kind kind = kinds_first;                                                       \
  unsigned context = 0;                                                                    \
  uint64_t bytes = 0;                                                                      \
  if (LIKELY(LOAD(vgpu_hook.mode) == VGPU_ATTACHED)) {                                     \
    bytes = vgpu__table_take(kind, (uint64_t)(key), &context);                             \
    if (bytes == 0 && (kinds_second) != KIND_NONE) {                                       \
      kind = kinds_second;                                                                 \
      bytes = vgpu__table_take(kind, (uint64_t)(key), &context);                           \
    }                                                                                      \
  }                                                                                        \
  abi_result result = (call);                                                              \
  if (bytes != 0) {                                                                        \
    if (result == ABI_SUCCESS) vgpu__give_back(bytes);                                     \
    else vgpu__table_put(kind, (uint64_t)(key), bytes, context);                           \
  }                                                                                        \
  return result

abi_result cuMemFree(uint32_t pointer) { FREED(KIND_POINTER, KIND_POOL, pointer, REAL(cuMemFree)(pointer)); }

abi_result cuMemFree_v2(CUdeviceptr pointer) { FREED(KIND_POINTER, KIND_POOL, pointer, REAL(cuMemFree_v2)(pointer)); }

abi_result cuMemFreeAsync(CUdeviceptr pointer, CUstream stream) {
  FREED(KIND_POOL, KIND_POINTER, pointer, REAL(cuMemFreeAsync)(pointer, stream));
}

abi_result cuMemFreeAsync_ptsz(CUdeviceptr pointer, CUstream stream) {
  FREED(KIND_POOL, KIND_POINTER, pointer, REAL(cuMemFreeAsync_ptsz)(pointer, stream));
}

/* ---- physical handles ---- */

abi_result cuMemCreate(uint64_t *handle, size_t size, const struct abi_mem_prop *property, unsigned long long flags) {
  int on_device = handle != NULL && property != NULL && property->location_type == ABI_LOCATION_DEVICE;
  if (!on_device || LOAD(vgpu_hook.mode) != VGPU_ATTACHED) return REAL(cuMemCreate)(handle, size, property, flags);
  if (vgpu__reserve(size) != 0) return vgpu__refusal();
  abi_result result = REAL(cuMemCreate)(handle, size, property, flags);
  if (result != ABI_SUCCESS) vgpu__give_back(size);
  else vgpu__vmm_created(*handle, size);
  return result;
}

abi_result cuMemRetainAllocationHandle(uint64_t *handle, void *address) {
  abi_result result = REAL(cuMemRetainAllocationHandle)(handle, address);
  if (result == ABI_SUCCESS) vgpu__vmm_retained(*handle);
  return result;
}

abi_result cuMemRelease(uint64_t handle) {
  abi_result result = REAL(cuMemRelease)(handle);
  if (result == ABI_SUCCESS) vgpu__give_back(vgpu__vmm_released(handle));
  return result;
}

abi_result cuMemMap(CUdeviceptr pointer, size_t size, size_t offset, uint64_t handle, unsigned long long flags) {
  abi_result result = REAL(cuMemMap)(pointer, size, offset, handle, flags);
  if (result == ABI_SUCCESS) vgpu__vmm_mapped(handle, pointer, size);
  return result;
}

abi_result cuMemUnmap(CUdeviceptr pointer, size_t size) {
  abi_result result = REAL(cuMemUnmap)(pointer, size);
  if (result == ABI_SUCCESS) vgpu__give_back(vgpu__vmm_unmapped(pointer, size));
  return result;
}

/* ---- what a program sees ---- */

static int vgpu__limited(uint64_t *quota) {
  *quota = LOAD_ACQUIRE(vgpu_hook.grant->memory_limit);
  return LOAD_ACQUIRE(vgpu_hook.mode) == VGPU_ATTACHED;
}

static uint64_t vgpu__free_of(uint64_t quota, uint64_t really_free) {
  uint64_t used = vgpu__lease_bytes();
  uint64_t left = used < quota ? quota - used : 0;
  return left < really_free ? left : really_free;
}

abi_result cuMemGetInfo_v2(size_t *free, size_t *total) {
  size_t real_free = 0, real_total = 0;
  uint64_t quota;
  if (!vgpu__limited(&quota)) return REAL(cuMemGetInfo_v2)(free, total);
  abi_result result = REAL(cuMemGetInfo_v2)(&real_free, &real_total);
  if (result != ABI_SUCCESS) return result;
  if (free != NULL) *free = vgpu__free_of(quota, real_free);
  if (total != NULL) *total = quota < real_total ? quota : real_total;
  return result;
}

static unsigned vgpu__narrow(uint64_t bytes) { return bytes > UINT32_MAX ? UINT32_MAX : (unsigned)bytes; }

abi_result cuMemGetInfo(unsigned *free, unsigned *total) {
  unsigned real_free = 0, real_total = 0;
  uint64_t quota;
  if (!vgpu__limited(&quota)) return REAL(cuMemGetInfo)(free, total);
  abi_result result = REAL(cuMemGetInfo)(&real_free, &real_total);
  if (result != ABI_SUCCESS) return result;
  if (free != NULL) *free = vgpu__narrow(vgpu__free_of(quota, real_free));
  if (total != NULL) *total = quota < real_total ? vgpu__narrow(quota) : real_total;
  return result;
}

abi_result cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
  uint64_t quota;
  abi_result result = REAL(cuDeviceTotalMem_v2)(bytes, device);
  if (result == ABI_SUCCESS && bytes != NULL && vgpu__limited(&quota) && *bytes > quota) *bytes = quota;
  return result;
}

abi_result cuDeviceTotalMem(unsigned *bytes, CUdevice device) {
  uint64_t quota;
  abi_result result = REAL(cuDeviceTotalMem)(bytes, device);
  if (result == ABI_SUCCESS && bytes != NULL && vgpu__limited(&quota) && *bytes > quota) *bytes = vgpu__narrow(quota);
  return result;
}

/* ---- pinned host memory: counted, not limited ---- */

static abi_result vgpu__pinned(abi_result result, void **pointer, uint64_t bytes) {
  if (result == ABI_SUCCESS && pointer != NULL && LOAD(vgpu_hook.mode) == VGPU_ATTACHED) {
    if (vgpu__table_put(KIND_HOST, (uint64_t)(uintptr_t)*pointer, bytes, 0) == 0) {
      ADD(vgpu_hook.slot->host_bytes, (bytes + SHM_MEMORY_UNIT - 1) / SHM_MEMORY_UNIT * SHM_MEMORY_UNIT);
    }
  }
  return result;
}

abi_result cuMemAllocHost(void **pointer, unsigned bytes) {
  return vgpu__pinned(REAL(cuMemAllocHost)(pointer, bytes), pointer, bytes);
}

abi_result cuMemAllocHost_v2(void **pointer, size_t bytes) {
  return vgpu__pinned(REAL(cuMemAllocHost_v2)(pointer, bytes), pointer, bytes);
}

abi_result cuMemHostAlloc(void **pointer, size_t bytes, unsigned flags) {
  return vgpu__pinned(REAL(cuMemHostAlloc)(pointer, bytes, flags), pointer, bytes);
}

abi_result cuMemFreeHost(void *pointer) {
  uint64_t bytes = vgpu__table_take(KIND_HOST, (uint64_t)(uintptr_t)pointer, NULL);
  abi_result result = REAL(cuMemFreeHost)(pointer);
  if (result == ABI_SUCCESS) ADD(vgpu_hook.slot->host_bytes, -bytes);
  else if (bytes != 0) vgpu__table_put(KIND_HOST, (uint64_t)(uintptr_t)pointer, bytes, 0);
  return result;
}
