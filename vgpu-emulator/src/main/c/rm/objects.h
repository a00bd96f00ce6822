/*
 * The objects that clients have created at the emulated resource manager, and their requests. The caller holds the
 * model's lock, which rm/model.c takes.
 */
#ifndef EMU_RM_OBJECTS_H
#define EMU_RM_OBJECTS_H

#include "base/rm_abi.h"
#include "gpu/gpu.h"

#include <sys/types.h>

enum { RM_MAX_REFUSED = 8 };

/* The configured misbehaviour. */
typedef struct {
    bool read;
    bool stuck;
    uint32_t refused[RM_MAX_REFUSED];
    int refused_count;
    uint64_t slow_us;
    uint64_t late_us; /* how long channels that were stopped for some time cannot be resumed */
    char version[64];
} emu_rm_behaviour;

/* rm/model.c */
extern emu_rm_behaviour emu_rm_behaviour_now;
bool emu_rm_is_refused(uint32_t command);
bool emu_rm_copy_in(void *to, uint64_t from, size_t size);
bool emu_rm_copy_out(uint64_t to, const void *from, size_t size);

/* Executes a call from a file; returns its status. */
uint32_t emu_rm_allocate(ino_t file, rm_alloc_rights *call);
uint32_t emu_rm_release(ino_t file, const rm_free *call);
uint32_t emu_rm_control(ino_t file, const rm_control *call);

/* Assigns a context to a channel group. */
bool emu_rm_objects_bind(uint32_t client, uint32_t group, emu_gpu *gpu, uint32_t context);

/* Frees all clients that were created through a file. */
void emu_rm_objects_close(ino_t file);

/* Forgets all objects, without changing the contexts. */
void emu_rm_objects_forget(void);
uint32_t emu_rm_objects_count(void);

#endif
