/* Contexts: which is current, those that a program makes for itself, and what goes with one. */
#include "changing.h"
#include "context.h"

struct vgpu_context vgpu__contexts[VGPU_CONTEXTS];
static struct vgpu_lock contexts_lock;
static uint32_t epoch = 1; /* changes when a context goes */

/* The calling thread's current context as last seen; 0: ask the driver. */
static __thread struct {
  CUcontext handle;
  uint32_t epoch;
  uint32_t number;
} current __attribute__((tls_model("initial-exec")));

struct vgpu_context *vgpu__context_of(CUcontext handle) {
  struct vgpu_context *free_one = NULL;
  for (int i = 0; i < VGPU_CONTEXTS; i++) {
    if (LOAD_ACQUIRE(vgpu__contexts[i].handle) == handle) return &vgpu__contexts[i];
  }
  vgpu__lock(&contexts_lock);
  for (int i = VGPU_CONTEXTS - 1; i >= 0; i--) {
    if (vgpu__contexts[i].handle == handle) {
      vgpu__unlock(&contexts_lock);
      return &vgpu__contexts[i];
    }
    if (vgpu__contexts[i].handle == NULL) free_one = &vgpu__contexts[i];
  }
  if (free_one != NULL) STORE_RELEASE(free_one->handle, handle);
  vgpu__unlock(&contexts_lock);
  return free_one;
}

unsigned vgpu__context_number(void) {
  uint32_t now = LOAD_ACQUIRE(epoch);
  if (LIKELY(current.epoch == now && current.number != 0)) return current.number;
  CUcontext handle = NULL;
  if (REAL(cuCtxGetCurrent)(&handle) != ABI_SUCCESS || handle == NULL) return 0;
  struct vgpu_context *context = vgpu__context_of(handle);
  if (current.epoch != now || current.handle != handle) vgpu__entries_forget();
  current.handle = handle;
  current.epoch = now;
  uint32_t alias = context == NULL ? 0 : LOAD(context->alias);
  current.number = context == NULL ? 0 : alias != 0 ? alias : (uint32_t)(context - vgpu__contexts) + 1;
  return current.number;
}

int vgpu__context_enter(const struct vgpu_context *context) {
  int entered = 0;
  CUcontext handle = NULL;
  if (REAL(cuCtxGetCurrent)(&handle) != ABI_SUCCESS || handle != context->handle) {
    entered = context->handle != NULL && REAL(cuCtxPushCurrent_v2)(context->handle) == ABI_SUCCESS;
  }
  /* Always: a capture may begin between a look and the call. */
  int mode = ABI_CAPTURE_MODE_RELAXED;
  if (REAL(cuThreadExchangeStreamCaptureMode)(&mode) == ABI_SUCCESS) entered |= (mode + 1) << 1;
  return entered;
}

void vgpu__context_leave(int entered) {
  if (LIKELY(entered >> 1 != 0)) {
    int mode = (entered >> 1) - 1;
    REAL(cuThreadExchangeStreamCaptureMode)(&mode);
  }
  if ((entered & 1) != 0) {
    CUcontext ours;
    REAL(cuCtxPopCurrent_v2)(&ours);
  }
}

abi_result vgpu__switched(abi_result result) {
  CUcontext handle = NULL;
  uint32_t now = LOAD_ACQUIRE(epoch);
  if (REAL(cuCtxGetCurrent)(&handle) == ABI_SUCCESS && handle == current.handle && current.epoch == now) return result;
  current.handle = handle;
  current.epoch = now;
  current.number = 0;
  vgpu__entries_forget();
  return result;
}

void vgpu__context_going(CUcontext handle) {
  if (handle == NULL || !LOAD_ACQUIRE(vgpu__attached)) return;
  vgpu__pools_forget_stream(NULL, handle);
  vgpu__drop_context(handle);
  vgpu__later_drop(vgpu__context_of(handle));
}

