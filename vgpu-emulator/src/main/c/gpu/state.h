/*
 * The state that all processes share: one mapped file in the emulator's directory.
 *
 * No part of it is protected by a lock that a dead or stopped process could keep. Each GPU has two values, its schedule
 * and its memory ledger, which are updated copy-on-write. A writer copies the value, computes the next one, stores that
 * in one of its own two buffers, and switches the value's word (sequence and buffer) to that buffer by
 * compare-and-swap. A process that dies or stops at any instruction leaves the last complete value.
 */
#ifndef EMU_STATE_H
#define EMU_STATE_H

#include "base/settings.h"
#include "mig_geometry.h"
#include "schedule.h"

#include <pthread.h>
#include <stddef.h>

enum { EMU_MAX_PROCESSES = 256, EMU_NO_PROCESS = -1 };

/* The memory of one GPU, in bytes. */
typedef struct {
    uint64_t used_bytes;
    uint64_t process_count; /* the entries from the first to the last used one */
    uint64_t suspended
        [EMU_PROCESS_WORDS]; /* a bit for each process whose memory is off the GPU and not in used_bytes */
    uint64_t used_by[EMU_MAX_PROCESSES];
} emu_ledger;

_Static_assert(EMU_MAX_PROCESSES == 64 * EMU_PROCESS_WORDS, "a bit for each process");

typedef struct {
    uint64_t pid;
    /* ticks since boot, as in /proc; distinguishes processes with the same pid */
    uint64_t start_time;
    uint64_t pid_namespace; /* inode */
    /* the pid that NVML reports: the process's, or that of the thread that called cuInit */
    uint64_t told_pid;
    char name[40];
} emu_process;

/* Distinguishes successive processes in a slot. */
typedef struct {
    uint64_t pid, start_time;
} emu_identity;

typedef struct emu_shared_header emu_shared_header;
typedef struct emu_shared_gpu emu_shared_gpu;
typedef struct emu_state emu_state;

/* One GPU as this process sees it. */
typedef struct {
    emu_state *state;
    uint32_t index;
    emu_shared_gpu *shared;
    emu_shared_gpu *memory; /* owns the ledger: the same as `shared`, except for a MIG instance */
    pthread_mutex_t publish_lock; /* protects this process's two buffers */
} emu_gpu;

/* The MIG instance file as this process has it open; see mig.h. */
typedef struct {
    struct emu_mig_file *file; /* NULL: does not exist, or not opened yet */
    int fd;
    void *areas[EMU_MAX_DEVICES][EMU_MIG_SLICES]; /* mapped on first use */
    pthread_mutex_t lock;
} emu_mig;

struct emu_state {
    emu_shared_header *header;
    size_t size;
    int fd;
    int slot; /* this process's; EMU_NO_PROCESS: it only looks */
    uint64_t pid_namespace;
    emu_settings settings;
    emu_kernel_times times;
    emu_gpu gpus[EMU_MAX_DEVICES];
    char directory[512];
    emu_mig mig;
};

/* The directory of the emulated GPUs' state. -1 if the path does not fit. */
int emu_state_directory(char *path, size_t size);

/* Opens the state, creating it if necessary. 0, or -1 with the reason in problem. */
int emu_state_open(emu_state *state, char *problem, size_t size);

/* Makes this process a participant, which may have contexts and memory. 0, or -1 with the reason in problem. */
int emu_state_join(emu_state *state, char *problem, size_t size);

void emu_state_close(emu_state *state);

/* Whether a slot's process is alive, judged only by its pid and start time. */
bool emu_process_alive(const emu_state *state, int slot);

/* Whether a slot's process is stopped by a signal or a debugger. */
bool emu_process_stopped(const emu_state *state, int slot);

/* Whether a process holds the slot's lock. */
bool emu_slot_locked(int fd, int slot);

/* Writes this process into its slot. */
void emu_process_enter(emu_state *state, int slot);

/* The pid by which NVML reports a process to this one; 0: not reported. */
uint64_t emu_process_told(const emu_state *state, int slot);

uint64_t emu_pid_namespace(void);

/* Whether a slot's process is dead: it holds no lock and is not alive. */
bool emu_process_dead(const emu_state *state, int slot);

/* The process in a slot. A slot is cleared before its new process enters, so fields read before that belong to the
 * previous process. */
emu_identity emu_process_identity(const emu_state *state, int slot);
emu_process emu_process_at(const emu_state *state, int slot);

/* The GPU's UUID (16 bytes); stable for a directory. */
void emu_gpu_uuid(const emu_state *state, uint32_t index, uint8_t uuid[16]);

/* Copies the last published schedule. The result is the `seen` argument of emu_schedule_publish. */
uint64_t emu_schedule_read(emu_gpu *gpu, emu_schedule *schedule);

/* Publishes the schedule, unless another process has changed it since `seen` was read. */
bool emu_schedule_publish(emu_gpu *gpu, uint64_t seen, const emu_schedule *schedule);

uint64_t emu_ledger_read(emu_gpu *gpu, emu_ledger *ledger);
bool emu_ledger_publish(emu_gpu *gpu, uint64_t seen, const emu_ledger *ledger);

/* A context's demand. Only the context's owner writes it. */
uint64_t emu_demand(emu_gpu *gpu, uint32_t context);
void emu_set_demand(emu_gpu *gpu, uint32_t context, uint64_t service_ns);

/* Nanoseconds of CLOCK_MONOTONIC. */
uint64_t emu_now_ns(void);

/* Sleeps until an instant, or slightly less. Wakes within a few microseconds of it. */
void emu_sleep_until(uint64_t time_ns);

#endif
