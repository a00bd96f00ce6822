/* Capturing what is submitted to streams into a graph. */
#ifndef EMU_CAPTURE_H
#define EMU_CAPTURE_H

#include "graph.h"

struct emu_capture {
    emu_object object;
    CUgraph graph;
    CUstream origin;
    uint64_t id;
    int mode;
    bool failed; /* something happened that cannot be captured */
};

/* With the context's lock. True: the operation is of a capture, and result says what came of it. */
bool emu_capture_take(CUstream stream, const emu_operation *operation, CUresult *result);

/* With the context's lock. The capture of a stream, or NULL. */
static inline emu_capture *emu_capture_of(CUstream stream) {
    return __atomic_load_n(&stream->capture, __ATOMIC_ACQUIRE);
}

/* With the context's lock. */
CUresult emu_capture_begin(CUstream stream, int mode, CUgraph graph);
CUresult emu_capture_end(CUstream stream, CUgraph *graph);

/* Says that a stream's capture cannot go on, and with which error the call that did that ends. */
CUresult emu_capture_fail(CUstream stream, CUresult error);

/* Whether any capture goes on in this process. Needs no lock. */
bool emu_captures_active(void);

/* Whether a stream of the context for which the legacy stream would have to wait is captured. */
bool emu_capture_blocks_legacy(CUcontext context);

#endif
