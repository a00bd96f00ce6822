/*
 * Lanes: the lane of each stream, and what happens to its batches when the stream, its context, its thread or its
 * tenant ends. How work enters a batch: enter.c.
 */
#include "lane.h"

static const uint64_t CLOSE_AFTER_NS = 500u * NS_PER_US, CLOSE_FOREIGN_NS = 2u * NS_PER_MS;
static const uint64_t LOADING_NS = 1000u * (uint64_t)NS_PER_MS;
static const uint64_t FORGET_THREAD_NS = 10000u * (uint64_t)NS_PER_MS;
enum { BUCKETS = 256 };

__thread struct vgpu_entry vgpu__entries[VGPU_ENTRIES] __attribute__((tls_model("initial-exec")));

static struct vgpu_lane lanes[VGPU_LANES];
static struct vgpu_lane *buckets[BUCKETS];
static unsigned lanes_used; /* lanes from this index on were never used */
static struct vgpu_lock lanes_lock;

/* Unique among living threads: the address of a thread-local variable. */
uintptr_t vgpu__thread_token(void) { return (uintptr_t)&vgpu__entries; }

/*
 * The owning thread of a stream that other threads cannot name; 0: none. Such streams are a per-thread default stream,
 * and the default stream of a green context, which is current to one thread at a time.
 */
static uintptr_t vgpu__owner_for(CUstream stream, const struct vgpu_context *context) {
  int own = stream == ABI_STREAM_PER_THREAD || (vgpu__is_special(stream) && LOAD(context->alias) != 0);
  return own ? vgpu__thread_token() : 0;
}

int vgpu__lane_is(const struct vgpu_lane *lane, CUstream stream) {
  return lane->state == LANE_LIVE && lane->stream == stream && lane->owner == vgpu__owner_for(stream, lane->context);
}

static unsigned vgpu__bucket(CUstream stream, const struct vgpu_context *context, uintptr_t owner) {
  uint64_t mixed = ((uint64_t)(uintptr_t)stream ^ (uint64_t)(uintptr_t)context ^ (uint64_t)owner) * 0x9e3779b97f4a7c15u;
  return (unsigned)(mixed >> 40) % BUCKETS;
}

struct vgpu_lane *vgpu__lane_at(unsigned index) {
  return index < LOAD_ACQUIRE(lanes_used) ? &lanes[index] : NULL;
}

/* Takes a lane out of its bucket, so that no thread finds it any more. 0: it was not there. lanes_lock held. */
static int vgpu__unlink_locked(struct vgpu_lane *lane) {
  struct vgpu_lane **at = &buckets[vgpu__bucket(lane->stream, lane->context, lane->owner)];
  while (*at != NULL && *at != lane) at = &(*at)->next;
  if (*at == NULL) return 0;
  *at = lane->next;
  return 1;
}

/*
 * When all lanes are taken, one that has no work is taken from its stream: it holds only estimates. One in no bucket is
 * being dropped by another thread. Returns it locked; NULL: each of them has work. lanes_lock held.
 */
static struct vgpu_lane *vgpu__lane_idle(void) {
  static unsigned hand;
  for (unsigned i = 0; i < (unsigned)VGPU_LANES; i++) {
    struct vgpu_lane *lane = &lanes[hand++ % VGPU_LANES];
    if (LOAD(lane->count) != 0 || !vgpu__try_lock(&lane->lock)) continue;
    if (lane->state == LANE_LIVE && lane->count == 0 && (lane->ticket & 1) == 0 && vgpu__unlink_locked(lane)) {
      STORE(lane->state, (uint32_t)LANE_FREE);
      STORE_RELEASE(lane->ticket, lane->ticket + 2);
      return lane;
    }
    vgpu__unlock(&lane->lock);
  }
  return NULL;
}

int vgpu__lanes_are_full(void) { return LOAD_ACQUIRE(lanes_used) == (unsigned)VGPU_LANES; }

