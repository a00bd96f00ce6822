/*
 * Memory pools. Memory that a pool has taken from the GPU and not given back is charged, in use or not. The driver
 * keeps freed memory until a wait, and then as much as the pool's release threshold allows. So each pool has two
 * accounts: the memory in use, by pointer, in the table; and the slack, which is charged too, to the tenant that caused
 * it. A free moves bytes into the slack, an allocation takes them out again. The ledger changes only when the pool
 * itself grows or shrinks.
 *
 * Reserve first: before the driver is called, the most that the pool may grow by is reserved. Afterwards the rest is
 * given back. A pool grows in whole steps.
 */
#include "memory.h"

enum { POOLS = 256, FREERS = 4, FIRST_TAG = 1024, ATTRIBUTE_THRESHOLD = 4, ATTRIBUTE_RESERVED = 5, NO_DEVICE = -1 };

/* At least the step by which the pools of known drivers grow. */
static const uint64_t STEP = (uint64_t)32 << 20;

enum state { FREE, LIVE, DESTROYED /* some of its allocations are not freed yet */, ON_HOST };

struct pool {
  struct vgpu_lock lock;
  uint32_t state; /* enum state */
  CUmemoryPool handle;
  CUdevice device;
  int made;      /* by the program, which may destroy it */
  int managed;   /* its memory moves between the host and the GPU, and is charged in full like cuMemAllocManaged */
  uint64_t used; /* bytes of its pointers in the table */
  uint64_t slack[VGPU_TENANTS], slack_sum;
  /* The streams of recent frees. What they have not reached when the pool is destroyed is still pending. */
  struct {
    CUstream stream;
    CUcontext context;
  } freers[FREERS];
  unsigned freers_used;
};

_Static_assert((int)VGPU_CONTEXTS < (int)FIRST_TAG, "a record tells a pool from a context");

static struct pool pools[POOLS];
static struct vgpu_lock pools_lock; /* guards handles and states */
static uint32_t pools_used;
static uint32_t freed, settled; /* number of frees so far, and the number up to which no pool can give back more */

