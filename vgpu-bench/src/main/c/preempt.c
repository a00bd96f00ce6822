/*
 * How soon an offline program is stopped when an online one becomes busy. `flood` is the offline program: it launches
 * kernels in a row, and records in a shared file when the last launch was admitted. `arrive` is the online program: it
 * repeatedly idles, then runs one kernel. After each arrival it measures when the other's gate was closed, by the
 * seat's word or by a bit of the express lane.
 */
#define _GNU_SOURCE
#include "program.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

/* Offsets of grant.word, grant.express_mask and express.busy in their files, from vgpu_shm.def. */
enum { FILE_BYTES = 4096, WORD_AT = 128, MASK_AT = 208, BUSY_AT = 128, WORD_OPEN = 1, WORD_REVOKED = 2 };
enum { MOST_ARRIVALS = 20000, LOOK_NS = 20000, LEAST_PAUSE_NS = 4000000 };

struct flood {
  _Atomic uint64_t let_in_ns; /* when the last launch returned */
  _Atomic uint64_t launches;
};

static char *map_file(const char *path, int flags) {
  int fd = open(path, flags | O_CLOEXEC, 0600);
  if (fd < 0 || ((flags & O_CREAT) != 0 && ftruncate(fd, FILE_BYTES) != 0)) {
    fail("open", 0);
  }
  int access = (flags & O_RDWR) != 0 ? PROT_READ | PROT_WRITE : PROT_READ;
  char *bytes = mmap(NULL, FILE_BYTES, access, MAP_SHARED, fd, 0);
  if (bytes == MAP_FAILED) {
    fail("mmap", 0);
  }
  close(fd);
  return bytes;
}

static void rest(uint64_t ns) {
  nanosleep(&(struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)}, NULL);
}

/* flood NS FILE: launches kernels of NS until its input ends. */
int mode_flood(int count, char **arguments) {
  struct driver driver;
  if (count != 2) {
    return 2;
  }
  uint64_t kernel_ns = strtoull(arguments[0], NULL, 10);
  struct flood *flood = (void *)map_file(arguments[1], O_RDWR | O_CREAT);
  driver_start(&driver);
  say("ready");
  for (struct pollfd input = {STDIN_FILENO, POLLIN, 0};;) {
    for (int i = 0; i < 1000; i++) {
      check(spin(&driver, kernel_ns), "launch");
      atomic_store(&flood->let_in_ns, now_ns());
      atomic_fetch_add(&flood->launches, 1);
    }
    if (poll(&input, 1, 0) > 0) {
      return 0;
    }
  }
}

/* ---- arrivals ---- */

struct gates {
  const char *grant, *express; /* express: NULL if there is none */
};

struct arrivals {
  struct driver driver;
  struct gates gates;
  const struct flood *flood;
  uint64_t kernel_ns;
  pthread_t looker;
  _Atomic uint64_t since_ns;  /* start of the current arrival; 0: none */
  _Atomic uint64_t closed_ns; /* when the other's gate was first seen closed after that */
  int wake[2];
  _Atomic uint64_t woken_ns;
  uint64_t closed[MOST_ARRIVALS], let_in[MOST_ARRIVALS], woke[MOST_ARRIVALS];
};

static bool is_closed(const struct gates *gates) {
  uint32_t word = atomic_load((const _Atomic uint32_t *)(const void *)(gates->grant + WORD_AT));
  if ((word & (WORD_OPEN | WORD_REVOKED)) != WORD_OPEN) {
    return true;
  }
  uint64_t mask = atomic_load((const _Atomic uint64_t *)(const void *)(gates->grant + MASK_AT));
  return gates->express != NULL &&
         (atomic_load((const _Atomic uint64_t *)(const void *)(gates->express + BUSY_AT)) & mask) != 0;
}

/* For arrivals whose launch waits for the seat. Polls at intervals, so that it does not occupy a processor. */
static void *look(void *argument) {
  struct arrivals *arrivals = argument;
  prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
  for (;;) {
    rest(LOOK_NS);
    if (atomic_load(&arrivals->since_ns) != 0 && atomic_load(&arrivals->closed_ns) == 0 &&
        is_closed(&arrivals->gates)) {
      uint64_t none = 0;
      atomic_compare_exchange_strong(&arrivals->closed_ns, &none, now_ns());
    }
  }
  return NULL;
}

