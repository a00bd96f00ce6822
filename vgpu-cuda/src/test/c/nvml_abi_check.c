/* Compiled, not run: compares the NVML stand-in's declarations with the real nvml.h, where installed. */
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <nvml.h>

#include <stddef.h>

/* Rename ours, which have the vendor's names. */
#define nvmlReturn_t vgpu_return
#define nvmlDevice_t vgpu_device
#define NVML_SUCCESS VGPU_SUCCESS
#include "../../main/nvml/nvml_abi.h"
#undef nvmlReturn_t
#undef nvmlDevice_t
#undef NVML_SUCCESS

#define SAME(ours, theirs) _Static_assert((long long)(ours) == (long long)(theirs), #ours)
#define SIZE(ours, theirs) SAME(sizeof(struct ours), sizeof(theirs))
#define AT(ours, field, theirs, their_field)                                                       \
  _Static_assert(offsetof(struct ours, field) == offsetof(theirs, their_field), #ours "." #field); \
  _Static_assert(sizeof(((struct ours *)0)->field) == sizeof(((theirs *)0)->their_field), #ours "." #field)

SAME(sizeof(vgpu_return), sizeof(nvmlReturn_t));
SAME(VGPU_SUCCESS, NVML_SUCCESS);
SAME(NVML_UNINITIALIZED, NVML_ERROR_UNINITIALIZED);
SAME(NVML_INVALID_ARGUMENT, NVML_ERROR_INVALID_ARGUMENT);
SAME(NVML_NOT_SUPPORTED, NVML_ERROR_NOT_SUPPORTED);
SAME(NVML_NO_PERMISSION, NVML_ERROR_NO_PERMISSION);
SAME(NVML_NOT_FOUND, NVML_ERROR_NOT_FOUND);
SAME(NVML_INSUFFICIENT_SIZE, NVML_ERROR_INSUFFICIENT_SIZE);
SAME(NVML_LIBRARY_NOT_FOUND, NVML_ERROR_LIBRARY_NOT_FOUND);
SAME(NVML_FUNCTION_NOT_FOUND, NVML_ERROR_FUNCTION_NOT_FOUND);
SAME(NVML_VERSION_MISMATCH, NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
SAME(NVML_UNKNOWN, NVML_ERROR_UNKNOWN);
SAME(NVML_UUID_SIZE, NVML_DEVICE_UUID_V2_BUFFER_SIZE);
SAME(NVML_GPU_SAMPLES, NVML_GPU_UTILIZATION_SAMPLES);
SAME(NVML_MEMORY_SAMPLES, NVML_MEMORY_UTILIZATION_SAMPLES);
SAME(NVML_ENCODER_SAMPLES, NVML_ENC_UTILIZATION_SAMPLES);
SAME(NVML_DECODER_SAMPLES, NVML_DEC_UTILIZATION_SAMPLES);
SAME(NVML_JPEG_SAMPLES, NVML_JPG_UTILIZATION_SAMPLES);
SAME(NVML_OPTICAL_FLOW_SAMPLES, NVML_OFA_UTILIZATION_SAMPLES);
SAME(NVML_MODE_COMPUTE, NVML_PROCESS_MODE_COMPUTE);
SAME(NVML_MODE_ALL, NVML_PROCESS_MODE_ALL);
SAME(NVML_VERSION(struct nvml_memory_v2, 2), nvmlMemory_v2);
SAME(NVML_VERSION(struct nvml_process_details, 1), nvmlProcessDetailList_v1);
SAME(NVML_VERSION(struct nvml_process_usages, 1), nvmlProcessesUtilizationInfo_v1);

SIZE(nvml_memory, nvmlMemory_t);
AT(nvml_memory, total, nvmlMemory_t, total);
AT(nvml_memory, free, nvmlMemory_t, free);
AT(nvml_memory, used, nvmlMemory_t, used);

SIZE(nvml_memory_v2, nvmlMemory_v2_t);
AT(nvml_memory_v2, version, nvmlMemory_v2_t, version);
AT(nvml_memory_v2, total, nvmlMemory_v2_t, total);
AT(nvml_memory_v2, reserved, nvmlMemory_v2_t, reserved);
AT(nvml_memory_v2, free, nvmlMemory_v2_t, free);
AT(nvml_memory_v2, used, nvmlMemory_v2_t, used);

SIZE(nvml_utilization, nvmlUtilization_t);
AT(nvml_utilization, gpu, nvmlUtilization_t, gpu);
AT(nvml_utilization, memory, nvmlUtilization_t, memory);

SIZE(nvml_process_v1, nvmlProcessInfo_v1_t);
AT(nvml_process_v1, pid, nvmlProcessInfo_v1_t, pid);
AT(nvml_process_v1, bytes, nvmlProcessInfo_v1_t, usedGpuMemory);

SIZE(nvml_process_v2, nvmlProcessInfo_v2_t);
SIZE(nvml_process_v2, nvmlProcessInfo_t);
AT(nvml_process_v2, pid, nvmlProcessInfo_v2_t, pid);
AT(nvml_process_v2, bytes, nvmlProcessInfo_v2_t, usedGpuMemory);
AT(nvml_process_v2, gpu_instance, nvmlProcessInfo_v2_t, gpuInstanceId);
AT(nvml_process_v2, compute_instance, nvmlProcessInfo_v2_t, computeInstanceId);

SIZE(nvml_process_detail, nvmlProcessDetail_v1_t);
AT(nvml_process_detail, pid, nvmlProcessDetail_v1_t, pid);
AT(nvml_process_detail, bytes, nvmlProcessDetail_v1_t, usedGpuMemory);
AT(nvml_process_detail, gpu_instance, nvmlProcessDetail_v1_t, gpuInstanceId);
AT(nvml_process_detail, compute_instance, nvmlProcessDetail_v1_t, computeInstanceId);
AT(nvml_process_detail, protected_bytes, nvmlProcessDetail_v1_t, usedGpuCcProtectedMemory);

SIZE(nvml_process_details, nvmlProcessDetailList_v1_t);
AT(nvml_process_details, version, nvmlProcessDetailList_v1_t, version);
AT(nvml_process_details, mode, nvmlProcessDetailList_v1_t, mode);
AT(nvml_process_details, count, nvmlProcessDetailList_v1_t, numProcArrayEntries);
AT(nvml_process_details, items, nvmlProcessDetailList_v1_t, procArray);

SIZE(nvml_process_sample, nvmlProcessUtilizationSample_t);
AT(nvml_process_sample, pid, nvmlProcessUtilizationSample_t, pid);
AT(nvml_process_sample, time_us, nvmlProcessUtilizationSample_t, timeStamp);
AT(nvml_process_sample, sm, nvmlProcessUtilizationSample_t, smUtil);
AT(nvml_process_sample, memory, nvmlProcessUtilizationSample_t, memUtil);
AT(nvml_process_sample, encoder, nvmlProcessUtilizationSample_t, encUtil);
AT(nvml_process_sample, decoder, nvmlProcessUtilizationSample_t, decUtil);

SIZE(nvml_process_usage, nvmlProcessUtilizationInfo_v1_t);
AT(nvml_process_usage, time_us, nvmlProcessUtilizationInfo_v1_t, timeStamp);
AT(nvml_process_usage, pid, nvmlProcessUtilizationInfo_v1_t, pid);
AT(nvml_process_usage, sm, nvmlProcessUtilizationInfo_v1_t, smUtil);
AT(nvml_process_usage, memory, nvmlProcessUtilizationInfo_v1_t, memUtil);
AT(nvml_process_usage, encoder, nvmlProcessUtilizationInfo_v1_t, encUtil);
AT(nvml_process_usage, decoder, nvmlProcessUtilizationInfo_v1_t, decUtil);
AT(nvml_process_usage, jpeg, nvmlProcessUtilizationInfo_v1_t, jpgUtil);
AT(nvml_process_usage, optical_flow, nvmlProcessUtilizationInfo_v1_t, ofaUtil);

SIZE(nvml_process_usages, nvmlProcessesUtilizationInfo_v1_t);
AT(nvml_process_usages, version, nvmlProcessesUtilizationInfo_v1_t, version);
AT(nvml_process_usages, count, nvmlProcessesUtilizationInfo_v1_t, processSamplesCount);
AT(nvml_process_usages, since_us, nvmlProcessesUtilizationInfo_v1_t, lastSeenTimeStamp);
AT(nvml_process_usages, items, nvmlProcessesUtilizationInfo_v1_t, procUtilArray);

SIZE(nvml_gpm_support, nvmlGpmSupport_t);
AT(nvml_gpm_support, version, nvmlGpmSupport_t, version);
AT(nvml_gpm_support, supported, nvmlGpmSupport_t, isSupportedDevice);

SIZE(nvml_sample, nvmlSample_t);
AT(nvml_sample, time_us, nvmlSample_t, timeStamp);
AT(nvml_sample, value, nvmlSample_t, sampleValue);
