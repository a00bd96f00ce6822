/*
 * Rounds: a program launches the same few kernels again and again, and waits for them each time, like a loop that
 * fetches each result. Events around each round would cost more than their result is worth. Once eight rounds in a row
 * had the same number of launches and took about the same time, most following rounds are silent: no event is recorded,
 * and the round is over when the wait returns. A silent round is charged the time of the measured ones.
 *
 * The host's clock checks silent rounds. After a round that took noticeably more or less time, the next is measured. If
 * that one took longer too, the difference is charged afterwards. A much longer round is charged its difference at
 * once, less the time that its thread waited for a processor. A round that the monitor finds unfinished gets an end
 * event, and is charged by that.
 */
#include "lane.h"

static const uint64_t SLACK_NS = 5u * NS_PER_US;        /* allowed difference of the host's time between rounds alike */
static const uint64_t GRACE_NS = 100u * NS_PER_US;      /* a silent round that is later than this is queried */
static const uint64_t MOST_MORE_NS = 1500u * NS_PER_US; /* by then the monitor has queried it */
static const uint64_t LONGEST_NS = 500u * NS_PER_US;
/* number of measured rounds in a row; then LEAST_SILENT and up to MORE_SILENT more rounds, at random, are silent */
enum { ALIKE = 8, LEAST_SILENT = 8, MORE_SILENT = 16 };

/* This thread's total wait for a processor at the last reading. */
static __thread uint64_t unscheduled_ns __attribute__((tls_model("initial-exec")));

static uint64_t vgpu__unscheduled_since(void) {
  uint64_t before = unscheduled_ns;
  unscheduled_ns = vgpu__unscheduled_ns();
  return unscheduled_ns > before ? unscheduled_ns - before : 0;
}

static uint64_t vgpu__slack_ns(uint64_t took) { return took / 8 + SLACK_NS; }

static int vgpu__differ(uint64_t a, uint64_t b) { return (a > b ? a - b : b - a) > vgpu__slack_ns(b); }

void vgpu__rounds_forget(struct vgpu_lane *lane) {
  lane->rounds.alike = 0;
  lane->rounds.left = 0;
}

int vgpu__round_begins(struct vgpu_lane *lane, const struct vgpu_piece *piece) {
  const struct vgpu_tenant *tenant = lane->tenant;
  if (piece != NULL && piece->varies) return 0;
  if (piece != NULL ? piece->graph == NULL || piece->graph != lane->rounds.graph : lane->rounds.graph != NULL) return 0;
  if (lane->rounds.left == 0 || !lane->idle || !lane->only || lane->owner != 0 || lane->stalled) return 0;
  if (!vgpu__never_stops(tenant) || !vgpu__peers_alone(tenant)) return 0;
  lane->rounds.left--;
  return 1;
}

void vgpu__round_measured(struct vgpu_lane *lane, const struct vgpu_batch *batch, uint64_t took, uint64_t now) {
  struct vgpu_rounds *rounds = &lane->rounds;
  uint64_t wall = now - batch->opened_ns, beside = wall > took ? wall - took : 0;
  if (!batch->waited) return;
  if (batch->paused_ns != 0 || took > LONGEST_NS) {
    vgpu__rounds_forget(lane);
    return;
  }
  if (rounds->alike == 0 || rounds->launches != batch->launches || rounds->graph != batch->graph ||
      vgpu__differ(took, rounds->took_ns)) {
    if (took > rounds->took_ns) ADD(lane->tenant->slot->gpu_ns, rounds->owed_ns);
    *rounds = (struct vgpu_rounds){
        .alike = 1, .launches = batch->launches, .graph = batch->graph, .took_ns = took, .beside_ns = beside};
    return;
  }
  rounds->owed_ns = 0;
  rounds->took_ns = rounds->took_ns - rounds->took_ns / 4 + took / 4;
  rounds->beside_ns = beside < rounds->beside_ns ? beside : rounds->beside_ns + (beside - rounds->beside_ns) / 16;
  if (++rounds->alike == ALIKE) (void)vgpu__unscheduled_since();
  if (rounds->alike >= ALIKE) rounds->left = LEAST_SILENT + (uint32_t)(now * 0x9e3779b97f4a7c15u >> 60) % MORE_SILENT;
}

uint64_t vgpu__round_took(struct vgpu_lane *lane, const struct vgpu_batch *batch) {
  struct vgpu_rounds *rounds = &lane->rounds;
  uint64_t wall = batch->over_ns - batch->opened_ns, paused = vgpu__paused_ns(batch->over_ns) - batch->paused_at_ns;
  if ((int64_t)paused > 0) wall = wall > paused ? wall - paused : 0;
  uint64_t cost = batch->cost_ns, should = cost + batch->beside_ns;
  if (wall <= should) {
    rounds->beside_ns = wall > cost ? wall - cost : 0;
    if (vgpu__differ(wall, should)) rounds->left = 0;
    return cost < wall ? cost : wall;
  }
  uint64_t more = wall - should;
  if (more <= vgpu__slack_ns(cost)) return cost;
  rounds->left = 0;
  if (!batch->waited) return cost; /* found over late by the monitor; if unfinished, it would have got an end event */
  if (more <= GRACE_NS) {
    rounds->owed_ns += more;
    return cost;
  }
  uint64_t unscheduled = vgpu__unscheduled_since();
  if (more <= unscheduled) return cost;
  rounds->alike = 0;
  more -= unscheduled;
  if (vgpu__holds_others_up(lane, batch->opened_ns)) return cost + more; /* nobody could query it */
  return cost + (more < MOST_MORE_NS ? more : MOST_MORE_NS);
}

abi_result vgpu__round_query(struct vgpu_lane *lane, struct vgpu_batch *batch, uint64_t now) {
  if (batch->over_ns != 0) return ABI_SUCCESS;
  if (now - batch->opened_ns < batch->cost_ns + batch->beside_ns + GRACE_NS) return ABI_NOT_READY;
  abi_result status = vgpu__query_stream(lane, batch->opened_ns);
  if (status == ABI_SUCCESS) batch->over_ns = vgpu__now_ns();
  if (status == ABI_NOT_READY && (lane->ticket & 1) == 0) vgpu__batch_end_late(lane, batch);
  return status;
}

void vgpu__rounds_over(struct vgpu_lane *lane, uint64_t since) {
  uint64_t now = vgpu__now_ns();
  if (since != 0) vgpu__lane_waited(lane, since);
  for (unsigned i = 0; since != 0 && i < lane->count; i++) {
    struct vgpu_batch *batch = &lane->ring[(lane->head + i) % VGPU_RING];
    if ((int64_t)(batch->closed_ns - since) > 0) continue;
    batch->waited = lane->count == 1 && batch->idle && batch->only && batch->kind == PIECE_WORK;
    if (batch->end == NULL) batch->over_ns = now;
  }
}
