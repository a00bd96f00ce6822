/* Contexts: which is current, what each is charged, what goes with it. */
#include "changing.h"
#include "lane.h"

enum { DEVICES = 64 };

struct primary {
  struct vgpu_lock lock;
  CUcontext handle;
  uint32_t retained;
  struct vgpu_tenant *charged; /* who pays for it; NULL: nobody yet */
  uint64_t bytes;              /* and what */
};

static struct vgpu_context contexts[VGPU_CONTEXTS];
static struct primary primaries[DEVICES];
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
    if (LOAD_ACQUIRE(contexts[i].handle) == handle) return &contexts[i];
  }
  vgpu__lock(&contexts_lock);
  for (int i = VGPU_CONTEXTS - 1; i >= 0; i--) {
    if (contexts[i].handle == handle) {
      vgpu__unlock(&contexts_lock);
      return &contexts[i];
    }
    if (contexts[i].handle == NULL) free_one = &contexts[i];
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
  current.number = context == NULL ? 0 : alias != 0 ? alias : (uint32_t)(context - contexts) + 1;
  return current.number;
}

int vgpu__context_enter(const struct vgpu_context *context) {
  int entered = 0;
  CUcontext handle = NULL;
  if (REAL(cuCtxGetCurrent)(&handle) != ABI_SUCCESS || handle != context->handle) {
    entered = context->handle != NULL && REAL(cuCtxPushCurrent_v2)(context->handle) == ABI_SUCCESS;
  }
  if (UNLIKELY(LOAD_ACQUIRE(vgpu__captures) != 0)) {
    int mode = ABI_CAPTURE_MODE_RELAXED;
    if (REAL(cuThreadExchangeStreamCaptureMode)(&mode) == ABI_SUCCESS) entered |= (mode + 1) << 1;
  }
  return entered;
}

void vgpu__context_leave(int entered) {
  if (UNLIKELY(entered >> 1 != 0)) {
    int mode = (entered >> 1) - 1;
    REAL(cuThreadExchangeStreamCaptureMode)(&mode);
  }
  if ((entered & 1) != 0) {
    CUcontext ours;
    REAL(cuCtxPopCurrent_v2)(&ours);
  }
}

/* Perhaps the thread's current context is another one now: then its views of default streams are of the old one. */
static abi_result vgpu__switched(abi_result result) {
  CUcontext handle = NULL;
  uint32_t now = LOAD_ACQUIRE(epoch);
  if (REAL(cuCtxGetCurrent)(&handle) == ABI_SUCCESS && handle == current.handle && current.epoch == now) return result;
  current.handle = handle;
  current.epoch = now;
  current.number = 0;
  vgpu__entries_forget();
  return result;
}

/* A context is about to go: its batches end, its events with it. */
static void vgpu__context_going(CUcontext handle) {
  if (handle == NULL || !LOAD_ACQUIRE(vgpu__attached)) return;
  vgpu__pools_forget_stream(NULL, handle);
  vgpu__drop_context(handle);
  vgpu__later_drop(vgpu__context_of(handle));
}

