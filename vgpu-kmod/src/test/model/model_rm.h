/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * A model of the resource manager. It does what the open kernel modules do for the calls that the ledger follows:
 * clients belong to open files, handles form trees, and memory is really counted. It knows nothing of the core, and has
 * its own declarations. Both the C tests and the driver module of the virtual machine's tests use it. Callers must
 * serialize calls.
 */
#ifndef VGPU_MODEL_RM_H
#define VGPU_MODEL_RM_H

#ifdef __KERNEL__
#include <linux/stddef.h>
#include <linux/types.h>
#else
#include <stddef.h>
#include <stdint.h>
#endif

enum { MODEL_TAGS = 64 };

struct model_object;

struct model_rm {
  void *(*make)(size_t size); /* zeroed */
  void (*drop)(void *memory);
  uint64_t total;        /* bytes of video memory */
  uint32_t fb_info_size; /* of FB_GET_INFO_V2's parameters: 436, 444, 460, 1028 */
  struct model_object *clients;
  uint32_t next_client, next_handle;
  uint64_t taken;            /* of video memory */
  uint64_t held[MODEL_TAGS]; /* by the tag of the client's creator */
  uint64_t most[MODEL_TAGS]; /* the maximum so far */
  uint64_t objects;
  uint64_t calls;             /* received */
  uint32_t refuses;           /* the number of FIFO_DISABLE_CHANNELS calls to refuse from now on */
  uint32_t refuses_schedules; /* of GPFIFO_SCHEDULE */
  uint32_t refuses_slices;    /* of SET_TIMESLICE */
  uint32_t refuses_levels;    /* of SET_INTERLEAVE_LEVEL */
  /* The engine. */
  struct model_object *running; /* the channel group that has it */
  uint64_t left_us;             /* of that group's time slice */
  uint64_t now_us;              /* the engine's clock */
  uint64_t started, low, lower; /* the numbers of the last time slice, of that of a group of level 0, and of 0 or 1 */
  uint64_t last[3];             /* of each level, the group that had the last slice */
  uint64_t made;                /* objects so far */
  uint64_t ran_us[MODEL_TAGS];
  uint64_t waited_us[MODEL_TAGS]; /* how long the last group that got work has waited for the engine */
};

struct model_file {
  int control; /* nvidiactl */
  struct model_file *tied;
};

/* The calling process. */
struct model_caller {
  int (*read)(void *self, void *into, uint64_t from, size_t size);
  int (*write)(void *self, uint64_t into, const void *from, size_t size);
  /* The open file behind a descriptor, or NULL: for REGISTER_FD's identity check. */
  struct model_file *(*file_of)(void *self, int32_t fd);
  /* Whether the process has a file of the GPU open: for a new device's identity check. */
  int (*has_gpu)(void *self);
  void *self;
  uint32_t tag; /* below MODEL_TAGS */
  uint32_t process;
};

long model_ioctl(struct model_rm *rm, struct model_file *file, const struct model_caller *caller, uint32_t word,
                 uint64_t argument);
void model_close(struct model_rm *rm, struct model_file *file);
/*
 * Lets time pass. Channels that may run always have work. Their groups have the engine in turn, each for its time
 * slice, or until it is preempted or disabled. Before each group of a level, those of higher levels have had theirs.
 */
void model_run(struct model_rm *rm, uint64_t us);
/* Of a tag's clients, the number of channel groups that may run: they have a channel that is scheduled and enabled. */
uint32_t model_running(const struct model_rm *rm, uint32_t tag);
/* And of those whose last GPFIFO_SCHEDULE was off. */
uint32_t model_asked_off(const struct model_rm *rm, uint32_t tag);
/* Whether a channel is disabled; -1: there is none. */
int model_disabled(const struct model_rm *rm, uint32_t client, uint32_t channel);
/* A channel group's interleave level; -1: there is none. */
int model_level(const struct model_rm *rm, uint32_t client, uint32_t group);
/* A channel group's time slice in us; 0: there is none. */
uint64_t model_timeslice(const struct model_rm *rm, uint32_t client, uint32_t group);

#endif
