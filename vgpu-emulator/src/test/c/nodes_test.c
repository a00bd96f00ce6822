/* Getting and setting the parameters of graph nodes; user objects that graphs refer to. */
#include "check.h"
#include "cuda_api.h"

#include <string.h>

typedef struct CUuserObject_st *object;
CUresult cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs,
                           const CUgraphEdgeData *edges, size_t count, CUgraphNodeParams *params);
CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams *params);
CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *params);
CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode *needs, CUgraphEdgeData *edges,
                                       size_t *count);
CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v2 *params);
CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2 *params);
CUresult cuGraphKernelNodeSetAttribute(CUgraphNode node, int attribute, const void *value);
CUresult cuGraphKernelNodeGetAttribute(CUgraphNode node, int attribute, void *value);
CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode target, CUgraphNode source);
CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D *copy);
CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_MEMCPY3D *copy, CUcontext context);
CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS *params);
CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *params);
CUresult cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS *params);
CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent *event);
CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event);
CUresult cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode node, unsigned int *is);
CUresult cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned int is);
CUresult cuGraphClone(CUgraph *clone, CUgraph graph);
CUresult cuUserObjectCreate(object *made, void *data, CUhostFn destroy, unsigned int count,
                            unsigned int flags);
CUresult cuUserObjectRelease(object user, unsigned int count);
CUresult cuGraphRetainUserObject(CUgraph graph, object user, unsigned int count,
                                 unsigned int flags);
CUresult cuGraphReleaseUserObject(CUgraph graph, object user, unsigned int count);

CUresult cuGraphAddChildGraphNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs,
                                  size_t count, CUgraph child);
CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraph child);
CUresult cuGraphDebugDotPrint(CUgraph graph, const char *path, unsigned int flags);

enum { KERNEL, COPY, FILL, HOST, RECORD = 7, N = 64 };

static CUmodule module;
static CUdeviceptr memory;
static CUstream stream;

static float first(void) {
    float value = 0;
    CHECK_OK(cuMemcpyDtoH_v2(&value, memory, sizeof value));
    return value;
}

static void run(CUgraphExec exec) {
    CHECK_OK(cuGraphLaunch(exec, stream));
    CHECK_OK(cuStreamSynchronize(stream));
}

static CUgraphExec instantiate(CUgraph graph) {
    CUgraphExec exec = NULL;
    CHECK_OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    return exec;
}

/* A kernel node, with arguments, of a kernel that the emulator knows or of one that it does not know. */
static CUgraphNodeParams kernel(const char *name, void **params) {
    CUgraphNodeParams node = {.type = KERNEL};
    CHECK_OK(cuModuleGetFunction(&node.kernel.v1.function, module, name));
    node.kernel.v1.grid_x = node.kernel.v1.grid_y = node.kernel.v1.grid_z = 1;
    node.kernel.v1.block_x = 32;
    node.kernel.v1.block_y = node.kernel.v1.block_z = 1;
    node.kernel.v1.params = params;
    return node;
}

static void kernelsTellTheirArguments(void) {
    CUgraph graph = NULL;
    CUgraphNode nodes[2] = {NULL};
    uint32_t value = 0x3f800000; /* 1.0f */
    uint64_t n = N;
    void *arguments[] = {&memory, &value, &n};
    CUgraphNodeParams params = kernel("vgpu_fill", arguments);
    CHECK_OK(cuGraphCreate(&graph, 0));
    CHECK_OK(cuGraphAddNode_v2(&nodes[0], graph, NULL, NULL, 0, &params));
    value = 0; /* the node has its own copy */
    CUDA_KERNEL_NODE_PARAMS_v2 told = {.v1 = {.params = NULL}};
    CHECK_OK(cuGraphKernelNodeGetParams_v2(nodes[0], &told));
    CHECK(told.v1.params != NULL && *(uint32_t *)told.v1.params[1] == 0x3f800000);
    told.v1.grid_x = 2;
    CHECK_OK(cuGraphKernelNodeSetParams_v2(nodes[0],
                                           &told)); /* as programs do to change only some fields */
    params = kernel("unknown", arguments);
    CHECK_OK(cuGraphAddNode_v2(&nodes[1], graph, &nodes[0], NULL, 1, &params));
    CHECK_OK(cuGraphKernelNodeGetParams_v2(nodes[1], &told));
    CHECK(told.v1.params != NULL && *(uint64_t *)told.v1.params[0] == memory);
    CUgraphNode need = NULL;
    CUgraphEdgeData edge = {.type = 9};
    size_t count = 1;
    CHECK_OK(cuGraphNodeGetDependencies_v2(nodes[1], &need, &edge, &count));
    CHECK(count == 1 && need == nodes[0] && edge.type == 0);
    CUgraphExec exec = instantiate(graph);
    run(exec);
    CHECK(first() == 1.0f);
    value = 0x40000000; /* 2.0f */
    params = kernel("vgpu_fill", arguments);
    CHECK_OK(cuGraphExecNodeSetParams(exec, nodes[0], &params));
    run(exec);
    CHECK(first() == 2.0f);
    unsigned int is = 0;
    CHECK_OK(cuMemsetD8_v2(memory, 0, 4));
    CHECK_OK(cuGraphNodeSetEnabled(exec, nodes[0], 0));
    CHECK_OK(cuGraphNodeGetEnabled(exec, nodes[0], &is));
    CHECK_EQUAL(is, 0);
    run(exec);
    CHECK(first() == 0.0f);
    CHECK_OK(cuGraphNodeSetEnabled(exec, nodes[0], 1));
    run(exec);
    CHECK(first() == 2.0f);
    int priority[16] = {[0] = -3};
    CHECK_OK(cuGraphKernelNodeSetAttribute(nodes[0], 8, priority));
    CHECK_OK(cuGraphKernelNodeCopyAttributes(nodes[1], nodes[0]));
    memset(priority, 0, sizeof priority);
    CHECK_OK(cuGraphKernelNodeGetAttribute(nodes[1], 8, priority));
    CHECK_EQUAL(priority[0], -3);
    CHECK_OK(cuGraphExecDestroy(exec));
    CHECK_OK(cuGraphDestroy(graph));
}

