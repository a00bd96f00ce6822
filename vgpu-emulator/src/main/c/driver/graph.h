/* Graphs: what has been captured or put together, and what can be launched. */
#ifndef EMU_GRAPH_H
#define EMU_GRAPH_H

#include "operation.h"

enum { EMU_NODE_ATTRIBUTES = 20, EMU_NODE_ATTRIBUTE_SIZE = 64 };

/* References that a graph has to an object of the program. */
typedef struct emu_user_references {
    struct emu_user_references *next;
    CUuserObject object;
    unsigned int count;
} emu_user_references;

struct CUgraphNode_st {
    emu_object object;
    CUgraph graph;
    CUgraphNode next; /* in the order in which they were added */
    emu_nodes needs;  /* must be done before */
    emu_operation operation;
    CUgraphNode source; /* of a clone: what it was made from; only its address counts */
    size_t mark;        /* scratch: the position in an order, from 1 on */
    CUDA_MEMCPY3D *copy; /* of a copy that the program described; NULL: what the operation says */
    void **params;       /* of a kernel, for who asks: where each argument lies in the operation */
    uint8_t (*attributes)[EMU_NODE_ATTRIBUTE_SIZE]; /* of a kernel; NULL: none has been set */
};

struct CUgraph_st {
    emu_object object;
    CUgraphNode first;
    CUgraphNode last;
    size_t count;
    emu_user_references *users;
};

typedef struct {
    CUgraphNode node; /* of the graph that it was made from; only its address counts */
    emu_operation operation;
    uint64_t end_ns; /* from the start of the graph, along the longest way */
    size_t need_count;
    size_t *needs; /* positions */
    bool is_disabled;
} emu_step;

/* Steps in an order in which each comes after all that it needs. */
struct CUgraphExec_st {
    emu_object object;
    pthread_mutex_t lock;
    uint64_t flags;
    size_t count;
    emu_step *steps;
    emu_user_references *users;
    bool is_plain; /* no step but kernels, copies and fills */
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

/* Nodes that something depends on: sets that grow. False: no memory. */
bool emu_nodes_add(emu_nodes *set, CUgraphNode node);
bool emu_nodes_copy(emu_nodes *set, const emu_nodes *from);
void emu_nodes_clear(emu_nodes *set);

CUgraph emu_graph_open(void);
void emu_graph_close(CUgraph graph);
/* A new node, which needs those given. NULL: no memory. */
CUgraphNode emu_graph_add(CUgraph graph, const emu_operation *operation, const CUgraphNode *needs,
                          size_t count);

/* A copy of a graph, with copies of the graphs within it. NULL: no memory. */
CUgraph emu_graph_clone(CUgraph graph);
/* A copy in which graphs that were nodes are spread out. NULL: no memory. */
CUgraph emu_graph_spread(CUgraph graph);
bool emu_graph_has_children(CUgraph graph);
void emu_graph_remove(CUgraphNode node);
void emu_nodes_remove(emu_nodes *set, CUgraphNode node);

CUresult emu_graph_instantiate(CUgraph graph, uint64_t flags, CUgraphExec *result);
void emu_graph_exec_close(CUgraphExec exec);
/* Gives an executable graph what a graph of the same shape has now. */
CUresult emu_graph_exec_update(CUgraphExec exec, CUgraph graph);
CUresult emu_graph_launch(CUgraphExec exec, CUstream stream);
/* api/graph_nodes.c: the arguments of a kernel's node, one pointer each; NULL: they are not kept. */
void **emu_graph_node_params(CUgraphNode node);
/* Keeps what the program said of a copy. */
void emu_graph_node_describe(CUgraphNode node, const CUDA_MEMCPY3D *copy);
/* api/graph.c: the operation of a kernel's node. */
CUresult emu_graph_kernel(const CUDA_KERNEL_NODE_PARAMS_v1 *params, CUfunction function,
                          emu_operation *operation);
/* driver/user_object.c: another list has the same references, or one has none any more. False: no memory. */
bool emu_users_copy(emu_user_references **users, const emu_user_references *from);
void emu_users_drop(emu_user_references **users);
/* Works out the times again after a step has changed. */
void emu_graph_exec_time(CUgraphExec exec);

#endif
