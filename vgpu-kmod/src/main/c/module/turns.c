// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * /dev/vgpu. A reader is told which tenants have changed, and can poll. The only process that has the device open for
 * writing is the scheduler: it says for how long online tenants have work. Meanwhile the channel groups of offline
 * tenants are stopped. They are given back when that time is over, or when the scheduler's file is closed, however the
 * process ended.
 *
 * The driver accepts arguments only from a process's memory. They lie in a page of the scheduler, whose memory is kept
 * until everything has been given back. One worker makes all calls, through the tenants' own files, because the driver
 * checks the file. So the time slices of existing groups are set only while there is a scheduler.
 */
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/file.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/version.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "trace.h"
#include "vgpu_kmod.h"

#define VGPU_MOST_MS 10000
#define VGPU_AGAIN_MS 20
#define VGPU_MOST_TURNS 4096 /* without a pause, so that no tenant can keep those waiting who flush the worker */
#define VGPU_LINE (NAME_MAX + 160)

static DECLARE_WAIT_QUEUE_HEAD(watchers);
static DEFINE_MUTEX(scheduler); /* protects the following; taken before vgpu_lock, and never by the worker */
static bool taken;
static struct mm_struct *memory; /* the scheduler's; changed with vgpu_lock held, too */
static unsigned long page;	 /* in that memory */
static struct workqueue_struct *queue;

static void vgpu_work(struct work_struct *unused);
static void vgpu_time_is_over(struct work_struct *unused);
static DECLARE_DELAYED_WORK(work, vgpu_work);
static DECLARE_DELAYED_WORK(watchdog, vgpu_time_is_over);
static unsigned long until; /* in jiffies, while the book is held; protected by vgpu_lock */

void vgpu_turns_wake(void)
{
	wake_up_interruptible(&watchers);
}

void vgpu_turns_kick(void)
{
	mod_delayed_work(queue, &work, 0);
}

void vgpu_turns_settle(void)
{
	vgpu_turns_kick();
	flush_delayed_work(&work);
}

static bool vgpu_has_stopped(const struct vgpu_rm_tenant *tenant)
{
	bool has = false;
	struct vgpu_directory *each;

	mutex_lock(&vgpu_lock);
	list_for_each_entry(each, &vgpu_directories, all)
		has |= (!tenant || each->tenant == tenant) && vgpu__owes_groups(each->tenant);
	mutex_unlock(&vgpu_lock);
	return has;
}

/* Returns after a limited time: the core gives up on a group after a number of failed tries. */
void vgpu_turns_give_back(const struct vgpu_rm_tenant *tenant)
{
	vgpu_turns_settle();
	while (vgpu_has_stopped(tenant)) {
		msleep(VGPU_AGAIN_MS);
		flush_delayed_work(&work);
	}
}

/* Makes a control call to the driver through an open file, with the parameters in the scheduler's memory. Returns the
 * driver's status, or ~0. */
static u32 vgpu_control(void *file, u32 client, u32 object, u32 command, const void *params, u32 size)
{
	struct {
		u32 client, object, command, flags;
		u64 params;
		u32 size, status;
	} fields = { client, object, command, 0, page + 64, size, ~0U };
	void __user *at = (void __user *)page;

	BUILD_BUG_ON(sizeof(fields) != RM_CONTROL_SIZE);
	BUILD_BUG_ON(RM_DISABLE_SIZE + 64 > PAGE_SIZE);
	if (copy_to_user(at + 64, params, size) || copy_to_user(at, &fields, sizeof(fields)) ||
	    vgpu_driver_ioctl(file, vgpu__rm_word(RM_CONTROL, RM_CONTROL_SIZE), page) < 0 ||
	    copy_from_user(&fields, at, sizeof(fields)))
		return ~0U;
	return fields.status;
}

/* References a file in the book. Its structure is valid while the book has it, but the file may already be closing.
 * The caller holds vgpu_lock. */
static struct file *vgpu_hold_file(uint64_t number)
{
	struct file *file = (struct file *)(uintptr_t)number;

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	if (!file || !file_ref_get(&file->f_ref))
		return NULL;
#else
	if (!file || !atomic_long_inc_not_zero(&file->f_count))
		return NULL;
#endif
	if (!WARN_ON_ONCE(!vgpu_driver_has(file)))
		return file;
	fput(file);
	return NULL;
}

