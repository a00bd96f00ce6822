/*
 * Programs of test_memory.c with each kind of memory: plain, of graphs, physical, arrays, managed and shared; and with
 * calls that fail.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_seat.h"
#include "memory_test.h"

void role_plain(void) {
  CUdeviceptr a = 0, b = 0;
  CUcontext second = NULL;
  begin();
  CHECK(CU(cuMemAlloc_v2, &a, (size_t)1000) == ABI_SUCCESS, "alloc");
  EXACT("alloc");
  unsigned managed = 7, type = 0;
  CHECK(CU(cuPointerGetAttribute, &managed, 8, a) == ABI_SUCCESS && managed == 0, "it is not managed memory: %u",
        managed);
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
  CHECK(CU(cuMemAlloc_v2, &a, (size_t)(10 * MIB)) == ABI_SUCCESS &&
            CU(cuMemAllocManaged, &b, (size_t)(3 * MIB), 1) == ABI_SUCCESS,
        "in it");
  EXACT("second context");
  CHECK(CU(cuCtxDestroy_v2, second) == ABI_SUCCESS, "destroyed under live memory");
  CHECK(CU(cuCtxDestroy_v2, second) != ABI_SUCCESS && CU(cuCtxDestroy_v2, (CUcontext)(void *)&second) != ABI_SUCCESS,
        "nobody's contexts");
  EXACT("destroyed under live memory");
  CU(cuCtxSetCurrent, context);
  CHECK(CU(cuMemFree_v2, a) == ABI_INVALID_VALUE, "gone with its context");
  EXACT("gone with its context");
}

/* Contexts that end by a detach, and calls for contexts that are not there. */
void role_detached(void) {
  static char nobody[600];
  CUdeviceptr a = 0;
  CUcontext second = NULL, same = NULL;
  begin();
  for (size_t i = 0; i < sizeof nobody; i++)
    CHECK(CU(cuCtxDestroy_v2, (CUcontext)(void *)&nobody[i]) != ABI_SUCCESS, "nobody's");
  CHECK(CU(cuCtxCreate_v2, &second, 0, 0) == ABI_SUCCESS && CU(cuMemAlloc_v2, &a, (size_t)(10 * MIB)) == ABI_SUCCESS,
        "in a second context");
  CHECK(CU(cuCtxDetach, context) != ABI_SUCCESS, "not the current one");
  CHECK(CU(cuCtxAttach, &same, 0) == ABI_SUCCESS && same == second, "attach");
  EXACT("attached");
  CHECK(CU(cuCtxDetach, second) == ABI_SUCCESS && CU(cuMemFree_v2, a) == ABI_SUCCESS, "detached, and alive");
  CHECK(CU(cuMemAlloc_v2, &a, (size_t)(20 * MIB)) == ABI_SUCCESS, "again");
  EXACT("detached once");
  CHECK(CU(cuCtxDetach, second) == ABI_SUCCESS, "detached by its creator too");
  EXACT("detached at last");
  CHECK(CU(cuCtxDetach, second) != ABI_SUCCESS, "once too often");
  CU(cuCtxSetCurrent, context);
  CHECK(CU(cuMemFree_v2, a) == ABI_INVALID_VALUE, "gone with its context");
  CHECK(CU(cuCtxCreate_v2, &second, 0, 0) == ABI_SUCCESS && CU(cuCtxAttach, &same, 0) == ABI_SUCCESS, "attached");
  CHECK(CU(cuCtxDestroy_v2, second) == ABI_SUCCESS, "destroyed while attached");
  EXACT("destroyed while attached");
}

void role_graphs(void) {
  struct abi_mem_alloc_node params = {.pool = {1, 0, {ABI_LOCATION_DEVICE, 0}}, .bytes = 5 * MIB};
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
  CHECK(CU(cuStreamCreate, &stream, 1) == ABI_SUCCESS && CU(cuStreamBeginCapture_v2, stream, 2) == ABI_SUCCESS,
        "capture");
  CHECK(CU(cuMemAllocAsync, &p, (size_t)(100 * MIB), stream) == ABI_SUCCESS &&
            CU(cuMemFreeAsync, p, stream) == ABI_SUCCESS,
        "captured");
  EXACT("captured");
  CHECK(CU(cuStreamEndCapture, stream, &graph) == ABI_SUCCESS &&
            CU(cuGraphInstantiateWithFlags, &large, graph, 0ull) == ABI_SUCCESS,
        "end");
  for (int i = 0; i < 3; i++) CHECK(CU(cuGraphLaunch, large, stream) == ABI_SUCCESS, "launch");
  EXACT("launched thrice");
  CHECK(CU(cuGraphExecDestroy, large) == ABI_SUCCESS && CU(cuGraphExecDestroy, exec) == ABI_SUCCESS, "destroy");
  EXACT("destroyed: kept for graphs");
  CHECK(CU(cuDeviceGraphMemTrim, 0) == ABI_SUCCESS, "trim");
  EXACT("trimmed at last");
}

