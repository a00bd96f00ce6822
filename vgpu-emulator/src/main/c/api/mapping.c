/* Virtual memory management: reserve addresses, create memory, and map it. */
#include "base/shared_memory.h"
#include "driver/driver.h"
#include "driver/memory.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    LOCATION_DEVICE = 1,
    LOCATION_HOST = 2,
    LOCATION_HOST_NUMA_CURRENT = 4,
    LOCATION_INVISIBLE = 5,
    LOCALITY_DOMAINS = 13040,
    SHARED_AS_DESCRIPTOR = 1
};

#define GRANULARITY (UINT64_C(2) << 20)

/*
 * The memory behind a handle is an unnamed file, so that several addresses and several processes can map it. The
 * process that created it is charged; a process that imports it is not.
 */
typedef struct {
    emu_object object;
    emu_gpu *gpu;
    CUmemAllocationProp properties;
    uint64_t bytes;
    int fd;
    bool is_charged;
    uint32_t users; /* handles and mappings */
    uint32_t handles;
} physical;

static emu_pool physicals = EMU_POOL(physical, 1 << 18);
static pthread_mutex_t mapping_lock = PTHREAD_MUTEX_INITIALIZER;

static physical *physical_of(CUmemGenericAllocationHandle handle) {
    physical *memory = (physical *)(uintptr_t)handle;
    return emu_pool_has(&physicals, memory) ? memory : NULL;
}

EMU_API CUresult cuMemGetAllocationGranularity(size_t *granularity,
                                               const CUmemAllocationProp *properties, int option) {
    EMU_INITIALIZED();
    EMU_REQUIRE(granularity != NULL && properties != NULL && option >= 0 && option <= 1);
    *granularity = GRANULARITY;
    return CUDA_SUCCESS;
}

