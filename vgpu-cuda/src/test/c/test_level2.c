/*
 * Preemption inside a kernel, over the emulated driver and the fake seat. The seat runs in this process; the tenant is
 * this binary again, in a role, under the hook. Usage: test_level2 HOOK DRIVER [TEST...]
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_seat.h"
#include "test.h"

#define MS 1000000ull
enum { TRIES = 10 };

static const char *hook, *driver, *self;
int failures;

/* ---- the seat ---- */

static pid_t start_tenant(const struct fake_seat *seat, const char *role, const char *how, const char *setting) {
  char dir[96], emulator[96], real[4096], rm[160], level2[64], preload[4096];
  snprintf(dir, sizeof dir, "VGPU_RUN_DIR=%s", seat->dir);
  snprintf(emulator, sizeof emulator, "VGPU_EMULATOR_DIR=%s", seat->dir);
  snprintf(real, sizeof real, "VGPU_CUDA_DRIVER=%s", driver);
  snprintf(rm, sizeof rm, "VGPU_EMULATOR_RM=%s", how);
  snprintf(level2, sizeof level2, "VGPU_LEVEL2=%s", setting);
  snprintf(preload, sizeof preload, "LD_PRELOAD=%s", hook);
  const char *settings[] = {dir, emulator, "VGPU_LEASE=test", real, rm, level2, strcmp(hook, "-") != 0 ? preload : NULL,
                            NULL};
  char **with = environment_with(settings);
  pid_t pid = fork();
  if (pid == 0) {
    environ = with;
    execl(self, self, "--role", role, (char *)NULL);
    _exit(127);
  }
  free(with);
  return pid;
}

