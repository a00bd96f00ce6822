/*
 * The accounts of a lease on several GPUs: one for each, in the order of grant_more.devices. Memory is charged to the
 * account of the GPU that it lies on.
 */
#include <string.h>

#include "../system/shown.h"
#include "region.h"

const struct vgpu_spot vgpu__everywhere;

/* The lease's GPUs; "": the seat does not name them. */
static const char *vgpu__devices_of(const struct vgpu_tenant *tenant) {
  const struct shm_grant_more *more = (const void *)((const char *)tenant->seat + SHM_GRANT_MORE_OFFSET);
  const char *devices = (const char *)more->devices;
  return memchr(devices, 0, sizeof more->devices) == NULL ? "" : devices;
}

void vgpu__gpus_join(struct vgpu_tenant *tenant) {
  const struct shm_grant_more *more = (const void *)((const char *)tenant->seat + SHM_GRANT_MORE_OFFSET);
  uint32_t told = LOAD(more->memory_gpus);
  memset(tenant->gpu_of, 0, sizeof tenant->gpu_of);
  tenant->gpus = told > VGPU_GPUS ? (uint32_t)VGPU_GPUS : told;
}

int vgpu__gpu_find(struct vgpu_tenant *tenant, CUdevice device) {
  unsigned char uuid[16] = {0};
  if (device < 0 || device >= VGPU_DEVICES || LOAD(tenant->mode) != VGPU_ATTACHED) return VGPU_NO_GPU;
  uint8_t known = LOAD(tenant->gpu_of[device]);
  if (LIKELY(known != 0)) return (int)known - 1;
  if (REAL(cuDeviceGetUuid_v2)(uuid, device) != ABI_SUCCESS) return VGPU_NO_GPU;
  int found = vgpu__shown_index(vgpu__devices_of(tenant), uuid);
  if (found < 0 || found >= (int)tenant->gpus) return VGPU_NO_GPU;
  STORE(tenant->gpu_of[device], (uint8_t)(found + 1));
  return found;
}

int vgpu__gpu_find_current(struct vgpu_tenant *tenant) {
  CUdevice device;
  /* Without a context the driver refuses the call. */
  return REAL(cuCtxGetDevice)(&device) == ABI_SUCCESS ? vgpu__gpu_find(tenant, device) : 0;
}

CUdevice vgpu__pool_device(CUmemoryPool handle) {
  int count = 0;
  if (REAL(cuDeviceGetCount)(&count) != ABI_SUCCESS) return -1;
  for (int i = 0; i < count; i++) {
    CUdevice device = i;
    CUmemoryPool own = NULL, current = NULL;
    if (REAL(cuDeviceGet)(&device, i) != ABI_SUCCESS) continue;
    REAL(cuDeviceGetDefaultMemPool)(&own, device);
    REAL(cuDeviceGetMemPool)(&current, device);
    if (own == handle || current == handle) return device;
  }
  return -1;
}

static int vgpu__any_has_several(void) {
  const struct vgpu_tenant *tenant;
  for (unsigned i = 0; (tenant = vgpu__tenant_next(&i)) != NULL; i++) {
    if (tenant->gpus > 1) return 1;
  }
  return 0;
}

static int vgpu__name_of(const struct vgpu_tenant *tenant, int gpu, char into[VGPU_UUID]) {
  return vgpu__shown_at(vgpu__devices_of(tenant), (unsigned)gpu, into, VGPU_UUID);
}

void vgpu__spot_of(const struct vgpu_tenant *tenant, int gpu, struct vgpu_spot *spot) {
  spot->uuid[0] = '\0';
  if (vgpu__any_has_several()) vgpu__name_of(tenant, gpu, spot->uuid);
}

int vgpu__spot_has(const struct vgpu_spot *spot, const struct vgpu_tenant *tenant, int gpu) {
  char name[VGPU_UUID];
  return spot->uuid[0] == '\0' || (vgpu__name_of(tenant, gpu, name) && strcmp(name, spot->uuid) == 0);
}

/* Whether an account before this one is on the same GPU. */
static int vgpu__was_before(const struct vgpu_spot *spot, unsigned index) {
  for (unsigned i = 0; i < index; i++) {
    const struct vgpu_tenant *tenant = vgpu__tenants[i / VGPU_GPUS];
    int gpu = (int)(i % VGPU_GPUS);
    if (LOAD_ACQUIRE(tenant->mode) == VGPU_ATTACHED && gpu < vgpu__gpus(tenant) && vgpu__spot_has(spot, tenant, gpu))
      return 1;
  }
  return 0;
}

int vgpu__spot_next(unsigned *index, struct vgpu_spot *spot) {
  *spot = vgpu__everywhere;
  if (!vgpu__any_has_several()) return *index == 0;
  for (; *index < LOAD_ACQUIRE(vgpu__tenants_used) * VGPU_GPUS; ++*index) {
    const struct vgpu_tenant *tenant = vgpu__tenants[*index / VGPU_GPUS];
    int gpu = (int)(*index % VGPU_GPUS);
    if (LOAD_ACQUIRE(tenant->mode) != VGPU_ATTACHED || gpu >= vgpu__gpus(tenant)) continue;
    if (vgpu__name_of(tenant, gpu, spot->uuid) && !vgpu__was_before(spot, *index)) return 1;
  }
  return 0;
}
