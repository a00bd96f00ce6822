/*
 * NVML: what monitors query besides the readings of nvml/health.c. Some, such as nvtop, show no GPU at all if one of
 * these functions is missing. A setting can change every number.
 */
#include "nvml.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MILLI = 1000, FIELD_UNSIGNED = 1, FIELD_UNSIGNED_LONG_LONG = 3 };
enum { FIELD_POLICIES = 74, FIELD_LINKS = 91, FIELD_ROWS = 142, FIELD_LINK_STATE = 165 };

#define NUMBER(function, setting, value) \
    EMU_API nvmlReturn_t function(nvmlDevice_t device, unsigned int *number) { \
        EMU_NVML_NUMBER(device, number, setting, value); \
    }

NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, "max_pcie_generation", 5)
NUMBER(nvmlDeviceGetGpuMaxPcieLinkGeneration, "max_pcie_generation", 5)
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, "max_pcie_width", 16)
NUMBER(nvmlDeviceGetPcieSpeed, "pcie_speed", 32000)
NUMBER(nvmlDeviceGetPcieReplayCounter, "pcie_replays", 0)
NUMBER(nvmlDeviceGetPowerManagementDefaultLimit, "power_default_limit", 700 * MILLI)
NUMBER(nvmlDeviceGetPowerManagementMode, "power_management", 1)
NUMBER(nvmlDeviceGetPerformanceState, "performance_state", 0)
NUMBER(nvmlDeviceGetPowerState, "performance_state", 0)
NUMBER(nvmlDeviceGetBrand, "brand", 14) /* NVIDIA */
NUMBER(nvmlDeviceGetDisplayMode, "display", 0)
NUMBER(nvmlDeviceGetDisplayActive, "display_active", 0)
NUMBER(nvmlDeviceGetAccountingMode, "accounting", 0)
NUMBER(nvmlDeviceGetMultiGpuBoard, "multi_gpu_board", 0)
NUMBER(nvmlDeviceGetBoardId, "board", (gpu->index + 1) << 8)
NUMBER(nvmlDeviceGetNumFans, "fans", 0)
NUMBER(nvmlDeviceGetMemoryBusWidth, "memory_bus", 5120)
NUMBER(nvmlDeviceGetBusType, "bus_type", 2) /* PCI Express */
NUMBER(nvmlDeviceGetNumaNodeId, "numa", 0)
NUMBER(nvmlDeviceGetRetiredPagesPendingStatus, "pages_pending", 0)

EMU_API nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t device, nvmlPcieUtilCounter_t counter,
                                                 unsigned int *kilobytes) {
    if ((int)counter < 0 || (int)counter > 1) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    EMU_NVML_NUMBER(device, kilobytes, counter == 0 ? "pcie_sent" : "pcie_received", 0);
}

/* The thresholds of shutdown, slowdown, maximum memory temperature and maximum GPU temperature. */
EMU_API nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device,
                                                       nvmlTemperatureThresholds_t kind,
                                                       unsigned int *celsius) {
    static const unsigned int thresholds[] = {92, 89, 95, 87};
    EMU_NVML_GPU(device, celsius != NULL && (int)kind >= 0);
    if (kind >= 4) {
        return NVML_ERROR_NOT_SUPPORTED;
    }
    *celsius = thresholds[kind];
    return NVML_SUCCESS;
}

EMU_API nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t device,
                                                                  unsigned int *least,
                                                                  unsigned int *most) {
    EMU_NVML_GPU(device, least != NULL && most != NULL);
    *least = 200 * MILLI;
    *most = 700 * MILLI;
    return NVML_SUCCESS;
}

extern nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int *milliwatts);
extern nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type,
                                           unsigned int *clock);
extern nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, nvmlClockType_t type,
                                              unsigned int *clock);
extern nvmlReturn_t nvmlDeviceGetPowerManagementLimit(nvmlDevice_t device,
                                                      unsigned int *milliwatts);
