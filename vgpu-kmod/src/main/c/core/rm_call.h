/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The sequence of one ioctl: decode, reserve or refuse, forward, then commit, release or scale. rm_call.c alone defines
 * the order; the kernel module and the tests supply the host's functions. rm_request.h has the steps.
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
  /* The calling process's tenant, or NULL. Called with the lock held. */
  struct vgpu_rm_tenant *(*tenant)(void *self, struct vgpu_rm_book *book);
  /* The driver's own ioctl: a negative error, or its return value. */
  long (*forward)(void *self, uint32_t word, uint64_t argument);
  /*
   * The open file behind a descriptor of the calling process, which stays open until let_go; 0: not a file of the
   * driver. Both are called without the lock.
   */
  uint64_t (*file_of)(void *self, int32_t fd);
  void (*let_go)(void *self, uint64_t file);
  /*
   * Reports what became of a tenant's call: it was answered here with `status`, or it allocated `bytes` of memory (0,
   * with any other call). Called with the lock held; NULL: nothing is reported.
   */
  void (*report)(const struct vgpu_rm_tenant *tenant, const struct vgpu_rm_call *call, uint32_t status, uint64_t bytes);
  /* An additional class that is charged as device memory, with its parameters; 0: none. */
  uint32_t further_class;
};

/* Results, as in the kernel: the caller's memory is not accessible; the ledger has no memory. */
#define VGPU_RM_FAULT (-14L)
#define VGPU_RM_NO_LEDGER_MEMORY (-12L)

/* Handles an ioctl on `file`, a number that is unique among open files. `self` is passed to the host's functions. */
long vgpu__rm_ioctl(struct vgpu_rm_book *book, const struct vgpu_rm_host *host, void *self, uint64_t file,
                    uint32_t word, uint64_t argument);

#endif
