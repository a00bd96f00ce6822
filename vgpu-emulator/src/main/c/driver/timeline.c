#include "timeline.h"

#include "driver.h"

#include <stdlib.h>
#include <string.h>

enum { SPIN_NS = 3000, LONGEST_SLEEP_NS = 50000000 };

static void learn(const emu_view *view, CUevent event, uint64_t known_ns,
                  uint64_t known_service_ns) {
    uint32_t index = event->recorded_in->index;
    bool reached = event->end_ns <= view->schedule.contexts[index].served_ns; /* see look() */
    event->time_ns = reached ? emu_time_of_service(&view->schedule, index, event->end_ns, known_ns,
                                                   known_service_ns)
                             : known_ns;
    event->state = EMU_EVENT_DONE;
    emu_timeline_forget(event);
}

/*
 * Looks at the GPU and returns the context's exact service now. Events that have been reached get their times before
 * the history advances. The list is ordered by recording, so events behind the first unreached one (of other streams)
 * get theirs later.
 *
 * A process that is delayed between reading the clock and raising its demand asks for work in the past. Other processes
 * have then computed too much service since. Service already reported to a program is never taken back.
 */
static uint64_t look(CUcontext context, emu_view *view, emu_look_kind kind) {
    emu_gpu_look(context->gpu, view, kind);
    uint64_t served = view->schedule.contexts[context->index].served_ns;
    bool taken_back = served < context->known_service_ns;
    served = taken_back ? context->known_service_ns : served;
    while (context->first_pending != NULL && context->first_pending->end_ns <= served) {
        learn(view, context->first_pending, context->known_ns, context->known_service_ns);
    }
    if (!taken_back) {
        context->known_ns = view->schedule.now_ns;
        context->known_service_ns = served;
    }
    return served;
}

/* An upper bound of the service now; exact if the context runs alone. Costs one clock reading. */
static uint64_t upper_bound(CUcontext context) {
    uint64_t now = emu_now_ns();
    uint64_t passed = now > context->known_ns ? now - context->known_ns : 0;
    uint64_t bound = context->known_service_ns + passed;
    return bound < context->demand_ns ? bound : context->demand_ns;
}

/* The earliest service at which the stream's new work may run, as far as other streams are concerned. */
static uint64_t stream_start(CUcontext context, CUstream stream) {
    uint64_t start = stream->end_ns;
    if (stream->is_legacy) {
        start = context->blocking_end_ns > start ? context->blocking_end_ns : start;
    } else if ((stream->flags & CU_STREAM_NON_BLOCKING) == 0) {
        start = context->legacy->end_ns > start ? context->legacy->end_ns : start;
    }
    return start;
}

uint64_t emu_timeline_stream_end(CUcontext context, CUstream stream) {
    return stream_start(context, stream);
}

uint64_t emu_timeline_context_end(CUcontext context) {
    return context->demand_ns;
}

void emu_timeline_delay(CUstream stream, uint64_t service_ns) {
    if (stream->end_ns < service_ns) {
        stream->end_ns = service_ns;
    }
    CUcontext context = stream->context;
    if ((stream->flags & CU_STREAM_NON_BLOCKING) == 0 &&
        context->blocking_end_ns < stream->end_ns) {
        context->blocking_end_ns = stream->end_ns;
    }
}

void emu_timeline_barrier(CUstream stream) {
    if (stream->is_legacy && emu_driver.state.times.has_legacy_events) {
        emu_timeline_delay(stream, stream_start(stream->context, stream));
    }
}

static void raise_demand(CUcontext context, uint64_t service_ns) {
    if (service_ns > context->demand_ns) {
        context->demand_ns = service_ns;
        emu_set_demand(context->gpu, context->index, service_ns);
    }
}

static uint64_t *entry_of(CUstream stream) {
    return &stream->queue[stream->queued % emu_driver.state.times.queue_entries];
}

/* Waits until the stream's queue has room. If the queue cannot be allocated, there is no limit. */
static void await_entry(CUcontext context, CUstream stream) {
    if (stream->queue == NULL) {
        stream->queue = calloc(emu_driver.state.times.queue_entries, sizeof *stream->queue);
    }
    while (stream->queue != NULL) { /* another thread may destroy the stream meanwhile */
        uint64_t oldest = *entry_of(stream);
        if (oldest <= context->known_service_ns || emu_timeline_reached(context, oldest)) {
            return;
        }
        emu_timeline_wait(context, oldest);
    }
}

