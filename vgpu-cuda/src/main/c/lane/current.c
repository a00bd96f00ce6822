/* The current context of a thread, and what ends with a context. */
#include "lane.h"

static uint32_t epoch = 1; /* changes when a context is destroyed */

/* The calling thread's current context when last seen; number 0: ask the driver. */
static __thread struct {
  CUcontext handle;
  uint32_t epoch;
  uint32_t number;
} current __attribute__((tls_model("initial-exec")));

struct vgpu_context *vgpu__context_for(CUstream stream) {
  CUcontext handle = NULL;
  if (!vgpu__is_special(stream)) REAL(cuStreamGetCtx)(stream, &handle);
  return handle == NULL ? vgpu__context_current() : vgpu__context_of(handle);
}

unsigned vgpu__context_number(void) {
  uint32_t now = LOAD_ACQUIRE(epoch);
  if (LIKELY(current.epoch == now && current.number != 0)) return current.number;
  CUcontext handle = NULL;
  if (REAL(cuCtxGetCurrent)(&handle) != ABI_SUCCESS || handle == NULL) return 0;
  struct vgpu_context *context = vgpu__context_current();
  if (context != NULL && UNLIKELY(!LOAD(context->charged))) vgpu__context_used(context);
  if (current.epoch != now || current.handle != handle) vgpu__entries_forget();
  current.handle = handle;
  current.epoch = now;
  uint32_t alias = context == NULL ? 0 : LOAD(context->alias);
  current.number = context == NULL ? 0 : alias != 0 ? alias : (uint32_t)(context - vgpu__contexts) + 1;
  return current.number;
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
  const struct vgpu_context *context = vgpu__context_known(handle);
  if (context != NULL) vgpu__later_drop(context);
}

void vgpu__context_gone(CUcontext handle, struct vgpu_sums *sums) {
  struct vgpu_context *context = vgpu__context_known(handle);
  if (context != NULL) {
    vgpu__table_take_context((unsigned)(context - vgpu__contexts) + 1, sums);
    vgpu__lock(&context->clock_lock);
    vgpu__lock(&context->lock);
    context->spares = 0;
    context->base = NULL;
    STORE(context->based_ns, 0);
    STORE(context->blocking_ns, 0);
    STORE(context->alias, 0);
    STORE(context->charged, 0);
    context->attached = 0;
    STORE_RELEASE(context->handle, NULL);
    vgpu__unlock(&context->lock);
    vgpu__unlock(&context->clock_lock);
  }
  __atomic_fetch_add(&epoch, 1, __ATOMIC_RELEASE);
  vgpu__movable_context_gone(handle, sums);
  vgpu__give_back_all(sums);
}

void vgpu__current_forget(void) { current.epoch = 0; }
