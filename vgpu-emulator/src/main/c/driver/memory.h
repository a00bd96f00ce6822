/* This process's memory: on the GPUs, and host memory that the driver knows. */
#ifndef EMU_MEMORY_H
#define EMU_MEMORY_H

#include "objects.h"

typedef enum {
    EMU_DEVICE_MEMORY,
    EMU_MANAGED_MEMORY,
    EMU_ARRAY_MEMORY,
    EMU_POOL_MEMORY,
    EMU_GRAPH_MEMORY,      /* allocated by a graph node */
    EMU_IMPORTED_MEMORY,   /* another process's or driver's memory: charged to its owner */
    EMU_HOST_MEMORY,       /* cuMemHostAlloc */
    EMU_REGISTERED_MEMORY, /* cuMemHostRegister */
    EMU_RESERVED_ADDRESSES,
    EMU_MAPPED_MEMORY /* cuMemMap */
} emu_memory_kind;

typedef struct {
    uint64_t start;
    uint64_t bytes;
    emu_memory_kind kind;
    CUdevice device;
    uint32_t owner; /* the generation of the context or pool that owns it */
    uint32_t flags;
    /* mapped memory: the allocation's handle; imported memory: the start of its mapping */
    uint64_t extra;
    uint64_t extra_bytes;
} emu_allocation;

static inline bool emu_is_on_device(emu_memory_kind kind) {
    return kind <= EMU_IMPORTED_MEMORY || kind == EMU_MAPPED_MEMORY;
}

/* Allocates GPU memory: charges it, then assigns an address. */
CUresult emu_memory_allocate(emu_gpu *gpu, uint64_t bytes, emu_memory_kind kind, uint32_t owner,
                             uint64_t *address);

/* The size rounded up to whole pieces, if the GPU hands out memory in pieces. */
uint64_t emu_memory_pieces(uint64_t bytes);

/* Allocates without charging: a pool or the graph memory accounts for it. */
CUresult emu_memory_place(emu_gpu *gpu, uint64_t bytes, emu_memory_kind kind, uint32_t owner,
                          uint64_t *address);

/* Frees the block that starts at that address if its kind is in `kinds` (a bit mask). */
CUresult emu_memory_free(uint64_t address, unsigned int kinds);

/* Frees an owner's device memory of the kinds from first to last. */
void emu_memory_free_owned(emu_gpu *gpu, emu_memory_kind first, emu_memory_kind last,
                           uint32_t owner);

/* Finds the allocation that contains an address. */
bool emu_memory_find(uint64_t address, emu_allocation *allocation);

/* Whether the emulator may write to (read from) a range, which must lie in one allocation. Writing marks it. */
bool emu_memory_writable(uint64_t address, uint64_t bytes);
bool emu_memory_readable(uint64_t address, uint64_t bytes);

/* Ranges outside the heaps: host memory, reserved addresses, mappings. */
bool emu_ranges_add(const emu_allocation *allocation);
bool emu_ranges_remove(uint64_t start, emu_memory_kind kind, emu_allocation *removed);
bool emu_ranges_find(uint64_t address, emu_memory_kind kind, emu_allocation *allocation);

/* An address's offset in its device's memory, and that memory's descriptor; false: the memory is private. */
bool emu_memory_offset(uint64_t address, int *fd, uint64_t *offset);

/* driver/pool.c: notes that memory of a pool was freed; emu_pools_settle gives back what the pools may not keep. */
void emu_pool_freed(uint32_t owner, uint64_t bytes);
void emu_pools_settle(void);
/* Frees the memory of all pools on a GPU, including allocations from them. */
void emu_pools_reset(emu_gpu *gpu);

/* graph_memory.c: frees memory that a graph allocated; false: it is not allocated. */
bool emu_graph_memory_free(uint64_t address);
void emu_graph_memory_reset(emu_gpu *gpu);
/* Calls `change` on a block of graph memory under its heap's lock. */
bool emu_memory_change(uint64_t address, emu_memory_kind kind,
                       void (*change)(uint64_t bytes, uint32_t *owner, uint64_t *charged,
                                      void *data),
                       void *data);

#endif
