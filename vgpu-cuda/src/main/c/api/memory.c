/*
 * Allocations and frees: reserve, call the driver, then keep the charge or give it back. Also what a program sees of
 * its memory.
 */
#include <string.h>

#include "../lane/lane.h"

static abi_result vgpu__settle(struct vgpu_tenant *tenant, int gpu, abi_result result, enum vgpu_kind kind,
                               uint64_t key, uint64_t bytes, unsigned context) {
  if (!vgpu__is_charged(tenant)) return result;
  /* If the table is full, the allocation stays charged until the process ends: never too little. */
  if (result != ABI_SUCCESS) vgpu__give_back(tenant, gpu, bytes);
  else vgpu__table_put(tenant, gpu, kind, key, bytes, context);
  return result;
}

/* Calls with invalid arguments go to the driver, which refuses them. */
#define CHARGED(asked, pointer, kind, key, context, call)                                                       \
  CHANGING();                                                                                                   \
  struct vgpu_tenant *tenant = vgpu_tenant_current();                                                           \
  uint64_t charged = (pointer) == NULL ? 0 : (asked);                                                           \
  int gpu = vgpu__gpu_here(tenant);                                                                             \
  if (charged != 0 && UNLIKELY(vgpu__reserve_or_trim(tenant, gpu, charged) != 0)) return vgpu__refusal(tenant); \
  if (charged == 0) return (call);                                                                              \
  abi_result result;                                                                                            \
  IN_ROOM(result, call);                                                                                        \
  return vgpu__settle(tenant, gpu, result, kind, result == ABI_SUCCESS ? (uint64_t)(key) : 0, charged, context)

abi_result cuMemAlloc(uint32_t *pointer, unsigned bytes) {
  CHARGED(bytes, pointer, KIND_POINTER, *pointer, vgpu__context_number(), REAL(cuMemAlloc)(pointer, bytes));
}

abi_result cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes) {
  abi_result moved;
  if (UNLIKELY(vgpu__wants_movable(vgpu_tenant_current())) &&
      vgpu__movable_allocate(vgpu_tenant_current(), pointer, bytes, &moved))
    return moved;
  CHARGED(bytes, pointer, KIND_POINTER, *pointer, vgpu__context_number(), REAL(cuMemAlloc_v2)(pointer, bytes));
}

/*
 * VGPU_MANAGED_MEMORY=oversubscribe: managed memory beyond the quota stays on the host, as it does beyond the real
 * GPU's memory. It is charged as far as there is room. How much of it is on the GPU cannot be known without asking the
 * driver page by page.
 */
static int vgpu__managed_oversubscribes(void) {
  static uint32_t known; /* 1: no, 2: yes */
  if (UNLIKELY(LOAD(known) == 0)) {
    const char *choice = vgpu__setting("VGPU_MANAGED_MEMORY");
    STORE(known, choice != NULL && strcmp(choice, "oversubscribe") == 0 ? 2u : 1u);
  }
  return LOAD(known) == 2;
}

abi_result cuMemAllocManaged(CUdeviceptr *pointer, size_t bytes, unsigned flags) {
  struct vgpu_tenant *oversubscriber = vgpu_tenant_current();
  STORE(vgpu__measure_less, 1);
  if (LIKELY(!vgpu__managed_oversubscribes()) || pointer == NULL || !vgpu__is_charged(oversubscriber) ||
      vgpu__refusal(oversubscriber) == ABI_NOT_PERMITTED) {
    CHARGED(bytes, pointer, KIND_POINTER, *pointer, vgpu__context_number(),
            REAL(cuMemAllocManaged)(pointer, bytes, flags));
  }
  CHANGING();
  int gpu = vgpu__gpu_here(oversubscriber);
  uint64_t part = vgpu__reserve_part(oversubscriber, gpu, bytes);
  abi_result result = REAL(cuMemAllocManaged)(pointer, bytes, flags);
  if (part == 0) return result;
  return vgpu__settle(oversubscriber, gpu, result, KIND_POINTER, result == ABI_SUCCESS ? *pointer : 0, part,
                      vgpu__context_number());
}

