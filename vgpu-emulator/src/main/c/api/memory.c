/* Device memory, host memory, and pointer attributes. */
#include "base/heap.h"
#include "driver/driver.h"
#include "driver/hints.h"
#include "driver/imported.h"
#include "driver/memory.h"
#include "driver/operation.h"
#include "gpu/suspend.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PITCH = 512, PAGE = 4096, HOST_FLAGS = 7, REGISTER_FLAGS = 15 };
enum { KINDS_OF_MEMFREE = 1 << EMU_DEVICE_MEMORY | 1 << EMU_MANAGED_MEMORY | 1 << EMU_POOL_MEMORY };

#define HIGHEST (UINT64_C(1) << 47)

EMU_API CUresult cuMemGetInfo_v2(size_t *free, size_t *total) {
    EMU_CONTEXT(context);
    EMU_REQUIRE(free != NULL && total != NULL);
    uint64_t capacity = context->gpu->state->settings.memory_bytes;
    uint64_t used = emu_gpu_used_bytes(context->gpu);
    *total = capacity;
    *free = used < capacity ? capacity - used : 0;
    return CUDA_SUCCESS;
}

static CUresult allocate(CUcontext context, CUdeviceptr *address, size_t bytes,
                         emu_memory_kind kind) {
    return emu_memory_allocate(context->gpu, bytes, kind, context->owner, address);
}

EMU_API CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes) {
    EMU_CONTEXT(context);
    EMU_REQUIRE(address != NULL);
    CUresult result = allocate(context, address, bytes, EMU_DEVICE_MEMORY);
    emu_cost(emu_driver.state.times.allocate_cost_ns);
    return result;
}

EMU_API CUresult cuMemAllocPitch_v2(CUdeviceptr *address, size_t *pitch, size_t width,
                                    size_t height, unsigned int element) {
    EMU_CONTEXT(context);
    EMU_REQUIRE(address != NULL && pitch != NULL && width > 0 && height > 0 &&
                (element == 4 || element == 8 || element == 16));
    EMU_REQUIRE(width <= SIZE_MAX / 2);
    size_t row = (width + PITCH - 1) / PITCH * PITCH;
    if (height > SIZE_MAX / row) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUresult result = allocate(context, address, row * height, EMU_DEVICE_MEMORY);
    if (result == CUDA_SUCCESS) {
        *pitch = row;
    }
    return result;
}

EMU_API CUresult cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned int flags) {
    EMU_CONTEXT(context);
    EMU_REQUIRE(address != NULL && (flags == 1 || flags == 2)); /* global or host */
    emu_checkpoint_hinder(&emu_driver.state, EMU_USED_MANAGED);
    CUresult result = allocate(context, address, bytes, EMU_MANAGED_MEMORY);
    if (result == CUDA_SUCCESS) {
        emu_hints_forget(*address, bytes);
    }
    return result;
}

/* No wait for running kernels: whatever they would read was already computed when they were launched. */
EMU_API CUresult cuMemFree_v2(CUdeviceptr address) {
    EMU_CONTEXT(context);
    (void)context;
    if (address == 0) {
        return CUDA_SUCCESS;
    }
    emu_cost(emu_driver.state.times.allocate_cost_ns);
    CUresult result = emu_memory_free(address, KINDS_OF_MEMFREE);
    if (result == CUDA_SUCCESS) {
        emu_pools_settle();
        return result;
    }
    if (emu_graph_memory_free(address)) {
        return CUDA_SUCCESS;
    }
    return emu_imported_unmap(address, 1u << IMPORTED_POINTER | 1u << IMPORTED_EXTERNAL);
}

EMU_API CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr address) {
    EMU_CONTEXT(context);
    (void)context;
    emu_allocation found;
    if (!emu_memory_find(address, &found)) {
        return CUDA_ERROR_NOT_FOUND;
    }
    if (base != NULL) {
        *base = found.start;
    }
    if (size != NULL) {
        *size = found.bytes;
    }
    return CUDA_SUCCESS;
}

