/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Turns. While the book is `held`, the channel groups of yielding tenants are stopped. Afterwards they are given back
 * as their tenants last requested. The core keeps the state; the host makes the driver's calls, one at a time. The
 * caller of every function here holds the book's lock, except for vgpu__turn_carry_out.
 *
 * A group is stopped by FIFO_DISABLE_CHANNELS with its channels: SCHEDULE off does not stop what runs. A call is made
 * on a subdevice of the group's device, and lists at most RM_MOST_CHANNELS. So a stop is a pass over the group's
 * channels, and so is giving back. A channel that comes meanwhile is not in the pass.
 *
 * After its first SCHEDULE, a group is in one of three lists of its tenant: `running` (as far as the core is
 * concerned), `stopping` (a stop was handed out) or `stopped` (the driver executed it). It is `ours` from the moment a
 * stop is handed out until it has been given back. Meanwhile the tenant's own SCHEDULE and DISABLE_CHANNELS are
 * recorded, not forwarded, and are executed when the group is given back.
 * If the driver refuses a stop, the group stays in `stopping`. Each new `round` tries it once more. A refused stop may
 * have been executed in part, so such a group is given back like a stopped one. A group is stopped again at once if a
 * request of the tenant was already on its way. If it gets a new channel, it is stopped again too, but only once in
 * each round, so that a tenant cannot keep the host busy. The new channel does not run: its SCHEDULE is recorded.
 *
 * Weights. A tenant's channel groups on an engine have equal time slices, which add up to that of the tenant's weight:
 * the number of groups does not change what a tenant gets. A group counts from its first SCHEDULE until it is freed.
 * When the number or the weight changes, each group's slice is set anew, as soon as the host is able to make calls.
 *
 * Levels. Before each group of a lower interleave level, the driver lets those of higher ones have a slice. So a group
 * that gets work waits for one slice of a lower group at most, however many there are. A group's level is set with its
 * first SCHEDULE, and when that of its tenant changes. One that the driver refuses is not tried again until then.
 */
#ifndef VGPU_RM_TURN_H
#define VGPU_RM_TURN_H

#include "rm_abi.h"
#include "rm_ledger.h"

/*
 * Calls for the host to make: SET_TIMESLICE, if `slice_us` is not 0, and SET_INTERLEAVE_LEVEL, if `levels`. If neither,
 * SCHEDULE with `enable` if `schedules`, then DISABLE_CHANNELS with `disable` for the channels, if there are any.
 */
struct vgpu_rm_turn {
  uint64_t file; /* open or about to be closed; valid while the lock is held */
  uint64_t root, stamp;
  uint32_t client, group;
  uint32_t subdevice; /* 0: not known, so the driver cannot be asked */
  int schedules, enable, stops, disable;
  uint32_t slice_us, level;
  int levels;
  uint32_t count, channels[RM_MOST_CHANNELS];
  /* What became of it: vgpu__turn_carry_out. */
  int failed;       /* SET_TIMESLICE or SCHEDULE */
  int unlevelled;   /* SET_INTERLEAVE_LEVEL failed */
  uint64_t refused; /* a bit for each channel */
};

/* 1: *turn is the next call. 0: there is nothing to do. -1: failed calls remain; try again later. */
int vgpu__turn_next(struct vgpu_rm_book *book, struct vgpu_rm_turn *turn);
/* A control call to the driver. Returns its status. */
typedef uint32_t vgpu_rm_control(void *self, uint32_t client, uint32_t object, uint32_t command, const void *params,
                                 uint32_t size);
/*
 * Makes the calls of a turn, without the lock. The driver refuses a list if a single channel has just been freed, so
 * the channels are then tried one by one. schedule_size: vgpu_rm_abi's. control NULL: no call can be made; all fail.
 */
void vgpu__turn_carry_out(struct vgpu_rm_turn *turn, vgpu_rm_control *control, void *self, uint32_t schedule_size);
/* Reports the result of a turn that was carried out. */
void vgpu__turn_done(struct vgpu_rm_book *book, const struct vgpu_rm_turn *turn);
/* Whether the tenant is stopped: all its groups, or after the hold at least one that has not been given back yet. */
int vgpu__is_stopped(const struct vgpu_rm_book *book, const struct vgpu_rm_tenant *tenant);
/* Whether groups of the tenant have to be given back, those whose stop was refused included. */
int vgpu__owes_groups(const struct vgpu_rm_tenant *tenant);

/* The channel group that a SCHEDULE of this object refers to, or NULL. */
struct vgpu_rm_object *vgpu__group_of(struct vgpu_rm_object *object);
/* Call before forwarding a tenant's own SCHEDULE. 0: forward it; 1: it is only recorded. */
int vgpu__group_asked(struct vgpu_rm_book *book, struct vgpu_rm_object *group, int wanted);
/* The SCHEDULE was forwarded, and may have been executed. */
void vgpu__group_scheduled(struct vgpu_rm_book *book, struct vgpu_rm_object *group, int wanted);
/* The group is being removed from the book. */
void vgpu__group_forget(struct vgpu_rm_book *book, struct vgpu_rm_object *group);

/* Whether a tenant's own DISABLE_CHANNELS for this channel must not be forwarded. The channel is in a group. */
int vgpu__channel_is_ours(const struct vgpu_rm_book *book, const struct vgpu_rm_object *channel);
/* Records a tenant's own DISABLE_CHANNELS that is not forwarded. The channel is in a group. */
void vgpu__channel_asked(struct vgpu_rm_book *book, struct vgpu_rm_object *channel, int disable);
/* Such a call was forwarded. `done`: the driver executed it, and otherwise perhaps in part. */
void vgpu__channel_set(struct vgpu_rm_book *book, struct vgpu_rm_object *channel, int done, int disable);
/* An object was entered below its parent; and leaves its parent. */
void vgpu__turn_enter(struct vgpu_rm_book *book, struct vgpu_rm_object *object);
void vgpu__turn_leave(struct vgpu_rm_object *object);

enum { VGPU_RM_LOW, VGPU_RM_MEDIUM, VGPU_RM_HIGH }; /* the driver's levels; a new group has the lowest */
/* Sets the level of a tenant's groups. */
void vgpu__level_set(struct vgpu_rm_book *book, struct vgpu_rm_tenant *tenant, uint32_t level);

/*
 * The time slices of weights that add up to 100 percent add up to VGPU_RM_ROUND_US, whoever has groups there. A change
 * of the context takes an H200 0.14 ms, so each tenant costs such a round 1.7 percent of its time.
 */
enum { VGPU_RM_ROUND_US = 8192, VGPU_RM_DRIVERS_SLICE_US = 1024, VGPU_RM_LEAST_SLICE_US = 50 };
/* Sets a tenant's weight. 0: its groups have their own time slices. */
void vgpu__weight_set(struct vgpu_rm_book *book, struct vgpu_rm_tenant *tenant, uint32_t weight);
/* The time slice of each group if the tenant has `more` groups more on this engine than now; 0: its own one. */
uint32_t vgpu__slice_of(const struct vgpu_rm_tenant *tenant, uint32_t engine, uint32_t more);

/* The tenant wants a group to have this time slice, which is the group's own one from now on. `done`: the driver has set
 * it. */
void vgpu__slice_asked(struct vgpu_rm_book *book, struct vgpu_rm_object *group, uint64_t us, int done);

/* A call that gives a group this time slice has failed. Which slice it has is unknown; it is set again at the next
 * SCHEDULE. */
void vgpu__slice_kept(struct vgpu_rm_object *group, uint64_t wanted_us);

#endif
