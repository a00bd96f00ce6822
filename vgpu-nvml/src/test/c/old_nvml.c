/*
 * An NVML of the 450 series: only the functions of then, in front of the library REAL. For tests of what is
 * done where newer functions are missing.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

#define FUNCTION(name)                                                                                       \
  __attribute__((visibility("default"))) int64_t name(int64_t a, int64_t b, int64_t c, int64_t d, int64_t e, \
                                                      int64_t f);                                            \
  int64_t name(int64_t a, int64_t b, int64_t c, int64_t d, int64_t e, int64_t f) {                           \
    int64_t (*call)(int64_t, int64_t, int64_t, int64_t, int64_t, int64_t) = NULL;                            \
    void *library = dlopen(REAL, RTLD_NOW | RTLD_LOCAL);                                                     \
    void *found = library == NULL ? NULL : dlsym(library, #name);                                            \
    memcpy(&call, &found, sizeof call);                                                                      \
    return call == NULL ? 999 : call(a, b, c, d, e, f);                                                      \
  }

FUNCTION(nvmlInit_v2)
FUNCTION(nvmlShutdown)
FUNCTION(nvmlErrorString)
FUNCTION(nvmlSystemGetDriverVersion)
FUNCTION(nvmlSystemGetCudaDriverVersion)
FUNCTION(nvmlDeviceGetCount_v2)
FUNCTION(nvmlDeviceGetHandleByIndex_v2)
FUNCTION(nvmlDeviceGetHandleByUUID)
FUNCTION(nvmlDeviceGetHandleByPciBusId_v2)
FUNCTION(nvmlDeviceGetUUID)
FUNCTION(nvmlDeviceGetName)
FUNCTION(nvmlDeviceGetIndex)
FUNCTION(nvmlDeviceGetMemoryInfo)
FUNCTION(nvmlDeviceGetPciInfo_v3)
FUNCTION(nvmlDeviceGetCudaComputeCapability)
FUNCTION(nvmlDeviceGetUtilizationRates)
FUNCTION(nvmlDeviceGetComputeRunningProcesses)
FUNCTION(nvmlDeviceGetProcessUtilization)
FUNCTION(nvmlDeviceGetTemperature)
FUNCTION(nvmlDeviceGetPowerUsage)
FUNCTION(nvmlDeviceGetClockInfo)
FUNCTION(nvmlDeviceGetSupportedEventTypes)
FUNCTION(nvmlDeviceRegisterEvents)
FUNCTION(nvmlEventSetCreate)
FUNCTION(nvmlEventSetWait)
FUNCTION(nvmlEventSetFree)
