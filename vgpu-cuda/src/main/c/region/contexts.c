/* The driver's contexts by handle, entering and leaving one for the hook's own calls, and the hook's events in each. */
#include "region.h"

struct vgpu_context vgpu__contexts[VGPU_CONTEXTS];
static struct vgpu_lock contexts_lock;

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
  for (int i = 0; i < VGPU_CONTEXTS; i++) vgpu__contexts[i] = (struct vgpu_context){.handle = NULL};
  contexts_lock.word = 0;
}
