#include "operation.h"

#include "capture.h"
#include "conditional.h"
#include "driver.h"
#include "graph_memory.h"
#include "host_calls.h"
#include "imported.h"
#include "memory.h"
#include "timeline.h"

#include <stdlib.h>
#include <string.h>

void emu_box_copy(const emu_box *box) {
    for (uint64_t z = 0; z < box->depth; z++) {
        for (uint64_t y = 0; y < box->height; y++) {
            const char *source = (const char *)(uintptr_t)(box->source + z * box->source_slice +
                                                           y * box->source_pitch);
            char *target =
                (char *)(uintptr_t)(box->target + z * box->target_slice + y * box->target_pitch);
            memmove(target, source, box->width);
        }
    }
}

static void fill_rows(const emu_fill *fill) {
    for (uint64_t y = 0; y < fill->height; y++) {
        char *row = (char *)(uintptr_t)(fill->target + y * fill->pitch);
        if (fill->element_bytes == 1) {
            memset(row, (int)(fill->value & 0xff), fill->width);
        } else if (fill->element_bytes == 2) {
            for (uint64_t x = 0; x < fill->width; x++) {
                ((uint16_t *)(void *)row)[x] = (uint16_t)fill->value;
            }
        } else {
            for (uint64_t x = 0; x < fill->width; x++) {
                ((uint32_t *)(void *)row)[x] = fill->value;
            }
        }
    }
}

static bool same_event(const emu_event_use *use) {
    return emu_pool_has(&emu_events, use->event) &&
           use->event->object.generation == use->generation;
}

/* Waits for an event of another context, whose service cannot be compared with this one's, before anything else is
 * submitted. */
static void wait_elsewhere(CUevent event) {
    CUcontext other = __atomic_load_n(&event->recorded_in, __ATOMIC_ACQUIRE);
    pthread_mutex_lock(&other->lock);
    if (emu_is_live(other, event->recorded_generation) && event->state == EMU_EVENT_PENDING) {
        emu_timeline_wait(other, event->end_ns);
    }
    pthread_mutex_unlock(&other->lock);
}

static void run_wait(CUstream stream, const emu_event_use *use) {
    if (!same_event(use) || !use->event->recorded) {
        return;
    }
    CUevent event = use->event;
    CUcontext context = stream->context;
    CUcontext recorded_in = __atomic_load_n(&event->recorded_in, __ATOMIC_ACQUIRE);
    if (recorded_in != context) {
        if (recorded_in != NULL) {
            wait_elsewhere(event);
        }
        return;
    }
    pthread_mutex_lock(&context->lock);
    emu_timeline_barrier(stream);
    emu_timeline_delay(stream, event->end_ns);
    pthread_mutex_unlock(&context->lock);
}

static void run_record(CUstream stream, const emu_event_use *use) {
    CUcontext context = stream->context;
    if (!same_event(use)) {
        return;
    }
    CUevent event = use->event;
    CUcontext before = __atomic_load_n(&event->recorded_in, __ATOMIC_ACQUIRE);
    if (before != NULL && before != context) {
        pthread_mutex_lock(&before->lock);
        emu_timeline_forget(event);
        pthread_mutex_unlock(&before->lock);
        __atomic_store_n(&event->recorded_in, NULL, __ATOMIC_RELEASE);
    }
    pthread_mutex_lock(&context->lock);
    emu_timeline_record(context, stream, event);
    pthread_mutex_unlock(&context->lock);
}

bool emu_word_is_there(const emu_word *word) {
    const void *at = (const void *)(uintptr_t)word->address;
    bool wide = word->bytes == 8;
    uint64_t seen = wide ? __atomic_load_n((const uint64_t *)at, __ATOMIC_ACQUIRE)
                         : __atomic_load_n((const uint32_t *)at, __ATOMIC_ACQUIRE);
    uint64_t mask = wide ? UINT64_MAX : UINT32_MAX;
    switch (word->test) {
    case CU_STREAM_WAIT_VALUE_EQ:
        return seen == word->value;
    case CU_STREAM_WAIT_VALUE_AND:
        return (seen & word->value) != 0;
    case CU_STREAM_WAIT_VALUE_NOR:
        return (~(seen | word->value) & mask) != 0;
    default: /* cyclic comparison: a counter may have wrapped around */
        return wide ? (int64_t)(seen - word->value) >= 0
                    : (int32_t)((uint32_t)seen - (uint32_t)word->value) >= 0;
    }
}

