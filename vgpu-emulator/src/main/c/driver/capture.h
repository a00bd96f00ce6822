/* Captures the work submitted to streams into a graph. */
#ifndef EMU_CAPTURE_H
#define EMU_CAPTURE_H

#include "graph.h"

struct emu_capture {
    emu_object object;
    CUgraph graph;
    CUstream origin;
    uint64_t id;
    int mode;
    bool failed;      /* a call that cannot be captured was made */
    bool is_to_graph; /* the graph is the program's, and stays if the capture fails */
};

/* The caller holds the context's lock. True: the operation belongs to a capture, and *result is the outcome. */
bool emu_capture_take(CUstream stream, const emu_operation *operation, CUresult *result);

/* The stream's capture, or NULL. The caller holds the context's lock. */
static inline emu_capture *emu_capture_of(CUstream stream) {
    return __atomic_load_n(&stream->capture, __ATOMIC_ACQUIRE);
}

/* Captures into a new graph. The caller holds the context's lock. */
CUresult emu_capture_begin(CUstream stream, int mode);
/* Captures into the program's graph; the first node depends on the given ones. The caller holds the context's lock. */
CUresult emu_capture_begin_to(CUstream stream, int mode, CUgraph graph, const CUgraphNode *needs,
                              size_t count);
/* Adds to the nodes that the stream's next node depends on, or replaces them. The caller holds the context's lock. */
CUresult emu_capture_depend(CUstream stream, const CUgraphNode *needs, size_t count, bool replace);
CUresult emu_capture_end(CUstream stream, CUgraph *graph);

/* Marks a stream's capture as failed, and returns the error with which the failing call ends. */
CUresult emu_capture_fail(CUstream stream, CUresult error);

/* Whether any capture is active in this process. Needs no lock. */
bool emu_captures_active(void);

/* Whether a stream that the context's legacy stream would wait for is being captured. */
bool emu_capture_blocks_legacy(CUcontext context);

/*
 * The legacy stream stands for all blocking streams, and a context for all its streams. Using, querying or awaiting
 * either while one of these streams is being captured is an error, and the captures fail. CUDA_SUCCESS: none is. The
 * caller holds the context's lock.
 */
CUresult emu_capture_refuse_legacy(CUcontext context);
CUresult emu_capture_refuse_context(CUcontext context);

#endif
