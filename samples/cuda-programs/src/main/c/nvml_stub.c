/* What smi-linked is linked with where there is no NVML: it fails each call with NVML_ERROR_LIBRARY_NOT_FOUND. */
#include "nvml.h"

const char *nvmlErrorString(int code);
const char *nvmlErrorString(int code) {
  (void)code;
  return "NVML Shared Library Not Found";
}

#pragma GCC diagnostic ignored "-Wunused-parameter"
#define ROW(function, parameters) \
  int function parameters;        \
  int function parameters { return 12; }
NVML_FUNCTIONS(ROW)
