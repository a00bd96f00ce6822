/*
 * The generic forms, which take any kind of node, and the forms that take edges. Edges carry no data here: each is a
 * plain dependency.
 */
#include "driver/driver.h"
#include "driver/graph.h"

#include <string.h>

#define FUNCTION(name, ...) extern CUresult name(__VA_ARGS__)
#define PLACE CUgraphNode *node, CUgraph graph, const CUgraphNode *needs, size_t count
FUNCTION(cuGraphAddKernelNode_v2, PLACE, const CUDA_KERNEL_NODE_PARAMS_v2 *params);
FUNCTION(cuGraphAddMemcpyNode, PLACE, const CUDA_MEMCPY3D *copy, CUcontext context);
FUNCTION(cuGraphAddMemsetNode, PLACE, const CUDA_MEMSET_NODE_PARAMS *params, CUcontext context);
FUNCTION(cuGraphAddHostNode, PLACE, const CUDA_HOST_NODE_PARAMS *params);
FUNCTION(cuGraphAddChildGraphNode, PLACE, CUgraph child);
FUNCTION(cuGraphAddEmptyNode, PLACE);
FUNCTION(cuGraphAddEventRecordNode, PLACE, CUevent event);
FUNCTION(cuGraphAddEventWaitNode, PLACE, CUevent event);
FUNCTION(cuGraphKernelNodeSetParams_v2, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2 *params);
FUNCTION(cuGraphMemcpyNodeSetParams, CUgraphNode node, const CUDA_MEMCPY3D *copy);
FUNCTION(cuGraphMemsetNodeSetParams, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *params);
FUNCTION(cuGraphHostNodeSetParams, CUgraphNode node, const CUDA_HOST_NODE_PARAMS *params);
FUNCTION(cuGraphEventRecordNodeSetEvent, CUgraphNode node, CUevent event);
FUNCTION(cuGraphEventWaitNodeSetEvent, CUgraphNode node, CUevent event);
#define STEP CUgraphExec exec, CUgraphNode node
FUNCTION(cuGraphExecKernelNodeSetParams_v2, STEP, const CUDA_KERNEL_NODE_PARAMS_v2 *params);
FUNCTION(cuGraphExecMemcpyNodeSetParams, STEP, const CUDA_MEMCPY3D *copy, CUcontext context);
FUNCTION(cuGraphExecMemsetNodeSetParams, STEP, const CUDA_MEMSET_NODE_PARAMS *params,
         CUcontext context);
FUNCTION(cuGraphExecHostNodeSetParams, STEP, const CUDA_HOST_NODE_PARAMS *params);
FUNCTION(cuGraphExecChildGraphNodeSetParams, STEP, CUgraph child);
FUNCTION(cuGraphExecEventRecordNodeSetEvent, STEP, CUevent event);
FUNCTION(cuGraphExecEventWaitNodeSetEvent, STEP, CUevent event);
CUresult cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs,
                                size_t count, CUDA_MEM_ALLOC_NODE_PARAMS *params);
FUNCTION(cuGraphNodeGetDependencies, CUgraphNode node, CUgraphNode *needs, size_t *count);
FUNCTION(cuGraphNodeGetDependentNodes, CUgraphNode node, CUgraphNode *dependents, size_t *count);
FUNCTION(cuGraphRemoveDependencies, CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
         size_t count);

enum {
    KERNEL,
    COPY,
    FILL,
    HOST,
    CHILD,
    EMPTY,
    WAIT,
    RECORD,
    ALLOCATION = 10,
    CONDITIONAL = 13
}; /* CUgraphNodeType */

