/* The emulated driver's objects at the resource manager: a client, and for each context a channel group with two
 * channels. If they cannot be created, contexts work without them. */
#ifndef EMU_RM_DRIVER_H
#define EMU_RM_DRIVER_H

#include "objects.h"

void emu_rm_start(int devices);
void emu_rm_context_opened(CUcontext context);
void emu_rm_context_closing(CUcontext context);
void emu_rm_after_fork(void);

#endif
