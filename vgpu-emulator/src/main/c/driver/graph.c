#include "graph.h"

#include "conditional.h"
#include "graph_memory.h"

#include "timeline.h"

#include <stdlib.h>
#include <string.h>

emu_pool emu_graphs = EMU_POOL(struct CUgraph_st, 1 << 16);
emu_pool emu_nodes_pool = EMU_POOL(struct CUgraphNode_st, 1 << 20);
emu_pool emu_graph_execs = EMU_POOL(struct CUgraphExec_st, 1 << 16);

bool emu_nodes_add(emu_nodes *set, CUgraphNode node) {
    for (size_t i = 0; i < set->count; i++) {
        if (set->items[i] == node) {
            return true;
        }
    }
    CUgraphNode *items = realloc(set->items, (set->count + 1) * sizeof *items);
    if (items == NULL) {
        return false;
    }
    set->items = items;
    set->items[set->count++] = node;
    return true;
}

void emu_nodes_clear(emu_nodes *set) {
    free(set->items);
    set->items = NULL;
    set->count = 0;
}

bool emu_nodes_copy(emu_nodes *set, const emu_nodes *from) {
    emu_nodes_clear(set);
    for (size_t i = 0; i < from->count; i++) {
        if (!emu_nodes_add(set, from->items[i])) {
            return false;
        }
    }
    return true;
}

CUgraph emu_graph_open(void) {
    return emu_pool_take(&emu_graphs);
}

static void close_node(CUgraphNode node) {
    if (node->operation.kind == EMU_CHILD) {
        emu_graph_close(node->operation.child);
    }
    if (node->operation.kind == EMU_CONDITIONAL) {
        emu_conditional_leave(node->operation.conditional.what);
    }
    emu_graph_memory_use(&node->operation, -1);
    emu_nodes_clear(&node->needs);
    free(node->copy);
    free(node->params);
    free(node->attributes);
    emu_pool_give(&emu_nodes_pool, node);
}

void emu_graph_close(CUgraph graph) {
    while (graph->first != NULL) {
        CUgraphNode node = graph->first;
        graph->first = node->next;
        close_node(node);
    }
    while (graph->conditions != NULL) {
        emu_condition *condition = graph->conditions;
        graph->conditions = condition->next;
        condition->graph = NULL;
        emu_condition_leave(condition);
    }
    emu_users_drop(&graph->users);
    emu_pool_give(&emu_graphs, graph);
}

CUgraphNode emu_graph_add(CUgraph graph, const emu_operation *operation, const CUgraphNode *needs,
                          size_t count) {
    CUgraphNode node = emu_pool_take(&emu_nodes_pool);
    if (node == NULL) {
        return NULL;
    }
    node->graph = graph;
    node->operation = *operation;
    for (size_t i = 0; i < count; i++) {
        if (!emu_nodes_add(&node->needs, needs[i])) {
            emu_nodes_clear(&node->needs);
            emu_pool_give(&emu_nodes_pool, node);
            return NULL;
        }
    }
    if (graph->last != NULL) {
        graph->last->next = node;
    } else {
        graph->first = node;
    }
    graph->last = node;
    graph->count++;
    emu_graph_memory_use(operation, 1);
    return node;
}

void emu_nodes_remove(emu_nodes *set, CUgraphNode node) {
    size_t kept = 0;
    for (size_t i = 0; i < set->count; i++) {
        if (set->items[i] != node) {
            set->items[kept++] = set->items[i];
        }
    }
    set->count = kept;
}

void emu_graph_remove(CUgraphNode node) {
    CUgraph graph = node->graph;
    CUgraphNode before = NULL;
    for (CUgraphNode n = graph->first; n != NULL; n = n->next) {
        emu_nodes_remove(&n->needs, node);
        before = n->next == node ? n : before;
    }
    if (before != NULL) {
        before->next = node->next;
    } else {
        graph->first = node->next;
    }
    if (graph->last == node) {
        graph->last = before;
    }
    graph->count--;
    close_node(node);
}

