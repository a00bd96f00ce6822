/*
 * Host functions in streams (cuLaunchHostFunc, cuStreamAddCallback). What comes behind one in its
 * stream, and what waits for that in other streams, is kept back and submitted by the thread that
 * runs the host functions.
 */
#ifndef EMU_HOST_CALLS_H
#define EMU_HOST_CALLS_H

#include "operation.h"

/* Whether any stream of the context has something kept back. Needs no lock. */
static inline bool emu_host_calls_waiting(CUcontext context) {
    return __atomic_load_n(&context->kept, __ATOMIC_ACQUIRE) != 0;
}

/*
 * Destroys an event: at once, or when what is kept back no longer needs it. With the lock of the
 * context that it was recorded in, if there is one.
 */
void emu_event_destroy(CUevent event);

/* Whether a handle is that of an event that has not been destroyed. */
static inline bool emu_event_known(CUevent event) {
    return emu_pool_has(&emu_events, event) &&
           __atomic_load_n(&event->is_doomed, __ATOMIC_ACQUIRE) == 0;
}

/* With the context's lock. True: the operation is kept back. */
bool emu_host_calls_take(CUstream stream, const emu_operation *operation, CUresult *result);

/* With the context's lock: how many operations that are kept back the stream has to wait for. */
uint64_t emu_host_calls_before(CUstream stream);

/* With the context's lock, which they let go of while they wait. */
void emu_host_calls_drain(CUstream stream);
void emu_host_calls_drain_all(CUcontext context);
void emu_host_calls_drain_event(CUcontext context, CUevent event);

/* Starts a thread that nobody waits for; false: none could be. */
bool emu_thread_start(void *(*run)(void *), void *argument);

#endif
