/*
 * Primary contexts, made by the first retain and destroyed by the last release or a reset; and green contexts, each of
 * which retains the primary one.
 */
#include "../lane/lane.h"

/*
 * One call at a time per device: no other thread may get the context before its charge is decided. The driver makes no
 * callbacks from these calls.
 */
static struct vgpu_primary *vgpu__primary(CUdevice device) {
  if (device < 0 || device >= VGPU_DEVICES || !LOAD_ACQUIRE(vgpu__attached)) return NULL;
  return &vgpu__primaries[device];
}

static void vgpu__uncharge(struct vgpu_primary *primary, struct vgpu_sums *sums) {
  const struct vgpu_tenant *tenant = primary->charged;
  if (tenant != NULL && primary->gpu >= 0) sums->bytes[tenant->index][primary->gpu] += primary->bytes;
  STORE_RELEASE(primary->charged, NULL);
  STORE(primary->bytes, 0);
  vgpu__measure_soon();
}

/* After the context was made. 0; -1: it holds more than there is room for, and must be undone. Its lock held. */
static int vgpu__primary_charge(struct vgpu_primary *primary, struct vgpu_tenant *tenant, int gpu) {
  uint64_t bytes = tenant->context_bytes;
  int fits = vgpu__measure_context(tenant, gpu, &bytes);
  STORE(primary->bytes, bytes);
  STORE(primary->gpu, gpu);
  STORE_RELEASE(primary->charged, tenant);
  vgpu__measure_soon();
  return fits;
}

/* Drops one retain; the last one destroys the context. Its lock held. */
static abi_result vgpu__primary_drop(struct vgpu_primary *primary, abi_result (*release)(CUdevice), CUdevice device) {
  int last = primary->retained == 1;
  if (last) vgpu__context_going(primary->handle);
  abi_result result = release(device);
  if (result == ABI_SUCCESS && primary->retained > 0) primary->retained--;
  if (result == ABI_SUCCESS && last) {
    struct vgpu_sums sums = {.bytes = {{0}}};
    vgpu__uncharge(primary, &sums);
    vgpu__context_gone(primary->handle, &sums);
  }
  return result;
}

abi_result cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  struct vgpu_primary *primary = vgpu__primary(device);
  if (primary == NULL) return REAL(cuDevicePrimaryCtxRetain)(context, device);
  CHANGING();
  vgpu__lock(&primary->lock);
  struct vgpu_tenant *tenant = vgpu_tenant_current();
  CUcontext before = context == NULL ? NULL : *context;
  int fresh, fits = 1, gpu = vgpu__gpu_of(tenant, device);
  if (vgpu__primary_charge_wait(primary, tenant, gpu, &fresh) != 0) {
    vgpu__unlock(&primary->lock);
    vgpu__log("the quota has no room for a context of %llu bytes", (unsigned long long)tenant->context_bytes);
    return vgpu__refusal(tenant);
  }
  if (fresh) vgpu__load_begins();
  abi_result result = REAL(cuDevicePrimaryCtxRetain)(context, device);
  if (result == ABI_SUCCESS) {
    if (context != NULL) STORE_RELEASE(primary->handle, *context);
    primary->retained++;
    if (fresh)
      fits = vgpu__primary_charge(primary, tenant, gpu) == 0 && (context == NULL || vgpu__context_of(*context) != NULL);
    if (!fits && vgpu__primary_drop(primary, REAL(cuDevicePrimaryCtxRelease_v2), device) == ABI_SUCCESS) {
      if (context != NULL) *context = before;
      result = ABI_OUT_OF_MEMORY;
    }
  } else if (fresh) {
    vgpu__give_back(tenant, gpu, tenant->context_bytes);
  }
  if (fresh) vgpu__load_ends();
  vgpu__unlock(&primary->lock);
  if (!fits) vgpu__measure_settle();
  return result;
}

static abi_result vgpu__release(abi_result (*release)(CUdevice), CUdevice device) {
  struct vgpu_primary *primary = vgpu__primary(device);
  if (primary == NULL) return release(device);
  CHANGING();
  vgpu__lock(&primary->lock);
  int last = primary->retained == 1;
  abi_result result = vgpu__primary_drop(primary, release, device);
  vgpu__unlock(&primary->lock);
  return last ? vgpu__switched(result) : result;
}

abi_result cuDevicePrimaryCtxRelease(CUdevice device) { return vgpu__release(REAL(cuDevicePrimaryCtxRelease), device); }

abi_result cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return vgpu__release(REAL(cuDevicePrimaryCtxRelease_v2), device);
}

static abi_result vgpu__reset(abi_result (*reset)(CUdevice), CUdevice device) {
  struct vgpu_primary *primary = vgpu__primary(device);
  if (primary == NULL) return reset(device);
  CHANGING();
  vgpu__lock(&primary->lock);
  vgpu__context_going(primary->handle);
  abi_result result = reset(device);
  if (result == ABI_SUCCESS && primary->handle != NULL) {
    struct vgpu_sums sums = {.bytes = {{0}}};
    vgpu__uncharge(primary, &sums);
    vgpu__context_gone(primary->handle, &sums);
    vgpu__pools_reset(device);
    vgpu__graph_memory_reset(device);
  }
  vgpu__unlock(&primary->lock);
  return vgpu__switched(result);
}

