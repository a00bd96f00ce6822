/*
 * Turns among the processes of one lease: while several have work, one at a time may start some. They take turns by GPU
 * time used, without a scheduler: the lease's report page names the holder of the turn, and the holder passes it on.
 *
 * `pace` is a process's GPU time; only differences mean something. A holder that is QUANTUM ahead of the process with
 * the least pace passes the turn to that process. So all get the same GPU time, whatever the length of their kernels
 * and however often they wait for them. If the holder has nothing on the GPU and does not return at once, the other
 * processes may start work meanwhile.
 */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lane.h"

static const uint64_t QUANTUM_NS = NS_PER_MS;
static const uint64_t CREDIT_NS = 10u * NS_PER_MS; /* how far a process with little to do may fall back */
static const uint64_t STALE_NS = 5u * NS_PER_MS;   /* a process with an older heartbeat delays no other */
/*
 * If a heartbeat is older than this, the kernel is asked whether the process runs. Monitors beat more often: every 0.3
 * ms while others wait.
 */
static const uint64_t QUIET_NS = 1200u * NS_PER_US, CONTENDED_QUIET_NS = 600u * NS_PER_US;
static const uint64_t PAUSE_NS = 150u * NS_PER_US; /* a process that waits for each kernel returns sooner than this */
static const uint64_t MOST_PAUSE_NS = NS_PER_MS;
static const uint64_t LINGER_NS = 2u * NS_PER_MS;
/* this long before a process's work ends, the next process may queue its own */
static const uint64_t HANDOVER_NS = 80u * NS_PER_US;
static const uint64_t LOOK_NS = 40u * NS_PER_US, SLEEP_NS = NS_PER_MS;
enum { HOLDER_MASK = 0xff, COUNT_SHIFT = 8, WORDS = 2, WORD_BITS = 64 };

static uint64_t vgpu__bit(uint32_t slot) { return (uint64_t)1 << slot % WORD_BITS; }

/* The result of a look at the other processes. */
struct others {
  unsigned count;
  uint32_t least; /* the slot with the least pace, this process included */
  uint64_t least_pace, most_pace, least_other;
  int drain;  /* a process that has passed on the turn still has work on the GPU */
  int holder; /* one of them holds the turn */
  int idle;   /* the holder has nothing to do at this moment */
  uint64_t holder_pace;
};

/* A process that cannot be seen (another pid namespace, no /proc) is taken to run. */
static int vgpu__runs(const struct vgpu_tenant *tenant, const struct shm_slot *slot) {
  uint64_t namespace = LOAD(slot->pid_namespace), start_time = LOAD(slot->start_time);
  if (namespace == 0 || namespace != LOAD(tenant->slot->pid_namespace) || start_time == 0) return 1;
  int kept = errno, runs = vgpu__process_runs(LOAD(slot->pid), start_time);
  errno = kept;
  return runs;
}

/* A process that is scheduled late counts as live for a while. A stopped or dead one does not, until its next beat. */
static int vgpu__is_live(struct vgpu_tenant *tenant, uint32_t index, uint64_t now) {
  const struct shm_slot *slot = &tenant->slots[index];
  struct vgpu_peers *peers = &tenant->peers;
  uint64_t beat = LOAD_ACQUIRE(slot->heartbeat_ns), silent_ns = beat > now ? beat - now : now - beat;
  if (LOAD_ACQUIRE(slot->state) != SHM_SLOT_ATTACHED || silent_ns >= STALE_NS) return 0;
  uint64_t quiet_ns = (LOAD(tenant->grant->turn_flags) & SHM_TURN_CONTENDED) != 0 ? CONTENDED_QUIET_NS : QUIET_NS;
  if (LIKELY(silent_ns < quiet_ns)) return 1;
  if (LOAD(peers->gone_beat[index]) == beat) return 0;
  if (now - LOAD(peers->asked_ns[index]) < quiet_ns) return 1;
  STORE(peers->asked_ns[index], now);
  if (vgpu__runs(tenant, slot)) return 1;
  STORE(peers->gone_beat[index], beat);
  return 0;
}

static void vgpu__look_at(struct vgpu_tenant *tenant, uint32_t index, uint32_t holder, uint64_t now,
                          struct others *others) {
  const struct shm_slot *slot = &tenant->slots[index];
  if (!vgpu__is_live(tenant, index, now)) return;
  uint64_t pace = LOAD_ACQUIRE(slot->pace_ns);
  uint32_t busy = LOAD(slot->busy);
  uint64_t drains = LOAD_ACQUIRE(slot->drains_ns);
  if (others->count == 0 || pace < others->least_other) others->least_other = pace;
  if (others->count++ == 0 || pace > others->most_pace) others->most_pace = pace;
  if (pace < others->least_pace || (pace == others->least_pace && index < others->least)) {
    others->least_pace = pace;
    others->least = index;
  }
  if (busy != 0 && drains > now + HANDOVER_NS && drains < now + CREDIT_NS) others->drain = 1;
  if (index == holder) {
    others->holder = 1;
    others->holder_pace = pace;
    others->idle = busy == 0 && LOAD(slot->waiting) == 0;
  }
}

