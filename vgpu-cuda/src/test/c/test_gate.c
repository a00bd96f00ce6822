/* Tests of the gate: a seat that opens and shuts it, that rests, that is late, and that is gone. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_seat.h"
#include "test.h"

/* Prints the page's state for a failure's message. */
static void tell(const struct fake_seat *seat) {
  const struct shm_slot *slot = &seat->slots[1];
  uint64_t now = seat_now();
  fprintf(
      stderr,
      "  busy %u waiting %u autonomous %u launches %llu gpu %llu us, monitor seen %lld us ago, seat %lld us ago, busy until %lld us ago\n",
      slot->busy, slot->waiting, slot->autonomous, (unsigned long long)slot->launches,
      (unsigned long long)slot->gpu_ns / 1000, (long long)(now - slot->heartbeat_ns) / 1000,
      (long long)(now - seat->grant_header->heartbeat_ns) / 1000,
      (long long)(now - seat->ledger->busy_until_ns) / 1000);
}

static uint64_t own_start_time(void) {
  unsigned long long start = 0;
  FILE *file = fopen("/proc/self/stat", "r");
  CHECK(file != NULL &&
            fscanf(file,
                   "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
                   &start) == 1,
        "/proc/self/stat");
  if (file != NULL) fclose(file);
  return start;
}

void end_launching(const struct fake_seat *seat) {
  char path[128];
  snprintf(path, sizeof path, "%s/stop", seat->dir);
  close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
}

int stop_launching(const struct fake_seat *seat, pid_t pid) {
  end_launching(seat);
  return finish(pid);
}

int await_work(const struct fake_seat *seat, uint64_t before) {
  uint64_t since = seat_now();
  while (seat_gpu_ns(seat) <= before && seat_now() - since < PATIENCE_NS) usleep(200);
  return seat_gpu_ns(seat) > before;
}

/* A seat that is known to be gone may count as such after 5 ms, any other one after 250. */
static const uint64_t SILENT_NS = 4000000, LATE_NS = 200000000;

/*
 * Whether this seat's heartbeat had no such gap since the last question, as it may on a busy machine: then the process
 * may rightly go on.
 */
static int was_on_time(struct fake_seat *seat, uint64_t most_ns) {
  uint64_t gap = seat_now() - GET(seat->grant_header->heartbeat_ns); /* the current, unfinished gap */
  int fine = GET(seat->longest_gap_ns) < most_ns && gap < most_ns && !GET(seat->slots[1].autonomous);
  __atomic_store_n(&seat->longest_gap_ns, 0, __ATOMIC_SEQ_CST);
  return fine;
}

/* One round. It counts only if this seat was on time. */
static int gate_round(struct fake_seat *seat) {
  seat_gate(seat, 0);
  uint64_t since = seat_now();
  while (seat_busy(seat) != 0 && seat_now() - since < PATIENCE_NS) usleep(50);
  CHECK(seat_busy(seat) == 0, "not drained");
  if (seat_busy(seat) != 0) tell(seat);
  uint64_t before = seat_gpu_ns(seat);
  usleep(8000);
  /*
   * A thread that found the gate open before it shut may count itself only now. It then looks again and leaves. Real
   * work would take GPU time.
   */
  for (since = seat_now(); seat_busy(seat) != 0 && seat_now() - since < PATIENCE_NS;) usleep(50);
  int worked = seat_busy(seat) != 0 || seat_gpu_ns(seat) != before;
  int counts = was_on_time(seat, SILENT_NS);
  CHECK(!worked || !counts, "work while the gate is shut");
  if (worked && counts) tell(seat);
  seat_gate(seat, (uint32_t)SHM_GRANT_OPEN);
  CHECK(await_work(seat, before), "no work while the gate is open");
  return counts;
}

