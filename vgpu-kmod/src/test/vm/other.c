// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Another module that puts a function of its own into the driver's file operations, over vgpu_kmod's, and puts back
 * what it found. Its parameter `hooked` does that, at loading or later. No call may be under way then.
 */
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/module.h>

static struct file_operations *driver;
static long (*found)(struct file *file, unsigned int word, unsigned long argument);
static bool hooked;

static unsigned long calls;
module_param(calls, ulong, 0444);
MODULE_PARM_DESC(calls, "The calls that have gone through this module");

static long other_ioctl(struct file *file, unsigned int word, unsigned long argument)
{
	WRITE_ONCE(calls, READ_ONCE(calls) + 1);
	return found(file, word, argument);
}

static int other_hook(void)
{
	struct file *file = filp_open("/dev/nvidiactl", O_RDWR, 0);

	if (IS_ERR(file))
		return PTR_ERR(file);
	driver = (struct file_operations *)file->f_op;
	found = driver->unlocked_ioctl;
	WRITE_ONCE(driver->unlocked_ioctl, other_ioctl);
	hooked = true;
	filp_close(file, NULL);
	return 0;
}

static void other_unhook(void)
{
	WRITE_ONCE(driver->unlocked_ioctl, found);
	hooked = false;
}

static int other_set(const char *value, const struct kernel_param *unused)
{
	bool wanted;
	int error = kstrtobool(value, &wanted);

	if (error || wanted == hooked)
		return error;
	if (wanted)
		return other_hook();
	other_unhook();
	return 0;
}

static const struct kernel_param_ops other_operations = { .set = other_set };
module_param_cb(hooked, &other_operations, NULL, 0200);

static int __init other_begin(void)
{
	return 0;
}

static void __exit other_end(void)
{
	if (hooked)
		other_unhook();
}

module_init(other_begin);
module_exit(other_end);

MODULE_DESCRIPTION("A module that changes the driver's file operations too, for the tests of vgpu_kmod");
MODULE_LICENSE("GPL");
