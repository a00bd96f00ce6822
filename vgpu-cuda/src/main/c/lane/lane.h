/*
 * Lanes and batches: a lane is a stream's state, a batch is a run of work between two events. Also the turns among a
 * lease's processes, and the owners of streams and graphs. Lock order: a lane's, then its context's clock_lock, then
 * that of the spare events.
 */
#ifndef VGPU_LANE_H
#define VGPU_LANE_H

#include "../memory/memory.h"

/* ---- busy.c: whether there is work ---- */
void vgpu__busy_enter(struct vgpu_tenant *tenant);
void vgpu__busy_leave(struct vgpu_tenant *tenant, uint32_t count);
int vgpu__gate_tend(struct vgpu_tenant *tenant, uint64_t now); /* by the monitor; 1: call again soon */

/* ---- peers.c: turns among the processes of a lease ---- */
void vgpu__peers_join(struct vgpu_tenant *tenant);       /* after taking a slot that another process may have had */
void vgpu__peers_begin(struct vgpu_tenant *tenant);      /* before work begins, or waits to begin */
int vgpu__peers_alone(const struct vgpu_tenant *tenant); /* no other process of the lease has work */
int vgpu__peers_may_start(struct vgpu_tenant *tenant, uint64_t each_ns); /* each_ns: expected GPU time */
void vgpu__peers_wait(struct vgpu_tenant *tenant);                       /* waits briefly; then ask again */
void vgpu__peers_charge(struct vgpu_tenant *tenant, uint64_t start_ns, uint64_t end_ns);
void vgpu__peers_tend(struct vgpu_tenant *tenant, uint64_t now);

/* ---- lane.c, enter.c, batch.c: lanes and batches ---- */
struct vgpu_lane;

/* A thread's view of the open batch of a lane; valid while `ticket` equals the lane's. */
struct vgpu_entry {
  CUstream stream;
  struct vgpu_lane *lane;
  uint64_t ticket;
  uint32_t left;           /* launches that this thread may still add without a look at the lane */
  uint32_t granted;        /* the initial value of `left` */
  uint32_t word;           /* the grant word under which it was opened */
  uint64_t heed;           /* bits of the express lane that end the batch */
  const uint32_t *gate;    /* the grant word of the lane's tenant */
  const uint64_t *express; /* and the busy bits of its express lane */
};
enum { VGPU_ENTRIES = 8 };
_Static_assert(sizeof(struct vgpu_entry) == 64, "one cache line");
extern __thread struct vgpu_entry vgpu__entries[VGPU_ENTRIES] __attribute__((tls_model("initial-exec")));

static inline struct vgpu_entry *vgpu__entry_of(CUstream stream) {
  uintptr_t bits = (uintptr_t)stream;
  return &vgpu__entries[(bits >> 4 ^ bits >> 10 ^ bits) % VGPU_ENTRIES];
}

/* A lane's ticket is its first word: odd while a batch is open, changed by each opening and closing. */
static inline uint64_t vgpu__lane_ticket(const struct vgpu_lane *lane) {
  return __atomic_load_n((const uint64_t *)(const void *)lane, __ATOMIC_ACQUIRE);
}

/* True if this work simply joins the open batch: in the common case this is the whole cost of a launch. */
static inline int vgpu__enter_fast(struct vgpu_entry *entry, CUstream stream) {
  if (LIKELY(entry->stream == stream && entry->left > 1 && vgpu__lane_ticket(entry->lane) == entry->ticket &&
             LOAD_ACQUIRE(*entry->gate) == entry->word && (LOAD(*entry->express) & entry->heed) == 0)) {
    entry->left--;
    return 1;
  }
  return 0;
}

