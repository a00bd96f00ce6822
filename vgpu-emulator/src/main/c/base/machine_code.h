/* What the emulator needs to know of machine code for GPUs: the names of its kernels and variables. */
#ifndef EMU_MACHINE_CODE_H
#define EMU_MACHINE_CODE_H

#include "ptx.h"

/* Whether this is an ELF file, a fat binary, or the wrapper that points to one. */
bool emu_machine_code_is(const void *image);

/*
 * Goes through the symbols of an ELF file, or of the first ELF file in a fat binary. False: the visitor stopped.
 * is_known: whether there were symbols to read; there are none in what is compressed or stripped.
 */
bool emu_machine_code_read(const void *image, emu_ptx_visitor visitor, void *data, bool *is_known);

#endif
