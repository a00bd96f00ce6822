/*
 * Timing of streams, events, host functions, captures and graphs. Times are the model's own, measured by events after a
 * first long kernel, so that a busy machine does not affect them.
 */
#include "check.h"
#include "cuda_api.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#define MS UINT64_C(1000000)
enum { LEAD_MS = 150, MOST_LATE = 50 };

static CUfunction spin;
static CUfunction null_kernel;
static CUfunction fill;

static void run(CUstream stream, uint64_t ns) {
    CHECK_OK(cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, stream, (void *[]){&ns}, NULL));
}

static CUevent event(void) {
    CUevent made = NULL;
    CHECK_OK(cuEventCreate(&made, 0));
    return made;
}

static CUstream stream_of(unsigned int flags) {
    CUstream made = NULL;
    CHECK_OK(cuStreamCreate(&made, flags));
    return made;
}

/* The microseconds between two events, after waiting for both. */
static int64_t between(CUevent start, CUevent end) {
    float ms = -1;
    CHECK_OK(cuEventSynchronize(start));
    CHECK_OK(cuEventSynchronize(end));
    CHECK_OK(cuEventElapsedTime(&ms, start, end));
    return (int64_t)((double)ms * 1000 + 0.5);
}

/*
 * Whether the lead ended before all was queued behind it, as may happen on a busy machine. Then the times show the
 * machine's delays, and the caller tries again; but a lead that is always over early is a failure.
 */
static bool is_late(CUevent lead) {
    static int late;
    CUresult result = cuEventQuery(lead);
    if (result == CUDA_SUCCESS && ++late < MOST_LATE) {
        CHECK_OK(cuCtxSynchronize());
        return true;
    }
    CHECK_EQUAL(result, CUDA_ERROR_NOT_READY);
    return false;
}

static void eventsTellTheModelsTime(void) {
    CUstream stream = stream_of(CU_STREAM_NON_BLOCKING);
    CUevent a = event();
    CUevent b = event();
    float ms = 0;
    CHECK_EQUAL(cuEventQuery(a), CUDA_SUCCESS); /* never recorded */
    CHECK_EQUAL(cuEventElapsedTime(&ms, a, b), CUDA_ERROR_INVALID_HANDLE);
    CUresult queried = CUDA_SUCCESS;
    CUresult told = CUDA_SUCCESS;
    do {
        run(stream, LEAD_MS * MS);
        CHECK_OK(cuEventRecord(a, stream));
        for (int i = 0; i < 10; i++) {
            run(stream, MS);
        }
        CHECK_OK(cuEventRecord(b, stream));
        queried = cuStreamQuery(stream);
        told = cuEventElapsedTime(&ms, a, b);
    } while (is_late(a));
    CHECK_EQUAL(queried, CUDA_ERROR_NOT_READY);
    CHECK_EQUAL(told, CUDA_ERROR_NOT_READY);
    CHECK_EQUAL(between(a, b), 10000);
    CHECK_OK(cuStreamQuery(stream));
    CHECK_OK(cuEventDestroy_v2(a));
    CHECK_EQUAL(cuEventQuery(a), CUDA_ERROR_INVALID_HANDLE);
    CHECK_OK(cuEventDestroy_v2(b));
    CHECK_OK(cuStreamDestroy_v2(stream));
}

/* An event recorded on an idle stream completes at once, even if another stream is busy. */
static void idleStreamsDoNotWait(void) {
    CUstream busy = stream_of(CU_STREAM_NON_BLOCKING);
    CUstream idle = stream_of(CU_STREAM_NON_BLOCKING);
    CUevent lead = event();
    CUevent a = event();
    CUresult queried = CUDA_SUCCESS;
    do {
        run(busy, LEAD_MS * MS);
        CHECK_OK(cuEventRecord(lead, busy));
        CHECK_OK(cuEventRecord(a, idle));
        CHECK_OK(cuEventQuery(a));
        CHECK_OK(cuStreamSynchronize(idle));
        queried = cuStreamQuery(busy);
    } while (is_late(lead));
    CHECK_EQUAL(queried, CUDA_ERROR_NOT_READY);
    CHECK_OK(cuCtxSynchronize());
    CHECK_OK(cuStreamQuery(busy));
}

