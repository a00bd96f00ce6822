/*
 * A training loop: an endless sequence of kernels, launched well ahead of the GPU, as PyTorch does. Their lengths are
 * drawn between LEAST and MOST, with every order of magnitude equally likely; the same SEED gives the same lengths.
 *
 * OUT gets a line "NS WORK" for about each millisecond of work: the work done by the time NS, in ns of kernels, counted
 * from the start. Both come from events, that is, from the GPU's own clock; NS is in CLOCK_MONOTONIC.
 */
#define _GNU_SOURCE
#include "program.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MARK_NS 1000000u   /* one event per this much work */
#define QUEUE_NS 50000000u /* how far launches run ahead */
#define RING 64u
#define BASES 5

struct mark {
  CUevent event;
  uint64_t work_ns; /* until then */
};

struct train {
  struct driver driver;
  double least_ns;
  double most_ns;
  uint64_t random;
  uint64_t launched_ns;
  uint64_t longest_ns;
  uint64_t kernels;
  uint64_t done_ns;
  struct mark ring[RING];
  uint64_t recorded;
  uint64_t collected;
  CUevent base;
  uint64_t base_ns; /* the time of the base event, in CLOCK_MONOTONIC */
  FILE *out;
  atomic_bool running;
  atomic_bool finishing;
};

static uint64_t elapsed_ns(const struct train *train, CUevent event) {
  float ms = 0;
  check(train->driver.event_elapsed(&ms, train->base, event), "cuEventElapsedTime");
  return (uint64_t)((double)ms * 1e6);
}

/* Relates the GPU's clock to the host's: takes the one of several events that was observed soonest. */
static void tie_clocks(struct train *train) {
  const struct driver *driver = &train->driver;
  CUevent event = train->ring[0].event;
  check(driver->event_record(train->base, NULL), "cuEventRecord");
  check(driver->event_synchronize(train->base), "cuEventSynchronize");
  train->base_ns = now_ns();
  for (int i = 0; i < BASES; i++) {
    check(driver->event_record(event, NULL), "cuEventRecord");
    check(driver->event_synchronize(event), "cuEventSynchronize");
    uint64_t base_ns = now_ns() - elapsed_ns(train, event);
    train->base_ns = base_ns < train->base_ns ? base_ns : train->base_ns;
  }
}

static void collect(struct train *train) {
  struct mark *mark = &train->ring[train->collected++ % RING];
  check(train->driver.event_synchronize(mark->event), "cuEventSynchronize");
  train->done_ns = mark->work_ns;
  fprintf(train->out, "%llu %llu\n", (unsigned long long)(train->base_ns + elapsed_ns(train, mark->event)),
          (unsigned long long)mark->work_ns);
}

static uint64_t draw_ns(struct train *train) {
  double unit = (double)(random_next(&train->random) >> 11) / 9007199254740992.0;
  return (uint64_t)(train->least_ns * pow(train->most_ns / train->least_ns, unit));
}

static void launch_piece(struct train *train) {
  uint64_t until = train->launched_ns + MARK_NS;
  while (train->launched_ns < until) {
    uint64_t ns = draw_ns(train);
    check(spin(&train->driver, ns), "cuLaunchKernel");
    train->launched_ns += ns;
    train->kernels++;
    train->longest_ns = ns > train->longest_ns ? ns : train->longest_ns;
  }
  struct mark *mark = &train->ring[train->recorded++ % RING];
  mark->work_ns = train->launched_ns;
  check(train->driver.event_record(mark->event, NULL), "cuEventRecord");
}

static void *work(void *argument) {
  struct train *train = argument;
  check(train->driver.context_set(train->driver.context), "cuCtxSetCurrent");
  while (!atomic_load(&train->finishing)) {
    if (!atomic_load(&train->running)) {
      nanosleep(&(struct timespec){0, 200000}, NULL);
      continue;
    }
    while (train->recorded - train->collected == RING || train->launched_ns - train->done_ns > QUEUE_NS) {
      collect(train);
    }
    launch_piece(train);
  }
  while (train->collected < train->recorded) {
    collect(train);
  }
  return NULL;
}

static void start(struct train *train, char **arguments) {
  train->least_ns = strtod(arguments[0], NULL);
  train->most_ns = strtod(arguments[1], NULL);
  train->random = strtoull(arguments[2], NULL, 10) * 2 + 1;
  train->out = fopen(arguments[3], "w");
  if (train->out == NULL) {
    fail("writing the results", errno);
  }
  driver_start(&train->driver);
  check(train->driver.event_create(&train->base, 0), "cuEventCreate");
  for (size_t i = 0; i < RING; i++) {
    check(train->driver.event_create(&train->ring[i].event, 0), "cuEventCreate");
  }
  tie_clocks(train);
}

int mode_train(int count, char **arguments) {
  static struct train train;
  pthread_t thread;
  char line[128];
  if (count != 4) {
    return 2;
  }
  start(&train, arguments);
  pthread_create(&thread, NULL, work, &train);
  say("ready");
  while (next_line(line, sizeof line)) {
    if (strcmp(line, "start") == 0) {
      atomic_store(&train.running, true);
      say("started now_ns %llu", (unsigned long long)now_ns());
    } else if (strcmp(line, "finish") == 0) {
      atomic_store(&train.finishing, true);
      pthread_join(thread, NULL);
      if (fclose(train.out) != 0) {
        fail("writing the results", errno);
      }
      say("finished kernels %llu work_ns %llu longest_ns %llu", (unsigned long long)train.kernels,
          (unsigned long long)train.done_ns, (unsigned long long)train.longest_ns);
      return 0;
    }
  }
  exit(0); /* not a return: its thread may be waiting for the GPU */
}
