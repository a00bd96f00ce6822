/* NVML: MIG devices, one for each compute instance. */
#include "mig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MEBIBYTE_SHIFT = 20 };

struct mig_device {
    struct emu_nvml_device device; /* first: its address is the handle */
    emu_mig_name name;
    emu_state *seen_as; /* the GPUs' state, with the instance's size */
    emu_gpu gpu;
};

static struct mig_device devices[EMU_MAX_DEVICES][EMU_MIG_IDS][EMU_MIG_SLICES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

bool emu_nvml_mig_name(nvmlDevice_t handle, emu_mig_name *name) {
    uintptr_t offset = (uintptr_t)handle - (uintptr_t)devices;
    if ((uintptr_t)handle < (uintptr_t)devices || offset >= sizeof devices ||
        offset % sizeof devices[0][0][0] != 0) {
        return false;
    }
    *name = ((struct mig_device *)(void *)handle)->name;
    return true;
}

nvmlDevice_t emu_nvml_mig_handle(const emu_mig_name *name) {
    struct mig_device *device = &devices[name->device][name->instance][name->part];
    device->name = *name;
    return &device->device;
}

nvmlReturn_t emu_nvml_mig_gpu(nvmlDevice_t handle, emu_gpu **gpu) {
    emu_mig_name name;
    if (!emu_nvml_mig_name(handle, &name)) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    emu_state *state = emu_nvml_state();
    emu_mig_table table;
    emu_mig_read(state, name.device, &table);
    struct mig_device *device = (struct mig_device *)(void *)handle;
    emu_gpu view = {0};
    emu_settings settings = state->settings;
    if (table.current == 0 || emu_mig_view(state, &table, &name, &settings, &view) != 0) {
        return NVML_ERROR_NOT_FOUND;
    }
    pthread_mutex_lock(&lock);
    if (device->seen_as == NULL) {
        device->seen_as = malloc(sizeof *state);
        if (device->seen_as != NULL) {
            memcpy(device->seen_as, state, sizeof *state);
        }
    }
    if (device->seen_as != NULL) {
        device->seen_as->settings = settings;
        device->gpu.state = device->seen_as;
        device->gpu.index = view.index;
        device->gpu.shared = view.shared;
        device->gpu.memory = view.memory;
        *gpu = &device->gpu;
    }
    nvmlReturn_t result = device->seen_as == NULL ? NVML_ERROR_MEMORY : NVML_SUCCESS;
    pthread_mutex_unlock(&lock);
    return result;
}

void emu_nvml_mig_close(void) {
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < sizeof devices / sizeof devices[0][0][0]; i++) {
        struct mig_device *device = &devices[0][0][0] + i;
        free(device->seen_as);
        device->seen_as = NULL;
    }
    pthread_mutex_unlock(&lock);
}

bool emu_nvml_mig_by_uuid(emu_state *state, const char *uuid, nvmlDevice_t *device) {
    for (uint32_t i = 0; i < state->settings.devices; i++) {
        emu_mig_table table;
        emu_mig_name name = {.device = i};
        emu_mig_read(state, i, &table);
        for (; emu_mig_next(&table, &name); name.part++) {
            char text[48];
            emu_mig_uuid_text(state, &name, text);
            if (strcasecmp(text, uuid) == 0) {
                *device = emu_nvml_mig_handle(&name);
                return true;
            }
        }
    }
    return false;
}

bool emu_nvml_mig_text(nvmlDevice_t device, char *text, size_t size, bool uuid) {
    emu_mig_name name;
    emu_mig_table table;
    emu_state *state = emu_nvml_state();
    if (!emu_nvml_mig_name(device, &name)) {
        return false;
    }
    if (uuid) {
        emu_mig_uuid_text(state, &name, text);
        return true;
    }
    char shape[48];
    emu_mig_read(state, name.device, &table);
    emu_mig_shape(emu_mig_geometry_for(&state->settings), &table.instances[name.instance],
                  name.part, &state->settings, shape, sizeof shape);
    snprintf(text, size, "%s MIG %s", state->settings.model, shape);
    return true;
}

