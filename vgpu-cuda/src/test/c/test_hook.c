/*
 * Tests of the hook over the stub driver and the fake seat. The seat runs in this process; the hooked program is this
 * binary again, started in a role. Usage: test_hook HOOK STUB [TEST...]; HOOK is "-" if the hook is linked in
 * (sanitizers). Prints one line per test.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_seat.h"
#include "stub_driver.h"
#include "test.h"

static const char *hook, *stub, *self;
int failures;

/* Besides what this program was started with. */
static void preload_hook(void) {
  const char *also = getenv("LD_PRELOAD");
  char all[2048];
  snprintf(all, sizeof all, "%s%s%s", hook, also == NULL ? "" : ":", also == NULL ? "" : also);
  setenv("LD_PRELOAD", all, 1);
}

/* Starts this program in a role under the lease. */
pid_t start(const struct fake_seat *seat, const char *role, const char *argument) {
  pid_t pid = fork();
  if (pid != 0) return pid;
  setenv("VGPU_RUN_DIR", seat->dir, 1);
  setenv("VGPU_LEASE", "test", 1);
  setenv("VGPU_CUDA_DRIVER", stub, 1);
  setenv("STUB_PATH", stub, 1);
  if (strcmp(hook, "-") != 0) preload_hook();
  execl(self, self, "--role", role, argument, (char *)NULL);
  _exit(127);
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
  uint64_t until = seat_now() + 5000000000u;
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

static void test_close_descriptors(void) {
  SEATED(64u << 20, 1 << 20);
  play_role(&seat, "close-descriptors", "");
  CHECK(GET(seat.hellos) >= 2, "%u hellos", GET(seat.hellos));
  seat_close(&seat);
}

static void test_gpu_time(void) {
  SEATED(64u << 20, 1 << 20);
  seat.grant->turn_flags = (uint32_t)SHM_TURN_LIMITED;
  play_role(&seat, "gpu-time", "1000000");
  play_role(&seat, "gpu-time", "20000");
  play_role(&seat, "gpu-time", "100000000");
  seat_close(&seat);
}

/* ---- the gate ---- */

/* Prints the page's state for a failure's message. */
static void tell(const struct fake_seat *seat) {
  const struct shm_slot *slot = &seat->slots[1];
  uint64_t now = seat_now();
  fprintf(stderr, "  busy %u waiting %u autonomous %u launches %llu gpu %llu us, monitor seen %lld us ago, seat %lld us ago, busy until %lld us ago\n",
          slot->busy, slot->waiting, slot->autonomous, (unsigned long long)slot->launches, (unsigned long long)slot->gpu_ns / 1000,
          (long long)(now - slot->heartbeat_ns) / 1000, (long long)(now - seat->grant_header->heartbeat_ns) / 1000,
          (long long)(now - seat->ledger->busy_until_ns) / 1000);
}

static uint64_t own_start_time(void) {
  unsigned long long start = 0;
  FILE *file = fopen("/proc/self/stat", "r");
  CHECK(file != NULL && fscanf(file, "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
                              &start) == 1, "/proc/self/stat");
  if (file != NULL) fclose(file);
  return start;
}

int stop_launching(const struct fake_seat *seat, pid_t pid) {
  char path[128];
  snprintf(path, sizeof path, "%s/stop", seat->dir);
  close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  return finish(pid);
}

int await_work(const struct fake_seat *seat, uint64_t before) {
  uint64_t since = seat_now();
  while (seat_gpu_ns(seat) <= before && seat_now() - since < 5000000000u) usleep(200);
  return seat_gpu_ns(seat) > before;
}

/*
 * One round. It counts only if this seat's heartbeat had no gap on a busy machine: otherwise the process may rightly go
 * on.
 */
static int gate_round(struct fake_seat *seat) {
  seat_gate(seat, 0);
  uint64_t since = seat_now();
  while (seat_busy(seat) != 0 && seat_now() - since < 5000000000u) usleep(50);
  CHECK(seat_busy(seat) == 0, "not drained");
  if (seat_busy(seat) != 0) tell(seat);
  uint64_t before = seat_gpu_ns(seat);
  usleep(8000);
  /*
   * A thread that found the gate open before it shut may count itself only now. It then looks again and leaves. Real
   * work would take GPU time.
   */
  for (since = seat_now(); seat_busy(seat) != 0 && seat_now() - since < 5000000000u;) usleep(50);
  int worked = seat_busy(seat) != 0 || seat_gpu_ns(seat) != before;
  uint64_t gap = seat_now() - GET(seat->grant_header->heartbeat_ns); /* the current, unfinished gap */
  int counts = GET(seat->longest_gap_ns) < 10000000u && gap < 10000000u && !GET(seat->slots[1].autonomous);
  __atomic_store_n(&seat->longest_gap_ns, 0, __ATOMIC_SEQ_CST);
  CHECK(!worked || !counts, "work while the gate is shut");
  if (worked && counts) tell(seat);
  seat_gate(seat, (uint32_t)SHM_GRANT_OPEN);
  CHECK(await_work(seat, before), "no work while the gate is open");
  return counts;
}

static void test_gate(void) {
  SEATED(64u << 20, 1 << 20);
  seat.grant->turn_flags = (uint32_t)(SHM_TURN_LIMITED | SHM_TURN_CONTENDED);
  seat.grant_header->seat_pid = (uint64_t)getpid();
  seat.grant_header->seat_start = own_start_time();
  pid_t pid = start(&seat, "launch", "");
  CHECK(await_work(&seat, 0), "no work");
  for (int counted = 0, rounds = 0; counted < 10 && rounds < 100; rounds++) counted += gate_round(&seat);
  CHECK(GET(seat.wants) > 0 && GET(seat.idles) >= 10, "%u wants, %u idles", GET(seat.wants), GET(seat.idles));
  CHECK(stop_launching(&seat, pid) == 0, "role");
  seat_close(&seat);
}

/* How often the threads of a process went to sleep. */
static uint64_t sleeps(pid_t pid) {
  char path[64], line[256];
  uint64_t sum = 0;
  snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
  DIR *tasks = opendir(path);
  CHECK(tasks != NULL, "%s", path);
  for (struct dirent *task; tasks != NULL && (task = readdir(tasks)) != NULL;) {
    unsigned long long count;
    char status[sizeof path + 272];
    snprintf(status, sizeof status, "%s/%s/status", path, task->d_name);
    FILE *file = task->d_name[0] == '.' ? NULL : fopen(status, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
      if (sscanf(line, "voluntary_ctxt_switches: %llu", &count) == 1) sum += count;
    }
    if (file != NULL) fclose(file);
  }
  if (tasks != NULL) closedir(tasks);
  return sum;
}

/* Whoever waits for its turn sleeps: the work of others must not get slower by the number of those who wait. */
static void test_waits_asleep(void) {
  enum { MS = 400, MOST = MS / 2 };
  SEATED(64u << 20, 1 << 20);
  seat.grant->turn_flags = (uint32_t)(SHM_TURN_LIMITED | SHM_TURN_CONTENDED);
  seat.grant_header->seat_pid = (uint64_t)getpid();
  seat.grant_header->seat_start = own_start_time();
  pid_t pid = start(&seat, "launch", "");
  CHECK(await_work(&seat, 0), "no work");
  seat_gate(&seat, 0);
  uint64_t since = seat_now();
  while ((seat_busy(&seat) != 0 || GET(seat.slots[1].waiting) == 0) && seat_now() - since < 5000000000u) usleep(50);
  uint64_t before = sleeps(pid);
  usleep(MS * 1000);
  uint64_t count = sleeps(pid) - before;
  printf("  %llu sleeps in %d ms\n", (unsigned long long)count, (int)MS);
  CHECK(count < MOST, "%llu sleeps in %d ms at a shut gate", (unsigned long long)count, (int)MS);
  seat_gate(&seat, (uint32_t)SHM_GRANT_OPEN);
  CHECK(await_work(&seat, seat_gpu_ns(&seat)), "no work while the gate is open");
  CHECK(stop_launching(&seat, pid) == 0, "role");
  seat_close(&seat);
}

static void test_bound(void) {
  SEATED(64u << 20, 1 << 20);
  seat.grant->turn_flags = (uint32_t)SHM_TURN_LIMITED;
  play_role(&seat, "bound", "300000");
  play_role(&seat, "bound", "20000");
  seat_close(&seat);
}

/* Idleness that lasts is reported; pauses of microseconds are not. */
static void test_messages(void) {
  SEATED(64u << 20, 1 << 20);
  seat.grant->turn_flags = (uint32_t)(SHM_TURN_LIMITED | SHM_TURN_CONTENDED);
  uint32_t idles = 0, wants = 0;
  /* On a busy machine the monitor may be late: some pauses are over before it reports them. */
  for (int tries = 0; tries < 5 && idles < 15; tries++) {
    uint32_t idles_before = GET(seat.idles), wants_before = GET(seat.wants);
    play_role(&seat, "small-kernels", "");
    idles = GET(seat.idles) - idles_before;
    wants = GET(seat.wants) - wants_before;
    printf("  2,020 kernels: %u wants, %u idles\n", wants, idles);
  }
  CHECK(idles >= 15, "%u idles", idles);
  /* Not for each kernel. The number depends on how often the machine prolongs a pause. */
  CHECK(wants + idles < 2020 / 2, "%u wants, %u idles", wants, idles);
  seat_close(&seat);
}

/* A resting seat is told when work begins. A seat that looks often is told nothing while the gate is open. */
static void test_resting(void) {
  SEATED(64u << 20, 1 << 20);
  play_role(&seat, "small-kernels", "");
  CHECK(GET(seat.wants) == 0, "%u wants", GET(seat.wants));
  seat.grant->turn_flags = (uint32_t)SHM_TURN_RESTING;
  play_role(&seat, "small-kernels", "");
  CHECK(GET(seat.wants) > 0 && GET(seat.idles) == 0, "%u wants, %u idles", GET(seat.wants), GET(seat.idles));
  seat_close(&seat);
}

static void test_revoked(void) {
  SEATED(64u << 20, 1 << 20);
  pid_t pid = start(&seat, "revoked", "");
  while (seat_gpu_ns(&seat) == 0 && waitpid(pid, NULL, WNOHANG) == 0) usleep(1000);
  seat_gate(&seat, (uint32_t)SHM_GRANT_REVOKED);
  CHECK(finish(pid) == 0, "role");
  seat_close(&seat);
}

/*
 * The seat falls silent while the gate is shut. After 15 ms the process goes on at its pace; afterwards it obeys again.
 */
static void test_autonomous(int stop_it) {
  SEATED(64u << 20, 1 << 20);
  seat.grant->turn_flags = (uint32_t)SHM_TURN_LIMITED;
  seat.grant->entitled_permille = 300;
  pid_t pid = start(&seat, "launch", "");
  CHECK(await_work(&seat, 0), "no work");
  seat_gate(&seat, 0);
  if (stop_it) __atomic_store_n(&seat.mute, 1, __ATOMIC_SEQ_CST);
  else seat_stop(&seat);
  usleep(60000);
  uint64_t before = seat_gpu_ns(&seat), since = seat_now();
  usleep(300000);
  double share = (double)(seat_gpu_ns(&seat) - before) / (double)(seat_now() - since);
  CHECK(share > 0.10 && share < 0.36, "share %.3f without a seat, not 0.300", share);
  if (stop_it) __atomic_store_n(&seat.mute, 0, __ATOMIC_SEQ_CST);
  else seat_start(&seat);
  usleep(60000);
  for (int counted = 0, rounds = 0; counted < 2 && rounds < 50; rounds++) counted += gate_round(&seat);
  CHECK(stop_launching(&seat, pid) == 0, "role");
  seat_close(&seat);
}

static void test_seat_killed(void) { test_autonomous(0); }

static void test_seat_stopped(void) { test_autonomous(1); }

/* A seat that is only late, and whose process runs, is waited for: for a time its gate stays shut. */
static void test_seat_late(void) {
  SEATED(64u << 20, 1 << 20);
  seat.grant->turn_flags = (uint32_t)SHM_TURN_LIMITED;
  seat.grant_header->seat_pid = (uint64_t)getpid();
  seat.grant_header->seat_start = own_start_time();
  pid_t pid = start(&seat, "launch", "");
  CHECK(await_work(&seat, 0), "no work");
  seat_gate(&seat, 0);
  usleep(20000);
  uint64_t before = seat_gpu_ns(&seat);
  __atomic_store_n(&seat.mute, 1, __ATOMIC_SEQ_CST);
  usleep(100000);
  CHECK(seat_gpu_ns(&seat) == before, "work at a shut gate while the seat is only late");
  usleep(350000);
  CHECK(seat_gpu_ns(&seat) > before, "no work without a seat");
  __atomic_store_n(&seat.mute, 0, __ATOMIC_SEQ_CST);
  seat_gate(&seat, (uint32_t)SHM_GRANT_OPEN);
  CHECK(stop_launching(&seat, pid) == 0, "role");
  seat_close(&seat);
}

/*
 * A resting seat beats seldom, and its process may be invisible from a container. It does not count as silent in
 * between.
 */
static void test_seat_rests(void) {
  SEATED(64u << 20, 1 << 20);
  seat.grant->turn_flags = (uint32_t)(SHM_TURN_LIMITED | SHM_TURN_RESTING);
  pid_t pid = start(&seat, "launch", "");
  CHECK(await_work(&seat, 0), "no work");
  seat_gate(&seat, 0);
  usleep(20000);
  uint64_t before = seat_gpu_ns(&seat);
  __atomic_store_n(&seat.mute, 1, __ATOMIC_SEQ_CST);
  usleep(100000);
  CHECK(seat_gpu_ns(&seat) == before, "work at a shut gate while the seat rests");
  usleep(350000);
  CHECK(seat_gpu_ns(&seat) > before, "no work without a seat");
  __atomic_store_n(&seat.mute, 0, __ATOMIC_SEQ_CST);
  seat_gate(&seat, (uint32_t)SHM_GRANT_OPEN);
  CHECK(stop_launching(&seat, pid) == 0, "role");
  seat_close(&seat);
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
  refuse(&seat, "no seat");
  CHECK(finish(start(&seat, "open-mode", "")) == 0, "open mode");
  seat_start(&seat);
  seat_close(&seat);
}

/* A process gives up on a late seat and lives on. The slot that the seat then gives it must be given back. */
static void test_late_welcome(void) {
  char path[128];
  SEATED(64u << 20, 1 << 20);
  __atomic_store_n(&seat.mute, 1, __ATOMIC_SEQ_CST);
  pid_t pid = start(&seat, "late", "");
  snprintf(path, sizeof path, "%s/refused", seat.dir);
  while (access(path, F_OK) != 0 && kill(pid, 0) == 0) usleep(1000);
  __atomic_store_n(&seat.mute, 0, __ATOMIC_SEQ_CST);
  uint64_t until = seat_now() + 5000000000u;
  while ((GET(seat.hellos) == 0 || GET(seat.slots[1].state) != SHM_SLOT_FREE) && seat_now() < until) usleep(1000);
  CHECK(GET(seat.hellos) > 0 && GET(seat.slots[1].state) == SHM_SLOT_FREE, "%u hellos, slot 1 is in state %u", GET(seat.hellos),
        GET(seat.slots[1].state));
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
    {"gpu-time", test_gpu_time},
    {"gate", test_gate},
    {"waits-asleep", test_waits_asleep},
    {"bound", test_bound},
    {"messages", test_messages},
    {"resting", test_resting},
    {"seat-rests", test_seat_rests},
    {"revoked", test_revoked},
    {"seat-killed", test_seat_killed},
    {"seat-stopped", test_seat_stopped},
    {"seat-late", test_seat_late},
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
    {"tenants-fork", test_tenants_fork},
    {"tenants-churn", test_tenants_churn},
    {"tenants-killed", test_tenants_killed},
    {"refused", test_refused},
    {"late-welcome", test_late_welcome},
    {"seat-changes", test_seat_changes},
    {"garbage", test_garbage},
    {"garbage-grant", test_garbage_grant},
    {"peers-even", test_peers_even},
    {"copies-apart", test_copies_apart},
    {"launches-counted", test_launches_counted},
    {"graphs-measured", test_graphs_measured},
    {"graphs-long", test_graphs_long},
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
    {"silent", test_silent},
    {"held-up", test_held_up},
    {"charged", test_charged},
    {"measuring-calls", test_measuring_calls},
    {"rounds", test_rounds},
    {"quota-churn", test_quota_churn},
    {"quota-fill", test_quota_fill},
};

int main(int count, char **arguments) {
  if (count > 3 && strcmp(arguments[1], "--role") == 0) return run_as(arguments[2], arguments[3]);
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
