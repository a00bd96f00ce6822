/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#ifndef VGPU_KMOD_H
#define VGPU_KMOD_H

#include <linux/configfs.h>
#include <linux/fs.h>
#include <linux/list.h>
#include <linux/mutex.h>

#include "../core/rm_call.h"
#include "../core/rm_turn.h"

/* The only ledger, and its lock. The lock is held briefly and never while a caller's memory is accessed. */
extern struct vgpu_rm_book vgpu_book;
extern struct mutex vgpu_lock;

/* One call of a process: the core passes it back to the host's functions. */
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
/* Whether a file belongs to the attached driver. */
bool vgpu_driver_has(const struct file *file);
/* The driver's own ioctl, bypassing this module; the size of its GPFIFO_SCHEDULE parameters. */
long vgpu_driver_ioctl(struct file *file, unsigned int word, unsigned long argument);
unsigned int vgpu_driver_schedule_size(void);

/* turns.c: the device, and the stopping and giving back of channel groups */
int vgpu_turns_begin(void);
void vgpu_turns_end(void);
int vgpu_turns_offer(void);
void vgpu_turns_withdraw(void);
/* Starts the worker, because a group may have to be stopped or given back; settle also waits for the attempt. */
void vgpu_turns_kick(void);
void vgpu_turns_settle(void);
/* Waits until no group of a tenant (NULL: of any tenant) is stopped. The tenant must no longer yield. */
void vgpu_turns_give_back(const struct vgpu_rm_tenant *tenant);
/* Wakes the device's readers. */
void vgpu_turns_wake(void);

/* A tenant's directory; listed in order of creation, protected by vgpu_lock. */
struct vgpu_directory {
	struct config_item item;
	struct list_head all;
	struct vgpu_rm_tenant *tenant; /* valid while the directory exists */
	int class;
};
extern struct list_head vgpu_directories;
extern const char *const vgpu_classes[];

/* tenants.c: the directories below /sys/kernel/config/vgpu */
int vgpu_tenants_open(void);
/* From now on tenants can be made. Until then the directory can be closed: one with tenants could not be. */
void vgpu_tenants_allow(void);
void vgpu_tenants_close(void);

#endif
