/* The participating processes, and whether they are alive. */
#include "state_layout.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

typedef struct {
    char state;
    uint64_t threads;
    uint64_t start_time;
} process_status;

/* Reads /proc/PID/stat; false if there is no such process. */
static bool read_status(uint64_t pid, process_status *status) {
    char path[64];
    char text[1024];
    snprintf(path, sizeof path, "/proc/%llu/stat", (unsigned long long)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    if (length <= 0) {
        return false;
    }
    text[length] = '\0';
    char *after = strrchr(text, ')'); /* the process name may contain any character */
    if (after == NULL) {
        return false;
    }
    char *position = NULL;
    int field = 3;
    for (char *word = strtok_r(after + 1, " ", &position); word != NULL;
         word = strtok_r(NULL, " ", &position)) {
        if (field == 3) {
            status->state = word[0];
        } else if (field == 20) {
            status->threads = strtoull(word, NULL, 10);
        } else if (field == 22) {
            status->start_time = strtoull(word, NULL, 10);
            return true;
        }
        field++;
    }
    return false;
}

static uint64_t namespace_of(const char *process) {
    struct stat status;
    char path[64];
    snprintf(path, sizeof path, "/proc/%.20s/ns/pid", process);
    return syscall(SYS_newfstatat, AT_FDCWD, path, &status, 0) == 0 ? (uint64_t)status.st_ino : 0;
}

uint64_t emu_pid_namespace(void) {
    return namespace_of("self");
}

/* A process's pid in its own namespace: the last number of NSpid in its status. 0: it has none. */
static uint64_t inner_number(const char *process) {
    char path[64];
    char line[256];
    uint64_t number = 0;
    snprintf(path, sizeof path, "/proc/%.20s/status", process);
    FILE *file = fopen(path, "re");
    while (file != NULL && number == 0 && fgets(line, sizeof line, file) != NULL) {
        const char *last = strrchr(line, '\t');
        number = strncmp(line, "NSpid:", 6) == 0 && last != NULL ? strtoull(last, NULL, 10) : 0;
    }
    if (file != NULL) {
        fclose(file);
    }
    return number;
}

/*
 * The resource manager reports processes by their pids in the caller's namespace, and omits processes that have none
 * there (os_find_ns_pid in the kernel module).
 */
uint64_t emu_process_told(const emu_state *state, int slot) {
    emu_process process = emu_process_at(state, slot);
    if (process.pid_namespace == state->pid_namespace) {
        return process.told_pid;
    }
    uint64_t told = 0;
    DIR *all = opendir("/proc");
    const struct dirent *entry;
    while (all != NULL && told == 0 && (entry = readdir(all)) != NULL) {
        uint64_t number = strtoull(entry->d_name, NULL, 10);
        if (number != 0 && namespace_of(entry->d_name) == process.pid_namespace &&
            inner_number(entry->d_name) == process.pid) {
            told = number;
        }
    }
    if (all != NULL) {
        closedir(all);
    }
    return told;
}

emu_identity emu_process_identity(const emu_state *state, int slot) {
    emu_process *shared = &state->header->processes[slot];
    emu_identity identity;
    identity.pid =
        __atomic_load_n(&shared->pid,
                        __ATOMIC_ACQUIRE); /* pairs with the release in emu_process_enter */
    identity.start_time = __atomic_load_n(&shared->start_time, __ATOMIC_RELAXED);
    return identity;
}

emu_process emu_process_at(const emu_state *state, int slot) {
    emu_process *shared = &state->header->processes[slot];
    emu_identity identity = emu_process_identity(state, slot);
    emu_process copy = {.pid = identity.pid, .start_time = identity.start_time};
    copy.pid_namespace = __atomic_load_n(&shared->pid_namespace, __ATOMIC_RELAXED);
    copy.told_pid = __atomic_load_n(&shared->told_pid, __ATOMIC_RELAXED);
    for (size_t i = 0; i + 1 < sizeof copy.name; i++) {
        copy.name[i] = __atomic_load_n(&shared->name[i], __ATOMIC_RELAXED);
    }
    return copy;
}

bool emu_process_alive(const emu_state *state, int slot) {
    emu_process process = emu_process_at(state, slot);
    if (process.pid == 0 || process.pid_namespace != state->pid_namespace) {
        return false; /* not visible from this namespace: only its lock counts */
    }
    process_status status = {0};
    if (!read_status(process.pid, &status) || status.start_time != process.start_time) {
        return false;
    }
    /* A zombie with threads is a program whose first thread has ended. */
    return (status.state != 'Z' && status.state != 'X') || status.threads > 1;
}

bool emu_process_stopped(const emu_state *state, int slot) {
    process_status status = {0};
    return read_status(emu_process_at(state, slot).pid, &status) &&
           (status.state == 'T' || status.state == 't');
}

bool emu_process_dead(const emu_state *state, int slot) {
    return slot != state->slot && !emu_slot_locked(state->fd, slot) &&
           !emu_process_alive(state, slot);
}

static void read_name(char *name, size_t size) {
    int fd = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? 0 : read(fd, name, size - 1);
    if (fd >= 0) {
        close(fd);
    }
    name[length > 0 ? length : 0] = '\0';
    name[strcspn(name, "\n")] = '\0';
}

void emu_process_enter(emu_state *state, int slot) {
    emu_process *shared = &state->header->processes[slot];
    process_status status = {0};
    uint64_t pid = (uint64_t)getpid();
    char name[sizeof shared->name] = {0};
    read_status(pid, &status);
    read_name(name, sizeof name);
    __atomic_store_n(&shared->pid, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&state->header->checkpoints[slot], 0, __ATOMIC_RELAXED);
    __atomic_store_n(&shared->start_time, status.start_time, __ATOMIC_RELAXED);
    __atomic_store_n(&shared->pid_namespace, state->pid_namespace, __ATOMIC_RELAXED);
    __atomic_store_n(&shared->told_pid,
                     state->times.has_thread_pid ? (uint64_t)syscall(SYS_gettid) : pid,
                     __ATOMIC_RELAXED);
    for (size_t i = 0; i < sizeof name; i++) {
        __atomic_store_n(&shared->name[i], name[i], __ATOMIC_RELAXED);
    }
    __atomic_store_n(&shared->pid, pid, __ATOMIC_RELEASE);
}

void emu_sleep_until(uint64_t time_ns) {
    static __thread bool slack_set;
    if (!slack_set) {
        prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL); /* the default adds 50 µs to every sleep */
        slack_set = true;
    }
    struct timespec until = {.tv_sec = (time_t)(time_ns / 1000000000),
                             .tv_nsec = (long)(time_ns % 1000000000)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}