static void vgpu_work(struct work_struct *unused)
{
	struct mm_struct *mm;
	struct vgpu_rm_turn turn;
	struct file *file = NULL;
	unsigned int turns = 0;
	int more;

	/* With a reference of its own: the scheduler's may go while this runs. */
	mutex_lock(&vgpu_lock);
	mm = memory && mmget_not_zero(memory) ? memory : NULL;
	vgpu_book.able = mm != NULL;
	mutex_unlock(&vgpu_lock);
	if (mm)
		kthread_use_mm(mm);
	for (;;) {
		mutex_lock(&vgpu_lock);
		more = vgpu__turn_next(&vgpu_book, &turn);
		if (more > 0)
			file = vgpu_hold_file(turn.file);
		mutex_unlock(&vgpu_lock);
		if (more <= 0)
			break;
		vgpu__turn_carry_out(&turn, mm && file ? vgpu_control : NULL, file, vgpu_driver_schedule_size());
		if (file)
			fput(file);
		trace_vgpu_turn(&turn);
		mutex_lock(&vgpu_lock);
		vgpu__turn_done(&vgpu_book, &turn);
		mutex_unlock(&vgpu_lock);
		cond_resched();
		if (++turns == VGPU_MOST_TURNS)
			break;
	}
	if (mm) {
		kthread_unuse_mm(mm);
		mmput(mm);
	}
	vgpu_turns_wake();
	if (more)
		queue_delayed_work(queue, &work, more < 0 ? msecs_to_jiffies(VGPU_AGAIN_MS) : 1);
}

static void vgpu_hold(unsigned int ms)
{
	mutex_lock(&vgpu_lock);
	vgpu_book.held = ms != 0;
	vgpu_book.round++; /* stops that the driver refused are tried again */
	until = jiffies + msecs_to_jiffies(ms);
	mutex_unlock(&vgpu_lock);
}

static void vgpu_time_is_over(struct work_struct *unused)
{
	mutex_lock(&vgpu_lock);
	if (!time_before(jiffies, until)) /* and it has not been extended */
		vgpu_book.held = 0;
	mutex_unlock(&vgpu_lock);
	vgpu_turns_kick();
}

/* ---- the scheduler ---- */

/* "online MS": online tenants have work for at most MS ms from now; 0: they have none. */
static ssize_t vgpu_device_write(struct file *file, const char __user *from, size_t size, loff_t *at)
{
	char text[32];
	unsigned int ms;
	char *value;

	if (size == 0 || size >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, from, size))
		return -EFAULT;
	text[size] = 0;
	value = strim(text);
	if (strncmp(value, "online ", 7) || kstrtouint(value + 7, 10, &ms))
		return -EINVAL;
	if (ms > VGPU_MOST_MS)
		return -ERANGE;
	mutex_lock(&scheduler);
	vgpu_hold(ms);
	mod_delayed_work(queue, &watchdog, msecs_to_jiffies(ms));
	vgpu_turns_settle();
	mutex_unlock(&scheduler);
	return size;
}

static void vgpu_set_memory(struct mm_struct *mm)
{
	mutex_lock(&vgpu_lock);
	memory = mm;
	mutex_unlock(&vgpu_lock);
}

static int vgpu_become_scheduler(void)
{
	unsigned long place;

	if (!current->mm)
		return -EINVAL;
	mutex_lock(&scheduler);
	if (taken) {
		mutex_unlock(&scheduler);
		return -EBUSY;
	}
	/* Shared, because the OOM reaper discards private memory of a killed process. */
	place = vm_mmap(NULL, 0, PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, 0);
	if (IS_ERR_VALUE(place)) {
		mutex_unlock(&scheduler);
		return (int)place;
	}
	taken = true;
	page = place;
	mmget(current->mm);
	vgpu_set_memory(current->mm);
	vgpu_turns_settle();
	mutex_unlock(&scheduler);
	return 0;
}

static void vgpu_end_scheduler(void)
{
	struct mm_struct *mm;

	mutex_lock(&scheduler);
	vgpu_hold(0);
	cancel_delayed_work_sync(&watchdog);
	vgpu_turns_give_back(NULL);
	mm = memory;
	vgpu_set_memory(NULL);
	vgpu_turns_settle(); /* the worker has seen the change */
	if (current->mm == mm)
		vm_munmap(page, PAGE_SIZE);
	mmput(mm);
	taken = false;
	mutex_unlock(&scheduler);
}

/* ---- readers ---- */

struct vgpu_watcher {
	u64 seen;
	struct mutex lock;
};

static int vgpu_device_open(struct inode *inode, struct file *file)
{
	struct vgpu_watcher *made = vgpu_make(sizeof(*made));
	int error = 0;

	if (!made)
		return -ENOMEM;
	mutex_init(&made->lock);
	if (file->f_mode & FMODE_WRITE)
		error = vgpu_become_scheduler();
	if (error)
		vgpu_book.heap.drop(made);
	else
		file->private_data = made;
	return error ? error : nonseekable_open(inode, file);
}

static int vgpu_device_release(struct inode *inode, struct file *file)
{
	if (file->f_mode & FMODE_WRITE)
		vgpu_end_scheduler();
	vgpu_book.heap.drop(file->private_data);
	return 0;
}

