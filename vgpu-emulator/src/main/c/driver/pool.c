/* Memory pools and stream-ordered allocation. */
#include "base/heap.h"
#include "base/shared_memory.h"
#include "driver.h"
#include "graph_memory.h"
#include "imported.h"
#include "memory.h"
#include "operation.h"
#include "pool.h"

#include "gpu/suspend.h"

#include <string.h>
#include <unistd.h>

enum {
    ATTRIBUTES = 9,
    RELEASE_THRESHOLD = 4,
    RESERVED_NOW = 5,
    RESERVED_HIGH = 6,
    USED_NOW = 7,
    USED_HIGH = 8,
    SHARED_AS_DESCRIPTOR = 1
};

/* The step in which a pool grows, as in the real driver. */
#define STEP (UINT64_C(32) << 20)

/*
 * A pool takes its GPU's memory in steps and keeps freed memory until a thread synchronizes with the GPU. It then gives
 * back what exceeds its release threshold.
 */
struct CUmemPoolHandle_st {
    emu_object object;
    CUmemoryPool next; /* in the list of pools that have memory or a handle */
    emu_gpu *gpu;
    emu_pool_place place;
    bool is_default;
    bool is_doomed; /* destroyed, but its memory is still in use */
    bool is_imported;
    int fd; /* imported: the other process's memory */
    int handle_types;
    uint64_t used;
    uint64_t reserved;
    uint64_t attributes[ATTRIBUTES];
};

static emu_pool pools = EMU_POOL(struct CUmemPoolHandle_st, 1 << 14);
/* Protects the list of pools and their counters. */
static pthread_mutex_t pools_lock = PTHREAD_MUTEX_INITIALIZER;
static CUmemoryPool first_pool;
static uint32_t kept_somewhere; /* a pool may hold more than is in use */

static bool valid(CUmemoryPool pool) {
    return emu_pool_has(&pools, pool) && !__atomic_load_n(&pool->is_doomed, __ATOMIC_ACQUIRE);
}

static uint64_t steps(uint64_t bytes) {
    return (bytes + STEP - 1) / STEP * STEP;
}

