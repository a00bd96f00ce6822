/* Tests of turn/gate.c alone, on a clock that moves only when the gate waits: nothing in them depends on the machine. */
#include "unit.h"

enum { MS = NS_PER_MS };

/* ---- what the gate calls elsewhere ---- */
static uint64_t now, slept_ns, longest_ns, stopped_ns;
static unsigned sleeps, wakes, wants, waits;
static int is_silent;
static void (*meanwhile)(void); /* what happens while the gate waits */
static uint32_t seat_thread;
static unsigned passed_on;
static const uint32_t RUNS = 17;
#define ENDED ((uint32_t)SHM_SEAT_THREAD_ENDED)

uint64_t vgpu__now_ns(void) { return now; }

void vgpu__sleep_ns(uint64_t ns) {
  sleeps++;
  slept_ns += ns;
  if (ns > longest_ns) longest_ns = ns;
  now += ns;
}

void vgpu__words_add(struct vgpu_words *words, const uint32_t *at) {
  words->at[words->count] = at;
  words->seen[words->count++] = *at;
}

void vgpu__words_wait(const struct vgpu_words *words, uint64_t timeout_ns, uint64_t poll_ns) {
  CHECK(words->count > 0 && words->at[0] == &grant.word && words->seen[0] == grant.word, "waits for another word");
  IS(words->count, seat_thread != 0 && seat_thread != ENDED ? 2 : 1);
  CHECK(words->count == 1 || (words->at[1] == &seat_thread && words->seen[1] == seat_thread), "not for the seat's end");
  CHECK(timeout_ns > 0 && timeout_ns <= 10 * MS, "waits for %llu ns", (unsigned long long)timeout_ns);
  IS(poll_ns, timeout_ns);
  IS(slots[OURS].waiting, 1);
  IS(slots[OURS].heartbeat_ns, now);
  waits++;
  now += MS;
  if (meanwhile != NULL) meanwhile();
}

void vgpu__monitor_wake(void) { wakes++; }

void vgpu__seat_send(struct vgpu_tenant *of, uint32_t type) {
  CHECK(of == &tenant && type == SHM_MESSAGE_WANT, "another message");
  wants++;
}

int vgpu__seat_is_silent(struct vgpu_tenant *of, uint64_t at) {
  CHECK(of == &tenant && at == now, "asked about another time");
  return is_silent;
}

const uint32_t *vgpu__seat_thread(const struct vgpu_tenant *of) {
  CHECK(of == &tenant, "another tenant");
  return seat_thread == 0 ? NULL : &seat_thread;
}

int vgpu__seat_has_ended(const struct vgpu_tenant *of) {
  CHECK(of == &tenant, "another tenant");
  return seat_thread == ENDED;
}

void vgpu__seat_pass_on_end(const struct vgpu_tenant *of) {
  CHECK(of == &tenant, "another tenant");
  passed_on++;
}

uint64_t vgpu__level2_stopped_ns(uint64_t from_ns, uint64_t to_ns) {
  CHECK(from_ns < to_ns, "an empty stretch");
  return stopped_ns;
}

static void lease(void) {
  begin();
  now = 1000 * (uint64_t)MS;
  slept_ns = longest_ns = stopped_ns = 0;
  sleeps = wakes = wants = waits = 0;
  is_silent = 0;
  meanwhile = NULL;
  seat_thread = 0;
  passed_on = 0;
}

/* ---- waiting at the gate ---- */
static void test_open(void) {
  lease();
  IS(vgpu__gate_wait(&tenant), ABI_SUCCESS);
  IS(waits, 0);
  IS(wants, 0);
  IS(wakes, 1);
  IS(slots[OURS].waiting, 0);
  IS(slots[OURS].waited_ns, 0);
}

static void test_revoked(void) {
  lease();
  grant.word = (uint32_t)SHM_GRANT_REVOKED;
  IS(vgpu__gate_wait(&tenant), ABI_NOT_PERMITTED);
  grant.word = (uint32_t)(SHM_GRANT_REVOKED | SHM_GRANT_OPEN);
  IS(vgpu__gate_wait(&tenant), ABI_NOT_PERMITTED);
  IS(waits, 0);
  IS(slots[OURS].waiting, 0);
}

static void opens_after_100(void) {
  if (waits == 100) grant.word |= (uint32_t)SHM_GRANT_OPEN;
}

/* The seat is asked at once, and reminded a few times: the message may be lost. */
static void test_shut(void) {
  lease();
  grant.word = 0;
  slots[OURS].waited_ns = 7;
  meanwhile = opens_after_100;
  IS(vgpu__gate_wait(&tenant), ABI_SUCCESS);
  IS(waits, 100);
  IS(slots[OURS].waiting, 0);
  IS(slots[OURS].waited_ns, 7 + 100 * (uint64_t)MS);
  CHECK(wants >= 4 && wants <= 6, "asked %u times in 100 ms", wants);
}

