/*
 * Memory that can be moved to the host while its tenant is held back, and back to the same address. For tenants that
 * asked for it (grant.memory_flags). cuMemAlloc of such a tenant reserves an address range and maps physical memory
 * into it. A move copies the data and releases the physical memory; the range stays. The hook does not inspect kernel
 * arguments, so it does not know which memory is cold. While a tenant is suspended all of it is, and the largest
 * allocations go first until enough has gone.
 *
 * Each allocation is in exactly one of the two places at any moment, whatever fails: its data is given up in one place
 * only when it is complete in the other. One lock guards everything. A move holds it for one allocation at a time, and
 * a free waits for that.
 */
#include <string.h>
#include <sys/mman.h>

#include "memory.h"

struct movable {
  CUdeviceptr address;
  uint64_t bytes;  /* whole granules; also the charge */
  uint64_t handle; /* 0: the data is in host memory */
  void *host;
  CUcontext context;
  struct vgpu_tenant *tenant;
  int device;
  int is_live;
};

/* CUmemAllocationProp and CUmemAccessDesc. */
struct properties {
  int type, handle_types, location_type, location_id;
  uint64_t rest[2];
};
struct access {
  int location_type, location_id, flags;
};
_Static_assert(sizeof(struct properties) == 32 && sizeof(struct access) == 12, "as in cuda.h");

enum { PINNED = 1, ON_DEVICE = 1, READ_WRITE = 3, NON_BLOCKING = 1 };
static const uint64_t WAIT_NS = 5u * NS_PER_MS, ALONE_NS = 1000u * (uint64_t)NS_PER_MS;

uint32_t vgpu__movables;
static struct vgpu_lock movable_lock;
static struct movable *items;
static size_t capacity, used;
static uint64_t granule; /* 0: the driver was not asked yet; 1: it cannot move memory */
static uint64_t silent_since_ns;

static struct {
  abi_result (*granularity)(size_t *, const struct properties *, int);
  abi_result (*reserve)(CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long);
  abi_result (*address_free)(CUdeviceptr, size_t);
  abi_result (*set_access)(CUdeviceptr, size_t, const struct access *, size_t);
} calls;

static struct properties properties_of(int device) {
  return (struct properties){.type = PINNED, .location_type = ON_DEVICE, .location_id = device};
}

static void bind(void *into, const char *name) {
  void *found = vgpu__driver_symbol(name);
  memcpy(into, &found, sizeof found);
}

/* Whether the driver supports moving; reads the granule once. Lock held. */
static int can_move(int device) {
  if (granule == 0) {
    struct properties properties = properties_of(device);
    size_t bytes = 0;
    bind(&calls.granularity, "cuMemGetAllocationGranularity");
    bind(&calls.reserve, "cuMemAddressReserve");
    bind(&calls.address_free, "cuMemAddressFree");
    bind(&calls.set_access, "cuMemSetAccess");
    int bound = calls.granularity != NULL && calls.reserve != NULL && calls.address_free != NULL &&
                calls.set_access != NULL;
    granule = bound && calls.granularity(&bytes, &properties, 0) == ABI_SUCCESS && bytes > 1 ? bytes : 1;
    if (granule == 1) vgpu__log("the driver has no virtual memory management: memory cannot be moved");
  }
  return granule > 1;
}

