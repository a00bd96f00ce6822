/* Building graphs explicitly, and launching them. */
#include "driver/driver.h"
#include "driver/graph.h"
#include "driver/graph_memory.h"
#include "driver/module.h"
#include "launch.h"
#include "transfer.h"

#include <string.h>

enum { UPLOAD = 2 }; /* CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD */

EMU_API CUresult cuGraphCreate(CUgraph *graph, unsigned int flags) {
    EMU_INITIALIZED();
    EMU_REQUIRE(graph != NULL && flags == 0);
    *graph = emu_graph_open();
    return *graph == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

EMU_API CUresult cuGraphDestroy(CUgraph graph) {
    EMU_INITIALIZED();
    EMU_REQUIRE(emu_is_graph(graph));
    emu_graph_close(graph);
    return CUDA_SUCCESS;
}

static CUresult add(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs, size_t count,
                    const emu_operation *operation) {
    EMU_REQUIRE(node != NULL && emu_is_graph(graph) && (count == 0 || needs != NULL));
    for (size_t i = 0; i < count; i++) {
        EMU_REQUIRE(emu_is_node(needs[i]) && needs[i]->graph == graph);
    }
    *node = emu_graph_add(graph, operation, needs, count);
    return *node == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult emu_graph_kernel(const CUDA_KERNEL_NODE_PARAMS_v1 *params, CUfunction function,
                          emu_operation *operation) {
    emu_launch launch = {function,
                         {params->grid_x, params->grid_y, params->grid_z},
                         {params->block_x, params->block_y, params->block_z},
                         params->shared_bytes,
                         params->params,
                         params->extra,
                         0,
                         true};
    memset(operation, 0, sizeof *operation);
    return emu_launch_prepare(&launch, operation);
}

EMU_API CUresult cuGraphAddKernelNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs,
                                      size_t count, const CUDA_KERNEL_NODE_PARAMS_v1 *params) {
    EMU_INITIALIZED();
    EMU_REQUIRE(params != NULL);
    emu_operation operation;
    CUresult result = emu_graph_kernel(params, params->function, &operation);
    return result == CUDA_SUCCESS ? add(node, graph, needs, count, &operation) : result;
}

EMU_API CUresult cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs,
                                         size_t count, const CUDA_KERNEL_NODE_PARAMS_v2 *params) {
    EMU_INITIALIZED();
    EMU_REQUIRE(params != NULL);
    emu_operation operation;
    CUfunction function = params->v1.function != NULL ? params->v1.function : params->kernel;
    CUresult result = emu_graph_kernel(&params->v1, function, &operation);
    return result == CUDA_SUCCESS ? add(node, graph, needs, count, &operation) : result;
}

EMU_API CUresult cuGraphAddMemcpyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs,
                                      size_t count, const CUDA_MEMCPY3D *copy, CUcontext context) {
    EMU_INITIALIZED();
    (void)context;
    EMU_REQUIRE(copy != NULL);
    emu_operation operation;
    CUresult result = emu_box_of(copy, &operation);
    if (result == CUDA_SUCCESS) {
        result = add(node, graph, needs, count, &operation);
    }
    if (result == CUDA_SUCCESS) {
        emu_graph_node_describe(*node, copy);
    }
    return result;
}

EMU_API CUresult cuGraphAddMemsetNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs,
                                      size_t count, const CUDA_MEMSET_NODE_PARAMS *params,
                                      CUcontext context) {
    EMU_INITIALIZED();
    (void)context;
    EMU_REQUIRE(params != NULL);
    emu_operation operation;
    CUresult result = emu_fill_of(params->destination, params->pitch, params->value,
                                  params->element_size, params->width, params->height, &operation);
    return result == CUDA_SUCCESS ? add(node, graph, needs, count, &operation) : result;
}

EMU_API CUresult cuGraphAddHostNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs,
                                    size_t count, const CUDA_HOST_NODE_PARAMS *params) {
    EMU_INITIALIZED();
    EMU_REQUIRE(params != NULL && params->function != NULL);
    emu_operation operation = {.kind = EMU_HOST,
                               .host = {.function = params->function, .data = params->data}};
    return add(node, graph, needs, count, &operation);
}

EMU_API CUresult cuGraphAddEmptyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs,
                                     size_t count) {
    EMU_INITIALIZED();
    emu_operation operation = {.kind = EMU_EMPTY};
    return add(node, graph, needs, count, &operation);
}

