/*
 * Tests of the hook over the stub driver and the fake seat. The seat runs in this process; the hooked program is this
 * binary again, started in a role. Usage: test_hook HOOK STUB [TEST...]; HOOK is "-" if the hook is linked in
 * (sanitizers). Prints one line per test.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_seat.h"
#include "stub_driver.h"
#include "test.h"

static const char *hook, *stub, *self;
int failures;

/* Starts this program in a role under the lease, with the hook besides what this program was started with. */
pid_t start(const struct fake_seat *seat, const char *role, const char *argument) {
  const char *also = getenv("LD_PRELOAD");
  char dir[96], driver[512], path[512], preload[2048];
  snprintf(dir, sizeof dir, "VGPU_RUN_DIR=%s", seat->dir);
  snprintf(driver, sizeof driver, "VGPU_CUDA_DRIVER=%s", stub);
  snprintf(path, sizeof path, "STUB_PATH=%s", stub);
  snprintf(preload, sizeof preload, "LD_PRELOAD=%s%s%s", hook, also == NULL ? "" : ":", also == NULL ? "" : also);
  const char *settings[] = {dir, "VGPU_LEASE=test", driver, path, strcmp(hook, "-") != 0 ? preload : NULL, NULL};
  char **with = environment_with(settings);
  pid_t pid = fork();
  if (pid == 0) {
    environ = with;
    execl(self, self, "--role", role, argument, (char *)NULL);
    _exit(127);
  }
  free(with);
  return pid;
}

