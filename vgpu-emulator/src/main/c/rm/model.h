/*
 * The resource manager, emulated in the process: there can be no /dev/nvidiactl here. Handles and
 * files are checked as the real one does: a client is taken only with the file that made it, an
 * object only with its client.
 *
 * The emulated driver calls `ioctl` through its import table as the real one does, so that whoever
 * redirects that import sees what it would see there. rm/import.c puts emu_rm_ioctl behind it.
 *
 * VGPU_EMULATOR_RM=word,…  how it misbehaves, for tests: version=TEXT, refuse=COMMAND (hexadecimal;
 * may be repeated), slow=MICROSECONDS (each control call), stuck (what is stopped says so and runs
 * on).
 */
#ifndef EMU_RM_MODEL_H
#define EMU_RM_MODEL_H

#include "gpu/gpu.h"

/* A file to talk to it through, or -1. */
int emu_rm_open(void);
void emu_rm_close(int fd);

/* What `ioctl` is in the emulated driver: the model for its files, the C library's for all others. */
int emu_rm_ioctl(int fd, unsigned long request, ...);

/* Says which context a channel group is. False: there is no such group. */
bool emu_rm_bind(uint32_t client, uint32_t group, emu_gpu *gpu, uint32_t context);

/* In the child of a fork: it has nothing of its parent's, and closes its copy of the file. */
void emu_rm_forget(int fd);

/* The objects that there are, for tests. */
uint32_t emu_rm_object_count(void);

#endif
