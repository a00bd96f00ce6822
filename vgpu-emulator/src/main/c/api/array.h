/* CUDA arrays: memory with a shape. The emulator stores them as plain rows, one after the other. */
#ifndef EMU_ARRAY_H
#define EMU_ARRAY_H

#include "driver/objects.h"

enum { EMU_ARRAY_LEVELS = 17 };

struct CUarray_st {
    emu_object object;
    CUDA_ARRAY3D_DESCRIPTOR shape;
    uint64_t address;
    uint64_t row_bytes;
    uint64_t rows; /* per slice */
    uint64_t slices;
    bool is_level; /* a level of a mipmapped array; freed with that array */
};

struct CUmipmappedArray_st {
    emu_object object;
    unsigned int count;
    CUarray levels[EMU_ARRAY_LEVELS];
};

extern emu_pool emu_arrays;
extern emu_pool emu_mipmapped_arrays;

#endif