/* Reserves the engine's first free stretch of that length, starting at or after `start`. */
static uint64_t take_engine(emu_engine *engine, uint64_t start, uint64_t length, uint64_t served) {
    uint32_t gone = 0;
    while (gone < engine->count && engine->busy[gone].end_ns <= served) {
        gone++;
    }
    /* make room: drop the stretch that ends first */
    gone = gone == 0 && engine->count == EMU_ENGINE_COPIES ? 1 : gone;
    engine->count -= gone;
    memmove(engine->busy, engine->busy + gone, engine->count * sizeof engine->busy[0]);
    uint32_t at = 0;
    while (at < engine->count && engine->busy[at].start_ns < start + length) {
        start = engine->busy[at].end_ns > start ? engine->busy[at].end_ns : start;
        at++;
    }
    if (at > 0 && engine->busy[at - 1].end_ns == start) {
        engine->busy[at - 1].end_ns += length;
        return start;
    }
    memmove(engine->busy + at + 1, engine->busy + at,
            (engine->count - at) * sizeof engine->busy[0]);
    engine->busy[at].start_ns = start;
    engine->busy[at].end_ns = start + length;
    engine->count++;
    return start;
}

void emu_timeline_submit(CUcontext context, CUstream stream, uint32_t engine,
                         uint64_t duration_ns) {
    if (duration_ns == 0) {
        return;
    }
    await_entry(context, stream);
    emu_view view;
    uint64_t start = stream_start(context, stream);
    uint64_t bound = upper_bound(context);
    /* Below the bound, the stream may have run dry; at the context's demand, the context may have. */
    if (start < bound || bound == context->demand_ns) {
        uint64_t served = look(context, &view, EMU_LOOK);
        if (served == context->demand_ns) {
            /* The context is idle. The GPU's time must advance to now before the demand is raised; otherwise the new
             * work would run in the past. */
            served = look(context, &view, EMU_PUBLISH);
        }
        start = start < served ? served : start;
    }
    if (engine != 0) {
        start = take_engine(&context->engines[engine - 1], start, duration_ns,
                            context->known_service_ns);
    }
    uint64_t end = start + duration_ns;
    stream->end_ns = end;
    emu_timeline_delay(stream, end);
    if (stream->queue != NULL) {
        *entry_of(stream) = end;
        stream->queued++;
    }
    raise_demand(context, end);
}

bool emu_timeline_reached(CUcontext context, uint64_t service_ns) {
    if (service_ns <= context->known_service_ns) {
        return true;
    }
    if (service_ns > upper_bound(context)) {
        return false;
    }
    emu_view view;
    return look(context, &view, EMU_LOOK) >= service_ns;
}

/* When to look again: when the service will be reached if nothing changes, or earlier to check. */
static uint64_t wake_time(CUcontext context, emu_view *view, uint64_t service_ns) {
    uint64_t now = view->schedule.now_ns;
    uint64_t missing = service_ns - context->known_service_ns;
    uint64_t slice = context->gpu->state->settings.slice_ns;
    uint64_t runnable = emu_runnable_count(&view->schedule, view->demand);
    if (runnable <= 1) { /* other contexts can only delay it */
        return now + (missing < LONGEST_SLEEP_NS ? missing : LONGEST_SLEEP_NS);
    }
    uint64_t horizon = now + (runnable / 2 > 1 ? runnable / 2 : 1) * slice;
    uint64_t end =
        emu_predict(&view->schedule, view->demand, slice, context->index, service_ns, horizon);
    return end < horizon ? end : horizon;
}

void emu_timeline_wait(CUcontext context, uint64_t service_ns) {
    uint32_t generation = context->object.generation;
    uint32_t resumptions = emu_gpu_resumptions(); /* before the look that may find it stopped */
    emu_view view;
    while (service_ns > context->known_service_ns && look(context, &view, EMU_LOOK) < service_ns) {
        bool stopped = view.schedule.contexts[context->index].is_stopped != 0;
        uint64_t wake = wake_time(context, &view, service_ns);
        pthread_mutex_unlock(&context->lock);
        if (stopped) {
            emu_gpu_await_resumption(resumptions, LONGEST_SLEEP_NS);
        } else if (wake > emu_now_ns() + SPIN_NS) {
            emu_sleep_until(wake);
        }
        resumptions = emu_gpu_resumptions();
        pthread_mutex_lock(&context->lock);
        if (!emu_pool_has(&emu_contexts, context) || context->object.generation != generation) {
            return; /* destroyed by another thread */
        }
    }
}

