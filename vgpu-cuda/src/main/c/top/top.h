/* The ways in and what watches over all: attaching, the monitor, cuInit, fork, dlopen. */
#ifndef VGPU_TOP_H
#define VGPU_TOP_H

#include "../lane/lane.h"

/* ---- attach.c ---- */
/* Attaches once in this process; the mode afterwards. */
enum vgpu_mode vgpu__attach(void);
VGPU_EXPORT int vgpu_attach(const char *const *env, char *reason, size_t reason_size);
int vgpu__join(struct vgpu_tenant *tenant, const char *const *env); /* env NULL: by this process's settings */

/* ---- tenants.c ---- */
/*
 * What a program that serves several tenants calls. vgpu_tenant_add puts this process under one more lease and returns
 * its handle, above 0; or below 0 and the reason (-2: it is under that one already). vgpu_tenant_bind puts the calling
 * thread into the scope of a handle, 0: of none; returns what it was bound to, or -1 for a handle that is none (any
 * more), and then changes nothing. vgpu_tenant_drop leaves a lease.
 */
VGPU_EXPORT int64_t vgpu_tenant_add(const char *const *env, char *reason, size_t reason_size);
VGPU_EXPORT int64_t vgpu_tenant_bind(int64_t handle);
VGPU_EXPORT int vgpu_tenant_drop(int64_t handle);
void vgpu__tenants_end(void); /* nothing is started or allocated under any of them from now on */

/* ---- fork.c ---- */
void vgpu__fork_child(void);

/* ---- devices.c ---- */
void vgpu__devices_show(void);    /* before the driver's cuInit: it is to show the leases' GPUs alone */
int vgpu__devices_are_ours(void); /* after it */

/* ---- monitor.c: the one thread of the hook ---- */
int vgpu__monitor_start(void);
void vgpu__monitor_forget(void);
void vgpu__monitor_at_exit(void); /* right after the driver was initialised */

/* ---- trampolines.S, dlopen.c ---- */
extern struct vgpu_pass vgpu_pass_begin[] VGPU_INTERNAL, vgpu_pass_end[] VGPU_INTERNAL;
void vgpu__publish_passed(void);
int vgpu__dlopen_name(void); /* in a program that did not preload this library */
extern void *vgpu__dlmopen_next VGPU_INTERNAL; /* trampolines.S jumps there */

#endif
