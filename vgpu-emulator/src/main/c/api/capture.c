/* Capturing streams into graphs. */
#include "driver/capture.h"
#include "driver/driver.h"

#define STREAM(handle, per_thread) \
    EMU_CONTEXT(context); \
    CUstream stream = NULL; \
    do { \
        CUresult emu_found = emu_stream_of(context, handle, per_thread, &stream); \
        if (emu_found != CUDA_SUCCESS) { \
            return emu_found; \
        } \
    } while (0)

static CUresult begin(CUstream handle, int mode, bool per_thread) {
    STREAM(handle, per_thread);
    EMU_REQUIRE(mode >= 0 && mode <= 2);
    pthread_mutex_lock(&stream->context->lock);
    CUresult result = emu_capture_begin(stream, mode);
    pthread_mutex_unlock(&stream->context->lock);
    return result;
}

EMU_API CUresult cuStreamBeginCapture(CUstream stream) {
    return begin(stream, 0, false);
}

EMU_API CUresult cuStreamBeginCapture_ptsz(CUstream stream) {
    return begin(stream, 0, true);
}

EMU_API CUresult cuStreamBeginCapture_v2(CUstream stream, int mode) {
    return begin(stream, mode, false);
}

EMU_API CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, int mode) {
    return begin(stream, mode, true);
}

static CUresult begin_to(CUstream handle, CUgraph graph, const CUgraphNode *needs, size_t count,
                         int mode, bool per_thread) {
    STREAM(handle, per_thread);
    EMU_REQUIRE(mode >= 0 && mode <= 2 && emu_is_graph(graph) && (needs != NULL || count == 0));
    pthread_mutex_lock(&stream->context->lock);
    CUresult result = emu_capture_begin_to(stream, mode, graph, needs, count);
    pthread_mutex_unlock(&stream->context->lock);
    return result;
}

/* Edges carry no data here. */
EMU_API CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph,
                                             const CUgraphNode *needs, const CUgraphEdgeData *edges,
                                             size_t count, int mode) {
    (void)edges;
    return begin_to(stream, graph, needs, count, mode, false);
}

EMU_API CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph,
                                                  const CUgraphNode *needs,
                                                  const CUgraphEdgeData *edges, size_t count,
                                                  int mode) {
    (void)edges;
    return begin_to(stream, graph, needs, count, mode, true);
}

enum { ADD, REPLACE }; /* CUstreamUpdateCaptureDependencies_flags */

static CUresult depend(CUstream handle, const CUgraphNode *needs, size_t count, unsigned int flags,
                       bool per_thread) {
    STREAM(handle, per_thread);
    EMU_REQUIRE(flags <= REPLACE && (needs != NULL || count == 0));
    pthread_mutex_lock(&stream->context->lock);
    CUresult result = emu_capture_depend(stream, needs, count, flags == REPLACE);
    pthread_mutex_unlock(&stream->context->lock);
    return result;
}

#define DEPEND(name, per_thread) \
    EMU_API CUresult name(CUstream stream, CUgraphNode *needs, size_t count, unsigned int flags) { \
        return depend(stream, needs, count, flags, per_thread); \
    }
#define DEPEND_WITH_EDGES(name, per_thread) \
    EMU_API CUresult name(CUstream stream, CUgraphNode *needs, const CUgraphEdgeData *edges, \
                          size_t count, unsigned int flags) { \
        (void)edges; \
        return depend(stream, needs, count, flags, per_thread); \
    }

DEPEND(cuStreamUpdateCaptureDependencies, false)
DEPEND(cuStreamUpdateCaptureDependencies_ptsz, true)
DEPEND_WITH_EDGES(cuStreamUpdateCaptureDependencies_v2, false)
DEPEND_WITH_EDGES(cuStreamUpdateCaptureDependencies_v2_ptsz, true)

static CUresult end(CUstream handle, CUgraph *graph, bool per_thread) {
    STREAM(handle, per_thread);
    EMU_REQUIRE(graph != NULL);
    pthread_mutex_lock(&stream->context->lock);
    CUresult result = emu_capture_end(stream, graph);
    pthread_mutex_unlock(&stream->context->lock);
    return result;
}

