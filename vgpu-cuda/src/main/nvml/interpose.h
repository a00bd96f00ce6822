/*
 * Shared declarations of libvgpu_nvml.so. It stands in for libnvidia-ml.so.1 in a program under a virtual GPU.
 * Functions about memory, processes, utilisation and the list of GPUs describe the virtual GPU; the rest goes to the
 * real library.
 *
 * It takes no part in the lease: no slot, no message, no thread. It maps the lease's two files read-only.
 */
#ifndef VGPU_INTERPOSE_H
#define VGPU_INTERPOSE_H

#include <stddef.h>
#include <stdint.h>

#include "nvml_abi.h"
#include "shm.h"

#define VGPU_EXPORT __attribute__((visibility("default")))
#define LOAD_ACQUIRE(p) __atomic_load_n(&(p), __ATOMIC_ACQUIRE)
#define LOAD(p) __atomic_load_n(&(p), __ATOMIC_RELAXED)

#define PASS(name)
#define DENY(name)
#define HIDE(name)
#define HANDLED(name, params) VGPU_EXPORT nvmlReturn_t name params;
#define TEXT(name, params) VGPU_EXPORT const char *name params;
#include "vgpu_nvml.def"
#undef HANDLED
#undef TEXT

/* ---- real.c: the real library ---- */
struct vgpu_nvml_real {
#define HANDLED(name, params) nvmlReturn_t(*name) params;
#define TEXT(name, params) const char *(*name)params;
#include "vgpu_nvml.def"
#undef HANDLED
#undef TEXT
};
#undef PASS
#undef DENY
#undef HIDE
extern struct vgpu_nvml_real vgpu_nvml_real __attribute__((visibility("hidden")));
#define REAL(name) vgpu_nvml_real.name

/* Loads it once: 0, or -1 if there is none. */
int vgpu__real_load(void);
VGPU_EXPORT const char *vgpu_nvml_version(void);

/* ---- lease.c: the seat's grants and the reports of the lease's processes ---- */
enum vgpu_nvml_mode {
  VGPU_NVML_UNKNOWN, /* not looked up yet */
  VGPU_NVML_LEASED,
  VGPU_NVML_OPEN,    /* no readable lease, and VGPU_FAILURE_MODE=open: all calls go to the real library */
  VGPU_NVML_REFUSED, /* no readable lease otherwise: nvmlInit fails */
};

enum { VGPU_MOST_PROCESSES = 128 };

struct vgpu_process {
  uint32_t pid, generation, slot;
  uint64_t bytes, gpu_ns;
};

/* A snapshot of the lease. */
struct vgpu_look {
  uint64_t now_ns;
  uint64_t quota, used; /* bytes */
  uint64_t gpu_ns;      /* of all its processes, including ended ones */
  unsigned share_permille;
  unsigned count;
  struct vgpu_process processes[VGPU_MOST_PROCESSES]; /* alive, with a context, in this pid namespace */
};

enum vgpu_nvml_mode vgpu__lease_find(void);
enum vgpu_nvml_mode vgpu__lease_mode(void);
/* What the lease holds on this device; NULL: on all. */
void vgpu__lease_look(nvmlDevice_t device, struct vgpu_look *look);
const char *vgpu__lease_devices(void); /* UUIDs of its GPUs, separated by commas; empty: unknown */

/* ---- visible.c: the lease's GPUs that CUDA_VISIBLE_DEVICES names, in its order ---- */
enum { VGPU_MOST_GPUS = 64 };
nvmlReturn_t vgpu__visible_read(void); /* in nvmlInit, after the real library's */
void vgpu__visible_forget(void);
int vgpu__is_visible(nvmlDevice_t device);
/* The device if it is visible, else NVML's error for a missing device. */
nvmlReturn_t vgpu__only_visible(nvmlReturn_t result, nvmlDevice_t *device);
/* NVML_SUCCESS for a valid handle. */
nvmlReturn_t vgpu__check_device(nvmlDevice_t device);

/* ---- usage.c: utilisation relative to the share ---- */
struct vgpu_usage {
  uint64_t time_us; /* of the reading, on the clock of NVML's samples */
  unsigned percent;
  unsigned count;
  struct {
    uint32_t pid;
    unsigned percent;
  } processes[VGPU_MOST_PROCESSES];
};
void vgpu__usage_begin(void);
void vgpu__usage_read(struct vgpu_usage *usage);

#endif
