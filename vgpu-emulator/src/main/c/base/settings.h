/*
 * The settings of the emulated GPUs: VGPU_EMULATOR=name=value,name=value… or VGPU_EMULATOR=@FILE
 * with one name=value a line and # comments.
 */
#ifndef EMU_SETTINGS_H
#define EMU_SETTINGS_H

#include <stddef.h>
#include <stdint.h>

enum {
    EMU_MAX_DEVICES = 16,
    EMU_MODEL_SIZE = 64,
    EMU_MAX_KERNEL_TIMES = 64,
    EMU_KERNEL_NAME_SIZE = 120
};

/* Whether the GPUs can be cut into instances, and whether MIG mode is on when nobody has set it. */
enum { EMU_MIG_NONE, EMU_MIG_OFF, EMU_MIG_ON };

/* What all processes that share the GPUs must agree on; lies in the state file. */
typedef struct {
    uint32_t devices;
    uint32_t sms;
    uint64_t memory_bytes;
    uint64_t context_bytes;
    uint64_t slice_ns;
    uint32_t capability_major;
    uint32_t capability_minor;
    uint32_t mig;        /* EMU_MIG_: what they are at the beginning */
    uint32_t mig_slices; /* compute slices: 7, or 4 as A30 has */
    char model[EMU_MODEL_SIZE];
} emu_settings;

/* How long a kernel that the emulator does not know runs. */
typedef struct {
    char name[EMU_KERNEL_NAME_SIZE];
    uint64_t duration_ns;
} emu_kernel_time;

/* What each process may have of its own. */
typedef struct {
    uint64_t module_bytes; /* what a module takes on its device */
    uint64_t launch_cost_ns;   /* what calls cost the thread that makes them */
    uint64_t record_cost_ns;
    uint64_t query_cost_ns;
    uint64_t elapsed_cost_ns;
    uint64_t allocate_cost_ns;
    uint64_t pin_cost_ns;       /* for each GiB */
    uint64_t load_ns;           /* what loading a function takes */
    uint64_t grain_bytes;       /* the pieces of the GPU's memory that allocations share; 0: none */
    uint64_t copy_engines;
    uint64_t queue_entries;     /* launches that a stream takes before one waits */
    uint32_t is_lazy;           /* functions are loaded when they are first launched */
    uint32_t is_growing;        /* contexts take memory for stacks, printf and malloc when a launch needs it */
    uint32_t has_locks;         /* these calls go one at a time */
    uint32_t has_legacy_events; /* an event in the legacy stream holds up all blocking streams */
    uint32_t has_thread_pid;    /* NVML tells the pid of the thread that called cuInit */
    uint32_t has_single_green;  /* a green context is current to one thread at a time */
    uint32_t has_teardown;      /* nothing works any more once the process exits */
    uint32_t cuda_version; /* what cuDriverGetVersion says: 12040 for 12.4 */
    uint64_t wave_ns; /* one wave of blocks over all SMs of a kernel that is in no table */
    uint64_t kernel_count;
    emu_kernel_time kernels[EMU_MAX_KERNEL_TIMES];
} emu_kernel_times;

/*
 * Reads the settings given as text (NULL: the defaults). 0, or -1 with the reason in problem.
 */
int emu_settings_parse(const char *text, emu_settings *settings, emu_kernel_times *times,
                       char *problem, size_t size);

/* The version of CUDA that this process is told of; also before cuInit. */
int emu_settings_cuda_version(void);

#endif
