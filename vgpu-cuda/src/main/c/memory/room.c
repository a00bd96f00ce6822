/*
 * The driver gives back a killed program's memory long after the program is gone: 146 ms on an H100
 * (site/results/gpu-check-nvidia-h100-80gb-hbm3-580.159.04-part1.txt). The ledger has it back earlier. Once a second
 * this process waits so long; otherwise a program that tries until the driver refuses would be slow.
 */
#include "memory.h"

static const uint64_t ROOM_WITHIN_NS = 250000000, ROOM_EVERY_NS = 1000000000, ROOM_LOOK_NS = 5000000;

int vgpu__await_room(const struct vgpu_tenant *tenant) {
  static uint64_t begun;
  if (!vgpu__is_charged(tenant)) return 0;
  uint64_t now = vgpu__now_ns(), since = LOAD(begun);
  if ((since == 0 || now - since >= ROOM_EVERY_NS) &&
      __atomic_compare_exchange_n(&begun, &since, now, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    since = now;
  if (now - since >= ROOM_WITHIN_NS) return 0;
  vgpu__sleep_ns(ROOM_LOOK_NS);
  return 1;
}
