/* CUDA arrays: memory with a shape. Here they are plain rows, one behind the other. */
#ifndef EMU_ARRAY_H
#define EMU_ARRAY_H

#include "driver/objects.h"

enum { EMU_ARRAY_LEVELS = 17 };

struct CUarray_st {
    emu_object object;
    CUDA_ARRAY3D_DESCRIPTOR shape;
    uint64_t address;
    uint64_t row_bytes;
    uint64_t rows; /* of a slice */
    uint64_t slices;
    bool is_level; /* of a mipmapped array, which it goes with */
};

struct CUmipmappedArray_st {
    emu_object object;
    unsigned int count;
    CUarray levels[EMU_ARRAY_LEVELS];
};

extern emu_pool emu_arrays;
extern emu_pool emu_mipmapped_arrays;

#endif