static CUgraphExec auto_freed(size_t bytes, CUdeviceptr *address) {
  struct abi_mem_alloc_node params = {.pool = {1, 0, {ABI_LOCATION_DEVICE, 0}}, .bytes = bytes};
  void *graph = NULL, *node = NULL;
  CUgraphExec exec = NULL;
  CHECK(CU(cuGraphCreate, &graph, 0) == ABI_SUCCESS, "graph");
  CHECK(CU(cuGraphAddMemAllocNode, &node, graph, NULL, (size_t)0, &params) == ABI_SUCCESS, "node");
  CHECK(CU(cuGraphInstantiateWithFlags, &exec, graph, (unsigned long long)ABI_INSTANTIATE_AUTO_FREE) == ABI_SUCCESS,
        "instantiate");
  *address = params.address;
  return exec;
}

/*
 * Graphs that free their memory when they are launched again: only what they have really kept makes room. It was freed
 * outside, or by another graph.
 */
void role_graphs_auto_free(void) {
  CUdeviceptr of_large = 0, of_first = 0, of_second = 0, big = 0;
  void *graph = NULL, *node = NULL;
  CUgraphExec frees = NULL;
  begin();
  CUgraphExec large = auto_freed(300 * MIB, &of_large);
  for (int i = 0; i < 3; i++) {
    CHECK(CU(cuGraphLaunch, large, NULL) == ABI_SUCCESS, "launch %d", i);
    EXACT("launched again");
  }
  CHECK(CU(cuMemFreeAsync, of_large, NULL) == ABI_SUCCESS && CU(cuDeviceGraphMemTrim, 0) == ABI_SUCCESS,
        "freed outside");
  EXACT("freed");
  CUgraphExec first = auto_freed(100 * MIB, &of_first), second = auto_freed(100 * MIB, &of_second);
  CHECK(CU(cuGraphCreate, &graph, 0) == ABI_SUCCESS, "graph");
  CHECK(CU(cuGraphAddMemFreeNode, &node, graph, NULL, (size_t)0, of_first) == ABI_SUCCESS, "node");
  CHECK(CU(cuGraphInstantiateWithFlags, &frees, graph, 0ull) == ABI_SUCCESS, "instantiate");
  for (int by_graph = 0; by_graph < 2; by_graph++) {
    CHECK(CU(cuGraphLaunch, first, NULL) == ABI_SUCCESS, "first");
    if (by_graph) CHECK(CU(cuGraphLaunch, frees, NULL) == ABI_SUCCESS, "freed by a graph");
    else CHECK(CU(cuMemFreeAsync, of_first, NULL) == ABI_SUCCESS, "freed outside");
    CHECK(CU(cuCtxSynchronize) == ABI_SUCCESS && CU(cuGraphLaunch, second, NULL) == ABI_SUCCESS, "second");
    CHECK(CU(cuMemAlloc_v2, &big, (size_t)(QUOTA - CONTEXT - 150 * MIB)) == ABI_SUCCESS, "50 MiB are left");
    EXACT("filled");
    CHECK(CU(cuGraphLaunch, first, NULL) == ABI_OUT_OF_MEMORY, "no room for the first one's memory");
    CHECK(CU(cuGraphLaunch, second, NULL) == ABI_SUCCESS, "the second has its memory");
    EXACT("refused");
    CHECK(CU(cuMemFree_v2, big) == ABI_SUCCESS && CU(cuMemFreeAsync, of_second, NULL) == ABI_SUCCESS, "free");
  }
  CHECK(CU(cuGraphExecDestroy, first) == ABI_SUCCESS && CU(cuGraphExecDestroy, second) == ABI_SUCCESS, "destroy");
  CHECK(CU(cuDeviceGraphMemTrim, 0) == ABI_SUCCESS, "trim");
  EXACT("trimmed");
}