EMU_API CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from,
                                        const CUgraphNode *to, size_t count) {
    EMU_INITIALIZED();
    EMU_REQUIRE(emu_is_graph(graph) && (count == 0 || (from != NULL && to != NULL)));
    for (size_t i = 0; i < count; i++) {
        EMU_REQUIRE(emu_is_node(from[i]) && emu_is_node(to[i]) && from[i]->graph == graph &&
                    to[i]->graph == graph);
        if (!emu_nodes_add(&to[i]->needs, from[i])) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    return CUDA_SUCCESS;
}

EMU_API CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode *from,
                                           const CUgraphNode *to, const CUgraphEdgeData *edges,
                                           size_t count) {
    (void)edges;
    return cuGraphAddDependencies(graph, from, to, count);
}

static CUresult list(CUgraph graph, CUgraphNode *nodes, size_t *count, bool roots) {
    EMU_INITIALIZED();
    EMU_REQUIRE(emu_is_graph(graph) && count != NULL);
    size_t found = 0;
    for (CUgraphNode node = graph->first; node != NULL; node = node->next) {
        if (roots && node->needs.count > 0) {
            continue;
        }
        if (nodes != NULL && found < *count) {
            nodes[found] = node;
        }
        found++;
    }
    for (size_t i = found; nodes != NULL && i < *count; i++) {
        nodes[i] = NULL;
    }
    *count = nodes != NULL && found > *count ? *count : found;
    return CUDA_SUCCESS;
}

EMU_API CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count) {
    return list(graph, nodes, count, false);
}

EMU_API CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode *nodes, size_t *count) {
    return list(graph, nodes, count, true);
}

EMU_API CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count) {
    EMU_INITIALIZED();
    EMU_REQUIRE(emu_is_graph(graph) && count != NULL && (from == NULL) == (to == NULL));
    size_t found = 0;
    for (CUgraphNode node = graph->first; node != NULL; node = node->next) {
        for (size_t i = 0; i < node->needs.count; i++) {
            if (from != NULL && found < *count) {
                from[found] = node->needs.items[i];
                to[found] = node;
            }
            found++;
        }
    }
    *count = from != NULL && found > *count ? *count : found;
    return CUDA_SUCCESS;
}

EMU_API CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode *from, CUgraphNode *to,
                                    CUgraphEdgeData *edges, size_t *count) {
    CUresult result = cuGraphGetEdges(graph, from, to, count);
    if (result == CUDA_SUCCESS && edges != NULL) {
        memset(edges, 0, *count * sizeof *edges);
    }
    return result;
}

EMU_API CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *needs, size_t *count) {
    EMU_INITIALIZED();
    EMU_REQUIRE(emu_is_node(node) && count != NULL);
    for (size_t i = 0; needs != NULL && i < *count; i++) {
        needs[i] = i < node->needs.count ? node->needs.items[i] : NULL;
    }
    *count = needs != NULL && *count < node->needs.count ? *count : node->needs.count;
    return CUDA_SUCCESS;
}

EMU_API CUresult cuGraphNodeGetType(CUgraphNode node, int *type) {
    EMU_INITIALIZED();
    EMU_REQUIRE(emu_is_node(node) && type != NULL);
    static const int types[] = {
        [EMU_KERNEL] = 0,      [EMU_COPY] = 1,  [EMU_FILL] = 2,         [EMU_HOST] = 3,
        [EMU_EMPTY] = 5,       [EMU_WAIT] = 6,  [EMU_RECORD] = 7,       [EMU_FREE] = 11,
        [EMU_ALLOC] = 10,      [EMU_CHILD] = 4, [EMU_WRITE_VALUE] = 12, [EMU_WAIT_VALUE] = 12,
        [EMU_CONDITIONAL] = 13};
    *type = types[node->operation.kind];
    return CUDA_SUCCESS;
}

EMU_API CUresult cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1 *params) {
    EMU_INITIALIZED();
    EMU_REQUIRE(emu_is_node(node) && params != NULL && node->operation.kind == EMU_KERNEL);
    const emu_operation *o = &node->operation;
    *params = (CUDA_KERNEL_NODE_PARAMS_v1){.function = o->kernel.function,
                                           .grid_x = o->kernel.grid[0],
                                           .grid_y = o->kernel.grid[1],
                                           .grid_z = o->kernel.grid[2],
                                           .block_x = o->kernel.block[0],
                                           .block_y = o->kernel.block[1],
                                           .block_z = o->kernel.block[2],
                                           .shared_bytes = o->kernel.shared_bytes,
                                           .params = emu_graph_node_params(node)};
    return CUDA_SUCCESS;
}

