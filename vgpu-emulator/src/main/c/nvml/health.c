/* NVML: GPU health, connection and modes. A setting can change every number. */
#include "nvml.h"

#include <string.h>

enum { MILLI = 1000, MOST_LINKS = 36, LINKS = 12 };

EMU_API nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, unsigned int *mode) {
    EMU_NVML_NUMBER(device, mode, "compute_mode", 0);
}

EMU_API nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t device, unsigned int *mode) {
    EMU_NVML_NUMBER(device, mode, "persistence_mode", 1);
}

EMU_API nvmlReturn_t nvmlDeviceGetNumGpuCores(nvmlDevice_t device, unsigned int *cores) {
    EMU_NVML_NUMBER(device, cores, "cores", gpu->state->settings.sms * 128);
}

/* The architecture number for a compute capability. */
static unsigned int architecture(const emu_settings *settings) {
    unsigned int major = settings->capability_major;
    unsigned int minor = settings->capability_minor;
    switch (major) {
    case 7:
        return minor >= 5 ? 6 : 5;
    case 8:
        return minor == 9 ? 8 : 7;
    case 9:
        return 9;
    default:
        return major < 7 ? 4 : 10;
    }
}

EMU_API nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t device, unsigned int *number) {
    EMU_NVML_NUMBER(device, number, "architecture", architecture(&gpu->state->settings));
}

/* ---- heat, power, clocks: a busy GPU is warmer ---- */

EMU_API nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t sensor,
                                              unsigned int *celsius) {
    if (sensor != 0) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    EMU_NVML_NUMBER(device, celsius, "temperature", 40 + emu_nvml_busy_percent(gpu) / 4);
}

EMU_API nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int *milliwatts) {
    EMU_NVML_NUMBER(device, milliwatts, "power", (100 + 5 * emu_nvml_busy_percent(gpu)) * MILLI);
}

EMU_API nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device,
                                                     unsigned int *milliwatts) {
    EMU_NVML_NUMBER(device, milliwatts, "power_limit", 700 * MILLI);
}

EMU_API nvmlReturn_t nvmlDeviceGetPowerManagementLimit(nvmlDevice_t device,
                                                       unsigned int *milliwatts) {
    EMU_NVML_NUMBER(device, milliwatts, "power_limit", 700 * MILLI);
}

/* 0: graphics, 1: SM, 2: memory, 3: video; in MHz */
static bool is_clock(nvmlClockType_t type) {
    return (int)type >= 0 && (int)type <= 3;
}

EMU_API nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type,
                                            unsigned int *clock) {
    if (!is_clock(type)) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    EMU_NVML_NUMBER(device, clock, type == 2 ? "memory_clock" : "clock", type == 2 ? 2619 : 1755);
}

EMU_API nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, nvmlClockType_t type,
                                               unsigned int *clock) {
    if (!is_clock(type)) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    EMU_NVML_NUMBER(device, clock, type == 2 ? "max_memory_clock" : "max_clock",
                    type == 2 ? 2619 : 1755);
}

EMU_API nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device,
                                                            unsigned long long *reasons) {
    EMU_NVML_GPU(device, reasons != NULL);
    *reasons = emu_nvml_number("clock_reasons", (int)gpu->index, 0);
    return NVML_SUCCESS;
}

EMU_API nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device,
                                                               unsigned long long *reasons) {
    return nvmlDeviceGetCurrentClocksEventReasons(device, reasons);
}

EMU_API nvmlReturn_t nvmlDeviceGetEncoderUtilization(nvmlDevice_t device, unsigned int *percent,
                                                     unsigned int *period_us) {
    EMU_NVML_GPU(device, percent != NULL && period_us != NULL);
    *percent = (unsigned int)emu_nvml_number("encoder", (int)gpu->index, 0);
    *period_us = 167000;
    return NVML_SUCCESS;
}

EMU_API nvmlReturn_t nvmlDeviceGetDecoderUtilization(nvmlDevice_t device, unsigned int *percent,
                                                     unsigned int *period_us) {
    EMU_NVML_GPU(device, percent != NULL && period_us != NULL);
    *percent = (unsigned int)emu_nvml_number("decoder", (int)gpu->index, 0);
    *period_us = 167000;
    return NVML_SUCCESS;
}

/* ---- errors of the memory ---- */

EMU_API nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, unsigned int *current,
                                          unsigned int *pending) {
    EMU_NVML_GPU(device, current != NULL && pending != NULL);
    uint64_t mode = emu_nvml_number("ecc", (int)gpu->index, 2);
    if (mode > 1) {
        return NVML_ERROR_NOT_SUPPORTED;
    }
    *current = (unsigned int)mode;
    *pending = (unsigned int)mode;
    return NVML_SUCCESS;
}

