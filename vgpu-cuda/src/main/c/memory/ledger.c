/*
 * The lease's memory: one word for all its processes, changed by compare-and-swap; on several GPUs one word for each.
 * `gpu` is the number of the account (VGPU_NO_GPU: the lease has none there). Before a change this process writes its
 * intent into its slot; afterwards a receipt is written there. So the seat knows how much a dead process held, wherever
 * it died. docs/memory-ledger.md has the proof.
 */
#include "memory.h"

/*
 * SLOT_COUNT contending processes need far fewer tries. The limit protects against a hostile process of the same lease.
 */
enum { TRIES = 1 << 20 };

static uint64_t vgpu__units(uint64_t bytes) { return bytes / SHM_MEMORY_UNIT + (bytes % SHM_MEMORY_UNIT != 0); }

/*
 * The ledgers that this thread holds, by their tenants' indices. Whoever holds all of them charges by the same functions
 * as everybody else.
 */
static __thread uint64_t held __attribute__((tls_model("initial-exec")));

/* Returns the argument of vgpu__let_go. */
static int vgpu__hold(struct vgpu_tenant *tenant) {
  uint64_t bit = (uint64_t)1 << tenant->index;
  if ((held & bit) != 0) return 0;
  vgpu__lock(&tenant->ledger_lock);
  held |= bit;
  return 1;
}

static void vgpu__let_go(struct vgpu_tenant *tenant, int held_here) {
  if (!held_here) return;
  held &= ~((uint64_t)1 << tenant->index);
  vgpu__unlock(&tenant->ledger_lock);
}

uint64_t vgpu__ledgers_hold(void) {
  uint64_t here = 0;
  for (uint32_t i = 0; i < LOAD_ACQUIRE(vgpu__tenants_used); i++) here |= (uint64_t)vgpu__hold(vgpu__tenants[i]) << i;
  return here;
}

void vgpu__ledgers_let_go(uint64_t here) {
  for (uint32_t i = VGPU_TENANTS; i > 0; i--) {
    if ((here >> (i - 1) & 1) != 0) vgpu__let_go(vgpu__tenants[i - 1], 1);
  }
}

