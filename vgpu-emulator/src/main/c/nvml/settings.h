/*
 * What NVML reports besides the state: readings and faults. The file "nvml" in the emulator's directory has one
 * name=value per line and # comments. It is read again whenever it changes, so that a running program's GPU can be lost
 * and come back. VGPU_EMULATOR_NVML=name=value,… takes precedence over the file. A name that ends in .INDEX applies to
 * that GPU only; see README.md.
 */
#ifndef EMU_NVML_SETTINGS_H
#define EMU_NVML_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Starts to use a directory. */
void emu_nvml_settings_open(const char *directory);

/* The value of a setting for a GPU (-1: for all); false if it is not set. */
bool emu_nvml_text(const char *name, int index, char *value, size_t size);

/* The same as a number, which may be negative or 0x…; `otherwise` if it is not set. */
uint64_t emu_nvml_number(const char *name, int index, uint64_t otherwise);

#endif
