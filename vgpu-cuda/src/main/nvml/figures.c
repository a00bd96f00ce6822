/* Memory, processes and utilisation of the virtual GPU. */
#include <stddef.h>
#include <string.h>

#include "interpose.h"

static int vgpu__leased(void) { return vgpu__lease_mode() == VGPU_NVML_LEASED; }

/* ---- memory: the quota and its use, as in cuMemGetInfo ---- */

static void vgpu__cut(nvmlDevice_t device, unsigned long long *total, unsigned long long *free,
                      unsigned long long *used) {
  struct vgpu_look look;
  vgpu__lease_look(device, &look);
  if (look.quota < *total) *total = look.quota;
  *used = look.used < *total ? look.used : *total;
  if (*free > *total - *used) *free = *total - *used;
}

/*
 * NVML does not report the memory of a GPU that has none of its own, but uses the host's. A lease on it has a quota all
 * the same.
 */
static nvmlReturn_t vgpu__as_large(nvmlReturn_t result, unsigned long long *total, unsigned long long *free) {
  if (result != NVML_NOT_SUPPORTED) return result;
  *total = *free = ~0ull;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, struct nvml_memory *memory) {
  nvmlReturn_t result = REAL(nvmlDeviceGetMemoryInfo)(device, memory);
  if (memory == NULL || !vgpu__leased()) return result;
  result = vgpu__as_large(result, &memory->total, &memory->free);
  if (result == NVML_SUCCESS) vgpu__cut(device, &memory->total, &memory->free, &memory->used);
  return result;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, struct nvml_memory_v2 *memory) {
  nvmlReturn_t result = REAL(nvmlDeviceGetMemoryInfo_v2)(device, memory);
  if (memory == NULL || !vgpu__leased()) return result;
  result = vgpu__as_large(result, &memory->total, &memory->free);
  if (result != NVML_SUCCESS) return result;
  vgpu__cut(device, &memory->total, &memory->free, &memory->used);
  memory->reserved = 0;
  return result;
}

/* ---- processes: the virtual GPU's own ---- */

/* Sets *count to the number found, and reports if the caller's array is too small. */
static nvmlReturn_t vgpu__room(nvmlDevice_t device, unsigned *count, const void *infos, unsigned found) {
  nvmlReturn_t result = vgpu__check_device(device);
  if (result != NVML_SUCCESS) return result;
  if (count == NULL) return NVML_INVALID_ARGUMENT;
  unsigned room = *count;
  *count = found;
  return found > 0 && (room < found || infos == NULL) ? NVML_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

static nvmlReturn_t vgpu__list_v1(nvmlDevice_t device, unsigned *count, struct nvml_process_v1 *infos) {
  struct vgpu_look look;
  vgpu__lease_look(device, &look);
  nvmlReturn_t result = vgpu__room(device, count, infos, look.count);
  for (unsigned i = 0; result == NVML_SUCCESS && i < look.count; i++) {
    infos[i] = (struct nvml_process_v1){.pid = look.processes[i].pid, .bytes = look.processes[i].bytes};
  }
  return result;
}

static nvmlReturn_t vgpu__list_v2(nvmlDevice_t device, unsigned *count, struct nvml_process_v2 *infos) {
  struct vgpu_look look;
  vgpu__lease_look(device, &look);
  nvmlReturn_t result = vgpu__room(device, count, infos, look.count);
  for (unsigned i = 0; result == NVML_SUCCESS && i < look.count; i++) {
    infos[i] = (struct nvml_process_v2){.pid = look.processes[i].pid,
                                        .bytes = look.processes[i].bytes,
                                        .gpu_instance = (unsigned)NVML_NO_INSTANCE,
                                        .compute_instance = (unsigned)NVML_NO_INSTANCE};
  }
  return result;
}

/* Graphics and MPS processes: none. */
static nvmlReturn_t vgpu__none(nvmlDevice_t device, unsigned *count) { return vgpu__room(device, count, NULL, 0); }

#define LIST(name, version, ours)                                                                 \
  nvmlReturn_t name(nvmlDevice_t device, unsigned *count, struct nvml_process_##version *infos) { \
    return vgpu__leased() ? ours : REAL(name)(device, count, infos);                              \
  }
LIST(nvmlDeviceGetComputeRunningProcesses, v1, vgpu__list_v1(device, count, infos))
LIST(nvmlDeviceGetComputeRunningProcesses_v2, v2, vgpu__list_v2(device, count, infos))
LIST(nvmlDeviceGetComputeRunningProcesses_v3, v2, vgpu__list_v2(device, count, infos))
LIST(nvmlDeviceGetGraphicsRunningProcesses, v1, vgpu__none(device, count))
LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, v2, vgpu__none(device, count))
LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, v2, vgpu__none(device, count))
LIST(nvmlDeviceGetMPSComputeRunningProcesses, v1, vgpu__none(device, count))
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, v2, vgpu__none(device, count))
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, v2, vgpu__none(device, count))
#undef LIST

nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device, struct nvml_process_details *list) {
  struct vgpu_look look;
  if (!vgpu__leased()) return REAL(nvmlDeviceGetRunningProcessDetailList)(device, list);
  if (list == NULL || list->mode > NVML_MODE_ALL) return NVML_INVALID_ARGUMENT;
  if (list->version != NVML_VERSION(struct nvml_process_details, 1)) return NVML_VERSION_MISMATCH;
  vgpu__lease_look(device, &look);
  if (list->mode != NVML_MODE_COMPUTE && list->mode != NVML_MODE_ALL) look.count = 0;
  nvmlReturn_t result = vgpu__room(device, &list->count, list->items, look.count);
  for (unsigned i = 0; result == NVML_SUCCESS && i < look.count; i++) {
    list->items[i] = (struct nvml_process_detail){.pid = look.processes[i].pid,
                                                  .bytes = look.processes[i].bytes,
                                                  .gpu_instance = (unsigned)NVML_NO_INSTANCE,
                                                  .compute_instance = (unsigned)NVML_NO_INSTANCE};
  }
  return result;
}

static int vgpu__is_own(unsigned pid) {
  struct vgpu_look look;
  vgpu__lease_look(NULL, &look);
  for (unsigned i = 0; i < look.count; i++) {
    if (look.processes[i].pid == pid) return 1;
  }
  return 0;
}

nvmlReturn_t nvmlSystemGetProcessName(unsigned pid, char *name, unsigned size) {
  if (vgpu__leased() && !vgpu__is_own(pid)) return NVML_NOT_FOUND;
  return REAL(nvmlSystemGetProcessName)(pid, name, size);
}

nvmlReturn_t nvmlDeviceGetAccountingPids(nvmlDevice_t device, unsigned *count, unsigned *pids) {
  return vgpu__leased() ? vgpu__none(device, count) : REAL(nvmlDeviceGetAccountingPids)(device, count, pids);
}

nvmlReturn_t nvmlDeviceGetAccountingStats(nvmlDevice_t device, unsigned pid, void *stats) {
  if (vgpu__leased() && !vgpu__is_own(pid)) return NVML_NOT_FOUND;
  return REAL(nvmlDeviceGetAccountingStats)(device, pid, stats);
}

/* The first field is the process, which the caller sets. */
nvmlReturn_t nvmlDeviceGetAccountingStats_v2(nvmlDevice_t device, unsigned *stats) {
  if (vgpu__leased() && stats == NULL) return NVML_INVALID_ARGUMENT;
  if (vgpu__leased() && !vgpu__is_own(*stats)) return NVML_NOT_FOUND;
  return REAL(nvmlDeviceGetAccountingStats_v2)(device, stats);
}

/* ---- utilisation ---- */

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, struct nvml_utilization *utilization) {
  nvmlReturn_t result = REAL(nvmlDeviceGetUtilizationRates)(device, utilization);
  if (result != NVML_SUCCESS || !vgpu__leased()) return result;
  struct vgpu_usage usage;
  vgpu__usage_read(&usage);
  utilization->gpu = usage.percent;
  /* The memory's busy time is not known by process, so it is capped by the virtual GPU's own utilisation. */
  if (utilization->memory > usage.percent) utilization->memory = usage.percent;
  return result;
}

