// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Tenants are directories: mkdir creates one, its files set and show values, rmdir removes it. A tenant's processes are
 * those of the cgroup (v2) whose number is in its file `cgroup`, and of all descendants without a tenant of their own.
 */
#include <linux/configfs.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/string.h>

#include "vgpu_kmod.h"

#define VGPU_MOST_OBJECTS 262144
#define VGPU_MOST_WEIGHT 1000

#define VGPU_OFFLINE 2

LIST_HEAD(vgpu_directories);
const char *const vgpu_classes[] = { "online", "nearline", "offline", NULL };
static const u32 vgpu_levels[] = { VGPU_RM_HIGH, VGPU_RM_MEDIUM, VGPU_RM_LOW };

static struct vgpu_directory *vgpu_directory(struct config_item *item)
{
	return container_of(item, struct vgpu_directory, item);
}

static uint64_t vgpu_value(struct config_item *item, size_t offset)
{
	const char *tenant = (const char *)vgpu_directory(item)->tenant;
	uint64_t value;

	mutex_lock(&vgpu_lock);
	value = *(const uint64_t *)(tenant + offset);
	mutex_unlock(&vgpu_lock);
	return value;
}

#define VGPU_SHOW(name, field)                                                                                   \
	static ssize_t vgpu_##name##_show(struct config_item *item, char *page)                                  \
	{                                                                                                        \
		return sysfs_emit(page, "%llu\n",                                                                \
				  (unsigned long long)vgpu_value(item, offsetof(struct vgpu_rm_tenant, field))); \
	}

VGPU_SHOW(used, used)
VGPU_SHOW(peak, peak)
VGPU_SHOW(cgroup, key)

static ssize_t vgpu_limit_show(struct config_item *item, char *page)
{
	uint64_t limit = vgpu_value(item, offsetof(struct vgpu_rm_tenant, limit));

	if (limit == VGPU_RM_NO_LIMIT)
		return sysfs_emit(page, "max\n");
	return sysfs_emit(page, "%llu\n", (unsigned long long)limit);
}

static ssize_t vgpu_limit_store(struct config_item *item, const char *page, size_t size)
{
	unsigned long long limit = VGPU_RM_NO_LIMIT;

	if (!sysfs_streq(page, "max")) {
		int error = kstrtoull(page, 0, &limit);

		if (error)
			return error;
	}
	mutex_lock(&vgpu_lock);
	vgpu_directory(item)->tenant->limit = limit;
	mutex_unlock(&vgpu_lock);
	return size;
}

/* Writing any number resets the peak to the current use. */
static ssize_t vgpu_peak_store(struct config_item *item, const char *page, size_t size)
{
	struct vgpu_rm_tenant *tenant = vgpu_directory(item)->tenant;

	mutex_lock(&vgpu_lock);
	tenant->peak = tenant->used;
	mutex_unlock(&vgpu_lock);
	return size;
}

static ssize_t vgpu_cgroup_store(struct config_item *item, const char *page, size_t size)
{
	struct vgpu_rm_tenant *tenant = vgpu_directory(item)->tenant, *there;
	unsigned long long key;
	int error = kstrtoull(page, 0, &key);

	if (error)
		return error;
	mutex_lock(&vgpu_lock);
	there = vgpu__tenant_find(&vgpu_book, key);
	if (there && there != tenant)
		error = -EEXIST;
	else
		tenant->key = key;
	mutex_unlock(&vgpu_lock);
	return error ? error : size;
}

static ssize_t vgpu_weight_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%u\n", READ_ONCE(vgpu_directory(item)->tenant->weight));
}

static ssize_t vgpu_weight_store(struct config_item *item, const char *page, size_t size)
{
	unsigned int weight;
	int error = kstrtouint(page, 0, &weight);

	if (error)
		return error;
	if (weight > VGPU_MOST_WEIGHT)
		return -ERANGE;
	mutex_lock(&vgpu_lock);
	vgpu__weight_set(&vgpu_book, vgpu_directory(item)->tenant, weight);
	mutex_unlock(&vgpu_lock);
	vgpu_turns_settle();
	return size;
}

static ssize_t vgpu_class_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%s\n", vgpu_classes[READ_ONCE(vgpu_directory(item)->class)]);
}

static ssize_t vgpu_class_store(struct config_item *item, const char *page, size_t size)
{
	int class = __sysfs_match_string(vgpu_classes, 3, page);

	if (class < 0)
		return class;
	mutex_lock(&vgpu_lock);
	WRITE_ONCE(vgpu_directory(item)->class, class);
	vgpu_directory(item)->tenant->yields = class == VGPU_OFFLINE;
	vgpu__level_set(&vgpu_book, vgpu_directory(item)->tenant, vgpu_levels[class]);
	mutex_unlock(&vgpu_lock);
	vgpu_turns_settle();
	return size;
}

