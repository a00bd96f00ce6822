/* From the arguments of a launch to an operation. */
#ifndef EMU_LAUNCH_H
#define EMU_LAUNCH_H

#include "driver/operation.h"

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

/* The shared memory that a launch of it may ask for, in bytes: more only if the function was told so. */
uint32_t emu_function_shared_most(CUfunction function);

/* What its arguments take, one behind the other. */
uint32_t emu_function_argument_bytes(CUfunction function);

/* Checks a launch, copies the arguments that are needed, works out how long it takes. */
CUresult emu_launch_prepare(const emu_launch *launch, emu_operation *operation);

#endif
