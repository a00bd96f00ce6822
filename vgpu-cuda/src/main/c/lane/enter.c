/*
 * How a launch enters a batch of its stream's lane: through the gate, past the express lane, when it is this process's
 * turn and the bound on work in flight has room. The common case is vgpu__enter_fast in lane.h.
 *
 * A launch that was let in while another thread closed its batch has slipped: it lies behind the end event. Its thread
 * sees that the ticket has changed, and records the end event again. So no thread ever waits for, or locks out, another
 * thread's launch.
 */
#include "lane.h"

static const uint64_t BOUND_LIMITED_US = 2000, MOST_LIMITED_US = 100000, BOUND_ALONE_NS = 10u * NS_PER_MS;
/* a smaller rest of running work never delays the next launch */
static const uint64_t ROOM_NS = 250u * NS_PER_US;
static const uint64_t BOUND_PATIENCE_NS = 100u * NS_PER_MS, MOST_PATIENCE_NS = 5000u * (uint64_t)NS_PER_MS;
static const uint64_t VAIN_NS = 1000u * (uint64_t)NS_PER_MS;
enum { UNMEASURED_TRIES = 64 /* launches until events are tried again */ };

enum step { STEP_IN, STEP_SHUT, STEP_HELD, STEP_TURN /* it is another process's turn */, STEP_FULL, STEP_PASS };

uint64_t vgpu__bound_ns(const struct vgpu_tenant *tenant) {
  int held = LOAD(tenant->grant->express_mask) != 0; /* or may be held back at any moment */
  if (!held && (LOAD(tenant->grant->turn_flags) & SHM_TURN_LIMITED) == 0) return BOUND_ALONE_NS;
  uint64_t us = LOAD(tenant->grant->inflight_us);
  if (us == 0) us = BOUND_LIMITED_US;
  return (us < MOST_LIMITED_US ? us : MOST_LIMITED_US) * NS_PER_US;
}

uint64_t vgpu__inflight_scaled(const struct vgpu_tenant *tenant) {
  uint64_t sum = LOAD(tenant->inflight_ns);
  return (int64_t)sum <= 0 ? 0 : sum / 1024 * LOAD(tenant->overlap);
}

/*
 * How long until there is room for one more launch; 0: now. Running work counts as having progressed since it began, so
 * that the next launch is queued in time: the GPU must not run dry, whatever the length of the kernels.
 */
static uint64_t vgpu__until_room(const struct vgpu_lane *lane, uint64_t each_ns) {
  uint64_t inflight = vgpu__inflight_scaled(lane->tenant), bound = vgpu__bound_ns(lane->tenant);
  if (lane->count == VGPU_RING) return lane->ring[lane->head].cost_ns + 1;
  if (inflight == 0 || lane->stalled) return 0;
  if (lane->count > 0) {
    const struct vgpu_batch *oldest = &lane->ring[lane->head];
    uint64_t began = oldest->opened_ns > lane->ended_ns ? oldest->opened_ns : lane->ended_ns;
    uint64_t ran = vgpu__now_ns() - began;
    if ((int64_t)ran < 0) ran = 0;
    if (ran > oldest->cost_ns) ran = oldest->cost_ns;
    if (oldest->guessed) ran = 0;
    inflight = inflight > ran ? inflight - ran : 0;
  }
  /*
   * Allow one running and one queued launch: if lengths are uneven, the running one may end at any moment. Not if
   * urgent work may have to wait for it.
   */
  if (LOAD(lane->tenant->grant->express_mask) == 0) {
    uint64_t pair = 2 * lane->each_ns < 2 * bound ? 2 * lane->each_ns : 2 * bound;
    bound = pair > bound ? pair : bound;
  }
  bound += bound / 16; /* measured lengths vary */
  uint64_t allowed = bound > each_ns + ROOM_NS ? bound - each_ns : ROOM_NS;
  return inflight <= allowed ? 0 : inflight - allowed;
}

