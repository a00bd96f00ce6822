/*
 * Batches: events around runs of work, and what they tell. Every call of the driver here is at a batch's beginning or end.
 */
#include "express.h"
#include "lane.h"
#include "level2.h"

static const uint64_t BATCH_NS = 500u * NS_PER_US;
static const uint64_t SPARSE_NS = 100u * NS_PER_US;
static const uint64_t REBASE_NS = 1000u * (uint64_t)NS_PER_MS;
static const uint64_t STALE_BASE_NS = 4000u * (uint64_t)NS_PER_MS;
static const uint64_t SLEW_NS = 20u * NS_PER_US;
enum { MOST_LAUNCHES = 256, FIRST_CORRECTIONS = 16 };

CUevent vgpu__event_take(struct vgpu_context *context) {
  CUevent event = NULL;
  vgpu__lock(&context->lock);
  if (context->spares > 0) event = context->spare[--context->spares];
  vgpu__unlock(&context->lock);
  if (event == NULL && REAL(cuEventCreate)(&event, 0) != ABI_SUCCESS) return NULL;
  return event;
}

void vgpu__event_return(struct vgpu_context *context, CUevent event) {
  if (event == NULL) return;
  vgpu__lock(&context->lock);
  int kept = context->handle != NULL && context->spares < VGPU_SPARE_EVENTS;
  if (kept) context->spare[context->spares++] = event;
  vgpu__unlock(&context->lock);
  if (!kept) REAL(cuEventDestroy_v2)(event);
}

/*
 * The driver is asked, and nothing counted: captures begin and end by functions that are not known here, by errors and with their stream. An
 * error counts as yes: then no event of ours is recorded.
 */
int vgpu__is_capturing(CUstream stream) {
  int status = ABI_CAPTURE_NONE;
  abi_result result = REAL(cuStreamIsCapturing)(stream, &status);
  return result == ABI_NOT_SUPPORTED ? 0 : result != ABI_SUCCESS || status != ABI_CAPTURE_NONE;
}

/* How many launches the next batch may have: half of what may be in flight, at most 0.5 ms of GPU work and doubling; one if the
 * host is slow. */
static uint32_t vgpu__plan(const struct vgpu_lane *lane, uint64_t now) {
  if (lane->each_ns == 0 || lane->planned == 0) return 1;
  uint64_t gap = (now - lane->planned_ns) / lane->planned;
  if (gap > SPARSE_NS) return 1;
  uint64_t most = vgpu__bound_ns(lane->tenant) / 2;
  uint64_t wanted = (most < BATCH_NS ? most : BATCH_NS) / lane->each_ns;
  if (wanted > 2 * (uint64_t)lane->planned) wanted = 2 * (uint64_t)lane->planned;
  if (wanted > MOST_LAUNCHES) wanted = MOST_LAUNCHES;
  return wanted < 1 ? 1 : (uint32_t)wanted;
}

uint64_t vgpu__piece_cost(const struct vgpu_tenant *tenant, const struct vgpu_piece *piece) {
  if (piece->kind == PIECE_COPY || piece->cost_ns != 0) return piece->kind == PIECE_COPY ? 0 : piece->cost_ns;
  return piece->guessed ? vgpu__bound_ns(tenant) : BATCH_NS;
}

/* What the batch that is about to be opened may have, and should take. */
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
  lane->plan = lane->planned = vgpu__plan(lane, now);
  lane->planned_ns = now;
  lane->cost_ns = lane->stalled ? 0 : (lane->each_ns == 0 ? BATCH_NS : lane->each_ns) * lane->plan;
}

void vgpu__batch_stalled(struct vgpu_lane *lane) {
  lane->stalled = 1;
  for (unsigned i = 0; i < lane->count; i++) {
    struct vgpu_batch *batch = &lane->ring[(lane->head + i) % VGPU_RING];
    ADD(lane->tenant->inflight_ns, -batch->cost_ns);
    batch->cost_ns = 0;
  }
  if ((lane->ticket & 1) != 0) ADD(lane->tenant->inflight_ns, -lane->cost_ns);
  if ((lane->ticket & 1) != 0) lane->cost_ns = 0;
}

int vgpu__batch_open(struct vgpu_lane *lane, const struct vgpu_piece *piece, uint64_t now) {
  int entered = vgpu__context_enter(lane->context);
  CUevent start = vgpu__event_take(lane->context);
  int failed = start == NULL || REAL(cuEventRecord)(start, lane->stream) != ABI_SUCCESS;
  if (failed) vgpu__event_return(lane->context, start);
  vgpu__context_leave(entered);
  if (failed) return -1;
  vgpu__plan_batch(lane, piece, now);
  STORE_RELEASE(lane->tenant->slot->heartbeat_ns, now);
  vgpu__express_beat(lane->tenant, now);
  lane->start = start;
  STORE(lane->folded, 0);
  ADD(lane->tenant->inflight_ns, lane->cost_ns);
  STORE_RELEASE(lane->ticket, lane->ticket + 1);
  return 0;
}

