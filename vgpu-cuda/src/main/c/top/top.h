/* The ways in and the supervision: attaching, the monitor, cuInit, fork, dlopen. */
#ifndef VGPU_TOP_H
#define VGPU_TOP_H

#include "../lane/lane.h"

/* ---- attach.c ---- */
/* Attaches once in this process; returns the mode afterwards. */
enum vgpu_mode vgpu__attach(void);
VGPU_EXPORT int vgpu_attach(const char *const *env, char *reason, size_t reason_size);
int vgpu__join(struct vgpu_tenant *tenant, const char *const *env); /* env NULL: use this process's settings */

/* ---- tenants.c ---- */
/*
 * For programs that serve several tenants. vgpu_tenant_add puts this process under one more lease and returns its
 * handle, above 0; or below 0 with the reason (-2: it is under that lease already). vgpu_tenant_bind puts the calling
 * thread into the scope of a handle (0: of none) and returns the previous one; -1 for an invalid handle, and then
 * changes nothing. vgpu_tenant_drop leaves a lease.
 */
VGPU_EXPORT int64_t vgpu_tenant_add(const char *const *env, char *reason, size_t reason_size);
VGPU_EXPORT int64_t vgpu_tenant_bind(int64_t handle);
VGPU_EXPORT int vgpu_tenant_drop(int64_t handle);
/* By the monitor, after the tenant's pages and link are gone. 0: try again, since other leases are joined or left now. */
int vgpu__tenant_lost(struct vgpu_tenant *tenant);
void vgpu__tenants_end(void); /* from now on nothing is started or allocated under any lease */

/* ---- fork.c ---- */
void vgpu__fork_child(void);
void vgpu__fork_watch(void); /* before the first lock is taken: a fork may happen while it is held */

/* ---- devices.c ---- */
void vgpu__devices_show(void);    /* before the driver's cuInit: shows it the leases' GPUs only */
int vgpu__devices_are_ours(void); /* after it: whether the driver shows only those */

/* ---- monitor.c: the hook's threads ---- */
int vgpu__monitor_start(void);
void vgpu__monitor_forget(void);
void vgpu__monitor_at_exit(void); /* called right after the driver was initialised */

/* ---- trampolines-*.S, dlopen.c ---- */
extern struct vgpu_pass vgpu_pass_begin[] VGPU_INTERNAL, vgpu_pass_end[] VGPU_INTERNAL;
void vgpu__publish_passed(void);
int vgpu__dlopen_name(void);                   /* needed if this library was not preloaded */
extern void *vgpu__dlmopen_next VGPU_INTERNAL; /* trampolines-*.S jumps there */

#endif