extern nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t type,
                                                nvmlEccCounterType_t counter,
                                                unsigned long long *count);
extern nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, unsigned int *current,
                                         unsigned int *pending);
extern nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned int *corrected,
                                              unsigned int *uncorrected, unsigned int *pending,
                                              unsigned int *failed);
extern nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int link,
                                             unsigned int *is_active);
extern nvmlReturn_t nvmlDeviceGetNvLinkErrorCounter(nvmlDevice_t device, unsigned int link,
                                                    nvmlNvLinkErrorCounter_t counter,
                                                    unsigned long long *errors);

/* In millijoules, as if the machine had been idle since boot, so it never decreases. */
EMU_API nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device,
                                                         unsigned long long *energy) {
    EMU_NVML_GPU(device, energy != NULL);
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    *energy = emu_nvml_number("energy", (int)gpu->index,
                              (uint64_t)now.tv_sec * 100 * MILLI + (uint64_t)now.tv_nsec / 10000);
    return NVML_SUCCESS;
}

/* id 0: current, 1 and 2: application clocks, 3: customer boost maximum */
EMU_API nvmlReturn_t nvmlDeviceGetClock(nvmlDevice_t device, nvmlClockType_t type, nvmlClockId_t id,
                                        unsigned int *clock) {
    if ((int)id < 0 || (int)id > 3) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    return id == 0 ? nvmlDeviceGetClockInfo(device, type, clock)
                   : nvmlDeviceGetMaxClockInfo(device, type, clock);
}

#define CLOCK(function) \
    EMU_API nvmlReturn_t function(nvmlDevice_t device, nvmlClockType_t type, \
                                  unsigned int *clock) { \
        return nvmlDeviceGetMaxClockInfo(device, type, clock); \
    }

CLOCK(nvmlDeviceGetApplicationsClock)
CLOCK(nvmlDeviceGetDefaultApplicationsClock)
CLOCK(nvmlDeviceGetMaxCustomerBoostClock)

static nvmlReturn_t only_clock(nvmlDevice_t device, nvmlClockType_t type, unsigned int *count,
                               unsigned int *clocks) {
    EMU_NVML_GPU(device, count != NULL);
    unsigned int room = clocks == NULL ? 0 : *count;
    *count = 1;
    return room < 1 ? NVML_ERROR_INSUFFICIENT_SIZE
                    : nvmlDeviceGetMaxClockInfo(device, type, clocks);
}

EMU_API nvmlReturn_t nvmlDeviceGetSupportedMemoryClocks(nvmlDevice_t device, unsigned int *count,
                                                        unsigned int *clocks) {
    return only_clock(device, 2, count, clocks);
}

EMU_API nvmlReturn_t nvmlDeviceGetSupportedGraphicsClocks(nvmlDevice_t device, unsigned int memory,
                                                          unsigned int *count,
                                                          unsigned int *clocks) {
    (void)memory;
    return only_clock(device, 0, count, clocks);
}

EMU_API nvmlReturn_t nvmlDeviceGetVbiosVersion(nvmlDevice_t device, char *version,
                                               unsigned int size) {
    EMU_NVML_GPU(device, version != NULL);
    return emu_nvml_give_text(version, size, "96.00.00.00.01");
}

EMU_API nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t *info) {
    EMU_NVML_GPU(device, info != NULL);
    info->bar1Total =
        emu_nvml_number("memory_total", (int)gpu->index, gpu->state->settings.memory_bytes);
    info->bar1Used = UINT64_C(1) << 20;
    info->bar1Free = info->bar1Total - info->bar1Used;
    return NVML_SUCCESS;
}

/* Every processor of the machine. */
EMU_API nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned int size,
                                              unsigned long *processors) {
    EMU_NVML_GPU(device, processors != NULL && size > 0);
    memset(processors, 0, size * sizeof *processors);
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    for (long i = 0; i < count && i < (long)size * 64; i++) {
        processors[i / 64] |= 1ul << i % 64;
    }
    return NVML_SUCCESS;
}

