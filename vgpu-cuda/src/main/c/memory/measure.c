/*
 * Measuring the memory of contexts and modules, which is in no call's arguments: NVML's figure for this process, less
 * its charge. A context is charged a set size before it is made. If the quota is short, a call that makes a context or
 * loads a module reads NVML before it returns. A change without room is undone, and the program gets an out-of-memory
 * error. Otherwise a thread reads soon after, and an allocation that would come near the quota before that reads by
 * itself. The thread reads again later, since modules are loaded at their first use. Memory that is found too late to
 * be refused is owed: it takes the next room that there is.
 *
 * Other processes do not matter, since NVML counts each by itself. This process's other threads do not matter either: a
 * charge is reserved before the driver is called and given back after, so it is never less than what allocations really
 * hold. If the ledger is unchanged around a reading, NVML's figure less the charge never exceeds what contexts and
 * modules hold beyond their charge. So a larger figure can always be added, unless a call is under way that makes a
 * context or loads a module: it may yet be undone, and charges what stays by itself. A smaller figure is believed only
 * if several readings in a row agree, no charge has changed meanwhile, and no thread is between reserving and the
 * driver's answer, or between the driver's freeing and giving back (changing.c). On a busy machine a thread may be
 * there for as long as all the readings take.
 *
 * If a lease has an account for each of several GPUs, each GPU is compared by itself (struct vgpu_spot).
 */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "memory.h"

enum { READINGS = 12, ALIKE = 4, UNSEEN = 3, QUICK = 4, OWN_SEQ_BITS = 20, MARGIN_PART = 4 };
static const uint64_t SOON_NS = 20u * NS_PER_MS, AGAIN_NS = 5u * NS_PER_MS, LATER_NS = 1000u * NS_PER_MS,
                      LEAVE_NS = 10u * NS_PER_MS;
static const uint64_t SELDOM_NS = 60u * 1000u * (uint64_t)NS_PER_MS, OPEN_NS = 100u * NS_PER_MS,
                      OWED_NS = 5u * NS_PER_MS;
static const uint64_t QUICKLY_NS = 50u * NS_PER_US, PERHAPS_NS = 100u * NS_PER_MS;
static const uint64_t SUSPENDED_NS = 100u * NS_PER_MS;
static const uint64_t MARGIN = 512u << 20;

enum { OPENING, READY, FAILED };

static struct {
  struct vgpu_lock lock; /* guards the start of the thread */
  int runs;
  uint32_t state;  /* state of NVML: OPENING, READY or FAILED; waited on */
  uint32_t wanted; /* number of requests; waited on */
  uint32_t stop, inside;
  uint32_t loads_begun, loads_over;
  unsigned unseen;
} measure;
uint32_t vgpu__measure_less, vgpu__measure_pending;

static void vgpu__tell(uint64_t how) {
  struct vgpu_tenant *tenant;
  for (unsigned i = 0; (tenant = vgpu__tenant_next(&i)) != NULL; i++) {
    STORE(tenant->slot->overhead_bytes, vgpu__contexts_bytes(tenant));
    STORE(tenant->slot->measured, (uint32_t)how);
  }
}

/*
 * Around calls of NVML, which may end with the program: none is made after vgpu__measure_leave has begun. Returns 0
 * then.
 */
static int vgpu__go_in(void) {
  __atomic_fetch_add(&measure.inside, 1, __ATOMIC_SEQ_CST);
  if (!__atomic_load_n(&measure.stop, __ATOMIC_SEQ_CST)) return 1;
  __atomic_fetch_sub(&measure.inside, 1, __ATOMIC_SEQ_CST);
  return 0;
}

static void vgpu__go_out(void) { __atomic_fetch_sub(&measure.inside, 1, __ATOMIC_SEQ_CST); }

/* ---- the comparison ---- */

/* The bytes charged to all leases for this process there. *mark changes with every charge and debt. */
static uint64_t vgpu__charged(const struct vgpu_spot *spot, uint64_t *mark) {
  struct vgpu_tenant *tenant;
  uint64_t units = 0;
  *mark = 0;
  for (unsigned i = 0; (tenant = vgpu__tenant_next(&i)) != NULL; i++) {
    for (int gpu = 0; gpu < vgpu__gpus(tenant); gpu++) {
      if (!vgpu__spot_has(spot, tenant, gpu)) continue;
      uint64_t own = LOAD_ACQUIRE(*vgpu__own_of(tenant->slot, gpu));
      units += own >> OWN_SEQ_BITS;
      *mark = *mark * 31 + own + LOAD(tenant->slot->moved_bytes);
      *mark = (*mark * 31 + LOAD(tenant->debt_units[gpu])) * 31 + LOAD(tenant->overhead_units[gpu]);
    }
  }
  return units * SHM_MEMORY_UNIT;
}

