/*
 * Tests of the charge, over the emulated driver: after each step the ledger holds exactly what the driver has given by
 * its own account. The seat runs in this process; the hooked program is this binary again, in a role. Usage:
 * test_memory HOOK DRIVER [ROLE...]. Prints one line per role.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../main/c/region/driver.h"
#include "../../main/shm/shm.h"
#include "fake_seat.h"
#include "memory_test.h"

int failures;
static const char *hook, *driver, *self;

/* ---- the program's side ---- */

void *library, *real;
CUcontext context;

void *look(void *where, const char *name) {
  void *found = dlsym(where, name);
  CHECK(found != NULL, "no %s", name);
  return found;
}

uint64_t ledger_bytes(void) {
  static const struct shm_ledger *ledger;
  if (ledger == NULL) {
    char path[256];
    snprintf(path, sizeof path, "%s/leases/test/report", getenv("VGPU_RUN_DIR"));
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char *pages = mmap(NULL, SHM_REPORT_SIZE, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    ledger = (const void *)(pages + SHM_LEDGER_OFFSET);
  }
  return (GET(ledger->memory_word) >> SHM_MEMORY_UNITS_SHIFT) * SHM_MEMORY_UNIT;
}

/* Bytes that the driver has given out; only this process uses it. */
uint64_t real_bytes(void) {
  size_t left = 0, total = 0;
  CHECK(((abi_result(*)(size_t *, size_t *))look(real, "cuMemGetInfo_v2"))(&left, &total) == 0, "the driver's own account");
  return total - left;
}

/* The hook, or the driver alone. With sanitizers the hook is linked into this program. */
void open_library(void) {
  library = dlopen(getenv("TEST_SELF") != NULL ? NULL : "libcuda.so.1", RTLD_NOW);
  CHECK(library != NULL, "%s", dlerror());
}

void open_driver(void) {
  /* By the C library's own dlopen: the hook's would return the hook, which shows the quota. */
  void *(*open_real)(const char *, int);
  void *found = look(dlopen("libc.so.6", RTLD_NOW), "dlopen");
  memcpy(&open_real, &found, sizeof open_real);
  real = open_real(getenv("VGPU_CUDA_DRIVER"), RTLD_NOW | RTLD_NOLOAD);
  CHECK(real != NULL && dlsym(real, "vgpu_hook_version") == NULL, "the driver itself");
}

void begin_inexact(void) {
  open_library();
  CHECK(CU(cuInit, 0) == ABI_SUCCESS, "cuInit");
  open_driver();
  CHECK(CU(cuDevicePrimaryCtxRetain, &context, 0) == ABI_SUCCESS, "retain");
  CHECK(CU(cuCtxSetCurrent, context) == ABI_SUCCESS, "set current");
}

void begin(void) {
  begin_inexact();
  EXACT("a context");
}

static void role_plain(void) {
  CUdeviceptr a = 0, b = 0;
  CUcontext second = NULL;
  begin();
  CHECK(CU(cuMemAlloc_v2, &a, (size_t)1000) == ABI_SUCCESS, "alloc");
  EXACT("alloc");
  unsigned managed = 7, type = 0;
  CHECK(CU(cuPointerGetAttribute, &managed, 8, a) == ABI_SUCCESS && managed == 0, "it is not managed memory: %u", managed);
  CHECK(CU(cuPointerGetAttribute, &type, 2, a) == ABI_SUCCESS && type == 2, "but the device's: %u", type);
  CHECK(CU(cuMemFree_v2, a + 1) == ABI_INVALID_VALUE, "a pointer within");
  CHECK(CU(cuMemFree_v2, (CUdeviceptr)0x1234) == ABI_INVALID_VALUE, "nobody's pointer");
  CHECK(CU(cuMemFree_v2, (CUdeviceptr)0) == ABI_SUCCESS, "NULL is freed");
  EXACT("failed frees");
  CHECK(CU(cuMemFree_v2, a) == ABI_SUCCESS && CU(cuMemFree_v2, a) == ABI_INVALID_VALUE, "freed twice");
  EXACT("freed twice");
  static const size_t sizes[] = {0, (size_t)1 << 63, SIZE_MAX, SIZE_MAX - 255, (size_t)1 << 62, (size_t)600 * MIB};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    abi_result expected = sizes[i] == 0 ? ABI_INVALID_VALUE : ABI_OUT_OF_MEMORY;
    CHECK(CU(cuMemAlloc_v2, &a, sizes[i]) == expected, "alloc %zu", sizes[i]);
    CHECK(CU(cuMemAllocManaged, &a, sizes[i], 1) == expected, "managed %zu", sizes[i]);
    CHECK(CU(cuMemAllocAsync, &a, sizes[i], NULL) == expected, "async %zu", sizes[i]);
    CHECK(CU(cuMemAlloc_v2, NULL, sizes[i]) == ABI_INVALID_VALUE, "NULL %zu", sizes[i]);
    EXACT("sizes");
  }
  CHECK(CU(cuCtxCreate_v2, &second, 0, 0) == ABI_SUCCESS, "second context");
  CHECK(CU(cuMemAlloc_v2, &a, (size_t)(10 * MIB)) == ABI_SUCCESS && CU(cuMemAllocManaged, &b, (size_t)(3 * MIB), 1) == ABI_SUCCESS, "in it");
  EXACT("second context");
  CHECK(CU(cuCtxDestroy_v2, second) == ABI_SUCCESS, "destroyed under live memory");
  CHECK(CU(cuCtxDestroy_v2, second) != ABI_SUCCESS && CU(cuCtxDestroy_v2, (CUcontext)(void *)&second) != ABI_SUCCESS, "nobody's contexts");
  EXACT("destroyed under live memory");
  CU(cuCtxSetCurrent, context);
  CHECK(CU(cuMemFree_v2, a) == ABI_INVALID_VALUE, "gone with its context");
  EXACT("gone with its context");
}