static void copiesAndFillsTellTheirPlaces(void) {
    static float source[N] = {5.0f};
    static float other[N] = {6.0f};
    CUgraph graph = NULL;
    CUgraphNode node = NULL;
    CUDA_MEMCPY3D copy = {.src_type = CU_MEMORYTYPE_HOST,
                          .src_host = source,
                          .dst_type = CU_MEMORYTYPE_DEVICE,
                          .dst_device = memory,
                          .width_bytes = sizeof source,
                          .height = 1,
                          .depth = 1};
    CUDA_MEMCPY3D told;
    CUgraphNodeParams params = {.type = COPY, .copy = {.copy = copy}};
    CHECK_OK(cuGraphCreate(&graph, 0));
    CHECK_OK(cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &params));
    CHECK_OK(cuGraphMemcpyNodeGetParams(node, &told));
    CHECK(memcmp(&told, &copy, sizeof copy) == 0);
    CUgraphExec exec = instantiate(graph);
    run(exec);
    CHECK(first() == 5.0f);
    copy.src_host = other;
    CHECK_OK(cuGraphExecMemcpyNodeSetParams(exec, node, &copy, NULL));
    run(exec);
    CHECK(first() == 6.0f);
    CHECK_OK(cuGraphExecDestroy(exec));
    CUDA_MEMSET_NODE_PARAMS fill = {memory, 0, 7, 4, N, 1};
    CUDA_MEMSET_NODE_PARAMS now = {0};
    params = (CUgraphNodeParams){.type = FILL, .fill = fill};
    CHECK_OK(cuGraphAddNode_v2(&node, graph, &node, NULL, 1, &params));
    CHECK_OK(cuGraphMemsetNodeGetParams(node, &now));
    CHECK(now.destination == memory && now.value == 7 && now.element_size == 4 && now.width == N);
    now.value = 0x41000000; /* 8.0f */
    CHECK_OK(cuGraphMemsetNodeSetParams(node, &now));
    CHECK_EQUAL(cuGraphMemcpyNodeGetParams(node, &told), CUDA_ERROR_INVALID_VALUE);
    exec = instantiate(graph);
    run(exec);
    CHECK(first() == 8.0f);
    CHECK_OK(cuGraphExecDestroy(exec));
    CHECK_OK(cuGraphDestroy(graph));
}

static void capturedNodesTellTheSame(void) {
    static float source[N] = {9.0f};
    CUgraph graph = NULL;
    CUgraphNode nodes[2] = {NULL};
    size_t count = 2;
    void *arguments[] = {&memory};
    CUgraphNodeParams params = kernel("unknown", arguments);
    CHECK_OK(cuStreamBeginCapture_v2(stream, 0));
    CHECK_OK(cuMemcpyHtoDAsync_v2(memory, source, sizeof source, stream));
    CHECK_OK(
        cuLaunchKernel(params.kernel.v1.function, 1, 1, 1, 32, 1, 1, 0, stream, arguments, NULL));
    CHECK_OK(cuStreamEndCapture(stream, &graph));
    CHECK_OK(cuGraphGetNodes(graph, nodes, &count));
    CHECK_EQUAL(count, 2);
    CUDA_MEMCPY3D copy;
    CHECK_OK(cuGraphMemcpyNodeGetParams(nodes[0], &copy));
    CHECK(copy.src_type == CU_MEMORYTYPE_HOST && copy.src_host == source &&
          copy.dst_type == CU_MEMORYTYPE_DEVICE && copy.dst_device == memory &&
          copy.width_bytes == sizeof source);
    CUDA_KERNEL_NODE_PARAMS_v2 told;
    CHECK_OK(cuGraphKernelNodeGetParams_v2(nodes[1], &told));
    CHECK(told.v1.params != NULL && *(uint64_t *)told.v1.params[0] == memory);
    CHECK_OK(cuGraphDestroy(graph));
}

