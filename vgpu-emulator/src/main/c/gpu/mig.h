/*
 * The MIG side of the emulated GPUs: which instances there are, in a file of its own beside the GPUs'
 * state. They stay until somebody destroys them, whoever made them, as long as the directory is
 * there. Each compute instance has time of its own, each GPU instance memory of its own: areas of
 * the file, laid out as a GPU's state is.
 *
 * Who changes a table holds a lock of the open file, which the kernel drops when it dies, and swings
 * over to the other of two buffers; readers need no lock.
 */
#ifndef EMU_MIG_H
#define EMU_MIG_H

#include "gpu.h"
#include "mig_geometry.h"

/* Which compute instance. */
typedef struct {
    uint32_t device;
    uint32_t instance;
    uint32_t part;
} emu_mig_name;

/* Whether the emulated GPUs can be cut, and how; NULL: they cannot. */
const emu_mig_geometry *emu_mig_geometry_for(const emu_settings *settings);

/* Reads a GPU's table as it is now. */
void emu_mig_read(emu_state *state, uint32_t device, emu_mig_table *table);

/* Begins a change: makes the file if need be, and takes the lock. -1: that cannot be done. */
int emu_mig_lock(emu_state *state, uint32_t device, emu_mig_table *table);
void emu_mig_write(emu_state *state, uint32_t device, const emu_mig_table *table);
void emu_mig_unlock(emu_state *state);

/* Makes `gpu` stand for a compute instance: its time, and its GPU instance's memory. Its size goes
 * into *settings, unless that is NULL. -1: that cannot be done. */
int emu_mig_view(emu_state *state, const emu_mig_table *table, const emu_mig_name *name,
                 emu_settings *settings, emu_gpu *gpu);

/* Whether a process that is alive has a context on it, or memory where it is the last part. */
bool emu_mig_in_use(emu_state *state, const emu_mig_table *table, const emu_mig_name *name);

/* Begins an instance's time, or a GPU instance's memory, anew. */
void emu_mig_reset_time(emu_state *state, uint32_t device, uint32_t area);
void emu_mig_reset_memory(emu_state *state, uint32_t device, uint32_t start);

/* 16 bytes that name it; the same for the same ids on the same GPU. */
void emu_mig_uuid(const emu_state *state, const emu_mig_name *name, uint8_t uuid[16]);
void emu_mig_uuid_text(const emu_state *state, const emu_mig_name *name, char text[48]);

/* What people call an instance: 1g.10gb, or 1c.3g.40gb for a part of one. */
void emu_mig_shape(const emu_mig_geometry *geometry, const emu_mig_instance *instance,
                   uint32_t part, const emu_settings *settings, char *text, size_t size);
void emu_mig_profile_name(const emu_mig_geometry *geometry, const emu_mig_profile *profile,
                          const emu_settings *settings, char *text, size_t size);

/* The next compute instance of a GPU from `name` on, itself included; false: there is none. */
bool emu_mig_next(const emu_mig_table *table, emu_mig_name *name);

/* What a process that had the slot before has left in instances. */
void emu_mig_clear_slot(emu_state *state, int slot);

/* Makes sure that this process's buffers in an instance's areas have room on the disk. */
bool emu_mig_take_space(emu_gpu *gpu);

void emu_mig_close(emu_state *state);

#endif
