/* Tests of work: turns among the processes of a lease, and what is charged. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

#include "fake_seat.h"
#include "test.h"

/* The GPU time of two programs, computed from their launches and the duration of one kernel. */
struct pair {
  const struct fake_seat *seat;
  uint64_t each_ns[2], before[2];
  int slot[2];
};

static uint64_t had_ns(const struct pair *pair, int which) {
  return __atomic_load_n(&pair->seat->slots[pair->slot[which]].launches, __ATOMIC_ACQUIRE) * pair->each_ns[which] -
         pair->before[which];
}

/* Waits until both have had this much. */
static int await_both(const struct pair *pair, uint64_t ns) {
  for (uint64_t since = seat_now(); seat_now() - since < PATIENCE_NS; usleep(1000)) {
    if (had_ns(pair, 0) > ns && had_ns(pair, 1) > ns) return 1;
  }
  return 0;
}

static int slot_of(const struct fake_seat *seat, pid_t pid) {
  for (uint64_t since = seat_now(); seat_now() - since < PATIENCE_NS; usleep(1000)) {
    for (int i = 1; i < (int)SHM_SLOT_COUNT; i++) {
      if (GET(seat->slots[i].pid) == (uint32_t)pid) return i;
    }
  }
  CHECK(0, "no slot");
  return 1;
}

/*
 * Each of two processes has a GPU of its own here, so only their turns can make them even. Compared by GPU time: when
 * the slower one has had 0.4 s, the other must have had about as much.
 */
static void share(const char *first, const char *second, double least) {
  struct fake_seat seat;
  seat_open(&seat, 64u << 20, 1 << 20);
  seat.grant->turn_flags = (uint32_t)SHM_TURN_LIMITED;
  seat_start(&seat);
  pid_t pids[] = {start(&seat, "load", first), start(&seat, "load", second)};
  struct pair pair = {.seat = &seat, .each_ns = {strtoull(first, NULL, 10), strtoull(second, NULL, 10)}};
  for (int i = 0; i < 2; i++) pair.slot[i] = slot_of(&seat, pids[i]);
  CHECK(await_both(&pair, 20000000), "they do not both work");
  double ratio = 0;
  for (int tries = 0; tries < 10 && ratio <= least; tries++) { /* if one is delayed, the other rightly goes on */
    for (int i = 0; i < 2; i++) pair.before[i] += had_ns(&pair, i);
    CHECK(await_both(&pair, 400000000), "they do not go on");
    double had[] = {(double)had_ns(&pair, 0) / 1e6, (double)had_ns(&pair, 1) / 1e6};
    ratio = had[0] < had[1] ? had[0] / had[1] : had[1] / had[0];
    printf("  \"%s\" beside \"%s\": %.1f and %.1f ms, %.3f\n", first, second, had[0], had[1], ratio);
  }
  CHECK(ratio > least, "\"%s\" beside \"%s\": %.3f", first, second, ratio);
  stop_launching(&seat, pids[0]);
  finish(pids[1]);
  seat_close(&seat);
}

void measured_role(const char *role, const char *argument, uint32_t gate) {
  enum { TRIES = 10 };
  int status = DELAYED;
  setenv("TEST_MEASURES", "1", 1);
  for (int tries = 0; tries < TRIES && status == DELAYED; tries++) {
    struct fake_seat seat;
    seat_open(&seat, 1024u << 20, 1 << 20);
    seat.grant->turn_flags = (uint32_t)SHM_TURN_LIMITED;
    seat.grant->word = gate;
    seat_start(&seat);
    status = finish(start(&seat, role, argument));
    await_empty(&seat, role);
    seat_close(&seat);
  }
  unsetenv("TEST_MEASURES");
  CHECK(status == 0, "role %s %s ended with %d", role, argument, status);
}

static void one_role(const char *role, uint32_t gate) { measured_role(role, "", gate); }

void test_copies_apart(void) { one_role("copies", 0); } /* gate shut */

void test_launches_counted(void) { one_role("counted", (uint32_t)SHM_GRANT_OPEN); }