static void count_call(void *data) {
    __atomic_add_fetch((int *)data, 1, __ATOMIC_SEQ_CST);
}

static void hostFunctionsAndEventsMayChange(void) {
    int calls[2] = {0};
    CUevent events[2];
    CUgraph graph = NULL;
    CUgraphNode nodes[2] = {NULL};
    CUgraphNodeParams params = {.type = HOST, .host = {count_call, &calls[0]}};
    CHECK_OK(cuEventCreate(&events[0], 0));
    CHECK_OK(cuEventCreate(&events[1], 0));
    CHECK_OK(cuGraphCreate(&graph, 0));
    CHECK_OK(cuGraphAddNode_v2(&nodes[0], graph, NULL, NULL, 0, &params));
    CUDA_HOST_NODE_PARAMS told;
    CHECK_OK(cuGraphHostNodeGetParams(nodes[0], &told));
    CHECK(told.function == count_call && told.data == &calls[0]);
    params.host.data = &calls[1];
    CHECK_OK(cuGraphNodeSetParams(nodes[0], &params));
    params = (CUgraphNodeParams){.type = RECORD, .event = events[0]};
    CHECK_OK(cuGraphAddNode_v2(&nodes[1], graph, NULL, NULL, 0, &params));
    CUevent event = NULL;
    CHECK_OK(cuGraphEventRecordNodeGetEvent(nodes[1], &event));
    CHECK(event == events[0]);
    CUgraphExec exec = instantiate(graph);
    CHECK_OK(cuGraphExecEventRecordNodeSetEvent(exec, nodes[1], events[1]));
    run(exec);
    CHECK_EQUAL(calls[0], 0);
    CHECK_EQUAL(calls[1], 1);
    float ms = 0;
    CHECK_EQUAL(cuEventElapsedTime(&ms, events[0], events[0]), CUDA_ERROR_INVALID_HANDLE);
    CHECK_OK(cuEventElapsedTime(&ms, events[1], events[1]));
    CHECK_OK(cuGraphExecDestroy(exec));
    CHECK_OK(cuGraphDestroy(graph));
}

static int ends;

static void end(void *data) {
    CHECK(data == &ends);
    count_call(&ends);
}

static int ended(int expected) {
    for (int i = 0; i < 10000 && __atomic_load_n(&ends, __ATOMIC_SEQ_CST) < expected; i++) {
        usleep(1000);
    }
    return __atomic_load_n(&ends, __ATOMIC_SEQ_CST);
}

