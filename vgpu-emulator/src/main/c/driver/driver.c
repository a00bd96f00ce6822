#include "driver.h"

#include "base/fail.h"
#include "base/log.h"
#include "capture.h"
#include "memory.h"
#include "mig.h"
#include "rm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

emu_driver_state emu_driver;
__thread emu_thread_state emu_thread __attribute__((tls_model("initial-exec")));

enum { SPIN_NS = 50000 };

static pthread_mutex_t init_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t call_lock = PTHREAD_MUTEX_INITIALIZER;
static bool fork_handler_set;
static uint64_t thread_count;

static uint32_t is_torn_down;

CUresult emu_not_ready(const char *function) {
    if (__atomic_load_n(&emu_driver.ready, __ATOMIC_ACQUIRE) != 0) {
        return emu_fail_now(function);
    }
    return __atomic_load_n(&is_torn_down, __ATOMIC_ACQUIRE) != 0 ? CUDA_ERROR_DEINITIALIZED
                                                                 : CUDA_ERROR_NOT_INITIALIZED;
}

/* Runs when the process exits. What the process holds on the GPUs is released with it. */
static void tear_down(void) {
    __atomic_store_n(&is_torn_down, 1, __ATOMIC_RELEASE);
    __atomic_store_n(&emu_driver.ready, 0, __ATOMIC_RELEASE);
}

void emu_hold(void) {
    if (emu_driver.state.times.has_locks) {
        pthread_mutex_lock(&call_lock);
    }
}

void emu_let_go(void) {
    if (emu_driver.state.times.has_locks) {
        pthread_mutex_unlock(&call_lock);
    }
}

/* Like the real driver, spins for short calls and sleeps for long ones. */
void emu_occupy(uint64_t ns) {
    uint64_t end = emu_now_ns() + ns;
    if (ns > SPIN_NS) {
        emu_sleep_until(end);
    }
    while (emu_now_ns() < end) {
    }
}

uint64_t emu_thread_id(void) {
    if (emu_thread.id == 0) {
        emu_thread.id = __atomic_add_fetch(&thread_count, 1, __ATOMIC_RELAXED);
    }
    return emu_thread.id;
}

/*
 * As with the real driver, the child of a fork has no driver: contexts are not inherited, and cuInit fails. The child
 * closes its copy of the state file, so that the copy does not hold the parent's lock after the parent's death.
 */
static void after_fork(void) {
    if (emu_driver.ready != 0) {
        emu_driver.ready = 0;
        emu_driver.inherited = true;
        emu_driver.problem = CUDA_ERROR_NOT_INITIALIZED;
        emu_rm_after_fork();
        emu_state_close(&emu_driver.state);
    }
    pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;
    memcpy(&init_lock, &unlocked, sizeof unlocked);
    emu_thread.depth = 0;
}

static bool same_uuid(const char *text, size_t length, uint32_t index) {
    uint8_t u[16];
    char name[48];
    emu_gpu_uuid(&emu_driver.state, index, u);
    snprintf(name, sizeof name,
             "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0], u[1],
             u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14],
             u[15]);
    return length >= 5 && length <= strlen(name) && strncasecmp(name, text, length) == 0;
}

/* The GPU that one entry of CUDA_VISIBLE_DEVICES names, or -1. */
static int visible_gpu(const char *text, size_t length) {
    int count = (int)emu_driver.state.settings.devices;
    if (length > 0 && length < 6 && strspn(text, "0123456789") >= length) {
        int index = atoi(text);
        return index < count ? index : -1;
    }
    int found = -1;
    for (int i = 0; i < count; i++) {
        if (same_uuid(text, length, (uint32_t)i)) {
            if (found >= 0) {
                return -1; /* the prefix is ambiguous */
            }
            found = i;
        }
    }
    return found;
}

static void add_device(emu_gpu *gpu) {
    emu_device *device = &emu_driver.devices[emu_driver.device_count++];
    memset(device, 0, sizeof *device);
    pthread_mutex_init(&device->lock, NULL);
    device->gpu = gpu;
}

