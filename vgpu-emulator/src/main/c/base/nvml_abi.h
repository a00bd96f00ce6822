/*
 * The part of NVML's binary interface that the emulator implements: our own declarations. With -DEMU_VENDORS_NVML the
 * vendor's header replaces them. That build compiles only if every function has the vendor's parameters (checked by
 * BindingTest).
 */
#ifndef EMU_NVML_ABI_H
#define EMU_NVML_ABI_H

#include <stdint.h>

#define EMU_API __attribute__((visibility("default")))

/* ERROR(name, number, text of nvmlErrorString) */
#define NVML_ERRORS(ERROR) \
    ERROR(NVML_SUCCESS, 0, "Success") \
    ERROR(NVML_ERROR_UNINITIALIZED, 1, "Uninitialized") \
    ERROR(NVML_ERROR_INVALID_ARGUMENT, 2, "Invalid Argument") \
    ERROR(NVML_ERROR_NOT_SUPPORTED, 3, "Not Supported") \
    ERROR(NVML_ERROR_NO_PERMISSION, 4, "Insufficient Permissions") \
    ERROR(NVML_ERROR_NOT_FOUND, 6, "Not Found") \
    ERROR(NVML_ERROR_INSUFFICIENT_SIZE, 7, "Insufficient Size") \
    ERROR(NVML_ERROR_DRIVER_NOT_LOADED, 9, "Driver Not Loaded") \
    ERROR(NVML_ERROR_TIMEOUT, 10, "Timeout") \
    ERROR(NVML_ERROR_FUNCTION_NOT_FOUND, 13, "Function Not Found") \
    ERROR(NVML_ERROR_GPU_IS_LOST, 15, "GPU is lost") \
    ERROR(NVML_ERROR_LIB_RM_VERSION_MISMATCH, 18, "Driver/library version mismatch") \
    ERROR(NVML_ERROR_IN_USE, 19, "In use by another client") \
    ERROR(NVML_ERROR_MEMORY, 20, "Insufficient Memory") \
    ERROR(NVML_ERROR_INSUFFICIENT_RESOURCES, 23, "Insufficient Resources") \
    ERROR(NVML_ERROR_ARGUMENT_VERSION_MISMATCH, 25, "Argument version mismatch") \
    ERROR(NVML_ERROR_UNKNOWN, 999, "Unknown Error")

#ifdef EMU_VENDORS_NVML
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <nvml.h>
#define emu_nvml_device nvmlDevice_st
#define emu_nvml_gpu_instance nvmlGpuInstance_st
#define emu_nvml_compute_instance nvmlComputeInstance_st
#define emu_nvml_events nvmlEventSet_st
#define emu_nvml_gpm_sample nvmlGpmSample_st
#else

typedef int nvmlReturn_t;
typedef int nvmlTemperatureSensors_t;
typedef int nvmlClockType_t;
typedef int nvmlMemoryErrorType_t;
typedef int nvmlEccCounterType_t;
typedef int nvmlGpuTopologyLevel_t;
typedef int nvmlPcieUtilCounter_t;
typedef int nvmlTemperatureThresholds_t;
typedef int nvmlClockId_t;
typedef int nvmlPerfPolicyType_t;
typedef int nvmlPageRetirementCause_t;
typedef int nvmlGpuP2PCapsIndex_t;
typedef int nvmlGpuP2PStatus_t;
typedef int nvmlMemoryLocation_t;
typedef int nvmlValueType_t;
typedef int nvmlSamplingType_t;
typedef int nvmlNvLinkCapability_t;
typedef int nvmlNvLinkErrorCounter_t;
typedef int nvmlInforomObject_t;
typedef unsigned int nvmlDriverModel_t;
typedef unsigned int nvmlEnableState_t;
typedef unsigned int nvmlVgpuTypeId_t;
typedef unsigned int nvmlVgpuInstance_t;
typedef struct emu_nvml_bridges nvmlBridgeChipHierarchy_t; /* no GPU has a bridge */
typedef struct emu_nvml_vgpu_use nvmlVgpuInstanceUtilizationSample_t;
typedef struct emu_nvml_vgpu_process_use nvmlVgpuProcessUtilizationSample_t;
typedef struct emu_nvml_device *nvmlDevice_t;
typedef struct emu_nvml_gpu_instance *nvmlGpuInstance_t;
typedef struct emu_nvml_compute_instance *nvmlComputeInstance_t;

