/*
 * Utilisation relative to the share: the part of the virtual GPU's allowed GPU time that was used since the last
 * reading.
 *
 * A program that asks only once, like nvidia-smi, has no earlier reading. It waits until the reading of nvmlInit is old
 * enough.
 */
#include <pthread.h>
#include <string.h>

#include "interpose.h"
#include "sys.h"

#define NS_PER_MS UINT64_C(1000000)
enum { LEAST_WINDOW_MS = 100, LONGEST_WINDOW_MS = 10000, PERCENT = 100, PERMILLE = 1000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct vgpu_look before;
static struct vgpu_usage latest;
static uint64_t latest_ns;

void vgpu__usage_begin(void) {
  pthread_mutex_lock(&lock);
  if (before.now_ns == 0) vgpu__lease_look(NULL, &before);
  pthread_mutex_unlock(&lock);
}

static unsigned vgpu__percent(uint64_t from_ns, uint64_t to_ns, uint64_t window_ns, unsigned share_permille) {
  if (to_ns <= from_ns || window_ns == 0) return 0;
  double part = (double)(to_ns - from_ns) / (double)window_ns * PERMILLE / share_permille;
  return part >= 1 ? PERCENT : (unsigned)(part * PERCENT + 0.5);
}

static uint64_t vgpu__before_of(const struct vgpu_process *process) {
  for (unsigned i = 0; i < before.count; i++) {
    const struct vgpu_process *then = &before.processes[i];
    if (then->slot == process->slot && then->generation == process->generation) return then->gpu_ns;
  }
  return 0;
}

static void vgpu__compute(const struct vgpu_look *now) {
  uint64_t window = now->now_ns - before.now_ns;
  latest.time_us = vgpu__epoch_us();
  latest.percent = vgpu__percent(before.gpu_ns, now->gpu_ns, window, now->share_permille);
  latest.count = now->count;
  for (unsigned i = 0; i < now->count; i++) {
    const struct vgpu_process *process = &now->processes[i];
    latest.processes[i].pid = process->pid;
    latest.processes[i].percent = vgpu__percent(vgpu__before_of(process), process->gpu_ns, window, now->share_permille);
  }
}

void vgpu__usage_read(struct vgpu_usage *usage) {
  struct vgpu_look now;
  pthread_mutex_lock(&lock);
  uint64_t present = vgpu__now_ns();
  if (latest_ns == 0 || present - latest_ns >= LEAST_WINDOW_MS * NS_PER_MS) {
    uint64_t age = present - before.now_ns;
    if (before.now_ns == 0 || age > LONGEST_WINDOW_MS * NS_PER_MS) {
      vgpu__lease_look(NULL, &before);
      age = 0;
    }
    if (age < LEAST_WINDOW_MS * NS_PER_MS) vgpu__sleep_ns(LEAST_WINDOW_MS * NS_PER_MS - age);
    vgpu__lease_look(NULL, &now);
    vgpu__compute(&now);
    before = now;
    latest_ns = now.now_ns;
  }
  *usage = latest;
  pthread_mutex_unlock(&lock);
}
