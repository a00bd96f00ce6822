/* Changing the child graphs of executable graphs, and writing graphs for people to look at. */
#include "driver/driver.h"
#include "driver/graph.h"
#include "driver/module.h"

#include <stdio.h>

/* Whether two graphs have the same nodes and edges, in the same order. Numbers the nodes of both. */
static bool is_alike(CUgraph one, CUgraph other) {
    size_t position = 0;
    CUgraphNode b = other->first;
    for (CUgraphNode a = one->first; a != NULL; a = a->next, b = b->next) {
        if (b == NULL || a->operation.kind != b->operation.kind ||
            a->needs.count != b->needs.count) {
            return false;
        }
        a->mark = b->mark = ++position;
    }
    b = other->first;
    for (CUgraphNode a = one->first; a != NULL; a = a->next, b = b->next) {
        for (size_t i = 0; i < a->needs.count; i++) {
            if (a->needs.items[i]->mark != b->needs.items[i]->mark) {
                return false;
            }
        }
    }
    b = other->first;
    for (CUgraphNode a = one->first; a != NULL; a = a->next, b = b->next) {
        emu_operation_kind kind = a->operation.kind;
        if (kind == EMU_ALLOC || kind == EMU_FREE || kind == EMU_CONDITIONAL ||
            (kind == EMU_CHILD && !is_alike(a->operation.child, b->operation.child))) {
            return false;
        }
    }
    return b == NULL;
}

/* Gives the steps that were made from a child graph's nodes the operations of another graph. */
static void take_operations(CUgraphExec exec, CUgraph child, CUgraph from) {
    CUgraphNode other = from->first;
    for (CUgraphNode node = child->first; node != NULL; node = node->next, other = other->next) {
        if (node->operation.kind == EMU_CHILD) {
            take_operations(exec, node->operation.child, other->operation.child);
            continue;
        }
        for (size_t i = 0; i < exec->count; i++) {
            if (exec->steps[i].node == node) {
                exec->steps[i].operation = other->operation;
            }
        }
    }
}

static bool has_step(CUgraphExec exec, CUgraphNode node) {
    for (size_t i = 0; i < exec->count; i++) {
        if (exec->steps[i].node == node) {
            return true;
        }
    }
    return false;
}

EMU_API CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                    CUgraph child) {
    EMU_INITIALIZED();
    EMU_REQUIRE(emu_is_exec(exec) && emu_is_node(node) && node->operation.kind == EMU_CHILD &&
                emu_is_graph(child) && is_alike(node->operation.child, child));
    pthread_mutex_lock(&exec->lock);
    bool is_there = has_step(exec, node);
    if (is_there) {
        take_operations(exec, node->operation.child, child);
        emu_graph_exec_time(exec);
    }
    pthread_mutex_unlock(&exec->lock);
    return is_there ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static const char *name_of(const emu_operation *operation) {
    static const char *const names[] = {[EMU_KERNEL] = "KERNEL",
                                        [EMU_COPY] = "MEMCPY",
                                        [EMU_FILL] = "MEMSET",
                                        [EMU_RECORD] = "EVENT_RECORD",
                                        [EMU_WAIT] = "EVENT_WAIT",
                                        [EMU_HOST] = "HOST",
                                        [EMU_FREE] = "MEM_FREE",
                                        [EMU_ALLOC] = "MEM_ALLOC",
                                        [EMU_EMPTY] = "EMPTY",
                                        [EMU_WRITE_VALUE] = "BATCH_MEM_OP",
                                        [EMU_CHILD] = "CHILD_GRAPH",
                                        [EMU_WAIT_VALUE] = "BATCH_MEM_OP",
                                        [EMU_CONDITIONAL] = "CONDITIONAL"};
    return names[operation->kind];
}

/* Node names begin with their graph's, so that they are unique in the file. */
static void print_graph(FILE *file, CUgraph graph, int id, int *ids) {
    size_t position = 0;
    fprintf(file, "subgraph cluster_%d {\nlabel=\"graph_%d\"\n", id, id);
    for (CUgraphNode node = graph->first; node != NULL; node = node->next) {
        const emu_operation *operation = &node->operation;
        node->mark = position++;
        fprintf(file, "\"graph_%d_node_%zu\" [shape=\"record\" label=\"%zu %s", id, node->mark,
                node->mark, name_of(operation));
        if (operation->kind == EMU_KERNEL &&
            emu_pool_has(&emu_functions, operation->kernel.function)) {
            fprintf(file, " %s", operation->kernel.function->name);
        }
        if (operation->kind == EMU_CHILD) {
            fprintf(file, " graph_%d", *ids + 1);
            fprintf(file, "\"]\n");
            print_graph(file, operation->child, ++*ids, ids);
            continue;
        }
        fprintf(file, "\"]\n");
    }
    for (CUgraphNode node = graph->first; node != NULL; node = node->next) {
        for (size_t i = 0; i < node->needs.count; i++) {
            fprintf(file, "\"graph_%d_node_%zu\" -> \"graph_%d_node_%zu\"\n", id,
                    node->needs.items[i]->mark, id, node->mark);
        }
    }
    fprintf(file, "}\n");
}

/* The flags ask for details that the file does not have. */
EMU_API CUresult cuGraphDebugDotPrint(CUgraph graph, const char *path, unsigned int flags) {
    EMU_INITIALIZED();
    (void)flags;
    EMU_REQUIRE(emu_is_graph(graph) && path != NULL);
    FILE *file = fopen(path, "we");
    if (file == NULL) {
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    int ids = 1;
    fprintf(file, "digraph dot {\n");
    print_graph(file, graph, 1, &ids);
    fprintf(file, "}\n");
    bool is_written = ferror(file) == 0;
    return fclose(file) == 0 && is_written ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}