void test_gate(void) {
  SEATED(64u << 20, 1 << 20);
  seat.grant->turn_flags = (uint32_t)(SHM_TURN_LIMITED | SHM_TURN_CONTENDED);
  seat.grant_header->seat_pid = (uint64_t)getpid();
  seat.grant_header->seat_start = own_start_time();
  pid_t pid = start(&seat, "launch", "");
  CHECK(await_work(&seat, 0), "no work");
  for (int counted = 0, rounds = 0; counted < 10 && rounds < 100; rounds++) counted += gate_round(&seat);
  for (uint64_t since = seat_now(); GET(seat.idles) < 10 && seat_now() - since < PATIENCE_NS;) usleep(1000);
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
void test_waits_asleep(void) {
  enum { MS = 400, MOST = MS / 2, TRIES = 20 };
  struct fake_seat seat;
  seat_open(&seat, 64u << 20, 1 << 20);
  seat.tells_end = 1; /* for that, too, nobody is woken while the seat lives */
  seat.grant->turn_flags = (uint32_t)(SHM_TURN_LIMITED | SHM_TURN_CONTENDED);
  seat.grant_header->seat_pid = (uint64_t)getpid();
  seat.grant_header->seat_start = own_start_time();
  seat_start(&seat);
  pid_t pid = start(&seat, "launch", "");
  CHECK(await_work(&seat, 0), "no work");
  int counts = 0;
  for (int tries = 0; tries < TRIES && !counts; tries++) {
    was_on_time(&seat, LATE_NS);
    seat_gate(&seat, 0);
    uint64_t since = seat_now();
    while ((seat_busy(&seat) != 0 || GET(seat.slots[1].waiting) == 0) && seat_now() - since < PATIENCE_NS) usleep(50);
    since = seat_now();
    uint64_t before = sleeps(pid);
    usleep(MS * 1000);
    uint64_t count = sleeps(pid) - before, ms = (seat_now() - since) / 1000000;
    counts = was_on_time(&seat, LATE_NS);
    printf("  %llu sleeps in %llu ms\n", (unsigned long long)count, (unsigned long long)ms);
    CHECK(count * MS < MOST * ms || !counts, "%llu sleeps in %llu ms at a shut gate", (unsigned long long)count,
          (unsigned long long)ms);
    seat_gate(&seat, (uint32_t)SHM_GRANT_OPEN);
    CHECK(await_work(&seat, seat_gpu_ns(&seat)), "no work while the gate is open");
  }
  CHECK(counts, "the seat was never on time");
  CHECK(stop_launching(&seat, pid) == 0, "role");
  seat_close(&seat);
}

void test_bound(void) {
  measured_role("bound", "300000", (uint32_t)SHM_GRANT_OPEN);
  measured_role("bound", "20000", (uint32_t)SHM_GRANT_OPEN);
}

/* Idleness that lasts is reported; pauses of microseconds are not. */
void test_messages(void) {
#ifdef VGPU_SANITIZED
  enum { MOST = 2 * 2020 + 2 }; /* too slow to have short pauses */
#else
  enum { MOST = 2020 / 2 };
#endif
  SEATED(64u << 20, 1 << 20);
  seat.grant->turn_flags = (uint32_t)(SHM_TURN_LIMITED | SHM_TURN_CONTENDED);
  uint32_t idles = 0, wants = 0;
  /*
   * On a busy machine the monitor may be late: some pauses are over before it reports them. Others last, because the
   * program waits for a processor.
   */
  for (int tries = 0; tries < 20 && (idles < 15 || wants + idles >= MOST); tries++) {
    uint32_t idles_before = GET(seat.idles), wants_before = GET(seat.wants);
    play_role(&seat, "small-kernels", "");
    idles = GET(seat.idles) - idles_before;
    wants = GET(seat.wants) - wants_before;
    printf("  2,020 kernels: %u wants, %u idles\n", wants, idles);
  }
  CHECK(idles >= 15, "%u idles", idles);
  CHECK(wants + idles < MOST, "not for each kernel: %u wants, %u idles", wants, idles);
  seat_close(&seat);
}

/* A resting seat is told when work begins. A seat that looks often is told nothing while the gate is open. */
void test_resting(void) {
  SEATED(64u << 20, 1 << 20);
  play_role(&seat, "small-kernels", "");
  CHECK(GET(seat.wants) == 0, "%u wants", GET(seat.wants));
  seat.grant->turn_flags = (uint32_t)SHM_TURN_RESTING;
  play_role(&seat, "small-kernels", "");
  for (uint64_t since = seat_now(); GET(seat.wants) == 0 && seat_now() - since < PATIENCE_NS;) usleep(1000);
  CHECK(GET(seat.wants) > 0 && GET(seat.idles) == 0, "%u wants, %u idles", GET(seat.wants), GET(seat.idles));
  seat_close(&seat);
}

void test_revoked(void) {
  SEATED(64u << 20, 1 << 20);
  pid_t pid = start(&seat, "revoked", "");
  while (seat_gpu_ns(&seat) == 0 && waitpid(pid, NULL, WNOHANG) == 0) usleep(1000);
  seat_gate(&seat, (uint32_t)SHM_GRANT_REVOKED);
  CHECK(finish(pid) == 0, "role");
  seat_close(&seat);
}

/* Makes the seat's process that of another pid namespace. */
static void hide(struct fake_seat *seat) {
  seat->grant_header->seat_pid = (uint64_t)getpid();
  seat->grant_header->seat_start = 1;
  seat->more->pid_namespace++;
}

/*
 * The seat falls silent while the gate is shut. After 5 ms the process goes on at its pace; afterwards it obeys again.
 */
static void test_autonomous(int stop_it, int hide_it) {
  enum { TRIES = 20 };
  SEATED(64u << 20, 1 << 20);
  if (hide_it) hide(&seat);
  seat.grant->turn_flags = (uint32_t)SHM_TURN_LIMITED;
  seat.grant->entitled_permille = 300;
  pid_t pid = start(&seat, "launch", "");
  CHECK(await_work(&seat, 0), "no work");
  seat_gate(&seat, 0);
  if (stop_it) __atomic_store_n(&seat.mute, 1, __ATOMIC_SEQ_CST);
  else seat_stop(&seat);
  usleep(60000);
  double share = 0;
  for (int tries = 0; tries < TRIES && (share <= 0.10 || share >= 0.36);
       tries++) { /* a busy machine may delay either process */
    uint64_t before = seat_gpu_ns(&seat), since = seat_now();
    usleep(300000);
    share = (double)(seat_gpu_ns(&seat) - before) / (double)(seat_now() - since);
  }
  CHECK(share > 0.10 && share < 0.36, "share %.3f without a seat, not 0.300", share);
  if (stop_it) __atomic_store_n(&seat.mute, 0, __ATOMIC_SEQ_CST);
  else seat_start(&seat);
  usleep(60000);
  for (int counted = 0, rounds = 0; counted < 2 && rounds < 50; rounds++) counted += gate_round(&seat);
  CHECK(stop_launching(&seat, pid) == 0, "role");
  seat_close(&seat);
}

void test_seat_killed(void) {
  test_autonomous(0, 0);
  test_autonomous(0, 1);
}

void test_seat_stopped(void) { test_autonomous(1, 0); }

/* How often the thread of that name of a process has waited. */
static uint64_t waits_of(pid_t pid, const char *thread) {
  char path[64], line[128];
  uint64_t waits = 0;
  snprintf(path, sizeof path, "/proc/%d/task", pid);
  DIR *tasks = opendir(path);
  CHECK(tasks != NULL, "no %s", path);
  for (const struct dirent *task; tasks != NULL && (task = readdir(tasks)) != NULL;) {
    int is_it = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%.16s/status", pid, task->d_name);
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
      unsigned long long count;
      if (strncmp(line, "Name:", 5) == 0) is_it = strstr(line, thread) != NULL;
      if (is_it && sscanf(line, "voluntary_ctxt_switches: %llu", &count) == 1) waits += count;
    }
    if (file != NULL) fclose(file);
  }
  if (tasks != NULL) closedir(tasks);
  return waits;
}