uint64_t emu_timeline_wake(CUcontext context, uint64_t service_ns) {
    emu_view view;
    return look(context, &view, EMU_LOOK) >= service_ns ? context->known_ns
                                                        : wake_time(context, &view, service_ns);
}

void emu_timeline_forget(CUevent event) {
    CUcontext context = event->recorded_in;
    bool listed =
        context != NULL && (event->previous_pending != NULL || context->first_pending == event);
    if (!listed) {
        return;
    }
    if (event->previous_pending != NULL) {
        event->previous_pending->next_pending = event->next_pending;
    } else {
        context->first_pending = event->next_pending;
    }
    if (event->next_pending != NULL) {
        event->next_pending->previous_pending = event->previous_pending;
    } else {
        context->last_pending = event->previous_pending;
    }
    event->next_pending = NULL;
    event->previous_pending = NULL;
}

/* Whether another context occupies the GPU at this instant, or the GPU has to change to this one first. */
static bool is_taken(CUcontext context, const emu_view *view) {
    const emu_schedule *s = &view->schedule;
    if (s->turn == context->index) {
        return s->now_ns < s->switch_end_ns;
    }
    return emu_change_ns(s, s->turn, context->index) > 0 ||
           (s->running && s->contexts[s->turn].served_ns < view->demand[s->turn]);
}

/*
 * Records an event whose stream is idle. The GPU notes the time when it next runs the context: now, or at the start of
 * the context's next slice if another context has the GPU, or had it last. So a measurement between two events does not
 * start with a wait for other contexts, nor with the change to this one. In the second case the event takes one
 * nanosecond of service, so that it has an instant of its own.
 */
static bool happens_now(CUcontext context, CUstream stream, CUevent event) {
    emu_view view;
    if (event->end_ns > upper_bound(context)) {
        return false;
    }
    uint64_t served = look(context, &view, EMU_LOOK);
    if (served < event->end_ns) {
        return false;
    }
    if (!is_taken(context, &view)) {
        event->time_ns = view.schedule.now_ns;
        event->state = EMU_EVENT_DONE;
        return true;
    }
    if (served == context->demand_ns) {
        served = look(context, &view, EMU_PUBLISH);
    }
    event->end_ns = served + 1;
    emu_timeline_delay(stream, event->end_ns);
    raise_demand(context, event->end_ns);
    return false;
}

void emu_timeline_record(CUcontext context, CUstream stream, CUevent event) {
    emu_timeline_forget(event);
    __atomic_store_n(&event->recorded_in, context, __ATOMIC_RELEASE);
    event->recorded_generation = context->object.generation;
    event->recorded = true;
    __atomic_store_n(&event->capture, NULL, __ATOMIC_RELEASE);
    emu_timeline_barrier(stream);
    event->end_ns = stream_start(context, stream);
    if (happens_now(context, stream, event)) {
        return;
    }
    event->state = EMU_EVENT_PENDING;
    event->previous_pending = context->last_pending;
    if (context->last_pending != NULL) {
        context->last_pending->next_pending = event;
    } else {
        context->first_pending = event;
    }
    context->last_pending = event;
}

bool emu_timeline_event_done(CUcontext context, CUevent event) {
    if (event->state != EMU_EVENT_PENDING) {
        return event->state == EMU_EVENT_DONE;
    }
    if (event->end_ns > upper_bound(context)) {
        return false;
    }
    emu_view view;
    uint64_t known_ns = context->known_ns;
    uint64_t known_service_ns = context->known_service_ns;
    if (look(context, &view, EMU_LOOK) < event->end_ns) {
        return false;
    }
    if (event->state == EMU_EVENT_PENDING) { /* the event was not at the head of the list */
        learn(&view, event, known_ns, known_service_ns);
    }
    return true;
}
