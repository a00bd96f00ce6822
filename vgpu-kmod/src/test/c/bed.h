/*
 * The core's test bed: the model of the resource manager behind the core, processes with open files, and their memory,
 * of which one part is read-only and the rest is not mapped.
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
  int refs; /* descriptors, and files tied to it */
};

struct bed_process {
  uint64_t key; /* its tenant's key; 0: no tenant */
  uint32_t tag, number;
  struct bed_file *files[BED_FILES];
};

extern struct vgpu_rm_book book;
extern struct model_rm rm;
extern struct vgpu_rm_tenant *tenants[BED_TENANTS]; /* with keys 1.. and tags 1.. */
extern unsigned char *arena;                        /* its first BED_READ_ONLY bytes are read-only */
extern long allocations;                            /* of the core and the model */
/* Runs once, after the driver has executed a call and before the core sees the answer. */
extern void (*bed_meanwhile)(void);
/* Runs once, after the core has checked a call and before the driver sees it. */
extern void (*bed_between)(void);
/* The last report of the core. */
extern struct bed_report {
  const struct vgpu_rm_tenant *tenant;
  uint32_t number, status;
  uint64_t bytes, count;
} bed_reported;
/* Runs within the driver, with its lock held. */
extern void (*bed_watch)(void);

void bed_begin(uint64_t limit);
/* Does not close anything; fails if anything is left. */
void bed_end(void);
int bed_open(struct bed_process *process, int control);
long bed_ioctl(struct bed_process *process, int fd, uint32_t word, uint64_t argument);
void bed_close(struct bed_process *process, int fd);
void bed_exit(struct bed_process *process);
uint64_t bed_at(size_t offset);
void bed_fail(const char *what);

#endif
