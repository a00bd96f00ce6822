/*
 * Whether a program is launch-bound: its host code is slower than its kernels, so the GPU runs out of work before each
 * launch. The gaps between the kernels of a batch are charged with them, but other tenants' work would fit there. The
 * seat is told how much of the GPU time was charged for such batches.
 */
#include "lane.h"

static const uint64_t MOST_EACH_NS = 250u * NS_PER_US; /* longer kernels are no small gaps apart */
enum { REMEMBERED = 4 };

/*
 * Before a batch of many launches: the last end event is asked, and is reached shortly after the work. So one starved
 * batch of the last four is enough. A batch without another in flight says nothing: its thread may have waited.
 */
void vgpu__starved_ask(struct vgpu_lane *lane) {
  const struct vgpu_batch *last = &lane->ring[(lane->head + lane->count - 1) % VGPU_RING];
  uint32_t starved = 0;
  if (lane->only && lane->count > 0 && last->end != NULL) {
    int entered = vgpu__context_enter(lane->context);
    starved = REAL(cuEventQuery)(last->end) == ABI_SUCCESS;
    vgpu__context_leave(entered);
  }
  lane->starved = (lane->starved << 1 | starved) & ((1u << REMEMBERED) - 1);
}

void vgpu__starved_charged(const struct vgpu_lane *lane, const struct vgpu_batch *batch, uint64_t took,
                           uint64_t charged) {
  if (lane->starved == 0 || batch->alone || batch->launches < 2 || took / batch->launches > MOST_EACH_NS) return;
  ADD(lane->tenant->slot->launch_bound_ns, charged);
}