static void streamsOverlapAndWaitForEvents(void) {
    CUstream one = stream_of(CU_STREAM_NON_BLOCKING);
    CUstream two = stream_of(CU_STREAM_NON_BLOCKING);
    CUevent lead = event();
    CUevent mine = event();
    CUevent theirs = event();
    CUevent joined = event();
    do {
        run(one, LEAD_MS * MS);
        CHECK_OK(cuEventRecord(lead, one));
        CHECK_OK(cuStreamWaitEvent(two, lead, 0));
        run(one, 20 * MS);
        run(two, 30 * MS);
        CHECK_OK(cuEventRecord(mine, one));
        CHECK_OK(cuEventRecord(theirs, two));
        CHECK_OK(cuStreamWaitEvent(one, theirs, 0));
        run(one, 5 * MS);
        CHECK_OK(cuEventRecord(joined, one));
    } while (is_late(lead));
    CHECK_EQUAL(between(lead, mine), 20000);
    CHECK_EQUAL(between(lead, theirs), 30000);
    CHECK_EQUAL(between(lead, joined), 35000);
}

/* The legacy stream waits for blocking streams, and they wait for it. Non-blocking streams do neither. */
static void legacyStreamIsABarrier(void) {
    CUstream blocking = stream_of(CU_STREAM_DEFAULT);
    CUstream free_running = stream_of(CU_STREAM_NON_BLOCKING);
    CUevent lead = event();
    CUevent legacy = event();
    CUevent after = event();
    CUevent beside = event();
    do {
        run(blocking, LEAD_MS * MS);
        CHECK_OK(cuEventRecord(lead, blocking));
        CHECK_OK(cuStreamWaitEvent(free_running, lead, 0));
        run(NULL, 10 * MS);
        CHECK_OK(cuEventRecord(legacy, NULL));
        run(blocking, 3 * MS);
        CHECK_OK(cuEventRecord(after, blocking));
        run(free_running, MS);
        CHECK_OK(cuEventRecord(beside, free_running));
    } while (is_late(lead));
    CHECK_EQUAL(between(lead, legacy), 10000);
    CHECK_EQUAL(between(lead, after), 13000);
    CHECK_EQUAL(between(lead, beside), 1000);
}

