/*
 * The monitor: closes batches that no other thread closes, harvests, sends heartbeats, keeps the connection. It sleeps
 * while nothing of the process runs on the GPU. The driver may block it while another thread's call holds the driver's
 * locks, for example a large pinned allocation or a compilation. Meanwhile a second thread, the pulse, sends the
 * heartbeats; it never calls the driver.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <linux/futex.h>
#include <unistd.h>

#include "top.h"

static const uint64_t TICK_NS = NS_PER_MS, CONTENDED_TICK_NS = 300u * NS_PER_US;
/* While the gate is shut: the GPU is idle from the end of the last work until the monitor sees it. */
static const uint64_t DRAIN_TICK_NS = 60u * NS_PER_US, MOST_DRAIN_TICK_NS = 120u * NS_PER_US;
/* While no seat follows the work, and many processes may be in the same position: see vgpu__is_unfollowed. */
static const uint64_t UNFOLLOWED_TICK_NS = 2u * NS_PER_MS;
static const uint64_t LINGER_NS = 20u * NS_PER_MS, SLEEP_NS = 50u * NS_PER_MS, HELD_SLEEP_NS = 20u * NS_PER_MS;
static const uint64_t SEAT_LOOK_NS = 500u * NS_PER_US;
static const uint64_t RETRY_NS = 5u * NS_PER_MS, SLOW_RETRY_NS = 100u * NS_PER_MS, WELCOME_NS = 200u * NS_PER_MS;
enum { TRIES_A_DOUBLING = 32, QUICK_TRIES = 5 * TRIES_A_DOUBLING, MOST_DOUBLINGS = 4, REFRESH = 64 };

static int runs;              /* guarded by the lock of attaching */
static uint32_t stop, inside; /* inside: the monitor may be calling the driver */
static uint32_t leaves;       /* the program ends: no more calls of the driver */
static const uint64_t LEAVE_NS = 10u * NS_PER_MS;
/* other processes take this one for stopped after 5 ms at the earliest: peers.c, pause.c */
static const uint64_t PULSE_NS = 2u * NS_PER_MS;

/* Whether the slot is still this process's. If the seat took it back meanwhile, it may be another's. */
static int vgpu__has_slot(const struct vgpu_tenant *tenant) {
  const struct shm_slot *slot = tenant->slot;
  return LOAD_ACQUIRE(slot->state) == SHM_SLOT_ATTACHED && LOAD(slot->pid) == (uint32_t)getpid() &&
         LOAD(slot->pid_namespace) == vgpu__pid_namespace() && LOAD(slot->start_time) == vgpu__start_time();
}

/*
 * Not by BYE, which would take the slot from its owner. The pages go at once, so that nothing is written there any more;
 * they refuse all that is new.
 */
static void vgpu__leave_slot(struct vgpu_tenant *tenant) {
  if (!tenant->watch.lost) {
    tenant->watch.lost = 1;
    vgpu__log("slot %u has another owner: this program must be started again", tenant->slot_number);
    vgpu__pages_leave(tenant);
    STORE_RELEASE(tenant->autonomous, 0);
    vgpu__seat_close(tenant);
    vgpu__seat_bar(tenant);
  }
  if (!vgpu__tenant_lost(tenant)) return;
  __atomic_store_n(&inside, 1, __ATOMIC_SEQ_CST);
  if (!__atomic_load_n(&stop, __ATOMIC_SEQ_CST) && !__atomic_load_n(&leaves, __ATOMIC_SEQ_CST))
    vgpu__drop_tenant(tenant);
  STORE_RELEASE(inside, 0);
}

/*
 * Whether to give up a HELLO without an answer. Perhaps its seat is stopped, and another process has taken the seat. Or
 * the seat is slow, because it has many to answer after it has changed. Those that were given up take its time as well,
 * so each HELLO is given twice the time of the one before. A seat that beats is given the whole time.
 */
static int vgpu__hello_is_in_vain(struct vgpu_tenant *tenant, uint64_t now) {
  struct vgpu_watch *watch = &tenant->watch;
  uint64_t patience_ns = (uint64_t)VGPU_PATIENCE_MS * NS_PER_MS;
  if (vgpu__seat_is_silent(tenant, now)) {
    unsigned doublings = watch->unanswered < MOST_DOUBLINGS ? watch->unanswered : MOST_DOUBLINGS;
    uint64_t shorter_ns = WELCOME_NS << doublings;
    if (shorter_ns < patience_ns) patience_ns = shorter_ns;
  }
  if (now - watch->asked_ns > patience_ns) {
    watch->unanswered++;
    return 1;
  }
  if (now < watch->next_try_ns) return 0;
  watch->next_try_ns = now + RETRY_NS;
  return vgpu__seat_is_replaced(tenant);
}