EMU_API CUresult cuMemAddressReserve(CUdeviceptr *address, size_t bytes, size_t alignment,
                                     CUdeviceptr wanted, unsigned long long flags) {
    EMU_INITIALIZED();
    EMU_REQUIRE(address != NULL && bytes > 0 && bytes % GRANULARITY == 0 && flags == 0 &&
                (alignment & (alignment - 1)) == 0);
    (void)wanted; /* a hint, which the driver may ignore */
    uint64_t align = alignment < GRANULARITY ? GRANULARITY : alignment;
    EMU_REQUIRE(bytes <= UINT64_MAX / 4 && align <= UINT64_MAX / 4);
    uint64_t length = bytes + align;
    void *map = mmap(NULL, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    uint64_t base = (uint64_t)(uintptr_t)map;
    uint64_t start = (base + align - 1) / align * align;
    if (start > base) {
        munmap(map, start - base);
    }
    if (base + length > start + bytes) {
        munmap((void *)(uintptr_t)(start + bytes), base + length - start - bytes);
    }
    emu_allocation reserved = {.start = start, .bytes = bytes, .kind = EMU_RESERVED_ADDRESSES};
    if (!emu_ranges_add(&reserved)) {
        munmap((void *)(uintptr_t)start, bytes);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *address = start;
    return CUDA_SUCCESS;
}

EMU_API CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes) {
    EMU_INITIALIZED();
    emu_allocation reserved;
    emu_allocation mapped;
    EMU_REQUIRE(emu_ranges_find(address, EMU_RESERVED_ADDRESSES, &reserved) &&
                reserved.start == address && reserved.bytes == bytes);
    for (uint64_t at = address; at < address + bytes; at += GRANULARITY) {
        EMU_REQUIRE(!emu_ranges_find(at, EMU_MAPPED_MEMORY, &mapped));
    }
    emu_ranges_remove(address, EMU_RESERVED_ADDRESSES, &reserved);
    munmap((void *)(uintptr_t)address, bytes);
    return CUDA_SUCCESS;
}

/* fd: the memory's descriptor, which is kept; -1: creates the memory. */
static physical *open_physical(emu_gpu *gpu, uint64_t bytes, int fd) {
    char name[32];
    physical *memory = emu_pool_take(&physicals);
    if (memory == NULL) {
        return NULL;
    }
    snprintf(name, sizeof name, "gpu-%u", gpu->index);
    memory->fd = fd >= 0 ? fd : emu_shared_memory_make(name, bytes);
    if (memory->fd < 0) {
        emu_pool_give(&physicals, memory);
        return NULL;
    }
    memory->gpu = gpu;
    memory->bytes = bytes;
    memory->users = 1;
    memory->handles = 1;
    return memory;
}

EMU_API CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                             const CUmemAllocationProp *properties, unsigned long long flags) {
    EMU_INITIALIZED();
    EMU_REQUIRE(handle != NULL && properties != NULL && flags == 0 && bytes > 0 &&
                bytes % GRANULARITY == 0 && properties->type == 1);
    bool on_host = properties->location.type >= LOCATION_HOST &&
                   properties->location.type <= LOCATION_HOST_NUMA_CURRENT;
    bool is_domain = properties->location.type > LOCATION_INVISIBLE &&
                     emu_settings_cuda_version() >= LOCALITY_DOMAINS;
    if ((properties->location.type != LOCATION_DEVICE && !is_domain && !on_host) ||
        (properties->handle_types & ~SHARED_AS_DESCRIPTOR) != 0) {
        return CUDA_ERROR_NOT_SUPPORTED; /* other locations; handle types of other systems and of fabrics */
    }
    int id = properties->location.id;
    emu_device *device = emu_device_at(on_host ? 0 : is_domain ? id & 0xff : id);
    if (device == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    if (!on_host && !emu_gpu_charge(device->gpu, bytes)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    physical *memory = open_physical(device->gpu, bytes, -1);
    if (memory == NULL) {
        if (!on_host) {
            emu_gpu_refund(device->gpu, bytes);
        }
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memory->properties = *properties;
    memory->is_charged = !on_host;
    *handle = (CUmemGenericAllocationHandle)(uintptr_t)memory;
    return CUDA_SUCCESS;
}

/* The caller holds mapping_lock. */
static void drop_user(physical *memory) {
    if (--memory->users == 0) {
        close(memory->fd);
        if (memory->is_charged) {
            emu_gpu_refund(memory->gpu, memory->bytes);
        }
        emu_pool_give(&physicals, memory);
    }
}

EMU_API CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
    EMU_INITIALIZED();
    pthread_mutex_lock(&mapping_lock);
    physical *memory = physical_of(handle);
    bool held = memory != NULL && memory->handles > 0;
    if (held) {
        memory->handles--;
        drop_user(memory);
    }
    pthread_mutex_unlock(&mapping_lock);
    return held ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* The caller holds mapping_lock. */
static CUresult map_at(CUdeviceptr address, size_t bytes, physical *memory) {
    emu_allocation reserved;
    emu_allocation other;
    EMU_REQUIRE(memory != NULL && bytes == memory->bytes &&
                emu_ranges_find(address, EMU_RESERVED_ADDRESSES, &reserved) &&
                bytes <= reserved.start + reserved.bytes - address);
    for (uint64_t at = address; at < address + bytes; at += GRANULARITY) {
        EMU_REQUIRE(!emu_ranges_find(at, EMU_MAPPED_MEMORY, &other));
    }
    emu_allocation mapped = {.start = address,
                             .bytes = bytes,
                             .kind = EMU_MAPPED_MEMORY,
                             .device = (CUdevice)memory->gpu->index,
                             .extra = (uint64_t)(uintptr_t)memory};
    if (mmap((void *)(uintptr_t)address, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
             memory->fd, 0) == MAP_FAILED) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (!emu_ranges_add(&mapped)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memory->users++;
    return CUDA_SUCCESS;
}

EMU_API CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
                          CUmemGenericAllocationHandle handle, unsigned long long flags) {
    EMU_INITIALIZED();
    EMU_REQUIRE(offset == 0 && flags == 0 && bytes > 0 && address % GRANULARITY == 0);
    pthread_mutex_lock(&mapping_lock);
    CUresult result = map_at(address, bytes, physical_of(handle));
    pthread_mutex_unlock(&mapping_lock);
    return result;
}

/* Whether a range consists of whole, contiguous mappings. The caller holds mapping_lock. */
static bool is_mapped(uint64_t address, uint64_t bytes) {
    emu_allocation mapped;
    uint64_t at = address;
    while (at < address + bytes && emu_ranges_find(at, EMU_MAPPED_MEMORY, &mapped) &&
           mapped.start == at && mapped.bytes <= address + bytes - at) {
        at += mapped.bytes;
    }
    return at == address + bytes;
}

EMU_API CUresult cuMemUnmap(CUdeviceptr address, size_t bytes) {
    EMU_INITIALIZED();
    EMU_REQUIRE(bytes > 0 && bytes % GRANULARITY == 0);
    pthread_mutex_lock(&mapping_lock);
    bool whole = bytes <= UINT64_MAX - address && is_mapped(address, bytes);
    for (uint64_t at = address; whole && at < address + bytes;) {
        emu_allocation mapped;
        emu_ranges_find(at, EMU_MAPPED_MEMORY, &mapped);
        emu_ranges_remove(at, EMU_MAPPED_MEMORY, &mapped);
        (void)mmap((void *)(uintptr_t)at, mapped.bytes, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
        drop_user((physical *)(uintptr_t)mapped.extra);
        at += mapped.bytes;
    }
    pthread_mutex_unlock(&mapping_lock);
    return whole ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EMU_API CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access,
                                size_t count) {
    EMU_INITIALIZED();
    EMU_REQUIRE(bytes > 0 && access != NULL && count > 0 && emu_memory_readable(address, bytes));
    for (size_t i = 0; i < count; i++) {
        EMU_REQUIRE(access[i].flags == 0 || access[i].flags == 1 || access[i].flags == 3);
    }
    return CUDA_SUCCESS;
}

EMU_API CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location,
                                CUdeviceptr address) {
    EMU_INITIALIZED();
    emu_allocation found;
    EMU_REQUIRE(flags != NULL && location != NULL && emu_memory_find(address, &found));
    *flags = 3;
    return CUDA_SUCCESS;
}

EMU_API CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address) {
    EMU_INITIALIZED();
    emu_allocation mapped;
    EMU_REQUIRE(handle != NULL);
    pthread_mutex_lock(&mapping_lock);
    bool found = emu_ranges_find((uint64_t)(uintptr_t)address, EMU_MAPPED_MEMORY, &mapped);
    if (found) {
        physical *memory = (physical *)(uintptr_t)mapped.extra;
        memory->users++;
        memory->handles++;
        *handle = mapped.extra;
    }
    pthread_mutex_unlock(&mapping_lock);
    return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EMU_API CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *properties,
                                                        CUmemGenericAllocationHandle handle) {
    EMU_INITIALIZED();
    physical *memory = physical_of(handle);
    EMU_REQUIRE(properties != NULL && memory != NULL);
    *properties = memory->properties;
    return CUDA_SUCCESS;
}

EMU_API CUresult cuMemExportToShareableHandle(void *shareable, CUmemGenericAllocationHandle handle,
                                              int type, unsigned long long flags) {
    EMU_INITIALIZED();
    int copy = -1;
    EMU_REQUIRE(shareable != NULL && flags == 0 && type == SHARED_AS_DESCRIPTOR);
    pthread_mutex_lock(&mapping_lock);
    physical *memory = physical_of(handle);
    bool may = memory != NULL && (memory->properties.handle_types & type) != 0;
    if (may) {
        copy = emu_shared_memory_copy(memory->fd);
    }
    pthread_mutex_unlock(&mapping_lock);
    EMU_REQUIRE(may);
    if (copy < 0) {
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    memcpy(shareable, &copy, sizeof copy);
    return CUDA_SUCCESS;
}

/* The program keeps the descriptor. */
EMU_API CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle,
                                                void *shareable, int type) {
    EMU_INITIALIZED();
    int fd = (int)(intptr_t)shareable;
    uint64_t inode = 0;
    uint64_t bytes = 0;
    char name[32];
    EMU_REQUIRE(handle != NULL && type == SHARED_AS_DESCRIPTOR &&
                emu_shared_memory_identify(fd, &inode, &bytes));
    for (int i = 0; i < emu_driver.device_count; i++) {
        emu_gpu *gpu = emu_driver.devices[i].gpu;
        snprintf(name, sizeof name, "gpu-%u", gpu->index);
        if (!emu_shared_memory_is(fd, name)) {
            continue;
        }
        int copy = emu_shared_memory_copy(fd);
        physical *memory = copy < 0 ? NULL : open_physical(gpu, bytes, copy);
        if (memory == NULL) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        memory->properties = (CUmemAllocationProp){
            .type = 1, .handle_types = SHARED_AS_DESCRIPTOR, .location = {LOCATION_DEVICE, i}};
        *handle = (CUmemGenericAllocationHandle)(uintptr_t)memory;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
}
