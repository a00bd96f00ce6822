/* Contexts, and each thread's context stack. */
#include "base/log.h"
#include "driver/capture.h"
#include "driver/driver.h"
#include "driver/memory.h"
#include "driver/operation.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SCHEDULE_MASK = 7, FLAGS_MASK = 0xff };

static bool valid_flags(unsigned int flags) {
    unsigned int schedule = flags & SCHEDULE_MASK;
    return (flags & ~(unsigned int)FLAGS_MASK) == 0 && schedule != 3 && schedule < 5;
}

static bool known(CUcontext context) {
    return emu_pool_has(&emu_contexts, context);
}

/* Makes a green context current to the calling thread. It can be current to one thread at a time; a thread that has
 * ended no longer counts. */
static bool take_green(CUcontext context) {
    if (context == NULL || context->green == NULL || !emu_driver.state.times.has_single_green) {
        return true;
    }
    int own = (int)syscall(SYS_gettid);
    int user = __atomic_load_n(&context->user, __ATOMIC_ACQUIRE);
    if (user != 0 && user != own && syscall(SYS_tgkill, getpid(), user, 0) == 0) {
        emu_log("thread %d wants the green context that is current to thread %d", own, user);
        return false;
    }
    __atomic_store_n(&context->user, own, __ATOMIC_RELEASE);
    return true;
}

static CUcontext drop(void) {
    CUcontext context = emu_thread.stack[--emu_thread.depth].context;
    for (uint32_t i = 0; i < emu_thread.depth; i++) {
        if (emu_thread.stack[i].context == context) {
            return context;
        }
    }
    if (context != NULL && context->green != NULL) {
        __atomic_store_n(&context->user, 0, __ATOMIC_RELEASE);
    }
    return context;
}

static CUresult push(CUcontext context) {
    if (emu_thread.depth == EMU_STACK_DEPTH) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (!take_green(context)) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    emu_thread.stack[emu_thread.depth++] = (emu_stack_entry){
        .context = context,
        .generation = context == NULL || context->is_primary ? 0 : context->object.generation};
    return CUDA_SUCCESS;
}

static CUresult create(CUcontext *result, unsigned int flags, CUdevice device) {
    EMU_INITIALIZED();
    EMU_REQUIRE(result != NULL && valid_flags(flags));
    if (emu_device_at(device) == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    if (emu_thread.depth == EMU_STACK_DEPTH) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUresult created = emu_context_open(device, flags, false, result);
    return created == CUDA_SUCCESS ? push(*result) : created;
}

EMU_API CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device) {
    return create(context, flags, device);
}

EMU_API CUresult cuCtxCreate_v3(CUcontext *context, void *affinity, int count, unsigned int flags,
                                CUdevice device) {
    if (affinity != NULL || count != 0) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    return create(context, flags, device);
}

EMU_API CUresult cuCtxCreate_v4(CUcontext *context, CUctxCreateParams *params, unsigned int flags,
                                CUdevice device) {
    if (params != NULL && (params->affinity_param_count != 0 || params->cig_params != NULL)) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    return create(context, flags, device);
}

EMU_API CUresult cuCtxDestroy_v2(CUcontext context) {
    EMU_INITIALIZED();
    EMU_REQUIRE(context != NULL);
    if (!known(context) || context->is_primary || context->primary != NULL) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    emu_context_drain(context);
    if (emu_thread.depth > 0 && emu_thread.stack[emu_thread.depth - 1].context == context) {
        emu_thread.depth--;
    }
    emu_context_close(context);
    return CUDA_SUCCESS;
}

EMU_API CUresult cuCtxAttach(CUcontext *result, unsigned int flags) {
    EMU_CONTEXT(context);
    EMU_REQUIRE(result != NULL && flags == 0);
    __atomic_add_fetch(&context->attached, 1, __ATOMIC_RELAXED);
    *result = context;
    return CUDA_SUCCESS;
}

/* Only a thread to which the context is current may detach it. The last detach destroys it. */
EMU_API CUresult cuCtxDetach(CUcontext context) {
    EMU_CONTEXT(current);
    if (context != current) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (__atomic_load_n(&context->attached, __ATOMIC_RELAXED) > 0) {
        __atomic_sub_fetch(&context->attached, 1, __ATOMIC_RELAXED);
        return CUDA_SUCCESS;
    }
    return cuCtxDestroy_v2(context);
}