void test_graphs_measured(void) { one_role("graphs", (uint32_t)SHM_GRANT_OPEN); }

void test_graphs_long(void) { one_role("graphs-long", (uint32_t)SHM_GRANT_OPEN); }

void test_graphs_conditional(void) { one_role("graphs-conditional", (uint32_t)SHM_GRANT_OPEN); }

void test_waits_uncharged(void) {
  one_role("waits", (uint32_t)SHM_GRANT_OPEN);
  one_role("begins-late", (uint32_t)SHM_GRANT_OPEN);
}

void test_copies_batched(void) { one_role("copies-batched", (uint32_t)SHM_GRANT_OPEN); }

void test_stalled(void) {
  one_role("stalled", (uint32_t)SHM_GRANT_OPEN);
  one_role("long-first", (uint32_t)SHM_GRANT_OPEN);
}

void test_exits(void) { one_role("exits", (uint32_t)SHM_GRANT_OPEN); }

void test_launch_bound(void) { one_role("launch-bound", (uint32_t)SHM_GRANT_OPEN); }

void test_capture_new(void) { one_role("capture-new", (uint32_t)SHM_GRANT_OPEN); }

void test_captures_close(void) { one_role("captures-close", (uint32_t)SHM_GRANT_OPEN); }

void test_capture_other(void) { one_role("capture-other", (uint32_t)SHM_GRANT_OPEN); }

void test_held_up(void) { one_role("held-up", (uint32_t)SHM_GRANT_OPEN); }

void test_silent(void) { one_role("silent", (uint32_t)SHM_GRANT_OPEN); }

void test_charged(void) {
  one_role("charged", (uint32_t)SHM_GRANT_OPEN);
  one_role("lazy", (uint32_t)SHM_GRANT_OPEN);
}

void test_slips(void) { one_role("slips", (uint32_t)SHM_GRANT_OPEN); }

void test_rounds(void) {
  one_role("rounds", (uint32_t)SHM_GRANT_OPEN);
  one_role("rounds-end", (uint32_t)SHM_GRANT_OPEN);
}

void test_cancelled(void) {
  struct fake_seat seat;
  seat_open(&seat, 64u << 20, 1 << 20);
  seat.grant->turn_flags = (uint32_t)(SHM_TURN_LIMITED | SHM_TURN_CONTENDED);
  seat_start(&seat);
  play_role(&seat, "cancelled", "");
  for (uint64_t since = seat_now(); GET(seat.wants) < 3 && seat_now() - since < PATIENCE_NS;) usleep(1000);
  CHECK(GET(seat.wants) >= 3, "it told that work begins %u times", GET(seat.wants));
  seat_close(&seat);
}

void test_many_streams(void) { one_role("many-streams", (uint32_t)SHM_GRANT_OPEN); }

void test_many_contexts(void) { one_role("many-contexts", (uint32_t)SHM_GRANT_OPEN); }

void test_measuring_calls(void) { one_role("calls", (uint32_t)SHM_GRANT_OPEN); }

void test_thread_pid(void) {
  struct fake_seat seat;
  seat_open(&seat, 64u << 20, 1 << 20);
  seat_start(&seat);
  play_role(&seat, "thread-pid", "");
  seat_close(&seat);
}

/*
 * On a busy machine a process may lose its processor for a while; the other then rightly goes on. Without turns the
 * ratio is about 0.3.
 */
void test_peers_even(void) {
  share("1000000 0 0", "1000000 0 0", 0.6);
  share("4000000 0 0", "50000 1 0", 0.6);
  share("300000 0 0", "20000 0 0", 0.6);
}

void test_stops_uncharged(void) { one_role("stopped", (uint32_t)SHM_GRANT_OPEN); }

static int64_t behind_ns(const struct fake_seat *seat, int slot, int other) {
  return (int64_t)(GET(seat->slots[other].pace_ns) - GET(seat->slots[slot].pace_ns));
}