EMU_API nvmlReturn_t nvmlDeviceGetCpuAffinityWithinScope(nvmlDevice_t device, unsigned int size,
                                                         unsigned long *processors,
                                                         unsigned int scope) {
    return scope > 1 ? NVML_ERROR_INVALID_ARGUMENT
                     : nvmlDeviceGetCpuAffinity(device, size, processors);
}

EMU_API nvmlReturn_t nvmlDeviceGetViolationStatus(nvmlDevice_t device, nvmlPerfPolicyType_t policy,
                                                  nvmlViolationTime_t *time) {
    EMU_NVML_GPU(device, time != NULL && (int)policy >= 0 && (int)policy <= 11);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    time->referenceTime = (unsigned long long)now.tv_sec * 1000000;
    time->violationTime = 0;
    return NVML_SUCCESS;
}

EMU_API nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_t device, nvmlPageRetirementCause_t cause,
                                               unsigned int *count, unsigned long long *addresses) {
    (void)addresses;
    EMU_NVML_GPU(device, count != NULL && (int)cause >= 0 && (int)cause <= 1);
    *count = 0;
    return NVML_SUCCESS;
}

EMU_API nvmlReturn_t nvmlDeviceGetEncoderStats(nvmlDevice_t device, unsigned int *sessions,
                                               unsigned int *frames, unsigned int *latency_us) {
    EMU_NVML_GPU(device, sessions != NULL && frames != NULL && latency_us != NULL);
    *sessions = 0;
    *frames = 0;
    *latency_us = 0;
    return NVML_SUCCESS;
}

EMU_API nvmlReturn_t nvmlDeviceGetFanSpeed_v2(nvmlDevice_t device, unsigned int fan,
                                              unsigned int *speed) {
    (void)fan;
    EMU_NVML_GPU(device, speed != NULL);
    return NVML_ERROR_NOT_SUPPORTED; /* not available on this GPU */
}

EMU_API nvmlReturn_t nvmlUnitGetCount(unsigned int *count) {
    EMU_NVML_ENTER(count != NULL);
    *count = 0;
    return NVML_SUCCESS;
}

/* Errors of all links, or the number of links. */
static nvmlReturn_t link_field(nvmlDevice_t device, nvmlFieldValue_t *field) {
    unsigned int active = 0;
    unsigned long long errors = 0;
    unsigned long long sum = 0;
    unsigned int links = 0;
    nvmlReturn_t result = nvmlDeviceGetNvLinkState(device, 0, &active);
    for (;
         result == NVML_SUCCESS && nvmlDeviceGetNvLinkState(device, links, &active) == NVML_SUCCESS;
         links++) {
        nvmlDeviceGetNvLinkErrorCounter(device, links, 0, &errors);
        sum += errors;
    }
    if (field->fieldId == FIELD_LINKS) {
        field->valueType = FIELD_UNSIGNED;
        field->value.uiVal = links;
        return result == NVML_ERROR_NOT_SUPPORTED ? NVML_SUCCESS : result;
    }
    field->value.ullVal = sum;
    return result;
}

/* One of the four values of nvmlDeviceGetRemappedRows. */
static nvmlReturn_t row_field(nvmlDevice_t device, nvmlFieldValue_t *field) {
    unsigned int rows[4];
    nvmlReturn_t result = nvmlDeviceGetRemappedRows(device, &rows[0], &rows[1], &rows[2], &rows[3]);
    field->valueType = FIELD_UNSIGNED;
    field->value.uiVal = result == NVML_SUCCESS ? rows[field->fieldId - FIELD_ROWS] : 0;
    return result;
}