/*
 * The seat has changed, and the new one is slow: a busy machine keeps it from its processor. A process that goes on at
 * its pace leaves the processor to it, and asks it less and less often.
 */
void test_seat_slow(void) {
  enum { TICK_NS = 2000000, OTHER_WAITS = 100, FIRST_PATIENCE_NS = 200000000 };
  SEATED(64u << 20, 1 << 20);
  seat.grant->turn_flags = (uint32_t)(SHM_TURN_LIMITED | SHM_TURN_CONTENDED);
  seat.grant->entitled_permille = 300;
  pid_t pid = start(&seat, "launch", "");
  CHECK(await_work(&seat, 0), "no work");
  seat_gate(&seat, 0);
  __atomic_store_n(&seat.mute, 1, __ATOMIC_SEQ_CST);
  seat_stop(&seat);
  uint32_t hellos = __atomic_load_n(&seat.hellos, __ATOMIC_SEQ_CST);
  uint64_t since = seat_now();
  seat_start(&seat);
  while (!__atomic_load_n(&seat.slots[1].autonomous, __ATOMIC_SEQ_CST) && seat_now() - since < PATIENCE_NS) usleep(200);
  uint64_t before = waits_of(pid, "vgpu-monitor"), began = seat_now();
  usleep(1300000);
  uint64_t waits = waits_of(pid, "vgpu-monitor") - before, most = (seat_now() - began) / TICK_NS + OTHER_WAITS;
  CHECK(waits > 0 && waits <= most, "the monitor waited %llu times, not at most %llu", (unsigned long long)waits,
        (unsigned long long)most);
  uint64_t given_up = FIRST_PATIENCE_NS;
  uint32_t asked = 1;
  for (; given_up <= seat_now() - since; asked++) given_up += (uint64_t)FIRST_PATIENCE_NS << asked;
  __atomic_store_n(&seat.mute, 0, __ATOMIC_SEQ_CST);
  for (int counted = 0, rounds = 0; counted < 2 && rounds < 50; rounds++) counted += gate_round(&seat);
  hellos = __atomic_load_n(&seat.hellos, __ATOMIC_SEQ_CST) - hellos;
  CHECK(hellos > 0 && hellos <= asked, "the seat was asked %u times, not %u", hellos, asked);
  CHECK(stop_launching(&seat, pid) == 0, "role");
  seat_close(&seat);
}

