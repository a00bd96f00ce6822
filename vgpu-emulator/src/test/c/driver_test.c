/* The driver within one process: memory, modules, errors. Timing is tested in time_test.c. */
#include "check.h"
#include "cuda_api.h"

#include <stdlib.h>
#include <string.h>

#define MIB (UINT64_C(1) << 20)

static CUcontext context;
static CUmodule module;

static size_t used_bytes(void) {
    size_t available = 0;
    size_t total = 0;
    CHECK_OK(cuMemGetInfo_v2(&available, &total));
    return total - available;
}

static CUfunction function(const char *name) {
    CUfunction found = NULL;
    CHECK_OK(cuModuleGetFunction(&found, module, name));
    return found;
}

static CUresult launch(const char *name, void **params) {
    return cuLaunchKernel(function(name), 1, 1, 1, 64, 1, 1, 0, NULL, params, NULL);
}

static void nothingWorksBeforeInit(void) {
    int count = 0;
    CUdeviceptr p = 0;
    CHECK_EQUAL(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
    CHECK_EQUAL(cuMemAlloc_v2(&p, 1), CUDA_ERROR_NOT_INITIALIZED);
    CHECK_EQUAL(cuInit(1), CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(cuInit(0));
    CHECK_OK(cuInit(0));
    CHECK_EQUAL(cuMemAlloc_v2(&p, 1), CUDA_ERROR_INVALID_CONTEXT);
}

static void devicesAreAsSet(void) {
    int count = 0;
    int value = 0;
    size_t total = 0;
    char name[64] = "";
    CUdevice device = -1;
    CHECK_OK(cuDeviceGetCount(&count));
    CHECK_EQUAL(count, 2);
    CHECK_EQUAL(cuDeviceGet(&device, 2), CUDA_ERROR_INVALID_DEVICE);
    CHECK_EQUAL(cuDeviceGet(NULL, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(cuDeviceGet(&device, 1));
    CHECK_OK(cuDeviceGetName(name, sizeof name, device));
    CHECK(strcmp(name, "Test GPU") == 0);
    CHECK_OK(cuDeviceTotalMem_v2(&total, device));
    CHECK_EQUAL(total, 1024 * MIB);
    CHECK_OK(cuDeviceGetAttribute(&value, 16, device));
    CHECK_EQUAL(value, 132);
    CUuuid first;
    CUuuid second;
    CHECK_OK(cuDeviceGetUuid_v2(&first, 0));
    CHECK_OK(cuDeviceGetUuid_v2(&second, 1));
    CHECK(memcmp(&first, &second, sizeof first) != 0);
}

static void contextsAreAStack(void) {
    CUcontext one = NULL;
    CUcontext two = NULL;
    CUcontext now = NULL;
    CHECK_OK(cuCtxCreate_v2(&one, 0, 0));
    CHECK_EQUAL(used_bytes(), 64 * MIB);
    CHECK_OK(cuCtxCreate_v2(&two, 0, 1));
    CHECK_OK(cuCtxGetCurrent(&now));
    CHECK(now == two);
    CUdevice device = -1;
    CHECK_OK(cuCtxGetDevice(&device));
    CHECK_EQUAL(device, 1);
    CHECK_OK(cuCtxPopCurrent_v2(&now));
    CHECK(now == two);
    CHECK_OK(cuCtxGetCurrent(&now));
    CHECK(now == one);
    CHECK_OK(cuCtxPushCurrent_v2(two));
    CHECK_OK(cuCtxDestroy_v2(two));
    CHECK_EQUAL(cuCtxPushCurrent_v2(two), CUDA_ERROR_INVALID_CONTEXT);
    CHECK_OK(cuCtxDestroy_v2(one));
    CHECK_OK(cuCtxGetCurrent(&now));
    CHECK(now == NULL);
    CHECK_EQUAL(cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
}

static void primaryContextIsCounted(void) {
    CUcontext same = NULL;
    unsigned int flags = 0;
    int active = 1;
    CHECK_OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    CHECK_EQUAL(active, 0);
    CHECK_EQUAL(cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);
    CHECK_OK(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK_OK(cuDevicePrimaryCtxRetain(&same, 0));
    CHECK(context == same);
    CHECK_OK(cuCtxSetCurrent(context));
    CHECK_OK(cuDevicePrimaryCtxRelease_v2(0));
    CHECK_EQUAL(used_bytes(), 64 * MIB);
}

static void memoryIsExact(void) {
    CUdeviceptr p[100];
    size_t before = used_bytes();
    for (size_t i = 0; i < 100; i++) {
        CHECK_OK(cuMemAlloc_v2(&p[i], 512 * (i + 1)));
    }
    CHECK_EQUAL(used_bytes() - before, 512 * 5050);
    CUdeviceptr base = 0;
    size_t size = 0;
    CHECK_OK(cuMemGetAddressRange_v2(&base, &size, p[9] + 77));
    CHECK(base == p[9] && size == 5120);
    for (size_t i = 0; i < 100; i++) {
        CHECK_OK(cuMemFree_v2(p[i]));
    }
    CHECK_EQUAL(used_bytes(), before);
    CHECK_EQUAL(cuMemFree_v2(p[0]), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuMemFree_v2(0), CUDA_SUCCESS);
    CHECK_EQUAL(cuMemAlloc_v2(&p[0], 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuMemAlloc_v2(NULL, 1), CUDA_ERROR_INVALID_VALUE);
    size_t left = 1024 * MIB - before;
    CHECK_EQUAL(cuMemAlloc_v2(&p[0], left + 1), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_OK(cuMemAlloc_v2(&p[0], left));
    CHECK_EQUAL(cuMemAlloc_v2(&p[1], 1), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_OK(cuMemFree_v2(p[0]));
    CHECK_EQUAL(cuMemAlloc_v2(&p[0], SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
}

static void contextsTakeOnlyTheirOwnMemoryAlong(void) {
    CUcontext other = NULL;
    CUdeviceptr mine = 0;
    CUdeviceptr theirs = 0;
    size_t before = used_bytes();
    CHECK_OK(cuMemAlloc_v2(&mine, MIB));
    CHECK_OK(cuCtxCreate_v2(&other, 0, 0));
    CHECK_OK(cuMemAlloc_v2(&theirs, 3 * MIB));
    CHECK_EQUAL(used_bytes() - before, 68 * MIB);
    CHECK_OK(cuCtxDestroy_v2(other));
    CHECK_EQUAL(used_bytes() - before, MIB);
    CHECK_EQUAL(cuMemFree_v2(theirs), CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(cuMemFree_v2(mine));
}

static void everyKindOfMemoryIsCounted(void) {
    size_t before = used_bytes();
    CUdeviceptr p = 0;
    size_t pitch = 0;
    CHECK_OK(cuMemAllocPitch_v2(&p, &pitch, 100, 10, 4));
    CHECK_EQUAL(used_bytes() - before, pitch * 10);
    CHECK_OK(cuMemFree_v2(p));
    CHECK_OK(cuMemAllocManaged(&p, 4096, 1));
    *(volatile int *)(uintptr_t)p = 5; /* the host may access it */
    CHECK_EQUAL(used_bytes() - before, 4096);
    CHECK_OK(cuMemFree_v2(p));
    CHECK_OK(cuMemAllocAsync(&p, 8192, NULL));
    CHECK_EQUAL(used_bytes() - before, 32 * MIB); /* a pool's minimum size */
    CHECK_OK(cuMemFreeAsync(p, NULL));
    CHECK_OK(cuCtxSynchronize());
    CHECK_EQUAL(used_bytes(), before);
    CUarray array = NULL;
    CUDA_ARRAY_DESCRIPTOR shape = {.width = 64, .height = 32, .format = 0x20, .channels = 4};
    CHECK_OK(cuArrayCreate_v2(&array, &shape));
    CHECK_EQUAL(used_bytes() - before, 64 * 32 * 16);
    CHECK_OK(cuArrayDestroy(array));
    void *host = NULL;
    CHECK_OK(cuMemHostAlloc(&host, 1 << 20, 0));
    CHECK_OK(cuMemFreeHost(host));
    CHECK_EQUAL(used_bytes(), before);
}

static void mappedMemoryIsOneRange(void) {
    CUmemAllocationProp properties = {.type = 1, .location = {.type = 1, .id = 0}};
    size_t step = 0;
    size_t before = used_bytes();
    CUdeviceptr base = 0;
    CUmemGenericAllocationHandle handle[2];
    CHECK_OK(cuMemGetAllocationGranularity(&step, &properties, 0));
    CHECK_OK(cuMemAddressReserve(&base, 4 * step, 0, 0, 0));
    CHECK_EQUAL(used_bytes(), before);
    CHECK_EQUAL(cuMemCreate(&handle[0], step + 1, &properties, 0), CUDA_ERROR_INVALID_VALUE);
    for (size_t i = 0; i < 2; i++) {
        CHECK_OK(cuMemCreate(&handle[i], step, &properties, 0));
        CHECK_OK(cuMemMap(base + i * step, step, 0, handle[i], 0));
    }
    CHECK_EQUAL(used_bytes() - before, 2 * step);
    CUmemAccessDesc access = {.location = {.type = 1, .id = 0}, .flags = 3};
    CHECK_OK(cuMemSetAccess(base, 2 * step, &access, 1));
    CHECK_EQUAL(cuMemMap(base, step, 0, handle[1], 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(cuMemsetD8_v2(base + step - 8, 0x5a, 16)); /* spans both mappings */
    CHECK_EQUAL(cuMemsetD8_v2(base + 2 * step - 8, 0, 16), CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(
        cuMemMap(base + 2 * step, step, 0, handle[0], 0)); /* a second mapping of the same memory */
    unsigned char byte = 0;
    CHECK_OK(cuMemcpyDtoH_v2(&byte, base + 3 * step - 1, 1));
    CHECK_EQUAL(byte, 0x5a);
    CHECK_OK(cuMemRelease(handle[0]));
    CHECK_OK(cuMemRelease(handle[1]));
    CHECK_EQUAL(used_bytes() - before, 2 * step); /* still mapped */
    CHECK_EQUAL(cuMemAddressFree(base, 4 * step), CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(cuMemUnmap(base, 3 * step));
    CHECK_EQUAL(used_bytes(), before);
    CHECK_OK(cuMemAddressFree(base, 4 * step));
}

static void copiesAndFillsArriveWhole(void) {
    enum { N = 10000 };
    static unsigned int out[N];
    static unsigned int in[N];
    CUdeviceptr a = 0;
    CUdeviceptr b = 0;
    for (unsigned int i = 0; i < N; i++) {
        out[i] = i * 2654435761u;
    }
    CHECK_OK(cuMemAlloc_v2(&a, sizeof out));
    CHECK_OK(cuMemAlloc_v2(&b, sizeof out));
    CHECK_OK(cuMemcpyHtoD_v2(a, out, sizeof out));
    CHECK_OK(cuMemcpyDtoD_v2(b, a, sizeof out));
    CHECK_OK(cuMemcpyDtoH_v2(in, b, sizeof in));
    CHECK(memcmp(in, out, sizeof in) == 0);
    CHECK_EQUAL(cuMemcpyHtoD_v2(a + 4, out, sizeof out), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuMemcpyHtoD_v2(0x10000, out, 4), CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(cuMemsetD32_v2(a, 0x01020304, N));
    CHECK_OK(cuMemsetD2D16_v2(a, 100, 0xffff, 10, 3));
    CHECK_OK(cuMemcpyDtoH_v2(in, a, sizeof in));
    CHECK_EQUAL(in[0], 0xffffffff);
    CHECK_EQUAL(in[5], 0x01020304);
    CHECK_EQUAL(in[25], 0xffffffff);
    CUDA_MEMCPY2D copy = {.src_type = CU_MEMORYTYPE_DEVICE,
                          .src_device = b,
                          .src_pitch = 400,
                          .dst_type = CU_MEMORYTYPE_HOST,
                          .dst_host = in,
                          .dst_pitch = 40,
                          .width_bytes = 40,
                          .height = 10};
    CHECK_OK(cuMemcpy2D_v2(&copy));
    CHECK_EQUAL(in[10], out[100]);
    CHECK_EQUAL(in[99], out[909]);
    CHECK_OK(cuMemFree_v2(a));
    CHECK_OK(cuMemFree_v2(b));
}

static void kernelsCompute(void) {
    enum { M = 33, N = 20, K = 17 };
    float a[M * K];
    float b[K * N];
    float c[M * N];
    CUdeviceptr p[3];
    uint32_t m = M;
    uint32_t n = N;
    uint32_t k = K;
    for (int i = 0; i < M * K; i++) {
        a[i] = (float)(i % 13);
    }
    for (int i = 0; i < K * N; i++) {
        b[i] = (float)(i % 7) - 3;
    }
    CHECK_OK(cuMemAlloc_v2(&p[0], sizeof a));
    CHECK_OK(cuMemAlloc_v2(&p[1], sizeof b));
    CHECK_OK(cuMemAlloc_v2(&p[2], sizeof c));
    CHECK_OK(cuMemcpyHtoD_v2(p[0], a, sizeof a));
    CHECK_OK(cuMemcpyHtoD_v2(p[1], b, sizeof b));
    CHECK_OK(launch("vgpu_sgemm", (void *[]){&p[0], &p[1], &p[2], &m, &n, &k}));
    CHECK_OK(cuMemcpyDtoH_v2(c, p[2], sizeof c));
    for (int i = 0; i < M * N; i++) {
        float sum = 0;
        for (int j = 0; j < K; j++) {
            sum += a[i / N * K + j] * b[j * N + i % N];
        }
        CHECK_EQUAL(c[i], sum); /* integers: exact in any order */
    }
    float factor = 2;
    uint64_t count = K * N;
    uint32_t bits = 0x40400000; /* 3.0f */
    CHECK_OK(launch("vgpu_fill", (void *[]){&p[0], &bits, &count}));
    CHECK_OK(launch("vgpu_saxpy", (void *[]){&factor, &p[1], &p[0], &count}));
    CHECK_OK(cuMemcpyDtoH_v2(a, p[0], sizeof b));
    for (int i = 0; i < K * N; i++) {
        CHECK_EQUAL(a[i], 2 * b[i] + 3);
    }
    for (int i = 0; i < 3; i++) {
        CHECK_OK(cuMemFree_v2(p[i]));
    }
}

static void launchesAreChecked(void) {
    uint64_t ns = 0;
    void *params[] = {&ns};
    CUfunction spin = function("vgpu_spin");
    CUfunction unknown = function("unknown");
    CUfunction none = NULL;
    CHECK_EQUAL(cuModuleGetFunction(&none, module, "nobody"), CUDA_ERROR_NOT_FOUND);
    CHECK_EQUAL(cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL),
                CUDA_ERROR_INVALID_HANDLE);
    CHECK_EQUAL(cuLaunchKernel((CUfunction)(void *)&ns, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL),
                CUDA_ERROR_INVALID_HANDLE);
    CHECK_EQUAL(cuLaunchKernel(spin, 0, 1, 1, 1, 1, 1, 0, NULL, params, NULL),
                CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuLaunchKernel(spin, 1, 1, 1, 2048, 1, 1, 0, NULL, params, NULL),
                CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuLaunchKernel(unknown, 1, 1, 1, 512, 1, 1, 0, NULL, params, NULL),
                CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    CHECK_EQUAL(cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, (CUstream)(void *)&ns, params, NULL),
                CUDA_ERROR_INVALID_HANDLE);
    CHECK_EQUAL(cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL),
                CUDA_ERROR_INVALID_VALUE);
    size_t size = sizeof ns;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &ns, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    CHECK_OK(cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
    CUlaunchConfig config = {
        .grid_x = 1, .grid_y = 1, .grid_z = 1, .block_x = 1, .block_y = 1, .block_z = 1};
    CHECK_OK(cuLaunchKernelEx(&config, spin, params, NULL));
    CHECK_OK(cuLaunchCooperativeKernel(spin, 132, 1, 1, 64, 1, 1, 0, NULL, params));
    CHECK_EQUAL(cuLaunchCooperativeKernel(spin, 132 * 33, 1, 1, 64, 1, 1, 0, NULL, params),
                CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
}

static void modulesAndLibraries(void) {
    CUmodule other = NULL;
    CUdeviceptr address = 0;
    size_t bytes = 0;
    CHECK_EQUAL(cuModuleLoadData(&other, "this is not PTX"), CUDA_ERROR_INVALID_IMAGE);
    CHECK_EQUAL(cuModuleLoadData(&other, ""), CUDA_ERROR_INVALID_IMAGE);
    CHECK_OK(cuModuleLoadData(&other, test_ptx));
    CHECK_OK(cuModuleGetGlobal_v2(&address, &bytes, other, "counters"));
    CHECK_EQUAL(bytes, 4096);
    CHECK_OK(cuMemsetD8_v2(address, 1, bytes));
    CHECK_OK(cuModuleUnload(other));
    CHECK_EQUAL(cuModuleUnload(other), CUDA_ERROR_INVALID_HANDLE);
    CUlibrary library = NULL;
    CUkernel kernel = NULL;
    int threads = 0;
    CHECK_OK(cuLibraryLoadData(&library, test_ptx, NULL, NULL, 0, NULL, NULL, 0));
    CHECK_OK(cuLibraryGetKernel(&kernel, library, "unknown"));
    CHECK_OK(cuFuncGetAttribute(&threads, 0, kernel));
    CHECK_EQUAL(threads, 256);
    uint64_t nothing = 0;
    CHECK_OK(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&nothing}, NULL));
    CHECK_OK(cuLibraryUnload(library));
}

static void entryPointsAreFoundByName(void) {
    void *found = NULL;
    int status = -1;
    CHECK_OK(cuGetProcAddress_v2("cuMemAlloc", &found, 12000, 0, &status));
    CHECK(found == (void *)(uintptr_t)cuMemAlloc_v2 && status == CU_PROC_FOUND);
    CHECK_OK(cuGetProcAddress_v2("cuLaunchKernel", &found, 12000, 0, &status));
    CHECK(found == (void *)(uintptr_t)cuLaunchKernel);
    CHECK_OK(
        cuGetProcAddress_v2("cuLaunchKernel", &found, 12000, CU_PROC_ADDRESS_PER_THREAD, &status));
    CHECK(found == (void *)(uintptr_t)cuLaunchKernel_ptsz);
    CHECK_OK(cuGetProcAddress_v2("cuGetProcAddress", &found, 11030, 0, &status));
    CHECK(found == (void *)(uintptr_t)cuGetProcAddress);
    CHECK_OK(cuGetProcAddress_v2("cuLaunchKernelEx", &found, 11000, 0, &status));
    CHECK(found == NULL && status == CU_PROC_VERSION);
    CHECK_OK(cuGetProcAddress_v2("cuNothing", &found, 12000, 0, &status));
    CHECK(found == NULL && status == CU_PROC_NOT_FOUND);
    CHECK_EQUAL(cuGetProcAddress("cuNothing", &found, 11030, 0), CUDA_ERROR_NOT_FOUND);
    CHECK_EQUAL(cuGetProcAddress_v2("cuInit", &found, 99000, 0, &status), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuGetProcAddress_v2(NULL, &found, 12000, 0, &status), CUDA_ERROR_INVALID_VALUE);
}

static void pointersAreKnown(void) {
    CUdeviceptr p = 0;
    unsigned int type = 0;
    int ordinal = -1;
    CHECK_OK(cuMemAlloc_v2(&p, 1000));
    CHECK_OK(cuPointerGetAttribute(&type, 2, p + 10));
    CHECK_EQUAL(type, CU_MEMORYTYPE_DEVICE);
    CHECK_OK(cuPointerGetAttribute(&ordinal, 9, p));
    CHECK_EQUAL(ordinal, 0);
    CHECK_EQUAL(cuPointerGetAttribute(&type, 2, (CUdeviceptr)(uintptr_t)&type),
                CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(cuMemFree_v2(p));
    CHECK_EQUAL(cuPointerGetAttribute(&type, 2, p), CUDA_ERROR_INVALID_VALUE);
}

/* Runs last, because only the end of the context clears the error. */
static void badPointersAreFoundLater(void) {
    uint64_t wild = 0x1000;
    uint32_t value = 1;
    uint64_t n = 100;
    const char *name = NULL;
    CHECK_OK(launch("vgpu_fill", (void *[]){&wild, &value, &n}));
    CHECK_EQUAL(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    CUdeviceptr p = 0;
    CHECK_EQUAL(cuMemAlloc_v2(&p, 1), CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK_OK(cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &name));
    CHECK(strcmp(name, "CUDA_ERROR_ILLEGAL_ADDRESS") == 0);
    CHECK_OK(cuDevicePrimaryCtxRelease_v2(0));
}

int main(void) {
    nothingWorksBeforeInit();
    devicesAreAsSet();
    contextsAreAStack();
    primaryContextIsCounted();
    CHECK_OK(cuModuleLoadData(&module, test_ptx));
    memoryIsExact();
    contextsTakeOnlyTheirOwnMemoryAlong();
    everyKindOfMemoryIsCounted();
    mappedMemoryIsOneRange();
    copiesAndFillsArriveWhole();
    kernelsCompute();
    launchesAreChecked();
    modulesAndLibraries();
    entryPointsAreFoundByName();
    pointersAreKnown();
    badPointersAreFoundLater();
    return check_failures == 0 ? 0 : 1;
}
