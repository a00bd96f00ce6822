/*
 * Batches: the events around runs of work, and their measurement. The driver is called only where a batch begins or
 * ends, and to ask whether it is over.
 */
#include "lane.h"

static const uint64_t BATCH_NS = 500u * NS_PER_US;
static const uint64_t SPARSE_NS = 100u * NS_PER_US;
static const uint64_t REBASE_NS = 1000u * (uint64_t)NS_PER_MS;
static const uint64_t STALE_BASE_NS = 4000u * (uint64_t)NS_PER_MS;
static const uint64_t SLEW_NS = 20u * NS_PER_US;
/* the most that is charged beyond the work itself if batches share an event */
static const uint64_t BOUNDARY_NS = 20u * NS_PER_US;
static const uint64_t LONG_CALL_NS = 20u * NS_PER_US; /* then it matters when the GPU reached the batch's start */
static const uint64_t LATE_NS = 20u * NS_PER_US;      /* a batch seen over this much late may have begun late */
static const uint64_t OLD_NS = 20u * NS_PER_MS;
enum { MOST_LAUNCHES = 256, FIRST_CORRECTIONS = 16 };

/*
 * The number of launches that the next batch may have: half of the bound on work in flight, at most 0.5 ms of GPU work,
 * and at most twice the last batch. It is one if the host is slow: if it left gaps in the last batch, or was silent
 * until the monitor closed it. Time that the host waited for the GPU does not count.
 */
static uint32_t vgpu__plan(const struct vgpu_lane *lane, uint64_t now) {
  if (lane->each_ns == 0 || lane->planned == 0 || vgpu__lane_needs_ends(lane)) return 1;
  uint64_t gap = lane->gap_ns != 0 ? lane->gap_ns : (now - lane->planned_ns) / lane->planned;
  if (gap > SPARSE_NS) return 1;
  uint64_t most = vgpu__bound_ns(lane->tenant) / 2;
  uint64_t wanted = (most < BATCH_NS ? most : BATCH_NS) / lane->each_ns;
  if (wanted > 2 * (uint64_t)lane->planned) wanted = 2 * (uint64_t)lane->planned;
  if (wanted > MOST_LAUNCHES) wanted = MOST_LAUNCHES;
  return wanted < 1 ? 1 : (uint32_t)wanted;
}

uint64_t vgpu__piece_cost(const struct vgpu_tenant *tenant, const struct vgpu_piece *piece) {
  uint64_t bound = vgpu__bound_ns(tenant), least = piece->varies ? bound / 2 : 0;
  if (piece->kind == PIECE_COPY || piece->cost_ns > least) return piece->kind == PIECE_COPY ? 0 : piece->cost_ns;
  return piece->varies ? least : piece->guessed ? bound : BATCH_NS;
}

/* Sets how many launches the batch about to be opened may have, and its expected time. */
static void vgpu__plan_batch(struct vgpu_lane *lane, const struct vgpu_piece *piece, uint64_t now) {
  lane->alone = piece != NULL;
  lane->piece = piece == NULL ? (struct vgpu_piece){.kind = PIECE_WORK} : *piece;
  lane->opened_ns = now;
  lane->paused_ns = vgpu__paused_ns(now);
  if (piece != NULL) {
    lane->plan = 1;
    lane->cost_ns = lane->stalled ? 0 : vgpu__piece_cost(lane->tenant, piece);
    return;
  }
  /* One more than a silent round has: a full batch is closed at once. */
  lane->plan = lane->planned = lane->silent ? lane->rounds.launches + 1 : vgpu__plan(lane, now);
  lane->planned_ns = now;
  lane->cost_ns = lane->stalled ? 0 : (lane->each_ns == 0 ? BATCH_NS : lane->each_ns) * lane->plan;
}

/* The tenant's batches of GPU work in this lane, open or in the ring. */
static uint32_t vgpu__works(const struct vgpu_lane *lane) {
  uint32_t works = (lane->ticket & 1) != 0 && lane->piece.kind == PIECE_WORK;
  for (unsigned i = 0; i < lane->count; i++) works += lane->ring[(lane->head + i) % VGPU_RING].kind == PIECE_WORK;
  return works;
}

/*
 * The end event of the previous batch, used as the start of the next if nothing lies between: it was full, and the GPU
 * has not reached its end, or only just.
 */
