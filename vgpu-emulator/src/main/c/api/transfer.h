/* What all copies and fills share. */
#ifndef EMU_TRANSFER_H
#define EMU_TRANSFER_H

#include "driver/operation.h"

/* Sets a copy's duration and copy engine by its source and target. */
void emu_transfer_place(uint64_t source, uint64_t target, uint64_t bytes, emu_operation *operation);
uint64_t emu_fill_ns(uint64_t bytes);

/* Checks a copy between any two places, a linear one, or a fill, and describes it as an operation. */
CUresult emu_box_of(const CUDA_MEMCPY3D *copy, emu_operation *operation);
CUresult emu_copy_of(uint64_t target, uint64_t source, uint64_t bytes, emu_operation *operation);
CUresult emu_fill_of(uint64_t target, uint64_t pitch, uint32_t value, uint32_t element,
                     uint64_t width, uint64_t height, emu_operation *operation);

/* Submits the operation; waits for it if `wait` is set. */
CUresult emu_transfer(CUstream handle, bool per_thread, bool wait, const emu_operation *operation);

#endif
