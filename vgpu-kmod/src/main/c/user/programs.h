/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The programs of vgpu-turns' tenants, as they record themselves: rm_events.h. */
#ifndef VGPU_PROGRAMS_H
#define VGPU_PROGRAMS_H

#include <sys/types.h>

#include "../core/rm_ledger.h"
#include "rm_events.h"

enum { MOST_TENANTS = 64, MOST_FILES = 1024 };
/* What is read of a program in one look; and how much of what it has recorded may be unread. */
enum { EVENTS_OF_A_LOOK = 4096, MOST_UNREAD = 1 << 24 };

/*
 * A group's own time slice, in a file beside the program's records, as long as the group has another one: for the
 * guardian, and for the next vgpu-turns.
 */
struct kept_slice {
  uint64_t file; /* the program's own number */
  uint32_t client, group;
  uint32_t own_us, set_us, before_us; /* set_us: set, or about to be, instead of before_us */
  uint32_t unused;
};

/* An object of a program. The rest is only for channel groups. */
struct group {
  struct vgpu_rm_object object; /* at first, because the book knows only this */
  uint32_t asked_us, set_us;    /* by its tenant's weight, and what the driver made of that; 0: it has its own one */
  struct kept_slice *found;     /* while recovering */
  uint32_t kept_at;             /* the number in the program's file of slices, from 1 on; 0: it is not there */
};

/* A process of a tenant. Its files have the numbers number << 32 | the program's own number. */
struct program {
  struct program *next;
  struct vgpu_rm_tenant *tenant;
  char name[sizeof RM_EVENTS_NAME]; /* of its file in the directory */
  uint64_t number;
  pid_t pid;
  int pidfd, events;
  off_t at, found;               /* read up to `at`; the file's size when the program was found */
  int slices;                    /* the file of slices; -1: there is none */
  uint32_t kept;                 /* in that file */
  struct kept_slice *found_kept; /* what an earlier process left there; only while recovering */
  size_t found_count;
  int lost;            /* what it records is not read any more */
  int fds[MOST_FILES]; /* by the file's number; with another file's descriptor, the driver refuses the client */
};

struct directory {
  const char *path;
  int fd;
  const char *class_name;
  uint32_t weight;  /* what the tenant's is to be */
  uint32_t checked; /* so many of the tenant's groups have been looked at in this round */
  struct vgpu_rm_tenant tenant;
};

struct programs {
  struct directory directories[MOST_TENANTS];
  int tenants;
  struct program *first;
  uint64_t last_number;
  struct vgpu_rm_book book;
  int recovering; /* nothing is known of the groups' slices and levels */
};

/* Zeroed memory. */
void *programs_make(size_t size);
/*
 * Reads what all programs have recorded, but of each only a part. Returns whether there is more. A program that records
 * nonsense, or faster than it is read for long, is lost.
 */
int programs_look(struct programs *programs);
/* Whether a program has not been read up to where its file ended when it was found: one of the first `last`. */
int programs_behind(const struct programs *programs, uint64_t last);
/* Keeps a group's own time slice for other processes, before `us` is set. -1: that is impossible. */
int programs_keep(struct programs *programs, struct group *group, uint32_t us);
/* All groups have their own time slices. */
void programs_drop_kept(struct programs *programs);
/* Forgets the groups of lost programs. Nothing is stopped. */
void programs_drop_lost(struct programs *programs);

#endif
