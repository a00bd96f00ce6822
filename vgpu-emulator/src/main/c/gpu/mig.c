#include "mig.h"

#include "base/log.h"
#include "state_layout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MIG_MAGIC UINT64_C(0x3130474955504756) /* "VGPUIG01" */

/* The areas are mapped one by one; a page may have 64 KiB on aarch64. */
enum { PAGE = 65536 };

typedef struct {
    _Alignas(64) uint64_t word; /* sequence << 1 | buffer */
    uint64_t is_set;            /* 0: never changed */
    emu_mig_table tables[2];
} shared_table;

typedef struct emu_mig_file {
    uint64_t magic;
    uint64_t layout;
    shared_table devices[EMU_MAX_DEVICES];
} emu_mig_file;

_Static_assert(sizeof(emu_mig_table) % sizeof(uint64_t) == 0, "copied as words");

#define AREAS_OFFSET ((sizeof(emu_mig_file) + PAGE - 1) / PAGE * PAGE)
#define AREA_BYTES ((sizeof(emu_shared_gpu) + PAGE - 1) / PAGE * PAGE)
#define FILE_BYTES (AREAS_OFFSET + (size_t)EMU_MAX_DEVICES * EMU_MIG_SLICES * AREA_BYTES)
#define LAYOUT (UINT64_C(1) << 56 | (uint64_t)FILE_BYTES)

const emu_mig_geometry *emu_mig_geometry_for(const emu_settings *settings) {
    return settings->mig == EMU_MIG_NONE ? NULL : emu_mig_geometry_of(settings->mig_slices);
}

/* ---- the file */

