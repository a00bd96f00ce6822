/* NVML: MIG mode, and GPU instances. */
#include "mig.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ALL_PROFILES = 64, MEBIBYTE_SHIFT = 20 };

static struct emu_nvml_gpu_instance handles[EMU_MAX_DEVICES][EMU_MIG_IDS];

/*
 * The kernel driver decides by the process's privileges. A test can drop them, for all privileged functions or for
 * some.
 */
bool emu_nvml_mig_allowed(const char *function) {
    char denied[160];
    const char *told = getenv("VGPU_EMULATOR_UNPRIVILEGED");
    return geteuid() == 0 && (told == NULL || told[0] == '\0') &&
           !(emu_nvml_text("unprivileged", -1, denied, sizeof denied) &&
             (strcmp(denied, "1") == 0 || strstr(denied, function) != NULL));
}

/* ---- mode */

static nvmlReturn_t cuttable(const char *function, nvmlDevice_t device, emu_gpu **result) {
    emu_gpu *gpu = NULL;
    nvmlReturn_t known = emu_nvml_gpu(function, device, &gpu);
    if (known != NVML_SUCCESS) {
        return known;
    }
    emu_mig_name name;
    if (emu_nvml_mig_name(device, &name) || emu_mig_geometry_for(&gpu->state->settings) == NULL) {
        return NVML_ERROR_NOT_SUPPORTED;
    }
    *result = gpu;
    return NVML_SUCCESS;
}

