#include "nvml_mig.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char driver_version[] = "580.00.00";
static const char nvml_version[] = "13.580.00";
enum { CUDA_VERSION = 13000, PERMILLE = 1000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned int users;
static emu_state state;
static struct emu_nvml_device devices[EMU_MAX_DEVICES];

EMU_API nvmlReturn_t nvmlInit_v2(void) {
    nvmlReturn_t result = NVML_SUCCESS;
    pthread_mutex_lock(&lock);
    if (users == 0) {
        char problem[700];
        result = emu_state_open(&state, problem, sizeof problem) == 0 ? NVML_SUCCESS
                                                                      : NVML_ERROR_UNKNOWN;
        for (uint32_t i = 0; result == NVML_SUCCESS && i < state.settings.devices; i++) {
            devices[i].gpu = &state.gpus[i];
        }
    }
    if (result == NVML_SUCCESS) {
        __atomic_add_fetch(&users, 1, __ATOMIC_ACQ_REL);
    }
    pthread_mutex_unlock(&lock);
    return result;
}

EMU_API nvmlReturn_t nvmlInit(void) {
    return nvmlInit_v2();
}

EMU_API nvmlReturn_t nvmlInitWithFlags(unsigned int flags) {
    return flags > 3 ? NVML_ERROR_INVALID_ARGUMENT : nvmlInit_v2();
}

EMU_API nvmlReturn_t nvmlShutdown(void) {
    nvmlReturn_t result = NVML_SUCCESS;
    pthread_mutex_lock(&lock);
    if (users == 0) {
        result = NVML_ERROR_UNINITIALIZED;
    } else if (__atomic_sub_fetch(&users, 1, __ATOMIC_ACQ_REL) == 0) {
        emu_nvml_mig_close();
        emu_state_close(&state);
        memset(devices, 0, sizeof devices);
    }
    pthread_mutex_unlock(&lock);
    return result;
}

static bool initialized(void) {
    return __atomic_load_n(&users, __ATOMIC_ACQUIRE) != 0;
}

nvmlReturn_t emu_nvml_gpu(nvmlDevice_t device, emu_gpu **gpu) {
    if (!initialized()) {
        return NVML_ERROR_UNINITIALIZED;
    }
    uintptr_t offset = (uintptr_t)device - (uintptr_t)devices;
    if (device < devices || offset >= sizeof devices || offset % sizeof devices[0] != 0 ||
        device->gpu == NULL) {
        return emu_nvml_mig_gpu(device, gpu);
    }
    *gpu = device->gpu;
    return NVML_SUCCESS;
}

nvmlDevice_t emu_nvml_device_at(uint32_t index) {
    return &devices[index];
}

emu_state *emu_nvml_state(void) {
    return initialized() ? &state : NULL;
}

EMU_API const char *nvmlErrorString(nvmlReturn_t code) {
    switch (code) {
#define ERROR(name, number, text) \
    case number: \
        return text;
        NVML_ERRORS(ERROR)
#undef ERROR
    default:
        return "Unknown Error";
    }
}

static nvmlReturn_t give_text(char *target, unsigned int size, const char *text) {
    if (target == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    if (size < strlen(text) + 1) {
        return NVML_ERROR_INSUFFICIENT_SIZE;
    }
    memcpy(target, text, strlen(text) + 1);
    return NVML_SUCCESS;
}

EMU_API nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int size) {
    return initialized() ? give_text(version, size, driver_version) : NVML_ERROR_UNINITIALIZED;
}

EMU_API nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int size) {
    return initialized() ? give_text(version, size, nvml_version) : NVML_ERROR_UNINITIALIZED;
}

EMU_API nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version) {
    if (version == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    *version = CUDA_VERSION;
    return NVML_SUCCESS;
}

EMU_API nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version) {
    return nvmlSystemGetCudaDriverVersion(version);
}

EMU_API nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char *name, unsigned int size) {
    if (!initialized()) {
        return NVML_ERROR_UNINITIALIZED;
    }
    for (int slot = 0; slot < EMU_MAX_PROCESSES; slot++) {
        emu_process process = emu_process_at(&state, slot);
        if (process.pid == pid && pid != 0 && !emu_process_dead(&state, slot)) {
            return give_text(name, size, process.name);
        }
    }
    return NVML_ERROR_NOT_FOUND;
}

EMU_API nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count) {
    if (!initialized()) {
        return NVML_ERROR_UNINITIALIZED;
    }
    if (count == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    *count = state.settings.devices;
    return NVML_SUCCESS;
}

EMU_API nvmlReturn_t nvmlDeviceGetCount(unsigned int *count) {
    return nvmlDeviceGetCount_v2(count);
}

EMU_API nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device) {
    if (!initialized()) {
        return NVML_ERROR_UNINITIALIZED;
    }
    if (device == NULL || index >= state.settings.devices) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    *device = &devices[index];
    return NVML_SUCCESS;
}

EMU_API nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *device) {
    return nvmlDeviceGetHandleByIndex_v2(index, device);
}

static void uuid_text(uint32_t index, char text[48]) {
    uint8_t u[16];
    emu_gpu_uuid(&state, index, u);
    snprintf(text, 48, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
             u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13],
             u[14], u[15]);
}

