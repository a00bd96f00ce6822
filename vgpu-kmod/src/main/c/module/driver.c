// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Replaces three slots of the driver's own file operations, and restores them. A file keeps its operations table and
 * its device number, which the driver compares, so the driver sees no difference.
 */
#include <linux/atomic.h>
#include <linux/cdev.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/kdev_t.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/version.h>
#include <linux/wait_bit.h>

#include "vgpu_kmod.h"

#define VGPU_DRIVER "nvidia"
#define VGPU_MAJOR 195
#define VGPU_CONTROL_MINOR 255

static struct file_operations *driver;	 /* the driver's table; its slots are changed in place */
static struct module *owner;		 /* referenced, so that it stays loaded while its slots are replaced */
static struct file_operations kept;	 /* the slots' original content */
static atomic_t inside = ATOMIC_INIT(0); /* calls inside this module */
static DEFINE_MUTEX(looking);
static bool covered; /* this module is referenced, because a slot has another module's function; by `looking` */

static void vgpu_leave(void)
{
	if (atomic_dec_and_test(&inside))
		wake_up_var(&inside);
}

static long vgpu_ioctl(struct file *file, unsigned int word, unsigned long argument);
static long vgpu_compat_ioctl(struct file *file, unsigned int word, unsigned long argument);
static int vgpu_release(struct inode *inode, struct file *file);

/* Whether a slot has a function that is neither this module's nor the driver's. */
static bool vgpu_has_foreign(void)
{
	typeof(kept.unlocked_ioctl) ioctl = READ_ONCE(driver->unlocked_ioctl);
	typeof(kept.compat_ioctl) compat = READ_ONCE(driver->compat_ioctl);
	typeof(kept.release) release = READ_ONCE(driver->release);

	return (ioctl != vgpu_ioctl && ioctl != kept.unlocked_ioctl) ||
	       (release != vgpu_release && release != kept.release) ||
	       (kept.compat_ioctl && compat != vgpu_compat_ioctl && compat != kept.compat_ioctl);
}

/*
 * A module that has put its functions over this one's calls these, and writes pointers to them back when it goes. So
 * this module must stay until then. The caller keeps vgpu_driver_detach from ending.
 */
static void vgpu_look(void)
{
	bool foreign;

	mutex_lock(&looking);
	foreign = vgpu_has_foreign();
	if (foreign && !covered && try_module_get(THIS_MODULE)) {
		WRITE_ONCE(covered, true);
		pr_warn("vgpu_kmod: stays loaded until another module has put the driver's file operations back\n");
	} else if (!foreign && covered) {
		WRITE_ONCE(covered, false);
		module_put(THIS_MODULE);
	}
	mutex_unlock(&looking);
}

/* Modules change the slots when they begin and end, so most changes are seen here, and the others at the next call. */
static int vgpu_modules_changed(struct notifier_block *unused, unsigned long state, void *module)
{
	if (state == MODULE_STATE_LIVE || state == MODULE_STATE_GOING)
		vgpu_look();
	return NOTIFY_DONE;
}

static struct notifier_block modules = { .notifier_call = vgpu_modules_changed };

static long vgpu_call(struct file *file, unsigned int word, unsigned long argument,
		      long (*ioctl)(struct file *, unsigned int, unsigned long))
{
	struct vgpu_call call = { .file = file, .ioctl = ioctl };
	u64 news = READ_ONCE(vgpu_book.news);
	long result;

	atomic_inc(&inside);
	if (vgpu_has_foreign() != READ_ONCE(covered))
		vgpu_look();
	result = vgpu__rm_ioctl(&vgpu_book, &vgpu_host, &call, (uintptr_t)file, word, argument);
	if (READ_ONCE(vgpu_book.restless))
		vgpu_turns_kick();
	if (READ_ONCE(vgpu_book.news) != news)
		vgpu_turns_wake();
	vgpu_leave();
	return result;
}

static long vgpu_ioctl(struct file *file, unsigned int word, unsigned long argument)
{
	return vgpu_call(file, word, argument, kept.unlocked_ioctl);
}

/* The path of 32-bit system calls, which a 64-bit process can use as well. */
static long vgpu_compat_ioctl(struct file *file, unsigned int word, unsigned long argument)
{
	return vgpu_call(file, word, argument, kept.compat_ioctl);
}

/* Also runs for files that were opened before. It never runs for a file whose open failed. */
static int vgpu_release(struct inode *inode, struct file *file)
{
	int result;
	u64 news;

	atomic_inc(&inside);
	result = kept.release(inode, file);
	mutex_lock(&vgpu_lock);
	news = vgpu_book.news;
	vgpu__file_closed(&vgpu_book, (uintptr_t)file);
	news -= vgpu_book.news;
	mutex_unlock(&vgpu_lock);
	if (READ_ONCE(vgpu_book.restless))
		vgpu_turns_kick();
	if (news)
		vgpu_turns_wake();
	vgpu_leave();
	return result;
}

