/* Whether work may start now: the gate, the express lane, and stopping what runs. */
#ifndef VGPU_TURN_H
#define VGPU_TURN_H

#include "../region/region.h"

/* ---- wake.c: the monitor sleeps while the process has no work ---- */
/* 1 while it sleeps for long, and the pulse with it: whoever begins work wakes them */
extern uint32_t vgpu__monitor_asleep VGPU_INTERNAL;
void vgpu__monitor_wake(void);
/* this process is alive: for the seat, the lease's other processes and the express lane */
void vgpu__beat(uint64_t now);

/* ---- gate.c: may work start? ---- */
/* Waits until work may start: ABI_SUCCESS, or ABI_NOT_PERMITTED when the lease has ended. */
abi_result vgpu__gate_wait(struct vgpu_tenant *tenant);
/* While no seat answers: waits until the pace allows more work. */
void vgpu__gate_pace(struct vgpu_tenant *tenant);
void vgpu__gate_set_autonomous(struct vgpu_tenant *tenant, int on);
uint64_t vgpu__charge(struct vgpu_tenant *tenant, uint64_t start_ns, uint64_t end_ns);

/* ---- express.c: docs/hook.md ---- */
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

/* ---- level2.c: preemption inside a kernel; docs/level2.md ---- */
/* After attaching and before the driver's cuInit: follows its channels, if the lease may be stopped. */
void vgpu__level2_join(struct vgpu_tenant *tenant);
void vgpu__level2_forget(void); /* in the child of a fork */

/* Nobody stops what this lease runs, now or later: it was found out why not. */
static inline int vgpu__never_stops(const struct vgpu_tenant *tenant) {
  return LOAD_ACQUIRE(tenant->slot->level2) == SHM_LEVEL2_OFF && LOAD(tenant->slot->level2_reason) != SHM_LEVEL2_WHY_NONE;
}

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

/*
 * ---- channels.c ----
 * The channel groups of this process, learnt from the driver's own ioctls as it makes them. All that is done with them
 * goes through the file that made them, after a look that it still is that file.
 */
/* Redirects the driver's ioctl; 0, or -1 when it cannot be. Once; what is seen is kept from then on. */
int vgpu__channels_watch(void *driver);
void vgpu__channels_forget(void); /* in the child of a fork */

struct vgpu_channels_seen {
  unsigned groups, channels;
  int overflow;     /* more objects than fit: nothing can be stopped as a whole */
  uint32_t version; /* branch << 16 | minor; 0: not told */
};
void vgpu__channels_seen(struct vgpu_channels_seen *into);

/* How channels are stopped. */
enum vgpu_method {
  VGPU_BY_CHANNELS, /* FIFO_DISABLE_CHANNELS: scheduling is disabled, and what runs is preempted */
  VGPU_BY_GROUPS,   /* GPFIFO_SCHEDULE of each group, then PREEMPT */
  VGPU_METHODS,
};

/*
 * Stops or resumes all channels of this process. *status: the driver's, where it refused. 0 when all were; -1 when any
 * was not (those that were are as asked). What the driver had disabled itself stays so.
 */
int vgpu__channels_set(enum vgpu_method method, int stopped, const struct vgpu_rm_abi *abi, uint32_t *status);
/* The time slice of all groups, in microseconds; 0, or -1. */
int vgpu__channels_timeslice(uint64_t us, uint32_t *status);

/* What the driver itself asks for is cut to this from now on; 0: not. */
void vgpu__channels_limit_timeslice(uint64_t us);

/*
 * Called after a call of the driver that made a channel, or enabled some: level2.c stops them too while it has the
 * others stopped.
 */
void vgpu__level2_channels_changed(void);

/* The redirected import, for tests: what stands for `next`. */
typedef int vgpu_ioctl(int fd, unsigned long request, ...);
void vgpu__channels_begin(vgpu_ioctl *next);
int vgpu__ioctl(int fd, unsigned long request, ...);

#endif
