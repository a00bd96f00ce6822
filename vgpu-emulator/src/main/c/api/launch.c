/* Kernel launches. */
#include "driver/context_memory.h"
#include "driver/driver.h"
#include "driver/module.h"
#include "launch.h"

#include <string.h>

/* Copies the arguments of a kernel. */
static CUresult gather(CUfunction function, void **params, void **extra, emu_operation *operation) {
    uint8_t *arguments = operation->kernel.arguments;
    EMU_REQUIRE(params == NULL || extra == NULL);
    if (params != NULL) {
        for (uint32_t i = 0; i < function->param_count; i++) {
            EMU_REQUIRE(params[i] != NULL);
            memcpy(arguments + function->param_offset[i], params[i], function->param_size[i]);
        }
        return CUDA_SUCCESS;
    }
    const void *buffer = NULL;
    size_t size = 0;
    for (; extra != NULL && extra[0] != CU_LAUNCH_PARAM_END; extra += 2) {
        if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER) {
            buffer = extra[1];
        } else if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE && extra[1] != NULL) {
            size = *(const size_t *)extra[1];
        } else {
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    uint32_t bytes = emu_function_argument_bytes(function);
    EMU_REQUIRE(buffer != NULL && size >= bytes);
    memcpy(arguments, buffer, bytes);
    return CUDA_SUCCESS;
}

uint32_t emu_function_argument_bytes(CUfunction function) {
    uint32_t last = function->param_count - 1;
    return function->param_count == 0 ? 0
                                      : function->param_offset[last] + function->param_size[last];
}

/* Whether a launch's arguments are copied: always for a known kernel; for an unknown one only in a graph, if they
 * fit. */
static bool is_gathered(const emu_launch *launch) {
    CUfunction function = launch->function;
    return function->param_count > 0 &&
           (function->known != NULL ||
            (launch->is_kept && (launch->params != NULL || launch->extra != NULL) &&
             emu_function_argument_bytes(function) <= EMU_KERNEL_ARGUMENTS));
}

static CUresult check_shape(const emu_launch *launch) {
    CUfunction function = launch->function;
    uint64_t threads = (uint64_t)launch->block[0] * launch->block[1] * launch->block[2];
    if (threads == 0 || launch->grid[0] == 0 || launch->grid[1] == 0 || launch->grid[2] == 0 ||
        launch->grid[0] > INT32_MAX || launch->grid[1] > 65535 || launch->grid[2] > 65535 ||
        launch->block[2] > 64 || launch->block[0] > 1024 || launch->block[1] > 1024) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (launch->shared_bytes > emu_function_shared_most(function) || threads > 1024) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return threads > function->max_threads ? CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES : CUDA_SUCCESS;
}

