/*
 * The basis of the hook: the leases of this process (tenants) with their shared pages and the connection to the seat,
 * the real driver, the table of allocations, and the contexts.
 */
#ifndef VGPU_REGION_H
#define VGPU_REGION_H

#include <core/rm_abi.h>

#include "../system/system.h"
#include "cuda_abi.h"
#include "driver.h"
#include "shm.h"

enum vgpu_mode {
  VGPU_UNATTACHED, /* cuInit has not been called in this process yet */
  VGPU_ATTACHED,
  VGPU_OPEN,    /* could not attach, VGPU_FAILURE_MODE=open: runs without limits */
  VGPU_REFUSED, /* could not attach: cuInit fails */
  VGPU_DROPPED, /* this process has left the lease: nothing is started or allocated under it any more */
};

/* This process's part in the GPU's express lane: express.c. */
struct vgpu_express {
  struct shm_express *page; /* never NULL: points to `none` if there is no express lane */
  uint64_t bit;             /* with which we announce our work; 0: we announce none */
  uint64_t index;           /* of `bit` */
  uint64_t idle_since_ns;   /* when the GPU became idle for us; written by any thread */
  uint32_t returns;         /* how often work returned within the linger time */
  uint32_t told;            /* we may not write the page: the seat sets our bit and gets a message each time */
  struct shm_express none;
};

/* The connection to the seat: seat.c. */
struct vgpu_link {
  struct vgpu_lock lock;
  int fd, barred; /* barred: must not connect again */
  uint64_t inode;
  const char *within;                 /* where in the run directory the seat's socket was found; NULL: nowhere yet */
  uint64_t named_device, named_inode; /* what had the socket's name then; inode 0: unknown */
  char secret[41], slot_secret[41];   /* sent in a HELLO; "": none */
  struct shm_message incoming;
  size_t incoming_size;
};

/* The monitor's state of a connection. */
struct vgpu_watch {
  uint64_t looked_ns;         /* when the socket was last read */
  int welcome;                /* the seat has answered our HELLO with a WELCOME */
  int lost;                   /* the slot has another owner, and the lease is about to be left */
  unsigned tries, unanswered; /* connections since the last WELCOME; those given up for want of an answer */
  uint64_t next_try_ns, asked_ns;
};

enum { VGPU_GAPS = 8 };

/* What the seat was told, the pace while no seat answers, and skipped charges: busy.c, gate.c. */
struct vgpu_gate {
  struct vgpu_lock pace_lock;
  uint64_t pace_since_ns, pace_gpu_ns;
  uint32_t told_idle, idle_pending, short_idles;
  uint64_t idle_since_ns;
  struct vgpu_lock gaps_lock;
  /* the last stretches that were skipped when charging; a batch that ran in one may still end later */
  struct vgpu_gap {
    uint64_t from_ns, to_ns;
  } gaps[VGPU_GAPS];
  uint32_t next_gap;
};

enum { VGPU_SLOTS = 128 /* SLOT_COUNT */, VGPU_UUID = 96 };

/* What is known about the lease's other processes: peers.c. */
struct vgpu_peers {
  uint64_t until_ns;                   /* until when this process's pace is counted */
  uint64_t idle_since_ns, tended_pace; /* since when the monitor sees it idle (0: not idle), and the pace then */
  uint64_t seen_ns, seen_pace; /* since when the holder of the turn has been idle (0: it is not), and its pace */
  uint32_t seen_turn;
  uint64_t paused_ns;             /* vgpu__paused_ns at the last look */
  uint32_t begun;                 /* it has had work in this slot before */
  uint64_t asked_ns[VGPU_SLOTS];  /* per slot: when the kernel was last asked whether the process runs */
  uint64_t gone_beat[VGPU_SLOTS]; /* per slot: the last beat of a process found stopped or dead; 0: it ran */
};

enum { VGPU_TENANTS = 64, VGPU_DEVICES = 64, VGPU_GPUS = 8 /* MEMORY_GPUS */ };

/*
 * A lease in this process. Each allocation, stream, graph and lane belongs to one tenant for life. So an index is
 * reused for another lease only when nothing of the previous one is left, and no structure is ever freed. The page
 * pointers are never NULL: before attaching and in open mode they point to private pages of this process, and after
 * dropping to private pages that refuse.
 */
