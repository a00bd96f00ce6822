/*
 * The leases that this process is under, and which of them a thread works for: tenant.c, attach.c, seat.c, scope.c, devices.c.
 */
#ifndef VGPU_TENANT_H
#define VGPU_TENANT_H

#include "cuda_abi.h"
#include "driver.h"
#include "shm.h"
#include "system.h"

enum vgpu_mode {
  VGPU_UNATTACHED, /* cuInit was not called yet in this process */
  VGPU_ATTACHED,
  VGPU_OPEN,    /* could not attach, VGPU_FAILURE_MODE=open: runs without limits */
  VGPU_REFUSED, /* could not attach: cuInit fails */
  VGPU_DROPPED, /* this process has left the lease: nothing more starts or is allocated under it */
};

/* Our part in the GPU's express lane: express.c. */
struct vgpu_express {
  struct shm_express *page; /* never null: `none` where there is no express lane */
  uint64_t bit;             /* that we announce our work by; 0: we do not */
  uint64_t index;           /* of the bit */
  uint64_t idle_since_ns; /* when nothing was on the GPU any more; by whoever saw that last */
  uint32_t returns;       /* how often it came back soon */
  uint32_t told;          /* the page is not ours to write: the seat sets our bit, and is told each time */
  struct shm_express none;
};

/* The connection to the seat: seat.c. */
struct vgpu_link {
  struct vgpu_lock lock;
  int fd, barred; /* barred: connects no more */
  uint64_t inode;
  char secret[41], slot_secret[41]; /* what a HELLO names; "": not told */
  struct shm_message incoming;
  size_t incoming_size;
};

/* What the monitor keeps about a connection. */
struct vgpu_watch {
  int welcome; /* the seat has answered our HELLO */
  unsigned tries;
  uint64_t next_try_ns, asked_ns;
};

/* The accounts that the seat reads, and the pace while no seat answers: gate.c. */
struct vgpu_gate {
  struct vgpu_lock pace_lock;
  uint64_t pace_since_ns, pace_gpu_ns;
  uint32_t told_idle, idle_pending, short_idles;
  uint64_t idle_since_ns;
};

enum { VGPU_SLOTS = 128 /* SLOT_COUNT */ };

/* What is seen of the lease's other processes: peers.c. */
struct vgpu_peers {
  uint64_t until_ns;      /* until when this process's GPU time is counted */
  uint64_t idle_since_ns, tended_pace; /* as the monitor saw it; 0: it is not idle; and the pace at its last look */
  uint64_t seen_ns, seen_pace; /* since when the holder of the turn has nothing to do; 0: it has */
  uint32_t seen_turn;
  uint64_t paused_ns; /* how long this process had stood still when it last looked */
  uint32_t begun;     /* it has had work in this slot */
  uint64_t asked_ns[VGPU_SLOTS];  /* by slot: when the kernel was last asked whether its process runs */
  uint64_t gone_beat[VGPU_SLOTS]; /* and the beat after which it was stopped, or dead; 0: it ran */
};

enum { VGPU_TENANTS = 64, VGPU_PATH = 1024 };

/*
 * A lease in this process. What is allocated, each stream, graph and lane belongs to one for life; so an index is given to another
 * lease only when nothing of the one before is left, and no structure is ever freed. The pages are never null: before attaching,
 * and in open mode, they are private ones of this process; after dropping, private ones that refuse.
 */
struct vgpu_tenant {
  const struct shm_grant *grant; /* read-only */
  const struct shm_header *seat; /* header of the grant page */
  struct shm_header *report;
  struct shm_ledger *ledger;
  struct shm_slot *slots; /* SLOT_COUNT of them */
  struct shm_slot *slot;  /* ours */
  uint32_t index;      /* in vgpu__tenants */
  uint32_t generation; /* changes when the lease is dropped: who was bound to it is bound to nothing that lives */
  uint64_t dropped_ns;
  char *region; /* where its pages are, for life: what is mapped there changes, never the place */
  uint32_t slot_number;
  uint32_t mode; /* enum vgpu_mode */
  uint32_t autonomous;
  uint32_t overlap;     /* how much of the batches' own time was charged: below one where streams overlap; in 1/1024 */
  uint64_t inflight_ns; /* what is open or in flight should take, over all its lanes */
  uint64_t context_bytes;
  struct vgpu_lock ledger_lock;
  uint64_t owed_units; /* whose return could not be written; they join the next change */
  uint64_t debt_units;     /* that contexts and modules were found to take, and the quota had no room for */
  uint64_t overhead_units; /* of which so much was charged since: by what was given back, or when there was room */
  struct vgpu_gate gate;
  struct vgpu_peers peers;
  struct vgpu_express express;
  struct vgpu_link link;
  struct vgpu_watch watch;
  char run_dir[VGPU_PATH];
  char lease[sizeof((struct shm_message *)NULL)->lease];
} __attribute__((aligned(128)));
extern struct vgpu_tenant vgpu__home VGPU_INTERNAL;                   /* the first: of this process, or of its cuInit */
extern struct vgpu_tenant *vgpu__tenants[VGPU_TENANTS] VGPU_INTERNAL; /* by index; NULL beyond vgpu__tenants_used */
extern uint32_t vgpu__tenants_used VGPU_INTERNAL;
extern struct vgpu_tenant *vgpu__unbound VGPU_INTERNAL; /* of threads that are bound to none: the oldest that was not dropped */
extern struct vgpu_tenant vgpu__ended VGPU_INTERNAL;    /* of threads that are bound to one that was dropped */

