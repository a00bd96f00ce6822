/* What the emulator reads from GPU machine code: the names of its kernels and variables. */
#ifndef EMU_MACHINE_CODE_H
#define EMU_MACHINE_CODE_H

#include "ptx.h"

/* Whether an image is an ELF file, a fat binary, or the wrapper that points to one. */
bool emu_machine_code_is(const void *image);

/*
 * Visits the symbols of an ELF file, or of the first ELF file in a fat binary. False: the visitor stopped. is_known:
 * whether there were readable symbols; a compressed or stripped image has none.
 */
bool emu_machine_code_read(const void *image, emu_ptx_visitor visitor, void *data, bool *is_known);

#endif
