/* Waking the monitor, which sleeps while the process has no work, and the heartbeats of this process. */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "turn.h"

uint32_t vgpu__monitor_asleep;

void vgpu__beat(uint64_t now) {
  struct vgpu_tenant *tenant;
  vgpu__pause_tick(now);
  for (unsigned i = 0; (tenant = vgpu__tenant_next(&i)) != NULL; i++) {
    STORE_RELEASE(tenant->slot->heartbeat_ns, now);
    vgpu__express_beat(tenant, now);
  }
}

void vgpu__monitor_wake(void) {
  if (__atomic_load_n(&vgpu__monitor_asleep, __ATOMIC_SEQ_CST) == 0 ||
      __atomic_exchange_n(&vgpu__monitor_asleep, 0, __ATOMIC_SEQ_CST) == 0)
    return;
  int kept = errno;
  /* The monitor's last beat may be old. Until it wakes, the seat must not take this process for stopped. */
  vgpu__beat(vgpu__now_ns());
  syscall(SYS_futex, &vgpu__monitor_asleep, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
  errno = kept;
}
