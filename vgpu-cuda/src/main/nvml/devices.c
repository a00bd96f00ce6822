/* Initialisation and shutdown, and the list of devices. */
#include <pthread.h>
#include <stddef.h>

#include "interpose.h"
#include "visible.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned users;

static int vgpu__leased(void) { return vgpu__lease_mode() == VGPU_NVML_LEASED; }

/* NVML_SUCCESS if the real library may be initialised. */
static nvmlReturn_t vgpu__ready(void) {
  if (vgpu__real_load() != 0) return NVML_LIBRARY_NOT_FOUND;
  return vgpu__lease_find() == VGPU_NVML_REFUSED ? NVML_NO_PERMISSION : NVML_SUCCESS;
}

/* After the real library's nvmlInit. */
static nvmlReturn_t vgpu__begun(nvmlReturn_t result) {
  if (result != NVML_SUCCESS || !vgpu__leased()) return result;
  pthread_mutex_lock(&lock);
  if (users == 0) result = vgpu__visible_read();
  if (result == NVML_SUCCESS) users++;
  pthread_mutex_unlock(&lock);
  if (result == NVML_SUCCESS) vgpu__usage_begin();
  else REAL(nvmlShutdown)();
  return result;
}

nvmlReturn_t nvmlInit(void) {
  nvmlReturn_t result = vgpu__ready();
  return result == NVML_SUCCESS ? vgpu__begun(REAL(nvmlInit)()) : result;
}

nvmlReturn_t nvmlInit_v2(void) {
  nvmlReturn_t result = vgpu__ready();
  return result == NVML_SUCCESS ? vgpu__begun(REAL(nvmlInit_v2)()) : result;
}

nvmlReturn_t nvmlInitWithFlags(unsigned flags) {
  nvmlReturn_t result = vgpu__ready();
  return result == NVML_SUCCESS ? vgpu__begun(REAL(nvmlInitWithFlags)(flags)) : result;
}

nvmlReturn_t nvmlShutdown(void) {
  nvmlReturn_t result = REAL(nvmlShutdown)();
  if (result != NVML_SUCCESS) return result;
  pthread_mutex_lock(&lock);
  if (users > 0 && --users == 0) vgpu__visible_forget();
  pthread_mutex_unlock(&lock);
  return result;
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count) {
  nvmlReturn_t result = REAL(nvmlDeviceGetCount_v2)(count);
  if (result == NVML_SUCCESS && vgpu__leased()) *count = vgpu__visible_count();
  return result;
}

nvmlReturn_t nvmlDeviceGetCount(unsigned *count) {
  nvmlReturn_t result = REAL(nvmlDeviceGetCount)(count);
  if (result == NVML_SUCCESS && vgpu__leased()) *count = vgpu__visible_count();
  return result;
}

static nvmlReturn_t vgpu__at(unsigned index, nvmlDevice_t *device) {
  unsigned count;
  nvmlReturn_t result = REAL(nvmlDeviceGetCount_v2)(&count); /* fails if NVML is not initialised */
  if (result != NVML_SUCCESS && result != NVML_FUNCTION_NOT_FOUND) return result;
  return device == NULL ? NVML_INVALID_ARGUMENT : vgpu__visible_at(index, device);
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device) {
  return vgpu__leased() ? vgpu__at(index, device) : REAL(nvmlDeviceGetHandleByIndex_v2)(index, device);
}

nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t *device) {
  return vgpu__leased() ? vgpu__at(index, device) : REAL(nvmlDeviceGetHandleByIndex)(index, device);
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device) {
  return vgpu__only_visible(REAL(nvmlDeviceGetHandleByUUID)(uuid, device), device);
}

nvmlReturn_t nvmlDeviceGetHandleByUUIDV(const void *uuid, nvmlDevice_t *device) {
  return vgpu__only_visible(REAL(nvmlDeviceGetHandleByUUIDV)(uuid, device), device);
}