static void role_graphs(void) {
  struct abi_mem_alloc_node params = {.pool = {1, 0, ABI_LOCATION_DEVICE, 0}, .bytes = 5 * MIB};
  void *graph = NULL, *node = NULL;
  CUgraphExec exec = NULL, large = NULL;
  CUdeviceptr p = 0, big = 0;
  CUstream stream = NULL;
  begin();
  CHECK(CU(cuGraphCreate, &graph, 0) == ABI_SUCCESS, "graph");
  CHECK(CU(cuGraphAddMemAllocNode, &node, graph, NULL, (size_t)0, &params) == ABI_SUCCESS, "node");
  CHECK(CU(cuGraphInstantiateWithFlags, &exec, graph, 0ull) == ABI_SUCCESS, "instantiate");
  EXACT("a graph that was not launched");
  CHECK(CU(cuGraphLaunch, exec, NULL) == ABI_SUCCESS, "launch");
  EXACT("launched");
  CHECK(CU(cuGraphLaunch, exec, NULL) == ABI_INVALID_VALUE, "launched again while it lives");
  EXACT("launched again");
  CHECK(CU(cuMemFreeAsync, params.address, NULL) == ABI_SUCCESS, "freed outside");
  EXACT("kept for graphs");
  CHECK(CU(cuMemAlloc_v2, &big, (size_t)(QUOTA - CONTEXT)) == ABI_SUCCESS, "what graphs keep makes room");
  EXACT("trimmed by us");
  CHECK(CU(cuGraphLaunch, exec, NULL) == ABI_OUT_OF_MEMORY, "no room for a graph's memory");
  EXACT("refused");
  CHECK(CU(cuMemFree_v2, big) == ABI_SUCCESS && CU(cuGraphLaunch, exec, NULL) == ABI_SUCCESS, "room again");
  EXACT("room again");
  CHECK(CU(cuMemFree_v2, params.address) == ABI_SUCCESS && CU(cuDeviceGraphMemTrim, 0) == ABI_SUCCESS, "trim");
  EXACT("trimmed by the program");
  CHECK(CU(cuStreamCreate, &stream, 1) == ABI_SUCCESS && CU(cuStreamBeginCapture_v2, stream, 2) == ABI_SUCCESS, "capture");
  CHECK(CU(cuMemAllocAsync, &p, (size_t)(100 * MIB), stream) == ABI_SUCCESS && CU(cuMemFreeAsync, p, stream) == ABI_SUCCESS, "captured");
  EXACT("captured");
  CHECK(CU(cuStreamEndCapture, stream, &graph) == ABI_SUCCESS && CU(cuGraphInstantiateWithFlags, &large, graph, 0ull) == ABI_SUCCESS, "end");
  for (int i = 0; i < 3; i++) CHECK(CU(cuGraphLaunch, large, stream) == ABI_SUCCESS, "launch");
  EXACT("launched thrice");
  CHECK(CU(cuGraphExecDestroy, large) == ABI_SUCCESS && CU(cuGraphExecDestroy, exec) == ABI_SUCCESS, "destroy");
  EXACT("destroyed: kept for graphs");
  CHECK(CU(cuDeviceGraphMemTrim, 0) == ABI_SUCCESS, "trim");
  EXACT("trimmed at last");
}

