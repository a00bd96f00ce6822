/*
 * The state that all processes share, in one mapped file of the emulator's directory.
 *
 * Nothing in it is guarded by a lock that a dead or stopped process could keep. Each GPU has two
 * values, its schedule and its ledger of memory, that change copy on write: whoever changes one
 * copies it, works out the next value, writes that into one of two buffers of its own, and swings
 * the value's word (sequence and buffer) over to it by compare-and-swap. A process that dies or
 * stops at any instruction leaves the last complete value.
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
    uint64_t process_count; /* entries in use, from the first on */
    uint64_t
        suspended[EMU_PROCESS_WORDS]; /* a bit for each process whose memory is off the GPU: what it
                                         holds is not in used_bytes */
    uint64_t used_by[EMU_MAX_PROCESSES];
} emu_ledger;

_Static_assert(EMU_MAX_PROCESSES == 64 * EMU_PROCESS_WORDS, "a bit for each process");

typedef struct {
    uint64_t pid;
    uint64_t
        start_time; /* ticks since boot, as /proc says; tells processes with the same pid apart */
    uint64_t pid_namespace; /* inode */
    uint64_t told_pid;      /* what NVML tells: the process's, or that of the thread that began */
    char name[40];
} emu_process;

/* What tells one process from the next in its slot. */
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
    emu_shared_gpu *memory;       /* whose ledger is its own: `shared`, but for a MIG instance */
    pthread_mutex_t publish_lock; /* this process's two buffers */
} emu_gpu;

/* The file of MIG instances as this process has it open; see mig.h. */
typedef struct {
    struct emu_mig_file *file; /* NULL: there is none, or it was not looked for yet */
    int fd;
    void *areas[EMU_MAX_DEVICES][EMU_MIG_SLICES]; /* mapped when first used */
    pthread_mutex_t lock;
} emu_mig;

struct emu_state {
    emu_shared_header *header;
    size_t size;
    int fd;
    int slot; /* of this process, or EMU_NO_PROCESS: it only looks */
    uint64_t pid_namespace;
    emu_settings settings;
    emu_kernel_times times;
    emu_gpu gpus[EMU_MAX_DEVICES];
    char directory[512];
    emu_mig mig;
};

/* Where the state of the emulated GPUs is. -1 if the path does not fit. */
int emu_state_directory(char *path, size_t size);

/* Opens the state, making it if it is not there. 0, or -1 with the reason in problem. */
int emu_state_open(emu_state *state, char *problem, size_t size);

/* Makes this process a participant: it may have contexts and memory. 0, or -1 with the reason in
 * problem. */
int emu_state_join(emu_state *state, char *problem, size_t size);

void emu_state_close(emu_state *state);

/* Whether the process that has a slot is there, judged by its pid and start time alone. */
bool emu_process_alive(const emu_state *state, int slot);

/* Whether that process is stopped, by a signal or a debugger. */
bool emu_process_stopped(const emu_state *state, int slot);

/* Whether a process holds the slot's lock. */
bool emu_slot_locked(int fd, int slot);

/* Writes this process into its slot. */
void emu_process_enter(emu_state *state, int slot);

/* The number by which NVML tells a process to this one; 0: it tells nothing of it. */
uint64_t emu_process_told(const emu_state *state, int slot);

uint64_t emu_pid_namespace(void);

/* Whether the process that had this slot is gone. */
bool emu_process_dead(const emu_state *state, int slot);

/* The process in a slot. Its slot is cleared before it comes; what is read before that is not its own. */
emu_identity emu_process_identity(const emu_state *state, int slot);
emu_process emu_process_at(const emu_state *state, int slot);

/* 16 bytes that name the GPU; stable for a directory. */
void emu_gpu_uuid(const emu_state *state, uint32_t index, uint8_t uuid[16]);

/* Copies the schedule as it was last published; the result names it to emu_schedule_publish. */
uint64_t emu_schedule_read(emu_gpu *gpu, emu_schedule *schedule);

/* Makes this the schedule, unless somebody else has changed it since `seen` was read. */
bool emu_schedule_publish(emu_gpu *gpu, uint64_t seen, const emu_schedule *schedule);

uint64_t emu_ledger_read(emu_gpu *gpu, emu_ledger *ledger);
bool emu_ledger_publish(emu_gpu *gpu, uint64_t seen, const emu_ledger *ledger);

/* The demand of a context: written by its owner only. */
uint64_t emu_demand(emu_gpu *gpu, uint32_t context);
void emu_set_demand(emu_gpu *gpu, uint32_t context, uint64_t service_ns);

/* Nanoseconds of CLOCK_MONOTONIC. */
uint64_t emu_now_ns(void);

/* Sleeps until that instant, or a little less long. Wakes within a few microseconds of it. */
void emu_sleep_until(uint64_t time_ns);

#endif
