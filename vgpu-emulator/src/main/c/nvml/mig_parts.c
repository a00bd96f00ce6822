/* NVML: compute instances. */
#include "mig.h"

#include <string.h>

enum { PROFILES = 9 };

/* By NVML_COMPUTE_INSTANCE_PROFILE_*, which are also the profile ids; 0: not available here. */
static const uint32_t slices_of[PROFILES] = {1, 2, 3, 4, 7, 0, 0, 0, 0};

typedef struct emu_nvml_compute_instance part_handle;

static part_handle handles[EMU_MAX_DEVICES][EMU_MIG_IDS][EMU_MIG_SLICES];

/* ---- compute instances of a GPU instance */

static nvmlReturn_t look_up(nvmlGpuInstance_t handle, emu_state **state, emu_mig_table *table) {
    nvmlGpuInstanceInfo_t info;
    nvmlReturn_t result = nvmlGpuInstanceGetInfo(handle, &info);
    if (result == NVML_SUCCESS) {
        *state = emu_nvml_state();
        emu_mig_read(*state, handle->device, table);
    }
    return result;
}

static nvmlReturn_t profile_of(nvmlGpuInstance_t handle, unsigned int number, unsigned int *slices,
                               emu_state **state, emu_mig_table *table) {
    nvmlReturn_t result = look_up(handle, state, table);
    if (result != NVML_SUCCESS) {
        return result;
    }
    if (number >= PROFILES) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    *slices = slices_of[number];
    return *slices == 0 || *slices > table->instances[handle->instance].slices
               ? NVML_ERROR_NOT_SUPPORTED
               : NVML_SUCCESS;
}

static uint32_t sms_of(const emu_state *state, const emu_mig_instance *instance, uint32_t slices) {
    const emu_mig_geometry *geometry = emu_mig_geometry_for(&state->settings);
    const emu_mig_profile *profile = emu_mig_profile_by_id(geometry, instance->profile_id);
    return profile == NULL ? 0 : emu_mig_sms(geometry, profile, slices, state->settings.sms);
}

EMU_API nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfo(
    nvmlGpuInstance_t handle, unsigned int number, unsigned int engines,
    nvmlComputeInstanceProfileInfo_t *info) {
    emu_state *state = NULL;
    emu_mig_table table;
    unsigned int slices = 0;
    nvmlReturn_t result = profile_of(handle, number, &slices, &state, &table);
    if (result != NVML_SUCCESS) {
        return result;
    }
    if (info == NULL || engines != 0) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    const emu_mig_instance *instance = &table.instances[handle->instance];
    *info =
        (nvmlComputeInstanceProfileInfo_t){.id = number,
                                           .sliceCount = slices,
                                           .instanceCount = instance->slices / slices,
                                           .multiprocessorCount = sms_of(state, instance, slices),
                                           .sharedCopyEngineCount = instance->slices};
    return NVML_SUCCESS;
}

