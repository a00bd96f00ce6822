/* Contexts, between context.c, primary.c, suspended.c and context_charge.c. */
#ifndef VGPU_CONTEXT_H
#define VGPU_CONTEXT_H

#include "lane.h"

enum { VGPU_DEVICES = 64 };

struct vgpu_primary {
  struct vgpu_lock lock;
  CUcontext handle;
  uint32_t retained;
  struct vgpu_tenant *charged; /* who pays for it; NULL: nobody yet */
  uint64_t bytes;              /* and what */
};

extern struct vgpu_context vgpu__contexts[VGPU_CONTEXTS] VGPU_INTERNAL;
extern struct vgpu_primary vgpu__primaries[VGPU_DEVICES] VGPU_INTERNAL;
/* The driver may give a handle out anew as soon as it is destroyed: what it says and our record of it are one step. */
extern struct vgpu_lock vgpu__made_lock VGPU_INTERNAL;

/* context.c */
/* Perhaps the thread's current context is another one now: then its views of default streams are of the old one. */
abi_result vgpu__switched(abi_result result);
/* A context is about to go: its batches end, its events with it. */
void vgpu__context_going(CUcontext handle);
/* It is gone: so is what it had allocated, whoever did. Its number may come again. */
void vgpu__context_gone(CUcontext handle, struct vgpu_sums *sums);

/* suspended.c: charges a context that is to be made, when the lease is not suspended. 0; -1: no room. */
int vgpu__context_charge_wait(struct vgpu_tenant *tenant);
/* With the lock, unless somebody has charged it already: then *fresh is 0. */
int vgpu__primary_charge_wait(struct vgpu_primary *primary, struct vgpu_tenant *tenant, int *fresh);

#endif
