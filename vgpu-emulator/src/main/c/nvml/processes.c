/* NVML: memory, utilization, and the processes on a GPU. */
#include "mig.h"

#include <string.h>

/* The real NVML samples over 1/6 to 1 second. */
#define WINDOW_NS UINT64_C(200000000)

/* A GPU's total and used memory. A setting can replace each value, for example by -1. */
static void read_memory(emu_gpu *gpu, nvmlMemory_v2_t *memory) {
    int index = (int)gpu->index;
    memory->total = emu_nvml_number("memory_total", index, gpu->state->settings.memory_bytes);
    memory->reserved = emu_nvml_number("memory_reserved", index, 0);
    memory->used =
        emu_nvml_number("memory_used", index, emu_gpu_used_bytes(gpu) + emu_nvml_mig_used(gpu));
    uint64_t taken = memory->used + memory->reserved;
    uint64_t rest = taken < memory->total ? memory->total - taken : 0;
    memory->free = emu_nvml_number("memory_free", index, rest);
}

/* NVML does not report the memory of a GPU that has none of its own. */
static nvmlReturn_t memory_result(const emu_gpu *gpu) {
    return gpu->state->times.is_integrated ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

EMU_API nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory) {
    EMU_NVML_GPU(device, memory != NULL);
    if (memory_result(gpu) != NVML_SUCCESS) {
        return memory_result(gpu);
    }
    nvmlMemory_v2_t all;
    read_memory(gpu, &all);
    memory->total = all.total;
    memory->used = all.used + all.reserved;
    memory->free = all.free;
    return NVML_SUCCESS;
}

EMU_API nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory) {
    EMU_NVML_GPU(device, memory != NULL);
    if (memory->version != (sizeof(nvmlMemory_v2_t) | 2u << 24)) {
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    }
    if (memory_result(gpu) != NVML_SUCCESS) {
        return memory_result(gpu);
    }
    read_memory(gpu, memory);
    return NVML_SUCCESS;
}

/* The nanoseconds that a context (EMU_MAX_CONTEXTS: all) ran in the window before now, and the window's length. */
static uint64_t ran(const emu_schedule *s, uint32_t context, uint64_t *window_ns) {
    uint64_t from = s->now_ns > WINDOW_NS ? s->now_ns - WINDOW_NS : 0;
    uint64_t known = s->history_count < EMU_HISTORY ? s->history_count : EMU_HISTORY;
    if (known == EMU_HISTORY) { /* older slices are no longer in the history */
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

unsigned int emu_nvml_busy_percent(emu_gpu *gpu) {
    emu_view view;
    uint64_t window = 0;
    emu_gpu_watch(gpu, &view);
    uint64_t busy = ran(&view.schedule, EMU_MAX_CONTEXTS, &window);
    return (unsigned int)((busy * 100 + window / 2) / window);
}

EMU_API nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device,
                                                   nvmlUtilization_t *utilization) {
    EMU_NVML_GPU(device, utilization != NULL);
    unsigned int busy = emu_nvml_busy_percent(gpu);
    utilization->gpu = (unsigned int)emu_nvml_number("busy", (int)gpu->index, busy);
    utilization->memory = (unsigned int)emu_nvml_number("memory_busy", (int)gpu->index, busy / 2);
    return NVML_SUCCESS;
}

/* Settings can add made-up processes to the real ones. */
enum {
    MADE_UP = 1024,
    MADE_UP_PID = 4000000,
    ITEMS = EMU_MAX_PROCESSES + MADE_UP,
    MOST_TRIES = 64
};

typedef struct {
    uint32_t count;
    struct {
        unsigned int pid;
        uint64_t bytes;
        uint64_t ran_ns;
    } items[ITEMS];
    uint64_t window_ns;
    uint64_t now_ns;
} process_list;

static void add(process_list *list, unsigned int pid, uint64_t bytes, uint64_t ran_ns) {
    list->items[list->count].pid = pid;
    list->items[list->count].bytes = bytes;
    list->items[list->count].ran_ns = ran_ns;
    list->count++;
}

/*
 * Lists the living processes with a context or memory. False if a slot changed hands meanwhile, because the owner of
 * its memory is then unknown.
 */
static bool try_list(emu_gpu *gpu, process_list *list) {
    emu_identity before[EMU_MAX_PROCESSES];
    emu_view view;
    emu_ledger ledger;
    int index = (int)gpu->index;
    bool has_context[EMU_MAX_PROCESSES] = {false};
    uint64_t ran_ns[EMU_MAX_PROCESSES] = {0};
    for (int slot = 0; slot < EMU_MAX_PROCESSES; slot++) {
        before[slot] = emu_process_identity(gpu->state, slot);
    }
    emu_gpu_watch(gpu, &view);
    emu_gpu_memory(gpu, &ledger);
    list->window_ns = 1;
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
            uint64_t told = emu_process_told(gpu->state, slot);
            emu_identity now = emu_process_identity(gpu->state, slot);
            if (now.pid != before[slot].pid || now.start_time != before[slot].start_time) {
                return false;
            }
            if (told != 0) {
                add(list, (unsigned int)told, emu_nvml_number("process_memory", index, bytes),
                    ran_ns[slot]);
            }
        }
    }
    uint64_t more = emu_nvml_number("processes", index, 0);
    uint64_t each = emu_nvml_number("process_memory", index, UINT64_C(1) << 20);
    for (uint64_t i = 0; i < more && i < MADE_UP; i++) {
        add(list, (unsigned int)(MADE_UP_PID + i), each, list->window_ns / 100);
    }
    return true;
}

