// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * A driver for machines without a GPU: the model of the resource manager behind the real driver's device numbers, with
 * its identity checks. Clients belong to open files. A file is identified by its device number and, when a device is
 * allocated, by its file operations. One writable table of operations serves the control device and the cards.
 */
#include <linux/cgroup.h>
#include <linux/delay.h>
#include <linux/fdtable.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/kdev_t.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/proc_fs.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "model_rm.h"

#define MAJOR_NUMBER 195
#define CONTROL_MINOR 255
#define CARDS 2

static unsigned long total_mib = 8192;
module_param(total_mib, ulong, 0444);

static char *version;
module_param(version, charp, 0444);
MODULE_PARM_DESC(version, "What the module says that it is, in place of its own version");

static unsigned int slow_ms;
module_param(slow_ms, uint, 0644);
MODULE_PARM_DESC(slow_ms, "How long each call takes besides, so that others can happen in it");

static unsigned int refuses;
module_param(refuses, uint, 0644);
MODULE_PARM_DESC(refuses, "So many calls of FIFO_DISABLE_CHANNELS are refused from now on");

struct opened {
	struct model_file model;
	struct file *tied; /* referenced, as in the real driver */
};

static DEFINE_MUTEX(lock);
static struct model_rm rm;
static u64 cgroups[MODEL_TAGS]; /* by tag */
static ktime_t ran;		/* the engine has run until then */
static struct file_operations nvidia_fops;

static void *model_make(size_t size)
{
	return kzalloc(size, GFP_KERNEL);
}

static void model_drop(void *memory)
{
	kfree(memory);
}

static int model_read(void *self, void *into, uint64_t from, size_t size)
{
	return copy_from_user(into, u64_to_user_ptr(from), size) ? -EFAULT : 0;
}

static int model_write(void *self, uint64_t into, const void *from, size_t size)
{
	return copy_to_user(u64_to_user_ptr(into), from, size) ? -EFAULT : 0;
}

static struct model_file *model_file_of(void *self, int32_t fd)
{
	struct opened *opened = self;
	struct file *file = fget(fd);
	struct inode *inode;

	if (!file)
		return NULL;
	inode = file_inode(file);
	if (!S_ISCHR(inode->i_mode) || imajor(inode) != MAJOR_NUMBER || iminor(inode) != CONTROL_MINOR ||
	    opened->tied) {
		fput(file);
		return NULL;
	}
	opened->tied = file;
	return &((struct opened *)file->private_data)->model;
}

static int is_card(const void *unused, struct file *file, unsigned int fd)
{
	return file->f_op == &nvidia_fops && iminor(file_inode(file)) < CARDS;
}

static int model_has_gpu(void *self)
{
	return iterate_fd(current->files, 0, is_card, NULL);
}

/* The account of the process's cgroup; all cgroups beyond the table share the last account. */
static u32 tag_of_current(void)
{
	u64 number;
	u32 tag;

	rcu_read_lock();
	number = cgroup_id(task_dfl_cgroup(current));
	rcu_read_unlock();
	for (tag = 0; tag < MODEL_TAGS - 1; tag++) {
		if (!cgroups[tag])
			cgroups[tag] = number;
		if (cgroups[tag] == number)
			break;
	}
	return tag;
}

/* The engine runs while nothing else happens. The caller holds the lock. */
static void run_engine(void)
{
	s64 us = ktime_us_delta(ktime_get(), ran);

	model_run(&rm, us);
	ran = ktime_add_us(ran, us);
}

static long nvidia_ioctl(struct file *file, unsigned int word, unsigned long argument)
{
	struct opened *opened = file->private_data;
	struct model_caller caller = {
		.read = model_read,
		.write = model_write,
		.file_of = model_file_of,
		.has_gpu = model_has_gpu,
		.self = opened,
		.process = task_tgid_nr(current),
	};
	unsigned int before;
	long result;

	if (slow_ms)
		msleep(slow_ms);
	mutex_lock(&lock);
	run_engine();
	before = READ_ONCE(refuses);
	rm.refuses = before;
	caller.tag = tag_of_current();
	result = model_ioctl(&rm, &opened->model, &caller, word, argument);
	cmpxchg(&refuses, before, rm.refuses); /* unless the parameter was written meanwhile */
	mutex_unlock(&lock);
	return result;
}

static int nvidia_open(struct inode *inode, struct file *file)
{
	unsigned int minor = iminor(inode);
	struct opened *opened;

	if (minor != CONTROL_MINOR && minor >= CARDS)
		return -ENODEV;
	opened = kzalloc(sizeof(*opened), GFP_KERNEL);
	if (!opened)
		return -ENOMEM;
	opened->model.control = minor == CONTROL_MINOR;
	file->private_data = opened;
	return 0;
}

static int nvidia_release(struct inode *inode, struct file *file)
{
	struct opened *opened = file->private_data;

	mutex_lock(&lock);
	run_engine();
	model_close(&rm, &opened->model);
	mutex_unlock(&lock);
	if (opened->tied)
		fput(opened->tied);
	kfree(opened);
	return 0;
}

static struct file_operations nvidia_fops = {
	.owner = THIS_MODULE,
	.open = nvidia_open,
	.release = nvidia_release,
	.unlocked_ioctl = nvidia_ioctl,
	.compat_ioctl = nvidia_ioctl,
};

/* Reports what each cgroup really holds, and whether the table of operations is the driver's own. */
static int truth_show(struct seq_file *to, void *unused)
{
	u32 tag;

	mutex_lock(&lock);
	run_engine();
	seq_printf(to, "objects %llu\ntaken %llu\ncalls %llu\nown %d\n", rm.objects, rm.taken, rm.calls,
		   nvidia_fops.unlocked_ioctl == nvidia_ioctl && nvidia_fops.compat_ioctl == nvidia_ioctl &&
			   nvidia_fops.release == nvidia_release);
	for (tag = 0; tag < MODEL_TAGS && cgroups[tag]; tag++)
		seq_printf(to,
			   "cgroup %llu %llu\nmost of %llu %llu\nrunning of %llu %u\noff of %llu %u\nran of %llu %llu\n"
			   "waited of %llu %llu\n",
			   cgroups[tag], rm.held[tag], cgroups[tag], rm.most[tag], cgroups[tag],
			   model_running(&rm, tag), cgroups[tag], model_asked_off(&rm, tag), cgroups[tag],
			   rm.ran_us[tag], cgroups[tag], rm.waited_us[tag]);
	mutex_unlock(&lock);
	return 0;
}

static int __init nvidia_begin(void)
{
	int error;

	if (version) {
		kfree(THIS_MODULE->version);
		THIS_MODULE->version = kstrdup(version, GFP_KERNEL);
	}
	rm.make = model_make;
	rm.drop = model_drop;
	rm.total = (u64)total_mib << 20;
	rm.fb_info_size = 436;
	ran = ktime_get();
	if (!proc_create_single("nvidia_model", 0444, NULL, truth_show))
		return -ENOMEM;
	error = register_chrdev(MAJOR_NUMBER, "nvidia", &nvidia_fops);
	if (error)
		remove_proc_entry("nvidia_model", NULL);
	return error;
}

static void __exit nvidia_end(void)
{
	unregister_chrdev(MAJOR_NUMBER, "nvidia");
	remove_proc_entry("nvidia_model", NULL);
}

module_init(nvidia_begin);
module_exit(nvidia_end);

MODULE_DESCRIPTION("A model of a driver, for the tests of vgpu_kmod");
MODULE_VERSION("535.261.03");
MODULE_LICENSE("GPL");
