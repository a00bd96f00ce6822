#include "gpu.h"

#include "suspend.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    REAP_INTERVAL_NS = 2000000,
    REAP_COST_NS = 50000,
    PUBLISH_SLICES = 16,
    SUSPENDED_LOOK_NS = 1000000
};

/* Advances the schedule that was read. The clock is read before the demands, so the demands include everything that
 * was submitted before `now`. */
static void advance_view(emu_gpu *gpu, emu_view *view) {
    uint64_t now = emu_now_ns();
    emu_schedule *s = &view->schedule;
    for (uint32_t i = 0; i < s->context_count; i++) {
        uint32_t owner = s->contexts[i].owner;
        view->demand[i] = owner == 0 ? 0 : emu_demand(gpu, i);
        bool suspended =
            owner != 0 && owner <= EMU_MAX_PROCESSES && emu_bits_get(s->suspended, (int)owner - 1);
        if (owner != 0 && (suspended || s->contexts[i].is_stopped != 0)) {
            view->demand[i] = s->contexts[i].served_ns; /* its work is held */
        }
    }
    s->switch_ns = gpu->state->settings.switch_ns;
    emu_advance(s, view->demand, gpu->state->settings.slice_ns, now);
}

uint64_t emu_gpu_now(emu_gpu *gpu, emu_view *view) {
    uint64_t seen = emu_schedule_read(gpu, &view->schedule);
    advance_view(gpu, view);
    return seen;
}

/* Removes contexts that have work but whose process is dead; true if there was one. A dead process cannot come back:
 * see state_file.c. */
static bool remove_dead(emu_gpu *gpu, emu_view *view) {
    bool found = false;
    for (uint32_t i = 0; i < view->schedule.context_count; i++) {
        emu_gpu_context *context = &view->schedule.contexts[i];
        if (context->owner != 0 && context->served_ns < view->demand[i] &&
            emu_process_dead(gpu->state, (int)context->owner - 1)) {
            emu_context_remove(&view->schedule, i);
            found = true;
        }
    }
    return found;
}

static bool reaping_is_due(const emu_gpu *gpu, const emu_view *view) {
    uint64_t interval = (uint64_t)view->schedule.context_count * REAP_COST_NS;
    interval = interval < REAP_INTERVAL_NS ? REAP_INTERVAL_NS : interval;
    if (view->schedule.now_ns - view->schedule.reaped_ns < interval) {
        return false;
    }
    for (uint32_t i = 0; i < view->schedule.context_count; i++) {
        const emu_gpu_context *context = &view->schedule.contexts[i];
        if (context->owner != 0 && (int)context->owner - 1 != gpu->state->slot &&
            context->served_ns < view->demand[i]) {
            return true;
        }
    }
    return false;
}

void emu_gpu_look(emu_gpu *gpu, emu_view *view, emu_look_kind kind) {
    for (;;) {
        uint64_t seen = emu_schedule_read(gpu, &view->schedule);
        uint64_t slices = view->schedule.history_count;
        advance_view(gpu, view);
        bool publish =
            kind == EMU_PUBLISH || view->schedule.history_count - slices >= PUBLISH_SLICES;
        if (reaping_is_due(gpu, view)) {
            remove_dead(gpu, view);
            view->schedule.reaped_ns = view->schedule.now_ns;
            publish = true;
        }
        if (!publish || gpu->state->slot < 0 || emu_schedule_publish(gpu, seen, &view->schedule)) {
            return;
        }
    }
}

void emu_gpu_watch(emu_gpu *gpu, emu_view *view) {
    emu_schedule_read(gpu, &view->schedule);
    advance_view(gpu, view);
    remove_dead(gpu, view);
}

/* Whether this process is a client of a running MPS daemon. */
static bool is_mps_client(void) {
    char control[PATH_MAX];
    const char *directory = getenv("CUDA_MPS_PIPE_DIRECTORY");
    int length =
        directory == NULL ? -1 : snprintf(control, sizeof control, "%s/control", directory);
    return length > 0 && (size_t)length < sizeof control && access(control, F_OK) == 0;
}

