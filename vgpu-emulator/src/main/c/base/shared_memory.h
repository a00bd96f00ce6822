/* Memory that other processes can map, used behind exported handles. */
#ifndef EMU_SHARED_MEMORY_H
#define EMU_SHARED_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* Creates an unnamed file of that size, all zero and without pages; -1: failed. */
int emu_shared_memory_make(const char *what, uint64_t bytes);

/* Whether a descriptor refers to such a file, made with the same `what`. */
bool emu_shared_memory_is(int fd, const char *what);

/* Another descriptor of the same file, closed on exec; -1: failed. */
int emu_shared_memory_copy(int fd);

/* The file's inode and size; false: not a file. */
bool emu_shared_memory_identify(int fd, uint64_t *inode, uint64_t *bytes);

/*
 * Maps part of the file. Mappings start at page boundaries, so *base and *length describe the whole mapping. Returns
 * the address of the first requested byte, or 0 if mapping failed.
 */
uint64_t emu_shared_memory_map(int fd, uint64_t offset, uint64_t bytes, uint64_t *base,
                               uint64_t *length);

#endif
