/* Contexts that a program makes itself, and changes of the current context. */
#include "../lane/lane.h"

/* After the call that made it. */
static abi_result vgpu__made(struct vgpu_tenant *tenant, int gpu, abi_result result, CUcontext *context,
                             CUcontext before) {
  uint64_t bytes = tenant->context_bytes;
  int fits = 1;
  if (result == ABI_SUCCESS && context != NULL && LOAD(vgpu__attached)) {
    /* Without an entry, its work could not be measured, nor its memory be given back with it. */
    fits = vgpu__measure_context(tenant, gpu, &bytes) == 0 && vgpu__context_of(*context) != NULL;
    if (!fits && REAL(cuCtxDestroy_v2)(*context) == ABI_SUCCESS) {
      *context = before;
      result = ABI_OUT_OF_MEMORY;
    } else {
      vgpu__table_put(tenant, gpu, KIND_CONTEXT, (uint64_t)(uintptr_t)*context, bytes, 0);
      vgpu__context_of(*context); /* measure.c looks for contexts there */
    }
    vgpu__measure_soon();
  }
  if (result != ABI_SUCCESS) vgpu__give_back(tenant, gpu, bytes);
  vgpu__unlock(&vgpu__made_lock);
  vgpu__load_ends();
  if (!fits) vgpu__measure_settle();
  return vgpu__switched(result);
}

#define MAKE_CONTEXT(call)                                                       \
  CHANGING();                                                                    \
  struct vgpu_tenant *tenant = vgpu_tenant_current();                            \
  CUcontext before = context == NULL ? NULL : *context;                          \
  int gpu = vgpu__gpu_of(tenant, device);                                        \
  if (vgpu__context_charge_wait(tenant, gpu) != 0) return vgpu__refusal(tenant); \
  vgpu__lock(&vgpu__made_lock);                                                  \
  vgpu__load_begins();                                                           \
  return vgpu__made(tenant, gpu, call, context, before)

abi_result cuCtxCreate(CUcontext *context, unsigned flags, CUdevice device) {
  MAKE_CONTEXT(REAL(cuCtxCreate)(context, flags, device));
}

abi_result cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device) {
  MAKE_CONTEXT(REAL(cuCtxCreate_v2)(context, flags, device));
}

abi_result cuCtxCreate_v3(CUcontext *context, void *params, int param_count, unsigned flags, CUdevice device) {
  MAKE_CONTEXT(REAL(cuCtxCreate_v3)(context, params, param_count, flags, device));
}

abi_result cuCtxCreate_v4(CUcontext *context, void *params, unsigned flags, CUdevice device) {
  MAKE_CONTEXT(REAL(cuCtxCreate_v4)(context, params, flags, device));
}

#define MAKE_GL_CONTEXT(name)                                            \
  abi_result name(CUcontext *context, unsigned flags, CUdevice device) { \
    MAKE_CONTEXT(REAL(name)(context, flags, device));                    \
  }
#define MAKE_VDPAU_CONTEXT(name)                                                                     \
  abi_result name(CUcontext *context, unsigned flags, CUdevice device, uint32_t vdpau, void *find) { \
    MAKE_CONTEXT(REAL(name)(context, flags, device, vdpau, find));                                   \
  }
MAKE_GL_CONTEXT(cuGLCtxCreate)
MAKE_GL_CONTEXT(cuGLCtxCreate_v2)
MAKE_VDPAU_CONTEXT(cuVDPAUCtxCreate)
MAKE_VDPAU_CONTEXT(cuVDPAUCtxCreate_v2)

static abi_result vgpu__destroy(abi_result (*destroy)(CUcontext), CUcontext context) {
  CHANGING();
  vgpu__context_going(context);
  vgpu__lock(&vgpu__made_lock);
  abi_result result = destroy(context);
  if (result == ABI_SUCCESS) {
    struct vgpu_sums sums = {.bytes = {{0}}};
    struct vgpu_record record;
    if (vgpu__table_take(KIND_CONTEXT, (uint64_t)(uintptr_t)context, &record)) {
      sums.bytes[record.tenant->index][record.gpu] += record.bytes;
    }
    vgpu__context_gone(context, &sums);
    vgpu__measure_soon();
  }
  vgpu__unlock(&vgpu__made_lock);
  vgpu__pools_settle(); /* the driver may have waited for all work */
  return vgpu__switched(result);
}

abi_result cuCtxDestroy(CUcontext context) { return vgpu__destroy(REAL(cuCtxDestroy), context); }

abi_result cuCtxDestroy_v2(CUcontext context) { return vgpu__destroy(REAL(cuCtxDestroy_v2), context); }

abi_result cuCtxAttach(CUcontext *context, unsigned flags) {
  vgpu__lock(&vgpu__made_lock);
  abi_result result = REAL(cuCtxAttach)(context, flags);
  struct vgpu_context *entry = result == ABI_SUCCESS && LOAD(vgpu__attached) ? vgpu__context_of(*context) : NULL;
  if (entry != NULL) entry->attached++;
  vgpu__unlock(&vgpu__made_lock);
  return result;
}

/* The last detach destroys the context. */
abi_result cuCtxDetach(CUcontext context) {
  abi_result result = ABI_SUCCESS;
  vgpu__lock(&vgpu__made_lock);
  struct vgpu_context *entry = vgpu__context_known(context);
  int last = entry == NULL || entry->attached == 0;
  if (!last) result = REAL(cuCtxDetach)(context);
  if (!last && result == ABI_SUCCESS) entry->attached--;
  vgpu__unlock(&vgpu__made_lock);
  return last ? vgpu__destroy(REAL(cuCtxDetach), context) : result;
}

abi_result cuCtxSetCurrent(CUcontext context) { return vgpu__switched(REAL(cuCtxSetCurrent)(context)); }

abi_result cuCtxPushCurrent(CUcontext context) { return vgpu__switched(REAL(cuCtxPushCurrent)(context)); }

abi_result cuCtxPushCurrent_v2(CUcontext context) { return vgpu__switched(REAL(cuCtxPushCurrent_v2)(context)); }

abi_result cuCtxPopCurrent(CUcontext *context) { return vgpu__switched(REAL(cuCtxPopCurrent)(context)); }

abi_result cuCtxPopCurrent_v2(CUcontext *context) { return vgpu__switched(REAL(cuCtxPopCurrent_v2)(context)); }