/* Waits until the slot's process has launched some kernels. Returns how far it is behind the other then. */
static int64_t await_launches(const struct fake_seat *seat, int slot, int other) {
  enum { SOME = 3 };
  uint64_t before = GET(seat->slots[slot].launches);
  for (uint64_t since = seat_now(); seat_now() - since < PATIENCE_NS; usleep(20)) {
    if (GET(seat->slots[slot].launches) - before >= SOME) return behind_ns(seat, slot, other);
  }
  CHECK(0, "no launches");
  return 0;
}

/* Returns whether neither was behind. A busy machine may delay a process of itself, which then is behind. */
static int no_credit_round(void) {
  enum { TRIES = 8, MOST_NS = 5000000 };
  struct fake_seat seat;
  seat_open(&seat, 64u << 20, 1 << 20);
  seat.grant->turn_flags = (uint32_t)SHM_TURN_LIMITED;
  seat_start(&seat);
  pid_t pids[] = {start(&seat, "load", "200000 1 0"), 0};
  int slots[] = {slot_of(&seat, pids[0]), 0};
  for (uint64_t since = seat_now(); GET(seat.slots[slots[0]].pace_ns) < 50000000 && seat_now() - since < PATIENCE_NS;
       usleep(1000)) {
  }
  /* as dead processes leave them */
  for (int i = 0; i < 2; i++) __atomic_store_n(&seat.ledger->active[i], UINT64_MAX, __ATOMIC_SEQ_CST);
  pids[1] = start(&seat, "load", "200000 1 0");
  slots[1] = slot_of(&seat, pids[1]);
  int64_t fresh_ns = await_launches(&seat, slots[1], slots[0]), sum_ns = 0;
  for (int i = 0; i < TRIES; i++) {
    kill(pids[1], SIGSTOP);
    usleep(100000);
    kill(pids[1], SIGCONT);
    sum_ns += await_launches(&seat, slots[1], slots[0]);
    usleep(50000);
  }
  printf("  behind by %.2f ms at first, by %.2f ms after 100 ms, on average\n", (double)fresh_ns / 1e6,
         (double)sum_ns / TRIES / 1e6);
  stop_launching(&seat, pids[0]);
  finish(pids[1]);
  seat_close(&seat);
  return fresh_ns < MOST_NS && sum_ns < TRIES * MOST_NS;
}

/*
 * A process that stood still, or that is new in the slot of a dead one, gets no credit: the others of its lease would
 * have to wait for it.
 */
void test_peers_no_credit(void) {
  int fine = 0;
  for (int tries = 0; tries < 5 && !fine; tries++) fine = no_credit_round();
  CHECK(fine, "behind the other");
}

/* A stopped process, with or without the turn, delays the others of its lease for milliseconds only. */
void test_peers_stopped(void) {
  enum { WANTED = 5, MOST = 60, STOP_US = 60000 };
  struct fake_seat seat;
  seat_open(&seat, 64u << 20, 1 << 20);
  seat.grant->turn_flags = (uint32_t)SHM_TURN_LIMITED;
  seat_start(&seat);
  pid_t pids[] = {start(&seat, "load", "500000 0 0"), start(&seat, "load", "500000 0 0")};
  int slots[] = {slot_of(&seat, pids[0]), slot_of(&seat, pids[1])}, fine = 0, stops = 0;
  for (uint64_t since = seat_now();
       GET(seat.slots[slots[0]].launches) * GET(seat.slots[slots[1]].launches) == 0 && seat_now() - since < PATIENCE_NS;
       usleep(1000)) {
  }
  double worked_ns = 0, passed_ns = 0;
  for (; fine < WANTED && stops < MOST; stops++) { /* on a busy machine the other may stand still too */
    int stopped = stops % 2;
    usleep(20000 + (useconds_t)stops * 1700 % 9000); /* at varying moments of their turns */
    kill(pids[stopped], SIGSTOP);
    uint64_t before = GET(seat.slots[slots[1 - stopped]].gpu_ns), since = seat_now();
    usleep(STOP_US);
    double worked = (double)(GET(seat.slots[slots[1 - stopped]].gpu_ns) - before),
           passed = (double)(seat_now() - since);
    kill(pids[stopped], SIGCONT);
    fine += worked > passed / 2;
    worked_ns += worked;
    passed_ns += passed;
  }
  printf("  %d stops of 60 ms: the other worked for %.0f %% of them\n", stops, 100 * worked_ns / passed_ns);
  CHECK(fine == WANTED, "%d of %d stops in which the other went on", fine, stops);
  stop_launching(&seat, pids[0]);
  finish(pids[1]);
  seat_close(&seat);
}