static CUevent vgpu__boundary(struct vgpu_lane *lane, uint64_t now) {
  if (!lane->joins || lane->count == 0 || now - lane->closed_ns > BOUNDARY_NS) return NULL;
  struct vgpu_batch *last = &lane->ring[(lane->head + lane->count - 1) % VGPU_RING];
  if (last->end == NULL || last->kind != PIECE_WORK) return NULL;
  last->lent = 1;
  return last->end;
}

static CUevent vgpu__record_start(struct vgpu_lane *lane) {
  int entered = vgpu__context_enter(lane->context);
  CUevent start = vgpu__event_take(lane->context);
  if (start != NULL && REAL(cuEventRecord)(start, lane->stream) != ABI_SUCCESS) {
    vgpu__event_return(lane->context, start);
    start = NULL;
  }
  vgpu__context_leave(entered);
  return start;
}

/* A silent round that was not waited for ends where the next batch starts. */
static void vgpu__end_silent(struct vgpu_lane *lane, CUevent start) {
  struct vgpu_batch *last = lane->count == 0 ? NULL : &lane->ring[(lane->head + lane->count - 1) % VGPU_RING];
  if (last == NULL || !last->silent || last->end != NULL || last->over_ns != 0) return;
  last->end = start;
  last->lent = 1;
}

int vgpu__batch_open(struct vgpu_lane *lane, const struct vgpu_piece *piece, uint64_t now) {
  CUevent start = piece != NULL && piece->kind != PIECE_WORK ? NULL : vgpu__boundary(lane, now);
  lane->idle = lane->count == 0;
  lane->only = LOAD(lane->tenant->slot->busy) == vgpu__works(lane) + 1;
  STORE(lane->silent, vgpu__round_begins(lane, piece));
  if (piece == NULL && lane->planned > 1 && !lane->silent) vgpu__starved_ask(lane);
  if (start == NULL && !lane->silent) start = vgpu__record_start(lane);
  if (start == NULL && !lane->silent) return -1;
  vgpu__end_silent(lane, start);
  vgpu__plan_batch(lane, piece, now);
  lane->joins = 0;
  lane->recorded_ns = vgpu__now_ns();
  STORE(lane->called_ns, 0);
  STORE_RELEASE(lane->tenant->slot->heartbeat_ns, now);
  vgpu__express_beat(lane->tenant, now);
  lane->start = start;
  STORE(lane->folded, 0);
  ADD(lane->tenant->inflight_ns, lane->cost_ns);
  STORE_RELEASE(lane->ticket, lane->ticket + 1);
  return 0;
}

/* Forgets a batch that was just closed, without an end event: it could not be recorded. */
static void vgpu__abandon(struct vgpu_lane *lane) {
  struct vgpu_batch *last = lane->count == 0 ? NULL : &lane->ring[(lane->head + lane->count - 1) % VGPU_RING];
  if (last != NULL && last->lent) last->lent = 0;
  else vgpu__event_return(lane->context, lane->start);
  lane->start = NULL;
  vgpu__lane_unsure(lane, vgpu__now_ns());
  ADD(lane->tenant->inflight_ns, -lane->cost_ns);
  if (lane->piece.kind == PIECE_WORK) vgpu__busy_leave(lane->tenant, 1);
}

/* Records the end event of the open batch; NULL: not possible. */
static CUevent vgpu__record_end(struct vgpu_lane *lane) {
  int entered = vgpu__context_enter(lane->context);
  CUevent end = vgpu__is_capturing(lane->stream) ? NULL : vgpu__event_take(lane->context);
  if (end != NULL && REAL(cuEventRecord)(end, lane->stream) != ABI_SUCCESS) {
    vgpu__event_return(lane->context, end);
    end = NULL;
  }
  vgpu__context_leave(entered);
  return end;
}

/*
 * Another thread's default stream cannot be named from here. The legacy stream follows all of these streams; an event
 * there would delay them, and wait for work that may wait for them. So such a batch gets no end event, nor does one in
 * the legacy stream if the event would hold others up: its length is estimated from the moment when its start event has
 * passed. Only its own thread knows how many of the planned launches were made: on average, half.
 */
static uint32_t vgpu__estimate_launches(const struct vgpu_lane *lane, int foreign) {
  uint32_t half = (lane->plan + 1) / 2, folded = LOAD(lane->folded);
  return folded > half || (folded > 0 && !foreign) ? folded : half;
}

enum when { IN_CALL, LATER, BEFORE_WAIT };

