/* The kernels that the emulator knows: what they compute, and how long they take on the GPU. */
#ifndef EMU_KERNELS_H
#define EMU_KERNELS_H

#include "base/settings.h"

#include <stdbool.h>

enum { EMU_KERNEL_ARGUMENTS = 64 };

typedef struct emu_kernel {
    const char *name;
    uint32_t argument_bytes;
    /* Computes; false: the kernel touches memory that the program does not own. NULL: nothing to compute. */
    bool (*compute)(const uint8_t *arguments);
    uint64_t (*duration_ns)(const uint8_t *arguments);
} emu_kernel;

/* The kernel with that name, or NULL. */
const emu_kernel *emu_kernel_find(const char *name);

/* The duration of an unknown kernel: from the settings' table, otherwise by waves of blocks over the SMs. */
uint64_t emu_kernel_modelled_ns(uint32_t sms, const emu_kernel_times *times, uint64_t blocks,
                                uint64_t threads);

/* The kernel's entry in the settings' table, or NULL. */
const emu_kernel_time *emu_kernel_time_find(const emu_kernel_times *times, const char *name);

#endif