/* It is gone: so is what it had allocated, whoever did. Its number may come again. */
static void vgpu__context_gone(CUcontext handle, struct vgpu_sums *sums) {
  for (unsigned i = 0; handle != NULL && i < VGPU_CONTEXTS; i++) {
    struct vgpu_context *context = &contexts[i];
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

/* The driver may give a handle out anew as soon as it is destroyed: what it says and our record of it are one step. */
static struct vgpu_lock made_lock;

/* ---- a suspended lease: its memory is others' meanwhile, so no process begins to have some ---- */

static const uint64_t SUSPENDED_WAIT_NS = 5u * NS_PER_MS;

static int vgpu__is_suspended(const struct vgpu_tenant *tenant) {
  return (LOAD_ACQUIRE(tenant->grant->turn_flags) & SHM_TURN_SUSPENDED) != 0 && LOAD(tenant->mode) == VGPU_ATTACHED &&
         (LOAD_ACQUIRE(tenant->grant->word) & SHM_GRANT_REVOKED) == 0;
}

int vgpu__suspended_any(void) {
  const struct vgpu_tenant *tenant;
  for (unsigned i = 0; (tenant = vgpu__tenant_next(&i)) != NULL; i++) {
    if (vgpu__is_suspended(tenant)) return 1;
  }
  return 0;
}

/* Until it goes on, or has ended. Whoever suspended it says when; without a seat it stays so, as what was suspended with it. */
static void vgpu__suspended_wait(struct vgpu_tenant *tenant) {
  while (vgpu__is_suspended(tenant)) {
    uint32_t word = LOAD_ACQUIRE(tenant->grant->word);
    vgpu__futex_wait(&tenant->grant->word, word, SUSPENDED_WAIT_NS);
  }
}

/* Charges a context: 0; -1: no room; 1: not now, the lease is suspended. */
static int vgpu__context_charge(struct vgpu_tenant *tenant) {
  vgpu__measure_start();
  if (vgpu__is_suspended(tenant)) return 1;
  if (vgpu__reserve_or_trim(tenant, tenant->context_bytes) != 0) return -1;
  /* We charge, then look; the seat says it, then looks who is charged: one of us sees the other. */
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  if (!vgpu__is_suspended(tenant)) return 0;
  vgpu__give_back(tenant, tenant->context_bytes);
  return 1;
}

static int vgpu__context_charge_wait(struct vgpu_tenant *tenant) {
  for (;;) {
    int answer = vgpu__context_charge(tenant);
    if (answer <= 0) return answer;
    vgpu__suspended_wait(tenant);
  }
}

/* With the lock, unless somebody has charged it already: then *fresh is 0. */
static int vgpu__primary_charge_wait(struct primary *primary, struct vgpu_tenant *tenant, int *fresh) {
  for (;;) {
    *fresh = primary->charged == NULL;
    int answer = *fresh ? vgpu__context_charge(tenant) : 0;
    if (answer <= 0) return answer;
    vgpu__unlock(&primary->lock); /* another tenant of this process may need it */
    vgpu__suspended_wait(tenant);
    vgpu__lock(&primary->lock);
  }
}

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
  vgpu__unlock(&made_lock);
  if (!fits) vgpu__measure_settle();
  return vgpu__switched(result);
}

#define MAKE_CONTEXT(call)                                                   \
  CHANGING();                                                                \
  struct vgpu_tenant *tenant = vgpu_tenant_current();                        \
  CUcontext before = context == NULL ? NULL : *context;                      \
  if (vgpu__context_charge_wait(tenant) != 0) return vgpu__refusal(tenant);  \
  vgpu__lock(&made_lock);                                                    \
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

static abi_result vgpu__destroy(abi_result (*destroy)(CUcontext), CUcontext context) {
  CHANGING();
  vgpu__context_going(context);
  vgpu__lock(&made_lock);
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
  vgpu__unlock(&made_lock);
  return vgpu__switched(result);
}

abi_result cuCtxDestroy(CUcontext context) { return vgpu__destroy(REAL(cuCtxDestroy), context); }

abi_result cuCtxDestroy_v2(CUcontext context) { return vgpu__destroy(REAL(cuCtxDestroy_v2), context); }

abi_result cuCtxSetCurrent(CUcontext context) { return vgpu__switched(REAL(cuCtxSetCurrent)(context)); }

abi_result cuCtxPushCurrent(CUcontext context) { return vgpu__switched(REAL(cuCtxPushCurrent)(context)); }

abi_result cuCtxPushCurrent_v2(CUcontext context) { return vgpu__switched(REAL(cuCtxPushCurrent_v2)(context)); }

abi_result cuCtxPopCurrent(CUcontext *context) { return vgpu__switched(REAL(cuCtxPopCurrent)(context)); }

abi_result cuCtxPopCurrent_v2(CUcontext *context) { return vgpu__switched(REAL(cuCtxPopCurrent_v2)(context)); }

/* ---- primary contexts: made by the first retain, gone with the last release or a reset ---- */

/*
 * One call at a time per device: another thread must not be given the context while its charge is undecided. The driver calls
 * nobody back from these.
 */
static struct primary *vgpu__primary(CUdevice device) {
  if (device < 0 || device >= DEVICES || !LOAD_ACQUIRE(vgpu__attached)) return NULL;
  return &primaries[device];
}

static void vgpu__uncharge(struct primary *primary, struct vgpu_sums *sums) {
  const struct vgpu_tenant *tenant = primary->charged;
  if (tenant != NULL) sums->bytes[tenant->index] += primary->bytes;
  STORE_RELEASE(primary->charged, NULL);
  STORE(primary->bytes, 0);
  vgpu__measure_soon();
}

/* After it was made: 0; -1: it takes more than there is room for, and must go again. With its lock. */
static int vgpu__primary_charge(struct primary *primary, struct vgpu_tenant *tenant) {
  uint64_t bytes = tenant->context_bytes;
  int fits = vgpu__measure_context(tenant, &bytes);
  STORE(primary->bytes, bytes);
  STORE_RELEASE(primary->charged, tenant);
  vgpu__measure_soon();
  return fits;
}

/* A retain less; with the last, the context goes. With its lock. */
static abi_result vgpu__primary_drop(struct primary *primary, abi_result (*release)(CUdevice), CUdevice device) {
  int last = primary->retained == 1;
  if (last) vgpu__context_going(primary->handle);
  abi_result result = release(device);
  if (result == ABI_SUCCESS && primary->retained > 0) primary->retained--;
  if (result == ABI_SUCCESS && last) {
    struct vgpu_sums sums = {{0}};
    vgpu__uncharge(primary, &sums);
    vgpu__context_gone(primary->handle, &sums);
  }
  return result;
}

abi_result cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  struct primary *primary = vgpu__primary(device);
  if (primary == NULL) return REAL(cuDevicePrimaryCtxRetain)(context, device);
  CHANGING();
  vgpu__lock(&primary->lock);
  struct vgpu_tenant *tenant = vgpu_tenant_current();
  CUcontext before = context == NULL ? NULL : *context;
  int fresh, fits = 1;
  if (vgpu__primary_charge_wait(primary, tenant, &fresh) != 0) {
    vgpu__unlock(&primary->lock);
    vgpu__log("the quota has no room for a context of %llu bytes", (unsigned long long)tenant->context_bytes);
    return vgpu__refusal(tenant);
  }
  abi_result result = REAL(cuDevicePrimaryCtxRetain)(context, device);
  if (result == ABI_SUCCESS) {
    if (context != NULL) primary->handle = *context;
    primary->retained++;
    if (fresh) fits = vgpu__primary_charge(primary, tenant) == 0;
    if (!fits && vgpu__primary_drop(primary, REAL(cuDevicePrimaryCtxRelease_v2), device) == ABI_SUCCESS) {
      if (context != NULL) *context = before;
      result = ABI_OUT_OF_MEMORY;
    }
  } else if (fresh) {
    vgpu__give_back(tenant, tenant->context_bytes);
  }
  vgpu__unlock(&primary->lock);
  if (!fits) vgpu__measure_settle();
  return result;
}

