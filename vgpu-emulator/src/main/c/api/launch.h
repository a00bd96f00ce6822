/* Turns the arguments of a launch into an operation. */
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
    uint32_t sms; /* the number of processors that run it; 0: all */
    /* becomes a graph node: its arguments are kept, because the program can ask the graph for them */
    bool is_kept;
} emu_launch;

/* The most shared memory that a launch may request, in bytes. The function's attribute can raise it above the
 * default. */
uint32_t emu_function_shared_most(CUfunction function);

/* The size of the function's arguments, packed one after the other. */
uint32_t emu_function_argument_bytes(CUfunction function);

/* Checks a launch, copies the arguments that are needed, and computes the launch's duration. */
CUresult emu_launch_prepare(const emu_launch *launch, emu_operation *operation);

#endif
