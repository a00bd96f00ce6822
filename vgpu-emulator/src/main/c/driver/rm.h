/* What the emulated driver has at the resource manager: a client, and a channel group with two
 * channels for each context. Where that cannot be had, contexts work all the same. */
#ifndef EMU_RM_DRIVER_H
#define EMU_RM_DRIVER_H

#include "objects.h"

void emu_rm_start(int devices);
void emu_rm_context_opened(CUcontext context);
void emu_rm_context_closing(CUcontext context);
void emu_rm_after_fork(void);

#endif
