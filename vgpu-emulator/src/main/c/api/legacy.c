/*
 * Launches of the first driver interface: block shape and parameters belong to the function, and a launch gives only
 * the grid.
 */
#include "driver/driver.h"
#include "driver/module.h"

#include <stdlib.h>
#include <string.h>

extern CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                               unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                               unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                               void **params, void **extra);

enum { PARAMETER_BYTES = 4096 };

/* A function's legacy launch state, made by the first call that sets any of it. */
struct emu_legacy_launch {
    unsigned int block[3];
    unsigned int shared_bytes;
    size_t bytes;
    uint8_t parameters[PARAMETER_BYTES];
};

static CUresult legacy_of(CUfunction function, emu_legacy_launch **launch) {
    if (!emu_pool_has(&emu_functions, function)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (function->legacy == NULL) {
        function->legacy = calloc(1, sizeof **launch);
    }
    *launch = function->legacy;
    return *launch == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

/* Declares `launch` as the function's legacy launch state, or returns the error. */
#define LEGACY(launch, function) \
    EMU_CONTEXT(context); \
    (void)context; \
    emu_legacy_launch *launch = NULL; \
    do { \
        CUresult emu_result = legacy_of(function, &(launch)); \
        if (emu_result != CUDA_SUCCESS) { \
            return emu_result; \
        } \
    } while (0)

EMU_API CUresult cuFuncSetBlockShape(CUfunction function, int x, int y, int z) {
    LEGACY(launch, function);
    EMU_REQUIRE(x > 0 && y > 0 && z > 0);
    launch->block[0] = (unsigned int)x;
    launch->block[1] = (unsigned int)y;
    launch->block[2] = (unsigned int)z;
    return CUDA_SUCCESS;
}

EMU_API CUresult cuFuncSetSharedSize(CUfunction function, unsigned int bytes) {
    LEGACY(launch, function);
    launch->shared_bytes = bytes;
    return CUDA_SUCCESS;
}

EMU_API CUresult cuParamSetSize(CUfunction function, unsigned int bytes) {
    LEGACY(launch, function);
    EMU_REQUIRE(bytes <= PARAMETER_BYTES);
    launch->bytes = bytes;
    return CUDA_SUCCESS;
}

EMU_API CUresult cuParamSetv(CUfunction function, int offset, void *value, unsigned int bytes) {
    LEGACY(launch, function);
    EMU_REQUIRE(value != NULL && offset >= 0 && bytes <= PARAMETER_BYTES &&
                (unsigned int)offset <= PARAMETER_BYTES - bytes);
    memcpy(launch->parameters + offset, value, bytes);
    return CUDA_SUCCESS;
}

EMU_API CUresult cuParamSeti(CUfunction function, int offset, unsigned int value) {
    return cuParamSetv(function, offset, &value, sizeof value);
}

EMU_API CUresult cuParamSetf(CUfunction function, int offset, float value) {
    return cuParamSetv(function, offset, &value, sizeof value);
}

EMU_API CUresult cuLaunchGridAsync(CUfunction function, int width, int height, CUstream stream) {
    LEGACY(launch, function);
    EMU_REQUIRE(width > 0 && height > 0);
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, launch->parameters,
                     CU_LAUNCH_PARAM_BUFFER_SIZE, &launch->bytes, CU_LAUNCH_PARAM_END};
    return cuLaunchKernel(function, (unsigned int)width, (unsigned int)height, 1, launch->block[0],
                          launch->block[1], launch->block[2], launch->shared_bytes, stream, NULL,
                          extra);
}

EMU_API CUresult cuLaunchGrid(CUfunction function, int width, int height) {
    return cuLaunchGridAsync(function, width, height, NULL);
}

EMU_API CUresult cuLaunch(CUfunction function) {
    return cuLaunchGridAsync(function, 1, 1, NULL);
}