void vgpu__load_begins(void) { __atomic_fetch_add(&measure.loads_begun, 1, __ATOMIC_SEQ_CST); }

void vgpu__load_ends(void) { __atomic_fetch_add(&measure.loads_over, 1, __ATOMIC_SEQ_CST); }

enum look { LOOK_TOLD, LOOK_AGAIN, LOOK_UNSEEN, LOOK_NOT };

/*
 * Compares once. *still: no operation was under way in which memory and charge change at different moments. With NULL no
 * lock but NVML's is needed.
 */
static enum look vgpu__look(const struct vgpu_spot *spot, int64_t *beyond, uint64_t *mark, int *still) {
  if (still != NULL) *still = vgpu__pools_are_settled() && !vgpu__changing_any();
  uint64_t held, after, charged = vgpu__charged(spot, mark);
  int told = vgpu__held_read(spot->uuid, &held);
  if (still != NULL) *still = *still && !vgpu__changing_any();
  vgpu__charged(spot, &after);
  if (vgpu__suspended_any()) return LOOK_AGAIN; /* suspended memory is away, its charge is not */
  /* While its last context is being destroyed, which takes long, NVML does not list the process. */
  if (told <= 0) return told < 0 ? LOOK_NOT : still != NULL && *still ? LOOK_UNSEEN : LOOK_AGAIN;
  if (*mark != after) return LOOK_AGAIN;
  held = (held + SHM_MEMORY_UNIT - 1) / SHM_MEMORY_UNIT * SHM_MEMORY_UNIT;
  *beyond = (int64_t)(held - charged);
  return LOOK_TOLD;
}

/* The same, with no load under way. */
static enum look vgpu__look_between(const struct vgpu_spot *spot, int64_t *beyond, uint64_t *mark, int *still) {
  uint32_t over = __atomic_load_n(&measure.loads_over, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&measure.loads_begun, __ATOMIC_SEQ_CST) != over) return LOOK_AGAIN;
  enum look look = vgpu__look(spot, beyond, mark, still);
  return look == LOOK_TOLD && __atomic_load_n(&measure.loads_begun, __ATOMIC_SEQ_CST) != over ? LOOK_AGAIN : look;
}

static enum look vgpu__look_for(struct vgpu_excess *excess) {
  return (excess->among_loads ? vgpu__look : vgpu__look_between)(excess->spot, &excess->bytes, &excess->mark, NULL);
}

/*
 * Holds the ledgers if what was read is still so; alone, reads it then. Nobody else can charge the same excess, nor
 * change what it is beyond, until vgpu__ledgers_let_go. Returns its argument; 0: it is not so.
 */
static uint64_t vgpu__excess_hold(struct vgpu_excess *excess) {
  uint64_t mark, here = vgpu__ledgers_hold();
  int so = excess->alone && vgpu__look_for(excess) == LOOK_TOLD;
  if (!excess->alone) {
    vgpu__charged(excess->spot, &mark);
    so = mark == excess->mark;
  }
  if (so) return here;
  vgpu__ledgers_let_go(here);
  return 0;
}

/* Sets the debts there: that of an account, if any, and none of the others. The ledgers are held. */
static void vgpu__owe_there(const struct vgpu_spot *spot, const struct vgpu_tenant *payer, int pays, uint64_t bytes) {
  struct vgpu_tenant *tenant;
  for (unsigned i = 0; (tenant = vgpu__tenant_next(&i)) != NULL; i++) {
    for (int gpu = 0; gpu < vgpu__gpus(tenant); gpu++) {
      if (vgpu__spot_has(spot, tenant, gpu)) vgpu__owe(tenant, gpu, tenant == payer && gpu == pays ? bytes : 0);
    }
  }
}

int vgpu__excess_charge(struct vgpu_excess *excess, struct vgpu_tenant *tenant, int gpu) {
  uint64_t here = vgpu__excess_hold(excess);
  if (here == 0) return -1;
  if (excess->bytes < 0) excess->bytes = 0;
  int charged = vgpu__reserve_now(tenant, gpu, (uint64_t)excess->bytes) == 0;
  if (charged) vgpu__owe_there(excess->spot, NULL, 0, 0); /* the debts were a part of it */
  vgpu__ledgers_let_go(here);
  return charged;
}

/*
 * Charges what is held beyond the charge, as far as the quota has room. The rest is owed by the tenant that pays for
 * contexts. Returns 0 if all is charged; -1: it is not so any more.
 */
