/* Memory pools and allocation in stream order. */
#include "driver.h"
#include "memory.h"
#include "operation.h"

#include <string.h>

enum {
    ATTRIBUTES = 9,
    RELEASE_THRESHOLD = 4,
    RESERVED_NOW = 5,
    RESERVED_HIGH = 6,
    USED_NOW = 7,
    USED_HIGH = 8
};

struct CUmemPoolHandle_st {
    emu_object object;
    emu_gpu *gpu;
    bool is_default;
    uint64_t attributes[ATTRIBUTES];
};

static emu_pool pools = EMU_POOL(struct CUmemPoolHandle_st, 1 << 14);

static CUmemoryPool open_pool(emu_gpu *gpu, bool is_default) {
    CUmemoryPool pool = emu_pool_take(&pools);
    if (pool != NULL) {
        pool->gpu = gpu;
        pool->is_default = is_default;
        pool->attributes[1] = pool->attributes[2] = pool->attributes[3] = 1;
    }
    return pool;
}

static CUresult default_pool(CUdevice ordinal, CUmemoryPool *result) {
    emu_device *device = emu_device_at(ordinal);
    if (device == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    pthread_mutex_lock(&device->lock);
    if (device->default_pool == NULL) {
        device->default_pool = open_pool(device->gpu, true);
    }
    *result = device->default_pool;
    pthread_mutex_unlock(&device->lock);
    return *result == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

EMU_API CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device) {
    EMU_INITIALIZED();
    EMU_REQUIRE(pool != NULL);
    return default_pool(device, pool);
}

EMU_API CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice ordinal) {
    EMU_INITIALIZED();
    EMU_REQUIRE(pool != NULL);
    emu_device *device = emu_device_at(ordinal);
    if (device != NULL && emu_pool_has(&pools, device->pool)) {
        *pool = device->pool;
        return CUDA_SUCCESS;
    }
    return default_pool(ordinal, pool);
}

EMU_API CUresult cuDeviceSetMemPool(CUdevice ordinal, CUmemoryPool pool) {
    EMU_INITIALIZED();
    emu_device *device = emu_device_at(ordinal);
    if (device == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    EMU_REQUIRE(emu_pool_has(&pools, pool) && pool->gpu == device->gpu);
    device->pool = pool;
    return CUDA_SUCCESS;
}

EMU_API CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties) {
    EMU_INITIALIZED();
    EMU_REQUIRE(pool != NULL && properties != NULL && properties->alloc_type == 1 &&
                properties->location.type == 1);
    emu_device *device = emu_device_at(properties->location.id);
    if (device == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    if (properties->handle_types != 0) {
        return CUDA_ERROR_NOT_SUPPORTED; /* sharing with other processes */
    }
    *pool = open_pool(device->gpu, false);
    return *pool == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

/* What was allocated from it stays until it is freed. */
EMU_API CUresult cuMemPoolDestroy(CUmemoryPool pool) {
    EMU_INITIALIZED();
    EMU_REQUIRE(emu_pool_has(&pools, pool) && !pool->is_default);
    emu_pool_give(&pools, pool);
    return CUDA_SUCCESS;
}

EMU_API CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t bytes) {
    EMU_INITIALIZED();
    (void)bytes; /* a pool here holds nothing but what is in use */
    EMU_REQUIRE(emu_pool_has(&pools, pool));
    return CUDA_SUCCESS;
}

EMU_API CUresult cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void *value) {
    EMU_INITIALIZED();
    EMU_REQUIRE(emu_pool_has(&pools, pool) && value != NULL && attribute > 0 &&
                attribute < ATTRIBUTES);
    if (attribute < RELEASE_THRESHOLD) {
        *(int *)value = (int)pool->attributes[attribute];
    } else if (attribute == USED_NOW || attribute == RESERVED_NOW) {
        *(uint64_t *)value =
            emu_memory_owned_bytes(pool->gpu, EMU_POOL_MEMORY, pool->object.generation);
    } else {
        *(uint64_t *)value = pool->attributes[attribute];
    }
    return CUDA_SUCCESS;
}

