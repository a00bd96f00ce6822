/* What a context takes of its GPU after it was made: for stacks, for what kernels print, for what they allocate. */
#ifndef EMU_CONTEXT_MEMORY_H
#define EMU_CONTEXT_MEMORY_H

#include "module.h"

/* Before a launch: takes what the function needs and the calling thread's context has not yet. The context keeps it. */
CUresult emu_context_grow(CUfunction function);

#endif
