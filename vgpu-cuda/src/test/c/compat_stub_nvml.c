/*
 * An NVML with features that the emulator's lacks: two GPUs, the first cut into three MIG devices, each GPU near the
 * other, and a function that no header has yet. Exports only these.
 */
#include <stdio.h>
#include <string.h>

#include "../../main/nvml/nvml_abi.h"

#define API __attribute__((visibility("default")))
enum { GPUS = 2, MIGS = 3 };
static struct nvml_device {
  const char *uuid;
  int parent;
} devices[] = {{"GPU-a", -1}, {"GPU-b", -1}, {"MIG-x", 0}, {"MIG-y", 0}, {"MIG-z", 0}};
static int users;

API nvmlReturn_t nvmlInit_v2(void) { return users++, NVML_SUCCESS; }
API nvmlReturn_t nvmlShutdown(void) { return users == 0 ? NVML_UNINITIALIZED : (users--, NVML_SUCCESS); }
API const char *nvmlErrorString(nvmlReturn_t code) { return code == 0 ? "Success" : "Failed"; }
API nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count) { return *count = GPUS, NVML_SUCCESS; }

API nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device) {
  if (index >= GPUS) return NVML_INVALID_ARGUMENT;
  return *device = &devices[index], NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device) {
  for (unsigned i = 0; i < sizeof devices / sizeof *devices; i++) {
    if (strcmp(devices[i].uuid, uuid) == 0) return *device = &devices[i], NVML_SUCCESS;
  }
  return NVML_NOT_FOUND;
}

API nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned size) {
  if (device == NULL) return NVML_INVALID_ARGUMENT;
  return snprintf(uuid, size, "%s", device->uuid), NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned *index) {
  return *index = (unsigned)(device - devices), NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t mig, nvmlDevice_t *device) {
  if (mig->parent < 0) return NVML_INVALID_ARGUMENT;
  return *device = &devices[mig->parent], NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned *count) {
  return *count = device == devices ? MIGS : 0, NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned index, nvmlDevice_t *mig) {
  if (device != devices || index >= MIGS) return NVML_NOT_FOUND;
  return *mig = &devices[GPUS + index], NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetTopologyNearestGpus(nvmlDevice_t device, int level, unsigned *count, nvmlDevice_t *near) {
  unsigned room = *count;
  (void)level;
  *count = 1;
  if (room > 0) *near = device == devices ? &devices[1] : devices;
  return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, struct nvml_memory *memory) {
  *memory = (struct nvml_memory){.total = device->parent < 0 ? 80ull << 30 : 10ull << 30, .free = 5ull << 30};
  return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetAccountingStats_v2(nvmlDevice_t device, unsigned *stats) {
  (void)device;
  stats[2] = 77; /* percent */
  return NVML_SUCCESS;
}

API int nvmlOfTheFuture(void);
API int nvmlOfTheFuture(void) { return 4711; }