static uint64_t vgpu__up(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

static uint64_t vgpu__whole(uint64_t bytes) { return vgpu__up(bytes, SHM_MEMORY_UNIT); }

static uint64_t vgpu__steps(uint64_t bytes) { return bytes > UINT64_MAX / 2 ? bytes : vgpu__up(bytes, STEP); }

/* The account of a pool, made if new; NULL if there are too many. */
static struct pool *vgpu__pool_of(CUmemoryPool handle, CUdevice device, enum state state) {
  struct pool *found = NULL, *free_one = NULL;
  vgpu__lock(&pools_lock);
  for (uint32_t i = 0; i < pools_used && found == NULL; i++) {
    if (pools[i].handle == handle && (pools[i].state == LIVE || pools[i].state == ON_HOST)) found = &pools[i];
    if (pools[i].state == FREE && free_one == NULL) free_one = &pools[i];
  }
  if (found == NULL && free_one == NULL && pools_used < POOLS) free_one = &pools[pools_used++];
  if (found == NULL && free_one != NULL) {
    found = free_one;
    found->handle = handle;
    found->device = device;
    found->made = found->managed = 0;
    found->freers_used = 0;
    STORE_RELEASE(found->state, (uint32_t)state);
  }
  vgpu__unlock(&pools_lock);
  return found;
}

/* Gives slack back until `beyond` bytes less are charged, starting with the tenant `first`. Pool's lock held. */
static void vgpu__pool_shrink(struct pool *pool, uint64_t beyond, uint32_t first) {
  for (uint32_t i = 0; i < VGPU_TENANTS && beyond > 0; i++) {
    uint32_t who = (first + i) % VGPU_TENANTS;
    uint64_t part = pool->slack[who] < beyond ? pool->slack[who] : beyond;
    if (part == 0) continue;
    pool->slack[who] -= part;
    pool->slack_sum -= part;
    beyond -= part;
    vgpu__give_back(vgpu__tenants[who], vgpu__gpu_of(vgpu__tenants[who], pool->device), part);
  }
}

/* The bytes that the pool has reserved. One failure says nothing about the pool, and its charge would stay. */
static int vgpu__pool_reserved(const struct pool *pool, uint64_t *bytes) {
  /* NOLINTNEXTLINE(misc-redundant-expression): asked twice */
  return REAL(cuMemPoolGetAttribute)(pool->handle, ATTRIBUTE_RESERVED, bytes) == ABI_SUCCESS ||
         REAL(cuMemPoolGetAttribute)(pool->handle, ATTRIBUTE_RESERVED, bytes) == ABI_SUCCESS;
}

/* Makes the charge what the pool has now. Returns the bytes that could not be charged. Pool's lock held. */
static uint64_t vgpu__pool_settle(struct pool *pool, struct vgpu_tenant *grower) {
  uint64_t reserved = 0;
  uint32_t first = grower == NULL ? 0 : grower->index;
  if (pool->state == DESTROYED) {
    reserved = pool->used == 0 ? 0 : vgpu__steps(pool->used);
    uint64_t before = pool->used + pool->slack_sum;
    if (reserved > before) reserved = before; /* a destroyed pool can only shrink */
  } else if (!vgpu__pool_reserved(pool, &reserved)) {
    return 0;
  }
  uint64_t least = reserved > pool->used ? reserved : pool->used, charged = pool->used + pool->slack_sum;
  if (charged > least) vgpu__pool_shrink(pool, charged - least, first);
  if (charged >= least || grower == NULL) return 0;
  if (vgpu__reserve(grower, vgpu__gpu_of(grower, pool->device), least - charged) != 0) return least - charged;
  pool->slack[grower->index] += least - charged;
  pool->slack_sum += least - charged;
  return 0;
}

/*
 * Whether a later wait may shrink the pool without further frees: it keeps more than it needs, and more than its
 * threshold allows. Lock held.
 */
static int vgpu__pool_may_shrink(const struct pool *pool) {
  uint64_t charged = pool->used + pool->slack_sum, threshold = 0;
  if (charged <= vgpu__steps(pool->used)) return 0;
  return REAL(cuMemPoolGetAttribute)(pool->handle, ATTRIBUTE_THRESHOLD, &threshold) != ABI_SUCCESS ||
         charged > threshold;
}

/*
 * After a wait. A free may be queued behind much work, so the wait that reaches it may not be the first after it, nor
 * in the same thread. So every wait checks all pools until none has anything left to give back.
 */
void vgpu__pools_settle(void) {
  uint32_t before = LOAD_ACQUIRE(freed), seen = LOAD_ACQUIRE(settled);
  if (LIKELY(before == seen)) return;
  vgpu__later_settle();
  int more = vgpu__later_tenants() != 0;
  for (uint32_t i = 0; i < LOAD_ACQUIRE(pools_used); i++) {
    if (LOAD_ACQUIRE(pools[i].state) != LIVE) continue;
    vgpu__lock(&pools[i].lock);
    if (pools[i].slack_sum > 0 && pools[i].state == LIVE) {
      vgpu__pool_settle(&pools[i], NULL);
      more |= vgpu__pool_may_shrink(&pools[i]);
    }
    vgpu__unlock(&pools[i].lock);
  }
  /* If the CAS fails, another thread was here too. Then, or if there is more to come, the next wait looks again. */
  if (!more) __atomic_compare_exchange_n(&settled, &seen, before, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

int vgpu__pools_are_settled(void) { return LOAD_ACQUIRE(freed) == LOAD_ACQUIRE(settled) && vgpu__later_tenants() == 0; }

/* When the quota has no room: pools give back memory that they do not need, as the driver itself does on a full GPU. */
int vgpu__pools_trim(void) {
  CHANGING();
  int trimmed = vgpu__later_settle();
  for (uint32_t i = 0; i < LOAD_ACQUIRE(pools_used); i++) {
    if (LOAD_ACQUIRE(pools[i].state) != LIVE) continue;
    vgpu__lock(&pools[i].lock);
    uint64_t before = pools[i].slack_sum;
    if (before > 0 && pools[i].state == LIVE && REAL(cuMemPoolTrimTo)(pools[i].handle, 0) == ABI_SUCCESS) {
      vgpu__pool_settle(&pools[i], NULL);
      trimmed |= pools[i].slack_sum < before;
    }
    vgpu__unlock(&pools[i].lock);
  }
  return trimmed;
}

int vgpu__trim(void) {
  if (LOAD_ACQUIRE(pools_used) == 0 && LOAD_ACQUIRE(freed) == LOAD_ACQUIRE(settled) && !LOAD(vgpu__graph_memory_seen))
    return 0;
  return vgpu__pools_trim() | vgpu__graph_memory_trim();
}

int vgpu__reserve_or_trim(struct vgpu_tenant *tenant, int gpu, uint64_t bytes) {
  if (LIKELY(vgpu__reserve(tenant, gpu, bytes) == 0)) return 0;
  return vgpu__trim() ? vgpu__reserve(tenant, gpu, bytes) : -1;
}

/* How much the allocation may add to the charge, beyond slack taken from other tenants. */
static uint64_t vgpu__pool_growth(const struct pool *pool, uint64_t whole) {
  uint64_t charged = pool->used + pool->slack_sum, most = vgpu__steps(pool->used + whole);
  return most > charged ? most - charged : 0;
}

/*
 * Reserves for an allocation, and gives back what it takes from other tenants' slack. Returns the bytes reserved;
 * UINT64_MAX if refused.
 */
static uint64_t vgpu__pool_reserve(struct pool *pool, struct vgpu_tenant *tenant, uint64_t whole) {
  for (int again = 0;; again++) {
    uint64_t growth = vgpu__pool_growth(pool, whole), own = pool->slack[tenant->index];
    uint64_t missing = whole > own + growth ? whole - own - growth : 0; /* to take from other tenants' slack */
    if (vgpu__reserve(tenant, vgpu__gpu_of(tenant, pool->device), growth + missing) == 0) {
      pool->slack[tenant->index] += growth + missing;
      pool->slack_sum += growth + missing;
      vgpu__pool_shrink(pool, missing, (tenant->index + 1) % VGPU_TENANTS);
      return growth + missing;
    }
    if (again > 0) return UINT64_MAX;
    vgpu__unlock(&pool->lock);
    int trimmed = vgpu__pools_trim() | vgpu__graph_memory_trim();
    vgpu__lock(&pool->lock);
    if (!trimmed) return UINT64_MAX;
  }
}

struct request {
  CUdeviceptr *pointer;
  size_t bytes;
  CUmemoryPool pool; /* NULL: the device's current pool */
  CUstream stream;
  int thread;
};

static abi_result vgpu__pool_call(const struct request *r) {
  if (r->pool == NULL) {
    return r->thread ? REAL(cuMemAllocAsync_ptsz)(r->pointer, r->bytes, r->stream)
                     : REAL(cuMemAllocAsync)(r->pointer, r->bytes, r->stream);
  }
  return r->thread ? REAL(cuMemAllocFromPoolAsync_ptsz)(r->pointer, r->bytes, r->pool, r->stream)
                   : REAL(cuMemAllocFromPoolAsync)(r->pointer, r->bytes, r->pool, r->stream);
}

/* For a pool without an account: charges the bytes asked for. */
static abi_result vgpu__charge_by_pointer(struct vgpu_tenant *tenant, const struct request *r, CUdevice device) {
  int gpu = vgpu__gpu_of(tenant, device == NO_DEVICE ? vgpu__pool_device(r->pool) : device);
  if (vgpu__reserve_or_trim(tenant, gpu, r->bytes) != 0) return vgpu__refusal(tenant);
  abi_result result = vgpu__pool_call(r);
  if (result != ABI_SUCCESS) vgpu__give_back(tenant, gpu, r->bytes);
  else vgpu__table_put(tenant, gpu, KIND_POOL, *r->pointer, r->bytes, 0);
  return result;
}

/* Pool's lock held. */
static abi_result vgpu__pool_take(struct pool *pool, struct vgpu_tenant *tenant, const struct request *r) {
  uint64_t whole = vgpu__whole(r->bytes);
  uint64_t grown = vgpu__pool_reserve(pool, tenant, whole), reserved;
  if (grown == UINT64_MAX) return vgpu__refusal(tenant);
  abi_result result = vgpu__pool_call(r);
  /* An invalid handle, or a pool that gives no figures: the call has taken nothing. */
  if (result != ABI_SUCCESS && !vgpu__pool_reserved(pool, &reserved)) {
    vgpu__pool_shrink(pool, grown, tenant->index);
    return result;
  }
  if (result == ABI_SUCCESS) {
    pool->used += whole;
    pool->slack[tenant->index] -= whole;
    pool->slack_sum -= whole;
    vgpu__table_put(tenant, vgpu__gpu_of(tenant, pool->device), KIND_POOL, *r->pointer, r->bytes,
                    FIRST_TAG + (unsigned)(pool - pools));
  }
  if (vgpu__pool_settle(pool, tenant) == 0 || result != ABI_SUCCESS) return result;
  /* It grew by more than the steps reserved, and the quota has no room: undo it, as if the driver had had none. */
  struct vgpu_record record;
  if (REAL(cuMemFree_v2)(*r->pointer) == ABI_SUCCESS && vgpu__table_take(KIND_POOL, *r->pointer, &record)) {
    pool->used -= whole;
    pool->slack[tenant->index] += whole;
    pool->slack_sum += whole;
    REAL(cuMemPoolTrimTo)(pool->handle, 0);
    vgpu__pool_settle(pool, NULL);
  }
  return ABI_OUT_OF_MEMORY;
}

static abi_result vgpu__pool_allocate(const struct request *r) {
  CHANGING();
  struct vgpu_tenant *tenant = vgpu_tenant_current();
  CUstream stream = r->thread && r->stream == NULL ? ABI_STREAM_PER_THREAD : r->stream;
  CUmemoryPool handle = r->pool;
  CUdevice device = NO_DEVICE;
  if (r->pointer == NULL || r->bytes == 0 || !vgpu__is_charged(tenant)) return vgpu__pool_call(r);
  if (vgpu__is_capturing(stream)) { /* an allocation node, charged when the graph runs */
    STORE(vgpu__graph_memory_seen, 1);
    return vgpu__pool_call(r);
  }
  if (r->bytes > UINT64_MAX / 4) return ABI_OUT_OF_MEMORY;
  if (handle == NULL && ((device = vgpu__stream_device(tenant, stream)) == NO_DEVICE ||
                         REAL(cuDeviceGetMemPool)(&handle, device) != ABI_SUCCESS || handle == NULL)) {
    return vgpu__charge_by_pointer(tenant, r, device);
  }
  struct pool *pool = vgpu__pool_of(handle, device, LIVE);
  if (pool == NULL) return vgpu__charge_by_pointer(tenant, r, device);
  if (pool->managed) STORE(vgpu__measure_less, 1);
  if (LOAD_ACQUIRE(pool->state) == ON_HOST) return vgpu__pool_call(r);
  vgpu__lock(&pool->lock);
  if (pool->device == NO_DEVICE)
    pool->device = pool->managed ? vgpu__stream_device(tenant, stream) : vgpu__pool_device(handle);
  abi_result result = vgpu__pool_take(pool, tenant, r);
  vgpu__unlock(&pool->lock);
  return result;
}

abi_result cuMemAllocAsync(CUdeviceptr *pointer, size_t bytes, CUstream stream) {
  return vgpu__pool_allocate(&(struct request){pointer, bytes, NULL, stream, 0});
}

abi_result cuMemAllocAsync_ptsz(CUdeviceptr *pointer, size_t bytes, CUstream stream) {
  return vgpu__pool_allocate(&(struct request){pointer, bytes, NULL, stream, 1});
}

abi_result cuMemAllocFromPoolAsync(CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool, CUstream stream) {
  if (pool == NULL) return REAL(cuMemAllocFromPoolAsync)(pointer, bytes, pool, stream);
  return vgpu__pool_allocate(&(struct request){pointer, bytes, pool, stream, 0});
}

abi_result cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool, CUstream stream) {
  if (pool == NULL) return REAL(cuMemAllocFromPoolAsync_ptsz)(pointer, bytes, pool, stream);
  return vgpu__pool_allocate(&(struct request){pointer, bytes, pool, stream, 1});
}

/*
 * Remembers a stream of frees. If there are too many, an event behind the oldest one's work replaces it. Default streams
 * are not remembered, but get the event at once: later, one in the legacy stream could hold up other streams, and a
 * thread's own stream cannot be named by another thread. Pool's lock held.
 */
static void vgpu__pool_freer(struct pool *pool, CUstream stream) {
  unsigned number = FIRST_TAG + (unsigned)(pool - pools), at = pool->freers_used;
  if (!pool->made) return;
  if ((uintptr_t)stream <= (uintptr_t)ABI_STREAM_PER_THREAD) {
    vgpu__later(stream, vgpu__stream_context(stream), vgpu_tenant_current(), 0, 0, number);
    return;
  }
  for (unsigned i = 0; i < pool->freers_used; i++) {
    if (pool->freers[i].stream == stream) return;
  }
  if (at == FREERS)
    vgpu__later(pool->freers[at = 0].stream, pool->freers[0].context, vgpu_tenant_current(), 0, 0, number);
  else pool->freers_used++;
  pool->freers[at].stream = stream;
  pool->freers[at].context = vgpu__stream_context(stream);
}

/*
 * Settles a destroyed pool, which holds only memory in use, or freed behind work that its streams have not finished.
 * Pool's lock held.
 */
static void vgpu__pool_left(struct pool *pool) {
  if (pool->state != DESTROYED || vgpu__later_any(FIRST_TAG + (unsigned)(pool - pools))) return;
  vgpu__pool_settle(pool, NULL);
  if (pool->used == 0) STORE_RELEASE(pool->state, (uint32_t)FREE);
}

void vgpu__pool_reached(unsigned number) {
  struct pool *pool = &pools[number - FIRST_TAG];
  vgpu__lock(&pool->lock);
  vgpu__pool_left(pool);
  vgpu__unlock(&pool->lock);
}

void vgpu__freed(enum vgpu_kind kind, const struct vgpu_record *record, CUstream stream, int thread) {
  stream = thread && stream == NULL ? ABI_STREAM_PER_THREAD : stream;
  if (kind == KIND_POOL && record->context >= FIRST_TAG) {
    vgpu__pool_freed(record, 0, stream);
  } else if (vgpu__later(stream, vgpu__stream_context(stream), record->tenant, record->gpu, record->bytes, 0) != 0) {
    vgpu__give_back(record->tenant, record->gpu, record->bytes);
  } else {
    __atomic_fetch_add(&freed, 1, __ATOMIC_RELEASE);
  }
  vgpu__later_settle(); /* the stream may have been idle */
}

void vgpu__pool_freed(const struct vgpu_record *record, int waited, CUstream stream) {
  uint64_t whole = vgpu__whole(record->bytes);
  unsigned at = record->context - FIRST_TAG;
  if (record->context < FIRST_TAG || at >= POOLS) {
    vgpu__give_back(record->tenant, record->gpu, record->bytes);
    return;
  }
  struct pool *pool = &pools[at];
  vgpu__lock(&pool->lock);
  pool->used -= whole < pool->used ? whole : pool->used;
  pool->slack[record->tenant->index] += whole;
  pool->slack_sum += whole;
  if (pool->state != DESTROYED && waited) vgpu__pool_settle(pool, NULL);
  if (!waited && pool->state == LIVE) vgpu__pool_freer(pool, stream);
  if (!waited && pool->state == DESTROYED)
    vgpu__later(stream, vgpu__stream_context(stream), record->tenant, 0, 0, record->context);
  vgpu__pool_left(pool);
  __atomic_fetch_add(&freed, 1, __ATOMIC_RELEASE);
  vgpu__unlock(&pool->lock);
}

/* Before a stream, or a whole context, is destroyed: its frees may still be pending. */
void vgpu__pools_forget_stream(CUstream stream, CUcontext context) {
  for (uint32_t i = 0; i < LOAD_ACQUIRE(pools_used); i++) {
    struct pool *pool = &pools[i];
    if (LOAD_ACQUIRE(pool->state) != LIVE) continue;
    vgpu__lock(&pool->lock);
    for (unsigned k = pool->freers_used; k > 0; k--) {
      if (context != NULL ? pool->freers[k - 1].context != context : pool->freers[k - 1].stream != stream) continue;
      if (context == NULL) vgpu__later(stream, pool->freers[k - 1].context, vgpu_tenant_current(), 0, 0, FIRST_TAG + i);
      pool->freers[k - 1] = pool->freers[--pool->freers_used];
    }
    vgpu__unlock(&pool->lock);
  }
}

/* ---- the pools themselves ---- */

void vgpu__pool_located(CUmemoryPool handle, int type, const struct abi_location *location, int made) {
  if (!LOAD(vgpu__attached)) return;
  int managed = type == ABI_ALLOCATION_MANAGED, on_host = abi_is_on_host(location);
  /* Then the GPU is that of the first allocation. */
  int nowhere = managed && (on_host || location->type == ABI_LOCATION_NONE);
  struct pool *pool = vgpu__pool_of(handle, nowhere ? NO_DEVICE : abi_device_of(location),
                                    on_host && !managed ? ON_HOST : LIVE);
  if (pool != NULL && managed) pool->managed = 1;
  if (pool != NULL && made) pool->made = 1;
}

static struct pool *vgpu__pool_known(CUmemoryPool handle) {
  for (uint32_t i = 0; i < LOAD_ACQUIRE(pools_used); i++) {
    uint32_t state = LOAD_ACQUIRE(pools[i].state);
    if ((state == LIVE || state == ON_HOST) && pools[i].handle == handle) return &pools[i];
  }
  return NULL;
}

/* The driver may reuse the handle at once, so the pool leaves our table before the call. */
abi_result cuMemPoolDestroy(CUmemoryPool handle) {
  struct pool *pool = handle == NULL ? NULL : vgpu__pool_known(handle);
  if (pool == NULL) return REAL(cuMemPoolDestroy)(handle);
  CHANGING();
  vgpu__lock(&pool->lock);
  uint32_t before = pool->state;
  while (pool->freers_used > 0) {
    pool->freers_used--;
    vgpu__later(pool->freers[pool->freers_used].stream, pool->freers[pool->freers_used].context, vgpu_tenant_current(),
                0, 0, FIRST_TAG + (unsigned)(pool - pools));
  }
  STORE_RELEASE(pool->state, (uint32_t)DESTROYED);
  abi_result result = REAL(cuMemPoolDestroy)(handle);
  if (result != ABI_SUCCESS) {
    STORE_RELEASE(pool->state, before);
  } else {
    vgpu__pool_left(pool);
    __atomic_fetch_add(&freed, 1, __ATOMIC_RELEASE);
  }
  vgpu__unlock(&pool->lock);
  vgpu__later_settle();
  return result;
}

static void vgpu__pool_look(CUmemoryPool handle) {
  struct pool *pool = vgpu__pool_known(handle);
  if (pool == NULL) return;
  vgpu__lock(&pool->lock);
  if (pool->state == LIVE) vgpu__pool_settle(pool, NULL);
  vgpu__unlock(&pool->lock);
}

abi_result cuMemPoolTrimTo(CUmemoryPool pool, size_t bytes) {
  CHANGING();
  abi_result result = REAL(cuMemPoolTrimTo)(pool, bytes);
  if (result == ABI_SUCCESS) vgpu__pool_look(pool);
  return result;
}

abi_result cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void *value) {
  abi_result result = REAL(cuMemPoolSetAttribute)(pool, attribute, value);
  /* it may keep less from the next wait on */
  if (result == ABI_SUCCESS) __atomic_fetch_add(&freed, 1, __ATOMIC_RELEASE);
  return result;
}

/* After a device reset: the memory of its pools is gone, as far as the driver confirms it. */
void vgpu__pools_reset(CUdevice device) {
  for (uint32_t i = 0; i < LOAD_ACQUIRE(pools_used); i++) {
    struct pool *pool = &pools[i];
    if (LOAD_ACQUIRE(pool->state) == FREE || pool->state == ON_HOST) continue;
    struct vgpu_sums sums = {.bytes = {{0}}};
    vgpu__lock(&pool->lock);
    if (pool->device != device) {
      vgpu__unlock(&pool->lock);
      continue;
    }
    vgpu__table_take_tagged(KIND_POOL, FIRST_TAG + i, &sums);
    for (uint32_t t = 0; t < VGPU_TENANTS * VGPU_GPUS; t++) {
      pool->slack[t / VGPU_GPUS] += sums.bytes[t / VGPU_GPUS][t % VGPU_GPUS];
      pool->slack_sum += sums.bytes[t / VGPU_GPUS][t % VGPU_GPUS];
    }
    pool->used = 0;
    vgpu__pool_settle(pool, NULL);
    if (pool->state == DESTROYED) STORE_RELEASE(pool->state, (uint32_t)FREE);
    vgpu__unlock(&pool->lock);
  }
}

/* The tenants that have slack: their indices must not be reused. */
uint64_t vgpu__pool_tenants(void) {
  uint64_t bits = 0;
  for (uint32_t i = 0; i < LOAD_ACQUIRE(pools_used); i++) {
    for (uint32_t t = 0; t < VGPU_TENANTS; t++) bits |= (uint64_t)(LOAD(pools[i].slack[t]) != 0) << t;
  }
  return bits;
}

void vgpu__pools_forget(void) {
  for (uint32_t i = 0; i < pools_used; i++) pools[i] = (struct pool){.state = FREE};
  pools_used = 0;
  settled = freed;
  pools_lock.word = 0;
}