static int make_file(const char *path) {
    char fresh[640];
    snprintf(fresh, sizeof fresh, "%s.%ld.new", path, (long)getpid());
    unlink(fresh);
    int fd = open(fresh, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        return -1;
    }
    emu_mig_file *file = MAP_FAILED;
    if (ftruncate(fd, (off_t)FILE_BYTES) == 0 &&
        (fallocate(fd, 0, 0, (off_t)AREAS_OFFSET) == 0 || errno == EOPNOTSUPP)) {
        file = mmap(NULL, AREAS_OFFSET, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    int result = -1;
    if (file != MAP_FAILED) {
        file->layout = LAYOUT;
        file->magic = MIG_MAGIC;
        munmap(file, AREAS_OFFSET);
        result = link(fresh, path) == 0 || errno == EEXIST ? 0 : -1;
    }
    int error = errno;
    unlink(fresh);
    close(fd);
    errno = error;
    return result;
}

static int map_file(emu_mig *mig, const char *path) {
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) {
        return -1;
    }
    emu_mig_file *file = mmap(NULL, AREAS_OFFSET, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (file == MAP_FAILED) {
        close(fd);
        return -1;
    }
    struct stat status;
    if (syscall(SYS_fstat, fd, &status) != 0 || (uint64_t)status.st_size != FILE_BYTES ||
        file->magic != MIG_MAGIC || file->layout != LAYOUT) {
        emu_log("the emulator's file of instances is damaged or of another version: file=%s", path);
        munmap(file, AREAS_OFFSET);
        close(fd);
        errno = EINVAL;
        return -1;
    }
    mig->fd = fd;
    /* release: pairs with the acquire in open_file */
    __atomic_store_n(&mig->file, file, __ATOMIC_RELEASE);
    return 0;
}

/* Opens the file; 0 if it is open. With `make`, creates the file if it does not exist. */
static int open_file(emu_state *state, bool make) {
    emu_mig *mig = &state->mig;
    if (__atomic_load_n(&mig->file, __ATOMIC_ACQUIRE) != NULL) {
        return 0;
    }
    char path[600];
    snprintf(path, sizeof path, "%s/mig", state->directory);
    if (!make && access(path, F_OK) != 0) {
        return -1;
    }
    pthread_mutex_lock(&mig->lock);
    int result = mig->file != NULL ? 0 : map_file(mig, path);
    if (result != 0 && make && errno == ENOENT) {
        result = make_file(path) == 0 ? map_file(mig, path) : -1;
    }
    if (result != 0 && errno != ENOENT) {
        emu_log("cannot use the emulator's file of instances: file=%s error=%s", path,
                strerror(errno));
    }
    pthread_mutex_unlock(&mig->lock);
    return result;
}

void emu_mig_close(emu_state *state) {
    emu_mig *mig = &state->mig;
    if (mig->file == NULL) {
        return;
    }
    for (uint32_t device = 0; device < EMU_MAX_DEVICES; device++) {
        for (uint32_t area = 0; area < EMU_MIG_SLICES; area++) {
            if (mig->areas[device][area] != NULL) {
                munmap(mig->areas[device][area], AREA_BYTES);
                mig->areas[device][area] = NULL;
            }
        }
    }
    munmap(mig->file, AREAS_OFFSET);
    close(mig->fd);
    mig->file = NULL;
}

/* ---- tables */

static void copy_words(void *to, const void *from) {
    uint64_t *target = to;
    const uint64_t *source = from;
    for (size_t i = 0; i < sizeof(emu_mig_table) / sizeof(uint64_t); i++) {
        __atomic_store_n(&target[i], __atomic_load_n(&source[i], __ATOMIC_RELAXED),
                         __ATOMIC_RELAXED);
    }
}

static void initial(const emu_state *state, emu_mig_table *table) {
    memset(table, 0, sizeof *table);
    table->current = table->pending = state->settings.mig == EMU_MIG_ON ? 1 : 0;
}

void emu_mig_read(emu_state *state, uint32_t device, emu_mig_table *table) {
    initial(state, table);
    if (open_file(state, false) != 0) {
        return;
    }
    shared_table *shared = &state->mig.file->devices[device];
    uint64_t seen = 0;
    do {
        seen = __atomic_load_n(&shared->word, __ATOMIC_ACQUIRE);
        if (seen >> 1 == 0) {
            return;
        }
        copy_words(table, &shared->tables[seen & 1]);
        __atomic_thread_fence(__ATOMIC_ACQUIRE); /* pairs with the fence in emu_mig_write */
    } while (__atomic_load_n(&shared->word, __ATOMIC_RELAXED) != seen);
}

void emu_mig_write(emu_state *state, uint32_t device, const emu_mig_table *table) {
    shared_table *shared = &state->mig.file->devices[device];
    uint64_t seen = __atomic_load_n(&shared->word, __ATOMIC_ACQUIRE);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    copy_words(&shared->tables[(seen & 1) ^ 1], table);
    /* release: pairs with the acquire in emu_mig_read */
    __atomic_store_n(&shared->word, ((seen >> 1) + 1) << 1 | ((seen & 1) ^ 1), __ATOMIC_RELEASE);
}

static int file_lock(int fd, int command, short type) {
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
    int result = 0;
    do {
        result = fcntl(fd, command, &lock);
    } while (result != 0 && errno == EINTR);
    return result;
}

int emu_mig_lock(emu_state *state, uint32_t device, emu_mig_table *table) {
    if (open_file(state, true) != 0) {
        return -1;
    }
    pthread_mutex_lock(&state->mig.lock);
    if (file_lock(state->mig.fd, F_OFD_SETLKW, F_WRLCK) != 0) {
        pthread_mutex_unlock(&state->mig.lock);
        return -1;
    }
    emu_mig_read(state, device, table);
    bool left = false; /* a process died while destroying a part, so the part still exists */
    for (uint32_t id = 0; id < EMU_MIG_IDS; id++) {
        for (uint32_t i = 0; i < EMU_MIG_SLICES; i++) {
            left |= table->instances[id].parts[i].ending != 0;
            table->instances[id].parts[i].ending = 0;
        }
    }
    if (left) {
        emu_mig_write(state, device, table);
    }
    return 0;
}

void emu_mig_unlock(emu_state *state) {
    file_lock(state->mig.fd, F_OFD_SETLK, F_UNLCK);
    pthread_mutex_unlock(&state->mig.lock);
}

/* ---- areas */

static emu_shared_gpu *area_of(emu_state *state, uint32_t device, uint32_t area) {
    emu_mig *mig = &state->mig;
    void **place = &mig->areas[device][area];
    void *known = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    if (known == NULL) {
        off_t offset =
            (off_t)(AREAS_OFFSET + ((size_t)device * EMU_MIG_SLICES + area) * AREA_BYTES);
        fallocate(mig->fd, 0, offset, offsetof(emu_shared_gpu, schedules));
        void *mapped = mmap(NULL, AREA_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, mig->fd, offset);
        if (mapped == MAP_FAILED) {
            return NULL;
        }
        if (!__atomic_compare_exchange_n(place, &known, mapped, false, __ATOMIC_ACQ_REL,
                                         __ATOMIC_ACQUIRE)) {
            munmap(mapped, AREA_BYTES);
        } else {
            known = mapped;
        }
    }
    return known;
}

static void reset(uint64_t *word) {
    uint64_t seen = __atomic_load_n(word, __ATOMIC_ACQUIRE);
    while (!__atomic_compare_exchange_n(word, &seen, ((seen >> 16) + 1) << 16 | EMU_INITIAL_BUFFER,
                                        false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
    }
}

void emu_mig_reset_time(emu_state *state, uint32_t device, uint32_t area) {
    emu_shared_gpu *shared = area_of(state, device, area);
    if (shared != NULL) {
        reset(&shared->schedule_word);
    }
}

void emu_mig_reset_memory(emu_state *state, uint32_t device, uint32_t start) {
    emu_shared_gpu *shared = area_of(state, device, start);
    if (shared != NULL) {
        reset(&shared->ledger_word);
    }
}

int emu_mig_view(emu_state *state, const emu_mig_table *table, const emu_mig_name *name,
                 emu_settings *settings, emu_gpu *gpu) {
    const emu_mig_geometry *geometry = emu_mig_geometry_for(&state->header->settings);
    const emu_mig_instance *instance = &table->instances[name->instance];
    const emu_mig_part *part = &instance->parts[name->part];
    const emu_mig_profile *profile =
        geometry == NULL ? NULL : emu_mig_profile_by_id(geometry, instance->profile_id);
    if (profile == NULL || instance->slices == 0 || part->slices == 0 ||
        part->area >= EMU_MIG_SLICES || instance->start >= EMU_MIG_SLICES) {
        return -1;
    }
    emu_shared_gpu *time = area_of(state, name->device, part->area);
    emu_shared_gpu *memory = area_of(state, name->device, instance->start);
    if (time == NULL || memory == NULL) {
        return -1;
    }
    if (settings != NULL) {
        settings->memory_bytes =
            emu_mig_bytes(geometry, instance->size, state->header->settings.memory_bytes);
        settings->sms = emu_mig_sms(geometry, profile, part->slices, state->header->settings.sms);
    }
    gpu->state = state;
    gpu->index = name->device;
    gpu->shared = time;
    gpu->memory = memory;
    return 0;
}

static bool has_users(emu_gpu *gpu, bool of_memory) {
    emu_view view;
    emu_ledger ledger;
    emu_gpu_watch(gpu, &view);
    for (uint32_t i = 0; i < view.schedule.context_count; i++) {
        uint32_t owner = view.schedule.contexts[i].owner;
        if (owner != 0 && owner <= EMU_MAX_PROCESSES &&
            !emu_process_dead(gpu->state, (int)owner - 1)) {
            return true;
        }
    }
    emu_gpu_memory(gpu, &ledger);
    for (uint64_t i = 0; of_memory && i < ledger.process_count; i++) {
        if (ledger.used_by[i] > 0) {
            return true;
        }
    }
    return false;
}

bool emu_mig_in_use(emu_state *state, const emu_mig_table *table, const emu_mig_name *name) {
    emu_gpu gpu = {0};
    int parts = 0;
    for (uint32_t i = 0; i < EMU_MIG_SLICES; i++) {
        parts += table->instances[name->instance].parts[i].slices != 0 ? 1 : 0;
    }
    return emu_mig_view(state, table, name, NULL, &gpu) == 0 && has_users(&gpu, parts == 1);
}

/* ---- names */

static uint64_t mix(uint64_t hash, const void *data, size_t size) {
    const uint8_t *bytes = data;
    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

void emu_mig_uuid(const emu_state *state, const emu_mig_name *name, uint8_t uuid[16]) {
    uint8_t gpu[16];
    uint32_t ids[2] = {name->instance, name->part};
    emu_gpu_uuid(state, name->device, gpu);
    uint64_t first = mix(mix(UINT64_C(0xcbf29ce484222325), ids, sizeof ids), gpu, sizeof gpu);
    uint64_t second = mix(first, gpu, sizeof gpu);
    memcpy(uuid, &first, 8);
    memcpy(uuid + 8, &second, 8);
    uuid[6] = (uint8_t)((uuid[6] & 0x0f) | 0x50);
    uuid[8] = (uint8_t)((uuid[8] & 0x3f) | 0x80);
}

void emu_mig_uuid_text(const emu_state *state, const emu_mig_name *name, char text[48]) {
    uint8_t u[16];
    emu_mig_uuid(state, name, u);
    snprintf(text, 48, "MIG-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
             u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13],
             u[14], u[15]);
}

void emu_mig_profile_name(const emu_mig_geometry *geometry, const emu_mig_profile *profile,
                          const emu_settings *settings, char *text, size_t size) {
    uint64_t bytes = settings->memory_bytes * profile->size / geometry->memory_slices;
    uint64_t gibibyte = UINT64_C(1) << 30;
    snprintf(text, size, "%ug.%llugb%s", profile->slices,
             (unsigned long long)((bytes + gibibyte / 2) / gibibyte),
             profile->has_media != 0 ? "+me" : "");
}

void emu_mig_shape(const emu_mig_geometry *geometry, const emu_mig_instance *instance,
                   uint32_t part, const emu_settings *settings, char *text, size_t size) {
    const emu_mig_profile *profile = emu_mig_profile_by_id(geometry, instance->profile_id);
    char whole[32] = "";
    if (profile != NULL) {
        emu_mig_profile_name(geometry, profile, settings, whole, sizeof whole);
    }
    uint32_t slices = instance->parts[part].slices;
    if (slices == instance->slices) {
        snprintf(text, size, "%s", whole);
    } else {
        snprintf(text, size, "%uc.%s", slices, whole);
    }
}

bool emu_mig_next(const emu_mig_table *table, emu_mig_name *name) {
    for (; table->current != 0 && name->instance < EMU_MIG_IDS; name->instance++, name->part = 0) {
        for (; name->part < EMU_MIG_SLICES; name->part++) {
            const emu_mig_instance *instance = &table->instances[name->instance];
            if (instance->slices != 0 && instance->parts[name->part].slices != 0) {
                return true;
            }
        }
    }
    return false;
}

/* ---- processes */

bool emu_mig_take_space(emu_gpu *gpu) {
    emu_state *state = gpu->state;
    emu_shared_gpu *shared[2] = {gpu->shared, gpu->memory};
    for (int i = 0; i < 2; i++) {
        for (uint32_t area = 0; area < EMU_MIG_SLICES; area++) {
            if (state->mig.areas[gpu->index][area] != shared[i]) {
                continue;
            }
            size_t base = AREAS_OFFSET + ((size_t)gpu->index * EMU_MIG_SLICES + area) * AREA_BYTES;
            size_t schedules = base + offsetof(emu_shared_gpu, schedules) +
                               (size_t)state->slot * sizeof shared[i]->schedules[0];
            size_t ledgers = base + offsetof(emu_shared_gpu, ledgers) +
                             (size_t)state->slot * sizeof shared[i]->ledgers[0];
            if ((fallocate(state->mig.fd, 0, (off_t)schedules, sizeof shared[i]->schedules[0]) !=
                     0 &&
                 errno != EOPNOTSUPP) ||
                (fallocate(state->mig.fd, 0, (off_t)ledgers, sizeof shared[i]->ledgers[0]) != 0 &&
                 errno != EOPNOTSUPP)) {
                return false;
            }
        }
    }
    return true;
}

void emu_mig_clear_slot(emu_state *state, int slot) {
    for (uint32_t device = 0; device < state->settings.devices; device++) {
        emu_mig_table table;
        emu_mig_read(state, device, &table);
        emu_mig_name name = {.device = device};
        for (; emu_mig_next(&table, &name); name.part++) {
            emu_gpu gpu = {0};
            pthread_mutex_init(&gpu.publish_lock, NULL);
            if (emu_mig_view(state, &table, &name, NULL, &gpu) == 0 && emu_mig_take_space(&gpu)) {
                emu_gpu_drop_process(&gpu, slot);
            }
        }
    }
}
