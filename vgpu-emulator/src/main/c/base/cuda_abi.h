/*
 * The part of the CUDA driver's binary interface that the emulator implements: types, error codes and structures. These
 * are our own declarations, so that the emulator builds without the CUDA toolkit. Where the toolkit is installed, a
 * test compares them with its header.
 */
#ifndef EMU_CUDA_ABI_H
#define EMU_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

#define EMU_API __attribute__((visibility("default")))

typedef int CUresult;
typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUgreenCtx_st *CUgreenCtx;
typedef struct CUdevResourceDesc_st *CUdevResourceDesc;
typedef struct CUmod_st *CUmodule;
typedef struct CUmod_st *CUlibrary; /* here, a module that is not loaded into a context */
typedef struct CUfunc_st *CUfunction;
typedef struct CUfunc_st *CUkernel;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUarray_st *CUarray;
typedef struct CUmipmappedArray_st *CUmipmappedArray;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUuserObject_st *CUuserObject;
typedef struct CUtexref_st *CUtexref; /* also for surfaces */
typedef uint64_t CUtexObject;         /* also for surfaces */
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef struct CUextMemory_st *CUexternalMemory;
typedef uint64_t CUmemGenericAllocationHandle;
typedef struct {
    char bytes[16];
} CUuuid;

typedef struct {
    unsigned int timeout_ms; /* 0: none */
    unsigned int reserved0;
    uint64_t reserved1[7];
} CUcheckpointLockArgs;
typedef struct {
    uint64_t reserved[8];
} CUcheckpointCheckpointArgs;
typedef struct {
    void *gpu_pairs;
    unsigned int gpu_pairs_count;
    char reserved[44];
    uint64_t reserved1;
} CUcheckpointRestoreArgs;
typedef struct {
    uint64_t reserved[8];
} CUcheckpointUnlockArgs;

typedef void (*CUhostFn)(void *data);
typedef void (*CUstreamCallback)(CUstream stream, CUresult status, void *data);
typedef size_t (*CUoccupancyB2DSize)(int block_size);

#define CU_STREAM_LEGACY ((CUstream)(uintptr_t)1)
#define CU_STREAM_PER_THREAD ((CUstream)(uintptr_t)2)
#define CU_LAUNCH_PARAM_END ((void *)0)
#define CU_LAUNCH_PARAM_BUFFER_POINTER ((void *)(uintptr_t)1)
#define CU_LAUNCH_PARAM_BUFFER_SIZE ((void *)(uintptr_t)2)