/* Ends the open batch without an end event: it could not be recorded. */
static void vgpu__abandon(struct vgpu_lane *lane) {
  vgpu__event_return(lane->context, lane->start);
  lane->start = NULL;
  ADD(lane->tenant->inflight_ns, -lane->cost_ns);
  STORE_RELEASE(lane->ticket, lane->ticket + 1);
  if (lane->piece.kind == PIECE_WORK) vgpu__busy_leave(lane->tenant, 1);
}

/* The end event of the open batch, recorded; NULL: it cannot be. */
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
 * Another thread's own default stream cannot be named from here, and the legacy stream, which comes after all of them, would hold them up
 * and wait for what may wait for them. So that batch gets no end event: its length is estimated, from when its start event has passed.
 * Nobody but its thread knows how much of its plan was launched: half of it, on average.
 */
static uint32_t vgpu__estimate_launches(const struct vgpu_lane *lane) {
  uint32_t half = (lane->plan + 1) / 2, folded = LOAD(lane->folded);
  return folded > half ? folded : half;
}

void vgpu__batch_close(struct vgpu_lane *lane) {
  if ((lane->ticket & 1) == 0) return;
  int foreign = lane->owner != 0 && lane->owner != vgpu__thread_token();
  CUevent end = foreign ? NULL : vgpu__record_end(lane);
  if (end == NULL && !foreign) {
    vgpu__abandon(lane);
    return;
  }
  uint32_t launches = foreign ? vgpu__estimate_launches(lane) : LOAD(lane->folded);
  uint64_t cost = lane->alone || lane->stalled || launches == 0 || lane->each_ns == 0 ? lane->cost_ns : lane->each_ns * launches;
  uint64_t paused = vgpu__paused_ns(vgpu__now_ns()) - lane->paused_ns;
  ADD(lane->tenant->inflight_ns, cost - lane->cost_ns);
  lane->ring[(lane->head + lane->count) % VGPU_RING] = (struct vgpu_batch){.start = lane->start,
                                                                          .end = end,
                                                                          .opened_ns = lane->opened_ns,
                                                                          .cost_ns = cost,
                                                                          .paused_ns = (int64_t)paused > 0 ? paused : 0,
                                                                          .launches = launches,
                                                                          .kind = lane->piece.kind,
                                                                          .alone = lane->alone,
                                                                          .guessed = lane->piece.guessed,
                                                                          .graph = lane->piece.graph,
                                                                          .generation = lane->piece.generation};
  STORE(lane->count, lane->count + 1);
  lane->start = NULL;
  STORE_RELEASE(lane->ticket, lane->ticket + 1);
}

static uint64_t vgpu__elapsed_ns(CUevent from, CUevent to, int *negative) {
  float milliseconds = 0;
  *negative = 0;
  if (REAL(cuEventElapsedTime)(&milliseconds, from, to) != ABI_SUCCESS) return 0;
  if (milliseconds < 0) {
    *negative = 1;
    milliseconds = -milliseconds;
  }
  return milliseconds < 1e9f ? (uint64_t)((double)milliseconds * NS_PER_MS) : 0;
}

/* Moves the base by what a reading says that it is off: all of it at first, then only a little, so that no time is lost. */
static uint64_t vgpu__nudge(struct vgpu_context *context, uint64_t at, uint64_t offset, int later) {
  if (context->corrections >= FIRST_CORRECTIONS && offset > SLEW_NS) offset = SLEW_NS;
  context->corrections++;
  context->base_ns = later ? context->base_ns + offset : context->base_ns - offset;
  return later ? at + offset : at - offset;
}

/*
 * When a batch ended on our clock. It was seen to have ended at `now`, so it was no later; and it began no earlier than it was
 * opened. Such readings fix the base; it moves along the GPU's own clock, and is only nudged.
 */
