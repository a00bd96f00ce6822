/*
 * NVML: what nvitop and DCGM query besides the readings of nvml/health.c and nvml/monitor.c. What a data-centre GPU
 * without virtual machines does not have is not supported.
 */
#include "mig.h"

#include <stddef.h>
#include <string.h>

#define VERSION(type, number) ((unsigned int)(sizeof(type) | (number) << 24))

extern nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t sensor,
                                             unsigned int *celsius);
extern nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device,
                                                      nvmlTemperatureThresholds_t kind,
                                                      unsigned int *celsius);
extern nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t type,
                                                nvmlEccCounterType_t counter,
                                                unsigned long long *count);
extern nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t device, nvmlGpuFabricInfo_t *info);
extern nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t device, nvmlGpmSample_t sample);

/* ---- what such a GPU does not have */

static nvmlReturn_t not_supported(const char *function, nvmlDevice_t device) {
    emu_gpu *gpu = NULL;
    nvmlReturn_t result = emu_nvml_gpu(function, device, &gpu);
    return result != NVML_SUCCESS ? result : NVML_ERROR_NOT_SUPPORTED;
}

#define NOT_SUPPORTED(function, ...) \
    EMU_API nvmlReturn_t function(nvmlDevice_t device, __VA_ARGS__); \
    EMU_API nvmlReturn_t function(nvmlDevice_t device, __VA_ARGS__) { \
        UNUSED; \
        return not_supported(__func__, device); \
    }
#define UNUSED (void)a, (void)b
NOT_SUPPORTED(nvmlDeviceGetActiveVgpus, unsigned int *a, nvmlVgpuInstance_t *b)
NOT_SUPPORTED(nvmlDeviceGetSupportedVgpus, unsigned int *a, nvmlVgpuTypeId_t *b)
NOT_SUPPORTED(nvmlDeviceGetCreatableVgpus, unsigned int *a, nvmlVgpuTypeId_t *b)
NOT_SUPPORTED(nvmlDeviceGetDriverModel, nvmlDriverModel_t *a, nvmlDriverModel_t *b)
NOT_SUPPORTED(nvmlDeviceGetDriverModel_v2, nvmlDriverModel_t *a, nvmlDriverModel_t *b)
NOT_SUPPORTED(nvmlDeviceGetAutoBoostedClocksEnabled, nvmlEnableState_t *a, nvmlEnableState_t *b)
#undef UNUSED
#define UNUSED (void)a
NOT_SUPPORTED(nvmlDeviceGetBridgeChipInfo, nvmlBridgeChipHierarchy_t *a)
#undef UNUSED
#define UNUSED (void)a, (void)b, (void)c
NOT_SUPPORTED(nvmlDeviceGetVgpuProcessUtilization, unsigned long long a, unsigned int *b,
              nvmlVgpuProcessUtilizationSample_t *c)
#undef UNUSED
#define UNUSED (void)a, (void)b, (void)c, (void)d
NOT_SUPPORTED(nvmlDeviceGetVgpuUtilization, unsigned long long a, nvmlValueType_t *b,
              unsigned int *c, nvmlVgpuInstanceUtilizationSample_t *d)

/* No licence is needed, so no feature is listed. */
static nvmlReturn_t licences(const char *function, nvmlDevice_t device,
                             nvmlGridLicensableFeatures_t *features) {
    emu_gpu *gpu = NULL;
    nvmlReturn_t result = emu_nvml_gpu(function, device, &gpu);
    if (result != NVML_SUCCESS || features == NULL) {
        return result != NVML_SUCCESS ? result : NVML_ERROR_INVALID_ARGUMENT;
    }
    features->isGridLicenseSupported = 0;
    features->licensableFeaturesCount = 0;
    return NVML_SUCCESS;
}

#define LICENCES(function) \
    EMU_API nvmlReturn_t function(nvmlDevice_t device, nvmlGridLicensableFeatures_t *features) { \
        return licences(__func__, device, features); \
    }
