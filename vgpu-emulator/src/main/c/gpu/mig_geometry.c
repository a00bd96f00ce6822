#include "mig_geometry.h"

#include <stddef.h>

/* Profile ids, starts and maximum counts of A100 to H200, and of A30. */
static const emu_mig_profile seven[] = {
    {0, 19, 1, 1, 7, 0, 7, {4, 5, 6, 0, 1, 2, 3}, 14, 16},
    {7, 20, 1, 1, 1, 1, 7, {4, 5, 6, 0, 1, 2, 3}, 14, 16},
    {9, 15, 1, 2, 4, 0, 4, {6, 4, 0, 2}, 14, 26},
    {1, 14, 2, 2, 3, 0, 3, {0, 2, 4}, 28, 32},
    {2, 9, 3, 4, 2, 0, 2, {4, 0}, 42, 60},
    {3, 5, 4, 4, 1, 0, 1, {0}, 56, 64},
    {4, 0, 7, 8, 1, 0, 1, {0}, 98, 132},
};
static const emu_mig_profile four[] = {
    {0, 14, 1, 1, 4, 0, 4, {0, 1, 2, 3}, 0, 0}, {7, 21, 1, 1, 1, 1, 4, {0, 1, 2, 3}, 0, 0},
    {1, 5, 2, 2, 2, 0, 2, {0, 2}, 0, 0},        {8, 6, 2, 2, 1, 1, 2, {0, 2}, 0, 0},
    {3, 0, 4, 4, 1, 0, 1, {0}, 0, 0},
};
static const emu_mig_geometry of_seven = {7, 8, sizeof seven / sizeof seven[0], seven};
static const emu_mig_geometry of_four = {4, 4, sizeof four / sizeof four[0], four};

const emu_mig_geometry *emu_mig_geometry_of(uint32_t compute_slices) {
    return compute_slices == 7 ? &of_seven : compute_slices == 4 ? &of_four : NULL;
}

const emu_mig_profile *emu_mig_profile_by_id(const emu_mig_geometry *geometry, uint32_t id) {
    for (uint32_t i = 0; i < geometry->profile_count; i++) {
        if (geometry->profiles[i].id == id) {
            return &geometry->profiles[i];
        }
    }
    return NULL;
}

const emu_mig_profile *emu_mig_profile_by_number(const emu_mig_geometry *geometry,
                                                 uint32_t number) {
    for (uint32_t i = 0; i < geometry->profile_count; i++) {
        if (geometry->profiles[i].number == number) {
            return &geometry->profiles[i];
        }
    }
    return NULL;
}

static bool may_start_at(const emu_mig_profile *profile, uint32_t start) {
    for (uint32_t i = 0; i < profile->start_count; i++) {
        if (profile->starts[i] == start) {
            return true;
        }
    }
    return false;
}

bool emu_mig_legal(const emu_mig_geometry *geometry, const emu_mig_table *table,
                   const emu_mig_profile *profile, uint32_t start) {
    uint32_t slices = profile->slices;
    uint32_t same = 0;
    uint32_t media = 0;
    if (!may_start_at(profile, start)) {
        return false;
    }
    for (uint32_t id = 0; id < EMU_MIG_IDS; id++) {
        const emu_mig_instance *other = &table->instances[id];
        if (other->slices == 0) {
            continue;
        }
        if (other->start < start + profile->size && start < other->start + other->size) {
            return false;
        }
        const emu_mig_profile *its = emu_mig_profile_by_id(geometry, other->profile_id);
        slices += other->slices;
        same += other->profile_id == profile->id ? 1 : 0;
        media += its == NULL ? 0 : its->has_media;
    }
    return slices <= geometry->compute_slices && same < profile->most &&
           media + profile->has_media <= 1;
}

uint32_t emu_mig_id_of(const emu_mig_geometry *geometry, uint32_t size, uint32_t start) {
    if (size == geometry->memory_slices) {
        return 0;
    }
    uint32_t id = size == 4 ? 1 + start / 4 : size == 2 ? 3 + start / 2 : 7 + start;
    return id < EMU_MIG_IDS ? id : EMU_MIG_NO_ID;
}

uint32_t emu_mig_remaining(const emu_mig_geometry *geometry, const emu_mig_table *table,
                           const emu_mig_profile *profile) {
    emu_mig_table filled = *table;
    uint32_t count = 0;
    for (uint32_t i = 0; i < profile->start_count; i++) {
        uint32_t start = profile->starts[i];
        uint32_t id = emu_mig_id_of(geometry, profile->size, start);
        if (emu_mig_legal(geometry, &filled, profile, start)) {
            filled.instances[id] = (emu_mig_instance){.slices = profile->slices,
                                                      .size = profile->size,
                                                      .start = start,
                                                      .profile_id = profile->id};
            count++;
        }
    }
    return count;
}

uint32_t emu_mig_sms(const emu_mig_geometry *geometry, const emu_mig_profile *profile,
                     uint32_t slices, uint32_t sms) {
    uint32_t all = sms == 132 && profile->sms_132 != 0 ? profile->sms_132
                   : sms == 108 && profile->sms_108 != 0
                       ? profile->sms_108
                       : sms * profile->slices / geometry->compute_slices;
    uint32_t part = slices >= profile->slices ? all : all * slices / profile->slices;
    return part == 0 ? 1 : part;
}

uint64_t emu_mig_bytes(const emu_mig_geometry *geometry, uint32_t size, uint64_t memory_bytes) {
    uint64_t mebibyte = UINT64_C(1) << 20;
    return memory_bytes / geometry->memory_slices * size / mebibyte * mebibyte;
}

bool emu_mig_part_legal(const emu_mig_instance *instance, uint32_t slices, uint32_t start) {
    if (slices == 0 || slices > instance->slices || start > instance->slices - slices) {
        return false;
    }
    for (uint32_t i = 0; i < EMU_MIG_SLICES; i++) {
        uint32_t length = instance->parts[i].slices;
        if (length != 0 && i < start + slices && start < i + length) {
            return false;
        }
    }
    return true;
}

uint32_t emu_mig_free_area(const emu_mig_table *table) {
    bool taken[EMU_MIG_SLICES] = {false};
    for (uint32_t id = 0; id < EMU_MIG_IDS; id++) {
        for (uint32_t i = 0; i < EMU_MIG_SLICES; i++) {
            const emu_mig_part *part = &table->instances[id].parts[i];
            if (table->instances[id].slices != 0 && part->slices != 0 &&
                part->area < EMU_MIG_SLICES) {
                taken[part->area] = true;
            }
        }
    }
    uint32_t area = 0;
    while (area < EMU_MIG_SLICES && taken[area]) {
        area++;
    }
    return area;
}
