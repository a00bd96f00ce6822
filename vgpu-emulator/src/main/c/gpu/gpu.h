/* A process's operations on a GPU: observe its time, add contexts, charge memory. */
#ifndef EMU_GPU_H
#define EMU_GPU_H

#include "state.h"

/* A GPU at an instant, with the demands from which it was computed. */
typedef struct {
    emu_schedule schedule;
    uint64_t demand[EMU_MAX_CONTEXTS];
} emu_view;

typedef enum {
    EMU_LOOK,   /* may leave the published state as it is if that is recent enough */
    EMU_PUBLISH /* publishes the state as of now */
} emu_look_kind;

/* Computes the GPU's state now. */
void emu_gpu_look(emu_gpu *gpu, emu_view *view, emu_look_kind kind);

/* Reads the GPU and computes its state now. The result is the `seen` argument of emu_schedule_publish. */
uint64_t emu_gpu_now(emu_gpu *gpu, emu_view *view);

/* As emu_gpu_now, for a process that does not participate: changes nothing, and leaves out dead processes. */
void emu_gpu_watch(emu_gpu *gpu, emu_view *view);

/* Adds a context of this process; EMU_MAX_CONTEXTS if there are too many. Its demand equals its service: it has no
 * work. */
uint32_t emu_gpu_add_context(emu_gpu *gpu);
void emu_gpu_remove_context(emu_gpu *gpu, uint32_t context);

/* What the driver does with a context's channel group. stop: stops its work, in the middle of a kernel if necessary,
 * or resumes it. slice: sets its time slice (0: the GPU's). kick: preempts it once. */
void emu_gpu_stop_context(emu_gpu *gpu, uint32_t context, bool stopped);

/* How often this process has resumed one of its contexts; and a sleep until that changes, for at most most_ns. */
uint32_t emu_gpu_resumptions(void);
void emu_gpu_await_resumption(uint32_t seen, uint64_t most_ns);
void emu_gpu_slice_context(emu_gpu *gpu, uint32_t context, uint32_t slice_us);
void emu_gpu_kick_context(emu_gpu *gpu, uint32_t context);

/* Charges memory to this process. False: not enough is free. Blocks while this process is suspended. */
bool emu_gpu_charge(emu_gpu *gpu, uint64_t bytes);
void emu_gpu_refund(emu_gpu *gpu, uint64_t bytes);

/* The bytes that all living processes hold. */
uint64_t emu_gpu_used_bytes(emu_gpu *gpu);

/* Returns the memory of dead processes. True if that, or another process meanwhile, changed the ledger. */
bool emu_gpu_reap_memory(emu_gpu *gpu);

/* The memory of each living process, without that of suspended processes. Changes nothing. */
void emu_gpu_memory(emu_gpu *gpu, emu_ledger *ledger);

/* Removes a process's contexts and memory from a GPU. The caller holds the slot's lock. */
void emu_gpu_drop_process(emu_gpu *gpu, int slot);

#endif
