/* Which of a lease's GPUs a program is shown. Shared by the hook and the NVML stand-in. */
#ifndef VGPU_SHOWN_H
#define VGPU_SHOWN_H

#include <stddef.h>

enum { VGPU_SHOWN_SIZE = 4096 };

/*
 * Writes to `into` the value that CUDA_VISIBLE_DEVICES must have for a program whose lease has the GPUs `ours` (UUIDs
 * separated by commas) and which asks for `wish` (NULL: it does not ask). A number is an index into the lease's GPUs. A
 * UUID, or a prefix of one, must name one of them. As in CUDA, entries after the first invalid one are not shown.
 * Returns 1 if an entry was left out.
 */
int vgpu__shown(const char *ours, const char *wish, char *into, size_t size);

/* The position in the list of the GPU with this 16-byte UUID, or with this name; -1: it is not there. */
int vgpu__shown_index(const char *ours, const unsigned char *uuid);
int vgpu__shown_named(const char *ours, const char *name);
/* Copies the name at this position; 1: there is one, and it fits. */
int vgpu__shown_at(const char *ours, unsigned position, char *into, size_t size);

#endif