/* The tenant with the first change after `seen`, or NULL. The caller holds vgpu_lock. */
static struct vgpu_directory *vgpu_next(u64 seen)
{
	struct vgpu_directory *each, *next = NULL;

	list_for_each_entry(each, &vgpu_directories, all) {
		if (each->tenant->news > seen && (!next || each->tenant->news < next->tenant->news))
			next = each;
	}
	return next;
}

static bool vgpu_has_news(struct vgpu_watcher *watcher)
{
	bool has;

	mutex_lock(&vgpu_lock);
	has = vgpu_next(READ_ONCE(watcher->seen));
	mutex_unlock(&vgpu_lock);
	return has;
}

/* Waits for news: 0, or -ERESTARTSYS. Not by wait_event, whose condition must not sleep. */
static int vgpu_await_news(struct vgpu_watcher *watcher)
{
	DEFINE_WAIT_FUNC(wait, woken_wake_function);
	int error = 0;

	add_wait_queue(&watchers, &wait);
	while (!vgpu_has_news(watcher) && !error) {
		wait_woken(&wait, TASK_INTERRUPTIBLE, MAX_SCHEDULE_TIMEOUT);
		if (signal_pending(current))
			error = -ERESTARTSYS;
	}
	remove_wait_queue(&watchers, &wait);
	return error;
}

/* Formats the current state of the next tenant that changed after *seen; -1: there is none. */
static int vgpu_tell(u64 *seen, char *line)
{
	struct vgpu_directory *next;
	int size = -1;

	mutex_lock(&vgpu_lock);
	next = vgpu_next(*seen);
	if (next) {
		const struct vgpu_rm_tenant *tenant = next->tenant;

		*seen = tenant->news;
		size = scnprintf(line, VGPU_LINE,
				 "%s class %s used %llu objects %llu refused %llu stops %llu stopped %d\n",
				 config_item_name(&next->item), vgpu_classes[next->class],
				 (unsigned long long)tenant->used, (unsigned long long)tenant->objects,
				 (unsigned long long)tenant->refused, (unsigned long long)tenant->stops,
				 vgpu__is_stopped(&vgpu_book, tenant));
	}
	mutex_unlock(&vgpu_lock);
	return size;
}

/* Returns whole lines. Waits for the first one, unless the file is non-blocking. */
static ssize_t vgpu_device_read(struct file *file, char __user *into, size_t room, loff_t *at)
{
	struct vgpu_watcher *watcher = file->private_data;
	ssize_t done = 0;
	char *line;

	if (room < VGPU_LINE)
		return -EINVAL;
	if (!vgpu_has_news(watcher)) {
		if (file->f_flags & O_NONBLOCK)
			return -EAGAIN;
		if (vgpu_await_news(watcher))
			return -ERESTARTSYS;
	}
	line = kmalloc(VGPU_LINE, GFP_KERNEL);
	if (!line)
		return -ENOMEM;
	mutex_lock(&watcher->lock);
	while (room - done >= VGPU_LINE) {
		u64 seen = watcher->seen;
		int size = vgpu_tell(&seen, line);

		if (size < 0)
			break;
		if (copy_to_user(into + done, line, size)) {
			done = done ? done : -EFAULT;
			break;
		}
		WRITE_ONCE(watcher->seen, seen);
		done += size;
	}
	mutex_unlock(&watcher->lock);
	kfree(line);
	return done ? done : -EAGAIN; /* another thread has read them meanwhile */
}

static __poll_t vgpu_device_poll(struct file *file, struct poll_table_struct *table)
{
	__poll_t may = file->f_mode & FMODE_WRITE ? EPOLLOUT | EPOLLWRNORM : 0;

	poll_wait(file, &watchers, table);
	if (file->f_mode & FMODE_READ && vgpu_has_news(file->private_data))
		may |= EPOLLIN | EPOLLRDNORM;
	return may;
}

static const struct file_operations vgpu_device_operations = {
	.owner = THIS_MODULE,
	.open = vgpu_device_open,
	.release = vgpu_device_release,
	.read = vgpu_device_read,
	.write = vgpu_device_write,
	.poll = vgpu_device_poll,
};

static struct miscdevice vgpu_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "vgpu",
	.mode = 0600,
	.fops = &vgpu_device_operations,
};

int vgpu_turns_begin(void)
{
	/* Not ordered: the watchdog does not wait for the worker. */
	queue = alloc_workqueue("vgpu_kmod", WQ_UNBOUND, 0);
	return queue ? 0 : -ENOMEM;
}

void vgpu_turns_end(void)
{
	cancel_delayed_work_sync(&watchdog);
	cancel_delayed_work_sync(&work);
	destroy_workqueue(queue);
}

int vgpu_turns_offer(void)
{
	return misc_register(&vgpu_device);
}

void vgpu_turns_withdraw(void)
{
	misc_deregister(&vgpu_device);
}
