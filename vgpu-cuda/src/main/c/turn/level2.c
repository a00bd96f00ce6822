/*
 * Preemption inside a kernel ("level 2"). While an offline lease is held back, the channels of its process are stopped
 * by the driver's own means, whatever kernel runs in them. A dedicated thread does this and never calls CUDA, since a
 * CUDA call may wait for the very work that is stopped. It resumes as soon as the reason is gone or can no longer be
 * seen, or if the hook knows of no work. A reason is a bit of the express lane whose process is alive, or a gate that a
 * living seat keeps shut.
 */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "turn.h"

static const uint64_t IDLE_WAIT_NS = 50u * NS_PER_MS, WATCHED_WAIT_NS = NS_PER_MS, BLIND_WAIT_NS = 250u * NS_PER_US;
static const uint64_t STOPPED_WAIT_NS = 500u * NS_PER_US, RETRY_NS = 200u * NS_PER_US;
static const uint64_t AWAKE_WAIT_NS = 5u * NS_PER_MS; /* for what wakes nobody, such as a heartbeat that gets old */
static const uint64_t LOST_NS = 100u * NS_PER_MS;     /* if the thread is this late, the monitor takes over */
static const uint64_t SLOW_NS = 100u * NS_PER_MS;     /* a driver call that takes longer counts as slow */
/*
 * EFFECT: how long a stop may take to have an effect; CLOCK_ERROR: between the GPU's clock and ours; CHANGE: how long
 * nothing runs when the GPU changes back to this process, measured on an H200 (docs/real-driver.md)
 */
static const uint64_t EFFECT_NS = 2u * NS_PER_MS, CLOCK_ERROR_NS = 500u * NS_PER_US, CHANGE_NS = 140u * NS_PER_US;
enum { STOPS = 64, PATIENCE = 3 };

struct stretch {
  uint64_t from_ns, to_ns;
};

static struct {
  struct vgpu_lock lock; /* guards all but the atomics; held while the driver stops or resumes */
  uint32_t state;        /* SHM_LEVEL2_ */
  uint32_t why;          /* SHM_LEVEL2_WHY_, while state is OFF */
  uint32_t over;         /* stops nothing any more: off for good, or the program ends */
  uint32_t tried;
  enum vgpu_method method;
  struct vgpu_rm_abi abi;
  uint64_t beat_ns; /* the thread's heartbeat */
  unsigned failures, slow, without_effect;
  uint64_t judged; /* value of ran_on at the last check */
  struct vgpu_lock ring_lock;
  struct stretch ring[STOPS];
  uint64_t stretches; /* total number of stretches */
  uint64_t open_ns;   /* when the current stop began; 0: not stopped */
  uint64_t ran_on;    /* pieces of work that ended while all was stopped */
} level2;
uint32_t vgpu__level2_asleep;

/* ---- reporting the state ---- */

static void vgpu__tell(struct vgpu_tenant *tenant, uint64_t state, uint64_t why) {
  STORE_RELEASE(level2.state, (uint32_t)state);
  level2.why = (uint32_t)why;
  STORE(tenant->slot->level2_reason, (uint32_t)why);
  __atomic_store_n(&tenant->slot->level2, (uint32_t)state, __ATOMIC_SEQ_CST); /* the monitor may sleep while stopped */
}

static const char *vgpu__why(uint64_t why) {
  static const char *const TEXTS[] = {
      "not tried yet",
      "switched off by VGPU_LEVEL2",
      "the lease is not offline",
      "the driver's import of ioctl cannot be redirected",
      "no channel group was seen",
      "the driver's version is not known",
      "the driver refused",
      "the driver took too long",
      "several leases are in this process",
      "no thread could be started",
      "stopped work kept running",
      "too many channels",
  };
  return why < sizeof TEXTS / sizeof *TEXTS ? TEXTS[why] : "unknown";
}

static void vgpu__off(struct vgpu_tenant *tenant, uint64_t why, uint32_t status) {
  STORE_RELEASE(level2.over, 1);
  vgpu__tell(tenant, SHM_LEVEL2_OFF, why);
  vgpu__log("level 2 is off: %s (driver status 0x%x)", vgpu__why(why), status);
}

/* ---- stopped time, which is not charged, nor is the change back to this process ---- */

static void vgpu__stretch_begins(uint64_t now) {
  vgpu__lock(&level2.ring_lock);
  STORE_RELEASE(level2.open_ns, now);
  vgpu__unlock(&level2.ring_lock);
}

