/* Checks, and the roles that a hooked program plays (roles.c). */
#ifndef VGPU_TEST_H
#define VGPU_TEST_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define GET(x) __atomic_load_n(&(x), __ATOMIC_SEQ_CST)
#define PATIENCE_NS 30000000000u /* how long to wait for what must happen, on a busy machine too */
extern int failures;
#define CHECK(fine, ...)                                         \
  do {                                                           \
    if (!(fine)) {                                               \
      failures++;                                                \
      fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #fine); \
      fprintf(stderr, __VA_ARGS__);                              \
      fputc('\n', stderr);                                       \
    }                                                            \
  } while (0)

/* The seed of random tests: VGPU_TEST_SEED, or a new number, which is printed. */
static inline unsigned test_seed(void) {
  char text[16];
  if (getenv("VGPU_TEST_SEED") == NULL) {
    snprintf(text, sizeof text, "%u", ((unsigned)time(NULL) ^ (unsigned)getpid() << 12) >> 1);
    setenv("VGPU_TEST_SEED", text, 1);
    fprintf(stderr, "VGPU_TEST_SEED=%s repeats what this test draws\n", text);
  }
  return (unsigned)strtoul(getenv("VGPU_TEST_SEED"), NULL, 10);
}

int run_as(const char *role, const char *argument);

/* test_hook.c: starts this program again in a role. */
struct fake_seat;
pid_t start(const struct fake_seat *seat, const char *role, const char *argument);
int finish(pid_t pid);
int stop_launching(const struct fake_seat *seat, pid_t pid);
void end_launching(const struct fake_seat *seat); /* tells its roles to end, and does not wait */
void play_role(struct fake_seat *seat, const char *role, const char *argument);
void await_empty(const struct fake_seat *seat, const char *what);
/* Waits for more GPU time than `before`. */
int await_work(const struct fake_seat *seat, uint64_t before);

#define SEATED(quota, context)      \
  struct fake_seat seat;            \
  seat_open(&seat, quota, context); \
  seat_start(&seat)

/* delays.c: whether a role was delayed on a busy machine. Its process then ends with DELAYED if a check has failed. */
enum { DELAYED = 75 };
void delays_watch(void);
int delays_were_long(void);

/* test_work.c: a role under a seat of its own. It is played again if a check has failed and it was delayed. */
void measured_role(const char *role, const char *argument, uint32_t gate);

/* test_gate.c */
void test_gate(void);
void test_waits_asleep(void);
void test_bound(void);
void test_messages(void);
void test_resting(void);
void test_revoked(void);
void test_seat_killed(void);
void test_seat_ended(void);
void test_seat_stopped(void);
void test_seat_slow(void);
void test_seat_late(void);
void test_seat_hidden(void);
void test_seat_rests(void);

/* test_express.c */
void test_express_obeyed(void);
void test_express_stale(void);
void test_express_announced(void);
void test_express_fork(void);
void test_express_killed(void);
void test_express_exit(void);
void test_express_garbage(void);
void test_express_told(void);
void test_express_missing(void);

/* test_storm.c */
void test_garbage(void);
void test_garbage_grant(void);
void test_quota_churn(void);
void test_quota_fill(void);

/* test_work.c */
void test_peers_even(void);
void test_copies_apart(void);
void test_launches_counted(void);
void test_graphs_measured(void);
void test_graphs_long(void);
void test_graphs_conditional(void);
void test_waits_uncharged(void);
void test_stops_uncharged(void);
void test_peers_no_credit(void);
void test_peers_stopped(void);
void test_peers_stopped_soon(void);
void test_peers_line(void);
void test_suspended_waits(void);
void test_thread_pid(void);
void test_exits(void);
void test_stalled(void);
void test_copies_batched(void);
void test_capture_other(void);
void test_capture_new(void);
void test_launch_bound(void);
void test_silent(void);
void test_held_up(void);
void test_charged(void);
void test_measuring_calls(void);
void test_slips(void);
void test_rounds(void);
void test_captures_close(void);
void test_cancelled(void);
void test_many_streams(void);
void test_many_contexts(void);

/* test_tenants.c */
void test_tenants_memory(void);
void test_tenants_streams(void);
void test_tenants_gates(void);
void test_tenants_drop(void);
void test_tenants_lost(void);
void test_tenants_fork(void);
void test_tenants_churn(void);
void test_tenants_killed(void);

/* roles_process.c */
void role_set_user(const char *argument);
void role_fork_attaching(const char *argument);

/* roles_denied.c: the calls of the kernel that can be denied; NULL after the last. */
const char *denied_call(size_t index);
void role_denied(const char *argument);

/* roles_churn.c */
void role_churn(const char *ms);
void role_fill(const char *ms);
void role_churn_and_launch(const char *ms);

/* roles_tenants.c */
void role_tenants_memory(const char *argument);
void role_tenants_streams(const char *argument);
void role_tenants_gates(const char *argument);
void role_tenants_drop(const char *argument);
void role_tenants_lost(const char *argument);
void role_tenants_fork(const char *argument);
void role_tenants_churn(const char *argument);

#endif
