/* Reading a GPU's memory by NVML, as the watchers do. */
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

/* Loads it and takes the first device; ends the program if it cannot. */
void nvml_start(struct nvml *nvml);

/* The processes that use the device; how many. */
unsigned nvml_read(const struct nvml *nvml, struct nvml_process *processes, unsigned room);

/* Bytes of the device in use. */
unsigned long long nvml_used(const struct nvml *nvml);

/* False for a process that has ended, reaped or not. */
bool nvml_is_alive(unsigned pid);

#endif