static uint64_t vgpu__end_ns(struct vgpu_context *context, const struct vgpu_batch *batch, uint64_t took, uint64_t now, int *keep) {
  int negative;
  *keep = 0;
  if (context->base == NULL || now - context->based_ns > STALE_BASE_NS) {
    vgpu__event_return(context, context->base);
    context->base = batch->end;
    context->based_ns = now;
    context->base_ns = batch->opened_ns + took < now ? batch->opened_ns + took : now;
    context->corrections = 0;
    *keep = 1;
    return context->base_ns;
  }
  uint64_t distance = vgpu__elapsed_ns(context->base, batch->end, &negative);
  uint64_t at = negative ? context->base_ns - distance : context->base_ns + distance;
  if (at > now) at = vgpu__nudge(context, at, at - now, 0);
  else if (at < batch->opened_ns + took) at = vgpu__nudge(context, at, batch->opened_ns + took - at, 1);
  if (!negative && now - context->based_ns > REBASE_NS) {
    vgpu__event_return(context, context->base);
    context->base = batch->end;
    context->base_ns = at;
    context->based_ns = now;
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

/* The process was stopped between the events, and the GPU may have had nothing to do: what is sure, or what it should have taken. */
static uint64_t vgpu__without_pause(const struct vgpu_batch *batch, uint64_t took) {
  uint64_t least = batch->cost_ns < took ? batch->cost_ns : took, sure = took > batch->paused_ns ? took - batch->paused_ns : 0;
  return sure > least ? sure : least;
}

static void vgpu__account(struct vgpu_lane *lane, const struct vgpu_batch *batch) {
  int negative, keep;
  uint64_t now = vgpu__now_ns();
  uint64_t took = vgpu__elapsed_ns(batch->start, batch->end, &negative);
  uint64_t wall = now - batch->opened_ns;
  if (negative) took = 0;
  if (took > wall) took = wall;
  vgpu__lock(&lane->context->clock_lock);
  uint64_t end = vgpu__end_ns(lane->context, batch, took, now, &keep);
  vgpu__unlock(&lane->context->clock_lock);
  lane->ended_ns = end;
  if (UNLIKELY(batch->paused_ns != 0)) took = vgpu__without_pause(batch, took);
  vgpu__charge_batch(lane, batch, took, end);
  vgpu__event_return(lane->context, batch->start);
  if (!keep) vgpu__event_return(lane->context, batch->end);
}

/* A batch without an end event: whether it should be over. */
static abi_result vgpu__query_unended(struct vgpu_batch *batch) {
  abi_result status = REAL(cuEventQuery)(batch->start);
  if (status != ABI_SUCCESS) return status;
  uint64_t now = vgpu__now_ns();
  if (batch->began_ns == 0) batch->began_ns = now;
  return now - batch->began_ns >= batch->cost_ns ? ABI_SUCCESS : ABI_NOT_READY;
}

static void vgpu__account_unended(struct vgpu_lane *lane, const struct vgpu_batch *batch) {
  struct vgpu_batch estimated = *batch;
  estimated.launches = 0; /* it teaches nothing of what one takes */
  lane->ended_ns = batch->began_ns + batch->cost_ns;
  vgpu__charge_batch(lane, &estimated, batch->cost_ns, lane->ended_ns);
  vgpu__event_return(lane->context, batch->start);
}

unsigned vgpu__batch_harvest(struct vgpu_lane *lane) {
  unsigned done = 0;
  if (lane->count == 0) return 0;
  int entered = vgpu__context_enter(lane->context);
  while (lane->count > 0) {
    struct vgpu_batch *batch = &lane->ring[lane->head];
    abi_result status = batch->end == NULL ? vgpu__query_unended(batch) : REAL(cuEventQuery)(batch->end);
    if (status == ABI_NOT_READY) break;
    if (status == ABI_SUCCESS && batch->end == NULL) {
      vgpu__account_unended(lane, batch);
    } else if (status == ABI_SUCCESS) {
      vgpu__account(lane, batch);
    } else {
      vgpu__event_return(lane->context, batch->start);
      vgpu__event_return(lane->context, batch->end);
    }
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

int vgpu__batch_runs(struct vgpu_lane *lane) {
  CUevent first = vgpu__batch_harvest(lane) > 0 ? lane->ring[lane->head].start : lane->start;
  if (first == NULL) return 0;
  int entered = vgpu__context_enter(lane->context);
  abi_result status = REAL(cuEventQuery)(first);
  vgpu__context_leave(entered);
  return status != ABI_NOT_READY;
}

/* The context goes, and with it what is in flight. */
void vgpu__batch_drop(struct vgpu_lane *lane) {
  vgpu__batch_close(lane);
  vgpu__batch_harvest(lane);
  if ((lane->ticket & 1) != 0) vgpu__abandon(lane);
  unsigned left = 0;
  for (; lane->count > 0; STORE(lane->count, lane->count - 1)) {
    struct vgpu_batch *batch = &lane->ring[lane->head];
    vgpu__event_return(lane->context, batch->start);
    vgpu__event_return(lane->context, batch->end);
    ADD(lane->tenant->inflight_ns, -batch->cost_ns);
    left += batch->kind == PIECE_WORK;
    lane->head = (lane->head + 1) % VGPU_RING;
  }
  vgpu__busy_leave(lane->tenant, left);
}

uint64_t vgpu__inflight_scaled(const struct vgpu_tenant *tenant) {
  uint64_t sum = LOAD(tenant->inflight_ns);
  return (int64_t)sum <= 0 ? 0 : sum / 1024 * LOAD(tenant->overlap);
}