struct vgpu_tenant {
  const struct shm_grant *grant; /* read-only */
  const struct shm_header *seat; /* header of the grant page */
  struct shm_header *report;
  struct shm_ledger *ledger;
  struct shm_slot *slots; /* SLOT_COUNT of them */
  struct shm_slot *slot;  /* ours */
  uint32_t index;         /* in vgpu__tenants */
  uint32_t generation;    /* changes when the lease is dropped: threads bound before then get vgpu__ended */
  uint64_t dropped_ns;
  char *region; /* the address range of its pages, fixed for life; only the mappings change */
  uint32_t slot_number;
  uint32_t mode; /* enum vgpu_mode */
  uint32_t autonomous;
  uint32_t overlap;     /* charged part of the batches' own time, in 1/1024; lower where streams overlap */
  uint64_t inflight_ns; /* expected GPU time of the work open or in flight in all its lanes */
  uint64_t context_bytes;
  struct vgpu_lock ledger_lock;
  uint32_t gpus; /* how many GPUs have an account of their own; up to 1: one account for all. gpus.c */
  struct vgpu_gate gate;
  struct vgpu_peers peers;
  struct vgpu_express express;
  struct vgpu_link link;
  struct vgpu_watch watch;
  uint64_t seat_ran_ns;           /* when the kernel last said that the seat's process runs; written by any thread */
  uint8_t gpu_of[VGPU_DEVICES];   /* by the driver's device: number of its account + 1; 0: not looked for yet */
  uint64_t owed_units[VGPU_GPUS]; /* to give back with the next change: their return could not be written */
  uint64_t debt_units[VGPU_GPUS]; /* held by contexts and modules without a charge: the quota had no room */
  uint64_t overhead_units[VGPU_GPUS]; /* debt that was charged later, from frees or free quota */
  char run_dir[VGPU_PATH];
  char lease[sizeof((struct shm_message *)NULL)->lease];
} __attribute__((aligned(128)));
extern struct vgpu_tenant vgpu__home VGPU_INTERNAL; /* index 0: the tenant of this process or of its cuInit */
extern struct vgpu_tenant *vgpu__tenants[VGPU_TENANTS] VGPU_INTERNAL; /* by index; NULL from vgpu__tenants_used on */
extern uint32_t vgpu__tenants_used VGPU_INTERNAL;
/* for threads bound to no tenant: the oldest tenant that was not dropped */
extern struct vgpu_tenant *vgpu__unbound VGPU_INTERNAL;
extern struct vgpu_tenant vgpu__ended VGPU_INTERNAL; /* for threads bound to a tenant that was dropped */

/* The next attached tenant from *index on; NULL at the end. for (i = 0; (t = vgpu__tenant_next(&i)) != NULL; i++) */
struct vgpu_tenant *vgpu__tenant_next(unsigned *index);
/* Resets a tenant to "never attached", with private pages. The caller sets its region and generation. */
void vgpu__tenant_clear(struct vgpu_tenant *tenant, uint32_t index);

/* Whether this process is, or was, under a virtual GPU. Before that nothing is recorded. */
extern uint32_t vgpu__attached VGPU_INTERNAL;
extern uint32_t vgpu__driver_initialised VGPU_INTERNAL;  /* cuInit has succeeded */
extern struct vgpu_lock vgpu__attach_lock VGPU_INTERNAL; /* held while joining and leaving leases */

/* ---- the tenant in whose scope the calling thread works ---- */
struct vgpu_scope {
  struct vgpu_tenant *bound; /* NULL: none */
  struct vgpu_tenant *as;    /* for one launch: the owner of a graph launched into another tenant's stream */
  uint32_t generation;
};
extern __thread struct vgpu_scope vgpu__scope __attribute__((tls_model("initial-exec")));

/* The tenant of the calling thread: what the thread allocates and makes belongs to it. Never NULL. */
static inline struct vgpu_tenant *vgpu_tenant_current(void) {
  struct vgpu_tenant *bound = vgpu__scope.bound;
  if (LIKELY(bound == NULL)) return LOAD_ACQUIRE(vgpu__unbound);
  return LIKELY(LOAD(bound->generation) == vgpu__scope.generation) ? bound : &vgpu__ended;
}

/* Allocations in its scope are charged, or refused. Acquire: whoever sees ATTACHED also sees the lease's pages. */
static inline int vgpu__is_charged(const struct vgpu_tenant *tenant) {
  uint32_t mode = LOAD_ACQUIRE(tenant->mode);
  return mode == VGPU_ATTACHED || mode == VGPU_DROPPED;
}