static uint64_t vgpu__stretch_ends(uint64_t now) {
  vgpu__lock(&level2.ring_lock);
  uint64_t from = level2.open_ns, length = now > from ? now - from : 0;
  level2.ring[level2.stretches % STOPS] = (struct stretch){.from_ns = from, .to_ns = from + length};
  STORE_RELEASE(level2.stretches, level2.stretches + 1);
  STORE_RELEASE(level2.open_ns, 0);
  vgpu__unlock(&level2.ring_lock);
  return length;
}

static uint64_t vgpu__common(uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
  uint64_t from = a > c ? a : c, to = b < d ? b : d;
  return to > from ? to - from : 0;
}

uint64_t vgpu__level2_stopped_ns(uint64_t from_ns, uint64_t to_ns) {
  if (LIKELY(LOAD_ACQUIRE(level2.stretches) == 0 && LOAD_ACQUIRE(level2.open_ns) == 0)) return 0;
  uint64_t sum = 0, next_ns = UINT64_MAX;
  vgpu__lock(&level2.ring_lock);
  uint64_t known = level2.stretches < STOPS ? level2.stretches : (uint64_t)STOPS;
  if (level2.open_ns != 0) {
    next_ns = level2.open_ns;
    sum += vgpu__common(from_ns, to_ns, next_ns, UINT64_MAX);
  }
  for (uint64_t i = 1; i <= known; i++) {
    const struct stretch *it = &level2.ring[(level2.stretches - i) % STOPS];
    uint64_t end_ns = it->to_ns + CHANGE_NS;
    sum += vgpu__common(from_ns, to_ns, it->from_ns, end_ns < next_ns ? end_ns : next_ns);
    next_ns = it->from_ns;
  }
  vgpu__unlock(&level2.ring_lock);
  return sum;
}

static int vgpu__is_within(uint64_t at, uint64_t from, uint64_t to) {
  return at > from + EFFECT_NS && at + CLOCK_ERROR_NS < to;
}

/* Stopped work does not end. If work ends well inside a stop, by the GPU's own clock, the stop had no effect. */
void vgpu__level2_ended(uint64_t at_ns) {
  if (LIKELY(LOAD_ACQUIRE(level2.stretches) == 0 && LOAD_ACQUIRE(level2.open_ns) == 0)) return;
  int found = 0;
  vgpu__lock(&level2.ring_lock);
  uint64_t known = level2.stretches < STOPS ? level2.stretches : (uint64_t)STOPS;
  for (uint64_t i = 0; i < known; i++) found |= vgpu__is_within(at_ns, level2.ring[i].from_ns, level2.ring[i].to_ns);
  if (level2.open_ns != 0) found |= vgpu__is_within(at_ns, level2.open_ns, UINT64_MAX);
  level2.ran_on += (uint64_t)found;
  vgpu__unlock(&level2.ring_lock);
}

/* ---- stopping and resuming; lock held ---- */

/* Stops or resumes, and counts consecutive slow driver calls. */
static int vgpu__timed_set(int stopped, uint32_t *status) {
  uint64_t began = vgpu__now_ns();
  int failed = vgpu__channels_set(level2.method, stopped, &level2.abi, status);
  level2.slow = vgpu__now_ns() - began > SLOW_NS ? level2.slow + 1 : 0;
  return failed;
}

/* Stops all channels. A stop that fails halfway is undone. */
static void vgpu__stop(struct vgpu_tenant *tenant) {
  uint32_t status, ignored;
  if (vgpu__timed_set(1, &status) != 0) {
    vgpu__channels_set(level2.method, 0, &level2.abi, &ignored);
    if (++level2.failures > PATIENCE) vgpu__off(tenant, SHM_LEVEL2_WHY_REFUSED, status);
    return;
  }
  uint64_t now = vgpu__now_ns();
  level2.failures = 0;
  vgpu__stretch_begins(now);
  STORE(tenant->slot->level2_stopped_at_ns, now);
  ADD(tenant->slot->level2_stops, 1);
  vgpu__tell(tenant, SHM_LEVEL2_STOPPED, SHM_LEVEL2_WHY_NONE);
}

