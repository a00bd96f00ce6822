/*
 * Lanes and batches: a lane is a stream's state, a batch is a run of work between two events. Also the turns among a
 * lease's processes, and what belongs to which tenant. Locks: a lane's, then its context's clock's, then the spare
 * events'.
 */
#ifndef VGPU_LANE_H
#define VGPU_LANE_H

#include "../memory/memory.h"

/* ---- busy.c: whether there is work ---- */
void vgpu__busy_enter(struct vgpu_tenant *tenant);
void vgpu__busy_leave(struct vgpu_tenant *tenant, uint32_t count);
int vgpu__gate_tend(struct vgpu_tenant *tenant, uint64_t now); /* by the monitor; 1: look again soon */

/* ---- peers.c: turns among the processes of a lease ---- */
void vgpu__peers_join(struct vgpu_tenant *tenant);  /* in a slot that another process may have had */
void vgpu__peers_begin(struct vgpu_tenant *tenant); /* work begins, or waits to */
int vgpu__peers_alone(const struct vgpu_tenant *tenant); /* no other process of the lease has work */
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
  /* of a copy; small ones are not measured; the last kind ends on the host, which may pause then */
  enum { PIECE_LARGE, PIECE_SMALL, PIECE_SMALL_LAST } size;
};

/* As enter_slow and leave_slow; the entry is the caller's own, zeroed. */
abi_result vgpu__piece_enter(struct vgpu_entry *entry, const struct vgpu_piece *piece, CUstream stream, int *counted);
void vgpu__piece_leave(struct vgpu_entry *entry, const struct vgpu_piece *piece, CUstream stream);

/* ---- fresh.c: functions that may be loaded when they are first launched ---- */
enum { VGPU_FRESH = 4096 };
extern const void *vgpu__fresh[VGPU_FRESH] VGPU_INTERNAL; /* by hash: looked up, and not launched since */
static inline unsigned vgpu__fresh_index(const void *function) {
  uintptr_t bits = (uintptr_t)function;
  return (unsigned)((bits >> 4 ^ bits >> 16) % VGPU_FRESH);
}
static inline int vgpu__is_fresh(const void *function) { return LOAD(vgpu__fresh[vgpu__fresh_index(function)]) == function; }
void vgpu__fresh_found(const void *function);                      /* looked up */
void vgpu__fresh_launch(const void *function, CUstream stream); /* before a launch: the first one begins a batch */
void vgpu__fresh_loaded(const void *function);
void vgpu__fresh_forget(void); /* handles may come again */

/* ---- graph.c: what graphs take ---- */
/* How to launch a graph: 1 as a piece of its own, to be measured; 0: with others, it is short. */
int vgpu__graph_piece(CUgraphExec graph, struct vgpu_piece *piece);
void vgpu__graph_measured(CUgraphExec graph, uint32_t generation, uint64_t took_ns);
void vgpu__graph_forget(CUgraphExec graph); /* before it is destroyed */
void vgpu__graphs_forget(void);

/*
 * Opens a batch or joins one; waits at the gate. ABI_SUCCESS, or the error to return. *counted: leave must be called.
 */
abi_result vgpu__enter_slow(struct vgpu_entry *entry, CUstream stream, int *counted);
/* After the work was handed to the driver: closes the batch when it is full. */
void vgpu__leave_slow(struct vgpu_entry *entry, CUstream stream);
/* The batch was closed by another thread while the driver was called. */
void vgpu__slipped(struct vgpu_entry *entry);

void vgpu__close_stream(CUstream stream); /* ends the open batch */
void vgpu__close_thread(void);            /* those of the lanes that this thread used last */
/* Before waiting: they end the open batches too. Since when it is waited. */
uint64_t vgpu__wait_stream(CUstream stream);
uint64_t vgpu__wait_context(CUcontext context);

/* After waiting since then; 0: in vain. */
void vgpu__waited_stream(CUstream stream, uint64_t since);
void vgpu__waited_context(CUcontext context, uint64_t since);
void vgpu__harvest_stream(CUstream stream);
void vgpu__harvest_thread(void);
void vgpu__harvest_all(void);
void vgpu__stream_differs(CUstream stream); /* what comes next in it takes another time than what came before */
void vgpu__drop_stream(CUstream stream);       /* before it is destroyed */
void vgpu__drop_context(CUcontext context);
void vgpu__drop_tenant(const struct vgpu_tenant *tenant); /* its lanes of default streams */