static void write_word(const emu_word *word) {
    void *at = (void *)(uintptr_t)word->address;
    if (word->test == EMU_WRITE_GREATER) {
        uint64_t seen = __atomic_load_n((uint64_t *)at, __ATOMIC_ACQUIRE);
        while (seen < word->value &&
               !__atomic_compare_exchange_n((uint64_t *)at, &seen, word->value, false,
                                            __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        }
    } else if (word->bytes == 8) {
        __atomic_store_n((uint64_t *)at, word->value, __ATOMIC_RELEASE);
    } else {
        __atomic_store_n((uint32_t *)at, (uint32_t)word->value, __ATOMIC_RELEASE);
    }
}

void emu_operation_run(CUstream stream, const emu_operation *operation) {
    CUcontext context = stream->context;
    switch (operation->kind) {
    case EMU_KERNEL:
        if (operation->kernel.known != NULL && operation->kernel.known->compute != NULL &&
            !operation->kernel.known->compute(operation->kernel.arguments)) {
            context->sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
        }
        break;
    case EMU_COPY:
        emu_box_copy(&operation->copy);
        break;
    case EMU_FILL:
        fill_rows(&operation->fill);
        break;
    case EMU_RECORD:
        run_record(stream, &operation->event);
        return;
    case EMU_WAIT:
        run_wait(stream, &operation->event);
        return;
    case EMU_FREE:
        if (emu_memory_free(operation->address, 1u << EMU_DEVICE_MEMORY | 1u << EMU_POOL_MEMORY) !=
                CUDA_SUCCESS &&
            emu_imported_unmap(operation->address, 1u << IMPORTED_POINTER) != CUDA_SUCCESS) {
            emu_graph_memory_run(operation);
        }
        return;
    case EMU_ALLOC:
    case EMU_WRITE_VALUE:
        write_word(&operation->word);
        return;
    case EMU_CONDITIONAL:
        emu_conditional_run(stream, operation);
        return;
    case EMU_HOST:
    case EMU_EMPTY:
    case EMU_WAIT_VALUE:
    case EMU_CHILD:
        return;
    }
    if (operation->duration_ns > 0) {
        pthread_mutex_lock(&context->lock);
        emu_timeline_submit(context, stream, operation->engine, operation->duration_ns);
        pthread_mutex_unlock(&context->lock);
    }
}

bool emu_stream_must_queue(CUstream stream) {
    return emu_host_calls_waiting(stream->context) || (stream->is_legacy && emu_captures_active());
}

CUresult emu_enqueue(CUstream stream, const emu_operation *operation) {
    CUcontext context = stream->context;
    if (!emu_stream_is_plain(stream) || operation->kind == EMU_HOST ||
        operation->kind == EMU_WRITE_VALUE || operation->kind == EMU_WAIT_VALUE ||
        emu_stream_must_queue(stream) ||
        (operation->kind == EMU_WAIT && operation->event.event->capture != NULL)) {
        CUresult result = CUDA_SUCCESS;
        pthread_mutex_lock(&context->lock);
        bool taken = emu_capture_take(stream, operation, &result) ||
                     emu_host_calls_take(stream, operation, &result);
        pthread_mutex_unlock(&context->lock);
        if (taken) {
            return result;
        }
    }
    emu_operation_run(stream, operation);
    return CUDA_SUCCESS;
}

bool emu_stream_is_idle(CUstream stream) {
    CUcontext context = stream->context;
    return emu_host_calls_before(stream) == 0 &&
           emu_timeline_reached(context, emu_timeline_stream_end(context, stream));
}

CUresult emu_stream_drain(CUstream stream) {
    CUcontext context = stream->context;
    if (emu_thread.in_host_call) {
        return CUDA_ERROR_NOT_PERMITTED;
    }
    pthread_mutex_lock(&context->lock);
    emu_host_calls_drain(stream);
    emu_timeline_wait(context, emu_timeline_stream_end(context, stream));
    CUresult result = context->sticky;
    pthread_mutex_unlock(&context->lock);
    emu_pools_settle();
    return result;
}

CUresult emu_context_drain(CUcontext context) {
    if (emu_thread.in_host_call) {
        return CUDA_ERROR_NOT_PERMITTED;
    }
    pthread_mutex_lock(&context->lock);
    emu_host_calls_drain_all(context);
    emu_timeline_wait(context, emu_timeline_context_end(context));
    CUresult result = context->sticky;
    pthread_mutex_unlock(&context->lock);
    emu_pools_settle();
    return result;
}

void emu_event_drain(CUcontext context, CUevent event) {
    emu_host_calls_drain_event(context, event);
    uint64_t end = event->end_ns;
    if (event->state == EMU_EVENT_PENDING) {
        emu_timeline_wait(context, end);
    }
}
