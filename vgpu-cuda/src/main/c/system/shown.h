/* Which of a lease's GPUs a program is shown: shared by the hook and by what stands in for NVML. */
#ifndef VGPU_SHOWN_H
#define VGPU_SHOWN_H

#include <stddef.h>

enum { VGPU_SHOWN_SIZE = 4096 };

/*
 * What CUDA_VISIBLE_DEVICES has to be for a program that is under a lease on the GPUs `ours` (UUIDs with commas between
 * them) and asks for `wish` (NULL: it does not ask). A number counts among the lease's GPUs; a UUID, or the beginning
 * of one, must name one of them; as with CUDA, what comes after the first name that is none is not shown. Returns 1 if
 * something was left out.
 */
int vgpu__shown(const char *ours, const char *wish, char *into, size_t size);

/* Whether a list has the GPU of these 16 bytes. */
int vgpu__shown_has(const char *ours, const unsigned char *uuid);

#endif
