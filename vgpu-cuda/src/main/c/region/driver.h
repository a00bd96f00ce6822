/* The real driver: its location, and a typed pointer to each of its functions that the hook calls. */
#ifndef VGPU_DRIVER_H
#define VGPU_DRIVER_H

#include "cuda_abi.h"

#define VGPU_EXPORT __attribute__((visibility("default")))

/* Passed-through functions that the hook also calls itself. */
#define VGPU_OWN_CALLS(OWN)                                                        \
  OWN(cuEventCreate, (CUevent * event, unsigned flags))                            \
  OWN(cuEventRecord, (CUevent event, CUstream stream))                             \
  OWN(cuEventDestroy_v2, (CUevent event))                                          \
  OWN(cuEventElapsedTime, (float *milliseconds, CUevent start, CUevent end))       \
  OWN(cuPointerGetAttribute, (void *value, int attribute, CUdeviceptr pointer))    \
  OWN(cuCtxGetCurrent, (CUcontext * context))                                      \
  OWN(cuCtxGetDevice, (CUdevice * device))                                         \
  OWN(cuCtxGetLimit, (size_t * value, int limit))                                  \
  OWN(cuCtxFromGreenCtx, (CUcontext * context, void *green))                       \
  OWN(cuDeviceGet, (CUdevice * device, int ordinal))                               \
  OWN(cuDeviceGetCount, (int *count))                                              \
  OWN(cuDevicePrimaryCtxGetState, (CUdevice device, unsigned *flags, int *active)) \
  OWN(cuDeviceGetUuid_v2, (unsigned char *uuid, CUdevice device))                  \
  OWN(cuStreamIsCapturing, (CUstream stream, int *status))                         \
  OWN(cuStreamGetCtx, (CUstream stream, CUcontext * context))                      \
  OWN(cuStreamGetFlags, (CUstream stream, unsigned *flags))                        \
  OWN(cuThreadExchangeStreamCaptureMode, (int *mode))                              \
  OWN(cuDeviceGetMemPool, (CUmemoryPool * pool, CUdevice device))                  \
  OWN(cuDeviceGetDefaultMemPool, (CUmemoryPool * pool, CUdevice device))           \
  OWN(cuMemPoolGetAttribute, (CUmemoryPool pool, int attribute, void *value))      \
  OWN(cuDeviceGetGraphMemAttribute, (CUdevice device, int attribute, void *value)) \
  OWN(cuGraphGetNodes, (void *graph, void **nodes, size_t *count))                 \
  OWN(cuGraphNodeGetType, (void *node, int *type))                                 \
  OWN(cuGraphChildGraphNodeGetGraph, (void *node, void **graph))                   \
  OWN(cuGraphMemAllocNodeGetParams, (void *node, struct abi_mem_alloc_node *params))

#define PASS(name, class, since)
#define HANDLED(name, class, symbol, since, thread, params) VGPU_EXPORT abi_result name params;
#define SYNC_WORK(name, symbol, since, thread, params, args) VGPU_EXPORT abi_result name params;
#define ASYNC_WORK(name, symbol, since, thread, params, args) VGPU_EXPORT abi_result name params;
#include "vgpu_hooks.def"
#undef HANDLED
#undef SYNC_WORK
#undef ASYNC_WORK

struct vgpu_driver {
#define HANDLED(name, class, symbol, since, thread, params) abi_result(*name) params;
#define SYNC_WORK(name, symbol, since, thread, params, args) abi_result(*name) params;
#define ASYNC_WORK(name, symbol, since, thread, params, args) abi_result(*name) params;
#define OWN(name, params) abi_result(*name) params;
#include "vgpu_hooks.def"
  VGPU_OWN_CALLS(OWN)
#undef OWN
#undef HANDLED
#undef SYNC_WORK
#undef ASYNC_WORK
#undef PASS
};

/* No pointer in it is ever NULL: a function that the driver lacks returns CUDA_ERROR_NOT_SUPPORTED. */
extern struct vgpu_driver vgpu_driver __attribute__((visibility("hidden")));
#define REAL(name) vgpu_driver.name

/* Loads the driver once; 0, or -1 with the reason logged. */
int vgpu__driver_load(void);

/* In the child of a fork: a load that another thread had begun begins again. */
void vgpu__driver_forget(void);
/* Whether this path refers to the real driver's file, whatever its name. */
int vgpu__driver_is(const char *path);
int vgpu__same_file(const char *a, const char *b);
/* The driver's dlopen handle; NULL before it is loaded. */
void *vgpu__driver_handle(void);
/* A function of the real driver by its exported name, or NULL. */
void *vgpu__driver_symbol(const char *name);

#endif
