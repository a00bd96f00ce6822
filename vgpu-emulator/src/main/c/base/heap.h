/*
 * Allocates parts of one device's address range, in constant time however many blocks are live. The allocator never
 * touches the range itself: its metadata is a separate array with an entry per granule, of which only the entries of a
 * block's first granule are used. Free blocks are listed by size class (two levels, as in TLSF).
 */
#ifndef EMU_HEAP_H
#define EMU_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EMU_GRANULE = 256, EMU_HEAP_NONE = -1, EMU_HEAP_LEVELS = 6 };

typedef struct {
    uint32_t size; /* in granules */
    uint32_t previous_size;
    uint32_t is_used;
    uint32_t owner; /* for the caller's use */
    union {
        struct {
            uint32_t next;
            uint32_t previous;
        } free;
        uint64_t bytes; /* the requested size */
    };
    uint32_t kind; /* for the caller's use */
    uint32_t is_written;
    uint64_t charged; /* for the caller's use: the bytes charged to the GPU for this block alone */
} emu_block;

typedef struct {
    uint64_t base;
    int fd; /* of the memory, so that other processes can map it; -1: the memory is private */
    uint32_t granules;
    emu_block *blocks;
    uint64_t *starts
        [EMU_HEAP_LEVELS]; /* level 0: a bit for each granule that starts a block; each further level: a
                                          bit for each word of the level below that is not zero */
    uint32_t first_classes;
    uint32_t second_classes[32];
    uint32_t heads[32][16];
} emu_heap;

/* Reserves addresses for that many bytes. Memory is used only for pages that are written. */
bool emu_heap_open(emu_heap *heap, uint64_t bytes);
void emu_heap_close(emu_heap *heap);

/* Allocates a block of at least one byte, aligned to `align` bytes from the heap's base (0: anywhere). Returns its
 * address, or 0 if there is no room. */
uint64_t emu_heap_allocate(emu_heap *heap, uint64_t bytes, uint64_t align);
void emu_heap_free(emu_heap *heap, uint64_t address);

/* The used block that contains an address, and the block's start; NULL if there is none. */
emu_block *emu_heap_find(emu_heap *heap, uint64_t address, uint64_t *start);

/* The first used block at or after an address (0: from the start); NULL after the last one. */
emu_block *emu_heap_next(emu_heap *heap, uint64_t address, uint64_t *start);

static inline uint64_t emu_heap_round(uint64_t bytes) {
    return (bytes + EMU_GRANULE - 1) / EMU_GRANULE * EMU_GRANULE;
}

#endif
