/* A process whose only device is a MIG compute instance. */
#ifndef EMU_DRIVER_MIG_H
#define EMU_DRIVER_MIG_H

#include "driver.h"

/* Whether a GPU is in MIG mode, in which only instances can run work. */
bool emu_mig_is_on(uint32_t device);

/* Makes the compute instance with that UUID the process's device. False: there is none. */
bool emu_mig_choose_uuid(const char *text, size_t length);

/* Makes a GPU's first compute instance the process's device. False: there is none. */
bool emu_mig_choose_first(uint32_t device);

/* Whether the process's device is a MIG instance. */
static inline bool emu_mig_chosen(void) {
    return emu_driver.mig_gpu.shared != NULL;
}

/* The process's device of that index: its MIG instance, or a whole GPU. */
static inline emu_gpu *emu_gpu_at(uint32_t index) {
    return emu_mig_chosen() && emu_driver.mig_gpu.index == index ? &emu_driver.mig_gpu
                                                                 : &emu_driver.state.gpus[index];
}

/* Call after the process has joined. False: the instance cannot be used. */
bool emu_mig_enter(void);

/* Whether the chosen instance still exists. */
bool emu_mig_is_there(void);

/* The UUID and the name of the process's device, if it is a MIG instance. */
bool emu_mig_own_uuid(uint8_t uuid[16]);
void emu_mig_own_name(char *text, size_t size);

#endif
