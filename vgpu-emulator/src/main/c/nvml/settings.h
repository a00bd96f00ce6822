/*
 * What NVML says beside the state: readings, and what goes wrong. From the file "nvml" in the emulator's directory,
 * one name=value a line, # comments; it is read anew whenever it changes, so that a running program's GPU can be lost
 * and come back. And from VGPU_EMULATOR_NVML=name=value,…, which goes before the file. A name with .INDEX at its end
 * is of that GPU alone; see README.md.
 */
#ifndef EMU_NVML_SETTINGS_H
#define EMU_NVML_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Begins to look into a directory. */
void emu_nvml_settings_open(const char *directory);

/* The value of a setting, of a GPU (or of all: -1); false if it is not set. */
bool emu_nvml_text(const char *name, int index, char *value, size_t size);

/* The same as a number, which may be negative or 0x…; `otherwise` if it is not set. */
uint64_t emu_nvml_number(const char *name, int index, uint64_t otherwise);

#endif
