/*
 * The express lane: how an offline process learns within microseconds, without the seat, that a more urgent process is
 * busy. An urgent process sets its bit in the GPU's express page before its work, and clears it a little after. An
 * offline process starts nothing while one of the bits named in its grant is set. A bit does not count if its process's
 * last heartbeat is older than STALE_NS.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "turn.h"

static const uint64_t STALE_NS = 15u * NS_PER_MS;
static const uint64_t WAIT_NS = 3u * NS_PER_MS;
static const uint64_t LINGER_US = 150, MOST_LINGER_US = 20000;
static const uint64_t STEP_NS = 40u * NS_PER_US; /* how often the monitor looks while a bit lingers */

/*
 * Whether a bit lingers after the work. A process that waits for the GPU after each of a chain of kernels returns
 * within microseconds: giving the GPU away between two of them costs more than it gains. A process whose requests are
 * single pieces of work returns later: GPU time is lost while its bit stays set. So the bit lingers only for a process
 * that has returned in time before. Races on the count do no harm.
 */
enum { RETURNS_TRUSTED = 4, MOST_RETURNS = 16 };

/* ---- joining ---- */

/* The bit that the seat gave to our slot; EXPRESS_BITS: none. */
static uint64_t vgpu__bit_index(const struct vgpu_tenant *tenant) {
  uint64_t i = 0;
  while (i < SHM_EXPRESS_BITS && LOAD(tenant->grant->express_slots[i]) != tenant->slot_number) i++;
  return i;
}

static int vgpu__page_name(const struct vgpu_tenant *tenant, char *into, size_t size) {
  _Static_assert(sizeof tenant->grant->express_page == 64, "a name and its zero");
  if (size < sizeof tenant->grant->express_page) return -1;
  memcpy(into, tenant->grant->express_page, sizeof tenant->grant->express_page);
  into[sizeof tenant->grant->express_page - 1] = '\0';
  return into[0] == '\0' || into[0] == '.' || strchr(into, '/') != NULL ? -1 : 0;
}

void vgpu__express_join(struct vgpu_tenant *tenant) {
  char name[64], path[PATH_MAX];
  if (vgpu__page_name(tenant, name, sizeof name) != 0) return;
  int urgent = LOAD(tenant->grant->preemption_class) != SHM_CLASS_OFFLINE;
  uint64_t index = vgpu__bit_index(tenant);
  if (urgent && index == SHM_EXPRESS_BITS) return; /* all bits are taken: this process uses messages alone */
  int length = snprintf(path, sizeof path, "%s/express/%s", tenant->run_dir, name);
  if (length < 0 || (size_t)length >= sizeof path) return;
  char *page = vgpu__map_file(path, SHM_EXPRESS_SIZE, SHM_EXPRESS_MAGIC, SHM_EXPRESS_BITS, urgent);
  if (page != NULL) page = vgpu__region_move(tenant, VGPU_REGION_EXPRESS, page, (size_t)SHM_EXPRESS_SIZE);
  if (page == NULL) {
    if (!urgent) return;
    /* In a container, or running as a user other than the seat's. */
    STORE(tenant->express.told, 1);
    STORE_RELEASE(tenant->slot->express, (uint32_t)SHM_EXPRESS_TOLD);
    return;
  }
  tenant->express.index = urgent ? index : 0;
  tenant->express.bit = urgent ? (uint64_t)1 << index : 0;
  STORE_RELEASE(tenant->express.page, (struct shm_express *)(void *)(page + SHM_EXPRESS_OFFSET));
  STORE_RELEASE(tenant->slot->express, (uint32_t)(urgent ? SHM_EXPRESS_ANNOUNCES : SHM_EXPRESS_OBEYS));
}

/* In the child of a fork, where the bit is the parent's; and before joining another lease. */
void vgpu__express_forget(struct vgpu_tenant *tenant) {
  tenant->express = (struct vgpu_express){.page = &tenant->express.none};
}

/* ---- processes that obey the lane ---- */

/* A beat from the future counts as none. */
static int vgpu__is_stale(uint64_t beat, uint64_t now) {
  return beat > now ? beat - now > STALE_NS : now - beat > STALE_NS;
}

