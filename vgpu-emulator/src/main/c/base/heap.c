#include "heap.h"

#include "shared_memory.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define NO_BLOCK UINT32_MAX
enum { SECOND_BITS = 4, RELEASE_BYTES = 256 * 1024 };

static void *reserve(uint64_t bytes) {
    void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return map == MAP_FAILED ? NULL : map;
}

/* The address range itself, as memory that can be shared: IPC handles refer to it. */
static uint64_t reserve_range(emu_heap *heap, uint64_t bytes) {
    heap->fd = emu_shared_memory_make("heap", bytes);
    void *map = heap->fd < 0 ? MAP_FAILED
                             : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                                    heap->fd, 0);
    if (map == MAP_FAILED) {
        if (heap->fd >= 0) {
            close(heap->fd);
        }
        heap->fd = -1;
        return (uint64_t)(uintptr_t)reserve(bytes);
    }
    /* The child of a fork has no driver, and must not share this memory with its parent. */
    madvise(map, bytes, MADV_DONTFORK);
    return (uint64_t)(uintptr_t)map;
}

static uint64_t words_of(uint64_t bits) {
    return bits / 64 + 1;
}

static uint32_t highest_bit(uint32_t value) {
    return 31 - (uint32_t)__builtin_clz(value);
}

static void class_of(uint32_t size, uint32_t *first, uint32_t *second) {
    if (size < 1 << SECOND_BITS) {
        *first = 0;
        *second = size;
        return;
    }
    uint32_t top = highest_bit(size);
    *first = top - SECOND_BITS + 1;
    *second = (size >> (top - SECOND_BITS)) & ((1 << SECOND_BITS) - 1);
}

static void mark_start(emu_heap *heap, uint32_t index) {
    for (int level = 0; level < EMU_HEAP_LEVELS; level++) {
        heap->starts[level][index / 64] |= UINT64_C(1) << (index % 64);
        index /= 64;
    }
}

static void clear_start(emu_heap *heap, uint32_t index) {
    for (int level = 0; level < EMU_HEAP_LEVELS; level++) {
        heap->starts[level][index / 64] &= ~(UINT64_C(1) << (index % 64));
        if (heap->starts[level][index / 64] != 0) {
            return;
        }
        index /= 64;
    }
}

/* The last block that starts at or before a granule. A block always starts at the first granule. */
static uint32_t start_before(const emu_heap *heap, uint32_t index) {
    int level = 0;
    uint64_t mask = index % 64 == 63 ? UINT64_MAX : (UINT64_C(1) << (index % 64 + 1)) - 1;
    while ((heap->starts[level][index / 64] & mask) == 0) {
        index /= 64;
        level++;
        mask = (UINT64_C(1) << (index % 64)) -
               1; /* strictly below: the bit's own word has been searched */
    }
    uint64_t word = heap->starts[level][index / 64] & mask;
    index = index / 64 * 64 + (63 - (uint32_t)__builtin_clzll(word));
    while (level > 0) {
        level--;
        index = index * 64 + (63 - (uint32_t)__builtin_clzll(heap->starts[level][index]));
    }
    return index;
}

static void list_free(emu_heap *heap, uint32_t index) {
    uint32_t first = 0;
    uint32_t second = 0;
    class_of(heap->blocks[index].size, &first, &second);
    uint32_t head = heap->heads[first][second];
    heap->blocks[index].is_used = 0;
    heap->blocks[index].free.next = head;
    heap->blocks[index].free.previous = NO_BLOCK;
    if (head != NO_BLOCK) {
        heap->blocks[head].free.previous = index;
    }
    heap->heads[first][second] = index;
    heap->first_classes |= UINT32_C(1) << first;
    heap->second_classes[first] |= UINT32_C(1) << second;
}

