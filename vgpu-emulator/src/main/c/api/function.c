/* Function attributes and occupancy. */
#include "driver/driver.h"
#include "driver/module.h"
#include "launch.h"

#include <string.h>

enum {
    ATTRIBUTES = 16,
    THREADS_PER_SM = 2048,
    BLOCKS_PER_SM = 32,
    SHARED_PER_SM = 233472,
    SHARED_RESERVED = 1024, /* per block, for the driver */
    SHARED_MOST = SHARED_PER_SM - SHARED_RESERVED,
    CLUSTER_PORTABLE = 8,
    CLUSTER_MOST = 16,
    ATTRIBUTE_ANY_CLUSTER = 14, /* CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED */
    LAUNCH_CLUSTER = 4          /* CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION */
};

uint32_t emu_function_shared_most(CUfunction function) {
    return function->attributes[8] != 0 ? (uint32_t)function->attributes[8] : EMU_SHARED_DEFAULT;
}

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
    case 3:
        *value = (int)function->local_bytes;
        return CUDA_SUCCESS;
    case 4:
        *value = 32; /* registers */
        return CUDA_SUCCESS;
    case 5:
    case 6:
        *value = version;
        return CUDA_SUCCESS;
    case 8:
        *value = (int)emu_function_shared_most(function);
        return CUDA_SUCCESS;
    default:
        *value = function->attributes[attribute];
        return CUDA_SUCCESS;
    }
}

static CUresult set_attribute(CUfunction function, int attribute, int value) {
    EMU_REQUIRE(attribute == 8 || attribute == 9 || (attribute >= 11 && attribute < ATTRIBUTES));
    EMU_REQUIRE(attribute != 8 || (value >= 0 && value <= SHARED_MOST));
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
    CUresult result = check(function, true);
    return result == CUDA_SUCCESS ? emu_function_load(function) : result;
}

EMU_API CUresult cuFuncIsLoaded(int *state, CUfunction function) {
    CUresult result = check(function, state != NULL);
    if (result == CUDA_SUCCESS) {
        *state = emu_function_is_loaded(function) ? 1 : 0;
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

EMU_API CUresult cuFuncGetParamCount(CUfunction function, size_t *count) {
    CUresult result = check(function, count != NULL);
    if (result == CUDA_SUCCESS) {
        *count = function->param_count;
    }
    return result;
}

EMU_API CUresult cuKernelGetParamCount(CUkernel kernel, size_t *count) {
    return cuFuncGetParamCount(kernel, count);
}

static int blocks_per_sm(uint64_t threads, size_t shared) {
    uint64_t blocks = THREADS_PER_SM / ((threads + 31) / 32 * 32);
    blocks = blocks > BLOCKS_PER_SM ? BLOCKS_PER_SM : blocks;
    uint64_t fitting = SHARED_PER_SM / (shared + SHARED_RESERVED);
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
        int each = SHARED_PER_SM / blocks / 128 * 128;
        *bytes = each > SHARED_RESERVED ? (size_t)(each - SHARED_RESERVED) : 0;
    }
    return result;
}

static int cluster_most(CUfunction function) {
    return function->attributes[ATTRIBUTE_ANY_CLUSTER] != 0 ? CLUSTER_MOST : CLUSTER_PORTABLE;
}

static CUresult check_cluster(const int *result, CUfunction function,
                              const CUlaunchConfig *config) {
    CUresult checked =
        check(function, result != NULL && config != NULL &&
                            (config->attribute_count == 0 || config->attributes != NULL));
    if (checked != CUDA_SUCCESS) {
        return checked;
    }
    EMU_REQUIRE(config->block_x > 0 && config->block_y > 0 && config->block_z > 0);
    return emu_driver.state.settings.capability_major < 9 ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

/* The number of blocks of a launch's shape that fit on one processor at a time. */
static int blocks_of(CUfunction function, const CUlaunchConfig *config) {
    uint64_t threads = (uint64_t)config->block_x * config->block_y * config->block_z;
    return threads > function->max_threads ||
                   config->shared_bytes > emu_function_shared_most(function)
               ? 0
               : blocks_per_sm(threads, config->shared_bytes);
}

EMU_API CUresult cuOccupancyMaxPotentialClusterSize(int *size, CUfunction function,
                                                    const CUlaunchConfig *config) {
    CUresult result = check_cluster(size, function, config);
    if (result == CUDA_SUCCESS) {
        *size = blocks_of(function, config) == 0 ? 0 : cluster_most(function);
    }
    return result;
}

EMU_API CUresult cuOccupancyMaxActiveClusters(int *clusters, CUfunction function,
                                              const CUlaunchConfig *config) {
    CUresult result = check_cluster(clusters, function, config);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    uint64_t size = 1;
    for (unsigned int i = 0; i < config->attribute_count; i++) {
        if (config->attributes[i].id == LAUNCH_CLUSTER) {
            uint32_t shape[3];
            memcpy(shape, config->attributes[i].value, sizeof shape);
            size = (uint64_t)shape[0] * shape[1] * shape[2];
        }
    }
    if (size == 0 || size > (uint64_t)cluster_most(function)) {
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    }
    *clusters = (int)((uint64_t)blocks_of(function, config) * emu_driver.state.settings.sms / size);
    return CUDA_SUCCESS;
}
