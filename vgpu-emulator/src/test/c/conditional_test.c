/* Conditional nodes: which bodies run, and how often. */
#include "check.h"
#include "cuda_api.h"

CUresult cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs,
                           const CUgraphEdgeData *edges, size_t count, CUgraphNodeParams *params);
CUresult cuGraphAddHostNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs,
                            size_t count, const CUDA_HOST_NODE_PARAMS *params);
CUresult cuGraphAddChildGraphNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs,
                                  size_t count, CUgraph child);
CUresult cuGraphClone(CUgraph *clone, CUgraph graph);
CUresult cuGraphNodeGetType(CUgraphNode node, int *type);
CUresult cuGraphConditionalHandleCreate(uint64_t *handle, CUgraph graph, CUcontext context,
                                        unsigned int initial, unsigned int flags);

enum { KERNEL, CONDITIONAL = 13, IF = 0, WHILE, SWITCH, ASSIGN_DEFAULT = 1, WORDS = 8 };

static const char more_ptx[] =
    ".version 6.0\n.target sm_52\n.address_size 64\n"
    ".visible .entry vgpu_condition(.param .u64 handle, .param .u64 count) { ret; }\n"
    ".visible .entry vgpu_saxpy(.param .f32 a, .param .u64 x, .param .u64 y, .param .u64 n) { ret; }\n"
    ".visible .entry unknown(.param .u64 p) { ret; }\n";

static CUcontext context;
static CUmodule module;
static CUstream stream;
static CUdeviceptr memory; /* words: a count, and floats that bodies double */

static CUgraph new_graph(void) {
    CUgraph graph = NULL;
    CHECK_OK(cuGraphCreate(&graph, 0));
    return graph;
}

static uint64_t new_handle(CUgraph graph, unsigned int initial) {
    uint64_t handle = 0;
    CHECK_OK(cuGraphConditionalHandleCreate(&handle, graph, context, initial, ASSIGN_DEFAULT));
    return handle;
}

static CUgraphNode add_kernel(CUgraph graph, CUgraphNode need, const char *name, void **arguments) {
    CUgraphNode node = NULL;
    CUgraphNodeParams params = {.type = KERNEL};
    CHECK_OK(cuModuleGetFunction(&params.kernel.v1.function, module, name));
    params.kernel.v1.grid_x = params.kernel.v1.grid_y = params.kernel.v1.grid_z = 1;
    params.kernel.v1.block_x = params.kernel.v1.block_y = params.kernel.v1.block_z = 1;
    params.kernel.v1.params = arguments;
    CHECK_OK(cuGraphAddNode_v2(&node, graph, &need, NULL, need == NULL ? 0 : 1, &params));
    return node;
}

/* Doubles a word, a float. */
static CUgraphNode add_double(CUgraph graph, CUgraphNode need, int word) {
    float one = 1.0f;
    CUdeviceptr at = memory + 4 * (CUdeviceptr)word;
    uint64_t n = 1;
    void *arguments[] = {&one, &at, &at, &n};
    return add_kernel(graph, need, "vgpu_saxpy", arguments);
}

/* Takes one off word 0, and sets the condition to the rest. */
static CUgraphNode add_count(CUgraph graph, CUgraphNode need, uint64_t handle) {
    void *arguments[] = {&handle, &memory};
    return add_kernel(graph, need, "vgpu_condition", arguments);
}

static CUresult try_conditional(CUgraph graph, CUgraphNode need, uint64_t handle, int type,
                                unsigned int size, CUgraph **bodies) {
    CUgraphNode node = NULL;
    CUgraphNodeParams params = {
        .type = CONDITIONAL,
        .conditional = {.handle = handle, .type = type, .size = size, .context = context}};
    CUresult result = cuGraphAddNode_v2(&node, graph, &need, NULL, need == NULL ? 0 : 1, &params);
    int kind = 0;
    if (result == CUDA_SUCCESS) {
        CHECK_OK(cuGraphNodeGetType(node, &kind));
        CHECK_EQUAL(kind, CONDITIONAL);
    }
    *bodies = params.conditional.bodies;
    return result;
}

static CUgraph *add_conditional(CUgraph graph, CUgraphNode need, uint64_t handle, int type,
                                unsigned int size) {
    CUgraph *bodies = NULL;
    CHECK_OK(try_conditional(graph, need, handle, type, size, &bodies));
    return bodies;
}

static void set_words(uint32_t count) {
    float ones[WORDS] = {1, 1, 1, 1, 1, 1, 1, 1};
    CHECK_OK(cuMemcpyHtoD_v2(memory, ones, sizeof ones));
    CHECK_OK(cuMemcpyHtoD_v2(memory, &count, sizeof count));
}