/*
 * The driver chooses the pitch. A usual pitch is reserved. If the driver's is wider, the rest is reserved too, or the
 * memory is freed.
 */
static const uint64_t USUAL_PITCH = 512;

static uint64_t vgpu__area(uint64_t pitch, uint64_t height) {
  uint64_t bytes;
  return __builtin_mul_overflow(pitch, height, &bytes) ? UINT64_MAX : bytes;
}

static uint64_t vgpu__usual_area(uint64_t width, uint64_t height) {
  uint64_t pitch = width > UINT64_MAX - USUAL_PITCH ? width : (width + USUAL_PITCH - 1) / USUAL_PITCH * USUAL_PITCH;
  return vgpu__area(pitch, height);
}

/* How much to charge beyond `reserved` for `real` bytes, in whole units. */
static uint64_t vgpu__beyond(uint64_t reserved, uint64_t real) {
  uint64_t before = (reserved + SHM_MEMORY_UNIT - 1) / SHM_MEMORY_UNIT;
  uint64_t after = (real + SHM_MEMORY_UNIT - 1) / SHM_MEMORY_UNIT;
  return after > before ? (after - before) * SHM_MEMORY_UNIT : 0;
}

abi_result cuMemAllocPitch_v2(CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height, unsigned element) {
  CHANGING();
  uint64_t reserved = pointer == NULL || pitch == NULL ? 0 : vgpu__usual_area(width, height);
  if (reserved == 0) return REAL(cuMemAllocPitch_v2)(pointer, pitch, width, height, element);
  struct vgpu_tenant *tenant = vgpu_tenant_current();
  int gpu = vgpu__gpu_here(tenant);
  if (vgpu__reserve_or_trim(tenant, gpu, reserved) != 0) return vgpu__refusal(tenant);
  abi_result result;
  IN_ROOM(result, REAL(cuMemAllocPitch_v2)(pointer, pitch, width, height, element));
  if (result == ABI_SUCCESS) {
    uint64_t real = vgpu__area(*pitch, height);
    if (real > reserved && vgpu__reserve(tenant, gpu, vgpu__beyond(reserved, real)) != 0) {
      if (REAL(cuMemFree_v2)(*pointer) == ABI_SUCCESS) vgpu__give_back(tenant, gpu, reserved);
      return vgpu__refusal(tenant);
    }
    if (real > reserved) reserved = real;
  }
  return vgpu__settle(tenant, gpu, result, KIND_POINTER, result == ABI_SUCCESS ? *pointer : 0, reserved,
                      vgpu__context_number());
}

abi_result cuMemAllocPitch(uint32_t *pointer, unsigned *pitch, unsigned width, unsigned height, unsigned element) {
  CHARGED(vgpu__usual_area(width, height), pointer, KIND_POINTER, *pointer, vgpu__context_number(),
          REAL(cuMemAllocPitch)(pointer, pitch, width, height, element));
}

/* Takes the record first: as soon as the driver has freed the address, another thread may get it. */
#define FREED(kinds_first, kinds_second, key, freed_in_order, call)                                                \
  CHANGING();                                                                                                      \
  enum vgpu_kind kind = kinds_first;                                                                               \
  struct vgpu_record record;                                                                                       \
  int known = 0;                                                                                                   \
  if (LIKELY(LOAD(vgpu__attached))) {                                                                              \
    known = vgpu__table_take(kind, (uint64_t)(key), &record);                                                      \
    if (!known && (kinds_second) != KIND_NONE) {                                                                   \
      kind = kinds_second;                                                                                         \
      known = vgpu__table_take(kind, (uint64_t)(key), &record);                                                    \
    }                                                                                                              \
  }                                                                                                                \
  if (!known && UNLIKELY(LOAD(vgpu__graph_memory_seen))) ADD(vgpu__graph_frees, 1);                                \
  abi_result result = (call);                                                                                      \
  if (known) {                                                                                                     \
    if (UNLIKELY(result != ABI_SUCCESS)) {                                                                         \
      vgpu__table_put(record.tenant, record.gpu, kind, (uint64_t)(key), record.bytes, record.context);             \
    } else if (freed_in_order) {                                                                                   \
    } else {                                                                                                       \
      if (kind == KIND_POOL) vgpu__pool_freed(&record, 1, NULL);                                                   \
      else vgpu__give_back(record.tenant, record.gpu, record.bytes); /* to its payer */                            \
      vgpu__pools_settle();                                          /* the driver may have waited for all work */ \
    }                                                                                                              \
  }                                                                                                                \
  return result