/* Returns the bits that hold this process back now. *heed: the bits that would hold it back if they were set. */
uint64_t vgpu__express_held(const struct vgpu_tenant *tenant, uint64_t *heed) {
  const struct shm_express *page = tenant->express.page;
  uint64_t mask = LOAD(tenant->grant->express_mask);
  uint64_t held = __atomic_load_n(&page->busy, __ATOMIC_SEQ_CST) & mask, stale = 0;
  uint64_t now = held == 0 ? 0 : vgpu__now_ns();
  for (uint64_t rest = held; rest != 0; rest &= rest - 1) {
    unsigned index = (unsigned)__builtin_ctzll(rest);
    if (vgpu__is_stale(LOAD_ACQUIRE(page->beat_ns[index]), now)) stale |= rest & -rest;
  }
  /* A stale bit is not heeded until the next batch. Otherwise each launch would check it again. */
  *heed = mask & ~stale;
  return held & ~stale;
}

/* Waits while a more urgent process is busy. The gate may shut meanwhile, so the caller checks both again. */
void vgpu__express_wait(struct vgpu_tenant *tenant) {
  struct shm_slot *slot = tenant->slot;
  uint64_t began = vgpu__now_ns(), held, heed;
  int first = 1;
  __atomic_fetch_add(&slot->waiting, 1, __ATOMIC_SEQ_CST);
  vgpu__monitor_wake();
  while ((held = vgpu__express_held(tenant, &heed)) != 0) {
    if (first) {
      first = 0;
      STORE(slot->yielded_to, (uint32_t)__builtin_ctzll(held) + 1);
      ADD(slot->yields, 1);
    }
    uint32_t word = LOAD_ACQUIRE(tenant->grant->word);
    if (!vgpu__word_open(word) && !LOAD_ACQUIRE(tenant->autonomous)) break;
    STORE_RELEASE(slot->heartbeat_ns, vgpu__now_ns());
    /* The 32-bit half that contains one of the bits; little-endian. */
    int upper = (uint32_t)held == 0;
    const uint32_t *half = (const uint32_t *)(const void *)&tenant->express.page->busy + upper;
    uint32_t bits = (uint32_t)(upper ? held >> 32 : held), seen = LOAD_ACQUIRE(*half);
    if ((seen & bits) != 0) vgpu__futex_wait(half, seen, WAIT_NS);
  }
  __atomic_fetch_sub(&slot->waiting, 1, __ATOMIC_SEQ_CST);
  ADD(slot->waited_ns, vgpu__now_ns() - began);
}

/* ---- processes that announce their work ---- */

static int vgpu__passes(const struct vgpu_tenant *tenant) {
  uint32_t word = LOAD_ACQUIRE(tenant->grant->word);
  return vgpu__word_open(word) || (LOAD_ACQUIRE(tenant->autonomous) && (word & SHM_GRANT_REVOKED) == 0);
}

/*
 * Whether the bit is still ours. The seat takes it when the lease ends, or when it takes this process for dead. It may
 * then belong to another process.
 */
static int vgpu__owns_bit(const struct vgpu_tenant *tenant) {
  return tenant->express.bit != 0 && LOAD(tenant->grant->express_slots[tenant->express.index]) == tenant->slot_number;
}

static int vgpu__is_set(const struct vgpu_tenant *tenant) {
  return (__atomic_load_n(&tenant->express.page->busy, __ATOMIC_SEQ_CST) & tenant->express.bit) != 0;
}

void vgpu__express_beat(struct vgpu_tenant *tenant, uint64_t now) {
  if (vgpu__owns_bit(tenant)) STORE_RELEASE(tenant->express.page->beat_ns[tenant->express.index], now);
}

static uint64_t vgpu__linger_ns(const struct vgpu_tenant *tenant) {
  uint64_t us = LOAD(tenant->grant->express_linger_us);
  if (us == 0) us = LINGER_US;
  return (us < MOST_LINGER_US ? us : MOST_LINGER_US) * NS_PER_US;
}

