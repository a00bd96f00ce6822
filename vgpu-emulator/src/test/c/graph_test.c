/* Child graphs, changes to graphs, captures into graphs; words that streams write and wait for. */
#include "check.h"
#include "cuda_api.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#define MS UINT64_C(1000000)
enum { TRIES = 50 };

CUresult cuGraphAddChildGraphNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUgraph);
CUresult cuGraphAddEventRecordNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUevent);
CUresult cuGraphAddEventWaitNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUevent);
CUresult cuGraphClone(CUgraph *, CUgraph);
CUresult cuGraphNodeFindInClone(CUgraphNode *, CUgraphNode, CUgraph);
CUresult cuGraphDestroyNode(CUgraphNode);
CUresult cuGraphNodeGetDependentNodes(CUgraphNode, CUgraphNode *, size_t *);
CUresult cuGraphRemoveDependencies(CUgraph, const CUgraphNode *, const CUgraphNode *, size_t);
CUresult cuStreamWaitValue32_v2(CUstream, CUdeviceptr, uint32_t, unsigned int);
CUresult cuStreamWriteValue32_v2(CUstream, CUdeviceptr, uint32_t, unsigned int);
CUresult cuStreamWaitValue64_v2(CUstream, CUdeviceptr, uint64_t, unsigned int);
CUresult cuStreamWriteValue64_v2(CUstream, CUdeviceptr, uint64_t, unsigned int);
CUresult cuStreamBatchMemOp_v2(CUstream, unsigned int, CUstreamBatchMemOpParams *, unsigned int);
CUresult cuStreamBeginCaptureToGraph(CUstream, CUgraph, const CUgraphNode *,
                                     const CUgraphEdgeData *, size_t, int);
CUresult cuStreamUpdateCaptureDependencies(CUstream, CUgraphNode *, size_t, unsigned int);
CUresult cuStreamUpdateCaptureDependencies_v2(CUstream, CUgraphNode *, const CUgraphEdgeData *,
                                              size_t, unsigned int);

static CUfunction spin;
static CUcontext context;

static CUstream stream_of_its_own(void) {
    CUstream made = NULL;
    CHECK_OK(cuStreamCreate(&made, CU_STREAM_NON_BLOCKING));
    return made;
}

static CUgraphNode add(CUgraph graph, const CUgraphNode *needs, size_t count, uint64_t ns) {
    CUgraphNode node = NULL;
    CUDA_KERNEL_NODE_PARAMS_v1 params = {.function = spin,
                                         .grid_x = 1,
                                         .grid_y = 1,
                                         .grid_z = 1,
                                         .block_x = 1,
                                         .block_y = 1,
                                         .block_z = 1,
                                         .params = (void *[]){&ns}};
    CHECK_OK(cuGraphAddKernelNode(&node, graph, needs, count, &params));
    return node;
}

/* The GPU time that a graph takes, in microseconds. */
static int64_t time_of(CUgraph graph) {
    CUstream stream = stream_of_its_own();
    CUevent start = NULL;
    CUevent end = NULL;
    CUgraphExec exec = NULL;
    float ms = -1;
    CHECK_OK(cuEventCreate(&start, 0));
    CHECK_OK(cuEventCreate(&end, 0));
    CHECK_OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    uint64_t lead = 50 * MS;
    /* on a busy machine the lead may end before the graph is queued behind it */
    bool is_late = true;
    for (int i = 0; i < TRIES && is_late; i++) {
        CHECK_OK(cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, stream, (void *[]){&lead}, NULL));
        CHECK_OK(cuEventRecord(start, stream));
        CHECK_OK(cuGraphLaunch(exec, stream));
        CHECK_OK(cuEventRecord(end, stream));
        is_late = cuEventQuery(start) == CUDA_SUCCESS;
        CHECK_OK(cuStreamSynchronize(stream));
    }
    CHECK(!is_late);
    CHECK_OK(cuEventElapsedTime(&ms, start, end));
    CHECK_OK(cuGraphExecDestroy(exec));
    CHECK_OK(cuEventDestroy_v2(start));
    CHECK_OK(cuEventDestroy_v2(end));
    CHECK_OK(cuStreamDestroy_v2(stream));
    return (int64_t)((double)ms * 1000 + 0.5);
}

