/* Declarations shared by compat.c and its programs. */
#ifndef VGPU_COMPAT_TEST_H
#define VGPU_COMPAT_TEST_H

#include "test.h"

#define QUOTA ((size_t)256 << 20)
#define CONTEXT ((size_t)64 << 20)

int nvml_role(const char *role);

/* compat_program.c: checks that symbols found by this dlopen handle are the hook's */
void is_held_in(void *library);
int status_of(pid_t pid); /* how a child ended: its exit code, or 1000 and the signal */

/* compat_open.c */
void role_dlopen_names(void);
void role_dlopen_links(void);
void role_dlopen_search(void);
void role_dlopen_deep(void);
void role_linked_names(void);
void role_dlmopen(void);
void role_forward(void);
void role_forward_chosen(void);

/* compat_preload.c */
void role_ld_so_preload(void);

/* compat_visible.c */
void role_uuids(void);
void role_visible(void);

#endif