static uint32_t beats;

/* Keeps a seat's heartbeat fresh, so that nobody misses it. */
static void *keep_beating(void *argument) {
  const struct fake_seat *seat = argument;
  while (GET(beats)) {
    __atomic_store_n(&seat->grant_header->heartbeat_ns, seat_now(), __ATOMIC_SEQ_CST);
    usleep(500);
  }
  return NULL;
}

/* The seat's thread ends: its page says so, and the process does not wait until it misses the heartbeat. */
static void test_thread_ended(int hide_it) {
  struct fake_seat seat;
  seat_open(&seat, 64u << 20, 1 << 20);
  seat.grant->turn_flags = (uint32_t)SHM_TURN_LIMITED;
  seat.grant_header->seat_pid = (uint64_t)getpid();
  seat.grant_header->seat_start = own_start_time();
  if (hide_it) hide(&seat);
  seat.tells_end = 1;
  seat_start(&seat);
  pid_t pid = start(&seat, "launch", "");
  CHECK(await_work(&seat, 0), "no work");
  seat_gate(&seat, 0);
  for (uint64_t since = seat_now();
       (seat_busy(&seat) != 0 || GET(seat.slots[1].waiting) == 0) && seat_now() - since < PATIENCE_NS;)
    usleep(50);
  uint64_t before = seat_gpu_ns(&seat);
  pthread_t beater;
  __atomic_store_n(&beats, 1, __ATOMIC_SEQ_CST);
  CHECK(pthread_create(&beater, NULL, keep_beating, &seat) == 0, "thread");
  seat_stop(&seat);
  CHECK((GET(seat.more->seat_thread) & SHM_SEAT_THREAD_ENDED) != 0, "the kernel does not tell a thread's end");
  CHECK(await_work(&seat, before), "no work after the end of the seat's thread");
  CHECK(GET(seat.slots[1].autonomous), "with a seat");
  /* An older seat takes over, whose thread is not told: what the page says is of another holder. */
  seat.tells_end = 0;
  seat.more->seat_thread_of++;
  seat_start(&seat);
  for (uint64_t since = seat_now(); GET(seat.slots[1].autonomous) && seat_now() - since < PATIENCE_NS;) usleep(200);
  CHECK(!GET(seat.slots[1].autonomous), "goes on by itself though a seat answers");
  __atomic_store_n(&beats, 0, __ATOMIC_SEQ_CST);
  pthread_join(beater, NULL);
  for (int counted = 0, rounds = 0; counted < 2 && rounds < 50; rounds++) counted += gate_round(&seat);
  CHECK(stop_launching(&seat, pid) == 0, "role");
  seat_close(&seat);
}