EMU_API CUresult cuCtxPushCurrent_v2(CUcontext context) {
    EMU_INITIALIZED();
    EMU_REQUIRE(context != NULL);
    return known(context) ? push(context) : CUDA_ERROR_INVALID_CONTEXT;
}

EMU_API CUresult cuCtxPopCurrent_v2(CUcontext *context) {
    EMU_INITIALIZED();
    if (emu_thread.depth == 0) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    CUcontext top = drop();
    if (context != NULL) {
        *context = top;
    }
    return CUDA_SUCCESS;
}

EMU_API CUresult cuCtxSetCurrent(CUcontext context) {
    EMU_INITIALIZED();
    if (context != NULL && !known(context)) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (emu_thread.depth > 0) {
        drop();
    }
    return context == NULL ? CUDA_SUCCESS : push(context);
}

EMU_API CUresult cuCtxGetCurrent(CUcontext *context) {
    EMU_INITIALIZED();
    EMU_REQUIRE(context != NULL);
    *context = emu_thread.depth == 0 ? NULL : emu_thread.stack[emu_thread.depth - 1].context;
    return CUDA_SUCCESS;
}

EMU_API CUresult cuCtxGetDevice(CUdevice *device) {
    EMU_CONTEXT(context);
    EMU_REQUIRE(device != NULL);
    *device = context->device;
    return CUDA_SUCCESS;
}

EMU_API CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext context) {
    EMU_INITIALIZED();
    EMU_REQUIRE(device != NULL);
    if (context == NULL) {
        return cuCtxGetDevice(device);
    }
    if (!known(context)) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    *device = context->device;
    return CUDA_SUCCESS;
}

static CUresult synchronize(CUcontext context) {
    CUresult refused = CUDA_SUCCESS;
    if (emu_captures_active()) {
        pthread_mutex_lock(&context->lock);
        refused = emu_capture_refuse_context(context);
        pthread_mutex_unlock(&context->lock);
    }
    return refused != CUDA_SUCCESS ? refused : emu_context_drain(context);
}

EMU_API CUresult cuCtxSynchronize(void) {
    EMU_CONTEXT(context);
    return synchronize(context);
}

EMU_API CUresult cuCtxSynchronize_v2(CUcontext context) {
    EMU_INITIALIZED();
    if (context == NULL) {
        return cuCtxSynchronize();
    }
    return known(context) ? synchronize(context) : CUDA_ERROR_INVALID_CONTEXT;
}

EMU_API CUresult cuCtxGetApiVersion(CUcontext context, unsigned int *version) {
    EMU_INITIALIZED();
    EMU_REQUIRE(version != NULL);
    CUcontext current = context;
    if (context == NULL) {
        CUresult result = emu_current(&current);
        if (result != CUDA_SUCCESS) {
            return result;
        }
    }
    if (!known(current)) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    *version = current->api_version;
    return CUDA_SUCCESS;
}

EMU_API CUresult cuCtxGetFlags(unsigned int *flags) {
    EMU_CONTEXT(context);
    EMU_REQUIRE(flags != NULL);
    *flags = context->flags;
    return CUDA_SUCCESS;
}

EMU_API CUresult cuCtxSetFlags(unsigned int flags) {
    EMU_CONTEXT(context);
    EMU_REQUIRE(valid_flags(flags));
    context->flags = flags;
    return CUDA_SUCCESS;
}

EMU_API CUresult cuCtxGetId(CUcontext context, unsigned long long *id) {
    EMU_INITIALIZED();
    EMU_REQUIRE(id != NULL);
    CUcontext current = context;
    if (context == NULL) {
        CUresult result = emu_current(&current);
        if (result != CUDA_SUCCESS) {
            return result;
        }
    }
    if (!known(current)) {
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    }
    *id = (unsigned long long)current->object.generation << 32 | current->index;
    return CUDA_SUCCESS;
}

EMU_API CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
    EMU_CONTEXT(context);
    (void)context;
    if (least != NULL) {
        *least = 0;
    }
    if (greatest != NULL) {
        *greatest = -5;
    }
    return CUDA_SUCCESS;
}

