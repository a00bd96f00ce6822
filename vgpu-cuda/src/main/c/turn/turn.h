/* Whether work may start now: the gate, the express lane, and stopping running work. */
#ifndef VGPU_TURN_H
#define VGPU_TURN_H

#include "../region/region.h"

/* ---- wake.c: the monitor sleeps while the process has no work ---- */
/* 1 while the monitor and the pulse sleep; the thread that begins work wakes them */
extern uint32_t vgpu__monitor_asleep VGPU_INTERNAL;
void vgpu__monitor_wake(void);
/* this process's heartbeat: for the seat, the lease's other processes and the express lane */
void vgpu__beat(uint64_t now);

/* ---- gate.c: whether work may start ---- */
/* Waits until work may start: ABI_SUCCESS, or ABI_NOT_PERMITTED when the lease has ended. */
abi_result vgpu__gate_wait(struct vgpu_tenant *tenant);
/* While no seat answers: waits until the pace allows more work. */
void vgpu__gate_pace(struct vgpu_tenant *tenant);
void vgpu__gate_set_autonomous(struct vgpu_tenant *tenant, int on);
uint64_t vgpu__charge(struct vgpu_tenant *tenant, uint64_t start_ns, uint64_t end_ns);

/* ---- express.c: docs/express-lane.md ---- */
/*
 * Joins the express lane if the seat has given us a part in it. Otherwise only the seat's messages count. After
 * attaching.
 */
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
/* After attaching and before the driver's cuInit: follows the driver's channels, if the lease may be stopped. */
void vgpu__level2_join(struct vgpu_tenant *tenant);
void vgpu__level2_forget(void); /* in the child of a fork */
/*
 * At the end of the program, before the driver's exit handler, which waits for the work: it is resumed, and not stopped
 * any more.
 */
void vgpu__level2_leave(void);

/* This process is never stopped inside a kernel: level 2 is off, and its reason is known. */
static inline int vgpu__never_stops(const struct vgpu_tenant *tenant) {
  return LOAD_ACQUIRE(tenant->slot->level2) == SHM_LEVEL2_OFF &&
         LOAD(tenant->slot->level2_reason) != SHM_LEVEL2_WHY_NONE;
}

/* Called when work begins, or when the last work has ended: wakes the level-2 thread, which may wait for that. */
extern uint32_t vgpu__level2_asleep VGPU_INTERNAL;
void vgpu__level2_wake_slow(void);
static inline void vgpu__level2_wake(void) {
  if (UNLIKELY(__atomic_load_n(&vgpu__level2_asleep, __ATOMIC_SEQ_CST) != 0)) vgpu__level2_wake_slow();
}

/* Called by the monitor: resumes stopped channels if the level-2 thread is late. */
void vgpu__level2_watch(uint64_t now);

/* For how much of [from, to) this process's channels were stopped. */
uint64_t vgpu__level2_stopped_ns(uint64_t from_ns, uint64_t to_ns);
/* A piece of work ended at this time. If everything was stopped then, stopping has no effect. */
void vgpu__level2_ended(uint64_t at_ns);

/*
 * ---- channels.c ----
 *
 * The channel groups of this process, learnt from the driver's own ioctls. All calls for them use the file through
 * which the driver made them, after a check that the descriptor still refers to that file.
 */
/*
 * Redirects the driver's ioctl import, once, and follows its calls from then on. 0, or -1 if it cannot be redirected.
 */
int vgpu__channels_watch(void *driver);
void vgpu__channels_forget(void); /* in the child of a fork */

struct vgpu_channels_seen {
  unsigned groups, channels;
  int overflow;     /* more objects than fit: stopping would be incomplete */
  uint32_t version; /* branch << 16 | minor; 0: unknown */
};
void vgpu__channels_seen(struct vgpu_channels_seen *into);

/* How channels are stopped. */
enum vgpu_method {
  VGPU_BY_CHANNELS, /* FIFO_DISABLE_CHANNELS: disables scheduling and preempts running work */
  VGPU_BY_GROUPS,   /* GPFIFO_SCHEDULE for each group, then PREEMPT */
  VGPU_METHODS,
};

/*
 * Stops or resumes all channels of this process. *status: the driver's status of a refusal. 0: all done; -1: some
 * failed, the others are as asked. Channels that the driver itself has disabled stay disabled.
 */
int vgpu__channels_set(enum vgpu_method method, int stopped, const struct vgpu_rm_abi *abi, uint32_t *status);
/* Sets the time slice of all groups, in microseconds; 0, or -1. */
int vgpu__channels_timeslice(uint64_t us, uint32_t *status);

/* From now on, the driver's own requests for a time slice are cut to this; 0: no limit. */
void vgpu__channels_limit_timeslice(uint64_t us);

/*
 * Called after a driver call that made a channel or enabled some: level2.c stops those too while it has the others
 * stopped.
 */
void vgpu__level2_channels_changed(void);

/* For tests: the redirected import. `next` is called instead of the kernel. */
typedef int vgpu_ioctl(int fd, unsigned long request, ...);
void vgpu__channels_begin(vgpu_ioctl *next);
int vgpu__ioctl(int fd, unsigned long request, ...);

#endif
