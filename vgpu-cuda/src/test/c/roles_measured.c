/* Programs of test_memory.c whose contexts and modules take other amounts than the set size: NVML tells how much. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake_seat.h"
#include "memory_test.h"

static const char PTX[] =
    ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry vgpu_spin(.param .u64 ns)\n{\n ret;\n}\n";

const struct shm_slot *own_slot(void) {
  char path[256];
  snprintf(path, sizeof path, "%s/leases/test/report", getenv("VGPU_RUN_DIR"));
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  char *pages = mmap(NULL, SHM_REPORT_SIZE, PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  return (const struct shm_slot *)(const void *)(pages + SHM_SLOTS_OFFSET) + 1;
}

/* Nothing says when it is done: it is waited for, some seconds at most. */
static void await_exact(const char *what) {
  uint64_t until = seat_now() + 20000000000u;
  while (ledger_bytes() != real_bytes() && seat_now() < until) usleep(2000);
  EXACT(what);
}

static uint32_t await_measured(const struct shm_slot *slot, uint64_t how) {
  uint64_t until = seat_now() + 20000000000u;
  while (GET(slot->measured) != how && seat_now() < until) usleep(2000);
  return GET(slot->measured);
}

static uint32_t stop;

static void *churn(void *unused) {
  CU(cuCtxSetCurrent, context);
  for (CUdeviceptr p = 0; !GET(stop);) {
    if (CU(cuMemAlloc_v2, &p, (size_t)(3 * MIB)) == ABI_SUCCESS) CU(cuMemFree_v2, p);
  }
  return unused;
}

/* Set 16 MiB, takes 64; and each module 5. */
void role_measured(void) {
  void *module = NULL;
  CUcontext second = NULL;
  begin_inexact();
  CHECK(ledger_bytes() == 16 * MIB, "at first the set size: %llu", (unsigned long long)ledger_bytes());
  await_exact("a context is measured");
  const struct shm_slot *slot = own_slot();
  CHECK(await_measured(slot, SHM_MEASURED_BY_NVML) == SHM_MEASURED_BY_NVML, "and says so: %u", GET(slot->measured));
  CHECK(CU(cuModuleLoadData, &module, PTX) == ABI_SUCCESS, "module");
  await_exact("a module is charged");
  CHECK(ledger_bytes() == CONTEXT + 5 * MIB, "%llu", (unsigned long long)ledger_bytes());
  CHECK(CU(cuModuleUnload, module) == ABI_SUCCESS, "unload");
  await_exact("and gone");
  CHECK(CU(cuCtxCreate_v2, &second, 0, 0) == ABI_SUCCESS && CU(cuModuleLoadData, &module, PTX) == ABI_SUCCESS, "a second context");
  await_exact("two contexts");
  CHECK(CU(cuCtxDestroy_v2, second) == ABI_SUCCESS, "destroyed with its module");
  await_exact("one is left");
  /* What other threads allocate meanwhile is not taken for a context's. */
  pthread_t thread;
  pthread_create(&thread, NULL, churn, NULL);
  CU(cuCtxSetCurrent, context);
  for (int i = 0; i < 20; i++) {
    CHECK(CU(cuModuleLoadData, &module, PTX) == ABI_SUCCESS, "module");
    usleep(10000);
    CHECK(CU(cuModuleUnload, module) == ABI_SUCCESS, "unload");
    CHECK(ledger_bytes() <= CONTEXT + 8 * MIB, "more than there is: %llu", (unsigned long long)ledger_bytes());
  }
  __atomic_store_n(&stop, 1, __ATOMIC_SEQ_CST);
  pthread_join(thread, NULL);
  await_exact("after all that");
}

/* Set 64 MiB, takes 9.5; with managed memory it is not known. */
void role_measured_less(void) {
  CUdeviceptr managed = 0;
  CUcontext second = NULL;
  begin_inexact();
  await_exact("a context takes less than the set size");
  CHECK(CU(cuMemAllocManaged, &managed, (size_t)MIB, 1) == ABI_SUCCESS, "managed");
  CHECK(CU(cuCtxCreate_v2, &second, 0, 0) == ABI_SUCCESS, "a second context");
  usleep(200000);
  CHECK(ledger_bytes() == real_bytes() + CONTEXT - 9728 * 1024, "less is believed no more: %llu", (unsigned long long)ledger_bytes());
}

void role_measured_not(void) {
  begin();
  const struct shm_slot *slot = own_slot();
  CHECK(await_measured(slot, SHM_MEASURED_NOT) == SHM_MEASURED_NOT, "it says so: %u", GET(slot->measured));
  EXACT("the set size");
}
