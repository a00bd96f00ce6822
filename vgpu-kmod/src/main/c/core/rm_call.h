/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The way of one ioctl: decode, reserve or refuse, forward, then commit, give back or scale. The order is here alone; the
 * kernel module and the tests bring what a host has.
 */
#ifndef VGPU_RM_CALL_H
#define VGPU_RM_CALL_H

#include "rm_abi.h"
#include "rm_ledger.h"

struct vgpu_rm_host {
  int (*read)(void *self, void *into, uint64_t from, size_t size);
  int (*write)(void *self, uint64_t into, const void *from, size_t size);
  void (*lock)(struct vgpu_rm_book *book);
  void (*unlock)(struct vgpu_rm_book *book);
  /* The tenant of the process that calls, or NULL. With the lock. */
  struct vgpu_rm_tenant *(*tenant)(void *self, struct vgpu_rm_book *book);
  /* The driver's own ioctl: a negative error, or what it returns. */
  long (*forward)(void *self, uint32_t word, uint64_t argument);
  /* The file behind a descriptor of the process that calls; 0: none of the driver's. */
  uint64_t (*file_of)(void *self, int32_t fd);
  /* A class that is charged besides the known ones, with their parameters; 0: none. */
  uint32_t further_class;
};

/* Results, as the kernel has them: memory of the caller's was not there; the ledger has none. */
#define VGPU_RM_FAULT (-14L)
#define VGPU_RM_NO_LEDGER_MEMORY (-12L)

/* An ioctl on `file`, a number that no other open file has. `self` goes to the host's functions. */
long vgpu__rm_ioctl(struct vgpu_rm_book *book, const struct vgpu_rm_host *host, void *self, uint64_t file, uint32_t word, uint64_t argument);

#endif