/* After a stop of length_ns: turns level 2 off if stops have no effect, or if the driver is too slow. */
static void vgpu__judge(struct vgpu_tenant *tenant, uint64_t length_ns) {
  vgpu__lock(&level2.ring_lock);
  int ran_on = level2.ran_on != level2.judged;
  level2.judged = level2.ran_on;
  vgpu__unlock(&level2.ring_lock);
  if (ran_on) level2.without_effect++;
  else if (length_ns > 2 * EFFECT_NS) level2.without_effect = 0;
  if (level2.without_effect >= PATIENCE) vgpu__off(tenant, SHM_LEVEL2_WHY_NO_EFFECT, 0);
  else if (level2.slow >= PATIENCE) vgpu__off(tenant, SHM_LEVEL2_WHY_SLOW, 0);
}

static void vgpu__resume(struct vgpu_tenant *tenant) {
  uint32_t status;
  uint64_t now = vgpu__now_ns();
  if (vgpu__timed_set(0, &status) != 0 && level2.failures++ < PATIENCE) return; /* the caller retries */
  uint64_t length_ns = vgpu__stretch_ends(now);
  ADD(tenant->slot->level2_stopped_ns, length_ns + CHANGE_NS);
  int failed = level2.failures > PATIENCE;
  vgpu__tell(tenant, SHM_LEVEL2_READY, SHM_LEVEL2_WHY_NONE);
  vgpu__monitor_wake();
  if (failed) vgpu__off(tenant, SHM_LEVEL2_WHY_REFUSED, status);
  level2.failures = 0;
  if (!failed) vgpu__judge(tenant, length_ns);
}

static int vgpu__is_stopped(void) { return LOAD_ACQUIRE(level2.state) == SHM_LEVEL2_STOPPED; }

void vgpu__level2_channels_changed(void) {
  uint32_t status;
  if (!vgpu__is_stopped()) return;
  vgpu__lock(&level2.lock);
  if (vgpu__is_stopped()) vgpu__channels_set(level2.method, 1, &level2.abi, &status);
  vgpu__unlock(&level2.lock);
}

/* ---- probing the driver ---- */

/* Tries each method once, stop and resume, when there is work for the first time. */
static int vgpu__try_methods(uint32_t *status) {
  uint32_t ignored;
  for (unsigned method = 0; method < VGPU_METHODS; method++) {
    level2.method = (enum vgpu_method)method;
    int failed = vgpu__timed_set(1, status) != 0;
    if (vgpu__timed_set(0, failed ? &ignored : status) != 0) failed = 1;
    if (!failed) return 0;
  }
  return -1;
}

static void vgpu__try(struct vgpu_tenant *tenant) {
  struct vgpu_channels_seen seen;
  uint32_t status = 0;
  level2.tried = 1;
  vgpu__channels_seen(&seen);
  STORE(tenant->slot->level2_driver, seen.version);
  level2.abi = vgpu__rm_abi(seen.version >> 16);
  uint64_t slice_us = LOAD(tenant->grant->timeslice_us);
  if (seen.overflow) {
    vgpu__off(tenant, SHM_LEVEL2_WHY_TABLE, 0);
  } else if (seen.channels == 0) {
    vgpu__off(tenant, SHM_LEVEL2_WHY_NO_CHANNELS, 0);
  } else if (level2.abi.branch == 0) {
    vgpu__off(tenant, SHM_LEVEL2_WHY_VERSION, 0);
  } else if (vgpu__try_methods(&status) != 0) {
    /* The milder form: a process that cannot be stopped shall at least give way soon, by a short time slice. */
    uint32_t answer = 0;
    if (slice_us != 0 && vgpu__channels_timeslice(slice_us, &answer) == 0) vgpu__channels_limit_timeslice(slice_us);
    vgpu__off(tenant, SHM_LEVEL2_WHY_REFUSED, status);
  } else if (level2.slow > 0) {
    vgpu__off(tenant, SHM_LEVEL2_WHY_SLOW, 0);
  } else {
    vgpu__log("stops inside kernels: driver %u.%02u, way %d, %u channels", seen.version >> 16, seen.version & 0xffff,
              (int)level2.method, seen.channels);
    vgpu__tell(tenant, SHM_LEVEL2_READY, SHM_LEVEL2_WHY_NONE);
  }
}

/* ---- the thread ---- */

/*
 * Whether to stop: held back by the express lane, or preempted at a shut gate. Once stopped, the process stays stopped
 * while the gate is shut, even after the urgent process has gone: for the seat its turn has ended, and the next turn
 * belongs to another tenant.
 */
