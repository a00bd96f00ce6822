/* The part of NVML that `smi` uses: our own declarations. */
#ifndef SAMPLES_NVML_H
#define SAMPLES_NVML_H

#include <stddef.h>

typedef struct nvml_device *nvml_device;

struct nvml_memory {
  unsigned long long total, free, used;
};

struct nvml_memory_v2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
};

struct nvml_utilization {
  unsigned gpu, memory;
};

struct nvml_process {
  unsigned pid;
  unsigned long long bytes;
  unsigned gpu_instance, compute_instance;
};

/* ROW(function, parameters) */
#define NVML_FUNCTIONS(ROW)                                                                        \
  ROW(nvmlInit_v2, (void))                                                                         \
  ROW(nvmlShutdown, (void))                                                                        \
  ROW(nvmlSystemGetDriverVersion, (char *version, unsigned size))                                  \
  ROW(nvmlSystemGetCudaDriverVersion_v2, (int *version))                                           \
  ROW(nvmlSystemGetProcessName, (unsigned pid, char *name, unsigned size))                         \
  ROW(nvmlDeviceGetCount_v2, (unsigned *count))                                                    \
  ROW(nvmlDeviceGetHandleByIndex_v2, (unsigned index, nvml_device *device))                        \
  ROW(nvmlDeviceGetIndex, (nvml_device device, unsigned *index))                                   \
  ROW(nvmlDeviceGetName, (nvml_device device, char *name, unsigned size))                          \
  ROW(nvmlDeviceGetUUID, (nvml_device device, char *uuid, unsigned size))                          \
  ROW(nvmlDeviceGetTemperature, (nvml_device device, int sensor, unsigned *celsius))               \
  ROW(nvmlDeviceGetPowerUsage, (nvml_device device, unsigned *milliwatts))                         \
  ROW(nvmlDeviceGetMemoryInfo, (nvml_device device, struct nvml_memory * memory))                  \
  ROW(nvmlDeviceGetMemoryInfo_v2, (nvml_device device, struct nvml_memory_v2 * memory))            \
  ROW(nvmlDeviceGetUtilizationRates, (nvml_device device, struct nvml_utilization * rates))        \
  ROW(nvmlDeviceGetMaxMigDeviceCount, (nvml_device device, unsigned *count))                       \
  ROW(nvmlDeviceGetMigDeviceHandleByIndex, (nvml_device device, unsigned index, nvml_device *mig)) \
  ROW(nvmlDeviceGetComputeRunningProcesses_v3, (nvml_device device, unsigned *count, struct nvml_process *processes))

struct nvml {
#define ROW(function, parameters) int(*function) parameters;
  NVML_FUNCTIONS(ROW)
#undef ROW
  const char *(*nvmlErrorString)(int code);
};

/* Finds the functions; NULL, or why it cannot. In nvml_load.c by dlopen and dlsym, in nvml_link.c by the linker. */
const char *nvml_open(struct nvml *nvml);

#endif
