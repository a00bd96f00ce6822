#ifndef VGPU_ROLES_WORK_H
#define VGPU_ROLES_WORK_H

#include "../../main/c/region/driver.h"
#include "../../main/shm/shm.h"

/* A symbol of the stub driver itself, which only the hook has loaded; and the stub's counts. */
void *stub_symbol(const char *name);
struct stub_counts *stub(void);

/* Runs a role of roles_work.c; 2: no role has that name. */
int run_work_role(const char *role, const char *argument);

/* roles_work.c, for the other files. */
struct shm_slot *work_slot(void); /* this process's */
uint64_t work_gpu_ns(void);       /* charged so far */
CUcontext work_begin(void);
CUfunction work_kernel(const char *ns);

/* roles_charged.c */
void role_charged(const char *argument);
void role_lazy(const char *argument);
void role_calls(const char *argument);
void role_rounds(const char *argument);
void role_rounds_end(const char *argument);
void role_captures_close(const char *argument);
void role_cancelled(const char *argument);
void role_many_streams(const char *argument);
void role_many_contexts(const char *argument);
void role_launch_bound(const char *unused);

/* roles_slips.c */
void role_slips(const char *unused);

/* roles_graphs.c */
void role_graphs(const char *unused);
void role_graphs_long(const char *unused);
void role_graphs_conditional(const char *unused);
void role_capture_other(const char *unused);
void role_capture_new(const char *unused);

#endif
