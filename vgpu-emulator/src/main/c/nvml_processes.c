/* NVML: memory, utilisation, and who uses a GPU. */
#include "nvml_mig.h"

#include <string.h>

/* Real ones sample over a sixth of a second to a second. */
#define WINDOW_NS UINT64_C(200000000)

EMU_API nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory) {
    EMU_NVML_GPU(device, memory != NULL);
    memory->total = gpu->state->settings.memory_bytes;
    memory->used = emu_gpu_used_bytes(gpu) + emu_nvml_mig_used(gpu);
    memory->free = memory->used < memory->total ? memory->total - memory->used : 0;
    return NVML_SUCCESS;
}

EMU_API nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory) {
    EMU_NVML_GPU(device, memory != NULL);
    if (memory->version != (sizeof(nvmlMemory_v2_t) | 2u << 24)) {
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    }
    memory->total = gpu->state->settings.memory_bytes;
    memory->reserved = 0;
    memory->used = emu_gpu_used_bytes(gpu) + emu_nvml_mig_used(gpu);
    memory->free = memory->used < memory->total ? memory->total - memory->used : 0;
    return NVML_SUCCESS;
}

/* The nanoseconds that a context (or all: EMU_MAX_CONTEXTS) ran in the window before now; and how
 * long that is. */
static uint64_t ran(const emu_schedule *s, uint32_t context, uint64_t *window_ns) {
    uint64_t from = s->now_ns > WINDOW_NS ? s->now_ns - WINDOW_NS : 0;
    uint64_t known = s->history_count < EMU_HISTORY ? s->history_count : EMU_HISTORY;
    if (known == EMU_HISTORY) { /* older slices have been forgotten */
        uint64_t oldest = s->history[s->history_count % EMU_HISTORY].start_ns;
        from = oldest > from ? oldest : from;
    }
    uint64_t sum = 0;
    for (uint64_t i = 0; i < known; i++) {
        const emu_slice *slice = &s->history[(s->history_count - 1 - i) % EMU_HISTORY];
        uint64_t end = slice->start_ns + slice->length_ns;
        uint64_t start = slice->start_ns > from ? slice->start_ns : from;
        if (end > start && (context == EMU_MAX_CONTEXTS || slice->context == context)) {
            sum += end - start;
        }
    }
    *window_ns = s->now_ns > from ? s->now_ns - from : 1;
    return sum;
}

EMU_API nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device,
                                                   nvmlUtilization_t *utilization) {
    EMU_NVML_GPU(device, utilization != NULL);
    emu_view view;
    uint64_t window = 0;
    emu_gpu_watch(gpu, &view);
    uint64_t busy = ran(&view.schedule, EMU_MAX_CONTEXTS, &window);
    utilization->gpu = (unsigned int)((busy * 100 + window / 2) / window);
    utilization->memory = utilization->gpu / 2;
    return NVML_SUCCESS;
}

typedef struct {
    uint32_t count;
    struct {
        int slot;
        uint64_t bytes;
        uint64_t ran_ns;
    } items[EMU_MAX_PROCESSES];
    uint64_t window_ns;
    uint64_t now_ns;
} process_list;

/* The processes with a context or memory that are alive. */
static void list_processes(emu_gpu *gpu, process_list *list) {
    emu_view view;
    emu_ledger ledger;
    bool has_context[EMU_MAX_PROCESSES] = {false};
    uint64_t ran_ns[EMU_MAX_PROCESSES] = {0};
    emu_gpu_watch(gpu, &view);
    emu_gpu_memory(gpu, &ledger);
    for (uint32_t i = 0; i < view.schedule.context_count; i++) {
        uint32_t owner = view.schedule.contexts[i].owner;
        if (owner != 0 && owner <= EMU_MAX_PROCESSES) {
            has_context[owner - 1] = true;
            ran_ns[owner - 1] += ran(&view.schedule, i, &list->window_ns);
        }
    }
    list->count = 0;
    list->now_ns = view.schedule.now_ns;
    for (int slot = 0; slot < EMU_MAX_PROCESSES; slot++) {
        uint64_t bytes = (uint64_t)slot < ledger.process_count ? ledger.used_by[slot] : 0;
        if ((has_context[slot] || bytes > 0) && !emu_process_dead(gpu->state, slot)) {
            list->items[list->count].slot = slot;
            list->items[list->count].bytes = bytes;
            list->items[list->count].ran_ns = ran_ns[slot];
            list->count++;
        }
    }
}

