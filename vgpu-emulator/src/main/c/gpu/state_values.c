/* The copy-on-write values of the state, and the demands. */
#include "state_layout.h"

#include <string.h>
#include <time.h>

uint64_t emu_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Another process may be writing the source. Each word is read once and whole, so the copy is at worst a mixture. */
static void copy_from_shared(void *to, const void *from, size_t size) {
    uint64_t *target = to;
    const uint64_t *source = from;
    for (size_t i = 0; i < size / sizeof(uint64_t); i++) {
        target[i] = __atomic_load_n(&source[i], __ATOMIC_RELAXED);
    }
}

static void copy_to_shared(void *to, const void *from, size_t size) {
    uint64_t *target = to;
    const uint64_t *source = from;
    for (size_t i = 0; i < size / sizeof(uint64_t); i++) {
        __atomic_store_n(&target[i], source[i], __ATOMIC_RELAXED);
    }
}

static bool unchanged(const uint64_t *word, uint64_t seen) {
    /* Pairs with the fence in pick_buffer: a reader that sees a later writer's data also sees that the word has
     * changed. */
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return __atomic_load_n(word, __ATOMIC_RELAXED) == seen;
}

/* The one of this process's two buffers that does not hold the current value; -1 if the word has changed since
 * `seen`. */
static int pick_buffer(const emu_gpu *gpu, const uint64_t *word, uint64_t seen) {
    if (__atomic_load_n(word, __ATOMIC_ACQUIRE) != seen) {
        return -1;
    }
    __atomic_thread_fence(__ATOMIC_RELEASE);
    return (seen & 0xffff) == (uint64_t)gpu->state->slot * 2 ? 1 : 0;
}

static bool swing(const emu_gpu *gpu, uint64_t *word, uint64_t seen, int buffer) {
    uint64_t next = ((seen >> 16) + 1) << 16 | ((uint64_t)gpu->state->slot * 2 + (uint64_t)buffer);
    /* release: pairs with the acquire load of the word in the readers */
    return __atomic_compare_exchange_n(word, &seen, next, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_RELAXED);
}

static size_t schedule_size(uint32_t contexts) {
    return offsetof(emu_schedule, contexts) + contexts * sizeof(emu_gpu_context);
}

uint64_t emu_schedule_read(emu_gpu *gpu, emu_schedule *schedule) {
    const uint64_t *word = &gpu->shared->schedule_word;
    for (;;) {
        uint64_t seen = __atomic_load_n(word, __ATOMIC_ACQUIRE);
        uint64_t buffer = seen & 0xffff;
        if (buffer >= 2 * EMU_MAX_PROCESSES) {
            memset(schedule, 0, offsetof(emu_schedule, contexts));
            return seen;
        }
        const emu_schedule *source = &gpu->shared->schedules[buffer / 2][buffer % 2];
        copy_from_shared(schedule, source, offsetof(emu_schedule, contexts));
        uint32_t contexts = schedule->context_count;
        if (contexts <= EMU_MAX_CONTEXTS) {
            copy_from_shared(schedule->contexts, source->contexts,
                             contexts * sizeof(emu_gpu_context));
        } else {
            schedule->context_count = 0;
        }
        if (unchanged(word, seen)) {
            schedule->turn %= EMU_MAX_CONTEXTS;
            return seen;
        }
    }
}

bool emu_schedule_publish(emu_gpu *gpu, uint64_t seen, const emu_schedule *schedule) {
    uint64_t *word = &gpu->shared->schedule_word;
    pthread_mutex_lock(&gpu->publish_lock);
    int buffer = pick_buffer(gpu, word, seen);
    bool published = false;
    if (buffer >= 0) {
        copy_to_shared(&gpu->shared->schedules[gpu->state->slot][buffer], schedule,
                       schedule_size(schedule->context_count));
        published = swing(gpu, word, seen, buffer);
    }
    pthread_mutex_unlock(&gpu->publish_lock);
    return published;
}

static size_t ledger_size(uint64_t processes) {
    return offsetof(emu_ledger, used_by) + processes * sizeof(uint64_t);
}

uint64_t emu_ledger_read(emu_gpu *gpu, emu_ledger *ledger) {
    const uint64_t *word = &gpu->memory->ledger_word;
    for (;;) {
        uint64_t seen = __atomic_load_n(word, __ATOMIC_ACQUIRE);
        uint64_t buffer = seen & 0xffff;
        if (buffer >= 2 * EMU_MAX_PROCESSES) {
            memset(ledger, 0, offsetof(emu_ledger, used_by));
            return seen;
        }
        const emu_ledger *source = &gpu->memory->ledgers[buffer / 2][buffer % 2];
        copy_from_shared(ledger, source, offsetof(emu_ledger, used_by));
        if (ledger->process_count > EMU_MAX_PROCESSES) {
            ledger->process_count = EMU_MAX_PROCESSES;
        }
        copy_from_shared(ledger->used_by, source->used_by,
                         ledger->process_count * sizeof(uint64_t));
        if (unchanged(word, seen)) {
            return seen;
        }
    }
}

bool emu_ledger_publish(emu_gpu *gpu, uint64_t seen, const emu_ledger *ledger) {
    uint64_t *word = &gpu->memory->ledger_word;
    pthread_mutex_lock(&gpu->publish_lock);
    int buffer = pick_buffer(gpu, word, seen);
    bool published = false;
    if (buffer >= 0) {
        copy_to_shared(&gpu->memory->ledgers[gpu->state->slot][buffer], ledger,
                       ledger_size(ledger->process_count));
        published = swing(gpu, word, seen, buffer);
    }
    pthread_mutex_unlock(&gpu->publish_lock);
    return published;
}

uint64_t emu_demand(emu_gpu *gpu, uint32_t context) {
    return __atomic_load_n(&gpu->shared->demand[context].service_ns, __ATOMIC_ACQUIRE);
}

void emu_set_demand(emu_gpu *gpu, uint32_t context, uint64_t service_ns) {
    /* release: pairs with emu_demand; a process that sees the demand also sees the schedule published before it */
    __atomic_store_n(&gpu->shared->demand[context].service_ns, service_ns, __ATOMIC_RELEASE);
}
