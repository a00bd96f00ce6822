/*
 * NVML: GPU performance monitoring. A metric is computed from the counters of two samples. Metrics of which the model
 * knows nothing, such as the use of tensor cores, are not supported.
 */
#include "nvml.h"

#include <stdlib.h>

enum { VERSION = 1, LEAST_CAPABILITY = 9, MARK = 0x67706d73, KB_PER_MIB = 1024 };
enum {
    GRAPHICS = 1,
    SM = 2,
    DRAM = 10,
    PCIE_SENT = 20,
    PCIE_RECEIVED = 21,
    FIRST_DECODER = 30,
    LAST_DECODER = 37,
    MOST_METRICS = 333
};

struct emu_nvml_gpm_sample {
    uint32_t mark;
    uint32_t index;     /* of the GPU */
    const void *memory; /* tells GPUs and instances apart; NULL: not filled */
    uint64_t now_ns;
    uint64_t busy_ns;
};

static bool is_sample(nvmlGpmSample_t sample) {
    return sample != NULL && sample->mark == MARK;
}

EMU_API nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t *sample) {
    EMU_NVML_ENTER(sample != NULL);
    *sample = calloc(1, sizeof **sample);
    if (*sample == NULL) {
        return NVML_ERROR_MEMORY;
    }
    (*sample)->mark = MARK;
    return NVML_SUCCESS;
}

EMU_API nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t sample) {
    EMU_NVML_ENTER(is_sample(sample));
    sample->mark = 0;
    free(sample);
    return NVML_SUCCESS;
}

static bool is_supported(const emu_gpu *gpu) {
    return gpu->state->settings.capability_major >= LEAST_CAPABILITY;
}

EMU_API nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t device, nvmlGpmSupport_t *support) {
    EMU_NVML_GPU(device, support != NULL);
    if (support->version != VERSION) {
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    }
    support->isSupportedDevice = is_supported(gpu) ? 1 : 0;
    return NVML_SUCCESS;
}

EMU_API nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t device, nvmlGpmSample_t sample) {
    EMU_NVML_GPU(device, is_sample(sample));
    if (!is_supported(gpu)) {
        return NVML_ERROR_NOT_SUPPORTED;
    }
    emu_view view;
    emu_gpu_watch(gpu, &view);
    sample->index = gpu->index;
    sample->memory = gpu->memory;
    sample->now_ns = view.schedule.now_ns;
    sample->busy_ns = view.schedule.busy_ns;
    return NVML_SUCCESS;
}

/* In percent, over the time between two samples. */
static double busy_between(const struct emu_nvml_gpm_sample *first,
                           const struct emu_nvml_gpm_sample *second) {
    double busy =
        (double)(second->busy_ns - first->busy_ns) * 100 / (double)(second->now_ns - first->now_ns);
    uint64_t unset = UINT64_MAX - 1;
    uint64_t set = emu_nvml_number("busy", (int)first->index, unset);
    return set == unset ? busy : (double)set;
}

static double mebibytes(const char *setting, uint32_t index) {
    return (double)emu_nvml_number(setting, (int)index, 0) / KB_PER_MIB;
}

static nvmlReturn_t compute(nvmlGpmMetric_t *metric, const struct emu_nvml_gpm_sample *first,
                            const struct emu_nvml_gpm_sample *second) {
    static char percent[] = "%";
    static char rate[] = "MiB/s";
    uint32_t index = first->index;
    unsigned int id = metric->metricId;
    metric->metricInfo.shortName = NULL;
    metric->metricInfo.longName = NULL;
    metric->metricInfo.unit = id >= PCIE_SENT && id <= PCIE_RECEIVED ? rate : percent;
    switch (id) {
    case GRAPHICS:
    case SM: /* a kernel has all multiprocessors */
        metric->value = busy_between(first, second);
        return NVML_SUCCESS;
    case DRAM:
        metric->value = busy_between(first, second) / 2; /* as nvmlDeviceGetUtilizationRates */
        return NVML_SUCCESS;
    case PCIE_SENT:
        metric->value = mebibytes("pcie_sent", index);
        return NVML_SUCCESS;
    case PCIE_RECEIVED:
        metric->value = mebibytes("pcie_received", index);
        return NVML_SUCCESS;
    default:
        break;
    }
    if (id >= FIRST_DECODER && id <= LAST_DECODER) {
        metric->value = (double)emu_nvml_number("decoder", (int)index, 0);
        return NVML_SUCCESS;
    }
    metric->metricInfo.unit = NULL;
    return id == 0 || id > MOST_METRICS ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_NOT_SUPPORTED;
}

EMU_API nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t *metrics) {
    EMU_NVML_ENTER(metrics != NULL);
    if (metrics->version != VERSION) {
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    }
    const struct emu_nvml_gpm_sample *first = metrics->sample1;
    const struct emu_nvml_gpm_sample *second = metrics->sample2;
    if (!is_sample(metrics->sample1) || !is_sample(metrics->sample2) || first->memory == NULL ||
        first->memory != second->memory || first->now_ns >= second->now_ns ||
        metrics->numMetrics == 0 || metrics->numMetrics > MOST_METRICS) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    for (unsigned int i = 0; i < metrics->numMetrics; i++) {
        metrics->metrics[i].nvmlReturn = compute(&metrics->metrics[i], first, second);
    }
    return NVML_SUCCESS;
}