/* Graphs that are uploaded when they are instantiated, and by a call of its own. */
void role_uploads(void) {
  struct abi_mem_alloc_node params = {.pool = {1, 0, {ABI_LOCATION_DEVICE, 0}}, .bytes = 100 * MIB};
  struct abi_instantiate how = {.flags = ABI_INSTANTIATE_UPLOAD, .result = 7};
  void *graph = NULL, *node = NULL;
  CUgraphExec exec = NULL, other = NULL;
  CUdeviceptr big = 0;
  begin();
  CHECK(CU(cuGraphCreate, &graph, 0) == ABI_SUCCESS, "graph");
  CHECK(CU(cuGraphAddMemAllocNode, &node, graph, NULL, (size_t)0, &params) == ABI_SUCCESS, "node");
  uint64_t before = real_bytes();
  CHECK(CU(cuGraphInstantiateWithParams, &exec, graph, &how) == ABI_SUCCESS && how.result == 0, "instantiate: %d",
        how.result);
  CHECK(real_bytes() >= before + 100 * MIB && how.flags == ABI_INSTANTIATE_UPLOAD, "an upload takes the memory");
  EXACT("uploaded");
  CHECK(CU(cuGraphLaunch, exec, NULL) == ABI_SUCCESS && CU(cuMemFreeAsync, params.address, NULL) == ABI_SUCCESS,
        "launch");
  EXACT("launched");
  CHECK(CU(cuDeviceGraphMemTrim, 0) == ABI_SUCCESS && CU(cuGraphUpload, exec, NULL) == ABI_SUCCESS, "upload");
  EXACT("uploaded again");
  CHECK(CU(cuDeviceGraphMemTrim, 0) == ABI_SUCCESS, "trim");
  CHECK(CU(cuMemAlloc_v2, &big, (size_t)(QUOTA - CONTEXT - 50 * MIB)) == ABI_SUCCESS, "50 MiB are left");
  CHECK(CU(cuGraphInstantiateWithParams, &other, graph, &how) == ABI_OUT_OF_MEMORY &&
            how.result == ABI_INSTANTIATE_ERROR,
        "no room");
  CHECK(other == NULL && how.flags == ABI_INSTANTIATE_UPLOAD, "no graph");
  EXACT("refused");
  CHECK(CU(cuMemFree_v2, big) == ABI_SUCCESS, "free");
  CHECK(CU(cuGraphInstantiateWithParams_ptsz, &other, graph, &how) == ABI_SUCCESS && how.result == 0, "room again");
  EXACT("room again");
}

struct prop {
  struct abi_mem_prop known;
  char rest[32];
};

void role_physical(void) {
  struct prop device = {{1, 1, {ABI_LOCATION_DEVICE, 0}}, ""}, host = {{1, 0, {2, 0}}, ""};
  uint64_t h = 0, again = 0, imported = 0, more = 0;
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
  CHECK(CU(cuMemCreate, &more, (size_t)(QUOTA - CONTEXT), &device, 0ull) == ABI_OUT_OF_MEMORY,
        "and it counts, exported or not");
  EXACT("exported, charged once");
  CHECK(CU(cuMemMap, at + 4 * MIB, (size_t)(4 * MIB), (size_t)0, imported, 0ull) == ABI_SUCCESS,
        "map what was imported");
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
  CHECK(CU(cuMemCreate, &again, (size_t)(4 * MIB), &host, 0ull) == ABI_SUCCESS &&
            CU(cuMemRelease, again) == ABI_SUCCESS,
        "host memory");
  EXACT("host memory is not charged");
  CHECK(CU(cuMemUnmap, at, (size_t)(4 * MIB)) == ABI_SUCCESS, "unmap");
  EXACT("unmapped");
  CHECK(CU(cuMemAddressFree, at, (size_t)(8 * MIB)) == ABI_SUCCESS, "addresses back");
}

