/* Green contexts: partitions of a device's processors. */
#include "check.h"
#include "cuda_api.h"

#include <stddef.h>
#include <string.h>

CUresult cuDeviceGetDevResource(CUdevice device, CUdevResource *resource, int type);
CUresult cuCtxGetDevResource(CUcontext context, CUdevResource *resource, int type);
CUresult cuDevSmResourceSplitByCount(CUdevResource *result, unsigned int *groups,
                                     const CUdevResource *input, CUdevResource *remaining,
                                     unsigned int flags, unsigned int least_count);
CUresult cuDevResourceGenerateDesc(CUdevResourceDesc *descriptor, CUdevResource *resources,
                                   unsigned int count);
CUresult cuGreenCtxCreate(CUgreenCtx *green, CUdevResourceDesc descriptor, CUdevice device,
                          unsigned int flags);
CUresult cuGreenCtxDestroy(CUgreenCtx green);
CUresult cuGreenCtxStreamCreate(CUstream *stream, CUgreenCtx green, unsigned int flags,
                                int priority);
CUresult cuCtxFromGreenCtx(CUcontext *context, CUgreenCtx green);
CUresult cuStreamGetGreenCtx(CUstream stream, CUgreenCtx *green);

enum { SM = 1, GROUPS = 20 };

static size_t used_bytes(void) {
    size_t available = 0;
    size_t total = 0;
    CHECK_OK(cuMemGetInfo_v2(&available, &total));
    return total - available;
}