/* True once there are several tenants. Only then are the owners of streams and graphs recorded. */
static inline int vgpu__are_several(void) { return LOAD_ACQUIRE(vgpu__tenants_used) > 1; }

static inline int vgpu__word_open(uint32_t word) {
  return (word & (SHM_GRANT_OPEN | SHM_GRANT_REVOKED)) == SHM_GRANT_OPEN;
}

/* The seat looks seldom, so it must be told when work begins. In one order with the count of work: busy.c. */
static inline int vgpu__seat_rests(const struct vgpu_tenant *tenant) {
  return (__atomic_load_n(&tenant->grant->turn_flags, __ATOMIC_SEQ_CST) & SHM_TURN_RESTING) != 0;
}

/* Whether none of its movable memory is on the host, where kernels cannot use it. */
static inline int vgpu__movable_is_home(const struct vgpu_tenant *tenant) {
  return LOAD_ACQUIRE(tenant->slot->moved_bytes) == 0;
}

/* ---- pages.c: the mapping of the shared pages ---- */
/*
 * The files are mapped one by one into a tenant's range, so each begins at a multiple of the kernel's page. Kernels for
 * aarch64 have pages of up to 64 KiB. The range costs addresses, not memory.
 */
enum {
  VGPU_STEP = 65536,
  VGPU_REGION_REPORT = VGPU_STEP,
  VGPU_REGION_EXPRESS = VGPU_REGION_REPORT + 2 * VGPU_STEP,
  VGPU_REGION = VGPU_REGION_EXPRESS + VGPU_STEP
};
_Static_assert(sizeof(struct shm_slot) * 128 + 4096 <= 2 * VGPU_STEP, "REPORT_SIZE");
enum { VGPU_PATIENCE_MS = 2000 }; /* how long to wait for a seat, or for the pages that it writes */
/* Maps a file of shared pages after checking it; NULL: invalid, with the reason logged. */
void *vgpu__map_file(const char *path, uint64_t size, uint64_t magic, uint64_t slot_count, int writable);
int vgpu__region_make(struct vgpu_tenant *tenant);
/* Moves pages into the tenant's range; NULL: failed, and the pages are unmapped. */
void *vgpu__region_move(struct vgpu_tenant *tenant, size_t offset, void *pages, size_t size);
void vgpu__pages_leave(struct vgpu_tenant *tenant); /* replaces the pages by private ones that refuse */

/* ---- seat.c: the connection to the seat ---- */
enum { VGPU_SEAT_NOTHING, VGPU_SEAT_MESSAGE, VGPU_SEAT_GONE };

/* Connects and sends HELLO, with our slot if we have one. Returns 0 or an errno. The WELCOME follows later. */
int vgpu__seat_connect(struct vgpu_tenant *tenant);
/* Keeps the slot's secret, which is needed to get the slot back after a lost connection. */
void vgpu__seat_welcomed(struct vgpu_tenant *tenant, const struct shm_message *welcome);
/* Receives one message, if it is complete. */
int vgpu__seat_receive(struct vgpu_tenant *tenant, struct shm_message *into);
/* Sleeps until there is something to receive, for at most ns. */
void vgpu__seat_await(struct vgpu_tenant *tenant, uint64_t ns);
int vgpu__seat_connected(struct vgpu_tenant *tenant);
/* Whether another seat's socket has the name now. The one that the connection leads to may live on, and stay mute. */
int vgpu__seat_is_replaced(struct vgpu_tenant *tenant);
void vgpu__seat_send(struct vgpu_tenant *tenant, uint32_t type);
void vgpu__seat_close(struct vgpu_tenant *tenant);
void vgpu__seat_bar(struct vgpu_tenant *tenant);
void vgpu__seat_forget(struct vgpu_tenant *tenant);
/* The seat beats every 2 ms. If the last beat is older than this, the kernel is asked whether the seat is gone. */
enum { VGPU_SILENCE_NS = 5 * NS_PER_MS };
int vgpu__seat_is_silent(struct vgpu_tenant *tenant, uint64_t now);
/*
 * The word that the kernel changes when the seat's thread ends, however it ends; NULL: the seat has none. When a
 * process is killed, this comes before its memory is unmapped, and its sockets and locks end only after that. The
 * kernel wakes one waiter, which passes it on.
 */
const uint32_t *vgpu__seat_thread(const struct vgpu_tenant *tenant);
int vgpu__seat_has_ended(const struct vgpu_tenant *tenant);
void vgpu__seat_pass_on_end(const struct vgpu_tenant *tenant);