EMU_API CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node,
                                               CUDA_KERNEL_NODE_PARAMS_v2 *params) {
    EMU_REQUIRE(params != NULL);
    params->kernel = NULL;
    params->context = NULL;
    return cuGraphKernelNodeGetParams(node, &params->v1);
}

EMU_API CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph,
                                             unsigned long long flags) {
    EMU_INITIALIZED();
    EMU_REQUIRE(exec != NULL && emu_is_graph(graph));
    return emu_graph_instantiate(graph, flags, exec);
}

EMU_API CUresult cuGraphInstantiate(CUgraphExec *exec, CUgraph graph, CUgraphNode *node, char *log,
                                    size_t size) {
    if (node != NULL) {
        *node = NULL;
    }
    if (log != NULL && size > 0) {
        log[0] = '\0';
    }
    return cuGraphInstantiateWithFlags(exec, graph, 0);
}

EMU_API CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *node,
                                       char *log, size_t size)
    __attribute__((alias("cuGraphInstantiate")));

static CUresult upload(CUgraphExec exec, CUstream handle, bool per_thread) {
    EMU_CONTEXT(context);
    EMU_REQUIRE(emu_is_exec(exec));
    CUstream stream = NULL;
    CUresult result = emu_stream_of(context, handle, per_thread, &stream);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    pthread_mutex_lock(&exec->lock);
    result = emu_graph_memory_upload(exec);
    pthread_mutex_unlock(&exec->lock);
    return result;
}

static CUresult instantiate(CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params,
                            bool per_thread) {
    EMU_REQUIRE(exec != NULL && params != NULL);
    CUgraphExec made = NULL;
    CUresult result = cuGraphInstantiateWithFlags(&made, graph, params->flags & ~(uint64_t)UPLOAD);
    if (result == CUDA_SUCCESS && (params->flags & UPLOAD) != 0) {
        result = upload(made, params->upload_stream, per_thread);
        if (result != CUDA_SUCCESS) {
            emu_graph_exec_close(made);
        }
    }
    params->error_node = NULL;
    params->result = result == CUDA_SUCCESS ? 0 : 1;
    *exec = result == CUDA_SUCCESS ? made : *exec;
    return result;
}

EMU_API CUresult cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph,
                                              CUDA_GRAPH_INSTANTIATE_PARAMS *params) {
    return instantiate(exec, graph, params, false);
}

EMU_API CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec *exec, CUgraph graph,
                                                   CUDA_GRAPH_INSTANTIATE_PARAMS *params) {
    return instantiate(exec, graph, params, true);
}

EMU_API CUresult cuGraphExecDestroy(CUgraphExec exec) {
    EMU_INITIALIZED();
    EMU_REQUIRE(emu_is_exec(exec));
    emu_graph_exec_close(exec);
    return CUDA_SUCCESS;
}

EMU_API CUresult cuGraphExecGetFlags(CUgraphExec exec, uint64_t *flags) {
    EMU_INITIALIZED();
    EMU_REQUIRE(emu_is_exec(exec) && flags != NULL);
    *flags = exec->flags;
    return CUDA_SUCCESS;
}

EMU_API CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode *node,
                                   int *status) {
    EMU_INITIALIZED();
    EMU_REQUIRE(emu_is_exec(exec) && emu_is_graph(graph));
    CUresult result = emu_graph_exec_update(exec, graph);
    if (node != NULL) {
        *node = NULL;
    }
    if (status != NULL) {
        *status = result == CUDA_SUCCESS ? 0 : 2; /* the topology changed */
    }
    return result;
}

EMU_API CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph,
                                      CUgraphExecUpdateResultInfo *info) {
    EMU_REQUIRE(info != NULL);
    info->error_from_node = NULL;
    return cuGraphExecUpdate(exec, graph, &info->error_node, &info->result);
}

static CUresult launch(CUgraphExec exec, CUstream handle, bool per_thread) {
    EMU_CONTEXT(context);
    EMU_REQUIRE(emu_is_exec(exec));
    CUstream stream = NULL;
    CUresult result = emu_stream_of(context, handle, per_thread, &stream);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    emu_cost(emu_driver.state.times.launch_cost_ns);
    return emu_graph_launch(exec, stream);
}

EMU_API CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
    return launch(exec, stream, false);
}

EMU_API CUresult cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream) {
    return launch(exec, stream, true);
}

EMU_API CUresult cuGraphUpload(CUgraphExec exec, CUstream stream) {
    return upload(exec, stream, false);
}

EMU_API CUresult cuGraphUpload_ptsz(CUgraphExec exec, CUstream stream) {
    return upload(exec, stream, true);
}