EMU_API nvmlReturn_t nvmlGpuInstanceGetComputeInstanceRemainingCapacity(nvmlGpuInstance_t handle,
                                                                        unsigned int number,
                                                                        unsigned int *count) {
    emu_state *state = NULL;
    emu_mig_table table;
    unsigned int slices = 0;
    nvmlReturn_t result = profile_of(handle, number, &slices, &state, &table);
    if (result != NVML_SUCCESS) {
        return result;
    }
    if (count == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    emu_mig_instance filled = table.instances[handle->instance];
    *count = 0;
    for (uint32_t start = 0; start < EMU_MIG_SLICES; start++) {
        if (emu_mig_part_legal(&filled, slices, start)) {
            filled.parts[start].slices = slices;
            (*count)++;
        }
    }
    return NVML_SUCCESS;
}

EMU_API nvmlReturn_t nvmlGpuInstanceGetComputeInstancePossiblePlacements(
    nvmlGpuInstance_t handle, unsigned int number, nvmlComputeInstancePlacement_t *placements,
    unsigned int *count) {
    emu_state *state = NULL;
    emu_mig_table table;
    unsigned int slices = 0;
    nvmlReturn_t result = profile_of(handle, number, &slices, &state, &table);
    if (result != NVML_SUCCESS) {
        return result;
    }
    if (count == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    unsigned int room = *count;
    *count = table.instances[handle->instance].slices - slices + 1;
    if (placements != NULL && room < *count) {
        return NVML_ERROR_INSUFFICIENT_SIZE;
    }
    for (unsigned int i = 0; placements != NULL && i < *count; i++) {
        placements[i] = (nvmlComputeInstancePlacement_t){i, slices};
    }
    return NVML_SUCCESS;
}

static nvmlReturn_t handle_at(const emu_mig_name *name, nvmlComputeInstance_t *handle) {
    part_handle *place = &handles[name->device][name->instance][name->part];
    place->name = *name;
    *handle = place;
    return NVML_SUCCESS;
}

static nvmlReturn_t add(emu_state *state, const emu_mig_name *name, uint32_t slices,
                        uint32_t profile_id, emu_mig_table *table, nvmlComputeInstance_t *handle) {
    uint32_t area = emu_mig_free_area(table);
    if (area == EMU_MIG_SLICES) {
        return NVML_ERROR_INSUFFICIENT_RESOURCES;
    }
    table->instances[name->instance].parts[name->part] =
        (emu_mig_part){.slices = slices, .area = area, .profile_id = profile_id};
    emu_mig_reset_time(state, name->device, area);
    emu_mig_write(state, name->device, table);
    return handle_at(name, handle);
}

static nvmlReturn_t create(nvmlGpuInstance_t handle, unsigned int number,
                           const nvmlComputeInstancePlacement_t *placement,
                           nvmlComputeInstance_t *result) {
    emu_state *state = NULL;
    emu_mig_table table;
    unsigned int slices = 0;
    nvmlReturn_t code = profile_of(handle, number, &slices, &state, &table);
    if (code != NVML_SUCCESS) {
        return code;
    }
    if (result == NULL || (placement != NULL && placement->size != slices)) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    if (!emu_nvml_mig_allowed(placement == NULL
                                  ? "nvmlGpuInstanceCreateComputeInstance"
                                  : "nvmlGpuInstanceCreateComputeInstanceWithPlacement")) {
        return NVML_ERROR_NO_PERMISSION;
    }
    if (emu_mig_lock(state, handle->device, &table) != 0) {
        return NVML_ERROR_UNKNOWN;
    }
    emu_mig_name name = {handle->device, handle->instance, 0};
    const emu_mig_instance *instance = &table.instances[handle->instance];
    code = NVML_ERROR_INSUFFICIENT_RESOURCES;
    for (; name.part < EMU_MIG_SLICES && code != NVML_SUCCESS; name.part++) {
        if ((placement == NULL || placement->start == name.part) &&
            emu_mig_part_legal(instance, slices, name.part)) {
            code = add(state, &name, slices, number, &table, result);
        }
    }
    emu_mig_unlock(state);
    return code;
}

EMU_API nvmlReturn_t nvmlGpuInstanceCreateComputeInstance(nvmlGpuInstance_t handle,
                                                          unsigned int number,
                                                          nvmlComputeInstance_t *result) {
    return create(handle, number, NULL, result);
}

EMU_API nvmlReturn_t nvmlGpuInstanceCreateComputeInstanceWithPlacement(
    nvmlGpuInstance_t handle, unsigned int number, const nvmlComputeInstancePlacement_t *placement,
    nvmlComputeInstance_t *result) {
    return placement == NULL ? NVML_ERROR_INVALID_ARGUMENT
                             : create(handle, number, placement, result);
}

EMU_API nvmlReturn_t nvmlGpuInstanceGetComputeInstances(nvmlGpuInstance_t handle,
                                                        unsigned int number,
                                                        nvmlComputeInstance_t *instances,
                                                        unsigned int *count) {
    emu_state *state = NULL;
    emu_mig_table table;
    unsigned int slices = 0;
    nvmlReturn_t result = profile_of(handle, number, &slices, &state, &table);
    if (result != NVML_SUCCESS) {
        return result;
    }
    if (instances == NULL || count == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    *count = 0;
    emu_mig_name name = {handle->device, handle->instance, 0};
    for (; name.part < EMU_MIG_SLICES; name.part++) {
        const emu_mig_part *part = &table.instances[name.instance].parts[name.part];
        if (part->slices != 0 && part->profile_id == number) {
            handle_at(&name, &instances[(*count)++]);
        }
    }
    return NVML_SUCCESS;
}

EMU_API nvmlReturn_t nvmlGpuInstanceGetComputeInstanceById(nvmlGpuInstance_t handle,
                                                           unsigned int id,
                                                           nvmlComputeInstance_t *instance) {
    emu_state *state = NULL;
    emu_mig_table table;
    nvmlReturn_t result = look_up(handle, &state, &table);
    if (result != NVML_SUCCESS) {
        return result;
    }
    emu_mig_name name = {handle->device, handle->instance, id};
    if (instance == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    return id >= EMU_MIG_SLICES || table.instances[handle->instance].parts[id].slices == 0
               ? NVML_ERROR_NOT_FOUND
               : handle_at(&name, instance);
}

/* The table of a compute instance's GPU; otherwise the error. */
static nvmlReturn_t look_up_part(nvmlComputeInstance_t handle, emu_state **state,
                                 emu_mig_table *table) {
    *state = emu_nvml_state();
    if (*state == NULL) {
        return NVML_ERROR_UNINITIALIZED;
    }
    uintptr_t offset = (uintptr_t)handle - (uintptr_t)handles;
    if (handle == NULL || (uintptr_t)handle < (uintptr_t)handles || offset >= sizeof handles ||
        offset % sizeof handles[0][0][0] != 0) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    emu_mig_read(*state, handle->name.device, table);
    const emu_mig_instance *instance = &table->instances[handle->name.instance];
    return table->current == 0 || instance->slices == 0 ||
                   instance->parts[handle->name.part].slices == 0
               ? NVML_ERROR_NOT_FOUND
               : NVML_SUCCESS;
}

/*
 * Marks the instance before checking for users. A process that starts to use it checks the mark after it has become
 * visible, so one of the two always notices the other.
 */
EMU_API nvmlReturn_t nvmlComputeInstanceDestroy(nvmlComputeInstance_t handle) {
    emu_state *state = NULL;
    emu_mig_table table;
    nvmlReturn_t result = look_up_part(handle, &state, &table);
    if (result != NVML_SUCCESS) {
        return result;
    }
    if (!emu_nvml_mig_allowed("nvmlComputeInstanceDestroy")) {
        return NVML_ERROR_NO_PERMISSION;
    }
    const emu_mig_name name = handle->name;
    if (emu_mig_lock(state, name.device, &table) != 0) {
        return NVML_ERROR_UNKNOWN;
    }
    emu_mig_part *part = &table.instances[name.instance].parts[name.part];
    result = part->slices == 0 ? NVML_ERROR_NOT_FOUND : NVML_SUCCESS;
    if (result == NVML_SUCCESS) {
        part->ending = 1;
        emu_mig_write(state, name.device, &table);
        if (emu_mig_in_use(state, &table, &name)) {
            part->ending = 0;
            result = NVML_ERROR_IN_USE;
        } else {
            memset(part, 0, sizeof *part);
        }
        emu_mig_write(state, name.device, &table);
    }
    emu_mig_unlock(state);
    return result;
}

EMU_API nvmlReturn_t nvmlComputeInstanceGetInfo_v2(nvmlComputeInstance_t handle,
                                                   nvmlComputeInstanceInfo_t *info) {
    emu_state *state = NULL;
    emu_mig_table table;
    nvmlReturn_t result = look_up_part(handle, &state, &table);
    if (result != NVML_SUCCESS || info == NULL) {
        return result != NVML_SUCCESS ? result : NVML_ERROR_INVALID_ARGUMENT;
    }
    const emu_mig_part *part = &table.instances[handle->name.instance].parts[handle->name.part];
    info->device = emu_nvml_device_at(handle->name.device);
    info->id = handle->name.part;
    info->profileId = part->profile_id;
    info->placement = (nvmlComputeInstancePlacement_t){handle->name.part, part->slices};
    return emu_nvml_instance_at(handle->name.device, handle->name.instance, &info->gpuInstance);
}

EMU_API nvmlReturn_t nvmlComputeInstanceGetInfo(nvmlComputeInstance_t handle,
                                                nvmlComputeInstanceInfo_t *info) {
    return nvmlComputeInstanceGetInfo_v2(handle, info);
}