nvmlReturn_t nvmlDeviceGetHandleBySerial(const char *serial, nvmlDevice_t *device) {
  return vgpu__only_visible(REAL(nvmlDeviceGetHandleBySerial)(serial, device), device);
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *id, nvmlDevice_t *device) {
  return vgpu__only_visible(REAL(nvmlDeviceGetHandleByPciBusId)(id, device), device);
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *id, nvmlDevice_t *device) {
  return vgpu__only_visible(REAL(nvmlDeviceGetHandleByPciBusId_v2)(id, device), device);
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned size) {
  return REAL(nvmlDeviceGetUUID)(device, uuid, size);
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned *index) {
  nvmlReturn_t result = REAL(nvmlDeviceGetIndex)(device, index);
  if (result != NVML_SUCCESS || !vgpu__leased()) return result;
  int visible = vgpu__visible_index(device);
  if (visible < 0) return NVML_INVALID_ARGUMENT;
  *index = (unsigned)visible;
  return result;
}

nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned *count) {
  nvmlReturn_t result = REAL(nvmlDeviceGetMaxMigDeviceCount)(device, count);
  if (result != NVML_SUCCESS || !vgpu__leased()) return result;
  int visible = vgpu__visible_mig_count(device);
  if (visible >= 0) *count = (unsigned)visible;
  return result;
}

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned index, nvmlDevice_t *mig) {
  if (!vgpu__leased() || mig == NULL || vgpu__visible_mig_count(device) < 0) {
    return REAL(nvmlDeviceGetMigDeviceHandleByIndex)(device, index, mig);
  }
  nvmlReturn_t result = vgpu__check_device(device);
  return result == NVML_SUCCESS ? vgpu__visible_mig(device, index, mig) : result;
}

nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t mig, nvmlDevice_t *device) {
  return vgpu__only_visible(REAL(nvmlDeviceGetDeviceHandleFromMigDeviceHandle)(mig, device), device);
}

/* Removes invisible devices from a list; returns how many are left. */
static unsigned vgpu__filter(nvmlDevice_t *devices, unsigned count) {
  unsigned left = 0;
  for (unsigned i = 0; i < count; i++) {
    if (vgpu__is_visible(devices[i])) devices[left++] = devices[i];
  }
  return left;
}

/* Hands out a list as NVML does: if the caller has no room at all, only the count is returned. */
static nvmlReturn_t vgpu__hand_out(nvmlDevice_t *from, unsigned found, unsigned *count, nvmlDevice_t *into) {
  unsigned room = *count, left = vgpu__filter(from, found);
  *count = left;
  if (room == 0) return NVML_SUCCESS;
  if (into == NULL) return NVML_INVALID_ARGUMENT;
  if (room < left) return NVML_INSUFFICIENT_SIZE;
  for (unsigned i = 0; i < left; i++) into[i] = from[i];
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTopologyNearestGpus(nvmlDevice_t device, int level, unsigned *count, nvmlDevice_t *devices) {
  nvmlDevice_t all[VGPU_MOST_GPUS];
  unsigned found = VGPU_MOST_GPUS;
  if (!vgpu__leased() || count == NULL) return REAL(nvmlDeviceGetTopologyNearestGpus)(device, level, count, devices);
  nvmlReturn_t result = REAL(nvmlDeviceGetTopologyNearestGpus)(device, level, &found, all);
  return result == NVML_SUCCESS ? vgpu__hand_out(all, found, count, devices) : result;
}

nvmlReturn_t nvmlSystemGetTopologyGpuSet(unsigned cpu, unsigned *count, nvmlDevice_t *devices) {
  nvmlDevice_t all[VGPU_MOST_GPUS];
  unsigned found = VGPU_MOST_GPUS;
  if (!vgpu__leased() || count == NULL) return REAL(nvmlSystemGetTopologyGpuSet)(cpu, count, devices);
  nvmlReturn_t result = REAL(nvmlSystemGetTopologyGpuSet)(cpu, &found, all);
  return result == NVML_SUCCESS ? vgpu__hand_out(all, found, count, devices) : result;
}

nvmlReturn_t nvmlUnitGetDevices(void *unit, unsigned *count, nvmlDevice_t *devices) {
  nvmlDevice_t all[VGPU_MOST_GPUS];
  unsigned found = VGPU_MOST_GPUS;
  if (!vgpu__leased() || count == NULL) return REAL(nvmlUnitGetDevices)(unit, count, devices);
  nvmlReturn_t result = REAL(nvmlUnitGetDevices)(unit, &found, all);
  return result == NVML_SUCCESS ? vgpu__hand_out(all, found, count, devices) : result;
}