EMU_API nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *current,
                                          unsigned int *pending) {
    emu_gpu *gpu = NULL;
    nvmlReturn_t result = cuttable(__func__, device, &gpu);
    if (result != NVML_SUCCESS) {
        return result;
    }
    if (current == NULL || pending == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    emu_mig_table table;
    emu_mig_read(gpu->state, gpu->index, &table);
    *current = table.current;
    *pending = table.pending;
    return NVML_SUCCESS;
}

static bool has_instances(const emu_mig_table *table) {
    for (uint32_t id = 0; id < EMU_MIG_IDS; id++) {
        if (table->instances[id].slices != 0) {
            return true;
        }
    }
    return false;
}

static bool has_contexts(emu_gpu *gpu) {
    emu_view view;
    emu_gpu_watch(gpu, &view);
    for (uint32_t i = 0; i < view.schedule.context_count; i++) {
        uint32_t owner = view.schedule.contexts[i].owner;
        if (owner != 0 && owner <= EMU_MAX_PROCESSES &&
            !emu_process_dead(gpu->state, (int)owner - 1)) {
            return true;
        }
    }
    return false;
}

/* While the GPU is in use, the current mode stays and the new one is pending. */
EMU_API nvmlReturn_t nvmlDeviceSetMigMode(nvmlDevice_t device, unsigned int mode,
                                          nvmlReturn_t *activation) {
    emu_gpu *gpu = NULL;
    nvmlReturn_t result = cuttable(__func__, device, &gpu);
    if (result != NVML_SUCCESS) {
        return result;
    }
    if (mode > 1 || activation == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    if (!emu_nvml_mig_allowed("nvmlDeviceSetMigMode")) {
        return NVML_ERROR_NO_PERMISSION;
    }
    emu_mig_table table;
    if (emu_mig_lock(gpu->state, gpu->index, &table) != 0) {
        return NVML_ERROR_UNKNOWN;
    }
    bool used =
        table.current != mode && (table.current != 0 ? has_instances(&table) : has_contexts(gpu));
    table.pending = mode;
    table.current = used ? table.current : mode;
    emu_mig_write(gpu->state, gpu->index, &table);
    emu_mig_unlock(gpu->state);
    *activation = used ? NVML_ERROR_IN_USE : NVML_SUCCESS;
    return NVML_SUCCESS;
}

nvmlReturn_t emu_nvml_mig_table(const char *function, nvmlDevice_t device, emu_gpu **gpu,
                                emu_mig_table *table) {
    nvmlReturn_t result = cuttable(function, device, gpu);
    if (result == NVML_SUCCESS) {
        emu_mig_read((*gpu)->state, (*gpu)->index, table);
        result = table->current == 0 ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
    }
    return result;
}

/* ---- profiles */

static void describe(const emu_gpu *gpu, const emu_mig_geometry *geometry,
                     const emu_mig_profile *profile, nvmlGpuInstanceProfileInfo_v2_t *info) {
    const emu_settings *settings = &gpu->state->settings;
    memset((char *)info + sizeof info->version, 0, sizeof *info - sizeof info->version);
    info->id = profile->id;
    info->sliceCount = profile->slices;
    info->instanceCount = profile->most;
    info->multiprocessorCount = emu_mig_sms(geometry, profile, profile->slices, settings->sms);
    info->copyEngineCount = profile->slices;
    info->decoderCount = profile->slices / 2 + profile->has_media;
    info->jpegCount = profile->has_media;
    info->ofaCount = profile->has_media;
    info->memorySizeMB =
        emu_mig_bytes(geometry, profile->size, settings->memory_bytes) >> MEBIBYTE_SHIFT;
    emu_mig_profile_name(geometry, profile, settings, info->name, sizeof info->name);
    memmove(info->name + 4, info->name, strlen(info->name) + 1);
    memcpy(info->name, "MIG ", 4);
}

/* Profiles can be queried while MIG mode is off. */
static nvmlReturn_t profile_of(nvmlDevice_t device, unsigned int number,
                               nvmlGpuInstanceProfileInfo_v2_t *info) {
    emu_gpu *gpu = NULL;
    nvmlReturn_t result = cuttable(__func__, device, &gpu);
    if (result != NVML_SUCCESS) {
        return result;
    }
    if (number >= ALL_PROFILES) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    const emu_mig_geometry *geometry = emu_mig_geometry_for(&gpu->state->settings);
    const emu_mig_profile *profile = emu_mig_profile_by_number(geometry, number);
    if (profile == NULL) {
        return NVML_ERROR_NOT_SUPPORTED;
    }
    describe(gpu, geometry, profile, info);
    return NVML_SUCCESS;
}

EMU_API nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoV(nvmlDevice_t device, unsigned int number,
                                                          nvmlGpuInstanceProfileInfo_v2_t *info) {
    if (info == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    if (info->version != (sizeof *info | 2u << 24)) {
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    }
    return profile_of(device, number, info);
}

EMU_API nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfo(nvmlDevice_t device, unsigned int number,
                                                         nvmlGpuInstanceProfileInfo_t *info) {
    nvmlGpuInstanceProfileInfo_v2_t full = {0};
    nvmlReturn_t result =
        info == NULL ? NVML_ERROR_INVALID_ARGUMENT : profile_of(device, number, &full);
    if (result == NVML_SUCCESS) {
        *info = (nvmlGpuInstanceProfileInfo_t){.id = full.id,
                                               .isP2pSupported = full.isP2pSupported,
                                               .sliceCount = full.sliceCount,
                                               .instanceCount = full.instanceCount,
                                               .multiprocessorCount = full.multiprocessorCount,
                                               .copyEngineCount = full.copyEngineCount,
                                               .decoderCount = full.decoderCount,
                                               .encoderCount = full.encoderCount,
                                               .jpegCount = full.jpegCount,
                                               .ofaCount = full.ofaCount,
                                               .memorySizeMB = full.memorySizeMB};
    }
    return result;
}

/* All placements of a profile, free or not; also while MIG mode is off. */
EMU_API nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements_v2(
    nvmlDevice_t device, unsigned int id, nvmlGpuInstancePlacement_t *placements,
    unsigned int *count) {
    emu_gpu *gpu = NULL;
    nvmlReturn_t result = cuttable(__func__, device, &gpu);
    if (result != NVML_SUCCESS) {
        return result;
    }
    const emu_mig_profile *profile =
        emu_mig_profile_by_id(emu_mig_geometry_for(&gpu->state->settings), id);
    if (count == NULL || profile == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    unsigned int room = *count;
    *count = profile->start_count;
    if (placements == NULL) {
        return NVML_SUCCESS;
    }
    if (room < profile->start_count) {
        return NVML_ERROR_INSUFFICIENT_SIZE;
    }
    unsigned int written = 0;
    for (uint32_t start = 0; start < EMU_MIG_STARTS; start++) {
        for (uint32_t i = 0; i < profile->start_count; i++) {
            if (profile->starts[i] == start) {
                placements[written++] = (nvmlGpuInstancePlacement_t){start, profile->size};
            }
        }
    }
    return NVML_SUCCESS;
}

EMU_API nvmlReturn_t nvmlDeviceGetGpuInstanceRemainingCapacity(nvmlDevice_t device, unsigned int id,
                                                               unsigned int *count) {
    emu_gpu *gpu = NULL;
    emu_mig_table table;
    nvmlReturn_t result = emu_nvml_mig_table(__func__, device, &gpu, &table);
    if (result != NVML_SUCCESS) {
        return result;
    }
    const emu_mig_geometry *geometry = emu_mig_geometry_for(&gpu->state->settings);
    const emu_mig_profile *profile = emu_mig_profile_by_id(geometry, id);
    if (count == NULL || profile == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    *count = emu_mig_remaining(geometry, &table, profile);
    return NVML_SUCCESS;
}

/* ---- GPU instances */

nvmlReturn_t emu_nvml_instance_at(uint32_t device, uint32_t id, nvmlGpuInstance_t *handle) {
    handles[device][id] = (struct emu_nvml_gpu_instance){device, id};
    *handle = &handles[device][id];
    return NVML_SUCCESS;
}

static nvmlReturn_t add(emu_gpu *gpu, const emu_mig_profile *profile, uint32_t start,
                        emu_mig_table *table, nvmlGpuInstance_t *handle) {
    const emu_mig_geometry *geometry = emu_mig_geometry_for(&gpu->state->settings);
    uint32_t id = emu_mig_id_of(geometry, profile->size, start);
    if (id == EMU_MIG_NO_ID || !emu_mig_legal(geometry, table, profile, start)) {
        return NVML_ERROR_INSUFFICIENT_RESOURCES;
    }
    table->instances[id] = (emu_mig_instance){.slices = profile->slices,
                                              .size = profile->size,
                                              .start = start,
                                              .profile_id = profile->id};
    emu_mig_reset_memory(gpu->state, gpu->index, start);
    emu_mig_write(gpu->state, gpu->index, table);
    return emu_nvml_instance_at(gpu->index, id, handle);
}

static nvmlReturn_t create(const char *function, nvmlDevice_t device, unsigned int profile_id,
                           const nvmlGpuInstancePlacement_t *placement, nvmlGpuInstance_t *handle) {
    emu_gpu *gpu = NULL;
    emu_mig_table table;
    nvmlReturn_t result = emu_nvml_mig_table(function, device, &gpu, &table);
    if (result != NVML_SUCCESS) {
        return result;
    }
    const emu_mig_geometry *geometry = emu_mig_geometry_for(&gpu->state->settings);
    const emu_mig_profile *profile = emu_mig_profile_by_id(geometry, profile_id);
    if (profile == NULL || handle == NULL ||
        (placement != NULL && placement->size != profile->size)) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    if (!emu_nvml_mig_allowed(placement == NULL ? "nvmlDeviceCreateGpuInstance"
                                                : "nvmlDeviceCreateGpuInstanceWithPlacement")) {
        return NVML_ERROR_NO_PERMISSION;
    }
    if (emu_mig_lock(gpu->state, gpu->index, &table) != 0) {
        return NVML_ERROR_UNKNOWN;
    }
    result = table.current == 0 ? NVML_ERROR_NOT_SUPPORTED : NVML_ERROR_INSUFFICIENT_RESOURCES;
    if (table.current != 0 && placement != NULL) {
        result = add(gpu, profile, placement->start, &table, handle);
    }
    for (uint32_t i = 0; table.current != 0 && placement == NULL && i < profile->start_count &&
                         result != NVML_SUCCESS;
         i++) {
        result = add(gpu, profile, profile->starts[i], &table, handle);
    }
    emu_mig_unlock(gpu->state);
    return result;
}

EMU_API nvmlReturn_t nvmlDeviceCreateGpuInstance(nvmlDevice_t device, unsigned int profile_id,
                                                 nvmlGpuInstance_t *instance) {
    return create(__func__, device, profile_id, NULL, instance);
}

EMU_API nvmlReturn_t nvmlDeviceCreateGpuInstanceWithPlacement(
    nvmlDevice_t device, unsigned int profile_id, const nvmlGpuInstancePlacement_t *placement,
    nvmlGpuInstance_t *instance) {
    return placement == NULL ? NVML_ERROR_INVALID_ARGUMENT
                             : create(__func__, device, profile_id, placement, instance);
}

/* Reads the table of an instance's GPU; otherwise returns the error. */
static nvmlReturn_t look_up(nvmlGpuInstance_t handle, emu_state **state, emu_mig_table *table) {
    *state = emu_nvml_state();
    if (*state == NULL) {
        return NVML_ERROR_UNINITIALIZED;
    }
    uintptr_t offset = (uintptr_t)handle - (uintptr_t)handles;
    if (handle == NULL || (uintptr_t)handle < (uintptr_t)handles || offset >= sizeof handles ||
        offset % sizeof handles[0][0] != 0 || handle->device >= (*state)->settings.devices) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    emu_mig_read(*state, handle->device, table);
    return table->current == 0 || table->instances[handle->instance].slices == 0
               ? NVML_ERROR_NOT_FOUND
               : NVML_SUCCESS;
}

EMU_API nvmlReturn_t nvmlGpuInstanceDestroy(nvmlGpuInstance_t handle) {
    emu_state *state = NULL;
    emu_mig_table table;
    nvmlReturn_t result = look_up(handle, &state, &table);
    if (result != NVML_SUCCESS) {
        return result;
    }
    if (!emu_nvml_mig_allowed("nvmlGpuInstanceDestroy")) {
        return NVML_ERROR_NO_PERMISSION;
    }
    if (emu_mig_lock(state, handle->device, &table) != 0) {
        return NVML_ERROR_UNKNOWN;
    }
    emu_mig_instance *instance = &table.instances[handle->instance];
    result = instance->slices == 0 ? NVML_ERROR_NOT_FOUND : NVML_SUCCESS;
    for (uint32_t i = 0; i < EMU_MIG_SLICES; i++) {
        result = instance->parts[i].slices != 0 ? NVML_ERROR_IN_USE : result;
    }
    if (result == NVML_SUCCESS) {
        memset(instance, 0, sizeof *instance);
        emu_mig_write(state, handle->device, &table);
    }
    emu_mig_unlock(state);
    return result;
}

/* The instances of one profile. The caller's array must have room for the profile's maximum count. */
EMU_API nvmlReturn_t nvmlDeviceGetGpuInstances(nvmlDevice_t device, unsigned int profile_id,
                                               nvmlGpuInstance_t *instances, unsigned int *count) {
    emu_gpu *gpu = NULL;
    emu_mig_table table;
    nvmlReturn_t result = emu_nvml_mig_table(__func__, device, &gpu, &table);
    if (result != NVML_SUCCESS) {
        return result;
    }
    if (instances == NULL || count == NULL ||
        emu_mig_profile_by_id(emu_mig_geometry_for(&gpu->state->settings), profile_id) == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    *count = 0;
    for (uint32_t id = 0; id < EMU_MIG_IDS; id++) {
        if (table.instances[id].slices != 0 && table.instances[id].profile_id == profile_id) {
            emu_nvml_instance_at(gpu->index, id, &instances[(*count)++]);
        }
    }
    return NVML_SUCCESS;
}

EMU_API nvmlReturn_t nvmlDeviceGetGpuInstanceById(nvmlDevice_t device, unsigned int id,
                                                  nvmlGpuInstance_t *instance) {
    emu_gpu *gpu = NULL;
    emu_mig_table table;
    nvmlReturn_t result = emu_nvml_mig_table(__func__, device, &gpu, &table);
    if (result != NVML_SUCCESS) {
        return result;
    }
    if (instance == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    return id >= EMU_MIG_IDS || table.instances[id].slices == 0
               ? NVML_ERROR_NOT_FOUND
               : emu_nvml_instance_at(gpu->index, id, instance);
}

EMU_API nvmlReturn_t nvmlGpuInstanceGetInfo(nvmlGpuInstance_t handle, nvmlGpuInstanceInfo_t *info) {
    emu_state *state = NULL;
    emu_mig_table table;
    nvmlReturn_t result = emu_nvml_enter(__func__);
    if (result == NVML_SUCCESS) {
        result = look_up(handle, &state, &table);
    }
    if (result == NVML_SUCCESS && info == NULL) {
        result = NVML_ERROR_INVALID_ARGUMENT;
    }
    if (result == NVML_SUCCESS) {
        const emu_mig_instance *instance = &table.instances[handle->instance];
        *info = (nvmlGpuInstanceInfo_t){.device = emu_nvml_device_at(handle->device),
                                        .id = handle->instance,
                                        .profileId = instance->profile_id,
                                        .placement = {instance->start, instance->size}};
    }
    return result;
}
