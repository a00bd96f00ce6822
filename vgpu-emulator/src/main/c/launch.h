/* From the arguments of a launch to an operation. */
#ifndef EMU_LAUNCH_H
#define EMU_LAUNCH_H

#include "operation.h"

typedef struct {
    CUfunction function;
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t shared_bytes;
    void **params;
    void **extra;
    uint32_t sms; /* on so many processors; 0: on all */
    bool is_kept; /* becomes part of a graph: who asks the graph is told the arguments */
} emu_launch;

/* Checks a launch, copies the arguments that are needed, works out how long it takes. */
CUresult emu_launch_prepare(const emu_launch *launch, emu_operation *operation);

#endif
