/* IPC handles for device memory, and memory imported from other drivers. */
#include "base/shared_memory.h"
#include "driver/driver.h"
#include "driver/imported.h"
#include "driver/memory.h"
#include "gpu/suspend.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LAZY_PEER_ACCESS = 1, OPAQUE_DESCRIPTOR = 1, DEDICATED = 1 };

/*
 * The content of an IPC handle: where to find the memory. The importer opens the owner's descriptor through /proc. The
 * kernel allows that to processes that may inspect the owner: those of the same user, as with the real driver.
 */
typedef struct {
    uint64_t magic;
    uint64_t inode; /* of the memory: detects a descriptor that has been reused */
    uint64_t offset;
    uint64_t bytes;
    uint32_t pid;
    uint32_t fd;
    uint32_t gpu;
    uint32_t generation;
    uint64_t reserved[2];
} memory_handle;

_Static_assert(sizeof(memory_handle) == sizeof(CUipcMemHandle), "a handle's size");

#define HANDLE_MAGIC UINT64_C(0x656c646e61686d67)

EMU_API CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr address) {
    EMU_CONTEXT(context);
    (void)context;
    emu_checkpoint_hinder(&emu_driver.state, EMU_USED_IPC);
    emu_allocation found;
    memory_handle exported = {.magic = HANDLE_MAGIC, .pid = (uint32_t)getpid()};
    int fd = -1;
    uint64_t size = 0;
    EMU_REQUIRE(handle != NULL && emu_memory_find(address, &found) &&
                found.kind == EMU_DEVICE_MEMORY);
    if (!emu_memory_offset(found.start, &fd, &exported.offset) ||
        !emu_shared_memory_identify(fd, &exported.inode, &size)) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    exported.bytes = found.bytes;
    exported.fd = (uint32_t)fd;
    exported.gpu = (uint32_t)found.device;
    memcpy(handle, &exported, sizeof exported);
    return CUDA_SUCCESS;
}

static emu_gpu *gpu_at(uint32_t index) {
    for (int i = 0; i < emu_driver.device_count; i++) {
        if (emu_driver.devices[i].gpu->index == index) {
            return emu_driver.devices[i].gpu;
        }
    }
    return NULL;
}

EMU_API CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *address, CUipcMemHandle handle,
                                       unsigned int flags) {
    EMU_CONTEXT(context);
    (void)context;
    emu_checkpoint_hinder(&emu_driver.state, EMU_USED_IPC);
    memory_handle exported;
    char path[64];
    uint64_t inode = 0;
    uint64_t size = 0;
    EMU_REQUIRE(address != NULL && (flags & ~(unsigned int)LAZY_PEER_ACCESS) == 0);
    memcpy(&exported, &handle, sizeof exported);
    emu_gpu *gpu = gpu_at(exported.gpu);
    if (exported.magic != HANDLE_MAGIC || gpu == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (exported.pid == (uint32_t)getpid()) {
        return CUDA_ERROR_INVALID_CONTEXT; /* as in the real driver, only other processes may open it */
    }
    snprintf(path, sizeof path, "/proc/%u/fd/%u", exported.pid, exported.fd);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        return CUDA_ERROR_MAP_FAILED;
    }
    CUresult result = CUDA_ERROR_MAP_FAILED;
    if (emu_shared_memory_identify(fd, &inode, &size) && inode == exported.inode &&
        exported.offset < size && exported.bytes <= size - exported.offset) {
        result =
            emu_imported_map(fd, exported.offset, exported.bytes, gpu, IMPORTED_HANDLE, address);
    }
    close(fd);
    return result;
}

EMU_API CUresult cuIpcOpenMemHandle(CUdeviceptr *address, CUipcMemHandle handle,
                                    unsigned int flags) {
    return cuIpcOpenMemHandle_v2(address, handle, flags);
}

EMU_API CUresult cuIpcCloseMemHandle(CUdeviceptr address) {
    EMU_CONTEXT(context);
    (void)context;
    return emu_imported_unmap(address, 1u << IMPORTED_HANDLE);
}

/* ---- memory of another driver (such as a graphics driver), given as a descriptor ---- */

struct CUextMemory_st {
    emu_object object;
    emu_gpu *gpu;
    int fd;
    uint64_t bytes;
};

static emu_pool externals = EMU_POOL(struct CUextMemory_st, 1 << 14);

/* On success the driver owns the descriptor. */
EMU_API CUresult cuImportExternalMemory(CUexternalMemory *memory,
                                        const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *description) {
    EMU_CONTEXT(context);
    uint64_t inode = 0;
    uint64_t size = 0;
    EMU_REQUIRE(memory != NULL && description != NULL && description->size > 0 &&
                (description->flags & ~(unsigned int)DEDICATED) == 0);
    if (description->type != OPAQUE_DESCRIPTOR) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    if (!emu_shared_memory_identify(description->handle.fd, &inode, &size) ||
        size < description->size) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    CUexternalMemory external = emu_pool_take(&externals);
    if (external == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    external->gpu = context->gpu;
    external->fd = description->handle.fd;
    external->bytes = description->size;
    *memory = external;
    return CUDA_SUCCESS;
}

EMU_API CUresult cuExternalMemoryGetMappedBuffer(CUdeviceptr *address, CUexternalMemory memory,
                                                 const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *buffer) {
    EMU_CONTEXT(context);
    (void)context;
    EMU_REQUIRE(address != NULL && buffer != NULL && buffer->flags == 0);
    if (!emu_pool_has(&externals, memory)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    EMU_REQUIRE(buffer->size > 0 && buffer->offset < memory->bytes &&
                buffer->size <= memory->bytes - buffer->offset);
    return emu_imported_map(memory->fd, buffer->offset, buffer->size, memory->gpu,
                            IMPORTED_EXTERNAL, address);
}

EMU_API CUresult cuDestroyExternalMemory(CUexternalMemory memory) {
    EMU_CONTEXT(context);
    (void)context;
    if (!emu_pool_has(&externals, memory)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    close(memory->fd);
    emu_pool_give(&externals, memory);
    return CUDA_SUCCESS;
}
