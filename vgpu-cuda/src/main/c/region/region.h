/*
 * What the hook stands on: the leases of this process (tenants) with their shared pages and the connection to the seat,
 * the real driver, the table of what was allocated, and the contexts.
 */
#ifndef VGPU_REGION_H
#define VGPU_REGION_H

#include "../system/system.h"
#include "cuda_abi.h"
#include "driver.h"
#include "rm_abi.h"
#include "shm.h"

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

enum { VGPU_GAPS = 8 };

/* What the seat was told, the pace while no seat answers, and what was charged: busy.c, gate.c. */
struct vgpu_gate {
  struct vgpu_lock pace_lock;
  uint64_t pace_since_ns, pace_gpu_ns;
  uint32_t told_idle, idle_pending, short_idles;
  uint64_t idle_since_ns;
  struct vgpu_lock gaps_lock;
  /* the last stretches of time that were charged to nobody: a batch that ran in one may still be found */
  struct vgpu_gap {
    uint64_t from_ns, to_ns;
  } gaps[VGPU_GAPS];
  uint32_t next_gap;
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

enum { VGPU_TENANTS = 64 };

/*
 * A lease in this process. What is allocated, each stream, graph and lane belongs to one for life; so an index is given
 * to another lease only when nothing of the one before is left, and no structure is ever freed. The pages are never
 * null: before attaching, and in open mode, they are private ones of this process; after dropping, private ones that
 * refuse.
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
/* of threads that are bound to none: the oldest that was not dropped */
extern struct vgpu_tenant *vgpu__unbound VGPU_INTERNAL;
extern struct vgpu_tenant vgpu__ended VGPU_INTERNAL;    /* of threads that are bound to one that was dropped */

/*
 * The next one from *index on that is attached; NULL at the end. for (i = 0; (t = vgpu__tenant_next(&i)) != NULL; i++)
 */
struct vgpu_tenant *vgpu__tenant_next(unsigned *index);
/* As one that was never attached, with private pages; its place and its generation are the caller's. */
void vgpu__tenant_clear(struct vgpu_tenant *tenant, uint32_t index);

/* Whether this process is, or was, under a virtual GPU at all: before that nothing is recorded. */
extern uint32_t vgpu__attached VGPU_INTERNAL;
extern uint32_t vgpu__driver_initialised VGPU_INTERNAL; /* cuInit has succeeded */
extern struct vgpu_lock vgpu__attach_lock VGPU_INTERNAL; /* of joining and leaving leases */

/* ---- which tenant the calling thread is in the scope of ---- */
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

static inline int vgpu__word_open(uint32_t word) {
  return (word & (SHM_GRANT_OPEN | SHM_GRANT_REVOKED)) == SHM_GRANT_OPEN;
}

/* The seat looks seldom: it is told when work begins. */
static inline int vgpu__seat_rests(const struct vgpu_tenant *tenant) {
  return (LOAD(tenant->grant->turn_flags) & SHM_TURN_RESTING) != 0;
}

/* Whether all of its memory is where kernels find it. */
static inline int vgpu__movable_is_home(const struct vgpu_tenant *tenant) {
  return LOAD_ACQUIRE(tenant->slot->moved_bytes) == 0;
}

/* ---- pages.c: where the shared pages are mapped ---- */
enum { VGPU_REGION = 4096 + 69632 + 4096, VGPU_REGION_EXPRESS = 4096 + 69632 };
_Static_assert(sizeof(struct shm_slot) * 128 + 4096 == 69632, "GRANT_SIZE + REPORT_SIZE + EXPRESS_SIZE");
enum { VGPU_PATIENCE_MS = 2000 }; /* how long to wait for a seat, or for the pages that it makes */
/* Maps a file of shared pages, unless it is not what it must be; NULL with the reason logged. */
void *vgpu__map_file(const char *path, uint64_t size, uint64_t magic, uint64_t slot_count, int writable);
int vgpu__region_make(struct vgpu_tenant *tenant);
/* Moves pages to their place; NULL: it cannot, and they are unmapped. */
void *vgpu__region_move(struct vgpu_tenant *tenant, size_t offset, void *pages, size_t size);
void vgpu__pages_leave(struct vgpu_tenant *tenant); /* private ones that refuse instead */

/* ---- seat.c: the connection to the seat ---- */
enum { VGPU_SEAT_NOTHING, VGPU_SEAT_MESSAGE, VGPU_SEAT_GONE };

/* Connects and says HELLO, with our slot if we have one: 0, or an errno. The WELCOME comes later. */
int vgpu__seat_connect(struct vgpu_tenant *tenant);
/* Keeps the slot's secret, by which alone it is ours again after the connection was lost. */
void vgpu__seat_welcomed(struct vgpu_tenant *tenant, const struct shm_message *welcome);
/* One message if a whole one is there. */
int vgpu__seat_receive(struct vgpu_tenant *tenant, struct shm_message *into);
int vgpu__seat_connected(struct vgpu_tenant *tenant);
void vgpu__seat_send(struct vgpu_tenant *tenant, uint32_t type);
void vgpu__seat_close(struct vgpu_tenant *tenant);
void vgpu__seat_bar(struct vgpu_tenant *tenant);
void vgpu__seat_forget(struct vgpu_tenant *tenant);
enum { VGPU_SILENCE_NS = 15 * NS_PER_MS }; /* a seat that beats later may be gone */
int vgpu__seat_is_silent(const struct vgpu_tenant *tenant, uint64_t now);

/* ---- table.c: what this process has allocated ---- */
/* Bytes by tenant, for what frees the memory of several at once. */
struct vgpu_sums {
  uint64_t bytes[VGPU_TENANTS];
};

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
uint64_t vgpu__table_tenants(void); /* the indices of those that have a record, by bits */
void vgpu__table_forget(void);

/* ---- contexts.c: the driver's contexts, and the events that are ours in each ---- */
enum { VGPU_SPARE_EVENTS = 256, VGPU_CONTEXTS = 64 };

struct vgpu_context {
  struct vgpu_lock lock; /* of the spare events */
  CUcontext handle;      /* NULL: free */
  uint32_t charged;      /* it is known who pays for it */
  uint32_t alias;        /* of a green context: the number of the one whose memory it shares; 0: it has its own */
  CUevent spare[VGPU_SPARE_EVENTS];
  unsigned spares;
  /* An event that has passed, and when it did on CLOCK_MONOTONIC: ties the GPU's clock to ours. */
  struct vgpu_lock clock_lock;
  CUevent base;
  uint64_t base_ns, based_ns;
  unsigned corrections;
};
extern struct vgpu_context vgpu__contexts[VGPU_CONTEXTS] VGPU_INTERNAL;

struct vgpu_context *vgpu__context_of(CUcontext handle);
/*
 * Around calls of our own: makes the context current if it is not, and allows what a capture of another thread would
 * forbid (querying an event then would end the capture). Returns what vgpu__context_leave needs.
 */
int vgpu__context_enter(const struct vgpu_context *context);
void vgpu__context_leave(int entered);
void vgpu__contexts_forget(void);
CUevent vgpu__event_take(struct vgpu_context *context);
void vgpu__event_return(struct vgpu_context *context, CUevent event);
int vgpu__is_capturing(CUstream stream);

/* ---- held.c: what NVML says that this process holds ---- */
const char *vgpu__held_open(void); /* why it does not tell; NULL: it does */
int vgpu__held_read(uint64_t *bytes); /* on all GPUs. 1: told; 0: it is not among the processes; -1: not told */
void vgpu__held_forget(void);
void vgpu__held_began(void); /* by the thread in which the driver is initialised */

/* ---- opening.c: the C library's way to open a library, past our own dlopen ---- */
void *vgpu__dlopen(const char *path, int flags);
void vgpu__find_next(void **next, const char *name);
extern void *vgpu__dlopen_next VGPU_INTERNAL; /* trampolines.S jumps there */
/*
 * Where the dynamic linker would find a name without a slash for a library (its handle), its own cache left out;
 * PATH_MAX. 0: found.
 */
int vgpu__search(const char *name, void *map, char *into);

/* ---- redirect.c: one import of one library ---- */
/*
 * Makes the library behind a handle of dlopen call `to` where it calls its import `name`. *next: what it called before.
 * 0, or -1 if it has no such import, or that cannot be written. Nobody else's imports are touched.
 */
int vgpu__redirect(void *handle, const char *name, void *to, void **next);

/* ---- driver.c: functions that are passed through, as trampolines.S has them ---- */
struct vgpu_pass {
  void *target;
  uint64_t count;
  const char *name;
  uint64_t padding;
};
void *vgpu__bind(struct vgpu_pass *slot);
VGPU_EXPORT const char *vgpu_hook_version(void);

#endif
