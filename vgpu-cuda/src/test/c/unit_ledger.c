/* Tests of memory/ledger.c alone: each word that the protocol of docs/memory-ledger.md writes. */
#include "unit.h"

/* ---- what the ledger calls elsewhere ---- */
uint32_t vgpu__measure_pending, vgpu__tenants_used;
struct vgpu_tenant *vgpu__tenants[VGPU_TENANTS];
static int is_short, settled;
static uint64_t asked_bytes;

int vgpu__measure_is_short(const struct vgpu_tenant *of, int gpu, uint64_t more) {
  (void)of;
  (void)gpu;
  asked_bytes = more;
  return is_short;
}
void vgpu__measure_settle(void) { settled++; }

int vgpu__spot_has(const struct vgpu_spot *spot, const struct vgpu_tenant *of, int gpu) {
  (void)of;
  return spot->uuid[0] == '\0' || spot->uuid[0] == '0' + gpu;
}

struct vgpu_tenant *vgpu__tenant_next(unsigned *index) {
  return *index < vgpu__tenants_used ? vgpu__tenants[*index] : NULL;
}

/* ---- words ---- */
enum { UNIT = 256, LAST = 0xfffff };

static uint64_t word_of(uint64_t units, uint64_t slot, uint64_t seq) { return units << 28 | slot << 20 | seq; }
static uint64_t own_of(uint64_t units, uint64_t seq) { return units << 20 | seq; }

/* A lease of so many units; this process holds `own` of `all`. */
static void lease(uint64_t limit, uint64_t own, uint64_t all) {
  begin();
  grant.memory_limit = limit * UNIT;
  ledger.memory_word = word_of(all, OURS, 1);
  slots[OURS].memory_own = own_of(own, 1);
  vgpu__measure_pending = 0;
  vgpu__tenants[0] = &tenant;
  vgpu__tenants_used = 1;
}

/* This process's change number `seq` is complete, and left so many units to it and to the lease. */
static void holds(uint64_t own, uint64_t all, uint64_t seq) {
  IS(ledger.memory_word, word_of(all, OURS, seq));
  IS(slots[OURS].memory_own, own_of(own, seq));
  IS(slots[OURS].memory_seq, seq);
  unlocked();
}

static void test_whole_units(void) {
  lease(100, 0, 0);
  IS(vgpu__reserve_now(&tenant, 0, 1), 0);
  holds(1, 1, 2);
  IS(vgpu__reserve_now(&tenant, 0, UNIT), 0);
  holds(2, 2, 3);
  IS(vgpu__reserve_now(&tenant, 0, UNIT + 1), 0);
  holds(4, 4, 4);
  IS(slots[OURS].memory_delta, 2);
  IS(vgpu__lease_bytes(&tenant, 0), 4 * UNIT);
  IS(vgpu__reserve_now(&tenant, 0, 0), 0);
  holds(4, 4, 4);
  vgpu__give_back(&tenant, 0, UNIT + 1);
  holds(2, 2, 5);
  IS(slots[OURS].memory_delta, (uint64_t)-2);
  vgpu__give_back(&tenant, 0, 0);
  holds(2, 2, 5);
  IS(slots[OURS].denied, 0);
}

static void test_limit(void) {
  lease(10, 2, 6);
  IS(vgpu__reserve_now(&tenant, 0, 4 * UNIT), 0);
  holds(6, 10, 2);
  IS(vgpu__reserve_now(&tenant, 0, 1), (uint64_t)-1);
  IS(slots[OURS].denied, 1);
  IS(slots[OURS].memory_delta, 0);
  IS(ledger.memory_word, word_of(10, OURS, 2));
  IS(slots[OURS].memory_own, own_of(6, 2));
  unlocked();
  vgpu__give_back(&tenant, 0, UNIT);
  holds(5, 9, 3);
  IS(vgpu__reserve_now(&tenant, 0, UNIT), 0);
  holds(6, 10, 4);
  /* A limit that is no whole number of units. */
  lease(10, 0, 9);
  grant.memory_limit = 10 * UNIT - 1;
  IS(vgpu__reserve_now(&tenant, 0, 1), (uint64_t)-1);
  /* A lowered limit refuses more, and takes back what is given. */
  lease(1, 5, 5);
  IS(vgpu__reserve_now(&tenant, 0, 1), (uint64_t)-1);
  vgpu__give_back(&tenant, 0, UNIT);
  holds(4, 4, 2);
}

