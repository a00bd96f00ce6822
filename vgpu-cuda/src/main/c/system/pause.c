/*
 * Time for which this process stood still: stopped by a signal, frozen, or without a processor. Gaps between the
 * monitor's ticks show it. A batch that was open meanwhile has measured more than GPU time. This process gets no credit
 * for the GPU time that others used meanwhile.
 */
#include "system.h"

/* The shortest gap that counts as a pause. The monitor ticks every millisecond while there is work. */
static const uint64_t LEAST_NS = 5u * NS_PER_MS;
enum { TRIES = 1000 };

/* Guarded by `version`: after a stop, the monitor and the threads that read the pause resume at the same moment. */
static uint32_t version; /* odd during a change */
static uint64_t paused_ns;
static uint64_t ticked_ns; /* 0: the monitor sleeps, and its gaps do not count */

static uint64_t vgpu__since(uint64_t before, uint64_t now) {
  return before != 0 && (int64_t)(now - before) > (int64_t)LEAST_NS ? now - before : 0;
}

static void vgpu__change_pause(uint64_t ticked) {
  uint32_t seen = LOAD(version);
  if ((seen & 1) != 0 || !__atomic_compare_exchange_n(&version, &seen, seen + 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
    return;
  STORE_RELEASE(paused_ns, LOAD(paused_ns) + (ticked == 0 ? 0 : vgpu__since(LOAD(ticked_ns), ticked)));
  STORE_RELEASE(ticked_ns, ticked);
  STORE_RELEASE(version, seen + 2);
}

void vgpu__pause_tick(uint64_t now) { vgpu__change_pause(now); }

void vgpu__pause_sleep(void) { vgpu__change_pause(0); }

uint64_t vgpu__paused_ns(uint64_t now) {
  uint64_t sum = 0;
  for (int i = 0; i < TRIES; i++) {
    uint32_t seen = LOAD_ACQUIRE(version);
    uint64_t ticked = LOAD_ACQUIRE(ticked_ns);
    sum = LOAD_ACQUIRE(paused_ns) + vgpu__since(ticked, now);
    if ((seen & 1) == 0 && LOAD(version) == seen) break;
  }
  return sum;
}

void vgpu__pause_forget(void) {
  version = 0;
  ticked_ns = 0;
}
