/* NVML over the emulated GPUs. It takes no part: it only looks at the state. */
#ifndef EMU_NVML_H
#define EMU_NVML_H

#include "base/nvml_abi.h"
#include "gpu/gpu.h"
#include "settings.h"

struct emu_nvml_device {
    emu_gpu *gpu;
};

/* What a function that is of no device begins with: an error, or NVML_SUCCESS. */
nvmlReturn_t emu_nvml_enter(const char *function);

/* What a function of a device begins with: the GPU of its handle, or the error. */
nvmlReturn_t emu_nvml_gpu(const char *function, nvmlDevice_t device, emu_gpu **gpu);

/* Whether a GPU answers: an error if it, or the whole driver, is gone. */
nvmlReturn_t emu_nvml_presence(const emu_gpu *gpu);

nvmlReturn_t emu_nvml_give_text(char *target, unsigned int size, const char *text);

/* Fills in where a GPU is on the bus. */
void emu_nvml_pci(const emu_gpu *gpu, nvmlPciInfo_t *info);

/* Percent of the time in which a GPU was busy of late. */
unsigned int emu_nvml_busy_percent(emu_gpu *gpu);

/* Where the state of the GPUs is; how many there are. */
const char *emu_nvml_directory(void);
uint32_t emu_nvml_devices(void);

/* Every function of a device starts with this. */
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

/* One that is of no device. */
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

/* The body of one that gives a number, which a setting of that name may change. */
#define EMU_NVML_NUMBER(device, target, setting, value) \
    EMU_NVML_GPU(device, (target) != NULL); \
    *(target) = (unsigned int)emu_nvml_number(setting, (int)gpu->index, (uint64_t)(value)); \
    return NVML_SUCCESS

#endif