static void vgpu__close(struct vgpu_lane *lane, enum when when) {
  if ((lane->ticket & 1) == 0) return;
  int foreign = lane->owner != 0 && lane->owner != vgpu__thread_token();
  int silent = when == BEFORE_WAIT && lane->silent && LOAD(lane->folded) == lane->rounds.launches;
  int unended = foreign || (when != IN_CALL && vgpu__holds_others_up(lane, lane->opened_ns));
  STORE_RELEASE(lane->ticket, lane->ticket + 1); /* before the event: a launch behind it must see that it has slipped */
  CUevent end = unended || silent ? NULL : vgpu__record_end(lane);
  if (end == NULL && !unended && !silent) {
    vgpu__abandon(lane);
    return;
  }
  uint32_t launches = unended && !silent ? vgpu__estimate_launches(lane, foreign) : LOAD(lane->folded);
  int as_planned = lane->alone || lane->stalled || launches == 0 || lane->each_ns == 0;
  uint64_t cost = silent ? lane->rounds.took_ns : as_planned ? lane->cost_ns : lane->each_ns * launches;
  uint64_t now = vgpu__now_ns(), paused = vgpu__paused_ns(now) - lane->paused_ns;
  lane->joins = 0;
  lane->closed_ns = now;
  if (!lane->alone) lane->gap_ns = (now - lane->opened_ns) / (launches == 0 ? lane->planned : launches) + 1;
  ADD(lane->tenant->inflight_ns, cost - lane->cost_ns);
  struct vgpu_batch *batch = &lane->ring[(lane->head + lane->count) % VGPU_RING];
  *batch = (struct vgpu_batch){.start = lane->start,
                               .end = end,
                               .opened_ns = lane->opened_ns,
                               .cost_ns = cost,
                               .recorded_ns = lane->recorded_ns,
                               .called_ns = LOAD(lane->called_ns),
                               .only = lane->only,
                               .idle = lane->idle,
                               .silent = lane->silent,
                               .closed_ns = now,
                               .beside_ns = lane->rounds.beside_ns,
                               .paused_at_ns = lane->paused_ns,
                               .paused_ns = (int64_t)paused > 0 ? paused : 0,
                               .launches = launches,
                               .kind = lane->piece.kind,
                               .alone = lane->alone,
                               .guessed = lane->piece.guessed,
                               .graph = lane->piece.graph,
                               .generation = lane->piece.generation};
  STORE(lane->count, lane->count + 1);
  lane->start = NULL;
}

void vgpu__batch_close(struct vgpu_lane *lane) { vgpu__close(lane, IN_CALL); }
void vgpu__batch_close_later(struct vgpu_lane *lane) { vgpu__close(lane, LATER); }
void vgpu__batch_close_waiting(struct vgpu_lane *lane) { vgpu__close(lane, BEFORE_WAIT); }

void vgpu__batch_end_late(struct vgpu_lane *lane, struct vgpu_batch *batch) {
  if (batch != &lane->ring[(lane->head + lane->count - 1) % VGPU_RING]) return;
  if (vgpu__holds_others_up(lane, batch->opened_ns)) return;
  batch->end = vgpu__record_end(lane);
}

static abi_result vgpu__elapsed(CUevent from, CUevent to, uint64_t *ns, int *negative) {
  float milliseconds = 0;
  abi_result result = REAL(cuEventElapsedTime)(&milliseconds, from, to);
  *negative = milliseconds < 0;
  if (*negative) milliseconds = -milliseconds;
  *ns = result == ABI_SUCCESS && milliseconds < 1e9f ? (uint64_t)((double)milliseconds * NS_PER_MS) : 0;
  return result;
}

/*
 * Moves the base by the offset that a reading shows: by all of it at first, later by at most SLEW_NS, so that no time
 * is lost.
 */
static uint64_t vgpu__nudge(struct vgpu_context *context, uint64_t at, uint64_t offset, int later) {
  if (context->corrections >= FIRST_CORRECTIONS && offset > SLEW_NS) offset = SLEW_NS;
  context->corrections++;
  context->base_ns = later ? context->base_ns + offset : context->base_ns - offset;
  return later ? at + offset : at - offset;
}

static int vgpu__base_is_old(const struct vgpu_context *context, uint64_t now) {
  uint64_t based_ns = LOAD(context->based_ns);
  return based_ns == 0 || now - based_ns > STALE_BASE_NS;
}

/*
 * When a batch ended on our clock; without a base, the guess. The batch was seen over at `now`, so it ended no later,
 * and it began no earlier than it was opened. Such readings fix the base. The base moves along the GPU's own clock, and
 * is only nudged.
 */