static void aFullQueuePushesBack(void) {
    CUstream stream = stream_of(CU_STREAM_NON_BLOCKING);
    CUevent first = event();
    run(stream, 30 * MS);
    CHECK_OK(cuEventRecord(first, stream));
    for (int i = 0; i < 1023; i++) {
        run(stream, 1000);
    }
    for (int i = 0; i < 2000; i++) { /* takes no queue entry */
        CHECK_OK(cuLaunchKernel(null_kernel, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
    }
    run(stream, 1000); /* the first kernel's entry must be free by now */
    CHECK_OK(cuEventQuery(first));
    CHECK_OK(cuStreamSynchronize(stream));
}

/* Each stream has its own queue. */
static void aFullQueueHoldsUpItsStreamAlone(void) {
    CUstream full = stream_of(CU_STREAM_NON_BLOCKING);
    CUstream other = stream_of(CU_STREAM_NON_BLOCKING);
    CUevent first = event();
    do {
        run(full, LEAD_MS * MS);
        CHECK_OK(cuEventRecord(first, full));
        for (int i = 0; i < 1023; i++) {
            run(full, 1000);
        }
        run(other, 1000);
    } while (is_late(first));
    CHECK_OK(cuStreamSynchronize(full));
}

static void copy(CUstream stream, CUdeviceptr p, void *host, bool to_host) {
    const size_t bytes = 25 * (100000 - 1500); /* 100 us */
    CHECK_OK(to_host ? cuMemcpyDtoHAsync_v2(host, p, bytes, stream)
                     : cuMemcpyHtoDAsync_v2(p, host, bytes, stream));
}

/* Copies in one direction run one after the other, whatever their streams. Everything else runs in parallel. */
static void copiesShareAnEngineForEachDirection(void) {
    enum { STREAMS = 5 };
    CUstream streams[STREAMS];
    CUevent ends[STREAMS];
    CUevent lead = event();
    CUdeviceptr p = 0;
    void *host = calloc(1, 4 << 20);
    CHECK_OK(cuMemAlloc_v2(&p, 4 << 20));
    for (int i = 0; i < STREAMS; i++) {
        streams[i] = stream_of(CU_STREAM_NON_BLOCKING);
        ends[i] = event();
    }
    do {
        run(streams[0], LEAD_MS * MS);
        CHECK_OK(cuEventRecord(lead, streams[0]));
        for (int i = 0; i < STREAMS; i++) {
            CHECK_OK(cuStreamWaitEvent(streams[i], lead, 0));
        }
        run(streams[0], 10 * MS);
        copy(streams[0], p, host,
             false); /* waits for its own stream, so later copies of other streams go first */
        copy(streams[1], p, host, false);
        copy(streams[2], p, host, false);
        copy(streams[3], p, host, true);
        run(streams[4], MS);
        for (int i = 0; i < STREAMS; i++) {
            CHECK_OK(cuEventRecord(ends[i], streams[i]));
        }
    } while (is_late(lead));
    CHECK_EQUAL(between(lead, ends[0]), 10100);
    CHECK_EQUAL(between(lead, ends[1]), 100);
    CHECK_EQUAL(between(lead, ends[2]), 200);
    CHECK_EQUAL(between(lead, ends[3]), 100);
    CHECK_EQUAL(between(lead, ends[4]), 1000);
    CHECK_OK(cuMemFree_v2(p));
    free(host);
}

static int calls;
static CUevent pending_event;

static void count_call(void *data) {
    int *expected = data;
    CHECK_EQUAL(calls, *expected);
    CHECK_OK(cuEventQuery(pending_event)); /* everything before it is done */
    CHECK_EQUAL(cuCtxSynchronize(),
                CUDA_ERROR_INVALID_CONTEXT); /* no context is current to that thread */
    __atomic_add_fetch(&calls, 1, __ATOMIC_ACQ_REL);
}

static void count_callback(CUstream stream, CUresult status, void *data) {
    (void)stream;
    CHECK_OK(status);
    int *expected = data;
    CHECK_EQUAL(calls, *expected);
    __atomic_add_fetch(&calls, 1, __ATOMIC_ACQ_REL);
}

static pthread_mutex_t gate_lock = PTHREAD_MUTEX_INITIALIZER;

static void wait_at_gate(void *data) {
    (void)data;
    pthread_mutex_lock(&gate_lock);
    pthread_mutex_unlock(&gate_lock);
}

static void hostFunctionsRunInOrder(void) {
    static int order[] = {0, 1, 2};
    unsigned int value = 0;
    CUdeviceptr p = 0;
    CUstream stream = stream_of(CU_STREAM_NON_BLOCKING);
    CUstream other = stream_of(CU_STREAM_NON_BLOCKING);
    CUevent done = event();
    pending_event = event();
    CHECK_OK(cuMemAlloc_v2(&p, 4));
    run(stream, 20 * MS);
    CHECK_OK(cuEventRecord(pending_event, stream));
    CHECK_OK(cuLaunchHostFunc(stream, count_call, &order[0]));
    CHECK_OK(cuLaunchHostFunc(stream, count_call, &order[1]));
    uint32_t seven = 7;
    uint64_t one = 1;
    CHECK_OK(cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, stream, (void *[]){&p, &seven, &one}, NULL));
    CHECK_OK(cuStreamAddCallback(stream, count_callback, &order[2], 0));
    pthread_mutex_lock(&gate_lock);
    CHECK_OK(cuLaunchHostFunc(stream, wait_at_gate, NULL));
    CHECK_OK(cuEventRecord(done, stream));
    CHECK_EQUAL(cuEventQuery(done), CUDA_ERROR_NOT_READY);
    CHECK_OK(cuStreamWaitEvent(other, done, 0));
    CHECK_OK(cuMemcpyDtoHAsync_v2(&value, p, 4, other));
    CHECK_EQUAL(cuStreamQuery(other), CUDA_ERROR_NOT_READY);
    pthread_mutex_unlock(&gate_lock);
    CHECK_OK(cuStreamSynchronize(other));
    CHECK_EQUAL(__atomic_load_n(&calls, __ATOMIC_ACQUIRE), 3);
    CHECK_EQUAL(value, 7);
    CHECK_OK(cuEventQuery(done));
    CHECK_OK(cuCtxSynchronize());
    CHECK_OK(cuMemFree_v2(p));
}

/* Submitting behind a host function that waits for the submitter must not block. */
static void hostFunctionsHoldBackOnlyTheirStream(void) {
    CUstream stream = stream_of(CU_STREAM_NON_BLOCKING);
    CUstream other = stream_of(CU_STREAM_NON_BLOCKING);
    CUevent done = event();
    pthread_mutex_lock(&gate_lock);
    CHECK_OK(cuLaunchHostFunc(stream, wait_at_gate, NULL));
    for (int i = 0; i < 2000; i++) {
        run(stream, 1000);
    }
    CHECK_OK(cuEventRecord(done, stream));
    run(other, MS);
    CHECK_OK(cuStreamSynchronize(other));
    CHECK_EQUAL(cuEventQuery(done), CUDA_ERROR_NOT_READY);
    CHECK_EQUAL(cuStreamQuery(NULL), CUDA_SUCCESS);
    pthread_mutex_unlock(&gate_lock);
    CHECK_OK(cuEventSynchronize(done));
    CHECK_OK(cuStreamSynchronize(stream));
}

/* A wait is for an earlier record. A later record may itself stand behind the wait. */
static void waitsAreForEarlierRecordsAlone(void) {
    CUstream one = stream_of(CU_STREAM_DEFAULT);
    CUstream two = stream_of(CU_STREAM_NON_BLOCKING);
    CUevent recorded = event();
    pthread_mutex_lock(&gate_lock);
    CHECK_OK(cuLaunchHostFunc(two, wait_at_gate, NULL));
    CHECK_OK(cuEventRecord(recorded, two));
    CHECK_OK(cuStreamWaitEvent(one, recorded, 0));
    run(NULL, 1000); /* after the blocking stream's work */
    CHECK_OK(cuEventRecord(recorded, NULL));
    pthread_mutex_unlock(&gate_lock);
    CHECK_OK(cuCtxSynchronize());
    CHECK_OK(cuEventQuery(recorded));
}

static void capturedWorkRunsWhenLaunched(void) {
    CUstream stream = stream_of(CU_STREAM_NON_BLOCKING);
    CUstream side = stream_of(CU_STREAM_NON_BLOCKING);
    CUevent fork = event();
    CUevent join = event();
    CUdeviceptr p = 0;
    uint32_t nine = 9;
    uint64_t one = 1;
    CHECK_OK(cuMemAlloc_v2(&p, 4));
    CHECK_OK(cuMemsetD32_v2(p, 0, 1));
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    int status = -1;
    CHECK_OK(cuStreamBeginCapture_v2(stream, 0));
    CHECK_OK(cuStreamIsCapturing(stream, &status));
    CHECK_EQUAL(status, CU_CAPTURE_ACTIVE);
    run(stream, 4 * MS);
    CHECK_OK(cuEventRecord(fork, stream));
    CHECK_OK(cuStreamWaitEvent(side, fork, 0));
    run(side, 10 * MS);
    run(stream, 3 * MS);
    CHECK_OK(cuEventRecord(join, side));
    CHECK_OK(cuStreamWaitEvent(stream, join, 0));
    CHECK_OK(cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, stream, (void *[]){&p, &nine, &one}, NULL));
    CHECK_EQUAL(cuEventQuery(fork), CUDA_ERROR_CAPTURED_EVENT);
    CHECK_OK(cuStreamEndCapture(stream, &graph));
    size_t nodes = 0;
    CHECK_OK(cuGraphGetNodes(graph, NULL, &nodes));
    CHECK_EQUAL(nodes, 4);
    CHECK_OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    CHECK_OK(cuGraphDestroy(graph));
    unsigned int value = 1;
    CHECK_OK(cuMemcpyDtoH_v2(&value, p, 4));
    CHECK_EQUAL(value, 0);
    CUevent a = event();
    CUevent b = event();
    do {
        run(stream, LEAD_MS * MS);
        CHECK_OK(cuEventRecord(a, stream));
        CHECK_OK(cuGraphLaunch(exec, stream));
        CHECK_OK(cuEventRecord(b, stream));
    } while (is_late(a));
    CHECK_EQUAL(between(a, b), 14002); /* the critical path, and 2 us of vgpu_fill */
    CHECK_OK(cuMemcpyDtoH_v2(&value, p, 4));
    CHECK_EQUAL(value, 9);
    CHECK_OK(cuGraphExecDestroy(exec));
}

