/*
 * Whether a tenant has work: told in its slot to the seat, to the express lane and to the lease's other processes. Also
 * the messages that tell the seat.
 */
#include "lane.h"

/*
 * Read after the work was counted, in one order with the count: either the seat sees the count, or we see what it
 * wants.
 */
static int vgpu__seat_wants_to_know(const struct vgpu_tenant *tenant) {
  return !vgpu__word_open(__atomic_load_n(&tenant->grant->word, __ATOMIC_SEQ_CST)) || LOAD(tenant->express.told) ||
         (__atomic_load_n(&tenant->grant->turn_flags, __ATOMIC_SEQ_CST) & SHM_TURN_CONTENDED) != 0;
}

/*
 * A process that synchronises after each small kernel is idle for microseconds, thousands of times a second. Once it
 * has returned quickly a few times, only the monitor reports idleness to the seat, if it lasts. `told_idle` is what the
 * seat believes.
 */
static const uint64_t SHORT_IDLE_NS = 100u * NS_PER_US;
enum { TRUSTED = 4 };

/*
 * Sequentially consistent, like the seat's shutting of the gate: either the seat sees us busy, or we see the gate shut.
 */
void vgpu__busy_enter(struct vgpu_tenant *tenant) {
  if (__atomic_fetch_add(&tenant->slot->busy, 1, __ATOMIC_SEQ_CST) != 0) return;
  vgpu__express_announce(tenant); /* before anything slow */
  vgpu__peers_begin(tenant);
  vgpu__monitor_wake();
  vgpu__level2_wake();
  if (!vgpu__seat_wants_to_know(tenant) && !vgpu__seat_rests(tenant)) return;
  int short_idle = vgpu__now_ns() - LOAD(tenant->gate.idle_since_ns) < SHORT_IDLE_NS;
  STORE(tenant->gate.short_idles, short_idle ? LOAD(tenant->gate.short_idles) + 1 : 0);
  /* the seat was never told that we were idle */
  if (__atomic_exchange_n(&tenant->gate.idle_pending, 0, __ATOMIC_SEQ_CST)) return;
  if (__atomic_exchange_n(&tenant->gate.told_idle, 0, __ATOMIC_SEQ_CST))
    vgpu__seat_send(tenant, (uint32_t)SHM_MESSAGE_WANT);
}

void vgpu__busy_leave(struct vgpu_tenant *tenant, uint32_t count) {
  if (count == 0 || __atomic_fetch_sub(&tenant->slot->busy, count, __ATOMIC_SEQ_CST) != count) return;
  vgpu__express_idle(tenant);
  vgpu__level2_wake();
  if (vgpu__seat_wants_to_know(tenant)) {
    STORE(tenant->gate.idle_since_ns, vgpu__now_ns());
    if (LOAD(tenant->gate.short_idles) >= TRUSTED && vgpu__word_open(LOAD_ACQUIRE(tenant->grant->word))) {
      __atomic_store_n(&tenant->gate.idle_pending, 1, __ATOMIC_SEQ_CST);
      return;
    }
    vgpu__seat_send(tenant, (uint32_t)SHM_MESSAGE_IDLE);
  }
  __atomic_store_n(&tenant->gate.told_idle, 1, __ATOMIC_SEQ_CST);
}

int vgpu__gate_tend(struct vgpu_tenant *tenant, uint64_t now) {
  if (!__atomic_load_n(&tenant->gate.idle_pending, __ATOMIC_SEQ_CST)) return 0;
  int open = vgpu__word_open(LOAD_ACQUIRE(tenant->grant->word));
  if (open && (int64_t)(now - LOAD(tenant->gate.idle_since_ns)) < (int64_t)SHORT_IDLE_NS) return 1;
  __atomic_store_n(&tenant->gate.told_idle, 1, __ATOMIC_SEQ_CST);
  if (__atomic_exchange_n(&tenant->gate.idle_pending, 0, __ATOMIC_SEQ_CST)) {
    vgpu__seat_send(tenant, (uint32_t)SHM_MESSAGE_IDLE);
    /* Work may have begun meanwhile without a WANT. Then the last message must be a WANT. */
    if (__atomic_load_n(&tenant->slot->busy, __ATOMIC_SEQ_CST) != 0)
      vgpu__seat_send(tenant, (uint32_t)SHM_MESSAGE_WANT);
  }
  return 0;
}
