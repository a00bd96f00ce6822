/*
 * The GPUs that this process sees: those of its lease that CUDA_VISIBLE_DEVICES names, in its order, as CUDA numbers
 * them under the hook. If the seat does not tell the lease's GPUs: those that the variable names.
 */
#include <ctype.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "interpose.h"
#include "../c/system/shown.h"
#include "visible.h"

struct entry {
  nvmlDevice_t gpu;
  nvmlDevice_t mig; /* NULL: the whole GPU */
  char uuid[NVML_UUID_SIZE];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry entries[VGPU_MOST_GPUS];
static unsigned entry_count;
static nvmlDevice_t gpus[VGPU_MOST_GPUS]; /* each once */
static unsigned gpu_count;

static nvmlReturn_t vgpu__real_count(unsigned *count) {
  nvmlReturn_t result = REAL(nvmlDeviceGetCount_v2)(count);
  return result == NVML_FUNCTION_NOT_FOUND ? REAL(nvmlDeviceGetCount)(count) : result;
}

static nvmlReturn_t vgpu__real_at(unsigned index, nvmlDevice_t *device) {
  nvmlReturn_t result = REAL(nvmlDeviceGetHandleByIndex_v2)(index, device);
  return result == NVML_FUNCTION_NOT_FOUND ? REAL(nvmlDeviceGetHandleByIndex)(index, device) : result;
}

static int vgpu__add(nvmlDevice_t device) {
  struct entry *entry = &entries[entry_count];
  nvmlDevice_t parent = NULL;
  if (entry_count == VGPU_MOST_GPUS || REAL(nvmlDeviceGetUUID)(device, entry->uuid, NVML_UUID_SIZE) != NVML_SUCCESS) {
    return -1;
  }
  for (unsigned i = 0; i < entry_count; i++) {
    if (strcmp(entries[i].uuid, entry->uuid) == 0) return -1; /* as in CUDA, a duplicate ends the list */
  }
  int is_mig = strncmp(entry->uuid, "MIG-", 4) == 0;
  if (is_mig && REAL(nvmlDeviceGetDeviceHandleFromMigDeviceHandle)(device, &parent) != NVML_SUCCESS) return -1;
  entry->gpu = is_mig ? parent : device;
  entry->mig = is_mig ? device : NULL;
  entry_count++;
  for (unsigned i = 0; i < gpu_count; i++) {
    if (gpus[i] == entry->gpu) return 0;
  }
  gpus[gpu_count++] = entry->gpu;
  return 0;
}

/* By UUID, or a prefix of one, as in CUDA. */
static int vgpu__add_named(const char *name) {
  nvmlDevice_t device = NULL, found = NULL;
  unsigned count = 0, matches = 0;
  if (REAL(nvmlDeviceGetHandleByUUID)(name, &device) == NVML_SUCCESS) return vgpu__add(device);
  if (strncmp(name, "GPU-", 4) != 0 || vgpu__real_count(&count) != NVML_SUCCESS) return -1;
  for (unsigned i = 0; i < count; i++) {
    char uuid[NVML_UUID_SIZE] = "";
    if (vgpu__real_at(i, &device) != NVML_SUCCESS) continue;
    if (REAL(nvmlDeviceGetUUID)(device, uuid, sizeof uuid) != NVML_SUCCESS) continue;
    if (strncasecmp(uuid, name, strlen(name)) == 0) {
      found = device;
      matches++;
    }
  }
  return matches == 1 ? vgpu__add(found) : -1;
}

static int vgpu__add_numbered(const char *number) {
  nvmlDevice_t device;
  char *end;
  unsigned long index = strtoul(number, &end, 10);
  if (*end != '\0' || index >= VGPU_MOST_GPUS) return -1;
  return vgpu__real_at((unsigned)index, &device) == NVML_SUCCESS ? vgpu__add(device) : -1;
}

/* As in CUDA, entries after the first invalid one are not shown. */
static void vgpu__add_list(const char *list) {
  char name[NVML_UUID_SIZE];
  for (const char *at = list; *at != '\0';) {
    while (isspace((unsigned char)*at)) at++;
    size_t length = strcspn(at, ",");
    if (length == 0 || length >= sizeof name) return;
    memcpy(name, at, length);
    while (length > 0 && isspace((unsigned char)name[length - 1])) length--;
    name[length] = '\0';
    if ((isdigit((unsigned char)name[0]) ? vgpu__add_numbered(name) : vgpu__add_named(name)) != 0) return;
    at += strcspn(at, ",");
    if (*at == ',') at++;
  }
}

nvmlReturn_t vgpu__visible_read(void) {
  nvmlReturn_t result = NVML_SUCCESS;
  const char *list = getenv("CUDA_VISIBLE_DEVICES"), *ours = vgpu__lease_devices();
  char shown[VGPU_SHOWN_SIZE];
  if (ours[0] != '\0') {
    vgpu__shown(ours, list, shown, sizeof shown);
    list = shown;
  }
  pthread_mutex_lock(&lock);
  entry_count = gpu_count = 0;
  if (list != NULL) {
    vgpu__add_list(list);
  } else {
    unsigned count = 0;
    nvmlDevice_t device;
    result = vgpu__real_count(&count);
    for (unsigned i = 0; result == NVML_SUCCESS && i < count; i++) {
      if (vgpu__real_at(i, &device) == NVML_SUCCESS) vgpu__add(device);
    }
  }
  pthread_mutex_unlock(&lock);
  return result;
}

void vgpu__visible_forget(void) {
  pthread_mutex_lock(&lock);
  entry_count = gpu_count = 0;
  pthread_mutex_unlock(&lock);
}

unsigned vgpu__visible_count(void) {
  pthread_mutex_lock(&lock);
  unsigned count = gpu_count;
  pthread_mutex_unlock(&lock);
  return count;
}

nvmlReturn_t vgpu__visible_at(unsigned index, nvmlDevice_t *device) {
  nvmlReturn_t result = NVML_INVALID_ARGUMENT;
  pthread_mutex_lock(&lock);
  if (index < gpu_count) {
    *device = gpus[index];
    result = NVML_SUCCESS;
  }
  pthread_mutex_unlock(&lock);
  return result;
}

/* A MIG device's index counts within its GPU. */
static int vgpu__index_within(const struct entry *entry) {
  int index = 0;
  for (const struct entry *at = entries; at < entry; at++) index += at->gpu == entry->gpu && at->mig != NULL;
  return index;
}

/* -1 if it is not visible. */
int vgpu__visible_index(nvmlDevice_t device) {
  char uuid[NVML_UUID_SIZE] = "";
  int index = -1;
  nvmlReturn_t named = REAL(nvmlDeviceGetUUID)(device, uuid, sizeof uuid);
  pthread_mutex_lock(&lock);
  for (unsigned i = 0; i < gpu_count && index < 0; i++) {
    if (gpus[i] == device) index = (int)i;
  }
  for (unsigned i = 0; i < entry_count && index < 0 && named == NVML_SUCCESS; i++) {
    if (strcmp(entries[i].uuid, uuid) == 0) index = vgpu__index_within(&entries[i]);
  }
  pthread_mutex_unlock(&lock);
  return index;
}

int vgpu__is_visible(nvmlDevice_t device) { return vgpu__visible_index(device) >= 0; }

int vgpu__visible_mig_count(nvmlDevice_t gpu) {
  int count = 0, whole = 0;
  pthread_mutex_lock(&lock);
  for (unsigned i = 0; i < entry_count; i++) {
    if (entries[i].gpu != gpu) continue;
    if (entries[i].mig == NULL) whole = 1;
    else count++;
  }
  pthread_mutex_unlock(&lock);
  return whole ? -1 : count;
}

nvmlReturn_t vgpu__visible_mig(nvmlDevice_t gpu, unsigned index, nvmlDevice_t *mig) {
  nvmlReturn_t result = NVML_NOT_FOUND;
  pthread_mutex_lock(&lock);
  for (unsigned i = 0; i < entry_count && result != NVML_SUCCESS; i++) {
    if (entries[i].gpu == gpu && entries[i].mig != NULL && index-- == 0) {
      *mig = entries[i].mig;
      result = NVML_SUCCESS;
    }
  }
  pthread_mutex_unlock(&lock);
  return result;
}

nvmlReturn_t vgpu__only_visible(nvmlReturn_t result, nvmlDevice_t *device) {
  if (result != NVML_SUCCESS || vgpu__lease_mode() != VGPU_NVML_LEASED || vgpu__is_visible(*device)) return result;
  *device = NULL;
  return NVML_NOT_FOUND;
}

nvmlReturn_t vgpu__check_device(nvmlDevice_t device) {
  char uuid[NVML_UUID_SIZE];
  return REAL(nvmlDeviceGetUUID)(device, uuid, sizeof uuid);
}