int finish(pid_t pid) {
  int status = -1;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

void play_role(struct fake_seat *seat, const char *role, const char *argument) {
  int status = finish(start(seat, role, argument));
  CHECK(status == 0, "role %s %s ended with %d", role, argument, status);
}

void await_empty(const struct fake_seat *seat, const char *what) {
  uint64_t until = seat_now() + PATIENCE_NS;
  while (seat_units(seat) != 0 && seat_now() < until) usleep(1000);
  CHECK(seat_units(seat) == 0, "%s: %llu units left", what, (unsigned long long)seat_units(seat));
}

/* ---- tests that consist of one role ---- */

static void test_attach(void) {
  SEATED(64u << 20, 1 << 20);
  play_role(&seat, "attach", "");
  CHECK(GET(seat.hellos) == 1, "%u hellos", GET(seat.hellos));
  await_empty(&seat, "after attach");
  seat_close(&seat);
}

static void test_memory(void) {
  SEATED(64u << 20, 1 << 20);
  play_role(&seat, "memory", "");
  await_empty(&seat, "after memory");
  seat_close(&seat);
}

static void test_passed_on(void) {
  SEATED(64u << 20, 1 << 20);
  play_role(&seat, "passed-on", "");
  seat_close(&seat);
}

static void test_proc_address(void) {
  SEATED(64u << 20, 1 << 20);
  play_role(&seat, "proc-address", "");
  seat_close(&seat);
}

static void test_dlopen(void) {
  if (strcmp(hook, "-") == 0) return; /* a sanitizer interposes dlopen itself */
  SEATED(64u << 20, 1 << 20);
  play_role(&seat, "dlopen", stub);
  seat_close(&seat);
}

static void test_capture(void) {
  SEATED(64u << 20, 1 << 20);
  play_role(&seat, "capture", "");
  setenv("STUB_SLOW_QUERY", "1", 1);
  play_role(&seat, "capture", "waited");
  unsetenv("STUB_SLOW_QUERY");
  seat_close(&seat);
}

static void test_fork(void) {
  SEATED(64u << 20, 1 << 20);
  play_role(&seat, "fork", "");
  await_empty(&seat, "after fork");
  seat_close(&seat);
}

/* A process forks while a thread of it attaches for the first time. */
static void test_fork_first(void) {
  char path[128];
  SEATED(64u << 20, 1 << 20);
  __atomic_store_n(&seat.mute, 1, __ATOMIC_SEQ_CST);
  pid_t pid = start(&seat, "fork-first", "");
  snprintf(path, sizeof path, "%s/forked", seat.dir);
  for (uint64_t until = seat_now() + PATIENCE_NS; access(path, F_OK) != 0 && seat_now() < until;) usleep(1000);
  __atomic_store_n(&seat.mute, 0, __ATOMIC_SEQ_CST);
  int status = finish(pid);
  CHECK(status == 0, "role ended with %d", status);
  seat_close(&seat);
}

/*
 * A seccomp filter denies a program what the hook needs. The program may be refused, but neither hangs nor dies, and
 * gets no more than its quota.
 */
static void test_denied(void) {
  static const char *const WAYS[] = {"1:early", "1:late", "38:early", "38:late"}; /* EPERM, ENOSYS */
  enum { COUNT = sizeof WAYS / sizeof *WAYS, AT_ONCE = 4 * COUNT };
  if (strcmp(hook, "-") == 0) return; /* sanitizers need the calls */
  for (size_t done = 0; denied_call(done / COUNT) != NULL; done += AT_ONCE) {
    struct fake_seat seats[AT_ONCE];
    char argument[AT_ONCE][96];
    pid_t pids[AT_ONCE];
    size_t count = 0;
    for (; count < AT_ONCE && denied_call((done + count) / COUNT) != NULL; count++) {
      snprintf(argument[count], sizeof argument[count], "%s:%s", denied_call((done + count) / COUNT),
               WAYS[count % COUNT]);
      seat_open(&seats[count], 64u << 20, 1 << 20);
      seat_start(&seats[count]);
      pids[count] = start(&seats[count], "denied", argument[count]);
    }
    for (size_t i = 0; i < count; i++) {
      int status = finish(pids[i]);
      CHECK(status == 0, "denied %s: ended with %d", argument[i], status);
      seat_close(&seats[i]);
    }
  }
}

static void test_set_user(void) {
  SEATED(64u << 20, 1 << 20);
  play_role(&seat, "set-user", strcmp(hook, "-") == 0 ? "" : "plain");
  seat_close(&seat);
}

static void test_close_descriptors(void) {
  SEATED(64u << 20, 1 << 20);
  pid_t pid = start(&seat, "close-descriptors", "");
  for (uint64_t since = seat_now(); GET(seat.hellos) < 2 && seat_now() - since < PATIENCE_NS;) usleep(1000);
  CHECK(GET(seat.hellos) >= 2, "%u hellos", GET(seat.hellos));
  CHECK(stop_launching(&seat, pid) == 0, "role");
  seat_close(&seat);
}

static void test_gpu_time(void) {
  measured_role("gpu-time", "1000000", (uint32_t)SHM_GRANT_OPEN);
  measured_role("gpu-time", "20000", (uint32_t)SHM_GRANT_OPEN);
  measured_role("gpu-time", "100000000", (uint32_t)SHM_GRANT_OPEN);
}

/* ---- refusals ---- */

static void refuse(struct fake_seat *seat, const char *what) {
  int status = finish(start(seat, "refused", ""));
  CHECK(status == 0, "%s: ended with %d", what, status);
}

/* Replaces one of the lease's files by another, or (size < 0) restores it. The seat's own mapping must stay intact. */
static void replace(const struct fake_seat *seat, const char *name, off_t size) {
  char path[128], kept[160];
  snprintf(path, sizeof path, "%s/leases/test/%s", seat->dir, name);
  snprintf(kept, sizeof kept, "%s.kept", path);
  if (size < 0) {
    CHECK(rename(kept, path) == 0, "rename back");
    return;
  }
  CHECK(rename(path, kept) == 0, "rename");
  int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  CHECK(fd >= 0 && ftruncate(fd, size) == 0, "truncate");
  close(fd);
}

static void test_refused(void) {
  SEATED(64u << 20, 1 << 20);
  seat.report_header->layout_major = 7;
  refuse(&seat, "another major");
  seat.report_header->layout_major = 1;
  seat.report_header->magic ^= 1;
  refuse(&seat, "another magic");
  seat.report_header->magic ^= 1;
  replace(&seat, "report", 4096);
  refuse(&seat, "truncated report");
  replace(&seat, "report", -1);
  replace(&seat, "grant", 0);
  refuse(&seat, "empty grant");
  replace(&seat, "grant", -1);
  __atomic_store_n(&seat.stop, 1, __ATOMIC_SEQ_CST);
  pthread_join(seat.thread, NULL);
  close(seat.listener);
  char path[128];
  snprintf(path, sizeof path, "%s/hook.sock", seat.dir);
  CHECK(unlink(path) == 0, "unlink");
  refuse(&seat, "no seat");
  CHECK(finish(start(&seat, "open-mode", "")) == 0, "open mode");
  seat_start(&seat);
  seat_close(&seat);
}

static void open_mute(struct fake_seat *seat) {
  seat_open(seat, 64u << 20, 1 << 20);
  seat->mute = 1;
  seat_start(seat);
}

/* A process gives up on a late seat and lives on. The slot that the seat then gives it must be given back. */
static void test_late_welcome(void) {
  char path[128];
  struct fake_seat seat;
  open_mute(&seat);
  pid_t pid = start(&seat, "late", "");
  snprintf(path, sizeof path, "%s/refused", seat.dir);
  while (access(path, F_OK) != 0 && kill(pid, 0) == 0) usleep(1000);
  __atomic_store_n(&seat.mute, 0, __ATOMIC_SEQ_CST);
  uint64_t until = seat_now() + PATIENCE_NS;
  while ((GET(seat.hellos) == 0 || GET(seat.slots[1].state) != SHM_SLOT_FREE) && seat_now() < until) usleep(1000);
  CHECK(GET(seat.hellos) > 0 && GET(seat.slots[1].state) == SHM_SLOT_FREE, "%u hellos, slot 1 is in state %u",
        GET(seat.hellos), GET(seat.slots[1].state));
  CHECK(stop_launching(&seat, pid) == 0, "role");
  seat_close(&seat);
}

/* While a process has no connection, its slot gets another owner. It must not write there any more, and works no more. */
static void test_slot_taken(void) {
  SEATED(64u << 20, 1 << 20);
  pid_t pid = start(&seat, "revoked", "");
  CHECK(await_work(&seat, 0), "no work");
  seat_stop(&seat);
  __atomic_store_n(&seat.slots[1].pid, 1, __ATOMIC_SEQ_CST);
  seat_start(&seat);
  int status = finish(pid);
  CHECK(status == 0 && GET(seat.welcomes_refused) == 1, "role ended with %d after %u refusals", status,
        GET(seat.welcomes_refused));
  seat_close(&seat);
}

/* A process takes a dead seat over late, and the program waits. */
static void test_seat_taken_over(void) {
  SEATED(64u << 20, 1 << 20);
  seat_stop(&seat);
  pid_t pid = start(&seat, "launch", "");
  usleep(3000000);
  seat_start(&seat);
  CHECK(await_work(&seat, 0), "no work");
  CHECK(stop_launching(&seat, pid) == 0, "role");
  seat_close(&seat);
}

/* A seat that changes hands, or accepts connections and answers late, is waited for longer than a missing one. */
static void test_seat_changes(void) {
  SEATED(64u << 20, 1 << 20);
  __atomic_store_n(&seat.mute, 1, __ATOMIC_SEQ_CST);
  pid_t pid = start(&seat, "launch", "");
  usleep(1500000);
  seat_stop(&seat);
  seat_start(&seat);
  usleep(2500000);
  __atomic_store_n(&seat.mute, 0, __ATOMIC_SEQ_CST);
  CHECK(await_work(&seat, 0), "no work");
  CHECK(stop_launching(&seat, pid) == 0, "role");
  seat_close(&seat);
}

/* Until a program has connected to a seat that is mute. */
static void await_asked(const struct fake_seat *seat) {
  struct pollfd asked = {.fd = seat->listener, .events = POLLIN};
  CHECK(poll(&asked, 1, (int)(PATIENCE_NS / 1000000)) == 1, "nobody asks");
}

/* A program that waits for the answer keeps its place among all that wait. */
static void test_late_answer(void) {
  struct fake_seat seat;
  open_mute(&seat);
  pid_t pid = start(&seat, "launch", "");
  await_asked(&seat);
  usleep(3000000);
  __atomic_store_n(&seat.mute, 0, __ATOMIC_SEQ_CST);
  CHECK(await_work(&seat, 0), "no work");
  CHECK(GET(seat.hellos) == 1, "%u hellos", GET(seat.hellos));
  CHECK(stop_launching(&seat, pid) == 0, "role");
  seat_close(&seat);
}

/* The seat does not answer, but lives on after another process has taken it. */
static void test_seat_replaced(void) {
  struct fake_seat seat;
  open_mute(&seat);
  pid_t pid = start(&seat, "launch", "");
  await_asked(&seat);
  int lives_on = dup(seat.listener);
  seat_stop(&seat);
  seat_start(&seat);
  __atomic_store_n(&seat.mute, 0, __ATOMIC_SEQ_CST);
  CHECK(await_work(&seat, 0), "no work");
  CHECK(GET(seat.hellos) == 1, "%u hellos", GET(seat.hellos));
  CHECK(stop_launching(&seat, pid) == 0, "role");
  close(lives_on);
  seat_close(&seat);
}

/* More programs wait for a late seat than its socket has places for. */
static void test_seat_crowded(void) {
  enum { MOST = 256 };
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  struct fake_seat seat;
  int crowd[MOST], count = 0;
  open_mute(&seat);
  snprintf(address.sun_path, sizeof address.sun_path, "%s/hook.sock", seat.dir);
  do {
    crowd[count] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  } while (connect(crowd[count], (struct sockaddr *)&address, sizeof address) == 0 && ++count < MOST);
  CHECK(count < MOST && errno == EAGAIN, "there is always a place");
  pid_t pid = start(&seat, "launch", "");
  usleep(3000000);
  for (int i = 0; i <= count; i++) close(crowd[i]);
  __atomic_store_n(&seat.mute, 0, __ATOMIC_SEQ_CST);
  CHECK(await_work(&seat, 0), "no work");
  CHECK(stop_launching(&seat, pid) == 0, "role");
  seat_close(&seat);
}

static const struct {
  const char *name;
  void (*run)(void);
} tests[] = {
    {"attach", test_attach},
    {"memory", test_memory},
    {"passed-on", test_passed_on},
    {"proc-address", test_proc_address},
    {"dlopen", test_dlopen},
    {"capture", test_capture},
    {"fork", test_fork},
    {"close-descriptors", test_close_descriptors},
    {"set-user", test_set_user},
    {"fork-first", test_fork_first},
    {"denied", test_denied},
    {"slot-taken", test_slot_taken},
    {"gpu-time", test_gpu_time},
    {"gate", test_gate},
    {"waits-asleep", test_waits_asleep},
    {"bound", test_bound},
    {"messages", test_messages},
    {"resting", test_resting},
    {"seat-rests", test_seat_rests},
    {"revoked", test_revoked},
    {"seat-killed", test_seat_killed},
    {"seat-ended", test_seat_ended},
    {"seat-stopped", test_seat_stopped},
    {"seat-slow", test_seat_slow},
    {"seat-late", test_seat_late},
    {"seat-hidden", test_seat_hidden},
    {"express-obeyed", test_express_obeyed},
    {"express-stale", test_express_stale},
    {"express-announced", test_express_announced},
    {"express-fork", test_express_fork},
    {"express-killed", test_express_killed},
    {"express-exit", test_express_exit},
    {"express-garbage", test_express_garbage},
    {"express-told", test_express_told},
    {"express-missing", test_express_missing},
    {"tenants-memory", test_tenants_memory},
    {"tenants-streams", test_tenants_streams},
    {"tenants-gates", test_tenants_gates},
    {"tenants-drop", test_tenants_drop},
    {"tenants-lost", test_tenants_lost},
    {"tenants-fork", test_tenants_fork},
    {"tenants-churn", test_tenants_churn},
    {"tenants-killed", test_tenants_killed},
    {"refused", test_refused},
    {"late-welcome", test_late_welcome},
    {"seat-taken-over", test_seat_taken_over},
    {"seat-changes", test_seat_changes},
    {"late-answer", test_late_answer},
    {"seat-replaced", test_seat_replaced},
    {"seat-crowded", test_seat_crowded},
    {"garbage", test_garbage},
    {"garbage-grant", test_garbage_grant},
    {"peers-even", test_peers_even},
    {"copies-apart", test_copies_apart},
    {"launches-counted", test_launches_counted},
    {"graphs-measured", test_graphs_measured},
    {"graphs-long", test_graphs_long},
    {"graphs-conditional", test_graphs_conditional},
    {"waits-uncharged", test_waits_uncharged},
    {"stops-uncharged", test_stops_uncharged},
    {"peers-no-credit", test_peers_no_credit},
    {"peers-stopped", test_peers_stopped},
    {"peers-stopped-soon", test_peers_stopped_soon},
    {"peers-line", test_peers_line},
    {"suspended-waits", test_suspended_waits},
    {"thread-pid", test_thread_pid},
    {"exits", test_exits},
    {"stalled", test_stalled},
    {"copies-batched", test_copies_batched},
    {"capture-other", test_capture_other},
    {"capture-new", test_capture_new},
    {"launch-bound", test_launch_bound},
    {"silent", test_silent},
    {"held-up", test_held_up},
    {"charged", test_charged},
    {"measuring-calls", test_measuring_calls},
    {"slips", test_slips},
    {"rounds", test_rounds},
    {"captures-close", test_captures_close},
    {"cancelled", test_cancelled},
    {"many-streams", test_many_streams},
    {"many-contexts", test_many_contexts},
    {"quota-churn", test_quota_churn},
    {"quota-fill", test_quota_fill},
};

int main(int count, char **arguments) {
  if (count > 3 && strcmp(arguments[1], "--role") == 0) {
    int measures = getenv("TEST_MEASURES") != NULL;
    if (measures) delays_watch();
    int status = run_as(arguments[2], arguments[3]);
    return measures && status == 1 && delays_were_long() ? DELAYED : status;
  }
  if (count < 3) return 2;
  setvbuf(stdout, NULL, _IOLBF, 0);
  hook = arguments[1];
  stub = arguments[2];
  self = realpath("/proc/self/exe", NULL);
  for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
    int wanted = count == 3;
    for (int j = 3; j < count; j++) wanted |= strcmp(arguments[j], tests[i].name) == 0;
    if (!wanted) continue;
    int before = failures;
    uint64_t since = seat_now();
    tests[i].run();
    printf("%s %s (%llu ms)\n", failures == before ? "ok  " : "FAIL", tests[i].name,
           (unsigned long long)(seat_now() - since) / 1000000);
  }
  return failures == 0 ? 0 : 1;
}