static void badCapturesAreRefused(void) {
    CUstream stream = stream_of(CU_STREAM_DEFAULT);
    CUstream side = stream_of(CU_STREAM_NON_BLOCKING);
    CUevent fork = event();
    CUgraph graph = NULL;
    CHECK_EQUAL(cuStreamEndCapture(stream, &graph), CUDA_ERROR_ILLEGAL_STATE);
    CHECK_EQUAL(cuStreamBeginCapture_v2(NULL, 0), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK_OK(cuStreamBeginCapture_v2(stream, 0));
    uint64_t ns = 1;
    CHECK_EQUAL(cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&ns}, NULL),
                CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    CHECK_EQUAL(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CHECK_OK(cuStreamBeginCapture_v2(stream, 0));
    CHECK_OK(cuEventRecord(fork, stream));
    CHECK_OK(cuStreamWaitEvent(side, fork, 0));
    run(side, 1); /* never joined back */
    CHECK_EQUAL(cuStreamEndCapture(side, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    CHECK_EQUAL(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CHECK_OK(cuStreamBeginCapture_v2(stream, 0));
    CHECK_OK(cuEventRecord(fork, stream));
    CHECK_OK(cuStreamWaitEvent(side, fork, 0));
    run(side, 1);
    CHECK_EQUAL(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    CUresult (*const forbidden[])(CUstream) = {cuStreamSynchronize, cuStreamQuery};
    for (int i = 0; i < 2; i++) { /* each call invalidates the capture */
        CHECK_OK(cuStreamBeginCapture_v2(stream, 0));
        CHECK_EQUAL(forbidden[i](stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        CHECK_EQUAL(cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, stream, (void *[]){&ns}, NULL),
                    CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        CHECK_EQUAL(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        CHECK(graph == NULL);
    }
    for (int i = 0; i < 3; i++) { /* so do these questions */
        unsigned int flags;
        unsigned long long id;
        CUdevice device;
        CHECK_OK(cuStreamBeginCapture_v2(stream, 2));
        CHECK_EQUAL(i == 0   ? cuStreamGetFlags(stream, &flags)
                    : i == 1 ? cuStreamGetId(stream, &id)
                             : cuStreamGetDevice(stream, &device),
                    CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        CHECK_EQUAL(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    }
    /* So does a call for the legacy stream, or for the context; both stand for this stream too. */
    for (int i = 0; i < 3; i++) {
        CHECK_OK(cuStreamBeginCapture_v2(stream, 2));
        CHECK_EQUAL(i < 2 ? forbidden[i](NULL) : cuCtxSynchronize(),
                    i < 2 ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT
                          : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        CHECK_EQUAL(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    }
    for (int i = 0; i < 2; i++) { /* the legacy stream does not stand for this one */
        CHECK_OK(cuStreamBeginCapture_v2(side, 2));
        CHECK_OK(forbidden[i](NULL));
        CHECK_OK(cuStreamEndCapture(side, &graph));
        CHECK_OK(cuGraphDestroy(graph));
    }
    run(side, 1000);
    run(NULL, 1000);
    CHECK_OK(cuCtxSynchronize());
}

static void *use_thread_stream(void *data) {
    CHECK_OK(cuCtxSetCurrent(data));
    uint64_t ns = 1000;
    for (int i = 0; i < 300; i++) {
        CHECK_OK(cuLaunchKernel_ptsz(spin, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&ns}, NULL));
        CUdeviceptr p = 0;
        CHECK_OK(cuMemAlloc_v2(&p, 4096));
        CUevent done = event();
        CHECK_OK(cuEventRecord(done, CU_STREAM_PER_THREAD));
        CHECK_OK(cuEventSynchronize(done));
        CHECK_OK(cuEventDestroy_v2(done));
        CHECK_OK(cuMemFree_v2(p));
    }
    CHECK_OK(cuStreamSynchronize_ptsz(NULL));
    return NULL;
}

static void threadsShareAContext(CUcontext context) {
    pthread_t threads[6];
    for (int i = 0; i < 6; i++) {
        CHECK_EQUAL(pthread_create(&threads[i], NULL, use_thread_stream, context), 0);
    }
    for (int i = 0; i < 6; i++) {
        CHECK_EQUAL(pthread_join(threads[i], NULL), 0);
    }
    CHECK_OK(cuCtxSynchronize());
}

int main(void) {
    CUcontext context = NULL;
    CUmodule module = NULL;
    CHECK_OK(cuInit(0));
    CHECK_OK(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK_OK(cuCtxSetCurrent(context));
    CHECK_OK(cuModuleLoadData(&module, test_ptx));
    CHECK_OK(cuModuleGetFunction(&spin, module, "vgpu_spin"));
    CHECK_OK(cuModuleGetFunction(&null_kernel, module, "vgpu_null"));
    CHECK_OK(cuModuleGetFunction(&fill, module, "vgpu_fill"));
    eventsTellTheModelsTime();
    idleStreamsDoNotWait();
    streamsOverlapAndWaitForEvents();
    legacyStreamIsABarrier();
    aFullQueuePushesBack();
    aFullQueueHoldsUpItsStreamAlone();
    copiesShareAnEngineForEachDirection();
    hostFunctionsRunInOrder();
    hostFunctionsHoldBackOnlyTheirStream();
    waitsAreForEarlierRecordsAlone();
    capturedWorkRunsWhenLaunched();
    badCapturesAreRefused();
    threadsShareAContext(context);
    CHECK_OK(cuDevicePrimaryCtxRelease_v2(0));
    return check_failures == 0 ? 0 : 1;
}