static void childrenAreSpreadOut(void) {
    CUgraph inner = NULL;
    CUgraph outer = NULL;
    CUgraphNode child = NULL;
    CHECK_OK(cuGraphCreate(&inner, 0));
    CHECK_OK(cuGraphCreate(&outer, 0));
    CUgraphNode a = add(inner, NULL, 0, MS);
    add(inner, &a, 1, 2 * MS);
    add(inner, NULL, 0, MS);
    CUgraphNode before = add(outer, NULL, 0, MS);
    CHECK_OK(cuGraphAddChildGraphNode(&child, outer, &before, 1, inner));
    CHECK_OK(cuGraphDestroy(inner)); /* the node has its own copy */
    add(outer, &child, 1, 4 * MS);
    CHECK_EQUAL(time_of(outer), 8000);
    CHECK_OK(cuGraphDestroy(outer));
}

static void clonesAreGraphsOfTheirOwn(void) {
    CUgraph graph = NULL;
    CUgraph clone = NULL;
    CUgraphNode chain[4];
    CHECK_OK(cuGraphCreate(&graph, 0));
    for (int i = 0; i < 4; i++) {
        chain[i] = add(graph, i == 0 ? NULL : &chain[i - 1], i == 0 ? 0 : 1, MS);
    }
    CHECK_OK(cuGraphClone(&clone, graph));
    for (int i = 0; i < 2; i++) {
        CUgraphNode node = NULL;
        CHECK_OK(cuGraphNodeFindInClone(&node, chain[i], clone));
        CHECK_OK(cuGraphDestroyNode(node));
        CHECK_EQUAL(cuGraphNodeFindInClone(&node, chain[i], clone), CUDA_ERROR_INVALID_VALUE);
    }
    CHECK_EQUAL(time_of(clone), 2000);
    CHECK_EQUAL(time_of(graph), 4000);
    CUgraphNode dependent = NULL;
    size_t count = 1;
    CHECK_OK(cuGraphNodeGetDependentNodes(chain[0], &dependent, &count));
    CHECK(count == 1 && dependent == chain[1]);
    CHECK_OK(cuGraphRemoveDependencies(graph, &chain[0], &chain[1], 1));
    CHECK_EQUAL(time_of(graph), 3000);
    CHECK_OK(cuGraphDestroy(graph));
    CHECK_OK(cuGraphDestroy(clone));
}

static void eventsInGraphs(void) {
    CUgraph graph = NULL;
    CUgraphNode node = NULL;
    CUevent event = NULL;
    CHECK_OK(cuEventCreate(&event, 0));
    CHECK_OK(cuGraphCreate(&graph, 0));
    CUgraphNode kernel = add(graph, NULL, 0, MS);
    CHECK_OK(cuGraphAddEventRecordNode(&node, graph, &kernel, 1, event));
    CHECK_OK(cuGraphAddEventWaitNode(&node, graph, &node, 1, event));
    add(graph, &node, 1, MS);
    CHECK_EQUAL(time_of(graph), 2000);
    CHECK_OK(cuEventQuery(event));
    CHECK_OK(cuGraphDestroy(graph));
    CHECK_OK(cuEventDestroy_v2(event));
}

static void *write_later(void *word) {
    CHECK_OK(cuCtxSetCurrent(context));
    CUstream stream = stream_of_its_own();
    uint64_t ns = 5 * MS;
    CHECK_OK(cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, stream, (void *[]){&ns}, NULL));
    CHECK_OK(cuStreamWriteValue32_v2(stream, (CUdeviceptr)(uintptr_t)word, 7, 0));
    CHECK_OK(cuStreamSynchronize(stream));
    return NULL;
}