LICENCES(nvmlDeviceGetGridLicensableFeatures)
LICENCES(nvmlDeviceGetGridLicensableFeatures_v2)
LICENCES(nvmlDeviceGetGridLicensableFeatures_v3)
LICENCES(nvmlDeviceGetGridLicensableFeatures_v4)

EMU_API nvmlReturn_t nvmlSystemGetConfComputeState(nvmlConfComputeSystemState_t *state) {
    EMU_NVML_ENTER(state != NULL);
    memset(state, 0, sizeof *state);
    return NVML_SUCCESS;
}

/* ---- accounting, which is off unless a setting says otherwise, and then knows no process */

EMU_API nvmlReturn_t nvmlDeviceGetAccountingBufferSize(nvmlDevice_t device, unsigned int *size) {
    EMU_NVML_GPU(device, size != NULL);
    (void)gpu;
    *size = 4000;
    return NVML_SUCCESS;
}

EMU_API nvmlReturn_t nvmlDeviceGetAccountingPids(nvmlDevice_t device, unsigned int *count,
                                                 unsigned int *pids) {
    (void)pids;
    EMU_NVML_GPU(device, count != NULL);
    *count = 0;
    return emu_nvml_number("accounting", (int)gpu->index, 0) == 1 ? NVML_SUCCESS
                                                                  : NVML_ERROR_NOT_SUPPORTED;
}

EMU_API nvmlReturn_t nvmlDeviceGetAccountingStats(nvmlDevice_t device, unsigned int pid,
                                                  nvmlAccountingStats_t *stats) {
    (void)pid;
    EMU_NVML_GPU(device, stats != NULL);
    return emu_nvml_number("accounting", (int)gpu->index, 0) == 1 ? NVML_ERROR_NOT_FOUND
                                                                  : NVML_ERROR_NOT_SUPPORTED;
}

/* ---- the board */

EMU_API nvmlReturn_t nvmlDeviceGetInforomImageVersion(nvmlDevice_t device, char *version,
                                                      unsigned int size) {
    EMU_NVML_GPU(device, version != NULL);
    (void)gpu;
    return emu_nvml_give_text(version, size, "G520.0200.00.05");
}

/* object 0: of the manufacturer, 1: ECC, 2: power, which data-centre boards do not have */
EMU_API nvmlReturn_t nvmlDeviceGetInforomVersion(nvmlDevice_t device, nvmlInforomObject_t object,
                                                 char *version, unsigned int size) {
    EMU_NVML_GPU(device, version != NULL && (int)object >= 0 && (int)object <= 2);
    (void)gpu;
    return object == 2 ? NVML_ERROR_NOT_SUPPORTED
                       : emu_nvml_give_text(version, size, object == 0 ? "2.1" : "7.16");
}

EMU_API nvmlReturn_t nvmlDeviceGetInforomConfigurationChecksum(nvmlDevice_t device,
                                                               unsigned int *checksum) {
    EMU_NVML_GPU(device, checksum != NULL);
    (void)gpu;
    *checksum = 0x5eed;
    return NVML_SUCCESS;
}

/* ---- heat */

EMU_API nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t device, nvmlTemperature_t *reading) {
    EMU_NVML_GPU(device, reading != NULL);
    (void)gpu;
    if (reading->version != VERSION(nvmlTemperature_t, 1)) {
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    }
    unsigned int celsius = 0;
    nvmlReturn_t result = nvmlDeviceGetTemperature(device, reading->sensorType, &celsius);
    reading->temperature = (int)celsius;
    return result;
}