long vgpu_driver_ioctl(struct file *file, unsigned int word, unsigned long argument)
{
	return kept.unlocked_ioctl(file, word, argument);
}

unsigned int vgpu_driver_schedule_size(void)
{
	return vgpu__rm_abi(vgpu__rm_version(owner->version, strlen(owner->version)) >> 16).schedule_size;
}

bool vgpu_driver_has(const struct file *file)
{
	return file->f_op == driver;
}

/* Whether the structure lies in the writable data of the driver's module. */
static bool vgpu_writable(const struct module *module, const void *at, size_t size)
{
	unsigned long from = (unsigned long)at, base, end;

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 4, 0)
	base = (unsigned long)module->mem[MOD_DATA].base;
	end = base + module->mem[MOD_DATA].size;
#else
	base = (unsigned long)module->core_layout.base + module->core_layout.ro_after_init_size;
	end = (unsigned long)module->core_layout.base + module->core_layout.size;
#endif
	return from >= base && size <= end - base && from <= end - size;
}

/* Returns why a file is not the control device of a known, unmodified driver; NULL if it is. */
static const char *vgpu_unknown(const struct file *file)
{
	const struct file_operations *found = file->f_op;
	const struct inode *inode = file_inode(file);
	const struct module *module = found->owner;
	const char *version;

	if (!S_ISCHR(inode->i_mode) || imajor(inode) != VGPU_MAJOR || iminor(inode) != VGPU_CONTROL_MINOR)
		return "it is not the driver's control device";
	if (!module || strcmp(module->name, VGPU_DRIVER))
		return "it belongs to another module";
	version = module->version;
	if (!version || !vgpu__rm_abi(vgpu__rm_version(version, strlen(version)) >> 16).branch)
		return "the driver's version is not known";
	if (!found->unlocked_ioctl || !found->release || found->uring_cmd)
		return "the driver's file operations are not as expected";
	if (!within_module((unsigned long)found->unlocked_ioctl, module) ||
	    !within_module((unsigned long)found->release, module) ||
	    (found->compat_ioctl && !within_module((unsigned long)found->compat_ioctl, module)))
		return "another module has changed the driver's file operations";
	if (!vgpu_writable(module, found, sizeof(*found)))
		return "the driver's file operations cannot be written";
	return NULL;
}

int vgpu_driver_attach(const char *path)
{
	struct file *file = filp_open(path, O_RDWR | O_CLOEXEC, 0);
	const char *why;

	if (IS_ERR(file)) {
		pr_err("vgpu_kmod: %s cannot be opened: %ld\n", path, PTR_ERR(file));
		return PTR_ERR(file);
	}
	why = vgpu_unknown(file);
	if (!why && !try_module_get(file->f_op->owner))
		why = "the driver is being removed";
	if (why) {
		pr_err("vgpu_kmod: %s: %s\n", path, why);
		fput(file);
		return -ENODEV;
	}
	driver = (struct file_operations *)file->f_op;
	owner = driver->owner;
	kept = *driver;
	if (kept.compat_ioctl)
		WRITE_ONCE(driver->compat_ioctl, vgpu_compat_ioctl);
	WRITE_ONCE(driver->release, vgpu_release);
	WRITE_ONCE(driver->unlocked_ioctl, vgpu_ioctl);
	register_module_notifier(&modules);
	pr_info("vgpu_kmod: attached to driver %s\n", owner->version);
	fput(file);
	return 0;
}

/* Restores the slots, unless another module's function is in one. Returns whether all have the driver's own. */
static bool vgpu_restored(void)
{
	if (vgpu_has_foreign())
		return false;
	cmpxchg(&driver->unlocked_ioctl, vgpu_ioctl, kept.unlocked_ioctl);
	if (kept.compat_ioctl)
		cmpxchg(&driver->compat_ioctl, vgpu_compat_ioctl, kept.compat_ioctl);
	cmpxchg(&driver->release, vgpu_release, kept.release);
	return !vgpu_has_foreign();
}

/*
 * Waits for a module that has put its functions over this one's, if that could not be seen in time.
 *
 * Open files do not pin this module. A task may have read a slot without being counted yet, or may be leaving and no
 * longer be counted. Such a task does not sleep, so the grace periods wait for it.
 */
void vgpu_driver_detach(void)
{
	unregister_module_notifier(&modules);
	if (!vgpu_restored()) {
		pr_warn("vgpu_kmod: unloading waits until another module has put the driver's file operations back\n");
		while (!vgpu_restored())
			schedule_timeout_idle(HZ / 10);
	}
	synchronize_rcu_tasks();
	wait_var_event(&inside, atomic_read(&inside) == 0);
	synchronize_rcu_tasks();
	module_put(owner);
}
