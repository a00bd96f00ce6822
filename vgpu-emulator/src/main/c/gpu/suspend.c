#include "suspend.h"

#include "gpu.h"
#include "state_layout.h"

#include <unistd.h>

#define COPY_BYTES_PER_US UINT64_C(25000) /* the speed of copies between host and device */
#define LOOK_NS UINT64_C(1000000)
#define FOREVER UINT64_MAX

enum { STATE_MASK = 3, HINDRANCE_SHIFT = 8 };

int emu_slot_of(const emu_state *state, uint64_t pid) {
    for (int slot = 0; slot < EMU_MAX_PROCESSES; slot++) {
        emu_process process = emu_process_at(state, slot);
        if (process.pid == pid && pid != (uint64_t)getpid() &&
            process.pid_namespace == state->pid_namespace && emu_process_alive(state, slot)) {
            return slot;
        }
    }
    return EMU_NO_PROCESS;
}

/* Holds a process's work, or lets it continue. Service up to now is decided first. */
static void hold_work(emu_gpu *gpu, int slot, bool hold) {
    emu_view view;
    uint64_t seen = 0;
    do {
        seen = emu_gpu_now(gpu, &view);
        emu_bits_set(view.schedule.suspended, slot, hold);
    } while (!emu_schedule_publish(gpu, seen, &view.schedule));
}

/* Removes a process's memory from one GPU. */
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

/* Puts a process's memory back on one GPU. False: there is no room. */
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

/* ---- a process's checkpoint state: a word of its slot */

emu_checkpoint emu_checkpoint_of(const emu_state *state, int slot) {
    /* acquire: pairs with the release in step; a process that sees it running sees its memory back */
    return (emu_checkpoint)(__atomic_load_n(&state->header->checkpoints[slot], __ATOMIC_ACQUIRE) &
                            STATE_MASK);
}

unsigned int emu_checkpoint_hindrances(const emu_state *state, int slot) {
    return __atomic_load_n(&state->header->checkpoints[slot], __ATOMIC_RELAXED) >> HINDRANCE_SHIFT;
}

void emu_checkpoint_hinder(emu_state *state, unsigned int what) {
    __atomic_fetch_or(&state->header->checkpoints[state->slot], what << HINDRANCE_SHIFT,
                      __ATOMIC_RELAXED);
}

/* Changes the state; false: it was not `from`. */
static bool step(emu_state *state, int slot, emu_checkpoint from, emu_checkpoint to) {
    uint32_t *word = &state->header->checkpoints[slot];
    uint32_t seen = __atomic_load_n(word, __ATOMIC_ACQUIRE);
    do {
        if ((seen & STATE_MASK) != (uint32_t)from) {
            return false;
        }
    } while (!__atomic_compare_exchange_n(word, &seen, (seen & ~(uint32_t)STATE_MASK) | to, false,
                                          __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
    return true;
}

/* ---- the driver's steps */

/* The process's memory on all GPUs. */
static uint64_t held_bytes(emu_state *state, int slot) {
    uint64_t bytes = 0;
    emu_ledger ledger;
    for (uint32_t i = 0; i < state->settings.devices; i++) {
        emu_ledger_read(&state->gpus[i], &ledger);
        bytes += (uint64_t)slot < ledger.process_count ? ledger.used_by[slot] : 0;
    }
    return bytes;
}

/* Waits as long as a copy takes, and longer while the process is stopped. */
static CUresult copy(const emu_state *state, int slot, uint64_t bytes, uint64_t deadline_ns) {
    uint64_t done_ns = emu_now_ns() + bytes / COPY_BYTES_PER_US * 1000;
    for (;;) {
        if (!emu_process_alive(state, slot)) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        uint64_t now = emu_now_ns();
        if (now >= done_ns && !emu_process_stopped(state, slot)) {
            return CUDA_SUCCESS;
        }
        if (now >= deadline_ns) {
            return CUDA_ERROR_NOT_READY;
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

static bool move_all_in(emu_state *state, int slot) {
    uint32_t moved = 0;
    while (moved < state->settings.devices && move_in(&state->gpus[moved], slot)) {
        moved++;
    }
    if (moved == state->settings.devices) {
        return true;
    }
    while (moved > 0) {
        move_out(&state->gpus[--moved], slot);
    }
    return false;
}

/* The process died meanwhile. The slot's next process must not inherit anything. */
static CUresult gone(emu_state *state, int slot) {
    bool moved = move_all_in(state, slot);
    (void)moved;
    hold_all(state, slot, false);
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult emu_checkpoint_lock(emu_state *state, int slot, uint64_t timeout_ns) {
    if ((emu_checkpoint_hindrances(state, slot) & EMU_USED_MIG) != 0) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    uint64_t deadline = timeout_ns == 0 ? FOREVER : emu_now_ns() + timeout_ns;
    if (!step(state, slot, EMU_RUNNING, EMU_LOCKED)) {
        return CUDA_ERROR_ILLEGAL_STATE;
    }
    hold_all(state, slot, true);
    CUresult result = copy(state, slot, 0, deadline);
    if (result == CUDA_ERROR_NOT_READY) {
        hold_all(state, slot, false);
        step(state, slot, EMU_LOCKED, EMU_RUNNING);
    }
    return result == CUDA_ERROR_INVALID_VALUE ? gone(state, slot) : result;
}

CUresult emu_checkpoint_take(emu_state *state, int slot) {
    if (emu_checkpoint_of(state, slot) != EMU_LOCKED) {
        return CUDA_ERROR_ILLEGAL_STATE;
    }
    if (emu_checkpoint_hindrances(state, slot) != 0) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    CUresult result = copy(state, slot, held_bytes(state, slot), FOREVER);
    for (uint32_t i = 0; result == CUDA_SUCCESS && i < state->settings.devices; i++) {
        move_out(&state->gpus[i], slot);
    }
    if (result != CUDA_SUCCESS || !emu_process_alive(state, slot)) {
        return gone(state, slot);
    }
    return step(state, slot, EMU_LOCKED, EMU_CHECKPOINTED) ? CUDA_SUCCESS
                                                           : CUDA_ERROR_ILLEGAL_STATE;
}

CUresult emu_checkpoint_restore(emu_state *state, int slot) {
    if (emu_checkpoint_of(state, slot) != EMU_CHECKPOINTED) {
        return CUDA_ERROR_ILLEGAL_STATE;
    }
    if (!move_all_in(state, slot)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUresult result = copy(state, slot, held_bytes(state, slot), FOREVER);
    if (result != CUDA_SUCCESS) {
        return gone(state, slot);
    }
    return step(state, slot, EMU_CHECKPOINTED, EMU_LOCKED) ? CUDA_SUCCESS
                                                           : CUDA_ERROR_ILLEGAL_STATE;
}

CUresult emu_checkpoint_unlock(emu_state *state, int slot) {
    if (emu_checkpoint_of(state, slot) != EMU_LOCKED) {
        return CUDA_ERROR_ILLEGAL_STATE;
    }
    /* A caller that was killed during a checkpoint may already have moved some memory. */
    if (!move_all_in(state, slot)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    hold_all(state, slot, false);
    return step(state, slot, EMU_LOCKED, EMU_RUNNING) ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_STATE;
}

void emu_checkpoint_fail(emu_state *state, int slot) {
    __atomic_fetch_or(&state->header->checkpoints[slot], EMU_FAILED, __ATOMIC_ACQ_REL);
}