/* Says how many there are where the caller has no room for them, as NVML does. */
static nvmlReturn_t check_room(unsigned int *count, const void *items, uint32_t found) {
    unsigned int room = *count;
    *count = found;
    if (found > 0 && (room < found || items == NULL)) {
        return NVML_ERROR_INSUFFICIENT_SIZE;
    }
    return NVML_SUCCESS;
}

EMU_API nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device,
                                                             unsigned int *count,
                                                             nvmlProcessInfo_t *infos) {
    EMU_NVML_GPU(device, count != NULL);
    process_list list = {0};
    list_processes(gpu, &list);
    nvmlReturn_t result = check_room(count, infos, list.count);
    for (uint32_t i = 0; result == NVML_SUCCESS && i < list.count; i++) {
        infos[i] = (nvmlProcessInfo_t){
            .pid = (unsigned int)emu_process_at(gpu->state, list.items[i].slot).pid,
            .usedGpuMemory = list.items[i].bytes,
            .gpuInstanceId = UINT32_MAX,
            .computeInstanceId = UINT32_MAX};
    }
    return result;
}

EMU_API nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device,
                                                             unsigned int *count,
                                                             nvmlProcessInfo_t *infos) {
    return nvmlDeviceGetComputeRunningProcesses_v3(device, count, infos);
}

EMU_API nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned int *count,
                                                          nvmlProcessInfo_v1_t *infos) {
    EMU_NVML_GPU(device, count != NULL);
    process_list list = {0};
    list_processes(gpu, &list);
    nvmlReturn_t result = check_room(count, infos, list.count);
    for (uint32_t i = 0; result == NVML_SUCCESS && i < list.count; i++) {
        infos[i] = (nvmlProcessInfo_v1_t){
            .pid = (unsigned int)emu_process_at(gpu->state, list.items[i].slot).pid,
            .usedGpuMemory = list.items[i].bytes};
    }
    return result;
}

static nvmlReturn_t no_processes(nvmlDevice_t device, unsigned int *count) {
    EMU_NVML_GPU(device, count != NULL);
    *count = 0;
    return NVML_SUCCESS;
}

EMU_API nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device,
                                                              unsigned int *count,
                                                              nvmlProcessInfo_t *infos) {
    (void)infos;
    return no_processes(device, count);
}

EMU_API nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v2(nvmlDevice_t device,
                                                              unsigned int *count,
                                                              nvmlProcessInfo_t *infos) {
    (void)infos;
    return no_processes(device, count);
}

EMU_API nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses(nvmlDevice_t device, unsigned int *count,
                                                           nvmlProcessInfo_v1_t *infos) {
    (void)infos;
    return no_processes(device, count);
}

/* One sample per process that ran since the given time (microseconds of the same clock as the
 * samples' own). */
EMU_API nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
                                                     nvmlProcessUtilizationSample_t *samples,
                                                     unsigned int *count,
                                                     unsigned long long last_seen_us) {
    EMU_NVML_GPU(device, count != NULL);
    process_list list = {0};
    list_processes(gpu, &list);
    unsigned int room = *count;
    unsigned int found = 0;
    for (uint32_t i = 0; i < list.count; i++) {
        if (list.items[i].ran_ns == 0 || list.now_ns / 1000 <= last_seen_us) {
            continue;
        }
        if (samples != NULL && found < room) {
            samples[found] = (nvmlProcessUtilizationSample_t){
                .pid = (unsigned int)emu_process_at(gpu->state, list.items[i].slot).pid,
                .timeStamp = list.now_ns / 1000,
                .smUtil = (unsigned int)(list.items[i].ran_ns * 100 / list.window_ns)};
        }
        found++;
    }
    *count = found;
    if (samples == NULL || found > room) {
        return NVML_ERROR_INSUFFICIENT_SIZE;
    }
    return found == 0 ? NVML_ERROR_NOT_FOUND : NVML_SUCCESS;
}