enum {
#define ERROR(name, number, text) name = number,
    NVML_ERRORS(ERROR)
#undef ERROR
};

typedef struct {
    unsigned long long total;
    unsigned long long free;
    unsigned long long used;
} nvmlMemory_t;

typedef struct {
    unsigned int version;
    unsigned long long total;
    unsigned long long reserved;
    unsigned long long free;
    unsigned long long used;
} nvmlMemory_v2_t;

typedef struct {
    unsigned int gpu;
    unsigned int memory;
} nvmlUtilization_t;

#define NVML_GPU_FABRIC_UUID_LEN 16
#define NVML_GPU_FABRIC_STATE_COMPLETED 3

typedef struct {
    unsigned char clusterUuid[NVML_GPU_FABRIC_UUID_LEN];
    nvmlReturn_t status;
    unsigned int cliqueId;
    unsigned char state;
} nvmlGpuFabricInfo_t;

/* The older form ends before healthSummary. */
typedef struct {
    unsigned int version;
    unsigned char clusterUuid[NVML_GPU_FABRIC_UUID_LEN];
    nvmlReturn_t status;
    unsigned int cliqueId;
    unsigned char state;
    unsigned int healthMask;
    unsigned char healthSummary;
} nvmlGpuFabricInfoV_t;

typedef struct {
    unsigned int version;
    nvmlTemperatureSensors_t sensorType;
    int temperature;
} nvmlTemperature_t;

typedef struct {
    unsigned int version;
    int marginTemperature;
} nvmlMarginTemperature_t;

typedef struct {
    unsigned int environment;
    unsigned int ccFeature;
    unsigned int devToolsMode;
} nvmlConfComputeSystemState_t;

typedef struct {
    unsigned int max; /* memory banks, by the rows that remain for remapping */
    unsigned int high;
    unsigned int partial;
    unsigned int low;
    unsigned int none;
} nvmlRowRemapperHistogramValues_t;

typedef struct {
    int isGridLicenseSupported;
    unsigned int licensableFeaturesCount; /* the features follow */
} nvmlGridLicensableFeatures_t;

typedef struct {
    unsigned int gpuUtilization;
    unsigned int memoryUtilization;
    unsigned long long maxMemoryUsage;
    unsigned long long time;
    unsigned long long startTime;
    unsigned int isRunning;
    unsigned int reserved[5];
} nvmlAccountingStats_t;

typedef struct {
    unsigned long long bar1Total;
    unsigned long long bar1Free;
    unsigned long long bar1Used;
} nvmlBAR1Memory_t;

typedef struct {
    unsigned long long referenceTime; /* µs */
    unsigned long long violationTime; /* ns */
} nvmlViolationTime_t;

typedef union {
    double dVal;
    unsigned int uiVal;
    unsigned long long ullVal;
} nvmlValue_t;

typedef struct {
    unsigned long long timeStamp; /* µs */
    nvmlValue_t sampleValue;
} nvmlSample_t;

typedef struct emu_nvml_gpm_sample *nvmlGpmSample_t;

typedef struct {
    unsigned int metricId;
    nvmlReturn_t nvmlReturn;
    double value;
    struct {
        char *shortName;
        char *longName;
        char *unit;
    } metricInfo;
} nvmlGpmMetric_t;

typedef struct {
    unsigned int version;
    unsigned int numMetrics;
    nvmlGpmSample_t sample1;
    nvmlGpmSample_t sample2;
    nvmlGpmMetric_t metrics[333]; /* as many as numMetrics says are there */
} nvmlGpmMetricsGet_t;

typedef struct {
    unsigned int version;
    unsigned int isSupportedDevice;
} nvmlGpmSupport_t;

typedef struct {
    unsigned int fieldId;
    unsigned int scopeId;
    long long timestamp; /* µs since 1970 */
    long long latencyUsec;
    nvmlValueType_t valueType; /* 1: unsigned int, 3: unsigned long long */
    nvmlReturn_t nvmlReturn;
    nvmlValue_t value;
} nvmlFieldValue_t;