static uint64_t vgpu__end_ns(struct vgpu_context *context, const struct vgpu_batch *batch, uint64_t guess,
                             uint64_t took, uint64_t now, int *keep) {
  int negative;
  *keep = 0;
  if (context->base == NULL || vgpu__base_is_old(context, now)) {
    if (batch->lent) return guess;
    vgpu__event_return(context, context->base);
    context->base = batch->end;
    STORE(context->based_ns, now);
    context->base_ns = guess;
    context->corrections = 0;
    *keep = 1;
    return context->base_ns;
  }
  uint64_t distance;
  vgpu__elapsed(context->base, batch->end, &distance, &negative);
  uint64_t at = negative ? context->base_ns - distance : context->base_ns + distance;
  if (at > now) at = vgpu__nudge(context, at, at - now, 0);
  else if (at < batch->opened_ns + took) at = vgpu__nudge(context, at, batch->opened_ns + took - at, 1);
  if (!negative && !batch->lent && now - context->based_ns > REBASE_NS) {
    vgpu__event_return(context, context->base);
    context->base = batch->end;
    context->base_ns = at;
    STORE(context->based_ns, now);
    *keep = 1;
  }
  return at;
}

static void vgpu__charge_batch(struct vgpu_lane *lane, const struct vgpu_batch *batch, uint64_t took, uint64_t end) {
  struct vgpu_tenant *tenant = lane->tenant;
  if (batch->kind == PIECE_COPY) {
    ADD(tenant->slot->copy_ns, took);
    return;
  }
  uint64_t charged = vgpu__charge(tenant, end - took, end);
  vgpu__starved_charged(lane, batch, took, charged);
  vgpu__peers_charge(tenant, end - took, end);
  vgpu__level2_ended(end);
  uint64_t stopped = vgpu__level2_stopped_ns(end - took, end);
  took = took > stopped ? took - stopped : 0;
  if (took > 0) {
    uint32_t share = (uint32_t)(charged * 1024 / took);
    uint32_t before = LOAD(tenant->overlap);
    uint32_t after = before - before / 16 + (share < 1024 ? share : 1024) / 16;
    STORE(tenant->overlap, after < 32 ? 32 : after);
  }
  if (batch->graph != NULL) vgpu__graph_measured(batch->graph, batch->generation, took);
  if (batch->alone || batch->launches == 0) return;
  uint64_t each = took / batch->launches + 1;
  lane->each_ns = each > lane->each_ns ? each : lane->each_ns - lane->each_ns / 4 + each / 4;
}

/*
 * The process stood still between the events, and the GPU may have been idle then: charges the time that is certain, or
 * the expected time if that is longer.
 */
static uint64_t vgpu__without_pause(const struct vgpu_batch *batch, uint64_t took) {
  uint64_t least = batch->cost_ns < took ? batch->cost_ns : took,
           sure = took > batch->paused_ns ? took - batch->paused_ns : 0;
  return sure > least ? sure : least;
}

/*
 * Whether only this lane has work of the lease on the GPU, now and when the batch was opened. Then it is enough to know
 * that the batch began behind the previous one, or at once. Otherwise, or if level 2 may stop it, its end time must be known.
 */
static int vgpu__is_only(const struct vgpu_lane *lane, const struct vgpu_batch *batch, uint32_t done) {
  if (batch->kind != PIECE_WORK) return 1;
  return batch->only && LOAD(lane->tenant->slot->busy) == vgpu__works(lane) + done && vgpu__never_stops(lane->tenant) &&
         vgpu__peers_alone(lane->tenant);
}

static uint64_t vgpu__call_ns(const struct vgpu_batch *batch) {
  return batch->called_ns > batch->recorded_ns ? batch->called_ns - batch->recorded_ns : 0;
}

/*
 * Leaves out the time of the first launch's call, in which a function may be loaded, as far as the GPU had reached the
 * batch's start before. That is known if nothing of the tenant's was on the GPU, or else by the clock to some tens of
 * microseconds. If the call was long, the thread may have lost its processor after the launch: at least the usual time
 * of these launches is charged, and only that if the call has not returned.
 */
