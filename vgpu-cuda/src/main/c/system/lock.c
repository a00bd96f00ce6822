/* The slow half of the futex lock. */
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "system.h"

void vgpu__lock_slow(struct vgpu_lock *lock) {
  int kept = errno;
  for (int i = 0; i < 40; i++) {
    if (vgpu__try_lock(lock)) return;
    VGPU_RELAX();
  }
  while (__atomic_exchange_n(&lock->word, 2, __ATOMIC_ACQUIRE) != 0) {
    syscall(SYS_futex, &lock->word, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
  }
  errno = kept;
}

void vgpu__unlock_slow(struct vgpu_lock *lock) {
  int kept = errno;
  syscall(SYS_futex, &lock->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
  errno = kept;
}
