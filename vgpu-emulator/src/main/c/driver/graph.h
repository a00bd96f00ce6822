/* Graphs, captured or built explicitly, and executable graphs. */
#ifndef EMU_GRAPH_H
#define EMU_GRAPH_H

#include "operation.h"

enum { EMU_NODE_ATTRIBUTES = 20, EMU_NODE_ATTRIBUTE_SIZE = 64 };

/* A graph's references to an object of the program. */
typedef struct emu_user_references {
    struct emu_user_references *next;
    CUuserObject object;
    unsigned int count;
} emu_user_references;

struct CUgraphNode_st {
    emu_object object;
    CUgraph graph;
    CUgraphNode next; /* in the order of insertion */
    emu_nodes needs;  /* the nodes that this node depends on */
    emu_operation operation;
    CUgraphNode source;  /* in a clone: the node it was copied from; only its address counts */
    size_t mark;         /* scratch: the position in an order, counted from 1 */
    CUDA_MEMCPY3D *copy; /* a copy as the program described it; NULL: the operation describes it */
    void **params; /* a kernel's parameters for queries: pointers into the operation's arguments */
    uint8_t (
        *attributes)[EMU_NODE_ATTRIBUTE_SIZE]; /* a kernel's attributes; NULL: none has been set */
};

struct CUgraph_st {
    emu_object object;
    CUgraphNode first;
    CUgraphNode last;
    size_t count;
    emu_user_references *users;
    struct emu_condition *conditions; /* the values that were created for it */
    CUgraph outer;                    /* the graph that it is a conditional body of; NULL: none */
};

typedef struct {
    CUgraphNode node; /* the node of the source graph; only its address counts */
    emu_operation operation;
    uint64_t end_ns; /* since the graph's start, along the critical path */
    size_t need_count;
    size_t *needs; /* positions of the steps that this one depends on */
    bool is_disabled;
} emu_step;

/* An executable graph: steps in topological order. */
struct CUgraphExec_st {
    emu_object object;
    pthread_mutex_t lock;
    uint64_t flags;
    size_t count;
    emu_step *steps;
    emu_user_references *users;
    bool is_plain; /* all steps are kernels, copies or fills */
    uint64_t duration_ns;
};

extern emu_pool emu_graphs;
extern emu_pool emu_nodes_pool;
extern emu_pool emu_graph_execs;

static inline bool emu_is_graph(CUgraph graph) {
    return emu_pool_has(&emu_graphs, graph);
}

static inline bool emu_is_node(CUgraphNode node) {
    return emu_pool_has(&emu_nodes_pool, node);
}

static inline bool emu_is_exec(CUgraphExec exec) {
    return emu_pool_has(&emu_graph_execs, exec);
}

/* Sets of nodes that grow on demand. False: no memory. */
bool emu_nodes_add(emu_nodes *set, CUgraphNode node);
bool emu_nodes_copy(emu_nodes *set, const emu_nodes *from);
void emu_nodes_clear(emu_nodes *set);

CUgraph emu_graph_open(void);
void emu_graph_close(CUgraph graph);
/* Adds a node that depends on the given ones. NULL: no memory. */
CUgraphNode emu_graph_add(CUgraph graph, const emu_operation *operation, const CUgraphNode *needs,
                          size_t count);

/* A copy of a graph, including its child graphs. NULL: no memory. */
CUgraph emu_graph_clone(CUgraph graph);
/* A copy in which the child graphs are expanded into their nodes. NULL: no memory. */
CUgraph emu_graph_spread(CUgraph graph);
bool emu_graph_has_children(CUgraph graph);
void emu_graph_remove(CUgraphNode node);
void emu_nodes_remove(emu_nodes *set, CUgraphNode node);

CUresult emu_graph_instantiate(CUgraph graph, uint64_t flags, CUgraphExec *result);
void emu_graph_exec_close(CUgraphExec exec);
/* Updates an executable graph from a graph of the same shape. */
CUresult emu_graph_exec_update(CUgraphExec exec, CUgraph graph);
CUresult emu_graph_launch(CUgraphExec exec, CUstream stream);
/*
 * Submits the whole graph as one piece of work, as long as its critical path. Conditional nodes in
 * it run what they choose beside that.
 */
void emu_graph_run_whole(CUgraphExec exec, CUstream stream);
/* api/graph_nodes.c: pointers to a kernel node's arguments; NULL: they were not kept. */
void **emu_graph_node_params(CUgraphNode node);
/* Keeps a copy as the program described it. */
void emu_graph_node_describe(CUgraphNode node, const CUDA_MEMCPY3D *copy);
/* api/graph.c: the operation of a kernel node. */
CUresult emu_graph_kernel(const CUDA_KERNEL_NODE_PARAMS_v1 *params, CUfunction function,
                          emu_operation *operation);
/* driver/user_object.c: copies a list of references, or drops all of a list. False: no memory. */
bool emu_users_copy(emu_user_references **users, const emu_user_references *from);
void emu_users_drop(emu_user_references **users);
/* api/conditional.c: adds a conditional node. */
CUresult emu_graph_add_conditional(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs,
                                   size_t count, CUDA_CONDITIONAL_NODE_PARAMS *params);
/* Recomputes the times after a step has changed. */
void emu_graph_exec_time(CUgraphExec exec);

#endif