static void *wake_up(void *argument) {
  struct arrivals *arrivals = argument;
  char byte;
  while (read(arrivals->wake[0], &byte, 1) == 1) {
    atomic_store(&arrivals->woken_ns, now_ns());
  }
  return NULL;
}

/* The reference: how long this machine currently takes to wake a thread that waits for one byte. */
static uint64_t reference(struct arrivals *arrivals) {
  atomic_store(&arrivals->woken_ns, 0);
  uint64_t begin = now_ns();
  if (write(arrivals->wake[1], "", 1) != 1) {
    fail("write", 0);
  }
  while (atomic_load(&arrivals->woken_ns) == 0) {
    rest(LOOK_NS);
  }
  return atomic_load(&arrivals->woken_ns) - begin;
}

static void await_open(const struct arrivals *arrivals, uint64_t *random) {
  rest(LEAST_PAUSE_NS + random_next(random) % LEAST_PAUSE_NS);
  uint64_t before = atomic_load(&arrivals->flood->launches);
  while (is_closed(&arrivals->gates) || atomic_load(&arrivals->flood->launches) == before) {
    rest(LOOK_NS * 10);
  }
}

/* One arrival: the time until the other's gate was closed, and until the last launch that it admitted. */
static void arrive(struct arrivals *arrivals, unsigned i) {
  atomic_store(&arrivals->closed_ns, 0);
  uint64_t begin = now_ns();
  atomic_store(&arrivals->since_ns, begin);
  check(spin(&arrivals->driver, arrivals->kernel_ns), "launch");
  uint64_t none = 0;
  if (is_closed(&arrivals->gates)) {
    atomic_compare_exchange_strong(&arrivals->closed_ns, &none, now_ns());
  }
  while (atomic_load(&arrivals->closed_ns) == 0 && now_ns() - begin < 1000000000u) {
    rest(LOOK_NS);
  }
  uint64_t closed = atomic_load(&arrivals->closed_ns);
  atomic_store(&arrivals->since_ns, 0);
  /* While this kernel runs, no further launch is admitted, so the last one recorded is the last before it. */
  rest(arrivals->kernel_ns / 2);
  uint64_t let_in = atomic_load(&arrivals->flood->let_in_ns);
  check(arrivals->driver.context_synchronize(), "synchronize");
  arrivals->closed[i] = closed == 0 ? now_ns() - begin : closed - begin;
  arrivals->let_in[i] = let_in > begin ? let_in - begin : 0;
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

/* arrive NS FLOOD GRANT EXPRESS|-: 'run N' */
int mode_arrive(int count, char **arguments) {
  static struct arrivals arrivals;
  pthread_t waker;
  char line[128];
  uint64_t random = 88172645463325252u;
  if (count != 4) {
    return 2;
  }
  arrivals.kernel_ns = strtoull(arguments[0], NULL, 10);
  arrivals.flood = (void *)map_file(arguments[1], O_RDWR | O_CREAT);
  arrivals.gates.grant = map_file(arguments[2], O_RDONLY);
  arrivals.gates.express = strcmp(arguments[3], "-") == 0 ? NULL : map_file(arguments[3], O_RDONLY);
  driver_start(&arrivals.driver);
  if (pipe(arrivals.wake) != 0 || pthread_create(&arrivals.looker, NULL, look, &arrivals) != 0 ||
      pthread_create(&waker, NULL, wake_up, &arrivals) != 0) {
    fail("threads", 0);
  }
  say("ready");
  while (next_line(line, sizeof line)) {
    unsigned wanted = (unsigned)strtoul(strchr(line, ' ') == NULL ? "0" : strchr(line, ' '), NULL, 10);
    wanted = wanted < 1 ? 1 : wanted > MOST_ARRIVALS ? MOST_ARRIVALS : wanted;
    for (unsigned i = 0; i < wanted; i++) {
      await_open(&arrivals, &random);
      arrivals.woke[i] = reference(&arrivals);
      arrive(&arrivals, i);
    }
    print("closed", arrivals.closed, wanted);
    print("let_in", arrivals.let_in, wanted);
    print("woke", arrivals.woke, wanted);
  }
  return 0;
}
