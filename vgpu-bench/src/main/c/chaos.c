/*
 * The random program: its threads do anything that a program may do, in random order. It reports a lower bound of the
 * memory it holds, its longest calls, and the first result that a driver must not return.
 */
#define _GNU_SOURCE
#include "chaos.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/*
 * A clock of this process that stands still while the process is stopped. A call's wait during that time is not caused
 * by others, and nothing outside knows in which call the process was stopped.
 */
enum { TICK_NS = 1000000, LONGEST_TICK_NS = 4000000 };

/* A thread that is not at rest by then is reported in time: the reader still waits for the answer. */
#define REST_NS UINT64_C(21000000000)

static _Atomic uint64_t awake_ns;

static void *tick(void *unused) {
  for (uint64_t last = now_ns();;) {
    nanosleep(&(struct timespec){0, TICK_NS}, NULL);
    uint64_t now = now_ns();
    atomic_fetch_add(&awake_ns, now - last < LONGEST_TICK_NS ? now - last : LONGEST_TICK_NS);
    last = now;
  }
  return unused;
}

/* Never 0. */
static uint64_t own_time_ns(void) { return atomic_load(&awake_ns) + 1; }

void chaos_enter(struct worker *worker, int operation) {
  atomic_store(&worker->call_operation, operation);
  atomic_store(&worker->call_since_ns, own_time_ns());
}

CUresult chaos_leave(struct worker *worker, enum wait wait, CUresult result) {
  uint64_t passed = own_time_ns() - atomic_load(&worker->call_since_ns);
  atomic_store(&worker->call_since_ns, 0);
  if (passed > atomic_load(&worker->worst_ns[wait])) {
    atomic_store(&worker->worst_ns[wait], passed);
    atomic_store(&worker->worst_operation[wait], atomic_load(&worker->call_operation));
  }
  return result;
}

bool chaos_accept(struct worker *worker, int operation, CUresult result) {
  int none = 0;
  if (result == CUDA_SUCCESS) {
    return true;
  }
  if (result == CUDA_ERROR_OUT_OF_MEMORY || result == CUDA_ERROR_NOT_PERMITTED || result == CUDA_ERROR_NOT_SUPPORTED) {
    atomic_fetch_add(&worker->chaos->refused, 1);
  } else if (atomic_compare_exchange_strong(&worker->chaos->error, &none, result)) {
    atomic_store(&worker->chaos->error_operation, operation);
  }
  return false;
}

/* CHAOS_WITHOUT lists operations to leave out, by number ("3,4"), to find the one that causes a failure. */
static void leave_out(struct chaos *chaos) {
  const char *text = getenv("CHAOS_WITHOUT");
  for (char *end = NULL; text != NULL && *text != '\0'; text = *end == ',' ? end + 1 : end) {
    chaos->without |= 1u << strtoul(text, &end, 10) % 32;
    if (end == text) {
      break;
    }
  }
}

static bool left_out(const struct worker *worker, int operation) {
  return (worker->chaos->without >> operation & 1) != 0;
}

static void step(struct worker *worker) {
  chaos_scope(worker);
  uint64_t random = random_next(&worker->random);
  unsigned what = (unsigned)(random >> 8) % 100;
  if (what < 30) {
    int kind = (int)((random >> 20) % KINDS);
    chaos_allocate(worker, left_out(worker, kind) ? PLAIN : kind);
  } else if (what < 60) {
    if (worker->held_count > 0) {
      chaos_release(worker, (random >> 20) % worker->held_count);
    }
  } else if (what < 97) {
    int operation = SPIN + (int)((random >> 20) % (THREAD - SPIN));
    chaos_work(worker, left_out(worker, operation) ? SYNC : operation);
  } else if (what < 99) {
    chaos_thread(worker);
  } else if ((random >> 20) % 8 == 0) {
    chaos_fork(worker);
  }
  atomic_fetch_add(&worker->chaos->operations, 1);
}

/* Completes all work that the thread has begun, so that what it holds is what the GPU has allocated. */
static void come_to_rest(struct worker *worker) {
  struct chaos *chaos = worker->chaos;
  chaos_work(worker, SYNC);
  pthread_rwlock_wrlock(&chaos->capturing);
  chaos_enter(worker, SYNC);
  chaos_accept(worker, SYNC, chaos_leave(worker, WAIT_SYNC, chaos->driver.context_synchronize()));
  pthread_rwlock_unlock(&chaos->capturing);
}

