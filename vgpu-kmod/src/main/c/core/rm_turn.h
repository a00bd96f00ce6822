/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Turns: while the book is `held`, the channel groups of tenants that yield are stopped, and afterwards they are given back as
 * their tenants last wanted them. The core keeps who is in what state; the host carries the driver's calls out, one at a time.
 * The caller has the book's lock for every function here.
 *
 * A group is in one of two lists of its tenant from its first SCHEDULE on: `running` (as far as we are concerned), or `stopped`.
 * It is `ours` from the moment when a stop is given out until a start has been carried out. Meanwhile the tenant's own SCHEDULE
 * is noted and not forwarded. One that was on its way already puts the group back among the running ones: it is stopped again.
 */
#ifndef VGPU_RM_TURN_H
#define VGPU_RM_TURN_H

#include "rm_ledger.h"

/* One call that the host has to make: SCHEDULE with `enable`, and PREEMPT after it where the group is stopped. */
struct vgpu_rm_turn {
  uint64_t file; /* open, or about to be closed: the book has it as long as the lock is kept */
  uint64_t root, stamp;
  uint32_t client, group;
  int enable, stops;
};

/* 1: the next call. 0: everything is as it should be. -1: what failed is to be tried again in a while. */
int vgpu__turn_next(struct vgpu_rm_book *book, struct vgpu_rm_turn *turn);
/* It was carried out, or not. */
void vgpu__turn_done(struct vgpu_rm_book *book, const struct vgpu_rm_turn *turn, int failed);

/* The channel group that a SCHEDULE of this object means, or NULL. */
struct vgpu_rm_object *vgpu__group_of(struct vgpu_rm_object *object);
/* A tenant's own SCHEDULE is about to be forwarded: 0, or 1 where it is only noted. */
int vgpu__group_asked(struct vgpu_rm_book *book, struct vgpu_rm_object *group, int wanted);
/* It was forwarded, and may have been done. */
void vgpu__group_scheduled(struct vgpu_rm_book *book, struct vgpu_rm_object *group, int wanted);
void vgpu__group_forget(struct vgpu_rm_object *group);

#endif
