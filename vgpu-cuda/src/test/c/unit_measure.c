/* Tests of memory/measure.c alone: what it asks while it holds the ledgers. */
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

#include "unit.h"

/* ---- what the measurement calls elsewhere ---- */
uint32_t vgpu__attached = 1;
static uint64_t held_bytes, charged_bytes, own;
static unsigned readings, readings_alone, churning;
static int holding, quicker;
static sem_t parked;
static __thread int is_main;

static void alone(const char *what) { CHECK(!holding, "%s while the ledgers are held", what); }

/* The measurer opens NVML, and rests from then on. */
int vgpu__thread_start(void *(*body)(void *)) {
  pthread_t thread;
  sem_init(&parked, 0, 0);
  int failed = pthread_create(&thread, NULL, body, NULL);
  if (!failed) sem_wait(&parked);
  return failed;
}
void vgpu__futex_wait(const uint32_t *word, uint32_t seen, uint64_t timeout_ns) {
  (void)word;
  (void)seen;
  (void)timeout_ns;
  if (is_main) return;
  sem_post(&parked);
  for (;;) pause();
}
uint64_t vgpu__now_ns(void) { return 1; }
void vgpu__sleep_ns(uint64_t ns) { (void)ns; }
const char *vgpu__setting(const char *name) {
  (void)name;
  return NULL;
}

const char *vgpu__held_open(void) { return NULL; }
void vgpu__held_forget(void) {}
/* While others churn, each reading meets a change of the charge. */
int vgpu__held_read(const char *uuid, uint64_t *bytes) {
  (void)uuid;
  int still = holding;
  readings++;
  readings_alone += (unsigned)still;
  if (churning && !still) slots[OURS].memory_own = ++own;
  *bytes = held_bytes;
  return 1;
}

int vgpu__pools_are_settled(void) {
  alone("asks for pools and frees under way, which have locks of their own,");
  return 1;
}
int vgpu__changing_any(void) { return 0; }
void vgpu__changing_forget(void) {}
int vgpu__suspended_any(void) { return 0; }
int vgpu__trim(void) {
  alone("trims");
  return 0;
}
uint64_t vgpu__lease_bytes(const struct vgpu_tenant *of, int gpu) {
  (void)of;
  (void)gpu;
  return 0;
}
int vgpu__reserve_now(struct vgpu_tenant *of, int gpu, uint64_t bytes) {
  (void)of;
  (void)gpu;
  charged_bytes += bytes;
  return 0;
}
void vgpu__owe(struct vgpu_tenant *of, int gpu, uint64_t bytes) {
  (void)of;
  (void)gpu;
  (void)bytes;
}
int vgpu__pay_owed(void) { return 0; }
int vgpu__pay_account(struct vgpu_tenant *of, int gpu) {
  (void)of;
  (void)gpu;
  return 0;
}
/* Another thread that has read the same is quicker. */
uint64_t vgpu__ledgers_hold(void) {
  CHECK(!holding, "held twice");
  if (quicker) slots[OURS].memory_own = own = (held_bytes / 256) << 20 | 1;
  quicker = 0;
  holding = 1;
  return 1;
}
void vgpu__ledgers_let_go(uint64_t here) {
  IS(here, 1);
  CHECK(holding, "not held");
  holding = 0;
}
void vgpu__overhead_end(const struct vgpu_spot *spot) { (void)spot; }
int64_t vgpu__context_adjust(const struct vgpu_spot *spot, int64_t bytes) {
  (void)spot;
  charged_bytes += (uint64_t)bytes;
  return bytes;
}
int vgpu__context_add(struct vgpu_excess *excess) { return vgpu__excess_charge(excess, &tenant, 0); }
struct vgpu_tenant *vgpu__contexts_payer(const struct vgpu_spot *spot, int *gpu) {
  (void)spot;
  *gpu = 0;
  return &tenant;
}
int vgpu__contexts_any(const struct vgpu_spot *spot) {
  (void)spot;
  return 1;
}
uint64_t vgpu__contexts_bytes(const struct vgpu_tenant *of) {
  (void)of;
  return 0;
}
struct vgpu_tenant *vgpu__tenant_next(unsigned *index) {
  return *index == 0 ? &tenant : NULL;
}
int vgpu__spot_next(unsigned *index, struct vgpu_spot *spot) {
  spot->uuid[0] = '\0';
  return *index == 0;
}
void vgpu__spot_of(const struct vgpu_tenant *of, int gpu, struct vgpu_spot *spot) {
  (void)of;
  (void)gpu;
  spot->uuid[0] = '\0';
}
int vgpu__spot_has(const struct vgpu_spot *spot, const struct vgpu_tenant *of, int gpu) {
  (void)spot;
  (void)of;
  return gpu == 0;
}

/* ---- tests ---- */

static void measured(uint64_t bytes) {
  begin();
  held_bytes = bytes;
  charged_bytes = own = readings = readings_alone = 0;
}

static void test_undisturbed(void) {
  measured(4096);
  vgpu__measure_settle();
  IS(charged_bytes, 4096);
  IS(readings, 1);
  IS(readings_alone, 0);
}

static void test_among_changes(void) {
  measured(4096);
  churning = 1;
  vgpu__measure_settle();
  churning = 0;
  IS(charged_bytes, 4096);
  CHECK(readings > 1 && readings_alone > 0, "%u readings, %u of them alone", readings, readings_alone);
  unlocked();
}

/* The same excess is charged once, whoever charges it: before an allocation, with a module, with a context. */
static void test_charged_once(void) {
  uint64_t bytes = 16;
  measured(4096);
  quicker = 1;
  vgpu__measure_settle();
  IS(charged_bytes, 0);
  measured(4096);
  quicker = 1;
  IS(vgpu__measure_made(), 0);
  IS(charged_bytes, 0);
  measured(4096);
  quicker = 1;
  IS(vgpu__measure_context(&tenant, 0, &bytes), 0);
  IS(charged_bytes, 0);
  IS(bytes, 16);
  measured(4096);
  IS(vgpu__measure_context(&tenant, 0, &bytes), 0);
  IS(charged_bytes, 4096);
  IS(bytes, 16 + 4096);
}

int main(void) {
  is_main = 1;
  begin();
  vgpu__measure_start();
  test_undisturbed();
  test_among_changes();
  test_charged_once();
  printf("%s measure\n", failures == 0 ? "ok  " : "FAIL");
  return failures != 0;
}
