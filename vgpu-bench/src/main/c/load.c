/* A thread that launches kernels, and its longest waits. */
#define _GNU_SOURCE
#include "program.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { STALLS = 10, PAUSED_LOOK_NS = 2000000 };

/* A long call. */
struct stall {
  uint64_t begin_ns, end_ns;
  uint64_t late_ns; /* the part in which its thread was runnable without a processor */
};

struct load {
  struct driver driver;
  uint64_t kernel_ns;
  unsigned grid;
  unsigned sync_every;
  unsigned graph_kernels; /* kernels in a graph; 0: plain launches */
  CUgraphExec graph;
  uint64_t rounds_per_ms; /* of kernels that do work; 0: kernels that wait for the clock */
  struct work_kernel work;
  atomic_bool running;
  atomic_int error;
  _Atomic uint64_t kernels;
  _Atomic uint64_t worst_launch_ns;
  _Atomic uint64_t worst_sync_ns;
  _Atomic uint64_t call_since_ns; /* 0: not in a call of the driver */
  bool traces;
  int schedstat;
  pthread_mutex_t stalls_lock;
  struct stall stalls[STALLS]; /* the longest calls */
};

/* How long this thread has been runnable without a processor. */
static uint64_t run_delay(const struct load *load) {
  char text[64] = "";
  ssize_t length = load->traces ? pread(load->schedstat, text, sizeof text - 1, 0) : 0;
  const char *second = length <= 0 ? NULL : strchr(text, ' ');
  return second == NULL ? 0 : strtoull(second, NULL, 10);
}

static void keep_stall(struct load *load, uint64_t begin, uint64_t end, uint64_t late) {
  struct stall *least = &load->stalls[0];
  pthread_mutex_lock(&load->stalls_lock);
  for (int i = 1; i < STALLS; i++) {
    struct stall *other = &load->stalls[i];
    least = other->end_ns - other->begin_ns < least->end_ns - least->begin_ns ? other : least;
  }
  if (end - begin > least->end_ns - least->begin_ns) {
    *least = (struct stall){begin, end, late};
  }
  pthread_mutex_unlock(&load->stalls_lock);
}

static void print_stalls(struct load *load) {
  pthread_mutex_lock(&load->stalls_lock);
  for (int i = 0; i < STALLS; i++) {
    struct stall *stall = &load->stalls[i];
    say("stall begin_ns %llu end_ns %llu late_ns %llu", (unsigned long long)stall->begin_ns,
        (unsigned long long)stall->end_ns, (unsigned long long)stall->late_ns);
    *stall = (struct stall){0};
  }
  pthread_mutex_unlock(&load->stalls_lock);
  say("end");
}

static void raise_to(_Atomic uint64_t *worst, uint64_t value) {
  uint64_t old = atomic_load(worst);
  while (value > old && !atomic_compare_exchange_weak(worst, &old, value)) {
  }
}

static CUresult launch(struct load *load) {
  void *parameters[] = {&load->kernel_ns};
  if (load->graph != NULL) {
    return load->driver.graph_launch(load->graph, NULL);
  }
  if (load->rounds_per_ms > 0) {
    return work_launch(&load->work, load->grid);
  }
  return load->driver.launch(load->driver.spin_kernel, load->grid, 1, 1, 256, 1, 1, 0, NULL, parameters, NULL);
}

static bool launch_once(struct load *load, uint64_t number) {
  uint64_t delayed = run_delay(load), begin = now_ns();
  atomic_store(&load->call_since_ns, begin);
  CUresult result = launch(load);
  uint64_t launched = now_ns();
  raise_to(&load->worst_launch_ns, launched - begin);
  if (result == CUDA_SUCCESS && load->sync_every > 0 && number % load->sync_every == 0) {
    atomic_store(&load->call_since_ns, launched);
    result = load->driver.context_synchronize();
    raise_to(&load->worst_sync_ns, now_ns() - launched);
  }
  if (load->traces) {
    keep_stall(load, begin, now_ns(), run_delay(load) - delayed);
  }
  atomic_store(&load->call_since_ns, 0);
  if (result != CUDA_SUCCESS) {
    atomic_store(&load->error, result);
    return false;
  }
  atomic_fetch_add(&load->kernels, load->graph != NULL ? load->graph_kernels : 1);
  return true;
}