struct prop { struct abi_mem_prop known; char rest[32]; };

static void role_physical(void) {
  struct prop device = {{1, 1, ABI_LOCATION_DEVICE, 0}, ""}, host = {{1, 0, 2, 0}, ""};
  uint64_t h = 0, again = 0, imported = 0;
  CUdeviceptr at = 0;
  int fd = -1;
  begin();
  CHECK(CU(cuMemAddressReserve, &at, (size_t)(8 * MIB), (size_t)0, 0ull, 0ull) == ABI_SUCCESS, "addresses");
  EXACT("addresses cost nothing");
  CHECK(CU(cuMemCreate, &h, (size_t)(4 * MIB), &device, 0ull) == ABI_SUCCESS, "create");
  CHECK(CU(cuMemCreate, &again, (size_t)(4 * MIB + 1), &device, 0ull) == ABI_INVALID_VALUE, "no whole granules");
  CHECK(CU(cuMemCreate, &again, (size_t)1 << 63, &device, 0ull) == ABI_OUT_OF_MEMORY, "too large");
  EXACT("created");
  CHECK(CU(cuMemMap, at, (size_t)(4 * MIB), (size_t)0, h, 0ull) == ABI_SUCCESS, "map");
  CHECK(CU(cuMemRetainAllocationHandle, &again, (void *)(uintptr_t)at) == ABI_SUCCESS && again == h, "retain");
  CHECK(CU(cuMemRelease, h) == ABI_SUCCESS, "release one");
  EXACT("retained and mapped");
  CHECK(CU(cuMemExportToShareableHandle, &fd, h, 1, 0ull) == ABI_SUCCESS && fd >= 0, "export");
  CHECK(CU(cuMemImportFromShareableHandle, &imported, (void *)(intptr_t)fd, 1) == ABI_SUCCESS, "import");
  EXACT("imported: its owner pays");
  CHECK(CU(cuMemMap, at + 4 * MIB, (size_t)(4 * MIB), (size_t)0, imported, 0ull) == ABI_SUCCESS, "map what was imported");
  CHECK(CU(cuMemUnmap, at + 4 * MIB, (size_t)(4 * MIB)) == ABI_SUCCESS, "unmap it");
  CHECK(CU(cuMemUnmap, at, (size_t)(4 * MIB)) == ABI_SUCCESS, "and its owner's");
  CHECK(CU(cuMemMap, at, (size_t)(4 * MIB), (size_t)0, imported, 0ull) == ABI_SUCCESS, "the other way round");
  CHECK(CU(cuMemMap, at + 4 * MIB, (size_t)(4 * MIB), (size_t)0, h, 0ull) == ABI_SUCCESS, "its owner's behind it");
  CHECK(CU(cuMemRelease, imported) == ABI_SUCCESS && CU(cuMemRelease, h) == ABI_SUCCESS, "only mappings are left");
  EXACT("mapped, each without a handle");
  CHECK(CU(cuMemUnmap, at, (size_t)(8 * MIB)) == ABI_SUCCESS, "both at once");
  EXACT("import ended");
  CHECK(CU(cuMemCreate, &h, (size_t)(4 * MIB), &device, 0ull) == ABI_SUCCESS, "create");
  CHECK(CU(cuMemMap, at, (size_t)(4 * MIB), (size_t)0, h, 0ull) == ABI_SUCCESS, "map");
  CHECK(CU(cuMemRelease, h) == ABI_SUCCESS, "release the other");
  EXACT("mapped only");
  CHECK(CU(cuMemRelease, h) == ABI_INVALID_VALUE && CU(cuMemRelease, 7ull) == ABI_INVALID_VALUE, "no such handles");
  CHECK(CU(cuMemUnmap, at, (size_t)(8 * MIB)) == ABI_INVALID_VALUE, "more than is mapped");
  EXACT("failed releases");
  CHECK(CU(cuMemCreate, &again, (size_t)(4 * MIB), &host, 0ull) == ABI_SUCCESS && CU(cuMemRelease, again) == ABI_SUCCESS, "host memory");
  EXACT("host memory is not charged");
  CHECK(CU(cuMemUnmap, at, (size_t)(4 * MIB)) == ABI_SUCCESS, "unmap");
  EXACT("unmapped");
  CHECK(CU(cuMemAddressFree, at, (size_t)(8 * MIB)) == ABI_SUCCESS, "addresses back");
}

