// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
#include <linux/module.h>

#include "vgpu_kmod.h"

static char *device = "/dev/nvidiactl";
module_param(device, charp, 0444);
MODULE_PARM_DESC(device, "The driver's control device");

static unsigned int charge_class;
module_param(charge_class, uint, 0444);
MODULE_PARM_DESC(charge_class, "A class of objects that is charged as device memory besides the known ones, for tests");

static int __init vgpu_begin(void)
{
	int error = vgpu_book_open();

	if (error)
		return error;
	vgpu_host.further_class = charge_class;
	error = vgpu_turns_begin();
	if (error)
		goto no_turns;
	error = vgpu_driver_attach(device);
	if (error)
		goto no_driver;
	error = vgpu_tenants_open();
	if (error)
		goto no_tenants;
	error = vgpu_turns_offer();
	if (error)
		goto no_device;
	vgpu_tenants_allow(); /* nothing can fail any more */
	return 0;

no_device:
	vgpu_tenants_close();
no_tenants:
	vgpu_driver_detach();
no_driver:
	vgpu_turns_end();
no_turns:
	vgpu_book_close();
	return error;
}

/* Not reached while there are tenants or the device is open: both pin the module. */
static void __exit vgpu_end(void)
{
	vgpu_turns_withdraw();
	vgpu_tenants_close();
	vgpu_driver_detach();
	vgpu_turns_end();
	vgpu_book_close();
}

module_init(vgpu_begin);
module_exit(vgpu_end);

MODULE_DESCRIPTION("vgpu: keeps tenants of an NVIDIA driver to their share of its memory");
MODULE_VERSION("0.1.0");
MODULE_LICENSE("GPL");