void test_seat_ended(void) {
  test_thread_ended(0);
  test_thread_ended(1);
}

/*
 * The seat falls silent while the gate is shut. Returns whether the work goes on soon after a quarter of a second. A
 * busy machine may delay it, or this seat before; then the round does not count either.
 */
static int late_round(struct fake_seat *seat, const char *state) {
  static const uint64_t SOON_NS = 450000000;
  was_on_time(seat, LATE_NS);
  seat_gate(seat, 0);
  for (uint64_t since = seat_now(); seat_busy(seat) != 0 && seat_now() - since < PATIENCE_NS;) usleep(50);
  usleep(20000);
  uint64_t before = seat_gpu_ns(seat);
  int counts = was_on_time(seat, LATE_NS);
  __atomic_store_n(&seat->mute, 1, __ATOMIC_SEQ_CST);
  usleep(100000);
  int worked = seat_gpu_ns(seat) != before;
  counts &= seat_now() - GET(seat->grant_header->heartbeat_ns) < LATE_NS;
  CHECK(!worked || !counts, "work at a shut gate while the seat %s", state);
  CHECK(await_work(seat, before), "no work without a seat");
  counts &= seat_now() - GET(seat->grant_header->heartbeat_ns) < SOON_NS;
  __atomic_store_n(&seat->mute, 0, __ATOMIC_SEQ_CST);
  seat_gate(seat, (uint32_t)SHM_GRANT_OPEN);
  CHECK(await_work(seat, seat_gpu_ns(seat)), "no work while the gate is open");
  return counts;
}

/*
 * A seat that sends no heartbeat for a good reason is waited for: its gate stays shut for a quarter of a second, and no
 * longer. `pid`: the seat's process; 0: it is not told; HIDDEN: it is in another pid namespace.
 */
enum { HIDDEN = 1 };
static void test_waits_for_seat(uint64_t turn_flags, uint64_t pid, const char *state) {
  SEATED(64u << 20, 1 << 20);
  seat.grant->turn_flags = (uint32_t)turn_flags;
  if (pid == HIDDEN) {
    hide(&seat);
  } else if (pid != 0) {
    seat.grant_header->seat_pid = pid;
    seat.grant_header->seat_start = own_start_time();
  }
  pid_t program = start(&seat, "launch", "");
  CHECK(await_work(&seat, 0), "no work");
  int counted = 0;
  for (int tries = 0; tries < 20 && !counted; tries++) counted = late_round(&seat, state);
  CHECK(counted, "no work soon after the seat counts as gone");
  CHECK(stop_launching(&seat, program) == 0, "role");
  seat_close(&seat);
}

/* A seat that is only late, and whose process runs. */
void test_seat_late(void) { test_waits_for_seat(SHM_TURN_LIMITED, (uint64_t)getpid(), "is only late"); }

/* The same, as a program in a container sees it. */
void test_seat_hidden(void) { test_waits_for_seat(SHM_TURN_LIMITED, HIDDEN, "is only late, and hidden"); }

/* A resting seat beats seldom. */
void test_seat_rests(void) { test_waits_for_seat(SHM_TURN_LIMITED | SHM_TURN_RESTING, 0, "rests"); }