static uint64_t greater(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static uint64_t lesser(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

bool emu_pool_is_at(CUmemoryPool pool, emu_pool_place place) {
    return valid(pool) && pool->place.kind == place.kind && pool->place.device == place.device;
}

CUmemoryPool emu_pool_open(emu_pool_place place, bool is_default) {
    CUmemoryPool pool = emu_pool_take(&pools);
    if (pool != NULL) {
        pool->gpu = emu_device_at(place.device)->gpu;
        pool->place = place;
        pool->is_default = is_default;
        pool->fd = -1;
        pool->attributes[1] = pool->attributes[2] = pool->attributes[3] = 1;
        pthread_mutex_lock(&pools_lock);
        pool->next = first_pool;
        first_pool = pool;
        pthread_mutex_unlock(&pools_lock);
    }
    return pool;
}

static bool charge(CUmemoryPool pool, uint64_t bytes) {
    return pool->place.kind == EMU_POOL_HOST || emu_gpu_charge(pool->gpu, bytes);
}

static void refund(CUmemoryPool pool, uint64_t bytes) {
    if (pool->place.kind != EMU_POOL_HOST) {
        emu_gpu_refund(pool->gpu, bytes);
    }
}

/* The caller holds pools_lock. */
static void keep_only(CUmemoryPool pool, uint64_t bytes) {
    uint64_t least = steps(pool->used);
    uint64_t kept = lesser(greater(least, bytes), pool->reserved);
    if (kept < pool->reserved) {
        refund(pool, pool->reserved - kept);
        pool->reserved = kept;
    }
}

/* The caller holds pools_lock. */
static void close_if_unused(CUmemoryPool pool) {
    if (!pool->is_doomed || pool->used > 0) {
        return;
    }
    keep_only(pool, 0);
    CUmemoryPool *link = &first_pool;
    while (*link != pool) {
        link = &(*link)->next;
    }
    *link = pool->next;
    if (pool->fd >= 0) {
        close(pool->fd);
    }
    emu_pool_give(&pools, pool);
}

static bool take(CUmemoryPool pool, uint64_t bytes) {
    bool taken = true;
    pthread_mutex_lock(&pools_lock);
    uint64_t needed = steps(pool->used + bytes);
    if (needed > pool->reserved) {
        taken = charge(pool, needed - pool->reserved);
        if (!taken) { /* pools may keep more than they need */
            for (CUmemoryPool other = first_pool; other != NULL; other = other->next) {
                keep_only(other, 0);
            }
            taken = charge(pool, needed - pool->reserved);
        }
        pool->reserved = taken ? needed : pool->reserved;
    }
    if (taken) {
        pool->used += bytes;
        pool->attributes[USED_HIGH] = greater(pool->attributes[USED_HIGH], pool->used);
        pool->attributes[RESERVED_HIGH] = greater(pool->attributes[RESERVED_HIGH], pool->reserved);
    }
    pthread_mutex_unlock(&pools_lock);
    return taken;
}

void emu_pool_freed(uint32_t owner, uint64_t bytes) {
    pthread_mutex_lock(&pools_lock);
    for (CUmemoryPool pool = first_pool; pool != NULL; pool = pool->next) {
        if (pool->object.generation == owner) {
            pool->used -= lesser(bytes, pool->used);
            __atomic_store_n(&kept_somewhere, 1, __ATOMIC_RELEASE);
            close_if_unused(pool);
            break;
        }
    }
    pthread_mutex_unlock(&pools_lock);
}

void emu_pools_settle(void) {
    if (__atomic_load_n(&kept_somewhere, __ATOMIC_ACQUIRE) == 0) {
        return;
    }
    pthread_mutex_lock(&pools_lock);
    __atomic_store_n(&kept_somewhere, 0, __ATOMIC_RELEASE);
    for (CUmemoryPool pool = first_pool; pool != NULL; pool = pool->next) {
        keep_only(pool, pool->attributes[RELEASE_THRESHOLD]);
    }
    pthread_mutex_unlock(&pools_lock);
}

void emu_pools_reset(emu_gpu *gpu) {
    pthread_mutex_lock(&pools_lock);
    for (CUmemoryPool pool = first_pool; pool != NULL; pool = pool->next) {
        if (pool->gpu == gpu && pool->place.kind != EMU_POOL_HOST) {
            emu_memory_free_owned(gpu, EMU_POOL_MEMORY, EMU_POOL_MEMORY, pool->object.generation);
            pool->used = 0;
            keep_only(pool, 0);
        }
    }
    pthread_mutex_unlock(&pools_lock);
}

static CUresult default_pool(CUdevice ordinal, CUmemoryPool *result) {
    emu_device *device = emu_device_at(ordinal);
    if (device == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    pthread_mutex_lock(&device->lock);
    if (device->default_pool == NULL) {
        device->default_pool = emu_pool_open((emu_pool_place){EMU_POOL_DEVICE, ordinal}, true);
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
    if (device != NULL && valid(device->pool)) {
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
    EMU_REQUIRE(emu_pool_is_at(pool, (emu_pool_place){EMU_POOL_DEVICE, ordinal}));
    device->pool = pool;
    return CUDA_SUCCESS;
}

EMU_API CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties) {
    EMU_INITIALIZED();
    EMU_REQUIRE(pool != NULL && properties != NULL);
    emu_pool_place place;
    CUresult result = emu_pool_place_of(&properties->location, properties->alloc_type, &place);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    EMU_REQUIRE(place.kind == EMU_POOL_DEVICE || properties->handle_types == 0);
    if ((properties->handle_types & ~SHARED_AS_DESCRIPTOR) != 0) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    *pool = emu_pool_open(place, false);
    if (*pool == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    (*pool)->handle_types = properties->handle_types;
    return CUDA_SUCCESS;
}

/* Allocations from a destroyed pool live until they are freed. */
EMU_API CUresult cuMemPoolDestroy(CUmemoryPool pool) {
    EMU_INITIALIZED();
    EMU_REQUIRE(valid(pool) && !pool->is_default);
    pthread_mutex_lock(&pools_lock);
    __atomic_store_n(&pool->is_doomed, true, __ATOMIC_RELEASE);
    keep_only(pool, 0);
    close_if_unused(pool);
    pthread_mutex_unlock(&pools_lock);
    return CUDA_SUCCESS;
}

EMU_API CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t bytes) {
    EMU_INITIALIZED();
    EMU_REQUIRE(valid(pool));
    pthread_mutex_lock(&pools_lock);
    keep_only(pool, bytes > UINT64_MAX / 2 ? UINT64_MAX : steps(bytes));
    pthread_mutex_unlock(&pools_lock);
    return CUDA_SUCCESS;
}

EMU_API CUresult cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void *value) {
    EMU_INITIALIZED();
    EMU_REQUIRE(valid(pool) && value != NULL && attribute > 0 && attribute < ATTRIBUTES);
    if (attribute < RELEASE_THRESHOLD) {
        *(int *)value = (int)pool->attributes[attribute];
    } else if (attribute == USED_NOW || attribute == RESERVED_NOW) {
        pthread_mutex_lock(&pools_lock);
        *(uint64_t *)value = attribute == USED_NOW ? pool->used : pool->reserved;
        pthread_mutex_unlock(&pools_lock);
    } else {
        *(uint64_t *)value = pool->attributes[attribute];
    }
    return CUDA_SUCCESS;
}

EMU_API CUresult cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void *value) {
    EMU_INITIALIZED();
    EMU_REQUIRE(valid(pool) && value != NULL && attribute > 0 && attribute < ATTRIBUTES);
    EMU_REQUIRE(attribute != USED_NOW && attribute != RESERVED_NOW);
    if (attribute < RELEASE_THRESHOLD) {
        pool->attributes[attribute] = *(const int *)value != 0 ? 1 : 0;
    } else {
        EMU_REQUIRE(attribute == RELEASE_THRESHOLD ||
                    *(const uint64_t *)value == 0); /* a high-water mark can only be reset */
        pthread_mutex_lock(&pools_lock);
        uint64_t now = attribute == USED_HIGH ? pool->used : pool->reserved;
        pool->attributes[attribute] =
            attribute == RELEASE_THRESHOLD ? *(const uint64_t *)value : now;
        pthread_mutex_unlock(&pools_lock);
    }
    return CUDA_SUCCESS;
}

EMU_API CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *access,
                                    size_t count) {
    EMU_INITIALIZED();
    EMU_REQUIRE(valid(pool) && (count == 0 || access != NULL));
    return CUDA_SUCCESS;
}

EMU_API CUresult cuMemPoolGetAccess(int *flags, CUmemoryPool pool, CUmemLocation *location) {
    EMU_INITIALIZED();
    EMU_REQUIRE(flags != NULL && valid(pool) && location != NULL);
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
    EMU_REQUIRE(valid(pool));
    EMU_REQUIRE(!pool->is_imported);
    if (emu_stream_is_captured(stream)) {
        if (pool->place.kind != EMU_POOL_DEVICE) {
            return CUDA_ERROR_NOT_SUPPORTED;
        }
        return emu_graph_memory_capture(stream, pool->gpu, bytes, address);
    }
    if (pool->place.kind == EMU_POOL_MANAGED) {
        emu_checkpoint_hinder(&emu_driver.state, EMU_USED_MANAGED);
    }
    if (bytes > UINT64_MAX / 2 || !take(pool, emu_heap_round(bytes))) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    result = emu_memory_place(pool->gpu, bytes, EMU_POOL_MEMORY, pool->object.generation, address);
    if (result != CUDA_SUCCESS) {
        emu_pool_freed(pool->object.generation, emu_heap_round(bytes));
    }
    return result;
}

EMU_API CUresult cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream) {
    EMU_INITIALIZED();
    return allocate(address, bytes, NULL, stream, false);
}

