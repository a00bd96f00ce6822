/*
 * The gate: may work start now? Open: yes. Shut: wait on the grant word. No seat answers: keep the lease's own pace, over the GPU
 * time that all its processes measured, until one answers again. And the accounts that the seat reads: busy, waiting, GPU time.
 */
#include "express.h"
#include "hook.h"
#include "level2.h"

static const uint64_t SILENCE_NS = 15u * NS_PER_MS, LATE_NS = 250u * NS_PER_MS;
static const uint64_t WAIT_NS = 5u * NS_PER_MS;
static const uint64_t REMIND_NS = 20u * NS_PER_MS;
static const uint64_t PACE_BURST_NS = 2u * NS_PER_MS;
static const uint64_t LEAST_PERMILLE = 10;

/* It looks seldom: it is told when work begins. */
static int vgpu__seat_rests(const struct vgpu_tenant *tenant) { return (LOAD(tenant->grant->turn_flags) & SHM_TURN_RESTING) != 0; }

/*
 * A heartbeat from the future is as good as none. On a busy machine a seat that lives comes late to its processor; to go without it
 * then would pass the lease's share, or lose it. So one that neither ended nor stopped is waited for longer. One that rests beats seldom,
 * and from a container its process is not seen: it is waited for as long.
 */
int vgpu__seat_is_silent(const struct vgpu_tenant *tenant, uint64_t now) {
  uint64_t beat = LOAD_ACQUIRE(tenant->seat->heartbeat_ns);
  if (beat > now + 1000u * (uint64_t)NS_PER_MS || beat + LATE_NS < now) return 1;
  if (beat + SILENCE_NS >= now || vgpu__seat_rests(tenant)) return 0;
  return !vgpu__process_runs(LOAD(tenant->seat->seat_pid), LOAD(tenant->seat->seat_start));
}

static uint64_t vgpu__lease_gpu_ns(const struct vgpu_tenant *tenant) {
  uint64_t sum = 0;
  for (uint64_t i = 1; i < SHM_SLOT_COUNT; i++) sum += LOAD(tenant->slots[i].gpu_ns);
  return sum;
}

void vgpu__gate_set_autonomous(struct vgpu_tenant *tenant, int on) {
  if (LOAD(tenant->autonomous) == (uint32_t)on) return;
  vgpu__lock(&tenant->gate.pace_lock);
  if (LOAD(tenant->autonomous) != (uint32_t)on) {
    tenant->gate.pace_since_ns = vgpu__now_ns();
    tenant->gate.pace_gpu_ns = vgpu__lease_gpu_ns(tenant);
    STORE(tenant->slot->autonomous, (uint32_t)on);
    STORE_RELEASE(tenant->autonomous, (uint32_t)on);
    vgpu__log(on ? "no seat answers: going by the last grant" : "a seat answers again");
  }
  vgpu__unlock(&tenant->gate.pace_lock);
}

void vgpu__gate_pace(struct vgpu_tenant *tenant) {
  while (LOAD_ACQUIRE(tenant->autonomous)) {
    uint64_t permille = LOAD(tenant->grant->entitled_permille);
    if (permille > 1000) permille = 1000;
    if (permille < LEAST_PERMILLE) permille = LEAST_PERMILLE;
    vgpu__lock(&tenant->gate.pace_lock);
    uint64_t used = vgpu__lease_gpu_ns(tenant) - tenant->gate.pace_gpu_ns;
    uint64_t elapsed = vgpu__now_ns() - tenant->gate.pace_since_ns;
    vgpu__unlock(&tenant->gate.pace_lock);
    uint64_t earned = elapsed / 1000 * permille + PACE_BURST_NS;
    /* More than all of the time: another process wrote nonsense, or left; nobody waits for that. */
    if (used <= earned || used > elapsed * SHM_SLOT_COUNT) return;
    uint64_t pause = (used - earned) * 1000 / permille;
    vgpu__sleep_ns(pause < WAIT_NS ? pause : WAIT_NS);
  }
}