static void test_hugest(void) {
  const uint64_t most = UINT64_MAX >> 28;
  lease(0, 0, 0);
  grant.memory_limit = UINT64_MAX;
  IS(vgpu__reserve_now(&tenant, 0, UINT64_MAX), (uint64_t)-1);
  IS(vgpu__reserve_now(&tenant, 0, most * UNIT), (uint64_t)-1);
  IS(slots[OURS].denied, 2);
  IS(vgpu__reserve_now(&tenant, 0, (most - 1) * UNIT), 0);
  holds(most - 1, most - 1, 2);
}

/* Number 0 is used by no change. */
static void test_numbers_repeat(void) {
  lease(100, 7, 7);
  slots[OURS].memory_own = own_of(7, LAST);
  ledger.memory_word = word_of(7, OURS, LAST);
  slots[OURS].memory_done = own_of(41, LAST);
  IS(vgpu__reserve_now(&tenant, 0, UNIT), 0);
  holds(8, 8, 1);
  /* The receipts of the numbers before have another version now, whatever their number. */
  IS(slots[OURS].memory_done, own_of(42, 0));
  slots[OURS].memory_own = own_of(8, LAST - 1);
  slots[OURS].memory_done = own_of(42, 3);
  IS(vgpu__reserve_now(&tenant, 0, UNIT), 0);
  holds(9, 9, LAST);
  IS(slots[OURS].memory_done, own_of(42, 3));
}

/* A receipt of a change of the same number, 2^20 changes ago, is no receipt of this one. */
static void test_old_receipt(void) {
  lease(100, 0, 0);
  slots[OURS].memory_done = own_of(8, 2);
  IS(vgpu__reserve_now(&tenant, 0, UNIT), 0);
  holds(1, 1, 2);
  IS(slots[OURS].memory_done, own_of(9, 0));
  slots[OURS].memory_done = own_of(9, 2);
  IS(vgpu__reserve_now(&tenant, 0, UNIT), 0);
  IS(slots[OURS].memory_done, own_of(9, 2));
}

/* Before the word names another change, the change that it names has a receipt. */
static void test_helps(void) {
  lease(100, 0, 0);
  ledger.memory_word = word_of(20, OTHER, 77);
  slots[OTHER].memory_done = own_of(4, 76);
  IS(vgpu__reserve_now(&tenant, 0, UNIT), 0);
  holds(1, 21, 2);
  IS(slots[OTHER].memory_done, own_of(5, 77));
  /* One that is there is not written again. */
  ledger.memory_word = word_of(20, OTHER, 77);
  IS(vgpu__reserve_now(&tenant, 0, UNIT), 0);
  IS(slots[OTHER].memory_done, own_of(5, 77));
  /* A refused change has seen the word too. */
  grant.memory_limit = 0;
  ledger.memory_word = word_of(20, OTHER, 78);
  IS(vgpu__reserve_now(&tenant, 0, UNIT), (uint64_t)-1);
  IS(slots[OTHER].memory_done, own_of(6, 78));
  /* The first slot is the seat's. */
  ledger.memory_word = word_of(20, 0, 5);
  vgpu__give_back(&tenant, 0, UNIT);
  IS(slots[0].memory_done, own_of(1, 5));
}

