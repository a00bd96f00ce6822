/*
 * Memory that graphs allocate. A node's address is fixed when the node is created; its memory is taken when a graph
 * that contains it is launched. Freed memory stays with the device for use by graphs until it is trimmed.
 */
#ifndef EMU_GRAPH_MEMORY_H
#define EMU_GRAPH_MEMORY_H

#include "graph.h"

/* Makes an operation that allocates, and assigns its address. */
CUresult emu_graph_memory_node(emu_gpu *gpu, uint64_t bytes, emu_operation *operation);

/* Allocates in a stream that is being captured. */
CUresult emu_graph_memory_capture(CUstream stream, emu_gpu *gpu, uint64_t bytes,
                                  CUdeviceptr *address);

/* Counts one more (1) or one less (-1) node or step with this operation. The last one releases the address. */
void emu_graph_memory_use(const emu_operation *operation, int change);

/* Before a graph's launch, takes the memory for all its allocations; returns an error if that is not possible. */
CUresult emu_graph_memory_prepare(CUgraphExec exec);

/* Takes that memory without allocating it: a launch then takes no more. */
CUresult emu_graph_memory_upload(CUgraphExec exec);

/* Performs a graph's allocation or free. */
void emu_graph_memory_run(const emu_operation *operation);

#endif