void role_arrays(void) {
  struct abi_array flat = {1000, 100, 0x20, 4};
  struct abi_array3d deep = {64, 64, 64, 0x20, 1, 0}, huge = {(size_t)1 << 40, 1 << 20, 1 << 20, 0x20, 4, 0};
  CUarray array = NULL;
  CUmipmappedArray mipmap = NULL;
  begin();
  CHECK(CU(cuArrayCreate_v2, &array, &flat) == ABI_SUCCESS, "array");
  EXACT("array");
  CHECK(CU(cuArrayDestroy, array) == ABI_SUCCESS && CU(cuArrayDestroy, array) != ABI_SUCCESS, "destroy twice");
  EXACT("array gone");
  CHECK(CU(cuArray3DCreate_v2, &array, &huge) != ABI_SUCCESS &&
            CU(cuArray3DCreate_v2, &array, NULL) == ABI_INVALID_VALUE,
        "bad shapes");
  EXACT("bad shapes");
  CHECK(CU(cuArray3DCreate_v2, &array, &deep) == ABI_SUCCESS, "deep");
  EXACT("deep");
  CHECK(CU(cuMipmappedArrayCreate, &mipmap, &deep, 4) == ABI_SUCCESS, "mipmap");
  EXACT("mipmap");
  CHECK(CU(cuMipmappedArrayDestroy, mipmap) == ABI_SUCCESS && CU(cuMipmappedArrayDestroy, mipmap) != ABI_SUCCESS,
        "destroy twice");
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

void role_managed(void) {
  CUdeviceptr p = 0, q = 0;
  begin();
  CHECK(CU(cuMemAllocManaged, &p, (size_t)(600 * MIB), 1) == ABI_SUCCESS, "more than the quota, by choice");
  CHECK(ledger_bytes() == QUOTA, "charged what fits: %llu", (unsigned long long)ledger_bytes());
  CHECK(CU(cuMemAlloc_v2, &q, (size_t)MIB) == ABI_OUT_OF_MEMORY, "no room beside it");
  CHECK(CU(cuMemFree_v2, p) == ABI_SUCCESS, "free");
  EXACT("managed gone");
}

void role_shared(void) {
  struct {
    int type;
    int pad;
    union {
      int fd;
      void *two[2];
    } handle;
    unsigned long long size;
    unsigned flags, reserved[16];
  } outside = {1, 0, {-1}, 65536, 0, {0}};
  struct {
    unsigned long long offset, size;
    unsigned flags, reserved[16];
  } part = {0, 4096, 0, {0}};
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
  CHECK(CU(cuMemHostAlloc, &pinned, (size_t)MIB, 0) == ABI_SUCCESS && CU(cuMemFreeHost, pinned) == ABI_SUCCESS,
        "pinned");
  static char own[8192];
  CHECK(CU(cuMemHostRegister_v2, own, sizeof own, 0) == ABI_SUCCESS, "registered");
  CHECK(CU(cuMemHostRegister_v2, own, sizeof own, 0) != ABI_SUCCESS, "registered twice");
  CHECK(CU(cuMemHostUnregister, own) == ABI_SUCCESS && CU(cuMemHostUnregister, own) != ABI_SUCCESS, "and back");
  EXACT("host memory is counted apart");
  CUcontext second = NULL;
  CHECK(CU(cuMemHostAlloc, &pinned, (size_t)MIB, 0) == ABI_SUCCESS, "pinned in the first context");
  CHECK(CU(cuCtxCreate_v2, &second, 0, 0) == ABI_SUCCESS && CU(cuMemHostRegister_v2, own, sizeof own, 0) == ABI_SUCCESS,
        "in another");
  CHECK(GET(own_slot()->host_bytes) == MIB + sizeof own, "both count: %llu",
        (unsigned long long)GET(own_slot()->host_bytes));
  CHECK(CU(cuCtxDestroy_v2, second) == ABI_SUCCESS && CU(cuCtxSetCurrent, context) == ABI_SUCCESS, "destroyed");
  CHECK(GET(own_slot()->host_bytes) == MIB, "it ends with its context: %llu",
        (unsigned long long)GET(own_slot()->host_bytes));
  CHECK(CU(cuDevicePrimaryCtxReset_v2, 0) == ABI_SUCCESS && GET(own_slot()->host_bytes) == 0, "or by a reset");
  CHECK(ledger_bytes() == 0, "and is no memory of the GPU: %llu", (unsigned long long)ledger_bytes());
}

/* Calls fail as VGPU_EMULATOR_FAIL says. Whatever fails, the ledger must equal the driver's account. */
static void fail_at_random(unsigned seed) {
  struct prop device = {{1, 0, {ABI_LOCATION_DEVICE, 0}}, ""};
  struct abi_array flat = {1000, 100, 0x20, 4};
  struct abi_mem_alloc_node params = {.pool = {1, 0, {ABI_LOCATION_DEVICE, 0}}, .bytes = MIB};
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
      case 5: result = CU(cuCtxSynchronize); break;
      case 6:
        if (exec == NULL) CU(cuGraphInstantiateWithFlags, &exec, graph, 0ull);
        if (exec != NULL && (result = CU(cuGraphLaunch, exec, NULL)) == ABI_SUCCESS)
          CU(cuMemFreeAsync, params.address, NULL);
        break;
      default:
        if (physical[k] != 0 &&
            (result = CU(cuMemMap, at, (size_t)(2 * MIB), (size_t)0, physical[k], 0ull)) == ABI_SUCCESS) {
          while (CU(cuMemUnmap, at, (size_t)(2 * MIB)) != ABI_SUCCESS) failed++;
        }
    }
    failed += result != ABI_SUCCESS;
    CHECK(ledger_bytes() == real_bytes(), "step %d: charged %lld, given %lld", i, (long long)ledger_bytes(),
          (long long)real_bytes());
    if (failures > 0) return;
  }
  printf("  %u of 3000 calls failed\n", failed);
  CHECK(failed > 100, "only %u calls failed", failed);
}