/* By the monitor: closes what is old, harvests; adds how many batches live, by tenant. */
void vgpu__tend_lanes(uint64_t now, unsigned *batches);
uint64_t vgpu__lane_tenants(void);
void vgpu__lanes_forget(void);
void vgpu__entries_forget(void); /* this thread's, when its current context changes */

/* ---- current.c: the current context, and what goes with one ---- */
/* The number of the calling thread's current context, 1 and up; 0 if none or unknown. */
unsigned vgpu__context_number(void);
/* Perhaps the thread's current context is another one now: then its views of default streams are of the old one. */
abi_result vgpu__switched(abi_result result);
/* A context is about to go: its batches end, its events with it. */
void vgpu__context_going(CUcontext handle);
/* It is gone: so is what it had allocated, whoever did. Its number may come again. */
void vgpu__context_gone(CUcontext handle, struct vgpu_sums *sums);
void vgpu__current_forget(void);

/* ---- scope.c: whose a stream or a graph is ---- */
struct vgpu_tenant *vgpu__stream_tenant(CUstream stream); /* of a stream that a program made */
void vgpu__stream_gone(CUstream stream);
/* after a graph was instantiated, in the scope */
abi_result vgpu__graph_made(abi_result result, const CUgraphExec *graph);
void vgpu__graph_gone(CUgraphExec graph);                                   /* before it is destroyed */
/* Whether the owner of a graph is another one than the tenant whose work goes into a stream. */
int vgpu__is_foreign(const struct vgpu_tenant *owner, CUstream named);
/* Launches it through its owner's gate, in a batch of its own. */
abi_result vgpu__launch_as(struct vgpu_tenant *owner, CUgraphExec graph, CUstream stream, CUstream named,
                           abi_result (*launch)(CUgraphExec, CUstream));
struct vgpu_tenant *vgpu__graph_tenant(CUgraphExec graph); /* NULL: of the stream that it is launched into */

/* ---- among the files of this layer ---- */
enum { VGPU_RING = 64, VGPU_LANES = 1024 };

struct vgpu_batch {
  CUevent start, end; /* end NULL: what it takes is estimated; start NULL: a silent round, see rounds.c */
  uint64_t opened_ns, cost_ns;
  uint64_t began_ns; /* of such a one: when its start was seen to have passed */
  /* when its start was recorded, and its first launch had been called; 0: that was not seen */
  uint64_t recorded_ns, called_ns;
  uint64_t paused_ns; /* how long the process stood still while it was open */
  uint32_t launches; /* 0: not known */
  uint32_t kind;     /* enum vgpu_piece_kind */
  int alone;         /* one piece */
  int guessed;       /* cost_ns is: nobody knows how much of it is over */
  int lent;          /* its end is the next one's start too, and belongs to that */
  int only;          /* nothing else of the tenant was on the GPU when it was opened */
  int idle;          /* nor anything in its stream */
  int waited;        /* it was all that its stream had, and its thread has waited for it */
  int silent;        /* a silent round: rounds.c */
  uint64_t closed_ns;
  uint64_t over_ns;      /* of a silent round: when it was seen to be over; 0: not yet. And these two: */
  uint64_t beside_ns;    /* as in vgpu_rounds */
  uint64_t paused_at_ns; /* how long the process had stood still when it was opened */
  CUgraphExec graph;
  uint32_t generation;
};

/* Rounds alike: rounds.c. */
struct vgpu_rounds {
  uint32_t alike;     /* measured ones in a row */
  uint32_t left;      /* that need not be measured */
  uint32_t launches;  /* of one */
  CUgraphExec graph;  /* or it is this one */
  uint64_t took_ns;   /* one of them, on average */
  uint64_t beside_ns; /* what it takes the host more, at least */
  uint64_t owed_ns;   /* by which silent ones took the host longer: charged if the next measured one did too */
};