static void test_helps_nobody(void) {
  lease(100, 0, 0);
  IS(vgpu__reserve_now(&tenant, 0, UNIT), 0);
  IS(slots[OURS].memory_done, 0);
  /* No change has number 0. */
  slots[OTHER].memory_done = own_of(4, 76);
  ledger.memory_word = word_of(20, OTHER, 0);
  IS(vgpu__reserve_now(&tenant, 0, UNIT), 0);
  IS(slots[OTHER].memory_done, own_of(4, 76));
  /* A hostile process names slots that do not exist. */
  for (uint64_t slot = SHM_SLOT_COUNT; slot < 256; slot++) {
    ledger.memory_word = word_of(20, slot, 9);
    IS(vgpu__reserve_now(&tenant, 0, UNIT), 0);
    IS(slots[slot].memory_done, 0);
  }
  slots[SHM_SLOT_COUNT - 1].memory_done = 0;
  ledger.memory_word = word_of(20, SHM_SLOT_COUNT - 1, 9);
  IS(vgpu__reserve_now(&tenant, 0, UNIT), 0);
  IS(slots[SHM_SLOT_COUNT - 1].memory_done, own_of(1, 9));
}

/* A hostile process may write any word: the units never go below zero. */
static void test_word_too_small(void) {
  lease(100, 5, 2);
  vgpu__give_back(&tenant, 0, 3 * UNIT);
  holds(2, 0, 2);
  IS(vgpu__reserve_now(&tenant, 0, 2 * UNIT), 0);
  holds(4, 2, 3);
  vgpu__give_back(&tenant, 0, 2 * UNIT);
  holds(2, 0, 4);
}

static void test_no_more_than_held(void) {
  lease(100, 4, 30);
  vgpu__give_back(&tenant, 0, 4 * UNIT);
  holds(0, 26, 2);
  vgpu__give_back(&tenant, 0, UNIT);
  holds(0, 26, 2);
  lease(100, 4, 30);
  vgpu__give_back(&tenant, 0, 10 * UNIT);
  holds(0, 26, 2);
}

/* What could not be written is given back with the next change. */
static void test_owed(void) {
  lease(100, 9, 30);
  tenant.owed_units[0] = 2;
  vgpu__give_back(&tenant, 0, 3 * UNIT);
  holds(4, 25, 2);
  IS(tenant.owed_units[0], 0);
}

static void test_revoked(void) {
  lease(100, 4, 4);
  IS(vgpu__refusal(&tenant), ABI_OUT_OF_MEMORY);
  grant.word = (uint32_t)SHM_GRANT_REVOKED;
  IS(vgpu__refusal(&tenant), ABI_NOT_PERMITTED);
  IS(vgpu__reserve_now(&tenant, 0, UNIT), (uint64_t)-1);
  IS(slots[OURS].denied, 1);
  IS(ledger.memory_word, word_of(4, OURS, 1));
  vgpu__give_back(&tenant, 0, UNIT);
  holds(3, 3, 2);
}

static void test_modes(void) {
  for (uint32_t mode = VGPU_UNATTACHED; mode <= VGPU_DROPPED; mode++) {
    lease(100, 4, 4);
    tenant.mode = mode;
    IS(vgpu__reserve_now(&tenant, 0, UNIT), mode == VGPU_DROPPED ? (uint64_t)-1 : 0);
    IS(ledger.memory_word, word_of(mode == VGPU_ATTACHED ? 5 : 4, OURS, mode == VGPU_ATTACHED ? 2 : 1));
    IS(slots[OURS].denied, mode == VGPU_DROPPED);
    uint64_t before = ledger.memory_word;
    vgpu__give_back(&tenant, 0, UNIT);
    IS(ledger.memory_word, mode == VGPU_ATTACHED ? word_of(4, OURS, 3) : before);
  }
}

