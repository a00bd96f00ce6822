/*
 * When the work of a context's streams is done. All functions need the context's lock, and may release it while they
 * sleep.
 */
#ifndef EMU_TIMELINE_H
#define EMU_TIMELINE_H

#include "objects.h"

/*
 * Appends work of that length to a stream, and occupies a copy engine (1 to EMU_ENGINES; 0: none). Blocks while the
 * stream's queue is full.
 */
void emu_timeline_submit(CUcontext context, CUstream stream, uint32_t engine, uint64_t duration_ns);

/* Makes all work that the stream submits from now on start after this service. */
void emu_timeline_delay(CUstream stream, uint64_t service_ns);

/*
 * Orders an event record, or a wait for one, in the legacy stream: after all work of blocking streams, and before their
 * later work.
 */
void emu_timeline_barrier(CUstream stream);

/* The service at which everything that the stream must wait for, as of now, is done. */
uint64_t emu_timeline_stream_end(CUcontext context, CUstream stream);

/* The service at which the whole context runs dry. */
uint64_t emu_timeline_context_end(CUcontext context);

bool emu_timeline_reached(CUcontext context, uint64_t service_ns);
void emu_timeline_wait(CUcontext context, uint64_t service_ns);

/* When to look again whether a service has been reached. */
uint64_t emu_timeline_wake(CUcontext context, uint64_t service_ns);

/* An event takes the stream's end, and later the time at which that was reached. */
void emu_timeline_record(CUcontext context, CUstream stream, CUevent event);
void emu_timeline_forget(CUevent event);
/* Whether the event's record is done. The context is the one in which it was recorded. */
bool emu_timeline_event_done(CUcontext context, CUevent event);

#endif
