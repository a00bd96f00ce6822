/* What the attacks in the virtual machine share: hostile.c. Tenant `one` has 64 MiB, and `two` 32 MiB. */
#ifndef VGPU_HOSTILE_H
#define VGPU_HOSTILE_H

#include "tenant.h"

#define TENANTS "/sys/kernel/config/vgpu/"
#define CGROUPS "/sys/fs/cgroup/"

/* The attacker's open files of the driver, and its client there. */
extern int control, card;
extern uint32_t client;

/* Figures: the module's about a tenant, and the driver's own. `line`: the text before the number. */
uint64_t used_by(const char *tenant);
uint64_t stat_of(const char *tenant, const char *line);
uint64_t truth(const char *line);

void go_to(const char *cgroup);
/* Enters a cgroup, opens the driver's files and makes a client. */
void begin_as(const char *cgroup);
/* Everything has been given back, in the ledger and in the driver. */
void end_empty(void);
uint32_t take_mib(uint32_t handle, uint64_t mib);

/* Runs `body` in a child process, and returns its pid. */
pid_t in_child(void (*body)(int), int socket);
/* Waits for a child. Whether all of its checks were fine. */
int went_well(pid_t child);

/* hostile_calls.c */
void pointers_of_the_kernel(void);
void sizes_and_handles(void);
void buffers_over_one_another(void);
void arguments_that_change(void);
void random_requests(void);

/* hostile_processes.c */
void signals_all_the_time(void);
void files_passed_on(void);
void files_taken(void);
void forked_into_another_cgroup(void);
void handles_of_others(void);

/* hostile_cgroups.c */
void cgroup_moved_and_removed(void);
void cgroup_of_another(void);
void rubbish_in_directories(void);

#endif
