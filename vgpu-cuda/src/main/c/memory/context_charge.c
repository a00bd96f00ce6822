/*
 * The charge of contexts, by tenant and in total. Memory that they are found to hold beyond it (measure.c) joins the
 * charge of one context and is given back with that.
 */
#include "memory.h"

struct vgpu_primary vgpu__primaries[VGPU_DEVICES];
struct vgpu_lock vgpu__made_lock;

/* The tenants that pay for primary contexts. The payers of other contexts are in the table. */
uint64_t vgpu__context_tenants(void) {
  uint64_t bits = 0;
  for (int i = 0; i < VGPU_DEVICES; i++) {
    const struct vgpu_tenant *tenant = LOAD_ACQUIRE(vgpu__primaries[i].charged);
    if (tenant != NULL) bits |= (uint64_t)1 << tenant->index;
  }
  return bits;
}

static int vgpu__is_paid_for(const struct vgpu_context *context) {
  struct vgpu_record record;
  CUcontext handle = LOAD_ACQUIRE(context->handle);
  if (LOAD(context->alias) != 0 || vgpu__table_find(KIND_CONTEXT, (uint64_t)(uintptr_t)handle, &record)) return 1;
  for (int i = 0; i < VGPU_DEVICES; i++) {
    if (LOAD_ACQUIRE(vgpu__primaries[i].charged) != NULL && LOAD_ACQUIRE(vgpu__primaries[i].handle) == handle) return 1;
  }
  return 0;
}

enum context_kind { CONTEXT_GONE, CONTEXT_PRIMARY, CONTEXT_OTHER };

/* Classifies the current context: its device's active primary context, a destroyed one, or another. */
static enum context_kind vgpu__kind_of(CUcontext handle, CUdevice *device) {
  CUcontext primary = NULL;
  unsigned flags;
  int active = 0;
  if (REAL(cuCtxGetDevice)(device) != ABI_SUCCESS) return CONTEXT_GONE;
  if (*device < 0 || *device >= VGPU_DEVICES) return CONTEXT_OTHER;
  if (REAL(cuDevicePrimaryCtxGetState)(*device, &flags, &active) != ABI_SUCCESS || !active) {
    return handle == LOAD_ACQUIRE(vgpu__primaries[*device].handle) ? CONTEXT_GONE : CONTEXT_OTHER;
  }
  if (REAL(cuDevicePrimaryCtxRetain)(&primary, *device) != ABI_SUCCESS) return CONTEXT_OTHER;
  REAL(cuDevicePrimaryCtxRelease_v2)(*device);
  return primary == handle ? CONTEXT_PRIMARY : CONTEXT_OTHER;
}

/* The context exists already, so a charge without room is owed after the measurement. */
static uint64_t vgpu__charge_late(struct vgpu_tenant *tenant, int gpu) {
  vgpu__log("a context was made by an unknown function; charged now");
  return vgpu__reserve_part(tenant, gpu, tenant->context_bytes);
}

/*
 * Charges a context that is first seen when work enters it: none of the handled functions made it. The driver has
 * private functions for this. Locks are only tried, since another thread, or even the caller, may hold them. If one is
 * held, the context is charged the next time.
 */