abi_result cuMemFree(uint32_t pointer) { FREED(KIND_POINTER, KIND_POOL, pointer, 0, REAL(cuMemFree)(pointer)); }

abi_result cuMemFree_v2(CUdeviceptr pointer) {
  abi_result moved;
  if (UNLIKELY(LOAD(vgpu__movables) != 0) && vgpu__movable_free(pointer, NULL, &moved)) return moved;
  FREED(KIND_POINTER, KIND_POOL, pointer, 0, REAL(cuMemFree_v2)(pointer));
}

abi_result cuMemFreeAsync(CUdeviceptr pointer, CUstream stream) {
  abi_result moved;
  if (UNLIKELY(LOAD(vgpu__movables) != 0) && vgpu__movable_free(pointer, stream, &moved)) return moved;
  FREED(KIND_POOL, KIND_POINTER, pointer, (vgpu__freed(kind, &record, stream, 0), 1),
        REAL(cuMemFreeAsync)(pointer, stream));
}

abi_result cuMemFreeAsync_ptsz(CUdeviceptr pointer, CUstream stream) {
  abi_result moved;
  if (UNLIKELY(LOAD(vgpu__movables) != 0) && vgpu__movable_free(pointer, stream, &moved)) return moved;
  FREED(KIND_POOL, KIND_POINTER, pointer, (vgpu__freed(kind, &record, stream, 1), 1),
        REAL(cuMemFreeAsync_ptsz)(pointer, stream));
}

/* ---- where a pool's memory is ---- */

abi_result cuMemPoolCreate(CUmemoryPool *pool, const struct abi_pool_props *property) {
  abi_result result = REAL(cuMemPoolCreate)(pool, property);
  if (result == ABI_SUCCESS) vgpu__pool_located(*pool, property->type, &property->location, 1);
  return result;
}

abi_result cuMemGetDefaultMemPool(CUmemoryPool *pool, const struct abi_location *location, int type) {
  abi_result result = REAL(cuMemGetDefaultMemPool)(pool, location, type);
  if (result == ABI_SUCCESS) vgpu__pool_located(*pool, type, location, 0);
  return result;
}

abi_result cuMemGetMemPool(CUmemoryPool *pool, const struct abi_location *location, int type) {
  abi_result result = REAL(cuMemGetMemPool)(pool, location, type);
  if (result == ABI_SUCCESS) vgpu__pool_located(*pool, type, location, 0);
  return result;
}

/* ---- physical handles ---- */

abi_result cuMemCreate(uint64_t *handle, size_t size, const struct abi_mem_prop *property, unsigned long long flags) {
  int on_device = handle != NULL && property != NULL && property->location.type != ABI_LOCATION_NONE &&
                  !abi_is_on_host(&property->location);
  struct vgpu_tenant *tenant = vgpu_tenant_current();
  if (!on_device || !vgpu__is_charged(tenant)) return REAL(cuMemCreate)(handle, size, property, flags);
  CHANGING();
  int gpu = vgpu__gpu_of(tenant, abi_device_of(&property->location));
  if (vgpu__reserve_or_trim(tenant, gpu, size) != 0) return vgpu__refusal(tenant);
  abi_result result;
  do {
    vgpu__lock(&vgpu__vmm_call); /* the last unmap frees a handle, and the driver could reuse it before that is noted */
    result = REAL(cuMemCreate)(handle, size, property, flags);
    if (result == ABI_SUCCESS) vgpu__vmm_created(tenant, gpu, *handle, size);
    vgpu__unlock(&vgpu__vmm_call);
  } while (result == ABI_OUT_OF_MEMORY && vgpu__await_room(tenant));
  if (result != ABI_SUCCESS) vgpu__give_back(tenant, gpu, size);
  return result;
}

