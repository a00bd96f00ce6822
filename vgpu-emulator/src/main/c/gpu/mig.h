/*
 * MIG instances of the emulated GPUs, in a file of their own beside the GPUs' state. Instances persist as long as the
 * directory does, until a process destroys them, whichever process created them. Each compute instance has its own time
 * and each GPU instance its own memory: areas of the file with the same layout as a GPU's state.
 *
 * A writer of a table holds a lock on the open file, which the kernel drops when the writer dies, and switches between
 * two buffers. Readers need no lock.
 */
#ifndef EMU_MIG_H
#define EMU_MIG_H

#include "gpu.h"
#include "mig_geometry.h"

/* Identifies a compute instance. */
typedef struct {
    uint32_t device;
    uint32_t instance;
    uint32_t part;
} emu_mig_name;

/* How the emulated GPUs can be partitioned; NULL: they cannot. */
const emu_mig_geometry *emu_mig_geometry_for(const emu_settings *settings);

/* Reads a GPU's current table. */
void emu_mig_read(emu_state *state, uint32_t device, emu_mig_table *table);

/* Starts a change: creates the file if necessary and takes the lock. -1: failed. */
int emu_mig_lock(emu_state *state, uint32_t device, emu_mig_table *table);
void emu_mig_write(emu_state *state, uint32_t device, const emu_mig_table *table);
void emu_mig_unlock(emu_state *state);

/* Makes `gpu` represent a compute instance, with its own time and its GPU instance's memory. If `settings` is not
 * NULL, the instance's size is written there. -1: failed. */
int emu_mig_view(emu_state *state, const emu_mig_table *table, const emu_mig_name *name,
                 emu_settings *settings, emu_gpu *gpu);

/* Whether a living process has a context on the instance, or memory if it is the GPU instance's last part. */
bool emu_mig_in_use(emu_state *state, const emu_mig_table *table, const emu_mig_name *name);

/* Resets an instance's time, or a GPU instance's memory. */
void emu_mig_reset_time(emu_state *state, uint32_t device, uint32_t area);
void emu_mig_reset_memory(emu_state *state, uint32_t device, uint32_t start);

/* The instance's UUID (16 bytes); the same ids on the same GPU always give the same UUID. */
void emu_mig_uuid(const emu_state *state, const emu_mig_name *name, uint8_t uuid[16]);
void emu_mig_uuid_text(const emu_state *state, const emu_mig_name *name, char text[48]);

/* The instance's name: 1g.10gb, or 1c.3g.40gb for a part of one. */
void emu_mig_shape(const emu_mig_geometry *geometry, const emu_mig_instance *instance,
                   uint32_t part, const emu_settings *settings, char *text, size_t size);
void emu_mig_profile_name(const emu_mig_geometry *geometry, const emu_mig_profile *profile,
                          const emu_settings *settings, char *text, size_t size);

/* Advances `name` to a GPU's next compute instance, starting with `name` itself; false: there is none. */
bool emu_mig_next(const emu_mig_table *table, emu_mig_name *name);

/* Clears what a slot's previous process left in instances. */
void emu_mig_clear_slot(emu_state *state, int slot);

/* Allocates disk space for this process's buffers in an instance's areas. */
bool emu_mig_take_space(emu_gpu *gpu);

void emu_mig_close(emu_state *state);

#endif