/* ---- table.c: the allocations of this process ---- */
/* Bytes by tenant and account, for calls that free memory of several tenants at once; and of pinned host memory. */
struct vgpu_sums {
  uint64_t bytes[VGPU_TENANTS][VGPU_GPUS];
  uint64_t host[VGPU_TENANTS];
};

enum vgpu_kind {
  KIND_NONE,
  KIND_POINTER,
  KIND_POOL,
  KIND_ARRAY,
  KIND_HANDLE,
  KIND_CONTEXT,
  KIND_HOST,
  KIND_STREAM,
  KIND_GRAPH,
  KIND_GRAPH_MEMORY,
  KIND_GREEN
};
int vgpu__table_put(const struct vgpu_tenant *tenant, int gpu, enum vgpu_kind kind, uint64_t key, uint64_t bytes,
                    unsigned context);
/* A record. vgpu__table_take removes it and returns 1, or 0 if there is none. */
struct vgpu_record {
  struct vgpu_tenant *tenant;
  uint64_t bytes;
  unsigned context;
  int gpu; /* the account that pays */
};
/* The tenant of a record, which is kept; NULL: no record. */
struct vgpu_tenant *vgpu__table_tenant(enum vgpu_kind kind, uint64_t key);
int vgpu__table_take(enum vgpu_kind kind, uint64_t key, struct vgpu_record *into);
/* The same, but keeps the record. */
int vgpu__table_find(enum vgpu_kind kind, uint64_t key, struct vgpu_record *into);
/* Removes all records of a context (or all of a kind with this tag) and adds up their bytes. */
void vgpu__table_take_context(unsigned context, struct vgpu_sums *sums);
void vgpu__table_take_tagged(enum vgpu_kind kind, unsigned tag, struct vgpu_sums *sums);
uint64_t vgpu__table_tenants(void); /* indices of the tenants that have a record, as bits */
void vgpu__table_forget(void);

/* ---- gpus.c: the accounts of a lease on several GPUs; of other leases there is one, number 0 ---- */
static inline int vgpu__gpus(const struct vgpu_tenant *tenant) {
  return LIKELY(tenant->gpus <= 1) ? 1 : (int)tenant->gpus;
}
enum { VGPU_NO_GPU = -1 }; /* the lease has no account for this GPU: nothing is charged to it, and all is refused */
int vgpu__gpu_find(struct vgpu_tenant *tenant, CUdevice device);
int vgpu__gpu_find_current(struct vgpu_tenant *tenant);
/* The account that pays for memory on a device, or on that of the current context. */
static inline int vgpu__gpu_of(struct vgpu_tenant *tenant, CUdevice device) {
  return LIKELY(tenant->gpus <= 1) ? 0 : vgpu__gpu_find(tenant, device);
}
static inline int vgpu__gpu_here(struct vgpu_tenant *tenant) {
  return LIKELY(tenant->gpus <= 1) ? 0 : vgpu__gpu_find_current(tenant);
}
/* The device of a pool that the program did not make: some device's default or current one; -1: unknown. */
CUdevice vgpu__pool_device(CUmemoryPool handle);
void vgpu__gpus_join(struct vgpu_tenant *tenant); /* once its pages are mapped */
/*
 * What is measured at once: one GPU, or all of them if no lease of this process has an account for each.
 * for (i = 0; vgpu__spot_next(&i, &spot); i++)
 */
struct vgpu_spot {
  char uuid[VGPU_UUID]; /* "": all GPUs */
};
int vgpu__spot_next(unsigned *index, struct vgpu_spot *spot);
void vgpu__spot_of(const struct vgpu_tenant *tenant, int gpu, struct vgpu_spot *spot); /* that of an account */
int vgpu__spot_has(const struct vgpu_spot *spot, const struct vgpu_tenant *tenant, int gpu);
extern const struct vgpu_spot vgpu__everywhere VGPU_INTERNAL;

/* The words of an account on the shared pages. */
static inline uint64_t *vgpu__word_of(struct shm_ledger *ledger, int gpu) {
  return LIKELY(gpu == 0) ? &ledger->memory_word : &ledger->memory_words[gpu - 1];
}
static inline uint64_t *vgpu__own_of(struct shm_slot *slot, int gpu) {
  return LIKELY(gpu == 0) ? &slot->memory_own : &slot->memory_owns[gpu - 1];
}
static inline uint64_t *vgpu__done_of(struct shm_slot *slot, int gpu) {
  return LIKELY(gpu == 0) ? &slot->memory_done : &slot->memory_dones[gpu - 1];
}

