/*
 * For tests of one source of the hook, linked with that source alone: a tenant whose pages are plain memory, on which
 * one thread works. What the source calls in other files is defined beside its tests.
 */
#ifndef VGPU_UNIT_H
#define VGPU_UNIT_H

#include <stdio.h>
#include <string.h>

#include "../../main/c/memory/memory.h"

static int failures;
#define CHECK(fine, ...)                                \
  do {                                                  \
    if (!(fine)) {                                      \
      failures++;                                       \
      printf("%s:%d: %s: ", __func__, __LINE__, #fine); \
      printf(__VA_ARGS__);                              \
      printf("\n");                                     \
    }                                                   \
  } while (0)
#define IS(value, expected) is(__func__, __LINE__, #value, (uint64_t)(value), (uint64_t)(expected))
static void is(const char *test, int line, const char *what, uint64_t value, uint64_t expected) {
  if (value == expected) return;
  failures++;
  printf("%s:%d: %s is %llu, not %llu\n", test, line, what, (unsigned long long)value, (unsigned long long)expected);
}

enum { OURS = 3, OTHER = 5 };

static struct shm_header seat_header, report_header;
static struct shm_grant grant;
static struct shm_ledger ledger;
static struct shm_slot slots[256]; /* more than there are, for numbers that are none */
static struct vgpu_tenant tenant;

static void begin(void) {
  memset(&grant, 0, sizeof grant);
  memset(&ledger, 0, sizeof ledger);
  memset(slots, 0, sizeof slots);
  grant.word = (uint32_t)SHM_GRANT_OPEN;
  tenant = (struct vgpu_tenant){.seat = &seat_header,
                                .grant = &grant,
                                .report = &report_header,
                                .ledger = &ledger,
                                .slots = slots,
                                .slot = &slots[OURS],
                                .slot_number = OURS,
                                .mode = VGPU_ATTACHED};
}

/* One thread waits for a lock only where a test holds it: see HELD. Else it was never unlocked. */
static unsigned waited, may_wait;
void vgpu__lock_slow(struct vgpu_lock *lock) {
  waited++;
  CHECK(may_wait, "a lock is still held");
  lock->word = 1;
}
void vgpu__unlock_slow(struct vgpu_lock *lock) { (void)lock; }
void vgpu__log(const char *format, ...) { (void)format; }

/* Does something while another thread holds a lock: it must wait for that lock, once. */
#define HELD(lock, action)                            \
  do {                                                \
    (lock).word = 1;                                  \
    waited = 0;                                       \
    may_wait = 1;                                     \
    action;                                           \
    may_wait = 0;                                     \
    CHECK(waited == 1, "does not wait: %s", #action); \
    (lock).word = 0;                                  \
  } while (0)

static void unlocked(void) {
  IS(tenant.ledger_lock.word, 0);
  IS(tenant.gate.pace_lock.word, 0);
  IS(tenant.gate.gaps_lock.word, 0);
}

#endif
