/*
 * Frees in stream order of memory that the driver gives back as soon as the stream reaches the free: plain allocations,
 * and those of destroyed pools. Until then the memory is on the GPU, and charged. The hook records an event behind the
 * free, and every wait checks it.
 *
 * The frees of a stream share two events: the older stays where it is, and the younger is recorded again behind each
 * free. So the charge of a stream that is never idle follows too, by what was freed in two such rounds at most.
 */
#include "memory.h"

enum { FREES = 2048 };

struct later {
  CUevent event; /* NULL: unused entry */
  struct vgpu_context *context;
  CUstream stream;
  struct vgpu_tenant *tenant;
  int gpu; /* the account */
  uint64_t bytes;
  unsigned pool;   /* the pool that may be empty then; 0: none */
  uint64_t number; /* of the younger of a stream's two entries it is higher */
};

/* The stream of entries that outlive theirs: another one may get its handle. */
static const CUstream NO_STREAM = (CUstream)UINTPTR_MAX;

static struct later frees[FREES];
static uint32_t used; /* entries ever used */
static uint32_t pending;
static struct vgpu_lock later_lock;

/* Lock held. Returns the younger entry of the same stream, whose event is then recorded again, or a free entry. */
static struct later *vgpu__later_entry(const struct later *wanted) {
  struct later *vacant = NULL, *young = NULL;
  int same = 0;
  for (uint32_t i = 0; i < used; i++) {
    struct later *entry = &frees[i];
    if (entry->event == NULL) {
      if (vacant == NULL) vacant = entry;
    } else if (entry->stream == wanted->stream && entry->context == wanted->context &&
               entry->tenant == wanted->tenant &&
               /* each thread has its own stream of that name */
               entry->pool == wanted->pool && entry->gpu == wanted->gpu && wanted->stream != ABI_STREAM_PER_THREAD) {
      if (young == NULL || entry->number > young->number) young = entry;
      same++;
    }
  }
  if (same > 1) return young;
  if (vacant == NULL && used < FREES) {
    vacant = &frees[used];
    STORE(used, used + 1);
  }
  return vacant == NULL ? young : vacant;
}

CUcontext vgpu__stream_context(CUstream stream) {
  CUcontext handle = NULL;
  if ((uintptr_t)stream > (uintptr_t)ABI_STREAM_PER_THREAD) REAL(cuStreamGetCtx)(stream, &handle);
  if (handle == NULL) REAL(cuCtxGetCurrent)(&handle);
  return handle;
}

CUdevice vgpu__stream_device(const struct vgpu_tenant *tenant, CUstream stream) {
  CUdevice device = -1;
  CUcontext ours, context = tenant->gpus > 1 ? vgpu__stream_context(stream) : NULL;
  int entered = context != NULL && REAL(cuCtxPushCurrent_v2)(context) == ABI_SUCCESS;
  if (REAL(cuCtxGetDevice)(&device) != ABI_SUCCESS) device = -1;
  if (entered) REAL(cuCtxPopCurrent_v2)(&ours);
  return device;
}

void vgpu__later_forget_stream(CUstream stream) {
  if (LOAD_ACQUIRE(pending) == 0) return;
  vgpu__lock(&later_lock);
  for (uint32_t i = 0; i < used; i++) {
    if (frees[i].stream == stream) frees[i].stream = NO_STREAM;
  }
  vgpu__unlock(&later_lock);
}

int vgpu__later(CUstream stream, CUcontext handle, struct vgpu_tenant *tenant, int gpu, uint64_t bytes, unsigned pool) {
  static uint64_t numbers;
  int done = -1;
  struct vgpu_context *context = handle == NULL ? NULL : vgpu__context_of(handle);
  if (context == NULL || vgpu__is_capturing(stream)) return -1;
  struct later wanted = {
      .context = context, .stream = stream, .tenant = tenant, .gpu = gpu, .bytes = bytes, .pool = pool};
  int entered = vgpu__context_enter(context);
  vgpu__lock(&later_lock);
  struct later *entry = vgpu__later_entry(&wanted);
  CUevent event = entry == NULL ? NULL : entry->event != NULL ? entry->event : vgpu__event_take(context);
  if (event != NULL && REAL(cuEventRecord)(event, stream) == ABI_SUCCESS) {
    if (entry->event == NULL) {
      *entry = wanted;
      entry->event = event;
      entry->number = ++numbers;
      __atomic_fetch_add(&pending, 1, __ATOMIC_RELEASE);
    } else {
      entry->bytes += bytes;
    }
    done = 0;
  } else if (event != NULL && entry->event == NULL) {
    vgpu__event_return(context, event);
  }
  vgpu__unlock(&later_lock);
  vgpu__context_leave(entered);
  return done;
}

/* Removes one free that the GPU has reached. Returns 0 if there is none. */
static int vgpu__later_take(struct later *into) {
  int found = 0;
  vgpu__lock(&later_lock);
  for (uint32_t i = 0; i < used && !found; i++) {
    struct later *entry = &frees[i];
    if (entry->event == NULL) continue;
    int entered = vgpu__context_enter(entry->context);
    abi_result result = REAL(cuEventQuery)(entry->event);
    vgpu__context_leave(entered);
    if (result == ABI_NOT_READY) continue;
    if (result == ABI_SUCCESS) vgpu__event_return(entry->context, entry->event);
    *into = *entry;
    entry->event = NULL;
    __atomic_fetch_sub(&pending, 1, __ATOMIC_RELEASE);
    found = 1;
  }
  vgpu__unlock(&later_lock);
  return found;
}

int vgpu__later_settle(void) {
  if (LOAD_ACQUIRE(pending) == 0) return 0;
  CHANGING();
  struct later one;
  int any = 0;
  while (LOAD_ACQUIRE(pending) != 0 && vgpu__later_take(&one)) {
    if (one.pool != 0) vgpu__pool_reached(one.pool);
    else vgpu__give_back(one.tenant, one.gpu, one.bytes);
    any = 1;
  }
  return any;
}

void vgpu__later_drop(const struct vgpu_context *context) {
  CHANGING();
  for (uint32_t i = 0; i < LOAD(used); i++) {
    struct later one;
    vgpu__lock(&later_lock);
    one = frees[i];
    if (one.event != NULL && one.context == context) {
      vgpu__event_return(one.context, one.event);
      frees[i].event = NULL;
      __atomic_fetch_sub(&pending, 1, __ATOMIC_RELEASE);
    } else {
      one.event = NULL;
    }
    vgpu__unlock(&later_lock);
    if (one.event == NULL) continue;
    if (one.pool != 0) vgpu__pool_reached(one.pool);
    else vgpu__give_back(one.tenant, one.gpu, one.bytes);
  }
}

int vgpu__later_any(unsigned pool) {
  int any = 0;
  vgpu__lock(&later_lock);
  for (uint32_t i = 0; i < used; i++) any |= frees[i].event != NULL && frees[i].pool == pool;
  vgpu__unlock(&later_lock);
  return any;
}

uint64_t vgpu__later_tenants(void) {
  uint64_t bits = 0;
  vgpu__lock(&later_lock);
  for (uint32_t i = 0; i < used; i++) {
    if (frees[i].event != NULL) bits |= (uint64_t)1 << frees[i].tenant->index;
  }
  vgpu__unlock(&later_lock);
  return bits;
}

void vgpu__later_forget(void) {
  for (uint32_t i = 0; i < used; i++) frees[i].event = NULL;
  used = pending = 0;
  later_lock.word = 0;
}