EMU_API CUresult cuCtxGetCacheConfig(int *config) {
    EMU_CONTEXT(context);
    (void)context;
    EMU_REQUIRE(config != NULL);
    *config = 0;
    return CUDA_SUCCESS;
}

EMU_API CUresult cuCtxSetCacheConfig(int config) {
    EMU_CONTEXT(context);
    (void)context;
    EMU_REQUIRE(config >= 0 && config <= 3);
    return CUDA_SUCCESS;
}

EMU_API CUresult cuCtxGetSharedMemConfig(int *config) {
    EMU_CONTEXT(context);
    (void)context;
    EMU_REQUIRE(config != NULL);
    *config = 1;
    return CUDA_SUCCESS;
}

EMU_API CUresult cuCtxSetSharedMemConfig(int config) {
    EMU_CONTEXT(context);
    (void)context;
    EMU_REQUIRE(config >= 0 && config <= 2);
    return CUDA_SUCCESS;
}

EMU_API CUresult cuCtxResetPersistingL2Cache(void) {
    EMU_CONTEXT(context);
    (void)context;
    return CUDA_SUCCESS;
}

EMU_API CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags) {
    EMU_CONTEXT(context);
    EMU_REQUIRE(flags == 0);
    if (!known(peer)) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    return peer->device == context->device ? CUDA_ERROR_PEER_ACCESS_UNSUPPORTED : CUDA_SUCCESS;
}

EMU_API CUresult cuCtxDisablePeerAccess(CUcontext peer) {
    EMU_CONTEXT(context);
    (void)context;
    return known(peer) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

EMU_API CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice ordinal) {
    EMU_INITIALIZED();
    EMU_REQUIRE(context != NULL);
    emu_device *device = emu_device_at(ordinal);
    if (device == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&device->lock);
    if (device->primary == NULL) {
        result = emu_context_open(ordinal, device->primary_flags, true, &device->primary);
    }
    if (result == CUDA_SUCCESS) {
        device->primary_users++;
        *context = device->primary;
    }
    pthread_mutex_unlock(&device->lock);
    return result;
}

static CUresult release(CUdevice ordinal, bool all) {
    EMU_INITIALIZED();
    emu_device *device = emu_device_at(ordinal);
    if (device == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    CUcontext closing = NULL;
    pthread_mutex_lock(&device->lock);
    /* A reset does not count as a release: a caller that retained the context must still release it. */
    CUresult result =
        device->primary_users == 0 && !all ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
    device->primary_users -= all || device->primary_users == 0 ? 0 : 1;
    if (all || device->primary_users == 0) {
        closing = device->primary;
        device->primary = NULL;
    }
    pthread_mutex_unlock(&device->lock);
    if (closing != NULL) {
        emu_context_drain(closing);
        emu_context_close(closing);
    }
    if (all && result == CUDA_SUCCESS) { /* resets everything that the process has on the device */
        emu_pools_reset(device->gpu);
        emu_graph_memory_reset(device->gpu);
    }
    return result;
}

EMU_API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    EMU_INITIALIZED();
    return release(device, false);
}

EMU_API CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
    EMU_INITIALIZED();
    return release(device, true);
}

EMU_API CUresult cuDevicePrimaryCtxGetState(CUdevice ordinal, unsigned int *flags, int *active) {
    EMU_INITIALIZED();
    EMU_REQUIRE(flags != NULL && active != NULL);
    emu_device *device = emu_device_at(ordinal);
    if (device == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    pthread_mutex_lock(&device->lock);
    *flags = device->primary_flags;
    *active = device->primary != NULL ? 1 : 0;
    pthread_mutex_unlock(&device->lock);
    return CUDA_SUCCESS;
}

EMU_API CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice ordinal, unsigned int flags) {
    EMU_INITIALIZED();
    EMU_REQUIRE(valid_flags(flags));
    emu_device *device = emu_device_at(ordinal);
    if (device == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    pthread_mutex_lock(&device->lock);
    device->primary_flags = flags;
    if (device->primary != NULL) {
        device->primary->flags = flags;
    }
    pthread_mutex_unlock(&device->lock);
    return CUDA_SUCCESS;
}
