/*
 * The resource manager, emulated inside the process, because /dev/nvidiactl cannot be provided here. It checks handles
 * and files like the real one: a client is accepted only from the file that created it, an object only with its client.
 *
 * The emulated driver calls `ioctl` through its import table, as the real one does, so code that redirects that import
 * sees the same calls. rm/import.c binds the import to emu_rm_ioctl.
 *
 * VGPU_EMULATOR_RM=word,… configures misbehaviour for tests: version=TEXT, refuse=COMMAND (hexadecimal; may be
 * repeated), slow=MICROSECONDS (each control call), stuck (a stop request reports success, but the work continues).
 */
#ifndef EMU_RM_MODEL_H
#define EMU_RM_MODEL_H

#include "gpu/gpu.h"

/* Opens a file to the resource manager, or returns -1. */
int emu_rm_open(void);
void emu_rm_close(int fd);

/* The emulated driver's `ioctl`: the model for the model's files, the C library's for all others. */
int emu_rm_ioctl(int fd, unsigned long request, ...);

/* Assigns a context to a channel group. False: there is no such group. */
bool emu_rm_bind(uint32_t client, uint32_t group, emu_gpu *gpu, uint32_t context);

/* In the child of a fork: drops everything of the parent's, and closes the child's copy of the file. */
void emu_rm_forget(int fd);

/* The number of objects, for tests. */
uint32_t emu_rm_object_count(void);

#endif
