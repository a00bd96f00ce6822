/* What all copies and fills have in common. */
#ifndef EMU_TRANSFER_H
#define EMU_TRANSFER_H

#include "operation.h"

/* How long a copy takes, by where it goes from and to. */
uint64_t emu_transfer_ns(uint64_t source, uint64_t target, uint64_t bytes);
uint64_t emu_fill_ns(uint64_t bytes);

/* Submits, and waits if asked to. */
CUresult emu_transfer(CUstream handle, bool per_thread, bool wait, const emu_operation *operation);

#endif
