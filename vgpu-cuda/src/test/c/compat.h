/* What compat.c and its programs share. */
#ifndef VGPU_COMPAT_TEST_H
#define VGPU_COMPAT_TEST_H

#include "test.h"

#define QUOTA ((size_t)256 << 20)
#define CONTEXT ((size_t)64 << 20)

int nvml_role(const char *role);

/* compat_visible.c */
void role_uuids(void);
void role_visible(void);

#endif
