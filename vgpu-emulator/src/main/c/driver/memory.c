#include "memory.h"

#include "base/heap.h"
#include "base/log.h"
#include "driver.h"
#include "mig.h"

#include <stdlib.h>
#include <string.h>

/* Reserves more addresses than memory, because of fragmentation; fewer if the process may not reserve that many. */
static bool open_heap(emu_heap *heap, uint64_t memory_bytes) {
    if (emu_heap_open(heap, 2 * memory_bytes) ||
        emu_heap_open(heap, memory_bytes + memory_bytes / 8)) {
        return true;
    }
    emu_log("cannot reserve addresses: bytes=%llu", (unsigned long long)memory_bytes);
    return false;
}

static emu_heap heaps[EMU_MAX_DEVICES];
static pthread_mutex_t heap_locks[EMU_MAX_DEVICES]; /* all zero is PTHREAD_MUTEX_INITIALIZER */

/* Sorted by start. Ranges that may overlap (mappings in reserved addresses) are told apart by kind. */
static struct {
    pthread_mutex_t lock;
    emu_allocation *items;
    size_t count;
    size_t capacity;
} ranges = {.lock = PTHREAD_MUTEX_INITIALIZER};

/*
 * If the settings say so, a GPU hands out memory in pieces that allocations share. A piece is charged as long as any
 * allocation lies in it. An allocation larger than half a piece starts at a piece boundary; a smaller one lies wherever
 * there is room.
 */
static uint32_t *piece_users[EMU_MAX_DEVICES]; /* allocations in each piece of a heap */

static uint64_t grain(void) {
    return emu_driver.state.times.grain_bytes;
}

uint64_t emu_memory_pieces(uint64_t bytes) {
    return grain() == 0 ? bytes : (bytes + grain() - 1) / grain() * grain();
}

static bool is_in_pieces(emu_memory_kind kind) {
    return grain() != 0 && (kind == EMU_DEVICE_MEMORY || kind == EMU_ARRAY_MEMORY);
}

/* Adds (1) or removes (-1) a user of the pieces that a block covers. Returns the bytes of the pieces that had, or
 * now have, no user. */
static uint64_t use_pieces(uint32_t gpu, uint64_t start, uint64_t bytes, int change) {
    uint64_t first = (start - heaps[gpu].base) / grain();
    uint64_t last = (start - heaps[gpu].base + bytes - 1) / grain();
    uint64_t changed = 0;
    for (uint64_t i = first; i <= last; i++) {
        uint32_t *users = &piece_users[gpu][i];
        changed += *users == (change > 0 ? 0 : 1) ? grain() : 0;
        *users = (uint32_t)((int64_t)*users + change);
    }
    return changed;
}

/* The caller holds the heap's lock. */
static bool open_pieces(uint32_t gpu) {
    if (piece_users[gpu] == NULL) {
        uint64_t bytes = (uint64_t)heaps[gpu].granules * EMU_GRANULE;
        piece_users[gpu] = calloc(bytes / grain() + 1, sizeof *piece_users[gpu]);
    }
    return piece_users[gpu] != NULL;
}

/* Charges the pieces that a new block is the first to use. The caller holds the heap's lock. */
static bool charge_pieces(emu_gpu *gpu, uint64_t start, uint64_t bytes) {
    if (!open_pieces(gpu->index)) {
        return false;
    }
    bool charged = emu_gpu_charge(gpu, use_pieces(gpu->index, start, bytes, 1));
    if (!charged) {
        use_pieces(gpu->index, start, bytes, -1);
    }
    return charged;
}

