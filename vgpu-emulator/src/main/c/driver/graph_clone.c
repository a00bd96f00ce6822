/* Copies of graphs. */
#include "conditional.h"

#include <stdlib.h>

/* The first and the last node that stand for a source node in the copy, indexed by the source node's mark. */
typedef struct {
    CUgraphNode first;
    CUgraphNode last;
} place;

bool emu_graph_has_children(CUgraph graph) {
    for (CUgraphNode node = graph->first; node != NULL; node = node->next) {
        if (node->operation.kind == EMU_CHILD) {
            return true;
        }
    }
    return false;
}

static CUgraphNode add_copy(CUgraph into, CUgraphNode node, emu_operation operation) {
    if (operation.kind == EMU_CHILD) {
        operation.child = emu_graph_clone(operation.child);
        if (operation.child == NULL) {
            return NULL;
        }
    }
    if (operation.kind == EMU_CONDITIONAL) {
        emu_conditional_join(operation.conditional.what);
    }
    CUgraphNode copy = emu_graph_add(into, &operation, NULL, 0);
    if (copy == NULL && operation.kind == EMU_CONDITIONAL) {
        emu_conditional_leave(operation.conditional.what);
    }
    if (copy == NULL && operation.kind == EMU_CHILD) {
        emu_graph_close(operation.child);
    }
    if (copy != NULL) {
        copy->source = node;
    }
    return copy;
}

static bool copy_into(CUgraph into, CUgraph from, bool spread, place *outer);

/* Expands a child graph: its nodes between two empty ones. */
static bool spread_child(CUgraph into, CUgraphNode node, place *where) {
    emu_operation nothing = {.kind = EMU_EMPTY};
    where->first = add_copy(into, node, nothing);
    where->last = add_copy(into, node, nothing);
    return where->first != NULL && where->last != NULL &&
           emu_nodes_add(&where->last->needs, where->first) &&
           copy_into(into, node->operation.child, true, where);
}

/* outer: the nodes that come before and after all copied nodes; NULL: none. */
static bool copy_into(CUgraph into, CUgraph from, bool spread, place *outer) {
    place *places = calloc(from->count + 1, sizeof *places);
    bool done = places != NULL;
    size_t count = 0;
    for (CUgraphNode node = from->first; done && node != NULL; node = node->next) {
        place *where = &places[count];
        node->mark = count++;
        if (spread && node->operation.kind == EMU_CHILD) {
            done = spread_child(into, node, where);
        } else {
            where->first = where->last = add_copy(into, node, node->operation);
            done = where->first != NULL;
        }
    }
    for (CUgraphNode node = from->first; done && node != NULL; node = node->next) {
        CUgraphNode first = places[node->mark].first;
        for (size_t i = 0; done && i < node->needs.count; i++) {
            done = emu_nodes_add(&first->needs, places[node->needs.items[i]->mark].last);
        }
        if (done && outer != NULL) {
            done = emu_nodes_add(&first->needs, outer->first) &&
                   emu_nodes_add(&outer->last->needs, places[node->mark].last);
        }
    }
    free(places);
    return done;
}

static CUgraph copied(CUgraph graph, bool spread) {
    CUgraph copy = emu_graph_open();
    if (copy != NULL &&
        (!copy_into(copy, graph, spread, NULL) || !emu_users_copy(&copy->users, graph->users))) {
        emu_graph_close(copy);
        return NULL;
    }
    return copy;
}

CUgraph emu_graph_clone(CUgraph graph) {
    return copied(graph, false);
}

CUgraph emu_graph_spread(CUgraph graph) {
    return copied(graph, true);
}
