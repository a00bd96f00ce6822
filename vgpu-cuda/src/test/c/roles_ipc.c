/*
 * Programs of test_memory.c in which two processes share memory and events: this program, and itself again as the
 * other.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_seat.h"
#include "memory_test.h"

enum { SHARED = 4 | 2 /* CU_EVENT_INTERPROCESS, CU_EVENT_DISABLE_TIMING */, WAIT_MS = 100, KERNEL_MS = 5 };

struct handle {
  char bytes[64];
};
struct parcel {
  struct handle memory, theirs, ours;
};

static const char PTX[] =
    ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry vgpu_spin(.param .u64 ns)\n{\n ret;\n}\n";

static uint64_t gpu_ns(void) {
  char path[256];
  snprintf(path, sizeof path, "%s/leases/test/report", getenv("VGPU_RUN_DIR"));
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  char *pages = mmap(NULL, SHM_REPORT_SIZE, PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  const struct shm_slot *slots = (const void *)(pages + SHM_SLOTS_OFFSET);
  for (unsigned i = 1; i < SHM_SLOT_COUNT; i++) {
    if (slots[i].pid == (uint32_t)getpid()) return GET(slots[i].gpu_ns);
  }
  return UINT64_MAX;
}

/* Its stream waits for the other process, which is not its GPU time. Opened memory is charged to its owner. */
void role_ipc_other(void) {
  struct parcel got;
  CUdeviceptr word = 0, none = 0;
  CUevent theirs = NULL, ours = NULL;
  CUstream stream = NULL;
  void *module = NULL;
  CUfunction function = NULL;
  uint64_t ns = KERNEL_MS * 1000000ull;
  CHECK(read(0, &got, sizeof got) == sizeof got, "parcel");
  begin();
  CHECK(CU(cuModuleLoadData, &module, PTX) == ABI_SUCCESS &&
            CU(cuModuleGetFunction, &function, module, "vgpu_spin") == ABI_SUCCESS,
        "kernel");
  CHECK(CU(cuStreamCreate, &stream, 1) == ABI_SUCCESS, "stream");
  CHECK(((abi_result(*)(CUdeviceptr *, struct handle, unsigned))look(library, "cuIpcOpenMemHandle_v2"))(
            &word, got.memory, 1) == ABI_SUCCESS,
        "memory");
  EXACT("opened memory is its owner's");
  abi_result (*open_event)(CUevent *, struct handle) = (abi_result(*)(CUevent *, struct handle))look(
      library, "cuIpcOpenEventHandle");
  CHECK(open_event(&theirs, got.theirs) == ABI_SUCCESS && open_event(&ours, got.ours) == ABI_SUCCESS, "events");
  EXACT("events take no memory");
  CHECK(open_event(NULL, got.theirs) == ABI_INVALID_VALUE &&
            open_event(&theirs, (struct handle){{7}}) == ABI_INVALID_VALUE,
        "bad handles");
  CHECK(CU(cuEventQuery, theirs) == ABI_NOT_READY, "it stands before the word");
  CHECK(CU(cuStreamWaitEvent, stream, theirs, 0) == ABI_SUCCESS, "wait");
  CHECK(CU(cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 0, stream, (void *[]){&ns}, NULL) == ABI_SUCCESS,
        "kernel behind it");
  CHECK(CU(cuEventRecord, ours, stream) == ABI_SUCCESS, "record behind that");
  usleep(WAIT_MS * 1000);
  CHECK(CU(cuEventQuery, ours) == ABI_NOT_READY && CU(cuStreamQuery, stream) == ABI_NOT_READY, "all of it waits");
  CHECK(CU(cuMemsetD8_v2, word, 1, (size_t)1) == ABI_SUCCESS, "the word");
  CHECK(CU(cuEventSynchronize, theirs) == ABI_SUCCESS && CU(cuEventSynchronize, ours) == ABI_SUCCESS, "both go on");
  CHECK(CU(cuStreamSynchronize, stream) == ABI_SUCCESS, "sync");
  double charged = (double)gpu_ns() / 1e6;
  CHECK(charged > KERNEL_MS - 1 && charged < WAIT_MS / 2, "%d ms behind a wait of %d ms: charged %.2f ms", KERNEL_MS,
        WAIT_MS, charged);
  CHECK(CU(cuMemFree_v2, word) == ABI_INVALID_VALUE && CU(cuIpcCloseMemHandle, word) == ABI_SUCCESS, "close");
  CHECK(CU(cuIpcCloseMemHandle, word) == ABI_INVALID_VALUE && CU(cuIpcCloseMemHandle, none) == ABI_INVALID_VALUE,
        "close twice");
  EXACT("closed");
  CHECK(CU(cuEventDestroy_v2, theirs) == ABI_SUCCESS && CU(cuEventDestroy_v2, ours) == ABI_SUCCESS, "destroy");
}

void role_ipc(void) {
  struct parcel sent;
  CUdeviceptr word = 0;
  CUevent theirs = NULL, ours = NULL;
  CUstream stream = NULL;
  int ends[2], status = -1;
  begin();
  CHECK(CU(cuMemAlloc_v2, &word, (size_t)MIB) == ABI_SUCCESS && CU(cuMemsetD8_v2, word, 0, (size_t)4) == ABI_SUCCESS,
        "memory");
  CHECK(CU(cuStreamCreate, &stream, 1) == ABI_SUCCESS, "stream");
  CHECK(CU(cuEventCreate, &theirs, SHARED) == ABI_SUCCESS && CU(cuEventCreate, &ours, SHARED) == ABI_SUCCESS, "events");
  CHECK(CU(cuIpcGetMemHandle, &sent.memory, word) == ABI_SUCCESS, "handle");
  CHECK(CU(cuIpcGetEventHandle, &sent.theirs, theirs) == ABI_SUCCESS &&
            CU(cuIpcGetEventHandle, &sent.ours, ours) == ABI_SUCCESS,
        "handles");
  CHECK(CU(cuIpcGetEventHandle, NULL, theirs) == ABI_INVALID_VALUE, "NULL");
  CHECK(CU(cuStreamWaitValue32_v2, stream, word, 1, 0) == ABI_SUCCESS &&
            CU(cuEventRecord, theirs, stream) == ABI_SUCCESS,
        "record");
  CHECK(pipe(ends) == 0 && write(ends[1], &sent, sizeof sent) == sizeof sent, "pipe");
  pid_t pid = fork();
  if (pid == 0) {
    dup2(ends[0], 0);
    execl("/proc/self/exe", "test_memory", "--role", "ipc-other", (char *)NULL);
    _exit(127);
  }
  waitpid(pid, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == DELAYED) _exit(DELAYED);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the other ended with %d", status);
  CHECK(CU(cuEventQuery, theirs) == ABI_SUCCESS && CU(cuEventSynchronize, ours) == ABI_SUCCESS, "both are over");
  CHECK(CU(cuEventDestroy_v2, theirs) == ABI_SUCCESS && CU(cuEventDestroy_v2, ours) == ABI_SUCCESS &&
            CU(cuMemFree_v2, word) == ABI_SUCCESS,
        "gone");
  uint64_t until = seat_now() + PATIENCE_NS; /* the seat notices the other's death by its socket */
  while (ledger_bytes() != real_bytes() && seat_now() < until) usleep(1000);
  EXACT("gone");
}