EMU_API CUresult cuGraphAddNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs,
                                size_t count, CUgraphNodeParams *params) {
    EMU_INITIALIZED();
    EMU_REQUIRE(params != NULL);
    switch (params->type) {
    case KERNEL:
        return cuGraphAddKernelNode_v2(node, graph, needs, count, &params->kernel);
    case COPY:
        return cuGraphAddMemcpyNode(node, graph, needs, count, &params->copy.copy, NULL);
    case FILL:
        return cuGraphAddMemsetNode(node, graph, needs, count, &params->fill, NULL);
    case HOST:
        return cuGraphAddHostNode(node, graph, needs, count, &params->host);
    case CHILD:
        return cuGraphAddChildGraphNode(node, graph, needs, count, params->graph);
    case EMPTY:
        return cuGraphAddEmptyNode(node, graph, needs, count);
    case WAIT:
        return cuGraphAddEventWaitNode(node, graph, needs, count, params->event);
    case RECORD:
        return cuGraphAddEventRecordNode(node, graph, needs, count, params->event);
    case ALLOCATION:
        return cuGraphAddMemAllocNode(node, graph, needs, count, &params->allocation);
    case CONDITIONAL:
        return emu_graph_add_conditional(node, graph, needs, count, &params->conditional);
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

EMU_API CUresult cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs,
                                   const CUgraphEdgeData *edges, size_t count,
                                   CUgraphNodeParams *params) {
    (void)edges;
    return cuGraphAddNode(node, graph, needs, count, params);
}

EMU_API CUresult cuGraphAddNode_v3(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs,
                                   const CUgraphEdgeData *edges, size_t count,
                                   CUgraphNodeParams *params) {
    return cuGraphAddNode_v2(node, graph, needs, edges, count, params);
}

EMU_API CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams *params) {
    EMU_INITIALIZED();
    EMU_REQUIRE(params != NULL);
    switch (params->type) {
    case KERNEL:
        return cuGraphKernelNodeSetParams_v2(node, &params->kernel);
    case COPY:
        return cuGraphMemcpyNodeSetParams(node, &params->copy.copy);
    case FILL:
        return cuGraphMemsetNodeSetParams(node, &params->fill);
    case HOST:
        return cuGraphHostNodeSetParams(node, &params->host);
    case WAIT:
        return cuGraphEventWaitNodeSetEvent(node, params->event);
    case RECORD:
        return cuGraphEventRecordNodeSetEvent(node, params->event);
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

EMU_API CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                          CUgraphNodeParams *params) {
    EMU_INITIALIZED();
    EMU_REQUIRE(params != NULL);
    switch (params->type) {
    case KERNEL:
        return cuGraphExecKernelNodeSetParams_v2(exec, node, &params->kernel);
    case COPY:
        return cuGraphExecMemcpyNodeSetParams(exec, node, &params->copy.copy, NULL);
    case FILL:
        return cuGraphExecMemsetNodeSetParams(exec, node, &params->fill, NULL);
    case HOST:
        return cuGraphExecHostNodeSetParams(exec, node, &params->host);
    case CHILD:
        return cuGraphExecChildGraphNodeSetParams(exec, node, params->graph);
    case WAIT:
        return cuGraphExecEventWaitNodeSetEvent(exec, node, params->event);
    case RECORD:
        return cuGraphExecEventRecordNodeSetEvent(exec, node, params->event);
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

static CUresult plain_edges(CUresult result, CUgraphEdgeData *edges, const size_t *count) {
    if (result == CUDA_SUCCESS && edges != NULL) {
        memset(edges, 0, *count * sizeof *edges);
    }
    return result;
}

EMU_API CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode *needs,
                                               CUgraphEdgeData *edges, size_t *count) {
    return plain_edges(cuGraphNodeGetDependencies(node, needs, count), edges, count);
}

EMU_API CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode *dependents,
                                                 CUgraphEdgeData *edges, size_t *count) {
    return plain_edges(cuGraphNodeGetDependentNodes(node, dependents, count), edges, count);
}

EMU_API CUresult cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode *from,
                                              const CUgraphNode *to, const CUgraphEdgeData *edges,
                                              size_t count) {
    (void)edges;
    return cuGraphRemoveDependencies(graph, from, to, count);
}
