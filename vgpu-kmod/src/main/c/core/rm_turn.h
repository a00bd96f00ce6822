/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Turns. While the book is `held`, the channel groups of yielding tenants are stopped. Afterwards they are given back
 * as their tenants last requested. The core keeps the state; the host makes the driver's calls, one at a time. The
 * caller of every function here holds the book's lock.
 *
 * After its first SCHEDULE, a group is in one of three lists of its tenant: `running` (as far as the core is
 * concerned), `stopping` (a stop was handed out) or `stopped` (the driver executed it). It is `ours` from the moment a
 * stop is handed out until a start has been executed. Meanwhile the tenant's own SCHEDULE is recorded, not forwarded.
 * A SCHEDULE that was already on its way puts the group back among the running ones, and the group is stopped again.
 * If the driver refuses a stop, the group stays in `stopping`. Each new `round` tries it once more. A refused stop may
 * have been executed in part, so such a group is given back like a stopped one.
 *
 * Weights. A tenant's channel groups on an engine have equal time slices, which add up to that of the tenant's weight:
 * the number of groups does not change what a tenant gets. A group counts from its first SCHEDULE until it is freed.
 * When the number or the weight changes, each group's slice is set anew, as soon as the host is able to make calls.
 */
#ifndef VGPU_RM_TURN_H
#define VGPU_RM_TURN_H

#include "rm_ledger.h"

/* A call for the host to make: SET_TIMESLICE, if `slice_us` is not 0. Otherwise SCHEDULE with `enable`, followed by
 * PREEMPT if `stops`. */
struct vgpu_rm_turn {
  uint64_t file; /* open or about to be closed; valid while the lock is held */
  uint64_t root, stamp;
  uint32_t client, group;
  int enable, stops;
  uint32_t slice_us;
};

/* 1: *turn is the next call. 0: there is nothing to do. -1: failed calls remain; try again later. */
int vgpu__turn_next(struct vgpu_rm_book *book, struct vgpu_rm_turn *turn);
/* Reports the result of a call. */
void vgpu__turn_done(struct vgpu_rm_book *book, const struct vgpu_rm_turn *turn, int failed);
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

enum { VGPU_RM_DRIVERS_SLICE_US = 1024, VGPU_RM_LEAST_SLICE_US = 50 };
/* Sets a tenant's weight. */
void vgpu__weight_set(struct vgpu_rm_book *book, struct vgpu_rm_tenant *tenant, uint32_t weight);
/* The time slice of each group if the tenant has `more` groups more on this engine than now. */
uint32_t vgpu__slice_of(const struct vgpu_rm_tenant *tenant, uint32_t engine, uint32_t more);

#endif