static void streamsWaitForWords(void) {
    static uint32_t word;
    static uint64_t wide;
    CUstream stream = stream_of_its_own();
    pthread_t thread;
    CHECK_OK(cuStreamWaitValue32_v2(stream, (CUdeviceptr)(uintptr_t)&word, 7, 0));
    CHECK_OK(cuStreamWriteValue64_v2(stream, (CUdeviceptr)(uintptr_t)&wide, 9, 0));
    CHECK_EQUAL(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    CHECK_EQUAL(__atomic_load_n(&wide, __ATOMIC_ACQUIRE), 0);
    CHECK_EQUAL(pthread_create(&thread, NULL, write_later, &word), 0);
    CHECK_OK(cuStreamSynchronize(stream));
    CHECK_EQUAL(pthread_join(thread, NULL), 0);
    CHECK_EQUAL(__atomic_load_n(&word, __ATOMIC_ACQUIRE), 7);
    CHECK_EQUAL(__atomic_load_n(&wide, __ATOMIC_ACQUIRE), 9);
    CUstreamBatchMemOpParams batch[] = {
        {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32,
         .address = (CUdeviceptr)(uintptr_t)&word,
         .value = 3},
        {.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32,
         .address = (CUdeviceptr)(uintptr_t)&word,
         .value = 1,
         .flags = CU_STREAM_WAIT_VALUE_AND},
        {.operation = CU_STREAM_MEM_OP_BARRIER},
        {.operation = CU_STREAM_MEM_OP_WAIT_VALUE_64,
         .address = (CUdeviceptr)(uintptr_t)&wide,
         .value = 9,
         .flags = CU_STREAM_WAIT_VALUE_EQ},
    };
    CHECK_OK(cuStreamBatchMemOp_v2(stream, 4, batch, 0));
    CHECK_OK(cuStreamSynchronize(stream));
    CHECK_EQUAL(word, 3);
    batch[0].operation = 9;
    CHECK_EQUAL(cuStreamBatchMemOp_v2(stream, 1, batch, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuStreamBatchMemOp_v2(stream, 1, NULL, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuStreamWaitValue32_v2(stream, 0, 7, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuStreamWaitValue32_v2(stream, (CUdeviceptr)(uintptr_t)&word, 7, 9),
                CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(cuStreamDestroy_v2(stream));
}

static void submit(CUstream stream, uint64_t ns) {
    CHECK_OK(cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, stream, (void *[]){&ns}, NULL));
}

/* Two nodes of 3 ms and 1 ms are there before; what is captured comes after one of them, after both, or after none. */
static void captureContinuesAGraph(void) {
    CUgraph graph = NULL;
    CUgraph ended = NULL;
    CUgraphNode nodes[3];
    CUstream stream = stream_of_its_own();
    CHECK_OK(cuGraphCreate(&graph, 0));
    nodes[0] = add(graph, NULL, 0, 3 * MS);
    nodes[1] = add(graph, NULL, 0, MS);
    CHECK_OK(cuStreamBeginCaptureToGraph(stream, graph, &nodes[1], NULL, 1, 1));
    submit(stream, MS);
    CHECK_OK(cuStreamEndCapture(stream, &ended));
    CHECK(ended == graph);
    CHECK_EQUAL(time_of(graph), 3000);
    CHECK_OK(cuStreamBeginCaptureToGraph(stream, graph, nodes, NULL, 2, 1));
    submit(stream, MS);
    CHECK_OK(cuStreamUpdateCaptureDependencies(stream, NULL, 0, 1)); /* replaced by none */
    submit(stream, 2 * MS);
    CHECK_OK(cuStreamUpdateCaptureDependencies_v2(stream, nodes, NULL, 1, 0)); /* and one more */
    submit(stream, 5 * MS);
    CHECK_OK(cuStreamEndCapture(stream, &ended));
    CHECK_EQUAL(time_of(graph), 8000); /* 3 before 5 */
    /* A capture that fails leaves the graph to the program. */
    CHECK_OK(cuStreamBeginCaptureToGraph(stream, graph, NULL, NULL, 0, 1));
    submit(stream, 9 * MS);
    CHECK_EQUAL(cuStreamSynchronize(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK_EQUAL(cuStreamEndCapture(stream, &ended), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CHECK_EQUAL(time_of(graph), 9000);
    CUgraph other = NULL;
    CHECK_OK(cuGraphCreate(&other, 0));
    nodes[2] = add(other, NULL, 0, MS);
    CHECK_EQUAL(cuStreamBeginCaptureToGraph(stream, graph, &nodes[2], NULL, 1, 1),
                CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuStreamBeginCaptureToGraph(stream, NULL, NULL, NULL, 0, 1),
                CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuStreamUpdateCaptureDependencies(stream, nodes, 1, 0), CUDA_ERROR_ILLEGAL_STATE);
    CHECK_OK(cuStreamBeginCaptureToGraph(stream, graph, NULL, NULL, 0, 1));
    CHECK_EQUAL(cuStreamUpdateCaptureDependencies(stream, nodes, 1, 2), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuStreamUpdateCaptureDependencies(stream, &nodes[2], 1, 0),
                CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(cuStreamEndCapture(stream, &ended));
    CHECK_OK(cuGraphDestroy(other));
    CHECK_OK(cuGraphDestroy(graph));
    CHECK_OK(cuStreamDestroy_v2(stream));
}

int main(void) {
    CUmodule module = NULL;
    CHECK_OK(cuInit(0));
    CHECK_OK(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK_OK(cuCtxSetCurrent(context));
    CHECK_OK(cuModuleLoadData(&module, test_ptx));
    CHECK_OK(cuModuleGetFunction(&spin, module, "vgpu_spin"));
    childrenAreSpreadOut();
    clonesAreGraphsOfTheirOwn();
    eventsInGraphs();
    captureContinuesAGraph();
    streamsWaitForWords();
    CHECK_OK(cuDevicePrimaryCtxRelease_v2(0));
    return check_failures == 0 ? 0 : 1;
}
