/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* C11's types, inside and outside of the kernel. The core uses nothing else of either. */
#ifndef VGPU_RM_PORT_H
#define VGPU_RM_PORT_H

#ifdef __KERNEL__
#include <linux/stddef.h>
#include <linux/types.h>
#define VGPU_RM_NO_LIMIT (~(uint64_t)0)
#else
#include <stddef.h>
#include <stdint.h>
#define VGPU_RM_NO_LIMIT UINT64_MAX
#endif

#endif
