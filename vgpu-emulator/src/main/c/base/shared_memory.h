/* Memory that other processes can map: what stands behind exported handles. */
#ifndef EMU_SHARED_MEMORY_H
#define EMU_SHARED_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* A file without a name in any directory, of that size, all zero and without pages yet; -1: none can be had. */
int emu_shared_memory_make(const char *what, uint64_t bytes);

/* Whether a descriptor is of such a file made for the same thing. */
bool emu_shared_memory_is(int fd, const char *what);

/* Another descriptor of the same file, which ends with exec; -1: none can be had. */
int emu_shared_memory_copy(int fd);

/* The file's inode and size; false: not a file. */
bool emu_shared_memory_identify(int fd, uint64_t *inode, uint64_t *bytes);

/*
 * Maps part of it. Mappings begin at pages, so *base and *length are of the mapping, and the result is the address of
 * the first byte asked for; 0: it cannot be mapped.
 */
uint64_t emu_shared_memory_map(int fd, uint64_t offset, uint64_t bytes, uint64_t *base, uint64_t *length);

#endif
