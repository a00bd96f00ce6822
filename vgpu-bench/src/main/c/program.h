/*
 * gpu_program: a small program on the CUDA driver API, controlled through standard input, so that a benchmark or a test
 * can drive several of them at once. It does not depend on vgpu: bare or under a hook, it loads libcuda.so.1 as any
 * program does. Each mode is one file.
 */
#ifndef VGPU_BENCH_PROGRAM_H
#define VGPU_BENCH_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NOT_READY = 600,
};

typedef int CUdevice;
typedef int CUresult;
typedef uint64_t CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUevent_st *CUevent;
typedef struct CUfunc_st *CUfunction;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUmod_st *CUmodule;
typedef struct CUstream_st *CUstream;

/* CALL(local name, exported name, parameters) */
#define DRIVER_CALLS(CALL)                                                                             \
  CALL(init, "cuInit", (unsigned))                                                                     \
  CALL(device_get, "cuDeviceGet", (CUdevice *, int))                                                   \
  CALL(context_create, "cuCtxCreate_v2", (CUcontext *, unsigned, CUdevice))                            \
  CALL(context_set, "cuCtxSetCurrent", (CUcontext))                                                    \
  CALL(context_synchronize, "cuCtxSynchronize", (void))                                                \
  CALL(memory_alloc, "cuMemAlloc_v2", (CUdeviceptr *, size_t))                                         \
  CALL(memory_free, "cuMemFree_v2", (CUdeviceptr))                                                     \
  CALL(memory_info, "cuMemGetInfo_v2", (size_t *, size_t *))                                           \
  CALL(module_load, "cuModuleLoadData", (CUmodule *, const void *))                                    \
  CALL(module_function, "cuModuleGetFunction", (CUfunction *, CUmodule, const char *))                 \
  CALL(event_create, "cuEventCreate", (CUevent *, unsigned))                                           \
  CALL(event_record, "cuEventRecord", (CUevent, CUstream))                                             \
  CALL(event_query, "cuEventQuery", (CUevent))                                                         \
  CALL(event_synchronize, "cuEventSynchronize", (CUevent))                                             \
  CALL(event_elapsed, "cuEventElapsedTime", (float *, CUevent, CUevent))                               \
  CALL(stream_create, "cuStreamCreate", (CUstream *, unsigned))                                        \
  CALL(stream_synchronize, "cuStreamSynchronize", (CUstream))                                          \
  CALL(copy_back, "cuMemcpyDtoHAsync_v2", (void *, CUdeviceptr, size_t, CUstream))                     \
  CALL(capture_begin, "cuStreamBeginCapture_v2", (CUstream, int))                                      \
  CALL(capture_end, "cuStreamEndCapture", (CUstream, CUgraph *))                                       \
  CALL(graph_instantiate, "cuGraphInstantiateWithFlags", (CUgraphExec *, CUgraph, unsigned long long)) \
  CALL(graph_launch, "cuGraphLaunch", (CUgraphExec, CUstream))                                         \
  CALL(launch, "cuLaunchKernel",                                                                       \
       (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **, void **))

struct driver {
#define DRIVER_MEMBER(name, symbol, parameters) CUresult(*name) parameters;
  DRIVER_CALLS(DRIVER_MEMBER)
#undef DRIVER_MEMBER
  CUcontext context;
  CUfunction null_kernel; /* vgpu_null() */
  CUfunction spin_kernel; /* vgpu_spin(u64 ns) */
};

/* Prints "error WHAT CODE" and ends the program. */
_Noreturn void fail(const char *what, long code);

/* Calls fail() unless the code is CUDA_SUCCESS. */
void check(CUresult result, const char *what);

/* Looks up the driver's functions. */
void driver_load(struct driver *driver);

/* Looks up a function that only some modes need; fails if the driver does not have it. */
void *driver_function(const char *name);

/* Calls driver_load and cuInit, and creates a context and the kernels. */
void driver_start(struct driver *driver);

