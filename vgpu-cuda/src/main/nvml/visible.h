/* visible.c, for the functions that count and number devices. */
#ifndef VGPU_VISIBLE_H
#define VGPU_VISIBLE_H

#include "interpose.h"

unsigned vgpu__visible_count(void);
nvmlReturn_t vgpu__visible_at(unsigned index, nvmlDevice_t *device);
int vgpu__visible_index(nvmlDevice_t device);
/* How many MIG devices of a GPU are visible; -1: all that it has, for the GPU itself is. */
int vgpu__visible_mig_count(nvmlDevice_t gpu);
nvmlReturn_t vgpu__visible_mig(nvmlDevice_t gpu, unsigned index, nvmlDevice_t *mig);

#endif
