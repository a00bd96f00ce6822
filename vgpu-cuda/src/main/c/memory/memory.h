/* What a lease's memory is: its account (docs/memory-ledger.md), and all kinds of memory that are charged to it. */
#ifndef VGPU_MEMORY_H
#define VGPU_MEMORY_H

#include "../turn/turn.h"

/* ---- ledger.c: the lease's memory, see docs/memory-ledger.md ---- */
/* 0, or -1 when the quota has no room (or the lease has ended, or was left). */
int vgpu__reserve(struct vgpu_tenant *tenant, uint64_t bytes);
/* the same, and does not look at what is to be measured */
int vgpu__reserve_now(struct vgpu_tenant *tenant, uint64_t bytes);
/* as much of it as there is room for; may be 0 */
uint64_t vgpu__reserve_part(struct vgpu_tenant *tenant, uint64_t bytes);
void vgpu__give_back(struct vgpu_tenant *tenant, uint64_t bytes);
uint64_t vgpu__lease_bytes(const struct vgpu_tenant *tenant);
abi_result vgpu__refusal(const struct vgpu_tenant *tenant); /* why a reservation failed */
/* What is held already, and the quota had no room for: it takes what is given back next, before others can have it. */
void vgpu__owe(struct vgpu_tenant *tenant, uint64_t bytes); /* so much now, whatever it was */
/* with the room that there is; 1: something is still owed */
int vgpu__pay_owed(void);
uint64_t vgpu__overhead_less(struct vgpu_tenant *tenant, uint64_t bytes); /* at most so much is not held any more */
void vgpu__overhead_end(void);

void vgpu__give_back_all(const struct vgpu_sums *sums);

/* ---- vmm.c: physical handles (cuMemCreate), charged until released and unmapped ---- */
int vgpu__vmm_created(struct vgpu_tenant *tenant, uint64_t handle, uint64_t bytes);
void vgpu__vmm_retained(uint64_t handle);
/* Around a call of the driver that may free a handle: another thread may be given the same one before we know. */
struct vgpu_release {
  int known, gone;
  uint32_t tenant;
  uint64_t handle, bytes;
};
void vgpu__vmm_releasing(uint64_t handle, struct vgpu_release *release);
void vgpu__vmm_released(const struct vgpu_release *release, int done);
/* Held around calls that map, unmap and release. */
extern struct vgpu_lock vgpu__vmm_call VGPU_INTERNAL;
/* Adds the bytes that are free of charge now. */
int vgpu__vmm_mapped(uint64_t handle, uint64_t address, uint64_t size);
void vgpu__vmm_unmapped(uint64_t address, uint64_t size, struct vgpu_sums *sums);
uint64_t vgpu__vmm_tenants(void);
void vgpu__vmm_forget(void);

/* ---- movable.c: memory that can be moved to the host's and back at its address, for tenants that asked for it ---- */
extern uint32_t vgpu__movables VGPU_INTERNAL; /* how many there are */
static inline int vgpu__wants_movable(const struct vgpu_tenant *tenant) {
  return (LOAD(tenant->grant->memory_flags) & SHM_MEMORY_MOVABLE) != 0;
}
/* 1: done, well or not; *result is the answer. 0: not for us. */
int vgpu__movable_allocate(struct vgpu_tenant *tenant, CUdeviceptr *pointer, uint64_t bytes, abi_result *result);
int vgpu__movable_free(CUdeviceptr pointer, CUstream stream, abi_result *result);
void vgpu__movable_context_gone(CUcontext context, struct vgpu_sums *sums);
void vgpu__movable_tend(struct vgpu_tenant *tenant, uint64_t now); /* by the monitor */
uint64_t vgpu__movable_tenants(void); /* a bit for each that has some */
void vgpu__movable_forget(void);

/* ---- pool.c: memory pools, charged by what they reserve ---- */
/* After a free; waited: the driver has given back what it may; else it is in the order of a stream. */
void vgpu__pool_freed(const struct vgpu_record *record, int waited, CUstream stream);
/* of any kind, in stream order */
void vgpu__freed(enum vgpu_kind kind, const struct vgpu_record *record, CUstream stream, int thread);
void vgpu__pool_reached(unsigned number); /* later.c: a stream has come to a free */
void vgpu__pools_forget_stream(CUstream stream, CUcontext context); /* context: all of its streams; before they go */
/* After a wait: what pools have given back is no more charged. Two loads, unless something was freed. */
void vgpu__pools_settle(void);
int vgpu__pools_trim(void);        /* 1: something is free of charge now */
int vgpu__pools_are_settled(void); /* nothing was freed that they may still keep, or give back later */
void vgpu__pools_reset(CUdevice device);
uint64_t vgpu__pool_tenants(void);
void vgpu__pools_forget(void);
/* Reserves; if there is no room, what pools and graphs keep without need goes first. */
int vgpu__reserve_or_trim(struct vgpu_tenant *tenant, uint64_t bytes);
int vgpu__trim(void); /* pools and graphs; 1: something is free of charge now */

