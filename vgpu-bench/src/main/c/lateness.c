/*
 * The total time by which this machine wakes threads later than requested, measured on each processor separately. One
 * processor, with the threads on it, may stand still while the others run.
 */
#define _GNU_SOURCE
#include "program.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

enum { NAP_NS = 1000000, USUAL_NS = 500000, PROCESSORS = 256 };

struct napper {
  int processor;
  _Atomic uint64_t due_ns;     /* its next wake-up time */
  _Atomic uint64_t counted_ns; /* the time up to which its lateness is counted */
  _Atomic uint64_t sum_ns, worst_ns;
};

/* Counts the time since the wake-up was due. Also called by the reader, while the thread still sleeps. */
static void count(struct napper *napper, uint64_t due) {
  uint64_t counted = atomic_load(&napper->counted_ns), now = now_ns();
  uint64_t from = counted > due ? counted : due;
  if (now <= from + USUAL_NS || !atomic_compare_exchange_strong(&napper->counted_ns, &counted, now)) {
    return;
  }
  atomic_fetch_add(&napper->sum_ns, now - from);
  uint64_t worst = atomic_load(&napper->worst_ns);
  while (now - due > worst && !atomic_compare_exchange_weak(&napper->worst_ns, &worst, now - due)) {
  }
}

static void *nap(void *argument) {
  struct napper *napper = argument;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(napper->processor, &one);
  sched_setaffinity(0, sizeof one, &one);
  for (;;) {
    uint64_t due = now_ns() + NAP_NS;
    atomic_store(&napper->due_ns, due);
    nanosleep(&(struct timespec){0, NAP_NS}, NULL);
    count(napper, due);
  }
  return NULL;
}

int mode_lateness(int count_of_arguments, char **arguments) {
  static struct napper nappers[PROCESSORS];
  cpu_set_t all;
  int used = 0;
  char line[128];
  (void)count_of_arguments;
  (void)arguments;
  if (sched_getaffinity(0, sizeof all, &all) != 0) {
    fail("sched_getaffinity", 0);
  }
  for (int i = 0; i < PROCESSORS; i++) {
    pthread_t thread;
    if (CPU_ISSET(i, &all)) {
      nappers[used].processor = i;
      nappers[used].due_ns = now_ns() + NAP_NS;
      if (pthread_create(&thread, NULL, nap, &nappers[used]) != 0) {
        fail("a thread's start", i);
      }
      used++;
    }
  }
  say("ready");
  while (next_line(line, sizeof line)) {
    uint64_t sum = 0, worst = 0;
    for (int i = 0; i < used; i++) {
      count(&nappers[i], atomic_load(&nappers[i].due_ns));
      sum += atomic_exchange(&nappers[i].sum_ns, 0);
      uint64_t own = atomic_exchange(&nappers[i].worst_ns, 0);
      worst = own > worst ? own : worst;
    }
    say("lateness sum_ns %llu worst_ns %llu", (unsigned long long)sum, (unsigned long long)worst);
  }
  return 0;
}
