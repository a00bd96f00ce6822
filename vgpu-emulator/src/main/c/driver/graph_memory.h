/*
 * Memory of graphs' own allocations: a node's address is fixed when the node is made, its memory is taken when a
 * graph with it is launched, and what is freed stays with the device, for graphs, until it is trimmed.
 */
#ifndef EMU_GRAPH_MEMORY_H
#define EMU_GRAPH_MEMORY_H

#include "graph.h"

/* An operation that allocates, with its address. */
CUresult emu_graph_memory_node(emu_gpu *gpu, uint64_t bytes, emu_operation *operation);

/* An allocation in a stream that is captured. */
CUresult emu_graph_memory_capture(CUstream stream, emu_gpu *gpu, uint64_t bytes,
                                  CUdeviceptr *address);

/* Another node or step has this operation (1), or one less has (-1). The last one takes the address along. */
void emu_graph_memory_use(const emu_operation *operation, int change);

/* Before a graph is launched: takes memory for all that it allocates, or says why not. */
CUresult emu_graph_memory_prepare(CUgraphExec exec);

/* Does what an allocation or a free of a graph does. */
void emu_graph_memory_run(const emu_operation *operation);

#endif
