/* Capturing what is submitted to streams into a graph. */
#ifndef EMU_CAPTURE_H
#define EMU_CAPTURE_H

#include "operation.h"

/* With the context's lock. True: the operation is of a capture, and result says what came of it. */
bool emu_capture_take(CUstream stream, const emu_operation *operation, CUresult *result);

#endif
