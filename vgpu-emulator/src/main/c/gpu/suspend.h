/*
 * Suspending processes, as the driver's checkpoint functions do. A process is running, locked,
 * checkpointed, or has failed for good. The work of a locked one waits, and so does what it
 * allocates; that of a checkpointed one does too, and its memory is off the GPUs: it is in the
 * host's, where the emulator keeps it anyway, and counts as used on no GPU.
 *
 * It is done from outside, by whoever may use the GPUs; each step is complete, or can be taken
 * again, wherever the one who takes it is killed. A process that is stopped cannot take part, as
 * with the real driver: it is waited for. Unlike there, what a process has submitted already is
 * held too, instead of being awaited: it ends after the unlocking.
 */
#ifndef EMU_SUSPEND_H
#define EMU_SUSPEND_H

#include "base/cuda_abi.h"
#include "state.h"

/* As the driver numbers them. */
typedef enum {
    EMU_RUNNING,
    EMU_LOCKED,
    EMU_CHECKPOINTED,
    EMU_FAILED /* nothing brings it back */
} emu_checkpoint;

/* Why a process cannot be checkpointed: it has used this. */
enum { EMU_USED_MANAGED = 1, EMU_USED_IPC = 2, EMU_USED_MIG = 4 };

/* Notes that this process has used something of that; for good. */
void emu_checkpoint_hinder(emu_state *state, unsigned int what);

/* What hinders: EMU_USED_. */
unsigned int emu_checkpoint_hindrances(const emu_state *state, int slot);

emu_checkpoint emu_checkpoint_of(const emu_state *state, int slot);

/* Whether this process may not begin anything now. */
static inline bool emu_checkpoint_holds(const emu_state *state) {
    return emu_checkpoint_of(state, state->slot) != EMU_RUNNING;
}

/* Each of these wants the state before it, else CUDA_ERROR_ILLEGAL_STATE. */

/* From running. Not within the time (0: any): CUDA_ERROR_NOT_READY, and it runs. */
CUresult emu_checkpoint_lock(emu_state *state, int slot, uint64_t timeout_ns);

/* From locked. If it has used what hinders: CUDA_ERROR_NOT_SUPPORTED, and it is locked still. */
CUresult emu_checkpoint_take(emu_state *state, int slot);

/* From checkpointed to locked. No room on a GPU: CUDA_ERROR_OUT_OF_MEMORY, checkpointed still. */
CUresult emu_checkpoint_restore(emu_state *state, int slot);

/* From locked. */
CUresult emu_checkpoint_unlock(emu_state *state, int slot);

/* It is lost: its work and its calls wait for ever. */
void emu_checkpoint_fail(emu_state *state, int slot);

/* The slot of another process that is there, or EMU_NO_PROCESS. */
int emu_slot_of(const emu_state *state, uint64_t pid);

#endif
