/* A libcuda.so.1 to link with, so that no driver is needed to build. Never run. */
#include "driver.h"

#define STUB(name, suffix, per_thread, parameters) \
  extern CUresult name##suffix parameters;         \
  CUresult name##suffix parameters { return CUDA_ERROR_NOT_SUPPORTED; }
#pragma GCC diagnostic ignored "-Wunused-parameter"
DRIVER_FUNCTIONS(STUB)