/* Makes sure that the last change seen in `word` has a receipt in its owner's slot. Returns 0: read the word again. */
static int vgpu__help(const struct vgpu_tenant *tenant, int gpu, uint64_t word) {
  uint64_t who = word >> SHM_MEMORY_SLOT_SHIFT & SHM_MEMORY_SLOT_MASK;
  uint64_t seq = word & SHM_MEMORY_SEQ_MASK;
  if (who == tenant->slot_number || who >= SHM_SLOT_COUNT || seq == 0) return 1;
  uint64_t *done = vgpu__done_of(&tenant->slots[who], gpu);
  uint64_t seen = __atomic_load_n(done, __ATOMIC_SEQ_CST);
  if ((seen & SHM_MEMORY_SEQ_MASK) == seq) return 1;
  if (__atomic_load_n(vgpu__word_of(tenant->ledger, gpu), __ATOMIC_SEQ_CST) != word) return 0;
  uint64_t next = ((seen >> SHM_MEMORY_SLOT_SHIFT) + 1) << SHM_MEMORY_SLOT_SHIFT | seq;
  /*
   * The CAS fails if a late helper of an older change has overwritten the receipt. Only a receipt that was seen or
   * written counts.
   */
  return __atomic_compare_exchange_n(done, &seen, next, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/*
 * Sequence numbers repeat after 2^20 changes. An old receipt, or one that a helper writes late, must not pass for the
 * receipt of the coming change.
 */
static void vgpu__clear_receipt(uint64_t *done, uint64_t seq) {
  uint64_t seen = __atomic_load_n(done, __ATOMIC_SEQ_CST);
  for (int i = 0; i < 4 && ((seen & SHM_MEMORY_SEQ_MASK) == seq || seq == 1); i++) {
    uint64_t next = ((seen >> SHM_MEMORY_SLOT_SHIFT) + 1) << SHM_MEMORY_SLOT_SHIFT;
    if (__atomic_compare_exchange_n(done, &seen, next, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) return;
  }
}

/* Adds delta to the word unless that exceeds the quota. Returns 0 or -1. ledger_lock held. */
static int vgpu__change(struct vgpu_tenant *tenant, int gpu, int64_t delta) {
  struct shm_slot *slot = tenant->slot;
  uint64_t *ours = vgpu__own_of(slot, gpu), own = __atomic_load_n(ours, __ATOMIC_RELAXED);
  uint64_t seq = (own + 1) & SHM_MEMORY_SEQ_MASK;
  if (seq == 0) seq = 1;
  vgpu__clear_receipt(vgpu__done_of(slot, gpu), seq);
  STORE(slot->memory_delta, delta);
  STORE_RELEASE(slot->memory_seq, (uint64_t)gpu << SHM_MEMORY_GPU_SHIFT | seq);
  uint64_t *word = vgpu__word_of(tenant->ledger, gpu);
  for (int i = 0; i < TRIES; i++) {
    uint64_t seen = __atomic_load_n(word, __ATOMIC_SEQ_CST);
    if (!vgpu__help(tenant, gpu, seen)) continue;
    int64_t units = (int64_t)(seen >> SHM_MEMORY_UNITS_SHIFT) + delta;
    if (units < 0) units = 0; /* only after a hostile write; the word cannot be negative */
    if (delta > 0 && (uint64_t)units > LOAD_ACQUIRE(tenant->grant->memory_limit) / SHM_MEMORY_UNIT) break;
    uint64_t next = (uint64_t)units << SHM_MEMORY_UNITS_SHIFT | (uint64_t)tenant->slot_number << SHM_MEMORY_SLOT_SHIFT |
                    seq;
    if (__atomic_compare_exchange_n(word, &seen, next, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
      uint64_t held = (own >> SHM_MEMORY_SLOT_SHIFT) + (uint64_t)delta;
      STORE_RELEASE(*ours, held << SHM_MEMORY_SLOT_SHIFT | seq);
      return 0;
    }
  }
  STORE(slot->memory_delta, 0);
  return -1;
}

int vgpu__reserve_now(struct vgpu_tenant *tenant, int gpu, uint64_t bytes) {
  if (UNLIKELY(!vgpu__is_charged(tenant))) return 0;
  uint64_t units = vgpu__units(bytes);
  int refused = LOAD(tenant->mode) == VGPU_DROPPED || (LOAD_ACQUIRE(tenant->grant->word) & SHM_GRANT_REVOKED) != 0 ||
                units >= UINT64_MAX >> SHM_MEMORY_UNITS_SHIFT || gpu < 0;
  if (!refused && units > 0) {
    int here = vgpu__hold(tenant);
    refused = vgpu__change(tenant, gpu, (int64_t)units) != 0;
    vgpu__let_go(tenant, here);
  }
  if (refused) ADD(tenant->slot->denied, 1);
  return refused ? -1 : 0;
}

int vgpu__reserve(struct vgpu_tenant *tenant, int gpu, uint64_t bytes) {
  if (UNLIKELY(LOAD(vgpu__measure_pending)) && vgpu__measure_is_short(tenant, gpu, bytes)) vgpu__measure_settle();
  return vgpu__reserve_now(tenant, gpu, bytes);
}

uint64_t vgpu__reserve_part(struct vgpu_tenant *tenant, int gpu, uint64_t bytes) {
  for (int tries = 0; tries < 64; tries++) {
    uint64_t quota = LOAD_ACQUIRE(tenant->grant->memory_limit), used = vgpu__lease_bytes(tenant, gpu);
    uint64_t room = (used < quota ? quota - used : 0) / SHM_MEMORY_UNIT * SHM_MEMORY_UNIT;
    uint64_t part = bytes < room ? bytes : room;
    if (part == 0 || vgpu__reserve_now(tenant, gpu, part) == 0) return part;
  }
  return 0;
}

/* ledger_lock held. */
static void vgpu__return_units(struct vgpu_tenant *tenant, int gpu, uint64_t units) {
  uint64_t held = LOAD(*vgpu__own_of(tenant->slot, gpu)) >> SHM_MEMORY_SLOT_SHIFT;
  units += tenant->owed_units[gpu];
  if (units > held) units = held;
  if (units > 0) tenant->owed_units[gpu] = vgpu__change(tenant, gpu, -(int64_t)units) == 0 ? 0 : units;
}

/*
 * Keeps up to `units` charged to pay the debt: memory that contexts and modules hold already. Returns the units kept.
 * ledger_lock held.
 */
static uint64_t vgpu__pay(struct vgpu_tenant *tenant, int gpu, uint64_t units) {
  uint64_t debt = tenant->debt_units[gpu], paid = units < debt ? units : debt;
  STORE(tenant->debt_units[gpu], debt - paid);
  STORE(tenant->overhead_units[gpu], tenant->overhead_units[gpu] + paid);
  return paid;
}

void vgpu__give_back(struct vgpu_tenant *tenant, int gpu, uint64_t bytes) {
  uint64_t units = vgpu__units(bytes);
  if (LOAD(tenant->mode) != VGPU_ATTACHED || units == 0 || gpu < 0) return;
  int here = vgpu__hold(tenant);
  if (UNLIKELY(tenant->debt_units[gpu] != 0)) units -= vgpu__pay(tenant, gpu, units);
  vgpu__return_units(tenant, gpu, units);
  vgpu__let_go(tenant, here);
}

void vgpu__owe(struct vgpu_tenant *tenant, int gpu, uint64_t bytes) {
  int here = vgpu__hold(tenant);
  STORE(tenant->debt_units[gpu], vgpu__units(bytes));
  vgpu__let_go(tenant, here);
}

int vgpu__pay_account(struct vgpu_tenant *tenant, int gpu) {
  int here = vgpu__hold(tenant); /* nobody sees the memory charged and owed as well */
  vgpu__pay(tenant, gpu, vgpu__units(vgpu__reserve_part(tenant, gpu, LOAD(tenant->debt_units[gpu]) * SHM_MEMORY_UNIT)));
  int owed = tenant->debt_units[gpu] != 0;
  vgpu__let_go(tenant, here);
  return owed;
}

int vgpu__pay_owed(void) {
  int owed = 0;
  struct vgpu_tenant *tenant;
  for (unsigned i = 0; (tenant = vgpu__tenant_next(&i)) != NULL; i++) {
    for (int gpu = 0; gpu < vgpu__gpus(tenant); gpu++) owed |= vgpu__pay_account(tenant, gpu);
  }
  return owed;
}

uint64_t vgpu__overhead_less(struct vgpu_tenant *tenant, int gpu, uint64_t bytes) {
  int here = vgpu__hold(tenant);
  uint64_t units = bytes / SHM_MEMORY_UNIT, overhead = tenant->overhead_units[gpu];
  if (units > overhead) units = overhead;
  STORE(tenant->overhead_units[gpu], overhead - units);
  vgpu__return_units(tenant, gpu, units);
  vgpu__let_go(tenant, here);
  return units * SHM_MEMORY_UNIT;
}

void vgpu__overhead_end(const struct vgpu_spot *spot) {
  struct vgpu_tenant *tenant;
  for (unsigned i = 0; (tenant = vgpu__tenant_next(&i)) != NULL; i++) {
    for (int gpu = 0; gpu < vgpu__gpus(tenant); gpu++) {
      if (!vgpu__spot_has(spot, tenant, gpu)) continue;
      vgpu__owe(tenant, gpu, 0);
      vgpu__overhead_less(tenant, gpu, UINT64_MAX);
    }
  }
}

uint64_t vgpu__lease_bytes(const struct vgpu_tenant *tenant, int gpu) {
  return gpu < 0 ? 0 : (LOAD_ACQUIRE(*vgpu__word_of(tenant->ledger, gpu)) >> SHM_MEMORY_UNITS_SHIFT) * SHM_MEMORY_UNIT;
}

void vgpu__give_back_all(const struct vgpu_sums *sums) {
  for (unsigned i = 0; i < VGPU_TENANTS; i++) {
    struct vgpu_tenant *tenant = vgpu__tenants[i];
    if (sums->host[i] != 0) ADD(tenant->slot->host_bytes, -sums->host[i]);
    for (int gpu = 0; tenant != NULL && gpu < vgpu__gpus(tenant); gpu++) {
      if (sums->bytes[i][gpu] != 0) vgpu__give_back(tenant, gpu, sums->bytes[i][gpu]);
    }
  }
}

abi_result vgpu__refusal(const struct vgpu_tenant *tenant) {
  return (LOAD_ACQUIRE(tenant->grant->word) & SHM_GRANT_REVOKED) != 0 ? ABI_NOT_PERMITTED : ABI_OUT_OF_MEMORY;
}
