/* The part of NVML's binary interface that the stand-in uses, declared here. */
#ifndef VGPU_NVML_ABI_H
#define VGPU_NVML_ABI_H

typedef int nvmlReturn_t;
typedef struct nvml_device *nvmlDevice_t; /* the real library's own; opaque */

enum {
  NVML_SUCCESS = 0,
  NVML_UNINITIALIZED = 1,
  NVML_INVALID_ARGUMENT = 2,
  NVML_NOT_SUPPORTED = 3,
  NVML_NO_PERMISSION = 4,
  NVML_NOT_FOUND = 6,
  NVML_INSUFFICIENT_SIZE = 7,
  NVML_LIBRARY_NOT_FOUND = 12,
  NVML_FUNCTION_NOT_FOUND = 13,
  NVML_VERSION_MISMATCH = 25,
  NVML_UNKNOWN = 999,
  NVML_UUID_SIZE = 96,
  NVML_NO_INSTANCE = -1, /* as unsigned, an id of MIG instances: none */
  NVML_GPU_SAMPLES = 1,
  NVML_MEMORY_SAMPLES = 2,
  NVML_ENCODER_SAMPLES = 3,
  NVML_DECODER_SAMPLES = 4,
  NVML_JPEG_SAMPLES = 8,
  NVML_OPTICAL_FLOW_SAMPLES = 9,
  NVML_MODE_COMPUTE = 0,
  NVML_MODE_ALL = 3,
};

/* The version field of a structure: its size, with the version number in the upper bits. */
#define NVML_VERSION(type, number) ((unsigned)sizeof(type) | (unsigned)(number) << 24)

struct nvml_memory {
  unsigned long long total, free, used;
};

struct nvml_memory_v2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
};

struct nvml_utilization {
  unsigned gpu, memory; /* percent */
};

struct nvml_process_v1 {
  unsigned pid;
  unsigned long long bytes;
};

struct nvml_process_v2 {
  unsigned pid;
  unsigned long long bytes;
  unsigned gpu_instance, compute_instance;
};

struct nvml_process_detail {
  unsigned pid;
  unsigned long long bytes;
  unsigned gpu_instance, compute_instance;
  unsigned long long protected_bytes;
};

struct nvml_process_details {
  unsigned version, mode, count;
  struct nvml_process_detail *items;
};

struct nvml_process_sample {
  unsigned pid;
  unsigned long long time_us;
  unsigned sm, memory, encoder, decoder;
};

struct nvml_process_usage {
  unsigned long long time_us;
  unsigned pid, sm, memory, encoder, decoder, jpeg, optical_flow;
};

struct nvml_process_usages {
  unsigned version, count;
  unsigned long long since_us;
  struct nvml_process_usage *items;
};

struct nvml_gpm_support {
  unsigned version, supported;
};

struct nvml_sample {
  unsigned long long time_us;
  union {
    unsigned number;
    double widest;
  } value;
};

#endif
