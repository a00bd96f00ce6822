/*
 * The driver's ioctls are decoded by the core of the kernel module (vgpu-kmod), which is compiled into the hook from
 * its own source: both follow the same calls by one table of layouts. The core reads the arguments through functions
 * of its host.
 */
#include <errno.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <core/rm_decode.c>

#include "region.h"

/* Returns -1 also if a sandbox forbids the call. Then nothing is learnt and level 2 stays off. */
static int vgpu__transfer(long call, void *ours, uint64_t theirs, size_t size) {
  int kept = errno;
  struct iovec local = {.iov_base = ours, .iov_len = size};
  struct iovec remote = {.iov_base = (void *)(uintptr_t)theirs, .iov_len = size};
  long got = syscall(call, (long)getpid(), &local, 1L, &remote, 1L, 0L);
  errno = kept;
  return got == (long)size ? 0 : -1;
}

int vgpu__peek(void *into, uint64_t from, size_t size) {
  return vgpu__transfer(SYS_process_vm_readv, into, from, size);
}

int vgpu__poke(uint64_t into, const void *from, size_t size) {
  return vgpu__transfer(SYS_process_vm_writev, (void *)(uintptr_t)from, into, size);
}

static int vgpu__read_own(void *self, void *into, uint64_t from, size_t size) {
  (void)self;
  return vgpu__peek(into, from, size);
}

static int vgpu__write_own(void *self, uint64_t into, const void *from, size_t size) {
  (void)self;
  return vgpu__poke(into, from, size);
}

void vgpu__rm_parse(unsigned long request, uint64_t argument, struct vgpu_rm_call *into) {
  static const struct vgpu_rm_io io = {.read = vgpu__read_own, .write = vgpu__write_own};
  /* The driver ignores this byte. The hook does not: it also sees ioctls on files of others. */
  if ((request >> 8 & 0xff) != RM_MAGIC) *into = (struct vgpu_rm_call){.kind = RM_KIND_OTHER};
  else vgpu__rm_decode(&io, (uint32_t)request, argument, into);
}
