/*
 * Prints what the binding's constants must be, under their Java names: of the emulator's own declarations, or with
 * -DTHEIRS of the vendor's nvml.h. BindingTest compares.
 */
#ifdef THEIRS
#include <nvml.h>
#else
#include "nvml_abi.h"
#endif

#include <stddef.h>
#include <stdio.h>

#define SIZE(name, type) printf("%s %zu\n", #name "_BYTES", sizeof(type));
#define FIELD(name, type, field) printf("%s %zu\n", #name, offsetof(type, field));
#define VALUE(name) printf("%s %lld\n", #name, (long long)(name));
#define NAMED(name, value) printf("%s %lld\n", #name, (long long)(value));

int main(void) {
    SIZE(MEMORY, nvmlMemory_t)
    FIELD(MEMORY_TOTAL, nvmlMemory_t, total)
    FIELD(MEMORY_USED, nvmlMemory_t, used)
    SIZE(MEMORY_V2, nvmlMemory_v2_t)
    FIELD(MEMORY_V2_TOTAL, nvmlMemory_v2_t, total)
    FIELD(MEMORY_V2_RESERVED, nvmlMemory_v2_t, reserved)
    FIELD(MEMORY_V2_USED, nvmlMemory_v2_t, used)
    SIZE(PROCESS_V1, nvmlProcessInfo_v1_t)
    SIZE(PROCESS, nvmlProcessInfo_t)
    FIELD(PROCESS_PID, nvmlProcessInfo_t, pid)
    FIELD(PROCESS_MEMORY, nvmlProcessInfo_t, usedGpuMemory)
    SIZE(UTILIZATION, nvmlUtilization_t)
    FIELD(UTILIZATION_GPU, nvmlUtilization_t, gpu)
    FIELD(UTILIZATION_MEMORY, nvmlUtilization_t, memory)
    SIZE(SAMPLE, nvmlProcessUtilizationSample_t)
    FIELD(SAMPLE_PID, nvmlProcessUtilizationSample_t, pid)
    FIELD(SAMPLE_TIME, nvmlProcessUtilizationSample_t, timeStamp)
    FIELD(SAMPLE_SM, nvmlProcessUtilizationSample_t, smUtil)
    FIELD(SAMPLE_MEMORY, nvmlProcessUtilizationSample_t, memUtil)
    FIELD(SAMPLE_ENCODER, nvmlProcessUtilizationSample_t, encUtil)
    FIELD(SAMPLE_DECODER, nvmlProcessUtilizationSample_t, decUtil)
    SIZE(PCI, nvmlPciInfo_t)
    FIELD(PCI_DOMAIN, nvmlPciInfo_t, domain)
    FIELD(PCI_BUS, nvmlPciInfo_t, bus)
    FIELD(PCI_DEVICE, nvmlPciInfo_t, device)
    FIELD(PCI_BUS_ID, nvmlPciInfo_t, busId)
    SIZE(EVENT, nvmlEventData_t)
    FIELD(EVENT_DEVICE, nvmlEventData_t, device)
    FIELD(EVENT_TYPE, nvmlEventData_t, eventType)
    FIELD(EVENT_DATA, nvmlEventData_t, eventData)
    FIELD(EVENT_GPU_INSTANCE, nvmlEventData_t, gpuInstanceId)
    FIELD(EVENT_COMPUTE_INSTANCE, nvmlEventData_t, computeInstanceId)
    SIZE(PROFILE, nvmlGpuInstanceProfileInfo_t)
    FIELD(PROFILE_ID, nvmlGpuInstanceProfileInfo_t, id)
    FIELD(PROFILE_SLICES, nvmlGpuInstanceProfileInfo_t, sliceCount)
    FIELD(PROFILE_COUNT, nvmlGpuInstanceProfileInfo_t, instanceCount)
    FIELD(PROFILE_SMS, nvmlGpuInstanceProfileInfo_t, multiprocessorCount)
    FIELD(PROFILE_MEMORY_MB, nvmlGpuInstanceProfileInfo_t, memorySizeMB)
    SIZE(PROFILE_V2, nvmlGpuInstanceProfileInfo_v2_t)
    FIELD(PROFILE_V2_NAME, nvmlGpuInstanceProfileInfo_v2_t, name)
    SIZE(PLACEMENT, nvmlGpuInstancePlacement_t)
    FIELD(PLACEMENT_START, nvmlGpuInstancePlacement_t, start)
    FIELD(PLACEMENT_SIZE, nvmlGpuInstancePlacement_t, size)
    SIZE(GPU_INSTANCE, nvmlGpuInstanceInfo_t)
    FIELD(GPU_INSTANCE_ID, nvmlGpuInstanceInfo_t, id)
    FIELD(GPU_INSTANCE_PROFILE, nvmlGpuInstanceInfo_t, profileId)
    FIELD(GPU_INSTANCE_PLACEMENT, nvmlGpuInstanceInfo_t, placement)
    SIZE(PART_PROFILE, nvmlComputeInstanceProfileInfo_t)
    FIELD(PART_PROFILE_ID, nvmlComputeInstanceProfileInfo_t, id)
    FIELD(PART_PROFILE_SLICES, nvmlComputeInstanceProfileInfo_t, sliceCount)
    SIZE(PART, nvmlComputeInstanceInfo_t)
    FIELD(PART_ID, nvmlComputeInstanceInfo_t, id)
    FIELD(PART_SLICES, nvmlComputeInstanceInfo_t, placement.size)
    VALUE(NVML_SUCCESS)
    VALUE(NVML_ERROR_UNINITIALIZED)
    VALUE(NVML_ERROR_INVALID_ARGUMENT)
    VALUE(NVML_ERROR_NOT_SUPPORTED)
    VALUE(NVML_ERROR_NO_PERMISSION)
    VALUE(NVML_ERROR_NOT_FOUND)
    VALUE(NVML_ERROR_INSUFFICIENT_SIZE)
    VALUE(NVML_ERROR_DRIVER_NOT_LOADED)
    VALUE(NVML_ERROR_TIMEOUT)
    VALUE(NVML_ERROR_FUNCTION_NOT_FOUND)
    VALUE(NVML_ERROR_GPU_IS_LOST)
    VALUE(NVML_ERROR_LIB_RM_VERSION_MISMATCH)
#ifdef THEIRS
    NAMED(MEMORY_V2_VERSION, nvmlMemory_v2)
    NAMED(PROFILE_V2_VERSION, nvmlGpuInstanceProfileInfo_v2)
    VALUE(NVML_DEVICE_UUID_V2_BUFFER_SIZE)
    VALUE(NVML_DEVICE_NAME_V2_BUFFER_SIZE)
    VALUE(NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE)
    VALUE(NVML_DEVICE_MIG_ENABLE)
    VALUE(NVML_VALUE_NOT_AVAILABLE)
    VALUE(NVML_ERROR_RESET_REQUIRED)
    VALUE(NVML_TEMPERATURE_GPU)
    VALUE(NVML_CLOCK_SM)
    VALUE(NVML_CLOCK_MEM)
    VALUE(NVML_MEMORY_ERROR_TYPE_CORRECTED)
    VALUE(NVML_MEMORY_ERROR_TYPE_UNCORRECTED)
    VALUE(NVML_VOLATILE_ECC)
    VALUE(NVML_AGGREGATE_ECC)
    VALUE(NVML_NVLINK_DEVICE_TYPE_GPU)
    VALUE(NVML_NVLINK_DEVICE_TYPE_SWITCH)
    VALUE(NVML_AFFINITY_SCOPE_NODE)
    VALUE(NVML_COMPUTEMODE_DEFAULT)
    VALUE(NVML_COMPUTEMODE_PROHIBITED)
    VALUE(NVML_COMPUTEMODE_EXCLUSIVE_PROCESS)
    VALUE(NVML_HOST_VGPU_MODE_NON_SRIOV)
    VALUE(NVML_HOST_VGPU_MODE_SRIOV)
    VALUE(NVML_GPU_VIRTUALIZATION_MODE_NONE)
    VALUE(NVML_GPU_VIRTUALIZATION_MODE_PASSTHROUGH)
    VALUE(NVML_GPU_VIRTUALIZATION_MODE_VGPU)
    VALUE(NVML_GPU_VIRTUALIZATION_MODE_HOST_VGPU)
    VALUE(NVML_GPU_VIRTUALIZATION_MODE_HOST_VSGA)
    NAMED(EVENT_TYPE_SINGLE_BIT_ECC_ERROR, nvmlEventTypeSingleBitEccError)
    NAMED(EVENT_TYPE_DOUBLE_BIT_ECC_ERROR, nvmlEventTypeDoubleBitEccError)
    NAMED(EVENT_TYPE_XID_CRITICAL_ERROR, nvmlEventTypeXidCriticalError)
#endif
    return 0;
}
