/*
 * When the work of a context's streams is done. All take place with the context's lock held, and
 * may let go of it while they sleep.
 */
#ifndef EMU_TIMELINE_H
#define EMU_TIMELINE_H

#include "objects.h"

/*
 * Puts work of that length behind what the stream has, and on a copy engine (1 to EMU_ENGINES; 0: on none). Blocks
 * while the stream's queue is full.
 */
void emu_timeline_submit(CUcontext context, CUstream stream, uint32_t engine, uint64_t duration_ns);

/* What a stream submits from now on comes after this service. */
void emu_timeline_delay(CUstream stream, uint64_t service_ns);

/*
 * An event in the legacy stream, or a wait for one: it comes after all blocking streams' work, and before what they
 * get later.
 */
void emu_timeline_barrier(CUstream stream);

/* The service at which all that the stream may wait for is done, as of now. */
uint64_t emu_timeline_stream_end(CUcontext context, CUstream stream);

/* The service at which the whole context runs dry. */
uint64_t emu_timeline_context_end(CUcontext context);

bool emu_timeline_reached(CUcontext context, uint64_t service_ns);
void emu_timeline_wait(CUcontext context, uint64_t service_ns);

/* When to look again whether a service has been reached. */
uint64_t emu_timeline_wake(CUcontext context, uint64_t service_ns);

/* Events: they take the stream's end, and learn the time at which it was reached. */
void emu_timeline_record(CUcontext context, CUstream stream, CUevent event);
void emu_timeline_forget(CUevent event);
/* Whether the record of this event is done. The context is the one that it was recorded in. */
bool emu_timeline_event_done(CUcontext context, CUevent event);

#endif