/* Work that is a batch of its own. */
enum vgpu_piece_kind {
  PIECE_WORK, /* takes GPU time */
  PIECE_COPY, /* takes a copy engine's time: counted separately, and held back only by more urgent tenants */
};
struct vgpu_piece {
  enum vgpu_piece_kind kind;
  CUgraphExec graph;   /* to measure, or NULL */
  uint32_t generation; /* of that graph's entry */
  uint64_t cost_ns;    /* expected time; 0: unknown */
  int guessed;         /* cost_ns is a guess: the graph was not measured yet, or varies */
  int varies;          /* the next launch may take any time: it counts as half the bound at least */
  int waits;           /* the call may return long after its work was queued */
  /* of a copy: small ones are not measured; SMALL_LAST ends on the host, which may pause afterwards */
  enum { PIECE_LARGE, PIECE_SMALL, PIECE_SMALL_LAST } size;
};

/* Like vgpu__enter_slow and vgpu__leave_slow, with the caller's own zeroed entry. */
abi_result vgpu__piece_enter(struct vgpu_entry *entry, const struct vgpu_piece *piece, CUstream stream, int *counted);
void vgpu__piece_leave(struct vgpu_entry *entry, const struct vgpu_piece *piece, CUstream stream);

/* ---- fresh.c: functions that the driver may load at their first launch ---- */
enum { VGPU_FRESH = 4096 };
extern const void *vgpu__fresh[VGPU_FRESH] VGPU_INTERNAL; /* by hash: looked up and not launched yet */
static inline unsigned vgpu__fresh_index(const void *function) {
  uintptr_t bits = (uintptr_t)function;
  return (unsigned)((bits >> 4 ^ bits >> 16) % VGPU_FRESH);
}
static inline int vgpu__is_fresh(const void *function) {
  return LOAD(vgpu__fresh[vgpu__fresh_index(function)]) == function;
}
void vgpu__fresh_found(const void *function);                   /* looked up */
void vgpu__fresh_launch(const void *function, CUstream stream); /* a function's first launch begins a batch */
void vgpu__fresh_loaded(const void *function);
void vgpu__fresh_forget(void); /* handles may be reused */

/* ---- graph.c: the time of graphs ---- */
/* How to launch a graph. 1: as a piece of its own, to be measured; 0: it is short and shares a batch. */
int vgpu__graph_piece(CUgraphExec graph, struct vgpu_piece *piece);
void vgpu__graph_measured(CUgraphExec graph, uint32_t generation, uint64_t took_ns);
void vgpu__graph_instantiated(void *graph, CUgraphExec exec);
void vgpu__graph_forget(CUgraphExec graph); /* before it is destroyed */
void vgpu__graphs_forget(void);

/*
 * Opens a batch or joins one; waits at the gate. ABI_SUCCESS, or the error to return. *counted: leave_slow must be
 * called.
 */
abi_result vgpu__enter_slow(struct vgpu_entry *entry, CUstream stream, int *counted);
/* After the work was handed to the driver: closes the batch if it is full. */
void vgpu__leave_slow(struct vgpu_entry *entry, CUstream stream);
/* Another thread closed the batch during the driver's call. */
void vgpu__slipped(struct vgpu_entry *entry);

void vgpu__close_stream(CUstream stream); /* closes the open batch, in a call that puts something into the stream */
/* The same in a call that makes the stream wait, signal, or call the host. starts: it may use memory. */
void vgpu__order_stream(CUstream stream, int starts);
void vgpu__capture_stream(CUstream stream); /* the same before the stream is captured */
void vgpu__settle_stream(CUstream stream);  /* closes the open batch after a call that waited for it, and harvests */
void vgpu__close_thread(void);              /* closes those of the lanes that this thread used last */
/* Before a wait: close the open batches too, and return when the wait begins. */
uint64_t vgpu__wait_stream(CUstream stream);
uint64_t vgpu__wait_context(CUcontext context);

/* After a wait that began at `since`; 0: the wait failed. */
void vgpu__waited_stream(CUstream stream, uint64_t since);
void vgpu__waited_context(CUcontext context, uint64_t since);
void vgpu__harvest_thread(void);
void vgpu__harvest_all(void);
void vgpu__stream_differs(CUstream stream); /* the next work in it differs from the work before */
void vgpu__drop_stream(CUstream stream);    /* before it is destroyed */
void vgpu__drop_context(CUcontext context);
void vgpu__drop_tenant(const struct vgpu_tenant *tenant); /* its lanes of default streams; closes the others */