static struct others vgpu__look(struct vgpu_tenant *tenant, uint32_t holder, uint64_t pace, uint64_t now) {
  struct others others = {.least = tenant->slot_number, .least_pace = pace};
  for (uint32_t w = 0; w < WORDS; w++) {
    uint64_t bits = LOAD_ACQUIRE(tenant->ledger->active[w]); /* a newcomer raises its pace before it sets its bit */
    if (tenant->slot_number / WORD_BITS == w) bits &= ~vgpu__bit(tenant->slot_number);
    for (; bits != 0; bits &= bits - 1) {
      vgpu__look_at(tenant, w * WORD_BITS + (uint32_t)__builtin_ctzll(bits), holder, now, &others);
    }
  }
  return others;
}

int vgpu__peers_alone(const struct vgpu_tenant *tenant) {
  uint32_t own = tenant->slot_number;
  const uint64_t *active = tenant->ledger->active;
  uint64_t rest = LOAD(active[own / WORD_BITS]) & ~vgpu__bit(own);
  return rest == 0 && LOAD(active[1 - own / WORD_BITS]) == 0;
}

/* Passes the turn to a slot, unless another process has just passed it. */
static void vgpu__pass_turn(struct vgpu_tenant *tenant, uint32_t seen, uint32_t slot) {
  uint32_t next = ((seen >> COUNT_SHIFT) + 1) << COUNT_SHIFT | slot;
  if (!__atomic_compare_exchange_n(&tenant->ledger->turn, &seen, next, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) return;
  int kept = errno;
  syscall(SYS_futex, &tenant->ledger->turn, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
  errno = kept;
}

static uint64_t vgpu__raise_pace(struct vgpu_tenant *tenant, uint64_t pace, uint64_t to) {
  if (to <= pace) return pace;
  ADD(tenant->slot->pace_ns, to - pace);
  return to;
}

/*
 * A process that had little to do may catch up, by at most CREDIT_NS. A process that stood still may not: the others
 * did not wait for it, and its pace is raised to the highest.
 */
static uint64_t vgpu__own_pace(struct vgpu_tenant *tenant, const struct others *others, uint64_t now) {
  uint64_t pace = LOAD(tenant->slot->pace_ns), paused = vgpu__paused_ns(now);
  if (UNLIKELY(paused != LOAD(tenant->peers.paused_ns))) {
    STORE(tenant->peers.paused_ns, paused);
    pace = vgpu__raise_pace(tenant, pace, others->most_pace);
  }
  return others->most_pace > CREDIT_NS ? vgpu__raise_pace(tenant, pace, others->most_pace - CREDIT_NS) : pace;
}

void vgpu__peers_join(struct vgpu_tenant *tenant) {
  tenant->peers = (struct vgpu_peers){.paused_ns = vgpu__paused_ns(vgpu__now_ns())};
  __atomic_fetch_and(&tenant->ledger->active[tenant->slot_number / WORD_BITS], ~vgpu__bit(tenant->slot_number),
                     __ATOMIC_SEQ_CST);
}

void vgpu__peers_begin(struct vgpu_tenant *tenant) {
  uint64_t *word = &tenant->ledger->active[tenant->slot_number / WORD_BITS];
  uint64_t bit = vgpu__bit(tenant->slot_number);
  /* The caller has counted its work. So either it sees the bit cleared here, or vgpu__peers_tend sees the count. */
  if ((__atomic_load_n(word, __ATOMIC_SEQ_CST) & bit) != 0) return;
  /* Idle time gives no credit, and a newcomer starts with the highest pace. */
  struct others others = vgpu__look(tenant, 0, UINT64_MAX, vgpu__now_ns());
  uint64_t place = LOAD(tenant->peers.begun) ? others.least_other : others.most_pace;
  if (others.count > 0) vgpu__raise_pace(tenant, LOAD(tenant->slot->pace_ns), place);
  STORE(tenant->peers.begun, 1);
  STORE(tenant->peers.idle_since_ns, 0);
  __atomic_fetch_or(word, bit, __ATOMIC_SEQ_CST);
}

/*
 * Whether work may start while the holder is idle: it may be between two kernels, or away for longer. The longer our
 * kernels take, the longer we watch before we start one.
 */
static int vgpu__may_borrow(struct vgpu_tenant *tenant, const struct others *others, uint32_t turn, uint64_t each_ns,
                            uint64_t now) {
  struct vgpu_peers *peers = &tenant->peers;
  if (!others->idle || others->drain) {
    STORE(peers->seen_ns, 0);
    return 0;
  }
  if (LOAD(peers->seen_ns) == 0 || LOAD(peers->seen_pace) != others->holder_pace || LOAD(peers->seen_turn) != turn) {
    STORE(peers->seen_pace, others->holder_pace);
    STORE(peers->seen_turn, turn);
    STORE(peers->seen_ns, now);
    return 0;
  }
  uint64_t pause = PAUSE_NS + each_ns / 4;
  return now - LOAD(peers->seen_ns) > (pause < MOST_PAUSE_NS ? pause : MOST_PAUSE_NS);
}

int vgpu__peers_may_start(struct vgpu_tenant *tenant, uint64_t each_ns) {
  if (LIKELY(vgpu__peers_alone(tenant))) return 1;
  uint32_t turn = LOAD_ACQUIRE(tenant->ledger->turn), holder = turn & HOLDER_MASK, own = tenant->slot_number;
  uint64_t now = vgpu__now_ns(), inflight = vgpu__inflight_scaled(tenant);
  struct others others = vgpu__look(tenant, holder, LOAD(tenant->slot->pace_ns), now);
  if (others.count == 0) return 1;
  uint64_t pace = vgpu__own_pace(tenant, &others, now) + inflight;
  if (holder != own && others.holder) return vgpu__may_borrow(tenant, &others, turn, each_ns, now);
  int64_t ahead = (int64_t)(pace - others.least_pace);
  if (others.least == own || ahead <= (holder == own ? (int64_t)QUANTUM_NS : 0)) {
    if (holder != own) vgpu__pass_turn(tenant, turn, own);
    STORE(tenant->slot->drains_ns, 0);
    return !others.drain && (LOAD_ACQUIRE(tenant->ledger->turn) & HOLDER_MASK) == own;
  }
  STORE_RELEASE(tenant->slot->drains_ns, inflight == 0 ? 0 : now + inflight);
  vgpu__pass_turn(tenant, turn, others.least);
  return 0;
}

void vgpu__peers_wait(struct vgpu_tenant *tenant) {
  struct shm_slot *slot = tenant->slot;
  uint64_t began = vgpu__now_ns();
  uint32_t turn = LOAD_ACQUIRE(tenant->ledger->turn);
  __atomic_fetch_add(&slot->waiting, 1, __ATOMIC_SEQ_CST);
  vgpu__peers_begin(tenant);
  vgpu__monitor_wake();
  STORE_RELEASE(slot->heartbeat_ns, began);
  int soon = (turn & HOLDER_MASK) == tenant->slot_number || LOAD(slot->busy) != 0 || LOAD(tenant->peers.seen_ns) != 0;
  vgpu__futex_wait(&tenant->ledger->turn, turn, soon ? LOOK_NS : SLEEP_NS / 4);
  __atomic_fetch_sub(&slot->waiting, 1, __ATOMIC_SEQ_CST);
  if (LOAD(slot->busy) != 0) vgpu__harvest_all();
  ADD(slot->waited_ns, vgpu__now_ns() - began);
}

/* Overlapping streams of this process count once. Overlap with other processes' work counts in full. */
void vgpu__peers_charge(struct vgpu_tenant *tenant, uint64_t start_ns, uint64_t end_ns) {
  uint64_t *until = &tenant->peers.until_ns, seen = LOAD(*until);
  for (int i = 0; i < 1000; i++) {
    uint64_t from = seen > start_ns ? seen : start_ns;
    if (end_ns <= from) return;
    if (__atomic_compare_exchange_n(until, &seen, end_ns, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
      __atomic_fetch_add(&tenant->slot->pace_ns, end_ns - from, __ATOMIC_RELEASE);
      return;
    }
  }
}

/* Called by the monitor: withdraws this process from the turns after it has been idle for LINGER_NS. */
void vgpu__peers_tend(struct vgpu_tenant *tenant, uint64_t now) {
  uint64_t *word = &tenant->ledger->active[tenant->slot_number / WORD_BITS];
  uint64_t bit = vgpu__bit(tenant->slot_number);
  if ((LOAD(*word) & bit) == 0) return;
  struct shm_slot *slot = tenant->slot;
  /*
   * A process that waits for each kernel often looks idle between two. It is idle if its pace has not changed either.
   */
  uint64_t pace = LOAD_ACQUIRE(slot->pace_ns);
  int went_on = pace != LOAD(tenant->peers.tended_pace);
  STORE(tenant->peers.tended_pace, pace);
  if (__atomic_load_n(&slot->busy, __ATOMIC_SEQ_CST) != 0 || LOAD(slot->waiting) != 0 || went_on) {
    STORE(tenant->peers.idle_since_ns, 0);
    return;
  }
  uint64_t since = LOAD(tenant->peers.idle_since_ns);
  if (since == 0) STORE(tenant->peers.idle_since_ns, now);
  if (since == 0 || now - since < LINGER_NS) return;
  __atomic_fetch_and(word, ~bit, __ATOMIC_SEQ_CST);
  /* work may have begun meanwhile and found the bit still set */
  if (__atomic_load_n(&slot->busy, __ATOMIC_SEQ_CST) != 0) __atomic_fetch_or(word, bit, __ATOMIC_SEQ_CST);
}
