/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * What libvgpu_rm.so records of a program's channel groups, for vgpu-turns: a file for each process in the directory
 * VGPU_RM_EVENTS, with a record lock as long as the process has it. The lock tells a reader whose file it is.
 */
#ifndef VGPU_RM_EVENTS_H
#define VGPU_RM_EVENTS_H

#include <stdint.h>

#define RM_EVENTS_NAME "vgpu-rm-XXXXXX"
#define RM_EVENTS_PATTERN "vgpu-rm-??????"

enum vgpu_rm_event_kind {
  RM_EVENT_MADE = 1,  /* an object; class RM_CLASS_ROOT: a client. value: the engine of a channel group */
  RM_EVENT_FREED,     /* an object, or a client */
  RM_EVENT_SCHEDULED, /* the program's GPFIFO_SCHEDULE of a group or channel; value: on or off */
  RM_EVENT_DISABLED,  /* the program's FIFO_DISABLE_CHANNELS of a channel; value: whether it is disabled */
  RM_EVENT_CLOSED,    /* the file */
};

struct vgpu_rm_event {
  uint32_t kind;
  int32_t fd; /* a descriptor of the file */
  uint64_t file;
  uint32_t client, parent, object, class_number, value, unused;
};

#endif
