#include "host_calls.h"

#include "base/log.h"
#include "conditional.h"
#include "driver.h"
#include "graph.h"
#include "timeline.h"

#include <stdlib.h>

/* The worker's longest sleep while operations are kept back, because not everything that it waits for happens on the
 * GPU. */
enum { LONGEST_SLEEP_NS = 1000000, WORD_SLEEP_NS = 50000 /* the polling interval for words */ };

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool running;
    uint64_t kept; /* in all contexts */
} worker = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static bool is_blocking(CUstream stream) {
    return !stream->is_legacy && (stream->flags & CU_STREAM_NON_BLOCKING) == 0;
}

/* Whether one stream is the legacy stream and the other one waits for it, or the reverse. */
static bool conflict(CUstream one, CUstream other) {
    return (one->is_legacy && is_blocking(other)) || (other->is_legacy && is_blocking(one));
}

/* The number of kept operations, up to a sequence number, that a stream must wait for. */
static uint64_t before(CUstream stream, uint64_t sequence, bool own) {
    uint64_t count = 0;
    for (CUstream other = stream->context->streams; other != NULL; other = other->next) {
        if ((own && other == stream) || conflict(stream, other)) {
            for (emu_operation *o = other->first_waiting; o != NULL && o->sequence <= sequence;
                 o = o->next) {
                count++;
            }
        }
    }
    return count;
}

uint64_t emu_host_calls_before(CUstream stream) {
    return emu_host_calls_waiting(stream->context) ? before(stream, UINT64_MAX, true) : 0;
}

static void change_kept(CUcontext context, int64_t by) {
    __atomic_store_n(&context->kept, context->kept + (uint64_t)by, __ATOMIC_RELEASE);
    pthread_mutex_lock(&worker.lock);
    worker.kept += (uint64_t)by;
    pthread_cond_signal(&worker.changed);
    pthread_mutex_unlock(&worker.lock);
}

/*
 * A wait refers to the last record before it. It must not wait for a later record of the same event, which may itself
 * stand behind the wait.
 */
static pthread_mutex_t records_lock = PTHREAD_MUTEX_INITIALIZER;

/* The caller holds records_lock. */
static void leave_record(emu_kept_record *record) {
    if (record != NULL && --record->users == 0) {
        free(record);
    }
}

static bool is_awaited(const emu_kept_record *record) {
    return record != NULL && __atomic_load_n(&record->is_done, __ATOMIC_ACQUIRE) == 0;
}

/* Whether a wait for an event must wait for a record that is kept back. */
static bool has_kept_record(CUevent event) {
    pthread_mutex_lock(&records_lock);
    bool awaited = is_awaited(event->last_kept);
    pthread_mutex_unlock(&records_lock);
    return awaited;
}

/* A kept operation either creates a record, or refers to the record that it waits for. False: no memory. */
static bool join_record(emu_operation *operation) {
    emu_event_use *use = &operation->event;
    use->record = operation->kind == EMU_RECORD ? calloc(1, sizeof *use->record) : NULL;
    if (operation->kind == EMU_RECORD && use->record == NULL) {
        return false;
    }
    pthread_mutex_lock(&records_lock);
    if (operation->kind == EMU_RECORD) {
        leave_record(use->event->last_kept);
        use->event->last_kept = use->record;
        use->record->users = 2;
    } else if (is_awaited(use->event->last_kept)) {
        use->record = use->event->last_kept;
        use->record->users++;
    }
    pthread_mutex_unlock(&records_lock);
    return true;
}

static void take_away(CUevent event, bool is_here) {
    if (__atomic_exchange_n(&event->is_gone, 1, __ATOMIC_ACQ_REL) == 0 && is_here) {
        pthread_mutex_lock(&records_lock);
        leave_record(event->last_kept);
        pthread_mutex_unlock(&records_lock);
        emu_timeline_forget(event);
        emu_nodes_clear(&event->captured);
        emu_pool_give(&emu_events, event);
    }
}

void emu_event_destroy(CUevent event) {
    __atomic_store_n(&event->is_doomed, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&event->users, __ATOMIC_SEQ_CST) == 0) {
        take_away(event, true);
    }
}