static bool is_ready(CUgraphNode node) {
    for (size_t i = 0; i < node->needs.count; i++) {
        if (node->needs.items[i]->mark == 0) {
            return false;
        }
    }
    return node->mark == 0;
}

/* An executable graph has its own conditional actions, because the graph may change or end. */
static bool own_conditional(emu_operation *operation) {
    if (operation->kind == EMU_CONDITIONAL) {
        operation->conditional.what = emu_conditional_instantiate(operation->conditional.what, 0);
    }
    return operation->kind != EMU_CONDITIONAL || operation->conditional.what != NULL;
}

static bool fill_step(emu_step *step, CUgraphNode node, bool is_spread) {
    step->node = is_spread ? node->source : node;
    step->operation = node->operation;
    step->need_count = node->needs.count;
    step->needs = calloc(node->needs.count + 1, sizeof(size_t));
    if (step->needs == NULL) {
        return false;
    }
    for (size_t i = 0; i < node->needs.count; i++) {
        step->needs[i] = node->needs.items[i]->mark - 1;
    }
    if (!own_conditional(&step->operation)) {
        return false;
    }
    emu_graph_memory_use(&step->operation, 1);
    return true;
}

static void free_steps(emu_step *steps, size_t count) {
    for (size_t i = 0; steps != NULL && i < count; i++) {
        if (steps[i].needs != NULL && steps[i].operation.kind == EMU_CONDITIONAL) {
            emu_conditional_leave(steps[i].operation.conditional.what);
        } else if (steps[i].needs != NULL) {
            emu_graph_memory_use(&steps[i].operation, -1);
        }
        free(steps[i].needs);
    }
    free(steps);
}

