/* Declarations shared by the programs of test_memory.c. */
#ifndef VGPU_MEMORY_TEST_H
#define VGPU_MEMORY_TEST_H

#include "../../main/c/region/driver.h"
#include "../../main/shm/shm.h"
#include "test.h"

enum { MIB = 1 << 20, CONTEXT = 64 * MIB };
#define QUOTA ((uint64_t)512 * MIB)

extern void *library, *real; /* the hook; the driver behind it */
extern CUcontext context;

void *look(void *where, const char *name);
/* Looks up a function by name, in the hook or in the driver itself. */
#define FN(where, type, name) (*(type *)(&(void *){look(where, name)}))
#define CU(name, ...) ((abi_result(*)())FN(library, void *, #name))(__VA_ARGS__)

#define OF_DRIVER(name, ...) ((abi_result(*)())FN(real, void *, #name))(__VA_ARGS__)

uint64_t ledger_bytes(void);
uint64_t ledger_bytes_of(int gpu); /* in the account of one GPU of a gang */
uint64_t real_bytes(void);         /* bytes that the driver has given out; only this process uses it */
#define EXACT(what)                                                                                      \
  CHECK(ledger_bytes() == real_bytes(), "%s: charged %lld, given %lld", what, (long long)ledger_bytes(), \
        (long long)real_bytes())

void open_library(void);      /* the hook, or the driver alone */
void open_driver(void);       /* the driver itself, after cuInit */
void open_driver_alone(void); /* the driver itself, of a program without the hook */
void begin(void);             /* with a context that is charged exactly */
void begin_inexact(void);     /* with a context that is charged the set size */

/* roles_memory.c */
void role_plain(void);
void role_detached(void);
void role_graphs(void);
void role_graphs_auto_free(void);
void role_uploads(void);
void role_physical(void);
void role_arrays(void);
void role_managed(void);
void role_shared(void);
void role_errors(void);
void role_errors_found(void);
void role_errors_found_next(void);
void role_killed(void);
void role_killed_physical(void);
void role_killed_array(void);
void role_killed_other(void);

/* roles_pools.c */
void role_pools(void);
enum { A_DOMAIN = 6 /* a type of location that the hook does not know */ };
void role_pools_later(void);
void role_pools_elsewhere(void);
void role_pools_reset(void);
void role_graphs_newer(void);

/* roles_measured.c */
const struct shm_slot *own_slot(void);
void role_measured(void);
void role_measured_less(void);
void role_measured_unused(void);
void role_measured_destroyed(void);
void role_measured_refused(void);
void role_measured_refused_beside(void);
void role_measured_large(void);
void role_measured_stuck(void);
void role_measured_crowd(void);
void role_measured_together(void);
void role_measured_found(void);
void role_measured_owed(void);
void role_measured_paused(void);
void role_measured_not(void);
void role_measured_private(void);
void role_measured_apart(void);
void role_measured_apart_old(void);
void role_measured_beside(void);
/* Runs a role in its own pid namespace. Only /proc becomes private: "/" of a chroot is no mount point. */
int exec_apart(const char *program, const char *role);

/* roles_gang.c */
void role_gang(void);
void role_gang_kinds(void);
void role_gang_newer(void);
void role_graphs_elsewhere(void);
void role_gang_killed(void);
void role_gang_other(void);
void role_measured_gang(void);

/* roles_inputs.c */
void role_inputs(void);
void role_zeros(void);

/* roles_replay.c */
void role_replay_libraries(void);
void role_replay_primary(void);
void role_replay_threads(void);
void role_replay_allocator(void);
void role_replay_graphs(void);
void role_replay_captures(void);
void role_replay_workspaces(void);
void role_replay_inference(void);

/* roles_legacy.c */
void role_replay_legacy(void);
void role_replay_legacy_capture(void);
void role_replay_legacy_waits(void);
void role_replay_legacy_frees(void);

/* roles_ipc.c */
void role_ipc(void);
void role_ipc_other(void);

/* roles_movable.c */
void role_movable(void);
void role_movable_threads(void);

/* roles_green.c */
void role_green(void);
void role_green_alone(void);

#endif
