/* Lanes and batches, between lane.c, enter.c and batch.c. Locks: a lane's, then its context's clock's, then the spare events'. */
#ifndef VGPU_LANE_H
#define VGPU_LANE_H

#include "hook.h"

enum { VGPU_RING = 64, VGPU_SPARE_EVENTS = 256, VGPU_CONTEXTS = 64, VGPU_LANES = 1024 };

/* A context, and its events. */
struct vgpu_context {
  struct vgpu_lock lock; /* of the spare events */
  CUcontext handle;      /* NULL: free */
  uint32_t alias;        /* of a green context: the number of the one whose memory it shares; 0: it has its own */
  CUevent spare[VGPU_SPARE_EVENTS];
  unsigned spares;
  /* An event that has passed, and when it did on CLOCK_MONOTONIC: ties the GPU's clock to ours. */
  struct vgpu_lock clock_lock;
  CUevent base;
  uint64_t base_ns, based_ns;
  unsigned corrections;
};

struct vgpu_batch {
  CUevent start, end; /* end NULL: what it takes is estimated */
  uint64_t opened_ns, cost_ns;
  uint64_t began_ns; /* of such a one: when its start was seen to have passed */
  uint64_t paused_ns; /* how long the process stood still while it was open */
  uint32_t launches; /* 0: not known */
  uint32_t kind;     /* enum vgpu_piece_kind */
  int alone;         /* one piece */
  int guessed;       /* cost_ns is: nobody knows how much of it is over */
  CUgraphExec graph;
  uint32_t generation;
};

struct vgpu_lane {
  uint64_t ticket; /* odd while a batch is open; first, see vgpu__lane_ticket */
  struct vgpu_lock lock;
  uint32_t state; /* enum lane_state */
  CUstream stream;
  struct vgpu_tenant *tenant;
  struct vgpu_context *context;
  uintptr_t owner; /* of a per-thread stream: which thread */
  struct vgpu_lane *next;
  uint32_t plan, folded; /* launches that the open batch may have; that it is known to have */
  uint32_t stalled;    /* it waits for its host: what it has in flight does not count against the bound, and nobody waits for it */
  uint32_t unmeasured; /* launches to let by, because an event could not be recorded */
  uint64_t each_ns; /* GPU time of one launch, as measured; 0: not yet */
  uint64_t opened_ns;
  uint64_t ended_ns; /* when the last batch that was harvested ended */
  CUevent start;
  uint64_t cost_ns; /* of the open batch, as planned */
  uint64_t planned_ns; /* when the last batch of many launches was opened */
  uint32_t planned;    /* and what it was planned to have */
  uint64_t paused_ns;  /* how long the process had stood still when the open batch was opened */
  int alone;           /* the open batch is this piece */
  struct vgpu_piece piece;
  struct vgpu_batch ring[VGPU_RING];
  unsigned head, count;
};

enum lane_state { LANE_FREE, LANE_LIVE, LANE_ORPHAN /* its stream is gone, its batches are not */ };

/* context.c */
struct vgpu_context *vgpu__context_of(CUcontext handle);
/*
 * Around calls of our own: makes the context current if it is not, and allows what a capture of another thread would forbid
 * (querying an event then would end the capture). Returns what vgpu__context_leave needs.
 */
int vgpu__context_enter(const struct vgpu_context *context);
void vgpu__context_leave(int entered);

/* lane.c */
struct vgpu_lane *vgpu__lane_for(CUstream stream, int make);
uintptr_t vgpu__thread_token(void);
int vgpu__lane_is(const struct vgpu_lane *lane, CUstream stream);
struct vgpu_lane *vgpu__lane_at(unsigned index); /* NULL beyond the last ever used */
void vgpu__lane_free(struct vgpu_lane *lane);    /* unlinks; its lock is held */
void vgpu__fold(struct vgpu_entry *entry);
void vgpu__lanes_stalled(const struct vgpu_tenant *tenant, uint64_t since); /* those of which nothing has ended since then */
/* A default stream: whose it is depends on the calling thread. */
static inline int vgpu__is_special(CUstream stream) { return (uintptr_t)stream <= (uintptr_t)ABI_STREAM_PER_THREAD; }

/* enter.c */
uint64_t vgpu__bound_ns(const struct vgpu_tenant *tenant); /* how much may be open or in flight */

/* later.c */
void vgpu__later_drop(const struct vgpu_context *context); /* it goes, and all that was freed in it is gone */

/* batch.c; all with the lane's lock held */
CUevent vgpu__event_take(struct vgpu_context *context);
void vgpu__event_return(struct vgpu_context *context, CUevent event);
int vgpu__is_capturing(CUstream stream);
uint64_t vgpu__piece_cost(const struct vgpu_tenant *tenant, const struct vgpu_piece *piece); /* what it should take, at a guess */
int vgpu__batch_open(struct vgpu_lane *lane, const struct vgpu_piece *piece, uint64_t now); /* piece: NULL for one of many */
void vgpu__batch_close(struct vgpu_lane *lane);
void vgpu__batch_drop(struct vgpu_lane *lane);
int vgpu__batch_runs(struct vgpu_lane *lane); /* whether something of it has begun on the GPU, and not ended */
void vgpu__batch_stalled(struct vgpu_lane *lane); /* until one of its batches ends */
unsigned vgpu__batch_harvest(struct vgpu_lane *lane); /* how many are left */
uint64_t vgpu__inflight_scaled(const struct vgpu_tenant *tenant); /* without counting twice what runs at once */

#endif