static void role_arrays(void) {
  struct abi_array flat = {1000, 100, 0x20, 4};
  struct abi_array3d deep = {64, 64, 64, 0x20, 1, 0}, huge = {(size_t)1 << 40, 1 << 20, 1 << 20, 0x20, 4, 0};
  CUarray array = NULL;
  CUmipmappedArray mipmap = NULL;
  begin();
  CHECK(CU(cuArrayCreate_v2, &array, &flat) == ABI_SUCCESS, "array");
  EXACT("array");
  CHECK(CU(cuArrayDestroy, array) == ABI_SUCCESS && CU(cuArrayDestroy, array) != ABI_SUCCESS, "destroy twice");
  EXACT("array gone");
  CHECK(CU(cuArray3DCreate_v2, &array, &huge) != ABI_SUCCESS && CU(cuArray3DCreate_v2, &array, NULL) == ABI_INVALID_VALUE, "bad shapes");
  EXACT("bad shapes");
  CHECK(CU(cuArray3DCreate_v2, &array, &deep) == ABI_SUCCESS, "deep");
  EXACT("deep");
  CHECK(CU(cuMipmappedArrayCreate, &mipmap, &deep, 4) == ABI_SUCCESS, "mipmap");
  EXACT("mipmap");
  CHECK(CU(cuMipmappedArrayDestroy, mipmap) == ABI_SUCCESS && CU(cuMipmappedArrayDestroy, mipmap) != ABI_SUCCESS, "destroy twice");
  static const unsigned LATER[] = {0x40, 0x80}; /* sparse, deferred: not charged, so they must have no memory */
  for (int i = 0; i < 2; i++) {
    struct abi_array3d later = {64, 64, 0, 0x20, 1, LATER[i]};
    CUarray none = NULL;
    CHECK(CU(cuArray3DCreate_v2, &none, &later) == ABI_NOT_SUPPORTED && none == NULL, "memory comes later");
    CHECK(CU(cuMipmappedArrayCreate, &mipmap, &later, 3) == ABI_NOT_SUPPORTED, "to its levels too");
    EXACT("memory comes later");
  }
  CHECK(CU(cuArrayDestroy, array) == ABI_SUCCESS, "destroy");
  EXACT("all gone");
}

static void role_managed(void) {
  CUdeviceptr p = 0, q = 0;
  begin();
  CHECK(CU(cuMemAllocManaged, &p, (size_t)(600 * MIB), 1) == ABI_SUCCESS, "more than the quota, by choice");
  CHECK(ledger_bytes() == QUOTA, "charged what fits: %llu", (unsigned long long)ledger_bytes());
  CHECK(CU(cuMemAlloc_v2, &q, (size_t)MIB) == ABI_OUT_OF_MEMORY, "no room beside it");
  CHECK(CU(cuMemFree_v2, p) == ABI_SUCCESS, "free");
  EXACT("managed gone");
}

