/* NVML: MIG devices as handles. */
#ifndef EMU_NVML_MIG_H
#define EMU_NVML_MIG_H

#include "gpu/mig.h"
#include "nvml.h"

/* Identified by ids: a handle refers to whichever instance has them now. */
struct emu_nvml_gpu_instance {
    uint32_t device;
    uint32_t instance;
};
struct emu_nvml_compute_instance {
    emu_mig_name name;
};

/* The GPU behind a MIG device's handle, or the error. NVML_ERROR_INVALID_ARGUMENT: not a MIG device. */
nvmlReturn_t emu_nvml_mig_gpu(nvmlDevice_t device, emu_gpu **gpu);

/* The compute instance behind a handle; false: not a MIG device's handle. */
bool emu_nvml_mig_name(nvmlDevice_t device, emu_mig_name *name);

/* A compute instance's handle. */
nvmlDevice_t emu_nvml_mig_handle(const emu_mig_name *name);
bool emu_nvml_mig_by_uuid(emu_state *state, const char *uuid, nvmlDevice_t *device);

/* A MIG device's name or UUID for NVML; false: not a MIG device. */
bool emu_nvml_mig_text(nvmlDevice_t device, char *text, size_t size, bool uuid);

/* The memory that a GPU's instances use. */
uint64_t emu_nvml_mig_used(emu_gpu *gpu);

/* Called at the last nvmlShutdown. */
void emu_nvml_mig_close(void);

/* Whether this process may change MIG mode and instances. */
bool emu_nvml_mig_allowed(const char *function);

/* The table of a GPU that is in MIG mode; otherwise the error, also one injected into a function. */
nvmlReturn_t emu_nvml_mig_table(const char *function, nvmlDevice_t device, emu_gpu **gpu,
                                emu_mig_table *table);

/* A GPU's handle. */
nvmlDevice_t emu_nvml_device_at(uint32_t index);
emu_state *emu_nvml_state(void);

/* An NVML function that other files here use. */
nvmlReturn_t nvmlGpuInstanceGetInfo(nvmlGpuInstance_t handle, nvmlGpuInstanceInfo_t *info);

nvmlReturn_t emu_nvml_instance_at(uint32_t device, uint32_t id, nvmlGpuInstance_t *handle);

#endif