/* Releases the event of an operation that has run or was dropped. */
static void release_event(CUstream stream, const emu_operation *operation) {
    CUevent event = operation->event.event;
    if (operation->kind == EMU_RECORD) {
        __atomic_sub_fetch(&event->waiting, 1, __ATOMIC_ACQ_REL);
        __atomic_store_n(&operation->event.record->is_done, 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_lock(&records_lock);
    leave_record(operation->event.record);
    pthread_mutex_unlock(&records_lock);
    if (__atomic_sub_fetch(&event->users, 1, __ATOMIC_SEQ_CST) == 0 &&
        __atomic_load_n(&event->is_doomed, __ATOMIC_SEQ_CST) != 0) {
        /* An event recorded in another context may be in that context's list, whose lock is not held. It stays
         * there. */
        take_away(event, event->recorded_in == NULL || event->recorded_in == stream->context);
    }
}

/* Removes a stream's first kept operation. */
static void drop_first(CUstream stream) {
    emu_operation *first = stream->first_waiting;
    if (first->kind == EMU_RECORD || first->kind == EMU_WAIT) {
        release_event(stream, first);
    }
    if (first->next == NULL) {
        stream->last_waiting = NULL;
    }
    __atomic_store_n(&stream->first_waiting, first->next, __ATOMIC_RELEASE);
    if (first->kind == EMU_CONDITIONAL) {
        emu_conditional_leave(first->conditional.what);
    }
    free(first->read);
    free(first);
    change_kept(stream->context, -1);
    pthread_cond_broadcast(&stream->context->progress);
}

void emu_stream_drop_waiting(CUstream stream) {
    while (stream->first_waiting != NULL) {
        drop_first(stream);
    }
}

/* The caller holds the context's lock, which is released while the function runs. */
static void call_host(CUcontext context, const emu_host_call *host) {
    emu_host_call call = *host;
    CUresult status = context->sticky;
    pthread_mutex_unlock(&context->lock);
    emu_thread.in_host_call = 1;
    if (call.function != NULL) {
        call.function(call.data);
    } else {
        call.callback(call.handle, status, call.data);
    }
    emu_thread.in_host_call = 0;
    pthread_mutex_lock(&context->lock);
}

static bool may_run(CUstream stream, const emu_operation *operation) {
    if (before(stream, operation->sequence, false) > 0) {
        return false;
    }
    if (operation->kind == EMU_WAIT) {
        return !is_awaited(operation->event.record);
    }
    if (operation->kind == EMU_WAIT_VALUE && !emu_word_is_there(&operation->word)) {
        return false;
    }
    return (operation->kind != EMU_HOST && operation->kind != EMU_WRITE_VALUE) ||
           emu_timeline_reached(stream->context, emu_timeline_stream_end(stream->context, stream));
}

/* Runs a stream's first operation if it may run now; true if it ran. The caller holds the context's lock, which is
 * released meanwhile. */
static bool run_first(CUstream stream) {
    CUcontext context = stream->context;
    emu_operation *first = stream->first_waiting;
    if (first->running || !may_run(stream, first)) {
        return false;
    }
    first->running = true;
    if (first->kind == EMU_HOST) {
        call_host(context, &first->host);
    } else {
        pthread_mutex_unlock(&context->lock);
        emu_operation_run(stream, first);
        pthread_mutex_lock(&context->lock);
    }
    drop_first(stream);
    return true;
}

/* Runs the operations that may run in a context. Lowers *wake to the time of the next check if that is earlier. */
static bool run_context(CUcontext context, uint64_t *wake) {
    bool any = false;
    pthread_mutex_lock(&context->lock);
    for (CUstream stream = context->streams; emu_host_calls_waiting(context) && stream != NULL;) {
        if (stream->first_waiting != NULL && run_first(stream)) {
            any = true;
            stream = context->streams; /* the list may have changed */
            continue;
        }
        emu_operation *first = stream->first_waiting;
        if (first != NULL && first->kind == EMU_WAIT_VALUE) {
            uint64_t at = emu_now_ns() + WORD_SLEEP_NS;
            *wake = at < *wake ? at : *wake;
        } else if (first != NULL && !first->running &&
                   (first->kind == EMU_HOST || first->kind == EMU_WRITE_VALUE)) {
            uint64_t at = emu_timeline_wake(context, emu_timeline_stream_end(context, stream));
            *wake = at < *wake ? at : *wake;
        }
        stream = stream->next;
    }
    pthread_mutex_unlock(&context->lock);
    return any;
}

static void *work(void *nothing) {
    (void)nothing;
    for (;;) {
        pthread_mutex_lock(&worker.lock);
        while (worker.kept == 0) {
            pthread_cond_wait(&worker.changed, &worker.lock);
        }
        pthread_mutex_unlock(&worker.lock);
        uint64_t wake = emu_now_ns() + LONGEST_SLEEP_NS;
        bool any = false;
        size_t count = __atomic_load_n(&emu_contexts.used, __ATOMIC_ACQUIRE);
        for (size_t i = 0; i < count; i++) {
            CUcontext context =
                (CUcontext)(void *)(emu_contexts.items + i * emu_contexts.item_size);
            if (emu_pool_has(&emu_contexts, context) && emu_host_calls_waiting(context)) {
                any |= run_context(context, &wake);
            }
        }
        if (!any) {
            emu_sleep_until(wake);
        }
    }
    return NULL;
}

/* Bound to the version that every glibc has. Weak, because before glibc 2.34 a program without threads does not have
 * it. */
#if defined(__aarch64__)
__asm__(".symver emu_pthread_create, pthread_create@GLIBC_2.17");
#else
__asm__(".symver emu_pthread_create, pthread_create@GLIBC_2.2.5");
#endif
extern int emu_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *)
    __attribute__((weak));

bool emu_thread_start(void *(*run)(void *), void *argument) {
    if (emu_pthread_create == NULL) {
        return false;
    }
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    bool started = emu_pthread_create(&thread, &attributes, run, argument) == 0;
    pthread_attr_destroy(&attributes);
    return started;
}

static bool start_worker(void) {
    pthread_mutex_lock(&worker.lock);
    if (!worker.running) {
        worker.running = emu_thread_start(work, NULL);
        if (!worker.running) {
            emu_log("cannot start a thread for host functions");
        }
    }
    bool running = worker.running;
    pthread_mutex_unlock(&worker.lock);
    return running;
}

static bool must_keep(CUstream stream, const emu_operation *operation) {
    if (operation->kind == EMU_HOST || stream->first_waiting != NULL) {
        return true;
    }
    if (operation->kind == EMU_WAIT && has_kept_record(operation->event.event)) {
        return true;
    }
    if (operation->kind == EMU_WAIT_VALUE && !emu_word_is_there(&operation->word)) {
        return true;
    }
    if (operation->kind == EMU_WRITE_VALUE &&
        !emu_timeline_reached(stream->context, emu_timeline_stream_end(stream->context, stream))) {
        return true;
    }
    return before(stream, UINT64_MAX, false) > 0;
}

/* Reads the source of a copy whose source the program may change as soon as the call returns. */
static bool read_source(emu_operation *kept) {
    emu_box *box = &kept->copy;
    if (box->width > SIZE_MAX / box->height || box->width * box->height > SIZE_MAX / box->depth) {
        return false;
    }
    kept->read = malloc(box->width * box->height * box->depth);
    if (kept->read == NULL) {
        return false;
    }
    emu_box reading = *box;
    reading.target = (uint64_t)(uintptr_t)kept->read;
    reading.target_pitch = box->width;
    reading.target_slice = box->width * box->height;
    emu_box_copy(&reading);
    box->source = reading.target;
    box->source_pitch = reading.target_pitch;
    box->source_slice = reading.target_slice;
    return true;
}

/* Makes a kept operation's own copy of what it refers to. False: no memory. */
static bool own(emu_operation *kept) {
    kept->read = NULL;
    if (kept->kind == EMU_RECORD || kept->kind == EMU_WAIT) {
        return join_record(kept);
    }
    if (kept->kind == EMU_CONDITIONAL) { /* the executable graph may end before it runs */
        emu_conditional_join(kept->conditional.what);
    }
    return kept->kind != EMU_COPY || !kept->reads_at_once || read_source(kept);
}

bool emu_host_calls_take(CUstream stream, const emu_operation *operation, CUresult *result) {
    if (!must_keep(stream, operation)) {
        return false;
    }
    emu_operation *kept = malloc(sizeof *kept);
    bool is_made = kept != NULL && start_worker();
    if (is_made) {
        *kept = *operation;
        is_made = own(kept);
    }
    if (!is_made) {
        free(kept);
        *result = CUDA_ERROR_OUT_OF_MEMORY;
        return true;
    }
    CUcontext context = stream->context;
    kept->next = NULL;
    kept->running = false;
    kept->sequence = ++context->sequence;
    if (operation->kind == EMU_RECORD) {
        operation->event.event->recorded = true;
        __atomic_add_fetch(&operation->event.event->waiting, 1, __ATOMIC_ACQ_REL);
    }
    if (operation->kind == EMU_RECORD || operation->kind == EMU_WAIT) {
        __atomic_add_fetch(&operation->event.event->users, 1, __ATOMIC_SEQ_CST);
    }
    if (stream->last_waiting != NULL) {
        stream->last_waiting->next = kept;
    } else {
        __atomic_store_n(&stream->first_waiting, kept, __ATOMIC_RELEASE);
    }
    stream->last_waiting = kept;
    change_kept(context, 1);
    *result = CUDA_SUCCESS;
    return true;
}

void emu_host_calls_drain(CUstream stream) {
    CUcontext context = stream->context;
    uint64_t sequence = context->sequence;
    while (emu_host_calls_waiting(context) && before(stream, sequence, true) > 0) {
        pthread_cond_wait(&context->progress, &context->lock);
    }
}

void emu_host_calls_drain_all(CUcontext context) {
    while (emu_host_calls_waiting(context)) {
        pthread_cond_wait(&context->progress, &context->lock);
    }
}

void emu_host_calls_drain_event(CUcontext context, CUevent event) {
    while (__atomic_load_n(&event->waiting, __ATOMIC_ACQUIRE) > 0) {
        pthread_cond_wait(&context->progress, &context->lock);
    }
}