static int vgpu__charge_beyond(struct vgpu_excess *excess) {
  uint64_t here = vgpu__excess_hold(excess);
  if (here == 0) return -1;
  int64_t rest = excess->bytes <= 0 ? 0 : excess->bytes - vgpu__context_adjust(excess->spot, excess->bytes);
  int pays = 0;
  struct vgpu_tenant *payer = vgpu__contexts_payer(excess->spot, &pays);
  vgpu__owe_there(excess->spot, payer, pays, (uint64_t)rest);
  /* there may be room, if a context was just being used by another thread */
  int owed = rest > 0 && (payer == NULL || vgpu__pay_account(payer, pays));
  vgpu__ledgers_let_go(here);
  if (owed) vgpu__log("contexts and modules take %lld bytes for which the quota has no room", (long long)rest);
  return owed;
}

/* ---- in the thread that makes a context, loads a module, or allocates soon after ---- */

/*
 * 1: known; 0: NVML is not available, or does not list this process. 0 between loads also while one is under way.
 */
static int vgpu__beyond_now(struct vgpu_excess *excess, int alone) {
  uint64_t until = vgpu__now_ns() + OPEN_NS;
  while (LOAD_ACQUIRE(measure.state) == OPENING && LOAD_ACQUIRE(measure.runs) && vgpu__now_ns() < until) {
    vgpu__futex_wait(&measure.state, OPENING, until - vgpu__now_ns());
  }
  if (LOAD_ACQUIRE(measure.state) != READY || !vgpu__go_in()) return 0;
  enum look look = alone ? LOOK_AGAIN : vgpu__look_for(excess);
  for (int i = 1; i < QUICK && look == LOOK_AGAIN && !alone; i++) {
    vgpu__sleep_ns(QUICKLY_NS);
    look = vgpu__look_for(excess);
  }
  excess->alone = look == LOOK_AGAIN;
  if (excess->alone) {
    uint64_t here = vgpu__ledgers_hold();
    look = vgpu__look_for(excess);
    vgpu__ledgers_let_go(here);
  }
  vgpu__go_out();
  return look == LOOK_TOLD;
}

int vgpu__measure_is_short(const struct vgpu_tenant *tenant, int gpu, uint64_t more) {
  uint64_t quota = LOAD_ACQUIRE(tenant->grant->memory_limit), used = vgpu__lease_bytes(tenant, gpu);
  uint64_t margin = quota / MARGIN_PART > MARGIN ? quota / MARGIN_PART : MARGIN;
  return used >= quota || more >= quota - used || margin > quota - used - more;
}

static int vgpu__any_is_short(const struct vgpu_spot *spot) {
  const struct vgpu_tenant *tenant;
  for (unsigned i = 0; (tenant = vgpu__tenant_next(&i)) != NULL; i++) {
    for (int gpu = 0; gpu < vgpu__gpus(tenant); gpu++) {
      if (vgpu__spot_has(spot, tenant, gpu) && vgpu__measure_is_short(tenant, gpu, 0)) return 1;
    }
  }
  return 0;
}

/*
 * Charges what is held beyond the charge there to a tenant, or (NULL) to a context that is there. 0: *bytes are charged,
 * none if it is not known; -1: there is no room for *bytes.
 */
static int vgpu__charge_made(const struct vgpu_spot *spot, struct vgpu_tenant *tenant, int gpu, uint64_t *bytes) {
  struct vgpu_excess excess = {.spot = spot, .among_loads = 1};
  for (int i = 0, trimmed = 0;; i++) {
    *bytes = 0;
    if (!vgpu__beyond_now(&excess, i >= QUICK) || excess.bytes <= 0 || !vgpu__go_in()) return 0;
    int charged = tenant == NULL ? vgpu__context_add(&excess) : vgpu__excess_charge(&excess, tenant, gpu);
    vgpu__go_out();
    if (charged < 0 && excess.alone) return 0;
    if (charged < 0) continue;
    *bytes = (uint64_t)excess.bytes;
    if (charged > 0) return 0;
    if (trimmed || !vgpu__trim()) return -1;
    trimmed = 1; /* what there is beyond may be another amount now */
  }
}

int vgpu__measure_context(struct vgpu_tenant *tenant, int gpu, uint64_t *bytes) {
  uint64_t more;
  struct vgpu_spot spot;
  if (!LOAD(vgpu__attached) || gpu < 0 || !vgpu__measure_is_short(tenant, gpu, 0)) return 0;
  vgpu__spot_of(tenant, gpu, &spot);
  if (vgpu__charge_made(&spot, tenant, gpu, &more) != 0) {
    vgpu__log("the quota has no room for a context of %llu bytes", (unsigned long long)(*bytes + more));
    return -1;
  }
  *bytes += more;
  return 0;
}