static void role_shared(void) {
  struct { int type; int pad; union { int fd; void *two[2]; } handle; unsigned long long size; unsigned flags, reserved[16]; } outside = {1, 0, {-1}, 65536, 0, {0}};
  struct { unsigned long long offset, size; unsigned flags, reserved[16]; } part = {0, 4096, 0, {0}};
  void *external = NULL;
  CUdeviceptr p = 0, q = 0;
  char handle[64];
  begin();
  CHECK(CU(cuMemAlloc_v2, &p, (size_t)MIB) == ABI_SUCCESS && CU(cuIpcGetMemHandle, handle, p) == ABI_SUCCESS, "handle");
  EXACT("a handle costs nothing");
  FILE *file = tmpfile();
  CHECK(file != NULL && ftruncate(fileno(file), 65536) == 0, "file");
  outside.handle.fd = dup(fileno(file));
  CHECK(CU(cuImportExternalMemory, &external, &outside) == ABI_SUCCESS, "import");
  CHECK(CU(cuExternalMemoryGetMappedBuffer, &q, external, &part) == ABI_SUCCESS, "map");
  EXACT("external memory: its owner pays");
  CHECK(CU(cuMemFree_v2, q) == ABI_SUCCESS && CU(cuDestroyExternalMemory, external) == ABI_SUCCESS, "let go");
  EXACT("external memory gone");
  CHECK(CU(cuMemFree_v2, p) == ABI_SUCCESS, "free");
  void *pinned = NULL;
  CHECK(CU(cuMemHostAlloc, &pinned, (size_t)MIB, 0) == ABI_SUCCESS && CU(cuMemFreeHost, pinned) == ABI_SUCCESS, "pinned");
  static char own[8192];
  CHECK(CU(cuMemHostRegister_v2, own, sizeof own, 0) == ABI_SUCCESS, "registered");
  CHECK(CU(cuMemHostRegister_v2, own, sizeof own, 0) != ABI_SUCCESS, "registered twice");
  CHECK(CU(cuMemHostUnregister, own) == ABI_SUCCESS && CU(cuMemHostUnregister, own) != ABI_SUCCESS, "and back");
  EXACT("host memory is counted apart");
}

/* Calls fail as VGPU_EMULATOR_FAIL says. Whatever fails, the ledger must equal the driver's account. */
static void fail_at_random(unsigned seed) {
  struct prop device = {{1, 0, ABI_LOCATION_DEVICE, 0}, ""};
  struct abi_array flat = {1000, 100, 0x20, 4};
  struct abi_mem_alloc_node params = {.pool = {1, 0, ABI_LOCATION_DEVICE, 0}, .bytes = MIB};
  CUcontext second = NULL;
  unsigned failed = 0;
  begin();
  CUdeviceptr pointer[16] = {0}, pooled[16] = {0}, at = 0;
  uint64_t physical[16] = {0};
  CUarray array[16] = {0};
  void *graph = NULL, *node = NULL;
  CUgraphExec exec = NULL;
  CU(cuGraphCreate, &graph, 0);
  CU(cuGraphAddMemAllocNode, &node, graph, NULL, (size_t)0, &params);
  CU(cuMemAddressReserve, &at, (size_t)(2 * MIB), (size_t)0, 0ull, 0ull);
  for (int i = 0; i < 3000; i++) {
    unsigned k = (unsigned)rand_r(&seed) % 16;
    abi_result result = ABI_SUCCESS;
    switch (rand_r(&seed) % 8) {
      case 0:
        if (pointer[k] == 0) result = CU(cuMemAlloc_v2, &pointer[k], (size_t)(rand_r(&seed) % MIB + 1));
        else if ((result = CU(cuMemFree_v2, pointer[k])) == ABI_SUCCESS) pointer[k] = 0;
        break;
      case 1:
        if (pooled[k] == 0) result = CU(cuMemAllocAsync, &pooled[k], (size_t)(rand_r(&seed) % MIB + 1), NULL);
        else if ((result = CU(cuMemFreeAsync, pooled[k], NULL)) == ABI_SUCCESS) pooled[k] = 0;
        break;
      case 2:
        if (physical[k] == 0) result = CU(cuMemCreate, &physical[k], (size_t)(2 * MIB), &device, 0ull);
        else if ((result = CU(cuMemRelease, physical[k])) == ABI_SUCCESS) physical[k] = 0;
        break;
      case 3:
        if (array[k] == NULL) result = CU(cuArrayCreate_v2, &array[k], &flat);
        else if ((result = CU(cuArrayDestroy, array[k])) == ABI_SUCCESS) array[k] = NULL;
        break;
      case 4:
        if (second == NULL) {
          result = CU(cuCtxCreate_v2, &second, 0, 0);
          CU(cuCtxSetCurrent, context);
        } else if ((result = CU(cuCtxDestroy_v2, second)) == ABI_SUCCESS) {
          second = NULL;
        }
        break;
      case 5:
        result = CU(cuCtxSynchronize);
        break;
      case 6:
        if (exec == NULL) CU(cuGraphInstantiateWithFlags, &exec, graph, 0ull);
        if (exec != NULL && (result = CU(cuGraphLaunch, exec, NULL)) == ABI_SUCCESS) CU(cuMemFreeAsync, params.address, NULL);
        break;
      default:
        if (physical[k] != 0 && (result = CU(cuMemMap, at, (size_t)(2 * MIB), (size_t)0, physical[k], 0ull)) == ABI_SUCCESS) {
          while (CU(cuMemUnmap, at, (size_t)(2 * MIB)) != ABI_SUCCESS) failed++;
        }
    }
    failed += result != ABI_SUCCESS;
    CHECK(ledger_bytes() == real_bytes(), "step %d: charged %lld, given %lld", i, (long long)ledger_bytes(), (long long)real_bytes());
    if (failures > 0) return;
  }
  printf("  %u of 3000 calls failed\n", failed);
  CHECK(failed > 100, "only %u calls failed", failed);
}