static void vgpu__follow_seat(struct vgpu_tenant *tenant, uint64_t now) {
  struct vgpu_watch *watch = &tenant->watch;
  struct shm_message message;
  if (watch->lost) {
    vgpu__leave_slot(tenant);
    return;
  }
  int got = vgpu__seat_receive(tenant, &message);
  if (got == VGPU_SEAT_MESSAGE && message.type == SHM_MESSAGE_WELCOME) {
    if (message.status == SHM_STATUS_OK && message.slot_number == tenant->slot_number) {
      watch->welcome = 1;
      watch->tries = watch->unanswered = 0;
    } else {
      message.text[sizeof message.text - 1] = '\0';
      vgpu__log("the seat does not take slot %u back: status %u, %s", tenant->slot_number, message.status,
                (const char *)message.text);
      vgpu__seat_close(tenant);
      watch->tries = QUICK_TRIES;
      if (!vgpu__has_slot(tenant)) {
        vgpu__leave_slot(tenant);
        return;
      }
    }
  }
  if (got == VGPU_SEAT_GONE && watch->welcome) {
    watch->welcome = 0;
    watch->next_try_ns = now;
    vgpu__log("the connection to the seat is gone");
  }
  if (!watch->welcome && got != VGPU_SEAT_GONE && vgpu__hello_is_in_vain(tenant, now)) vgpu__seat_close(tenant);
  if (!watch->welcome && now >= watch->next_try_ns && !vgpu__seat_connected(tenant)) {
    watch->asked_ns = now;
    int failed = vgpu__seat_connect(tenant);
    watch->tries++;
    /* EAGAIN: too many wait for the seat already. */
    int slow = watch->tries >= QUICK_TRIES || failed == EAGAIN;
    watch->next_try_ns = now + (slow ? SLOW_RETRY_NS : RETRY_NS << watch->tries / TRIES_A_DOUBLING);
  }
}

/* Goes autonomous while the seat is silent, and back to its grants when it beats again. */
static void vgpu__follow_heartbeat(struct vgpu_tenant *tenant, uint64_t now, int working) {
  int silent = vgpu__seat_is_silent(tenant, now);
  if (!silent) vgpu__gate_set_autonomous(tenant, 0);
  else if (working && (!tenant->watch.welcome || vgpu__seat_has_ended(tenant)) && vgpu__movable_is_home(tenant))
    vgpu__gate_set_autonomous(tenant, 1);
}

/* Whether another tenant waits for the end of our work, by the seat or by our bit in the express lane. */
static int vgpu__wants_promptness(const struct vgpu_tenant *tenant) {
  return tenant->express.bit != 0 || tenant->express.told ||
         (LOAD(tenant->grant->turn_flags) & SHM_TURN_CONTENDED) != 0;
}

static int vgpu__is_stopped(const struct vgpu_tenant *tenant) {
  return __atomic_load_n(&tenant->slot->level2, __ATOMIC_SEQ_CST) == SHM_LEVEL2_STOPPED;
}

/* The nearer the expected end of the work, the more often the monitor looks. */
static uint64_t vgpu__approach(uint64_t rest_ns, uint64_t least_ns, uint64_t most_ns) {
  uint64_t half = rest_ns / 2;
  return half < least_ns ? least_ns : half < most_ns ? half : most_ns;
}

/*
 * Whether no seat follows the work: the connection is still to come, or the seat is silent. If a busy machine keeps the
 * seat from its processor, that is so in all processes. They must not keep it from its processor as well.
 */
static int vgpu__is_unfollowed(const struct vgpu_tenant *tenant) {
  return LOAD(tenant->mode) == VGPU_ATTACHED && (LOAD(tenant->autonomous) || !tenant->watch.welcome);
}

