/* Whether this process was delayed, as on a busy machine: then what it measured counts for nothing. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "fake_seat.h"
#include "test.h"

enum { LOOK_US = 1000, MOST_NS = 10000000 };

static uint64_t longest_ns;

static void *look(void *unused) {
  for (uint64_t before = seat_now(), now;; before = now) {
    usleep(LOOK_US);
    now = seat_now();
    if (now - before > GET(longest_ns)) __atomic_store_n(&longest_ns, now - before, __ATOMIC_SEQ_CST);
  }
  return unused;
}

/* One thread on each processor: one processor may stand still while the others run, if it is a virtual one. */
void delays_watch(void) {
  cpu_set_t all, one;
  pthread_t thread;
  CHECK(sched_getaffinity(0, sizeof all, &all) == 0, "the processors");
  for (int i = 0; i < CPU_SETSIZE; i++) {
    if (!CPU_ISSET(i, &all)) continue;
    CHECK(pthread_create(&thread, NULL, look, NULL) == 0, "thread");
    CPU_ZERO(&one);
    CPU_SET(i, &one);
    pthread_setaffinity_np(thread, sizeof one, &one);
    pthread_detach(thread);
  }
}

/* How long the process's first thread has waited for a processor. */
static uint64_t waited_ns(void) {
  unsigned long long waited = 0;
  FILE *file = fopen("/proc/self/schedstat", "re");
  if (file != NULL && fscanf(file, "%*u %llu", &waited) != 1) waited = 0;
  if (file != NULL) fclose(file);
  return waited;
}

int delays_were_long(void) {
  uint64_t longest = GET(longest_ns), waited = waited_ns();
  if (longest <= MOST_NS && waited <= MOST_NS) return 0;
  printf("  delayed: it stood still for %.0f ms, and waited for a processor for %.0f ms\n", (double)longest / 1e6,
         (double)waited / 1e6);
  return 1;
}
