/* The memory that a context takes from its GPU after its creation: for stacks, and for the kernels' printf and
 * malloc. */
#ifndef EMU_CONTEXT_MEMORY_H
#define EMU_CONTEXT_MEMORY_H

#include "module.h"

/* Before a launch, takes the memory that the function needs and the calling thread's context does not have yet. The
 * context keeps it. */
CUresult emu_context_grow(CUfunction function);

#endif
