/* A process whose one device is a MIG compute instance. */
#ifndef EMU_DRIVER_MIG_H
#define EMU_DRIVER_MIG_H

#include "driver.h"

/* Whether MIG mode of a GPU is on: nothing runs on it but in instances. */
bool emu_mig_is_on(uint32_t device);

/* The process's device is to be the compute instance of that UUID. False: there is none. */
bool emu_mig_choose_uuid(const char *text, size_t length);

/* The same with the first compute instance of a GPU. */
bool emu_mig_choose_first(uint32_t device);

/* Whether the process's device is one. */
static inline bool emu_mig_chosen(void) {
    return emu_driver.mig_gpu.shared != NULL;
}

/* After the process has joined. False: that cannot be done. */
bool emu_mig_enter(void);

/* Whether the chosen instance is there still. */
bool emu_mig_is_there(void);

/* The UUID and the name of the process's device, if it is one. */
bool emu_mig_own_uuid(uint8_t uuid[16]);
void emu_mig_own_name(char *text, size_t size);

#endif
