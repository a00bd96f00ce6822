/* NVML over the emulated GPUs. It does not participate; it only reads the state. */
#ifndef EMU_NVML_H
#define EMU_NVML_H

#include "base/nvml_abi.h"
#include "gpu/gpu.h"
#include "settings.h"

struct emu_nvml_device {
    emu_gpu *gpu;
};

/* The first step of a function without a device: an error, or NVML_SUCCESS. */
nvmlReturn_t emu_nvml_enter(const char *function);

/* The first step of a function of a device: the GPU behind its handle, or the error. */
nvmlReturn_t emu_nvml_gpu(const char *function, nvmlDevice_t device, emu_gpu **gpu);

/* Whether a GPU responds: an error if it, or the whole driver, is gone. */
nvmlReturn_t emu_nvml_presence(const emu_gpu *gpu);

nvmlReturn_t emu_nvml_give_text(char *target, unsigned int size, const char *text);

/* Fills in a GPU's bus address. */
void emu_nvml_pci(const emu_gpu *gpu, nvmlPciInfo_t *info);

/* The recent utilization of a GPU in percent. */
unsigned int emu_nvml_busy_percent(emu_gpu *gpu);

/* The directory of the GPUs' state; the number of GPUs. */
const char *emu_nvml_directory(void);
uint32_t emu_nvml_devices(void);

/* The first statement of every function of a device. */
#define EMU_NVML_GPU(device, condition) \
    emu_gpu *gpu = NULL; \
    do { \
        nvmlReturn_t emu_result = emu_nvml_gpu(__func__, device, &gpu); \
        if (emu_result != NVML_SUCCESS) { \
            return emu_result; \
        } \
        if (!(condition)) { \
            return NVML_ERROR_INVALID_ARGUMENT; \
        } \
    } while (0)

/* The first statement of a function without a device. */
#define EMU_NVML_ENTER(condition) \
    do { \
        nvmlReturn_t emu_result = emu_nvml_enter(__func__); \
        if (emu_result != NVML_SUCCESS) { \
            return emu_result; \
        } \
        if (!(condition)) { \
            return NVML_ERROR_INVALID_ARGUMENT; \
        } \
    } while (0)

/* The body of a function that returns a number, which the setting of that name can change. */
#define EMU_NVML_NUMBER(device, target, setting, value) \
    EMU_NVML_GPU(device, (target) != NULL); \
    *(target) = (unsigned int)emu_nvml_number(setting, (int)gpu->index, (uint64_t)(value)); \
    return NVML_SUCCESS

#endif
