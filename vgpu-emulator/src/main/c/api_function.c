/* What is known of functions, and how many blocks fit. */
#include "driver.h"
#include "module.h"

enum {
    ATTRIBUTES = 16,
    THREADS_PER_SM = 2048,
    BLOCKS_PER_SM = 32,
    SHARED_PER_SM = 233472,
    SHARED_DEFAULT = 49152
};

static CUresult get_attribute(int *value, int attribute, CUfunction function) {
    EMU_REQUIRE(value != NULL && attribute >= 0 && attribute < ATTRIBUTES);
    if (!emu_pool_has(&emu_functions, function)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    int version = (int)(emu_driver.state.settings.capability_major * 10 +
                        emu_driver.state.settings.capability_minor);
    switch (attribute) {
    case 0:
        *value = (int)function->max_threads;
        return CUDA_SUCCESS;
    case 4:
        *value = 32; /* registers */
        return CUDA_SUCCESS;
    case 5:
    case 6:
        *value = version;
        return CUDA_SUCCESS;
    case 8:
        *value = function->attributes[8] != 0 ? function->attributes[8] : SHARED_DEFAULT;
        return CUDA_SUCCESS;
    default:
        *value = function->attributes[attribute];
        return CUDA_SUCCESS;
    }
}

static CUresult set_attribute(CUfunction function, int attribute, int value) {
    EMU_REQUIRE(attribute == 8 || attribute == 9 || (attribute >= 11 && attribute < ATTRIBUTES));
    EMU_REQUIRE(attribute != 8 || (value >= 0 && value <= SHARED_PER_SM));
    if (!emu_pool_has(&emu_functions, function)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    function->attributes[attribute] = value;
    return CUDA_SUCCESS;
}

EMU_API CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction function) {
    EMU_INITIALIZED();
    return get_attribute(value, attribute, function);
}

EMU_API CUresult cuFuncSetAttribute(CUfunction function, int attribute, int value) {
    EMU_INITIALIZED();
    return set_attribute(function, attribute, value);
}

EMU_API CUresult cuKernelGetAttribute(int *value, int attribute, CUkernel kernel, CUdevice device) {
    EMU_INITIALIZED();
    return emu_device_at(device) == NULL ? CUDA_ERROR_INVALID_DEVICE
                                         : get_attribute(value, attribute, kernel);
}

EMU_API CUresult cuKernelSetAttribute(int attribute, int value, CUkernel kernel, CUdevice device) {
    EMU_INITIALIZED();
    return emu_device_at(device) == NULL ? CUDA_ERROR_INVALID_DEVICE
                                         : set_attribute(kernel, attribute, value);
}

static CUresult check(CUfunction function, bool valid) {
    EMU_INITIALIZED();
    EMU_REQUIRE(valid);
    return emu_pool_has(&emu_functions, function) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

EMU_API CUresult cuFuncSetCacheConfig(CUfunction function, int config) {
    return check(function, config >= 0 && config <= 3);
}

EMU_API CUresult cuKernelSetCacheConfig(CUkernel kernel, int config, CUdevice device) {
    (void)device;
    return check(kernel, config >= 0 && config <= 3);
}

EMU_API CUresult cuFuncSetSharedMemConfig(CUfunction function, int config) {
    return check(function, config >= 0 && config <= 2);
}

EMU_API CUresult cuFuncLoad(CUfunction function) {
    return check(function, true);
}

EMU_API CUresult cuFuncIsLoaded(int *state, CUfunction function) {
    CUresult result = check(function, state != NULL);
    if (result == CUDA_SUCCESS) {
        *state = 1;
    }
    return result;
}

EMU_API CUresult cuFuncGetModule(CUmodule *module, CUfunction function) {
    CUresult result = check(function, module != NULL);
    if (result == CUDA_SUCCESS) {
        *module = function->module;
    }
    return result;
}

EMU_API CUresult cuFuncGetName(const char **name, CUfunction function) {
    CUresult result = check(function, name != NULL);
    if (result == CUDA_SUCCESS) {
        *name = function->name;
    }
    return result;
}

EMU_API CUresult cuKernelGetName(const char **name, CUkernel kernel) {
    return cuFuncGetName(name, kernel);
}

EMU_API CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset,
                                    size_t *size) {
    CUresult result = check(function, offset != NULL);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    EMU_REQUIRE(index < function->param_count);
    *offset = function->param_offset[index];
    if (size != NULL) {
        *size = function->param_size[index];
    }
    return CUDA_SUCCESS;
}

EMU_API CUresult cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t *offset, size_t *size) {
    return cuFuncGetParamInfo(kernel, index, offset, size);
}

static int blocks_per_sm(uint64_t threads, size_t shared) {
    uint64_t blocks = THREADS_PER_SM / ((threads + 31) / 32 * 32);
    blocks = blocks > BLOCKS_PER_SM ? BLOCKS_PER_SM : blocks;
    uint64_t fitting = shared == 0 ? blocks : SHARED_PER_SM / shared;
    return (int)(fitting < blocks ? fitting : blocks);
}

EMU_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks,
                                                                      CUfunction function,
                                                                      int threads, size_t shared,
                                                                      unsigned int flags) {
    CUresult result = check(function, blocks != NULL && threads > 0 && flags <= 1);
    if (result == CUDA_SUCCESS) {
        *blocks = (uint32_t)threads > function->max_threads
                      ? 0
                      : blocks_per_sm((uint64_t)threads, shared);
    }
    return result;
}

EMU_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function,
                                                             int threads, size_t shared) {
    return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads, shared,
                                                                0);
}

EMU_API CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block,
                                                           CUfunction function,
                                                           CUoccupancyB2DSize shared_of,
                                                           size_t shared, int limit,
                                                           unsigned int flags) {
    CUresult result = check(function, grid != NULL && block != NULL && limit >= 0 && flags <= 1);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    int most = (int)function->max_threads;
    most = limit > 0 && limit < most ? limit : most;
    int best = 0;
    *grid = 0;
    *block = 0;
    for (int threads = most < 32 ? most : most / 32 * 32; threads > 0; threads -= 32) {
        size_t bytes = shared_of != NULL ? shared_of(threads) : shared;
        int blocks = blocks_per_sm((uint64_t)threads, bytes);
        if (blocks * threads > best) {
            best = blocks * threads;
            *block = threads;
            *grid = blocks * (int)emu_driver.state.settings.sms;
        }
    }
    return CUDA_SUCCESS;
}

EMU_API CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction function,
                                                  CUoccupancyB2DSize shared_of, size_t shared,
                                                  int limit) {
    return cuOccupancyMaxPotentialBlockSizeWithFlags(grid, block, function, shared_of, shared,
                                                     limit, 0);
}

EMU_API CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, CUfunction function,
                                                         int blocks, int threads) {
    CUresult result = check(function, bytes != NULL && blocks > 0 && threads > 0);
    if (result == CUDA_SUCCESS) {
        *bytes = (size_t)(SHARED_PER_SM / blocks);
    }
    return result;
}