int vgpu__measure_made(void) {
  int fits = 1;
  uint64_t bytes;
  struct vgpu_spot spot;
  if (!LOAD(vgpu__attached)) return 0;
  for (unsigned i = 0; fits && vgpu__spot_next(&i, &spot); i++) {
    if (vgpu__contexts_any(&spot) && vgpu__any_is_short(&spot)) fits = vgpu__charge_made(&spot, NULL, 0, &bytes) == 0;
  }
  vgpu__measure_soon();
  return fits ? 0 : -1;
}

/* 1: done; 0: not known. */
static int vgpu__settle_spot(const struct vgpu_spot *spot) {
  struct vgpu_excess excess = {.spot = spot};
  for (int i = 0, owed = -1; owed < 0; i++) {
    if (!vgpu__beyond_now(&excess, i >= QUICK) || !vgpu__go_in()) return 0;
    owed = vgpu__charge_beyond(&excess);
    vgpu__go_out();
    if (owed < 0 && excess.alone) return 0;
  }
  return 1;
}

void vgpu__measure_settle(void) {
  uint32_t asked = LOAD(measure.wanted);
  struct vgpu_spot spot;
  for (unsigned i = 0; vgpu__spot_next(&i, &spot); i++) {
    if (!vgpu__contexts_any(&spot)) {
      vgpu__overhead_end(&spot);
    } else if (!vgpu__settle_spot(&spot)) {
      if (LOAD(measure.state) == FAILED) STORE(vgpu__measure_pending, 0);
      return;
    }
  }
  STORE(vgpu__measure_pending, LOAD(measure.wanted) != asked);
}

/* ---- the thread ---- */

/* Corrects the charge of one spot to NVML's figure. 1: done; 0: not known this time; -1: NVML gives no figure. */
static int vgpu__measure_spot(const struct vgpu_spot *spot) {
  int64_t before = 0;
  uint64_t first_mark = 0;
  unsigned alike = 0;
  int told = !vgpu__contexts_any(spot);
  for (int i = 0; i < READINGS && vgpu__contexts_any(spot); i++) {
    if (i > 0) vgpu__sleep_ns(AGAIN_NS);
    if (LOAD(measure.stop)) return 0;
    int still;
    struct vgpu_excess excess = {.spot = spot, .alone = i == READINGS - 1};
    enum look look = vgpu__look_between(spot, &excess.bytes, &excess.mark, &still);
    if (look == LOOK_NOT || (look == LOOK_UNSEEN && ++measure.unseen >= (unsigned)UNSEEN)) return -1;
    if (look != LOOK_TOLD) {
      alike = 0;
      continue;
    }
    measure.unseen = 0;
    int owed = vgpu__charge_beyond(&excess);
    if (owed < 0) continue; /* the marks tell whether charges have changed */
    told = 1;
    if (owed != 0 || excess.bytes == 0) break;
    if (excess.bytes > 0 || !still) {
      alike = 0;
      continue;
    }
    alike = alike > 0 && excess.bytes == before && excess.mark == first_mark ? alike + 1 : 1;
    before = excess.bytes;
    first_mark = excess.mark;
    excess.alone = 0;
    uint64_t here = alike >= ALIKE && !LOAD(vgpu__measure_less) ? vgpu__excess_hold(&excess) : 0;
    if (here == 0) continue;
    vgpu__context_adjust(spot, excess.bytes);
    vgpu__ledgers_let_go(here);
    break;
  }
  if (!vgpu__contexts_any(spot)) vgpu__overhead_end(spot);
  return told;
}

/* Corrects the charge to NVML's figures. 0; -1: NVML gives no figure. */
static int vgpu__measure_now(void) {
  uint32_t asked = LOAD(measure.wanted);
  struct vgpu_spot spot;
  int told = 1;
  for (unsigned i = 0; vgpu__spot_next(&i, &spot); i++) {
    int spot_told = vgpu__measure_spot(&spot);
    if (spot_told < 0) return -1;
    if (LOAD(measure.stop)) return 0;
    told &= spot_told;
  }
  if (told && LOAD(measure.wanted) == asked) STORE(vgpu__measure_pending, 0);
  vgpu__tell(SHM_MEASURED_BY_NVML);
  return 0;
}