void vgpu__context_gone(CUcontext handle, struct vgpu_sums *sums) {
  for (unsigned i = 0; handle != NULL && i < VGPU_CONTEXTS; i++) {
    struct vgpu_context *context = &vgpu__contexts[i];
    if (LOAD_ACQUIRE(context->handle) != handle) continue;
    vgpu__table_take_context(i + 1, sums);
    vgpu__lock(&context->clock_lock);
    vgpu__lock(&context->lock);
    context->spares = 0;
    context->base = NULL;
    STORE(context->alias, 0);
    STORE_RELEASE(context->handle, NULL);
    vgpu__unlock(&context->lock);
    vgpu__unlock(&context->clock_lock);
  }
  __atomic_fetch_add(&epoch, 1, __ATOMIC_RELEASE);
  vgpu__movable_context_gone(handle, sums);
  vgpu__give_back_all(sums);
}

struct vgpu_lock vgpu__made_lock;

static abi_result vgpu__made(struct vgpu_tenant *tenant, abi_result result, CUcontext *context, CUcontext before) {
  uint64_t bytes = tenant->context_bytes;
  int fits = 1;
  if (result == ABI_SUCCESS && context != NULL && LOAD(vgpu__attached)) {
    fits = vgpu__measure_context(tenant, &bytes) == 0;
    if (!fits && REAL(cuCtxDestroy_v2)(*context) == ABI_SUCCESS) {
      *context = before;
      result = ABI_OUT_OF_MEMORY;
    } else {
      vgpu__table_put(tenant, KIND_CONTEXT, (uint64_t)(uintptr_t)*context, bytes, 0);
    }
    vgpu__measure_soon();
  }
  if (result != ABI_SUCCESS) vgpu__give_back(tenant, bytes);
  vgpu__unlock(&vgpu__made_lock);
  if (!fits) vgpu__measure_settle();
  return vgpu__switched(result);
}

#define MAKE_CONTEXT(call)                                                   \
  CHANGING();                                                                \
  struct vgpu_tenant *tenant = vgpu_tenant_current();                        \
  CUcontext before = context == NULL ? NULL : *context;                      \
  if (vgpu__context_charge_wait(tenant) != 0) return vgpu__refusal(tenant);  \
  vgpu__lock(&vgpu__made_lock);                                                    \
  return vgpu__made(tenant, call, context, before)

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

#define MAKE_GL_CONTEXT(name) \
  abi_result name(CUcontext *context, unsigned flags, CUdevice device) { MAKE_CONTEXT(REAL(name)(context, flags, device)); }
#define MAKE_VDPAU_CONTEXT(name)                                                                                   \
  abi_result name(CUcontext *context, unsigned flags, CUdevice device, uint32_t vdpau, void *find) {               \
    MAKE_CONTEXT(REAL(name)(context, flags, device, vdpau, find));                                                 \
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
    struct vgpu_sums sums = {{0}};
    struct vgpu_record record;
    if (vgpu__table_take(KIND_CONTEXT, (uint64_t)(uintptr_t)context, &record)) {
      sums.bytes[record.tenant->index] += record.bytes;
    }
    vgpu__context_gone(context, &sums);
    vgpu__measure_soon();
  }
  vgpu__unlock(&vgpu__made_lock);
  return vgpu__switched(result);
}

abi_result cuCtxDestroy(CUcontext context) { return vgpu__destroy(REAL(cuCtxDestroy), context); }

abi_result cuCtxDestroy_v2(CUcontext context) { return vgpu__destroy(REAL(cuCtxDestroy_v2), context); }

abi_result cuCtxSetCurrent(CUcontext context) { return vgpu__switched(REAL(cuCtxSetCurrent)(context)); }

abi_result cuCtxPushCurrent(CUcontext context) { return vgpu__switched(REAL(cuCtxPushCurrent)(context)); }

abi_result cuCtxPushCurrent_v2(CUcontext context) { return vgpu__switched(REAL(cuCtxPushCurrent_v2)(context)); }

abi_result cuCtxPopCurrent(CUcontext *context) { return vgpu__switched(REAL(cuCtxPopCurrent)(context)); }

abi_result cuCtxPopCurrent_v2(CUcontext *context) { return vgpu__switched(REAL(cuCtxPopCurrent_v2)(context)); }

void vgpu__context_forget(void) {
  for (int i = 0; i < VGPU_CONTEXTS; i++) vgpu__contexts[i] = (struct vgpu_context){.handle = NULL};
  for (int i = 0; i < VGPU_DEVICES; i++) vgpu__primaries[i] = (struct vgpu_primary){.handle = NULL};
  contexts_lock.word = 0;
  vgpu__made_lock.word = 0;
  current.epoch = 0;
}