/* What the GPU is cooler than where it slows down. */
EMU_API nvmlReturn_t nvmlDeviceGetMarginTemperature(nvmlDevice_t device,
                                                    nvmlMarginTemperature_t *margin) {
    EMU_NVML_GPU(device, margin != NULL);
    (void)gpu;
    if (margin->version != VERSION(nvmlMarginTemperature_t, 1)) {
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    }
    unsigned int now = 0;
    unsigned int slow = 0;
    nvmlDeviceGetTemperatureThreshold(device, 1, &slow);
    nvmlReturn_t result = nvmlDeviceGetTemperature(device, 0, &now);
    margin->marginTemperature = (int)slow - (int)now;
    return result;
}

/* ---- errors of the memory */

/* Newer GPUs count by DRAM and SRAM. All errors are those of DRAM. */
EMU_API nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t device,
                                                     nvmlMemoryErrorType_t type,
                                                     nvmlEccCounterType_t counter,
                                                     nvmlMemoryLocation_t location,
                                                     unsigned long long *count) {
    enum { DRAM = 2, SRAM = 7 };
    EMU_NVML_GPU(device, count != NULL && (int)location >= 0 && (int)location <= SRAM);
    (void)gpu;
    nvmlReturn_t result = nvmlDeviceGetTotalEccErrors(device, type, counter, count);
    if (result == NVML_SUCCESS && (int)location != DRAM) {
        *count = 0;
        return (int)location == SRAM ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
    }
    return result;
}

/* Every bank has all its spare rows, except one for each remapped row. */
EMU_API nvmlReturn_t nvmlDeviceGetRowRemapperHistogram(nvmlDevice_t device,
                                                       nvmlRowRemapperHistogramValues_t *banks) {
    enum { BANKS = 2560 };
    EMU_NVML_GPU(device, banks != NULL);
    memset(banks, 0, sizeof *banks);
    uint64_t rows = emu_nvml_number("rows_corrected", (int)gpu->index, 0) +
                    emu_nvml_number("rows_uncorrected", (int)gpu->index, 0);
    banks->high = (unsigned int)(rows < BANKS ? rows : BANKS);
    banks->max = BANKS - banks->high;
    return NVML_SUCCESS;
}

/* ---- NVLink's fabric */

EMU_API nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device, nvmlGpuFabricInfoV_t *info) {
    /* The older form ends before the last member. */
    enum { OLDER = offsetof(nvmlGpuFabricInfoV_t, healthSummary) };
    EMU_NVML_GPU(device, info != NULL);
    (void)gpu;
    unsigned int version = info->version;
    if (version != (OLDER | 2u << 24) && version != VERSION(nvmlGpuFabricInfoV_t, 3u)) {
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    }
    nvmlGpuFabricInfo_t known;
    nvmlReturn_t result = nvmlDeviceGetGpuFabricInfo(device, &known);
    if (result != NVML_SUCCESS) {
        return result;
    }
    nvmlGpuFabricInfoV_t full = {.version = version,
                                 .status = known.status,
                                 .cliqueId = known.cliqueId,
                                 .state = known.state,
                                 .healthSummary = 1}; /* healthy */
    memcpy(full.clusterUuid, known.clusterUuid, sizeof full.clusterUuid);
    memcpy(info, &full, version & 0xffffff);
    return NVML_SUCCESS;
}

/* ---- an instance's counters */

/* A GPU instance's busy time is that of its first compute instance. */
EMU_API nvmlReturn_t nvmlGpmMigSampleGet(nvmlDevice_t device, unsigned int instance,
                                         nvmlGpmSample_t sample) {
    emu_gpu *gpu = NULL;
    emu_mig_table table;
    EMU_NVML_ENTER(sample != NULL);
    nvmlReturn_t result = emu_nvml_mig_table(__func__, device, &gpu, &table);
    if (result != NVML_SUCCESS) {
        return result;
    }
    emu_mig_name name = {.device = gpu->index, .instance = instance};
    return instance < EMU_MIG_IDS && emu_mig_next(&table, &name) && name.instance == instance
               ? nvmlGpmSampleGet(emu_nvml_mig_handle(&name), sample)
               : NVML_ERROR_NOT_FOUND;
}