static struct vgpu_lane *vgpu__lane_make(struct vgpu_tenant *tenant, CUstream stream, struct vgpu_context *context,
                                         uintptr_t owner, unsigned bucket) {
  struct vgpu_lane *lane = NULL;
  for (unsigned i = 0; i < lanes_used && lane == NULL; i++) {
    if (LOAD(lanes[i].state) == LANE_FREE && vgpu__try_lock(&lanes[i].lock)) {
      if (lanes[i].state == LANE_FREE) lane = &lanes[i];
      else vgpu__unlock(&lanes[i].lock);
    }
  }
  if (lane == NULL && lanes_used == VGPU_LANES) {
    lane = vgpu__lane_idle();
    if (lane == NULL) return NULL;
  }
  if (lane == NULL) {
    lane = &lanes[lanes_used];
    vgpu__lock(&lane->lock);
    STORE_RELEASE(lanes_used, lanes_used + 1);
  }
  STORE(lane->stream, stream);
  STORE(lane->tenant, tenant);
  lane->context = context;
  lane->owner = owner;
  STORE(lane->blocking, vgpu__is_blocking(stream));
  lane->plan = lane->planned = 0;
  lane->gap_ns = 0;
  lane->unmeasured = 0;
  STORE(lane->unsure_ns, 0);
  lane->stalled = 0;
  lane->each_ns = 0;
  lane->ended_ns = 0;
  STORE(lane->silent, 0);
  lane->starved = 0;
  lane->rounds = (struct vgpu_rounds){.alike = 0};
  lane->opened_ns = vgpu__now_ns();
  lane->next = buckets[bucket];
  buckets[bucket] = lane;
  STORE_RELEASE(lane->state, (uint32_t)LANE_LIVE);
  vgpu__unlock(&lane->lock);
  return lane;
}

/*
 * A default stream belongs to the tenant of the calling thread, and other tenants' graphs may be launched into a
 * stream. So a stream may have one lane for each tenant.
 */
static int vgpu__lane_matches(const struct vgpu_lane *lane, const struct vgpu_tenant *tenant, CUstream stream,
                              const struct vgpu_context *context, uintptr_t owner) {
  return lane->stream == stream && lane->context == context && lane->owner == owner && lane->tenant == tenant;
}

/* The tenant of the work that the calling thread launches into a stream; NULL: it has left its lease. */
static struct vgpu_tenant *vgpu__tenant_for(CUstream stream) {
  if (!vgpu__are_several()) return &vgpu__home;
  if (vgpu__scope.as != NULL) return vgpu__scope.as;
  if (!vgpu__is_special(stream)) return vgpu__stream_tenant(stream);
  struct vgpu_tenant *current = vgpu_tenant_current();
  return current == &vgpu__ended ? NULL : current;
}

/*
 * The lane of a stream as the calling thread names it; NULL if there is none, or no room for one. None is made for a
 * stream that is being captured: the lane is for work, and asking for the stream's flags would end the capture.
 */
struct vgpu_lane *vgpu__lane_for(CUstream stream, int make) {
  struct vgpu_context *context = vgpu__context_for(stream);
  struct vgpu_tenant *tenant = vgpu__tenant_for(stream);
  if (context == NULL || tenant == NULL) return NULL;
  if (UNLIKELY(!LOAD(context->charged))) vgpu__context_used(context);
  uintptr_t owner = vgpu__owner_for(stream, context);
  unsigned bucket = vgpu__bucket(stream, context, owner);
  vgpu__lock(&lanes_lock);
  struct vgpu_lane *lane = buckets[bucket];
  while (lane != NULL && !vgpu__lane_matches(lane, tenant, stream, context, owner)) lane = lane->next;
  if (lane == NULL && make && !vgpu__is_capturing(stream))
    lane = vgpu__lane_make(tenant, stream, context, owner, bucket);
  vgpu__unlock(&lanes_lock);
  return lane;
}

static void vgpu__lane_unlink(struct vgpu_lane *lane) {
  vgpu__lock(&lanes_lock);
  vgpu__unlink_locked(lane);
  vgpu__unlock(&lanes_lock);
}

/*
 * Adds the launches of this thread since its last fold. If called without the lane's lock, a batch closed meanwhile
 * misses them; the slot's count does not.
 */
void vgpu__fold(struct vgpu_entry *entry) {
  uint32_t launched = entry->granted - entry->left;
  if (launched == 0) return;
  ADD(entry->lane->tenant->slot->launches, launched);
  if (vgpu__lane_ticket(entry->lane) == entry->ticket) ADD(entry->lane->folded, launched);
  entry->granted = entry->left;
}

