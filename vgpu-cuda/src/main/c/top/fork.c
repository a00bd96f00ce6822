/*
 * The child of a fork holds nothing: the slots, connections and monitor are its parent's. It attaches by its own
 * cuInit, to the lease in whose scope it was forked. Only the forking thread exists here, and other threads of the
 * parent may have held any lock: so locks are cleared, not taken.
 */
#include <pthread.h>
#include <sys/mman.h>

#include "top.h"

void vgpu__fork_child(void) {
  vgpu__log_forget();
  vgpu__driver_forget();
  const struct vgpu_tenant *maker = vgpu_tenant_current();
  if (maker != &vgpu__home && maker != &vgpu__ended) {
    vgpu__setting_give("VGPU_RUN_DIR", maker->run_dir);
    vgpu__setting_give("VGPU_LEASE", maker->lease);
  }
  for (uint32_t i = 0; i < vgpu__tenants_used; i++) {
    struct vgpu_tenant *tenant = vgpu__tenants[i];
    char *region = tenant->region;
    vgpu__seat_forget(tenant);
    vgpu__tenant_clear(tenant, i);
    if (region != NULL) munmap(region, VGPU_REGION);
  }
  vgpu__entries_forget(); /* their counts now go to a private page */
  for (uint32_t i = 1; i < vgpu__tenants_used; i++) vgpu__tenants[i] = NULL;
  vgpu__tenants_used = 1;
  vgpu__unbound = &vgpu__home;
  vgpu__scope = (struct vgpu_scope){.bound = NULL};
  vgpu__attached = 0;
  vgpu__driver_initialised = 0;
  vgpu__attach_lock.word = 0;
  vgpu__monitor_forget();
  vgpu__level2_forget();
  vgpu__measure_forget();
  vgpu__table_forget();
  vgpu__vmm_forget();
  vgpu__movable_forget();
  vgpu__pools_forget();
  vgpu__graph_memory_forget();
  vgpu__later_forget();
  vgpu__lanes_forget();
  vgpu__graphs_forget();
  vgpu__contexts_forget();
  vgpu__context_charge_forget();
  vgpu__current_forget();
}

/* Two threads may do this at once: clearing twice does no harm. */
void vgpu__fork_watch(void) {
  static uint32_t watched;
  if (!LOAD_ACQUIRE(watched) && pthread_atfork(NULL, NULL, vgpu__fork_child) == 0) STORE_RELEASE(watched, 1);
}