EMU_API CUresult cuMemAllocAsync_ptsz(CUdeviceptr *address, size_t bytes, CUstream stream) {
    EMU_INITIALIZED();
    return allocate(address, bytes, NULL, stream, true);
}

EMU_API CUresult cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t bytes, CUmemoryPool pool,
                                         CUstream stream) {
    EMU_INITIALIZED();
    EMU_REQUIRE(pool != NULL);
    return allocate(address, bytes, pool, stream, false);
}

EMU_API CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *address, size_t bytes, CUmemoryPool pool,
                                              CUstream stream) {
    EMU_INITIALIZED();
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
                (found.kind == EMU_POOL_MEMORY || found.kind == EMU_DEVICE_MEMORY ||
                 found.kind == EMU_GRAPH_MEMORY || found.kind == EMU_IMPORTED_MEMORY));
    emu_operation operation = {.kind = EMU_FREE, .address = address};
    return emu_enqueue(stream, &operation);
}

EMU_API CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
    EMU_INITIALIZED();
    return free_in_order(address, stream, false);
}

EMU_API CUresult cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream) {
    EMU_INITIALIZED();
    return free_in_order(address, stream, true);
}

/* ---- between processes ---- */

EMU_API CUresult cuMemPoolExportToShareableHandle(void *handle, CUmemoryPool pool, int type,
                                                  unsigned long long flags) {
    EMU_INITIALIZED();
    EMU_REQUIRE(handle != NULL && valid(pool) && flags == 0 && type == SHARED_AS_DESCRIPTOR &&
                (pool->handle_types & type) != 0);
    uint64_t address = 0; /* any block's address: the descriptor covers the whole heap */
    uint64_t offset = 0;
    int fd = -1;
    CUresult result = emu_memory_place(pool->gpu, 1, EMU_POOL_MEMORY, 0, &address);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    bool found = emu_memory_offset(address, &fd, &offset);
    emu_memory_free(address, 1u << EMU_POOL_MEMORY);
    int copy = found ? emu_shared_memory_copy(fd) : -1;
    if (copy < 0) {
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    memcpy(handle, &copy, sizeof copy);
    return CUDA_SUCCESS;
}

EMU_API CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *result, void *handle, int type,
                                                    unsigned long long flags) {
    EMU_INITIALIZED();
    int fd = (int)(intptr_t)handle;
    EMU_REQUIRE(result != NULL && type == SHARED_AS_DESCRIPTOR && flags == 0 &&
                emu_shared_memory_is(fd, "heap"));
    CUmemoryPool pool = emu_pool_open((emu_pool_place){EMU_POOL_DEVICE, 0}, false);
    int copy = pool == NULL ? -1 : emu_shared_memory_copy(fd);
    if (copy < 0) {
        return pool == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_OPERATING_SYSTEM;
    }
    pool->fd = copy;
    pool->is_imported = true;
    *result = pool;
    return CUDA_SUCCESS;
}

