/* The express lane, between express.c and those who obey or announce; docs/hook.md. */
#ifndef VGPU_EXPRESS_H
#define VGPU_EXPRESS_H

#include "hook.h"

/* Joins it, if the seat has given us a part in it; without one, the seat's words alone count. After attaching. */
void vgpu__express_join(struct vgpu_tenant *tenant);
void vgpu__express_leave(struct vgpu_tenant *tenant);
void vgpu__express_forget(struct vgpu_tenant *tenant);

uint64_t vgpu__express_held(const struct vgpu_tenant *tenant, uint64_t *heed);
void vgpu__express_wait(struct vgpu_tenant *tenant);

void vgpu__express_announce(struct vgpu_tenant *tenant);
void vgpu__express_beat(struct vgpu_tenant *tenant, uint64_t now);
void vgpu__express_idle(struct vgpu_tenant *tenant);
uint64_t vgpu__express_tend(struct vgpu_tenant *tenant, uint64_t now);

#endif
