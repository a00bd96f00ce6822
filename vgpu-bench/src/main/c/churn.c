/* Threads that allocate and free at random, and a counter that all processes share. */
#define _GNU_SOURCE
#include "churn_kinds.h"
#include "program.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { LIVE = 64, IDLE = 0, CHURN = 1, FILL = 2 };

/*
 * A lower bound of the bytes allocated: added after an allocation has returned, subtracted before a free is called. The
 * true total is never less, so a value above the quota proves an overshoot.
 */
struct witness {
  _Atomic uint64_t bytes;
  _Atomic uint64_t peak;
};

struct churn {
  struct driver driver;
  struct witness *witness;
  uint64_t quota;
  atomic_int what;
  atomic_int kind; /* KIND_MIXED: any kind */
  atomic_int idle;
  _Atomic uint64_t allocated;
  _Atomic uint64_t refused;
  atomic_int error;
};

struct worker {
  struct churn *churn;
  uint64_t random;
  size_t held;
  struct piece pieces[LIVE];
};

static void count_in(struct witness *witness, uint64_t bytes) {
  uint64_t total = atomic_fetch_add(&witness->bytes, bytes) + bytes;
  uint64_t peak = atomic_load(&witness->peak);
  while (total > peak && !atomic_compare_exchange_weak(&witness->peak, &peak, total)) {
  }
}

static void release(struct worker *worker, size_t index) {
  struct churn *churn = worker->churn;
  atomic_fetch_sub(&churn->witness->bytes, worker->pieces[index].bytes);
  CUresult result = piece_give(&worker->pieces[index]);
  if (result != CUDA_SUCCESS) {
    atomic_store(&churn->error, result);
  }
  worker->held--;
  worker->pieces[index] = worker->pieces[worker->held];
}

/* False if refused. Sizes from 1 byte to an eighth of the quota, every order of magnitude about equally likely. */
static bool allocate(struct worker *worker) {
  struct churn *churn = worker->churn;
  uint64_t bits = random_next(&worker->random) % 24;
  uint64_t size = 1 + random_next(&worker->random) % ((churn->quota >> 3 >> bits) + 1);
  enum kind kind = (enum kind)atomic_load(&churn->kind);
  if (kind == KIND_MIXED) {
    kind = (enum kind)(random_next(&worker->random) % KINDS);
  }
  struct piece *piece = &worker->pieces[worker->held];
  CUresult result = piece_take(piece, kind, size);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    atomic_fetch_add(&churn->refused, 1);
    return false;
  }
  if (result != CUDA_SUCCESS) {
    atomic_store(&churn->error, result);
    return false;
  }
  count_in(churn->witness, piece->bytes);
  atomic_fetch_add(&churn->allocated, 1);
  worker->held++;
  return true;
}

static void step(struct worker *worker, int what) {
  uint64_t random = random_next(&worker->random);
  bool full = worker->held == LIVE;
  if (what == FILL) {
    if (full || !allocate(worker)) { /* then sometimes makes room again */
      if (worker->held > 0 && random % 4 == 0) {
        release(worker, random / 4 % worker->held);
      }
    }
  } else if (worker->held > 0 && (full || random % 2 == 0)) {
    release(worker, random / 2 % worker->held);
  } else {
    allocate(worker);
  }
}

static void *work(void *argument) {
  struct worker *worker = argument;
  struct churn *churn = worker->churn;
  bool idle = false;
  if (churn->driver.context_set(churn->driver.context) != CUDA_SUCCESS) {
    atomic_store(&churn->error, 1);
  }
  for (;;) {
    int what = atomic_load(&churn->what);
    if (what != IDLE) {
      if (idle) {
        atomic_fetch_sub(&churn->idle, 1);
        idle = false;
      }
      step(worker, what);
    } else {
      while (worker->held > 0) {
        release(worker, worker->held - 1);
      }
      if (!idle) {
        atomic_fetch_add(&churn->idle, 1);
        idle = true;
      }
      nanosleep(&(struct timespec){0, 500000}, NULL);
    }
  }
  return NULL;
}

static struct witness *map_witness(const char *path) {
  int file = open(path, O_RDWR | O_CREAT, 0600);
  if (file < 0 || ftruncate(file, 4096) != 0) {
    fail("witness", 0);
  }
  void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (page == MAP_FAILED) {
    fail("witness", 0);
  }
  return page;
}

static void stop(struct churn *churn, int threads) {
  atomic_store(&churn->what, IDLE);
  while (atomic_load(&churn->idle) < threads) {
    nanosleep(&(struct timespec){0, 500000}, NULL);
  }
}

/* Runs in sequence, each of which begins and ends with nothing allocated. */
struct runs {
  struct churn *churn;
  int threads;
  unsigned count;
  unsigned ms;
  pthread_t thread;
  bool are_going;
};

static void *run_all(void *argument) {
  const struct runs *runs = argument;
  for (unsigned i = 0; i < runs->count; i++) {
    atomic_store(&runs->churn->what, CHURN);
    nanosleep(&(struct timespec){runs->ms / 1000, runs->ms % 1000 * 1000000L}, NULL);
    stop(runs->churn, runs->threads);
  }
  return NULL;
}

/* churn KIND | fill KIND | runs KIND COUNT MS */
static void order(struct runs *runs, const char *line) {
  char what[32] = "";
  char name[32] = "alloc";
  runs->count = 0;
  sscanf(line, "%31s %31s %u %u", what, name, &runs->count, &runs->ms);
  enum kind kind = kind_named(name);
  if (kind > KIND_MIXED) {
    fail("no such kind of memory", 0);
  }
  atomic_store(&runs->churn->kind, (int)kind);
  if (strcmp(what, "runs") == 0) {
    runs->are_going = pthread_create(&runs->thread, NULL, run_all, runs) == 0;
  } else {
    atomic_store(&runs->churn->what, strcmp(what, "fill") == 0 ? FILL : CHURN);
  }
}

int mode_churn(int count, char **arguments) {
  static struct churn churn;
  char line[128];
  if (count != 4) {
    return 2;
  }
  int threads = atoi(arguments[1]);
  churn.quota = strtoull(arguments[0], NULL, 10);
  churn.witness = map_witness(arguments[2]);
  driver_start(&churn.driver);
  kinds_load();
  for (int i = 0; i < threads; i++) {
    pthread_t thread;
    struct worker *worker = calloc(1, sizeof *worker);
    worker->churn = &churn;
    worker->random = (uint64_t)strtoull(arguments[3], NULL, 10) * 64 + (uint64_t)i + 1;
    pthread_create(&thread, NULL, work, worker);
  }
  struct runs runs = {.churn = &churn, .threads = threads};
  say("ready");
  while (next_line(line, sizeof line)) {
    if (strcmp(line, "stop") == 0) {
      if (runs.are_going) {
        pthread_join(runs.thread, NULL);
        runs.are_going = false;
      }
      stop(&churn, threads);
    } else {
      order(&runs, line);
    }
    say("churn allocated %llu refused %llu error %d bytes %llu peak %llu", (unsigned long long)churn.allocated,
        (unsigned long long)churn.refused, churn.error, (unsigned long long)churn.witness->bytes,
        (unsigned long long)churn.witness->peak);
  }
  exit(0);
}