/* ERROR(name, number, text of cuGetErrorString) */
#define CUDA_ERRORS(ERROR) \
    ERROR(CUDA_SUCCESS, 0, "no error") \
    ERROR(CUDA_ERROR_INVALID_VALUE, 1, "invalid argument") \
    ERROR(CUDA_ERROR_OUT_OF_MEMORY, 2, "out of memory") \
    ERROR(CUDA_ERROR_NOT_INITIALIZED, 3, "initialization error") \
    ERROR(CUDA_ERROR_DEINITIALIZED, 4, "driver shutting down") \
    ERROR(CUDA_ERROR_NO_DEVICE, 100, "no CUDA-capable device is detected") \
    ERROR(CUDA_ERROR_INVALID_DEVICE, 101, "invalid device ordinal") \
    ERROR(CUDA_ERROR_INVALID_IMAGE, 200, "device kernel image is invalid") \
    ERROR(CUDA_ERROR_INVALID_CONTEXT, 201, "invalid device context") \
    ERROR(CUDA_ERROR_MAP_FAILED, 205, "mapping of buffer object failed") \
    ERROR(CUDA_ERROR_NO_BINARY_FOR_GPU, 209, \
          "no kernel image is available for execution on the device") \
    ERROR(CUDA_ERROR_UNSUPPORTED_LIMIT, 215, "limit is not supported on this architecture") \
    ERROR(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, 217, \
          "peer access is not supported between these two devices") \
    ERROR(CUDA_ERROR_INVALID_PTX, 218, "a PTX JIT compilation failed") \
    ERROR(CUDA_ERROR_FILE_NOT_FOUND, 301, "file not found") \
    ERROR(CUDA_ERROR_OPERATING_SYSTEM, 304, \
          "OS call failed or operation not supported on this OS") \
    ERROR(CUDA_ERROR_INVALID_HANDLE, 400, "invalid resource handle") \
    ERROR(CUDA_ERROR_ILLEGAL_STATE, 401, "the operation cannot be performed in the present state") \
    ERROR(CUDA_ERROR_NOT_FOUND, 500, "named symbol not found") \
    ERROR(CUDA_ERROR_NOT_READY, 600, "device not ready") \
    ERROR(CUDA_ERROR_ILLEGAL_ADDRESS, 700, "an illegal memory access was encountered") \
    ERROR(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, 701, "too many resources requested for launch") \
    ERROR(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, 704, "peer access is already enabled") \
    ERROR(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, 705, "peer access has not been enabled") \
    ERROR(CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE, 708, \
          "cannot set while device is active in this process") \
    ERROR(CUDA_ERROR_CONTEXT_IS_DESTROYED, 709, "context is destroyed") \
    ERROR(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, 712, \
          "part or all of the requested memory range is already mapped") \
    ERROR(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, 713, \
          "pointer does not correspond to a registered memory region") \
    ERROR(CUDA_ERROR_LAUNCH_FAILED, 719, "unspecified launch failure") \
    ERROR(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, 720, "too many blocks in cooperative launch") \
    ERROR(CUDA_ERROR_NOT_PERMITTED, 800, "operation not permitted") \
    ERROR(CUDA_ERROR_NOT_SUPPORTED, 801, "operation not supported") \
    ERROR(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 900, \
          "operation not permitted when stream is capturing") \
    ERROR(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, 901, \
          "operation failed due to a previous error during capture") \
    ERROR(CUDA_ERROR_STREAM_CAPTURE_MERGE, 902, \
          "operation would result in a merge of separate capture sequences") \
    ERROR(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, 903, \
          "capture was not ended in the same stream as it began") \
    ERROR(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, 904, "capturing stream has unjoined work") \
    ERROR(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, 905, \
          "dependency created on uncaptured work in another stream") \
    ERROR(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, 906, \
          "operation would make the legacy stream depend on a capturing one") \
    ERROR(CUDA_ERROR_CAPTURED_EVENT, 907, \
          "operation not permitted on an event last recorded in a capturing stream") \
    ERROR(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, 910, "the graph update was not performed") \
    ERROR(CUDA_ERROR_INVALID_CLUSTER_SIZE, 912, "cluster misconfiguration") \
    ERROR(CUDA_ERROR_INVALID_RESOURCE_TYPE, 914, "invalid resource type") \
    ERROR(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, 915, "resource configuration is invalid") \
    ERROR(CUDA_ERROR_UNKNOWN, 999, "unknown error")

enum {
#define ERROR(name, number, text) name = number,
    CUDA_ERRORS(ERROR)
#undef ERROR
};

enum { CU_STREAM_DEFAULT = 0, CU_STREAM_NON_BLOCKING = 1 };
enum { CU_EVENT_BLOCKING_SYNC = 1, CU_EVENT_DISABLE_TIMING = 2, CU_EVENT_INTERPROCESS = 4 };
enum { CU_EVENT_RECORD_EXTERNAL = 1, CU_EVENT_WAIT_EXTERNAL = 1 };
enum {
    CU_MEMORYTYPE_HOST = 1,
    CU_MEMORYTYPE_DEVICE = 2,
    CU_MEMORYTYPE_ARRAY = 3,
    CU_MEMORYTYPE_UNIFIED = 4
};
enum { CU_CAPTURE_NONE = 0, CU_CAPTURE_ACTIVE = 1, CU_CAPTURE_INVALIDATED = 2 };
enum {
    CU_PROC_ADDRESS_PER_THREAD = 2,
    CU_PROC_FOUND = 0,
    CU_PROC_NOT_FOUND = 1,
    CU_PROC_VERSION = 2
};

typedef struct {
    int type; /* 1: device, 2: host, 3: host NUMA node */
    int id;
} CUmemLocation;