/* ---- later.c: what comes free when a stream comes to it ---- */
CUcontext vgpu__stream_context(CUstream stream);
/* 0; -1: no event can tell. pool: 0, or the number of one that may have nothing left then. */
int vgpu__later(CUstream stream, CUcontext context, struct vgpu_tenant *tenant, uint64_t bytes, unsigned pool);
int vgpu__later_settle(void); /* 1: something is free of charge now */
int vgpu__later_any(unsigned pool);
uint64_t vgpu__later_tenants(void);
void vgpu__later_drop(const struct vgpu_context *context); /* it goes, and all that was freed in it is gone */
void vgpu__later_forget(void);

/* ---- graph_memory.c: memory of graphs' own allocations ---- */
struct vgpu_graph_charge {
  CUdevice device; /* -1: nothing to charge */
  struct vgpu_tenant *tenant;
  uint64_t bytes;
};
extern uint32_t vgpu__graph_memory_seen VGPU_INTERNAL; /* a node that allocates was made in this process */
void vgpu__graph_memory_made(void *graph, CUgraphExec exec);
void vgpu__graph_memory_gone(CUgraphExec exec);
abi_result vgpu__graph_memory_before(CUgraphExec exec, struct vgpu_graph_charge *charge);
void vgpu__graph_memory_after(const struct vgpu_graph_charge *charge);
int vgpu__graph_memory_trim(void); /* 1: something is free of charge now */
void vgpu__graph_memory_reset(CUdevice device);
uint64_t vgpu__graph_memory_tenants(void);
void vgpu__graph_memory_forget(void);

/* ---- context_charge.c, suspended.c: what contexts are charged ---- */
enum { VGPU_DEVICES = 64 };

struct vgpu_primary {
  struct vgpu_lock lock;
  CUcontext handle;
  uint32_t retained;
  struct vgpu_tenant *charged; /* who pays for it; NULL: nobody yet */
  uint64_t bytes;              /* and what */
};

extern struct vgpu_primary vgpu__primaries[VGPU_DEVICES] VGPU_INTERNAL;
/* The driver may give a handle out anew as soon as it is destroyed: what it says and our record of it are one step. */
extern struct vgpu_lock vgpu__made_lock VGPU_INTERNAL;

/* suspended.c: charges a context that is to be made, when the lease is not suspended. 0; -1: no room. */
int vgpu__context_charge_wait(struct vgpu_tenant *tenant);
/* With the lock, unless somebody has charged it already: then *fresh is 0. */
int vgpu__primary_charge_wait(struct vgpu_primary *primary, struct vgpu_tenant *tenant, int *fresh);
int vgpu__suspended_any(void); /* whether a lease of this process is suspended, or about to be */

int vgpu__contexts_any(void);                                   /* whether one is charged */
uint64_t vgpu__contexts_bytes(const struct vgpu_tenant *tenant); /* what contexts are charged to a tenant */
struct vgpu_tenant *vgpu__contexts_payer(void); /* who pays for the first one; NULL: nobody */
/*
 * Charges so much more or less for contexts; returns by how much it has changed. Leaves those alone that are just being
 * made.
 */
int64_t vgpu__context_adjust(int64_t bytes);
int vgpu__context_add(uint64_t bytes); /* 1: charged so much more, all of it; 0: no room */
void vgpu__context_used(struct vgpu_context *context); /* it is charged now, if nobody has seen it made */
uint64_t vgpu__context_tenants(void);
void vgpu__context_charge_forget(void);

/* ---- measure.c: what contexts and modules take ---- */
/* something is charged that NVML does not count: what it tells may be too little */
extern uint32_t vgpu__measure_less VGPU_INTERNAL;
extern uint32_t vgpu__measure_pending VGPU_INTERNAL; /* something was made that is not measured yet */
void vgpu__measure_start(void); /* before the first context is made: NVML takes its time to begin */
void vgpu__measure_soon(void);  /* it has changed */
void vgpu__measure_perhaps(void); /* it may have; at most ten times a second */
/* After a module was loaded, or the like. 0; -1: the quota is short, and has no room for it: it must go again. */
int vgpu__measure_made(void);
/*
 * The same for a context that is charged *bytes, of which it then takes more. It is not recorded yet; its maker's locks
 * are held.
 */
int vgpu__measure_context(struct vgpu_tenant *tenant, uint64_t *bytes);
int vgpu__measure_is_short(const struct vgpu_tenant *tenant, uint64_t more); /* the quota, with so many bytes more */
void vgpu__measure_settle(void); /* charges now what was made */
void vgpu__measure_forget(void);
void vgpu__measure_leave(void); /* the program ends: nothing of NVML is called any more */

#endif
