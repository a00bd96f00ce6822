/*
 * What the core is tested on: the model of the resource manager behind it, processes with open files, and memory of theirs of
 * which a part cannot be written and the rest is not there.
 */
#ifndef VGPU_BED_H
#define VGPU_BED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../main/c/core/rm_call.h"
#include "../model/model_rm.h"

enum { BED_ARENA = 1 << 20, BED_READ_ONLY = 4096, BED_FILES = 8, BED_TENANTS = 4 };
#define MIB ((uint64_t)1 << 20)

struct bed_file {
  struct model_file model;
  uint64_t id;
  int refs; /* descriptors, and files that are tied to it */
};

struct bed_process {
  uint64_t key; /* its tenant's; 0: nobody's */
  uint32_t tag, number;
  struct bed_file *files[BED_FILES];
};

extern struct vgpu_rm_book book;
extern struct model_rm rm;
extern struct vgpu_rm_tenant *tenants[BED_TENANTS]; /* of the keys 1.. and the tags 1.. */
extern unsigned char *arena;                        /* its first BED_READ_ONLY bytes cannot be written */
extern long allocations;                            /* of the core and the model */
/* Runs once after the driver has carried a call out, and before the core sees the answer. */
extern void (*bed_meanwhile)(void);
/* Runs once after the core has looked at a call, and before the driver does. */
extern void (*bed_between)(void);
/* Runs within the driver, with its lock. */
extern void (*bed_watch)(void);

void bed_begin(uint64_t limit);
/* Closes nothing; fails where anything is left. */
void bed_end(void);
int bed_open(struct bed_process *process, int control);
long bed_ioctl(struct bed_process *process, int fd, uint32_t word, uint64_t argument);
void bed_close(struct bed_process *process, int fd);
void bed_exit(struct bed_process *process);
uint64_t bed_at(size_t offset);
void bed_fail(const char *what);

#endif