static void role_errors(void) { fail_at_random(test_seed()); }

/*
 * Seeds for which a pool gave memory back as other memory was freed, and for which a pool failed to report it at first.
 */
static void role_errors_found(void) { fail_at_random(2028929822u); }

static void role_errors_found_next(void) { fail_at_random(1541); }

#define ERRORS                                                                                                          \
  "VGPU_EMULATOR_FAIL=cuMemAlloc:2@3/4,cuMemFree:719@2/5,cuMemAllocAsync:2@2/5,cuMemFreeAsync:999@3/7,"                  \
  "cuMemCreate:2@1/4,cuMemRelease:999@2/4,cuArrayCreate:2@2/3,cuArrayDestroy:400@2/3,cuCtxCreate:2@1/3,"                 \
  "cuCtxDestroy:999@1/3,cuMemPoolGetAttribute:999@5/9,cuGraphLaunch:2@2/3,cuMemMap:999@1/3,cuMemUnmap:999@2/4,"          \
  "cuCtxSynchronize:999@1/3"

/* Runs bare and hooked: the GPU is as large as the quota. */
#define REPLAYED "VGPU_EMULATOR=memory=512MiB"

static const struct {
  const char *name;
  void (*run)(void);
  const char *variable; /* NAME=VALUE in the program's environment */
} roles[] = {
    {"plain", role_plain, NULL},
    {"pools", role_pools, NULL},
    {"pools-later", role_pools_later, NULL},
    {"graphs", role_graphs, NULL},
    {"graphs-newer", role_graphs_newer, "VGPU_EMULATOR=memory=1GiB,cuda=13.4"},
    {"physical", role_physical, NULL},
    {"arrays", role_arrays, NULL},
    {"managed", role_managed, "VGPU_MANAGED_MEMORY=oversubscribe"},
    {"shared", role_shared, NULL},
    {"errors", role_errors, ERRORS},
    {"errors-found", role_errors_found, ERRORS},
    {"errors-found-next", role_errors_found_next, ERRORS},
    {"zeros", role_zeros, NULL},
    {"inputs", role_inputs, NULL},
    {"green", role_green, NULL},
    {"green-alone", role_green_alone, "VGPU_EMULATOR=memory=1GiB,single-green=on"},
    {"ipc", role_ipc, NULL},
    {"ipc-other", role_ipc_other, NULL},
    {"measured", role_measured, "VGPU_EMULATOR=memory=1GiB,module=5MiB,lazy=off"},
    {"measured-refused", role_measured_refused, "VGPU_EMULATOR=memory=1GiB,module=40MiB,lazy=off"},
    {"measured-large", role_measured_large, "VGPU_EMULATOR=memory=1GiB,context=600MiB"},
    {"measured-crowd", role_measured_crowd, "VGPU_EMULATOR=memory=1GiB,module=40MiB,lazy=off"},
    {"measured-owed", role_measured_owed, "VGPU_EMULATOR=memory=1GiB,module=0"},
    {"measured-stuck", role_measured_stuck, "VGPU_EMULATOR=memory=1GiB,module=40MiB,lazy=off"},
    {"measured-less", role_measured_less, "VGPU_EMULATOR=memory=1GiB,context=9728KiB"},
    {"measured-unused", role_measured_unused, "VGPU_EMULATOR=memory=1GiB,context=9728KiB"},
    {"measured-paused", role_measured_paused, "VGPU_EMULATOR=memory=1GiB,module=0"},
    {"measured-private", role_measured_private, "VGPU_EMULATOR=memory=1GiB,module=5MiB,lazy=off"},
    {"measured-apart", role_measured_apart, "VGPU_EMULATOR=memory=1GiB,module=5MiB,lazy=off"},
    {"measured-apart-old", role_measured_apart_old, "VGPU_EMULATOR_NVML=driver_version=560.35.03"},
    {"measured-beside", role_measured_beside, NULL}, /* started by "measured-apart" */
    {"replay-libraries", role_replay_libraries, REPLAYED},
    {"replay-primary", role_replay_primary, REPLAYED},
    {"replay-threads", role_replay_threads, REPLAYED},
    {"replay-allocator", role_replay_allocator, REPLAYED},
    {"replay-graphs", role_replay_graphs, REPLAYED},
    {"replay-captures", role_replay_captures, REPLAYED},
    {"replay-workspaces", role_replay_workspaces, REPLAYED},
    {"replay-inference", role_replay_inference, REPLAYED},
    {"replay-legacy", role_replay_legacy, REPLAYED},
    {"replay-legacy-capture", role_replay_legacy_capture, REPLAYED},
    {"measured-not", role_measured_not, "VGPU_NVML=/nowhere/libnvidia-ml.so.1"},
};
enum { ROLES = sizeof roles / sizeof *roles };

