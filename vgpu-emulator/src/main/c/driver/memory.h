/* The memory that this process has: on the GPUs, and host memory that the driver knows of. */
#ifndef EMU_MEMORY_H
#define EMU_MEMORY_H

#include "objects.h"

typedef enum {
    EMU_DEVICE_MEMORY,
    EMU_MANAGED_MEMORY,
    EMU_ARRAY_MEMORY,
    EMU_POOL_MEMORY,
    EMU_GRAPH_MEMORY,      /* of a graph's allocation node */
    EMU_IMPORTED_MEMORY,   /* another process's, or another driver's: charged to its owner */
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
    uint32_t owner; /* the generation of the context, or of the pool, that it belongs to */
    uint32_t flags;
    uint64_t extra; /* mapped memory: the allocation's handle; imported: where its mapping begins */
    uint64_t extra_bytes;
} emu_allocation;

static inline bool emu_is_on_device(emu_memory_kind kind) {
    return kind <= EMU_IMPORTED_MEMORY || kind == EMU_MAPPED_MEMORY;
}

/* Takes memory of a GPU: charged first, then given an address. */
CUresult emu_memory_allocate(emu_gpu *gpu, uint64_t bytes, emu_memory_kind kind, uint32_t owner,
                             uint64_t *address);

/* What that many bytes take, where the GPU gives memory in whole pieces. */
uint64_t emu_memory_pieces(uint64_t bytes);

/* The same without a charge: it is accounted elsewhere, with a pool or with graphs. */
CUresult emu_memory_place(emu_gpu *gpu, uint64_t bytes, emu_memory_kind kind, uint32_t owner,
                          uint64_t *address);

/* Frees what starts at that address, if it is of one of the kinds given as bits. */
CUresult emu_memory_free(uint64_t address, unsigned int kinds);

/* Frees all device memory of an owner. */
void emu_memory_free_owned(emu_gpu *gpu, emu_memory_kind first, emu_memory_kind last,
                           uint32_t owner);

/* What an address lies in. */
bool emu_memory_find(uint64_t address, emu_allocation *allocation);

/* Whether the emulator may write there: a range within one allocation. Notes that it is written. */
bool emu_memory_writable(uint64_t address, uint64_t bytes);
bool emu_memory_readable(uint64_t address, uint64_t bytes);

/* Ranges that are not of a heap: host memory, reserved addresses, mappings. */
bool emu_ranges_add(const emu_allocation *allocation);
bool emu_ranges_remove(uint64_t start, emu_memory_kind kind, emu_allocation *removed);
bool emu_ranges_find(uint64_t address, emu_memory_kind kind, emu_allocation *allocation);

/* Where in its device's memory an address lies, and the descriptor of that memory; false: it is private. */
bool emu_memory_offset(uint64_t address, int *fd, uint64_t *offset);

/* driver/pool.c: memory of a pool was freed; what pools hold without need goes back, as far as they may keep it. */
void emu_pool_freed(uint32_t owner, uint64_t bytes);
void emu_pools_settle(void);
/* Frees all pools' memory on a GPU, with what is allocated from them. */
void emu_pools_reset(emu_gpu *gpu);

/* graph_memory.c: frees what a graph has allocated; false if it has not. */
bool emu_graph_memory_free(uint64_t address);
void emu_graph_memory_reset(emu_gpu *gpu);
/* Changes a block of graph memory under its heap's lock. */
bool emu_memory_change(uint64_t address, emu_memory_kind kind,
                       void (*change)(uint64_t bytes, uint32_t *owner, uint64_t *charged, void *data),
                       void *data);

#endif
