/* Reads a GPU's memory through NVML. */
#ifndef VGPU_BENCH_NVML_READER_H
#define VGPU_BENCH_NVML_READER_H

#include <stdbool.h>

typedef struct nvmlDevice_st *nvmlDevice_t;

struct nvml_process {
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance;
  unsigned compute_instance;
};

struct nvml_memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

struct nvml {
  int (*init)(void);
  int (*handle)(unsigned, nvmlDevice_t *);
  int (*processes)(nvmlDevice_t, unsigned *, struct nvml_process *);
  int (*memory)(nvmlDevice_t, struct nvml_memory *);
  nvmlDevice_t device;
};

/* Loads NVML and takes the first device; ends the program on failure. */
void nvml_start(struct nvml *nvml);

/* Reads the processes that use the device; returns how many there are. */
unsigned nvml_read(const struct nvml *nvml, struct nvml_process *processes, unsigned room);

/* The used bytes of the device. */
unsigned long long nvml_used(const struct nvml *nvml);

/* False for a process that has ended, reaped or not. */
bool nvml_is_alive(unsigned pid);

#endif
