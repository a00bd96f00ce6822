/*
 * Hands out parts of one device's address range, in constant time whatever is live. It never
 * touches the range itself: what is known of a block lies beside it, in an array with an entry per
 * granule of which only those that start a block are used. Free blocks are kept by size class (two
 * levels, as TLSF does).
 */
#ifndef EMU_HEAP_H
#define EMU_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EMU_GRANULE = 256, EMU_HEAP_NONE = -1, EMU_HEAP_LEVELS = 6 };

typedef struct {
    uint32_t size; /* granules */
    uint32_t previous_size;
    uint32_t is_used;
    uint32_t owner; /* the caller's */
    union {
        struct {
            uint32_t next;
            uint32_t previous;
        } free;
        uint64_t bytes; /* what was asked for */
    };
    uint32_t kind; /* the caller's */
    uint32_t is_written;
    uint64_t charged; /* the caller's: what was charged to the GPU for this block alone */
} emu_block;

typedef struct {
    uint64_t base;
    int fd; /* of the memory, so that other processes can map it; -1: it is private */
    uint32_t granules;
    emu_block *blocks;
    uint64_t *starts[EMU_HEAP_LEVELS]; /* a bit per granule that starts a block; then a bit per word
                                          that has one, and so on */
    uint32_t first_classes;
    uint32_t second_classes[32];
    uint32_t heads[32][16];
} emu_heap;

/* Reserves addresses for that many bytes. No memory is used for what is not written. */
bool emu_heap_open(emu_heap *heap, uint64_t bytes);
void emu_heap_close(emu_heap *heap);

/* A block of at least one byte, at a multiple of `align` bytes from the heap's base (0: anywhere); its address, or 0 if
 * there is no room. */
uint64_t emu_heap_allocate(emu_heap *heap, uint64_t bytes, uint64_t align);
void emu_heap_free(emu_heap *heap, uint64_t address);

/* The used block in which an address lies, with its own address; NULL if there is none. */
emu_block *emu_heap_find(emu_heap *heap, uint64_t address, uint64_t *start);

/* The used block at or after an address (0: from the start); NULL after the last. */
emu_block *emu_heap_next(emu_heap *heap, uint64_t address, uint64_t *start);

static inline uint64_t emu_heap_round(uint64_t bytes) {
    return (bytes + EMU_GRANULE - 1) / EMU_GRANULE * EMU_GRANULE;
}

#endif
