/*
 * What contexts are charged: by tenant, and in all. What they are found to take beyond that (measure.c) joins the charge of one of
 * them, and goes with it.
 */
#include "context.h"

/* Who pays for a primary context; the others are in the table. */
uint64_t vgpu__context_tenants(void) {
  uint64_t bits = 0;
  for (int i = 0; i < VGPU_DEVICES; i++) {
    const struct vgpu_tenant *tenant = LOAD_ACQUIRE(vgpu__primaries[i].charged);
    if (tenant != NULL) bits |= (uint64_t)1 << tenant->index;
  }
  return bits;
}

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
  for (int i = 0; i < VGPU_DEVICES && changed != bytes; i++) {
    if (LOAD_ACQUIRE(vgpu__primaries[i].charged) == NULL || !vgpu__try_lock(&vgpu__primaries[i].lock)) continue;
    if (vgpu__primaries[i].charged != NULL) changed += vgpu__adjust(vgpu__primaries[i].charged, &vgpu__primaries[i].bytes, bytes - changed);
    vgpu__unlock(&vgpu__primaries[i].lock);
  }
  if (changed == bytes || !vgpu__try_lock(&vgpu__made_lock)) return changed;
  for (int i = 0; i < VGPU_CONTEXTS && changed != bytes; i++) {
    uint64_t key = (uint64_t)(uintptr_t)LOAD_ACQUIRE(vgpu__contexts[i].handle);
    struct vgpu_record record;
    if (key == 0 || !vgpu__table_take(KIND_CONTEXT, key, &record)) continue;
    changed += vgpu__adjust(record.tenant, &record.bytes, bytes - changed);
    vgpu__table_put(record.tenant, KIND_CONTEXT, key, record.bytes, 0);
  }
  vgpu__unlock(&vgpu__made_lock);
  return changed;
}

int vgpu__context_add(uint64_t bytes) {
  int added = 0;
  for (int i = 0; i < VGPU_DEVICES && !added; i++) {
    if (LOAD_ACQUIRE(vgpu__primaries[i].charged) == NULL) continue;
    vgpu__lock(&vgpu__primaries[i].lock);
    added = vgpu__primaries[i].charged != NULL && vgpu__reserve_now(vgpu__primaries[i].charged, bytes) == 0;
    if (added) STORE(vgpu__primaries[i].bytes, vgpu__primaries[i].bytes + bytes);
    vgpu__unlock(&vgpu__primaries[i].lock);
  }
  if (added) return 1;
  vgpu__lock(&vgpu__made_lock);
  for (int i = 0; i < VGPU_CONTEXTS && !added; i++) {
    uint64_t key = (uint64_t)(uintptr_t)LOAD_ACQUIRE(vgpu__contexts[i].handle);
    struct vgpu_record record;
    if (key == 0 || !vgpu__table_take(KIND_CONTEXT, key, &record)) continue;
    added = vgpu__reserve_now(record.tenant, bytes) == 0;
    vgpu__table_put(record.tenant, KIND_CONTEXT, key, record.bytes + (added ? bytes : 0), 0);
  }
  vgpu__unlock(&vgpu__made_lock);
  return added;
}

struct vgpu_tenant *vgpu__contexts_payer(void) {
  struct vgpu_record record;
  for (int i = 0; i < VGPU_DEVICES; i++) {
    struct vgpu_tenant *tenant = LOAD_ACQUIRE(vgpu__primaries[i].charged);
    if (tenant != NULL) return tenant;
  }
  for (int i = 0; i < VGPU_CONTEXTS; i++) {
    uint64_t key = (uint64_t)(uintptr_t)LOAD_ACQUIRE(vgpu__contexts[i].handle);
    if (key != 0 && vgpu__table_find(KIND_CONTEXT, key, &record)) return record.tenant;
  }
  return NULL;
}

uint64_t vgpu__contexts_bytes(const struct vgpu_tenant *tenant) {
  uint64_t sum = LOAD(tenant->overhead_units) * SHM_MEMORY_UNIT;
  for (int i = 0; i < VGPU_DEVICES; i++) {
    if (LOAD_ACQUIRE(vgpu__primaries[i].charged) == tenant) sum += LOAD(vgpu__primaries[i].bytes);
  }
  for (int i = 0; i < VGPU_CONTEXTS; i++) {
    struct vgpu_record record;
    uint64_t key = (uint64_t)(uintptr_t)LOAD_ACQUIRE(vgpu__contexts[i].handle);
    if (key != 0 && vgpu__table_find(KIND_CONTEXT, key, &record) && record.tenant == tenant) sum += record.bytes;
  }
  return sum;
}

int vgpu__contexts_any(void) { return vgpu__contexts_payer() != NULL; }
