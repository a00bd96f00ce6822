/*
 * What the files of libvgpu_nvml.so share. It stands in for libnvidia-ml.so.1 in a program under a virtual GPU: what
 * tells of memory, processes, utilisation and which GPUs there are speaks of the virtual GPU, the rest goes to the
 * real library.
 *
 * It takes no part in the lease: no slot, no message, no thread. It reads the lease's two pages, mapped read-only.
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
extern struct vgpu_nvml_real vgpu_nvml_real __attribute__((visibility("hidden")));
#define REAL(name) vgpu_nvml_real.name

/* Loads it once: 0, or -1 when there is none. */
int vgpu__real_load(void);
VGPU_EXPORT const char *vgpu_nvml_version(void);

/* ---- lease.c: what the seat grants and what the lease's processes report ---- */
enum vgpu_nvml_mode {
  VGPU_NVML_UNKNOWN, /* not looked for yet */
  VGPU_NVML_LEASED,
  VGPU_NVML_OPEN,    /* no lease that can be read, and VGPU_FAILURE_MODE=open: everything is the real library's */
  VGPU_NVML_REFUSED, /* the same without that: nvmlInit fails */
};

enum { VGPU_MOST_PROCESSES = 128 };

struct vgpu_process {
  uint32_t pid, generation, slot;
  uint64_t bytes, gpu_ns;
};

/* One look at the lease. */
struct vgpu_look {
  uint64_t now_ns;
  uint64_t quota, used; /* bytes */
  uint64_t gpu_ns;      /* of all its processes, also those that have ended */
  unsigned share_permille;
  unsigned count;
  struct vgpu_process processes[VGPU_MOST_PROCESSES]; /* with a context, alive, in this process's pid namespace */
};

enum vgpu_nvml_mode vgpu__lease_find(void);
enum vgpu_nvml_mode vgpu__lease_mode(void);
void vgpu__lease_look(struct vgpu_look *look);
const char *vgpu__lease_devices(void); /* the UUIDs of its GPUs with commas between them; empty: not told */

/* ---- visible.c: those of the lease's GPUs that CUDA_VISIBLE_DEVICES names, in its order ---- */
enum { VGPU_MOST_GPUS = 64 };
nvmlReturn_t vgpu__visible_read(void); /* by nvmlInit; the real library is initialised */
void vgpu__visible_forget(void);
int vgpu__is_visible(nvmlDevice_t device);
/* The device if it is visible, else the error that NVML gives for one that is not there. */
nvmlReturn_t vgpu__only_visible(nvmlReturn_t result, nvmlDevice_t *device);
/* NVML_SUCCESS for a handle that may be asked about. */
nvmlReturn_t vgpu__check_device(nvmlDevice_t device);

/* ---- usage.c: utilisation relative to the share ---- */
struct vgpu_usage {
  uint64_t time_us; /* of the reading; on the clock that NVML's samples have */
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
