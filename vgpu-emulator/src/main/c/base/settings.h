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

/* Whether the GPUs can be partitioned, and whether MIG mode is on until a process changes it. */
enum { EMU_MIG_NONE, EMU_MIG_OFF, EMU_MIG_ON };

/* The settings that all processes sharing the GPUs must agree on; stored in the state file. */
typedef struct {
    uint32_t devices;
    uint32_t sms;
    uint64_t memory_bytes;
    uint64_t context_bytes;
    uint64_t slice_ns;
    uint64_t switch_ns;
    uint32_t capability_major;
    uint32_t capability_minor;
    uint32_t mig;        /* EMU_MIG_…: the initial mode */
    uint32_t mig_slices; /* compute slices: 7, or 4 as on A30 */
    char model[EMU_MODEL_SIZE];
} emu_settings;

/* The duration of a kernel that the emulator does not know. */
typedef struct {
    char name[EMU_KERNEL_NAME_SIZE];
    uint64_t duration_ns;
} emu_kernel_time;

/* The settings that each process may choose for itself. */
typedef struct {
    uint64_t module_bytes;   /* the size of a module on its device */
    uint64_t launch_cost_ns; /* the …cost_ns fields: what each call costs the calling thread */
    uint64_t record_cost_ns;
    uint64_t query_cost_ns;
    uint64_t elapsed_cost_ns;
    uint64_t allocate_cost_ns;
    uint64_t pin_cost_ns;     /* per GiB */
    uint64_t destroy_cost_ns; /* of a context, after its memory is gone */
    uint64_t reap_delay_ns;   /* how long a killed process's memory stays taken */
    uint64_t load_ns;         /* how long it takes to load a function */
    uint64_t grain_bytes; /* the GPU memory granule, which several allocations may share; 0: none */
    uint64_t copy_engines;
    uint64_t queue_entries; /* launches that a stream queues before a launch blocks */
    uint32_t is_lazy;       /* functions are loaded at their first launch */
    uint32_t is_growing;    /* contexts take memory for stacks and printf when a launch needs it */
    uint32_t has_locks;     /* these calls are serialized */
    uint32_t has_legacy_events; /* an event in the legacy stream delays all blocking streams */
    uint32_t has_thread_pid;    /* NVML reports the pid of the thread that called cuInit */
    uint32_t has_single_green;  /* a green context can be current to one thread at a time */
    uint32_t has_teardown;      /* driver calls fail once the process is exiting */
    uint32_t is_integrated;     /* the GPU has no memory of its own, but the host's, as GB10 */
    uint32_t cuda_version;      /* reported by cuDriverGetVersion: 12040 for 12.4 */
    /* the duration of one wave of blocks over all SMs, for a kernel in no table */
    uint64_t wave_ns;
    uint64_t kernel_count;
    emu_kernel_time kernels[EMU_MAX_KERNEL_TIMES];
} emu_kernel_times;

/* Parses the settings given as text (NULL: the defaults). 0, or -1 with the reason in problem. */
int emu_settings_parse(const char *text, emu_settings *settings, emu_kernel_times *times,
                       char *problem, size_t size);

/* The CUDA version that this process sees; available before cuInit. */
int emu_settings_cuda_version(void);

#endif