/* ---- the seat's side ---- */

/* The emulated NVML is beside the emulated driver. */
static void set_nvml(void) {
  char path[4096];
  snprintf(path, sizeof path - 32, "%s", driver);
  strcpy(strrchr(path, '/') + 1, "libnvidia-ml.so.1");
  setenv("VGPU_NVML", path, 1);
}

/* hooked = 0: the driver alone. Standard output goes to the file `output`, if given. */
static int run(const struct fake_seat *seat, size_t role, int hooked, const char *output) {
  pid_t pid = fork();
  if (pid == 0) {
    char emulator[160];
    snprintf(emulator, sizeof emulator, "%s/emulator", seat->dir);
    setenv("VGPU_RUN_DIR", seat->dir, 1);
    setenv("VGPU_LEASE", "test", 1);
    setenv("VGPU_CUDA_DRIVER", driver, 1);
    setenv("VGPU_EMULATOR_DIR", emulator, 1);
    setenv("VGPU_EMULATOR", "memory=1GiB", 1);
    if (strncmp(roles[role].name, "measured", 8) == 0) set_nvml();
    if (roles[role].variable != NULL) putenv((char *)(uintptr_t)roles[role].variable);
    if (strcmp(roles[role].name, "measured-stuck") == 0) setenv("VGPU_EMULATOR_FAIL", "cuModuleUnload:999@1,cuCtxDestroy:999@1", 1);
    if (hooked && strcmp(hook, "-") != 0) setenv("LD_PRELOAD", hook, 1);
    if (hooked && strcmp(hook, "-") == 0) setenv("TEST_SELF", "1", 1);
    if (!hooked) setenv("LD_PRELOAD", driver, 1);
    if (output != NULL) {
      int fd = open(output, O_WRONLY | O_CREAT | O_TRUNC, 0600);
      dup2(fd, 1);
      if (getenv("TEST_LOUD") == NULL) dup2(open("/dev/null", O_WRONLY), 2);
    }
    if (strstr(roles[role].name, "apart") != NULL) exec_apart(self, roles[role].name);
    else execl(self, self, "--role", roles[role].name, (char *)NULL);
    _exit(127);
  }
  int status = -1;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void compare(const char *bare, const char *hooked) {
  char command[512];
  snprintf(command, sizeof command, "! grep -vxFf %s %s", hooked, bare); /* the driver may lack some functions */
  CHECK(system(command) == 0, "bad input is answered otherwise than by the driver alone");
}

static void compare_whole(const char *bare, const char *hooked) {
  char command[512];
  snprintf(command, sizeof command, "test -s %s && diff %s %s", bare, bare, hooked);
  CHECK(system(command) == 0, "a program runs otherwise than on the driver alone");
}

static void test(size_t role) {
  /* started by other roles */
  if (strcmp(roles[role].name, "ipc-other") == 0 || strcmp(roles[role].name, "measured-beside") == 0) return;
  int inputs = strcmp(roles[role].name, "inputs") == 0, compared = strcmp(hook, "-") != 0;
  int replayed = compared && strncmp(roles[role].name, "replay", 6) == 0;
  int zeros = compared && (inputs || strcmp(roles[role].name, "zeros") == 0);
  if (replayed) test_seed(); /* the same seed for both runs */
  /* A program with the hook linked in cannot run the driver alone. */
  if (!compared && strcmp(roles[role].name, "zeros") == 0) return;
  int inexact = strncmp(roles[role].name, "measured", 8) == 0 && strcmp(roles[role].name, "measured-less") != 0 &&
                strcmp(roles[role].name, "measured-not") != 0;
  struct fake_seat seat;
  seat_open(&seat, QUOTA, inexact ? 16 * MIB : CONTEXT);
  seat_start(&seat);
  char bare[160], hooked[160];
  snprintf(bare, sizeof bare, "%s/bare", seat.dir);
  snprintf(hooked, sizeof hooked, "%s/hooked", seat.dir);
  int status = run(&seat, role, 1, zeros || replayed ? hooked : NULL);
  CHECK(status == 0, "role %s ended with %d", roles[role].name, status);
  if (zeros || replayed) {
    status = run(&seat, role, 0, bare);
    CHECK(status == 0, "the driver alone ended with %d", status);
    if (replayed) compare_whole(bare, hooked);
    else compare(bare, hooked);
  }
  uint64_t until = seat_now() + 5000000000u;
  while (seat_units(&seat) != 0 && seat_now() < until) usleep(1000);
  CHECK(seat_units(&seat) == 0, "%llu units left", (unsigned long long)seat_units(&seat));
  seat_close(&seat);
}

int main(int count, char **arguments) {
  if (count > 2 && strcmp(arguments[1], "--role") == 0) {
    for (size_t i = 0; i < ROLES; i++) {
      if (strcmp(roles[i].name, arguments[2]) == 0) roles[i].run();
    }
    return failures == 0 ? 0 : 1;
  }
  if (count < 3) return 2;
  setvbuf(stdout, NULL, _IOLBF, 0);
  hook = arguments[1];
  driver = arguments[2];
  self = realpath("/proc/self/exe", NULL);
  for (size_t i = 0; i < ROLES; i++) {
    int wanted = count == 3, before = failures;
    for (int j = 3; j < count; j++) wanted |= strcmp(arguments[j], roles[i].name) == 0;
    if (!wanted) continue;
    uint64_t since = seat_now();
    test(i);
    printf("%s %s (%llu ms)\n", failures == before ? "ok  " : "FAIL", roles[i].name, (unsigned long long)(seat_now() - since) / 1000000);
  }
  return failures == 0 ? 0 : 1;
}