/* What the monitor learns about a tenant's lanes. */
struct vgpu_tended {
  unsigned batches; /* open or in flight */
  uint64_t rest_ns; /* from now to the next expected end of one, or since the last one; 0: unknown */
};
/* By the monitor: closes old batches and harvests. Fills `tended`, by tenant. */
void vgpu__tend_lanes(uint64_t now, struct vgpu_tended *tended);
uint64_t vgpu__lane_tenants(void);
/* By the monitor, while the tenant's gate is shut: whether nothing of its work is on the GPU. idle.c */
int vgpu__lanes_are_idle(const struct vgpu_tenant *tenant);
void vgpu__lanes_forget(void);
void vgpu__entries_forget(void); /* this thread's entries, when its current context changes */

/* ---- current.c: the current context, and what ends with one ---- */
/* The context of a stream as the calling thread names it; NULL: none, or without an entry. */
struct vgpu_context *vgpu__context_for(CUstream stream);
/* The number of the calling thread's current context, from 1; 0 if none or unknown. */
unsigned vgpu__context_number(void);
/* After a call that may have changed the thread's current context. Its entries of default streams are then outdated. */
abi_result vgpu__switched(abi_result result);
/* Before a context is destroyed: ends its batches and returns its events. */
void vgpu__context_going(CUcontext handle);
/* After a context was destroyed: its allocations are gone, whichever tenant made them. Its number may be reused. */
void vgpu__context_gone(CUcontext handle, struct vgpu_sums *sums);
void vgpu__current_forget(void);

/* ---- scope.c: the owners of streams and graphs ---- */
struct vgpu_tenant *vgpu__stream_tenant(CUstream stream); /* of a stream that the program made */
void vgpu__stream_gone(CUstream stream);
/* after a graph was instantiated in the current scope */
abi_result vgpu__graph_made(abi_result result, const CUgraphExec *graph);
/* cuGraphInstantiateWithParams, whose memory for an upload is not charged */
abi_result vgpu__graph_instantiate(CUgraphExec *graph, void *of, struct abi_instantiate *params, int thread);
void vgpu__graph_gone(CUgraphExec graph); /* before it is destroyed */
/* Whether a graph's owner differs from the tenant whose work enters the stream. */
int vgpu__is_foreign(const struct vgpu_tenant *owner, CUstream named);
/* Launches the graph through its owner's gate, in a batch of its own. */
abi_result vgpu__launch_as(struct vgpu_tenant *owner, CUgraphExec graph, CUstream stream, CUstream named,
                           abi_result (*launch)(CUgraphExec, CUstream));
struct vgpu_tenant *vgpu__graph_tenant(CUgraphExec graph); /* NULL: that of the stream it is launched into */

/* ---- internal to this layer ---- */
enum { VGPU_RING = 64, VGPU_LANES = 1024 };

struct vgpu_batch {
  CUevent start, end; /* end NULL: its time is estimated; start NULL: a silent round, see rounds.c */
  uint64_t over_ns;   /* of a batch without an end event: when it was seen to be over; 0: not yet */
  uint64_t opened_ns, cost_ns;
  uint64_t began_ns; /* without an end event: when its start was seen to have passed */
  /* when its start was recorded, and when its first launch had returned; called_ns 0: not seen */
  uint64_t recorded_ns, called_ns;
  uint64_t paused_ns; /* how long the process stood still while it was open */
  uint32_t launches;  /* 0: unknown */
  uint32_t kind;      /* enum vgpu_piece_kind */
  int alone;          /* it is one piece */
  int guessed;        /* cost_ns is a guess: its progress is unknown */
  int lent;           /* its end event is also the next batch's start, and belongs to that batch */
  int only;           /* when it was opened, no other lane of the tenant had work */
  int idle;           /* nor had this lane */
  int waited;         /* its stream had nothing else, and its thread has waited for it */
  int silent;         /* a silent round: rounds.c */
  uint64_t closed_ns;
  uint64_t beside_ns;    /* of a silent round, as is the next: as in vgpu_rounds */
  uint64_t paused_at_ns; /* vgpu__paused_ns when it was opened */
  CUgraphExec graph;
  uint32_t generation;
};