static void test_part(void) {
  lease(10, 0, 4);
  grant.memory_limit = 10 * UNIT + 100;
  IS(vgpu__reserve_part(&tenant, 0, 100 * UNIT), 6 * UNIT);
  holds(6, 10, 2);
  IS(vgpu__reserve_part(&tenant, 0, UNIT), 0);
  IS(slots[OURS].denied, 0);
  lease(10, 0, 4);
  IS(vgpu__reserve_part(&tenant, 0, 6 * UNIT), 6 * UNIT);
  lease(10, 0, 4);
  IS(vgpu__reserve_part(&tenant, 0, 300), 300);
  holds(2, 6, 2);
  IS(vgpu__reserve_part(&tenant, 0, 1), 1);
  holds(3, 7, 3);
  /* The limit was lowered meanwhile. */
  lease(3, 4, 4);
  IS(vgpu__reserve_part(&tenant, 0, UNIT), 0);
  lease(10, 0, 4);
  grant.word = (uint32_t)SHM_GRANT_REVOKED;
  IS(vgpu__reserve_part(&tenant, 0, UNIT), 0);
  IS(ledger.memory_word, word_of(4, OURS, 1));
}

/* Memory that is measured too late is owed: the next frees pay for it. */
static void test_debt(void) {
  lease(100, 8, 8);
  vgpu__owe(&tenant, 0, 9 * UNIT);
  vgpu__owe(&tenant, 0, 4 * UNIT + 1);
  IS(tenant.debt_units[0], 5);
  unlocked();
  vgpu__give_back(&tenant, 0, 3 * UNIT);
  IS(ledger.memory_word, word_of(8, OURS, 1));
  IS(tenant.debt_units[0], 2);
  IS(tenant.overhead_units[0], 3);
  vgpu__give_back(&tenant, 0, 4 * UNIT);
  holds(6, 6, 2);
  IS(tenant.debt_units[0], 0);
  IS(tenant.overhead_units[0], 5);
  /* One unit is a debt too. */
  lease(100, 8, 8);
  vgpu__owe(&tenant, 0, 1);
  vgpu__give_back(&tenant, 0, 3 * UNIT);
  holds(6, 6, 2);
  IS(tenant.debt_units[0], 0);
  IS(tenant.overhead_units[0], 1);
}

static void test_debt_paid(void) {
  lease(10, 8, 8);
  vgpu__owe(&tenant, 0, 5 * UNIT);
  IS(vgpu__pay_owed(), 1);
  holds(10, 10, 2);
  IS(tenant.debt_units[0], 3);
  IS(tenant.overhead_units[0], 2);
  IS(vgpu__pay_owed(), 1);
  holds(10, 10, 2);
  grant.memory_limit = 100 * UNIT;
  IS(vgpu__pay_owed(), 0);
  holds(13, 13, 3);
  IS(tenant.debt_units[0], 0);
  IS(tenant.overhead_units[0], 5);
  IS(vgpu__pay_owed(), 0);
  holds(13, 13, 3);
}

static void test_overhead(void) {
  lease(100, 20, 30);
  tenant.overhead_units[0] = 6;
  IS(vgpu__overhead_less(&tenant, 0, 2 * UNIT + UNIT - 1), 2 * UNIT);
  holds(18, 28, 2);
  IS(tenant.overhead_units[0], 4);
  IS(vgpu__overhead_less(&tenant, 0, 4 * UNIT), 4 * UNIT);
  holds(14, 24, 3);
  IS(vgpu__overhead_less(&tenant, 0, 4 * UNIT), 0);
  holds(14, 24, 3);
  tenant.overhead_units[0] = 3;
  IS(vgpu__overhead_less(&tenant, 0, 9 * UNIT), 3 * UNIT);
  holds(11, 21, 4);
  IS(tenant.overhead_units[0], 0);
}

static void test_overhead_ends(void) {
  static struct vgpu_tenant second;
  lease(100, 20, 30);
  second = tenant;
  second.debt_units[0] = 1;
  tenant.debt_units[0] = 4;
  tenant.overhead_units[0] = 6;
  vgpu__tenants[1] = &second;
  vgpu__tenants_used = 2;
  vgpu__overhead_end(&(struct vgpu_spot){.uuid = ""});
  holds(14, 24, 2);
  IS(tenant.debt_units[0], 0);
  IS(tenant.overhead_units[0], 0);
  IS(second.debt_units[0], 0);
}