EMU_API nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int size) {
    EMU_NVML_GPU(device, uuid != NULL);
    char text[48];
    if (!emu_nvml_mig_text(device, text, sizeof text, true)) {
        uuid_text(gpu->index, text);
    }
    return give_text(uuid, size, text);
}

EMU_API nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device) {
    if (!initialized()) {
        return NVML_ERROR_UNINITIALIZED;
    }
    if (uuid == NULL || device == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    for (uint32_t i = 0; i < state.settings.devices; i++) {
        char text[48];
        uuid_text(i, text);
        if (strcasecmp(text, uuid) == 0) {
            *device = &devices[i];
            return NVML_SUCCESS;
        }
    }
    return emu_nvml_mig_by_uuid(&state, uuid, device) ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

EMU_API nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *id, nvmlDevice_t *device) {
    if (!initialized()) {
        return NVML_ERROR_UNINITIALIZED;
    }
    unsigned int domain = 0;
    unsigned int bus = 0;
    unsigned int slot = 0;
    if (id == NULL || device == NULL ||
        (sscanf(id, "%x:%x:%x", &domain, &bus, &slot) != 3 &&
         sscanf(id, "%x:%x", &bus, &slot) != 2)) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    if (domain != 0 || slot != 0 || bus == 0 || bus > state.settings.devices) {
        return NVML_ERROR_NOT_FOUND;
    }
    *device = &devices[bus - 1];
    return NVML_SUCCESS;
}

EMU_API nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *id, nvmlDevice_t *device) {
    return nvmlDeviceGetHandleByPciBusId_v2(id, device);
}

EMU_API nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *info) {
    EMU_NVML_GPU(device, info != NULL);
    memset(info, 0, sizeof *info);
    info->bus = gpu->index + 1;
    info->pciDeviceId = 0x233010de;
    snprintf(info->busIdLegacy, sizeof info->busIdLegacy, "0000:%02X:00.0", info->bus & 0xff);
    snprintf(info->busId, sizeof info->busId, "00000000:%02X:00.0", info->bus & 0xff);
    return NVML_SUCCESS;
}

EMU_API nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_t *info) {
    return nvmlDeviceGetPciInfo_v3(device, info);
}

EMU_API nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int size) {
    EMU_NVML_GPU(device, name != NULL);
    char text[EMU_MODEL_SIZE + 48];
    return give_text(name, size,
                     emu_nvml_mig_text(device, text, sizeof text, false)
                         ? text
                         : gpu->state->settings.model);
}

static nvmlReturn_t give_number(nvmlDevice_t device, unsigned int *target, unsigned int value) {
    EMU_NVML_GPU(device, target != NULL);
    *target = value;
    return NVML_SUCCESS;
}

EMU_API nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index) {
    EMU_NVML_GPU(device, index != NULL);
    *index = gpu->index;
    return NVML_SUCCESS;
}

EMU_API nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int *minor) {
    return nvmlDeviceGetIndex(device, minor);
}

EMU_API nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major,
                                                        int *minor) {
    EMU_NVML_GPU(device, major != NULL && minor != NULL);
    *major = (int)gpu->state->settings.capability_major;
    *minor = (int)gpu->state->settings.capability_minor;
    return NVML_SUCCESS;
}

EMU_API nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, unsigned int *mode) {
    return give_number(device, mode, 0);
}

EMU_API nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t device, unsigned int *mode) {
    return give_number(device, mode, 1);
}

EMU_API nvmlReturn_t nvmlDeviceGetNumGpuCores(nvmlDevice_t device, unsigned int *cores) {
    EMU_NVML_GPU(device, cores != NULL);
    *cores = gpu->state->settings.sms * 128;
    return NVML_SUCCESS;
}

EMU_API nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, int sensor,
                                              unsigned int *celsius) {
    return sensor != 0 ? NVML_ERROR_INVALID_ARGUMENT : give_number(device, celsius, 40);
}

EMU_API nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int *milliwatts) {
    return give_number(device, milliwatts, 100 * PERMILLE);
}

EMU_API nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device,
                                                     unsigned int *milliwatts) {
    return give_number(device, milliwatts, 700 * PERMILLE);
}

EMU_API nvmlReturn_t nvmlDeviceGetPowerManagementLimit(nvmlDevice_t device,
                                                       unsigned int *milliwatts) {
    return give_number(device, milliwatts, 700 * PERMILLE);
}

/* 0: graphics, 1: SM, 2: memory, 3: video; MHz */
EMU_API nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, int type, unsigned int *clock) {
    return type < 0 || type > 3 ? NVML_ERROR_INVALID_ARGUMENT
                                : give_number(device, clock, type == 2 ? 2619 : 1755);
}

EMU_API nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, int type, unsigned int *clock) {
    return nvmlDeviceGetClockInfo(device, type, clock);
}

static nvmlReturn_t not_supported(nvmlDevice_t device) {
    EMU_NVML_GPU(device, true);
    return NVML_ERROR_NOT_SUPPORTED;
}

EMU_API nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t device, char *serial, unsigned int size) {
    (void)serial;
    (void)size;
    return not_supported(device);
}

EMU_API nvmlReturn_t nvmlDeviceGetFanSpeed(nvmlDevice_t device, unsigned int *speed) {
    (void)speed;
    return not_supported(device);
}

EMU_API nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, unsigned int *current,
                                          unsigned int *pending) {
    (void)current;
    (void)pending;
    return not_supported(device);
}