void vgpu__context_used(struct vgpu_context *context) {
  CUcontext handle = LOAD_ACQUIRE(context->handle), now = NULL;
  CUdevice device;
  struct vgpu_tenant *tenant = vgpu_tenant_current();
  if (tenant == &vgpu__ended || !LOAD_ACQUIRE(vgpu__attached) || !vgpu__try_lock(&vgpu__made_lock)) return;
  int charged = vgpu__is_paid_for(context);
  if (!charged && REAL(cuCtxGetCurrent)(&now) == ABI_SUCCESS && now == handle) {
    enum context_kind kind = vgpu__kind_of(handle, &device);
    int gpu = kind == CONTEXT_GONE ? 0 : vgpu__gpu_of(tenant, device);
    if (kind == CONTEXT_OTHER) {
      vgpu__table_put(tenant, gpu, KIND_CONTEXT, (uint64_t)(uintptr_t)handle, vgpu__charge_late(tenant, gpu), 0);
      charged = 1;
    } else if (kind == CONTEXT_PRIMARY && vgpu__try_lock(&vgpu__primaries[device].lock)) {
      struct vgpu_primary *primary = &vgpu__primaries[device];
      if (primary->charged == NULL) {
        STORE(primary->bytes, vgpu__charge_late(tenant, gpu));
        STORE(primary->gpu, gpu);
        STORE_RELEASE(primary->charged, tenant);
      }
      STORE_RELEASE(primary->handle, handle);
      vgpu__unlock(&primary->lock);
      charged = 1;
    }
    if (charged) vgpu__measure_soon();
  }
  STORE(context->charged, (uint32_t)charged);
  vgpu__unlock(&vgpu__made_lock);
}

static int64_t vgpu__adjust(struct vgpu_tenant *tenant, int gpu, uint64_t *held, int64_t bytes) {
  if (bytes > 0) {
    uint64_t part = vgpu__reserve_part(tenant, gpu, (uint64_t)bytes);
    STORE(*held, *held + part);
    return (int64_t)part;
  }
  uint64_t less = (uint64_t)-bytes < *held ? (uint64_t)-bytes : *held;
  STORE(*held, *held - less);
  vgpu__give_back(tenant, gpu, less);
  return -(int64_t)less;
}

/* Whether the primary context is charged to an account there. Its lock held, or it is looked at again. */
static int vgpu__primary_is_there(const struct vgpu_primary *primary, const struct vgpu_spot *spot) {
  const struct vgpu_tenant *tenant = LOAD_ACQUIRE(primary->charged);
  return tenant != NULL && vgpu__spot_has(spot, tenant, LOAD(primary->gpu));
}

/* Finds the record of a context there. 0: there is none. */
static int vgpu__find_there(int index, const struct vgpu_spot *spot, uint64_t *key, struct vgpu_record *record) {
  *key = (uint64_t)(uintptr_t)LOAD_ACQUIRE(vgpu__contexts[index].handle);
  return *key != 0 && vgpu__table_find(KIND_CONTEXT, *key, record) && vgpu__spot_has(spot, record->tenant, record->gpu);
}

/* Takes off what was charged later, for the debts there. Returns the bytes. */
static uint64_t vgpu__overhead_there(const struct vgpu_spot *spot, uint64_t bytes) {
  uint64_t taken = 0;
  struct vgpu_tenant *tenant;
  for (unsigned i = 0; (tenant = vgpu__tenant_next(&i)) != NULL; i++) {
    for (int gpu = 0; gpu < vgpu__gpus(tenant) && taken < bytes; gpu++) {
      if (vgpu__spot_has(spot, tenant, gpu)) taken += vgpu__overhead_less(tenant, gpu, bytes - taken);
    }
  }
  return taken;
}

int64_t vgpu__context_adjust(const struct vgpu_spot *spot, int64_t bytes) {
  int64_t changed = bytes < 0 ? -(int64_t)vgpu__overhead_there(spot, (uint64_t)-bytes) : 0;
  for (int i = 0; i < VGPU_DEVICES && changed != bytes; i++) {
    struct vgpu_primary *primary = &vgpu__primaries[i];
    if (!vgpu__primary_is_there(primary, spot) || !vgpu__try_lock(&primary->lock)) continue;
    if (vgpu__primary_is_there(primary, spot))
      changed += vgpu__adjust(primary->charged, primary->gpu, &primary->bytes, bytes - changed);
    vgpu__unlock(&primary->lock);
  }
  if (changed == bytes || !vgpu__try_lock(&vgpu__made_lock)) return changed;
  for (int i = 0; i < vgpu__contexts_used() && changed != bytes; i++) {
    uint64_t key;
    struct vgpu_record record;
    if (!vgpu__find_there(i, spot, &key, &record) || !vgpu__table_take(KIND_CONTEXT, key, &record)) continue;
    changed += vgpu__adjust(record.tenant, record.gpu, &record.bytes, bytes - changed);
    vgpu__table_put(record.tenant, record.gpu, KIND_CONTEXT, key, record.bytes, 0);
  }
  vgpu__unlock(&vgpu__made_lock);
  return changed;
}