static void unlist_free(emu_heap *heap, uint32_t index) {
    uint32_t first = 0;
    uint32_t second = 0;
    class_of(heap->blocks[index].size, &first, &second);
    uint32_t next = heap->blocks[index].free.next;
    uint32_t previous = heap->blocks[index].free.previous;
    if (next != NO_BLOCK) {
        heap->blocks[next].free.previous = previous;
    }
    if (previous != NO_BLOCK) {
        heap->blocks[previous].free.next = next;
        return;
    }
    heap->heads[first][second] = next;
    if (next == NO_BLOCK) {
        heap->second_classes[first] &= ~(UINT32_C(1) << second);
        if (heap->second_classes[first] == 0) {
            heap->first_classes &= ~(UINT32_C(1) << first);
        }
    }
}

/* A listed free block of at least that size. */
static uint32_t find_free(const emu_heap *heap, uint32_t size) {
    uint32_t first = 0;
    uint32_t second = 0;
    if (size >= 1 << SECOND_BITS) { /* from the next size class on, every block is large enough */
        uint32_t step = (UINT32_C(1) << (highest_bit(size) - SECOND_BITS)) - 1;
        if (size > UINT32_MAX / 2 - step) {
            return NO_BLOCK;
        }
        size += step;
    }
    class_of(size, &first, &second);
    uint32_t seconds = heap->second_classes[first] & (UINT32_MAX << second);
    if (seconds == 0) {
        uint32_t firsts = first >= 31 ? 0 : heap->first_classes & (UINT32_MAX << (first + 1));
        if (firsts == 0) {
            return NO_BLOCK;
        }
        first = (uint32_t)__builtin_ctz(firsts);
        seconds = heap->second_classes[first];
    }
    return heap->heads[first][__builtin_ctz(seconds)];
}

static void set_size(emu_heap *heap, uint32_t index, uint32_t size) {
    heap->blocks[index].size = size;
    if (index + size < heap->granules) {
        heap->blocks[index + size].previous_size = size;
    }
}

bool emu_heap_open(emu_heap *heap, uint64_t bytes) {
    memset(heap, 0, sizeof *heap);
    memset(heap->heads, 0xff, sizeof heap->heads);
    uint64_t granules = bytes / EMU_GRANULE;
    if (granules == 0 || granules > UINT32_MAX / 2) {
        return false;
    }
    heap->granules = (uint32_t)granules;
    uint64_t bits = granules;
    bool complete = true;
    for (int level = 0; level < EMU_HEAP_LEVELS; level++) {
        heap->starts[level] = reserve(words_of(bits) * 8);
        complete = complete && heap->starts[level] != NULL;
        bits = words_of(bits);
    }
    heap->blocks = reserve((granules + 1) * sizeof(emu_block));
    uint64_t base = reserve_range(heap, bytes);
    if (!complete || heap->blocks == NULL || base == 0) {
        emu_heap_close(heap);
        return false;
    }
    mark_start(heap, 0);
    set_size(heap, 0, heap->granules);
    list_free(heap, 0);
    /* release: a thread that reads the base without the lock also sees the size */
    __atomic_store_n(&heap->base, base, __ATOMIC_RELEASE);
    return true;
}

void emu_heap_close(emu_heap *heap) {
    uint64_t bits = heap->granules;
    for (int level = 0; level < EMU_HEAP_LEVELS; level++) {
        if (heap->starts[level] != NULL) {
            munmap(heap->starts[level], words_of(bits) * 8);
        }
        bits = words_of(bits);
    }
    if (heap->blocks != NULL) {
        munmap(heap->blocks, ((uint64_t)heap->granules + 1) * sizeof(emu_block));
    }
    if (heap->base != 0) {
        munmap((void *)(uintptr_t)heap->base, (uint64_t)heap->granules * EMU_GRANULE);
        if (heap->fd >= 0) {
            close(heap->fd);
        }
    }
    memset(heap, 0, sizeof *heap);
}