static ssize_t vgpu_stats_show(struct config_item *item, char *page)
{
	const struct vgpu_rm_tenant *seen = vgpu_directory(item)->tenant;
	ssize_t size;

	mutex_lock(&vgpu_lock);
	size = sysfs_emit(
		page,
		"allocations %llu\nrefused %llu\nfiltered %llu\nundone %llu\nover %llu\nchanged %llu\nunweighted %llu\n"
		"unlevelled %llu\n"
		"objects %llu\nhost_bytes %llu\nstops %llu\nunstopped %llu\nresisting %llu\nstuck %llu\n",
		(unsigned long long)seen->allocations, (unsigned long long)seen->refused,
		(unsigned long long)seen->filtered, (unsigned long long)seen->undone, (unsigned long long)seen->over,
		(unsigned long long)seen->changed, (unsigned long long)seen->unweighted,
		(unsigned long long)seen->unlevelled, (unsigned long long)seen->objects,
		(unsigned long long)seen->host_used, (unsigned long long)seen->stops,
		(unsigned long long)seen->unstopped, (unsigned long long)seen->resisting,
		(unsigned long long)seen->stuck);
	mutex_unlock(&vgpu_lock);
	return size;
}

CONFIGFS_ATTR(vgpu_, limit);
CONFIGFS_ATTR_RO(vgpu_, used);
CONFIGFS_ATTR(vgpu_, peak);
CONFIGFS_ATTR(vgpu_, cgroup);
CONFIGFS_ATTR(vgpu_, weight);
CONFIGFS_ATTR(vgpu_, class);
CONFIGFS_ATTR_RO(vgpu_, stats);

static struct configfs_attribute *vgpu_attributes[] = {
	&vgpu_attr_limit,  &vgpu_attr_used,  &vgpu_attr_peak,  &vgpu_attr_cgroup,
	&vgpu_attr_weight, &vgpu_attr_class, &vgpu_attr_stats, NULL,
};

static void vgpu_directory_release(struct config_item *item)
{
	vgpu_book.heap.drop(vgpu_directory(item));
}

static struct configfs_item_operations vgpu_directory_operations = {
	.release = vgpu_directory_release,
};

static const struct config_item_type vgpu_directory_type = {
	.ct_item_ops = &vgpu_directory_operations,
	.ct_attrs = vgpu_attributes,
	.ct_owner = THIS_MODULE,
};

static bool allowed;

static struct config_item *vgpu_make_directory(struct config_group *group, const char *name)
{
	struct vgpu_directory *made;
	struct vgpu_rm_tenant *tenant;

	if (!READ_ONCE(allowed))
		return ERR_PTR(-EAGAIN);
	made = vgpu_make(sizeof(*made));
	tenant = vgpu_make(sizeof(*tenant));
	if (!made || !tenant) {
		if (made)
			vgpu_book.heap.drop(made);
		if (tenant)
			vgpu_book.heap.drop(tenant);
		return ERR_PTR(-ENOMEM);
	}
	tenant->limit = VGPU_RM_NO_LIMIT;
	tenant->most_objects = VGPU_MOST_OBJECTS;
	tenant->level = vgpu_levels[made->class];
	made->tenant = tenant;
	config_item_init_type_name(&made->item, name, &vgpu_directory_type);
	mutex_lock(&vgpu_lock);
	vgpu__tenant_add(&vgpu_book, tenant);
	vgpu__note(&vgpu_book, tenant);
	list_add_tail(&made->all, &vgpu_directories);
	mutex_unlock(&vgpu_lock);
	vgpu_turns_wake();
	return &made->item;
}

static void vgpu_drop_directory(struct config_group *group, struct config_item *item)
{
	/* Stopped groups are given back before the tenant can no longer be found. */
	mutex_lock(&vgpu_lock);
	vgpu_directory(item)->tenant->yields = 0;
	mutex_unlock(&vgpu_lock);
	vgpu_turns_give_back(vgpu_directory(item)->tenant);
	mutex_lock(&vgpu_lock);
	list_del(&vgpu_directory(item)->all);
	vgpu__tenant_remove(&vgpu_book, vgpu_directory(item)->tenant);
	mutex_unlock(&vgpu_lock);
	config_item_put(item);
}

static struct configfs_group_operations vgpu_group_operations = {
	.make_item = vgpu_make_directory,
	.drop_item = vgpu_drop_directory,
};

static const struct config_item_type vgpu_group_type = {
	.ct_group_ops = &vgpu_group_operations,
	.ct_owner = THIS_MODULE,
};

static struct configfs_subsystem vgpu_subsystem = {
	.su_group = {
		.cg_item = {
			.ci_namebuf = "vgpu",
			.ci_type = &vgpu_group_type,
		},
	},
};

int vgpu_tenants_open(void)
{
	config_group_init(&vgpu_subsystem.su_group);
	mutex_init(&vgpu_subsystem.su_mutex);
	return configfs_register_subsystem(&vgpu_subsystem);
}

void vgpu_tenants_allow(void)
{
	WRITE_ONCE(allowed, true);
}

void vgpu_tenants_close(void)
{
	configfs_unregister_subsystem(&vgpu_subsystem);
}