static uint64_t vgpu__without_call(const struct vgpu_lane *lane, const struct vgpu_batch *batch, uint64_t took,
                                   uint64_t end) {
  uint64_t each_ns = !batch->alone ? lane->each_ns : batch->guessed ? 0 : batch->cost_ns;
  uint64_t least = each_ns * (batch->launches == 0 ? 1 : batch->launches), sure = 0;
  if (batch->called_ns != 0) {
    int known = batch->idle && batch->only;
    if (!known && vgpu__call_ns(batch) < LONG_CALL_NS) return took;
    uint64_t from = !known && end - took > batch->recorded_ns ? end - took : batch->recorded_ns;
    if (batch->called_ns <= from) return took;
    uint64_t call = batch->called_ns - from;
    int brief = call < LONG_CALL_NS;
    if (brief) call -= call / 4; /* the kernel begins before the call returns */
    sure = took > call ? took - call : 0;
    if (brief) return sure;
  }
  return sure > least ? sure : least < took ? least : took;
}

static void vgpu__account(struct vgpu_lane *lane, const struct vgpu_batch *batch, uint64_t took, uint64_t now,
                          uint32_t done) {
  int keep = 0;
  uint64_t wall = now - batch->opened_ns;
  if (took > wall) took = wall;
  int follows = lane->ended_ns > batch->opened_ns;
  uint64_t began = follows ? lane->ended_ns : batch->opened_ns;
  uint64_t end = began + took < now ? began + took : now;
  /* If it follows no other, it may have waited for the GPU behind another process's work. One that did not fixes the base. */
  int late = !follows && now - end > LATE_NS;
  int fixes = !late && vgpu__base_is_old(lane->context, now);
  if (late || fixes || !vgpu__is_only(lane, batch, done) || vgpu__call_ns(batch) >= LONG_CALL_NS) {
    vgpu__lock(&lane->context->clock_lock);
    end = vgpu__end_ns(lane->context, batch, end, took, now, &keep);
    vgpu__unlock(&lane->context->clock_lock);
  }
  lane->ended_ns = end;
  if (UNLIKELY(batch->paused_ns != 0)) took = vgpu__without_pause(batch, took);
  uint64_t charged = vgpu__without_call(lane, batch, took, end);
  vgpu__charge_batch(lane, batch, charged, end);
  if (batch->kind == PIECE_WORK) vgpu__round_measured(lane, batch, charged, now);
  vgpu__event_return(lane->context, batch->start);
  if (!keep && !batch->lent) vgpu__event_return(lane->context, batch->end);
}

/* A silent round: its thread has waited for it, or its end event shows when it was over. */
static void vgpu__account_silent(struct vgpu_lane *lane, struct vgpu_batch *batch) {
  uint64_t now = vgpu__now_ns(), took;
  int keep = 0;
  if (batch->end == NULL) {
    took = vgpu__round_took(lane, batch);
  } else {
    vgpu__lock(&lane->context->clock_lock);
    batch->over_ns = vgpu__end_ns(lane->context, batch, now, 0, now, &keep);
    vgpu__unlock(&lane->context->clock_lock);
    if (batch->over_ns < batch->opened_ns) batch->over_ns = batch->opened_ns;
    took = batch->over_ns - batch->opened_ns;
    vgpu__rounds_forget(lane);
  }
  uint64_t began = lane->ended_ns > batch->opened_ns ? lane->ended_ns : batch->opened_ns;
  lane->ended_ns = began + took < batch->over_ns ? began + took : batch->over_ns;
  vgpu__charge_batch(lane, batch, took, lane->ended_ns);
  if (batch->end != NULL && !keep && !batch->lent) vgpu__event_return(lane->context, batch->end);
}

/* Whether a batch without an end event should be over. */
static abi_result vgpu__query_unended(struct vgpu_batch *batch) {
  uint64_t wall = batch->over_ns - batch->opened_ns;
  if (batch->over_ns != 0) { /* a thread has waited for it */
    batch->began_ns = batch->over_ns - (batch->cost_ns < wall ? batch->cost_ns : wall);
    return ABI_SUCCESS;
  }
  abi_result status = REAL(cuEventQuery)(batch->start);
  if (status != ABI_SUCCESS) return status;
  uint64_t now = vgpu__now_ns();
  if (batch->began_ns == 0) batch->began_ns = now;
  return now - batch->began_ns >= batch->cost_ns ? ABI_SUCCESS : ABI_NOT_READY;
}

static void vgpu__account_unended(struct vgpu_lane *lane, const struct vgpu_batch *batch) {
  struct vgpu_batch estimated = *batch;
  estimated.launches = 0; /* an estimate says nothing about the time of one launch */
  lane->ended_ns = batch->began_ns + batch->cost_ns;
  vgpu__charge_batch(lane, &estimated, batch->cost_ns, lane->ended_ns);
  vgpu__event_return(lane->context, batch->start);
}

