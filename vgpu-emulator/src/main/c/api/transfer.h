/* What all copies and fills have in common. */
#ifndef EMU_TRANSFER_H
#define EMU_TRANSFER_H

#include "driver/operation.h"

/* How long a copy takes and the copy engine that it needs, by where it goes from and to. */
void emu_transfer_place(uint64_t source, uint64_t target, uint64_t bytes, emu_operation *operation);
uint64_t emu_fill_ns(uint64_t bytes);

/* The operation of a copy between places of any kind, or of a fill; checked. */
CUresult emu_box_of(const CUDA_MEMCPY3D *copy, emu_operation *operation);
CUresult emu_fill_of(uint64_t target, uint64_t pitch, uint32_t value, uint32_t element,
                     uint64_t width, uint64_t height, emu_operation *operation);

/* Submits, and waits if asked to. */
CUresult emu_transfer(CUstream handle, bool per_thread, bool wait, const emu_operation *operation);

#endif