static void ends_after_5(void) {
  if (waits == 5) grant.word = (uint32_t)SHM_GRANT_REVOKED;
}

static void test_revoked_while_shut(void) {
  lease();
  grant.word = 0;
  meanwhile = ends_after_5;
  IS(vgpu__gate_wait(&tenant), ABI_NOT_PERMITTED);
  IS(waits, 5);
  IS(wants, 1);
}

static void seat_ends(void) {
  if (waits < 2) return;
  seat_thread = ENDED;
  is_silent = 1;
}

/* The seat's thread ends: the process goes on at once by itself, and wakes the lease's other waiting threads. */
static void test_ended_seat(void) {
  lease();
  grant.word = 0;
  seat_thread = RUNS;
  meanwhile = seat_ends;
  IS(vgpu__gate_wait(&tenant), ABI_SUCCESS);
  IS(waits, 2);
  IS(passed_on, 1);
  IS(tenant.autonomous, 1);
  IS(slots[OURS].waiting, 0);
  /* The next to come finds it ended. */
  tenant.autonomous = 0;
  IS(vgpu__gate_wait(&tenant), ABI_SUCCESS);
  IS(waits, 2);
  IS(passed_on, 2);
  IS(tenant.autonomous, 1);
  unlocked();
}

static void opens_later(void) {
  if (waits == 20) grant.word |= (uint32_t)SHM_GRANT_OPEN;
  if (waits == 2) seat_thread = ENDED;
}

/* While memory is not back yet, the end is passed on once, and the gate sleeps as it does otherwise. */
static void test_ended_seat_while_moved(void) {
  lease();
  grant.word = 0;
  seat_thread = RUNS;
  slots[OURS].moved_bytes = 1;
  is_silent = 1;
  meanwhile = opens_later;
  IS(vgpu__gate_wait(&tenant), ABI_SUCCESS);
  IS(waits, 20);
  IS(passed_on, 1);
  IS(tenant.autonomous, 0);
  unlocked();
}

/* Nobody opens the gate any more: after 5 ms without a seat the process goes on by itself. */
static void test_silent_seat(void) {
  lease();
  grant.word = 0;
  is_silent = 1;
  IS(vgpu__gate_wait(&tenant), ABI_SUCCESS);
  IS(waits, 6);
  IS(tenant.autonomous, 1);
  IS(slots[OURS].autonomous, 1);
  IS(slots[OURS].waiting, 0);
  IS(slots[OURS].waited_ns, 6 * (uint64_t)MS);
  /* And does not wait again. */
  IS(vgpu__gate_wait(&tenant), ABI_SUCCESS);
  IS(waits, 6);
  unlocked();
}

static void opens_after_200(void) {
  if (waits == 200) grant.word |= (uint32_t)SHM_GRANT_OPEN;
}

static void test_late_seat(void) {
  lease();
  grant.word = 0;
  meanwhile = opens_after_200;
  IS(vgpu__gate_wait(&tenant), ABI_SUCCESS);
  IS(waits, 200);
  IS(tenant.autonomous, 0);
}

static void moves_back_after_50(void) {
  if (waits == 50) slots[OURS].moved_bytes = 0;
}

/* Kernels cannot use memory on the host. */
static void test_memory_on_the_host(void) {
  lease();
  grant.word = 0;
  is_silent = 1;
  slots[OURS].moved_bytes = 1;
  meanwhile = moves_back_after_50;
  IS(vgpu__gate_wait(&tenant), ABI_SUCCESS);
  IS(waits, 50);
  IS(tenant.autonomous, 1);
}

/* ---- the pace without a seat ---- */
static void test_autonomy_is_told(void) {
  lease();
  slots[OTHER].gpu_ns = 30;
  slots[SHM_SLOT_COUNT - 1].gpu_ns = 4;
  slots[1].gpu_ns = 500;
  slots[0].gpu_ns = 6000; /* the seat's own: what ended processes used */
  slots[SHM_SLOT_COUNT].gpu_ns = 70000;
  vgpu__gate_set_autonomous(&tenant, 1);
  IS(tenant.autonomous, 1);
  IS(slots[OURS].autonomous, 1);
  IS(tenant.gate.pace_since_ns, now);
  IS(tenant.gate.pace_gpu_ns, 534);
  unlocked();
  now += 5;
  slots[OTHER].gpu_ns += 5;
  vgpu__gate_set_autonomous(&tenant, 1);
  IS(tenant.gate.pace_since_ns, now - 5);
  IS(tenant.gate.pace_gpu_ns, 534);
  vgpu__gate_set_autonomous(&tenant, 0);
  IS(tenant.autonomous, 0);
  IS(slots[OURS].autonomous, 0);
  unlocked();
}

