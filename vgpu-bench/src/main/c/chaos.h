/*
 * The random program: declarations shared by its files. It allocates in every way, launches, captures and forks, in
 * random order.
 */
#ifndef VGPU_BENCH_CHAOS_H
#define VGPU_BENCH_CHAOS_H

#include "program.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct CUarray_st *CUarray;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;

struct memory_property { /* CUmemAllocationProp */
  int type, handle_types, location_type, location_id;
  void *meta;
  unsigned char flags[8];
};

struct memory_access { /* CUmemAccessDesc */
  int location_type, location_id, flags;
};

struct array_shape { /* CUDA_ARRAY_DESCRIPTOR */
  size_t width, height;
  int format;
  unsigned channels;
};

struct array3d_shape { /* CUDA_ARRAY3D_DESCRIPTOR */
  size_t width, height, depth;
  int format;
  unsigned channels, flags;
};

struct ipc_handle { /* CUipcMemHandle */
  char bytes[64];
};

/* CALL(local name, exported name, parameters): a driver may lack some of these functions. */
#define CHAOS_CALLS(CALL)                                                                                \
  CALL(managed, "cuMemAllocManaged", (CUdeviceptr *, size_t, unsigned))                                  \
  CALL(pitch, "cuMemAllocPitch_v2", (CUdeviceptr *, size_t *, size_t, size_t, unsigned))                 \
  CALL(async, "cuMemAllocAsync", (CUdeviceptr *, size_t, CUstream))                                      \
  CALL(free_async, "cuMemFreeAsync", (CUdeviceptr, CUstream))                                            \
  CALL(default_pool, "cuDeviceGetDefaultMemPool", (void **, CUdevice))                                   \
  CALL(from_pool, "cuMemAllocFromPoolAsync", (CUdeviceptr *, size_t, void *, CUstream))                  \
  CALL(create, "cuMemCreate", (uint64_t *, size_t, const struct memory_property *, unsigned long long))  \
  CALL(release, "cuMemRelease", (uint64_t))                                                              \
  CALL(reserve, "cuMemAddressReserve", (CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long)) \
  CALL(unreserve, "cuMemAddressFree", (CUdeviceptr, size_t))                                             \
  CALL(map, "cuMemMap", (CUdeviceptr, size_t, size_t, uint64_t, unsigned long long))                     \
  CALL(unmap, "cuMemUnmap", (CUdeviceptr, size_t))                                                       \
  CALL(access, "cuMemSetAccess", (CUdeviceptr, size_t, const struct memory_access *, size_t))            \
  CALL(array, "cuArrayCreate_v2", (CUarray *, const struct array_shape *))                               \
  CALL(array_destroy, "cuArrayDestroy", (CUarray))                                                       \
  CALL(mipmap, "cuMipmappedArrayCreate", (CUarray *, const struct array3d_shape *, unsigned))            \
  CALL(mipmap_destroy, "cuMipmappedArrayDestroy", (CUarray))                                             \
  CALL(host, "cuMemHostAlloc", (void **, size_t, unsigned))                                              \
  CALL(host_free, "cuMemFreeHost", (void *))                                                             \
  CALL(share, "cuMemExportToShareableHandle", (void *, uint64_t, int, unsigned long long))               \
  CALL(import, "cuMemImportFromShareableHandle", (uint64_t *, void *, int))                              \
  CALL(ipc_get, "cuIpcGetMemHandle", (struct ipc_handle *, CUdeviceptr))                                 \
  CALL(ipc_open, "cuIpcOpenMemHandle_v2", (CUdeviceptr *, struct ipc_handle, unsigned))                  \
  CALL(ipc_close, "cuIpcCloseMemHandle", (CUdeviceptr))                                                  \
  CALL(context_destroy, "cuCtxDestroy_v2", (CUcontext))                                                  \
  CALL(stream, "cuStreamCreate", (CUstream *, unsigned))                                                 \
  CALL(stream_destroy, "cuStreamDestroy_v2", (CUstream))                                                 \
  CALL(stream_wait, "cuStreamSynchronize", (CUstream))                                                   \
  CALL(stream_query, "cuStreamQuery", (CUstream))                                                        \
  CALL(event_destroy, "cuEventDestroy_v2", (CUevent))                                                    \
  CALL(copy_in, "cuMemcpyHtoDAsync_v2", (CUdeviceptr, const void *, size_t, CUstream))                   \
  CALL(set8, "cuMemsetD8Async", (CUdeviceptr, unsigned char, size_t, CUstream))                          \
  CALL(begin_capture, "cuStreamBeginCapture_v2", (CUstream, int))                                        \
  CALL(end_capture, "cuStreamEndCapture", (CUstream, CUgraph *))                                         \
  CALL(instantiate, "cuGraphInstantiateWithFlags", (CUgraphExec *, CUgraph, unsigned long long))         \
  CALL(graph_launch, "cuGraphLaunch", (CUgraphExec, CUstream))                                           \
  CALL(graph_destroy, "cuGraphDestroy", (CUgraph))                                                       \
  CALL(exec_destroy, "cuGraphExecDestroy", (CUgraphExec))                                                \
  CALL(launch_thread, "cuLaunchKernel_ptsz",                                                             \
       (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **, void **))

