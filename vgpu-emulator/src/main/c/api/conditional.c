/* Conditional nodes of graphs. */
#include "driver/conditional.h"

#include "driver/driver.h"

enum { ASSIGN_DEFAULT = 1 };

EMU_API CUresult cuGraphConditionalHandleCreate(uint64_t *handle, CUgraph graph, CUcontext context,
                                                unsigned int initial, unsigned int flags) {
    EMU_INITIALIZED();
    EMU_REQUIRE(handle != NULL && emu_is_graph(graph) && emu_pool_has(&emu_contexts, context) &&
                flags <= ASSIGN_DEFAULT);
    emu_condition *condition = emu_pool_take(&emu_conditions);
    if (condition == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    condition->graph = graph;
    condition->context = context;
    condition->users = 1;
    condition->has_initial = flags == ASSIGN_DEFAULT;
    condition->initial = initial;
    condition->next = graph->conditions;
    graph->conditions = condition;
    *handle = (uint64_t)(uintptr_t)condition;
    return CUDA_SUCCESS;
}

static bool is_count(int type, unsigned int count) {
    switch (type) {
    case EMU_IF:
        return count == 1 || count == 2;
    case EMU_WHILE:
        return count == 1;
    case EMU_SWITCH:
        return count >= 1;
    default:
        return false;
    }
}

/* Whether a graph is another one, or lies in a body of it. */
static bool is_within(CUgraph graph, CUgraph other) {
    while (graph != NULL && graph != other) {
        graph = graph->outer;
    }
    return graph == other;
}

CUresult emu_graph_add_conditional(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs,
                                   size_t count, CUDA_CONDITIONAL_NODE_PARAMS *params) {
    EMU_REQUIRE(node != NULL && emu_is_graph(graph) && (count == 0 || needs != NULL));
    for (size_t i = 0; i < count; i++) {
        EMU_REQUIRE(emu_is_node(needs[i]) && needs[i]->graph == graph);
    }
    emu_condition *condition = emu_condition_of(params->handle);
    EMU_REQUIRE(condition != NULL && !condition->has_node && is_within(graph, condition->graph) &&
                condition->context == params->context && is_count(params->type, params->size));
    emu_conditional *what = emu_conditional_open(condition, params->type, params->size, graph);
    if (what == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    emu_operation operation = {.kind = EMU_CONDITIONAL, .conditional = {.what = what}};
    *node = emu_graph_add(graph, &operation, needs, count);
    if (*node == NULL) {
        emu_conditional_leave(what);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    condition->has_node = true;
    params->bodies = what->bodies;
    return CUDA_SUCCESS;
}