/*
 * Whether a batch is over, and how long it took: cuEventElapsedTime tells both in one call. It may not report errors,
 * so for an old batch cuEventQuery is called first.
 */
static abi_result vgpu__over(const struct vgpu_batch *batch, uint64_t now, uint64_t *took) {
  int negative;
  if (now - batch->opened_ns > OLD_NS) {
    abi_result status = REAL(cuEventQuery)(batch->end);
    if (status != ABI_SUCCESS) return status;
  }
  abi_result status = vgpu__elapsed(batch->start, batch->end, took, &negative);
  if (negative) *took = 0;
  return status;
}

unsigned vgpu__batch_harvest(struct vgpu_lane *lane) {
  unsigned done = 0;
  if (lane->count == 0) return 0;
  int entered = vgpu__context_enter(lane->context);
  while (lane->count > 0) {
    struct vgpu_batch *batch = &lane->ring[lane->head];
    uint64_t asked_ns = vgpu__now_ns(), took = 0;
    abi_result status;
    if (batch->silent)
      status = batch->end == NULL ? vgpu__round_query(lane, batch, asked_ns) : REAL(cuEventQuery)(batch->end);
    else status = batch->end == NULL ? vgpu__query_unended(batch) : vgpu__over(batch, asked_ns, &took);
    if (status == ABI_NOT_READY) {
      lane->closed_ns = asked_ns;
      break;
    }
    if (status == ABI_SUCCESS && batch->silent) {
      vgpu__account_silent(lane, batch);
    } else if (status == ABI_SUCCESS && batch->end == NULL) {
      vgpu__account_unended(lane, batch);
    } else if (status == ABI_SUCCESS) {
      vgpu__account(lane, batch, took, vgpu__now_ns(), done);
    } else {
      vgpu__event_return(lane->context, batch->start);
      if (!batch->lent) vgpu__event_return(lane->context, batch->end);
    }
    vgpu__lane_ended(lane, batch);
    ADD(lane->tenant->inflight_ns, -batch->cost_ns);
    done += batch->kind == PIECE_WORK;
    lane->stalled = 0;
    lane->head = (lane->head + 1) % VGPU_RING;
    STORE(lane->count, lane->count - 1);
  }
  vgpu__context_leave(entered);
  vgpu__busy_leave(lane->tenant, done);
  return lane->count;
}

uint64_t vgpu__batch_rest(const struct vgpu_lane *lane, uint64_t now) {
  const struct vgpu_batch *batch = &lane->ring[lane->head];
  if (lane->count == 0 || batch->end == NULL) return 0;
  uint64_t end = (batch->opened_ns > lane->ended_ns ? batch->opened_ns : lane->ended_ns) + batch->cost_ns;
  return end > now ? end - now : now - end;
}

void vgpu__batch_called(struct vgpu_lane *lane) {
  if (LOAD(lane->called_ns) == 0) STORE(lane->called_ns, vgpu__now_ns());
}

int vgpu__batch_runs(struct vgpu_lane *lane) {
  unsigned left = vgpu__batch_harvest(lane);
  CUevent first = left > 0 ? lane->ring[lane->head].start : lane->start;
  int silent = left > 0 ? lane->ring[lane->head].silent : lane->silent && (lane->ticket & 1) != 0;
  uint64_t opened_ns = left > 0 ? lane->ring[lane->head].opened_ns : lane->opened_ns;
  if (first == NULL && !silent) return 0;
  int entered = vgpu__context_enter(lane->context);
  int begun = silent ? vgpu__query_stream(lane, opened_ns) == ABI_NOT_READY
                     : REAL(cuEventQuery)(first) != ABI_NOT_READY;
  vgpu__context_leave(entered);
  return begun;
}

/* The context is being destroyed, and with it the work in flight. */
void vgpu__batch_drop(struct vgpu_lane *lane) {
  vgpu__batch_close_later(lane);
  vgpu__batch_harvest(lane);
  unsigned left = 0;
  for (; lane->count > 0; STORE(lane->count, lane->count - 1)) {
    struct vgpu_batch *batch = &lane->ring[lane->head];
    vgpu__event_return(lane->context, batch->start);
    if (!batch->lent) vgpu__event_return(lane->context, batch->end);
    ADD(lane->tenant->inflight_ns, -batch->cost_ns);
    left += batch->kind == PIECE_WORK;
    lane->head = (lane->head + 1) % VGPU_RING;
  }
  vgpu__busy_leave(lane->tenant, left);
}