/* Rounds alike: rounds.c. */
struct vgpu_rounds {
  uint32_t alike;     /* number of measured rounds in a row */
  uint32_t left;      /* rounds that need not be measured */
  uint32_t launches;  /* of each round */
  CUgraphExec graph;  /* or the graph of each round */
  uint64_t took_ns;   /* average GPU time of a round */
  uint64_t beside_ns; /* host time of a round beyond that; follows the least */
  uint64_t owed_ns;   /* excess host time of silent rounds: charged if the next measured round took longer too */
};

struct vgpu_lane {
  uint64_t ticket; /* odd while a batch is open; must be first: vgpu__lane_ticket */
  struct vgpu_lock lock;
  uint32_t state; /* enum lane_state */
  CUstream stream;
  struct vgpu_tenant *tenant;
  struct vgpu_context *context;
  uintptr_t owner; /* the thread, of a stream that other threads cannot name; else 0 */
  int blocking;    /* the legacy stream waits for it, and it for the legacy stream */
  struct vgpu_lane *next;
  uint32_t plan, folded; /* launches that the open batch may have; that it is known to have */
  /* the stream waits for its host: its work does not count against the bound, and other streams do not wait for it */
  uint32_t stalled;
  uint32_t unmeasured; /* launches to pass unmeasured because an event could not be recorded */
  uint64_t unsure_ns;  /* idle.c */
  uint64_t each_ns;    /* measured GPU time of one launch; 0: not measured yet */
  uint64_t opened_ns;
  uint64_t ended_ns; /* when the last harvested batch ended */
  CUevent start;
  uint64_t recorded_ns, called_ns; /* of the open batch, as in vgpu_batch; so are these two: */
  int only, idle;
  int silent;       /* the open batch has no start event */
  uint32_t starved; /* a bit for each of the last batches of many launches: the GPU had run out of work before */
  struct vgpu_rounds rounds;
  int joins;           /* the last batch was full: the next work in the stream follows directly */
  uint64_t closed_ns;  /* a time at which the end of the last batch was surely not reached yet */
  uint64_t cost_ns;    /* expected time of the open batch */
  uint64_t planned_ns; /* when the last batch of many launches was opened */
  uint32_t planned;    /* and its planned number of launches */
  /* the host's time per launch in the last batch; 0: it was closed because the host was silent */
  uint64_t gap_ns;
  uint64_t paused_ns; /* vgpu__paused_ns when the open batch was opened */
  int alone;          /* the open batch is this one piece */
  struct vgpu_piece piece;
  struct vgpu_batch ring[VGPU_RING];
  unsigned head, count;
};

enum lane_state { LANE_FREE, LANE_LIVE, LANE_ORPHAN /* its stream is gone, its batches are not */ };

/* lane.c */
struct vgpu_lane *vgpu__lane_for(CUstream stream, int make);
int vgpu__lanes_are_full(void); /* a stream may get no lane as long as all lanes have work */
uintptr_t vgpu__thread_token(void);
int vgpu__lane_is(const struct vgpu_lane *lane, CUstream stream);
struct vgpu_lane *vgpu__lane_at(unsigned index); /* NULL beyond the last one ever used */
void vgpu__fold(struct vgpu_entry *entry);
void vgpu__fold_lane(const struct vgpu_lane *lane); /* adds this thread's launches into it */
/* marks lanes in which nothing has ended since then */
void vgpu__lanes_stalled(const struct vgpu_tenant *tenant, uint64_t since);
/* A default stream: its owner depends on the calling thread. */
static inline int vgpu__is_special(CUstream stream) { return (uintptr_t)stream <= (uintptr_t)ABI_STREAM_PER_THREAD; }

/* enter.c */
uint64_t vgpu__bound_ns(const struct vgpu_tenant *tenant);        /* the bound on open and in-flight work */
uint64_t vgpu__inflight_scaled(const struct vgpu_tenant *tenant); /* expected time in flight; overlaps count once */

