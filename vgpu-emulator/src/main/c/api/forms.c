/* Older forms that share their binary interface with newer ones, and the entry points that the emulator does not
 * implement. */
#include "driver/driver.h"

#define SAME(old, parameters, newer) \
    extern CUresult newer parameters; \
    EMU_API CUresult old parameters

SAME(cuEventDestroy, (CUevent event), cuEventDestroy_v2) {
    return cuEventDestroy_v2(event);
}

SAME(cuStreamDestroy, (CUstream stream), cuStreamDestroy_v2) {
    return cuStreamDestroy_v2(stream);
}

SAME(cuCtxDestroy, (CUcontext context), cuCtxDestroy_v2) {
    return cuCtxDestroy_v2(context);
}

SAME(cuCtxPushCurrent, (CUcontext context), cuCtxPushCurrent_v2) {
    return cuCtxPushCurrent_v2(context);
}

SAME(cuCtxPopCurrent, (CUcontext * context), cuCtxPopCurrent_v2) {
    return cuCtxPopCurrent_v2(context);
}

SAME(cuDevicePrimaryCtxRelease, (CUdevice device), cuDevicePrimaryCtxRelease_v2) {
    return cuDevicePrimaryCtxRelease_v2(device);
}

SAME(cuDevicePrimaryCtxReset, (CUdevice device), cuDevicePrimaryCtxReset_v2) {
    return cuDevicePrimaryCtxReset_v2(device);
}

SAME(cuDevicePrimaryCtxSetFlags, (CUdevice device, unsigned int flags),
     cuDevicePrimaryCtxSetFlags_v2) {
    return cuDevicePrimaryCtxSetFlags_v2(device, flags);
}

SAME(cuMemHostRegister, (void *address, size_t bytes, unsigned int flags), cuMemHostRegister_v2) {
    return cuMemHostRegister_v2(address, bytes, flags);
}

EMU_API CUresult cuProfilerStart(void) {
    return CUDA_SUCCESS;
}

EMU_API CUresult cuProfilerStop(void) {
    return CUDA_SUCCESS;
}

/* Declared without parameters: the caller's arguments are ignored. */
#define ABSENT(name) \
    EMU_API CUresult name(void); \
    EMU_API CUresult name(void) { \
        return CUDA_ERROR_NOT_SUPPORTED; \
    }
#include "absent_api.def"
#undef ABSENT
