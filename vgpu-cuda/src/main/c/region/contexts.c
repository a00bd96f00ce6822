/* The driver's contexts by handle, entering and leaving one for the hook's own calls, and the hook's events in each. */
#include "region.h"

struct vgpu_context vgpu__contexts[VGPU_CONTEXTS];
static struct vgpu_lock contexts_lock;
static int used, full;

int vgpu__contexts_used(void) { return LOAD_ACQUIRE(used); }

struct vgpu_context *vgpu__context_known(CUcontext handle) {
  for (int i = 0; handle != NULL && i < LOAD_ACQUIRE(used); i++) {
    if (LOAD_ACQUIRE(vgpu__contexts[i].handle) == handle) return &vgpu__contexts[i];
  }
  return NULL;
}

struct vgpu_context *vgpu__context_of(CUcontext handle) {
  struct vgpu_context *found = vgpu__context_known(handle);
  if (LIKELY(found != NULL)) return found;
  vgpu__lock(&contexts_lock);
  found = vgpu__context_known(handle);
  for (int i = 0; i < used && found == NULL; i++) {
    if (vgpu__contexts[i].handle == NULL) found = &vgpu__contexts[i];
  }
  if (found == NULL && used < VGPU_CONTEXTS) {
    found = &vgpu__contexts[used];
    STORE_RELEASE(used, used + 1);
  }
  if (found != NULL) STORE_RELEASE(found->handle, handle);
  vgpu__unlock(&contexts_lock);
  if (found == NULL && !__atomic_exchange_n(&full, 1, __ATOMIC_RELAXED)) {
    vgpu__log("there are more than %d contexts: work in the others is not measured", (int)VGPU_CONTEXTS);
  }
  return found;
}

/* A destroyed context stays current to other threads. It must not take an entry. */
struct vgpu_context *vgpu__context_current(void) {
  CUcontext handle = NULL;
  CUdevice device;
  if (REAL(cuCtxGetCurrent)(&handle) != ABI_SUCCESS || handle == NULL) return NULL;
  struct vgpu_context *known = vgpu__context_known(handle);
  if (known != NULL) return known;
  abi_result result = REAL(cuCtxGetDevice)(&device);
  return result == ABI_INVALID_CONTEXT || result == ABI_CONTEXT_IS_DESTROYED ? NULL : vgpu__context_of(handle);
}

/*
 * A green context may be current to one thread at a time, and that thread is the program's. So the hook uses the
 * primary context, to which the green context's events belong.
 */
static CUcontext vgpu__handle_for_us(const struct vgpu_context *context) {
  uint32_t alias = LOAD(context->alias);
  CUcontext whole = alias == 0 ? NULL : LOAD_ACQUIRE(vgpu__contexts[alias - 1].handle);
  return whole != NULL ? whole : context->handle;
}

int vgpu__context_enter(const struct vgpu_context *context) {
  int entered = 0;
  CUcontext handle = NULL, ours = vgpu__handle_for_us(context);
  if (REAL(cuCtxGetCurrent)(&handle) != ABI_SUCCESS || (handle != context->handle && handle != ours)) {
    entered = ours != NULL && REAL(cuCtxPushCurrent_v2)(ours) == ABI_SUCCESS;
  }
  /* unconditional: a capture may begin between a check and the call */
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

CUevent vgpu__event_take(struct vgpu_context *context) {
  CUevent event = NULL;
  vgpu__lock(&context->lock);
  if (context->spares > 0) event = context->spare[--context->spares];
  vgpu__unlock(&context->lock);
  if (event == NULL && REAL(cuEventCreate)(&event, 0) != ABI_SUCCESS) return NULL;
  return event;
}

void vgpu__event_return(struct vgpu_context *context, CUevent event) {
  if (event == NULL) return;
  vgpu__lock(&context->lock);
  int kept = context->handle != NULL && context->spares < VGPU_SPARE_EVENTS;
  if (kept) context->spare[context->spares++] = event;
  vgpu__unlock(&context->lock);
  if (!kept) REAL(cuEventDestroy_v2)(event);
}

/*
 * Asks the driver instead of counting: captures also begin and end by functions that the hook does not handle, by
 * errors, and with their stream. An error counts as "capturing", so that the hook records no event.
 */
int vgpu__is_capturing(CUstream stream) {
  int status = ABI_CAPTURE_NONE;
  abi_result result = REAL(cuStreamIsCapturing)(stream, &status);
  return result == ABI_NOT_SUPPORTED ? 0 : result != ABI_SUCCESS || status != ABI_CAPTURE_NONE;
}

void vgpu__contexts_forget(void) {
  for (int i = 0; i < used; i++) vgpu__contexts[i] = (struct vgpu_context){.handle = NULL};
  used = full = 0;
  contexts_lock.word = 0;
}