/* Opens a batch if there is room and it is our turn. The gate was open a moment ago. */
static enum step vgpu__open(struct vgpu_lane *lane, const struct vgpu_piece *piece, int forced, uint64_t *room_ns) {
  struct vgpu_tenant *tenant = lane->tenant;
  int counts = piece == NULL || piece->kind == PIECE_WORK;
  uint64_t each_ns = piece == NULL ? lane->each_ns : piece->guessed ? vgpu__piece_cost(tenant, piece) : piece->cost_ns;
  if (counts && !forced && !vgpu__peers_may_start(tenant, each_ns)) return STEP_TURN;
  if (counts || lane->count == VGPU_RING) {
    if (vgpu__until_room(lane, each_ns) != 0) vgpu__batch_harvest(lane);
    *room_ns = vgpu__until_room(lane, each_ns);
    if (*room_ns != 0) {
      if (!forced) return STEP_FULL;
      if (lane->count == VGPU_RING) return STEP_PASS;
    }
  }
  if (lane->unmeasured > 0) {
    lane->unmeasured--;
    return STEP_PASS;
  }
  if (counts) vgpu__busy_enter(tenant);
  uint32_t word = __atomic_load_n(&tenant->grant->word, __ATOMIC_SEQ_CST);
  if (counts && !vgpu__word_open(word) && !LOAD_ACQUIRE(tenant->autonomous)) {
    vgpu__busy_leave(tenant, 1);
    return STEP_SHUT;
  }
  if (vgpu__batch_open(lane, piece, vgpu__now_ns()) == 0) return STEP_IN;
  lane->unmeasured = UNMEASURED_TRIES;
  if (counts) vgpu__busy_leave(tenant, 1);
  return STEP_PASS;
}

/*
 * Whether the open batch must end before this work joins: it is full, by other threads' launches or by this thread's
 * earlier ones.
 */
static int vgpu__must_close(const struct vgpu_lane *lane, const struct vgpu_piece *piece) {
  return (lane->ticket & 1) != 0 && (piece != NULL || lane->alone || LOAD(lane->folded) >= lane->plan);
}

/*
 * One attempt, lane locked. A forced attempt ignores the bound: it has waited long enough. Copies pass a shut gate,
 * except those of offline tenants: the gate is about GPU time, which copies do not take.
 */
static enum step vgpu__step(struct vgpu_lane *lane, struct vgpu_entry *entry, const struct vgpu_piece *piece,
                            int forced, uint64_t *room_ns) {
  struct vgpu_tenant *tenant = lane->tenant;
  uint32_t word = __atomic_load_n(&tenant->grant->word, __ATOMIC_SEQ_CST);
  int passes = vgpu__word_open(word) || LOAD_ACQUIRE(tenant->autonomous);
  if (vgpu__is_capturing(lane->stream)) {
    if ((lane->ticket & 1) != 0) vgpu__batch_close(lane);
    return STEP_PASS;
  }
  int free = piece != NULL && piece->kind == PIECE_COPY && LOAD(tenant->grant->preemption_class) != SHM_CLASS_OFFLINE;
  if ((!passes && !free) || (word & SHM_GRANT_REVOKED) != 0) {
    vgpu__batch_close(lane);
    return STEP_SHUT;
  }
  uint64_t heed;
  if (vgpu__express_held(tenant, &heed) != 0) {
    vgpu__batch_close(lane);
    return STEP_HELD;
  }
  /*
   * Small copies are not measured, unless level 2 may stop the process, or its memory may be moved: the hook must know
   * of work that a stop may interrupt until it is over, or nothing would resume it.
   */
  if (piece != NULL && piece->size != PIECE_LARGE && vgpu__never_stops(tenant) && !vgpu__wants_movable(tenant)) {
    if (piece->size == PIECE_SMALL_LAST && !lane->silent && lane->count < VGPU_RING) {
      vgpu__fold_lane(lane);
      vgpu__batch_close(lane);
    }
    lane->joins = 0;
    ADD(tenant->slot->copy_ns, piece->cost_ns);
    return STEP_PASS;
  }
  if (vgpu__must_close(lane, piece) && lane->count < VGPU_RING) {
    vgpu__batch_close(lane);
    lane->joins = piece == NULL || piece->kind == PIECE_WORK;
  }
  if ((lane->ticket & 1) == 0) {
    enum step step = vgpu__open(lane, piece, forced, room_ns);
    if (step == STEP_PASS) vgpu__lane_unsure(lane, vgpu__now_ns());
    if (step != STEP_IN) return step;
    word = LOAD_ACQUIRE(tenant->grant->word);
  }
  uint32_t folded = LOAD(lane->folded), left = folded < lane->plan ? lane->plan - folded : 1;
  *entry = (struct vgpu_entry){.stream = lane->stream,
                               .lane = lane,
                               .ticket = lane->ticket,
                               .left = left,
                               .granted = left,
                               .word = word,
                               .heed = heed,
                               .gate = &tenant->grant->word,
                               .express = &tenant->express.page->busy};
  return STEP_IN;
}

