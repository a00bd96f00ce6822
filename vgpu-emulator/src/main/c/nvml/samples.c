/* NVML: recent samples. Each covers a stretch of time of the GPU's history, which knows the last slices only. */
#include "mig.h"

enum {
    POWER,
    GPU_BUSY,
    MEMORY_BUSY,
    ENCODER,
    DECODER,
    CLOCK,
    MEMORY_CLOCK,
    OTHER_SAMPLES,
    KINDS = 10
};
enum { MOST_SAMPLES = 100, IS_UNSIGNED = 1, MILLI = 1000 };

#define STRETCH_NS UINT64_C(20000000)

/* What the GPU ran from one instant to another, in percent. */
static uint64_t busy_within(const emu_schedule *s, uint64_t from, uint64_t to) {
    uint64_t known = s->history_count < EMU_HISTORY ? s->history_count : EMU_HISTORY;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < known; i++) {
        const emu_slice *slice = &s->history[i];
        uint64_t start = slice->start_ns > from ? slice->start_ns : from;
        uint64_t end = slice->start_ns + slice->length_ns;
        end = end < to ? end : to;
        sum += end > start ? end - start : 0;
    }
    return (sum * 100 + (to - from) / 2) / (to - from);
}

/* The start of the first stretch that is known and ends after an instant. */
static uint64_t first_stretch(const emu_schedule *s, uint64_t since_ns) {
    uint64_t now = s->now_ns / STRETCH_NS;
    uint64_t first = now > MOST_SAMPLES ? now - MOST_SAMPLES : 0;
    if (s->history_count >= EMU_HISTORY) {
        uint64_t oldest = s->history[s->history_count % EMU_HISTORY].start_ns;
        uint64_t known = (oldest + STRETCH_NS - 1) / STRETCH_NS;
        first = known > first ? known : first;
    }
    uint64_t seen = since_ns / STRETCH_NS;
    return (seen > first ? seen : first) * STRETCH_NS;
}

static uint64_t sample_of(const emu_gpu *gpu, nvmlSamplingType_t type, uint64_t busy) {
    int index = (int)gpu->index;
    uint64_t shown = emu_nvml_number("busy", index, busy);
    switch ((int)type) {
    case POWER:
        return emu_nvml_number("power", index, (100 + 5 * shown) * MILLI);
    case GPU_BUSY:
        return shown;
    case MEMORY_BUSY:
        return emu_nvml_number("memory_busy", index, busy / 2);
    case ENCODER:
        return emu_nvml_number("encoder", index, 0);
    case DECODER:
        return emu_nvml_number("decoder", index, 0);
    case CLOCK:
        return emu_nvml_number("clock", index, 1755);
    default:
        return emu_nvml_number("memory_clock", index, 2619);
    }
}

static bool is_partitioned(const emu_gpu *gpu) {
    emu_mig_table table;
    emu_mig_read(gpu->state, gpu->index, &table);
    return table.current != 0;
}

/* Times are in microseconds of the clock that nvmlDeviceGetProcessUtilization uses. */
EMU_API nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t device, nvmlSamplingType_t type,
                                          unsigned long long since_us, nvmlValueType_t *value_type,
                                          unsigned int *count, nvmlSample_t *samples) {
    EMU_NVML_GPU(device, count != NULL && value_type != NULL && (samples == NULL || *count > 0) &&
                             (int)type >= 0 && (int)type < KINDS);
    bool is_use = (int)type >= GPU_BUSY && (int)type <= DECODER;
    if ((int)type >= OTHER_SAMPLES || (is_use && is_partitioned(gpu))) {
        return NVML_ERROR_NOT_SUPPORTED;
    }
    *value_type = IS_UNSIGNED;
    if (samples == NULL) {
        *count = MOST_SAMPLES;
        return NVML_SUCCESS;
    }
    emu_view view;
    emu_gpu_watch(gpu, &view);
    uint64_t now_us = view.schedule.now_ns / 1000;
    uint64_t since_ns = (since_us < now_us ? since_us : now_us) * 1000;
    unsigned int found = 0;
    for (uint64_t start = first_stretch(&view.schedule, since_ns);
         start + STRETCH_NS <= view.schedule.now_ns && found < *count; start += STRETCH_NS) {
        uint64_t busy = busy_within(&view.schedule, start, start + STRETCH_NS);
        samples[found].timeStamp = (start + STRETCH_NS) / 1000;
        samples[found].sampleValue.uiVal = (unsigned int)sample_of(gpu, type, busy);
        found++;
    }
    *count = found;
    return found == 0 ? NVML_ERROR_NOT_FOUND : NVML_SUCCESS;
}
