/* Launches that come while another thread closes their batch: test_work.c. */
#include <pthread.h>
#include <sched.h>

#include "cuda_calls.h"
#include "fake_seat.h"
#include "roles_work.h"
#include "stub_driver.h"
#include "test.h"

abi_result cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags);

enum { TRIES = 20, SHORT = 2000 };
static CUcontext shared;
static int go;

/* The call itself fails, since the stub lacks it. It closes the stream's batch all the same. */
static void *close_batch(void *stream) {
  CHECK(cuCtxSetCurrent(shared) == ABI_SUCCESS, "set current");
  while (!GET(go)) sched_yield();
  cuStreamWaitEvent(stream, NULL, 0);
  return NULL;
}

static void slip(CUfunction brief, CUfunction lasting, CUstream stream) {
  pthread_t thread;
  for (int i = 0; i < SHORT; i++) CHECK(launch(brief, stream) == ABI_SUCCESS, "launch");
  __atomic_store_n(&go, 0, __ATOMIC_SEQ_CST);
  CHECK(pthread_create(&thread, NULL, close_batch, stream) == 0, "thread");
  __atomic_store_n(&stub()->pauses, 1, __ATOMIC_SEQ_CST);
  for (int i = 0; i < 3; i++) CHECK(launch(brief, stream) == ABI_SUCCESS, "launch");
  __atomic_store_n(&go, 1, __ATOMIC_SEQ_CST);
  for (uint64_t until = seat_now() + 5000000; GET(stub()->pauses) != 2 && seat_now() < until;) sched_yield();
  CHECK(launch(lasting, stream) == ABI_SUCCESS, "launch");
  __atomic_store_n(&stub()->pauses, 0, __ATOMIC_SEQ_CST);
  pthread_join(thread, NULL);
  uint64_t end = stub()->last_ns, unseen = 0;
  for (uint64_t now = seat_now(); now + 2000000 < end; now = seat_now()) {
    if (GET(work_slot()->busy) == 0) unseen++;
    usleep(100);
  }
  CHECK(unseen == 0, "%llu times a kernel ran that the hook did not know of", (unsigned long long)unseen);
  CHECK(cuStreamSynchronize(stream) == ABI_SUCCESS, "sync");
}

/* The thread that closes pauses just after it has recorded the batch's last event. */
void role_slips(const char *unused) {
  (void)unused;
  CUstream stream = NULL;
  shared = work_begin();
  CUfunction brief = work_kernel("20000"), lasting = work_kernel("20000000");
  CHECK(cuStreamCreate(&stream, 0) == ABI_SUCCESS, "stream");
  CHECK(launch(lasting, stream) == ABI_SUCCESS, "the first launch of a function begins a batch");
  for (int i = 0; i < TRIES; i++) slip(brief, lasting, stream);
}