static const char *vgpu__why_not(void) {
  const char *wish = vgpu__setting("VGPU_MEASURE");
  return wish != NULL && strcmp(wish, "off") == 0 ? "VGPU_MEASURE is off" : vgpu__held_open();
}

/* Waits until the next request, or for `ns`. Debts are paid meanwhile. */
static void vgpu__rest(uint32_t seen, uint64_t ns) {
  uint64_t now = vgpu__now_ns(), until = now + ns;
  for (int owed = 1; owed && now < until && LOAD_ACQUIRE(measure.wanted) == seen; now = vgpu__now_ns()) {
    owed = vgpu__pay_owed();
    vgpu__futex_wait(&measure.wanted, seen, owed && until - now > OWED_NS ? OWED_NS : until - now);
  }
}

static uint64_t vgpu__launches(void) {
  const struct vgpu_tenant *tenant;
  uint64_t sum = 0;
  for (unsigned i = 0; (tenant = vgpu__tenant_next(&i)) != NULL; i++) sum += LOAD(tenant->slot->launches);
  return sum;
}

static const char *vgpu__open_nvml(void) {
  if (!vgpu__go_in()) return "this process ends";
  const char *why = vgpu__why_not();
  vgpu__go_out();
  STORE_RELEASE(measure.state, (uint32_t)(why == NULL ? READY : FAILED));
  syscall(SYS_futex, &measure.state, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
  return why;
}

static void *vgpu__measurer(void *unused) {
  (void)unused;
  prctl(PR_SET_NAME, "vgpu-measure", 0, 0, 0);
  const char *why = vgpu__open_nvml();
  uint32_t seen = 0;
  uint64_t pause = SELDOM_NS, launched = 0;
  while (why == NULL) {
    if (LOAD_ACQUIRE(measure.wanted) == seen) vgpu__rest(seen, pause);
    uint32_t now = LOAD_ACQUIRE(measure.wanted);
    int asked = now != seen;
    uint64_t launches = vgpu__launches();
    /*
     * Read soon after a change, and again once a second has passed without another. Later, read if there was work,
     * since modules may have been loaded for it.
     */
    if (!asked && pause == SELDOM_NS && launches == launched) continue;
    pause = asked ? LATER_NS : SELDOM_NS;
    seen = now;
    launched = launches;
    if (asked) vgpu__sleep_ns(SOON_NS);
    while (vgpu__suspended_any() && !LOAD(measure.stop)) vgpu__sleep_ns(SUSPENDED_NS);
    if (!vgpu__go_in()) return NULL;
    if (vgpu__measure_now() != 0) why = "NVML does not tell what this process holds";
    vgpu__go_out();
  }
  STORE_RELEASE(measure.state, (uint32_t)FAILED);
  STORE(vgpu__measure_pending, 0);
  if (LOAD(measure.stop)) return NULL;
  vgpu__tell(SHM_MEASURED_NOT);
  vgpu__log("a context is charged the set size, modules nothing: %s", why);
  return NULL;
}

void vgpu__measure_start(void) {
  if (LOAD_ACQUIRE(measure.runs) || !LOAD(vgpu__attached)) return;
  vgpu__lock(&measure.lock);
  if (!measure.runs && vgpu__thread_start(vgpu__measurer) == 0) STORE_RELEASE(measure.runs, 1);
  vgpu__unlock(&measure.lock);
}

void vgpu__measure_soon(void) {
  if (!LOAD(vgpu__attached)) return;
  int kept = errno;
  if (LOAD(measure.state) != FAILED) STORE(vgpu__measure_pending, 1);
  ADD(measure.wanted, 1);
  vgpu__measure_start();
  syscall(SYS_futex, &measure.wanted, FUTEX_WAKE, 1, NULL, NULL, 0);
  errno = kept;
}

void vgpu__measure_perhaps(void) {
  static uint64_t last_ns;
  uint64_t now = vgpu__now_ns();
  if (!LOAD(vgpu__attached) || now - LOAD(last_ns) < PERHAPS_NS) return;
  STORE(last_ns, now);
  vgpu__measure_soon();
}

/* In the child of a fork: the thread is the parent's. */
void vgpu__measure_forget(void) {
  vgpu__changing_forget();
  memset(&measure, 0, sizeof measure);
  vgpu__held_forget();
  vgpu__measure_less = vgpu__measure_pending = 0;
}

void vgpu__measure_leave(void) {
  uint64_t deadline = vgpu__now_ns() + LEAVE_NS;
  __atomic_store_n(&measure.stop, 1, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(&measure.inside, __ATOMIC_SEQ_CST) && vgpu__now_ns() < deadline)
    vgpu__sleep_ns(20u * NS_PER_US);
}
