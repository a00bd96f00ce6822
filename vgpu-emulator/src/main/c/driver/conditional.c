#include "conditional.h"

#include <stdlib.h>

emu_pool emu_conditions = EMU_POOL(emu_condition, 1 << 16);

emu_condition *emu_condition_of(uint64_t handle) {
    emu_condition *condition = (emu_condition *)(uintptr_t)handle;
    return emu_pool_has(&emu_conditions, condition) ? condition : NULL;
}

bool emu_condition_set(uint64_t handle, uint32_t value) {
    emu_condition *condition = emu_condition_of(handle);
    if (condition == NULL) {
        return false;
    }
    __atomic_store_n(&condition->value, value, __ATOMIC_RELEASE);
    __atomic_add_fetch(&condition->changes, 1, __ATOMIC_ACQ_REL);
    return true;
}

void emu_condition_leave(emu_condition *condition) {
    if (__atomic_sub_fetch(&condition->users, 1, __ATOMIC_ACQ_REL) == 0) {
        emu_pool_give(&emu_conditions, condition);
    }
}

/* Without bodies. */
static emu_conditional *make(emu_condition *condition, int type, unsigned int count) {
    emu_conditional *made = calloc(1, sizeof *made);
    if (made != NULL) {
        *made = (emu_conditional){.users = 1, .condition = condition, .type = type, .count = count};
        __atomic_add_fetch(&condition->users, 1, __ATOMIC_ACQ_REL);
    }
    return made;
}

void emu_conditional_join(emu_conditional *conditional) {
    __atomic_add_fetch(&conditional->users, 1, __ATOMIC_ACQ_REL);
}

void emu_conditional_leave(emu_conditional *conditional) {
    if (conditional == NULL || __atomic_sub_fetch(&conditional->users, 1, __ATOMIC_ACQ_REL) != 0) {
        return;
    }
    for (unsigned int i = 0; i < conditional->count; i++) {
        if (conditional->bodies != NULL && conditional->bodies[i] != NULL) {
            emu_graph_close(conditional->bodies[i]);
        }
        if (conditional->execs != NULL && conditional->execs[i] != NULL) {
            emu_graph_exec_close(conditional->execs[i]);
        }
    }
    free(conditional->bodies);
    free(conditional->execs);
    emu_condition_leave(conditional->condition);
    free(conditional);
}

emu_conditional *emu_conditional_open(emu_condition *condition, int type, unsigned int count,
                                      CUgraph graph) {
    emu_conditional *made = make(condition, type, count);
    bool done = made != NULL && (made->bodies = calloc(count, sizeof(CUgraph))) != NULL;
    for (unsigned int i = 0; done && i < count; i++) {
        made->bodies[i] = emu_graph_open();
        done = made->bodies[i] != NULL;
        if (done) {
            made->bodies[i]->outer = graph;
        }
    }
    if (!done) {
        emu_conditional_leave(made);
        return NULL;
    }
    return made;
}

emu_conditional *emu_conditional_instantiate(const emu_conditional *conditional, uint64_t flags) {
    unsigned int count = conditional->count;
    emu_conditional *made = make(conditional->condition, conditional->type, count);
    bool done = made != NULL && (made->execs = calloc(count, sizeof(CUgraphExec))) != NULL;
    for (unsigned int i = 0; done && i < count; i++) {
        done =
            emu_graph_instantiate(conditional->bodies[i], flags, &made->execs[i]) == CUDA_SUCCESS;
    }
    if (!done) {
        emu_conditional_leave(made);
        return NULL;
    }
    return made;
}

bool emu_graph_has_conditionals(CUgraph graph) {
    for (CUgraphNode node = graph->first; node != NULL; node = node->next) {
        if (node->operation.kind == EMU_CONDITIONAL ||
            (node->operation.kind == EMU_CHILD &&
             emu_graph_has_conditionals(node->operation.child))) {
            return true;
        }
    }
    return false;
}

/* Bodies have kernels, copies, fills, child graphs and conditional nodes only. */
static bool is_valid(CUgraph graph, bool is_body) {
    for (CUgraphNode node = graph->first; node != NULL; node = node->next) {
        const emu_operation *operation = &node->operation;
        switch (operation->kind) {
        case EMU_KERNEL:
        case EMU_COPY:
        case EMU_FILL:
        case EMU_EMPTY:
            break;
        case EMU_CHILD:
            if (!is_valid(operation->child, is_body)) {
                return false;
            }
            break;
        case EMU_CONDITIONAL:
            for (unsigned int i = 0; i < operation->conditional.what->count; i++) {
                if (!is_valid(operation->conditional.what->bodies[i], true)) {
                    return false;
                }
            }
            break;
        default:
            if (is_body) {
                return false;
            }
        }
    }
    return true;
}

bool emu_graph_has_valid_bodies(CUgraph graph) {
    return is_valid(graph, false);
}

static void reset(const emu_conditional *conditional) {
    emu_condition *condition = conditional->condition;
    if (condition->has_initial) {
        __atomic_store_n(&condition->value, condition->initial, __ATOMIC_RELEASE);
    }
    for (unsigned int i = 0; i < conditional->count; i++) {
        CUgraphExec exec = conditional->execs[i];
        for (size_t j = 0; j < exec->count; j++) {
            if (exec->steps[j].operation.kind == EMU_CONDITIONAL) {
                reset(exec->steps[j].operation.conditional.what);
            }
        }
    }
}

/* A body that no kernel of the emulator's own ends would run forever, so a loop ends when its body set no value. */
static void run_loop(const emu_conditional *conditional, CUstream stream) {
    emu_condition *condition = conditional->condition;
    uint32_t seen = 0;
    do {
        if (__atomic_load_n(&condition->value, __ATOMIC_ACQUIRE) == 0) {
            return;
        }
        seen = __atomic_load_n(&condition->changes, __ATOMIC_ACQUIRE);
        emu_graph_run_whole(conditional->execs[0], stream);
    } while (__atomic_load_n(&condition->changes, __ATOMIC_ACQUIRE) != seen);
}

void emu_conditional_run(CUstream stream, const emu_operation *operation) {
    const emu_conditional *conditional = operation->conditional.what;
    if (operation->conditional.resets) {
        reset(conditional);
        return;
    }
    if (conditional->type == EMU_WHILE) {
        run_loop(conditional, stream);
        return;
    }
    uint32_t value = __atomic_load_n(&conditional->condition->value, __ATOMIC_ACQUIRE);
    uint32_t chosen = conditional->type == EMU_SWITCH ? value : value != 0 ? 0 : 1;
    if (chosen < conditional->count) {
        emu_graph_run_whole(conditional->execs[chosen], stream);
    }
}
