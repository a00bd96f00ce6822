/*
 * The part of the CUDA driver API that the sample programs use, declared here so that they build without the toolkit.
 * A program reaches the driver in one of the ways that real programs do; it knows nothing of vgpu.
 */
#ifndef SAMPLES_DRIVER_H
#define SAMPLES_DRIVER_H

#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef unsigned long long CUmemGenericAllocationHandle;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;

enum {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NOT_SUPPORTED = 801,
  CU_MEM_ATTACH_GLOBAL = 1,
  CU_MEM_LOCATION_TYPE_DEVICE = 1,
  CU_MEM_ALLOCATION_TYPE_PINNED = 1,
  CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3,
  CU_STREAM_NON_BLOCKING = 1,
  CU_STREAM_CAPTURE_MODE_RELAXED = 2
};

typedef struct {
  int type;
  int id;
} CUmemLocation;

typedef struct {
  int type;
  int requestedHandleTypes;
  CUmemLocation location;
  void *win32HandleMetaData;
  struct {
    unsigned char compressionType;
    unsigned char gpuDirectRDMACapable;
    unsigned short usage;
    unsigned char reserved[4];
  } allocFlags;
} CUmemAllocationProp;

typedef struct {
  CUmemLocation location;
  int flags;
} CUmemAccessDesc;

typedef struct {
  unsigned int gridDimX;
  unsigned int gridDimY;
  unsigned int gridDimZ;
  unsigned int blockDimX;
  unsigned int blockDimY;
  unsigned int blockDimZ;
  unsigned int sharedMemBytes;
  CUstream hStream;
  void *attrs;
  unsigned int numAttrs;
} CUlaunchConfig;

/*
 * FUNCTION(name, suffix, per-thread suffix, parameters): the symbol is name and suffix; the form for per-thread default
 * streams has the per-thread suffix behind that; cuGetProcAddress is asked for the bare name.
 */
#define DRIVER_FUNCTIONS(FUNCTION)                                                                                     \
  FUNCTION(cuInit, , , (unsigned int flags))                                                                           \
  FUNCTION(cuGetErrorName, , , (CUresult error, const char **text))                                                    \
  FUNCTION(cuDeviceGet, , , (CUdevice * device, int ordinal))                                                          \
  FUNCTION(cuDeviceGetName, , , (char *name, int size, CUdevice device))                                               \
  FUNCTION(cuDeviceTotalMem, _v2, , (size_t * bytes, CUdevice device))                                                 \
  FUNCTION(cuDevicePrimaryCtxRetain, , , (CUcontext * context, CUdevice device))                                       \
  FUNCTION(cuDevicePrimaryCtxRelease, _v2, , (CUdevice device))                                                        \
  FUNCTION(cuCtxSetCurrent, , , (CUcontext context))                                                                   \
  FUNCTION(cuCtxSynchronize, , , (void))                                                                               \
  FUNCTION(cuModuleLoadData, , , (CUmodule * module, const void *image))                                               \
  FUNCTION(cuModuleUnload, , , (CUmodule module))                                                                      \
  FUNCTION(cuModuleGetFunction, , , (CUfunction * function, CUmodule module, const char *name))                        \
  FUNCTION(cuMemGetInfo, _v2, , (size_t * free_bytes, size_t * total_bytes))                                           \
  FUNCTION(cuMemAlloc, _v2, , (CUdeviceptr * pointer, size_t bytes))                                                   \
  FUNCTION(cuMemFree, _v2, , (CUdeviceptr pointer))                                                                    \
  FUNCTION(cuMemAllocManaged, , , (CUdeviceptr * pointer, size_t bytes, unsigned int flags))                           \
  FUNCTION(cuMemAllocAsync, , _ptsz, (CUdeviceptr * pointer, size_t bytes, CUstream stream))                           \
  FUNCTION(cuMemFreeAsync, , _ptsz, (CUdeviceptr pointer, CUstream stream))                                            \
  FUNCTION(cuMemGetAllocationGranularity, , , (size_t * bytes, const CUmemAllocationProp *properties, int option))     \
  FUNCTION(cuMemCreate, , ,                                                                                            \
           (CUmemGenericAllocationHandle * handle, size_t bytes, const CUmemAllocationProp *properties,                \
            unsigned long long flags))                                                                                 \
  FUNCTION(cuMemRelease, , , (CUmemGenericAllocationHandle handle))                                                    \
  FUNCTION(cuMemAddressReserve, , ,                                                                                    \
           (CUdeviceptr * pointer, size_t bytes, size_t alignment, CUdeviceptr wanted, unsigned long long flags))      \
  FUNCTION(cuMemAddressFree, , , (CUdeviceptr pointer, size_t bytes))                                                  \
  FUNCTION(cuMemMap, , ,                                                                                               \
           (CUdeviceptr pointer, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,                     \
            unsigned long long flags))                                                                                 \
  FUNCTION(cuMemUnmap, , , (CUdeviceptr pointer, size_t bytes))                                                        \
  FUNCTION(cuMemSetAccess, , , (CUdeviceptr pointer, size_t bytes, const CUmemAccessDesc *access, size_t count))       \
  FUNCTION(cuMemcpyHtoD, _v2, _ptds, (CUdeviceptr to, const void *from, size_t bytes))                                 \
  FUNCTION(cuMemcpyDtoH, _v2, _ptds, (void *to, CUdeviceptr from, size_t bytes))                                       \
  FUNCTION(cuStreamCreate, , , (CUstream * stream, unsigned int flags))                                                \
  FUNCTION(cuStreamDestroy, _v2, , (CUstream stream))                                                                  \
  FUNCTION(cuStreamSynchronize, , _ptsz, (CUstream stream))                                                            \
  FUNCTION(cuStreamBeginCapture, _v2, _ptsz, (CUstream stream, int mode))                                              \
  FUNCTION(cuStreamEndCapture, , _ptsz, (CUstream stream, CUgraph * graph))                                            \
  FUNCTION(cuGraphInstantiateWithFlags, , , (CUgraphExec * exec, CUgraph graph, unsigned long long flags))             \
  FUNCTION(cuGraphLaunch, , _ptsz, (CUgraphExec exec, CUstream stream))                                                \
  FUNCTION(cuLaunchKernel, , _ptsz,                                                                                    \
           (CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, unsigned int block_x,  \
            unsigned int block_y, unsigned int block_z, unsigned int shared_bytes, CUstream stream, void **parameters, \
            void **extra))                                                                                             \
  FUNCTION(cuLaunchKernelEx, , _ptsz,                                                                                  \
           (const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra))                       \
  FUNCTION(cuLaunchCooperativeKernel, , _ptsz,                                                                         \
           (CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, unsigned int block_x,  \
            unsigned int block_y, unsigned int block_z, unsigned int shared_bytes, CUstream stream,                    \
            void **parameters))

