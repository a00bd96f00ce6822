#include "mig.h"

#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char driver_version[] = "580.00.00";
static const char nvml_version[] = "13.580.00";
enum { OLD_PCI_INFO = 52 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned int users;
static emu_state state;
static struct emu_nvml_device devices[EMU_MAX_DEVICES];

static uint64_t generation; /* the driver's, read when NVML was initialized */

/* The state of the whole driver: an error, or NVML_SUCCESS. */
static nvmlReturn_t driver_presence(void) {
    return (nvmlReturn_t)emu_nvml_number("driver", -1, NVML_SUCCESS);
}

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
        if (result == NVML_SUCCESS) {
            emu_nvml_settings_open(state.directory);
            generation = emu_nvml_number("generation", -1, 0);
            result = driver_presence();
            result = result != NVML_SUCCESS
                         ? result
                         : (nvmlReturn_t)emu_nvml_number("fail.nvmlInit_v2", -1, NVML_SUCCESS);
            if (result != NVML_SUCCESS) {
                emu_state_close(&state);
                memset(devices, 0, sizeof devices);
            }
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

const char *emu_nvml_directory(void) {
    return state.directory;
}

uint32_t emu_nvml_devices(void) {
    return state.settings.devices;
}

nvmlDevice_t emu_nvml_device_at(uint32_t index) {
    return &devices[index];
}

emu_state *emu_nvml_state(void) {
    return initialized() ? &state : NULL;
}

/* The error to inject into a call. */
static nvmlReturn_t failure(const char *function, int index) {
    char name[96];
    snprintf(name, sizeof name, "fail.%s", function);
    return (nvmlReturn_t)emu_nvml_number(name, index, NVML_SUCCESS);
}

nvmlReturn_t emu_nvml_enter(const char *function) {
    if (!initialized()) {
        return NVML_ERROR_UNINITIALIZED;
    }
    nvmlReturn_t result = driver_presence();
    return result != NVML_SUCCESS ? result : failure(function, -1);
}

/* Whether a GPU is plugged in. */
static bool plugged(uint32_t index) {
    return emu_nvml_number("unplugged", (int)index, 0) == 0;
}

nvmlReturn_t emu_nvml_presence(const emu_gpu *gpu) {
    nvmlReturn_t result = driver_presence();
    if (result != NVML_SUCCESS) {
        return result;
    }
    bool is_lost = emu_nvml_number("lost", (int)gpu->index, 0) != 0 || !plugged(gpu->index) ||
                   emu_nvml_number("generation", -1, 0) != generation;
    return is_lost ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
}

nvmlReturn_t emu_nvml_gpu(const char *function, nvmlDevice_t device, emu_gpu **gpu) {
    if (!initialized()) {
        return NVML_ERROR_UNINITIALIZED;
    }
    uintptr_t offset = (uintptr_t)device - (uintptr_t)devices;
    if (device < devices || offset >= sizeof devices || offset % sizeof devices[0] != 0 ||
        device->gpu == NULL) {
        nvmlReturn_t found = emu_nvml_mig_gpu(device, gpu);
        if (found != NVML_SUCCESS) {
            return found;
        }
    } else {
        *gpu = device->gpu;
    }
    nvmlReturn_t result = emu_nvml_presence(*gpu);
    return result != NVML_SUCCESS ? result : failure(function, (int)(*gpu)->index);
}

/* Lists the indexes of the present GPUs in NVML's order; returns their number. */
static uint32_t ordered(uint32_t order[EMU_MAX_DEVICES]) {
    char named[160] = "";
    char *position = NULL;
    uint32_t count = 0;
    bool taken[EMU_MAX_DEVICES] = {false};
    bool is_ordered = emu_nvml_text("order", -1, named, sizeof named);
    for (char *item = is_ordered ? strtok_r(named, " ", &position) : NULL; item != NULL;
         item = strtok_r(NULL, " ", &position)) {
        unsigned long index = strtoul(item, NULL, 10);
        if (index < state.settings.devices && !taken[index]) {
            taken[index] = true;
            order[count] = (uint32_t)index;
            count += plugged((uint32_t)index) ? 1 : 0;
        }
    }
    for (uint32_t i = 0; i < state.settings.devices; i++) {
        if (!taken[i] && plugged(i)) {
            order[count++] = i;
        }
    }
    return count;
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

nvmlReturn_t emu_nvml_give_text(char *target, unsigned int size, const char *text) {
    if (target == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    if (emu_nvml_number("garbage", -1, 0) == 1) {
        memset(target, 'x', size); /* not null-terminated */
        return NVML_SUCCESS;
    }
    if (size < strlen(text) + 1) {
        return NVML_ERROR_INSUFFICIENT_SIZE;
    }
    memcpy(target, text, strlen(text) + 1);
    return NVML_SUCCESS;
}

EMU_API nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int size) {
    EMU_NVML_ENTER(true);
    char text[80];
    bool is_set = emu_nvml_text("driver_version", -1, text, sizeof text);
    return emu_nvml_give_text(version, size, is_set ? text : driver_version);
}

EMU_API nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int size) {
    EMU_NVML_ENTER(true);
    char text[80];
    bool is_set = emu_nvml_text("nvml_version", -1, text, sizeof text);
    return emu_nvml_give_text(version, size, is_set ? text : nvml_version);
}

EMU_API nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version) {
    if (version == NULL) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    *version = (int)emu_nvml_number("cuda_version", -1, (uint64_t)emu_settings_cuda_version());
    return NVML_SUCCESS;
}

EMU_API nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version) {
    return nvmlSystemGetCudaDriverVersion(version);
}