static void vgpu__count_return(struct vgpu_tenant *tenant, uint64_t now) {
  uint32_t seen = LOAD(tenant->express.returns);
  if (now - LOAD(tenant->express.idle_since_ns) >= vgpu__linger_ns(tenant)) STORE(tenant->express.returns, seen / 2);
  else if (seen < MOST_RETURNS) STORE(tenant->express.returns, seen + 1);
}

/* Wakes the waiters on the half of the word that contains our bit. */
static void vgpu__wake_half(const struct vgpu_tenant *tenant) {
  int kept = errno;
  const uint32_t *half = (const uint32_t *)(const void *)&tenant->express.page->busy + (tenant->express.index >= 32);
  syscall(SYS_futex, half, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
  errno = kept;
}

/*
 * Announces work, after slot.busy has counted it. So a thread that clears the bit at the same time sees the count and
 * sets the bit again. At a shut gate nothing is announced, since this process is held back itself.
 */
void vgpu__express_announce(struct vgpu_tenant *tenant) {
  if (!vgpu__owns_bit(tenant) || !vgpu__passes(tenant)) return;
  uint64_t now = vgpu__now_ns();
  vgpu__express_beat(tenant, now); /* beat first: a bit with an old beat does not count */
  vgpu__count_return(tenant, now);
  if (vgpu__is_set(tenant)) return;
  __atomic_fetch_or(&tenant->express.page->busy, tenant->express.bit, __ATOMIC_SEQ_CST);
  if (LOAD(tenant->express.page->watched) != 0) vgpu__wake_half(tenant); /* running offline kernels are stopped */
}

static void vgpu__withdraw(struct vgpu_tenant *tenant) {
  struct shm_express *page = tenant->express.page;
  if ((__atomic_fetch_and(&page->busy, ~tenant->express.bit, __ATOMIC_SEQ_CST) & tenant->express.bit) == 0) return;
  if (__atomic_load_n(&tenant->slot->busy, __ATOMIC_SEQ_CST) != 0 && vgpu__passes(tenant)) {
    __atomic_fetch_or(&page->busy, tenant->express.bit, __ATOMIC_SEQ_CST);
    return;
  }
  vgpu__wake_half(tenant);
}

/* Nothing of this process is on the GPU any more. */
void vgpu__express_idle(struct vgpu_tenant *tenant) {
  if (!vgpu__owns_bit(tenant)) return;
  STORE(tenant->express.idle_since_ns, vgpu__now_ns());
  /* Nothing can follow soon, or nothing is likely to follow. */
  if (!vgpu__passes(tenant) || LOAD(tenant->express.returns) < RETURNS_TRUSTED) vgpu__withdraw(tenant);
}

/* Called by the monitor: sets or clears the bit as needed. Returns 0, or after how long to look again. */
uint64_t vgpu__express_tend(struct vgpu_tenant *tenant, uint64_t now) {
  if (!vgpu__owns_bit(tenant)) return 0;
  int busy = __atomic_load_n(&tenant->slot->busy, __ATOMIC_SEQ_CST) != 0, passes = vgpu__passes(tenant);
  if (busy && passes) { /* set it again if the seat cleared it because it took us for stopped */
    vgpu__express_beat(tenant, now);
    if (!vgpu__is_set(tenant)) __atomic_fetch_or(&tenant->express.page->busy, tenant->express.bit, __ATOMIC_SEQ_CST);
    return 0;
  }
  if (!vgpu__is_set(tenant)) return 0;
  vgpu__express_beat(tenant, now);
  if (busy) return STEP_NS; /* the gate is shut; work in flight drains */
  uint64_t linger_ns = vgpu__linger_ns(tenant), idle_ns = now - LOAD(tenant->express.idle_since_ns);
  if (passes && (int64_t)idle_ns < (int64_t)linger_ns) {
    uint64_t left = (int64_t)idle_ns < 0 ? STEP_NS : linger_ns - idle_ns;
    return left < STEP_NS ? STEP_NS : left;
  }
  vgpu__withdraw(tenant);
  return 0;
}

/* At the end of the process. */
void vgpu__express_leave(struct vgpu_tenant *tenant) {
  if (vgpu__owns_bit(tenant) && vgpu__is_set(tenant)) {
    STORE(tenant->express.page->beat_ns[tenant->express.index], 0);
    vgpu__withdraw(tenant);
  }
}
