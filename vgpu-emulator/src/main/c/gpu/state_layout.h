/* The layout of the state file. */
#ifndef EMU_STATE_LAYOUT_H
#define EMU_STATE_LAYOUT_H

#include "state.h"

#define EMU_STATE_MAGIC UINT64_C(0x31304d4555504756) /* "VGPUEM01" */

/* The word of a value that has never changed; its buffer is all zero. */
#define EMU_INITIAL_BUFFER UINT64_C(0xffff)

struct emu_shared_header {
    uint64_t magic;
    uint64_t file_size;
    uint64_t layout;       /* a hash of the structures' layout */
    uint8_t uuid_seed[16]; /* the source of the GPUs' UUIDs */
    emu_settings settings;
    _Alignas(64) emu_process processes[EMU_MAX_PROCESSES];
    _Alignas(64) uint32_t checkpoints[EMU_MAX_PROCESSES]; /* by slot; see suspend.c */
};

typedef struct {
    _Alignas(64) uint64_t service_ns;
} emu_demand_line;

struct emu_shared_gpu {
    _Alignas(64) uint64_t schedule_word; /* sequence << 16 | buffer */
    _Alignas(64) uint64_t ledger_word;
    emu_demand_line demand[EMU_MAX_CONTEXTS];
    _Alignas(64) emu_schedule schedules[EMU_MAX_PROCESSES][2];
    _Alignas(64) emu_ledger ledgers[EMU_MAX_PROCESSES][2];
};

#define EMU_GPUS_OFFSET ((sizeof(emu_shared_header) + 4095) / 4096 * 4096)

#endif
