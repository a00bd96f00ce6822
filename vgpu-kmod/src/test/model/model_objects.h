/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The inside of the model: model_rm.c has the tree of objects and their memory, model_channels.c the engine. */
#ifndef VGPU_MODEL_OBJECTS_H
#define VGPU_MODEL_OBJECTS_H

#include "model_rm.h"

enum {
  OK = 0,
  DUPLICATE = 0x19,
  NOT_PERMITTED = 0x1b,
  BAD_ARGUMENT = 0x1f,
  BAD_CLASS = 0x22,
  BAD_CLIENT = 0x23,
  BAD_PARENT = 0x36,
  BAD_PARAMS = 0x3a,
  NO_MEMORY = 0x51,
  NOT_SUPPORTED = 0x56,
  NOT_FOUND = 0x57,
};
enum { NO_ACCESS = -14, INVALID = -22, NO_KERNEL_MEMORY = -12 };

struct nvos54 {
  uint32_t client, object, command, flags;
  uint64_t params;
  uint32_t params_size, status;
};

struct block;

struct model_object {
  struct model_object *next, *child, *parent, *client;
  uint32_t handle, class_number;
  struct block *block;
  struct model_file *file; /* of a client */
  uint32_t tag, process;
  uint64_t timeslice_us;
  int scheduled, disabled; /* of a channel */
  int asked_off;           /* of a channel group: its last GPFIFO_SCHEDULE */
  uint32_t level;          /* of a channel group: 0 to 2 */
  uint64_t number;         /* in the order of creation */
  uint64_t started;        /* the number of its last time slice; 0: none */
  uint64_t ready_us;       /* has had work since then */
  int waits;               /* for its first slice since then */
};

struct model_object *model_client(const struct model_rm *rm, uint32_t handle);
/* The object of a client that follows one of its objects; NULL after the last. */
struct model_object *model_following(const struct model_object *client, struct model_object *at);
struct model_object *model_find(struct model_object *client, uint32_t handle);

int model_is_channel(uint32_t class_number);
/* The control calls GPFIFO_SCHEDULE of a channel group, and FIFO_DISABLE_CHANNELS of a subdevice. */
uint32_t model_schedule(struct model_rm *rm, const struct model_caller *caller, const struct nvos54 *call,
                        struct model_object *group);
uint32_t model_disable(struct model_rm *rm, const struct model_caller *caller, const struct nvos54 *call,
                       const struct model_object *subdevice);

#endif
