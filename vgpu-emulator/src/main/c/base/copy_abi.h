/* The types of batches of copies and of copies with attributes, declared as in cuda.h. */
#ifndef EMU_COPY_ABI_H
#define EMU_COPY_ABI_H

#include "cuda_abi.h"

enum {
    CU_MEMCPY_SRC_ACCESS_ORDER_STREAM = 1,
    CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL = 2,
    CU_MEMCPY_SRC_ACCESS_ORDER_ANY = 3,
    CU_MEMCPY_OPERAND_TYPE_POINTER = 1,
    CU_MEMCPY_OPERAND_TYPE_ARRAY = 2
};

typedef struct {
    int order; /* CU_MEMCPY_SRC_ACCESS_ORDER_… */
    CUmemLocation source_hint;
    CUmemLocation target_hint;
    unsigned int flags;
} CUmemcpyAttributes;

typedef struct {
    int type; /* CU_MEMCPY_OPERAND_TYPE_… */
    union {
        struct {
            CUdeviceptr address;
            size_t row_length;
            size_t layer_height;
            CUmemLocation hint;
        } pointer;
        struct {
            CUarray array;
            size_t x;
            size_t y;
            size_t z;
        } array;
    };
} CUmemcpy3DOperand;

typedef struct {
    CUmemcpy3DOperand source;
    CUmemcpy3DOperand target;
    size_t width; /* in elements */
    size_t height;
    size_t depth;
    int order;
    unsigned int flags;
} CUDA_MEMCPY3D_BATCH_OP;

#endif