abi_result cuDevicePrimaryCtxReset(CUdevice device) { return vgpu__reset(REAL(cuDevicePrimaryCtxReset), device); }

abi_result cuDevicePrimaryCtxReset_v2(CUdevice device) { return vgpu__reset(REAL(cuDevicePrimaryCtxReset_v2), device); }

/* ---- green contexts: each retains the primary context and shares its memory ---- */

/* The green context's CUcontext. Its allocations are recorded under the primary context, with which they are freed. */
static CUcontext vgpu__green_view(void *green, const struct vgpu_primary *primary) {
  CUcontext view = NULL;
  if (REAL(cuCtxFromGreenCtx)(&view, green) != ABI_SUCCESS || view == NULL) return NULL;
  struct vgpu_context *context = vgpu__context_of(view),
                      *whole = primary->handle == NULL ? NULL : vgpu__context_of(primary->handle);
  if (context != NULL && whole != NULL) STORE(context->alias, (uint32_t)(whole - vgpu__contexts) + 1);
  return view;
}

static abi_result vgpu__green_destroy(struct vgpu_primary *primary, void *green) {
  CUcontext view = vgpu__green_view(green, primary);
  struct vgpu_record record;
  vgpu__context_going(view);
  int known = vgpu__table_take(KIND_GREEN, (uint64_t)(uintptr_t)green, &record);
  int last = known && primary->retained == 1;
  if (last) vgpu__context_going(primary->handle);
  abi_result result = REAL(cuGreenCtxDestroy)(green);
  if (result != ABI_SUCCESS) {
    if (known) vgpu__table_put(record.tenant, 0, KIND_GREEN, (uint64_t)(uintptr_t)green, record.bytes, 0);
    return result;
  }
  struct vgpu_sums sums = {.bytes = {{0}}};
  if (known && primary->retained > 0) primary->retained--;
  vgpu__context_gone(view, &sums);
  if (last) {
    sums = (struct vgpu_sums){.bytes = {{0}}};
    vgpu__uncharge(primary, &sums);
    vgpu__context_gone(primary->handle, &sums);
  }
  return vgpu__switched(result);
}

/* A green context was made, which counts as a retain. Primary context's lock held. */
static int vgpu__green_made(struct vgpu_primary *primary, struct vgpu_tenant *tenant, void *green, CUdevice device) {
  /* get the primary context's handle, if no call has asked for it yet */
  CUcontext handle = NULL;
  if (primary->handle == NULL && REAL(cuDevicePrimaryCtxRetain)(&handle, device) == ABI_SUCCESS) {
    STORE_RELEASE(primary->handle, handle);
    REAL(cuDevicePrimaryCtxRelease_v2)(device);
  }
  primary->retained++;
  int fits = primary->charged != NULL ? 0 : vgpu__primary_charge(primary, tenant, vgpu__gpu_of(tenant, device));
  /* the byte count of the record holds the device number + 1 */
  vgpu__table_put(tenant, 0, KIND_GREEN, (uint64_t)(uintptr_t)green, ((uint64_t)device + 1) * SHM_MEMORY_UNIT, 0);
  CUcontext view = vgpu__green_view(green, primary);
  return view == NULL || vgpu__context_known(view) != NULL ? fits : -1;
}

abi_result cuGreenCtxCreate(void **green, void *descriptor, CUdevice device, unsigned flags) {
  struct vgpu_primary *primary = vgpu__primary(device);
  struct vgpu_tenant *tenant = vgpu_tenant_current();
  if (primary == NULL) return REAL(cuGreenCtxCreate)(green, descriptor, device, flags);
  CHANGING();
  if (tenant == &vgpu__ended) return ABI_NOT_PERMITTED;
  vgpu__lock(&primary->lock);
  int fresh, fits = 1, gpu = vgpu__gpu_of(tenant, device);
  if (vgpu__primary_charge_wait(primary, tenant, gpu, &fresh) != 0) {
    vgpu__unlock(&primary->lock);
    return vgpu__refusal(tenant);
  }
  vgpu__load_begins();
  abi_result result = REAL(cuGreenCtxCreate)(green, descriptor, device, flags);
  if (result != ABI_SUCCESS) {
    if (fresh) vgpu__give_back(tenant, gpu, tenant->context_bytes);
  } else {
    fits = vgpu__green_made(primary, tenant, *green, device) == 0;
    if (!fits && vgpu__green_destroy(primary, *green) == ABI_SUCCESS) result = ABI_OUT_OF_MEMORY;
  }
  vgpu__load_ends();
  vgpu__unlock(&primary->lock);
  if (!fits) vgpu__measure_settle();
  return result;
}

abi_result cuGreenCtxDestroy(void *green) {
  struct vgpu_record record;
  if (!vgpu__table_find(KIND_GREEN, (uint64_t)(uintptr_t)green, &record)) return REAL(cuGreenCtxDestroy)(green);
  CHANGING();
  struct vgpu_primary *primary = &vgpu__primaries[record.bytes / SHM_MEMORY_UNIT - 1];
  vgpu__lock(&primary->lock);
  abi_result result = vgpu__green_destroy(primary, green);
  vgpu__unlock(&primary->lock);
  return result;
}