static void test_gives_back_by_tenant(void) {
  static struct vgpu_sums sums;
  lease(100, 20, 30);
  memset(&sums, 0, sizeof sums);
  sums.bytes[0][0] = 2 * UNIT;
  vgpu__give_back_all(&sums);
  holds(18, 28, 2);
  vgpu__tenants[0] = NULL;
  vgpu__tenants[VGPU_TENANTS - 1] = &tenant;
  sums.bytes[0][0] = 0;
  sums.bytes[VGPU_TENANTS - 1][0] = 3 * UNIT;
  vgpu__give_back_all(&sums);
  holds(15, 25, 3);
  vgpu__tenants[VGPU_TENANTS - 1] = NULL;
}

/* A process makes one change at a time, whatever its threads do. */
static void test_one_change_at_a_time(void) {
  lease(100, 20, 30);
  HELD(tenant.ledger_lock, vgpu__reserve_now(&tenant, 0, UNIT));
  HELD(tenant.ledger_lock, vgpu__give_back(&tenant, 0, UNIT));
  HELD(tenant.ledger_lock, vgpu__owe(&tenant, 0, UNIT));
  HELD(tenant.ledger_lock, vgpu__overhead_less(&tenant, 0, UNIT));
  tenant.debt_units[0] = 0;
  HELD(tenant.ledger_lock, vgpu__pay_owed());
  holds(20, 30, 3);
}

/* A measurement that is due comes first where the quota is short. */
static void test_measures_first(void) {
  lease(100, 0, 0);
  settled = is_short = 0;
  IS(vgpu__reserve(&tenant, 0, UNIT), 0);
  vgpu__measure_pending = 1;
  IS(vgpu__reserve(&tenant, 0, 7 * UNIT), 0);
  IS(asked_bytes, 7 * UNIT);
  IS(settled, 0);
  is_short = 1;
  IS(vgpu__reserve(&tenant, 0, UNIT), 0);
  IS(settled, 1);
  vgpu__measure_pending = 0;
  IS(vgpu__reserve(&tenant, 0, UNIT), 0);
  IS(settled, 1);
  holds(10, 10, 5);
  grant.memory_limit = 0;
  IS(vgpu__reserve(&tenant, 0, UNIT), (uint64_t)-1);
}

/* ---- an account for each GPU ---- */

/* This process's change number `seq` on a further GPU is complete, and left so many units there. */
static void holds_on(int gpu, uint64_t own, uint64_t all, uint64_t seq) {
  IS(ledger.memory_words[gpu - 1], word_of(all, OURS, seq));
  IS(slots[OURS].memory_owns[gpu - 1], own_of(own, seq));
  IS(slots[OURS].memory_seq, (uint64_t)gpu << 20 | seq);
  unlocked();
}

static void lease_of(uint32_t gpus, uint64_t limit) {
  lease(limit, 3, 4);
  tenant.gpus = gpus;
}

static void test_accounts(void) {
  for (int gpu = 1; gpu < VGPU_GPUS; gpu++) {
    lease_of(VGPU_GPUS, 10);
    IS(vgpu__reserve_now(&tenant, gpu, 10 * UNIT), 0);
    holds_on(gpu, 10, 10, 1);
    IS(vgpu__reserve_now(&tenant, gpu, 1), (uint64_t)-1);
    IS(vgpu__lease_bytes(&tenant, gpu), 10 * UNIT);
    IS(vgpu__reserve_part(&tenant, gpu, UNIT), 0);
    vgpu__give_back(&tenant, gpu, 4 * UNIT);
    holds_on(gpu, 6, 6, 2);
    IS(vgpu__reserve_part(&tenant, gpu, 99 * UNIT), 4 * UNIT);
    /* The first GPU's account is as it was, and takes its own number. */
    IS(ledger.memory_word, word_of(4, OURS, 1));
    IS(slots[OURS].memory_own, own_of(3, 1));
    IS(vgpu__reserve_now(&tenant, 0, UNIT), 0);
    holds(4, 5, 2);
    for (int other = 1; other < VGPU_GPUS; other++) IS(vgpu__lease_bytes(&tenant, other), other == gpu ? 10 * UNIT : 0);
  }
}

