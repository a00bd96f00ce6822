/*
 * What the hook's files share. Names that begin with vgpu__ stay inside the library; vgpu_ functions are exported.
 *
 * Who calls whom: the bodies of vgpu_hooks.def (memory.c, context.c, primary.c, work.c, sync.c) use the ledger (ledger.c), the table of
 * what is allocated (table.c) and the lanes (lane.c, enter.c, batch.c); lanes ask the gate (gate.c) and the express lane (express.c); seat.c and monitor.c speak with the
 * seat. A lease in this process is a struct vgpu_tenant (tenant.h); whatever belongs to one takes it as first argument.
 */
#ifndef VGPU_HOOK_H
#define VGPU_HOOK_H

#include "tenant.h"

/* ---- attach.c, seat.c ---- */
/* A VGPU_ setting: what vgpu_attach was given, else the environment; NULL if unset or empty. */
const char *vgpu__setting(const char *name);
/* Maps a file of shared pages, unless it is not what it must be; NULL with the reason logged. */
void *vgpu__map_file(const char *path, uint64_t size, uint64_t magic, uint64_t slot_count, int writable);
/* Attaches once in this process; the mode afterwards. */
enum vgpu_mode vgpu__attach(void);
VGPU_EXPORT int vgpu_attach(const char *const *env, char *reason, size_t reason_size);
VGPU_EXPORT const char *vgpu_hook_version(void);

/* devices.c */
void vgpu__devices_show(void);     /* before the driver's cuInit: it is to show the leases' GPUs alone */
int vgpu__devices_are_ours(void);  /* after it */
void vgpu__tenants_end(void);      /* tenant.c: nothing is started or allocated under any of them from now on */

void vgpu__seat_send(struct vgpu_tenant *tenant, uint32_t type);
int vgpu__seat_connected(struct vgpu_tenant *tenant);

/* ---- monitor.c: the one thread of the hook ---- */
int vgpu__monitor_start(void);
void vgpu__monitor_wake(void);
void vgpu__monitor_forget(void);
void vgpu__monitor_at_exit(void); /* right after the driver was initialised */

/* ---- pause.c: how long this process has stood still, so far ---- */
uint64_t vgpu__paused_ns(uint64_t now);
void vgpu__pause_tick(uint64_t now); /* by the monitor */
void vgpu__pause_sleep(void);        /* no ticks until the next */
void vgpu__pause_forget(void);

/* ---- ledger.c: the lease's memory, see docs/memory-ledger.md ---- */
/* 0, or -1 when the quota has no room (or the lease has ended, or was left). */
int vgpu__reserve(struct vgpu_tenant *tenant, uint64_t bytes);
int vgpu__reserve_now(struct vgpu_tenant *tenant, uint64_t bytes);       /* the same, and does not look at what is to be measured */
uint64_t vgpu__reserve_part(struct vgpu_tenant *tenant, uint64_t bytes); /* as much of it as there is room for; may be 0 */
void vgpu__give_back(struct vgpu_tenant *tenant, uint64_t bytes);
uint64_t vgpu__lease_bytes(const struct vgpu_tenant *tenant);
abi_result vgpu__refusal(const struct vgpu_tenant *tenant); /* why a reservation failed */
/* What is held already, and the quota had no room for: it takes what is given back next, before others can have it. */
void vgpu__owe(struct vgpu_tenant *tenant, uint64_t bytes); /* so much now, whatever it was */
int vgpu__pay_owed(void);                                   /* with the room that there is; 1: something is still owed */
uint64_t vgpu__overhead_less(struct vgpu_tenant *tenant, uint64_t bytes); /* at most so much is not held any more */
void vgpu__overhead_end(void);

/* Bytes by tenant, for what frees the memory of several at once. */
struct vgpu_sums {
  uint64_t bytes[VGPU_TENANTS];
};
void vgpu__give_back_all(const struct vgpu_sums *sums);

