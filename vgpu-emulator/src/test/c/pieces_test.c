/* Memory in pieces that allocations share, and the memory that a context takes after its creation. */
#include "check.h"
#include "cuda_api.h"
#include "base/nvml_abi.h"

#include <string.h>

CUresult cuCtxGetLimit(size_t *value, int limit);
CUresult cuCtxSetLimit(int limit, size_t value);

nvmlReturn_t nvmlInit_v2(void);
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device);
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory);

enum { MIB = 1 << 20, STACK = 0, PRINTF = 1, HEAP = 2, LOCAL_BYTES = 3 };

/* Two multiprocessors with 2,048 threads each: 1 KiB of stack per thread takes 4 MiB. */
static const char settings[] = "memory=1GiB,sms=2,grain=2MiB";

static const char ptx[] =
    ".version 6.0\n.target sm_52\n.address_size 64\n"
    ".visible .entry plain() { ret; }\n"
    ".visible .entry deep() { .local .align 8 .b8 __local_depot0[5000]; ret; }\n"
    ".visible .entry talks() { { call.uni (r), vprintf, (a, b); } ret; }\n"
    ".visible .entry takes() { call.uni (r), malloc, (a); ret; }\n";

/* As the driver reports it; NVML must report the same. */
static int64_t used_bytes(void) {
    size_t available = 0;
    size_t total = 0;
    nvmlDevice_t device = NULL;
    nvmlMemory_t memory;
    CHECK_OK(cuMemGetInfo_v2(&available, &total));
    CHECK_OK(nvmlDeviceGetHandleByIndex_v2(0, &device));
    CHECK_OK(nvmlDeviceGetMemoryInfo(device, &memory));
    CHECK_EQUAL(memory.used, total - available);
    return (int64_t)(total - available);
}

static CUdeviceptr allocate(size_t bytes) {
    CUdeviceptr p = 0;
    CHECK_OK(cuMemAlloc_v2(&p, bytes));
    CHECK_OK(cuMemsetD8_v2(p, 1, bytes));
    return p;
}

static void smallAllocationsShareAPiece(void) {
    int64_t before = used_bytes();
    CUdeviceptr one = allocate(1);
    CHECK_EQUAL(used_bytes() - before, 2 * MIB);
    CUdeviceptr two = allocate(1000000);
    CHECK_EQUAL(used_bytes() - before, 2 * MIB);
    CHECK_OK(cuMemFree_v2(one));
    CHECK_EQUAL(used_bytes() - before, 2 * MIB); /* the other allocation still lies in it */
    CHECK_OK(cuMemFree_v2(two));
    CHECK_EQUAL(used_bytes(), before);
}

static void largeAllocationsBeginAPiece(void) {
    int64_t before = used_bytes();
    CUdeviceptr small = allocate(1000);
    CUdeviceptr large = allocate(2 * MIB + 1);
    CHECK_EQUAL(used_bytes() - before, 6 * MIB);
    CUdeviceptr rest[3];
    for (int i = 0; i < 3; i++) { /* in the room that both have left */
        rest[i] = allocate(900 * 1024);
        CHECK_EQUAL(used_bytes() - before, 6 * MIB);
    }
    CHECK_OK(cuMemFree_v2(large));
    for (int i = 0; i < 3; i++) {
        CHECK_OK(cuMemFree_v2(rest[i]));
    }
    CHECK_OK(cuMemFree_v2(small));
    CHECK_EQUAL(used_bytes(), before);
}

static void aPieceMustBeFree(void) {
    int64_t before = used_bytes();
    CUdeviceptr p = 0;
    CUdeviceptr all = 0;
    CHECK_OK(cuMemAlloc_v2(&all, (size_t)(1024 * (int64_t)MIB - before)));
    CHECK_EQUAL(cuMemAlloc_v2(&p, 1), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_EQUAL(used_bytes(), 1024 * (int64_t)MIB);
    CHECK_OK(cuMemFree_v2(all));
    CHECK_EQUAL(used_bytes(), before);
}

static void piecesGoWithTheirContext(void) {
    CUcontext context = NULL;
    int64_t before = used_bytes();
    CUdeviceptr kept = allocate(1000);
    CHECK_OK(cuCtxCreate_v2(&context, 0, 0));
    int64_t made = used_bytes();
    allocate(1000);
    allocate(5 * MIB);
    CHECK_EQUAL(used_bytes() - made, 6 * MIB);
    CHECK_OK(cuCtxDestroy_v2(context));
    CHECK_EQUAL(used_bytes() - before, 2 * MIB);
    CHECK_OK(cuMemFree_v2(kept));
    CHECK_EQUAL(used_bytes(), before);
}

static void launch(CUmodule module, const char *name) {
    CUfunction function = NULL;
    CHECK_OK(cuModuleGetFunction(&function, module, name));
    CHECK_OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
}

static void contextsGrowWhenALaunchNeedsIt(void) {
    CUcontext context = NULL;
    CUmodule module = NULL;
    CUfunction deep = NULL;
    int local = 0;
    size_t limit = 0;
    int64_t before = used_bytes();
    CHECK_OK(cuCtxCreate_v2(&context, 0, 0));
    CHECK_OK(cuModuleLoadData(&module, ptx));
    int64_t made = used_bytes();
    CHECK_OK(cuModuleGetFunction(&deep, module, "deep"));
    CHECK_OK(cuFuncGetAttribute(&local, LOCAL_BYTES, deep));
    CHECK_EQUAL(local, 5000);
    launch(module, "plain");
    CHECK_EQUAL(used_bytes(), made);
    for (int i = 0; i < 2; i++) { /* charged only once */
        launch(module, "deep");
        CHECK_EQUAL(used_bytes() - made, 16 * MIB);
    }
    CHECK_OK(cuCtxSetLimit(PRINTF, 3 * MIB));
    launch(module, "talks");
    CHECK_EQUAL(used_bytes() - made, 20 * MIB); /* 3 MiB take two pieces */
    CHECK_EQUAL(cuCtxSetLimit(PRINTF, 5 * MIB), CUDA_ERROR_INVALID_VALUE);
    launch(module, "takes");
    CHECK_EQUAL(used_bytes() - made, 28 * MIB);
    CHECK_EQUAL(cuCtxSetLimit(HEAP, 5 * MIB), CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(cuCtxSetLimit(STACK, 6 * 1024)); /* takes effect at once */
    CHECK_EQUAL(used_bytes() - made, 32 * MIB);
    CHECK_EQUAL(cuCtxSetLimit(STACK, 400 * 1024), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_OK(cuCtxGetLimit(&limit, STACK));
    CHECK_EQUAL(limit, 6 * 1024);
    CHECK_EQUAL(used_bytes() - made, 32 * MIB);
    CHECK_OK(cuCtxDestroy_v2(context));
    CHECK_EQUAL(used_bytes(), before);
}

int main(void) {
    CUcontext context = NULL;
    setenv("VGPU_EMULATOR", settings, 1);
    CHECK_OK(cuInit(0));
    CHECK_OK(nvmlInit_v2());
    CHECK_OK(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK_OK(cuCtxSetCurrent(context));
    smallAllocationsShareAPiece();
    largeAllocationsBeginAPiece();
    aPieceMustBeFree();
    piecesGoWithTheirContext();
    contextsGrowWhenALaunchNeedsIt();
    CHECK_OK(cuDevicePrimaryCtxRelease_v2(0));
    CHECK_EQUAL(check_failures, 0);
    return check_failures != 0;
}
