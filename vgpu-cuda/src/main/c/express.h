/* The express lane, between express.c and those who obey or announce; docs/hook.md. */
#ifndef VGPU_EXPRESS_H
#define VGPU_EXPRESS_H

#include "hook.h"

/* Joins it, if the seat has given us a part in it; without one, the seat's words alone count. After attaching. */
void vgpu__express_join(const char *run_dir);
void vgpu__express_leave(void);
void vgpu__express_forget(void);

uint64_t vgpu__express_held(uint64_t *heed);
void vgpu__express_wait(void);

void vgpu__express_announce(void);
void vgpu__express_beat(uint64_t now);
void vgpu__express_idle(void);
uint64_t vgpu__express_tend(uint64_t now);

#endif
