// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Makes QEMU's `edu` device look like a switch of the vendor's, so that the vendor's own module loads without a GPU: it
 * then serves its control device. Only the kernel's description of the device is changed, not the device.
 */
#include <linux/module.h>
#include <linux/pci.h>

static struct pci_dev *edu;
static unsigned short vendor;
static unsigned int class;

static int __init gpu_begin(void)
{
	edu = pci_get_device(0x1234, 0x11e8, NULL);
	if (!edu)
		return -ENODEV;
	vendor = edu->vendor;
	class = edu->class;
	edu->vendor = PCI_VENDOR_ID_NVIDIA;
	edu->class = PCI_CLASS_BRIDGE_OTHER << 8;
	return 0;
}

static void __exit gpu_end(void)
{
	edu->vendor = vendor;
	edu->class = class;
	pci_dev_put(edu);
}

module_init(gpu_begin);
module_exit(gpu_end);

MODULE_DESCRIPTION("A device that the vendor's module takes for its own, for the tests of vgpu_kmod");
MODULE_LICENSE("GPL");