void vgpu__fold_lane(const struct vgpu_lane *lane) {
  for (int i = 0; i < VGPU_ENTRIES; i++) {
    if (vgpu__entries[i].lane == lane) vgpu__fold(&vgpu__entries[i]);
  }
}

/* A waiting thread may never launch again, so its launches are folded even if another thread has closed their batch. */
static void vgpu__close_lane(struct vgpu_lane *lane, void (*close)(struct vgpu_lane *lane)) {
  vgpu__lock(&lane->lock);
  vgpu__fold_lane(lane);
  if ((lane->ticket & 1) != 0 && lane->count < VGPU_RING) {
    close(lane);
  }
  lane->joins = 0;
  vgpu__unlock(&lane->lock);
}

/*
 * The same before the stream is captured or ends. Neither may be asked whether it is over, so a silent round gets an end
 * event.
 */
static void vgpu__end_lane(struct vgpu_lane *lane, void (*close)(struct vgpu_lane *lane)) {
  vgpu__close_lane(lane, close);
  vgpu__lock(&lane->lock);
  struct vgpu_batch *last = lane->count == 0 ? NULL : &lane->ring[(lane->head + lane->count - 1) % VGPU_RING];
  if (last != NULL && last->silent && last->end == NULL && last->over_ns == 0) vgpu__batch_end_late(lane, last);
  vgpu__unlock(&lane->lock);
}

void vgpu__close_stream(CUstream stream) {
  if (!LOAD_ACQUIRE(vgpu__attached)) return;
  struct vgpu_lane *lane = vgpu__lane_for(stream, 0);
  if (lane != NULL) vgpu__close_lane(lane, vgpu__batch_close);
}

/*
 * Blocking streams wait with the legacy stream, so their open batches end before its wait. An event in them holds
 * nothing up that does not wait for the legacy stream anyway.
 */
static void vgpu__order_legacy(void) {
  CUcontext handle = NULL;
  struct vgpu_lane *lane;
  REAL(cuCtxGetCurrent)(&handle);
  for (unsigned i = 0; handle != NULL && (lane = vgpu__lane_at(i)) != NULL; i++) {
    if (LOAD_ACQUIRE(lane->state) != LANE_LIVE || !LOAD(lane->blocking) || (vgpu__lane_ticket(lane) & 1) == 0) continue;
    if (lane->context->handle == handle) vgpu__close_lane(lane, vgpu__batch_close_later);
  }
}

void vgpu__order_stream(CUstream stream, int starts) {
  if (vgpu__is_legacy(stream)) vgpu__order_legacy();
  struct vgpu_lane *lane = vgpu__lane_for(stream, 0);
  if (lane == NULL) {
    vgpu__blocking_ordered(stream);
    return;
  }
  if (LOAD(lane->blocking)) vgpu__blocking_used(lane->context);
  vgpu__end_lane(lane, vgpu__batch_close); /* its wait may be for what another stream captures */
  if (!starts) return;
  vgpu__lock(&lane->lock);
  vgpu__lane_unsure(lane, vgpu__now_ns());
  vgpu__unlock(&lane->lock);
}

/*
 * Marks the stream as used, then locks each lane of the legacy stream: a query or an event by another thread is over,
 * and the next one sees the mark.
 */
void vgpu__capture_stream(CUstream stream) {
  if (!LOAD_ACQUIRE(vgpu__attached)) return;
  const struct vgpu_context *context = vgpu__blocking_ordered(stream);
  struct vgpu_lane *lane = vgpu__lane_for(stream, 0);
  if (lane != NULL) vgpu__end_lane(lane, vgpu__batch_close);
  for (unsigned i = 0; context != NULL && (lane = vgpu__lane_at(i)) != NULL; i++) {
    if (LOAD_ACQUIRE(lane->state) != LANE_LIVE || lane->context != context || !vgpu__is_legacy(LOAD(lane->stream)))
      continue;
    vgpu__close_lane(lane, vgpu__batch_close_later);
  }
}

