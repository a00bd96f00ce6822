/*
 * Programs with kernels of equal length, in one stream or several, with plain launches or graphs. They wait for the GPU
 * after a number of kernels, after each one to fetch a result as `.item()` does, or only at the end. One program has
 * host code that is slower than its kernels.
 */
#define _GNU_SOURCE
#include "program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

enum { STREAMS = 4, MOST_ROUNDS = 20000 };

struct measure {
  struct driver driver;
  uint64_t kernel_ns;
  unsigned streams;
  CUstream stream[STREAMS];
  CUgraphExec graph; /* NULL: plain launches */
  CUdeviceptr result;
};

static void submit(const struct measure *measure, unsigned number) {
  uint64_t ns = measure->kernel_ns;
  void *parameters[] = {&ns};
  CUstream stream = measure->stream[number % measure->streams];
  check(measure->graph != NULL
            ? measure->driver.graph_launch(measure->graph, stream)
            : measure->driver.launch(measure->driver.spin_kernel, 1, 1, 1, 32, 1, 1, 0, stream, parameters, NULL),
        "launch");
}

static void await(const struct measure *measure, bool fetch) {
  uint32_t value;
  if (!fetch) {
    check(measure->driver.context_synchronize(), "cuCtxSynchronize");
    return;
  }
  check(measure->driver.copy_back(&value, measure->result, sizeof value, measure->stream[0]), "cuMemcpyDtoHAsync");
  check(measure->driver.stream_synchronize(measure->stream[0]), "cuStreamSynchronize");
}

/*
 * "run EACH LAUNCHES": waits after EACH launches; 0: only at the end. "item LAUNCHES": fetches a result after each.
 * Prints the median time per launch, waits included.
 */
static void run(const struct measure *measure, unsigned each, unsigned launches, bool fetch) {
  static uint64_t round_ns[MOST_ROUNDS], call_ns[MOST_ROUNDS];
  unsigned size = each == 0 ? launches : each, rounds = launches / size;
  rounds = rounds == 0 ? 1 : rounds < MOST_ROUNDS ? rounds : MOST_ROUNDS;
  uint64_t begin = now_ns(), last = begin;
  for (unsigned i = 0; i < rounds; i++) {
    for (unsigned k = 0; k < size; k++) {
      submit(measure, i * size + k);
    }
    call_ns[i] = now_ns() - last;
    await(measure, fetch);
    uint64_t now = now_ns();
    round_ns[i] = now - last;
    last = now;
  }
  uint64_t wall_ns = last - begin;
  say("measure median_ns %.1f call_ns %.1f wall_ns %.1f launches %u slow_percent 0",
      (double)median(round_ns, rounds) / size, (double)median(call_ns, rounds) / size, (double)wall_ns / rounds / size,
      rounds * size);
}

/*
 * "eager PERIOD_NS MS": launches a kernel each PERIOD, or once the previous launch has returned. Prints their number.
 */
static void be_eager(const struct measure *measure, uint64_t period_ns, uint64_t ms) {
  uint64_t begin = now_ns(), next = begin;
  unsigned launches = 0;
  for (; next - begin < ms * 1000000; launches++) {
    submit(measure, launches);
    next += period_ns;
    uint64_t now = now_ns();
    next = now > next ? now : next;
    struct timespec until = {.tv_sec = (time_t)(next / 1000000000), .tv_nsec = (long)(next % 1000000000)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
  }
  await(measure, false);
  say("eager launches %u wall_ns %llu", launches, (unsigned long long)(now_ns() - begin));
}

int mode_measure(int count, char **arguments) {
  static struct measure measure;
  char line[128];
  if (count < 2) {
    return 2;
  }
  measure.kernel_ns = strtoull(arguments[0], NULL, 10);
  measure.streams = (unsigned)strtoul(arguments[1], NULL, 10);
  measure.streams = measure.streams < 1 ? 1 : measure.streams < STREAMS ? measure.streams : STREAMS;
  prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  driver_start(&measure.driver);
  for (unsigned i = 0; i < measure.streams; i++) {
    check(measure.driver.stream_create(&measure.stream[i], 1), "cuStreamCreate");
  }
  check(measure.driver.memory_alloc(&measure.result, 4096), "cuMemAlloc");
  if (count > 2) {
    unsigned kernels = (unsigned)strtoul(arguments[2], NULL, 10);
    measure.graph = graph_of(&measure.driver, measure.driver.spin_kernel, 1, kernels, measure.kernel_ns);
  }
  say("ready");
  while (next_line(line, sizeof line)) {
    unsigned each, launches;
    unsigned long long period_ns, ms;
    if (sscanf(line, "run %u %u", &each, &launches) == 2) {
      run(&measure, each, launches, false);
    } else if (sscanf(line, "item %u", &launches) == 1) {
      run(&measure, 1, launches, true);
    } else if (sscanf(line, "eager %llu %llu", &period_ns, &ms) == 2) {
      be_eager(&measure, period_ns, ms);
    } else {
      return 2;
    }
  }
  return 0;
}
