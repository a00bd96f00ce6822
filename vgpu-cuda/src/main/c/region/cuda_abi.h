/*
 * The few CUDA driver types and codes that the hook needs, declared here so that it builds without the toolkit.
 * src/test/c/abi_check.c compares each with the real header where that is installed.
 */
#ifndef VGPU_CUDA_ABI_H
#define VGPU_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

/* Written as in cuda.h, so that one file may include both. */
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUfunc_st *CUfunction;
typedef struct CUarray_st *CUarray;
typedef struct CUmipmappedArray_st *CUmipmappedArray;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUmemPoolHandle_st *CUmemoryPool;

/* CUresult, an enum with the size of int. */
typedef int abi_result;

enum {
  ABI_SUCCESS = 0,
  ABI_INVALID_VALUE = 1,
  ABI_OUT_OF_MEMORY = 2,
  ABI_NOT_INITIALIZED = 3,
  ABI_NO_DEVICE = 100,
  ABI_INVALID_CONTEXT = 201,
  ABI_NOT_FOUND = 500,
  ABI_NOT_READY = 600,
  ABI_CONTEXT_IS_DESTROYED = 709,
  ABI_NOT_PERMITTED = 800,
  ABI_NOT_SUPPORTED = 801,
  ABI_SYSTEM_NOT_READY = 802,

  ABI_CAPTURE_NONE = 0,
  ABI_CAPTURE_MODE_RELAXED = 2,
  ABI_PROC_PER_THREAD_STREAM = 2,
  ABI_PROC_FOUND = 0,
  ABI_LOCATION_NONE = 0,
  ABI_LOCATION_DEVICE = 1,
  ABI_LOCATION_HOST = 2,
  ABI_LOCATION_HOST_NUMA = 3,
  ABI_LOCATION_HOST_NUMA_CURRENT = 4,
  ABI_ALLOCATION_MANAGED = 2,
  ABI_ARRAY3D_LAYERED = 0x01,
  ABI_ARRAY3D_SPARSE = 0x40,
  ABI_ARRAY3D_DEFERRED = 0x80,
};

#define ABI_STREAM_LEGACY ((CUstream)(uintptr_t)1)
#define ABI_STREAM_PER_THREAD ((CUstream)(uintptr_t)2)

struct abi_array_v1 {
  unsigned width, height;
  int format;
  unsigned channels;
};

struct abi_array {
  size_t width, height;
  int format;
  unsigned channels;
};

struct abi_array3d_v1 {
  unsigned width, height, depth;
  int format;
  unsigned channels, flags;
};

struct abi_array3d {
  size_t width, height, depth;
  int format;
  unsigned channels, flags;
};

struct abi_location {
  int type, id;
};

/* Any other type, also one that is newer than this list, is taken for memory of a GPU. */
static inline int abi_is_on_host(const struct abi_location *location) {
  return location->type >= ABI_LOCATION_HOST && location->type <= ABI_LOCATION_HOST_NUMA_CURRENT;
}

/* The GPU. For a locality domain (CUDA 13.4), the first byte of the identifier names it. */
static inline CUdevice abi_device_of(const struct abi_location *location) {
  return location->type == ABI_LOCATION_DEVICE ? location->id : location->id & 0xff;
}

/* CUmemAllocationProp, up to the last field that we read. */
struct abi_mem_prop {
  int type, handle_types;
  struct abi_location location;
};

/* CUmemPoolProps, up to the last field that we read. */
struct abi_pool_props {
  int type, handle_types;
  struct abi_location location;
};

/* CUDA_MEM_ALLOC_NODE_PARAMS. */
struct abi_mem_alloc_node {
  struct abi_pool_props pool;
  char unread[72];
  const void *access;
  size_t access_count, bytes;
  CUdeviceptr address;
  char later[64]; /* room for fields of a newer driver */
};

/* CUlaunchConfig, up to the last field that we read. */
struct abi_launch_config {
  unsigned gx, gy, gz, bx, by, bz, shared_bytes;
  CUstream stream;
};

/* CUDA_GRAPH_INSTANTIATE_PARAMS. */
enum { ABI_INSTANTIATE_AUTO_FREE = 1, ABI_INSTANTIATE_UPLOAD = 2, ABI_INSTANTIATE_ERROR = 1 };
struct abi_instantiate {
  uint64_t flags;
  CUstream stream; /* to upload into */
  void *error_node;
  int result;
};

/* CUmemcpy3DOperand, up to the last field that we read. */
enum { ABI_OPERAND_POINTER = 1 };
struct abi_operand {
  int type;
  CUdeviceptr pointer;
  char unread[24];
};

/* CUDA_MEMCPY3D_BATCH_OP. */
struct abi_batch_3d {
  struct abi_operand source, target;
  size_t extent[3];
  int order;
  unsigned flags;
};

/* CUDA_LAUNCH_PARAMS. */
struct abi_launch_params {
  CUfunction function;
  unsigned gx, gy, gz, bx, by, bz, shared_bytes;
  CUstream stream;
  void **params;
};

#endif