struct vgpu_lane {
  uint64_t ticket; /* odd while a batch is open; first, see vgpu__lane_ticket */
  struct vgpu_lock lock;
  uint32_t state; /* enum lane_state */
  CUstream stream;
  struct vgpu_tenant *tenant;
  struct vgpu_context *context;
  uintptr_t owner; /* of a stream that other threads cannot name: which thread */
  struct vgpu_lane *next;
  uint32_t plan, folded; /* launches that the open batch may have; that it is known to have */
  /* it waits for its host: what it has in flight does not count against the bound, and nobody waits for it */
  uint32_t stalled;
  uint32_t unmeasured; /* launches to let by, because an event could not be recorded */
  uint64_t each_ns; /* GPU time of one launch, as measured; 0: not yet */
  uint64_t opened_ns;
  uint64_t ended_ns; /* when the last batch that was harvested ended */
  CUevent start;
  uint64_t recorded_ns, called_ns; /* of the open batch, as in vgpu_batch; and these two: */
  int only, idle;
  int silent;         /* the open batch has no start event */
  struct vgpu_rounds rounds;
  int joins;          /* the last batch was full: what comes next in the stream lies right behind it */
  uint64_t closed_ns; /* when its end was not reached yet, for sure */
  uint64_t cost_ns; /* of the open batch, as planned */
  uint64_t planned_ns; /* when the last batch of many launches was opened */
  uint32_t planned;    /* and what it was planned to have */
  /* how far apart the host launched in the last one; 0: it was closed because the host was silent */
  uint64_t gap_ns;
  uint64_t paused_ns;  /* how long the process had stood still when the open batch was opened */
  int alone;           /* the open batch is this piece */
  struct vgpu_piece piece;
  struct vgpu_batch ring[VGPU_RING];
  unsigned head, count;
};

enum lane_state { LANE_FREE, LANE_LIVE, LANE_ORPHAN /* its stream is gone, its batches are not */ };

/* lane.c */
struct vgpu_lane *vgpu__lane_for(CUstream stream, int make);
uintptr_t vgpu__thread_token(void);
int vgpu__lane_is(const struct vgpu_lane *lane, CUstream stream);
struct vgpu_lane *vgpu__lane_at(unsigned index); /* NULL beyond the last ever used */
void vgpu__fold(struct vgpu_entry *entry);
void vgpu__fold_lane(const struct vgpu_lane *lane); /* what this thread launched into it */
/* those of which nothing has ended since then */
void vgpu__lanes_stalled(const struct vgpu_tenant *tenant, uint64_t since);
/* A default stream: whose it is depends on the calling thread. */
static inline int vgpu__is_special(CUstream stream) { return (uintptr_t)stream <= (uintptr_t)ABI_STREAM_PER_THREAD; }

/* enter.c */
uint64_t vgpu__bound_ns(const struct vgpu_tenant *tenant); /* how much may be open or in flight */

/* batch.c; all with the lane's lock held, but for one */
/* what it should take, at a guess */
uint64_t vgpu__piece_cost(const struct vgpu_tenant *tenant, const struct vgpu_piece *piece);
/* piece: NULL for one of many */
int vgpu__batch_open(struct vgpu_lane *lane, const struct vgpu_piece *piece, uint64_t now);
void vgpu__batch_close(struct vgpu_lane *lane);
void vgpu__batch_close_waiting(struct vgpu_lane *lane); /* the same before its thread waits for it */
void vgpu__batch_end_late(struct vgpu_lane *lane, struct vgpu_batch *batch); /* the last one, which has no end event */
void vgpu__batch_drop(struct vgpu_lane *lane);
void vgpu__batch_called(struct vgpu_lane *lane); /* a launch into the open batch has come back; without the lock */
int vgpu__batch_runs(struct vgpu_lane *lane); /* whether something of it has begun on the GPU, and not ended */
void vgpu__batch_stalled(struct vgpu_lane *lane); /* until one of its batches ends */
unsigned vgpu__batch_harvest(struct vgpu_lane *lane); /* how many are left */
uint64_t vgpu__inflight_scaled(const struct vgpu_tenant *tenant); /* without counting twice what runs at once */

/* rounds.c; all with the lane's lock held */
/* Whether the batch that is about to be opened is a silent one. */
int vgpu__round_begins(struct vgpu_lane *lane, const struct vgpu_piece *piece);
void vgpu__round_measured(struct vgpu_lane *lane, const struct vgpu_batch *batch, uint64_t took, uint64_t now);
uint64_t vgpu__round_took(struct vgpu_lane *lane, const struct vgpu_batch *batch);
abi_result vgpu__round_query(struct vgpu_lane *lane, struct vgpu_batch *batch, uint64_t now);
void vgpu__rounds_over(struct vgpu_lane *lane, uint64_t since); /* a wait that began then has come back */
void vgpu__rounds_forget(struct vgpu_lane *lane);

#endif
