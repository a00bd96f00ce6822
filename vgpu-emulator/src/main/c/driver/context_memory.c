#include "context_memory.h"

#include "driver.h"
#include "memory.h"

enum {
    STACK = 0,
    PRINTF = 1,
    HEAP = 2,
    THREADS_PER_SM = 2048,
    STACK_STEP = 256,
    STACK_MOST = 512 * 1024
};

/* The default stack limit: a new context has room for it. */
enum { STACK_FIRST = 1024 };

/* A green context uses the memory of its primary context. */
static CUcontext owner_of(CUcontext context) {
    return context->primary != NULL ? context->primary : context;
}

/* The caller holds the context's lock. */
static CUresult take(CUcontext context, uint64_t bytes) {
    bytes = emu_memory_pieces(bytes);
    if (!emu_gpu_charge(context->gpu, bytes)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    context->grown_bytes += bytes;
    return CUDA_SUCCESS;
}

/* Takes stacks for as many threads as the GPU can run at once. The caller holds the context's lock. */
static CUresult take_stacks(CUcontext context, uint64_t bytes) {
    uint64_t each = (bytes + STACK_STEP - 1) / STACK_STEP * STACK_STEP;
    uint64_t has = context->stack_bytes == 0 ? STACK_FIRST : context->stack_bytes;
    if (each <= has) {
        return CUDA_SUCCESS;
    }
    uint64_t threads = (uint64_t)THREADS_PER_SM * emu_driver.state.settings.sms;
    CUresult result = take(context, (each - has) * threads);
    if (result == CUDA_SUCCESS) {
        context->stack_bytes = each;
    }
    return result;
}

/* Takes a buffer of a limit's size, once. The caller holds the context's lock. */
static CUresult take_buffer(CUcontext context, int limit, bool *has) {
    CUresult result = *has ? CUDA_SUCCESS : take(context, context->limits[limit]);
    *has |= result == CUDA_SUCCESS;
    return result;
}

CUresult emu_context_grow(CUfunction function) {
    CUcontext context = NULL;
    if (!emu_driver.state.times.is_growing ||
        (function->local_bytes == 0 && !function->has_printf && !function->has_malloc)) {
        return CUDA_SUCCESS;
    }
    CUresult result = emu_current(&context);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    context = owner_of(context);
    pthread_mutex_lock(&context->lock);
    result = take_stacks(context, function->local_bytes);
    if (result == CUDA_SUCCESS && function->has_printf) {
        result = take_buffer(context, PRINTF, &context->has_printf);
    }
    if (result == CUDA_SUCCESS && function->has_malloc) {
        result = take_buffer(context, HEAP, &context->has_heap);
    }
    pthread_mutex_unlock(&context->lock);
    return result;
}

EMU_API CUresult cuCtxGetLimit(size_t *value, int limit) {
    EMU_CONTEXT(context);
    EMU_REQUIRE(value != NULL);
    if (limit < 0 || limit >= EMU_LIMITS) {
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    }
    *value = context->limits[limit];
    return CUDA_SUCCESS;
}

/* Stacks are resized at once. A buffer that a kernel already uses cannot be resized. */
EMU_API CUresult cuCtxSetLimit(int limit, size_t value) {
    EMU_CONTEXT(context);
    if (limit < 0 || limit >= EMU_LIMITS) {
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    }
    CUcontext owner = owner_of(context);
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&owner->lock);
    if ((limit == PRINTF && owner->has_printf) || (limit == HEAP && owner->has_heap) ||
        (limit == STACK && value > STACK_MOST)) {
        result = CUDA_ERROR_INVALID_VALUE;
    } else if (limit == STACK && emu_driver.state.times.is_growing) {
        result = take_stacks(owner, value);
    }
    if (result == CUDA_SUCCESS) {
        context->limits[limit] = value;
    }
    pthread_mutex_unlock(&owner->lock);
    return result;
}
