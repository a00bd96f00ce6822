/* NVML over the emulated GPUs. It takes no part: it only looks at the state. */
#ifndef EMU_NVML_H
#define EMU_NVML_H

#include "gpu.h"
#include "nvml_abi.h"

struct emu_nvml_device {
    emu_gpu *gpu;
};

/* The GPU of a handle, or the error. */
nvmlReturn_t emu_nvml_gpu(nvmlDevice_t device, emu_gpu **gpu);

/* Every function of a device starts with this. */
#define EMU_NVML_GPU(device, condition) \
    emu_gpu *gpu = NULL; \
    do { \
        nvmlReturn_t emu_result = emu_nvml_gpu(device, &gpu); \
        if (emu_result != NVML_SUCCESS) { \
            return emu_result; \
        } \
        if (!(condition)) { \
            return NVML_ERROR_INVALID_ARGUMENT; \
        } \
    } while (0)

#endif