/* How long the lease pauses after using so much of the GPU in so long. */
static uint64_t pause_of(uint32_t permille, uint64_t elapsed_ns, uint64_t used_ns) {
  lease();
  grant.entitled_permille = permille;
  slots[OTHER].gpu_ns = 77;
  vgpu__gate_set_autonomous(&tenant, 1);
  now += elapsed_ns;
  slots[OURS].gpu_ns = used_ns / 2;
  slots[OTHER].gpu_ns = 77 + used_ns - used_ns / 2;
  vgpu__gate_pace(&tenant);
  unlocked();
  CHECK(longest_ns <= 8 * MS, "slept for %llu ns at once", (unsigned long long)longest_ns);
  return slept_ns;
}

static void about(uint64_t value, uint64_t expected) {
  CHECK(value + 3000 >= expected && value <= expected + 3000, "is %llu, not %llu", (unsigned long long)value,
        (unsigned long long)expected);
}

/* A burst of 2 ms is free; then each nanosecond of the GPU is earned by the lease's part of the time. */
static void test_pace(void) {
  IS(pause_of(300, 0, 0), 0);
  IS(pause_of(300, 10 * MS, 5 * MS), 0);
  about(pause_of(300, 10 * MS, 8 * MS), 10 * (uint64_t)MS);
  about(pause_of(500, 10 * MS, 37 * MS), 60 * (uint64_t)MS);
  about(pause_of(1000, 10 * MS, 15 * MS), 3 * (uint64_t)MS);
  about(pause_of(2000, 10 * MS, 15 * MS), 3 * (uint64_t)MS);
  about(pause_of(1001, 10 * MS, 15 * MS), 3 * (uint64_t)MS);
  /* No part of the GPU still is a hundredth. */
  about(pause_of(0, 100 * MS, 4 * MS), 100 * (uint64_t)MS);
  about(pause_of(10, 100 * MS, 4 * MS), 100 * (uint64_t)MS);
  about(pause_of(11, 100 * MS, 4 * MS), 900000 * (uint64_t)1000 / 11);
}

/* More than all slots together can use is nonsense of another process: nobody waits for it. */
static void test_impossible_use(void) {
  CHECK(pause_of(1000, MS, MS * (uint64_t)SHM_SLOT_COUNT) > 0, "no pause");
  IS(pause_of(1000, MS, MS * (uint64_t)SHM_SLOT_COUNT + 1), 0);
  IS(pause_of(1000, MS, UINT64_MAX / 2), 0);
}

static void test_no_pace_with_a_seat(void) {
  lease();
  grant.entitled_permille = 10;
  now += MS;
  slots[OURS].gpu_ns = 50 * MS;
  vgpu__gate_pace(&tenant);
  IS(slept_ns, 0);
}

/* ---- charging GPU time ---- */
static uint64_t start_of; /* times are told from here on, in nanoseconds */

static uint64_t charge(uint64_t from, uint64_t to) {
  uint64_t before = slots[OURS].gpu_ns, added = vgpu__charge(&tenant, start_of + from, start_of + to);
  IS(slots[OURS].gpu_ns, before + added);
  unlocked();
  return added;
}

static void begin_charging(void) {
  lease();
  start_of = now - 100000;
  ledger.busy_until_ns = start_of;
}

static void test_charges_once(void) {
  begin_charging();
  IS(charge(0, 100), 100);
  IS(ledger.busy_until_ns, start_of + 100);
  IS(charge(50, 150), 50);
  IS(charge(0, 150), 0);
  IS(charge(60, 90), 0);
  IS(charge(150, 151), 1);
  IS(ledger.busy_until_ns, start_of + 151);
  IS(charge(151, 151), 0);
}

/* A stretch that was skipped is charged when work that ran in it ends, once. */
static void test_charges_gaps(void) {
  begin_charging();
  IS(charge(0, 100), 100);
  IS(charge(200, 300), 100); /* skips 100 to 200 */
  IS(charge(150, 250), 50);
  IS(charge(150, 250), 0);
  IS(charge(120, 180), 30);
  IS(charge(90, 300), 20);
  IS(charge(0, 300), 0);
  /* Work that ends last may have begun in a gap. */
  IS(charge(400, 500), 100);
  IS(charge(350, 600), 150);
  IS(charge(0, 600), 50);
  IS(charge(0, 600), 0);
}