enum { CUDA_ERROR_INVALID_VALUE = 1, CUDA_ERROR_MAP_FAILED = 205, CUDA_ERROR_INVALID_HANDLE = 400 };
enum { CUDA_ERROR_NOT_PERMITTED = 800, CUDA_ERROR_NOT_SUPPORTED = 801 };

/* What a call may wait for. */
enum wait { WAIT_MEMORY, WAIT_LAUNCH, WAIT_SYNC, WAITS };

enum { HELD = 24, THREADS = 16 };

/*
 * The leases of the program: that of its environment, one that it enters permanently, and one that it leaves and enters
 * again.
 */
enum { HOME, STAYS, GUEST, TENANTS };

struct tenant {
  char lease[96];
  uint64_t quota;
  _Atomic int64_t handle; /* threads bind themselves to the tenant by it; 0: they may not, or it is the first tenant */
  int64_t entered_as;     /* the same handle, kept while the tenant is being left */
  atomic_int state;       /* see chaos_tenants.c */
  atomic_int inside;      /* threads that are bound to it, or about to be */
  atomic_int things;      /* allocations in its scope */
  _Atomic uint64_t bytes; /* their bytes, as the program counts them */
};

/* An allocation: its kind and tenant, its handle, and a lower bound of its bytes. */
struct held {
  int kind, tenant;
  uint64_t key, handle, size;
  uint64_t bytes;
  CUstream stream; /* the stream that orders it */
};

struct chaos;

struct worker {
  struct chaos *chaos;
  uint64_t random;
  CUstream stream;         /* the current stream */
  CUstream streams[GUEST]; /* one created in each tenant's scope */
  int tenant;              /* the tenant whose scope it is in */
  CUgraphExec graph;
  size_t held_count;
  struct held held[HELD];
  int contexts;
  bool borrowed;                  /* a short-lived thread, which keeps nothing */
  int child;                      /* a forked process not yet waited for; 0: none */
  _Atomic uint64_t call_since_ns; /* 0: not in a call of the driver */
  _Atomic int call_operation;
  _Atomic uint64_t worst_ns[WAITS];
  _Atomic int worst_operation[WAITS];
};

struct chaos {
  struct driver driver;
#define CHAOS_MEMBER(name, symbol, parameters) CUresult(*name) parameters;
  CHAOS_CALLS(CHAOS_MEMBER)
#undef CHAOS_MEMBER
  CUdevice device;
  void *pool;
  struct tenant tenants[TENANTS];
  int tenant_count;
  int64_t (*tenant_add)(const char *const *, char *, size_t); /* exported by the hook; NULL without a hook */
  int64_t (*tenant_bind)(int64_t);
  int (*tenant_drop)(int64_t);
  int mailbox; /* receives descriptors of memory from other processes */
  bool forks;
  unsigned without;           /* a bit for each operation to leave out */
  pthread_rwlock_t capturing; /* read by threads that capture a stream; meanwhile no context may be synchronised */
  atomic_bool running;
  atomic_int idle;
  atomic_int error, error_operation; /* the first error that a driver must not return */
  _Atomic uint64_t operations, refused, forked, forked_hung, entered, taken;
};

/* Operations: kinds of memory first, then the others. */
enum operation {
  PLAIN,
  MANAGED,
  PITCH,
  ASYNC,
  FROM_POOL,
  MAPPED,
  ARRAY,
  MIPMAP,
  HOST,
  CONTEXT,
  IMPORTED,
  TAKEN,
  KINDS,
  SPIN = KINDS,
  BURST,
  PER_THREAD,
  GRAPH,
  COPY,
  SYNC,
  QUERY,
  INFO,
  EVENT,
  THREAD,
  FORK,
  SCOPE,
  OPERATIONS
};

/* Mark the start and the end of a call, so that its wait is known, even while it lasts. */
void chaos_enter(struct worker *worker, int operation);
CUresult chaos_leave(struct worker *worker, enum wait wait, CUresult result);

/* Records an error for which the driver has no reason. Returns whether the result is success. */
bool chaos_accept(struct worker *worker, int operation, CUresult result);

void chaos_allocate(struct worker *worker, int kind);
void chaos_release(struct worker *worker, size_t index);
/* Memory for other processes: announce an allocation, and open one that another process has announced. */
void chaos_export(struct worker *worker, CUdeviceptr pointer);
CUresult chaos_import(struct worker *worker, CUdeviceptr *pointer);
/* The same for physical memory, whose descriptor is sent to another process. */
void chaos_open_mailbox(struct chaos *chaos);
void chaos_send(struct worker *worker, uint64_t handle, uint64_t size);
CUresult chaos_take(struct worker *worker, uint64_t *handle, uint64_t *size);

/* Several leases, see chaos_tenants.c. "LEASE:QUOTA" is one that the program enters beside that of its environment. */
void chaos_enter_leases(struct chaos *chaos, char **leases, int count);
void chaos_scope(struct worker *worker); /* before a step: switches to another tenant now and then */
void chaos_bind(struct worker *worker, int tenant);

void chaos_work(struct worker *worker, int operation);
void chaos_thread(struct worker *worker);
void chaos_fork(struct worker *worker);

#endif