static int doubled(int word) { /* how often */
    float value = 0;
    int times = 0;
    CHECK_OK(cuMemcpyDtoH_v2(&value, memory + 4 * (CUdeviceptr)word, sizeof value));
    for (; value > 1.0f; value /= 2) {
        times++;
    }
    return times;
}

static CUgraphExec instantiate(CUgraph graph) {
    CUgraphExec exec = NULL;
    CHECK_OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    CHECK_OK(cuGraphDestroy(graph)); /* the executable graph needs it no longer */
    return exec;
}

static void run(CUgraphExec exec, uint32_t count) {
    set_words(count);
    CHECK_OK(cuGraphLaunch(exec, stream));
    CHECK_OK(cuStreamSynchronize(stream));
}

static void anIfRunsOneOfItsBodies(void) {
    CUgraph graph = new_graph();
    uint64_t handle = new_handle(graph, 0);
    CUgraph *bodies = add_conditional(graph, add_count(graph, NULL, handle), handle, IF, 2);
    add_double(bodies[0], NULL, 1);
    add_double(bodies[1], NULL, 2);
    CUgraphExec exec = instantiate(graph);
    run(exec, 2);
    CHECK_EQUAL(doubled(1), 1);
    CHECK_EQUAL(doubled(2), 0);
    run(exec, 1);
    CHECK_EQUAL(doubled(1), 0);
    CHECK_EQUAL(doubled(2), 1);
    CHECK_OK(cuGraphExecDestroy(exec));
}

static void aLoopRunsUntilItsConditionIsZero(void) {
    CUgraph graph = new_graph();
    uint64_t handle = new_handle(graph, 1);
    CUgraph *bodies = add_conditional(graph, NULL, handle, WHILE, 1);
    add_count(bodies[0], add_double(bodies[0], NULL, 1), handle);
    CUgraphExec exec = instantiate(graph);
    run(exec, 5);
    CHECK_EQUAL(doubled(1), 5);
    run(exec, 3); /* each launch begins with the initial value */
    CHECK_EQUAL(doubled(1), 3);
    CHECK_OK(cuGraphExecDestroy(exec));
}

static void aSwitchRunsTheBodyOfItsValue(void) {
    CUgraph graph = new_graph();
    uint64_t handle = new_handle(graph, 0);
    CUgraph *bodies = add_conditional(graph, add_count(graph, NULL, handle), handle, SWITCH, 3);
    for (int i = 0; i < 3; i++) {
        add_double(bodies[i], NULL, 1 + i);
    }
    CUgraphExec exec = instantiate(graph);
    for (int value = 0; value < 4; value++) {
        run(exec, (uint32_t)value + 1);
        for (int i = 0; i < 3; i++) {
            CHECK_EQUAL(doubled(1 + i), i == value ? 1 : 0); /* 3: none */
        }
    }
    CHECK_OK(cuGraphExecDestroy(exec));
}

static void bodiesHaveConditionsOfTheirOwn(void) {
    CUgraph graph = new_graph();
    CUgraph child = new_graph();
    CUgraphNode node = NULL;
    uint64_t outer = new_handle(graph, 1);
    uint64_t inner = new_handle(graph, 1);
    CUgraph *loop = add_conditional(graph, NULL, outer, WHILE, 1);
    CUgraphNode last = add_count(loop[0], NULL, outer);
    CUgraph *bodies = add_conditional(loop[0], last, inner, IF, 1);
    add_double(child, NULL, 1);
    CHECK_OK(cuGraphAddChildGraphNode(&node, bodies[0], NULL, 0, child));
    CHECK_OK(cuGraphDestroy(child));
    CUgraphExec exec = instantiate(graph);
    run(exec, 4);
    CHECK_EQUAL(doubled(1), 4);
    CHECK_OK(cuGraphExecDestroy(exec));
}

static void aLoopOfUnknownKernelsEnds(void) {
    CUgraph graph = new_graph();
    CUgraph *bodies = add_conditional(graph, NULL, new_handle(graph, 1), WHILE, 1);
    void *arguments[] = {&memory};
    add_double(bodies[0], add_kernel(bodies[0], NULL, "unknown", arguments), 1);
    CUgraphExec exec = instantiate(graph);
    run(exec, 1);
    CHECK_EQUAL(doubled(1), 1);
    CHECK_OK(cuGraphExecDestroy(exec));
}

static void awaitOne(void *flag) {
    while (__atomic_load_n((int *)flag, __ATOMIC_ACQUIRE) == 0) {
        usleep(100);
    }
}

