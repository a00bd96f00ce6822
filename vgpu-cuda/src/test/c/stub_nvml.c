/*
 * NVML as in drivers up to 570.86: a process is identified by the thread that called cuInit. STUB_NVML_PID is its
 * number, and STUB_NVML_BYTES is the memory it holds.
 */
#include <stdlib.h>
#include <string.h>

#include "../../main/nvml/nvml_abi.h"

#define API __attribute__((visibility("default"))) nvmlReturn_t

API nvmlInit_v2(void);
API nvmlDeviceGetCount_v2(unsigned *count);
API nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device);
API nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count, struct nvml_process_v2 *infos);

API nvmlSystemGetDriverVersion(char *into, unsigned size);
API nvmlSystemGetDriverVersion(char *into, unsigned size) {
  strncpy(into, "570.86.15", size);
  return NVML_SUCCESS;
}

API nvmlInit_v2(void) { return NVML_SUCCESS; }

API nvmlDeviceGetCount_v2(unsigned *count) {
  *count = 1;
  return NVML_SUCCESS;
}

API nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device) {
  static int one;
  *device = (nvmlDevice_t)(void *)&one;
  return index == 0 ? NVML_SUCCESS : NVML_INVALID_ARGUMENT;
}

API nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count, struct nvml_process_v2 *infos) {
  (void)device;
  *count = 2;
  memset(infos, 0, 2 * sizeof *infos);
  infos[0].pid = 1; /* another process */
  infos[0].bytes = 1ull << 40;
  infos[1].pid = (unsigned)strtoul(getenv("STUB_NVML_PID"), NULL, 10);
  infos[1].bytes = strtoull(getenv("STUB_NVML_BYTES"), NULL, 10);
  return NVML_SUCCESS;
}
