/* The connection to the seat, between seat.c, attach.c and monitor.c. */
#ifndef VGPU_SEAT_H
#define VGPU_SEAT_H

#include "hook.h"

enum { VGPU_SEAT_NOTHING, VGPU_SEAT_MESSAGE, VGPU_SEAT_GONE };

/* Connects and says HELLO, with our slot if we have one: 0, or an errno. The WELCOME comes later. */
int vgpu__seat_connect(struct vgpu_tenant *tenant);
/* Keeps the slot's secret, by which alone it is ours again after the connection was lost. */
void vgpu__seat_welcomed(struct vgpu_tenant *tenant, const struct shm_message *welcome);
/* One message if a whole one is there. */
int vgpu__seat_receive(struct vgpu_tenant *tenant, struct shm_message *into);
void vgpu__seat_close(struct vgpu_tenant *tenant);
void vgpu__seat_bar(struct vgpu_tenant *tenant);
void vgpu__seat_forget(struct vgpu_tenant *tenant);

#endif