/* batch.c; lane's lock held, except where noted */
/* expected time, at a guess */
uint64_t vgpu__piece_cost(const struct vgpu_tenant *tenant, const struct vgpu_piece *piece);
/* piece: NULL for a batch of many launches */
int vgpu__batch_open(struct vgpu_lane *lane, const struct vgpu_piece *piece, uint64_t now);
void vgpu__batch_close(struct vgpu_lane *lane); /* in a call that puts something into the stream */
void vgpu__batch_close_later(struct vgpu_lane *lane);
void vgpu__batch_close_waiting(struct vgpu_lane *lane); /* the same before its thread waits for it */
void vgpu__batch_end_late(struct vgpu_lane *lane, struct vgpu_batch *batch); /* records the last batch's missing end */
void vgpu__batch_drop(struct vgpu_lane *lane);
/* From now to the expected end of its oldest batch, or since then; 0: unknown */
uint64_t vgpu__batch_rest(const struct vgpu_lane *lane, uint64_t now);
void vgpu__batch_called(struct vgpu_lane *lane);      /* a launch into the open batch has returned; without the lock */
int vgpu__batch_runs(struct vgpu_lane *lane);         /* whether some of its work has begun on the GPU and not ended */
unsigned vgpu__batch_harvest(struct vgpu_lane *lane); /* returns the number of batches left */

/* idle.c; lane's lock held */
int vgpu__lane_needs_ends(const struct vgpu_lane *lane);      /* each launch needs an end event */
void vgpu__lane_unsure(struct vgpu_lane *lane, uint64_t now); /* something enters its stream without an end event */
void vgpu__lane_ended(struct vgpu_lane *lane, const struct vgpu_batch *batch); /* a batch of it is over */
void vgpu__lane_waited(struct vgpu_lane *lane, uint64_t since); /* a wait that began at `since` has returned */
/* No batch is to be looked at, nor would a wait tell anything. Without the lock. */
static inline int vgpu__lane_is_settled(const struct vgpu_lane *lane) {
  return LOAD(lane->count) == 0 && LOAD(lane->unsure_ns) == 0;
}

/* starved.c; lane's lock held */
void vgpu__starved_ask(struct vgpu_lane *lane); /* before a batch of many launches */
/* A batch took so long, and so much was charged for it. */
void vgpu__starved_charged(const struct vgpu_lane *lane, const struct vgpu_batch *batch, uint64_t took,
                           uint64_t charged);

/* legacy.c */
int vgpu__is_blocking(CUstream stream);                 /* as the calling thread names it */
void vgpu__blocking_used(struct vgpu_context *context); /* work enters a blocking stream */
/* The stream, if it is blocking, is used without a lane. Its context, or NULL. */
struct vgpu_context *vgpu__blocking_ordered(CUstream stream);
int vgpu__is_legacy(CUstream stream);
/* Whether an event in this lane's stream could hold up blocking streams that were used since then. */
int vgpu__holds_others_up(const struct vgpu_lane *lane, uint64_t since);
/*
 * Whether its work since then is over. If that cannot be asked, because the stream is gone, or without harm to a capture:
 * not for a second.
 */
abi_result vgpu__query_stream(const struct vgpu_lane *lane, uint64_t since);

/* rounds.c; lane's lock held */
/* Whether the batch about to be opened is a silent round. */
int vgpu__round_begins(struct vgpu_lane *lane, const struct vgpu_piece *piece);
void vgpu__round_measured(struct vgpu_lane *lane, const struct vgpu_batch *batch, uint64_t took, uint64_t now);
uint64_t vgpu__round_took(struct vgpu_lane *lane, const struct vgpu_batch *batch);
abi_result vgpu__round_query(struct vgpu_lane *lane, struct vgpu_batch *batch, uint64_t now);
void vgpu__rounds_over(struct vgpu_lane *lane, uint64_t since); /* a wait that began at `since` has returned */
void vgpu__rounds_forget(struct vgpu_lane *lane);

#endif
