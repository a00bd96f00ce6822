/* Random bytes in the shared pages, and the quota while processes are killed and stopped. Part of test_hook. */
#include <fcntl.h>
#include <pthread.h>
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

/* Random bytes in the fields that tenants write: nothing may crash or hang. */
void test_garbage(void) {
  SEATED(1u << 30, 1 << 20);
  seat.grant->turn_flags = (uint32_t)SHM_TURN_LIMITED;
  unsigned seed = test_seed();
  pid_t pid = start(&seat, "churn-for", "700");
  uint64_t until = seat_now() + 600000000u;
  while (seat_now() < until && waitpid(pid, NULL, WNOHANG) == 0) {
    for (int i = 0; i < 50; i++) {
      size_t at = (size_t)rand_r(&seed) % (sizeof(struct shm_ledger) + 4 * sizeof(struct shm_slot)) / 8;
      uint64_t value = (uint64_t)rand_r(&seed) << 40 ^ (uint64_t)rand_r(&seed) << 20 ^ (uint64_t)rand_r(&seed);
      uint64_t *word = at < sizeof(struct shm_ledger) / 8
                           ? (uint64_t *)seat.ledger + at
                           : (uint64_t *)seat.slots + (at - sizeof(struct shm_ledger) / 8);
      __atomic_store_n(word, value, __ATOMIC_SEQ_CST);
    }
    usleep(500);
  }
  CHECK(finish(pid) == 0, "role");
  seat_close(&seat);
}

/* Random bytes in the fields that the seat writes, including its heartbeat. */
void test_garbage_grant(void) {
  SEATED(1u << 30, 1 << 20);
  unsigned seed = test_seed();
  pid_t pid = start(&seat, "churn-for", "500");
  uint64_t until = seat_now() + 450000000u;
  struct shm_grant kept = *seat.grant;
  while (seat_now() < until && waitpid(pid, NULL, WNOHANG) == 0) {
    for (int i = 0; i < 8; i++) {
      uint64_t value = (uint64_t)rand_r(&seed) << 40 ^ (uint64_t)rand_r(&seed) << 20 ^ (uint64_t)rand_r(&seed);
      __atomic_store_n((uint64_t *)(void *)seat.grant + (unsigned)rand_r(&seed) % (sizeof(struct shm_grant) / 8), value,
                       __ATOMIC_SEQ_CST);
    }
    if (rand_r(&seed) % 4 == 0)
      __atomic_store_n(&seat.grant_header->heartbeat_ns, (uint64_t)rand_r(&seed) << 33, __ATOMIC_SEQ_CST);
    usleep(700);
  }
  for (size_t i = 0; i < sizeof kept / 8; i++) {
    uint64_t value;
    memcpy(&value, (char *)&kept + i * 8, sizeof value);
    __atomic_store_n((uint64_t *)(void *)seat.grant + i, value, __ATOMIC_SEQ_CST);
  }
  seat_gate(&seat, (uint32_t)SHM_GRANT_OPEN);
  CHECK(finish(pid) == 0, "role");
  seat_close(&seat);
}

static struct stub_shared *stub_memory;

static void stub_process_died(uint32_t pid) {
  stub_share(stub_memory);
  for (int i = 0; i < STUB_PROCESSES; i++) {
    if (stub_memory->process[i].pid == (int32_t)pid) stub_memory->process[i].held = 0, stub_memory->process[i].pid = 0;
  }
  pthread_mutex_unlock(&stub_memory->lock);
}

static void share_stub_memory(const struct fake_seat *seat) {
  char path[128];
  pthread_mutexattr_t kind;
  snprintf(path, sizeof path, "%s/stub", seat->dir);
  int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  CHECK(fd >= 0 && ftruncate(fd, sizeof *stub_memory) == 0, "stub memory");
  stub_memory = mmap(NULL, sizeof *stub_memory, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  pthread_mutexattr_init(&kind);
  pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&stub_memory->lock, &kind);
  setenv("STUB_SHARED", path, 1);
}

/* Starts the Nth process of a role. */
static pid_t start_nth(struct fake_seat *seat, const char *role, unsigned nth) {
  char argument[32];
  snprintf(argument, sizeof argument, "100000,%u", nth);
  return start(seat, role, argument);
}

/*
 * 8 processes with 8 threads each, killed and stopped at random; `fill` keeps its allocations. The quota is never
 * exceeded, and no memory is lost.
 */
static void storm(const char *role, unsigned kills, unsigned stops) {
  enum { PROCESSES = 8 };
  struct fake_seat seat;
  seat_open(&seat, (uint64_t)48 << 20, 1 << 20);
  share_stub_memory(&seat);
  seat.died = stub_process_died;
  seat_start(&seat);
  pid_t pids[PROCESSES];
  unsigned seed = test_seed(), dead = 0, started = 0;
  for (int i = 0; i < PROCESSES; i++) pids[i] = start_nth(&seat, role, started++);
  for (unsigned i = 0; i < kills + stops; i++) {
    usleep((useconds_t)(rand_r(&seed) % 8000));
    int which = rand_r(&seed) % PROCESSES;
    if (i % (kills + stops) < stops) {
      kill(pids[which], SIGSTOP);
      usleep((useconds_t)(rand_r(&seed) % 15000));
      kill(pids[which], SIGCONT);
    } else {
      kill(pids[which], SIGKILL);
      dead += finish(pids[which]) == 1000 + SIGKILL;
      pids[which] = start_nth(&seat, role, started++);
    }
  }
  usleep(100000);
  for (int i = 0; i < PROCESSES; i++) kill(pids[i], SIGKILL), finish(pids[i]);
  await_empty(&seat, role);
  uint64_t most = stub_memory->most;
  CHECK(most <= seat.grant->memory_limit, "%llu bytes over the quota",
        (unsigned long long)(most - seat.grant->memory_limit));
  CHECK(most > seat.grant->memory_limit / 4 * 3, "only %llu bytes were used", (unsigned long long)most);
  CHECK(dead == kills, "%u of %u kills", dead, kills);
  unsetenv("STUB_SHARED");
  printf("  most %llu of %llu bytes, %u kills, %u stops, %u hellos\n", (unsigned long long)most,
         (unsigned long long)seat.grant->memory_limit, kills, stops, GET(seat.hellos));
  seat_close(&seat);
}

static unsigned scaled(unsigned count) {
  const char *text = getenv("VGPU_TEST_SCALE"); /* percent */
  return text == NULL ? count : count * (unsigned)atoi(text) / 100;
}

void test_quota_churn(void) { storm("churn", scaled(200), scaled(60)); }

void test_quota_fill(void) { storm("fill", scaled(120), scaled(30)); }