EMU_API nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t type,
                                                 nvmlEccCounterType_t counter,
                                                 unsigned long long *count) {
    EMU_NVML_GPU(device, count != NULL && (int)type >= 0 && (int)type <= 1 && (int)counter >= 0 &&
                             (int)counter <= 1);
    if (emu_nvml_number("ecc", (int)gpu->index, 2) != 1) {
        return NVML_ERROR_NOT_SUPPORTED;
    }
    *count = emu_nvml_number(type == 0 ? "ecc_corrected" : "ecc_uncorrected", (int)gpu->index, 0);
    return NVML_SUCCESS;
}

EMU_API nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned int *corrected,
                                               unsigned int *uncorrected, unsigned int *pending,
                                               unsigned int *failed) {
    EMU_NVML_GPU(device,
                 corrected != NULL && uncorrected != NULL && pending != NULL && failed != NULL);
    int index = (int)gpu->index;
    *corrected = (unsigned int)emu_nvml_number("rows_corrected", index, 0);
    *uncorrected = (unsigned int)emu_nvml_number("rows_uncorrected", index, 0);
    *pending = (unsigned int)emu_nvml_number("rows_pending", index, 0);
    *failed = (unsigned int)emu_nvml_number("rows_failed", index, 0);
    return NVML_SUCCESS;
}

/* ---- where it is: the bus, the host's memory, the other GPUs ---- */

EMU_API nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t device, unsigned int *link) {
    EMU_NVML_NUMBER(device, link, "pcie_generation", 5);
}

EMU_API nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t device, unsigned int *width) {
    EMU_NVML_NUMBER(device, width, "pcie_width", 16);
}

/* scope 0: only this NUMA node's memory; 1: the socket's memory */
EMU_API nvmlReturn_t nvmlDeviceGetMemoryAffinity(nvmlDevice_t device, unsigned int size,
                                                 unsigned long *nodes, unsigned int scope) {
    EMU_NVML_GPU(device, nodes != NULL && size > 0 && scope <= 1);
    uint64_t node = emu_nvml_number("numa", (int)gpu->index, 0);
    memset(nodes, 0, size * sizeof *nodes);
    if (node >= size * 8 * sizeof *nodes) {
        return NVML_ERROR_NOT_SUPPORTED;
    }
    nodes[node / 64] = 1ul << node % 64;
    return NVML_SUCCESS;
}

EMU_API nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t device, nvmlDevice_t other,
                                                         nvmlGpuTopologyLevel_t *level) {
    EMU_NVML_GPU(device, level != NULL);
    emu_gpu *one = gpu;
    nvmlReturn_t result = emu_nvml_gpu(__func__, other, &gpu);
    if (result != NVML_SUCCESS) {
        return result;
    }
    bool same_node =
        emu_nvml_number("numa", (int)one->index, 0) == emu_nvml_number("numa", (int)gpu->index, 0);
    *level = one == gpu ? 0 : same_node ? 30 : 50;
    return NVML_SUCCESS;
}

/* Every reason that nvml.h of CUDA 13 names. */
EMU_API nvmlReturn_t nvmlDeviceGetSupportedClocksEventReasons(nvmlDevice_t device,
                                                              unsigned long long *reasons) {
    EMU_NVML_GPU(device, reasons != NULL);
    (void)gpu;
    *reasons = 0x1ff;
    return NVML_SUCCESS;
}

EMU_API nvmlReturn_t nvmlDeviceGetSupportedClocksThrottleReasons(nvmlDevice_t device,
                                                                 unsigned long long *reasons) {
    return nvmlDeviceGetSupportedClocksEventReasons(device, reasons);
}

/* Links connect to all other GPUs in turn. A single GPU has no links. */
static nvmlReturn_t check_link(const emu_gpu *gpu, unsigned int link) {
    uint64_t links = emu_nvml_devices() > 1 ? LINKS : 0;
    links = emu_nvml_number("nvlinks", (int)gpu->index, links);
    if (links == 0) {
        return NVML_ERROR_NOT_SUPPORTED;
    }
    return link >= links || link >= MOST_LINKS ? NVML_ERROR_INVALID_ARGUMENT : NVML_SUCCESS;
}