/* The devices without CUDA_VISIBLE_DEVICES: all GPUs that are not in MIG mode; if there are none, the first
 * instance. */
static void find_all(void) {
    int count = (int)emu_driver.state.settings.devices;
    for (int i = 0; i < count; i++) {
        if (!emu_mig_is_on((uint32_t)i)) {
            add_device(&emu_driver.state.gpus[i]);
        }
    }
    for (int i = 0; i < count && emu_driver.device_count == 0; i++) {
        if (emu_mig_is_on((uint32_t)i) && emu_mig_choose_first((uint32_t)i)) {
            add_device(&emu_driver.mig_gpu);
        }
    }
}

/* A process can use one MIG instance, and no other device besides. */
static void find_instance(bool chosen) {
    if (chosen) {
        add_device(&emu_driver.mig_gpu);
    }
}

/* As in the real driver: the devices in the given order, up to the first invalid entry. */
static void find_devices(void) {
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    bool taken[EMU_MAX_DEVICES] = {false};
    emu_driver.device_count = 0;
    if (visible == NULL) {
        find_all();
        return;
    }
    while (*visible != '\0') {
        visible += strspn(visible, " ");
        size_t length = strcspn(visible, ",");
        size_t word = length;
        while (word > 0 && visible[word - 1] == ' ') {
            word--;
        }
        if (word >= 4 && strncasecmp(visible, "MIG-", 4) == 0) {
            find_instance(emu_driver.device_count == 0 && emu_mig_choose_uuid(visible, word));
            return;
        }
        int gpu = visible_gpu(visible, word);
        if (gpu >= 0 && emu_mig_is_on((uint32_t)gpu)) {
            find_instance(emu_driver.device_count == 0 && emu_mig_choose_first((uint32_t)gpu));
            return;
        }
        if (gpu < 0 || taken[gpu]) {
            if (gpu >= 0) {
                emu_driver.device_count = 0; /* a device named twice: no devices at all */
            }
            return;
        }
        taken[gpu] = true;
        add_device(&emu_driver.state.gpus[gpu]);
        visible += length + (visible[length] == ',' ? 1 : 0);
    }
}

static CUresult initialize(void) {
    char problem[700];
    if (emu_state_open(&emu_driver.state, problem, sizeof problem) != 0) {
        return CUDA_ERROR_UNKNOWN;
    }
    find_devices();
    if (emu_driver.device_count == 0) {
        emu_log("no device: devices=%u CUDA_VISIBLE_DEVICES=%s", emu_driver.state.settings.devices,
                getenv("CUDA_VISIBLE_DEVICES"));
        emu_state_close(&emu_driver.state);
        return CUDA_ERROR_NO_DEVICE;
    }
    if (emu_state_join(&emu_driver.state, problem, sizeof problem) != 0 ||
        (emu_mig_chosen() && !emu_mig_enter())) {
        emu_state_close(&emu_driver.state);
        return CUDA_ERROR_UNKNOWN;
    }
    emu_rm_start(emu_driver.device_count);
    return CUDA_SUCCESS;
}

EMU_API CUresult cuInit(unsigned int flags) {
    EMU_REQUIRE(flags == 0);
    if (__atomic_load_n(&emu_driver.ready, __ATOMIC_ACQUIRE) != 0) {
        return CUDA_SUCCESS;
    }
    if (__atomic_load_n(&is_torn_down, __ATOMIC_ACQUIRE) != 0) {
        return CUDA_ERROR_DEINITIALIZED;
    }
    pthread_mutex_lock(&init_lock);
    CUresult result = emu_driver.inherited ? CUDA_ERROR_NOT_INITIALIZED : CUDA_SUCCESS;
    if (result == CUDA_SUCCESS && emu_driver.ready == 0) {
        if (!fork_handler_set) {
            pthread_atfork(NULL, NULL, after_fork);
            fork_handler_set = true;
        }
        result = initialize();
        if (result == CUDA_SUCCESS) {
            if (emu_driver.state.times.has_teardown) {
                atexit(tear_down);
            }
            __atomic_store_n(&emu_driver.ready, emu_fail_open() ? 2 : 1, __ATOMIC_RELEASE);
        }
    }
    pthread_mutex_unlock(&init_lock);
    return result;
}

