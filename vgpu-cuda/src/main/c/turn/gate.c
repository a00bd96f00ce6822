/*
 * The gate: whether work may start now. If it is open, yes. If it is shut, wait on the grant word. If no seat answers,
 * keep the lease's own pace, based on the GPU time that all its processes measured, until one answers again. Also: the
 * charging of GPU time.
 */
#include "turn.h"

static const uint64_t WAIT_NS = 8u * NS_PER_MS;
static const uint64_t REMIND_NS = 20u * NS_PER_MS;
static const uint64_t PACE_BURST_NS = 2u * NS_PER_MS;
static const uint64_t LEAST_PERMILLE = 10;

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
    vgpu__log(on ? "no seat answers: continuing with the last grant" : "a seat answers again");
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
    /* More than all the slots could have used: another process wrote nonsense, or left. Do not wait for that. */
    if (used <= earned || used > elapsed * SHM_SLOT_COUNT) return;
    uint64_t pause = (used - earned) * 1000 / permille;
    vgpu__sleep_ns(pause < WAIT_NS ? pause : WAIT_NS);
  }
}

/* Until the grant word changes, or the seat ends, which is not waited for again once it is known. */
static void vgpu__gate_sleep(const struct vgpu_tenant *tenant, uint32_t word, int seat_ended) {
  struct vgpu_words words = {.at = {&tenant->grant->word}, .seen = {word}, .count = 1};
  const uint32_t *thread = seat_ended ? NULL : vgpu__seat_thread(tenant);
  if (thread != NULL) {
    vgpu__words_add(&words, thread);
    if ((words.seen[1] & SHM_SEAT_THREAD_ENDED) != 0) return;
  }
  vgpu__words_wait(&words, WAIT_NS, WAIT_NS);
}

abi_result vgpu__gate_wait(struct vgpu_tenant *tenant) {
  struct shm_slot *slot = tenant->slot;
  uint64_t began = vgpu__now_ns(), reminded = 0;
  int seat_ended = 0;
  __atomic_fetch_add(&slot->waiting, 1, __ATOMIC_SEQ_CST);
  vgpu__monitor_wake();
  abi_result result = ABI_SUCCESS;
  for (;;) {
    uint32_t word = LOAD_ACQUIRE(tenant->grant->word);
    if ((word & SHM_GRANT_REVOKED) != 0) result = ABI_NOT_PERMITTED;
    if ((word & (SHM_GRANT_REVOKED | SHM_GRANT_OPEN)) != 0 || LOAD_ACQUIRE(tenant->autonomous)) break;
    uint64_t now = vgpu__now_ns();
    int knew = seat_ended;
    seat_ended = vgpu__seat_has_ended(tenant);
    if (seat_ended && !knew) vgpu__seat_pass_on_end(tenant);
    /* Memory that was moved to the host must be back first; the monitor takes care of that. */
    if ((seat_ended || now - began > VGPU_SILENCE_NS) && vgpu__movable_is_home(tenant) &&
        vgpu__seat_is_silent(tenant, now)) {
      vgpu__gate_set_autonomous(tenant, 1);
      break;
    }
    STORE_RELEASE(slot->heartbeat_ns, now); /* the monitor may sleep meanwhile, or be scheduled late */
    if (reminded == 0 || now - reminded > REMIND_NS) {
      reminded = now;
      vgpu__seat_send(tenant, (uint32_t)SHM_MESSAGE_WANT);
    }
    vgpu__gate_sleep(tenant, word, seat_ended);
  }
  __atomic_fetch_sub(&slot->waiting, 1, __ATOMIC_SEQ_CST);
  ADD(slot->waited_ns, vgpu__now_ns() - began);
  return result;
}

/*
 * The part of [from, to) in which this process's channels were not stopped. Stopped time is no GPU time of this lease.
 */
static uint64_t vgpu__ran_ns(uint64_t from_ns, uint64_t to_ns) {
  uint64_t stopped = vgpu__level2_stopped_ns(from_ns, to_ns);
  return to_ns - from_ns > stopped ? to_ns - from_ns - stopped : 0;
}

/*
 * For a batch that began before one already charged: charges the gaps that it overlaps. A gap is a stretch that an
 * earlier charge skipped. [from_ns, to_ns) is the gap that this batch itself skips; to_ns = 0: none.
 */
static uint64_t vgpu__charge_gaps(struct vgpu_gate *gate, uint64_t start_ns, uint64_t end_ns, uint64_t from_ns,
                                  uint64_t to_ns) {
  uint64_t added = 0;
  vgpu__lock(&gate->gaps_lock);
  for (int i = 0; i < VGPU_GAPS; i++) {
    struct vgpu_gap *gap = &gate->gaps[i];
    uint64_t left = gap->from_ns > start_ns ? gap->from_ns : start_ns,
             right = gap->to_ns < end_ns ? gap->to_ns : end_ns;
    if (left >= right) continue;
    added += vgpu__ran_ns(left, right);
    gap->to_ns = left;
  }
  if (to_ns != 0) gate->gaps[gate->next_gap++ % VGPU_GAPS] = (struct vgpu_gap){from_ns, to_ns};
  vgpu__unlock(&gate->gaps_lock);
  return added;
}

/*
 * Charges the part of [start, end) that the lease has not been charged yet: two streams at once are one GPU. Returns
 * the nanoseconds added.
 *
 * Any process of the lease may have written anything into `busy_until_ns`. A time in the future is not believed. With
 * any other, a batch is charged its own length at most. What cannot be seen is a claim that the GPU time before now was
 * charged already.
 */
uint64_t vgpu__charge(struct vgpu_tenant *tenant, uint64_t start_ns, uint64_t end_ns) {
  uint64_t *until = &tenant->ledger->busy_until_ns;
  uint64_t seen = LOAD_ACQUIRE(*until), now = vgpu__now_ns(), added = 0;
  if (end_ns > now) end_ns = now;
  for (int i = 0; i < 1000; i++) {
    uint64_t from = seen > now ? start_ns : (seen > start_ns ? seen : start_ns);
    if (end_ns <= from) {
      added = vgpu__charge_gaps(&tenant->gate, start_ns, end_ns, 0, 0);
      break;
    }
    if (!__atomic_compare_exchange_n(until, &seen, end_ns, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) continue;
    added = vgpu__ran_ns(from, end_ns) +
            vgpu__charge_gaps(&tenant->gate, start_ns, end_ns, seen, seen < start_ns ? start_ns : 0);
    break;
  }
  /* If the time was set back, gaps may overlap each other and what was charged. */
  uint64_t most = end_ns > start_ns ? end_ns - start_ns : 0;
  if (added > most) added = most;
  if (added > 0) __atomic_fetch_add(&tenant->slot->gpu_ns, added, __ATOMIC_RELEASE);
  return added;
}