static CUresult host_allocate(CUcontext context, void **address, size_t bytes, unsigned int flags) {
    EMU_REQUIRE(address != NULL && bytes > 0 && (flags & ~(unsigned int)HOST_FLAGS) == 0);
    size_t length = (bytes + PAGE - 1) / PAGE * PAGE;
    void *memory = length < bytes ? MAP_FAILED
                                  : mmap(NULL, length, PROT_READ | PROT_WRITE,
                                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    emu_allocation allocation = {.start = (uint64_t)(uintptr_t)memory,
                                 .bytes = bytes,
                                 .kind = EMU_HOST_MEMORY,
                                 .device = (CUdevice)context->gpu->index,
                                 .owner = context->owner,
                                 .flags = flags};
    if (!emu_ranges_add(&allocation)) {
        munmap(memory, length);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *address = memory;
    return CUDA_SUCCESS;
}

/* Pinning works page by page, so its cost grows with the size. */
static void pin_cost(size_t bytes) {
    double gibibytes = (double)bytes / (double)(UINT64_C(1) << 30);
    emu_cost((uint64_t)((double)emu_driver.state.times.pin_cost_ns * gibibytes));
}

EMU_API CUresult cuMemHostAlloc(void **address, size_t bytes, unsigned int flags) {
    EMU_CONTEXT(context);
    pin_cost(bytes);
    return host_allocate(context, address, bytes, flags);
}

EMU_API CUresult cuMemAllocHost_v2(void **address, size_t bytes) {
    EMU_CONTEXT(context);
    pin_cost(bytes);
    return host_allocate(context, address, bytes, 0);
}

EMU_API CUresult cuMemFreeHost(void *address) {
    EMU_CONTEXT(context);
    (void)context;
    emu_allocation removed;
    if (address == NULL) {
        return CUDA_SUCCESS;
    }
    if (!emu_ranges_remove((uint64_t)(uintptr_t)address, EMU_HOST_MEMORY, &removed)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    munmap(address, (removed.bytes + PAGE - 1) / PAGE * PAGE);
    return CUDA_SUCCESS;
}

EMU_API CUresult cuMemHostRegister_v2(void *address, size_t bytes, unsigned int flags) {
    EMU_CONTEXT(context);
    EMU_REQUIRE(address != NULL && bytes > 0 && (flags & ~(unsigned int)REGISTER_FLAGS) == 0);
    /* Addresses above HIGHEST are never a program's memory, so they cannot be registered. */
    EMU_REQUIRE((uint64_t)(uintptr_t)address < HIGHEST &&
                bytes <= HIGHEST - (uint64_t)(uintptr_t)address);
    emu_allocation allocation = {.start = (uint64_t)(uintptr_t)address,
                                 .bytes = bytes,
                                 .kind = EMU_REGISTERED_MEMORY,
                                 .device = (CUdevice)context->gpu->index,
                                 .owner = context->owner,
                                 .flags = flags};
    emu_allocation other;
    if (emu_ranges_find(allocation.start, EMU_REGISTERED_MEMORY, &other) ||
        emu_ranges_find(allocation.start + bytes - 1, EMU_REGISTERED_MEMORY, &other)) {
        return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    }
    return emu_ranges_add(&allocation) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

EMU_API CUresult cuMemHostUnregister(void *address) {
    EMU_CONTEXT(context);
    (void)context;
    EMU_REQUIRE(address != NULL);
    emu_allocation removed;
    return emu_ranges_remove((uint64_t)(uintptr_t)address, EMU_REGISTERED_MEMORY, &removed)
               ? CUDA_SUCCESS
               : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}

static bool find_host(const void *address, emu_allocation *found) {
    uint64_t at = (uint64_t)(uintptr_t)address;
    return emu_ranges_find(at, EMU_HOST_MEMORY, found) ||
           emu_ranges_find(at, EMU_REGISTERED_MEMORY, found);
}

EMU_API CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *device, void *address,
                                              unsigned int flags) {
    EMU_CONTEXT(context);
    (void)context;
    EMU_REQUIRE(device != NULL && address != NULL && flags == 0);
    emu_allocation found;
    if (!find_host(address, &found)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *device = (CUdeviceptr)(uintptr_t)address;
    return CUDA_SUCCESS;
}

EMU_API CUresult cuMemHostGetFlags(unsigned int *flags, void *address) {
    EMU_CONTEXT(context);
    (void)context;
    EMU_REQUIRE(flags != NULL && address != NULL);
    emu_allocation found;
    if (!emu_ranges_find((uint64_t)(uintptr_t)address, EMU_HOST_MEMORY, &found)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *flags = found.flags;
    return CUDA_SUCCESS;
}

/* A GPU's ordinal in this process. */
static int ordinal_of(CUdevice gpu) {
    for (int i = 0; i < emu_driver.device_count; i++) {
        if (emu_driver.devices[i].gpu->index == (uint32_t)gpu) {
            return i;
        }
    }
    return -1;
}

static CUcontext context_of(const emu_allocation *found) {
    int device = ordinal_of(found->device);
    CUcontext primary = device < 0 ? NULL : emu_driver.devices[device].primary;
    if (primary != NULL && primary->object.generation == found->owner) {
        return primary;
    }
    for (uint32_t i = 0; i < emu_thread.depth; i++) {
        CUcontext context = emu_thread.stack[i].context;
        if (context != NULL && context->object.generation == found->owner) {
            return context;
        }
    }
    return primary;
}

static CUresult pointer_attribute(void *data, int attribute, uint64_t address,
                                  const emu_allocation *found) {
    bool device = emu_is_on_device(found->kind);
    bool managed = found->kind == EMU_MANAGED_MEMORY;
    switch (attribute) {
    case 1:
        *(CUcontext *)data = context_of(found);
        return CUDA_SUCCESS;
    case 2:
        *(unsigned int *)data = device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
        return CUDA_SUCCESS;
    case 3:
        *(CUdeviceptr *)data = address;
        return CUDA_SUCCESS;
    case 4:
        *(void **)data = (void *)(uintptr_t)address;
        return device && !managed ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    case 10: /* IS_LEGACY_CUDA_IPC_CAPABLE */
        *(unsigned int *)data = found->kind == EMU_DEVICE_MEMORY ? 1 : 0;
        return CUDA_SUCCESS;
    case 6:  /* SYNC_MEMOPS */
    case 14: /* ALLOWED_HANDLE_TYPES */
        *(unsigned int *)data = 0;
        return CUDA_SUCCESS;
    case 7:
        *(unsigned long long *)data = found->start;
        return CUDA_SUCCESS;
    case 8:
        *(unsigned int *)data = managed ? 1 : 0;
        return CUDA_SUCCESS;
    case 9:
        *(int *)data = ordinal_of(found->device);
        return CUDA_SUCCESS;
    case 11:
        *(CUdeviceptr *)data = found->start;
        return CUDA_SUCCESS;
    case 12:
        *(size_t *)data = found->bytes;
        return CUDA_SUCCESS;
    case 13:
        *(unsigned int *)data = 1;
        return CUDA_SUCCESS;
    case 16:
        *(unsigned int *)data = 3; /* readable and writable */
        return CUDA_SUCCESS;
    case 17:
        *(CUmemoryPool *)data = NULL;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

EMU_API CUresult cuPointerGetAttribute(void *data, int attribute, CUdeviceptr address) {
    EMU_INITIALIZED();
    EMU_REQUIRE(data != NULL);
    emu_allocation found;
    if (!emu_memory_find(address, &found)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return pointer_attribute(data, attribute, address, &found);
}

/* Unlike cuPointerGetAttribute, this also answers for ordinary host memory: with zeros. */
EMU_API CUresult cuPointerGetAttributes(unsigned int count, int *attributes, void **data,
                                        CUdeviceptr address) {
    EMU_INITIALIZED();
    EMU_REQUIRE(count > 0 && attributes != NULL && data != NULL);
    emu_allocation found;
    bool known = emu_memory_find(address, &found);
    for (unsigned int i = 0; i < count; i++) {
        EMU_REQUIRE(data[i] != NULL);
        CUresult result =
            known ? pointer_attribute(data[i], attributes[i], address, &found) : CUDA_SUCCESS;
        if (!known || result == CUDA_ERROR_INVALID_VALUE) {
            bool wide = attributes[i] == 1 || attributes[i] == 3 || attributes[i] == 4 ||
                        attributes[i] == 7 || attributes[i] == 11 || attributes[i] == 12 ||
                        attributes[i] == 17;
            int ordinal = attributes[i] == 9 ? -2 : 0;
            memset(data[i], 0, wide ? 8 : 4);
            if (!wide) {
                memcpy(data[i], &ordinal, sizeof ordinal);
            }
        } else if (result != CUDA_SUCCESS) {
            return result;
        }
    }
    return CUDA_SUCCESS;
}

EMU_API CUresult cuPointerSetAttribute(const void *value, int attribute, CUdeviceptr address) {
    EMU_INITIALIZED();
    emu_allocation found;
    EMU_REQUIRE(value != NULL && attribute == 6 && emu_memory_find(address, &found));
    return CUDA_SUCCESS;
}
