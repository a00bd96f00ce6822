/*
 * The tenants of this process: the leases that it is under, and the one in whose scope each thread works. The table
 * only grows. An index is reused for another lease once nothing of the previous one is left. The structure and the
 * address of its pages stay.
 */
#include "region.h"

/* Stands in for the shared pages until they are mapped: an open gate without limits. */
static struct shm_header private_header;
static struct shm_grant private_grant = {.word = 1}; /* GRANT_OPEN */
static struct shm_ledger private_ledger;
static struct shm_slot private_slot;
static struct shm_grant ended_grant = {.word = 2}; /* GRANT_REVOKED */

#define PAGES(of)                                                                                \
  .seat = &private_header, .grant = &(of), .report = &private_header, .ledger = &private_ledger, \
  .slots = &private_slot, .slot = &private_slot

#define REST(self) \
  .overlap = 1024, .gate = {.told_idle = 1}, .link = {.fd = -1}, .express = {.page = &(self).express.none}

struct vgpu_tenant vgpu__home = {PAGES(private_grant), REST(vgpu__home)};
struct vgpu_tenant vgpu__ended = {PAGES(ended_grant), .mode = VGPU_DROPPED, REST(vgpu__ended)};
struct vgpu_tenant *vgpu__tenants[VGPU_TENANTS] = {&vgpu__home};
struct vgpu_tenant *vgpu__unbound = &vgpu__home;
uint32_t vgpu__tenants_used = 1, vgpu__attached, vgpu__driver_initialised;
struct vgpu_lock vgpu__attach_lock;
__thread struct vgpu_scope vgpu__scope __attribute__((tls_model("initial-exec")));

struct vgpu_tenant *vgpu__tenant_next(unsigned *index) {
  for (unsigned used = LOAD_ACQUIRE(vgpu__tenants_used); *index < used; ++*index) {
    struct vgpu_tenant *tenant = vgpu__tenants[*index];
    if (LOAD_ACQUIRE(tenant->mode) == VGPU_ATTACHED) return tenant;
  }
  return NULL;
}

void vgpu__tenant_clear(struct vgpu_tenant *tenant, uint32_t index) {
  *tenant = (struct vgpu_tenant){PAGES(private_grant), .index = index, REST(*tenant)};
}