/* ---- table.c: what this process has allocated ---- */
enum vgpu_kind { KIND_NONE, KIND_POINTER, KIND_POOL, KIND_ARRAY, KIND_HANDLE, KIND_CONTEXT, KIND_HOST, KIND_STREAM, KIND_GRAPH,
                 KIND_GRAPH_MEMORY,
                 KIND_GREEN };
int vgpu__table_put(const struct vgpu_tenant *tenant, enum vgpu_kind kind, uint64_t key, uint64_t bytes, unsigned context);
/* Removes a record: true if there was one. */
struct vgpu_record {
  struct vgpu_tenant *tenant;
  uint64_t bytes;
  unsigned context;
};
/* The tenant of a record, which stays; NULL: there is none. */
struct vgpu_tenant *vgpu__table_tenant(enum vgpu_kind kind, uint64_t key);
int vgpu__table_take(enum vgpu_kind kind, uint64_t key, struct vgpu_record *into);
/* The same, and the record stays. */
int vgpu__table_find(enum vgpu_kind kind, uint64_t key, struct vgpu_record *into);
/* Removes all of a context (or all of a kind that have the same number there) and adds up their bytes. */
void vgpu__table_take_context(unsigned context, struct vgpu_sums *sums);
void vgpu__table_take_tagged(enum vgpu_kind kind, unsigned tag, struct vgpu_sums *sums);
void vgpu__table_forget(void);

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
/* Whether all of its memory is where kernels find it. */
static inline int vgpu__movable_is_home(const struct vgpu_tenant *tenant) {
  return LOAD_ACQUIRE(tenant->slot->moved_bytes) == 0;
}
uint64_t vgpu__movable_tenants(void); /* a bit for each that has some */
void vgpu__movable_forget(void);

/* ---- pool.c: memory pools, charged by what they reserve ---- */
/* After a free; waited: the driver has given back what it may; else it is in the order of a stream. */
void vgpu__pool_freed(const struct vgpu_record *record, int waited, CUstream stream);
void vgpu__freed(enum vgpu_kind kind, const struct vgpu_record *record, CUstream stream, int thread); /* of any kind, in stream order */
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

/* ---- context.c, suspended.c, context_charge.c ---- */
/* The number of the calling thread's current context, 1 and up; 0 if none or unknown. */
unsigned vgpu__context_number(void);
void vgpu__context_forget(void);
int vgpu__suspended_any(void); /* whether a lease of this process is suspended, or about to be */

int vgpu__contexts_any(void);                                   /* whether one is charged */
uint64_t vgpu__contexts_bytes(const struct vgpu_tenant *tenant); /* what contexts are charged to a tenant */
struct vgpu_tenant *vgpu__contexts_payer(void); /* who pays for the first one; NULL: nobody */
/* Charges so much more or less for contexts; returns by how much it has changed. Leaves those alone that are just being made. */
int64_t vgpu__context_adjust(int64_t bytes);
int vgpu__context_add(uint64_t bytes); /* 1: charged so much more, all of it; 0: no room */

/* ---- held.c: what NVML says that this process holds ---- */
const char *vgpu__held_open(void); /* why it does not tell; NULL: it does */
int vgpu__held_read(uint64_t *bytes); /* on all GPUs. 1: told; 0: it is not among the processes; -1: not told */
void vgpu__held_forget(void);
void vgpu__held_began(void); /* by the thread in which the driver is initialised */

/* ---- measure.c: what contexts and modules take ---- */
extern uint32_t vgpu__measure_less VGPU_INTERNAL; /* something is charged that NVML does not count: what it tells may be too little */
extern uint32_t vgpu__measure_pending VGPU_INTERNAL; /* something was made that is not measured yet */
void vgpu__measure_start(void); /* before the first context is made: NVML takes its time to begin */
void vgpu__measure_soon(void);  /* it has changed */
void vgpu__measure_perhaps(void); /* it may have; at most ten times a second */
/* After a module was loaded, or the like. 0; -1: the quota is short, and has no room for it: it must go again. */
int vgpu__measure_made(void);
/* The same for a context that is charged *bytes, of which it then takes more. It is not recorded yet; its maker's locks are held. */
int vgpu__measure_context(struct vgpu_tenant *tenant, uint64_t *bytes);
int vgpu__measure_is_short(const struct vgpu_tenant *tenant, uint64_t more); /* the quota, with so many bytes more */
void vgpu__measure_settle(void); /* charges now what was made */
void vgpu__measure_forget(void);
void vgpu__measure_leave(void); /* the program ends: nothing of NVML is called any more */