/* What two GPUs can do with each other's memory: read, write, by NVLink, atomics, by PCI. */
EMU_API nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t device, nvmlDevice_t other,
                                            nvmlGpuP2PCapsIndex_t what,
                                            nvmlGpuP2PStatus_t *status) {
    enum { BY_NVLINK = 2, MOST = 4, FINE = 0, NOT_SUPPORTED = 5 };
    EMU_NVML_GPU(device, status != NULL && (int)what >= 0 && (int)what <= MOST);
    const emu_gpu *one = gpu;
    nvmlReturn_t result = emu_nvml_gpu(__func__, other, &gpu);
    if (result != NVML_SUCCESS || one == gpu) {
        return result != NVML_SUCCESS ? result : NVML_ERROR_INVALID_ARGUMENT;
    }
    bool is_linked = check_link(one, 0) == NVML_SUCCESS && check_link(gpu, 0) == NVML_SUCCESS;
    *status = (int)what != BY_NVLINK || is_linked ? FINE : NOT_SUPPORTED;
    return NVML_SUCCESS;
}

static uint32_t peer(const emu_gpu *gpu, unsigned int link) {
    uint32_t others = emu_nvml_devices() - 1;
    return others == 0 ? gpu->index : (gpu->index + 1 + link % others) % (others + 1);
}

EMU_API nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int link,
                                              unsigned int *is_active) {
    EMU_NVML_GPU(device, is_active != NULL);
    nvmlReturn_t result = check_link(gpu, link);
    if (result == NVML_SUCCESS) {
        uint64_t down = emu_nvml_number("nvlink_down", (int)gpu->index, UINT64_MAX);
        *is_active = down != link;
    }
    return result;
}

EMU_API nvmlReturn_t nvmlDeviceGetNvLinkVersion(nvmlDevice_t device, unsigned int link,
                                                unsigned int *version) {
    EMU_NVML_GPU(device, version != NULL);
    *version = 4;
    return check_link(gpu, link);
}

EMU_API nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, unsigned int link,
                                                         unsigned int *type) {
    EMU_NVML_GPU(device, type != NULL);
    *type = (unsigned int)emu_nvml_number("nvlink_type", (int)gpu->index, 0);
    return check_link(gpu, link);
}

EMU_API nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned int link,
                                                         nvmlPciInfo_t *info) {
    EMU_NVML_GPU(device, info != NULL);
    nvmlReturn_t result = check_link(gpu, link);
    if (result == NVML_SUCCESS) {
        emu_nvml_pci(&gpu->state->gpus[peer(gpu, link)], info);
    }
    return result;
}

/* What a link can do: access a peer's memory and that of the machine, each also by atomics; be a bridge; be valid. */
EMU_API nvmlReturn_t nvmlDeviceGetNvLinkCapability(nvmlDevice_t device, unsigned int link,
                                                   nvmlNvLinkCapability_t capability,
                                                   unsigned int *is) {
    enum { PEER, PEER_ATOMICS = 2, VALID = 5, CAPABILITIES };
    EMU_NVML_GPU(device, is != NULL && (int)capability >= 0 && (int)capability < CAPABILITIES);
    *is = (int)capability == PEER || (int)capability == PEER_ATOMICS || (int)capability == VALID;
    return check_link(gpu, link);
}

EMU_API nvmlReturn_t nvmlDeviceGetNvLinkErrorCounter(nvmlDevice_t device, unsigned int link,
                                                     nvmlNvLinkErrorCounter_t counter,
                                                     unsigned long long *errors) {
    enum { COUNTERS = 5 };
    EMU_NVML_GPU(device, errors != NULL && (int)counter >= 0 && (int)counter < COUNTERS);
    *errors = emu_nvml_number("nvlink_errors", (int)gpu->index, 0);
    return check_link(gpu, link);
}

/* A clique of GPUs that NVLink connects, perhaps those of several machines. All cliques are of one cluster. */
EMU_API nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t device, nvmlGpuFabricInfo_t *info) {
    EMU_NVML_GPU(device, info != NULL);
    uint64_t clique = emu_nvml_number("clique", (int)gpu->index, UINT64_MAX);
    if (clique == UINT64_MAX) {
        return NVML_ERROR_NOT_SUPPORTED;
    }
    memset(info, 0, sizeof *info);
    memset(info->clusterUuid, 0x5e, sizeof info->clusterUuid);
    info->cliqueId = (unsigned int)clique;
    info->state = NVML_GPU_FABRIC_STATE_COMPLETED;
    return NVML_SUCCESS;
}

/* ---- virtual machines ---- */

EMU_API nvmlReturn_t nvmlDeviceGetVirtualizationMode(nvmlDevice_t device, unsigned int *mode) {
    EMU_NVML_NUMBER(device, mode, "virtualization", 0);
}

EMU_API nvmlReturn_t nvmlDeviceGetHostVgpuMode(nvmlDevice_t device, unsigned int *mode) {
    EMU_NVML_GPU(device, mode != NULL);
    uint64_t value = emu_nvml_number("host_vgpu", (int)gpu->index, 2);
    *mode = (unsigned int)value;
    return value > 1 ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}
