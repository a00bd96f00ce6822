/* What the program has advised about ranges of managed memory. The emulator only remembers it. */
#ifndef EMU_HINTS_H
#define EMU_HINTS_H

#include "base/cuda_abi.h"

#include <stdbool.h>

typedef struct {
    bool is_read_mostly;
    CUmemLocation preferred;  /* type 0: none */
    CUmemLocation prefetched; /* where the range was last prefetched to */
    uint32_t accessed_by;     /* a bit for each device */
    bool is_accessed_by_host;
} emu_hints;

/* Calls `change` on the hints of each piece of a range. False: no memory. */
bool emu_hints_change(uint64_t start, uint64_t bytes,
                      void (*change)(emu_hints *hints, const void *data), const void *data);

/* Calls `see` on the hints of each piece of a range, in order. */
void emu_hints_see(uint64_t start, uint64_t bytes, void (*see)(const emu_hints *hints, void *data),
                   void *data);

/* A new allocation has no hints. */
void emu_hints_forget(uint64_t start, uint64_t bytes);

#endif