/* ---- gate.c: may work start? ---- */
int vgpu__seat_is_silent(const struct vgpu_tenant *tenant, uint64_t now);
/* Waits until work may start: ABI_SUCCESS, or ABI_NOT_PERMITTED when the lease has ended. */
abi_result vgpu__gate_wait(struct vgpu_tenant *tenant);
/* While no seat answers: waits until the pace allows more work. */
void vgpu__gate_pace(struct vgpu_tenant *tenant);
void vgpu__gate_set_autonomous(struct vgpu_tenant *tenant, int on);
int vgpu__gate_tend(struct vgpu_tenant *tenant, uint64_t now); /* by the monitor; 1: look again soon */
void vgpu__busy_enter(struct vgpu_tenant *tenant);
void vgpu__busy_leave(struct vgpu_tenant *tenant, uint32_t count);
uint64_t vgpu__charge(struct vgpu_tenant *tenant, uint64_t start_ns, uint64_t end_ns);

static inline int vgpu__word_open(uint32_t word) {
  return (word & (SHM_GRANT_OPEN | SHM_GRANT_REVOKED)) == SHM_GRANT_OPEN;
}

/* ---- peers.c: turns among the processes of a lease ---- */
void vgpu__peers_join(struct vgpu_tenant *tenant);  /* in a slot that another process may have had */
void vgpu__peers_begin(struct vgpu_tenant *tenant); /* work begins, or waits to */
int vgpu__peers_may_start(struct vgpu_tenant *tenant, uint64_t each_ns); /* each_ns: what it takes */
void vgpu__peers_wait(struct vgpu_tenant *tenant); /* a little; then ask again */
void vgpu__peers_charge(struct vgpu_tenant *tenant, uint64_t start_ns, uint64_t end_ns);
void vgpu__peers_tend(struct vgpu_tenant *tenant, uint64_t now);

/* ---- lane.c, enter.c, batch.c: a lane is a stream's state; a batch is a run of work between two events ---- */
struct vgpu_lane;

/* A thread's view of the batch that is open in a lane; valid while ticket is still the lane's. */
struct vgpu_entry {
  CUstream stream;
  struct vgpu_lane *lane;
  uint64_t ticket;
  uint32_t left;    /* work that this thread may still add without looking */
  uint32_t granted; /* what left began with */
  uint32_t word;    /* the grant word under which it was opened */
  uint64_t heed;    /* bits of the express lane that end it */
  const uint32_t *gate;    /* the grant word of the lane's tenant */
  const uint64_t *express; /* and its busy bits of the express lane */
};
enum { VGPU_ENTRIES = 8 };
_Static_assert(sizeof(struct vgpu_entry) == 64, "one cache line");
extern __thread struct vgpu_entry vgpu__entries[VGPU_ENTRIES] __attribute__((tls_model("initial-exec")));

static inline struct vgpu_entry *vgpu__entry_of(CUstream stream) {
  uintptr_t bits = (uintptr_t)stream;
  return &vgpu__entries[(bits >> 4 ^ bits >> 10 ^ bits) % VGPU_ENTRIES];
}

/* A lane's ticket is its first word: odd while a batch is open, changed by every opening and closing. */
static inline uint64_t vgpu__lane_ticket(const struct vgpu_lane *lane) {
  return __atomic_load_n((const uint64_t *)(const void *)lane, __ATOMIC_ACQUIRE);
}

