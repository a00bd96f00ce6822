/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * A call in progress, and the steps before and after the driver's part. rm_admit.c decides whether the driver gets the
 * call. rm_settle.c records the driver's answer in the book. Only rm_call.c calls them, in the order of this file.
 */
#ifndef VGPU_RM_REQUEST_H
#define VGPU_RM_REQUEST_H

#include "rm_call.h"

enum vgpu_rm_charge { NOTHING, DEVICE_MEMORY, HOST_MEMORY, DENIED };

/* A call in progress. */
struct vgpu_rm_request {
  struct vgpu_rm_book *book;
  const struct vgpu_rm_host *host;
  void *self;
  struct vgpu_rm_io io;
  uint64_t file, argument;
  uint32_t word;
  struct vgpu_rm_call call, after; /* before and after the driver's part */
  enum vgpu_rm_charge charge;
  uint64_t bytes, bytes_after;
  uint64_t stamp;                /* at its admission; 0: never assume that an object in the book is gone */
  struct vgpu_rm_tenant *tenant; /* a reference is held */
  uint64_t reserved;
  uint64_t target; /* the stamp of the object that is freed, scheduled or duplicated; 0: not an object in the book */
  struct vgpu_rm_block *shared; /* DUP: a reference is held */
  struct vgpu_rm_flight flight;
  struct vgpu_rm_tie *tie;
  uint64_t held; /* REGISTER_FD: the file behind its descriptor, which is kept open; 0: none */
  /* Allocated before the lock is taken; dropped at the end if unused. */
  struct vgpu_rm_object *object, *client;
  struct vgpu_rm_block *block;
  uint64_t most, left; /* for answers that contain sizes */
  uint32_t engine;     /* of a new channel group */
  uint32_t slice_us;   /* of a new channel group; 0: the driver's */
  uint32_t answer;
  int wanted;         /* SCHEDULE: on or off */
  uint64_t wanted_us; /* SET_TIMESLICE; 0: it cannot be read */
  int undo, lost;     /* lost: the answer could not be read */
  int changed;        /* another thread has written to the call meanwhile */
  int elsewhere;      /* and behind an XFER to the call's address */
};

/* The object of its source's client that a DUP duplicates, or NULL. The caller holds the lock. */
static inline struct vgpu_rm_object *vgpu__source(const struct vgpu_rm_request *request, struct vgpu_rm_object *root) {
  return root != NULL ? vgpu__object_find(request->book, root, request->call.source_object) : NULL;
}

static inline uint64_t vgpu__least(uint64_t one, uint64_t other) { return one < other ? one : other; }

static inline int vgpu__is_root(uint32_t class_number) { return class_number == 0 || class_number == RM_CLASS_ROOT; }

static inline int vgpu__schedules(const struct vgpu_rm_call *call) {
  return call->kind == RM_KIND_CONTROL && (call->command == RM_GROUP_SCHEDULE || call->command == RM_CHANNEL_SCHEDULE);
}

/* Names the result of a call that is not forwarded. Returns -1. */
static inline int vgpu__call_refuse(struct vgpu_rm_request *request, uint32_t status) {
  request->answer = status;
  return -1;
}

/* The caller holds the lock. */
static inline void vgpu__report(const struct vgpu_rm_request *request, const struct vgpu_rm_tenant *tenant,
                                uint32_t status, uint64_t bytes) {
  if (request->host->report != NULL && tenant != NULL) request->host->report(tenant, &request->call, status, bytes);
}

/* The channel group that a SCHEDULE refers to, or NULL. The caller holds the lock. */
struct vgpu_rm_object *vgpu__call_group(struct vgpu_rm_request *request);

/* ---- rm_admit.c ---- */

/* Accesses the caller's memory, and allocates what the call may need after the driver has executed it. 0, or the
 * caller's result: the call ends. */
long vgpu__call_prepare(struct vgpu_rm_request *request);
/* 0: forward the call to the driver; otherwise `answer` is the caller's result. The caller holds the lock. */
int vgpu__call_admit(struct vgpu_rm_request *request);
/* An admitted call goes to the driver. The caller holds the lock. */
void vgpu__call_depart(struct vgpu_rm_request *request);
/*
 * The list of an admitted DISABLE_CHANNELS. 0: forward the call; otherwise `answer` is the caller's result: a channel
 * is another tenant's, or is stopped, and the request was recorded. Takes the lock itself.
 */
int vgpu__call_admit_list(struct vgpu_rm_request *request);
/* A DISABLE_CHANNELS was forwarded. `done`: the driver executed it. Takes the lock itself. */
void vgpu__call_settle_list(struct vgpu_rm_request *request, int done);

/* ---- rm_settle.c ---- */

/* Reads the driver's answer from the caller's memory. `result`: that of the driver's ioctl. */
void vgpu__call_look_again(struct vgpu_rm_request *request, long result);
/* Commits or releases, as the driver answered. The caller holds the lock. */
void vgpu__call_settle(struct vgpu_rm_request *request, long result);
/* Commits an allocation that could not be undone. The caller holds the lock. */
void vgpu__call_settle_alloc(struct vgpu_rm_request *request);

#endif