static nvmlReturn_t ecc_field(nvmlDevice_t device, nvmlFieldValue_t *field) {
    unsigned int current = 0;
    unsigned int pending = 0;
    nvmlReturn_t result = nvmlDeviceGetEccMode(device, &current, &pending);
    field->valueType = FIELD_UNSIGNED;
    field->value.uiVal = field->fieldId == 1 ? current : pending;
    return result;
}

/* Errors that are counted since the driver loaded (3, 4) or ever (5, 6): corrected, uncorrected. */
static nvmlReturn_t error_field(nvmlDevice_t device, nvmlFieldValue_t *field) {
    return nvmlDeviceGetTotalEccErrors(device, field->fieldId % 2 == 0, field->fieldId >= 5,
                                       &field->value.ullVal);
}

/* A link's traffic, which nothing counts, or its state. scopeId: the link, or all of them. */
static nvmlReturn_t of_link_field(nvmlDevice_t device, nvmlFieldValue_t *field) {
    unsigned int active = 0;
    unsigned int link = field->scopeId == UINT32_MAX ? 0 : field->scopeId;
    nvmlReturn_t result = nvmlDeviceGetNvLinkState(device, link, &active);
    field->value.ullVal = 0;
    if (field->fieldId == FIELD_LINK_STATE) {
        field->valueType = FIELD_UNSIGNED;
        field->value.uiVal = active;
    }
    return result;
}

/* How long a policy has held the clocks down, in ns. */
static nvmlReturn_t policy_field(nvmlDevice_t device, nvmlFieldValue_t *field) {
    static const unsigned char policies[] = {0, 1, 2, 3, 4, 5, 10, 11};
    nvmlViolationTime_t time = {0};
    nvmlReturn_t result =
        nvmlDeviceGetViolationStatus(device, policies[field->fieldId - FIELD_POLICIES], &time);
    field->value.ullVal = time.violationTime;
    return result;
}

/* 187 to 190 and 192: the least, most, default, current and requested limit; in milliwatts. */
static nvmlReturn_t power_limit_field(nvmlDevice_t device, nvmlFieldValue_t *field) {
    unsigned int least = 0;
    unsigned int most = 0;
    field->valueType = FIELD_UNSIGNED;
    nvmlReturn_t result = nvmlDeviceGetPowerManagementLimitConstraints(device, &least, &most);
    switch (field->fieldId) {
    case 187: /* NVML_FI_DEV_POWER_MIN_LIMIT */
        field->value.uiVal = least;
        return result;
    case 188: /* NVML_FI_DEV_POWER_MAX_LIMIT */
        field->value.uiVal = most;
        return result;
    case 189: /* NVML_FI_DEV_POWER_DEFAULT_LIMIT */
        return nvmlDeviceGetPowerManagementDefaultLimit(device, &field->value.uiVal);
    default: /* NVML_FI_DEV_POWER_CURRENT_LIMIT, NVML_FI_DEV_POWER_REQUESTED_LIMIT */
        return nvmlDeviceGetPowerManagementLimit(device, &field->value.uiVal);
    }
}

