/*
 * Eight concurrent processes of two tenants that allocate, free, duplicate, close and exit. The driver never holds more
 * for a tenant than its limit, and at the end nothing is left. VGPU_TEST_SEED repeats a run's random choices.
 */
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "bed.h"

#include "calls.h"

enum { THREADS = 8, ROUNDS = 4000 };
#define LIMIT (64 * MIB)

static unsigned seed;
static int allowed, refused;

static void watch(void) {
  if (rm.held[1] > LIMIT || rm.held[2] > LIMIT) bed_fail("more than the limit");
}

static unsigned below(unsigned *state, unsigned most) { return (unsigned)rand_r(state) % most; }

static void *live(void *argument) {
  unsigned number = (unsigned)(uintptr_t)argument, state = seed * 31 + number;
  struct bed_process process = {.key = 1 + number % 2, .tag = 1 + number % 2, .number = number};
  uint32_t clients[2] = {0, 0};
  int fd = -1;
  place = (number + 1) * (size_t)PLACE;
  for (int i = 0; i < ROUNDS; i++) {
    if (fd < 0) {
      fd = bed_open(&process, 1);
      clients[0] = new_client(&process, fd);
      clients[1] = new_client(&process, fd);
    }
    uint32_t which = below(&state, 2), handle = 100 + below(&state, 12);
    switch (below(&state, 10)) {
      case 0: do_dup(&process, fd, clients[1 - which], DEVICE, handle, clients[which], 100 + below(&state, 12)); break;
      case 1:
      case 2:
      case 3: do_free(&process, fd, clients[which], handle); break;
      case 4:
        if (below(&state, 50) != 0) break;
        bed_exit(&process); /* as if it were killed */
        fd = -1;
        break;
      default: {
        uint32_t status = take(&process, fd, clients[which], handle, (1 + below(&state, 8)) * 2 * MIB);
        if (status == RM_OK) __atomic_add_fetch(&allowed, 1, __ATOMIC_RELAXED);
        if (status == RM_NO_MEMORY) __atomic_add_fetch(&refused, 1, __ATOMIC_RELAXED);
      }
    }
  }
  bed_exit(&process);
  return NULL;
}

int main(void) {
  pthread_t threads[THREADS];
  const char *given = getenv("VGPU_TEST_SEED");
  seed = given != NULL ? (unsigned)strtoul(given, NULL, 10) : (unsigned)time(NULL) ^ (unsigned)getpid();
  printf("VGPU_TEST_SEED=%u repeats what this draws\n", seed);
  bed_begin(LIMIT);
  bed_watch = watch;
  for (uintptr_t i = 0; i < THREADS; i++) {
    if (pthread_create(&threads[i], NULL, live, (void *)i) != 0) bed_fail("no thread");
  }
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  uint64_t over = tenants[1]->over + tenants[2]->over, peak = tenants[1]->peak;
  bed_end();
  if (over != 0 || peak > LIMIT || allowed == 0 || refused == 0) bed_fail("nothing was tried, or too much was given");
  printf("ok   threads: %d allowed, %d refused\n", allowed, refused);
  return 0;
}
