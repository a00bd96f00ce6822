/* A program of test_memory.c with green contexts: each retains the primary context, which is charged once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake_seat.h"
#include "memory_test.h"

static const char PTX[] =
    ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry vgpu_spin(.param .u64 ns)\n{\n ret;\n}\n";

struct resource {
  int type;
  unsigned char internal[92];
  unsigned count;
  unsigned char rest[44];
};

static void *make_green(void) {
  struct resource all, part;
  unsigned groups = 1;
  void *descriptor = NULL, *green = NULL;
  CHECK(CU(cuDeviceGetDevResource, 0, &all, 1) == ABI_SUCCESS && all.count == 132, "resource");
  CHECK(CU(cuDevSmResourceSplitByCount, &part, &groups, &all, NULL, 0, 64) == ABI_SUCCESS && part.count == 64, "split");
  CHECK(CU(cuDevResourceGenerateDesc, &descriptor, &part, 1) == ABI_SUCCESS, "descriptor");
  CHECK(CU(cuGreenCtxCreate, &green, descriptor, 0, 0u) == ABI_INVALID_VALUE, "the driver's refusal");
  CHECK(CU(cuGreenCtxCreate, &green, descriptor, 0, 1u) == ABI_SUCCESS && green != NULL, "green context");
  return green;
}

void role_green(void) {
  CUdeviceptr p = 0, q = 0;
  CUcontext view = NULL;
  CUstream stream = NULL;
  void *module = NULL;
  CUfunction function = NULL;
  begin();
  CHECK(CU(cuDevicePrimaryCtxRelease_v2, 0) == ABI_SUCCESS, "release");
  CHECK(ledger_bytes() == 0, "nothing is left");
  void *green = make_green(), *other = make_green();
  CHECK(CU(cuCtxFromGreenCtx, &view, green) == ABI_SUCCESS && CU(cuCtxSetCurrent, view) == ABI_SUCCESS, "view");
  CHECK(ledger_bytes() == CONTEXT, "the primary context, once: %llu", (unsigned long long)ledger_bytes());
  EXACT("green contexts");
  CHECK(CU(cuMemAlloc_v2, &p, (size_t)(3 * MIB)) == ABI_SUCCESS && CU(cuMemAlloc_v2, &q, (size_t)MIB) == ABI_SUCCESS,
        "alloc");
  EXACT("memory in a green context");
  /* Its streams are gated and measured. */
  CHECK(CU(cuGreenCtxStreamCreate, &stream, green, 1u, 0) == ABI_SUCCESS, "stream");
  CHECK(CU(cuModuleLoadData, &module, PTX) == ABI_SUCCESS &&
            CU(cuModuleGetFunction, &function, module, "vgpu_spin") == ABI_SUCCESS,
        "kernel");
  const struct shm_slot *slot = own_slot();
  uint64_t ns = 5000000;
  void *arguments[] = {&ns};
  /* The call of a function's first launch is not charged, and may take longer than the kernel. */
  CHECK(CU(cuLaunchKernel, function, 1u, 1u, 1u, 32u, 1u, 1u, 0u, stream, arguments, NULL) == ABI_SUCCESS,
        "first launch");
  CHECK(CU(cuStreamSynchronize, stream) == ABI_SUCCESS, "wait");
  uint64_t before = GET(slot->gpu_ns), launches = GET(slot->launches);
  for (int i = 0; i < 10; i++) {
    CHECK(CU(cuLaunchKernel, function, 1u, 1u, 1u, 32u, 1u, 1u, 0u, stream, arguments, NULL) == ABI_SUCCESS, "launch");
  }
  CHECK(CU(cuStreamSynchronize, stream) == ABI_SUCCESS, "wait");
  CHECK(GET(slot->launches) - launches == 10, "%llu launches", (unsigned long long)(GET(slot->launches) - launches));
  uint64_t took = GET(slot->gpu_ns) - before;
  CHECK(took >= 45000000 && took <= 75000000, "charged %llu ns for 50 ms", (unsigned long long)took);
  CHECK(CU(cuGreenCtxDestroy, green) == ABI_SUCCESS && CU(cuGreenCtxDestroy, green) == ABI_INVALID_VALUE,
        "destroyed twice");
  CHECK(CU(cuGreenCtxDestroy, (void *)0x1234) == ABI_INVALID_VALUE, "nobody's");
  CHECK(CU(cuCtxFromGreenCtx, &view, other) == ABI_SUCCESS && CU(cuCtxSetCurrent, view) == ABI_SUCCESS,
        "the other's view");
  EXACT("its memory is the primary context's, and stays");
  CHECK(CU(cuMemFree_v2, q) == ABI_SUCCESS, "free from the other");
  EXACT("freed");
  CHECK(CU(cuGreenCtxDestroy, other) == ABI_SUCCESS, "the last");
  CHECK(ledger_bytes() == 0, "%llu left", (unsigned long long)ledger_bytes());
  CHECK(CU(cuDevicePrimaryCtxRetain, &context, 0) == ABI_SUCCESS && CU(cuCtxSetCurrent, context) == ABI_SUCCESS,
        "again");
  EXACT("again");
}

static CUfunction spin(void) {
  void *module = NULL;
  CUfunction function = NULL;
  CHECK(CU(cuModuleLoadData, &module, PTX) == ABI_SUCCESS &&
            CU(cuModuleGetFunction, &function, module, "vgpu_spin") == ABI_SUCCESS,
        "kernel");
  return function;
}

/*
 * Work in a green context that is never waited for: only the monitor sees it end, and never makes that context current.
 */
void role_green_alone(void) {
  CUcontext view = NULL;
  CUstream streams[2] = {NULL, NULL};
  char log[256], line[256] = "nothing";
  snprintf(log, sizeof log, "%s/emulator.log", getenv("VGPU_RUN_DIR"));
  setenv("VGPU_EMULATOR_LOG", log, 1);
  begin();
  void *green = make_green();
  CHECK(CU(cuCtxFromGreenCtx, &view, green) == ABI_SUCCESS && CU(cuCtxSetCurrent, view) == ABI_SUCCESS, "view");
  CHECK(CU(cuGreenCtxStreamCreate, &streams[0], green, 1u, 0) == ABI_SUCCESS, "stream");
  CUfunction function = spin();
  const struct shm_slot *slot = own_slot();
  for (int s = 0; s < 2; s++) { /* a stream of its own, then the default stream */
    uint64_t ns = 2000000, before = GET(slot->gpu_ns), until = seat_now() + PATIENCE_NS;
    void *arguments[] = {&ns};
    for (int i = 0; i < 10; i++) {
      CHECK(CU(cuLaunchKernel, function, 1u, 1u, 1u, 32u, 1u, 1u, 0u, streams[s], arguments, NULL) == ABI_SUCCESS,
            "launch");
    }
    while (GET(slot->busy) != 0 && seat_now() < until) usleep(1000);
    uint64_t took = GET(slot->gpu_ns) - before;
    CHECK(GET(slot->busy) == 0 && took >= 10000000 && took <= 60000000, "stream %d: charged %llu ns for 20 ms", s,
          (unsigned long long)took);
  }
  CHECK(CU(cuCtxSynchronize) == ABI_SUCCESS && CU(cuGreenCtxDestroy, green) == ABI_SUCCESS, "destroy");
  FILE *told = fopen(log, "re");
  CHECK(told == NULL || fgets(line, sizeof line, told) == NULL, "the driver says: %s", line);
  if (told != NULL) fclose(told);
}