abi_result cuMemRetainAllocationHandle(uint64_t *handle, void *address) {
  vgpu__lock(&vgpu__vmm_call);
  abi_result result = REAL(cuMemRetainAllocationHandle)(handle, address);
  if (result == ABI_SUCCESS) vgpu__vmm_retained(*handle);
  vgpu__unlock(&vgpu__vmm_call);
  return result;
}

abi_result cuMemRelease(uint64_t handle) {
  CHANGING();
  struct vgpu_release release;
  vgpu__lock(&vgpu__vmm_call);
  vgpu__vmm_releasing(handle, &release);
  abi_result result = REAL(cuMemRelease)(handle);
  vgpu__vmm_released(&release, result == ABI_SUCCESS);
  vgpu__unlock(&vgpu__vmm_call);
  return result;
}

abi_result cuMemMap(CUdeviceptr pointer, size_t size, size_t offset, uint64_t handle, unsigned long long flags) {
  vgpu__lock(&vgpu__vmm_call);
  abi_result result = REAL(cuMemMap)(pointer, size, offset, handle, flags);
  if (result == ABI_SUCCESS) vgpu__vmm_mapped(handle, pointer, size);
  vgpu__unlock(&vgpu__vmm_call);
  return result;
}

abi_result cuMemUnmap(CUdeviceptr pointer, size_t size) {
  CHANGING();
  struct vgpu_sums sums = {.bytes = {{0}}};
  vgpu__lock(&vgpu__vmm_call);
  abi_result result = REAL(cuMemUnmap)(pointer, size);
  if (result == ABI_SUCCESS) vgpu__vmm_unmapped(pointer, size, &sums);
  vgpu__unlock(&vgpu__vmm_call);
  if (result == ABI_SUCCESS) vgpu__give_back_all(&sums);
  return result;
}

/* ---- what a program sees ---- */

static int vgpu__limited(const struct vgpu_tenant *tenant, uint64_t *quota) {
  *quota = LOAD_ACQUIRE(tenant->grant->memory_limit);
  return LOAD_ACQUIRE(tenant->mode) == VGPU_ATTACHED;
}

/* On the GPU of the current context. */
static uint64_t vgpu__free_of(struct vgpu_tenant *tenant, uint64_t quota, uint64_t really_free) {
  vgpu__pools_settle();
  if (UNLIKELY(LOAD(vgpu__measure_pending))) vgpu__measure_settle();
  int gpu = vgpu__gpu_here(tenant);
  uint64_t used = gpu < 0 ? quota : vgpu__lease_bytes(tenant, gpu);
  uint64_t left = used < quota ? quota - used : 0;
  return left < really_free ? left : really_free;
}

abi_result cuMemGetInfo_v2(size_t *free, size_t *total) {
  size_t real_free = 0, real_total = 0;
  struct vgpu_tenant *tenant = vgpu_tenant_current();
  uint64_t quota;
  if (!vgpu__limited(tenant, &quota)) return REAL(cuMemGetInfo_v2)(free, total);
  abi_result result = REAL(cuMemGetInfo_v2)(free == NULL ? NULL : &real_free, total == NULL ? NULL : &real_total);
  if (result != ABI_SUCCESS) return result;
  if (free != NULL) *free = vgpu__free_of(tenant, quota, real_free);
  if (total != NULL) *total = quota < real_total ? quota : real_total;
  return result;
}