/* After how long one tenant needs the monitor again. */
static uint64_t vgpu__tick_ns(const struct vgpu_tenant *tenant, int working, int soon, uint64_t express_ns,
                              uint64_t rest_ns) {
  if (vgpu__is_unfollowed(tenant)) return UNFOLLOWED_TICK_NS;
  if (soon) return DRAIN_TICK_NS;
  int drains = working && !vgpu__word_open(LOAD_ACQUIRE(tenant->grant->word)) && LOAD(tenant->slot->busy) != 0;
  if (drains && vgpu__is_stopped(tenant)) return TICK_NS;
  if (drains) return vgpu__approach(rest_ns, DRAIN_TICK_NS, MOST_DRAIN_TICK_NS);
  if (express_ns != 0) return express_ns;
  if (!working || !vgpu__wants_promptness(tenant)) return TICK_NS;
  return vgpu__approach(rest_ns, CONTENDED_TICK_NS, vgpu__peers_alone(tenant) ? TICK_NS : CONTENDED_TICK_NS);
}

/*
 * Whether the monitor may sleep: nothing is on the GPU, or what is there is stopped. Threads that wait, and the level-2
 * thread during a stop, send the heartbeats, but too seldom for other processes of the lease. Sequentially consistent:
 * see vgpu__monitor_wake.
 */
static int vgpu__is_quiet(const struct vgpu_tenant *tenant) {
  int busy = __atomic_load_n(&tenant->slot->busy, __ATOMIC_SEQ_CST) != 0;
  if (!busy && __atomic_load_n(&tenant->slot->waiting, __ATOMIC_SEQ_CST) == 0) return 1;
  return (!busy || vgpu__is_stopped(tenant)) && tenant->watch.welcome && vgpu__peers_alone(tenant);
}

static int vgpu__all_quiet(void) {
  const struct vgpu_tenant *tenant;
  for (unsigned i = 0; (tenant = vgpu__tenant_next(&i)) != NULL; i++) {
    if (!vgpu__is_quiet(tenant)) return 0;
  }
  return 1;
}

/* The result of a pass over all tenants. */
struct round {
  const struct vgpu_tenant *working; /* a tenant that has work; the shutting of its gate is waited for */
  unsigned attached, workers, held;  /* held: tenants that do not work now, but would */
  uint32_t word;                     /* its grant word, read before its lanes were tended */
  uint64_t tick_ns;
};

static void vgpu__tend_tenant(struct vgpu_tenant *tenant, uint64_t now, const struct vgpu_tended *tended,
                              struct round *round) {
  uint32_t word = LOAD_ACQUIRE(tenant->grant->word);
  int pending = vgpu__gate_tend(tenant, now);
  uint64_t express_ns = vgpu__express_tend(tenant, now);
  vgpu__peers_tend(tenant, now);
  int stopped = vgpu__is_stopped(tenant), wants = LOAD(tenant->slot->waiting) != 0 || stopped;
  int working = (tended->batches > 0 && !stopped) || pending || express_ns != 0 || !vgpu__is_quiet(tenant);
  STORE_RELEASE(tenant->slot->heartbeat_ns, now);
  if (now - tenant->watch.looked_ns >= SEAT_LOOK_NS) {
    tenant->watch.looked_ns = now;
    vgpu__follow_seat(tenant, now);
  }
  if (LOAD(tenant->mode) == VGPU_ATTACHED && !tenant->watch.lost) vgpu__follow_heartbeat(tenant, now, working || wants);
  uint64_t tick_ns = vgpu__tick_ns(tenant, working, pending, express_ns, tended->rest_ns);
  if (tick_ns < round->tick_ns) round->tick_ns = tick_ns;
  round->attached++;
  round->held += !working && wants;
  if (!working) return;
  round->workers++;
  round->working = tenant;
  round->word = word;
}