static abi_result vgpu__release(abi_result (*release)(CUdevice), CUdevice device) {
  struct primary *primary = vgpu__primary(device);
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
  struct primary *primary = vgpu__primary(device);
  if (primary == NULL) return reset(device);
  CHANGING();
  vgpu__lock(&primary->lock);
  vgpu__context_going(primary->handle);
  abi_result result = reset(device);
  if (result == ABI_SUCCESS && primary->handle != NULL) {
    struct vgpu_sums sums = {{0}};
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

/* ---- green contexts: each holds the primary one, and shares its memory ---- */

/* The context that a green one is; what is allocated in it is noted under the primary one, with which it goes. */
static CUcontext vgpu__green_view(void *green, const struct primary *primary) {
  CUcontext view = NULL;
  if (REAL(cuCtxFromGreenCtx)(&view, green) != ABI_SUCCESS || view == NULL) return NULL;
  struct vgpu_context *context = vgpu__context_of(view), *whole = primary->handle == NULL ? NULL : vgpu__context_of(primary->handle);
  if (context != NULL && whole != NULL) STORE(context->alias, (uint32_t)(whole - contexts) + 1);
  return view;
}

static abi_result vgpu__green_destroy(struct primary *primary, void *green) {
  CUcontext view = vgpu__green_view(green, primary);
  struct vgpu_record record;
  vgpu__context_going(view);
  int known = vgpu__table_take(KIND_GREEN, (uint64_t)(uintptr_t)green, &record);
  int last = known && primary->retained == 1;
  if (last) vgpu__context_going(primary->handle);
  abi_result result = REAL(cuGreenCtxDestroy)(green);
  if (result != ABI_SUCCESS) {
    if (known) vgpu__table_put(record.tenant, KIND_GREEN, (uint64_t)(uintptr_t)green, record.bytes, 0);
    return result;
  }
  struct vgpu_sums sums = {{0}};
  if (known && primary->retained > 0) primary->retained--;
  vgpu__context_gone(view, &sums);
  if (last) {
    sums = (struct vgpu_sums){{0}};
    vgpu__uncharge(primary, &sums);
    vgpu__context_gone(primary->handle, &sums);
  }
  return vgpu__switched(result);
}

/* A green context was made: it is a retain. With the primary context's lock. */
static int vgpu__green_made(struct primary *primary, struct vgpu_tenant *tenant, void *green, CUdevice device) {
  /* Its handle, where nobody has asked for it yet. */
  if (primary->handle == NULL && REAL(cuDevicePrimaryCtxRetain)(&primary->handle, device) == ABI_SUCCESS) {
    REAL(cuDevicePrimaryCtxRelease_v2)(device);
  }
  primary->retained++;
  int fits = primary->charged != NULL ? 0 : vgpu__primary_charge(primary, tenant);
  /* The device, as if it were bytes. */
  vgpu__table_put(tenant, KIND_GREEN, (uint64_t)(uintptr_t)green, ((uint64_t)device + 1) * SHM_MEMORY_UNIT, 0);
  vgpu__green_view(green, primary);
  return fits;
}

abi_result cuGreenCtxCreate(void **green, void *descriptor, CUdevice device, unsigned flags) {
  struct primary *primary = vgpu__primary(device);
  struct vgpu_tenant *tenant = vgpu_tenant_current();
  if (primary == NULL) return REAL(cuGreenCtxCreate)(green, descriptor, device, flags);
  CHANGING();
  if (tenant == &vgpu__ended) return ABI_NOT_PERMITTED;
  vgpu__lock(&primary->lock);
  int fresh, fits = 1;
  abi_result result;
  if (vgpu__primary_charge_wait(primary, tenant, &fresh) != 0) {
    result = vgpu__refusal(tenant);
  } else if ((result = REAL(cuGreenCtxCreate)(green, descriptor, device, flags)) != ABI_SUCCESS) {
    if (fresh) vgpu__give_back(tenant, tenant->context_bytes);
  } else {
    fits = vgpu__green_made(primary, tenant, *green, device) == 0;
    if (!fits && vgpu__green_destroy(primary, *green) == ABI_SUCCESS) result = ABI_OUT_OF_MEMORY;
  }
  vgpu__unlock(&primary->lock);
  if (!fits) vgpu__measure_settle();
  return result;
}

abi_result cuGreenCtxDestroy(void *green) {
  struct vgpu_record record;
  if (!vgpu__table_find(KIND_GREEN, (uint64_t)(uintptr_t)green, &record)) return REAL(cuGreenCtxDestroy)(green);
  CHANGING();
  struct primary *primary = &primaries[record.bytes / SHM_MEMORY_UNIT - 1];
  vgpu__lock(&primary->lock);
  abi_result result = vgpu__green_destroy(primary, green);
  vgpu__unlock(&primary->lock);
  return result;
}

/* Who pays for a primary context; the others are in the table. */
uint64_t vgpu__context_tenants(void) {
  uint64_t bits = 0;
  for (int i = 0; i < DEVICES; i++) {
    const struct vgpu_tenant *tenant = LOAD_ACQUIRE(primaries[i].charged);
    if (tenant != NULL) bits |= (uint64_t)1 << tenant->index;
  }
  return bits;
}

/* ---- what they are found to take, see measure.c: it joins the charge of one of them, and goes with it ---- */

static int64_t vgpu__adjust(struct vgpu_tenant *tenant, uint64_t *held, int64_t bytes) {
  if (bytes > 0) {
    uint64_t part = vgpu__reserve_part(tenant, (uint64_t)bytes);
    STORE(*held, *held + part);
    return (int64_t)part;
  }
  uint64_t less = (uint64_t)-bytes < *held ? (uint64_t)-bytes : *held;
  STORE(*held, *held - less);
  vgpu__give_back(tenant, less);
  return -(int64_t)less;
}

int64_t vgpu__context_adjust(int64_t bytes) {
  int64_t changed = 0;
  struct vgpu_tenant *tenant;
  for (unsigned i = 0; bytes < 0 && (tenant = vgpu__tenant_next(&i)) != NULL; i++) {
    changed -= (int64_t)vgpu__overhead_less(tenant, (uint64_t)(changed - bytes));
  }
  for (int i = 0; i < DEVICES && changed != bytes; i++) {
    if (LOAD_ACQUIRE(primaries[i].charged) == NULL || !vgpu__try_lock(&primaries[i].lock)) continue;
    if (primaries[i].charged != NULL) changed += vgpu__adjust(primaries[i].charged, &primaries[i].bytes, bytes - changed);
    vgpu__unlock(&primaries[i].lock);
  }
  if (changed == bytes || !vgpu__try_lock(&made_lock)) return changed;
  for (int i = 0; i < VGPU_CONTEXTS && changed != bytes; i++) {
    uint64_t key = (uint64_t)(uintptr_t)LOAD_ACQUIRE(contexts[i].handle);
    struct vgpu_record record;
    if (key == 0 || !vgpu__table_take(KIND_CONTEXT, key, &record)) continue;
    changed += vgpu__adjust(record.tenant, &record.bytes, bytes - changed);
    vgpu__table_put(record.tenant, KIND_CONTEXT, key, record.bytes, 0);
  }
  vgpu__unlock(&made_lock);
  return changed;
}

int vgpu__context_add(uint64_t bytes) {
  int added = 0;
  for (int i = 0; i < DEVICES && !added; i++) {
    if (LOAD_ACQUIRE(primaries[i].charged) == NULL) continue;
    vgpu__lock(&primaries[i].lock);
    added = primaries[i].charged != NULL && vgpu__reserve_now(primaries[i].charged, bytes) == 0;
    if (added) STORE(primaries[i].bytes, primaries[i].bytes + bytes);
    vgpu__unlock(&primaries[i].lock);
  }
  if (added) return 1;
  vgpu__lock(&made_lock);
  for (int i = 0; i < VGPU_CONTEXTS && !added; i++) {
    uint64_t key = (uint64_t)(uintptr_t)LOAD_ACQUIRE(contexts[i].handle);
    struct vgpu_record record;
    if (key == 0 || !vgpu__table_take(KIND_CONTEXT, key, &record)) continue;
    added = vgpu__reserve_now(record.tenant, bytes) == 0;
    vgpu__table_put(record.tenant, KIND_CONTEXT, key, record.bytes + (added ? bytes : 0), 0);
  }
  vgpu__unlock(&made_lock);
  return added;
}

struct vgpu_tenant *vgpu__contexts_payer(void) {
  struct vgpu_record record;
  for (int i = 0; i < DEVICES; i++) {
    struct vgpu_tenant *tenant = LOAD_ACQUIRE(primaries[i].charged);
    if (tenant != NULL) return tenant;
  }
  for (int i = 0; i < VGPU_CONTEXTS; i++) {
    uint64_t key = (uint64_t)(uintptr_t)LOAD_ACQUIRE(contexts[i].handle);
    if (key != 0 && vgpu__table_find(KIND_CONTEXT, key, &record)) return record.tenant;
  }
  return NULL;
}

uint64_t vgpu__contexts_bytes(const struct vgpu_tenant *tenant) {
  uint64_t sum = LOAD(tenant->overhead_units) * SHM_MEMORY_UNIT;
  for (int i = 0; i < DEVICES; i++) {
    if (LOAD_ACQUIRE(primaries[i].charged) == tenant) sum += LOAD(primaries[i].bytes);
  }
  for (int i = 0; i < VGPU_CONTEXTS; i++) {
    struct vgpu_record record;
    uint64_t key = (uint64_t)(uintptr_t)LOAD_ACQUIRE(contexts[i].handle);
    if (key != 0 && vgpu__table_find(KIND_CONTEXT, key, &record) && record.tenant == tenant) sum += record.bytes;
  }
  return sum;
}

int vgpu__contexts_any(void) { return vgpu__contexts_payer() != NULL; }

void vgpu__context_forget(void) {
  for (int i = 0; i < VGPU_CONTEXTS; i++) contexts[i] = (struct vgpu_context){.handle = NULL};
  for (int i = 0; i < DEVICES; i++) primaries[i] = (struct primary){.handle = NULL};
  contexts_lock.word = 0;
  made_lock.word = 0;
  current.epoch = 0;
}