static unsigned vgpu__narrow(uint64_t bytes) { return bytes > UINT32_MAX ? UINT32_MAX : (unsigned)bytes; }

abi_result cuMemGetInfo(unsigned *free, unsigned *total) {
  unsigned real_free = 0, real_total = 0;
  struct vgpu_tenant *tenant = vgpu_tenant_current();
  uint64_t quota;
  if (!vgpu__limited(tenant, &quota)) return REAL(cuMemGetInfo)(free, total);
  abi_result result = REAL(cuMemGetInfo)(free == NULL ? NULL : &real_free, total == NULL ? NULL : &real_total);
  if (result != ABI_SUCCESS) return result;
  if (free != NULL) *free = vgpu__narrow(vgpu__free_of(tenant, quota, real_free));
  if (total != NULL) *total = quota < real_total ? vgpu__narrow(quota) : real_total;
  return result;
}

abi_result cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
  struct vgpu_tenant *tenant = vgpu_tenant_current();
  uint64_t quota;
  abi_result result = REAL(cuDeviceTotalMem_v2)(bytes, device);
  if (result == ABI_SUCCESS && bytes != NULL && vgpu__limited(tenant, &quota) && *bytes > quota) *bytes = quota;
  return result;
}

abi_result cuDeviceTotalMem(unsigned *bytes, CUdevice device) {
  struct vgpu_tenant *tenant = vgpu_tenant_current();
  uint64_t quota;
  abi_result result = REAL(cuDeviceTotalMem)(bytes, device);
  if (result == ABI_SUCCESS && bytes != NULL && vgpu__limited(tenant, &quota) && *bytes > quota)
    *bytes = vgpu__narrow(quota);
  return result;
}

/* ---- pinned host memory: counted, not limited; it ends with its context ---- */

static void vgpu__count_host(const struct vgpu_tenant *tenant, uint64_t bytes, int sign) {
  uint64_t whole = (bytes + SHM_MEMORY_UNIT - 1) / SHM_MEMORY_UNIT * SHM_MEMORY_UNIT;
  ADD(tenant->slot->host_bytes, sign < 0 ? -whole : whole);
}

static abi_result vgpu__pinned(abi_result result, void **pointer, uint64_t bytes) {
  const struct vgpu_tenant *tenant = vgpu_tenant_current();
  if (result == ABI_SUCCESS && pointer != NULL && LOAD(tenant->mode) == VGPU_ATTACHED) {
    int failed = vgpu__table_put(tenant, 0, KIND_HOST, (uint64_t)(uintptr_t)*pointer, bytes, vgpu__context_number());
    if (!failed) vgpu__count_host(tenant, bytes, 1);
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

static abi_result vgpu__unpin(void *pointer, abi_result (*unpin)(void *)) {
  struct vgpu_record record;
  int known = vgpu__table_take(KIND_HOST, (uint64_t)(uintptr_t)pointer, &record);
  abi_result result = unpin(pointer);
  if (!known) return result;
  if (result == ABI_SUCCESS) vgpu__count_host(record.tenant, record.bytes, -1);
  else vgpu__table_put(record.tenant, 0, KIND_HOST, (uint64_t)(uintptr_t)pointer, record.bytes, record.context);
  return result;
}

abi_result cuMemFreeHost(void *pointer) { return vgpu__unpin(pointer, REAL(cuMemFreeHost)); }

/* Memory of the program itself, pinned by the driver. */
abi_result cuMemHostRegister(void *pointer, size_t bytes, unsigned flags) {
  void *at = pointer;
  return vgpu__pinned(REAL(cuMemHostRegister)(pointer, bytes, flags), &at, bytes);
}

abi_result cuMemHostRegister_v2(void *pointer, size_t bytes, unsigned flags) {
  void *at = pointer;
  return vgpu__pinned(REAL(cuMemHostRegister_v2)(pointer, bytes, flags), &at, bytes);
}

abi_result cuMemHostUnregister(void *pointer) { return vgpu__unpin(pointer, REAL(cuMemHostUnregister)); }
