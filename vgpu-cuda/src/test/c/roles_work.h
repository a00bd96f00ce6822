#ifndef VGPU_ROLES_WORK_H
#define VGPU_ROLES_WORK_H

/* Runs a role of roles_work.c; 2: there is none of that name. */
int run_work_role(const char *role, const char *argument);

#endif