uint64_t vgpu__wait_stream(CUstream stream) {
  struct vgpu_lane *lane = LOAD_ACQUIRE(vgpu__attached) ? vgpu__lane_for(stream, 0) : NULL;
  if (lane != NULL) vgpu__close_lane(lane, vgpu__batch_close_waiting);
  return vgpu__now_ns();
}

void vgpu__waited_stream(CUstream stream, uint64_t since) {
  if (!LOAD_ACQUIRE(vgpu__attached)) return;
  struct vgpu_lane *lane = vgpu__lane_for(stream, 0);
  if (lane == NULL || vgpu__lane_is_settled(lane)) return;
  vgpu__lock(&lane->lock);
  vgpu__rounds_over(lane, since);
  vgpu__batch_harvest(lane);
  vgpu__unlock(&lane->lock);
}

void vgpu__stream_differs(CUstream stream) {
  struct vgpu_lane *lane = LOAD_ACQUIRE(vgpu__attached) ? vgpu__lane_for(stream, 0) : NULL;
  if (lane == NULL) return;
  vgpu__lock(&lane->lock);
  vgpu__rounds_forget(lane);
  vgpu__unlock(&lane->lock);
}

void vgpu__close_thread(void) {
  for (int i = 0; i < VGPU_ENTRIES; i++) {
    struct vgpu_entry *entry = &vgpu__entries[i];
    if (entry->lane == NULL) continue;
    if (vgpu__lane_ticket(entry->lane) == entry->ticket) vgpu__close_lane(entry->lane, vgpu__batch_close_later);
    else vgpu__fold(entry);
  }
}

uint64_t vgpu__wait_context(CUcontext context) {
  struct vgpu_lane *lane;
  for (int i = 0; i < VGPU_ENTRIES; i++) {
    lane = vgpu__entries[i].lane;
    if (lane != NULL && (context == NULL || lane->context->handle == context)) vgpu__fold(&vgpu__entries[i]);
  }
  for (unsigned i = 0; (lane = vgpu__lane_at(i)) != NULL; i++) {
    if ((vgpu__lane_ticket(lane) & 1) == 0 || (context != NULL && lane->context->handle != context)) continue;
    vgpu__close_lane(lane, vgpu__batch_close_waiting);
  }
  return vgpu__now_ns();
}

void vgpu__settle_stream(CUstream stream) {
  if (!LOAD_ACQUIRE(vgpu__attached)) return;
  struct vgpu_lane *lane = vgpu__lane_for(stream, 0);
  if (lane == NULL) return;
  vgpu__close_lane(lane, vgpu__batch_close_later);
  vgpu__lock(&lane->lock);
  vgpu__batch_harvest(lane);
  vgpu__unlock(&lane->lock);
}

void vgpu__harvest_thread(void) {
  for (int i = 0; i < VGPU_ENTRIES; i++) {
    struct vgpu_lane *lane = vgpu__entries[i].lane;
    if (lane == NULL || LOAD(lane->count) == 0) continue;
    vgpu__lock(&lane->lock);
    vgpu__batch_harvest(lane);
    vgpu__unlock(&lane->lock);
  }
}

static void vgpu__harvest(CUcontext context, uint64_t waited_since) {
  struct vgpu_lane *lane;
  for (unsigned i = 0; (lane = vgpu__lane_at(i)) != NULL; i++) {
    if (vgpu__lane_is_settled(lane) || (context != NULL && lane->context->handle != context)) continue;
    /* Whoever has waited marks the silent round that is over. Other batches have events. */
    if (waited_since != 0 && LOAD(lane->silent)) vgpu__lock(&lane->lock);
    else if (!vgpu__try_lock(&lane->lock)) continue;
    if (context == NULL || lane->context->handle == context) {
      vgpu__rounds_over(lane, waited_since);
      vgpu__batch_harvest(lane);
    }
    vgpu__unlock(&lane->lock);
  }
}

/* The lane counts as stalled until one of its batches ends. */
static void vgpu__stall(struct vgpu_lane *lane) {
  lane->stalled = 1;
  for (unsigned i = 0; i < lane->count; i++) {
    struct vgpu_batch *batch = &lane->ring[(lane->head + i) % VGPU_RING];
    ADD(lane->tenant->inflight_ns, -batch->cost_ns);
    batch->cost_ns = 0;
  }
  if ((lane->ticket & 1) != 0) ADD(lane->tenant->inflight_ns, -lane->cost_ns);
  if ((lane->ticket & 1) != 0) lane->cost_ns = 0;
}