static void *run(void *argument) {
  struct worker *worker = argument;
  struct chaos *chaos = worker->chaos;
  bool idle = false;
  if (chaos->driver.context_set(chaos->driver.context) != CUDA_SUCCESS ||
      chaos->stream(&worker->streams[HOME], 1) != CUDA_SUCCESS) {
    fail("a thread's start", 0);
  }
  worker->stream = worker->streams[HOME];
  for (;;) {
    if (atomic_load(&chaos->running)) {
      if (idle) {
        atomic_fetch_sub(&chaos->idle, 1);
        idle = false;
      }
      step(worker);
      if (random_next(&worker->random) % 4 == 0) {
        nanosleep(&(struct timespec){0, (long)(random_next(&worker->random) % 2000000)}, NULL);
      }
    } else {
      if (!idle) {
        come_to_rest(worker);
        atomic_fetch_add(&chaos->idle, 1);
        idle = true;
      }
      nanosleep(&(struct timespec){0, 500000}, NULL);
    }
  }
  return NULL;
}

static void load(struct chaos *chaos) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
#define CHAOS_LOOKUP(name, symbol, parameters) *(void **)&chaos->name = dlsym(library, symbol);
  CHAOS_CALLS(CHAOS_LOOKUP)
#undef CHAOS_LOOKUP
  if (chaos->default_pool != NULL && chaos->default_pool(&chaos->pool, chaos->device) != CUDA_SUCCESS) {
    chaos->pool = NULL;
  }
}

static void print_reading(struct chaos *chaos, struct worker *workers, int threads) {
  uint64_t worst[WAITS] = {0}, open = 0, now = own_time_ns();
  int operation[WAITS] = {0}, open_operation = 0;
  for (int i = 0; i < threads; i++) {
    uint64_t since = atomic_load(&workers[i].call_since_ns);
    if (since != 0 && since < now && now - since > open) {
      open = now - since;
      open_operation = atomic_load(&workers[i].call_operation);
    }
    for (int wait = 0; wait < WAITS; wait++) {
      uint64_t value = atomic_exchange(&workers[i].worst_ns[wait], 0);
      if (value > worst[wait]) {
        worst[wait] = value;
        operation[wait] = atomic_load(&workers[i].worst_operation[wait]);
      }
    }
  }
  say("chaos operations %llu refused %llu error %d error_operation %d bytes %llu bytes_stays %llu bytes_guest %llu entered %llu taken %llu memory_ns %llu memory_operation %d "
      "launch_ns %llu launch_operation %d sync_ns %llu sync_operation %d open_ns %llu open_operation %d "
      "forked %llu forked_hung %llu idle %d threads %d",
      (unsigned long long)chaos->operations, (unsigned long long)chaos->refused, chaos->error, chaos->error_operation,
      (unsigned long long)chaos->tenants[HOME].bytes, (unsigned long long)chaos->tenants[STAYS].bytes,
      (unsigned long long)chaos->tenants[GUEST].bytes, (unsigned long long)chaos->entered,
      (unsigned long long)chaos->taken, (unsigned long long)worst[0], operation[0], (unsigned long long)worst[1],
      operation[1], (unsigned long long)worst[2], operation[2], (unsigned long long)open, open_operation,
      (unsigned long long)chaos->forked, (unsigned long long)chaos->forked_hung, atomic_load(&chaos->idle), threads);
}

int mode_chaos(int count, char **arguments) {
  static struct chaos chaos = {.capturing = PTHREAD_RWLOCK_INITIALIZER};
  static struct worker workers[THREADS];
  char line[128];
  if (count < 4 || count > 3 + TENANTS) {
    return 2;
  }
  uint64_t seed = strtoull(arguments[0], NULL, 10);
  int threads = atoi(arguments[1]);
  threads = threads < 1 ? 1 : threads > THREADS ? THREADS : threads;
  chaos.tenants[HOME].quota = strtoull(arguments[2], NULL, 10);
  chaos.forks = strcmp(arguments[3], "fork") == 0;
  chaos.running = true;
  leave_out(&chaos);
  driver_start(&chaos.driver);
  load(&chaos);
  chaos_open_mailbox(&chaos);
  chaos_enter_leases(&chaos, arguments + 4, count - 4);
  pthread_t clock;
  pthread_create(&clock, NULL, tick, NULL);
  for (int i = 0; i < threads; i++) {
    pthread_t thread;
    workers[i].chaos = &chaos;
    workers[i].random = (seed + 1) * 0x9e3779b97f4a7c15u + (uint64_t)i * 77 + 1;
    pthread_create(&thread, NULL, run, &workers[i]);
  }
  say("ready");
  while (next_line(line, sizeof line)) {
    if (strcmp(line, "read") != 0) {
      atomic_store(&chaos.running, strcmp(line, "go") == 0);
      uint64_t until = now_ns() + REST_NS;
      while (strcmp(line, "rest") == 0 && atomic_load(&chaos.idle) < threads && now_ns() < until) {
        nanosleep(&(struct timespec){0, 500000}, NULL);
      }
    }
    print_reading(&chaos, workers, threads);
  }
  exit(0);
}
