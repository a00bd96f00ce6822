/*
 * The channel groups of this process, learnt from the driver's own ioctls as it makes them: channels.c. All that is done with them
 * goes through the file that made them, after a look that it still is that file.
 */
#ifndef VGPU_CHANNELS_H
#define VGPU_CHANNELS_H

#include <stddef.h>
#include <stdint.h>

#include "rm_abi.h"

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
 * Stops or resumes all channels of this process. *status: the driver's, where it refused. 0 when all were; -1 when any was not
 * (those that were are as asked). What the driver had disabled itself stays so.
 */
int vgpu__channels_set(enum vgpu_method method, int stopped, const struct vgpu_rm_abi *abi, uint32_t *status);
/* The time slice of all groups, in microseconds; 0, or -1. */
int vgpu__channels_timeslice(uint64_t us, uint32_t *status);

/* What the driver itself asks for is cut to this from now on; 0: not. */
void vgpu__channels_limit_timeslice(uint64_t us);

/* Called after a call of the driver that made a channel, or enabled some: level2.c stops them too while it has the others stopped. */
void vgpu__level2_channels_changed(void);

/* The redirected import, for tests: what stands for `next`. */
typedef int vgpu_ioctl(int fd, unsigned long request, ...);
void vgpu__channels_begin(vgpu_ioctl *next);
int vgpu__ioctl(int fd, unsigned long request, ...);

#endif
