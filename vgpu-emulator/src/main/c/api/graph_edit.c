/* Child graphs, event nodes, and changing the shape of a graph. */
#include "driver/conditional.h"
#include "driver/driver.h"
#include "driver/graph.h"
#include "driver/host_calls.h"

static CUresult add(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs, size_t count,
                    const emu_operation *operation) {
    EMU_REQUIRE(node != NULL && emu_is_graph(graph) && (count == 0 || needs != NULL));
    for (size_t i = 0; i < count; i++) {
        EMU_REQUIRE(emu_is_node(needs[i]) && needs[i]->graph == graph);
    }
    *node = emu_graph_add(graph, operation, needs, count);
    return *node == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

EMU_API CUresult cuGraphAddChildGraphNode(CUgraphNode *node, CUgraph graph,
                                          const CUgraphNode *needs, size_t count, CUgraph child) {
    EMU_INITIALIZED();
    EMU_REQUIRE(emu_is_graph(child) && child != graph);
    if (emu_graph_has_conditionals(child)) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    emu_operation operation = {.kind = EMU_CHILD, .child = emu_graph_clone(child)};
    if (operation.child == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUresult result = add(node, graph, needs, count, &operation);
    if (result != CUDA_SUCCESS) {
        emu_graph_close(operation.child);
    }
    return result;
}

EMU_API CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph *graph) {
    EMU_INITIALIZED();
    EMU_REQUIRE(emu_is_node(node) && graph != NULL && node->operation.kind == EMU_CHILD);
    *graph = node->operation.child;
    return CUDA_SUCCESS;
}

static CUresult add_event(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs, size_t count,
                          CUevent event, emu_operation_kind kind) {
    EMU_INITIALIZED();
    if (!emu_event_known(event)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    EMU_REQUIRE(event->shared ==
                NULL); /* an event shared between processes cannot be part of a graph */
    emu_operation operation = {.kind = kind,
                               .event = {.event = event, .generation = event->object.generation}};
    return add(node, graph, needs, count, &operation);
}

EMU_API CUresult cuGraphAddEventRecordNode(CUgraphNode *node, CUgraph graph,
                                           const CUgraphNode *needs, size_t count, CUevent event) {
    return add_event(node, graph, needs, count, event, EMU_RECORD);
}

EMU_API CUresult cuGraphAddEventWaitNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs,
                                         size_t count, CUevent event) {
    return add_event(node, graph, needs, count, event, EMU_WAIT);
}

EMU_API CUresult cuGraphClone(CUgraph *clone, CUgraph graph) {
    EMU_INITIALIZED();
    EMU_REQUIRE(clone != NULL && emu_is_graph(graph));
    if (emu_graph_has_conditionals(graph)) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    *clone = emu_graph_clone(graph);
    return *clone == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

EMU_API CUresult cuGraphNodeFindInClone(CUgraphNode *node, CUgraphNode original, CUgraph clone) {
    EMU_INITIALIZED();
    EMU_REQUIRE(node != NULL && original != NULL && emu_is_graph(clone));
    for (CUgraphNode n = clone->first; n != NULL; n = n->next) {
        if (n->source == original) {
            *node = n;
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_VALUE;
}

EMU_API CUresult cuGraphDestroyNode(CUgraphNode node) {
    EMU_INITIALIZED();
    EMU_REQUIRE(emu_is_node(node));
    emu_graph_remove(node);
    return CUDA_SUCCESS;
}

EMU_API CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode *from,
                                           const CUgraphNode *to, size_t count) {
    EMU_INITIALIZED();
    EMU_REQUIRE(emu_is_graph(graph) && (count == 0 || (from != NULL && to != NULL)));
    for (size_t i = 0; i < count; i++) {
        EMU_REQUIRE(emu_is_node(from[i]) && emu_is_node(to[i]) && from[i]->graph == graph &&
                    to[i]->graph == graph);
        emu_nodes_remove(&to[i]->needs, from[i]);
    }
    return CUDA_SUCCESS;
}

static bool needs_node(CUgraphNode node, CUgraphNode needed) {
    for (size_t i = 0; i < node->needs.count; i++) {
        if (node->needs.items[i] == needed) {
            return true;
        }
    }
    return false;
}

EMU_API CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode *dependents,
                                              size_t *count) {
    EMU_INITIALIZED();
    EMU_REQUIRE(emu_is_node(node) && count != NULL);
    size_t found = 0;
    for (CUgraphNode n = node->graph->first; n != NULL; n = n->next) {
        if (!needs_node(n, node)) {
            continue;
        }
        if (dependents != NULL && found < *count) {
            dependents[found] = n;
        }
        found++;
    }
    for (size_t i = found; dependents != NULL && i < *count; i++) {
        dependents[i] = NULL;
    }
    *count = dependents != NULL && found > *count ? *count : found;
    return CUDA_SUCCESS;
}