int vgpu__context_add(struct vgpu_excess *excess) {
  const struct vgpu_spot *spot = excess->spot;
  int added = 0;
  for (int i = 0; i < VGPU_DEVICES && added == 0; i++) {
    struct vgpu_primary *primary = &vgpu__primaries[i];
    if (!vgpu__primary_is_there(primary, spot)) continue;
    vgpu__lock(&primary->lock);
    if (vgpu__primary_is_there(primary, spot)) added = vgpu__excess_charge(excess, primary->charged, primary->gpu);
    if (added > 0) STORE(primary->bytes, primary->bytes + (uint64_t)excess->bytes);
    vgpu__unlock(&primary->lock);
  }
  if (added != 0) return added;
  vgpu__lock(&vgpu__made_lock);
  for (int i = 0; i < vgpu__contexts_used() && added == 0; i++) {
    uint64_t key;
    struct vgpu_record record;
    if (!vgpu__find_there(i, spot, &key, &record) || !vgpu__table_take(KIND_CONTEXT, key, &record)) continue;
    added = vgpu__excess_charge(excess, record.tenant, record.gpu);
    vgpu__table_put(record.tenant, record.gpu, KIND_CONTEXT, key,
                    record.bytes + (added > 0 ? (uint64_t)excess->bytes : 0), 0);
  }
  vgpu__unlock(&vgpu__made_lock);
  return added;
}

struct vgpu_tenant *vgpu__contexts_payer(const struct vgpu_spot *spot, int *gpu) {
  struct vgpu_record record;
  for (int i = 0; i < VGPU_DEVICES; i++) {
    struct vgpu_tenant *tenant = LOAD_ACQUIRE(vgpu__primaries[i].charged);
    *gpu = LOAD(vgpu__primaries[i].gpu);
    if (tenant != NULL && vgpu__spot_has(spot, tenant, *gpu)) return tenant;
  }
  for (int i = 0; i < vgpu__contexts_used(); i++) {
    uint64_t key;
    if (!vgpu__find_there(i, spot, &key, &record)) continue;
    *gpu = record.gpu;
    return record.tenant;
  }
  return NULL;
}

uint64_t vgpu__contexts_bytes(const struct vgpu_tenant *tenant) {
  uint64_t sum = 0;
  for (int gpu = 0; gpu < vgpu__gpus(tenant); gpu++) sum += LOAD(tenant->overhead_units[gpu]) * SHM_MEMORY_UNIT;
  for (int i = 0; i < VGPU_DEVICES; i++) {
    if (LOAD_ACQUIRE(vgpu__primaries[i].charged) == tenant) sum += LOAD(vgpu__primaries[i].bytes);
  }
  for (int i = 0; i < vgpu__contexts_used(); i++) {
    struct vgpu_record record;
    uint64_t key = (uint64_t)(uintptr_t)LOAD_ACQUIRE(vgpu__contexts[i].handle);
    if (key != 0 && vgpu__table_find(KIND_CONTEXT, key, &record) && record.tenant == tenant) sum += record.bytes;
  }
  return sum;
}

int vgpu__contexts_any(const struct vgpu_spot *spot) {
  int gpu;
  return vgpu__contexts_payer(spot, &gpu) != NULL;
}

void vgpu__context_charge_forget(void) {
  for (int i = 0; i < VGPU_DEVICES; i++) vgpu__primaries[i] = (struct vgpu_primary){.handle = NULL};
  vgpu__made_lock.word = 0;
}