uint64_t emu_nvml_mig_used(emu_gpu *gpu) {
    emu_mig_table table;
    emu_mig_name name = {.device = gpu->index};
    uint64_t used = 0;
    uint32_t last = EMU_MIG_IDS;
    if (gpu->memory != gpu->state->gpus[gpu->index].memory) {
        return 0; /* is an instance itself */
    }
    emu_mig_read(gpu->state, gpu->index, &table);
    for (; emu_mig_next(&table, &name); name.part++) {
        emu_gpu part = {0};
        if (name.instance != last && emu_mig_view(gpu->state, &table, &name, NULL, &part) == 0) {
            used += emu_gpu_used_bytes(&part);
        }
        last = name.instance;
    }
    return used;
}

EMU_API nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int *is_mig) {
    EMU_NVML_GPU(device, is_mig != NULL);
    emu_mig_name name;
    (void)gpu;
    *is_mig = emu_nvml_mig_name(device, &name) ? 1 : 0;
    return NVML_SUCCESS;
}

EMU_API nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t device, unsigned int *id) {
    EMU_NVML_GPU(device, id != NULL);
    emu_mig_name name;
    (void)gpu;
    if (!emu_nvml_mig_name(device, &name)) {
        return NVML_ERROR_NOT_SUPPORTED;
    }
    *id = name.instance;
    return NVML_SUCCESS;
}

EMU_API nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t device, unsigned int *id) {
    EMU_NVML_GPU(device, id != NULL);
    emu_mig_name name;
    (void)gpu;
    if (!emu_nvml_mig_name(device, &name)) {
        return NVML_ERROR_NOT_SUPPORTED;
    }
    *id = name.part;
    return NVML_SUCCESS;
}

EMU_API nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int *count) {
    EMU_NVML_GPU(device, count != NULL);
    const emu_mig_geometry *geometry = emu_mig_geometry_for(&gpu->state->settings);
    *count = geometry == NULL ? 0 : geometry->compute_slices;
    return NVML_SUCCESS;
}

EMU_API nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index,
                                                         nvmlDevice_t *mig) {
    emu_gpu *gpu = NULL;
    emu_mig_table table;
    nvmlReturn_t result = emu_nvml_mig_table(__func__, device, &gpu, &table);
    if (result != NVML_SUCCESS || mig == NULL) {
        return result != NVML_SUCCESS ? result : NVML_ERROR_INVALID_ARGUMENT;
    }
    emu_mig_name name = {.device = gpu->index};
    for (unsigned int i = 0; emu_mig_next(&table, &name); name.part++, i++) {
        if (i == index) {
            *mig = emu_nvml_mig_handle(&name);
            return NVML_SUCCESS;
        }
    }
    return NVML_ERROR_NOT_FOUND;
}

EMU_API nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t mig,
                                                                  nvmlDevice_t *device) {
    EMU_NVML_GPU(mig, device != NULL);
    emu_mig_name name;
    (void)gpu;
    if (!emu_nvml_mig_name(mig, &name)) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    *device = emu_nvml_device_at(name.device);
    return NVML_SUCCESS;
}

EMU_API nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device,
                                                nvmlDeviceAttributes_t *attributes) {
    EMU_NVML_GPU(device, attributes != NULL);
    emu_mig_name name;
    emu_mig_table table;
    if (!emu_nvml_mig_name(device, &name)) {
        return NVML_ERROR_NOT_SUPPORTED;
    }
    emu_mig_read(emu_nvml_state(), name.device, &table);
    const emu_mig_instance *instance = &table.instances[name.instance];
    *attributes =
        (nvmlDeviceAttributes_t){.multiprocessorCount = gpu->state->settings.sms,
                                 .sharedCopyEngineCount = instance->slices,
                                 .gpuInstanceSliceCount = instance->slices,
                                 .computeInstanceSliceCount = instance->parts[name.part].slices,
                                 .memorySizeMB =
                                     gpu->state->settings.memory_bytes >> MEBIBYTE_SHIFT};
    return NVML_SUCCESS;
}