static void test_receipts_by_account(void) {
  lease_of(2, 100);
  ledger.memory_words[0] = word_of(20, OTHER, 77);
  slots[OTHER].memory_done = own_of(4, 77);
  slots[OTHER].memory_dones[0] = own_of(6, 76);
  IS(vgpu__reserve_now(&tenant, 1, UNIT), 0);
  holds_on(1, 1, 21, 1);
  IS(slots[OTHER].memory_dones[0], own_of(7, 77));
  IS(slots[OTHER].memory_done, own_of(4, 77));
  slots[OURS].memory_done = own_of(8, 2);
  slots[OURS].memory_dones[0] = own_of(9, 2);
  IS(vgpu__reserve_now(&tenant, 1, UNIT), 0);
  IS(slots[OURS].memory_done, own_of(8, 2));
  IS(slots[OURS].memory_dones[0], own_of(10, 0));
}

/* Memory on a GPU that is not the lease's is refused, and nothing of it is given back. */
static void test_no_account(void) {
  lease_of(2, 100);
  IS(vgpu__reserve_now(&tenant, VGPU_NO_GPU, UNIT), (uint64_t)-1);
  IS(slots[OURS].denied, 1);
  vgpu__give_back(&tenant, VGPU_NO_GPU, UNIT);
  IS(vgpu__lease_bytes(&tenant, VGPU_NO_GPU), 0);
  IS(ledger.memory_word, word_of(4, OURS, 1));
}

static void test_debts_by_account(void) {
  static struct vgpu_sums sums;
  lease_of(2, 10);
  IS(vgpu__reserve_now(&tenant, 1, 9 * UNIT), 0);
  vgpu__owe(&tenant, 1, 4 * UNIT);
  IS(tenant.debt_units[0], 0);
  vgpu__give_back(&tenant, 0, UNIT);
  holds(2, 3, 2);
  vgpu__give_back(&tenant, 1, 2 * UNIT);
  IS(vgpu__lease_bytes(&tenant, 1), 9 * UNIT);
  IS(tenant.debt_units[1], 2);
  IS(vgpu__pay_owed(), 1);
  holds_on(1, 10, 10, 2);
  IS(tenant.overhead_units[1], 3);
  IS(vgpu__overhead_less(&tenant, 1, UNIT), UNIT);
  holds_on(1, 9, 9, 3);
  vgpu__overhead_end(&(struct vgpu_spot){.uuid = "0"});
  holds_on(1, 9, 9, 3);
  vgpu__overhead_end(&(struct vgpu_spot){.uuid = "1"});
  holds_on(1, 7, 7, 4);
  IS(tenant.debt_units[1], 0);
  memset(&sums, 0, sizeof sums);
  sums.bytes[0][0] = UNIT;
  sums.bytes[0][1] = 3 * UNIT;
  vgpu__give_back_all(&sums);
  IS(ledger.memory_word, word_of(2, OURS, 3));
  holds_on(1, 4, 4, 5);
}

int main(void) {
  test_whole_units();
  test_limit();
  test_hugest();
  test_numbers_repeat();
  test_old_receipt();
  test_helps();
  test_helps_nobody();
  test_word_too_small();
  test_no_more_than_held();
  test_owed();
  test_revoked();
  test_modes();
  test_part();
  test_debt();
  test_debt_paid();
  test_overhead();
  test_overhead_ends();
  test_gives_back_by_tenant();
  test_one_change_at_a_time();
  test_measures_first();
  test_accounts();
  test_receipts_by_account();
  test_no_account();
  test_debts_by_account();
  printf("%s ledger\n", failures == 0 ? "ok  " : "FAIL");
  return failures != 0;
}