static void list_processes(emu_gpu *gpu, process_list *list) {
    for (int tries = 0; !try_list(gpu, list) && tries < MOST_TRIES; tries++) {
    }
}

/* As in NVML, returns the number of items if the caller's array is too small. */
static nvmlReturn_t check_room(const emu_gpu *gpu, unsigned int *count, const void *items,
                               uint32_t found) {
    unsigned int room = *count;
    *count = (unsigned int)emu_nvml_number("process_count", (int)gpu->index, found);
    if (found > 0 && (room < found || items == NULL)) {
        return NVML_ERROR_INSUFFICIENT_SIZE;
    }
    return NVML_SUCCESS;
}

static nvmlReturn_t give_processes(emu_gpu *gpu, unsigned int *count, nvmlProcessInfo_t *infos) {
    process_list list;
    list_processes(gpu, &list);
    nvmlReturn_t result = check_room(gpu, count, infos, list.count);
    for (uint32_t i = 0; result == NVML_SUCCESS && i < list.count; i++) {
        infos[i] = (nvmlProcessInfo_t){.pid = list.items[i].pid,
                                       .usedGpuMemory = list.items[i].bytes,
                                       .gpuInstanceId = UINT32_MAX,
                                       .computeInstanceId = UINT32_MAX};
    }
    return result;
}

EMU_API nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device,
                                                             unsigned int *count,
                                                             nvmlProcessInfo_t *infos) {
    EMU_NVML_GPU(device, count != NULL);
    return give_processes(gpu, count, infos);
}

EMU_API nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device,
                                                             unsigned int *count,
                                                             nvmlProcessInfo_t *infos) {
    EMU_NVML_GPU(device, count != NULL);
    return give_processes(gpu, count, infos);
}

EMU_API nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned int *count,
                                                          nvmlProcessInfo_v1_t *infos) {
    EMU_NVML_GPU(device, count != NULL);
    process_list list;
    list_processes(gpu, &list);
    nvmlReturn_t result = check_room(gpu, count, infos, list.count);
    for (uint32_t i = 0; result == NVML_SUCCESS && i < list.count; i++) {
        infos[i] =
            (nvmlProcessInfo_v1_t){.pid = list.items[i].pid, .usedGpuMemory = list.items[i].bytes};
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

/* A program that computes through MPS is among the others. */
EMU_API nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t device,
                                                                unsigned int *count,
                                                                nvmlProcessInfo_t *infos) {
    (void)infos;
    return no_processes(device, count);
}

EMU_API nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v2(nvmlDevice_t device,
                                                                unsigned int *count,
                                                                nvmlProcessInfo_t *infos) {
    (void)infos;
    return no_processes(device, count);
}

EMU_API nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses(nvmlDevice_t device,
                                                             unsigned int *count,
                                                             nvmlProcessInfo_v1_t *infos) {
    (void)infos;
    return no_processes(device, count);
}

EMU_API nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device,
                                                           nvmlProcessDetailList_t *details) {
    enum { COMPUTE = 0, MOST = 2 };
    EMU_NVML_GPU(device, details != NULL);
    if (details->version != (sizeof *details | 1u << 24)) {
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    }
    if (details->mode != COMPUTE) {
        return details->mode > MOST ? NVML_ERROR_INVALID_ARGUMENT
                                    : no_processes(device, &details->numProcArrayEntries);
    }
    process_list list;
    list_processes(gpu, &list);
    nvmlReturn_t result =
        check_room(gpu, &details->numProcArrayEntries, details->procArray, list.count);
    for (uint32_t i = 0; result == NVML_SUCCESS && i < list.count; i++) {
        details->procArray[i] = (nvmlProcessDetail_v1_t){.pid = list.items[i].pid,
                                                         .usedGpuMemory = list.items[i].bytes,
                                                         .gpuInstanceId = UINT32_MAX,
                                                         .computeInstanceId = UINT32_MAX};
    }
    return result;
}

/* Returns one sample for each process that ran since the given time, which is in microseconds of the samples' clock. */
EMU_API nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
                                                     nvmlProcessUtilizationSample_t *samples,
                                                     unsigned int *count,
                                                     unsigned long long last_seen_us) {
    EMU_NVML_GPU(device, count != NULL);
    process_list list;
    list_processes(gpu, &list);
    unsigned int room = *count;
    unsigned int found = 0;
    for (uint32_t i = 0; i < list.count; i++) {
        if (list.items[i].ran_ns == 0 || list.now_ns / 1000 <= last_seen_us) {
            continue;
        }
        if (samples != NULL && found < room) {
            samples[found] = (nvmlProcessUtilizationSample_t){
                .pid = list.items[i].pid,
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
