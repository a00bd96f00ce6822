/* The driver functions that the tests call, as in a program linked with libcuda.so.1. */
#ifndef VGPU_CUDA_CALLS_H
#define VGPU_CUDA_CALLS_H

#include "../../main/c/region/driver.h"

abi_result cuDeviceGet(CUdevice *device, int ordinal);
abi_result cuDriverGetVersion(int *version);
abi_result cuStreamCreate(CUstream *stream, unsigned flags);
abi_result cuModuleGetFunction(CUfunction *function, void *module, const char *name);
abi_result cuEventCreate(CUevent *event, unsigned flags);
abi_result cuEventRecord(CUevent event, CUstream stream);
abi_result cuEventDestroy_v2(CUevent event);
abi_result cuCtxGetCurrent(CUcontext *context);
abi_result cuProfilerStart(void);
abi_result cuEventElapsedTime_v2(float *milliseconds, CUevent start, CUevent end);
abi_result cuStreamEndCapture(CUstream stream, void **graph);
abi_result cuStreamBeginCaptureToCig(CUstream stream, void *params);
abi_result cuStreamBeginRecaptureToGraph(CUstream stream, int mode, void *graph, void *callback, void *data);
abi_result cuStreamEndCaptureToCig(CUstream stream);

static inline abi_result launch(CUfunction function, CUstream stream) {
  return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
}

#endif