static int vgpu__shall_stop(struct vgpu_tenant *tenant, uint64_t now) {
  uint64_t flags = LOAD(tenant->grant->level2_flags), heed;
  uint32_t word = LOAD_ACQUIRE(tenant->grant->word);
  if (LOAD_ACQUIRE(level2.over) || (word & SHM_GRANT_REVOKED) != 0 || (flags & SHM_LEVEL2_ALLOWED) == 0) return 0;
  if (vgpu__express_held(tenant, &heed) != 0) return 1;
  return ((flags & SHM_LEVEL2_STOP) != 0 || vgpu__is_stopped()) && !vgpu__word_open(word) &&
         !LOAD_ACQUIRE(tenant->autonomous) && !vgpu__seat_is_silent(tenant, now);
}

static int vgpu__is_busy(const struct vgpu_tenant *tenant) {
  return __atomic_load_n(&tenant->slot->busy, __ATOMIC_SEQ_CST) != 0;
}

static void vgpu__step(struct vgpu_tenant *tenant, uint64_t now) {
  vgpu__lock(&level2.lock);
  if (!LOAD(level2.over) && LOAD(vgpu__tenants_used) > 1) {
    if (vgpu__is_stopped()) vgpu__resume(tenant);
    else vgpu__off(tenant, SHM_LEVEL2_WHY_TENANTS, 0);
  } else if (!level2.tried && !LOAD(level2.over) && vgpu__is_busy(tenant)) {
    vgpu__try(tenant);
  }
  /*
   * Only known work is kept stopped. If the hook knows of none, the seat is told of none, and gives no turn: work that
   * the hook does not measure would stay stopped for good.
   */
  int shall = vgpu__is_busy(tenant) && vgpu__shall_stop(tenant, now);
  if (vgpu__is_stopped()) {
    if (!shall) vgpu__resume(tenant);
  } else if (shall && LOAD(level2.state) == SHM_LEVEL2_READY) {
    vgpu__stop(tenant);
  }
  vgpu__unlock(&level2.lock);
}

/*
 * What to wait for: the grant word, since the seat wakes its waiters when it opens the gate or preempts; and the halves
 * of express.busy with the bits that may hold this lease back, or do so while it is stopped.
 */
struct view {
  struct vgpu_words words;
  uint64_t wait_ns, poll_ns;
};

static struct view vgpu__look(const struct vgpu_tenant *tenant) {
  const struct shm_express *page = tenant->express.page;
  const uint32_t *halves = (const uint32_t *)(const void *)&page->busy;
  uint64_t mask = LOAD(tenant->grant->express_mask), heed;
  int stopped = vgpu__is_stopped();
  if (stopped && vgpu__express_held(tenant, &heed) == 0) mask = 0;
  struct view view = {.wait_ns = AWAKE_WAIT_NS, .poll_ns = stopped ? STOPPED_WAIT_NS : WATCHED_WAIT_NS};
  if ((uint32_t)mask != 0) vgpu__words_add(&view.words, halves);
  if (mask >> 32 != 0) vgpu__words_add(&view.words, halves + 1);
  if (view.words.count == 2) view.poll_ns = BLIND_WAIT_NS;
  vgpu__words_add(&view.words, &tenant->grant->word);
  if (stopped) return view;
  if (mask == 0) view.wait_ns = WATCHED_WAIT_NS; /* the seat wakes nobody when it changes the mask */
  else if (LOAD(page->watched) == 0) view.wait_ns = view.poll_ns = BLIND_WAIT_NS;
  return view;
}

static void vgpu__pause(const struct vgpu_tenant *tenant, struct view view) {
  /* What the driver refused is tried again soon, but not at once: after a few refusals level 2 is off. */
  if (level2.failures > 0 && (vgpu__is_stopped() || vgpu__is_busy(tenant))) {
    vgpu__futex_wait(view.words.at[0], view.words.seen[0], vgpu__is_stopped() ? RETRY_NS : WATCHED_WAIT_NS);
    return;
  }
  if (!vgpu__is_stopped() && vgpu__is_busy(tenant)) {
    vgpu__words_wait(&view.words, view.wait_ns, view.poll_ns);
    return;
  }
  /* Begins or ends of work wake us: vgpu__level2_wake. */
  __atomic_store_n(&vgpu__level2_asleep, 1, __ATOMIC_SEQ_CST);
  if (vgpu__is_stopped() && vgpu__is_busy(tenant)) {
    view.words.at[view.words.count] = &vgpu__level2_asleep;
    view.words.seen[view.words.count++] = 1;
    vgpu__words_wait(&view.words, view.wait_ns, view.poll_ns);
  } else if (!vgpu__is_stopped() && !vgpu__is_busy(tenant)) {
    vgpu__futex_wait(&vgpu__level2_asleep, 1, IDLE_WAIT_NS);
  }
  __atomic_store_n(&vgpu__level2_asleep, 0, __ATOMIC_SEQ_CST);
}

