/* Finding, creating, opening and joining the state file. */
#include "base/log.h"
#include "base/trusted.h"
#include "gpu.h"
#include "mig.h"
#include "state_layout.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Bytes of the file that are used as locks. Bytes 0 to EMU_MAX_PROCESSES - 1 are the slots. */
enum { PRESENT_BYTE = 4096, REPLACE_BYTE = 4097, OPEN_TRIES = 200 };

static int fail(char *problem, size_t size, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(problem, size, format, arguments);
    va_end(arguments);
    emu_complain("%s", problem);
    return -1;
}

/* Locks of the open file description, not of the process (F_OFD_SETLK): the kernel drops them when its last holder
 * is gone. */
static int file_lock(int fd, int command, short type, off_t start, off_t length, short *found) {
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = length};
    int result = fcntl(fd, command, &lock);
    if (found != NULL) {
        *found = lock.l_type;
    }
    return result;
}

bool emu_slot_locked(int fd, int slot) {
    short found = F_UNLCK;
    return file_lock(fd, F_OFD_GETLK, F_WRLCK, slot, 1, &found) == 0 && found != F_UNLCK;
}

static bool anybody_present(int fd) {
    short found = F_UNLCK;
    return file_lock(fd, F_OFD_GETLK, F_WRLCK, 0, PRESENT_BYTE + 1, &found) != 0 ||
           found != F_UNLCK;
}

int emu_state_directory(char *path, size_t size) {
    const char *own = getenv("VGPU_EMULATOR_DIR");
    const char *run = getenv("VGPU_RUN_DIR");
    const char *user = getenv("XDG_RUNTIME_DIR");
    int length = 0;
    if (own != NULL && own[0] != '\0') {
        length = snprintf(path, size, "%s", own);
    } else if (run != NULL && run[0] != '\0') {
        length = snprintf(path, size, "%s/emulator", run);
    } else if (user != NULL && user[0] != '\0') {
        length = snprintf(path, size, "%s/vgpu/emulator", user);
    } else {
        length = snprintf(path, size, "/run/vgpu/emulator");
    }
    return length < 0 || (size_t)length >= size ? -1 : 0;
}

/* A direct system call, because glibc's fstat() and stat() have symbol versions newer than 2.17. */
static bool identify(int fd, const char *path, struct stat *result) {
    long failed = path == NULL ? syscall(SYS_fstat, fd, result)
                               : syscall(SYS_newfstatat, AT_FDCWD, path, result, 0);
    return failed == 0;
}

static int make_directories(const char *path) {
    char part[560];
    size_t length = strlen(path);
    if (length >= sizeof part) {
        errno = ENAMETOOLONG;
        return -1;
    }
    for (size_t i = 1; i <= length; i++) {
        if (path[i] == '/' || path[i] == '\0') {
            memcpy(part, path, i);
            part[i] = '\0';
            bool made = mkdir(part, 0700) == 0;
            if (!made && errno != EEXIST && path[i] == '\0') {
                return -1;
            }
        }
    }
    return 0;
}

