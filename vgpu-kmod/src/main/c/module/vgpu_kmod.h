/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#ifndef VGPU_KMOD_H
#define VGPU_KMOD_H

#include <linux/fs.h>
#include <linux/mutex.h>

#include "../core/rm_call.h"

/* The one ledger, and its lock. Nobody sleeps in it for long: no memory of a caller is touched with it. */
extern struct vgpu_rm_book vgpu_book;
extern struct mutex vgpu_lock;

/* One call of a process: what the core hands back to the host's functions. */
struct vgpu_call {
	struct file *file;
	long (*ioctl)(struct file *file, unsigned int word, unsigned long argument);
};

/* host.c */
extern struct vgpu_rm_host vgpu_host;
int vgpu_book_open(void);
void vgpu_book_close(void);
void *vgpu_make(size_t size);

/* driver.c: the driver's file operations */
int vgpu_driver_attach(const char *path);
void vgpu_driver_detach(void);
/* Whether a file is one of the driver that is attached to. */
bool vgpu_driver_has(const struct file *file);

/* tenants.c: the directories below /sys/kernel/config/vgpu */
int vgpu_tenants_open(void);
void vgpu_tenants_close(void);

#endif