static void *work(void *argument) {
  struct load *load = argument;
  uint64_t number = 0;
  load->schedstat = load->traces ? open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC) : -1;
  atomic_store(&load->error, load->driver.context_set(load->driver.context));
  while (atomic_load(&load->error) == CUDA_SUCCESS) {
    if (!atomic_load(&load->running)) {
      nanosleep(&(struct timespec){0, PAUSED_LOOK_NS}, NULL);
    } else if (!launch_once(load, ++number)) {
      break;
    }
  }
  return NULL;
}

/* A call that has not returned yet counts with its time so far. */
static void print_reading(struct load *load) {
  uint64_t now = now_ns();
  uint64_t since = atomic_load(&load->call_since_ns);
  uint64_t launch_ns = atomic_exchange(&load->worst_launch_ns, 0);
  uint64_t sync_ns = atomic_exchange(&load->worst_sync_ns, 0);
  uint64_t open_ns = since != 0 && since < now ? now - since : 0;
  say("load now_ns %llu kernels %llu worst_launch_ns %llu worst_sync_ns %llu open_ns %llu error %d",
      (unsigned long long)now, (unsigned long long)atomic_load(&load->kernels), (unsigned long long)launch_ns,
      (unsigned long long)sync_ns, (unsigned long long)open_ns, atomic_load(&load->error));
}

static void write_stamps(struct load *load, const char *path) {
  static struct stamp stamps[STAMPS];
  size_t count = work_stamps(&load->work, stamps);
  FILE *file = fopen(path, "wb");
  if (file == NULL || fwrite(stamps, sizeof *stamps, count, file) != count || fclose(file) != 0) {
    fail(path, 0);
  }
  say("stamps count %zu", count);
}

int mode_load(int count, char **arguments) {
  static struct load load = {.stalls_lock = PTHREAD_MUTEX_INITIALIZER};
  pthread_t thread;
  char line[4096];
  if (count < 3) {
    return 2;
  }
  load.kernel_ns = strtoull(arguments[0], NULL, 10);
  load.grid = (unsigned)strtoul(arguments[1], NULL, 10);
  load.sync_every = (unsigned)strtoul(arguments[2], NULL, 10);
  for (int i = 3; i < count; i++) {
    if (strcmp(arguments[i], "start") == 0) {
      load.running = true;
    } else if (strcmp(arguments[i], "trace") == 0) {
      load.traces = true;
    } else if (strncmp(arguments[i], "graph=", 6) == 0) {
      load.graph_kernels = (unsigned)strtoul(arguments[i] + 6, NULL, 10);
    } else if (strncmp(arguments[i], "work=", 5) == 0) {
      load.rounds_per_ms = strtoull(arguments[i] + 5, NULL, 10);
    }
  }
  driver_start(&load.driver);
  if (load.graph_kernels > 0) {
    load.graph = graph_of(&load.driver, load.driver.spin_kernel, load.grid, load.graph_kernels, load.kernel_ns);
  }
  if (load.rounds_per_ms > 0) {
    work_open(&load.work, &load.driver, load.kernel_ns, load.rounds_per_ms);
  }
  pthread_create(&thread, NULL, work, &load);
  say("ready");
  while (next_line(line, sizeof line)) {
    if (strcmp(line, "read") == 0) {
      print_reading(&load);
    } else if (strcmp(line, "stalls") == 0) {
      print_stalls(&load);
    } else if (strncmp(line, "stamps ", 7) == 0) {
      write_stamps(&load, line + 7);
    } else {
      atomic_store(&load.running, strcmp(line, "start") == 0);
      say("%s", line);
    }
  }
  exit(atomic_load(&load.error) == CUDA_SUCCESS ? 0 : 1); /* not a return: its thread may be waiting for the GPU */
}