static int finish_tenant(pid_t pid) {
  int status = -1;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static struct shm_slot *slot_of(const struct fake_seat *seat) { return &seat->slots[1]; }

/* If the tenant is delayed within a driver call, it uses level 2 no more; then a failed test is repeated. */
static const struct fake_seat *not_slow; /* the seat of a test that does not expect this */
static int was_slow;

static int is_slow(void) {
  was_slow |= not_slow != NULL && GET(slot_of(not_slow)->level2_reason) == SHM_LEVEL2_WHY_SLOW;
  return was_slow;
}

static void end_tenant(pid_t pid) {
  is_slow();
  kill(pid, SIGKILL);
  finish_tenant(pid);
}

/* Waits for a condition, which need not last. */
#define AWAIT(condition, ...)                                                                         \
  do {                                                                                                \
    uint64_t await_until = seat_now() + PATIENCE_NS;                                                  \
    int await_met;                                                                                    \
    while (!(await_met = (condition) ? 1 : 0) && seat_now() < await_until && !is_slow()) usleep(100); \
    CHECK(await_met, #condition ": " __VA_ARGS__);                                                    \
  } while (0)

static void open_seat(struct fake_seat *seat, uint32_t preemption_class) {
  seat_open(seat, 1u << 30, 1 << 20);
  seat_express(seat, preemption_class);
  seat->grant->express_mask = preemption_class == SHM_CLASS_OFFLINE ? 1 : 0;
  seat->grant->level2_flags = (uint32_t)SHM_LEVEL2_ALLOWED;
  seat->grant->timeslice_us = 200;
  seat->express->watched = 1;
  seat->grant_header->seat_pid = (uint64_t)getpid();
  not_slow = seat;
  seat_start(seat);
}

static void announce(struct fake_seat *seat) {
  __atomic_store_n(&seat->express->beat_ns[0], seat_now(), __ATOMIC_SEQ_CST);
  __atomic_fetch_or(&seat->express->busy, 1, __ATOMIC_SEQ_CST);
  syscall(SYS_futex, &seat->express->busy, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/* Beats for the urgent process for a while. */
static void stay(struct fake_seat *seat, unsigned ms) {
  for (unsigned i = 0; i < ms; i++) {
    __atomic_store_n(&seat->express->beat_ns[0], seat_now(), __ATOMIC_SEQ_CST);
    usleep(1000);
  }
}

static int is_stopped(const struct fake_seat *seat) { return GET(slot_of(seat)->level2) == SHM_LEVEL2_STOPPED; }
static int is_ready(const struct fake_seat *seat) { return GET(slot_of(seat)->level2) == SHM_LEVEL2_READY; }

/* Starts a tenant that works all the time, and waits until it can be stopped. */
static pid_t start_flood(struct fake_seat *seat, const char *how) {
  open_seat(seat, SHM_CLASS_OFFLINE);
  pid_t pid = start_tenant(seat, "flood", how, "on");
  AWAIT(is_ready(seat), "%s: reason %u", how, GET(slot_of(seat)->level2_reason));
  return pid;
}

/*
 * Holds the tenant back by the express lane until a stop has caught work, and keeps it stopped for some time. Work that
 * ends just before a stop leaves nothing to keep stopped: then it tries again.
 */
static void stop_for(struct fake_seat *seat, unsigned ms) {
  for (uint64_t until = seat_now() + PATIENCE_NS; seat_now() < until && !is_slow();) {
    AWAIT(GET(slot_of(seat)->busy) != 0, "does not run");
    announce(seat);
    while (!is_stopped(seat) && GET(slot_of(seat)->busy) != 0 && seat_now() < until) stay(seat, 1);
    stay(seat, 5); /* work that had ended before is counted now */
    uint64_t ran = GET(slot_of(seat)->gpu_ns), stops = GET(slot_of(seat)->level2_stops);
    stay(seat, ms);
    if (is_stopped(seat) && GET(slot_of(seat)->gpu_ns) == ran && GET(slot_of(seat)->level2_stops) == stops) return;
    seat_express_clear(seat, 1);
  }
  CHECK(0, "no stop lasted");
}

static void test_stops_and_resumes(void) {
  struct fake_seat seat;
  pid_t pid = start_flood(&seat, "");
  CHECK(GET(slot_of(&seat)->level2_driver) >> 16 == 580, "driver %x", GET(slot_of(&seat)->level2_driver));
  for (int i = 0; i < 5; i++) {
    uint64_t ran = GET(slot_of(&seat)->gpu_ns);
    AWAIT(GET(slot_of(&seat)->gpu_ns) != ran, "does not run");
    stop_for(&seat, 40);
    seat_express_clear(&seat, 1);
    AWAIT(is_ready(&seat), "not resumed");
  }
  uint64_t since = 0;
  int fine = 0;
  for (int tries = 0; tries < TRIES && !fine && !is_slow(); tries++) { /* a delay of the tenant itself may be charged */
    stop_for(&seat, 40);
    seat_express_clear(&seat, 1);
    AWAIT(is_ready(&seat), "not resumed");
    since = seat_now();
    uint64_t ran = GET(slot_of(&seat)->gpu_ns);
    AWAIT(GET(slot_of(&seat)->gpu_ns) > ran, "does not run");
    uint64_t more = GET(slot_of(&seat)->gpu_ns) - ran;
    fine = more <= seat_now() - since + 15 * MS;
  }
  CHECK(fine, "what was stopped is charged");
  CHECK(GET(slot_of(&seat)->level2_stops) >= 5, "stops");
  CHECK(GET(slot_of(&seat)->level2_stopped_ns) >= 5 * 40 * MS, "stopped for");
  uint64_t stopped_at = GET(slot_of(&seat)->level2_stopped_at_ns);
  CHECK(stopped_at < since && since - stopped_at < 60u * 1000 * MS, "last stopped at %llu, resumed by %llu",
        (unsigned long long)stopped_at, (unsigned long long)since);
  end_tenant(pid);
  seat_close(&seat);
}

/* Shuts the gate until it catches work that can be stopped. */
static void shut_and_stop(struct fake_seat *seat) {
  int stopped = 0;
  for (uint64_t until = seat_now() + PATIENCE_NS; !stopped && seat_now() < until && !is_slow();) {
    seat_gate(seat, (uint32_t)SHM_GRANT_OPEN);
    AWAIT(GET(slot_of(seat)->busy) != 0, "does not run");
    seat_gate(seat, 0);
    for (int i = 0; i < 100 && !(stopped = is_stopped(seat)) && GET(slot_of(seat)->busy) != 0; i++) usleep(200);
  }
  CHECK(stopped, "not stopped");
}

/* Stops the tenant by the lane, and shuts its gate before the lane is clear. If this seat is delayed it may go on: again. */
static void shut_while_stopped(struct fake_seat *seat) {
  int stopped = 0;
  for (int tries = 0; tries < TRIES && !stopped && !is_slow(); tries++) {
    seat_gate(seat, (uint32_t)SHM_GRANT_OPEN);
    stop_for(seat, 5);
    seat_gate(seat, 0);
    seat_express_clear(seat, 1);
    stopped = is_stopped(seat);
  }
  CHECK(stopped, "not stopped");
}

/* A tenant loses its turn to a more urgent one, so its gate is shut; then the seat falls silent. */
static void test_gate_and_lost_seat(void) {
  struct fake_seat seat;
  pid_t pid = start_flood(&seat, "");
  __atomic_store_n(&seat.grant->level2_flags, (uint32_t)(SHM_LEVEL2_ALLOWED | SHM_LEVEL2_STOP), __ATOMIC_SEQ_CST);
  shut_and_stop(&seat);
  seat_gate(&seat, (uint32_t)SHM_GRANT_OPEN);
  AWAIT(is_ready(&seat), "not resumed by the gate");
  shut_and_stop(&seat);
  __atomic_store_n(&seat.mute, 1, __ATOMIC_SEQ_CST); /* simulates a stopped seat */
  AWAIT(is_ready(&seat), "a lost seat leaves it stopped");
  end_tenant(pid);
  seat_close(&seat);
}

/*
 * Its gate was shut while it was stopped: its turn is over. It must not share the next tenant's turn after the urgent
 * process has gone.
 */
static void test_stays_stopped_at_a_shut_gate(void) {
  struct fake_seat seat;
  pid_t pid = start_flood(&seat, "");
  int stays = 0;
  for (int tries = 0; tries < TRIES && !stays && !is_slow(); tries++) { /* a delayed seat may count as lost */
    shut_while_stopped(&seat);
    uint64_t resumed = GET(slot_of(&seat)->level2_stopped_ns);
    stay(&seat, 40);
    stays = is_stopped(&seat) && GET(slot_of(&seat)->level2_stopped_ns) == resumed;
  }
  CHECK(stays, "resumed though its gate is shut");
  seat_gate(&seat, (uint32_t)SHM_GRANT_OPEN);
  AWAIT(is_ready(&seat), "not resumed by the gate");
  stop_for(&seat, 5);
  seat_gate(&seat, 0);
  __atomic_store_n(&seat.grant->level2_flags, 0, __ATOMIC_SEQ_CST); /* its work must end, e.g. before a suspension */
  AWAIT(is_ready(&seat), "does not end");
  end_tenant(pid);
  seat_close(&seat);
}

/*
 * The hook knows of no work, so the seat is told of none and gives no turn: what is stopped all the same, such as a
 * copy that is not measured, must go on.
 */
static void test_unknown_work_goes_on(void) {
  struct fake_seat seat;
  pid_t pid = start_flood(&seat, "");
  shut_while_stopped(&seat);
  __atomic_store_n(&slot_of(&seat)->busy, 0, __ATOMIC_SEQ_CST);
  AWAIT(is_ready(&seat), "stays stopped");
  end_tenant(pid);
  seat_close(&seat);
}

/* A driver that refuses to resume is asked again, and not all times at once. */
static void test_resumed_late(void) {
  struct fake_seat seat;
  pid_t pid = start_flood(&seat, "late=300");
  shut_while_stopped(&seat);
  __atomic_store_n(&slot_of(&seat)->busy, 0, __ATOMIC_SEQ_CST);
  AWAIT(!is_stopped(&seat), "stays stopped");
  CHECK(is_ready(&seat), "off: reason %u", GET(slot_of(&seat)->level2_reason));
  end_tenant(pid);
  seat_close(&seat);
}

/* The bit of an urgent process that was killed or stopped has no heartbeat. */
static void test_stale_bit(void) {
  struct fake_seat seat;
  pid_t pid = start_flood(&seat, "");
  stop_for(&seat, 2);
  AWAIT(is_ready(&seat), "a dead process's bit leaves it stopped");
  CHECK((GET(seat.express->busy) & 1) != 0, "the bit is still set");
  end_tenant(pid);
  seat_close(&seat);
}

/* The tenant process itself is stopped and resumed while its channels are stopped. */
static void test_stopped_tenant(void) {
  struct fake_seat seat;
  pid_t pid = start_flood(&seat, "");
  stop_for(&seat, 2);
  kill(pid, SIGSTOP);
  usleep(30000);
  seat_express_clear(&seat, 1);
  kill(pid, SIGCONT);
  AWAIT(is_ready(&seat), "not resumed");
  end_tenant(pid);
  seat_close(&seat);
}

static void expect_off(const char *how, const char *setting, uint32_t class, uint64_t why) {
  struct fake_seat seat;
  open_seat(&seat, class);
  if (why == SHM_LEVEL2_WHY_SLOW) not_slow = NULL;
  pid_t pid = start_tenant(&seat, "flood", how, setting);
  AWAIT(GET(slot_of(&seat)->gpu_ns) > 0, "does not run: %s", how);
  AWAIT(GET(slot_of(&seat)->level2_reason) == why, "%s %s: reason %u", how, setting,
        GET(slot_of(&seat)->level2_reason));
  CHECK(GET(slot_of(&seat)->level2) == SHM_LEVEL2_OFF, "%s", how);
  end_tenant(pid);
  seat_close(&seat);
}

static void test_off_with_a_reason(void) {
  expect_off("", "off", SHM_CLASS_OFFLINE, SHM_LEVEL2_WHY_SETTING);
  expect_off("", "on", SHM_CLASS_ONLINE, SHM_LEVEL2_WHY_CLASS);
  expect_off("version=999.10.01", "on", SHM_CLASS_OFFLINE, SHM_LEVEL2_WHY_VERSION);
  expect_off("version=none", "on", SHM_CLASS_OFFLINE, SHM_LEVEL2_WHY_VERSION);
  expect_off("refuse=2080110b,refuse=a06c0101", "on", SHM_CLASS_OFFLINE, SHM_LEVEL2_WHY_REFUSED);
  expect_off("slow=150000", "on", SHM_CLASS_OFFLINE, SHM_LEVEL2_WHY_SLOW);
}

static void test_second_way(void) {
  struct fake_seat seat;
  pid_t pid = start_flood(&seat, "refuse=2080110b");
  stop_for(&seat, 2);
  seat_express_clear(&seat, 1);
  AWAIT(is_ready(&seat), "not resumed");
  end_tenant(pid);
  seat_close(&seat);
}

/* The second method on each known branch: its parameters have another size before 575, and RM accepts no other size. */
static void test_branches(void) {
  static const unsigned branches[] = {535, 550, 555, 560, 565, 570, 575, 580, 590, 595};
  for (size_t i = 0; i < sizeof branches / sizeof *branches; i++) {
    char how[64];
    struct fake_seat seat;
    snprintf(how, sizeof how, "refuse=2080110b,version=%u.10.01", branches[i]);
    pid_t pid = start_flood(&seat, how);
    stop_for(&seat, 2);
    seat_express_clear(&seat, 1);
    AWAIT(is_ready(&seat), "%u: not resumed", branches[i]);
    end_tenant(pid);
    seat_close(&seat);
  }
}

/* A driver that reports success and does nothing. */
static void test_no_effect(void) {
  struct fake_seat seat;
  pid_t pid = start_flood(&seat, "stuck");
  seat_express_clear(&seat, 1);
  for (int i = 0; i < 50 && GET(slot_of(&seat)->level2_reason) != SHM_LEVEL2_WHY_NO_EFFECT; i++) {
    seat_gate(&seat, (uint32_t)SHM_GRANT_OPEN);
    AWAIT(GET(slot_of(&seat)->busy) != 0 || GET(slot_of(&seat)->level2) == SHM_LEVEL2_OFF, "does not run");
    usleep(3000);
    announce(&seat);
    stay(&seat, 60);
    seat_express_clear(&seat, 1);
    usleep(20000);
  }
  CHECK(GET(slot_of(&seat)->level2_reason) == SHM_LEVEL2_WHY_NO_EFFECT, "reason %u",
        GET(slot_of(&seat)->level2_reason));
  end_tenant(pid);
  seat_close(&seat);
}

/* A program that ends, or forks, while its work is stopped. */
static void test_ends_while_stopped(void) {
  static const char *const roles[] = {"long", "fork"};
  char path[128];
  for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
    struct fake_seat seat;
    open_seat(&seat, SHM_CLASS_OFFLINE);
    pid_t pid = start_tenant(&seat, roles[i], "", "on");
    AWAIT(is_ready(&seat) || GET(slot_of(&seat)->level2_stops) > 0, "%s: reason %u", roles[i],
          GET(slot_of(&seat)->level2_reason));
    AWAIT(GET(slot_of(&seat)->busy) == 0, "%s: never idle", roles[i]);
    snprintf(path, sizeof path, "%s/stop", seat.dir);
    close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    for (int wait = 0; wait < 10000 && GET(slot_of(&seat)->busy) == 0; wait++) usleep(100);
    announce(&seat);
    stay(&seat, 300);
    if (strcmp(roles[i], "fork") == 0) seat_express_clear(&seat, 1);
    int status = finish_tenant(pid);
    CHECK(status == 0, "%s ended with %d", roles[i], status);
    seat_close(&seat);
  }
}

static const struct {
  const char *name;
  void (*run)(void);
} tests[] = {
    {"stops-and-resumes", test_stops_and_resumes},
    {"gate-and-lost-seat", test_gate_and_lost_seat},
    {"stays-stopped", test_stays_stopped_at_a_shut_gate},
    {"unknown-work", test_unknown_work_goes_on},
    {"stale-bit", test_stale_bit},
    {"stopped-tenant", test_stopped_tenant},
    {"off-with-a-reason", test_off_with_a_reason},
    {"second-way", test_second_way},
    {"branches", test_branches},
    {"resumed-late", test_resumed_late},
    {"no-effect", test_no_effect},
    {"ends-while-stopped", test_ends_while_stopped},
};

int main(int count, char **arguments) {
  if (count > 2 && strcmp(arguments[1], "--role") == 0) return run_as(arguments[2], "");
  if (count < 3) return 2;
  setvbuf(stdout, NULL, _IOLBF, 0);
  hook = arguments[1];
  driver = arguments[2];
  self = realpath("/proc/self/exe", NULL);
  for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
    int wanted = count == 3;
    for (int j = 3; j < count; j++) wanted |= strcmp(arguments[j], tests[i].name) == 0;
    if (!wanted) continue;
    int before = failures;
    uint64_t since = seat_now();
    for (int tries = 0; tries < TRIES && (tries == 0 || (failures != before && was_slow)); tries++) {
      failures = before;
      was_slow = 0;
      tests[i].run();
    }
    printf("%s %s (%llu ms)\n", failures == before ? "ok  " : "FAIL", tests[i].name,
           (unsigned long long)(seat_now() - since) / 1000000);
  }
  return failures == 0 ? 0 : 1;
}
