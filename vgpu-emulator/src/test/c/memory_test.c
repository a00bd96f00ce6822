/*
 * Memory beyond plain allocations: pools, graph memory, memory shared between processes, managed memory that does not
 * fit, and injected errors.
 */
#include "check.h"
#include "cuda_api.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device);
CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties);
CUresult cuMemPoolDestroy(CUmemoryPool pool);
CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t bytes);
CUresult cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void *value);
CUresult cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void *value);
CUresult cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t bytes, CUmemoryPool pool,
                                 CUstream stream);
CUresult cuMemPoolExportToShareableHandle(void *handle, CUmemoryPool pool, int type,
                                          unsigned long long flags);
CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pool, void *handle, int type,
                                            unsigned long long flags);
CUresult cuMemPoolExportPointer(void *data, CUdeviceptr address);
CUresult cuMemPoolImportPointer(CUdeviceptr *address, CUmemoryPool pool, const void *data);
CUresult cuMemExportToShareableHandle(void *shareable, CUmemGenericAllocationHandle handle,
                                      int type, unsigned long long flags);
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *shareable,
                                        int type);
CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr address);
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *address, CUipcMemHandle handle, unsigned int flags);
CUresult cuIpcCloseMemHandle(CUdeviceptr address);
CUresult cuImportExternalMemory(CUexternalMemory *memory,
                                const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *description);
CUresult cuExternalMemoryGetMappedBuffer(CUdeviceptr *address, CUexternalMemory memory,
                                         const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *buffer);
CUresult cuDestroyExternalMemory(CUexternalMemory memory);
CUresult cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs,
                                size_t count, CUDA_MEM_ALLOC_NODE_PARAMS *params);
CUresult cuGraphAddMemFreeNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs,
                               size_t count, CUdeviceptr address);
CUresult cuGraphNodeGetType(CUgraphNode node, int *type);
CUresult cuDeviceGetGraphMemAttribute(CUdevice device, int attribute, void *value);
CUresult cuDeviceGraphMemTrim(CUdevice device);
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device);

enum { RELEASE_THRESHOLD = 4, RESERVED = 5, USED = 7, GRAPH_USED = 0, GRAPH_RESERVED = 2 };

CUresult cuGraphUpload(CUgraphExec exec, CUstream stream);
CUresult cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS *params);
CUresult cuGraphExecGetFlags(CUgraphExec exec, uint64_t *flags);
CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool);
CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool, CUmemLocation *location, int type);
CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, int type);
CUresult cuMemSetMemPool(CUmemLocation *location, int type, CUmemoryPool pool);

static CUcontext context;

static size_t used_bytes(void) {
    size_t available = 0;
    size_t total = 0;
    CHECK_OK(cuMemGetInfo_v2(&available, &total));
    return total - available;
}

static uint64_t pool_figure(CUmemoryPool pool, int attribute) {
    uint64_t value = 0;
    CHECK_OK(cuMemPoolGetAttribute(pool, attribute, &value));
    return value;
}

