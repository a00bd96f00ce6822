/* Devices: count, names, attributes. */
#include "driver/mig.h"

#include <stdio.h>
#include <string.h>

EMU_API CUresult cuDeviceGetCount(int *count) {
    EMU_INITIALIZED();
    EMU_REQUIRE(count != NULL);
    *count = emu_driver.device_count;
    return CUDA_SUCCESS;
}

EMU_API CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    EMU_INITIALIZED();
    EMU_REQUIRE(device != NULL);
    if (emu_device_at(ordinal) == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    *device = ordinal;
    return CUDA_SUCCESS;
}

EMU_API CUresult cuDeviceGetName(char *name, int length, CUdevice device) {
    EMU_INITIALIZED();
    EMU_REQUIRE(name != NULL && length > 0);
    if (emu_device_at(device) == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    emu_mig_own_name(name, (size_t)length);
    return CUDA_SUCCESS;
}

EMU_API CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device) {
    EMU_INITIALIZED();
    EMU_REQUIRE(uuid != NULL);
    emu_device *found = emu_device_at(device);
    if (found == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    if (!emu_mig_own_uuid((uint8_t *)uuid->bytes)) {
        emu_gpu_uuid(&emu_driver.state, found->gpu->index, (uint8_t *)uuid->bytes);
    }
    return CUDA_SUCCESS;
}

EMU_API CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
    __attribute__((alias("cuDeviceGetUuid_v2")));

EMU_API CUresult cuDeviceGetLuid(char *luid, unsigned int *mask, CUdevice device) {
    EMU_INITIALIZED();
    (void)luid;
    (void)mask;
    return emu_device_at(device) == NULL ? CUDA_ERROR_INVALID_DEVICE
                                         : CUDA_ERROR_NOT_SUPPORTED; /* Windows only */
}

EMU_API CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
    EMU_INITIALIZED();
    EMU_REQUIRE(bytes != NULL);
    if (emu_device_at(device) == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    *bytes = emu_driver.state.settings.memory_bytes;
    return CUDA_SUCCESS;
}

EMU_API CUresult cuDeviceGetPCIBusId(char *text, int length, CUdevice device) {
    EMU_INITIALIZED();
    EMU_REQUIRE(text != NULL && length >= 13);
    emu_device *found = emu_device_at(device);
    if (found == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    snprintf(text, (size_t)length, "0000:%02X:00.0", found->gpu->index + 1);
    return CUDA_SUCCESS;
}

EMU_API CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *text) {
    EMU_INITIALIZED();
    EMU_REQUIRE(device != NULL && text != NULL);
    unsigned int domain = 0;
    unsigned int bus = 0;
    unsigned int slot = 0;
    EMU_REQUIRE(sscanf(text, "%x:%x:%x", &domain, &bus, &slot) == 3 ||
                sscanf(text, "%x:%x", &bus, &slot) == 2);
    for (int i = 0; i < emu_driver.device_count; i++) {
        if (emu_driver.devices[i].gpu->index + 1 == bus && domain == 0 && slot == 0) {
            *device = i;
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_DEVICE;
}

EMU_API CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device) {
    EMU_INITIALIZED();
    EMU_REQUIRE(major != NULL && minor != NULL);
    if (emu_device_at(device) == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    *major = (int)emu_driver.state.settings.capability_major;
    *minor = (int)emu_driver.state.settings.capability_minor;
    return CUDA_SUCCESS;
}

/* By the numbers of CUdevice_attribute. A missing attribute is 0, as for an absent capability. */
static const struct {
    int attribute;
    int value;
} attributes[] = {
    {1, 1024},     {2, 1024},   {3, 1024},   {4, 64},         {5, INT32_MAX},  {6, 65535},
    {7, 65535},    {8, 49152},  {9, 65536},  {10, 32},        {11, INT32_MAX}, {12, 65536},
    {13, 1755000}, {14, 512},   {15, 1},     {19, 1},         {21, 131072},    {22, 131072},
    {23, 65536},   {24, 16384}, {25, 16384}, {26, 16384},     {27, 32768},     {28, 32768},
    {29, 2048},    {30, 512},   {31, 1},     {36, 2619000},   {37, 5120},      {38, 52428800},
    {39, 2048},    {41, 1},     {51, 32},    {69, 268435456}, {70, 131072},    {71, 65000},
    {72, 2097120}, {78, 1},     {79, 1},     {80, 1},         {81, 233472},    {82, 65536},
    {83, 1},       {87, 2},     {89, 1},     {90, 1},         {91, 1},         {95, 1},
    {97, 232448},  {99, 1},     {102, 1},    {106, 32},       {111, 1024},     {115, 1},
    {125, 1},      {134, -1},
};

EMU_API CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device) {
    EMU_INITIALIZED();
    EMU_REQUIRE(value != NULL && attribute > 0 && attribute < 160);
    emu_device *found = emu_device_at(device);
    if (found == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    const emu_settings *settings = &emu_driver.state.settings;
    *value = 0;
    switch (attribute) {
    case 16:
        *value = (int)settings->sms;
        return CUDA_SUCCESS;
    case 18: /* integrated with the host's memory */
        *value = (int)emu_driver.state.times.is_integrated;
        return CUDA_SUCCESS;
    case 33:
        *value = (int)found->gpu->index + 1;
        return CUDA_SUCCESS;
    case 40:
        *value = (int)emu_driver.state.times.copy_engines;
        return CUDA_SUCCESS;
    case 75:
        *value = (int)settings->capability_major;
        return CUDA_SUCCESS;
    case 76:
        *value = (int)settings->capability_minor;
        return CUDA_SUCCESS;
    default:
        break;
    }
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++) {
        if (attributes[i].attribute == attribute) {
            *value = attributes[i].value;
        }
    }
    return CUDA_SUCCESS;
}

typedef struct {
    int max_threads_per_block;
    int max_block[3];
    int max_grid[3];
    int shared_bytes;
    int constant_bytes;
    int warp;
    int pitch;
    int registers;
    int clock_khz;
    int texture_alignment;
} device_properties;

EMU_API CUresult cuDeviceGetProperties(device_properties *properties, CUdevice device) {
    EMU_INITIALIZED();
    EMU_REQUIRE(properties != NULL);
    if (emu_device_at(device) == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    *properties = (device_properties){1024,
                                      {1024, 1024, 64},
                                      {INT32_MAX, 65535, 65535},
                                      49152,
                                      65536,
                                      32,
                                      INT32_MAX,
                                      65536,
                                      1755000,
                                      512};
    return CUDA_SUCCESS;
}

EMU_API CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer) {
    EMU_INITIALIZED();
    EMU_REQUIRE(can != NULL);
    if (emu_device_at(device) == NULL || emu_device_at(peer) == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    *can = device != peer ? 1 : 0;
    return CUDA_SUCCESS;
}

EMU_API CUresult cuDeviceGetP2PAttribute(int *value, int attribute, CUdevice source,
                                         CUdevice target) {
    EMU_INITIALIZED();
    EMU_REQUIRE(value != NULL && attribute >= 1 && attribute <= 5);
    if (emu_device_at(source) == NULL || emu_device_at(target) == NULL || source == target) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    *value = attribute == 2 ? 1 : 0; /* access is supported; no other peer attribute is */
    return CUDA_SUCCESS;
}

EMU_API CUresult cuDeviceGetExecAffinitySupport(int *supported, int type, CUdevice device) {
    EMU_INITIALIZED();
    EMU_REQUIRE(supported != NULL && type == 0);
    *supported = 0;
    return emu_device_at(device) == NULL ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

static const struct {
    CUresult code;
    const char *name;
    const char *text;
} errors[] = {
#define ERROR(name, number, text) {number, #name, text},
    CUDA_ERRORS(ERROR)
#undef ERROR
};

EMU_API CUresult cuGetErrorName(CUresult error, const char **name) {
    EMU_REQUIRE(name != NULL);
    *name = NULL;
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        if (errors[i].code == error) {
            *name = errors[i].name;
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_VALUE;
}

EMU_API CUresult cuGetErrorString(CUresult error, const char **text) {
    EMU_REQUIRE(text != NULL);
    *text = NULL;
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        if (errors[i].code == error) {
            *text = errors[i].text;
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_VALUE;
}

EMU_API CUresult cuGetExportTable(const void **table, const CUuuid *id) {
    EMU_REQUIRE(table != NULL && id != NULL);
    *table = NULL;
    return CUDA_ERROR_NOT_FOUND; /* the tables are private to NVIDIA's own libraries */
}