/* The value counts when the stream gets there, and the executable graph may end before. */
static void theConditionIsAskedInTheStreamsOrder(void) {
    CUgraph graph = new_graph();
    int flag = 0;
    uint32_t count = 3;
    uint64_t handle = new_handle(graph, 0);
    CUgraph *bodies = add_conditional(graph, add_count(graph, NULL, handle), handle, IF, 1);
    add_double(bodies[0], NULL, 1);
    CUgraphExec exec = instantiate(graph);
    set_words(1);
    CHECK_OK(cuLaunchHostFunc(stream, awaitOne, &flag));
    CHECK_OK(cuGraphLaunch(exec, stream));
    CHECK_OK(cuGraphExecDestroy(exec));
    CHECK_EQUAL(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    CHECK_OK(cuMemcpyHtoD_v2(memory, &count, sizeof count));
    __atomic_store_n(&flag, 1, __ATOMIC_RELEASE);
    CHECK_OK(cuStreamSynchronize(stream));
    CHECK_EQUAL(doubled(1), 1);
}

static void wrongNodesAreRefused(void) {
    CUgraph graph = new_graph();
    CUgraph other = new_graph();
    CUgraph *bodies = NULL;
    CUgraphNode node = NULL;
    CUgraphExec exec = NULL;
    uint64_t handle = 0;
    CHECK_EQUAL(cuGraphConditionalHandleCreate(&handle, graph, context, 0, 2),
                CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuGraphConditionalHandleCreate(&handle, NULL, context, 0, 0),
                CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuGraphConditionalHandleCreate(&handle, graph, NULL, 0, 0),
                CUDA_ERROR_INVALID_VALUE);
    handle = new_handle(graph, 0);
    CHECK_EQUAL(try_conditional(graph, NULL, handle + 8, IF, 1, &bodies), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(try_conditional(graph, NULL, handle, IF, 3, &bodies), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(try_conditional(graph, NULL, handle, WHILE, 2, &bodies), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(try_conditional(graph, NULL, handle, SWITCH, 0, &bodies), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(try_conditional(graph, NULL, handle, 3, 1, &bodies), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(try_conditional(other, NULL, handle, IF, 1, &bodies), CUDA_ERROR_INVALID_VALUE);
    bodies = add_conditional(graph, NULL, handle, IF, 1);
    CUgraph *more = NULL;
    CHECK_EQUAL(try_conditional(graph, NULL, handle, IF, 1, &more),
                CUDA_ERROR_INVALID_VALUE); /* has a node */
    CUgraph clone = NULL;
    CHECK_EQUAL(cuGraphClone(&clone, graph), CUDA_ERROR_NOT_SUPPORTED);
    CHECK_EQUAL(cuGraphAddChildGraphNode(&node, other, NULL, 0, graph), CUDA_ERROR_NOT_SUPPORTED);
    CUDA_HOST_NODE_PARAMS call = {.function = awaitOne};
    CHECK_OK(cuGraphAddHostNode(&node, bodies[0], NULL, 0, &call));
    CHECK_EQUAL(cuGraphInstantiateWithFlags(&exec, graph, 0),
                CUDA_ERROR_INVALID_VALUE); /* no host functions */
    CHECK_OK(cuGraphDestroy(graph));
    CHECK_OK(cuGraphDestroy(other));
}

static void aLaunchIsNotCaptured(void) {
    CUgraph graph = new_graph();
    CUgraph captured = NULL;
    add_conditional(graph, NULL, new_handle(graph, 1), IF, 1);
    CUgraphExec exec = instantiate(graph);
    CHECK_OK(cuStreamBeginCapture_v2(stream, 0));
    CHECK_EQUAL(cuGraphLaunch(exec, stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK_EQUAL(cuStreamEndCapture(stream, &captured), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CHECK_OK(cuGraphExecDestroy(exec));
}

int main(void) {
    CHECK_OK(cuInit(0));
    CHECK_OK(cuCtxCreate_v2(&context, 0, 0));
    CHECK_OK(cuModuleLoadData(&module, more_ptx));
    CHECK_OK(cuStreamCreate(&stream, 1));
    CHECK_OK(cuMemAlloc_v2(&memory, 4 * WORDS));
    anIfRunsOneOfItsBodies();
    aLoopRunsUntilItsConditionIsZero();
    aSwitchRunsTheBodyOfItsValue();
    bodiesHaveConditionsOfTheirOwn();
    aLoopOfUnknownKernelsEnds();
    theConditionIsAskedInTheStreamsOrder();
    wrongNodesAreRefused();
    aLaunchIsNotCaptured();
    CHECK_OK(cuCtxDestroy_v2(context));
    return check_failures == 0 ? 0 : 1;
}