/* Splits a free block that is in no list; the second part is in no list either. */
static void cut(emu_heap *heap, uint32_t index, uint32_t size) {
    uint32_t rest = heap->blocks[index].size - size;
    set_size(heap, index, size);
    set_size(heap, index + size, rest);
    mark_start(heap, index + size);
}

uint64_t emu_heap_allocate(emu_heap *heap, uint64_t bytes, uint64_t align) {
    uint64_t granules = emu_heap_round(bytes) / EMU_GRANULE;
    uint32_t step = align <= EMU_GRANULE ? 1 : (uint32_t)(align / EMU_GRANULE);
    if (bytes == 0 || granules > heap->granules) {
        return 0;
    }
    uint32_t size = (uint32_t)granules;
    uint32_t index = find_free(heap, size + step - 1);
    if (index == NO_BLOCK) {
        return 0;
    }
    unlist_free(heap, index);
    if (index % step != 0) {
        uint32_t before = step - index % step;
        cut(heap, index, before);
        list_free(heap, index);
        index += before;
    }
    if (heap->blocks[index].size > size) {
        cut(heap, index, size);
        list_free(heap, index + size);
    }
    emu_block *block = &heap->blocks[index];
    block->is_used = 1;
    block->is_written = 0;
    block->charged = 0;
    block->bytes = bytes;
    return heap->base + (uint64_t)index * EMU_GRANULE;
}

/* Returns a written block's pages to the system. */
static void release_pages(const emu_heap *heap, uint32_t index, uint32_t size) {
    uint64_t start = heap->base + (uint64_t)index * EMU_GRANULE;
    uint64_t end = start + (uint64_t)size * EMU_GRANULE, page = (uint64_t)sysconf(_SC_PAGESIZE);
    start = (start + page - 1) / page * page;
    end = end / page * page;
    if (start < end) {
        madvise((void *)(uintptr_t)start, end - start, heap->fd < 0 ? MADV_DONTNEED : MADV_REMOVE);
    }
}

void emu_heap_free(emu_heap *heap, uint64_t address) {
    uint32_t index = (uint32_t)((address - heap->base) / EMU_GRANULE);
    uint32_t size = heap->blocks[index].size;
    if (heap->blocks[index].is_written && (uint64_t)size * EMU_GRANULE >= RELEASE_BYTES) {
        release_pages(heap, index, size);
    }
    uint32_t next = index + size;
    if (next < heap->granules && !heap->blocks[next].is_used) {
        unlist_free(heap, next);
        clear_start(heap, next);
        size += heap->blocks[next].size;
    }
    if (index > 0) {
        uint32_t previous = index - heap->blocks[index].previous_size;
        if (!heap->blocks[previous].is_used) {
            unlist_free(heap, previous);
            clear_start(heap, index);
            size += heap->blocks[previous].size;
            index = previous;
        }
    }
    set_size(heap, index, size);
    list_free(heap, index);
}

emu_block *emu_heap_find(emu_heap *heap, uint64_t address, uint64_t *start) {
    if (heap->base == 0 || address < heap->base ||
        address - heap->base >= (uint64_t)heap->granules * EMU_GRANULE) {
        return NULL;
    }
    uint32_t index = start_before(heap, (uint32_t)((address - heap->base) / EMU_GRANULE));
    emu_block *block = &heap->blocks[index];
    *start = heap->base + (uint64_t)index * EMU_GRANULE;
    return block->is_used && address - *start < block->bytes ? block : NULL;
}

emu_block *emu_heap_next(emu_heap *heap, uint64_t address, uint64_t *start) {
    uint64_t index = address <= heap->base ? 0 : (address - heap->base) / EMU_GRANULE;
    while (heap->base != 0 && index < heap->granules) {
        emu_block *block = &heap->blocks[index];
        if (block->is_used) {
            *start = heap->base + index * EMU_GRANULE;
            return block;
        }
        index += block->size;
    }
    return NULL;
}