EMU_API CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph) {
    return end(stream, graph, false);
}

EMU_API CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph *graph) {
    return end(stream, graph, true);
}

/* The capture properties that the different query forms ask for; NULL: not asked for. */
typedef struct {
    int *status;
    uint64_t *id;
    CUgraph *graph;
    const CUgraphNode **needs;
    const CUgraphEdgeData **edges;
    size_t *count;
} capture_query;

static CUresult query(CUstream handle, const capture_query *q, bool per_thread) {
    STREAM(handle, per_thread);
    EMU_REQUIRE(q->status != NULL);
    pthread_mutex_lock(&stream->context->lock);
    CUresult result = CUDA_SUCCESS;
    emu_capture *capture = stream->capture;
    if (stream->is_legacy && emu_capture_blocks_legacy(context)) {
        result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    *q->status = capture == NULL   ? CU_CAPTURE_NONE
                 : capture->failed ? CU_CAPTURE_INVALIDATED
                                   : CU_CAPTURE_ACTIVE;
    if (capture != NULL) {
        if (q->id != NULL) {
            *q->id = capture->id;
        }
        if (q->graph != NULL) {
            *q->graph = capture->graph;
        }
        if (q->needs != NULL) {
            *q->needs = stream->captured.items;
        }
        if (q->edges != NULL) {
            *q->edges = NULL;
        }
        if (q->count != NULL) {
            *q->count = stream->captured.count;
        }
    }
    pthread_mutex_unlock(&stream->context->lock);
    return result;
}

EMU_API CUresult cuStreamIsCapturing(CUstream stream, int *status) {
    return query(stream, &(capture_query){.status = status}, false);
}

EMU_API CUresult cuStreamIsCapturing_ptsz(CUstream stream, int *status) {
    return query(stream, &(capture_query){.status = status}, true);
}

EMU_API CUresult cuStreamGetCaptureInfo(CUstream stream, int *status, uint64_t *id) {
    return query(stream, &(capture_query){.status = status, .id = id}, false);
}

EMU_API CUresult cuStreamGetCaptureInfo_ptsz(CUstream stream, int *status, uint64_t *id) {
    return query(stream, &(capture_query){.status = status, .id = id}, true);
}

EMU_API CUresult cuStreamGetCaptureInfo_v2(CUstream stream, int *status, uint64_t *id,
                                           CUgraph *graph, const CUgraphNode **needs,
                                           size_t *count) {
    return query(stream, &(capture_query){status, id, graph, needs, NULL, count}, false);
}

EMU_API CUresult cuStreamGetCaptureInfo_v2_ptsz(CUstream stream, int *status, uint64_t *id,
                                                CUgraph *graph, const CUgraphNode **needs,
                                                size_t *count) {
    return query(stream, &(capture_query){status, id, graph, needs, NULL, count}, true);
}

EMU_API CUresult cuStreamGetCaptureInfo_v3(CUstream stream, int *status, uint64_t *id,
                                           CUgraph *graph, const CUgraphNode **needs,
                                           const CUgraphEdgeData **edges, size_t *count) {
    return query(stream, &(capture_query){status, id, graph, needs, edges, count}, false);
}

EMU_API CUresult cuStreamGetCaptureInfo_v3_ptsz(CUstream stream, int *status, uint64_t *id,
                                                CUgraph *graph, const CUgraphNode **needs,
                                                const CUgraphEdgeData **edges, size_t *count) {
    return query(stream, &(capture_query){status, id, graph, needs, edges, count}, true);
}

EMU_API CUresult cuThreadExchangeStreamCaptureMode(int *mode) {
    EMU_INITIALIZED();
    EMU_REQUIRE(mode != NULL && *mode >= 0 && *mode <= 2);
    uint16_t previous = emu_thread.capture_mode;
    emu_thread.capture_mode = (uint16_t)*mode;
    *mode = previous;
    return CUDA_SUCCESS;
}
