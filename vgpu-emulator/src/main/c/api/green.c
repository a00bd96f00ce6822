/*
 * Green contexts: a subset of a device's processors for the streams of one context, which shares everything else with
 * the primary context. A kernel takes longer in one, because its blocks need more waves on fewer processors. Two green
 * contexts take turns like ordinary contexts; on a real GPU they run side by side.
 */
#include "driver/driver.h"
#include "driver/operation.h"

#include <string.h>

enum { RESOURCE_SM = 1, IGNORE_COSCHEDULING = 1, LARGEST_CLUSTERS = 2, DEFAULT_STREAM = 1 };

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device);
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device);

#define RESOURCE_MAGIC UINT32_C(0x4d536572)

/* The driver's private part of a resource. */
typedef struct {
    uint32_t magic;
    int32_t device;
    uint32_t first; /* of the processors in the resource */
    uint32_t count;
} hidden;

struct CUgreenCtx_st {
    emu_object object;
    CUcontext context;
    uint32_t first;
    uint64_t id;
};

struct CUdevResourceDesc_st {
    emu_object object;
    CUdevice device;
    uint32_t first;
    uint32_t sms;
};

static emu_pool greens = EMU_POOL(struct CUgreenCtx_st, 4096);
static emu_pool descriptors = EMU_POOL(struct CUdevResourceDesc_st, 1 << 16);

static void fill(CUdevResource *resource, CUdevice device, uint32_t first, uint32_t count) {
    hidden inside = {RESOURCE_MAGIC, device, first, count};
    memset(resource, 0, sizeof *resource);
    if (count == 0) {
        return; /* no type: an empty resource */
    }
    resource->type = RESOURCE_SM;
    memcpy(resource->internal, &inside, sizeof inside);
    resource->sm_count = count;
}

static bool read(const CUdevResource *resource, hidden *inside) {
    memcpy(inside, resource->internal, sizeof *inside);
    return inside->magic == RESOURCE_MAGIC && inside->count == resource->sm_count;
}

/* The minimum number of processors in a partition, and the step in which it grows. */
static void granularity(unsigned int flags, uint32_t *least, uint32_t *step) {
    uint32_t major = emu_driver.state.settings.capability_major;
    *least = major >= 9 ? 8 : major == 8 ? 4 : 2;
    *step = major >= 9 ? 8 : 2;
    if (major >= 9 && (flags & IGNORE_COSCHEDULING) != 0) {
        *least = *step = 2;
    }
}