static void poolsKeepWhatTheyMay(void) {
    CUmemoryPool pool = NULL;
    CUdeviceptr p[3];
    CUmemPoolProps properties = {.alloc_type = 1, .location = {.type = 1, .id = 0}};
    size_t before = used_bytes();
    CHECK_OK(cuMemPoolCreate(&pool, &properties));
    CHECK_EQUAL(used_bytes(), before);
    for (int i = 0; i < 3; i++) {
        CHECK_OK(cuMemAllocFromPoolAsync(&p[i], 20 * MIB, pool, NULL));
    }
    CHECK_EQUAL(pool_figure(pool, USED), 60 * MIB);
    CHECK_EQUAL(pool_figure(pool, RESERVED), 64 * MIB);
    CHECK_EQUAL(used_bytes() - before, 64 * MIB);
    uint64_t keep = 50 * MIB;
    CHECK_OK(cuMemPoolSetAttribute(pool, RELEASE_THRESHOLD, &keep));
    for (int i = 0; i < 3; i++) {
        CHECK_OK(cuMemFreeAsync(p[i], NULL));
    }
    CHECK_EQUAL(pool_figure(pool, USED), 0);
    CHECK_EQUAL(used_bytes() - before, 64 * MIB); /* kept until a thread synchronizes */
    CHECK_OK(cuCtxSynchronize());
    CHECK_EQUAL(used_bytes() - before, 50 * MIB);
    CHECK_OK(cuMemAllocFromPoolAsync(&p[0], 10 * MIB, pool, NULL));
    CHECK_EQUAL(used_bytes() - before, 50 * MIB); /* reused from the kept memory */
    CHECK_OK(cuMemPoolTrimTo(pool, 0));
    CHECK_EQUAL(used_bytes() - before, 32 * MIB);
    CHECK_OK(cuMemPoolDestroy(pool));
    CHECK_EQUAL(cuMemPoolTrimTo(pool, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(used_bytes() - before, 32 * MIB); /* live allocations stay */
    CHECK_OK(cuMemFreeAsync(p[0], NULL));
    CHECK_EQUAL(used_bytes(), before);
}

static void aPlaceHasAPool(void) {
    CUmemLocation here = {1, 0};
    CUmemLocation host = {2, 0};
    CUmemPoolProps properties = {.alloc_type = 1, .location = {1, 0}};
    CUmemoryPool usual = NULL;
    CUmemoryPool mine = NULL;
    CUmemoryPool found = NULL;
    CHECK_OK(cuDeviceGetDefaultMemPool(&usual, 0));
    CHECK_OK(cuMemGetDefaultMemPool(&found, &here, 1));
    CHECK(found == usual);
    CHECK_OK(cuMemPoolCreate(&mine, &properties));
    CHECK_OK(cuMemSetMemPool(&here, 1, mine));
    CHECK_OK(cuMemGetMemPool(&found, &here, 1));
    CHECK(found == mine);
    CHECK_OK(cuMemGetDefaultMemPool(&found, &here, 1));
    CHECK(found == usual);
    CHECK_OK(cuMemSetMemPool(&here, 1, usual));
    CHECK_OK(cuMemPoolDestroy(mine));
    CHECK_OK(cuMemGetMemPool(&found, &host, 1));
    CHECK(found != usual);
    CHECK_EQUAL(cuMemGetMemPool(&found, &here, 0), CUDA_ERROR_INVALID_VALUE);
    here.id = 9;
    CHECK_EQUAL(cuMemGetMemPool(&found, &here, 1), CUDA_ERROR_INVALID_DEVICE);
}

/* A pool of host memory takes nothing of the GPU; one of managed memory does, wherever its memory is preferred. */
static void poolsOfOtherMemory(void) {
    static const struct {
        int type;
        CUmemLocation location;
        bool on_gpu;
    } others[] = {{1, {2, 0}, false},
                  {1, {3, 0}, false},
                  {2, {0, 0}, true},
                  {2, {2, 0}, true},
                  {2, {1, 0}, true}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        CUmemPoolProps properties = {.alloc_type = others[i].type, .location = others[i].location};
        CUmemLocation location = others[i].location;
        CUmemoryPool pools[3] = {NULL};
        CUdeviceptr p = 0;
        size_t before = used_bytes();
        CHECK_OK(cuMemPoolCreate(&pools[0], &properties));
        CHECK_OK(cuMemGetDefaultMemPool(&pools[1], &location, others[i].type));
        CHECK_OK(cuMemSetMemPool(&location, others[i].type, pools[0]));
        CHECK_OK(cuMemGetMemPool(&pools[2], &location, others[i].type));
        CHECK(pools[2] == pools[0] && pools[1] != pools[0]);
        for (int k = 0; k < 2; k++) {
            CHECK_OK(cuMemAllocFromPoolAsync(&p, 40 * MIB, pools[k], NULL));
            CHECK_EQUAL(pool_figure(pools[k], RESERVED), 64 * MIB);
            CHECK_EQUAL(used_bytes() - before, others[i].on_gpu ? 64 * MIB : 0);
            CHECK_OK(cuMemFreeAsync(p, NULL));
            CHECK_OK(cuCtxSynchronize());
            CHECK_EQUAL(used_bytes(), before);
        }
        CHECK_EQUAL(cuDeviceSetMemPool(0, pools[0]), CUDA_ERROR_INVALID_VALUE);
        CHECK_OK(cuMemPoolDestroy(pools[0]));
        CHECK_OK(cuMemGetMemPool(&pools[2], &location, others[i].type));
        CHECK(pools[2] == pools[1]);
        properties.handle_types = 1;
        if (others[i].type == 2 || !others[i].on_gpu) {
            CHECK_EQUAL(cuMemPoolCreate(&pools[0], &properties), CUDA_ERROR_INVALID_VALUE);
        }
    }
}

static void whatOnePoolKeepsAnotherMayHave(void) {
    CUmemoryPool first = NULL;
    CUmemoryPool second = NULL;
    CUdeviceptr p = 0;
    CUmemPoolProps properties = {.alloc_type = 1, .location = {.type = 1, .id = 0}};
    uint64_t all = UINT64_MAX;
    size_t before = used_bytes();
    CHECK_OK(cuMemPoolCreate(&first, &properties));
    CHECK_OK(cuMemPoolCreate(&second, &properties));
    CHECK_OK(cuMemPoolSetAttribute(first, RELEASE_THRESHOLD, &all));
    CHECK_OK(cuMemAllocFromPoolAsync(&p, 800 * MIB, first, NULL));
    CHECK_OK(cuMemFreeAsync(p, NULL));
    CHECK_OK(cuCtxSynchronize());
    CHECK_EQUAL(used_bytes() - before, 800 * MIB);
    CHECK_OK(cuMemAllocFromPoolAsync(&p, 700 * MIB, second, NULL));
    CHECK_EQUAL(pool_figure(first, RESERVED), 0);
    CHECK_EQUAL(cuMemAllocFromPoolAsync(&p, 700 * MIB, first, NULL), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_OK(cuMemFree_v2(p));
    CHECK_OK(cuMemPoolDestroy(first));
    CHECK_OK(cuMemPoolDestroy(second));
    CHECK_EQUAL(used_bytes(), before);
}

static uint64_t graph_figure(int attribute) {
    uint64_t value = 0;
    CHECK_OK(cuDeviceGetGraphMemAttribute(0, attribute, &value));
    return value;
}

static void graphsTakeMemoryWhenTheyAreLaunched(void) {
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    CUgraphNode nodes[2];
    int type = -1;
    size_t before = used_bytes();
    CUDA_MEM_ALLOC_NODE_PARAMS params = {
        .pool = {.alloc_type = 1, .location = {.type = 1, .id = 0}}, .bytes = 5 * MIB};
    CHECK_OK(cuGraphCreate(&graph, 0));
    CHECK_OK(cuGraphAddMemAllocNode(&nodes[0], graph, NULL, 0, &params));
    CHECK(params.address != 0);
    CHECK_OK(cuGraphNodeGetType(nodes[0], &type));
    CHECK_EQUAL(type, 10);
    CHECK_OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    CHECK_EQUAL(used_bytes(), before);
    CHECK_OK(cuGraphLaunch(exec, NULL));
    CHECK_EQUAL(used_bytes() - before, 6 * MIB);
    CHECK_EQUAL(graph_figure(GRAPH_USED), 5 * MIB);
    CHECK_OK(cuMemsetD8_v2(params.address, 1, params.bytes));
    CHECK_EQUAL(cuGraphLaunch(exec, NULL), CUDA_ERROR_INVALID_VALUE); /* not freed yet */
    CHECK_OK(cuMemFreeAsync(params.address, NULL));
    CHECK_EQUAL(graph_figure(GRAPH_RESERVED), 6 * MIB);
    CHECK_OK(cuGraphLaunch(exec, NULL));
    CHECK_EQUAL(used_bytes() - before, 6 * MIB);
    CHECK_OK(cuMemFree_v2(params.address));
    CHECK_OK(cuDeviceGraphMemTrim(0));
    CHECK_EQUAL(used_bytes(), before);
    CHECK_OK(cuGraphUpload(exec, NULL));
    CHECK_EQUAL(used_bytes() - before, 6 * MIB);
    CHECK_EQUAL(graph_figure(GRAPH_USED), 0);
    CHECK_OK(cuGraphExecDestroy(exec));
    CHECK_OK(cuDeviceGraphMemTrim(0));
    CUDA_GRAPH_INSTANTIATE_PARAMS uploaded = {.flags = 2};
    uint64_t flags = 7;
    CHECK_OK(cuGraphInstantiateWithParams(&exec, graph, &uploaded));
    CHECK_EQUAL(used_bytes() - before, 6 * MIB);
    CHECK_OK(cuGraphExecGetFlags(exec, &flags));
    CHECK_EQUAL(flags, 0);
    CHECK_OK(cuGraphExecDestroy(exec));
    CHECK_OK(cuDeviceGraphMemTrim(0));
    CHECK_EQUAL(used_bytes(), before);
    CHECK_OK(cuGraphAddMemFreeNode(&nodes[1], graph, &nodes[0], 1, params.address));
    CHECK_OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    for (int i = 0; i < 3; i++) {
        CHECK_OK(cuGraphLaunch(exec, NULL));
    }
    CHECK_EQUAL(graph_figure(GRAPH_USED), 0);
    CHECK_OK(cuGraphDestroy(graph));
    CHECK_OK(cuGraphLaunch(exec, NULL)); /* its addresses do not change */
    CHECK_OK(cuGraphExecDestroy(exec));
    CHECK_OK(cuDeviceGraphMemTrim(0));
    CHECK_EQUAL(used_bytes(), before);
}

static void capturedAllocationsAreTheGraphs(void) {
    CUstream stream = NULL;
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    CUdeviceptr p = 0;
    size_t before = used_bytes();
    CHECK_OK(cuStreamCreate(&stream, 1));
    CHECK_OK(cuStreamBeginCapture_v2(stream, 2));
    CHECK_OK(cuMemAllocAsync(&p, 3 * MIB, stream));
    CHECK_OK(cuMemFreeAsync(p, stream));
    CHECK_OK(cuStreamEndCapture(stream, &graph));
    CHECK_EQUAL(used_bytes(), before);
    CHECK_OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    CHECK_OK(cuGraphLaunch(exec, stream));
    CHECK_EQUAL(used_bytes() - before, 4 * MIB);
    CHECK_OK(cuGraphExecDestroy(exec));
    CHECK_OK(cuGraphDestroy(graph));
    CHECK_OK(cuDeviceGraphMemTrim(0));
    CHECK_OK(cuStreamDestroy_v2(stream));
    CHECK_EQUAL(used_bytes(), before);
}

static void managedMemoryMayExceedTheGpu(void) {
    CUdeviceptr big = 0;
    CUdeviceptr p = 0;
    size_t before = used_bytes();
    CHECK_OK(cuMemAllocManaged(&big, 1500 * MIB, 1));
    CHECK_EQUAL(used_bytes(), 1024 * MIB);
    CHECK_EQUAL(cuMemAlloc_v2(&p, MIB), CUDA_ERROR_OUT_OF_MEMORY);
    *(volatile char *)(uintptr_t)(big + 1400 * MIB) = 1;
    CHECK_OK(cuMemFree_v2(big));
    CHECK_EQUAL(used_bytes(), before);
}

/* What the other process receives: a handle of each kind over a pipe; descriptors are inherited. */
typedef struct {
    CUipcMemHandle memory;
    char pointer[64];
    int physical;
    int pool;
    int external;
} parcel;

static int open_in_exec(int fd) {
    return dup(fd); /* without close-on-exec */
}

static unsigned char byte_at(CUdeviceptr address) {
    unsigned char byte = 0;
    CHECK_OK(cuMemcpyDtoH_v2(&byte, address, 1));
    return byte;
}

/* The other process sees what the first one wrote, writes one byte into each memory, and is charged for nothing. */
static int receive(void) {
    parcel got;
    CUdeviceptr p = 0;
    CUdeviceptr base = 0;
    CUmemoryPool pool = NULL;
    CUmemGenericAllocationHandle handle = 0;
    CHECK_EQUAL(read(0, &got, sizeof got), sizeof got);
    CHECK_OK(cuInit(0));
    CHECK_OK(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK_OK(cuCtxSetCurrent(context));
    size_t before = used_bytes();
    CHECK_OK(cuIpcOpenMemHandle_v2(&p, got.memory, 1));
    CHECK_EQUAL(byte_at(p + 999), 0x11);
    CHECK_OK(cuMemsetD8_v2(p, 0x21, 1));
    CHECK_EQUAL(cuMemsetD8_v2(p, 0x21, 1001), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuMemFree_v2(p), CUDA_ERROR_INVALID_VALUE); /* not with this call */
    CHECK_OK(cuIpcCloseMemHandle(p));
    CHECK_EQUAL(cuIpcCloseMemHandle(p), CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)got.physical, 1));
    CHECK_OK(cuMemAddressReserve(&base, 2 * MIB, 0, 0, 0));
    CHECK_OK(cuMemMap(base, 2 * MIB, 0, handle, 0));
    CHECK_EQUAL(byte_at(base + 2 * MIB - 1), 0x12);
    CHECK_OK(cuMemsetD8_v2(base, 0x22, 1));
    CHECK_OK(cuMemRelease(handle));
    CHECK_OK(cuMemUnmap(base, 2 * MIB));
    CHECK_OK(cuMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)got.pool, 1, 0));
    CHECK_EQUAL(cuMemAllocFromPoolAsync(&p, 1, pool, NULL), CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(cuMemPoolImportPointer(&p, pool, got.pointer));
    CHECK_EQUAL(byte_at(p + 4095), 0x13);
    CHECK_OK(cuMemsetD8_v2(p, 0x23, 1));
    CHECK_OK(cuMemFreeAsync(p, NULL));
    CHECK_OK(cuMemPoolDestroy(pool));
    CUexternalMemory external = NULL;
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC description = {
        .type = 1, .handle = {.fd = got.external}, .size = 65536};
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC buffer = {.offset = 4096, .size = 4096};
    CHECK_OK(cuImportExternalMemory(&external, &description));
    CHECK_OK(cuExternalMemoryGetMappedBuffer(&p, external, &buffer));
    CHECK_EQUAL(byte_at(p), 0x14);
    CHECK_OK(cuMemsetD8_v2(p + 1, 0x24, 1));
    CHECK_OK(cuDestroyExternalMemory(external));
    CHECK_OK(cuMemFree_v2(p));
    CHECK_EQUAL(cuDestroyExternalMemory(external), CUDA_ERROR_INVALID_HANDLE);
    CHECK_EQUAL(used_bytes(), before);
    return check_failures == 0 ? 0 : 1;
}

static int run_other(const parcel *sent) {
    int ends[2];
    CHECK_EQUAL(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[0], 0);
        execl("/proc/self/exe", "memory_test", "receive", (char *)NULL);
        _exit(127);
    }
    CHECK_EQUAL(write(ends[1], sent, sizeof *sent), sizeof *sent);
    int status = -1;
    waitpid(pid, &status, 0);
    close(ends[0]);
    close(ends[1]);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void processesShareMemoryAndItsOwnerPays(void) {
    parcel sent = {.physical = -1};
    CUdeviceptr p = 0;
    CUdeviceptr base = 0;
    CUdeviceptr pooled = 0;
    CUmemoryPool pool = NULL;
    CUmemGenericAllocationHandle handle = 0;
    CUmemAllocationProp properties = {
        .type = 1, .handle_types = 1, .location = {.type = 1, .id = 0}};
    CUmemPoolProps pool_properties = {
        .alloc_type = 1, .handle_types = 1, .location = {.type = 1, .id = 0}};
    int fd = -1;
    size_t before = used_bytes();
    CHECK_OK(cuMemAlloc_v2(&base, 300)); /* so that the next allocation does not start a page */
    CHECK_OK(cuMemAlloc_v2(&p, 1000));
    CHECK_OK(cuMemsetD8_v2(p, 0x11, 1000));
    CHECK_OK(cuIpcGetMemHandle(&sent.memory, p));
    CHECK_EQUAL(cuIpcOpenMemHandle_v2(&pooled, sent.memory, 1), CUDA_ERROR_INVALID_CONTEXT);
    CHECK_OK(cuMemFree_v2(base));

    CHECK_OK(cuMemCreate(&handle, 2 * MIB, &properties, 0));
    CHECK_OK(cuMemAddressReserve(&base, 2 * MIB, 0, 0, 0));
    CHECK_OK(cuMemMap(base, 2 * MIB, 0, handle, 0));
    CHECK_OK(cuMemsetD8_v2(base, 0x12, 2 * MIB));
    CHECK_OK(cuMemExportToShareableHandle(&fd, handle, 1, 0));
    sent.physical = open_in_exec(fd);

    CHECK_OK(cuMemPoolCreate(&pool, &pool_properties));
    CHECK_OK(cuMemAllocFromPoolAsync(&pooled, 4096, pool, NULL));
    CHECK_OK(cuMemsetD8_v2(pooled, 0x13, 4096));
    CHECK_OK(cuMemPoolExportToShareableHandle(&fd, pool, 1, 0));
    CHECK_OK(cuMemPoolExportPointer(sent.pointer, pooled));
    sent.pool = open_in_exec(fd);

    FILE *file = tmpfile(); /* stands for another driver's memory */
    CHECK(file != NULL && ftruncate(fileno(file), 65536) == 0);
    char *theirs = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
    theirs[4096] = 0x14;
    sent.external = open_in_exec(fileno(file));

    CHECK_EQUAL(run_other(&sent), 0);
    CHECK_EQUAL(byte_at(p), 0x21);
    CHECK_EQUAL(byte_at(base), 0x22);
    CHECK_EQUAL(byte_at(pooled), 0x23);
    CHECK_EQUAL(theirs[4097], 0x24);
    CHECK_OK(cuMemFree_v2(p));
    CHECK_OK(cuMemUnmap(base, 2 * MIB));
    CHECK_OK(cuMemRelease(handle));
    CHECK_OK(cuMemFree_v2(pooled));
    CHECK_OK(cuMemPoolDestroy(pool));
    CHECK_EQUAL(used_bytes(), before);
}

/* Runs with VGPU_EMULATOR_FAIL set; see errorsComeWhenTheyAreAskedFor. */
static int fail_as_told(void) {
    CUdeviceptr p = 0;
    CUdeviceptr kept = 0;
    CHECK_OK(cuInit(0));
    CHECK_OK(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK_OK(cuCtxSetCurrent(context));
    size_t before = used_bytes();
    CHECK_OK(cuMemAlloc_v2(&kept, 1024));
    CHECK_EQUAL(cuMemAlloc_v2(&p, 1024), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_OK(cuMemAlloc_v2(&p, 1024));
    CHECK_EQUAL(cuMemFree_v2(p), CUDA_ERROR_LAUNCH_FAILED);
    CHECK_EQUAL(used_bytes() - before, 2048); /* a failed call has no effect */
    CHECK_OK(cuMemFree_v2(p));
    CHECK_EQUAL(cuMemFree_v2(kept), CUDA_ERROR_LAUNCH_FAILED);
    CHECK_OK(cuMemFree_v2(kept));
    CHECK_EQUAL(used_bytes(), before);
    CHECK_OK(cuCtxSynchronize());
    CHECK_EQUAL(cuCtxSynchronize(), CUDA_ERROR_UNKNOWN);
    CHECK_EQUAL(cuCtxSynchronize(), CUDA_ERROR_UNKNOWN);
    return check_failures == 0 ? 0 : 1;
}

static void errorsComeWhenTheyAreAskedFor(void) {
    pid_t pid = fork();
    if (pid == 0) {
        setenv("VGPU_EMULATOR_FAIL",
               "cuMemAlloc:2@2,cuMemFree_v2:719@1/2,cuCtxSynchronize:999@2+,x", 1);
        execl("/proc/self/exe", "memory_test", "fail", (char *)NULL);
        _exit(127);
    }
    int status = -1;
    waitpid(pid, &status, 0);
    CHECK_EQUAL(status, 0);
}

static void resetTakesAllOfTheDevice(void) {
    CUdeviceptr p = 0;
    CUmemoryPool pool = NULL;
    CHECK_OK(cuMemAllocAsync(&p, MIB, NULL));
    CHECK_OK(cuDeviceGetDefaultMemPool(&pool, 0));
    CHECK_EQUAL(pool_figure(pool, USED), MIB);
    CHECK_OK(cuDevicePrimaryCtxReset_v2(0));
    CHECK_EQUAL(pool_figure(pool, RESERVED), 0);
    CHECK_OK(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK_OK(cuCtxSetCurrent(context));
    CHECK_EQUAL(used_bytes(), 64 * MIB);
    CHECK_EQUAL(cuMemFree_v2(p), CUDA_ERROR_INVALID_VALUE);
}

int main(int count, char **arguments) {
    if (count > 1) {
        return strcmp(arguments[1], "receive") == 0 ? receive() : fail_as_told();
    }
    CHECK_OK(cuInit(0));
    CHECK_OK(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK_OK(cuCtxSetCurrent(context));
    poolsKeepWhatTheyMay();
    aPlaceHasAPool();
    poolsOfOtherMemory();
    whatOnePoolKeepsAnotherMayHave();
    graphsTakeMemoryWhenTheyAreLaunched();
    capturedAllocationsAreTheGraphs();
    managedMemoryMayExceedTheGpu();
    processesShareMemoryAndItsOwnerPays();
    errorsComeWhenTheyAreAskedFor();
    resetTakesAllOfTheDevice();
    return check_failures == 0 ? 0 : 1;
}
