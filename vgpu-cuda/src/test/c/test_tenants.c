/*
 * Tests of a process under three leases: A by its environment, B and C by vgpu_tenant_add. Each lease has its own seat
 * here.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_seat.h"
#include "test.h"

enum { TRIES = 10 };

struct three {
  struct fake_seat a, b, c;
  char others[160];
};

static void open_three(struct three *seats) {
  seat_open(&seats->a, 64u << 20, 1 << 20);
  seat_open(&seats->b, 32u << 20, 1 << 20);
  seat_open(&seats->c, 16u << 20, 1 << 20);
  snprintf(seats->others, sizeof seats->others, "%s,%s", seats->b.dir, seats->c.dir);
  seat_start(&seats->a);
  seat_start(&seats->b);
  seat_start(&seats->c);
}

static int is_empty(const struct three *seats) {
  return seat_units(&seats->a) + seat_units(&seats->b) + seat_units(&seats->c) == 0;
}

static void close_three(struct three *seats) {
  uint64_t until = seat_now() + PATIENCE_NS;
  while (!is_empty(seats) && seat_now() < until) usleep(1000);
  CHECK(is_empty(seats), "units left: %llu, %llu, %llu", (unsigned long long)seat_units(&seats->a),
        (unsigned long long)seat_units(&seats->b), (unsigned long long)seat_units(&seats->c));
  seat_close(&seats->a);
  seat_close(&seats->b);
  seat_close(&seats->c);
}

static void run_three(struct three *seats, const char *role) {
  int status = finish(start(&seats->a, role, seats->others));
  CHECK(status == 0, "role %s ended with %d", role, status);
}

void test_tenants_memory(void) {
  struct three seats;
  open_three(&seats);
  run_three(&seats, "tenants-memory");
  close_three(&seats);
}

static int is_about(uint64_t ns, uint64_t wanted_ns) {
  return ns > wanted_ns - wanted_ns / 5 && ns < wanted_ns + wanted_ns / 2;
}

/* A delay of the process between a start event and its launch is charged too: hence several tries. */
void test_tenants_streams(void) {
  int fine = 0;
  for (int tries = 0; tries < TRIES && !fine; tries++) {
    struct three seats;
    open_three(&seats);
    run_three(&seats, "tenants-streams");
    uint64_t a = seat_gpu_ns(&seats.a), b = seat_gpu_ns(&seats.b), c = seat_gpu_ns(&seats.c);
    printf("  GPU time of A %.1f, B %.1f, C %.1f ms\n", (double)a / 1e6, (double)b / 1e6, (double)c / 1e6);
    fine = is_about(a, 10000000) && is_about(b, 20000000) && is_about(c, 35000000);
    close_three(&seats);
  }
  CHECK(fine, "not 10, 20 and 35 ms");
}

/* Returns whether B waited while C worked. If B's seat is delayed, the process may take it for gone. */
static int gates_round(void) {
  struct three seats;
  open_three(&seats);
  seat_gate(&seats.b, 0);
  int pid = start(&seats.a, "tenants-gates", seats.others);
  uint64_t until = seat_now() + PATIENCE_NS;
  while ((GET(seats.b.slots[1].waiting) == 0 || seat_gpu_ns(&seats.c) < 15000000) && seat_gpu_ns(&seats.b) == 0 &&
         seat_now() < until) {
    usleep(1000);
  }
  CHECK(seat_now() < until, "B does not wait, or C does with it");
  int waited = seat_gpu_ns(&seats.b) == 0;
  CHECK(seat_gpu_ns(&seats.a) == 0, "work of nobody");
  seat_gate(&seats.b, (uint32_t)SHM_GRANT_OPEN);
  CHECK(finish(pid) == 0, "role");
  CHECK(seat_gpu_ns(&seats.b) > 0, "B's work was not measured");
  close_three(&seats);
  return waited;
}

void test_tenants_gates(void) {
  int waited = 0;
  for (int tries = 0; tries < TRIES && !waited; tries++) waited = gates_round();
  CHECK(waited, "work at a shut gate");
}

void test_tenants_drop(void) {
  struct three seats;
  open_three(&seats);
  run_three(&seats, "tenants-drop");
  close_three(&seats);
}

/* While the process has no connection to this seat, its slot gets another owner. */
static void take_slot(struct fake_seat *seat) {
  uint64_t until = seat_now() + PATIENCE_NS;
  while (seat_units(seat) == 0 && seat_now() < until) usleep(1000);
  seat_stop(seat);
  __atomic_store_n(&seat->slots[1].pid, 1, __ATOMIC_SEQ_CST);
  seat_start(seat);
}

/* What is charged in the two slots is their other owners'. */
void test_tenants_lost(void) {
  struct three seats;
  open_three(&seats);
  pid_t pid = start(&seats.a, "tenants-lost", seats.others);
  take_slot(&seats.b);
  while (seat_units(&seats.c) == 0 && kill(pid, 0) == 0) usleep(1000);
  take_slot(&seats.a);
  int status = finish(pid);
  CHECK(status == 0, "role ended with %d", status);
  seat_close(&seats.a);
  seat_close(&seats.b);
  seat_close(&seats.c);
}

void test_tenants_fork(void) {
  struct three seats;
  open_three(&seats);
  run_three(&seats, "tenants-fork");
  CHECK(GET(seats.a.hellos) == 1 && GET(seats.b.hellos) == 2 && GET(seats.c.hellos) == 1, "hellos %u, %u, %u",
        GET(seats.a.hellos), GET(seats.b.hellos), GET(seats.c.hellos));
  close_three(&seats);
}

void test_tenants_churn(void) {
  struct three seats;
  open_three(&seats);
  test_seed();
  run_three(&seats, "tenants-churn");
  close_three(&seats);
}

/* However the process dies, each lease gets back its own memory. */
void test_tenants_killed(void) {
  struct three seats;
  open_three(&seats);
  test_seed();
  for (int i = 0; i < 10; i++) {
    int pid = start(&seats.a, "tenants-churn", seats.others);
    uint64_t until = seat_now() + PATIENCE_NS;
    while (seat_units(&seats.c) == 0 && seat_now() < until) usleep(200);
    usleep((useconds_t)i * 1000);
    kill(pid, SIGKILL);
    finish(pid);
    while (!is_empty(&seats) && seat_now() < until) usleep(200);
    CHECK(is_empty(&seats), "kill %d", i);
  }
  close_three(&seats);
}