static void *vgpu__level2_thread(void *unused) {
  struct vgpu_tenant *tenant = &vgpu__home;
  (void)unused;
  prctl(PR_SET_NAME, "vgpu-preempt", 0, 0, 0);
  prctl(PR_SET_TIMERSLACK, 5000, 0, 0, 0); /* applies to this thread only */
  while (!LOAD_ACQUIRE(level2.over) || vgpu__is_stopped()) {
    struct view view = vgpu__look(tenant);
    uint64_t now = vgpu__now_ns();
    STORE_RELEASE(level2.beat_ns, now);
    int stopped = vgpu__is_stopped();
    if (stopped) STORE_RELEASE(tenant->slot->heartbeat_ns, now); /* the monitor may sleep */
    vgpu__step(tenant, now);
    /* After a change, other words are to be waited for. */
    if (!LOAD_ACQUIRE(level2.over) && vgpu__is_stopped() == stopped) vgpu__pause(tenant, view);
  }
  return NULL;
}

void vgpu__level2_wake_slow(void) {
  if (__atomic_exchange_n(&vgpu__level2_asleep, 0, __ATOMIC_SEQ_CST) == 0) return;
  int kept = errno;
  syscall(SYS_futex, &vgpu__level2_asleep, FUTEX_WAKE, 1, NULL, NULL, 0);
  errno = kept;
}

void vgpu__level2_watch(uint64_t now) {
  uint64_t beat = LOAD_ACQUIRE(level2.beat_ns);
  if (!vgpu__is_stopped() || now < beat || now - beat < LOST_NS || !vgpu__try_lock(&level2.lock)) return;
  if (vgpu__is_stopped()) {
    vgpu__log("the level-2 thread is late: the monitor resumes");
    vgpu__resume(&vgpu__home);
  }
  vgpu__unlock(&level2.lock);
}

void vgpu__level2_join(struct vgpu_tenant *tenant) {
  const char *wish = vgpu__setting("VGPU_LEVEL2");
  if (tenant != &vgpu__home) { /* the home tenant's thread notices that there are several leases */
    STORE(tenant->slot->level2_reason, (uint32_t)SHM_LEVEL2_WHY_TENANTS);
    return;
  }
  if (wish != NULL && strcmp(wish, "off") == 0) {
    vgpu__off(tenant, SHM_LEVEL2_WHY_SETTING, 0);
  } else if (LOAD(tenant->grant->preemption_class) != SHM_CLASS_OFFLINE) {
    vgpu__off(tenant, SHM_LEVEL2_WHY_CLASS, 0);
  } else if (vgpu__driver_load() != 0 || vgpu__channels_watch(vgpu__driver_handle()) != 0) {
    vgpu__off(tenant, SHM_LEVEL2_WHY_NO_IMPORT, 0);
  } else if (vgpu__thread_start(vgpu__level2_thread) != 0) {
    vgpu__off(tenant, SHM_LEVEL2_WHY_THREAD, 0);
  }
}

/*
 * In the child of a fork: the thread and the GPU's work are the parent's. The redirection is in inherited memory and
 * stays.
 */
void vgpu__level2_forget(void) {
  memset(&level2, 0, sizeof level2);
  vgpu__level2_asleep = 0;
  vgpu__channels_forget();
}

void vgpu__level2_leave(void) {
  STORE_RELEASE(level2.over, 1);
  for (int i = 0; i < 100 && vgpu__is_stopped(); i++) {
    if (vgpu__try_lock(&level2.lock)) {
      if (vgpu__is_stopped()) vgpu__resume(&vgpu__home);
      vgpu__unlock(&level2.lock);
    } else {
      vgpu__sleep_ns(100u * NS_PER_US);
    }
  }
}