/* Passes the gate only, for work without a lane. */
static abi_result vgpu__pass_gate(struct vgpu_tenant *tenant) {
  uint64_t heed;
  abi_result result = vgpu__word_open(LOAD_ACQUIRE(tenant->grant->word)) ? ABI_SUCCESS : vgpu__gate_wait(tenant);
  if (result == ABI_SUCCESS && vgpu__express_held(tenant, &heed) != 0) vgpu__express_wait(tenant);
  return result;
}

/* Waits a little for work in flight, by the wall clock: a stream that waits for its host cannot block us for ever. */
static void vgpu__wait_for_room(uint64_t room_ns, int elsewhere) {
  uint64_t pause = room_ns;
  if (pause < 30u * NS_PER_US) pause = 30u * NS_PER_US;
  /* lengths are estimates: the GPU must not run dry if work ends sooner */
  if (pause > 50u * NS_PER_US) pause = 50u * NS_PER_US;
  vgpu__sleep_ns(pause);
  if (elsewhere) vgpu__harvest_all();
}

/* How long work has waited for room. */
struct wait {
  uint64_t since, patience_ns;
  int forced; /* it has waited long enough */
};

static void vgpu__waited(struct wait *wait, const struct vgpu_tenant *tenant) {
  uint64_t now = vgpu__now_ns();
  if (wait->since == 0) {
    wait->since = now;
    uint64_t inflight = vgpu__inflight_scaled(tenant); /* a long graph in flight is no stream that waits for its host */
    wait->patience_ns = BOUND_PATIENCE_NS + (inflight < MOST_PATIENCE_NS ? inflight : MOST_PATIENCE_NS);
  }
  wait->forced = now - wait->since > wait->patience_ns;
}

/*
 * Work without a lane: it has no context (the driver will return an error), or all lanes have work. Then it waits until
 * one has none. If that takes too long, it only passes the gate. 1: try again.
 */
static int vgpu__laneless(struct wait *wait, CUstream stream, abi_result *result) {
  static uint64_t vain_ns; /* until then no work waits, since other work has waited in vain */
  struct vgpu_tenant *tenant = vgpu_tenant_current();
  *result = ABI_SUCCESS;
  if (vgpu__is_capturing(stream)) return 0;
  if (vgpu__lanes_are_full() && vgpu__now_ns() > LOAD(vain_ns) && vgpu__context_for(stream) != NULL) {
    vgpu__waited(wait, tenant);
    if (!wait->forced) {
      vgpu__wait_for_room(0, 1);
      return 1;
    }
    if (LOAD(vain_ns) == 0) vgpu__log("%d streams have work at once: work in others is not measured", (int)VGPU_LANES);
    STORE(vain_ns, vgpu__now_ns() + VAIN_NS);
  }
  *result = vgpu__pass_gate(tenant);
  return 0;
}