typedef struct {
    uint64_t magic;
    uint64_t offset;
    uint64_t bytes;
    uint64_t inode;
    uint64_t reserved[4];
} exported_pointer;

#define POINTER_MAGIC UINT64_C(0x7265746e696f7067)

EMU_API CUresult cuMemPoolExportPointer(void *data, CUdeviceptr address) {
    EMU_INITIALIZED();
    emu_allocation found;
    int fd = -1;
    exported_pointer exported = {.magic = POINTER_MAGIC};
    EMU_REQUIRE(data != NULL && emu_memory_find(address, &found) && found.kind == EMU_POOL_MEMORY &&
                found.start == address && emu_memory_offset(address, &fd, &exported.offset));
    exported.bytes = found.bytes;
    uint64_t size = 0;
    EMU_REQUIRE(emu_shared_memory_identify(fd, &exported.inode, &size));
    memcpy(data, &exported, sizeof exported);
    return CUDA_SUCCESS;
}

EMU_API CUresult cuMemPoolImportPointer(CUdeviceptr *address, CUmemoryPool pool, const void *data) {
    EMU_INITIALIZED();
    exported_pointer exported;
    uint64_t inode = 0;
    uint64_t size = 0;
    EMU_REQUIRE(address != NULL && valid(pool) && pool->is_imported && data != NULL);
    memcpy(&exported, data, sizeof exported);
    EMU_REQUIRE(exported.magic == POINTER_MAGIC &&
                emu_shared_memory_identify(pool->fd, &inode, &size) && inode == exported.inode &&
                exported.offset < size && exported.bytes <= size - exported.offset);
    return emu_imported_map(pool->fd, exported.offset, exported.bytes, pool->gpu, IMPORTED_POINTER,
                            address);
}