static uint64_t mix(uint64_t hash, const void *data, size_t size) {
    const uint8_t *bytes = data;
    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

static uint64_t layout_hash(void) {
    uint64_t sizes[] = {sizeof(emu_shared_header),
                        sizeof(emu_shared_gpu),
                        sizeof(emu_schedule),
                        sizeof(emu_ledger),
                        offsetof(emu_schedule, contexts),
                        sizeof(emu_settings),
                        EMU_HISTORY,
                        4 /* increase when the meaning of a field changes */};
    return mix(UINT64_C(0xcbf29ce484222325), sizes, sizeof sizes);
}

/* Derived from the directory's real path, so that a directory's GPUs keep their UUIDs when the state is recreated. */
static void make_seed(const char *directory, uint8_t seed[16]) {
    char real[PATH_MAX];
    const char *name = realpath(directory, real) != NULL ? real : directory;
    uint64_t first = mix(UINT64_C(0xcbf29ce484222325), name, strlen(name));
    uint64_t second = mix(first ^ UINT64_C(0x9e3779b97f4a7c15), name, strlen(name));
    memcpy(seed, &first, 8);
    memcpy(seed + 8, &second, 8);
}

void emu_gpu_uuid(const emu_state *state, uint32_t index, uint8_t uuid[16]) {
    const uint8_t *seed = state->header->uuid_seed;
    /* The index is hashed first, so that it affects all later bytes: UUIDs are often shortened. */
    uint64_t first = mix(UINT64_C(0xcbf29ce484222325) + index, seed, 16);
    uint64_t second = mix(first, seed, 16);
    memcpy(uuid, &first, 8);
    memcpy(uuid + 8, &second, 8);
    uuid[6] = (uint8_t)((uuid[6] & 0x0f) | 0x40);
    uuid[8] = (uint8_t)((uuid[8] & 0x3f) | 0x80);
}

static size_t file_size(uint32_t devices) {
    return EMU_GPUS_OFFSET + (size_t)devices * sizeof(emu_shared_gpu);
}

static bool same_file(int fd, const char *path) {
    struct stat ours;
    struct stat now;
    return identify(fd, NULL, &ours) && identify(-1, path, &now) && ours.st_ino == now.st_ino &&
           ours.st_dev == now.st_dev;
}

/*
 * A directory that root has opened to a group, with mode 0750, is for emulated GPUs that the group shares: its members
 * can then damage the state for each other, and for root.
 */
static int share_with_group(const char *directory, int fd) {
    struct stat found;
    bool known = identify(-1, directory, &found);
    bool shared = known && found.st_uid == 0 && found.st_gid != 0 &&
                  (found.st_mode & (S_IXGRP | S_IWGRP)) == S_IXGRP;
    return !shared || (fchown(fd, (uid_t)-1, found.st_gid) == 0 && fchmod(fd, 0660) == 0) ? 0 : -1;
}

/* Creates a new state under a temporary name, complete before any process can see it. */
static int make_file(const emu_state *state, const char *path, char *problem, size_t size) {
    size_t length = file_size(state->settings.devices);
    unlink(path);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        return fail(problem, size, "cannot make the emulator's state: file=%s error=%s", path,
                    strerror(errno));
    }
    emu_shared_header *header = NULL;
    bool complete =
        share_with_group(state->directory, fd) == 0 && ftruncate(fd, (off_t)length) == 0;
    /* A hole in a mapped file on a full disk would later cause a SIGBUS, so the space is allocated now. */
    for (uint32_t i = 0; complete && i < state->settings.devices; i++) {
        off_t start = (off_t)(EMU_GPUS_OFFSET + i * sizeof(emu_shared_gpu));
        complete = fallocate(fd, 0, start, offsetof(emu_shared_gpu, schedules)) == 0 ||
                   errno == EOPNOTSUPP;
    }
    complete = complete && (fallocate(fd, 0, 0, EMU_GPUS_OFFSET) == 0 || errno == EOPNOTSUPP);
    header = complete ? mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (header == MAP_FAILED) {
        int error = errno;
        close(fd);
        unlink(path);
        return fail(problem, size, "cannot make the emulator's state: file=%s bytes=%zu error=%s",
                    path, length, strerror(error));
    }
    emu_shared_gpu *gpus = (emu_shared_gpu *)(void *)((char *)header + EMU_GPUS_OFFSET);
    for (uint32_t i = 0; i < state->settings.devices; i++) {
        gpus[i].schedule_word = EMU_INITIAL_BUFFER;
        gpus[i].ledger_word = EMU_INITIAL_BUFFER;
    }
    header->file_size = length;
    header->layout = layout_hash();
    header->settings = state->settings;
    make_seed(state->directory, header->uuid_seed);
    header->magic = EMU_STATE_MAGIC;
    munmap(header, length);
    return fd;
}

