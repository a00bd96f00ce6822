/*
 * Suspending processes, like the driver's checkpoint functions. A process is running, locked, checkpointed, or has
 * failed for good. The work and the allocations of a locked process wait. The same holds for a checkpointed process,
 * and its memory is off the GPUs: it counts as used on no GPU. (The emulator keeps it in host memory in any case.)
 *
 * Any process that may use the GPUs can suspend another one. If the suspending process is killed, each step is either
 * complete or can be repeated. A stopped process cannot take part, as with the real driver, so the caller waits for it.
 * Unlike the real driver, submitted work is held instead of awaited; it completes after the process is unlocked.
 */
#ifndef EMU_SUSPEND_H
#define EMU_SUSPEND_H

#include "base/cuda_abi.h"
#include "state.h"

/* The driver's numbers. */
typedef enum {
    EMU_RUNNING,
    EMU_LOCKED,
    EMU_CHECKPOINTED,
    EMU_FAILED /* permanent */
} emu_checkpoint;

/* Features whose use prevents a checkpoint of the process. */
enum { EMU_USED_MANAGED = 1, EMU_USED_IPC = 2, EMU_USED_MIG = 4 };

/* Records that this process has used such features. This cannot be undone. */
void emu_checkpoint_hinder(emu_state *state, unsigned int what);

/* The features that prevent a checkpoint: EMU_USED_… bits. */
unsigned int emu_checkpoint_hindrances(const emu_state *state, int slot);

emu_checkpoint emu_checkpoint_of(const emu_state *state, int slot);

/* Whether this process must not start anything now. */
static inline bool emu_checkpoint_holds(const emu_state *state) {
    return emu_checkpoint_of(state, state->slot) != EMU_RUNNING;
}

/* Each of the following steps requires the state named; otherwise it returns CUDA_ERROR_ILLEGAL_STATE. */

/* Requires running. If the timeout (0: none) expires: CUDA_ERROR_NOT_READY, and the process runs. */
CUresult emu_checkpoint_lock(emu_state *state, int slot, uint64_t timeout_ns);

/* Requires locked. If the process has used a feature that prevents it: CUDA_ERROR_NOT_SUPPORTED, and it stays
 * locked. */
CUresult emu_checkpoint_take(emu_state *state, int slot);

/* Requires checkpointed; locked afterwards. No room on a GPU: CUDA_ERROR_OUT_OF_MEMORY, and it stays checkpointed. */
CUresult emu_checkpoint_restore(emu_state *state, int slot);

/* Requires locked. */
CUresult emu_checkpoint_unlock(emu_state *state, int slot);

/* Marks a process as failed: its work and its calls wait forever. */
void emu_checkpoint_fail(emu_state *state, int slot);

/* The slot of another, living process, or EMU_NO_PROCESS. */
int emu_slot_of(const emu_state *state, uint64_t pid);

#endif