uint32_t emu_gpu_add_context(emu_gpu *gpu) {
    emu_view view;
    for (;;) {
        uint64_t seen = emu_schedule_read(gpu, &view.schedule);
        advance_view(gpu, &view);
        uint32_t context = emu_context_add(&view.schedule, (uint32_t)gpu->state->slot + 1);
        if (context == EMU_MAX_CONTEXTS) {
            return context;
        }
        /* Only its owner writes an entry's demand. This entry is not in use, so its demand cannot change. */
        view.schedule.contexts[context].served_ns = emu_demand(gpu, context);
        view.schedule.contexts[context].is_client = is_mps_client() ? 1 : 0;
        if (emu_schedule_publish(gpu, seen, &view.schedule)) {
            return context;
        }
    }
}

void emu_gpu_remove_context(emu_gpu *gpu, uint32_t context) {
    emu_view view;
    uint64_t seen = 0;
    do {
        seen = emu_schedule_read(gpu, &view.schedule);
        advance_view(gpu, &view);
        emu_context_remove(&view.schedule, context);
    } while (!emu_schedule_publish(gpu, seen, &view.schedule));
}

typedef enum { CHANGE_STOP, CHANGE_SLICE, CHANGE_KICK } context_change;

static void change_context(emu_gpu *gpu, uint32_t context, context_change change, uint32_t value) {
    emu_view view;
    uint64_t seen = 0;
    if (context >= EMU_MAX_CONTEXTS) {
        return;
    }
    do {
        seen = emu_schedule_read(gpu, &view.schedule);
        advance_view(gpu, &view);
        emu_gpu_context *entry = &view.schedule.contexts[context];
        if (context >= view.schedule.context_count ||
            entry->owner != (uint32_t)gpu->state->slot + 1) {
            return;
        }
        if (change == CHANGE_STOP) {
            entry->is_stopped = value;
        } else if (change == CHANGE_SLICE) {
            entry->slice_us = value;
        } else {
            emu_kick(&view.schedule, view.demand, context);
        }
    } while (!emu_schedule_publish(gpu, seen, &view.schedule));
}

static uint32_t resumptions; /* of this process's contexts; only this process resumes them */