/* True if this work simply belongs to the open batch: the whole cost of a launch in the common case. */
static inline int vgpu__enter_fast(struct vgpu_entry *entry, CUstream stream) {
  if (LIKELY(entry->stream == stream && entry->left > 1 &&
             vgpu__lane_ticket(entry->lane) == entry->ticket &&
             LOAD_ACQUIRE(*entry->gate) == entry->word &&
             (LOAD(*entry->express) & entry->heed) == 0)) {
    entry->left--;
    return 1;
  }
  return 0;
}


/* Work that is a batch of its own. */
enum vgpu_piece_kind {
  PIECE_WORK, /* takes GPU time */
  PIECE_COPY, /* takes a copy engine's: accounted apart, and held back by more urgent tenants only */
};
struct vgpu_piece {
  enum vgpu_piece_kind kind;
  CUgraphExec graph;   /* whose time it is, or NULL */
  uint32_t generation; /* of that graph's entry */
  uint64_t cost_ns;    /* what it should take; 0: not known */
  int guessed;         /* of a graph that was not measured yet */
};

/* As enter_slow and leave_slow; the entry is the caller's own, zeroed. */
abi_result vgpu__piece_enter(struct vgpu_entry *entry, const struct vgpu_piece *piece, CUstream stream, int *counted);
void vgpu__piece_leave(struct vgpu_entry *entry, const struct vgpu_piece *piece, CUstream stream);

/* ---- graph.c: what graphs take ---- */
/* How to launch a graph: 1 as a piece of its own, to be measured; 0: with others, it is short. */
int vgpu__graph_piece(CUgraphExec graph, struct vgpu_piece *piece);
void vgpu__graph_measured(CUgraphExec graph, uint32_t generation, uint64_t took_ns);
void vgpu__graph_forget(CUgraphExec graph); /* before it is destroyed */
void vgpu__graphs_forget(void);

/* Opens a batch or joins one; waits at the gate. ABI_SUCCESS, or the error to return. *counted: leave must be called. */
abi_result vgpu__enter_slow(struct vgpu_entry *entry, CUstream stream, int *counted);
/* After the work was handed to the driver: closes the batch when it is full. */
void vgpu__leave_slow(struct vgpu_entry *entry, CUstream stream);
/* The batch was closed by another thread while the driver was called. */
void vgpu__slipped(struct vgpu_entry *entry);

void vgpu__close_stream(CUstream stream);      /* before waiting for a stream */
void vgpu__close_thread(void);                 /* the lanes that this thread used last */
void vgpu__close_context(CUcontext context);   /* before waiting for a context */

void vgpu__harvest_stream(CUstream stream);    /* after waiting */
void vgpu__harvest_thread(void);
void vgpu__harvest_all(CUcontext context);     /* NULL: of all */
void vgpu__drop_stream(CUstream stream);       /* before it is destroyed */
void vgpu__drop_context(CUcontext context);
void vgpu__drop_tenant(const struct vgpu_tenant *tenant); /* its lanes of default streams */

/* By the monitor: closes what is old, harvests; adds how many batches live, by tenant. */
void vgpu__tend_lanes(uint64_t now, unsigned *batches);
void vgpu__lanes_forget(void);
void vgpu__entries_forget(void); /* this thread's, when its current context changes */

/* ---- trampolines ---- */
struct vgpu_pass {
  void *target;
  uint64_t count;
  const char *name;
  uint64_t padding;
};
extern struct vgpu_pass vgpu_pass_begin[] VGPU_INTERNAL, vgpu_pass_end[] VGPU_INTERNAL;
void *vgpu__bind(struct vgpu_pass *slot);
void vgpu__publish_passed(void);
void *vgpu__dlopen(const char *path, int flags); /* the C library's */
extern void *vgpu__dlopen_next VGPU_INTERNAL, *vgpu__dlmopen_next VGPU_INTERNAL; /* trampolines.S jumps there */

#endif
