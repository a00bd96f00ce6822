/* A lease's memory: its ledger (docs/memory-ledger.md), and all kinds of memory that are charged to it. */
#ifndef VGPU_MEMORY_H
#define VGPU_MEMORY_H

#include "../turn/turn.h"

/* ---- ledger.c: docs/memory-ledger.md. gpu: the account, as vgpu__gpu_of tells it ---- */
/* 0, or -1 if the quota has no room, or the lease has ended or was left, or has no account for this GPU. */
int vgpu__reserve(struct vgpu_tenant *tenant, int gpu, uint64_t bytes);
/* the same, without regard to a pending measurement */
int vgpu__reserve_now(struct vgpu_tenant *tenant, int gpu, uint64_t bytes);
/* reserves as much of it as there is room for; may be 0 */
uint64_t vgpu__reserve_part(struct vgpu_tenant *tenant, int gpu, uint64_t bytes);
void vgpu__give_back(struct vgpu_tenant *tenant, int gpu, uint64_t bytes);
uint64_t vgpu__lease_bytes(const struct vgpu_tenant *tenant, int gpu);
abi_result vgpu__refusal(const struct vgpu_tenant *tenant); /* why a reservation failed */
/* Sets the debt: memory that is held already, and for which the quota had no room. The next frees pay it. */
void vgpu__owe(struct vgpu_tenant *tenant, int gpu, uint64_t bytes); /* replaces the previous debt */
/* pays debts with the room that there is; 1: some debt is left */
int vgpu__pay_owed(void);
int vgpu__pay_account(struct vgpu_tenant *tenant, int gpu);
/* gives back at most so much paid debt */
uint64_t vgpu__overhead_less(struct vgpu_tenant *tenant, int gpu, uint64_t bytes);
/* no context is left there: gives back all paid debt, and forgets the rest */
void vgpu__overhead_end(const struct vgpu_spot *spot);

void vgpu__give_back_all(const struct vgpu_sums *sums);
/*
 * Between these calls no other thread changes a charge or a debt. Only the locks of NVML and of the table are waited
 * for meanwhile.
 */
uint64_t vgpu__ledgers_hold(void); /* returns the argument of vgpu__ledgers_let_go */
void vgpu__ledgers_let_go(uint64_t here);

/* ---- room.c ---- */
/* After the driver had no room for what the quota allows: waits a moment. 1: try again. */
int vgpu__await_room(const struct vgpu_tenant *tenant);
#define IN_ROOM(result, call) \
  do result = (call);         \
  while (UNLIKELY(result == ABI_OUT_OF_MEMORY) && vgpu__await_room(tenant))

/* ---- vmm.c: physical handles (cuMemCreate), charged until released and unmapped ---- */
int vgpu__vmm_created(const struct vgpu_tenant *tenant, int gpu, uint64_t handle, uint64_t bytes);
void vgpu__vmm_retained(uint64_t handle);
/*
 * Around a driver call that may free a handle: another thread may get the same handle before we record that it is free.
 */
struct vgpu_release {
  int known, gone;
  uint32_t payer;
  uint64_t handle, bytes;
};
void vgpu__vmm_releasing(uint64_t handle, struct vgpu_release *release);
void vgpu__vmm_released(const struct vgpu_release *release, int done);
/* Held around calls that map, unmap and release. */
extern struct vgpu_lock vgpu__vmm_call VGPU_INTERNAL;
/* vgpu__vmm_unmapped adds the bytes to give back to `sums`. */
int vgpu__vmm_mapped(uint64_t handle, uint64_t address, uint64_t size);
void vgpu__vmm_unmapped(uint64_t address, uint64_t size, struct vgpu_sums *sums);
uint64_t vgpu__vmm_tenants(void);
void vgpu__vmm_forget(void);