static void vgpu__rest(const struct round *round, uint64_t idle_ns) {
  if (round->workers > 0 || (idle_ns < LINGER_NS && round->held == 0)) {
    const struct vgpu_tenant *tenant = round->working == NULL ? &vgpu__home : round->working;
    uint32_t word = round->working == NULL ? LOAD_ACQUIRE(tenant->grant->word) : round->word;
    uint64_t tick_ns = round->tick_ns;
    /* Only one word can be waited on, so the other tenants' gates are polled more often. */
    if (round->workers > 1 && tick_ns > CONTENDED_TICK_NS) tick_ns = CONTENDED_TICK_NS;
    vgpu__futex_wait(&tenant->grant->word, word, tick_ns);
    return;
  }
  __atomic_store_n(&vgpu__monitor_asleep, 1, __ATOMIC_SEQ_CST);
  if (vgpu__all_quiet()) {
    vgpu__pause_sleep();
    vgpu__futex_wait(&vgpu__monitor_asleep, 1, round->held > 0 ? HELD_SLEEP_NS : SLEEP_NS);
  }
  __atomic_store_n(&vgpu__monitor_asleep, 0, __ATOMIC_SEQ_CST);
  syscall(SYS_futex, &vgpu__monitor_asleep, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void *vgpu__pulse(void *unused) {
  (void)unused;
  prctl(PR_SET_NAME, "vgpu-pulse", 0, 0, 0);
  while (!LOAD(stop)) {
    if (LOAD_ACQUIRE(vgpu__monitor_asleep)) {
      vgpu__futex_wait(&vgpu__monitor_asleep, 1, SLEEP_NS);
      continue;
    }
    vgpu__sleep_ns(PULSE_NS);
    if (LOAD_ACQUIRE(inside)) vgpu__beat(vgpu__now_ns());
  }
  return NULL;
}

static void *vgpu__monitor(void *unused) {
  uint64_t worked_ns = 0;
  (void)unused;
  prctl(PR_SET_NAME, "vgpu-monitor", 0, 0, 0);
  prctl(PR_SET_TIMERSLACK, 5000, 0, 0, 0); /* applies to this thread only */
  for (unsigned turn = 0;; turn++) {
    uint64_t now = vgpu__now_ns();
    struct vgpu_tended tended[VGPU_TENANTS] = {{0, 0}};
    struct round round = {.tick_ns = UNFOLLOWED_TICK_NS};
    __atomic_store_n(&inside, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&stop, __ATOMIC_SEQ_CST)) break;
    vgpu__pause_tick(now);
    vgpu__level2_watch(now);
    struct vgpu_tenant *tenant;
    if (!__atomic_load_n(&leaves, __ATOMIC_SEQ_CST)) {
      vgpu__tend_lanes(now, tended);
      for (unsigned i = 0; (tenant = vgpu__tenant_next(&i)) != NULL; i++) {
        vgpu__movable_tend(tenant, now, vgpu__lanes_are_idle);
      }
    }
    STORE_RELEASE(inside, 0);
    for (unsigned i = 0; (tenant = vgpu__tenant_next(&i)) != NULL; i++) {
      vgpu__tend_tenant(tenant, now, &tended[i], &round);
    }
    if (round.workers > 0) worked_ns = now;
    if (turn % REFRESH == 0) vgpu__publish_passed();
    vgpu__rest(&round, now - worked_ns);
  }
  STORE_RELEASE(inside, 0);
  return NULL;
}

int vgpu__monitor_start(void) {
  if (runs) return 0;
  runs = vgpu__thread_start(vgpu__monitor) == 0;
  if (runs && vgpu__thread_start(vgpu__pulse) != 0) {
    vgpu__log("cannot start the pulse thread: while the driver blocks the monitor, this process will look stopped");
  }
  vgpu__pause_tick(vgpu__now_ns()); /* the monitor's first tick may be late */
  return runs ? 0 : -1;
}

void vgpu__monitor_forget(void) {
  runs = 0;
  vgpu__monitor_asleep = 0;
  inside = 0;
  vgpu__pause_forget();
}

/* Waits briefly until the monitor has left the driver, unless it is blocked there. */
static void vgpu__await_outside(void) {
  uint64_t deadline = vgpu__now_ns() + LEAVE_NS;
  while (__atomic_load_n(&inside, __ATOMIC_SEQ_CST) && vgpu__now_ns() < deadline) vgpu__sleep_ns(20u * NS_PER_US);
}

/*
 * At the program's end the driver ends in an exit handler of its own. Ours runs before that, since it was registered
 * later. Other exit handlers may still do work, so the monitor goes on and beats.
 */
static void vgpu__monitor_leave(void) {
  __atomic_store_n(&leaves, 1, __ATOMIC_SEQ_CST);
  vgpu__await_outside();
  vgpu__measure_leave();
  vgpu__level2_leave();
}

void vgpu__monitor_at_exit(void) {
  static uint32_t registered;
  if (__atomic_exchange_n(&registered, 1, __ATOMIC_SEQ_CST) == 0) atexit(vgpu__monitor_leave);
}

/* No code of the program runs after this. */
__attribute__((destructor)) static void vgpu__monitor_stop(void) {
  __atomic_store_n(&stop, 1, __ATOMIC_SEQ_CST);
  vgpu__await_outside();
  struct vgpu_tenant *tenant;
  for (unsigned i = 0; (tenant = vgpu__tenant_next(&i)) != NULL; i++) vgpu__express_leave(tenant);
}
