/* visible.c: counting and numbering devices. */
#ifndef VGPU_VISIBLE_H
#define VGPU_VISIBLE_H

#include "interpose.h"

unsigned vgpu__visible_count(void);
nvmlReturn_t vgpu__visible_at(unsigned index, nvmlDevice_t *device);
int vgpu__visible_index(nvmlDevice_t device);
/* Number of visible MIG devices of a GPU; -1: all of them, because the whole GPU is visible. */
int vgpu__visible_mig_count(nvmlDevice_t gpu);
nvmlReturn_t vgpu__visible_mig(nvmlDevice_t gpu, unsigned index, nvmlDevice_t *mig);

#endif
