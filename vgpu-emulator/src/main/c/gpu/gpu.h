/* What a process does with a GPU: look at its time, have contexts on it, charge memory to it. */
#ifndef EMU_GPU_H
#define EMU_GPU_H

#include "state.h"

/* A GPU at an instant, with the demands that were used to get there. */
typedef struct {
    emu_schedule schedule;
    uint64_t demand[EMU_MAX_CONTEXTS];
} emu_view;

typedef enum {
    EMU_LOOK,   /* may leave the state as it is, if that is not too long ago */
    EMU_PUBLISH /* the state is moved on to now, for all to see */
} emu_look_kind;

/* Computes the GPU as it is now. */
void emu_gpu_look(emu_gpu *gpu, emu_view *view, emu_look_kind kind);

/* Reads the GPU and computes it as it is now; the result names what was read to
 * emu_schedule_publish. */
uint64_t emu_gpu_now(emu_gpu *gpu, emu_view *view);

/* The same for somebody who does not take part: changes nothing, and leaves out those who are dead.
 */
void emu_gpu_watch(emu_gpu *gpu, emu_view *view);

/* A new context of this process; EMU_MAX_CONTEXTS if there are too many. Its demand is its service:
 * it has no work. */
uint32_t emu_gpu_add_context(emu_gpu *gpu);
void emu_gpu_remove_context(emu_gpu *gpu, uint32_t context);

/* What the driver does with a context's channel group: stops its work, in the middle of a kernel
 * if need be, and lets it go on; gives it another time slice (0: the GPU's); takes the GPU from it
 * once. */
void emu_gpu_stop_context(emu_gpu *gpu, uint32_t context, bool stopped);
void emu_gpu_slice_context(emu_gpu *gpu, uint32_t context, uint32_t slice_us);
void emu_gpu_kick_context(emu_gpu *gpu, uint32_t context);

/* Takes memory for this process. False: there is not so much free. Waits while this process is
 * suspended. */
bool emu_gpu_charge(emu_gpu *gpu, uint64_t bytes);
void emu_gpu_refund(emu_gpu *gpu, uint64_t bytes);

/* The bytes that all processes that are alive hold. */
uint64_t emu_gpu_used_bytes(emu_gpu *gpu);

/* Gives back what dead processes held. True if that changed something, or somebody else changed
 * something meanwhile. */
bool emu_gpu_reap_memory(emu_gpu *gpu);

/* The memory of each process that is alive; what the dead and the suspended hold is left out.
 * Changes nothing. */
void emu_gpu_memory(emu_gpu *gpu, emu_ledger *ledger);

/* Takes the contexts and the memory of a process from a GPU. The caller holds the slot's lock. */
void emu_gpu_drop_process(emu_gpu *gpu, int slot);

#endif
