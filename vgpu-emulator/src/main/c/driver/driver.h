/* The driver in this process: its devices, and the contexts of each thread. */
#ifndef EMU_DRIVER_H
#define EMU_DRIVER_H

#include "objects.h"

enum { EMU_STACK_DEPTH = 14 };

/* Every entry point that needs cuInit starts with this. */
#define EMU_INITIALIZED() \
    do { \
        if (__builtin_expect(__atomic_load_n(&emu_driver.ready, __ATOMIC_ACQUIRE) != 1, 0)) { \
            CUresult emu_refused = emu_not_ready(__func__); \
            if (emu_refused != CUDA_SUCCESS) { \
                return emu_refused; \
            } \
        } \
    } while (0)

/* Declares `context` as the calling thread's, or returns the error. */
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
    CUcontext primary_handle; /* the primary context has the same one each time it is made */
    uint32_t primary_users;
    unsigned int primary_flags;
    CUmemoryPool default_pool;
    CUmemoryPool pool; /* what cuMemAllocAsync takes from */
} emu_device;

typedef struct {
    int ready;      /* 1: initialised; 2: initialised, and some calls fail on purpose (fail.h) */
    bool inherited; /* the parent process had initialised: as with the real driver, nothing works
                       here */
    CUresult problem;
    emu_state state;
    int device_count; /* that CUDA_VISIBLE_DEVICES leaves */
    emu_device devices[EMU_MAX_DEVICES];
    emu_gpu mig_gpu; /* what the one device is, if it is a MIG instance; else all zero */
} emu_driver_state;

typedef struct {
    CUcontext context;
    uint32_t generation; /* of the context when it was pushed; 0: a primary one, whichever it is now */
} emu_stack_entry;

/* The contexts of a thread; the last one is current. Small: it lies in the static TLS area. */
typedef struct {
    emu_stack_entry stack[EMU_STACK_DEPTH];
    uint32_t depth;
    uint16_t capture_mode;
    uint16_t in_host_call;     /* 1: in a host function, which may not call the driver */
    uint64_t id;               /* of the thread; 0: none yet */
    emu_stack_entry stream_of; /* the context whose stream of this thread is below */
    CUstream stream;
} emu_thread_state;

extern emu_driver_state emu_driver;
extern __thread emu_thread_state emu_thread __attribute__((tls_model("initial-exec")));

static inline bool emu_is_live(CUcontext context, uint32_t generation) {
    return __atomic_load_n(&context->object.live, __ATOMIC_ACQUIRE) == 1 &&
           (context->object.generation == generation || generation == 0);
}

/* The calling thread's context. */
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

/* The driver's lock: one call at a time, if the settings say so. What a call takes of its thread. */
void emu_hold(void);
void emu_let_go(void);
void emu_occupy(uint64_t ns);

/* What a call costs the thread that makes it, and whom it holds up. */
static inline void emu_cost(uint64_t ns) {
    if (__builtin_expect(ns != 0 || emu_driver.state.times.has_locks, 0)) {
        emu_hold();
        emu_occupy(ns);
        emu_let_go();
    }
}

/* Why this call of an entry point cannot be served: no cuInit, or an error on purpose. */
CUresult emu_not_ready(const char *function);

/* A number of the calling thread's, never 0. */
uint64_t emu_thread_id(void);

/* The device of that ordinal, or NULL. */
emu_device *emu_device_at(CUdevice device);

CUresult emu_context_open(CUdevice device, unsigned int flags, bool primary, CUcontext *result);
/* One that shares the primary one's memory, and has some of its processors. */
CUresult emu_context_open_green(CUcontext primary, uint32_t sms, CUcontext *result);
void emu_context_close(CUcontext context);

/* The stream that a handle means in a context. per_thread: what NULL stands for. Takes and leaves
 * the context's lock. */
CUresult emu_stream_of(CUcontext context, CUstream handle, bool per_thread, CUstream *stream);

CUstream emu_stream_open(CUcontext context, unsigned int flags, int priority);
/* With the context's lock. */
void emu_stream_close(CUstream stream);

/* Frees what else belongs to a context: modules, pools' memory is not among it. */
void emu_modules_close(CUcontext context);

#endif
