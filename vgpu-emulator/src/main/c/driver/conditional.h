/* Conditional nodes: bodies of which a graph runs none, one, or one again and again, as a value on the GPU says. */
#ifndef EMU_CONDITIONAL_H
#define EMU_CONDITIONAL_H

#include "graph.h"

enum { EMU_IF, EMU_WHILE, EMU_SWITCH }; /* CU_GRAPH_COND_TYPE_… */

/* The value. Its address is the program's handle. */
typedef struct emu_condition {
    emu_object object;
    struct emu_condition *next; /* in the graph that it was created for */
    CUgraph graph;
    CUcontext context;
    uint32_t users; /* the graph, and the nodes and steps that ask for the value */
    bool has_node;
    bool has_initial; /* each launch of the graph begins with this value */
    uint32_t initial;
    uint32_t value;
    uint32_t changes; /* how often a kernel has set it */
} emu_condition;

/* What a node does, or a step of an executable graph: that has executable bodies instead. */
typedef struct emu_conditional {
    uint32_t users;
    emu_condition *condition;
    int type;
    unsigned int count;
    CUgraph *bodies;
    CUgraphExec *execs;
} emu_conditional;

extern emu_pool emu_conditions;

/* The value behind a handle, or NULL. */
emu_condition *emu_condition_of(uint64_t handle);

/* Sets the value, as a kernel does. False: there is no such handle. */
bool emu_condition_set(uint64_t handle, uint32_t value);

void emu_condition_leave(emu_condition *condition);

/* A node's action, with empty bodies. NULL: no memory. */
emu_conditional *emu_conditional_open(emu_condition *condition, int type, unsigned int count,
                                      CUgraph graph);
void emu_conditional_join(emu_conditional *conditional);
void emu_conditional_leave(emu_conditional *conditional);

/* The action of a step. NULL: no memory. */
emu_conditional *emu_conditional_instantiate(const emu_conditional *conditional, uint64_t flags);

/* Whether the graph, or a body in it, has conditional nodes; whether all bodies have only nodes that they may have. */
bool emu_graph_has_conditionals(CUgraph graph);
bool emu_graph_has_valid_bodies(CUgraph graph);

/* Runs what the value chooses, or gives the values back their initial ones. */
void emu_conditional_run(CUstream stream, const emu_operation *operation);

#endif