/* ---- movable.c: memory that can be moved to the host and back at its address, for tenants that asked for it ---- */
extern uint32_t vgpu__movables VGPU_INTERNAL; /* number of movable allocations */
static inline int vgpu__wants_movable(const struct vgpu_tenant *tenant) {
  return (LOAD(tenant->grant->memory_flags) & SHM_MEMORY_MOVABLE) != 0;
}
/* 1: handled, *result is the answer; 0: not movable, use the driver's call. */
int vgpu__movable_allocate(struct vgpu_tenant *tenant, CUdeviceptr *pointer, uint64_t bytes, abi_result *result);
int vgpu__movable_free(CUdeviceptr pointer, CUstream stream, abi_result *result);
void vgpu__movable_context_gone(CUcontext context, struct vgpu_sums *sums);
/* By the monitor. is_idle: whether none of the tenant's work is on the GPU, copies included. */
void vgpu__movable_tend(struct vgpu_tenant *tenant, uint64_t now, int (*is_idle)(const struct vgpu_tenant *tenant));
uint64_t vgpu__movable_tenants(void); /* tenants that have some, as bits */
void vgpu__movable_forget(void);

/* ---- pool.c: memory pools, charged by their reserved memory ---- */
/* The program got this pool from the driver, or made it, for memory of a type at a location. */
void vgpu__pool_located(CUmemoryPool handle, int type, const struct abi_location *location, int made);
/* After a free. waited: the driver has given back what it may already; else the free is in stream order. */
void vgpu__pool_freed(const struct vgpu_record *record, int waited, CUstream stream);
/* after a free in stream order, of any kind */
void vgpu__freed(enum vgpu_kind kind, const struct vgpu_record *record, CUstream stream, int thread);
void vgpu__pool_reached(unsigned number);                           /* called by later.c: a stream has reached a free */
void vgpu__pools_forget_stream(CUstream stream, CUcontext context); /* before they end; context: all its streams */
/* After a wait: gives back the charge of memory that pools have given back. Costs two loads if nothing was freed. */
void vgpu__pools_settle(void);
int vgpu__pools_trim(void);        /* 1: some charge was given back */
int vgpu__pools_are_settled(void); /* no freed memory is left that a pool may keep or give back later */
void vgpu__pools_reset(CUdevice device);
uint64_t vgpu__pool_tenants(void);
void vgpu__pools_forget(void);
/* Reserves. If there is no room, pools and graphs first give back memory that they do not need. */
int vgpu__reserve_or_trim(struct vgpu_tenant *tenant, int gpu, uint64_t bytes);
int vgpu__trim(void); /* pools and graphs; 1: some charge was given back */

/* ---- later.c: memory that becomes free when a stream reaches its free ---- */
CUcontext vgpu__stream_context(CUstream stream);
/* The device whose current pool an allocation in this stream comes from; -1: unknown. */
CUdevice vgpu__stream_device(const struct vgpu_tenant *tenant, CUstream stream);
/* 0; -1: no event could be recorded. pool: the number of a pool that may be empty then; 0: none. */
int vgpu__later(CUstream stream, CUcontext context, struct vgpu_tenant *tenant, int gpu, uint64_t bytes, unsigned pool);
void vgpu__later_forget_stream(CUstream stream); /* before it is destroyed; its frees are still due */
int vgpu__later_settle(void);                    /* 1: some charge was given back */
int vgpu__later_any(unsigned pool);
uint64_t vgpu__later_tenants(void);
void vgpu__later_drop(const struct vgpu_context *context); /* it is being destroyed, with all that was freed in it */
void vgpu__later_forget(void);

/* ---- graph_memory.c: memory of graphs' allocation nodes ---- */
struct vgpu_graph_charge {
  CUdevice device; /* -1: nothing to charge */
  struct vgpu_tenant *tenant;
  uint64_t bytes;
  CUgraphExec exec;
  uint64_t frees; /* vgpu__graph_frees before the launch */
  int several;    /* its allocation nodes are on several devices */
};
extern uint32_t vgpu__graph_memory_seen VGPU_INTERNAL; /* an allocation node was made in this process */
extern uint64_t vgpu__graph_frees VGPU_INTERNAL;       /* counts what may have freed memory of graphs */
int vgpu__graph_has_condition(void *graph);            /* or may have: a conditional node, also in child graphs */
void vgpu__graph_memory_made(void *graph, CUgraphExec exec, uint64_t flags);
void vgpu__graph_memory_gone(CUgraphExec exec);
abi_result vgpu__graph_memory_before(CUgraphExec exec, struct vgpu_graph_charge *charge);
void vgpu__graph_memory_after(const struct vgpu_graph_charge *charge, int ran); /* ran: its memory is allocated now */
int vgpu__graph_memory_trim(void);                                              /* 1: some charge was given back */
void vgpu__graph_memory_reset(CUdevice device);
uint64_t vgpu__graph_memory_tenants(void);
void vgpu__graph_memory_forget(void);

