/* Streams and events. */
#include "driver/capture.h"
#include "driver/driver.h"
#include "driver/host_calls.h"
#include "driver/ipc_event.h"
#include "driver/operation.h"
#include "driver/timeline.h"

#include <string.h>

#define SHARED_LOOK_NS \
    UINT64_C(50000) /* the polling interval for an event shared between processes */

#define STREAM(handle, per_thread) \
    EMU_CONTEXT(context); \
    CUstream stream = NULL; \
    do { \
        CUresult emu_found = emu_stream_of(context, handle, per_thread, &stream); \
        if (emu_found != CUDA_SUCCESS) { \
            return emu_found; \
        } \
    } while (0)

/* Defines the two forms of an entry point: NULL is the legacy stream, or the thread's own default stream. */
#define BOTH(name, suffix, parameters, ...) \
    EMU_API CUresult name parameters { \
        return name##_in(__VA_ARGS__, false); \
    } \
    EMU_API CUresult name##suffix parameters { \
        return name##_in(__VA_ARGS__, true); \
    }

EMU_API CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority) {
    EMU_CONTEXT(context);
    EMU_REQUIRE(stream != NULL && flags <= CU_STREAM_NON_BLOCKING);
    pthread_mutex_lock(&context->lock);
    *stream = emu_stream_open(context, flags, priority > 0 ? 0 : priority < -5 ? -5 : priority);
    pthread_mutex_unlock(&context->lock);
    return *stream == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

EMU_API CUresult cuStreamCreate(CUstream *stream, unsigned int flags) {
    return cuStreamCreateWithPriority(stream, flags, 0);
}

/* Work already in the stream still runs: its time is part of the context's demand. */
EMU_API CUresult cuStreamDestroy_v2(CUstream stream) {
    EMU_INITIALIZED();
    if (!emu_pool_has(&emu_streams, stream) || stream->is_legacy || stream->thread != 0) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    CUcontext context = stream->context;
    if (__atomic_load_n(&stream->first_waiting, __ATOMIC_ACQUIRE) != NULL) {
        emu_stream_drain(stream);
    }
    pthread_mutex_lock(&context->lock);
    emu_stream_close(stream);
    pthread_mutex_unlock(&context->lock);
    return CUDA_SUCCESS;
}

/* A call that cannot be part of a graph invalidates its stream's capture. */
static CUresult refuse_captured(CUstream stream) {
    pthread_mutex_lock(&stream->context->lock);
    CUresult result = emu_capture_of(stream) == NULL
                          ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
                          : emu_capture_fail(stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    pthread_mutex_unlock(&stream->context->lock);
    return result;
}

/* Whether a stream may be queried or awaited: neither it nor a stream that it stands for is being captured. */
static CUresult check_captures(CUstream stream) {
    CUresult result = CUDA_SUCCESS;
    if (emu_stream_is_captured(stream)) {
        return refuse_captured(stream);
    }
    if (stream->is_legacy && emu_captures_active()) {
        pthread_mutex_lock(&stream->context->lock);
        result = emu_capture_refuse_legacy(stream->context);
        pthread_mutex_unlock(&stream->context->lock);
    }
    return result;
}

static CUresult cuStreamSynchronize_in(CUstream handle, bool per_thread) {
    STREAM(handle, per_thread);
    CUresult refused = check_captures(stream);
    return refused != CUDA_SUCCESS ? refused : emu_stream_drain(stream);
}
BOTH(cuStreamSynchronize, _ptsz, (CUstream stream), stream)

static CUresult cuStreamQuery_in(CUstream handle, bool per_thread) {
    STREAM(handle, per_thread);
    emu_cost(emu_driver.state.times.query_cost_ns);
    CUresult refused = check_captures(stream);
    if (refused != CUDA_SUCCESS) {
        return refused;
    }
    pthread_mutex_lock(&stream->context->lock);
    bool idle = emu_stream_is_idle(stream);
    pthread_mutex_unlock(&stream->context->lock);
    return idle ? stream->context->sticky : CUDA_ERROR_NOT_READY;
}
BOTH(cuStreamQuery, _ptsz, (CUstream stream), stream)

/* An event shared between processes cannot be part of a graph. */
static CUresult submit_shared(CUstream stream, emu_operation operation) {
    return emu_stream_is_captured(stream) ? refuse_captured(stream)
                                          : emu_enqueue(stream, &operation);
}

static CUresult cuStreamWaitEvent_in(CUstream handle, CUevent event, unsigned int flags,
                                     bool per_thread) {
    STREAM(handle, per_thread);
    EMU_REQUIRE(flags <= CU_EVENT_WAIT_EXTERNAL);
    if (!emu_event_known(event)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (event->shared != NULL) {
        return submit_shared(stream, emu_ipc_event_wait(event->shared));
    }
    emu_operation operation = {.kind = EMU_WAIT,
                               .event = {.event = event, .generation = event->object.generation}};
    return emu_enqueue(stream, &operation);
}
BOTH(cuStreamWaitEvent, _ptsz, (CUstream stream, CUevent event, unsigned int flags), stream, event,
     flags)

static CUresult cuStreamGetPriority_in(CUstream handle, int *priority, bool per_thread) {
    STREAM(handle, per_thread);
    EMU_REQUIRE(priority != NULL);
    *priority = stream->priority;
    return CUDA_SUCCESS;
}
BOTH(cuStreamGetPriority, _ptsz, (CUstream stream, int *priority), stream, priority)

/* The header does not say that these questions end a capture: driver 580.159 on an H200 does it (./vgpu gpu-check,
 * calls.capture_ended_by). */
#define REFUSE_CAPTURED(stream) \
    if ((stream)->capture != NULL) { \
        return emu_capture_fail(stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED); \
    }

static CUresult cuStreamGetFlags_in(CUstream handle, unsigned int *flags, bool per_thread) {
    STREAM(handle, per_thread);
    EMU_REQUIRE(flags != NULL);
    REFUSE_CAPTURED(stream);
    *flags = stream->flags;
    return CUDA_SUCCESS;
}
BOTH(cuStreamGetFlags, _ptsz, (CUstream stream, unsigned int *flags), stream, flags)

static CUresult cuStreamGetId_in(CUstream handle, unsigned long long *id, bool per_thread) {
    STREAM(handle, per_thread);
    EMU_REQUIRE(id != NULL);
    REFUSE_CAPTURED(stream);
    *id = (unsigned long long)stream->context->object.generation << 32 | stream->id;
    return CUDA_SUCCESS;
}
BOTH(cuStreamGetId, _ptsz, (CUstream stream, unsigned long long *id), stream, id)

static CUresult cuStreamGetCtx_in(CUstream handle, CUcontext *result, bool per_thread) {
    STREAM(handle, per_thread);
    EMU_REQUIRE(result != NULL);
    *result = stream->context;
    return CUDA_SUCCESS;
}
BOTH(cuStreamGetCtx, _ptsz, (CUstream stream, CUcontext *result), stream, result)

static CUresult cuStreamGetCtx_v2_in(CUstream handle, CUcontext *result, void **green,
                                     bool per_thread) {
    STREAM(handle, per_thread);
    EMU_REQUIRE(result != NULL);
    *result = stream->context->primary != NULL ? stream->context->primary : stream->context;
    if (green != NULL) {
        *green = stream->context->green;
    }
    return CUDA_SUCCESS;
}
BOTH(cuStreamGetCtx_v2, _ptsz, (CUstream stream, CUcontext *result, void **green), stream, result,
     green)

static CUresult cuStreamGetDevice_in(CUstream handle, CUdevice *device, bool per_thread) {
    STREAM(handle, per_thread);
    EMU_REQUIRE(device != NULL);
    REFUSE_CAPTURED(stream);
    *device = stream->context->device;
    return CUDA_SUCCESS;
}
BOTH(cuStreamGetDevice, _ptsz, (CUstream stream, CUdevice *device), stream, device)

/* Hardware hints (cache windows, memory priorities) are accepted and have no effect. */
static CUresult cuLaunchHostFunc_in(CUstream handle, CUhostFn function, void *data,
                                    bool per_thread) {
    STREAM(handle, per_thread);
    EMU_REQUIRE(function != NULL);
    emu_operation operation = {.kind = EMU_HOST,
                               .host = {.function = function, .data = data, .handle = handle}};
    return emu_enqueue(stream, &operation);
}
BOTH(cuLaunchHostFunc, _ptsz, (CUstream stream, CUhostFn function, void *data), stream, function,
     data)

static CUresult cuStreamAddCallback_in(CUstream handle, CUstreamCallback callback, void *data,
                                       unsigned int flags, bool per_thread) {
    STREAM(handle, per_thread);
    EMU_REQUIRE(callback != NULL && flags == 0);
    if (emu_stream_is_captured(stream)) {
        return refuse_captured(stream);
    }
    emu_operation operation = {.kind = EMU_HOST,
                               .host = {.callback = callback, .data = data, .handle = handle}};
    return emu_enqueue(stream, &operation);
}
BOTH(cuStreamAddCallback, _ptsz,
     (CUstream stream, CUstreamCallback callback, void *data, unsigned int flags), stream, callback,
     data, flags)

EMU_API CUresult cuEventCreate(CUevent *event, unsigned int flags) {
    EMU_CONTEXT(context);
    EMU_REQUIRE(event != NULL && flags < 8 && (flags & 6) != CU_EVENT_INTERPROCESS);
    CUevent made = emu_pool_take(&emu_events);
    bool shared = (flags & CU_EVENT_INTERPROCESS) != 0;
    if (made != NULL && shared && (made->shared = emu_ipc_event_make()) == NULL) {
        emu_pool_give(&emu_events, made);
        made = NULL;
    }
    if (made == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    made->context = context;
    made->flags = flags;
    made->state = EMU_EVENT_DONE;
    *event = made;
    return CUDA_SUCCESS;
}

EMU_API CUresult cuEventDestroy_v2(CUevent event) {
    EMU_INITIALIZED();
    if (!emu_event_known(event)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    /* Another thread may be recording the event now, so its state is checked again under the lock. */
    CUcontext recorded_in = __atomic_load_n(&event->recorded_in, __ATOMIC_ACQUIRE);
    CUcontext context = recorded_in != NULL ? recorded_in : event->context;
    if (event->shared != NULL) {
        emu_ipc_event_give(event->shared);
    }
    pthread_mutex_lock(&context->lock);
    emu_event_destroy(event);
    pthread_mutex_unlock(&context->lock);
    return CUDA_SUCCESS;
}

/* A green context is part of the primary context. */
static CUcontext device_context(CUcontext context) {
    return context->primary != NULL ? context->primary : context;
}

static CUresult cuEventRecordWithFlags_in(CUevent event, CUstream handle, unsigned int flags,
                                          bool per_thread) {
    STREAM(handle, per_thread);
    EMU_REQUIRE(flags <= CU_EVENT_RECORD_EXTERNAL);
    emu_cost(emu_driver.state.times.record_cost_ns);
    if (!emu_event_known(event) ||
        device_context(event->context) != device_context(stream->context)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (event->shared != NULL) {
        return submit_shared(stream, emu_ipc_event_record(event->shared));
    }
    emu_operation operation = {.kind = EMU_RECORD,
                               .event = {.event = event, .generation = event->object.generation}};
    return emu_enqueue(stream, &operation);
}
BOTH(cuEventRecordWithFlags, _ptsz, (CUevent event, CUstream stream, unsigned int flags), event,
     stream, flags)

static CUresult cuEventRecord_in(CUevent event, CUstream handle, bool per_thread) {
    return cuEventRecordWithFlags_in(event, handle, 0, per_thread);
}
BOTH(cuEventRecord, _ptsz, (CUevent event, CUstream stream), event, stream)

/* Whether the event has completed; waits for it if `wait` is set. */
static CUresult look_at_event(CUevent event, bool wait) {
    EMU_INITIALIZED();
    if (!emu_event_known(event)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (event->shared != NULL) {
        while (wait && !emu_ipc_event_is_done(event->shared)) {
            emu_sleep_until(emu_now_ns() + SHARED_LOOK_NS);
        }
        return emu_ipc_event_is_done(event->shared) ? event->context->sticky : CUDA_ERROR_NOT_READY;
    }
    if (__atomic_load_n(&event->capture, __ATOMIC_ACQUIRE) != NULL) {
        return CUDA_ERROR_CAPTURED_EVENT;
    }
    /* Another thread may be recording the event now, so its state is checked again under the lock. */
    CUcontext recorded_in = __atomic_load_n(&event->recorded_in, __ATOMIC_ACQUIRE);
    CUcontext context = recorded_in != NULL ? recorded_in : event->context;
    uint32_t generation = context->object.generation;
    CUresult result = CUDA_ERROR_NOT_READY;
    pthread_mutex_lock(&context->lock);
    if (wait) {
        emu_event_drain(context, event);
    }
    if (event->waiting == 0 && (event->recorded_in == NULL || !emu_is_live(context, generation) ||
                                emu_timeline_event_done(context, event))) {
        result = context->sticky;
    }
    pthread_mutex_unlock(&context->lock);
    return result;
}

EMU_API CUresult cuEventQuery(CUevent event) {
    emu_cost(emu_driver.state.times.query_cost_ns);
    return look_at_event(event, false);
}

EMU_API CUresult cuEventSynchronize(CUevent event) {
    return look_at_event(event, true);
}

EMU_API CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end) {
    EMU_INITIALIZED();
    EMU_REQUIRE(milliseconds != NULL);
    if (!emu_event_known(start) || !emu_event_known(end) ||
        device_context(start->context) != device_context(end->context) ||
        ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING) != 0 || !start->recorded ||
        !end->recorded) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    emu_cost(emu_driver.state.times.elapsed_cost_ns);
    CUresult first = look_at_event(start, false);
    CUresult last = look_at_event(end, false);
    if (first != CUDA_SUCCESS || last != CUDA_SUCCESS) {
        return first != CUDA_SUCCESS ? first : last;
    }
    double passed = (double)(int64_t)(end->time_ns - start->time_ns);
    *milliseconds = (float)(passed / 1e6);
    return CUDA_SUCCESS;
}

EMU_API CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent start, CUevent end) {
    return cuEventElapsedTime(milliseconds, start, end);
}