/* Puts a new state at `path`: where there is no file, or in place of `broken`. 0: try again; -1: a problem. */
static int install(const emu_state *state, const char *path, int broken, char *problem,
                   size_t size) {
    char fresh[640];
    snprintf(fresh, sizeof fresh, "%s.%ld.new", path, (long)getpid());
    if (broken >= 0) {
        if (anybody_present(broken)) {
            return fail(
                problem, size,
                "the emulator's state is damaged or of another version, and in use: file=%s", path);
        }
        if (file_lock(broken, F_OFD_SETLK, F_WRLCK, REPLACE_BYTE, 1, NULL) != 0 ||
            !same_file(broken, path)) {
            return 0; /* another process is replacing it */
        }
        emu_log("the emulator's state is damaged; starting anew: file=%s", path);
    }
    int fd = make_file(state, fresh, problem, size);
    if (fd < 0) {
        return -1;
    }
    close(fd);
    int result = broken >= 0 ? rename(fresh, path) : link(fresh, path);
    int error = errno;
    unlink(fresh);
    if (result != 0 && error != EEXIST) {
        return fail(problem, size, "cannot put the emulator's state in place: file=%s error=%s",
                    path, strerror(error));
    }
    return 0;
}

static bool valid(const emu_shared_header *header, size_t length) {
    return length >= EMU_GPUS_OFFSET && header->magic == EMU_STATE_MAGIC &&
           header->file_size == length && header->layout == layout_hash() &&
           header->settings.devices <= EMU_MAX_DEVICES &&
           file_size(header->settings.devices) == length && header->settings.slice_ns > 0 &&
           header->settings.model[EMU_MODEL_SIZE - 1] == '\0';
}

/* Maps an open state file. 0: done; 1: not a valid state; -1: a problem. */
static int map_file(emu_state *state, int fd, char *problem, size_t size) {
    struct stat status;
    if (!identify(fd, NULL, &status)) {
        return fail(problem, size, "cannot read the emulator's state: error=%s", strerror(errno));
    }
    size_t length = (size_t)status.st_size;
    if (length < EMU_GPUS_OFFSET || length > file_size(EMU_MAX_DEVICES)) {
        return 1;
    }
    void *map = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) {
        return fail(problem, size, "cannot map the emulator's state: bytes=%zu error=%s", length,
                    strerror(errno));
    }
    if (!valid(map, length)) {
        munmap(map, length);
        return 1;
    }
    state->header = map;
    state->size = length;
    state->fd = fd;
    return 0;
}

/* Tries once. 0: open; 1: try again; -1: a problem. */
static int try_open(emu_state *state, const char *path, char *problem, size_t size) {
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT) {
        return install(state, path, -1, problem, size) == 0 ? 1 : -1;
    }
    if (fd < 0) {
        return fail(problem, size, "cannot open the emulator's state: file=%s error=%s", path,
                    strerror(errno));
    }
    int mapped = map_file(state, fd, problem, size);
    if (mapped == 0) {
        /* The read lock marks the file as in use. Then check that it has not been replaced meanwhile. */
        file_lock(fd, F_OFD_SETLK, F_RDLCK, PRESENT_BYTE, 1, NULL);
        if (same_file(fd, path)) {
            return 0;
        }
        munmap(state->header, state->size);
        mapped = 2;
    }
    int result = mapped;
    if (mapped == 1) {
        result = install(state, path, fd, problem, size) == 0 ? 1 : -1;
    } else if (mapped == 2) {
        result = 1;
    }
    close(fd);
    return result;
}

static void look_at_gpus(emu_state *state) {
    bool same = memcmp(&state->settings, &state->header->settings, sizeof state->settings) == 0;
    if (!same && getenv("VGPU_EMULATOR") != NULL) {
        emu_log("VGPU_EMULATOR does not match this directory's existing GPUs and is ignored: "
                "directory=%s",
                state->directory);
    }
    state->settings = state->header->settings;
    emu_shared_gpu *gpus = (emu_shared_gpu *)(void *)((char *)state->header + EMU_GPUS_OFFSET);
    for (uint32_t i = 0; i < state->settings.devices; i++) {
        state->gpus[i].state = state;
        state->gpus[i].index = i;
        state->gpus[i].shared = &gpus[i];
        state->gpus[i].memory = &gpus[i];
        pthread_mutex_init(&state->gpus[i].publish_lock, NULL);
    }
}