EMU_API CUresult cuDriverGetVersion(int *version) {
    EMU_REQUIRE(version != NULL);
    *version = emu_settings_cuda_version();
    return CUDA_SUCCESS;
}

emu_device *emu_device_at(CUdevice device) {
    return device >= 0 && device < emu_driver.device_count ? &emu_driver.devices[device] : NULL;
}

static const size_t default_limits[EMU_LIMITS] = {1024, 1 << 20, 8 << 20, 2, 2048, 64, 0, 0, 0, 0};

/* again: the handle of a closed context to reuse; NULL: any handle. */
static CUresult open_context(CUdevice device, unsigned int flags, uint64_t bytes, CUcontext again,
                             CUcontext *result) {
    emu_gpu *gpu = emu_driver.devices[device].gpu;
    if (!emu_gpu_charge(gpu, bytes)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUcontext context =
        again != NULL ? emu_pool_revive(&emu_contexts, again) : emu_pool_take(&emu_contexts);
    uint32_t index = context == NULL ? EMU_MAX_CONTEXTS : emu_gpu_add_context(gpu);
    if (index != EMU_MAX_CONTEXTS && emu_mig_chosen() && !emu_mig_is_there()) {
        emu_gpu_remove_context(gpu, index); /* another process is destroying the instance */
        index = EMU_MAX_CONTEXTS;
    }
    CUstream legacy = NULL;
    if (index != EMU_MAX_CONTEXTS) {
        context->gpu = gpu;
        context->device = device;
        context->index = index;
        context->flags = flags;
        context->api_version = 3020;
        context->owner = context->object.generation;
        memcpy(context->limits, default_limits, sizeof default_limits);
        pthread_mutex_init(&context->lock, NULL);
        pthread_cond_init(&context->progress, NULL);
        context->known_ns = emu_now_ns();
        context->demand_ns = emu_demand(gpu, index);
        context->known_service_ns = context->demand_ns;
        context->blocking_end_ns = context->demand_ns;
        legacy = emu_stream_open(context, CU_STREAM_DEFAULT, 0);
    }
    if (legacy == NULL) {
        if (index != EMU_MAX_CONTEXTS) {
            emu_gpu_remove_context(gpu, index);
        }
        if (again != NULL) {
            emu_pool_retire(&emu_contexts, again);
        } else if (context != NULL) {
            emu_pool_give(&emu_contexts, context);
        }
        emu_gpu_refund(gpu, bytes);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    legacy->is_legacy = true;
    context->legacy = legacy;
    emu_rm_context_opened(context);
    *result = context;
    return CUDA_SUCCESS;
}

CUresult emu_context_open(CUdevice device, unsigned int flags, bool primary, CUcontext *result) {
    uint64_t bytes = emu_driver.devices[device].gpu->state->settings.context_bytes;
    emu_device *of = &emu_driver.devices[device];
    CUresult opened =
        open_context(device, flags, bytes, primary ? of->primary_handle : NULL, result);
    if (opened == CUDA_SUCCESS && primary) {
        (*result)->is_primary = true;
        of->primary_handle = *result;
    }
    return opened;
}

CUresult emu_context_open_green(CUcontext primary, uint32_t sms, CUcontext *result) {
    CUresult opened = open_context(primary->device, primary->flags, 0, NULL, result);
    if (opened == CUDA_SUCCESS) {
        (*result)->primary = primary;
        (*result)->sms = sms;
        (*result)->user = 0;
        (*result)->owner = primary->object.generation;
    }
    return opened;
}

static void forget_events(CUcontext context) {
    while (context->first_pending != NULL) {
        CUevent event = context->first_pending;
        context->first_pending = event->next_pending;
        event->next_pending = NULL;
        event->previous_pending = NULL;
        event->recorded_in = NULL;
        event->state = EMU_EVENT_DONE;
        event->time_ns = emu_now_ns();
    }
    context->last_pending = NULL;
}

void emu_context_close(CUcontext context) {
    emu_gpu *gpu = context->gpu;
    uint32_t generation = context->object.generation;
    bool is_green = context->primary != NULL;
    uint64_t bytes = gpu->state->settings.context_bytes + context->grown_bytes;
    emu_modules_close(context);
    emu_rm_context_closing(context);
    pthread_mutex_lock(&context->lock);
    emu_gpu_remove_context(gpu, context->index);
    forget_events(context);
    while (context->streams != NULL) {
        emu_stream_close(context->streams);
    }
    (context->is_primary ? emu_pool_retire : emu_pool_give)(&emu_contexts, context);
    pthread_mutex_unlock(&context->lock);
    if (!is_green) {
        emu_memory_free_owned(gpu, EMU_DEVICE_MEMORY, EMU_ARRAY_MEMORY, generation);
        emu_gpu_refund(gpu, bytes);
        emu_cost(emu_driver.state.times.destroy_cost_ns);
    }
}

CUstream emu_stream_open(CUcontext context, unsigned int flags, int priority) {
    CUstream stream = emu_pool_take(&emu_streams);
    if (stream != NULL) {
        stream->context = context;
        stream->flags = flags;
        stream->priority = priority;
        stream->id = ++context->stream_count;
        stream->end_ns = 0;
        stream->next = context->streams;
        if (stream->next != NULL) {
            stream->next->previous = stream;
        }
        context->streams = stream;
    }
    return stream;
}

void emu_stream_close(CUstream stream) {
    CUcontext context = stream->context;
    if (stream->previous != NULL) {
        stream->previous->next = stream->next;
    } else {
        context->streams = stream->next;
    }
    if (stream->next != NULL) {
        stream->next->previous = stream->previous;
    }
    CUgraph graph = NULL;
    if (stream->capture != NULL && stream->capture->origin == stream &&
        emu_capture_end(stream, &graph) == CUDA_SUCCESS) {
        emu_graph_close(graph);
    }
    emu_stream_drop_waiting(stream);
    emu_nodes_clear(&stream->captured);
    free(stream->queue);
    stream->queue = NULL;
    free(stream->attributes);
    stream->attributes = NULL;
    emu_pool_give(&emu_streams, stream);
}

static CUstream thread_stream(CUcontext context) {
    uint64_t thread = emu_thread_id();
    if (emu_thread.stream_of.context == context &&
        emu_thread.stream_of.generation == context->object.generation) {
        return emu_thread.stream;
    }
    CUstream stream = context->streams;
    while (stream != NULL && stream->thread != thread) {
        stream = stream->next;
    }
    if (stream == NULL) {
        stream = emu_stream_open(context, CU_STREAM_DEFAULT, 0);
        if (stream != NULL) {
            stream->thread = thread;
        }
    }
    if (stream != NULL) {
        emu_thread.stream = stream;
        emu_thread.stream_of =
            (emu_stack_entry){.context = context, .generation = context->object.generation};
    }
    return stream;
}

CUresult emu_stream_of(CUcontext context, CUstream handle, bool per_thread, CUstream *stream) {
    if (handle == CU_STREAM_LEGACY || (handle == NULL && !per_thread)) {
        *stream = context->legacy;
        return CUDA_SUCCESS;
    }
    if (handle == CU_STREAM_PER_THREAD || handle == NULL) {
        pthread_mutex_lock(&context->lock);
        *stream = thread_stream(context);
        pthread_mutex_unlock(&context->lock);
        return *stream == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
    }
    if (!emu_pool_has(&emu_streams, handle)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    *stream = handle;
    return CUDA_SUCCESS;
}