/* Tries until the work may be handed to the driver. piece: NULL for a launch that shares a batch. */
static abi_result vgpu__enter(struct vgpu_entry *entry, const struct vgpu_piece *piece, CUstream stream, int *counted) {
  struct wait wait = {.since = 0};
  for (;;) {
    int known = entry->lane != NULL && entry->stream == stream && !vgpu__is_special(stream);
    struct vgpu_lane *lane = known ? entry->lane : vgpu__lane_for(stream, 1);
    if (lane == NULL) {
      abi_result result;
      vgpu__fold(entry);
      *entry = (struct vgpu_entry){.stream = NULL};
      if (vgpu__laneless(&wait, stream, &result)) continue;
      return result;
    }
    struct vgpu_tenant *tenant = lane->tenant;
    if (LOAD_ACQUIRE(tenant->autonomous)) vgpu__gate_pace(tenant);
    vgpu__lock(&lane->lock);
    if (!vgpu__lane_is(lane, stream)) {
      vgpu__unlock(&lane->lock);
      vgpu__fold(entry);
      *entry = (struct vgpu_entry){.stream = NULL};
      continue;
    }
    vgpu__fold(entry);
    uint64_t room_ns = 0;
    enum step step = vgpu__step(lane, entry, piece, wait.forced || lane->stalled, &room_ns);
    int elsewhere = lane->count == 0;
    if (lane->blocking && (step == STEP_IN || step == STEP_PASS)) vgpu__blocking_used(lane->context);
    vgpu__unlock(&lane->lock);
    if (step == STEP_IN) {
      *counted = 1;
      entry->left--;
      return ABI_SUCCESS;
    }
    if (step == STEP_PASS) {
      *entry = (struct vgpu_entry){.stream = NULL};
      if (piece == NULL || piece->kind == PIECE_WORK) ADD(tenant->slot->launches, 1);
      return ABI_SUCCESS;
    }
    if (step == STEP_SHUT) {
      abi_result result = vgpu__gate_wait(tenant);
      if (result != ABI_SUCCESS) return result;
      continue;
    }
    if (step == STEP_HELD) {
      vgpu__express_wait(tenant);
      continue;
    }
    vgpu__waited(&wait, tenant);
    if (wait.forced) vgpu__lanes_stalled(tenant, wait.since);
    if (step == STEP_TURN) vgpu__peers_wait(tenant);
    else vgpu__wait_for_room(room_ns, elsewhere);
  }
}

abi_result vgpu__enter_slow(struct vgpu_entry *entry, CUstream stream, int *counted) {
  *counted = 0;
  if (!LOAD_ACQUIRE(vgpu__attached)) return ABI_SUCCESS;
  if (entry->lane != NULL && entry->stream == stream && entry->left == 1 && LOAD(*entry->gate) == entry->word &&
      vgpu__lane_ticket(entry->lane) == entry->ticket && (LOAD(*entry->express) & entry->heed) == 0) {
    *counted = 1; /* the last of its batch; vgpu__leave_slow closes it */
    entry->left = 0;
    return ABI_SUCCESS;
  }
  return vgpu__enter(entry, NULL, stream, counted);
}

abi_result vgpu__piece_enter(struct vgpu_entry *entry, const struct vgpu_piece *piece, CUstream stream, int *counted) {
  *counted = 0;
  if (!LOAD_ACQUIRE(vgpu__attached)) return ABI_SUCCESS;
  abi_result result = vgpu__enter(entry, piece, stream, counted);
  if (piece->kind == PIECE_COPY) entry->granted = entry->left; /* copies do not count as launches */
  return result;
}

void vgpu__leave_slow(struct vgpu_entry *entry, CUstream stream) {
  struct vgpu_lane *lane = entry->lane;
  if (lane == NULL || entry->stream != stream) return;
  if (vgpu__lane_ticket(lane) != entry->ticket) {
    vgpu__slipped(entry);
    return;
  }
  vgpu__batch_called(lane);
  if (entry->left != 0) return;
  vgpu__lock(&lane->lock);
  if (lane->ticket == entry->ticket) {
    vgpu__fold(entry);
    if (lane->count < VGPU_RING && !(lane->silent && lane->alone)) {
      if (lane->alone && lane->piece.waits) vgpu__batch_close_later(lane);
      else vgpu__batch_close(lane);
      lane->joins = 1;
    }
  }
  vgpu__unlock(&lane->lock);
}

void vgpu__piece_leave(struct vgpu_entry *entry, const struct vgpu_piece *piece, CUstream stream) {
  entry->left = 0;
  if (piece->kind == PIECE_COPY) entry->granted = 0;
  vgpu__leave_slow(entry, stream);
}

void vgpu__slipped(struct vgpu_entry *entry) {
  struct vgpu_lane *lane = entry->lane;
  vgpu__lock(&lane->lock);
  if (vgpu__lane_is(lane, entry->stream) && lane->ticket == entry->ticket + 1 && lane->count > 0 &&
      !vgpu__is_capturing(lane->stream)) {
    struct vgpu_batch *batch = &lane->ring[(lane->head + lane->count - 1) % VGPU_RING];
    if (batch->end == NULL) batch->end = vgpu__event_take(lane->context); /* this thread can name its stream */
    if (batch->end != NULL) REAL(cuEventRecord)(batch->end, lane->stream);
    if (batch->called_ns == 0) batch->called_ns = vgpu__now_ns();
  }
  vgpu__fold(entry);
  vgpu__unlock(&lane->lock);
}
