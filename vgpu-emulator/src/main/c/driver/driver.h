/* The driver in this process: its devices, and each thread's contexts. */
#ifndef EMU_DRIVER_H
#define EMU_DRIVER_H

#include "objects.h"

enum { EMU_STACK_DEPTH = 14 };

/* The first statement of every entry point that needs cuInit. */
#define EMU_INITIALIZED() \
    do { \
        if (__builtin_expect(__atomic_load_n(&emu_driver.ready, __ATOMIC_ACQUIRE) != 1, 0)) { \
            CUresult emu_refused = emu_not_ready(__func__); \
            if (emu_refused != CUDA_SUCCESS) { \
                return emu_refused; \
            } \
        } \
    } while (0)

/* Declares `context` as the calling thread's current context, or returns the error. */
#define EMU_CONTEXT(context) \
    EMU_INITIALIZED(); \
    CUcontext context = NULL; \
    do { \
        CUresult emu_result = emu_current(&(context)); \
        if (__builtin_expect(emu_result != CUDA_SUCCESS, 0)) { \
            return emu_result; \
        } \
    } while (0)

#define EMU_REQUIRE(condition) \
    do { \
        if (!(condition)) { \
            return CUDA_ERROR_INVALID_VALUE; \
        } \
    } while (0)

typedef struct {
    emu_gpu *gpu;
    pthread_mutex_t lock;
    CUcontext primary;
    CUcontext primary_handle; /* reused whenever the primary context is created again */
    uint32_t primary_users;
    unsigned int primary_flags;
    CUmemoryPool default_pool;
    CUmemoryPool pool; /* the pool that cuMemAllocAsync uses */
} emu_device;

typedef struct {
    int ready; /* 1: initialised; 2: initialised, with injected errors (fail.h) */
    /* this process was forked after its parent's cuInit; every call fails, as with the real driver */
    bool inherited;
    CUresult problem;
    emu_state state;
    int device_count; /* the devices that CUDA_VISIBLE_DEVICES leaves visible */
    emu_device devices[EMU_MAX_DEVICES];
    emu_gpu mig_gpu; /* the process's only device if it is a MIG instance; otherwise all zero */
} emu_driver_state;

typedef struct {
    CUcontext context;
    uint32_t generation; /* the context's when it was pushed; 0: any (a primary context) */
} emu_stack_entry;

/* A thread's state and context stack; the last entry is current. Kept small, because it lies in the static TLS area. */
typedef struct {
    emu_stack_entry stack[EMU_STACK_DEPTH];
    uint32_t depth;
    uint16_t capture_mode;
    uint16_t in_host_call; /* 1: the thread runs a host function, which must not call the driver */
    uint64_t id;           /* the thread's id; 0: none yet */
    emu_stack_entry stream_of; /* the context that `stream` belongs to */
    CUstream stream;
} emu_thread_state;

extern emu_driver_state emu_driver;
extern __thread emu_thread_state emu_thread __attribute__((tls_model("initial-exec")));

static inline bool emu_is_live(CUcontext context, uint32_t generation) {
    return __atomic_load_n(&context->object.live, __ATOMIC_ACQUIRE) == 1 &&
           (context->object.generation == generation || generation == 0);
}

/* The calling thread's current context. */
static inline CUresult emu_current(CUcontext *context) {
    if (emu_thread.depth == 0) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    const emu_stack_entry *top = &emu_thread.stack[emu_thread.depth - 1];
    *context = top->context;
    if (*context == NULL) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (!emu_is_live(*context, top->generation)) {
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    }
    return (*context)->sticky;
}

/* The driver's lock, which serializes calls if the settings say so. emu_occupy keeps the calling thread busy for a
 * time. */
void emu_hold(void);
void emu_let_go(void);
void emu_occupy(uint64_t ns);

/* Makes the calling thread pay for a call, with the driver's lock held if the settings say so. */
static inline void emu_cost(uint64_t ns) {
    if (__builtin_expect(ns != 0 || emu_driver.state.times.has_locks, 0)) {
        emu_hold();
        emu_occupy(ns);
        emu_let_go();
    }
}

/* Why an entry point cannot serve this call: cuInit is missing, or an injected error. */
CUresult emu_not_ready(const char *function);

/* The calling thread's id in this process, never 0. */
uint64_t emu_thread_id(void);

/* The device with that ordinal, or NULL. */
emu_device *emu_device_at(CUdevice device);

CUresult emu_context_open(CUdevice device, unsigned int flags, bool primary, CUcontext *result);
/* Opens a green context: it shares the primary context's memory and has some of its processors. */
CUresult emu_context_open_green(CUcontext primary, uint32_t sms, CUcontext *result);
void emu_context_close(CUcontext context);

/* The stream that a handle refers to in a context. per_thread: NULL means the thread's default stream, not the
 * legacy stream. Takes and releases the context's lock. */
CUresult emu_stream_of(CUcontext context, CUstream handle, bool per_thread, CUstream *stream);

CUstream emu_stream_open(CUcontext context, unsigned int flags, int priority);
/* The caller holds the context's lock. */
void emu_stream_close(CUstream stream);

/* Frees a context's modules. */
void emu_modules_close(CUcontext context);

#endif