CUresult emu_launch_prepare(const emu_launch *launch, emu_operation *operation) {
    CUfunction function = launch->function;
    if (!emu_pool_has(&emu_functions, function)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    CUresult result = check_shape(launch);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    result = emu_function_load(function);
    if (result == CUDA_SUCCESS) {
        result = emu_context_grow(function);
    }
    if (result != CUDA_SUCCESS) {
        return result;
    }
    operation->kind = EMU_KERNEL;
    operation->next = NULL;
    operation->engine = 0;
    operation->kernel.known = function->known;
    operation->kernel.function = function;
    memcpy(operation->kernel.grid, launch->grid, sizeof launch->grid);
    memcpy(operation->kernel.block, launch->block, sizeof launch->block);
    operation->kernel.shared_bytes = launch->shared_bytes;
    if (is_gathered(launch)) {
        result = gather(function, launch->params, launch->extra, operation);
    }
    if (function->is_timed) {
        operation->duration_ns = function->duration_ns;
    } else if (function->known != NULL) {
        operation->duration_ns =
            result == CUDA_SUCCESS ? function->known->duration_ns(operation->kernel.arguments) : 0;
    } else {
        const emu_state *state = &emu_driver.state;
        operation->duration_ns = emu_kernel_modelled_ns(
            launch->sms != 0 ? launch->sms : state->settings.sms, &state->times,
            (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2],
            (uint64_t)launch->block[0] * launch->block[1] * launch->block[2]);
    }
    return result;
}

/* An empty kernel on a stream that holds nothing back. Nothing needs to be done, and benchmarks measure the cost of
 * this path. */
static inline bool is_nothing(const emu_launch *launch, CUstream stream) {
    CUfunction function = launch->function;
    return emu_pool_has(&emu_functions, function) && function->is_timed &&
           emu_function_is_loaded(function) && function->duration_ns == 0 &&
           (function->known == NULL || function->known->compute == NULL) &&
           emu_stream_is_plain(stream);
}

static CUresult launch_in(const emu_launch *launch, CUstream handle, bool per_thread) {
    EMU_CONTEXT(context);
    CUstream stream = NULL;
    CUresult result = emu_stream_of(context, handle, per_thread, &stream);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    emu_cost(emu_driver.state.times.launch_cost_ns);
    if (is_nothing(launch, stream)) {
        return check_shape(launch);
    }
    emu_operation operation;
    operation.duration_ns = 0;
    emu_launch placed = *launch;
    placed.sms = stream->context->sms;
    placed.is_kept = emu_stream_is_captured(stream);
    result = emu_launch_prepare(&placed, &operation);
    return result == CUDA_SUCCESS ? emu_enqueue(stream, &operation) : result;
}

#define SHAPE \
    unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, unsigned int block_x, \
        unsigned int block_y, unsigned int block_z, unsigned int shared_bytes
#define LAUNCH(params, extra) \
    { \
        function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, params, \
            extra, 0, false \
    }

EMU_API CUresult cuLaunchKernel(CUfunction function, SHAPE, CUstream stream, void **params,
                                void **extra) {
    emu_launch launch = LAUNCH(params, extra);
    return launch_in(&launch, stream, false);
}

EMU_API CUresult cuLaunchKernel_ptsz(CUfunction function, SHAPE, CUstream stream, void **params,
                                     void **extra) {
    emu_launch launch = LAUNCH(params, extra);
    return launch_in(&launch, stream, true);
}

static CUresult cooperative(const emu_launch *launch, CUstream stream, bool per_thread) {
    uint64_t threads = (uint64_t)launch->block[0] * launch->block[1] * launch->block[2];
    uint64_t blocks = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
    if (threads > 0 && threads <= 2048) {
        uint64_t per_sm = 2048 / threads > 32 ? 32 : 2048 / threads;
        if (blocks > per_sm * emu_driver.state.settings.sms) {
            return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
        }
    }
    return launch_in(launch, stream, per_thread);
}

EMU_API CUresult cuLaunchCooperativeKernel(CUfunction function, SHAPE, CUstream stream,
                                           void **params) {
    emu_launch launch = LAUNCH(params, NULL);
    return cooperative(&launch, stream, false);
}

EMU_API CUresult cuLaunchCooperativeKernel_ptsz(CUfunction function, SHAPE, CUstream stream,
                                                void **params) {
    emu_launch launch = LAUNCH(params, NULL);
    return cooperative(&launch, stream, true);
}

static CUresult launch_config(const CUlaunchConfig *config, CUfunction function, void **params,
                              void **extra, bool per_thread) {
    EMU_INITIALIZED();
    EMU_REQUIRE(config != NULL && (config->attribute_count == 0 || config->attributes != NULL));
    emu_launch launch = {function,
                         {config->grid_x, config->grid_y, config->grid_z},
                         {config->block_x, config->block_y, config->block_z},
                         config->shared_bytes,
                         params,
                         extra,
                         0,
                         false};
    for (unsigned int i = 0; i < config->attribute_count; i++) {
        int value = 0;
        memcpy(&value, config->attributes[i].value, sizeof value);
        if (config->attributes[i].id == 2 && value != 0) { /* CU_LAUNCH_ATTRIBUTE_COOPERATIVE */
            return cooperative(&launch, config->stream, per_thread);
        }
    }
    return launch_in(&launch, config->stream, per_thread);
}

EMU_API CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **params,
                                  void **extra) {
    return launch_config(config, function, params, extra, false);
}

EMU_API CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction function,
                                       void **params, void **extra) {
    return launch_config(config, function, params, extra, true);
}