/*
 * A process that is stopped with the turn and work under way delays the others for less than STALE_NS of peers.c, since
 * the kernel is asked whether it runs. Repeated if it did not have the turn, or if a busy machine delayed the other.
 */
void test_peers_stopped_soon(void) {
  enum { WANTED = 3, MOST = 300 };
  static const uint64_t SOON_NS = 4000000, LONG_NS = 30000000; /* stale: 5 ms */
  struct fake_seat seat;
  seat_open(&seat, 64u << 20, 1 << 20);
  seat.grant->turn_flags = (uint32_t)SHM_TURN_LIMITED;
  seat_start(&seat);
  pid_t pids[] = {start(&seat, "load", "500000 0 0"), start(&seat, "load", "500000 0 0")};
  int slots[] = {slot_of(&seat, pids[0]), slot_of(&seat, pids[1])}, soon = 0, tries = 0;
  CHECK(await_launches(&seat, slots[0], slots[1]) != INT64_MAX &&
            await_launches(&seat, slots[1], slots[0]) != INT64_MAX,
        "launches");
  for (; soon < WANTED && tries < MOST; tries++) {
    const struct shm_slot *stopped = &seat.slots[slots[tries % 2]], *other = &seat.slots[slots[1 - tries % 2]];
    usleep(10000 + (useconds_t)tries * 1700 % 9000);
    kill(pids[tries % 2], SIGSTOP);
    usleep(200);
    uint64_t before = GET(other->launches), since = seat_now();
    int held = (GET(seat.ledger->turn) & 0xff) == (uint32_t)slots[tries % 2] && GET(stopped->busy) != 0 &&
               GET(other->waiting) != 0;
    while (held && GET(other->launches) == before && seat_now() - since < LONG_NS) usleep(20);
    soon += held && seat_now() - GET(stopped->heartbeat_ns) < SOON_NS;
    kill(pids[tries % 2], SIGCONT);
  }
  printf("  %d stops: after %d of them the other went on soon\n", tries, soon);
  CHECK(soon == WANTED, "%d of %d stops after which the other went on soon", soon, tries);
  stop_launching(&seat, pids[0]);
  finish(pids[1]);
  seat_close(&seat);
}

/* Processes of a lease that consist of their slots only: alive, with recent work. */
struct dummies {
  struct fake_seat *seat;
  uint32_t stop;
};
enum { DUMMY = 100, DUMMIES = 2 };

static void *keep_alive(void *argument) {
  const struct dummies *dummies = argument;
  while (!GET(dummies->stop)) {
    for (int i = DUMMY; i < DUMMY + DUMMIES; i++)
      __atomic_store_n(&dummies->seat->slots[i].heartbeat_ns, seat_now(), __ATOMIC_SEQ_CST);
    usleep(200);
  }
  return NULL;
}

static void set_paces(const struct fake_seat *seat, uint64_t least, uint64_t most) {
  __atomic_store_n(&seat->slots[DUMMY + 1].pace_ns, most, __ATOMIC_SEQ_CST);
  __atomic_store_n(&seat->slots[DUMMY].pace_ns, least, __ATOMIC_SEQ_CST);
}

/* The slot's first pace of at least `least`; 0: there was none in time. */
static uint64_t await_pace(const struct fake_seat *seat, int slot, uint64_t least) {
  for (uint64_t since = seat_now(), pace; seat_now() - since < 5000000000u; usleep(20)) {
    if ((pace = GET(seat->slots[slot].pace_ns)) >= least) return pace;
  }
  return 0;
}