static void processorsAreSplit(void) {
    CUdevResource all;
    CUdevResource groups[GROUPS];
    CUdevResource rest;
    unsigned int count = 0;
    CHECK_EQUAL(sizeof all, 144);
    CHECK_EQUAL(offsetof(CUdevResource, sm_count), 96);
    CHECK_OK(cuDeviceGetDevResource(0, &all, SM));
    CHECK_EQUAL(all.sm_count, 132);
    CHECK_EQUAL(cuDeviceGetDevResource(0, &all, 7), CUDA_ERROR_INVALID_RESOURCE_TYPE);
    CHECK_EQUAL(cuDeviceGetDevResource(9, &all, SM), CUDA_ERROR_INVALID_DEVICE);
    CHECK_EQUAL(cuDeviceGetDevResource(0, NULL, SM), CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(cuDevSmResourceSplitByCount(NULL, &count, &all, NULL, 0, 1));
    CHECK_EQUAL(count, 16); /* 8 processors each */
    count = GROUPS;
    CHECK_OK(cuDevSmResourceSplitByCount(groups, &count, &all, &rest, 0, 9));
    CHECK_EQUAL(count, 8);
    CHECK_EQUAL(groups[7].sm_count, 16);
    CHECK_EQUAL(rest.sm_count, 4);
    count = 1;
    CHECK_OK(cuDevSmResourceSplitByCount(groups, &count, &all, &rest, 0, 32));
    CHECK_EQUAL(rest.sm_count, 100);
    CHECK_EQUAL(cuDevSmResourceSplitByCount(groups, &count, &all, &rest, 0, 133),
                CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
    CHECK_EQUAL(cuDevSmResourceSplitByCount(groups, NULL, &all, &rest, 0, 8),
                CUDA_ERROR_INVALID_VALUE);
    memset(&rest, 0, sizeof rest);
    CHECK_EQUAL(cuDevSmResourceSplitByCount(groups, &count, &rest, NULL, 0, 8),
                CUDA_ERROR_INVALID_RESOURCE_TYPE);
    CUdevResourceDesc descriptor;
    CUdevResource twice[] = {groups[0], groups[0]};
    CHECK_EQUAL(cuDevResourceGenerateDesc(&descriptor, twice, 2),
                CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
    CHECK_EQUAL(cuDevResourceGenerateDesc(&descriptor, twice, 0), CUDA_ERROR_INVALID_VALUE);
}

static float one(CUcontext context, CUfunction function, CUstream stream) {
    CUevent start = NULL;
    CUevent end = NULL;
    float passed = 0;
    CHECK_OK(cuCtxSetCurrent(context));
    CHECK_OK(cuEventCreate(&start, 0));
    CHECK_OK(cuEventCreate(&end, 0));
    /* A long kernel first, so that the rest is queued when it begins. */
    CHECK_OK(cuLaunchKernel(function, 132 * 32 * 1000, 1, 1, 64, 1, 1, 0, stream, NULL, NULL));
    CHECK_OK(cuEventRecord(start, stream));
    CHECK_OK(cuLaunchKernel(function, 132 * 32 * 10, 1, 1, 64, 1, 1, 0, stream, NULL, NULL));
    CHECK_OK(cuEventRecord(end, stream));
    CHECK_OK(cuEventSynchronize(end));
    CHECK_OK(cuEventElapsedTime(&passed, start, end));
    CHECK_OK(cuEventDestroy_v2(start));
    CHECK_OK(cuEventDestroy_v2(end));
    return passed;
}

/* The kernel's own time. Taking the minimum of several runs removes delays between the calls on a busy machine. */
static float milliseconds(CUcontext context, CUfunction function, CUstream stream) {
    float least = one(context, function, stream);
    for (int i = 0; i < 20; i++) {
        float passed = one(context, function, stream);
        least = passed < least ? passed : least;
    }
    return least;
}

static void aPartTakesItsTime(void) {
    static const char ptx[] = ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry "
                              "unknown()\n{\n ret;\n}\n";
    CUdevResource all;
    CUdevResource part;
    CUdevResourceDesc descriptor = NULL;
    CUgreenCtx green = NULL;
    CUgreenCtx found = NULL;
    CUcontext primary = NULL;
    CUcontext view = NULL;
    CUstream stream = NULL;
    CUmodule module = NULL;
    CUfunction function = NULL;
    CUdeviceptr p = 0;
    unsigned int count = 1;
    CHECK_OK(cuDeviceGetDevResource(0, &all, SM));
    CHECK_OK(cuDevSmResourceSplitByCount(&part, &count, &all, NULL, 0, 64));
    CHECK_OK(cuDevResourceGenerateDesc(&descriptor, &part, 1));
    CHECK_EQUAL(cuGreenCtxCreate(&green, descriptor, 0, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuGreenCtxCreate(&green, NULL, 0, 1), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuGreenCtxCreate(&green, descriptor, 1, 1),
                CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
    CHECK_OK(cuGreenCtxCreate(&green, descriptor, 0, 1));
    CHECK_OK(cuCtxFromGreenCtx(&view, green));
    CHECK_OK(cuDevicePrimaryCtxRetain(&primary, 0));
    CHECK_OK(cuCtxSetCurrent(primary));
    size_t before = used_bytes();
    CHECK_EQUAL(before, 64u << 20); /* one context's memory */
    CHECK_EQUAL(cuGreenCtxStreamCreate(&stream, green, 0, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0));
    CHECK_OK(cuStreamGetGreenCtx(stream, &found));
    CHECK(found == green);
    CHECK_OK(cuModuleLoadData(&module, ptx));
    CHECK_OK(cuModuleGetFunction(&function, module, "unknown"));
    float whole = milliseconds(primary, function, NULL);
    float half = milliseconds(view, function, stream);
    CHECK(half / whole > 1.8f && half / whole < 2.4f);
    CHECK(milliseconds(primary, function, stream) / whole >
          1.8f); /* whichever context is current at the launch */
    CHECK_OK(cuCtxSetCurrent(view));
    CHECK_OK(cuCtxGetDevResource(view, &part, SM));
    CHECK_EQUAL(part.sm_count, 64);
    CHECK_OK(cuMemAlloc_v2(&p, 4096));
    CHECK_EQUAL(cuCtxDestroy_v2(view), CUDA_ERROR_INVALID_CONTEXT);
    CHECK_OK(cuGreenCtxDestroy(green));
    CHECK_EQUAL(cuGreenCtxDestroy(green), CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(cuCtxSetCurrent(primary));
    CHECK_EQUAL(used_bytes(), before + 4096); /* its memory comes from the primary context */
    CHECK_OK(cuMemFree_v2(p));
    CHECK_OK(cuDevicePrimaryCtxRelease_v2(0));
}

int main(void) {
    CHECK_OK(cuInit(0));
    processorsAreSplit();
    aPartTakesItsTime();
    return check_failures == 0 ? 0 : 1;
}