void vgpu__harvest_all(void) { vgpu__harvest(NULL, 0); }

void vgpu__waited_context(CUcontext context, uint64_t since) { vgpu__harvest(context, since); }

/*
 * Marks lanes as stalled in which nothing has ended since then. Not while any work of the tenant runs, which may just
 * be long: the other lanes may wait for it.
 */
void vgpu__lanes_stalled(const struct vgpu_tenant *tenant, uint64_t since) {
  struct vgpu_lane *lane;
  for (int marks = 0; marks < 2; marks++) {
    for (unsigned i = 0; (lane = vgpu__lane_at(i)) != NULL; i++) {
      if (LOAD_ACQUIRE(lane->state) == LANE_FREE || LOAD(lane->tenant) != tenant || !vgpu__try_lock(&lane->lock))
        continue;
      int runs = !marks && lane->state != LANE_FREE && vgpu__batch_runs(lane);
      if (marks && lane->count > 0 && (int64_t)(lane->ring[lane->head].opened_ns - since) < 0) vgpu__stall(lane);
      vgpu__unlock(&lane->lock);
      if (runs) return;
    }
  }
}

/* Work outlives its stream or tenant: the lane stays until its batches are measured, but cannot be found any more. */
static void vgpu__drop_lane(struct vgpu_lane *lane) {
  vgpu__end_lane(lane, vgpu__batch_close_later);
  vgpu__lane_unlink(lane);
  vgpu__lock(&lane->lock);
  if ((lane->ticket & 1) != 0) vgpu__batch_drop(lane);
  vgpu__batch_harvest(lane);
  STORE(lane->state, (uint32_t)(lane->count > 0 ? LANE_ORPHAN : LANE_FREE));
  STORE_RELEASE(lane->ticket, lane->ticket + 2);
  vgpu__unlock(&lane->lock);
}

void vgpu__drop_stream(CUstream stream) {
  if (!LOAD_ACQUIRE(vgpu__attached) || vgpu__is_special(stream)) return;
  vgpu__pools_forget_stream(stream, NULL);
  vgpu__later_forget_stream(stream);
  struct vgpu_lane *lane = vgpu__lane_for(stream, 0);
  if (lane != NULL) vgpu__drop_lane(lane);
  if (!vgpu__are_several()) return;
  /* the lanes of other tenants' graphs in this stream */
  for (unsigned i = 0; (lane = vgpu__lane_at(i)) != NULL; i++) {
    if (LOAD_ACQUIRE(lane->state) == LANE_LIVE && LOAD(lane->stream) == stream) vgpu__drop_lane(lane);
  }
  vgpu__stream_gone(stream);
}

void vgpu__drop_tenant(const struct vgpu_tenant *tenant) {
  struct vgpu_lane *lane;
  for (unsigned i = 0; (lane = vgpu__lane_at(i)) != NULL; i++) {
    if (LOAD_ACQUIRE(lane->state) != LANE_LIVE || LOAD(lane->tenant) != tenant) continue;
    if (vgpu__is_special(LOAD(lane->stream))) vgpu__drop_lane(lane);
    else vgpu__close_lane(lane, vgpu__batch_close_later);
  }
}

uint64_t vgpu__lane_tenants(void) {
  uint64_t bits = 0;
  const struct vgpu_lane *lane;
  for (unsigned i = 0; (lane = vgpu__lane_at(i)) != NULL; i++) {
    if (LOAD_ACQUIRE(lane->state) != LANE_FREE) bits |= (uint64_t)1 << LOAD(lane->tenant)->index;
  }
  return bits;
}

void vgpu__drop_context(CUcontext context) {
  struct vgpu_lane *lane;
  for (unsigned i = 0; (lane = vgpu__lane_at(i)) != NULL; i++) {
    if (LOAD_ACQUIRE(lane->state) == LANE_FREE || lane->context->handle != context) continue;
    vgpu__lane_unlink(lane);
    vgpu__lock(&lane->lock);
    vgpu__batch_drop(lane);
    STORE(lane->state, (uint32_t)LANE_FREE);
    STORE_RELEASE(lane->ticket, lane->ticket + 2);
    vgpu__unlock(&lane->lock);
  }
}