/* Prints one line and flushes it. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Reads the next line of standard input, without its end; returns false at the end of the input. */
bool next_line(char *line, size_t size);

uint64_t now_ns(void);

/* A pseudo-random number. Each thread has its own state, which must not be 0. */
uint64_t random_next(uint64_t *state);

/* The median of values. Sorts them. */
uint64_t median(uint64_t *values, size_t count);

/* A graph with a chain of kernels, captured from one stream. */
CUgraphExec graph_of(const struct driver *driver, CUfunction kernel, unsigned grid, unsigned count, uint64_t ns);

/* Launches a kernel of one block with the given duration. */
CUresult spin(const struct driver *driver, uint64_t ns);

/* When a kernel began and ended, in ns of the GPU's clock. */
struct stamp {
  uint64_t begin_ns, end_ns;
};

enum { STAMPS = 1 << 16 };

/* Launches kernels of a fixed amount of work. The emulated GPU takes their length and leaves no stamps. */
struct work_kernel {
  const struct driver *driver;
  CUfunction function;           /* vgpu_work(u64 ns, u64 rounds, struct stamp *) */
  volatile struct stamp *stamps; /* memory of the host, which the kernels write */
  uint64_t kernel_ns;
  uint64_t rounds;
  _Atomic uint64_t launched;
};

void work_open(struct work_kernel *work, const struct driver *driver, uint64_t kernel_ns, uint64_t rounds_per_ms);

CUresult work_launch(struct work_kernel *work, unsigned grid);

/* Copies the stamps of the latest kernels that have ended, at most STAMPS, oldest first; returns how many. */
size_t work_stamps(struct work_kernel *work, struct stamp *into);

/* Sleeps; wakes within a microsecond of the time if the kernel can do that. */
void rest_ns(uint64_t ns);

/*
 * A module that no cache contains: COLD_KERNELS kernels to compile, and a variable of that size. Kernels: (u32 *out).
 */
CUmodule cold_module(const struct driver *driver, size_t variable_bytes);

/* Launches each of the module's kernels once and waits for them. */
void cold_launches(const struct driver *driver, CUmodule module);

/* The modes. main.c lists their arguments. */
int mode_init(int count, char **arguments);
int mode_launch(int count, char **arguments);
int mode_measure(int count, char **arguments);
int mode_alloc(int count, char **arguments);
int mode_load(int count, char **arguments);
int mode_churn(int count, char **arguments);
int mode_observe(int count, char **arguments);
int mode_noise(int count, char **arguments);
int mode_lateness(int count, char **arguments);
int mode_hostile(int count, char **arguments);
int mode_truncate(int count, char **arguments);
int mode_fork(int count, char **arguments);
int mode_hold(int count, char **arguments);
int mode_flood(int count, char **arguments);
int mode_arrive(int count, char **arguments);
int mode_yield(int count, char **arguments);
int mode_serve(int count, char **arguments);
int mode_train(int count, char **arguments);
int mode_chaos(int count, char **arguments);
int mode_audit(int count, char **arguments);
int mode_signals(int count, char **arguments);
int mode_stalls(int count, char **arguments);
int mode_session(int count, char **arguments);
int mode_where(int count, char **arguments);
int mode_about(int count, char **arguments);
int mode_probe(int count, char **arguments);
int mode_checkpoint(int count, char **arguments);
int mode_calls(int count, char **arguments);
int mode_waits(int count, char **arguments);
int mode_streams(int count, char **arguments);
int mode_paced(int count, char **arguments);
int mode_leave(int count, char **arguments);
int mode_memory(int count, char **arguments);
int mode_aside(int count, char **arguments);
int mode_allocs(int count, char **arguments);
int mode_names(int count, char **arguments);
int mode_cudart(int count, char **arguments);
int mode_xids(int count, char **arguments);
int mode_channels(int count, char **arguments);
int mode_stop(int count, char **arguments);
int mode_pace(int count, char **arguments);
int mode_contend(int count, char **arguments);

#endif
