/* Preemption inside a kernel, between level2.c and the others; docs/level2.md. */
#ifndef VGPU_LEVEL2_H
#define VGPU_LEVEL2_H

#include "hook.h"

/* After attaching and before the driver's cuInit: follows its channels, if the lease may be stopped. */
void vgpu__level2_join(struct vgpu_tenant *tenant);
void vgpu__level2_forget(void); /* in the child of a fork */

/* Work begins. */
extern uint32_t vgpu__level2_asleep VGPU_INTERNAL;
void vgpu__level2_wake_slow(void);
static inline void vgpu__level2_wake(void) {
  if (UNLIKELY(__atomic_load_n(&vgpu__level2_asleep, __ATOMIC_SEQ_CST) != 0)) vgpu__level2_wake_slow();
}

/* By the monitor: resumes what is stopped when the thread that has to do it does not come. */
void vgpu__level2_watch(uint64_t now);

/* How much of [from, to) nothing of this process could run. */
uint64_t vgpu__level2_stopped_ns(uint64_t from_ns, uint64_t to_ns);
/* A piece of work has ended then: not while all is stopped, if stopping has an effect. */
void vgpu__level2_ended(uint64_t at_ns);

#endif
