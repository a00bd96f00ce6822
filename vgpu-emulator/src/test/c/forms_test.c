/* Forms of calls that libraries use beside the plain ones: legacy launches, clusters, modules of machine code. */
#include "check.h"
#include "cuda_api.h"

#include <string.h>

CUresult cuFuncSetBlockShape(CUfunction function, int x, int y, int z);
CUresult cuFuncSetSharedSize(CUfunction function, unsigned int bytes);
CUresult cuParamSetSize(CUfunction function, unsigned int bytes);
CUresult cuParamSeti(CUfunction function, int offset, unsigned int value);
CUresult cuParamSetf(CUfunction function, int offset, float value);
CUresult cuParamSetv(CUfunction function, int offset, void *value, unsigned int bytes);
CUresult cuLaunch(CUfunction function);
CUresult cuLaunchGrid(CUfunction function, int width, int height);
CUresult cuLaunchGridAsync(CUfunction function, int width, int height, CUstream stream);

static CUcontext context;
static CUmodule module;

static CUfunction function(const char *name) {
    CUfunction found = NULL;
    CHECK_OK(cuModuleGetFunction(&found, module, name));
    return found;
}

static void legacyLaunchesTakeWhatTheFunctionHas(void) {
    enum { N = 100 };
    CUfunction fill = function("vgpu_fill");
    CUfunction saxpy = function("vgpu_saxpy");
    CUdeviceptr p = 0;
    uint64_t n = N;
    float value = 0;
    CHECK_OK(cuMemAlloc_v2(&p, N * sizeof value));
    CHECK_EQUAL(cuLaunch(fill), CUDA_ERROR_INVALID_VALUE); /* no shape yet */
    CHECK_OK(cuFuncSetBlockShape(fill, 64, 1, 1));
    CHECK_EQUAL(cuLaunch(fill), CUDA_ERROR_INVALID_VALUE); /* no parameters yet */
    CHECK_OK(cuFuncSetSharedSize(fill, 1024));
    CHECK_OK(cuParamSetv(fill, 0, &p, sizeof p));
    CHECK_OK(cuParamSeti(fill, 8, 0x40000000)); /* 2.0f */
    CHECK_OK(cuParamSetv(fill, 16, &n, sizeof n));
    CHECK_OK(cuParamSetSize(fill, 24));
    CHECK_OK(cuLaunch(fill));
    CHECK_OK(cuMemcpyDtoH_v2(&value, p + 4 * (N - 1), sizeof value));
    CHECK(value == 2.0f);
    CHECK_OK(cuFuncSetBlockShape(saxpy, 64, 1, 1));
    CHECK_OK(cuParamSetf(saxpy, 0, 3.0f));
    CHECK_OK(cuParamSetv(saxpy, 8, &p, sizeof p));
    CHECK_OK(cuParamSetv(saxpy, 16, &p, sizeof p));
    CHECK_OK(cuParamSetv(saxpy, 24, &n, sizeof n));
    CHECK_OK(cuParamSetSize(saxpy, 32));
    CHECK_OK(cuLaunchGrid(saxpy, 2, 1));
    CUstream stream = NULL;
    CHECK_OK(cuStreamCreate(&stream, 0));
    CHECK_OK(cuLaunchGridAsync(saxpy, 2, 1, stream));
    CHECK_OK(cuStreamSynchronize(stream));
    CHECK_OK(cuMemcpyDtoH_v2(&value, p, sizeof value));
    CHECK(value == 32.0f); /* 2 -> 3 * 2 + 2 -> 3 * 8 + 8 */
    CHECK_EQUAL(cuLaunchGrid(saxpy, 0, 1), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuParamSetv(saxpy, 4090, &n, sizeof n), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuParamSetv(saxpy, -1, &n, sizeof n), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuParamSetSize(saxpy, 4097), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuFuncSetBlockShape(NULL, 1, 1, 1), CUDA_ERROR_INVALID_HANDLE);
    CHECK_OK(cuStreamDestroy_v2(stream));
    CHECK_OK(cuMemFree_v2(p));
}

int main(void) {
    CHECK_OK(cuInit(0));
    CHECK_OK(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK_OK(cuCtxSetCurrent(context));
    CHECK_OK(cuModuleLoadData(&module, test_ptx));
    legacyLaunchesTakeWhatTheFunctionHas();
    return check_failures != 0;
}
