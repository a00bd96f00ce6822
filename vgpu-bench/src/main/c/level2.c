/*
 * How soon an online program gets the GPU while an offline one runs a long kernel. `yield` is the online program: it
 * repeatedly idles, then runs one kernel. After each arrival it measures when nothing of the other program runs any
 * more, because it was stopped or has ended. It also measures how much longer than alone its own kernel takes.
 */
#define _GNU_SOURCE
#include "program.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

/* Offsets and sizes from vgpu_shm.def. */
enum {
  REPORT_BYTES = 69632,
  SLOTS_AT = 4096,
  SLOT_BYTES = 512,
  SLOTS = 128,
  STATE_AT = 0,
  LEVEL2_AT = 52,
  BUSY_AT = 280
};
enum { SLOT_ATTACHED = 1, LEVEL2_STOPPED = 2 };
enum { MOST_ARRIVALS = 20000, LOOK_NS = 10000, LEAST_PAUSE_NS = 4000000, LONGEST_NS = 1000000000 };

static const char *report;
static uint64_t yields[MOST_ARRIVALS], extras[MOST_ARRIVALS];

static void rest(uint64_t ns) {
  nanosleep(&(struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)}, NULL);
}

static uint32_t word_at(unsigned slot, unsigned offset) {
  const char *at = report + SLOTS_AT + slot * SLOT_BYTES + offset;
  return atomic_load((const _Atomic uint32_t *)(const void *)at);
}

static bool others_run(void) {
  for (unsigned slot = 1; slot < SLOTS; slot++) {
    if (word_at(slot, STATE_AT) == SLOT_ATTACHED && word_at(slot, BUSY_AT) != 0 &&
        word_at(slot, LEVEL2_AT) != LEVEL2_STOPPED) {
      return true;
    }
  }
  return false;
}

/* Waits until the other program has the GPU, then for a random part of its kernel. */
static void await_other(uint64_t *random) {
  rest(LEAST_PAUSE_NS + random_next(random) % (2 * LEAST_PAUSE_NS));
  for (uint64_t begin = now_ns(); !others_run() && now_ns() - begin < LONGEST_NS;) {
    rest(LOOK_NS);
  }
  rest(random_next(random) % LEAST_PAUSE_NS);
}

/* Runs a kernel that outlasts the other program's, even if the two take turns. */
static uint64_t yield_ns(const struct driver *driver, uint64_t kernel_ns) {
  uint64_t begin = now_ns();
  check(spin(driver, 15 * kernel_ns), "launch");
  while (others_run() && now_ns() - begin < LONGEST_NS) {
    rest(LOOK_NS);
  }
  uint64_t took = now_ns() - begin;
  check(driver->context_synchronize(), "synchronize");
  return took;
}

static uint64_t extra_ns(const struct driver *driver, uint64_t kernel_ns) {
  uint64_t begin = now_ns();
  check(spin(driver, kernel_ns), "launch");
  check(driver->context_synchronize(), "synchronize");
  uint64_t took = now_ns() - begin;
  return took > kernel_ns ? took - kernel_ns : 0;
}

static int by_size(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a;
  uint64_t y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static void print(const char *name, uint64_t *values, unsigned count) {
  qsort(values, count, sizeof *values, by_size);
  say("%s p50_ns %llu p90_ns %llu p99_ns %llu max_ns %llu count %u", name, (unsigned long long)values[count / 2],
      (unsigned long long)values[count * 9 / 10], (unsigned long long)values[count * 99 / 100],
      (unsigned long long)values[count - 1], count);
}

/* yield NS REPORT: 'run N' */
int mode_yield(int count, char **arguments) {
  struct driver driver;
  char line[128];
  uint64_t random = 88172645463325252u;
  int fd = count == 2 ? open(arguments[1], O_RDONLY | O_CLOEXEC) : -1;
  if (fd < 0) {
    return 2;
  }
  uint64_t kernel_ns = strtoull(arguments[0], NULL, 10);
  report = mmap(NULL, REPORT_BYTES, PROT_READ, MAP_SHARED, fd, 0);
  if (report == MAP_FAILED) {
    fail("mmap", 0);
  }
  prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
  driver_start(&driver);
  say("ready");
  while (next_line(line, sizeof line)) {
    unsigned wanted = (unsigned)strtoul(strchr(line, ' ') == NULL ? "0" : strchr(line, ' '), NULL, 10);
    wanted = wanted < 1 ? 1 : wanted > MOST_ARRIVALS ? MOST_ARRIVALS : wanted;
    for (unsigned i = 0; i < wanted; i++) {
      await_other(&random);
      yields[i] = yield_ns(&driver, kernel_ns);
      await_other(&random);
      extras[i] = extra_ns(&driver, kernel_ns);
    }
    print("yields", yields, wanted);
    print("extra", extras, wanted);
  }
  return 0;
}
