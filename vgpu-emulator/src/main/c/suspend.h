/*
 * Suspending processes: what the real driver calls checkpointing. The work of a suspended process
 * waits, and its memory is off the GPUs: it is in the host's, where the emulator keeps it anyway,
 * and counts as used on no GPU. What it allocates meanwhile waits as well.
 *
 * It is done from outside, by whoever may use the GPUs. A process that is stopped cannot take part,
 * as with the real driver: it is waited for.
 */
#ifndef EMU_SUSPEND_H
#define EMU_SUSPEND_H

#include "state.h"

typedef enum {
    EMU_SUSPEND_DONE,
    EMU_SUSPEND_NO_PROCESS, /* it does not use the GPUs, or is gone, or is this one */
    EMU_SUSPEND_TIMEOUT,
    EMU_SUSPEND_NO_MEMORY, /* no room for it on a GPU */
    EMU_SUSPEND_NO_STATE   /* the GPUs cannot be used from here */
} emu_suspend_result;

/* Takes the memory of a process off the GPUs. If it fails, the process goes on as before. */
emu_suspend_result emu_suspend(emu_state *state, uint64_t pid, uint64_t timeout_ns);

/* Lets a process go on, if it is suspended. If it fails, the process stays suspended. */
emu_suspend_result emu_resume(emu_state *state, uint64_t pid, uint64_t timeout_ns);

/* The slot of another process that is there, or EMU_NO_PROCESS. */
int emu_slot_of(const emu_state *state, uint64_t pid);

bool emu_is_suspended(emu_state *state, uint64_t pid);

#endif