abi_result vgpu__gate_wait(struct vgpu_tenant *tenant) {
  struct shm_slot *slot = tenant->slot;
  uint64_t began = vgpu__now_ns(), reminded = 0;
  __atomic_fetch_add(&slot->waiting, 1, __ATOMIC_SEQ_CST);
  vgpu__monitor_wake();
  abi_result result = ABI_SUCCESS;
  for (;;) {
    uint32_t word = LOAD_ACQUIRE(tenant->grant->word);
    if ((word & SHM_GRANT_REVOKED) != 0) result = ABI_NOT_PERMITTED;
    if ((word & (SHM_GRANT_REVOKED | SHM_GRANT_OPEN)) != 0 || LOAD_ACQUIRE(tenant->autonomous)) break;
    uint64_t now = vgpu__now_ns();
    /* Memory that is in the host's must be back first: the monitor sees to that. */
    if (now - began > SILENCE_NS && vgpu__movable_is_home(tenant) && vgpu__seat_is_silent(tenant, now)) {
      vgpu__gate_set_autonomous(tenant, 1);
      break;
    }
    STORE_RELEASE(slot->heartbeat_ns, now); /* the monitor's, but on a busy machine that may be late */
    if (reminded == 0 || now - reminded > REMIND_NS) {
      reminded = now;
      vgpu__seat_send(tenant, (uint32_t)SHM_MESSAGE_WANT);
    }
    vgpu__futex_wait(&tenant->grant->word, word, WAIT_NS);
  }
  __atomic_fetch_sub(&slot->waiting, 1, __ATOMIC_SEQ_CST);
  ADD(slot->waited_ns, vgpu__now_ns() - began);
  return result;
}

static int vgpu__seat_wants_to_know(const struct vgpu_tenant *tenant) {
  return !vgpu__word_open(LOAD_ACQUIRE(tenant->grant->word)) || LOAD(tenant->express.told) ||
         (LOAD(tenant->grant->turn_flags) & SHM_TURN_CONTENDED) != 0;
}

/*
 * A process that synchronises after each small kernel is idle for microseconds, thousands of times a second. When it has come back
 * quickly a few times, its idleness is told only if it lasts: by the monitor. `told` is what the seat believes.
 */
static const uint64_t SHORT_IDLE_NS = 100u * NS_PER_US;
enum { TRUSTED = 4 };

/* Sequentially consistent, as the seat's shutting is: either it sees us busy, or we see the gate shut. */
void vgpu__busy_enter(struct vgpu_tenant *tenant) {
  if (__atomic_fetch_add(&tenant->slot->busy, 1, __ATOMIC_SEQ_CST) != 0) return;
  vgpu__express_announce(tenant); /* before anything that takes time */
  vgpu__peers_begin(tenant);
  vgpu__monitor_wake();
  vgpu__level2_wake();
  if (!vgpu__seat_wants_to_know(tenant) && !vgpu__seat_rests(tenant)) return;
  int short_idle = vgpu__now_ns() - LOAD(tenant->gate.idle_since_ns) < SHORT_IDLE_NS;
  STORE(tenant->gate.short_idles, short_idle ? LOAD(tenant->gate.short_idles) + 1 : 0);
  if (__atomic_exchange_n(&tenant->gate.idle_pending, 0, __ATOMIC_SEQ_CST)) return; /* it was never told that we were idle */
  if (__atomic_exchange_n(&tenant->gate.told_idle, 0, __ATOMIC_SEQ_CST)) vgpu__seat_send(tenant, (uint32_t)SHM_MESSAGE_WANT);
}

void vgpu__busy_leave(struct vgpu_tenant *tenant, uint32_t count) {
  if (count == 0 || __atomic_fetch_sub(&tenant->slot->busy, count, __ATOMIC_SEQ_CST) != count) return;
  vgpu__express_idle(tenant);
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
    /* It may have begun anew while we spoke, and have kept silent: then the last word must be that. */
    if (__atomic_load_n(&tenant->slot->busy, __ATOMIC_SEQ_CST) != 0) vgpu__seat_send(tenant, (uint32_t)SHM_MESSAGE_WANT);
  }
  return 0;
}

/* Charges what of [start, end) nobody of the lease has charged yet: two streams at once are one GPU. */
uint64_t vgpu__charge(struct vgpu_tenant *tenant, uint64_t start_ns, uint64_t end_ns) {
  uint64_t *until = &tenant->ledger->busy_until_ns;
  uint64_t seen = LOAD_ACQUIRE(*until), now = vgpu__now_ns(), added = 0;
  if (end_ns > now) end_ns = now;
  for (int i = 0; i < 1000; i++) {
    uint64_t from = seen > now ? start_ns : (seen > start_ns ? seen : start_ns);
    if (end_ns <= from) return 0;
    uint64_t stopped = vgpu__level2_stopped_ns(from, end_ns); /* that was nobody's GPU time, or another's */
    added = end_ns - from > stopped ? end_ns - from - stopped : 0;
    if (__atomic_compare_exchange_n(until, &seen, end_ns, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) break;
  }
  __atomic_fetch_add(&tenant->slot->gpu_ns, added, __ATOMIC_RELEASE);
  return added;
}