int emu_state_open(emu_state *state, char *problem, size_t size) {
    char path[560];
    memset(state, 0, sizeof *state);
    state->slot = EMU_NO_PROCESS;
    state->fd = -1;
    pthread_mutex_init(&state->mig.lock, NULL);
    state->pid_namespace = emu_pid_namespace();
    if (emu_settings_parse(getenv("VGPU_EMULATOR"), &state->settings, &state->times, problem,
                           size) != 0) {
        emu_complain("%s", problem);
        return -1;
    }
    if (emu_state_directory(state->directory, sizeof state->directory) != 0) {
        return fail(problem, size, "the path of the emulator's directory is too long");
    }
    char reason[PATH_MAX + 100];
    /* Checked before anything is created in it, and again afterwards. */
    if (emu_trust_directory(state->directory, sizeof state->directory, reason, sizeof reason) !=
        0) {
        return fail(problem, size, "the emulator's directory cannot be used: %s", reason);
    }
    if (make_directories(state->directory) != 0) {
        return fail(problem, size, "cannot make the emulator's directory: directory=%s error=%s",
                    state->directory, strerror(errno));
    }
    if (emu_trust_directory(state->directory, sizeof state->directory, reason, sizeof reason) !=
        0) {
        return fail(problem, size, "the emulator's directory cannot be used: %s", reason);
    }
    snprintf(path, sizeof path, "%s/gpus", state->directory);
    int result = 1;
    for (int i = 0; result == 1 && i < OPEN_TRIES; i++) {
        if (i > 0) {
            emu_sleep_until(emu_now_ns() + 1000000);
        }
        result = try_open(state, path, problem, size);
    }
    if (result == 1) {
        return fail(problem, size,
                    "another process is blocking the creation of the emulator's state: file=%s",
                    path);
    }
    if (result == 0) {
        look_at_gpus(state);
    }
    return result;
}

/* Clears what a slot's previous process left on the GPUs. */
static void clear_slot(emu_state *state, int slot) {
    for (uint32_t i = 0; i < state->settings.devices; i++) {
        emu_gpu_drop_process(&state->gpus[i], slot);
    }
    emu_mig_clear_slot(state, slot);
}

static bool take_space(const emu_state *state, int slot) {
    for (uint32_t i = 0; i < state->settings.devices; i++) {
        const emu_shared_gpu *gpu = state->gpus[i].shared;
        off_t schedules = (off_t)((const char *)gpu->schedules[slot] - (const char *)state->header);
        off_t ledgers = (off_t)((const char *)gpu->ledgers[slot] - (const char *)state->header);
        if ((fallocate(state->fd, 0, schedules, sizeof gpu->schedules[0]) != 0 &&
             errno != EOPNOTSUPP) ||
            (fallocate(state->fd, 0, ledgers, sizeof gpu->ledgers[0]) != 0 &&
             errno != EOPNOTSUPP)) {
            return false;
        }
    }
    return true;
}

int emu_state_join(emu_state *state, char *problem, size_t size) {
    for (int slot = 0; slot < EMU_MAX_PROCESSES; slot++) {
        if (file_lock(state->fd, F_OFD_SETLK, F_WRLCK, slot, 1, NULL) != 0) {
            if (errno != EAGAIN && errno != EACCES) {
                return fail(problem, size, "cannot lock the emulator's state: error=%s",
                            strerror(errno));
            }
            continue;
        }
        if (emu_process_alive(
                state, slot)) { /* alive, but it has closed the file, as daemonizing programs do */
            file_lock(state->fd, F_OFD_SETLK, F_UNLCK, slot, 1, NULL);
            continue;
        }
        if (!take_space(state, slot)) {
            return fail(problem, size, "no space for the emulator's state: directory=%s error=%s",
                        state->directory, strerror(errno));
        }
        state->slot = slot;
        clear_slot(state, slot);
        emu_process_enter(state, slot);
        return 0;
    }
    return fail(problem, size, "too many processes use the emulated GPUs: limit=%d",
                EMU_MAX_PROCESSES);
}

void emu_state_close(emu_state *state) {
    emu_mig_close(state);
    if (state->header != NULL) {
        munmap(state->header, state->size);
        close(state->fd);
        state->header = NULL;
    }
}