static void objectsEndWithTheirLastReference(void) {
    object user = NULL;
    CUgraph graph = NULL;
    CUgraph clone = NULL;
    CHECK_EQUAL(cuUserObjectCreate(&user, &ends, end, 1, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(cuUserObjectCreate(&user, &ends, end, 2, 1));
    CHECK_OK(cuGraphCreate(&graph, 0));
    CHECK_OK(cuGraphRetainUserObject(graph, user, 1, 1)); /* moved */
    CHECK_OK(cuUserObjectRelease(user, 1));
    CHECK_OK(cuGraphClone(&clone, graph));
    CUgraphExec exec = instantiate(graph);
    CHECK_OK(cuGraphReleaseUserObject(graph, user, 1));
    CHECK_EQUAL(cuGraphReleaseUserObject(graph, user, 1), CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(cuGraphDestroy(graph));
    CHECK_OK(cuGraphDestroy(clone));
    CHECK_EQUAL(ended(0), 0); /* the executable graph still has a reference */
    CHECK_OK(cuGraphExecDestroy(exec));
    CHECK_EQUAL(ended(1), 1);
    CHECK_EQUAL(cuUserObjectRelease(user, 1), CUDA_ERROR_INVALID_VALUE);
}

/* Adds vgpu_fill with a value, after the given node. */
static CUgraphNode addFill(CUgraph graph, CUgraphNode need, uint32_t value) {
    CUgraphNode node = NULL;
    uint64_t n = N;
    void *arguments[] = {&memory, &value, &n};
    CUgraphNodeParams params = kernel("vgpu_fill", arguments);
    CHECK_OK(cuGraphAddNode_v2(&node, graph, &need, NULL, need == NULL ? 0 : 1, &params));
    return node;
}

static void aChildGraphGetsOtherParameters(void) {
    CUgraph graph = NULL;
    CUgraph child = NULL;
    CUgraph middle = NULL;
    CUgraph other = NULL;
    CUgraphNode inner = NULL;
    CUgraphNode node = NULL;
    CHECK_OK(cuGraphCreate(&graph, 0));
    CHECK_OK(cuGraphCreate(&middle, 0));
    CHECK_OK(cuGraphCreate(&child, 0));
    addFill(child, addFill(child, NULL, 0x3f800000), 0x40000000); /* 1.0f, then 2.0f */
    CHECK_OK(cuGraphAddChildGraphNode(&inner, middle, NULL, 0, child));
    CHECK_OK(cuGraphAddChildGraphNode(&node, graph, NULL, 0, middle));
    CUgraphExec exec = instantiate(graph);
    run(exec);
    CHECK(first() == 2.0f);
    CHECK_OK(cuGraphCreate(&other, 0));
    CUgraphNode one = addFill(other, NULL, 0x3f800000);
    CUgraph outer = NULL;
    CHECK_OK(cuGraphCreate(&outer, 0));
    CHECK_OK(cuGraphAddChildGraphNode(&inner, outer, NULL, 0, other));
    CHECK_EQUAL(cuGraphExecChildGraphNodeSetParams(exec, node, outer),
                CUDA_ERROR_INVALID_VALUE); /* one node */
    CHECK_OK(cuGraphDestroy(outer));
    addFill(other, one, 0x40400000); /* 3.0f */
    CHECK_OK(cuGraphCreate(&outer, 0));
    CHECK_OK(cuGraphAddChildGraphNode(&inner, outer, NULL, 0, other));
    CHECK_OK(cuGraphExecChildGraphNodeSetParams(exec, node, outer));
    run(exec);
    CHECK(first() == 3.0f);
    CUgraphExec again = instantiate(graph); /* the graph itself is as it was */
    run(again);
    CHECK(first() == 2.0f);
    CHECK_EQUAL(cuGraphExecChildGraphNodeSetParams(exec, inner, other),
                CUDA_ERROR_INVALID_VALUE); /* elsewhere */
    CHECK_OK(cuGraphExecDestroy(exec));
    CHECK_OK(cuGraphExecDestroy(again));
    CHECK_OK(cuGraphDestroy(graph));
    CHECK_OK(cuGraphDestroy(middle));
    CHECK_OK(cuGraphDestroy(child));
    CHECK_OK(cuGraphDestroy(other));
    CHECK_OK(cuGraphDestroy(outer));
}

static void aGraphIsDrawn(void) {
    char path[] = "/tmp/vgpu-dot-XXXXXX";
    char text[4096] = "";
    CUgraph graph = NULL;
    int fd = mkstemp(path);
    CHECK(fd >= 0);
    CHECK_OK(cuGraphCreate(&graph, 0));
    addFill(graph, addFill(graph, NULL, 1), 2);
    CHECK_OK(cuGraphDebugDotPrint(graph, path, 0));
    CHECK(read(fd, text, sizeof text - 1) > 0);
    CHECK(strstr(text, "digraph") == text && strstr(text, "KERNEL vgpu_fill") != NULL);
    CHECK(strstr(text, "\"graph_1_node_0\" -> \"graph_1_node_1\"") != NULL);
    CHECK_EQUAL(cuGraphDebugDotPrint(graph, "/nowhere/graph.dot", 0), CUDA_ERROR_OPERATING_SYSTEM);
    CHECK_EQUAL(cuGraphDebugDotPrint(NULL, path, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(cuGraphDestroy(graph));
    close(fd);
    unlink(path);
}

int main(void) {
    CUcontext context = NULL;
    CHECK_OK(cuInit(0));
    CHECK_OK(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK_OK(cuCtxSetCurrent(context));
    CHECK_OK(cuModuleLoadData(&module, test_ptx));
    CHECK_OK(cuMemAlloc_v2(&memory, N * sizeof(float)));
    CHECK_OK(cuStreamCreate(&stream, 1));
    kernelsTellTheirArguments();
    copiesAndFillsTellTheirPlaces();
    capturedNodesTellTheSame();
    hostFunctionsAndEventsMayChange();
    objectsEndWithTheirLastReference();
    aChildGraphGetsOtherParameters();
    aGraphIsDrawn();
    return check_failures != 0;
}
