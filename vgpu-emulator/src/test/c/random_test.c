/*
 * Random calls with valid and invalid handles, from several threads at once. Nothing may crash or hang, every result
 * must be an existing error code, and at the end all memory must be free. The seed fixes what each thread calls, but not
 * the threads' order.
 */
#include "check.h"
#include "cuda_api.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, CALLS = 3000, HANDLES = 24 };

static CUcontext context;
static CUmodule module;

typedef struct {
    unsigned int seed;
    CUstream streams[HANDLES];
    CUevent events[HANDLES];
    CUdeviceptr memory[HANDLES];
    CUdeviceptr target;
    CUgraph graphs[HANDLES];
    CUgraphExec execs[HANDLES];
    CUfunction functions[4];
    int next;
} player;

static int pick(player *p, int below) {
    return rand_r(&p->seed) % below;
}

/* Usually one of the handles; sometimes an invalid one. */
#define ANY(p, handles) \
    (pick(p, 40) == 0 ? (void *)(uintptr_t)(0x7000 + pick(p, 9999)) \
                      : (void *)(uintptr_t)(p)->handles[pick(p, HANDLES)])

static void nothing(void *data) {
    (void)data;
}

static CUresult launch(player *p) {
    uint64_t ns = (uint64_t)pick(p, 20000);
    uint32_t value = 1;
    uint64_t n = (uint64_t)pick(p, 300);
    uint64_t address = p->target; /* every launch of the graph fills it again */
    CUfunction function = p->functions[pick(p, 4)];
    void *fill[] = {&address, &value, &n};
    void *spin[] = {&ns};
    return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, ANY(p, streams),
                          function == p->functions[2] ? fill : spin, NULL);
}

static CUresult play_streams(player *p, int slot) {
    switch (pick(p, 9)) {
    case 0:
        cuStreamDestroy_v2(p->streams[slot]);
        p->streams[slot] = NULL; /* a stale handle could become another thread's stream */
        return cuStreamCreate(&p->streams[slot], (unsigned int)pick(p, 3));
    case 1:
        cuEventDestroy_v2(p->events[slot]);
        p->events[slot] = NULL;
        return cuEventCreate(&p->events[slot], (unsigned int)pick(p, 3));
    case 2:
        return cuEventRecord(ANY(p, events), ANY(p, streams));
    case 3:
        return cuStreamWaitEvent(ANY(p, streams), ANY(p, events), 0);
    case 4:
        return cuEventQuery(ANY(p, events));
    case 5:
        return pick(p, 4) == 0 ? cuStreamSynchronize(ANY(p, streams))
                               : cuStreamQuery(ANY(p, streams));
    case 6:
        return pick(p, 8) == 0 ? cuLaunchHostFunc(ANY(p, streams), nothing, NULL) : CUDA_SUCCESS;
    case 7: {
        float ms = 0;
        return cuEventElapsedTime(&ms, ANY(p, events), ANY(p, events));
    }
    default:
        return launch(p);
    }
}

static CUresult play_graphs(player *p, int slot) {
    switch (pick(p, 6)) {
    case 0:
        return cuStreamBeginCapture_v2(ANY(p, streams), pick(p, 3));
    case 1: {
        CUgraph graph = NULL;
        CUresult result = cuStreamEndCapture(ANY(p, streams), &graph);
        if (graph != NULL) {
            cuGraphDestroy(p->graphs[slot]);
            p->graphs[slot] = graph;
        }
        return result;
    }
    case 2:
        cuGraphExecDestroy(p->execs[slot]);
        p->execs[slot] = NULL;
        return cuGraphInstantiateWithFlags(&p->execs[slot], ANY(p, graphs), 0);
    case 3:
        return cuGraphLaunch(ANY(p, execs), ANY(p, streams));
    default:
        return launch(p);
    }
}

static CUresult play_memory(player *p, int slot) {
    if (p->memory[slot] != 0) {
        CUdeviceptr address = p->memory[slot];
        p->memory[slot] = 0;
        CHECK_OK(cuMemFree_v2(address));
        return cuMemFree_v2(address + 1);
    }
    CUresult result = cuMemAlloc_v2(&p->memory[slot], (size_t)(2000 + pick(p, 100000)));
    if (result != CUDA_SUCCESS) {
        p->memory[slot] = 0;
        return result;
    }
    return cuMemsetD8_v2(p->memory[slot], 3, 2000);
}

static void *play(void *data) {
    player *p = data;
    const char *name = NULL;
    CHECK_OK(cuCtxSetCurrent(context));
    for (int i = 0; i < CALLS; i++) {
        int slot = pick(p, HANDLES);
        int kind = pick(p, 10);
        CUresult result = kind < 6   ? play_streams(p, slot)
                          : kind < 8 ? play_graphs(p, slot)
                                     : play_memory(p, slot);
        CHECK_OK(cuGetErrorName(result, &name));
        CHECK(result != CUDA_ERROR_ILLEGAL_ADDRESS);
    }
    for (int i = 0; i < HANDLES; i++) {
        CUgraph graph = NULL;
        cuStreamEndCapture(p->streams[i], &graph);
        cuStreamDestroy_v2(p->streams[i]);
        cuMemFree_v2(p->memory[i]);
    }
    return NULL;
}

int main(void) {
    static player players[THREADS];
    pthread_t threads[THREADS];
    size_t before = 0;
    size_t after = 0;
    size_t total = 0;
    CHECK_OK(cuInit(0));
    CHECK_OK(cuCtxCreate_v2(&context, 0, 0));
    CHECK_OK(cuModuleLoadData(&module, test_ptx));
    CHECK_OK(cuMemGetInfo_v2(&before, &total));
    for (int i = 0; i < THREADS; i++) {
        CHECK_OK(cuMemAlloc_v2(&players[i].target, 4096));
        players[i].seed = test_seed() + (unsigned int)i;
        CHECK_OK(cuModuleGetFunction(&players[i].functions[0], module, "vgpu_null"));
        CHECK_OK(cuModuleGetFunction(&players[i].functions[1], module, "vgpu_spin"));
        CHECK_OK(cuModuleGetFunction(&players[i].functions[2], module, "vgpu_fill"));
        CHECK_OK(cuModuleGetFunction(&players[i].functions[3], module, "unknown"));
        CHECK_EQUAL(pthread_create(&threads[i], NULL, play, &players[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQUAL(pthread_join(threads[i], NULL), 0);
    }
    CHECK_OK(cuCtxSynchronize());
    for (int i = 0; i < THREADS; i++) {
        CHECK_OK(cuMemFree_v2(players[i].target));
    }
    CHECK_OK(cuMemGetInfo_v2(&after, &total));
    CHECK_EQUAL(after, before);
    CHECK_OK(cuCtxDestroy_v2(context));
    return check_failures == 0 ? 0 : 1;
}