void role_errors(void) { fail_at_random(test_seed()); }

/*
 * Seeds for which a pool gave memory back as other memory was freed, and for which a pool failed to report it at first.
 */
void role_errors_found(void) { fail_at_random(2028929822u); }

void role_errors_found_next(void) { fail_at_random(1541); }

/* A program outside the lease. It fills most of the GPU, and waits for its end. */
void role_killed_other(void) {
  CUdeviceptr p = 0;
  open_driver_alone();
  CHECK(OF_DRIVER(cuInit, 0) == ABI_SUCCESS && OF_DRIVER(cuDevicePrimaryCtxRetain, &context, 0) == ABI_SUCCESS,
        "begin");
  CHECK(OF_DRIVER(cuCtxSetCurrent, context) == ABI_SUCCESS, "set current");
  CHECK(OF_DRIVER(cuMemAlloc_v2, &p, (size_t)(700 * MIB)) == ABI_SUCCESS && write(1, "1", 1) == 1, "memory");
  pause();
}

/* The driver gives its memory back 100 ms after it was killed. */
static void kill_another(void) {
  int ends[2], status = -1;
  char begun;
  CHECK(pipe(ends) == 0, "pipe");
  pid_t pid = fork();
  if (pid == 0) {
    dup2(ends[1], 1);
    unsetenv("LD_PRELOAD");
    execl("/proc/self/exe", "test_memory", "--role", "killed-other", (char *)NULL);
    _exit(127);
  }
  close(ends[1]);
  CHECK(read(ends[0], &begun, 1) == 1 && kill(pid, SIGKILL) == 0, "the other one");
  CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status), "it ended with %d", status);
}

/* The hook waits for a quarter of a second, once a second. If a delay uses that up, it is tried again. */
static void take_after(abi_result (*take)(void)) {
  enum { TRIES = 10 };
  static const uint64_t WITHIN_NS = 250000000;
  abi_result result = ABI_OUT_OF_MEMORY;
  uint64_t took = WITHIN_NS;
  begin();
  for (int tries = 0; tries < TRIES && result != ABI_SUCCESS && took >= WITHIN_NS; tries++) {
    if (tries > 0) usleep(1000000);
    kill_another();
    uint64_t since = seat_now();
    result = take();
    took = seat_now() - since;
  }
  CHECK(result == ABI_SUCCESS, "the memory of the killed: %d", (int)result);
  EXACT("the memory of the killed");
}

static abi_result take_plain(void) {
  CUdeviceptr p = 0;
  return CU(cuMemAlloc_v2, &p, (size_t)(300 * MIB));
}

static abi_result take_physical(void) {
  uint64_t handle = 0;
  struct prop device = {{1, 0, {ABI_LOCATION_DEVICE, 0}}, ""};
  return CU(cuMemCreate, &handle, (size_t)(300 * MIB), &device, 0ull);
}

static abi_result take_array(void) {
  CUarray array = NULL;
  const struct abi_array shape = {.width = 16384, .height = 4800, .format = 0x20, .channels = 1};
  return CU(cuArrayCreate_v2, &array, &shape);
}

void role_killed(void) { take_after(take_plain); }

void role_killed_physical(void) { take_after(take_physical); }

void role_killed_array(void) { take_after(take_array); }