EMU_API CUresult cuDeviceGetDevResource(CUdevice device, CUdevResource *resource, int type) {
    EMU_INITIALIZED();
    EMU_REQUIRE(resource != NULL);
    if (emu_device_at(device) == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    if (type != RESOURCE_SM) {
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    }
    fill(resource, device, 0, emu_driver.devices[device].gpu->state->settings.sms);
    return CUDA_SUCCESS;
}

static uint32_t sms_of(CUcontext context) {
    return context->sms != 0 ? context->sms : context->gpu->state->settings.sms;
}

EMU_API CUresult cuCtxGetDevResource(CUcontext context, CUdevResource *resource, int type) {
    EMU_INITIALIZED();
    EMU_REQUIRE(resource != NULL);
    if (!emu_pool_has(&emu_contexts, context)) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (type != RESOURCE_SM) {
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    }
    fill(resource, context->device, context->green == NULL ? 0 : context->green->first,
         sms_of(context));
    return CUDA_SUCCESS;
}

EMU_API CUresult cuDevSmResourceSplitByCount(CUdevResource *result, unsigned int *groups,
                                             const CUdevResource *input, CUdevResource *remaining,
                                             unsigned int flags, unsigned int least_count) {
    hidden inside;
    uint32_t least;
    uint32_t step;
    EMU_INITIALIZED();
    EMU_REQUIRE(groups != NULL && input != NULL &&
                flags <= (IGNORE_COSCHEDULING | LARGEST_CLUSTERS));
    if (input->type != RESOURCE_SM) {
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    }
    EMU_REQUIRE(read(input, &inside) && (result == NULL || *groups > 0));
    if (least_count > inside.count) {
        return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    }
    granularity(flags, &least, &step);
    uint32_t size = least_count > least ? (least_count + step - 1) / step * step : least;
    uint32_t possible = inside.count / size;
    uint32_t made = result != NULL && *groups < possible ? *groups : possible;
    for (uint32_t i = 0; result != NULL && i < made; i++) {
        fill(&result[i], inside.device, inside.first + i * size, size);
    }
    if (remaining != NULL) {
        fill(remaining, inside.device, inside.first + made * size, inside.count - made * size);
    }
    *groups = made;
    return CUDA_SUCCESS;
}

EMU_API CUresult cuDevResourceGenerateDesc(CUdevResourceDesc *descriptor, CUdevResource *resources,
                                           unsigned int count) {
    EMU_INITIALIZED();
    EMU_REQUIRE(descriptor != NULL && resources != NULL && count > 0);
    hidden first = {0};
    hidden inside;
    uint64_t sms = 0;
    for (unsigned int i = 0; i < count; i++) {
        if (resources[i].type != RESOURCE_SM) {
            return CUDA_ERROR_INVALID_RESOURCE_TYPE;
        }
        EMU_REQUIRE(read(&resources[i], &inside));
        first = i == 0 ? inside : first;
        if (inside.device != first.device) {
            return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
        }
        for (unsigned int j = 0; j < i; j++) { /* no processor may be in two resources */
            hidden other;
            read(&resources[j], &other);
            if (inside.first < other.first + other.count &&
                other.first < inside.first + inside.count) {
                return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
            }
        }
        sms += inside.count;
    }
    CUdevResourceDesc made = emu_pool_take(&descriptors);
    if (made == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    made->device = first.device;
    made->first = first.first;
    made->sms = (uint32_t)sms;
    *descriptor = made;
    return CUDA_SUCCESS;
}

EMU_API CUresult cuGreenCtxCreate(CUgreenCtx *green, CUdevResourceDesc descriptor, CUdevice device,
                                  unsigned int flags) {
    static uint64_t ids;
    EMU_INITIALIZED();
    EMU_REQUIRE(green != NULL && flags == DEFAULT_STREAM && emu_pool_has(&descriptors, descriptor));
    if (emu_device_at(device) == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    if (descriptor->device != device) {
        return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    }
    CUcontext primary = NULL;
    CUresult result = cuDevicePrimaryCtxRetain(&primary, device);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    CUgreenCtx made = emu_pool_take(&greens);
    result = made == NULL ? CUDA_ERROR_OUT_OF_MEMORY
                          : emu_context_open_green(primary, descriptor->sms, &made->context);
    if (result != CUDA_SUCCESS) {
        if (made != NULL) {
            emu_pool_give(&greens, made);
        }
        cuDevicePrimaryCtxRelease_v2(device);
        return result;
    }
    made->first = descriptor->first;
    made->id = __atomic_add_fetch(&ids, 1, __ATOMIC_RELAXED);
    made->context->green = made;
    *green = made;
    return CUDA_SUCCESS;
}

EMU_API CUresult cuGreenCtxDestroy(CUgreenCtx green) {
    EMU_INITIALIZED();
    EMU_REQUIRE(emu_pool_has(&greens, green));
    CUcontext context = green->context;
    CUdevice device = context->device;
    emu_context_drain(context);
    emu_pool_give(&greens, green);
    emu_context_close(context);
    return cuDevicePrimaryCtxRelease_v2(device);
}

EMU_API CUresult cuCtxFromGreenCtx(CUcontext *context, CUgreenCtx green) {
    EMU_INITIALIZED();
    EMU_REQUIRE(context != NULL && emu_pool_has(&greens, green));
    *context = green->context;
    return CUDA_SUCCESS;
}

EMU_API CUresult cuGreenCtxGetDevResource(CUgreenCtx green, CUdevResource *resource, int type) {
    EMU_INITIALIZED();
    EMU_REQUIRE(emu_pool_has(&greens, green));
    return cuCtxGetDevResource(green->context, resource, type);
}

EMU_API CUresult cuGreenCtxGetId(CUgreenCtx green, unsigned long long *id) {
    EMU_INITIALIZED();
    EMU_REQUIRE(id != NULL && emu_pool_has(&greens, green));
    *id = green->id;
    return CUDA_SUCCESS;
}

EMU_API CUresult cuGreenCtxStreamCreate(CUstream *stream, CUgreenCtx green, unsigned int flags,
                                        int priority) {
    EMU_INITIALIZED();
    EMU_REQUIRE(stream != NULL && emu_pool_has(&greens, green) && flags == CU_STREAM_NON_BLOCKING);
    CUcontext context = green->context;
    pthread_mutex_lock(&context->lock);
    *stream = emu_stream_open(context, flags, priority > 0 ? 0 : priority < -5 ? -5 : priority);
    pthread_mutex_unlock(&context->lock);
    return *stream == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

EMU_API CUresult cuStreamGetGreenCtx(CUstream stream, CUgreenCtx *green) {
    EMU_CONTEXT(context);
    EMU_REQUIRE(green != NULL);
    CUstream found = NULL;
    CUresult result = emu_stream_of(context, stream, false, &found);
    if (result == CUDA_SUCCESS) {
        *green = found->context->green;
    }
    return result;
}