/* What the driver has; a function that it lacks is null. */
struct driver {
#define MEMBER(name, suffix, per_thread, parameters) CUresult(*name) parameters;
  DRIVER_FUNCTIONS(MEMBER)
#undef MEMBER
};

/* How a program reaches the driver. */
enum binding {
  BIND_DLSYM,           /* dlopen("libcuda.so.1") and dlsym for each function */
  BIND_DLSYM_THREAD,    /* the same, with the forms for per-thread default streams */
  BIND_PROC_ADDRESS,    /* cuGetProcAddress_v2, as the CUDA runtime of today does */
  BIND_PROC_ADDRESS_V1, /* cuGetProcAddress as CUDA 11.3 brought it */
  BIND_PROC_ADDRESS_THREAD,
  BIND_LINK /* declared and linked: the loader resolves them (only in programs built so) */
};

/* For option tables, in the order above; programs that link the driver take link as well. */
#define BINDING_CHOICES "dlsym,dlsym-thread,proc-address,proc-address-v1,proc-address-thread"

/* Fills in the functions. Returns 0, or -1 having said on standard error why not. */
int driver_bind(struct driver *driver, enum binding binding);

/* What driver_bind calls for BIND_LINK; in programs that do not link the driver it says so. */
int driver_link(struct driver *driver);

/* The error's name, such as CUDA_ERROR_OUT_OF_MEMORY. */
const char *driver_error_name(const struct driver *driver, CUresult error);

/* A context on one device, with the sample kernels in it. */
struct device {
  struct driver driver;
  CUdevice handle;
  CUcontext context;
  CUmodule module;
  char name[128];
};

/* Opens device ORDINAL. Returns 0, or 1 (an exit code) having said why not. */
int device_open(struct device *device, enum binding binding, int ordinal);

/* Finds a kernel of kernels.ptx. Returns 0 or 1. */
int device_kernel(const struct device *device, CUfunction *function, const char *name);

/* Gives everything back. A driver that fails now is told, and nothing else. */
void device_close(struct device *device);

/* Says that CALL failed, by the error's name. Returns 1, an exit code. */
int device_failed(const struct device *device, const char *call, CUresult error);

/* Calls a driver function of device D; says by name what went wrong. Gives 0, or 1. A missing function is an error. */
#define CALL(d, name, ...)                                                                                \
  ((d)->driver.name == NULL ? device_failed((d), #name " (not in this driver)", CUDA_ERROR_NOT_SUPPORTED) \
                            : call_result((d), #name, (d)->driver.name(__VA_ARGS__)))

/* The same for functions without arguments. */
#define CALL_NONE(d, name)                                                                                \
  ((d)->driver.name == NULL ? device_failed((d), #name " (not in this driver)", CUDA_ERROR_NOT_SUPPORTED) \
                            : call_result((d), #name, (d)->driver.name()))

static inline int call_result(const struct device *device, const char *call, CUresult error) {
  return error == CUDA_SUCCESS ? 0 : device_failed(device, call, error);
}

#endif
