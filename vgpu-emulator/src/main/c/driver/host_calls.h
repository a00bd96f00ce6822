/*
 * Host functions in streams (cuLaunchHostFunc, cuStreamAddCallback). Operations behind a host function in its stream,
 * and operations of other streams that wait for them, are kept back. The thread that runs the host functions submits
 * them later.
 */
#ifndef EMU_HOST_CALLS_H
#define EMU_HOST_CALLS_H

#include "operation.h"

/* Whether any stream of the context has operations kept back. Needs no lock. */
static inline bool emu_host_calls_waiting(CUcontext context) {
    return __atomic_load_n(&context->kept, __ATOMIC_ACQUIRE) != 0;
}

/*
 * Destroys an event: at once, or when no kept operation needs it any more. If the event was recorded in a context, the
 * caller holds that context's lock.
 */
void emu_event_destroy(CUevent event);

/* Whether a handle refers to an event that has not been destroyed. */
static inline bool emu_event_known(CUevent event) {
    return emu_pool_has(&emu_events, event) &&
           __atomic_load_n(&event->is_doomed, __ATOMIC_ACQUIRE) == 0;
}

/* Keeps an operation back if necessary. True: it was handled here, and *result is the outcome. The caller holds the
 * context's lock. */
bool emu_host_calls_take(CUstream stream, const emu_operation *operation, CUresult *result);

/* The number of kept operations that the stream must wait for. The caller holds the context's lock. */
uint64_t emu_host_calls_before(CUstream stream);

/* The caller holds the context's lock, which is released during the wait. */
void emu_host_calls_drain(CUstream stream);
void emu_host_calls_drain_all(CUcontext context);
void emu_host_calls_drain_event(CUcontext context, CUevent event);

/* Starts a detached thread; false: failed. */
bool emu_thread_start(void *(*run)(void *), void *argument);

#endif
