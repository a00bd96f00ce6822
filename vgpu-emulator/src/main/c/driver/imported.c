#include "imported.h"

#include "base/shared_memory.h"
#include "memory.h"

#include <sys/mman.h>

CUresult emu_imported_map(int fd, uint64_t offset, uint64_t bytes, emu_gpu *gpu,
                          emu_import_kind kind, CUdeviceptr *address) {
    uint64_t base = 0;
    uint64_t length = 0;
    uint64_t start = emu_shared_memory_map(fd, offset, bytes, &base, &length);
    if (start == 0) {
        return CUDA_ERROR_MAP_FAILED;
    }
    emu_allocation imported = {.start = start,
                               .bytes = bytes,
                               .kind = EMU_IMPORTED_MEMORY,
                               .device = (CUdevice)gpu->index,
                               .flags = (uint32_t)kind,
                               .extra = base,
                               .extra_bytes = length};
    if (!emu_ranges_add(&imported)) {
        munmap((void *)(uintptr_t)base, length);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *address = start;
    return CUDA_SUCCESS;
}

CUresult emu_imported_unmap(CUdeviceptr address, unsigned int kinds) {
    emu_allocation found;
    if (!emu_ranges_find(address, EMU_IMPORTED_MEMORY, &found) || found.start != address ||
        (kinds & 1u << found.flags) == 0 ||
        !emu_ranges_remove(address, EMU_IMPORTED_MEMORY, &found)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    munmap((void *)(uintptr_t)found.extra, found.extra_bytes);
    return CUDA_SUCCESS;
}