/* One field of nvmlDeviceGetFieldValues, by its number in nvml.h. */
static nvmlReturn_t field_value(nvmlDevice_t device, nvmlFieldValue_t *field) {
    field->valueType = FIELD_UNSIGNED_LONG_LONG;
    switch (field->fieldId) {
    case 1: /* NVML_FI_DEV_ECC_CURRENT */
    case 2: /* NVML_FI_DEV_ECC_PENDING */
        return ecc_field(device, field);
    case 3: /* NVML_FI_DEV_ECC_SBE_VOL_TOTAL */
    case 4: /* NVML_FI_DEV_ECC_DBE_VOL_TOTAL */
    case 5: /* NVML_FI_DEV_ECC_SBE_AGG_TOTAL */
    case 6: /* NVML_FI_DEV_ECC_DBE_AGG_TOTAL */
        return error_field(device, field);
    case 29: /* NVML_FI_DEV_RETIRED_SBE */
    case 30: /* NVML_FI_DEV_RETIRED_DBE */
        field->valueType = FIELD_UNSIGNED;
        return nvmlDeviceGetRetiredPages(device, field->fieldId == 30, &field->value.uiVal, NULL);
    case 31: /* NVML_FI_DEV_RETIRED_PENDING */
        field->valueType = FIELD_UNSIGNED;
        return nvmlDeviceGetRetiredPagesPendingStatus(device, &field->value.uiVal);
    case 38:          /* NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL */
    case 45:          /* NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL */
    case 52:          /* NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL */
    case 59:          /* NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL */
    case FIELD_LINKS: /* NVML_FI_DEV_NVLINK_LINK_COUNT */
        return link_field(device, field);
    case 138:              /* NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX */
    case 139:              /* NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX */
    case 140:              /* NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_TX */
    case 141:              /* NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_RX */
    case FIELD_LINK_STATE: /* NVML_FI_DEV_NVLINK_GET_STATE */
        return of_link_field(device, field);
    case FIELD_POLICIES:     /* NVML_FI_DEV_PERF_POLICY_POWER */
    case FIELD_POLICIES + 1: /* NVML_FI_DEV_PERF_POLICY_THERMAL */
    case FIELD_POLICIES + 2: /* NVML_FI_DEV_PERF_POLICY_SYNC_BOOST */
    case FIELD_POLICIES + 3: /* NVML_FI_DEV_PERF_POLICY_BOARD_LIMIT */
    case FIELD_POLICIES + 4: /* NVML_FI_DEV_PERF_POLICY_LOW_UTILIZATION */
    case FIELD_POLICIES + 5: /* NVML_FI_DEV_PERF_POLICY_RELIABILITY */
    case FIELD_POLICIES + 6: /* NVML_FI_DEV_PERF_POLICY_TOTAL_APP_CLOCKS */
    case FIELD_POLICIES + 7: /* NVML_FI_DEV_PERF_POLICY_TOTAL_BASE_CLOCKS */
        return policy_field(device, field);
    case FIELD_ROWS:     /* NVML_FI_DEV_REMAPPED_COR */
    case FIELD_ROWS + 1: /* NVML_FI_DEV_REMAPPED_UNC */
    case FIELD_ROWS + 2: /* NVML_FI_DEV_REMAPPED_PENDING */
    case FIELD_ROWS + 3: /* NVML_FI_DEV_REMAPPED_FAILURE */
        return row_field(device, field);
    case 82: /* NVML_FI_DEV_MEMORY_TEMP */
        field->valueType = FIELD_UNSIGNED;
        field->value.uiVal = 45;
        return NVML_SUCCESS;
    case 83: /* NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION */
        return nvmlDeviceGetTotalEnergyConsumption(device, &field->value.ullVal);
    case 94: /* NVML_FI_DEV_PCIE_REPLAY_COUNTER */
        field->valueType = FIELD_UNSIGNED;
        return nvmlDeviceGetPcieReplayCounter(device, &field->value.uiVal);
    case 185: /* NVML_FI_DEV_POWER_AVERAGE */
    case 186: /* NVML_FI_DEV_POWER_INSTANT */
        field->valueType = FIELD_UNSIGNED;
        return nvmlDeviceGetPowerUsage(device, &field->value.uiVal);
    case 187:
    case 188:
    case 189:
    case 190:
    case 192:
        return power_limit_field(device, field);
    default:
        return NVML_ERROR_NOT_SUPPORTED;
    }
}

EMU_API nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count,
                                              nvmlFieldValue_t *values) {
    EMU_NVML_GPU(device, values != NULL && count > 0);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    for (int i = 0; i < count; i++) {
        values[i].timestamp = now.tv_sec * 1000000LL + now.tv_nsec / 1000;
        values[i].latencyUsec = 0;
        values[i].nvmlReturn = field_value(device, &values[i]);
    }
    return NVML_SUCCESS;
}