typedef struct {
    int type;
    int handle_types;
    CUmemLocation location;
    void *win32_meta_data;
    unsigned char compression_type;
    unsigned char rdma_capable;
    unsigned short usage;
    unsigned char reserved[4];
} CUmemAllocationProp;

typedef struct {
    CUmemLocation location;
    int flags;
} CUmemAccessDesc;

typedef struct {
    char reserved[64];
} CUipcMemHandle, CUipcEventHandle;

typedef struct {
    int type;
    union {
        int fd;
        void *pair[2];
    } handle;
    unsigned long long size;
    unsigned int flags;
    unsigned int reserved[16];
} CUDA_EXTERNAL_MEMORY_HANDLE_DESC;

typedef struct {
    unsigned long long offset;
    unsigned long long size;
    unsigned int flags;
    unsigned int reserved[16];
} CUDA_EXTERNAL_MEMORY_BUFFER_DESC;

typedef struct {
    int alloc_type;
    int handle_types;
    CUmemLocation location;
    void *win32_attributes;
    size_t max_size;
    unsigned short usage;
    unsigned char reserved[54];
} CUmemPoolProps;

typedef struct {
    CUmemPoolProps pool;
    const CUmemAccessDesc *access;
    size_t access_count;
    size_t bytes;
    CUdeviceptr address; /* output */
} CUDA_MEM_ALLOC_NODE_PARAMS;

typedef struct {
    size_t src_x;
    size_t src_y;
    int src_type;
    const void *src_host;
    CUdeviceptr src_device;
    CUarray src_array;
    size_t src_pitch;
    size_t dst_x;
    size_t dst_y;
    int dst_type;
    void *dst_host;
    CUdeviceptr dst_device;
    CUarray dst_array;
    size_t dst_pitch;
    size_t width_bytes;
    size_t height;
} CUDA_MEMCPY2D;

/* Also CUDA_MEMCPY3D_PEER, which has contexts in place of the reserved fields. */
typedef struct {
    size_t src_x;
    size_t src_y;
    size_t src_z;
    size_t src_lod;
    int src_type;
    const void *src_host;
    CUdeviceptr src_device;
    CUarray src_array;
    void *src_context;
    size_t src_pitch;
    size_t src_height;
    size_t dst_x;
    size_t dst_y;
    size_t dst_z;
    size_t dst_lod;
    int dst_type;
    void *dst_host;
    CUdeviceptr dst_device;
    CUarray dst_array;
    void *dst_context;
    size_t dst_pitch;
    size_t dst_height;
    size_t width_bytes;
    size_t height;
    size_t depth;
} CUDA_MEMCPY3D;

typedef struct {
    size_t width;
    size_t height;
    int format;
    unsigned int channels;
} CUDA_ARRAY_DESCRIPTOR;

typedef struct {
    size_t width;
    size_t height;
    size_t depth;
    int format;
    unsigned int channels;
    unsigned int flags;
} CUDA_ARRAY3D_DESCRIPTOR;

typedef struct {
    int type;
    union {
        CUarray array;
        CUmipmappedArray mipmapped;
        struct {
            CUdeviceptr address;
            int format;
            unsigned int channels;
            size_t bytes;
        } linear;
        struct {
            CUdeviceptr address;
            int format;
            unsigned int channels;
            size_t width;
            size_t height;
            size_t pitch;
        } pitched;
        int reserved[32];
    };
    unsigned int flags;
} CUDA_RESOURCE_DESC;

typedef struct {
    int address_mode[3];
    int filter_mode;
    unsigned int flags;
    unsigned int max_anisotropy;
    int mipmap_filter_mode;
    float mipmap_level_bias;
    float least_mipmap_level;
    float most_mipmap_level;
    float border_color[4];
    int reserved[12];
} CUDA_TEXTURE_DESC;

typedef struct {
    int format;
    size_t width;
    size_t height;
    size_t depth;
    unsigned int first_mipmap_level;
    unsigned int last_mipmap_level;
    unsigned int first_layer;
    unsigned int last_layer;
    unsigned int reserved[16];
} CUDA_RESOURCE_VIEW_DESC;

typedef struct {
    int id;
    char padding[4];
    char value[64];
} CUlaunchAttribute;

