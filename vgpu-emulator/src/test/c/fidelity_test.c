/*
 * Settings that bring the emulator closer to the real driver: call costs, lazy loading, the legacy stream's events,
 * process teardown.
 */
#include "check.h"
#include "cuda_api.h"
#include "base/nvml_abi.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>

CUresult cuFuncIsLoaded(int *state, CUfunction function);
CUresult cuFuncLoad(CUfunction function);

nvmlReturn_t nvmlInit_v2(void);
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device);
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count,
                                                     nvmlProcessInfo_t *infos);
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory);
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory);
nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char *name, unsigned int size);

enum { COST_MS = 2, TRIES = 20 };
static const uint64_t module_bytes = 5 << 20;
static CUcontext context;

static size_t used_bytes(void) {
    size_t available = 0;
    size_t total = 0;
    CHECK_OK(cuMemGetInfo_v2(&available, &total));
    return total - available;
}

static void functionsAreLoadedWhenTheyAreLaunched(void) {
    CUmodule module = NULL;
    CUfunction functions[2] = {NULL};
    int state = 1;
    size_t before = used_bytes();
    CHECK_OK(cuModuleLoadData(&module, test_ptx));
    CHECK_OK(cuModuleGetFunction(&functions[0], module, "vgpu_null"));
    CHECK_OK(cuModuleGetFunction(&functions[1], module, "unknown"));
    CHECK_EQUAL(used_bytes(), before);
    CHECK_OK(cuFuncIsLoaded(&state, functions[0]));
    CHECK_EQUAL(state, 0);
    CHECK_OK(cuLaunchKernel(functions[0], 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    CHECK_EQUAL(used_bytes() - before, module_bytes);
    CHECK_OK(cuFuncIsLoaded(&state, functions[0]));
    CHECK_EQUAL(state, 1);
    CHECK_OK(cuFuncIsLoaded(&state, functions[1]));
    CHECK_EQUAL(state, 0);
    CHECK_OK(cuFuncLoad(functions[1]));
    CHECK_OK(cuFuncIsLoaded(&state, functions[1]));
    CHECK_EQUAL(state, 1);
    CHECK_EQUAL(used_bytes() - before, module_bytes); /* once per module */
    CHECK_OK(cuModuleUnload(module));
    CHECK_EQUAL(used_bytes(), before);
}

static CUfunction slow;

static void *launch_slow(void *nothing) {
    CHECK_OK(cuCtxSetCurrent(context));
    CHECK_OK(cuLaunchKernel(slow, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    return nothing;
}

/* A load takes its module's memory and then its time, with the driver's lock held. A query made meanwhile ends after
 * it. */
static void callsWaitForEachOther(void) {
    CUmodule module = NULL;
    CUevent event = NULL;
    pthread_t thread;
    int state = 1;
    CHECK_OK(cuEventCreate(&event, 0));
    CHECK_OK(cuEventRecord(event, NULL));
    CHECK_OK(cuEventSynchronize(event));
    CHECK_OK(cuModuleLoadData(&module, test_ptx));
    CHECK_OK(cuModuleGetFunction(&slow, module, "vgpu_null"));
    size_t before = used_bytes();
    CHECK_EQUAL(pthread_create(&thread, NULL, launch_slow, NULL), 0);
    for (int i = 0; i < 60000 && used_bytes() == before; i++) {
        usleep(1000);
    }
    CHECK_OK(cuEventQuery(event));
    CHECK_OK(cuFuncIsLoaded(&state, slow));
    CHECK_EQUAL(state, 1);
    CHECK_EQUAL(pthread_join(thread, NULL), 0);
    CHECK_OK(cuModuleUnload(module));
    CHECK_OK(cuEventDestroy_v2(event));
}

static uint64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Checks only lower bounds, which hold on any machine. */
static void callsCostWhatIsSet(void) {
    CUevent event = NULL;
    CUdeviceptr p = 0;
    float ms = 0;
    CHECK_OK(cuEventCreate(&event, 0));
    uint64_t start = now_ms();
    CHECK_OK(cuEventRecord(event, NULL));
    CHECK_OK(cuEventSynchronize(event));
    CHECK_OK(cuEventQuery(event));
    CHECK_OK(cuStreamQuery(NULL));
    CHECK_OK(cuEventElapsedTime(&ms, event, event));
    CHECK_OK(cuMemAlloc_v2(&p, 1));
    CHECK(now_ms() - start >= 5 * COST_MS - 1);
    void *pinned = NULL;
    start = now_ms();
    CHECK_OK(cuMemHostAlloc(&pinned, 16 << 20, 0));
    CHECK(now_ms() - start >= 1000 / 64 - 1);
    CHECK_OK(cuMemFreeHost(pinned));
    CHECK_OK(cuMemFree_v2(p));
    CHECK_OK(cuEventDestroy_v2(event));
}

static void launch(CUfunction spin, uint64_t ms, CUstream stream) {
    uint64_t ns = ms * 1000000;
    void *params[] = {&ns};
    CHECK_OK(cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
}

static void eventsInTheLegacyStreamHoldUpBlockingStreams(void) {
    CUmodule module = NULL;
    CUfunction spin = NULL;
    CUstream streams[3];
    CUevent ends[3];
    CUevent between = NULL;
    CHECK_OK(cuModuleLoadData(&module, test_ptx));
    CHECK_OK(cuModuleGetFunction(&spin, module, "vgpu_spin"));
    CHECK_OK(cuEventCreate(&between, 0));
    for (int i = 0; i < 3; i++) {
        CHECK_OK(cuStreamCreate(&streams[i], i == 2 ? CU_STREAM_NON_BLOCKING : 0));
        CHECK_OK(cuEventCreate(&ends[i], 0));
    }
    /* on a busy machine the first stream's work may end before the rest is queued */
    bool is_late = true;
    for (int i = 0; i < TRIES && is_late; i++) {
        launch(spin, 400, streams[0]);
        CHECK_OK(cuEventRecord(ends[0], streams[0]));
        CHECK_OK(cuEventRecord(between, NULL));
        for (int k = 1; k < 3; k++) {
            launch(spin, 1, streams[k]);
            CHECK_OK(cuEventRecord(ends[k], streams[k]));
        }
        is_late = cuEventQuery(ends[0]) == CUDA_SUCCESS;
        CHECK_OK(cuCtxSynchronize());
    }
    CHECK(!is_late);
    float ms = 0;
    CHECK_OK(cuEventElapsedTime(&ms, ends[0], ends[1]));
    CHECK(ms > 0.9f); /* after the first stream's work */
    CHECK_OK(cuEventElapsedTime(&ms, ends[0], ends[2]));
    CHECK(ms < 0); /* parallel to it */
    CHECK_OK(cuModuleUnload(module));
}

static void *begin(void *thread) {
    *(unsigned int *)thread = (unsigned int)syscall(SYS_gettid);
    CHECK_OK(cuInit(0));
    return NULL;
}

static void processesAreToldByTheThreadThatBegan(unsigned int thread) {
    nvmlDevice_t device = NULL;
    nvmlProcessInfo_t infos[8];
    char name[64];
    unsigned int count = 8;
    CHECK_OK(nvmlInit_v2());
    CHECK_OK(nvmlDeviceGetHandleByIndex_v2(0, &device));
    CHECK_OK(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, infos));
    CHECK_EQUAL(count, 1);
    CHECK_EQUAL(infos[0].pid, thread);
    CHECK(thread != (unsigned int)getpid());
    CHECK_OK(nvmlSystemGetProcessName(thread, name, sizeof name));
}

static void nvmlDoesNotReportTheMemoryOfAnIntegratedGpu(void) {
    nvmlDevice_t device = NULL;
    nvmlMemory_t memory = {0};
    nvmlMemory_v2_t more = {.version = sizeof more | 2u << 24};
    int is_integrated = 0;
    CHECK_OK(nvmlDeviceGetHandleByIndex_v2(0, &device));
    CHECK_EQUAL(nvmlDeviceGetMemoryInfo(device, &memory), NVML_ERROR_NOT_SUPPORTED);
    CHECK_EQUAL(nvmlDeviceGetMemoryInfo_v2(device, &more), NVML_ERROR_NOT_SUPPORTED);
    CHECK_OK(cuDeviceGetAttribute(&is_integrated, 18, 0));
    CHECK_EQUAL(is_integrated, 1);
    CHECK(used_bytes() > 0); /* the driver itself reports the memory */
}

/* Registered before cuInit, so it runs after the driver's own handler. */
static void at_exit(void) {
    CHECK_EQUAL(cuCtxSynchronize(), CUDA_ERROR_DEINITIALIZED);
    CHECK_EQUAL(cuInit(0), CUDA_ERROR_DEINITIALIZED);
    if (check_failures != 0) {
        _exit(1);
    }
}

int main(void) {
    char settings[300];
    const char *given = getenv("VGPU_EMULATOR");
    snprintf(
        settings, sizeof settings,
        "%s,module=5MiB,lazy=on,load=300ms,locks=on,pin-cost=1s,legacy-events=on,thread-pid=on,integrated=on,"
        "teardown=on,launch-cost=2200ns,record-cost=%dms,query-cost=%dms,elapsed-cost=%dms,allocate-cost=%dms",
        given == NULL ? "devices=1" : given, COST_MS, COST_MS, COST_MS, COST_MS);
    setenv("VGPU_EMULATOR", settings, 1);
    atexit(at_exit);
    pthread_t thread;
    unsigned int number = 0;
    CHECK_EQUAL(pthread_create(&thread, NULL, begin, &number), 0);
    CHECK_EQUAL(pthread_join(thread, NULL), 0);
    CHECK_OK(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK_OK(cuCtxSetCurrent(context));
    processesAreToldByTheThreadThatBegan(number);
    nvmlDoesNotReportTheMemoryOfAnIntegratedGpu();
    functionsAreLoadedWhenTheyAreLaunched();
    callsWaitForEachOther();
    callsCostWhatIsSet();
    eventsInTheLegacyStreamHoldUpBlockingStreams();
    return check_failures != 0;
}