static void test_remembers_the_last_gaps(void) {
  begin_charging();
  for (uint64_t i = 0; i < VGPU_GAPS + 1; i++) IS(charge(100 * i + 50, 100 * i + 100), 50);
  IS(charge(0, 100), 0); /* the oldest is forgotten */
  IS(charge(0, 100 * (VGPU_GAPS + 1)), 50 * VGPU_GAPS);
  IS(charge(0, 100 * (VGPU_GAPS + 1)), 0);
}

/* Work that skips nothing takes no gap's place. */
static void test_forgets_no_gap_without_need(void) {
  begin_charging();
  IS(charge(50, 100), 50);
  for (uint64_t i = 10; i < 30; i++) IS(charge(10 * i, 10 * i + 10), 10);
  IS(charge(0, 100), 50);
}

static void test_charges_no_future(void) {
  begin_charging();
  ledger.busy_until_ns = now - 10;
  IS(charge(99990, 100050), 10);
  IS(ledger.busy_until_ns, now);
  /* A hostile process of the lease claims the future: it does not make this one's work free. */
  ledger.busy_until_ns = now + 1000;
  IS(charge(99900, 99950), 50);
  IS(ledger.busy_until_ns, start_of + 99950);
  ledger.busy_until_ns = now;
  IS(charge(99900, 99950), 0);
}

/*
 * A hostile process of the lease writes any time, before each charge. At most it makes work that had ended by then free:
 * nothing is charged more than its own length, and a future time is not believed.
 */
static void test_charges_whatever_is_written(void) {
  begin_charging();
  const uint64_t written[] = {0,   1,       start_of - 1, start_of + 120, now - 1,
                              now, now + 1, 1ull << 63,   UINT64_MAX - 1, UINT64_MAX};
  for (unsigned i = 0; i < sizeof written / sizeof *written; i++) {
    for (unsigned k = 0; k < sizeof written / sizeof *written; k++) {
      begin_charging();
      IS(charge(0, 100), 100);
      IS(charge(200, 300), 100); /* skips 100 to 200 */
      ledger.busy_until_ns = written[i];
      uint64_t first = charge(50, 310);
      CHECK(first <= 260, "%llu: 260 ns count as %llu", (unsigned long long)written[i], (unsigned long long)first);
      CHECK(written[i] <= now || first >= 10, "%llu makes it free", (unsigned long long)written[i]);
      ledger.busy_until_ns = written[k];
      uint64_t second = charge(90, 320);
      CHECK(second <= 230, "%llu, %llu: 230 ns count as %llu", (unsigned long long)written[i],
            (unsigned long long)written[k], (unsigned long long)second);
      ledger.busy_until_ns = written[k];
      charge(400, 410); /* skips what was skipped before */
      ledger.busy_until_ns = written[i];
      uint64_t third = charge(100, 210), last = charge(0, 420);
      CHECK(third <= 110 && last <= 420, "%llu, %llu: 110 ns count as %llu, 420 as %llu",
            (unsigned long long)written[i], (unsigned long long)written[k], (unsigned long long)third,
            (unsigned long long)last);
      CHECK(ledger.busy_until_ns <= now, "%llu stays", (unsigned long long)ledger.busy_until_ns);
    }
  }
}

/* While its channels were stopped, the GPU was not this lease's. */
static void test_stopped_time_is_free(void) {
  begin_charging();
  stopped_ns = 30;
  IS(charge(0, 100), 70);
  IS(charge(100, 130), 0);
  IS(charge(130, 150), 0);
  stopped_ns = 0;
  IS(charge(200, 300), 100);
  stopped_ns = 10;
  IS(charge(100, 200), 40);
}

static void test_one_at_a_time(void) {
  lease();
  HELD(tenant.gate.pace_lock, vgpu__gate_set_autonomous(&tenant, 1));
  HELD(tenant.gate.pace_lock, vgpu__gate_pace(&tenant));
  begin_charging();
  HELD(tenant.gate.gaps_lock, vgpu__charge(&tenant, start_of, start_of + 5));
}

int main(void) {
  test_open();
  test_revoked();
  test_shut();
  test_revoked_while_shut();
  test_ended_seat();
  test_ended_seat_while_moved();
  test_silent_seat();
  test_late_seat();
  test_memory_on_the_host();
  test_autonomy_is_told();
  test_pace();
  test_impossible_use();
  test_no_pace_with_a_seat();
  test_charges_once();
  test_charges_gaps();
  test_remembers_the_last_gaps();
  test_forgets_no_gap_without_need();
  test_charges_no_future();
  test_charges_whatever_is_written();
  test_stopped_time_is_free();
  test_one_at_a_time();
  printf("%s gate\n", failures == 0 ? "ok  " : "FAIL");
  return failures != 0;
}
