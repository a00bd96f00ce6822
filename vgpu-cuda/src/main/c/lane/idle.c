/*
 * Whether nothing of a tenant's work is on the GPU, so that its memory may be moved. The monitor only asks: a wait for
 * the whole context would end captures, and could last as long as a stream waits for its host.
 *
 * Another thread's default stream cannot be named from here. So if memory may be moved, its thread ends each launch
 * there with an event. Where it could not, the stream counts as busy until something later in it is over, or its thread
 * has waited for it, or its lane is forgotten after some seconds without work.
 */
#include "lane.h"

int vgpu__lane_needs_ends(const struct vgpu_lane *lane) {
  return lane->owner != 0 && vgpu__wants_movable(lane->tenant);
}

void vgpu__lane_unsure(struct vgpu_lane *lane, uint64_t now) {
  if (lane->owner != 0) STORE(lane->unsure_ns, now);
}

void vgpu__lane_ended(struct vgpu_lane *lane, const struct vgpu_batch *batch) {
  if (batch->end == NULL && batch->over_ns == 0) vgpu__lane_unsure(lane, batch->closed_ns);
  else if ((int64_t)(batch->closed_ns - lane->unsure_ns) >= 0) STORE(lane->unsure_ns, 0);
}

void vgpu__lane_waited(struct vgpu_lane *lane, uint64_t since) {
  if (lane->owner == vgpu__thread_token() && (int64_t)(since - lane->unsure_ns) >= 0) STORE(lane->unsure_ns, 0);
}

/* Lane's lock held. While a stream is captured, only its batches are known. */
static int vgpu__lane_rests(struct vgpu_lane *lane) {
  if (lane->state == LANE_FREE) return 1;
  if ((lane->ticket & 1) != 0 || lane->count > 0) return 0;
  if (lane->state != LANE_LIVE) return 1;
  if (lane->owner != 0) return lane->unsure_ns == 0;
  int entered = vgpu__context_enter(lane->context);
  int rests = vgpu__is_capturing(lane->stream) || vgpu__query_stream(lane, lane->opened_ns) != ABI_NOT_READY;
  vgpu__context_leave(entered);
  return rests;
}

int vgpu__lanes_are_idle(const struct vgpu_tenant *tenant) {
  struct vgpu_lane *lane;
  for (unsigned i = 0; (lane = vgpu__lane_at(i)) != NULL; i++) {
    if (LOAD_ACQUIRE(lane->state) == LANE_FREE || LOAD(lane->tenant) != tenant) continue;
    if (!vgpu__try_lock(&lane->lock)) return 0;
    int rests = vgpu__lane_rests(lane);
    vgpu__unlock(&lane->lock);
    if (!rests) return 0;
  }
  return 1;
}