typedef struct {
    unsigned int grid_x;
    unsigned int grid_y;
    unsigned int grid_z;
    unsigned int block_x;
    unsigned int block_y;
    unsigned int block_z;
    unsigned int shared_bytes;
    CUstream stream;
    CUlaunchAttribute *attributes;
    unsigned int attribute_count;
} CUlaunchConfig;

typedef struct {
    CUfunction function;
    unsigned int grid_x;
    unsigned int grid_y;
    unsigned int grid_z;
    unsigned int block_x;
    unsigned int block_y;
    unsigned int block_z;
    unsigned int shared_bytes;
    void **params;
    void **extra;
} CUDA_KERNEL_NODE_PARAMS_v1;

typedef struct {
    CUDA_KERNEL_NODE_PARAMS_v1 v1;
    CUkernel kernel;
    CUcontext context;
} CUDA_KERNEL_NODE_PARAMS_v2;

typedef struct {
    CUdeviceptr destination;
    size_t pitch;
    unsigned int value;
    unsigned int element_size;
    size_t width;
    size_t height;
} CUDA_MEMSET_NODE_PARAMS;

typedef struct {
    CUhostFn function;
    void *data;
} CUDA_HOST_NODE_PARAMS;

typedef struct {
    uint64_t handle;
    int type;
    unsigned int size;
    CUgraph *bodies; /* output */
    CUcontext context;
} CUDA_CONDITIONAL_NODE_PARAMS;

/* A node's parameters, in the form that all kinds share. */
typedef struct {
    int type;
    int reserved0[3];
    union {
        int64_t reserved1[29];
        CUDA_KERNEL_NODE_PARAMS_v2 kernel;
        struct {
            int flags;
            int reserved;
            CUcontext context;
            CUDA_MEMCPY3D copy;
        } copy;
        CUDA_MEMSET_NODE_PARAMS fill; /* a context follows it */
        CUDA_HOST_NODE_PARAMS host;
        CUgraph graph; /* its ownership follows it */
        CUevent event;
        CUDA_MEM_ALLOC_NODE_PARAMS allocation;
        CUDA_CONDITIONAL_NODE_PARAMS conditional;
    };
    int64_t reserved2;
} CUgraphNodeParams;

/* Its contents are the driver's own. */
typedef struct {
    _Alignas(64) uint64_t opaque[16];
} CUtensorMap;

enum {
    CU_STREAM_WAIT_VALUE_GEQ = 0,
    CU_STREAM_WAIT_VALUE_EQ = 1,
    CU_STREAM_WAIT_VALUE_AND = 2,
    CU_STREAM_WAIT_VALUE_NOR = 3,
    CU_STREAM_WAIT_VALUE_FLUSH = 1 << 30,
    CU_STREAM_MEM_OP_WAIT_VALUE_32 = 1,
    CU_STREAM_MEM_OP_WRITE_VALUE_32 = 2,
    CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES = 3,
    CU_STREAM_MEM_OP_WAIT_VALUE_64 = 4,
    CU_STREAM_MEM_OP_WRITE_VALUE_64 = 5,
    CU_STREAM_MEM_OP_BARRIER = 6,
};

/* A wait or a write; the emulator reads no field of the other operations. */
typedef struct {
    int operation;
    CUdeviceptr address;
    uint64_t value; /* a 32-bit operation uses the lower half */
    unsigned int flags;
    CUdeviceptr alias;
    uint64_t pad;
} CUstreamBatchMemOpParams;

typedef struct {
    uint64_t flags;
    CUstream upload_stream;
    CUgraphNode error_node;
    int result;
} CUDA_GRAPH_INSTANTIATE_PARAMS;

typedef struct {
    int result;
    CUgraphNode error_node;
    CUgraphNode error_from_node;
} CUgraphExecUpdateResultInfo;

typedef struct {
    unsigned char from_port;
    unsigned char to_port;
    unsigned char type;
    unsigned char reserved[5];
} CUgraphEdgeData;

/* A part of a device: some of its processors. */
typedef struct {
    int type;
    unsigned char internal[92];
    unsigned int sm_count;
    unsigned char rest[44];
} CUdevResource;

typedef struct {
    void *affinity_params;
    int affinity_param_count;
    void *cig_params;
} CUctxCreateParams;

#endif
