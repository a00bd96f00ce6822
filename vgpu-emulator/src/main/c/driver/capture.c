#include "capture.h"

#include "memory.h"

static emu_pool captures = EMU_POOL(emu_capture, 1 << 16);
static uint64_t capture_count;
static uint64_t active_count;

bool emu_captures_active(void) {
    return __atomic_load_n(&active_count, __ATOMIC_ACQUIRE) != 0;
}

static void set_capture(CUstream stream, emu_capture *capture) {
    __atomic_store_n(&stream->capture, capture, __ATOMIC_RELEASE);
}

bool emu_capture_blocks_legacy(CUcontext context) {
    for (CUstream stream = context->streams; stream != NULL; stream = stream->next) {
        if (stream->capture != NULL && (stream->flags & CU_STREAM_NON_BLOCKING) == 0) {
            return true;
        }
    }
    return false;
}

static CUresult refuse(CUcontext context, unsigned int except, CUresult error) {
    CUresult result = CUDA_SUCCESS;
    for (CUstream stream = context->streams; stream != NULL; stream = stream->next) {
        if (stream->capture != NULL && (stream->flags & except) == 0) {
            stream->capture->failed = true;
            result = error;
        }
    }
    return result;
}

CUresult emu_capture_refuse_legacy(CUcontext context) {
    return refuse(context, CU_STREAM_NON_BLOCKING, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
}

CUresult emu_capture_refuse_context(CUcontext context) {
    return refuse(context, 0, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

/* graph: NULL for a new one. */
static CUresult begin(CUstream stream, int mode, CUgraph graph) {
    if (stream->is_legacy) {
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (stream->capture != NULL) {
        return CUDA_ERROR_ILLEGAL_STATE;
    }
    emu_capture *capture = emu_pool_take(&captures);
    CUgraph target = capture == NULL || graph != NULL ? graph : emu_graph_open();
    if (target == NULL) {
        if (capture != NULL) {
            emu_pool_give(&captures, capture);
        }
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    capture->graph = target;
    capture->is_to_graph = graph != NULL;
    capture->origin = stream;
    capture->mode = mode;
    capture->id = __atomic_add_fetch(&capture_count, 1, __ATOMIC_RELAXED);
    emu_nodes_clear(&stream->captured);
    set_capture(stream, capture);
    __atomic_add_fetch(&active_count, 1, __ATOMIC_ACQ_REL);
    return CUDA_SUCCESS;
}

CUresult emu_capture_begin(CUstream stream, int mode) {
    return begin(stream, mode, NULL);
}

/* Nodes that another graph has, or none, cannot be dependencies. */
static bool are_of(CUgraph graph, const CUgraphNode *nodes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (!emu_is_node(nodes[i]) || nodes[i]->graph != graph) {
            return false;
        }
    }
    return true;
}

static CUresult add_needs(CUstream stream, const CUgraphNode *needs, size_t count) {
    for (size_t i = 0; i < count; i++) {
        bool is_known = false;
        for (size_t j = 0; j < stream->captured.count; j++) {
            is_known |= stream->captured.items[j] == needs[i];
        }
        if (!is_known && !emu_nodes_add(&stream->captured, needs[i])) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    return CUDA_SUCCESS;
}

CUresult emu_capture_begin_to(CUstream stream, int mode, CUgraph graph, const CUgraphNode *needs,
                              size_t count) {
    CUresult result =
        are_of(graph, needs, count) ? begin(stream, mode, graph) : CUDA_ERROR_INVALID_VALUE;
    return result == CUDA_SUCCESS ? add_needs(stream, needs, count) : result;
}

CUresult emu_capture_depend(CUstream stream, const CUgraphNode *needs, size_t count, bool replace) {
    if (stream->capture == NULL) {
        return CUDA_ERROR_ILLEGAL_STATE;
    }
    if (!are_of(stream->capture->graph, needs, count)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (replace) {
        emu_nodes_clear(&stream->captured);
    }
    return add_needs(stream, needs, count);
}

CUresult emu_capture_fail(CUstream stream, CUresult error) {
    stream->capture->failed = true;
    return error;
}

/* Whether every stream that joined the capture has been joined back: another node, or the origin, depends on each
 * stream's last nodes. */
static bool is_joined(const emu_capture *capture) {
    CUstream origin = capture->origin;
    for (CUstream stream = origin->context->streams; stream != NULL; stream = stream->next) {
        if (stream->capture != capture || stream == origin) {
            continue;
        }
        for (size_t i = 0; i < stream->captured.count; i++) {
            bool needed = false;
            for (CUgraphNode node = capture->graph->first; node != NULL && !needed;
                 node = node->next) {
                for (size_t j = 0; j < node->needs.count; j++) {
                    needed |= node->needs.items[j] == stream->captured.items[i];
                }
            }
            for (size_t j = 0; j < origin->captured.count; j++) {
                needed |= origin->captured.items[j] == stream->captured.items[i];
            }
            if (!needed) {
                return false;
            }
        }
    }
    return true;
}

CUresult emu_capture_end(CUstream stream, CUgraph *graph) {
    emu_capture *capture = stream->capture;
    *graph = NULL;
    if (capture == NULL) {
        return CUDA_ERROR_ILLEGAL_STATE;
    }
    if (capture->origin != stream) {
        return emu_capture_fail(stream, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    }
    CUresult result = capture->failed       ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                      : !is_joined(capture) ? CUDA_ERROR_STREAM_CAPTURE_UNJOINED
                                            : CUDA_SUCCESS;
    for (CUstream s = stream->context->streams; s != NULL; s = s->next) {
        if (s->capture == capture) {
            emu_nodes_clear(&s->captured);
            set_capture(s, NULL);
        }
    }
    if (result == CUDA_SUCCESS) {
        *graph = capture->graph;
    } else if (!capture->is_to_graph) {
        emu_graph_close(capture->graph);
    }
    emu_pool_give(&captures, capture);
    __atomic_sub_fetch(&active_count, 1, __ATOMIC_ACQ_REL);
    return result;
}

/* The capture in which an event was last recorded, if that capture is still active. */
static emu_capture *capture_of_event(CUevent event) {
    bool live = event->capture != NULL && emu_pool_has(&captures, event->capture) &&
                event->capture->object.generation == event->capture_generation;
    return live ? event->capture : NULL;
}

static CUresult take_wait(CUstream stream, CUevent event) {
    emu_capture *theirs = capture_of_event(event);
    emu_capture *ours = stream->capture;
    if (theirs == NULL) {
        /* An event recorded outside a capture cannot become a dependency in the graph: such a wait invalidates the
         * capture. */
        return event->capture == NULL && ours != NULL
                   ? emu_capture_fail(stream, CUDA_ERROR_STREAM_CAPTURE_ISOLATION)
                   : CUDA_ERROR_CAPTURED_EVENT;
    }
    if (stream->is_legacy) {
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    if (ours != NULL && ours != theirs) {
        return emu_capture_fail(stream, CUDA_ERROR_STREAM_CAPTURE_MERGE);
    }
    if (ours == NULL) {
        emu_nodes_clear(&stream->captured);
        set_capture(stream, theirs);
    }
    for (size_t i = 0; i < event->captured.count; i++) {
        if (!emu_nodes_add(&stream->captured, event->captured.items[i])) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    return CUDA_SUCCESS;
}

static CUresult take_record(CUstream stream, CUevent event) {
    event->capture = stream->capture;
    event->capture_generation = stream->capture->object.generation;
    return emu_nodes_copy(&event->captured, &stream->captured) ? CUDA_SUCCESS
                                                               : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult take_node(CUstream stream, const emu_operation *operation) {
    CUgraphNode node = emu_graph_add(stream->capture->graph, operation, stream->captured.items,
                                     stream->captured.count);
    if (node == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    emu_nodes_clear(&stream->captured);
    return emu_nodes_add(&stream->captured, node) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

bool emu_capture_take(CUstream stream, const emu_operation *operation, CUresult *result) {
    emu_allocation freed;
    bool waits_for_captured =
        operation->kind == EMU_WAIT && operation->event.event->capture != NULL;
    if (stream->capture == NULL && !waits_for_captured) {
        *result = stream->is_legacy ? emu_capture_refuse_legacy(stream->context) : CUDA_SUCCESS;
        return *result != CUDA_SUCCESS;
    }
    if (stream->capture != NULL && stream->capture->failed) {
        *result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        return true;
    }
    switch (operation->kind) {
    case EMU_WAIT:
        *result = take_wait(stream, operation->event.event);
        break;
    case EMU_RECORD:
        *result = take_record(stream, operation->event.event);
        break;
    case EMU_FREE: /* only what a graph allocated */
        *result = emu_memory_find(operation->address, &freed) && freed.kind == EMU_GRAPH_MEMORY
                      ? take_node(stream, operation)
                      : emu_capture_fail(stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        break;
    case EMU_CONDITIONAL: /* cannot be part of another graph */
        *result = emu_capture_fail(stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        break;
    case EMU_ALLOC:
    case EMU_KERNEL:
    case EMU_COPY:
    case EMU_FILL:
    case EMU_HOST:
    case EMU_EMPTY:
    case EMU_WRITE_VALUE:
    case EMU_WAIT_VALUE:
    case EMU_CHILD:
        *result = take_node(stream, operation);
        break;
    }
    return true;
}