/* A newcomer, and a process that stood still, line up behind all waiting processes, not only behind the first. */
void test_peers_line(void) {
  enum { TRIES = 5 };
  static const uint64_t FIRST_NS = 1000000000, SPREAD_NS = 8000000;
  struct fake_seat seat;
  seat_open(&seat, 64u << 20, 1 << 20);
  seat.grant->turn_flags = (uint32_t)SHM_TURN_LIMITED;
  struct dummies dummies = {.seat = &seat};
  set_paces(&seat, FIRST_NS, FIRST_NS + SPREAD_NS);
  for (int i = DUMMY; i < DUMMY + DUMMIES; i++) {
    seat.slots[i].pid = (uint32_t)getpid(); /* a live process */
    seat.slots[i].state = (uint32_t)SHM_SLOT_ATTACHED;
    __atomic_fetch_or(&seat.ledger->active[i / 64], (uint64_t)1 << i % 64, __ATOMIC_SEQ_CST);
  }
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, keep_alive, &dummies) == 0, "thread");
  seat_start(&seat);
  pid_t pid = 0;
  int slot = 0, lined = 0, behind = 0;
  for (int i = 0; i < TRIES && !lined;
       i++) { /* retried: with this process the heartbeats of the dummies may be delayed */
    if (pid != 0) kill(pid, SIGKILL), finish(pid);
    pid = start(&seat, "load", "100000 1 0");
    slot = slot_of(&seat, pid);
    /* Before it begins it may look once, and briefly have a lower pace. */
    lined = await_pace(&seat, slot, FIRST_NS + SPREAD_NS) != 0;
  }
  CHECK(lined, "a newcomer's pace: %llu", (unsigned long long)GET(seat.slots[slot].pace_ns));
  for (int i = 1; i <= TRIES && !behind; i++) { /* retried: it may be stopped between its look and its use of it */
    uint64_t least = FIRST_NS * (uint64_t)(i + 1);
    kill(pid, SIGSTOP);
    usleep(30000);
    set_paces(&seat, least, least + SPREAD_NS);
    kill(pid, SIGCONT);
    behind = await_pace(&seat, slot, FIRST_NS * (uint64_t)i + 2 * SPREAD_NS) >= least + SPREAD_NS;
  }
  CHECK(behind, "one that was stopped comes before others: its pace is %llu",
        (unsigned long long)GET(seat.slots[slot].pace_ns));
  stop_launching(&seat, pid);
  __atomic_store_n(&dummies.stop, 1, __ATOMIC_SEQ_CST);
  pthread_join(thread, NULL);
  seat_close(&seat);
}

/*
 * A process that joins a suspended lease makes no context until the lease is resumed, even if its gate is open and no
 * seat answers.
 */
void test_suspended_waits(void) {
  struct fake_seat seat;
  seat_open(&seat, 64u << 20, 1 << 20);
  seat.grant->word = (uint32_t)SHM_GRANT_OPEN;
  __atomic_store_n(&seat.grant->turn_flags, (uint32_t)SHM_TURN_SUSPENDED, __ATOMIC_SEQ_CST);
  seat_start(&seat);
  pid_t pid = start(&seat, "load", "100000 1 0");
  int slot = slot_of(&seat, pid);
  usleep(50000);
  CHECK(seat_units(&seat) == 0, "it has %llu units", (unsigned long long)seat_units(&seat));
  __atomic_store_n(&seat.mute, 1, __ATOMIC_SEQ_CST);
  usleep(400000);
  CHECK(seat_units(&seat) == 0, "without a seat it has %llu units", (unsigned long long)seat_units(&seat));
  CHECK(GET(seat.slots[slot].launches) == 0, "it has launched");
  __atomic_store_n(&seat.mute, 0, __ATOMIC_SEQ_CST);
  __atomic_store_n(&seat.grant->turn_flags, 0, __ATOMIC_SEQ_CST);
  for (uint64_t since = seat_now(); GET(seat.slots[slot].launches) == 0 && seat_now() - since < PATIENCE_NS;
       usleep(1000)) {
  }
  CHECK(GET(seat.slots[slot].launches) != 0, "it does not go on");
  CHECK(stop_launching(&seat, pid) == 0, "role");
  seat_close(&seat);
}