typedef struct {
    unsigned int pid;
    unsigned long long usedGpuMemory;
} nvmlProcessInfo_v1_t;

typedef struct {
    unsigned int pid;
    unsigned long long usedGpuMemory;
    unsigned int gpuInstanceId;
    unsigned int computeInstanceId;
} nvmlProcessInfo_t;

typedef struct {
    unsigned int pid;
    unsigned long long usedGpuMemory;
    unsigned int gpuInstanceId;
    unsigned int computeInstanceId;
    unsigned long long usedGpuCcProtectedMemory;
} nvmlProcessDetail_v1_t;

typedef struct {
    unsigned int version;
    unsigned int mode; /* 0: compute, 1: graphics, 2: compute through MPS */
    unsigned int numProcArrayEntries;
    nvmlProcessDetail_v1_t *procArray;
} nvmlProcessDetailList_t;

typedef struct {
    unsigned int pid;
    unsigned long long timeStamp;
    unsigned int smUtil;
    unsigned int memUtil;
    unsigned int encUtil;
    unsigned int decUtil;
} nvmlProcessUtilizationSample_t;

typedef struct {
    unsigned int start;
    unsigned int size;
} nvmlGpuInstancePlacement_t;
typedef nvmlGpuInstancePlacement_t nvmlComputeInstancePlacement_t;

typedef struct {
    unsigned int id;
    unsigned int isP2pSupported;
    unsigned int sliceCount;
    unsigned int instanceCount;
    unsigned int multiprocessorCount;
    unsigned int copyEngineCount;
    unsigned int decoderCount;
    unsigned int encoderCount;
    unsigned int jpegCount;
    unsigned int ofaCount;
    unsigned long long memorySizeMB;
} nvmlGpuInstanceProfileInfo_t;

typedef struct {
    unsigned int version;
    unsigned int id;
    unsigned int isP2pSupported;
    unsigned int sliceCount;
    unsigned int instanceCount;
    unsigned int multiprocessorCount;
    unsigned int copyEngineCount;
    unsigned int decoderCount;
    unsigned int encoderCount;
    unsigned int jpegCount;
    unsigned int ofaCount;
    unsigned long long memorySizeMB;
    char name[96];
} nvmlGpuInstanceProfileInfo_v2_t;

typedef struct {
    nvmlDevice_t device;
    unsigned int id;
    unsigned int profileId;
    nvmlGpuInstancePlacement_t placement;
} nvmlGpuInstanceInfo_t;

typedef struct {
    unsigned int id;
    unsigned int sliceCount;
    unsigned int instanceCount;
    unsigned int multiprocessorCount;
    unsigned int sharedCopyEngineCount;
    unsigned int sharedDecoderCount;
    unsigned int sharedEncoderCount;
    unsigned int sharedJpegCount;
    unsigned int sharedOfaCount;
} nvmlComputeInstanceProfileInfo_t;

typedef struct {
    nvmlDevice_t device;
    nvmlGpuInstance_t gpuInstance;
    unsigned int id;
    unsigned int profileId;
    nvmlComputeInstancePlacement_t placement;
} nvmlComputeInstanceInfo_t;

typedef struct {
    unsigned int multiprocessorCount;
    unsigned int sharedCopyEngineCount;
    unsigned int sharedDecoderCount;
    unsigned int sharedEncoderCount;
    unsigned int sharedJpegCount;
    unsigned int sharedOfaCount;
    unsigned int gpuInstanceSliceCount;
    unsigned int computeInstanceSliceCount;
    unsigned long long memorySizeMB;
} nvmlDeviceAttributes_t;

typedef struct {
    char busIdLegacy[16];
    unsigned int domain;
    unsigned int bus;
    unsigned int device;
    unsigned int pciDeviceId;
    unsigned int pciSubSystemId;
    char busId[32];
} nvmlPciInfo_t;

typedef struct {
    nvmlDevice_t device;
    unsigned long long eventType;
    unsigned long long eventData;
    unsigned int gpuInstanceId;
    unsigned int computeInstanceId;
} nvmlEventData_t;

typedef struct emu_nvml_events *nvmlEventSet_t;

#endif

#endif
