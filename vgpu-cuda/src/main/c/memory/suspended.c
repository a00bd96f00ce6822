/*
 * Suspended leases. Other tenants use the memory of a suspended lease, so no process of it may begin to hold GPU
 * memory. A process begins by making a context, so the charge of a context waits here.
 */
#include "memory.h"

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

/*
 * Waits until the lease is resumed or has ended. Without a seat it stays suspended, like the processes suspended with
 * it.
 */
static void vgpu__suspended_wait(struct vgpu_tenant *tenant) {
  while (vgpu__is_suspended(tenant)) {
    uint32_t word = LOAD_ACQUIRE(tenant->grant->word);
    vgpu__futex_wait(&tenant->grant->word, word, SUSPENDED_WAIT_NS);
  }
}

/* Charges a context. 0: charged; -1: no room; 1: not now, the lease is suspended. */
static int vgpu__context_charge(struct vgpu_tenant *tenant, int gpu) {
  vgpu__measure_start();
  if (vgpu__is_suspended(tenant)) return 1;
  if (vgpu__reserve_or_trim(tenant, gpu, tenant->context_bytes) != 0) return -1;
  /*
   * We charge, then check the flag. The seat sets the flag, then checks which processes are charged. So one of the two
   * sees the other.
   */
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  if (!vgpu__is_suspended(tenant)) return 0;
  vgpu__give_back(tenant, gpu, tenant->context_bytes);
  return 1;
}

int vgpu__context_charge_wait(struct vgpu_tenant *tenant, int gpu) {
  for (;;) {
    int answer = vgpu__context_charge(tenant, gpu);
    if (answer <= 0) return answer;
    vgpu__suspended_wait(tenant);
  }
}

int vgpu__primary_charge_wait(struct vgpu_primary *primary, struct vgpu_tenant *tenant, int gpu, int *fresh) {
  for (;;) {
    *fresh = primary->charged == NULL;
    int answer = *fresh ? vgpu__context_charge(tenant, gpu) : 0;
    if (answer <= 0) return answer;
    vgpu__unlock(&primary->lock); /* another tenant of this process may need it */
    vgpu__suspended_wait(tenant);
    vgpu__lock(&primary->lock);
  }
}