/* The next one from *index on that is attached; NULL at the end. for (i = 0; (t = vgpu__tenant_next(&i)) != NULL; i++) */
struct vgpu_tenant *vgpu__tenant_next(unsigned *index);

/* Whether this process is, or was, under a virtual GPU at all: before that nothing is recorded. */
extern uint32_t vgpu__attached VGPU_INTERNAL;

/* ---- tenant.c: which tenant the calling thread is in the scope of ---- */
struct vgpu_scope {
  struct vgpu_tenant *bound; /* NULL: to none */
  struct vgpu_tenant *as;    /* for one launch: the tenant of a graph that is launched into another one's stream */
  uint32_t generation;
};
extern __thread struct vgpu_scope vgpu__scope __attribute__((tls_model("initial-exec")));

/* Whose scope the calling thread is in: what it allocates and makes belongs to that tenant. Never null. */
static inline struct vgpu_tenant *vgpu_tenant_current(void) {
  struct vgpu_tenant *bound = vgpu__scope.bound;
  if (LIKELY(bound == NULL)) return LOAD_ACQUIRE(vgpu__unbound);
  return LIKELY(LOAD(bound->generation) == vgpu__scope.generation) ? bound : &vgpu__ended;
}

/* What is allocated in its scope is charged, or refused. */
static inline int vgpu__is_charged(const struct vgpu_tenant *tenant) {
  uint32_t mode = LOAD(tenant->mode);
  return mode == VGPU_ATTACHED || mode == VGPU_DROPPED;
}

/* True once there is more than one: only then is it recorded whose a stream or a graph is. */
static inline int vgpu__are_several(void) { return LOAD_ACQUIRE(vgpu__tenants_used) > 1; }

/* The indices of which something is left, by bits. */
uint64_t vgpu__table_tenants(void);
uint64_t vgpu__vmm_tenants(void);
uint64_t vgpu__context_tenants(void);
uint64_t vgpu__lane_tenants(void);

/* scope.c */
struct vgpu_tenant *vgpu__stream_tenant(CUstream stream); /* of a stream that a program made */
void vgpu__stream_gone(CUstream stream);
abi_result vgpu__graph_made(abi_result result, const CUgraphExec *graph); /* after a graph was instantiated, in the scope */
void vgpu__graph_gone(CUgraphExec graph);                                   /* before it is destroyed */
/* Whether the owner of a graph is another one than the tenant whose work goes into a stream. */
int vgpu__is_foreign(const struct vgpu_tenant *owner, CUstream named);
/* Launches it through its owner's gate, in a batch of its own. */
abi_result vgpu__launch_as(struct vgpu_tenant *owner, CUgraphExec graph, CUstream stream, CUstream named,
                           abi_result (*launch)(CUgraphExec, CUstream));
struct vgpu_tenant *vgpu__graph_tenant(CUgraphExec graph); /* NULL: of the stream that it is launched into */

/* attach.c, for tenant.c */
int vgpu__join(struct vgpu_tenant *tenant, const char *const *env); /* env NULL: by this process's settings */
enum { VGPU_REGION = 4096 + 69632 + 4096, VGPU_REGION_EXPRESS = 4096 + 69632 };
_Static_assert(sizeof(struct shm_slot) * 128 + 4096 == 69632, "GRANT_SIZE + REPORT_SIZE + EXPRESS_SIZE");
/* Moves pages to their place; NULL: it cannot, and they are unmapped. */
void *vgpu__region_move(struct vgpu_tenant *tenant, size_t offset, void *pages, size_t size);
void vgpu__pages_leave(struct vgpu_tenant *tenant); /* private ones that refuse instead */
void vgpu__fork_child(void);
extern struct vgpu_lock vgpu__attach_lock VGPU_INTERNAL;
const char *vgpu__value_in(const char *const *env, const char *name);
void vgpu__setting_give(const char *name, const char *value);
extern uint32_t vgpu__driver_initialised VGPU_INTERNAL; /* cuInit has succeeded */

/*
 * What a program that serves several tenants calls. vgpu_tenant_add puts this process under one more lease and returns its handle,
 * above 0; or below 0 and the reason (-2: it is under that one already). vgpu_tenant_bind puts the calling thread into the scope of a handle, 0: of none; returns what it
 * was bound to, or -1 for a handle that is none (any more), and then changes nothing. vgpu_tenant_drop leaves a lease.
 */
VGPU_EXPORT int64_t vgpu_tenant_add(const char *const *env, char *reason, size_t reason_size);
VGPU_EXPORT int64_t vgpu_tenant_bind(int64_t handle);
VGPU_EXPORT int vgpu_tenant_drop(int64_t handle);

#endif