/* ---- context_charge.c, suspended.c: the charge of contexts ---- */
struct vgpu_primary {
  struct vgpu_lock lock;
  CUcontext handle;
  uint32_t retained;
  struct vgpu_tenant *charged; /* the tenant that pays for it; NULL: none yet */
  int gpu;                     /* and its account */
  uint64_t bytes;              /* its charge */
};

extern struct vgpu_primary vgpu__primaries[VGPU_DEVICES] VGPU_INTERNAL;
/* The driver may reuse a handle as soon as it is destroyed: this lock makes its call and our record of it one step. */
extern struct vgpu_lock vgpu__made_lock VGPU_INTERNAL;

/* suspended.c: charges a context about to be made, once the lease is not suspended. 0; -1: no room. */
int vgpu__context_charge_wait(struct vgpu_tenant *tenant, int gpu);
/* The same for a primary context, with its lock held. *fresh is 0 if it was charged already. */
int vgpu__primary_charge_wait(struct vgpu_primary *primary, struct vgpu_tenant *tenant, int gpu, int *fresh);
int vgpu__suspended_any(void); /* whether a lease of this process is suspended, or about to be */

int vgpu__contexts_any(const struct vgpu_spot *spot);            /* whether any is charged there */
uint64_t vgpu__contexts_bytes(const struct vgpu_tenant *tenant); /* the charge of contexts of a tenant */
/* the tenant that pays for the first one there, and its account; NULL: none */
struct vgpu_tenant *vgpu__contexts_payer(const struct vgpu_spot *spot, int *gpu);
/* Changes the charge of contexts there by up to `bytes`; returns the change. Skips contexts that are being made. */
int64_t vgpu__context_adjust(const struct vgpu_spot *spot, int64_t bytes);
/* Charges the excess to a context there, as vgpu__excess_charge does. */
struct vgpu_excess;
int vgpu__context_add(struct vgpu_excess *excess);
void vgpu__context_used(struct vgpu_context *context); /* charges it, if it was made by no handled function */
uint64_t vgpu__context_tenants(void);
void vgpu__context_charge_forget(void);

/* ---- measure.c: measuring the memory of contexts and modules ---- */
/* What a reading found to be held beyond the charge there. */
struct vgpu_excess {
  const struct vgpu_spot *spot;
  int among_loads; /* loads under way do not matter */
  int64_t bytes;
  uint64_t mark;
  int alone; /* charges change too often for a reading: it is taken again where it is charged */
};
/*
 * Charges all of it, if it is still so: 1; 0: no room; -1: charges have changed since the reading, so that another
 * thread may have charged it. Alone -1 means that there is no reading.
 */
int vgpu__excess_charge(struct vgpu_excess *excess, struct vgpu_tenant *tenant, int gpu);
/* memory is charged that NVML does not count: its figure may be too small */
extern uint32_t vgpu__measure_less VGPU_INTERNAL;
extern uint32_t vgpu__measure_pending VGPU_INTERNAL; /* a change is not measured yet */
void vgpu__measure_start(void); /* before the first context is made, since NVML takes time to start */
void vgpu__measure_soon(void);  /* after a change */
/*
 * Around a call that makes a context, loads a module or sets a limit, until it is decided whether its memory stays.
 * Nobody else charges that memory meanwhile.
 */
void vgpu__load_begins(void);
void vgpu__load_ends(void);
void vgpu__measure_perhaps(void); /* after a possible change; at most ten times a second */
/* After loading a module or the like. 0; -1: the quota is short and has no room: the load must be undone. */
int vgpu__measure_made(void);
/*
 * The same for a context that is charged *bytes; adds what it takes beyond that. It is not recorded yet, and its
 * maker's locks are held.
 */
int vgpu__measure_context(struct vgpu_tenant *tenant, int gpu, uint64_t *bytes);
int vgpu__measure_is_short(const struct vgpu_tenant *tenant, int gpu, uint64_t more); /* with so many bytes more */
void vgpu__measure_settle(void);                                                      /* charges pending changes now */
void vgpu__measure_forget(void);
void vgpu__measure_leave(void); /* at the end of the program: no call into NVML after this */

#endif
