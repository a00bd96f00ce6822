/* Roles that allocate and free from many threads: test_storm.c. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda_calls.h"
#include "fake_seat.h"
#include "roles_work.h"
#include "test.h"

static uint64_t churn_until;
static int keep;

static void *churn(void *argument) {
  unsigned seed = (unsigned)(uintptr_t)argument;
  CUdeviceptr held[64] = {0};
  CUcontext context = NULL;
  cuDevicePrimaryCtxRetain(&context, 0);
  cuCtxSetCurrent(context);
  while (seat_now() < churn_until) {
    unsigned at = (unsigned)rand_r(&seed) % 64;
    if (held[at] != 0 && !keep) {
      CHECK(cuMemFree_v2(held[at]) == ABI_SUCCESS, "free");
      held[at] = 0;
    } else if (held[at] == 0) {
      abi_result result = cuMemAlloc_v2(&held[at], (size_t)(rand_r(&seed) % (1 << 20)) + 1);
      CHECK(result == ABI_SUCCESS || result == ABI_OUT_OF_MEMORY || result == ABI_NOT_PERMITTED, "alloc gave %d",
            result);
      if (result != ABI_SUCCESS) held[at] = 0;
    } else {
      usleep(500);
    }
  }
  return NULL;
}

/* "MS" or "MS,N": the N tells processes apart, which would otherwise all draw the same. */
static void churn_for(const char *ms) {
  pthread_t threads[8];
  const char *comma = strchr(ms, ',');
  unsigned seed = test_seed() + 8 * (unsigned)(comma == NULL ? 0 : strtoul(comma + 1, NULL, 10));
  churn_until = seat_now() + strtoull(ms, NULL, 10) * 1000000u;
  CHECK(cuInit(0) == ABI_SUCCESS, "cuInit");
  for (uintptr_t i = 0; i < 8; i++) pthread_create(&threads[i], NULL, churn, (void *)(seed + i));
  for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
}

void role_churn(const char *ms) { churn_for(ms); }

void role_fill(const char *ms) {
  keep = 1;
  churn_for(ms);
}

static void *launch_too(void *until) {
  CUcontext context = NULL;
  CUfunction function = work_kernel("100000");
  cuDevicePrimaryCtxRetain(&context, 0);
  cuCtxSetCurrent(context);
  while (seat_now() < *(uint64_t *)until) launch(function, NULL), cuCtxSynchronize();
  return NULL;
}

/* With random bytes in the pages: every call must return, with any result. */
void role_churn_and_launch(const char *ms) {
  pthread_t thread;
  uint64_t until = seat_now() + strtoull(ms, NULL, 10) * 1000000u;
  CHECK(cuInit(0) == ABI_SUCCESS, "cuInit");
  pthread_create(&thread, NULL, launch_too, &until);
  churn_for(ms);
  pthread_join(thread, NULL);
}