void emu_gpu_stop_context(emu_gpu *gpu, uint32_t context, bool stopped) {
    change_context(gpu, context, CHANGE_STOP, stopped ? 1 : 0);
    if (!stopped) {
        __atomic_fetch_add(&resumptions, 1, __ATOMIC_SEQ_CST);
        syscall(SYS_futex, &resumptions, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
    }
}

uint32_t emu_gpu_resumptions(void) {
    return __atomic_load_n(&resumptions, __ATOMIC_SEQ_CST);
}

void emu_gpu_await_resumption(uint32_t seen, uint64_t most_ns) {
    int kept = errno;
    struct timespec most = {.tv_sec = (time_t)(most_ns / 1000000000),
                            .tv_nsec = (long)(most_ns % 1000000000)};
    syscall(SYS_futex, &resumptions, FUTEX_WAIT_PRIVATE, seen, &most, NULL, 0);
    errno = kept;
}

void emu_gpu_slice_context(emu_gpu *gpu, uint32_t context, uint32_t slice_us) {
    change_context(gpu, context, CHANGE_SLICE, slice_us);
}

void emu_gpu_kick_context(emu_gpu *gpu, uint32_t context) {
    change_context(gpu, context, CHANGE_KICK, 0);
}

/* Whether a process's memory is to be returned: it died, as this process first saw reap-delay ago. */
static bool memory_is_due(const emu_gpu *gpu, int slot) {
    static uint64_t noticed_ns[EMU_MAX_PROCESSES]; /* 0: not seen dead */
    if (!emu_process_dead(gpu->state, slot)) {
        __atomic_store_n(&noticed_ns[slot], 0, __ATOMIC_RELAXED);
        return false;
    }
    uint64_t delay = gpu->state->times.reap_delay_ns;
    uint64_t now = emu_now_ns();
    uint64_t noticed = __atomic_load_n(&noticed_ns[slot], __ATOMIC_RELAXED);
    if (noticed == 0) {
        __atomic_store_n(&noticed_ns[slot], now, __ATOMIC_RELAXED);
        noticed = now;
    }
    return now - noticed >= delay;
}

/* Removes a process's memory from the ledger; true if that frees GPU memory. */
static bool drop_from(emu_ledger *ledger, int slot) {
    bool suspended = emu_bits_get(ledger->suspended, slot);
    uint64_t bytes = suspended ? 0 : ledger->used_by[slot];
    ledger->used_bytes -= bytes;
    ledger->used_by[slot] = 0;
    emu_bits_set(ledger->suspended, slot, false);
    return bytes > 0;
}

bool emu_gpu_reap_memory(emu_gpu *gpu) {
    emu_ledger ledger;
    uint64_t seen = emu_ledger_read(gpu, &ledger);
    bool freed = false;
    for (uint64_t i = 0; i < ledger.process_count; i++) {
        if (ledger.used_by[i] > 0 && memory_is_due(gpu, (int)i)) {
            freed |= drop_from(&ledger, (int)i);
        }
    }
    if (!freed) {
        return false;
    }
    emu_ledger_publish(gpu, seen, &ledger);
    return true;
}

bool emu_gpu_charge(emu_gpu *gpu, uint64_t bytes) {
    uint64_t slot = (uint64_t)gpu->state->slot;
    emu_ledger ledger;
    for (;;) {
        uint64_t seen = emu_ledger_read(gpu, &ledger);
        if (emu_checkpoint_holds(gpu->state) || emu_bits_get(ledger.suspended, gpu->state->slot)) {
            emu_sleep_until(emu_now_ns() + SUSPENDED_LOOK_NS);
            continue;
        }
        uint64_t capacity = gpu->state->settings.memory_bytes;
        if (ledger.used_bytes > capacity || bytes > capacity - ledger.used_bytes) {
            if (!emu_gpu_reap_memory(gpu)) {
                return false;
            }
            continue;
        }
        while (ledger.process_count <= slot) {
            ledger.used_by[ledger.process_count++] = 0;
        }
        ledger.used_bytes += bytes;
        ledger.used_by[slot] += bytes;
        if (emu_ledger_publish(gpu, seen, &ledger)) {
            return true;
        }
    }
}

void emu_gpu_refund(emu_gpu *gpu, uint64_t bytes) {
    uint64_t slot = (uint64_t)gpu->state->slot;
    emu_ledger ledger;
    uint64_t seen = 0;
    do {
        seen = emu_ledger_read(gpu, &ledger);
        bytes = bytes > ledger.used_by[slot] ? ledger.used_by[slot] : bytes;
        ledger.used_bytes -= emu_bits_get(ledger.suspended, (int)slot) ? 0 : bytes;
        ledger.used_by[slot] -= bytes;
    } while (!emu_ledger_publish(gpu, seen, &ledger));
}

uint64_t emu_gpu_used_bytes(emu_gpu *gpu) {
    emu_ledger ledger;
    emu_gpu_memory(gpu, &ledger);
    return ledger.used_bytes;
}

void emu_gpu_memory(emu_gpu *gpu, emu_ledger *ledger) {
    emu_ledger_read(gpu, ledger);
    for (uint64_t i = 0; i < ledger->process_count; i++) {
        if (emu_bits_get(ledger->suspended, (int)i)) {
            ledger->used_by[i] = 0;
        } else if (ledger->used_by[i] > 0 && memory_is_due(gpu, (int)i)) {
            bool freed = drop_from(ledger, (int)i);
            (void)freed;
        }
    }
}

static bool drop_contexts(emu_gpu *gpu, int slot) {
    emu_view view;
    uint64_t seen = emu_schedule_read(gpu, &view.schedule);
    advance_view(gpu, &view);
    bool found = false;
    for (uint32_t i = 0; i < view.schedule.context_count; i++) {
        if (view.schedule.contexts[i].owner == (uint32_t)slot + 1) {
            emu_context_remove(&view.schedule, i);
            found = true;
        }
    }
    if (emu_bits_get(view.schedule.suspended, slot)) {
        emu_bits_set(view.schedule.suspended, slot, false);
        found = true;
    }
    return !found || emu_schedule_publish(gpu, seen, &view.schedule);
}

static bool drop_memory(emu_gpu *gpu, int slot) {
    emu_ledger ledger;
    uint64_t seen = emu_ledger_read(gpu, &ledger);
    if ((uint64_t)slot >= ledger.process_count ||
        (ledger.used_by[slot] == 0 && !emu_bits_get(ledger.suspended, slot))) {
        return true;
    }
    bool freed = drop_from(&ledger, slot);
    (void)freed;
    return emu_ledger_publish(gpu, seen, &ledger);
}

void emu_gpu_drop_process(emu_gpu *gpu, int slot) {
    while (!drop_contexts(gpu, slot)) {
    }
    while (!drop_memory(gpu, slot)) {
    }
}