static void vgpu__add_tended(struct vgpu_tended *sum, unsigned batches, uint64_t rest_ns) {
  if (batches == 0) return;
  if (sum->batches == 0 || rest_ns < sum->rest_ns) sum->rest_ns = rest_ns;
  sum->batches += batches;
}

/* One lane, by the monitor: closes an old batch, or one that must end, and harvests. */
static void vgpu__tend(struct vgpu_lane *lane, uint64_t now, uint64_t shut_tenants, struct vgpu_tended *tended) {
  if (!vgpu__try_lock(&lane->lock)) {
    vgpu__add_tended(tended, 1, 0);
    return;
  }
  int shut = (shut_tenants >> lane->tenant->index & 1) != 0;
  if ((lane->ticket & 1) != 0 && lane->count < VGPU_RING) {
    uint64_t age = now - lane->opened_ns;
    uint64_t most = lane->owner != 0 ? CLOSE_FOREIGN_NS : CLOSE_AFTER_NS;
    /* If its first launch has not returned, the driver may be loading a function. */
    int silent = (int64_t)age > (int64_t)(LOAD(lane->called_ns) != 0 ? most : LOADING_NS);
    if (silent || (shut && lane->owner == 0)) vgpu__batch_close_later(lane);
    if (silent) lane->gap_ns = 0;
  }
  unsigned batches = vgpu__batch_harvest(lane) + (unsigned)(lane->ticket & 1);
  vgpu__add_tended(tended, batches, vgpu__batch_rest(lane, now));
  if (batches == 0 && lane->state == LANE_ORPHAN) STORE(lane->state, (uint32_t)LANE_FREE);
  int forget = batches == 0 && lane->state == LANE_LIVE && lane->owner != 0 && now > lane->opened_ns + FORGET_THREAD_NS;
  if (forget) {
    vgpu__unlock(&lane->lock);
    vgpu__lane_unlink(lane);
    vgpu__lock(&lane->lock);
    STORE(lane->state, (uint32_t)((lane->ticket & 1) != 0 || lane->count > 0 ? LANE_ORPHAN : LANE_FREE));
    STORE_RELEASE(lane->ticket, lane->ticket + 2);
  }
  vgpu__unlock(&lane->lock);
}

/* The tenants whose work may not continue now, as bits. */
static uint64_t vgpu__shut_tenants(void) {
  uint64_t shut = 0, heed;
  const struct vgpu_tenant *tenant;
  for (unsigned i = 0; (tenant = vgpu__tenant_next(&i)) != NULL; i++) {
    int closed = !vgpu__word_open(LOAD_ACQUIRE(tenant->grant->word)) && !LOAD(tenant->autonomous);
    if (closed || vgpu__express_held(tenant, &heed) != 0) shut |= (uint64_t)1 << i;
  }
  return shut;
}

void vgpu__tend_lanes(uint64_t now, struct vgpu_tended *tended) {
  struct vgpu_lane *lane;
  uint64_t shut = vgpu__shut_tenants();
  for (unsigned i = 0; (lane = vgpu__lane_at(i)) != NULL; i++) {
    if (LOAD_ACQUIRE(lane->state) != LANE_FREE) vgpu__tend(lane, now, shut, &tended[LOAD(lane->tenant)->index]);
  }
}

void vgpu__entries_forget(void) {
  for (int i = 0; i < VGPU_ENTRIES; i++) {
    vgpu__fold(&vgpu__entries[i]);
    vgpu__entries[i] = (struct vgpu_entry){.stream = NULL};
  }
}

void vgpu__lanes_forget(void) {
  for (unsigned i = 0; i < lanes_used; i++) lanes[i] = (struct vgpu_lane){.ticket = lanes[i].ticket + 2};
  for (unsigned i = 0; i < BUCKETS; i++) buckets[i] = NULL;
  lanes_used = 0;
  lanes_lock.word = 0;
}
