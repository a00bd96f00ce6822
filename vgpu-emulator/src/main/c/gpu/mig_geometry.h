/*
 * The GPU instances that a GPU can be partitioned into, and their placements: a pure model. Positions are memory
 * slices; a placement takes [start, start + size). Instances can coexist if their placements are disjoint, their
 * compute slices do not exceed the GPU's, and no profile exceeds its maximum count.
 */
#ifndef EMU_MIG_GEOMETRY_H
#define EMU_MIG_GEOMETRY_H

#include <stdbool.h>
#include <stdint.h>

enum { EMU_MIG_STARTS = 7, EMU_MIG_IDS = 14, EMU_MIG_SLICES = 7, EMU_MIG_NO_ID = EMU_MIG_IDS };

typedef struct {
    uint32_t number; /* NVML_GPU_INSTANCE_PROFILE_* */
    uint32_t id;     /* the profile id that nvidia-smi shows */
    uint32_t slices; /* compute slices */
    uint32_t size;   /* memory slices */
    uint32_t most;   /* the maximum number of instances */
    uint32_t has_media;
    uint32_t start_count;
    uint32_t starts[EMU_MIG_STARTS]; /* in the order in which the driver tries them */
    uint32_t sms_108;                /* the SMs of an instance on a GPU with 108 (132) SMs */
    uint32_t sms_132;
} emu_mig_profile;

typedef struct {
    uint32_t compute_slices;
    uint32_t memory_slices;
    uint32_t profile_count;
    const emu_mig_profile *profiles;
} emu_mig_geometry;

/* A compute instance: a part of its GPU instance's compute slices. */
typedef struct {
    uint32_t slices; /* 0: there is none */
    uint32_t area;   /* the area that holds its time: 0 to EMU_MIG_SLICES - 1 */
    uint32_t ending; /* 1: a process is destroying it */
    uint32_t profile_id;
} emu_mig_part;

/* A GPU instance. Its id is its index in the table; a compute instance's id is its first slice. */
typedef struct {
    uint32_t slices; /* 0: there is none */
    uint32_t size;
    uint32_t start; /* also the number of the area that holds its memory */
    uint32_t profile_id;
    emu_mig_part parts[EMU_MIG_SLICES];
} emu_mig_instance;

/* A GPU's instances. Only 32-bit fields, in pairs, because it is copied as 64-bit words. */
typedef struct {
    uint32_t current; /* 1: MIG mode is on */
    uint32_t pending;
    emu_mig_instance instances[EMU_MIG_IDS];
} emu_mig_table;

/* The geometry of a GPU with 7 or 4 compute slices; NULL for any other number. */
const emu_mig_geometry *emu_mig_geometry_of(uint32_t compute_slices);

const emu_mig_profile *emu_mig_profile_by_id(const emu_mig_geometry *geometry, uint32_t id);
const emu_mig_profile *emu_mig_profile_by_number(const emu_mig_geometry *geometry, uint32_t number);

/* Whether an instance may be placed there besides the existing ones. */
bool emu_mig_legal(const emu_mig_geometry *geometry, const emu_mig_table *table,
                   const emu_mig_profile *profile, uint32_t start);

/* The id of an instance with that many memory slices at that start. */
uint32_t emu_mig_id_of(const emu_mig_geometry *geometry, uint32_t size, uint32_t start);

/* The number of instances that can still be created. */
uint32_t emu_mig_remaining(const emu_mig_geometry *geometry, const emu_mig_table *table,
                           const emu_mig_profile *profile);

/* The SMs of that many of an instance's compute slices. */
uint32_t emu_mig_sms(const emu_mig_geometry *geometry, const emu_mig_profile *profile,
                     uint32_t slices, uint32_t sms);

uint64_t emu_mig_bytes(const emu_mig_geometry *geometry, uint32_t size, uint64_t memory_bytes);

/* Whether a compute instance of that many slices may start there. */
bool emu_mig_part_legal(const emu_mig_instance *instance, uint32_t slices, uint32_t start);

/* A free area for a compute instance's time; EMU_MIG_SLICES if there is none. */
uint32_t emu_mig_free_area(const emu_mig_table *table);

#endif
