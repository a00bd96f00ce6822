/* NVML as a library that the program is linked with. */
#include "nvml.h"

#define ROW(function, parameters) int function parameters;
NVML_FUNCTIONS(ROW)
#undef ROW
const char *nvmlErrorString(int code);

const char *nvml_open(struct nvml *nvml) {
  nvml->nvmlErrorString = nvmlErrorString;
#define ROW(function, parameters) nvml->function = function;
  NVML_FUNCTIONS(ROW)
#undef ROW
  return NULL;
}