/* A free entry, or NULL. Lock held. */
static struct movable *entry(void) {
  for (size_t i = 0; i < used; i++) {
    if (!items[i].is_live) return &items[i];
  }
  if (used == capacity) {
    size_t next = capacity == 0 ? 128 : capacity * 2;
    void *pages = mmap(NULL, next * sizeof *items, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return NULL;
    if (items != NULL) {
      memcpy(pages, items, used * sizeof *items);
      munmap(items, capacity * sizeof *items);
    }
    items = pages;
    capacity = next;
  }
  return &items[used++];
}

/* ---- where the data is ---- */

/* Maps new physical memory into the item's address range. */
static abi_result back(struct movable *item) {
  struct properties properties = properties_of(item->device);
  struct access access = {ON_DEVICE, item->device, READ_WRITE};
  uint64_t handle = 0;
  abi_result result = REAL(cuMemCreate)(&handle, item->bytes, (const struct abi_mem_prop *)(const void *)&properties,
                                        0);
  if (result != ABI_SUCCESS) return result;
  result = REAL(cuMemMap)(item->address, item->bytes, 0, handle, 0);
  if (result == ABI_SUCCESS) {
    result = calls.set_access(item->address, item->bytes, &access, 1);
    if (result != ABI_SUCCESS) REAL(cuMemUnmap)(item->address, item->bytes);
  }
  if (result != ABI_SUCCESS) REAL(cuMemRelease)(handle);
  else item->handle = handle;
  return result;
}

/* Releases the physical memory; the address range stays. */
static abi_result unback(struct movable *item) {
  abi_result result = REAL(cuMemUnmap)(item->address, item->bytes);
  if (result != ABI_SUCCESS) return result;
  /* The data is safe, and unmapped memory cannot be reached. If the release fails, only the physical memory is lost. */
  abi_result released = REAL(cuMemRelease)(item->handle);
  if (released != ABI_SUCCESS) vgpu__log("physical memory was not released: code %d", released);
  item->handle = 0;
  return ABI_SUCCESS;
}

/* If the context is being destroyed, the push fails, and no context is needed. */
static int enter(CUcontext context) { return REAL(cuCtxPushCurrent_v2)(context) == ABI_SUCCESS; }

static void leave(int entered) {
  CUcontext ours;
  if (entered) REAL(cuCtxPopCurrent_v2)(&ours);
}

/*
 * Copies an item in a stream of the hook's own: it waits for none of the program's streams, which may wait for the host,
 * and no capture forbids it.
 */
static abi_result copy(const struct movable *item, void *host, int out) {
  CUstream stream = NULL;
  if (REAL(cuStreamCreate)(&stream, NON_BLOCKING) != ABI_SUCCESS) stream = NULL;
  abi_result result = out ? REAL(cuMemcpyDtoHAsync_v2)(host, item->address, item->bytes, stream)
                          : REAL(cuMemcpyHtoDAsync_v2)(item->address, host, item->bytes, stream);
  if (result == ABI_SUCCESS) result = REAL(cuStreamSynchronize)(stream);
  if (stream != NULL) REAL(cuStreamDestroy_v2)(stream);
  return result;
}

static abi_result move_out(struct movable *item) {
  void *host = mmap(NULL, item->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (host == MAP_FAILED) return ABI_OUT_OF_MEMORY;
  int entered = enter(item->context);
  abi_result result = copy(item, host, 1);
  if (result == ABI_SUCCESS) result = unback(item);
  leave(entered);
  if (result != ABI_SUCCESS) {
    munmap(host, item->bytes);
    return result;
  }
  item->host = host;
  return result;
}

static abi_result move_back(struct movable *item) {
  int entered = enter(item->context);
  abi_result result = back(item);
  if (result == ABI_SUCCESS) {
    result = copy(item, item->host, 0);
    if (result != ABI_SUCCESS) unback(item);
  }
  leave(entered);
  if (result != ABI_SUCCESS) return result;
  munmap(item->host, item->bytes);
  item->host = NULL;
  return result;
}

/* Removes an item and frees its memory and its range. Lock held. */
static void drop(struct movable *item) {
  if (item->handle != 0) unback(item);
  else munmap(item->host, item->bytes);
  calls.address_free(item->address, item->bytes);
  if (item->host != NULL) ADD(item->tenant->slot->moved_bytes, -item->bytes);
  *item = (struct movable){.is_live = 0};
  __atomic_fetch_sub(&vgpu__movables, 1, __ATOMIC_RELAXED);
}

/* ---- the program's side ---- */

/* Whether the seat wants this memory moved out now. Then allocations wait, as work does. */
static int is_held(struct vgpu_tenant *tenant) {
  if ((LOAD_ACQUIRE(tenant->grant->word) & SHM_GRANT_REVOKED) != 0) return 0;
  uint32_t order = LOAD_ACQUIRE(tenant->grant->move_order);
  return LOAD_ACQUIRE(tenant->slot->moved_bytes) != 0 ||
         ((order & SHM_MOVE_OUT) != 0 && !vgpu__seat_is_silent(tenant, vgpu__now_ns()));
}

static abi_result allocate(struct vgpu_tenant *tenant, CUdeviceptr *pointer, uint64_t bytes) {
  struct movable made = {.bytes = bytes, .tenant = tenant, .is_live = 1};
  if (REAL(cuCtxGetCurrent)(&made.context) != ABI_SUCCESS || made.context == NULL ||
      REAL(cuCtxGetDevice)(&made.device) != ABI_SUCCESS) {
    return ABI_NOT_SUPPORTED; /* the driver's own call will return the reason */
  }
  abi_result result = calls.reserve(&made.address, bytes, 0, 0, 0);
  if (result != ABI_SUCCESS) return result;
  result = back(&made);
  struct movable *item = result == ABI_SUCCESS ? entry() : NULL;
  if (item == NULL) {
    if (result == ABI_SUCCESS) unback(&made);
    calls.address_free(made.address, bytes);
    return result == ABI_SUCCESS ? ABI_OUT_OF_MEMORY : result;
  }
  *item = made;
  *pointer = made.address;
  STORE(vgpu__measure_less, 1); /* it may lie on the host */
  __atomic_fetch_add(&vgpu__movables, 1, __ATOMIC_RELAXED);
  return ABI_SUCCESS;
}

/*
 * Allocations below one granule stay immovable: each would take a whole granule. Only leases on a single GPU have
 * movable memory, so its account is number 0.
 */
int vgpu__movable_allocate(struct vgpu_tenant *tenant, CUdeviceptr *pointer, uint64_t bytes, abi_result *result) {
  int device = 0;
  if (LOAD(tenant->mode) != VGPU_ATTACHED || pointer == NULL || REAL(cuCtxGetDevice)(&device) != ABI_SUCCESS) return 0;
  while (is_held(tenant)) {
    uint32_t word = LOAD_ACQUIRE(tenant->grant->word);
    vgpu__monitor_wake();
    vgpu__futex_wait(&tenant->grant->word, word, WAIT_NS);
  }
  vgpu__lock(&movable_lock);
  int ours = can_move(device) && bytes >= granule && bytes < UINT64_MAX - granule;
  uint64_t whole = ours ? (bytes + granule - 1) / granule * granule : 0;
  vgpu__unlock(&movable_lock);
  if (!ours) return 0;
  if (vgpu__reserve_or_trim(tenant, 0, whole) != 0) {
    *result = vgpu__refusal(tenant);
    return 1;
  }
  vgpu__lock(&movable_lock);
  *result = allocate(tenant, pointer, whole);
  vgpu__unlock(&movable_lock);
  if (*result == ABI_SUCCESS) return 1;
  vgpu__give_back(tenant, 0, whole);
  return *result == ABI_OUT_OF_MEMORY; /* otherwise try the driver's own allocation */
}

/* Lock held. */
static struct movable *find(CUdeviceptr address) {
  for (size_t i = 0; i < used; i++) {
    if (items[i].is_live && items[i].address == address) return &items[i];
  }
  return NULL;
}

int vgpu__movable_free(CUdeviceptr pointer, CUstream stream, abi_result *result) {
  vgpu__lock(&movable_lock);
  struct movable *item = find(pointer);
  CUcontext context = item == NULL ? NULL : item->context;
  int away = item != NULL && item->host != NULL;
  vgpu__unlock(&movable_lock);
  if (item == NULL) return 0;
  /* Work that uses the memory must end first, as with cuMemFree, and by stream order with cuMemFreeAsync. */
  if (!away) {
    int entered = enter(context);
    *result = stream != NULL ? REAL(cuStreamSynchronize)(stream) : REAL(cuCtxSynchronize)();
    leave(entered);
    if (*result != ABI_SUCCESS) return 1;
  }
  vgpu__lock(&movable_lock);
  item = find(pointer);
  struct vgpu_tenant *tenant = item == NULL ? NULL : item->tenant;
  uint64_t bytes = item == NULL ? 0 : item->bytes;
  if (item != NULL) drop(item);
  vgpu__unlock(&movable_lock);
  if (tenant != NULL) vgpu__give_back(tenant, 0, bytes);
  *result = tenant == NULL ? ABI_INVALID_VALUE : ABI_SUCCESS; /* two threads freed it at once */
  return 1;
}

void vgpu__movable_context_gone(CUcontext context, struct vgpu_sums *sums) {
  if (LOAD(vgpu__movables) == 0 || context == NULL) return;
  vgpu__lock(&movable_lock);
  for (size_t i = 0; i < used; i++) {
    if (!items[i].is_live || items[i].context != context) continue;
    sums->bytes[items[i].tenant->index][0] += items[i].bytes;
    drop(&items[i]);
  }
  vgpu__unlock(&movable_lock);
}

/* ---- the seat's side: called by the monitor ---- */

/* The largest item on the GPU, or the largest in host memory. Lock held. */
static struct movable *next_to_move(const struct vgpu_tenant *tenant, int out) {
  struct movable *best = NULL;
  for (size_t i = 0; i < used; i++) {
    struct movable *item = &items[i];
    if (!item->is_live || item->tenant != tenant || (item->handle != 0) != out) continue;
    if (best == NULL || item->bytes > best->bytes) best = item;
  }
  return best;
}

/* Moves one item at a time; the heartbeat in between shows the seat that this process is alive. */
static abi_result move_each(struct vgpu_tenant *tenant, int out, uint64_t at_least) {
  for (;;) {
    STORE_RELEASE(tenant->slot->heartbeat_ns, vgpu__now_ns());
    if (out && LOAD(tenant->slot->moved_bytes) >= at_least) return ABI_SUCCESS;
    vgpu__lock(&movable_lock);
    struct movable *item = next_to_move(tenant, out);
    abi_result result = ABI_SUCCESS;
    if (item != NULL) {
      /* Counted as moved while any part of it may be. */
      if (out) __atomic_fetch_add(&tenant->slot->moved_bytes, item->bytes, __ATOMIC_RELEASE);
      result = out ? move_out(item) : move_back(item);
      if ((result == ABI_SUCCESS) != out) __atomic_fetch_sub(&tenant->slot->moved_bytes, item->bytes, __ATOMIC_RELEASE);
    }
    vgpu__unlock(&movable_lock);
    if (item == NULL || result != ABI_SUCCESS) return result;
  }
}

/* Other threads' captures must not forbid the calls. */
static abi_result move_all(struct vgpu_tenant *tenant, int out, uint64_t at_least) {
  int mode = ABI_CAPTURE_MODE_RELAXED, changed = REAL(cuThreadExchangeStreamCaptureMode)(&mode) == ABI_SUCCESS;
  abi_result result = move_each(tenant, out, at_least);
  if (changed) REAL(cuThreadExchangeStreamCaptureMode)(&mode);
  return result;
}

/* Kernels and copies must not run while their memory moves. */
static int is_still(const struct vgpu_tenant *tenant, int (*is_idle)(const struct vgpu_tenant *tenant)) {
  return !vgpu__word_open(LOAD_ACQUIRE(tenant->grant->word)) && !LOAD_ACQUIRE(tenant->autonomous) &&
         LOAD_ACQUIRE(tenant->slot->busy) == 0 && is_idle(tenant);
}

/* If no seat orders memory back, it is moved back after ALONE_NS, so that the program can go on by its last grant. */
static void move_back_alone(struct vgpu_tenant *tenant, uint64_t now) {
  if (!vgpu__seat_is_silent(tenant, now)) {
    silent_since_ns = 0;
  } else if (silent_since_ns == 0) {
    silent_since_ns = now;
  } else if (now - silent_since_ns > ALONE_NS) {
    silent_since_ns = now;
    abi_result result = move_all(tenant, 0, 0);
    vgpu__log("no seat answers: memory was moved back: code %d", result);
  }
}

void vgpu__movable_tend(struct vgpu_tenant *tenant, uint64_t now, int (*is_idle)(const struct vgpu_tenant *tenant)) {
  uint32_t order = LOAD_ACQUIRE(tenant->grant->move_order);
  if (LIKELY(order == LOAD(tenant->slot->move_done))) {
    if (UNLIKELY(!vgpu__movable_is_home(tenant))) move_back_alone(tenant, now);
    return;
  }
  int out = (order & SHM_MOVE_OUT) != 0;
  if (out && !is_still(tenant, is_idle)) return;
  abi_result result = move_all(tenant, out, LOAD(tenant->grant->move_bytes));
  STORE(tenant->slot->move_error, (uint32_t)result);
  STORE_RELEASE(tenant->slot->move_done, order);
}

uint64_t vgpu__movable_tenants(void) {
  uint64_t tenants = 0;
  vgpu__lock(&movable_lock);
  for (size_t i = 0; i < used; i++) {
    if (items[i].is_live) tenants |= (uint64_t)1 << items[i].tenant->index;
  }
  vgpu__unlock(&movable_lock);
  return tenants;
}

void vgpu__movable_forget(void) {
  vgpu__movables = 0;
  movable_lock.word = 0;
  items = NULL;
  capacity = 0;
  used = 0;
  silent_since_ns = 0;
}