/* The use of these engines is known for all users of the GPU together only. */
static int vgpu__is_of_all(int type) {
  return type == NVML_ENCODER_SAMPLES || type == NVML_DECODER_SAMPLES || type == NVML_JPEG_SAMPLES ||
         type == NVML_OPTICAL_FLOW_SAMPLES;
}

nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t device, int type, unsigned long long since_us, int *value_type,
                                  unsigned *count, struct nvml_sample *samples) {
  if (vgpu__leased() && vgpu__is_of_all(type)) return NVML_NOT_SUPPORTED;
  if (!vgpu__leased() || (type != NVML_GPU_SAMPLES && type != NVML_MEMORY_SAMPLES)) {
    return REAL(nvmlDeviceGetSamples)(device, type, since_us, value_type, count, samples);
  }
  struct nvml_utilization utilization;
  struct vgpu_usage usage;
  if (value_type == NULL || count == NULL) return NVML_INVALID_ARGUMENT;
  nvmlReturn_t result = nvmlDeviceGetUtilizationRates(device, &utilization);
  if (result != NVML_SUCCESS) return result;
  vgpu__usage_read(&usage);
  unsigned room = *count;
  *value_type = 1; /* an unsigned int */
  *count = 1;
  if (samples == NULL) return NVML_SUCCESS;
  if (room == 0) return NVML_INVALID_ARGUMENT;
  if (usage.time_us <= since_us) return NVML_NOT_FOUND;
  memset(samples, 0, sizeof *samples);
  samples->time_us = usage.time_us;
  samples->value.number = type == NVML_GPU_SAMPLES ? utilization.gpu : utilization.memory;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device, struct nvml_process_sample *samples, unsigned *count,
                                             unsigned long long since_us) {
  if (!vgpu__leased()) return REAL(nvmlDeviceGetProcessUtilization)(device, samples, count, since_us);
  struct vgpu_usage usage;
  nvmlReturn_t result = vgpu__check_device(device);
  if (result != NVML_SUCCESS) return result;
  if (count == NULL) return NVML_INVALID_ARGUMENT;
  vgpu__usage_read(&usage);
  unsigned room = *count;
  if (usage.time_us <= since_us) usage.count = 0;
  *count = usage.count;
  if (usage.count == 0) return NVML_NOT_FOUND;
  if (samples == NULL || room < usage.count) return NVML_INSUFFICIENT_SIZE;
  for (unsigned i = 0; i < usage.count; i++) {
    samples[i] = (struct nvml_process_sample){
        .pid = usage.processes[i].pid, .time_us = usage.time_us, .sm = usage.processes[i].percent};
  }
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device, struct nvml_process_usages *usages) {
  if (!vgpu__leased()) return REAL(nvmlDeviceGetProcessesUtilizationInfo)(device, usages);
  struct vgpu_usage usage;
  nvmlReturn_t result = vgpu__check_device(device);
  if (result != NVML_SUCCESS) return result;
  if (usages == NULL) return NVML_INVALID_ARGUMENT;
  if (usages->version != NVML_VERSION(struct nvml_process_usages, 1)) return NVML_VERSION_MISMATCH;
  vgpu__usage_read(&usage);
  unsigned room = usages->count;
  if (usage.time_us <= usages->since_us) usage.count = 0;
  usages->count = usage.count;
  if (usage.count == 0) return NVML_NOT_FOUND;
  if (usages->items == NULL || room < usage.count) return NVML_INSUFFICIENT_SIZE;
  for (unsigned i = 0; i < usage.count; i++) {
    usages->items[i] = (struct nvml_process_usage){
        .pid = usage.processes[i].pid, .time_us = usage.time_us, .sm = usage.processes[i].percent};
  }
  return NVML_SUCCESS;
}

/* GPM knows all users of the GPU together only. So the answer is that of a GPU without it, which has no samples. */
nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t device, struct nvml_gpm_support *support) {
  nvmlReturn_t result = REAL(nvmlGpmQueryDeviceSupport)(device, support);
  if (result == NVML_SUCCESS && vgpu__leased()) support->supported = 0;
  return result;
}