EMU_API nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char *name, unsigned int size) {
    EMU_NVML_ENTER(true);
    for (int slot = 0; slot < EMU_MAX_PROCESSES; slot++) {
        emu_process process = emu_process_at(&state, slot);
        if (process.pid != 0 && pid != 0 && !emu_process_dead(&state, slot) &&
            emu_process_told(&state, slot) == pid) {
            return emu_nvml_give_text(name, size, process.name);
        }
    }
    return NVML_ERROR_NOT_FOUND;
}

EMU_API nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count) {
    EMU_NVML_ENTER(count != NULL);
    uint32_t order[EMU_MAX_DEVICES];
    *count = (unsigned int)emu_nvml_number("count", -1, ordered(order));
    return NVML_SUCCESS;
}

EMU_API nvmlReturn_t nvmlDeviceGetCount(unsigned int *count) {
    return nvmlDeviceGetCount_v2(count);
}

EMU_API nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device) {
    EMU_NVML_ENTER(device != NULL);
    uint32_t order[EMU_MAX_DEVICES];
    if (index >= ordered(order)) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    nvmlReturn_t result = failure(__func__, (int)order[index]);
    *device = &devices[order[index]];
    return result;
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
    return emu_nvml_give_text(uuid, size, text);
}

EMU_API nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device) {
    EMU_NVML_ENTER(uuid != NULL && device != NULL);
    for (uint32_t i = 0; i < state.settings.devices; i++) {
        char text[48];
        uuid_text(i, text);
        if (strcasecmp(text, uuid) == 0 && plugged(i)) {
            *device = &devices[i];
            return NVML_SUCCESS;
        }
    }
    return emu_nvml_mig_by_uuid(&state, uuid, device) ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

EMU_API nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *id, nvmlDevice_t *device) {
    EMU_NVML_ENTER(true);
    unsigned int domain = 0;
    unsigned int bus = 0;
    unsigned int slot = 0;
    if (id == NULL || device == NULL ||
        (sscanf(id, "%x:%x:%x", &domain, &bus, &slot) != 3 &&
         sscanf(id, "%x:%x", &bus, &slot) != 2)) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    if (domain != 0 || slot != 0 || bus == 0 || bus > state.settings.devices || !plugged(bus - 1)) {
        return NVML_ERROR_NOT_FOUND;
    }
    *device = &devices[bus - 1];
    return NVML_SUCCESS;
}

EMU_API nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *id, nvmlDevice_t *device) {
    return nvmlDeviceGetHandleByPciBusId_v2(id, device);
}

void emu_nvml_pci(const emu_gpu *gpu, nvmlPciInfo_t *info) {
    memset(info, 0, sizeof *info);
    info->bus = gpu->index + 1;
    info->pciDeviceId = 0x233010de;
    snprintf(info->busIdLegacy, sizeof info->busIdLegacy, "0000:%02X:00.0", info->bus & 0xff);
    snprintf(info->busId, sizeof info->busId, "00000000:%02X:00.0", info->bus & 0xff);
    if (emu_nvml_number("garbage", -1, 0) != 0) {
        memset(info, 'x', sizeof *info);
    }
}

EMU_API nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *info) {
    EMU_NVML_GPU(device, info != NULL);
    emu_nvml_pci(gpu, info);
    return NVML_SUCCESS;
}

/* In the older form, four reserved words follow instead of the longer text. */
EMU_API nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_t *info) {
    EMU_NVML_GPU(device, info != NULL);
    nvmlPciInfo_t full;
    emu_nvml_pci(gpu, &full);
    memset(full.busId, 0, OLD_PCI_INFO - offsetof(nvmlPciInfo_t, busId));
    memcpy(info, &full, OLD_PCI_INFO);
    return NVML_SUCCESS;
}

EMU_API nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_t *info) {
    return nvmlDeviceGetPciInfo_v2(device, info);
}

EMU_API nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int size) {
    EMU_NVML_GPU(device, name != NULL);
    char text[EMU_MODEL_SIZE + 48];
    return emu_nvml_give_text(
        name, size,
        emu_nvml_mig_text(device, text, sizeof text, false) ? text : gpu->state->settings.model);
}

EMU_API nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index) {
    EMU_NVML_GPU(device, index != NULL);
    uint32_t order[EMU_MAX_DEVICES];
    uint32_t count = ordered(order);
    for (uint32_t i = 0; i < count; i++) {
        *index = order[i] == gpu->index ? i : *index;
    }
    return NVML_SUCCESS;
}

EMU_API nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int *minor) {
    EMU_NVML_NUMBER(device, minor, "minor", gpu->index);
}

EMU_API nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major,
                                                        int *minor) {
    EMU_NVML_GPU(device, major != NULL && minor != NULL);
    *major = (int)gpu->state->settings.capability_major;
    *minor = (int)gpu->state->settings.capability_minor;
    return NVML_SUCCESS;
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