EMU_API CUresult cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void *value) {
    EMU_INITIALIZED();
    EMU_REQUIRE(emu_pool_has(&pools, pool) && value != NULL && attribute > 0 &&
                attribute < ATTRIBUTES);
    EMU_REQUIRE(attribute != USED_NOW && attribute != RESERVED_NOW);
    if (attribute < RELEASE_THRESHOLD) {
        pool->attributes[attribute] = *(const int *)value != 0 ? 1 : 0;
    } else {
        EMU_REQUIRE(attribute == RELEASE_THRESHOLD ||
                    *(const uint64_t *)value == 0); /* high marks are only reset */
        pool->attributes[attribute] = *(const uint64_t *)value;
    }
    return CUDA_SUCCESS;
}

EMU_API CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *access,
                                    size_t count) {
    EMU_INITIALIZED();
    EMU_REQUIRE(emu_pool_has(&pools, pool) && (count == 0 || access != NULL));
    return CUDA_SUCCESS;
}

EMU_API CUresult cuMemPoolGetAccess(int *flags, CUmemoryPool pool, CUmemLocation *location) {
    EMU_INITIALIZED();
    EMU_REQUIRE(flags != NULL && emu_pool_has(&pools, pool) && location != NULL);
    *flags = 3;
    return CUDA_SUCCESS;
}

static CUresult allocate(CUdeviceptr *address, size_t bytes, CUmemoryPool given, CUstream handle,
                         bool per_thread) {
    EMU_CONTEXT(context);
    EMU_REQUIRE(address != NULL && bytes > 0);
    CUstream stream = NULL;
    CUmemoryPool pool = given;
    CUresult result = emu_stream_of(context, handle, per_thread, &stream);
    if (result == CUDA_SUCCESS && pool == NULL) {
        result = cuDeviceGetMemPool(&pool, context->device);
    }
    if (result != CUDA_SUCCESS) {
        return result;
    }
    EMU_REQUIRE(emu_pool_has(&pools, pool));
    if (emu_stream_is_captured(stream)) {
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    result =
        emu_memory_allocate(pool->gpu, bytes, EMU_POOL_MEMORY, pool->object.generation, address);
    if (result == CUDA_SUCCESS) {
        uint64_t used = emu_memory_owned_bytes(pool->gpu, EMU_POOL_MEMORY, pool->object.generation);
        if (used > pool->attributes[USED_HIGH]) {
            pool->attributes[USED_HIGH] = used;
            pool->attributes[RESERVED_HIGH] = used;
        }
    }
    return result;
}

EMU_API CUresult cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream) {
    return allocate(address, bytes, NULL, stream, false);
}

EMU_API CUresult cuMemAllocAsync_ptsz(CUdeviceptr *address, size_t bytes, CUstream stream) {
    return allocate(address, bytes, NULL, stream, true);
}

EMU_API CUresult cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t bytes, CUmemoryPool pool,
                                         CUstream stream) {
    EMU_REQUIRE(pool != NULL);
    return allocate(address, bytes, pool, stream, false);
}

EMU_API CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *address, size_t bytes, CUmemoryPool pool,
                                              CUstream stream) {
    EMU_REQUIRE(pool != NULL);
    return allocate(address, bytes, pool, stream, true);
}

static CUresult free_in_order(CUdeviceptr address, CUstream handle, bool per_thread) {
    EMU_CONTEXT(context);
    CUstream stream = NULL;
    CUresult result = emu_stream_of(context, handle, per_thread, &stream);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    emu_allocation found;
    EMU_REQUIRE(emu_memory_find(address, &found) && found.start == address &&
                (found.kind == EMU_POOL_MEMORY || found.kind == EMU_DEVICE_MEMORY));
    emu_operation operation = {.kind = EMU_FREE, .address = address};
    return emu_enqueue(stream, &operation);
}

EMU_API CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
    return free_in_order(address, stream, false);
}

EMU_API CUresult cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream) {
    return free_in_order(address, stream, true);
}