static CUresult place(emu_gpu *gpu, uint64_t bytes, emu_memory_kind kind, uint32_t owner,
                      uint64_t charged, uint64_t *address) {
    emu_heap *heap = &heaps[gpu->index];
    bool is_paged = is_in_pieces(kind);
    pthread_mutex_lock(&heap_locks[gpu->index]);
    uint64_t start = 0;
    if (heap->base != 0 || open_heap(heap, gpu->state->settings.memory_bytes)) {
        start = emu_heap_allocate(heap, bytes, is_paged && bytes > grain() / 2 ? grain() : 0);
    }
    if (start != 0 && is_paged && !charge_pieces(gpu, start, bytes)) {
        emu_heap_free(heap, start);
        start = 0;
    }
    if (start != 0) {
        uint64_t same = 0;
        emu_block *block = emu_heap_find(heap, start, &same);
        block->kind = (uint32_t)kind;
        block->owner = owner;
        block->charged = charged;
        *address = start;
    }
    pthread_mutex_unlock(&heap_locks[gpu->index]);
    return start == 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

/* Frees a block and returns the bytes to refund. The caller holds the heap's lock. */
static uint64_t free_block(uint32_t gpu, const emu_block *block, uint64_t start) {
    uint64_t charged = is_in_pieces((emu_memory_kind)block->kind)
                           ? use_pieces(gpu, start, block->bytes, -1)
                           : block->charged;
    emu_heap_free(&heaps[gpu], start);
    return charged;
}

CUresult emu_memory_place(emu_gpu *gpu, uint64_t bytes, emu_memory_kind kind, uint32_t owner,
                          uint64_t *address) {
    return place(gpu, bytes, kind, owner, 0, address);
}

/* Charges the part of managed memory that fits on the GPU. The rest stays with the host. */
static uint64_t charge_resident(emu_gpu *gpu, uint64_t bytes) {
    for (;;) {
        uint64_t capacity = gpu->state->settings.memory_bytes;
        uint64_t used = emu_gpu_used_bytes(gpu);
        uint64_t free = used < capacity ? (capacity - used) / EMU_GRANULE * EMU_GRANULE : 0;
        uint64_t part = bytes < free ? bytes : free;
        if (part == 0 || emu_gpu_charge(gpu, part)) {
            return part;
        }
    }
}

CUresult emu_memory_allocate(emu_gpu *gpu, uint64_t bytes, emu_memory_kind kind, uint32_t owner,
                             uint64_t *address) {
    if (bytes == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (bytes > UINT64_MAX / 2) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    uint64_t charge = is_in_pieces(kind) ? 0 : emu_heap_round(bytes);
    if (kind == EMU_MANAGED_MEMORY) {
        charge = charge_resident(gpu, charge);
    } else if (bytes > gpu->state->settings.memory_bytes || !emu_gpu_charge(gpu, charge)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUresult result = place(gpu, bytes, kind, owner, charge, address);
    if (result != CUDA_SUCCESS) {
        emu_gpu_refund(gpu, charge);
    }
    return result;
}

static int heap_of(uint64_t address) {
    for (int i = 0; i < EMU_MAX_DEVICES; i++) {
        uint64_t base = __atomic_load_n(&heaps[i].base, __ATOMIC_ACQUIRE);
        if (base != 0 && address >= base &&
            address - base < (uint64_t)heaps[i].granules * EMU_GRANULE) {
            return i;
        }
    }
    return EMU_HEAP_NONE;
}

CUresult emu_memory_free(uint64_t address, unsigned int kinds) {
    int index = heap_of(address);
    if (index == EMU_HEAP_NONE) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    pthread_mutex_lock(&heap_locks[index]);
    uint64_t start = 0;
    emu_block *block = emu_heap_find(&heaps[index], address, &start);
    bool found = block != NULL && start == address && (kinds & 1u << block->kind) != 0;
    emu_block freed = {0};
    if (found) {
        freed = *block;
        freed.charged = free_block((uint32_t)index, block, address);
    }
    pthread_mutex_unlock(&heap_locks[index]);
    if (!found) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (freed.kind == EMU_POOL_MEMORY) {
        emu_pool_freed(freed.owner, emu_heap_round(freed.bytes));
    } else if (freed.charged > 0) {
        emu_gpu_refund(emu_gpu_at((uint32_t)index), freed.charged);
    }
    return CUDA_SUCCESS;
}

void emu_memory_free_owned(emu_gpu *gpu, emu_memory_kind first, emu_memory_kind last,
                           uint32_t owner) {
    emu_heap *heap = &heaps[gpu->index];
    uint64_t charge = 0;
    pthread_mutex_lock(&heap_locks[gpu->index]);
    uint64_t position = 0;
    uint64_t start = 0;
    for (emu_block *block = NULL; (block = emu_heap_next(heap, position, &start)) != NULL;) {
        position = start + (uint64_t)block->size * EMU_GRANULE;
        if (block->owner == owner && block->kind >= (uint32_t)first &&
            block->kind <= (uint32_t)last) {
            charge += free_block(gpu->index, block, start);
        }
    }
    pthread_mutex_unlock(&heap_locks[gpu->index]);
    if (charge > 0) {
        emu_gpu_refund(gpu, charge);
    }
}

bool emu_memory_offset(uint64_t address, int *fd, uint64_t *offset) {
    int index = heap_of(address);
    if (index == EMU_HEAP_NONE || heaps[index].fd < 0) {
        return false;
    }
    *fd = heaps[index].fd;
    *offset = address - heaps[index].base;
    return true;
}

bool emu_memory_change(uint64_t address, emu_memory_kind kind,
                       void (*change)(uint64_t bytes, uint32_t *owner, uint64_t *charged,
                                      void *data),
                       void *data) {
    int index = heap_of(address);
    uint64_t start = 0;
    if (index == EMU_HEAP_NONE) {
        return false;
    }
    pthread_mutex_lock(&heap_locks[index]);
    emu_block *block = emu_heap_find(&heaps[index], address, &start);
    bool found = block != NULL && start == address && block->kind == (uint32_t)kind;
    if (found) {
        change(block->bytes, &block->owner, &block->charged, data);
    }
    pthread_mutex_unlock(&heap_locks[index]);
    return found;
}

/* The index of the first range that starts after an address. */
static size_t upper(uint64_t address) {
    size_t low = 0;
    size_t high = ranges.count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (ranges.items[middle].start <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

bool emu_ranges_add(const emu_allocation *allocation) {
    pthread_mutex_lock(&ranges.lock);
    bool room = ranges.count < ranges.capacity;
    if (!room) {
        size_t capacity = ranges.capacity == 0 ? 64 : ranges.capacity * 2;
        emu_allocation *items = realloc(ranges.items, capacity * sizeof *items);
        if (items != NULL) {
            ranges.items = items;
            ranges.capacity = capacity;
            room = true;
        }
    }
    if (room) {
        size_t at = upper(allocation->start);
        memmove(&ranges.items[at + 1], &ranges.items[at],
                (ranges.count - at) * sizeof *ranges.items);
        ranges.items[at] = *allocation;
        ranges.count++;
    }
    pthread_mutex_unlock(&ranges.lock);
    return room;
}

/* The index of the range of that kind that contains an address, or count. Mappings and reservations nest only a few
 * levels. */
static size_t find_range(uint64_t address, emu_memory_kind kind) {
    for (size_t i = upper(address); i-- > 0;) {
        const emu_allocation *item = &ranges.items[i];
        if (item->kind == kind) {
            return address - item->start < item->bytes ? i : ranges.count;
        }
    }
    return ranges.count;
}

bool emu_ranges_remove(uint64_t start, emu_memory_kind kind, emu_allocation *removed) {
    pthread_mutex_lock(&ranges.lock);
    size_t at = find_range(start, kind);
    bool found = at < ranges.count && ranges.items[at].start == start;
    if (found) {
        *removed = ranges.items[at];
        memmove(&ranges.items[at], &ranges.items[at + 1],
                (ranges.count - at - 1) * sizeof *ranges.items);
        ranges.count--;
    }
    pthread_mutex_unlock(&ranges.lock);
    return found;
}

bool emu_ranges_find(uint64_t address, emu_memory_kind kind, emu_allocation *allocation) {
    pthread_mutex_lock(&ranges.lock);
    size_t at = find_range(address, kind);
    bool found = at < ranges.count;
    if (found) {
        *allocation = ranges.items[at];
    }
    pthread_mutex_unlock(&ranges.lock);
    return found;
}

/* Copies the metadata of the block that contains an address, and marks a write. */
static bool find_block(uint64_t address, bool written, emu_allocation *allocation) {
    int index = heap_of(address);
    if (index == EMU_HEAP_NONE) {
        return false;
    }
    pthread_mutex_lock(&heap_locks[index]);
    uint64_t start = 0;
    emu_block *block = emu_heap_find(&heaps[index], address, &start);
    if (block != NULL) {
        block->is_written |= written ? 1 : 0;
        *allocation = (emu_allocation){.start = start,
                                       .bytes = block->bytes,
                                       .kind = (emu_memory_kind)block->kind,
                                       .device = index,
                                       .owner = block->owner};
    }
    pthread_mutex_unlock(&heap_locks[index]);
    return block != NULL;
}

static bool find(uint64_t address, bool written, emu_allocation *allocation) {
    return find_block(address, written, allocation) ||
           emu_ranges_find(address, EMU_MAPPED_MEMORY, allocation) ||
           emu_ranges_find(address, EMU_IMPORTED_MEMORY, allocation) ||
           emu_ranges_find(address, EMU_HOST_MEMORY, allocation) ||
           emu_ranges_find(address, EMU_REGISTERED_MEMORY, allocation);
}

bool emu_memory_find(uint64_t address, emu_allocation *allocation) {
    return find(address, false, allocation);
}

/* Adjacent mappings are one range to a program. */
static bool covers(uint64_t address, uint64_t bytes, bool written) {
    emu_allocation allocation;
    while (find(address, written, &allocation)) {
        uint64_t left = allocation.start + allocation.bytes - address;
        if (bytes <= left) {
            return true;
        }
        if (allocation.kind != EMU_MAPPED_MEMORY) {
            return false;
        }
        address += left;
        bytes -= left;
    }
    return false;
}

bool emu_memory_writable(uint64_t address, uint64_t bytes) {
    return covers(address, bytes, true);
}

bool emu_memory_readable(uint64_t address, uint64_t bytes) {
    return covers(address, bytes, false);
}