/* Sorts the nodes topologically. Nodes are usually added in order, so a second pass is rare. */
static CUresult order_nodes(CUgraph graph, bool is_spread, emu_step **result) {
    emu_step *steps = calloc(graph->count + 1, sizeof *steps);
    if (steps == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    for (CUgraphNode node = graph->first; node != NULL; node = node->next) {
        node->mark = 0;
    }
    size_t done = 0;
    for (bool progress = true; progress && done < graph->count;) {
        progress = false;
        for (CUgraphNode node = graph->first; node != NULL; node = node->next) {
            if (is_ready(node)) {
                node->mark = ++done;
                progress = true;
                if (!fill_step(&steps[done - 1], node, is_spread)) {
                    free_steps(steps, graph->count);
                    return CUDA_ERROR_OUT_OF_MEMORY;
                }
            }
        }
    }
    if (done < graph->count) { /* the graph has a cycle */
        free_steps(steps, graph->count);
        return CUDA_ERROR_INVALID_VALUE;
    }
    *result = steps;
    return CUDA_SUCCESS;
}

static CUresult order(CUgraph graph, size_t *count, emu_step **result) {
    *count = graph->count;
    if (!emu_graph_has_children(graph)) {
        return order_nodes(graph, false, result);
    }
    CUgraph spread = emu_graph_spread(graph);
    if (spread == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *count = spread->count;
    CUresult ordered = order_nodes(spread, true, result);
    emu_graph_close(spread);
    return ordered;
}

void emu_graph_exec_time(CUgraphExec exec) {
    exec->is_plain = true;
    exec->duration_ns = 0;
    for (size_t i = 0; i < exec->count; i++) {
        emu_step *step = &exec->steps[i];
        uint64_t start = 0;
        for (size_t j = 0; j < step->need_count; j++) {
            uint64_t end = exec->steps[step->needs[j]].end_ns;
            start = end > start ? end : start;
        }
        step->end_ns = start + (step->is_disabled ? 0 : step->operation.duration_ns);
        exec->duration_ns = step->end_ns > exec->duration_ns ? step->end_ns : exec->duration_ns;
        emu_operation_kind kind = step->operation.kind;
        exec->is_plain = exec->is_plain && (kind == EMU_KERNEL || kind == EMU_COPY ||
                                            kind == EMU_FILL || kind == EMU_EMPTY);
    }
}

CUresult emu_graph_instantiate(CUgraph graph, uint64_t flags, CUgraphExec *result) {
    emu_step *steps = NULL;
    size_t count = 0;
    if (!emu_graph_has_valid_bodies(graph)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUresult ordered = order(graph, &count, &steps);
    if (ordered != CUDA_SUCCESS) {
        return ordered;
    }
    CUgraphExec exec = emu_pool_take(&emu_graph_execs);
    if (exec != NULL && !emu_users_copy(&exec->users, graph->users)) {
        emu_pool_give(&emu_graph_execs, exec);
        exec = NULL;
    }
    if (exec == NULL) {
        free_steps(steps, count);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    pthread_mutex_init(&exec->lock, NULL);
    exec->flags = flags;
    exec->count = count;
    exec->steps = steps;
    emu_graph_exec_time(exec);
    *result = exec;
    return CUDA_SUCCESS;
}

void emu_graph_exec_close(CUgraphExec exec) {
    free_steps(exec->steps, exec->count);
    emu_users_drop(&exec->users);
    emu_pool_give(&emu_graph_execs, exec);
}

CUresult emu_graph_exec_update(CUgraphExec exec, CUgraph graph) {
    emu_step *steps = NULL;
    size_t count = 0;
    CUresult result = order(graph, &count, &steps);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    bool same = exec->count == count;
    for (size_t i = 0; same && i < exec->count; i++) {
        same =
            exec->steps[i].operation.kind == steps[i].operation.kind &&
            exec->steps[i].need_count == steps[i].need_count &&
            memcmp(exec->steps[i].needs, steps[i].needs, steps[i].need_count * sizeof(size_t)) == 0;
    }
    if (!same) {
        free_steps(steps, count);
        return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    }
    pthread_mutex_lock(&exec->lock);
    free_steps(exec->steps, exec->count);
    exec->steps = steps;
    emu_graph_exec_time(exec);
    pthread_mutex_unlock(&exec->lock);
    return CUDA_SUCCESS;
}

void emu_graph_run_whole(CUgraphExec exec, CUstream stream) {
    for (size_t i = 0; i < exec->count; i++) {
        if (!exec->steps[i].is_disabled) {
            emu_operation operation = exec->steps[i].operation;
            operation.duration_ns = 0;
            emu_operation_run(stream, &operation);
        }
    }
    pthread_mutex_lock(&stream->context->lock);
    emu_timeline_submit(stream->context, stream, 0, exec->duration_ns);
    pthread_mutex_unlock(&stream->context->lock);
}

/* Gives the conditions their initial values, in the order of the stream. */
static CUresult launch_resets(CUgraphExec exec, CUstream stream) {
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; result == CUDA_SUCCESS && i < exec->count; i++) {
        if (exec->steps[i].operation.kind == EMU_CONDITIONAL) {
            emu_operation operation = exec->steps[i].operation;
            operation.conditional.resets = true;
            result = emu_enqueue(stream, &operation);
        }
    }
    return result;
}

CUresult emu_graph_launch(CUgraphExec exec, CUstream stream) {
    pthread_mutex_lock(&exec->lock);
    CUresult result = exec->is_plain ? CUDA_SUCCESS : emu_graph_memory_prepare(exec);
    result = result == CUDA_SUCCESS && !exec->is_plain ? launch_resets(exec, stream) : result;
    if (result != CUDA_SUCCESS) {
        pthread_mutex_unlock(&exec->lock);
        return result;
    }
    if (exec->is_plain && emu_stream_is_plain(stream) && !emu_stream_must_queue(stream)) {
        emu_graph_run_whole(exec, stream);
    } else { /* step by step: some steps wait for the host, or become nodes of another graph */
        for (size_t i = 0; result == CUDA_SUCCESS && i < exec->count; i++) {
            result = exec->steps[i].is_disabled ? CUDA_SUCCESS
                                                : emu_enqueue(stream, &exec->steps[i].operation);
        }
    }
    pthread_mutex_unlock(&exec->lock);
    return result;
}
