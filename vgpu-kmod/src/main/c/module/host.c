// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* The kernel's functions for the core. */
#include <linux/cgroup.h>
#include <linux/file.h>
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "trace.h"
#include "vgpu_kmod.h"

#define VGPU_BUCKETS 65536

struct vgpu_rm_book vgpu_book;
DEFINE_MUTEX(vgpu_lock);

/* Live allocations of the ledger. */
static atomic_long_t pieces;

/* Ledger memory is charged to the cgroup of the process that causes it. */
void *vgpu_make(size_t size)
{
	void *memory = kvzalloc(size, GFP_KERNEL_ACCOUNT);

	if (memory)
		atomic_long_inc(&pieces);
	return memory;
}

static void vgpu_drop(void *memory)
{
	atomic_long_dec(&pieces);
	kvfree(memory);
}

static int vgpu_read(void *self, void *into, uint64_t from, size_t size)
{
	return copy_from_user(into, u64_to_user_ptr(from), size) ? -EFAULT : 0;
}

static int vgpu_write(void *self, uint64_t into, const void *from, size_t size)
{
	return copy_to_user(u64_to_user_ptr(into), from, size) ? -EFAULT : 0;
}

static void vgpu_lock_book(struct vgpu_rm_book *book)
{
	mutex_lock(&vgpu_lock);
}

static void vgpu_unlock_book(struct vgpu_rm_book *book)
{
	mutex_unlock(&vgpu_lock);
}

/* The tenant of the process's cgroup, or of its nearest ancestor that has a tenant. */
static struct vgpu_rm_tenant *vgpu_tenant(void *self, struct vgpu_rm_book *book)
{
	struct vgpu_rm_tenant *tenant = NULL;
	struct cgroup *group;

	rcu_read_lock();
	for (group = task_dfl_cgroup(current); group && !tenant; group = cgroup_parent(group))
		tenant = vgpu__tenant_find(book, cgroup_id(group));
	rcu_read_unlock();
	return tenant;
}

static long vgpu_forward(void *self, uint32_t word, uint64_t argument)
{
	struct vgpu_call *call = self;

	return call->ioctl(call->file, word, argument);
}

static uint64_t vgpu_file_of(void *self, int32_t fd)
{
	struct file *file = fget(fd);

	if (!file)
		return 0;
	if (vgpu_driver_has(file))
		return (uintptr_t)file;
	fput(file);
	return 0;
}

static void vgpu_let_go(void *self, uint64_t file)
{
	fput((struct file *)(uintptr_t)file);
}

static void vgpu_report(const struct vgpu_rm_tenant *tenant, const struct vgpu_rm_call *call, uint32_t status,
			uint64_t bytes)
{
	trace_vgpu_call(tenant, call, status, bytes);
}

struct vgpu_rm_host vgpu_host = {
	.read = vgpu_read,
	.write = vgpu_write,
	.lock = vgpu_lock_book,
	.unlock = vgpu_unlock_book,
	.tenant = vgpu_tenant,
	.forward = vgpu_forward,
	.file_of = vgpu_file_of,
	.let_go = vgpu_let_go,
	.report = vgpu_report,
};

int vgpu_book_open(void)
{
	static const struct vgpu_rm_heap heap = { .make = vgpu_make, .drop = vgpu_drop };

	return vgpu__book_begin(&vgpu_book, &heap, VGPU_BUCKETS, get_random_u32()) ? -ENOMEM : 0;
}

void vgpu_book_close(void)
{
	long left;

	vgpu__book_end(&vgpu_book);
	left = atomic_long_read(&pieces);
	WARN(left, "vgpu_kmod: %ld pieces of memory are left\n", left);
}