/* ---- contexts.c: the driver's contexts, and the hook's events in each ---- */
enum { VGPU_SPARE_EVENTS = 256, VGPU_CONTEXTS = 512 };

struct vgpu_context {
  struct vgpu_lock lock; /* guards the spare events */
  CUcontext handle;      /* NULL: free entry */
  uint32_t charged;      /* its payer is known */
  uint32_t attached;     /* how often the program has attached it and not detached it again; vgpu__made_lock */
  uint32_t alias;        /* of a green context: number of the context whose memory it shares; 0: its own */
  CUevent spare[VGPU_SPARE_EVENTS];
  unsigned spares;
  /* An event that has passed, and its time on CLOCK_MONOTONIC: ties the GPU's clock to ours. */
  struct vgpu_lock clock_lock;
  CUevent base;
  uint64_t base_ns, based_ns;
  unsigned corrections;
  uint64_t blocking_ns; /* when a stream that the legacy stream waits for was last used; 0: never. lane/legacy.c */
};
extern struct vgpu_context vgpu__contexts[VGPU_CONTEXTS] VGPU_INTERNAL;
int vgpu__contexts_used(void); /* entries from this index on were never used */

/* The entry of a context that exists, made if new. NULL: all entries are taken, which is logged. */
struct vgpu_context *vgpu__context_of(CUcontext handle);
/* The same for any handle: NULL if there is no entry. */
struct vgpu_context *vgpu__context_known(CUcontext handle);
struct vgpu_context *vgpu__context_current(void); /* that of the calling thread; NULL: none, or without an entry */
/*
 * Around the hook's own calls: makes the context current if it is not, and allows calls that another thread's capture
 * would forbid (querying an event would then end the capture). Returns the argument of vgpu__context_leave.
 */
int vgpu__context_enter(const struct vgpu_context *context);
void vgpu__context_leave(int entered);
void vgpu__contexts_forget(void);
CUevent vgpu__event_take(struct vgpu_context *context);
void vgpu__event_return(struct vgpu_context *context, CUevent event);
int vgpu__is_capturing(CUstream stream);

/* ---- held.c: the memory that this process holds according to NVML ---- */
const char *vgpu__held_open(void); /* NULL: success; else why NVML gives no figure */
/* on the GPU with this UUID; "": on all. 1: known; 0: process not listed; -1: no figure */
int vgpu__held_read(const char *uuid, uint64_t *bytes);
void vgpu__held_forget(void);
void vgpu__held_began(void); /* called by the thread that initialises the driver */

/* ---- opening.c: the C library's own dlopen, bypassing the hook's ---- */
void *vgpu__dlopen(const char *path, int flags);
void vgpu__find_next(void **next, const char *name);
extern void *vgpu__dlopen_next VGPU_INTERNAL; /* trampolines-*.S jumps there */
/*
 * Finds the file that the dynamic linker would open for a name without a slash, on behalf of the library `map` (a
 * handle); ld.so.cache is left out. `into` holds PATH_MAX bytes. 0: found.
 */
int vgpu__search(const char *name, void *map, char *into);

/* ---- redirect.c: redirecting one import of one library ---- */
/*
 * Redirects the import `name` of the library with this dlopen handle to `to`. *next: the previous target. 0, or -1 if
 * the library has no such import or it cannot be written. No other library's imports are touched.
 */
int vgpu__redirect(void *handle, const char *name, void *to, void **next);

/* ---- rm_decode.c: the driver's ioctls ---- */
/*
 * Reads memory of this process that may be unmapped: 0, or -1. Slower than a load: only for the few calls that are
 * followed.
 */
int vgpu__peek(void *into, uint64_t from, size_t size);
int vgpu__poke(uint64_t into, const void *from, size_t size);
/* Decodes a request; never reads unmapped memory. kind is OTHER for all calls that the core does not follow. */
void vgpu__rm_parse(unsigned long request, uint64_t argument, struct vgpu_rm_call *into);

/* ---- driver.c: passed-through functions, in the layout that trampolines-*.S uses ---- */
struct vgpu_pass {
  void *target;
  uint64_t count;
  const char *name;
  uint64_t padding;
};
void *vgpu__bind(struct vgpu_pass *slot);
VGPU_EXPORT const char *vgpu_hook_version(void);

#endif
