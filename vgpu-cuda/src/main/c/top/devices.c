/*
 * A process sees its leases' GPUs and no other. The driver reads CUDA_VISIBLE_DEVICES in its cuInit, and the program,
 * or the script that started it, may have changed it. So the variable is corrected just before, and the driver's GPUs
 * are checked just after.
 */
#include <stdlib.h>
#include <string.h>

#include "top.h"

/* The GPUs of all leases of this process; empty: unknown. */
static void vgpu__our_devices(char *into, size_t size) {
  const struct vgpu_tenant *tenant;
  into[0] = '\0';
  for (unsigned i = 0; (tenant = vgpu__tenant_next(&i)) != NULL; i++) {
    const struct shm_grant_more *more = (const void *)((const char *)tenant->seat + SHM_GRANT_MORE_OFFSET);
    const char *devices = (const char *)more->devices;
    size_t length = strnlen(devices, sizeof more->devices), used = strlen(into);
    if (length == 0 || length == sizeof more->devices || used + length + 2 > size) {
      into[0] = '\0'; /* an older seat does not tell, so nothing can be checked */
      return;
    }
    if (used > 0) into[used++] = ',';
    memcpy(into + used, devices, length + 1);
  }
}

void vgpu__devices_show(void) {
  char ours[VGPU_SHOWN_SIZE], shown[VGPU_SHOWN_SIZE];
  vgpu__our_devices(ours, sizeof ours);
  if (ours[0] == '\0') return;
  vgpu__lock(&vgpu__attach_lock);
  const char *wish = getenv("CUDA_VISIBLE_DEVICES");
  if (vgpu__shown(ours, wish, shown, sizeof shown)) {
    vgpu__log("CUDA_VISIBLE_DEVICES=%s names GPUs outside this lease (%s); shown: %s", wish, ours,
              shown[0] == '\0' ? "none" : shown);
  }
  if (wish == NULL || strcmp(wish, shown) != 0) setenv("CUDA_VISIBLE_DEVICES", shown, 1);
  vgpu__unlock(&vgpu__attach_lock);
}

int vgpu__devices_are_ours(void) {
  char ours[VGPU_SHOWN_SIZE];
  int count = 0;
  vgpu__our_devices(ours, sizeof ours);
  if (ours[0] == '\0' || REAL(cuDeviceGetCount)(&count) != ABI_SUCCESS) return 1;
  for (int i = 0; i < count; i++) {
    unsigned char uuid[16] = {0};
    CUdevice device = i;
    if (REAL(cuDeviceGet)(&device, i) != ABI_SUCCESS) continue;
    /* The older form returns the UUID of a MIG device's GPU, but a lease names the MIG device. */
    if (REAL(cuDeviceGetUuid_v2)(uuid, device) == ABI_SUCCESS && vgpu__shown_index(ours, uuid) < 0) {
      vgpu__log("the driver shows a GPU outside this lease");
      return 0;
    }
  }
  return 1;
}
