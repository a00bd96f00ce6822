/* NVML: MIG devices as handles. */
#ifndef EMU_NVML_MIG_H
#define EMU_NVML_MIG_H

#include "gpu/mig.h"
#include "nvml.h"

/* By the ids: a handle stands for whatever instance has them. */
struct emu_nvml_gpu_instance {
    uint32_t device;
    uint32_t instance;
};
struct emu_nvml_compute_instance {
    emu_mig_name name;
};

/* The GPU of a MIG device's handle, or the error. NVML_ERROR_INVALID_ARGUMENT: it is none. */
nvmlReturn_t emu_nvml_mig_gpu(nvmlDevice_t device, emu_gpu **gpu);

/* The compute instance that a handle stands for; false: it is no MIG device's. */
bool emu_nvml_mig_name(nvmlDevice_t device, emu_mig_name *name);

/* The handle of a compute instance; NULL: no memory. */
nvmlDevice_t emu_nvml_mig_handle(const emu_mig_name *name);
bool emu_nvml_mig_by_uuid(emu_state *state, const char *uuid, nvmlDevice_t *device);

/* What NVML's name and UUID of a MIG device are; false: it is none. */
bool emu_nvml_mig_text(nvmlDevice_t device, char *text, size_t size, bool uuid);

/* What instances of a GPU use of its memory. */
uint64_t emu_nvml_mig_used(emu_gpu *gpu);

/* At the last shutdown. */
void emu_nvml_mig_close(void);

/* Whether this process may change MIG mode and instances. */
bool emu_nvml_mig_allowed(const char *function);

/* A GPU that can be cut, whose MIG mode is on: its table; else the error. */
nvmlReturn_t emu_nvml_mig_table(nvmlDevice_t device, emu_gpu **gpu, emu_mig_table *table);

/* The handle of a GPU. */
nvmlDevice_t emu_nvml_device_at(uint32_t index);
emu_state *emu_nvml_state(void);

/* A function of NVML that others here use. */
nvmlReturn_t nvmlGpuInstanceGetInfo(nvmlGpuInstance_t handle, nvmlGpuInstanceInfo_t *info);

nvmlReturn_t emu_nvml_instance_at(uint32_t device, uint32_t id, nvmlGpuInstance_t *handle);

#endif
