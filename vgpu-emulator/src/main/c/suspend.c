#include "suspend.h"

#include "gpu.h"

#include <unistd.h>

#define COPY_BYTES_PER_US UINT64_C(25000) /* as copies between host and device */
#define LOOK_NS UINT64_C(1000000)

int emu_slot_of(const emu_state *state, uint64_t pid) {
    for (int slot = 0; slot < EMU_MAX_PROCESSES; slot++) {
        emu_process process = emu_process_at(state, slot);
        if (process.pid == pid && pid != (uint64_t)getpid() && process.pid_namespace == state->pid_namespace &&
            emu_process_alive(state, slot)) {
            return slot;
        }
    }
    return EMU_NO_PROCESS;
}

/* Holds the work of a process, or lets it run. What runs until now is decided before. */
static void hold_work(emu_gpu *gpu, int slot, bool hold) {
    emu_view view;
    uint64_t seen = 0;
    do {
        seen = emu_gpu_now(gpu, &view);
        emu_bits_set(view.schedule.suspended, slot, hold);
    } while (!emu_schedule_publish(gpu, seen, &view.schedule));
}

/* Takes the memory of a process off one GPU. */
static void move_out(emu_gpu *gpu, int slot) {
    emu_ledger ledger;
    uint64_t seen = 0;
    do {
        seen = emu_ledger_read(gpu, &ledger);
        if (emu_bits_get(ledger.suspended, slot)) {
            return;
        }
        while (ledger.process_count <= (uint64_t)slot) {
            ledger.used_by[ledger.process_count++] = 0;
        }
        ledger.used_bytes -= ledger.used_by[slot];
        emu_bits_set(ledger.suspended, slot, true);
    } while (!emu_ledger_publish(gpu, seen, &ledger));
}

/* Puts it back. False: there is no room. */
static bool move_in(emu_gpu *gpu, int slot) {
    emu_ledger ledger;
    for (;;) {
        uint64_t seen = emu_ledger_read(gpu, &ledger);
        if (!emu_bits_get(ledger.suspended, slot)) {
            return true;
        }
        uint64_t capacity = gpu->state->settings.memory_bytes;
        uint64_t bytes = ledger.used_by[slot];
        if (ledger.used_bytes > capacity || bytes > capacity - ledger.used_bytes) {
            if (!emu_gpu_reap_memory(gpu)) {
                return false;
            }
            continue;
        }
        ledger.used_bytes += bytes;
        emu_bits_set(ledger.suspended, slot, false);
        if (emu_ledger_publish(gpu, seen, &ledger)) {
            return true;
        }
    }
}

/* What the process holds of all GPUs. */
static uint64_t held_bytes(emu_state *state, int slot) {
    uint64_t bytes = 0;
    emu_ledger ledger;
    for (uint32_t i = 0; i < state->settings.devices; i++) {
        emu_ledger_read(&state->gpus[i], &ledger);
        bytes += (uint64_t)slot < ledger.process_count ? ledger.used_by[slot] : 0;
    }
    return bytes;
}

/* Waits as long as the copy takes, and while the process is stopped. */
static emu_suspend_result copy(const emu_state *state, int slot, uint64_t bytes,
                               uint64_t deadline_ns) {
    uint64_t done_ns = emu_now_ns() + bytes / COPY_BYTES_PER_US * 1000;
    for (;;) {
        if (!emu_process_alive(state, slot)) {
            return EMU_SUSPEND_NO_PROCESS;
        }
        uint64_t now = emu_now_ns();
        if (now >= done_ns && !emu_process_stopped(state, slot)) {
            return EMU_SUSPEND_DONE;
        }
        if (now >= deadline_ns) {
            return EMU_SUSPEND_TIMEOUT;
        }
        uint64_t next = now >= done_ns || done_ns - now > LOOK_NS ? now + LOOK_NS : done_ns;
        emu_sleep_until(next < deadline_ns ? next : deadline_ns);
    }
}

static void hold_all(emu_state *state, int slot, bool hold) {
    for (uint32_t i = 0; i < state->settings.devices; i++) {
        hold_work(&state->gpus[i], slot, hold);
    }
}

emu_suspend_result emu_suspend(emu_state *state, uint64_t pid, uint64_t timeout_ns) {
    uint64_t deadline = emu_now_ns() + timeout_ns;
    int slot = emu_slot_of(state, pid);
    if (slot == EMU_NO_PROCESS) {
        return EMU_SUSPEND_NO_PROCESS;
    }
    if (emu_is_suspended(state, pid)) {
        return EMU_SUSPEND_DONE;
    }
    hold_all(state, slot, true);
    emu_suspend_result result = copy(state, slot, held_bytes(state, slot), deadline);
    for (uint32_t i = 0; result == EMU_SUSPEND_DONE && i < state->settings.devices; i++) {
        move_out(&state->gpus[i], slot);
    }
    if (result == EMU_SUSPEND_DONE && emu_process_alive(state, slot)) {
        return EMU_SUSPEND_DONE;
    }
    /* It failed, or it died meanwhile: nothing of this may be left to who has the slot next. */
    for (uint32_t i = 0; i < state->settings.devices; i++) {
        move_in(&state->gpus[i], slot);
    }
    hold_all(state, slot, false);
    return result == EMU_SUSPEND_DONE ? EMU_SUSPEND_NO_PROCESS : result;
}

emu_suspend_result emu_resume(emu_state *state, uint64_t pid, uint64_t timeout_ns) {
    uint64_t deadline = emu_now_ns() + timeout_ns;
    int slot = emu_slot_of(state, pid);
    if (slot == EMU_NO_PROCESS) {
        return EMU_SUSPEND_NO_PROCESS;
    }
    emu_view view;
    emu_gpu_now(&state->gpus[0], &view);
    if (!emu_bits_get(view.schedule.suspended, slot)) {
        return EMU_SUSPEND_DONE;
    }
    uint32_t moved = 0;
    while (moved < state->settings.devices && move_in(&state->gpus[moved], slot)) {
        moved++;
    }
    emu_suspend_result result = moved == state->settings.devices ? EMU_SUSPEND_DONE
                                                                 : EMU_SUSPEND_NO_MEMORY;
    if (result == EMU_SUSPEND_DONE) {
        result = copy(state, slot, held_bytes(state, slot), deadline);
    }
    if (result == EMU_SUSPEND_DONE || result == EMU_SUSPEND_NO_PROCESS) {
        hold_all(state, slot, false);
        return result;
    }
    while (moved > 0) {
        move_out(&state->gpus[--moved], slot);
    }
    return result;
}

bool emu_is_suspended(emu_state *state, uint64_t pid) {
    emu_ledger ledger;
    int slot = emu_slot_of(state, pid);
    if (slot == EMU_NO_PROCESS || state->settings.devices == 0) {
        return false;
    }
    emu_ledger_read(&state->gpus[0], &ledger);
    return emu_bits_get(ledger.suspended, slot);
}
