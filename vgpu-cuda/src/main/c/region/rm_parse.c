/* Parses the driver's ioctl requests. The only place that reads a foreign layout. All input is untrusted. */
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "rm_abi.h"

/*
 * Branches whose sources were compared: github.com/NVIDIA/open-gpu-kernel-modules. One thing changed between them: from
 * 575 on, the parameters of GPFIFO_SCHEDULE have a third byte (bSkipEnable of NVA06C_CTRL_GPFIFO_SCHEDULE_PARAMS).
 */
struct vgpu_rm_abi vgpu__rm_abi(unsigned branch) {
  switch (branch) {
    case 535:
    case 550:
    case 555:
    case 560:
    case 565:
    case 570: return (struct vgpu_rm_abi){.branch = branch, .schedule_size = 2};
    case 575:
    case 580:
    case 590:
    case 595: return (struct vgpu_rm_abi){.branch = branch, .schedule_size = 3};
    default: return (struct vgpu_rm_abi){.branch = 0, .schedule_size = 0};
  }
}

/* Reads up to five digits. */
static uint32_t vgpu__number(const char **at, const char *end) {
  uint32_t number = 0;
  for (int digits = 0; *at < end && **at >= '0' && **at <= '9' && digits < 5; digits++, (*at)++) {
    number = number * 10 + (uint32_t)(**at - '0');
  }
  return number;
}

uint32_t vgpu__rm_version(const char *text, size_t size) {
  const char *at = text, *end = text + size;
  uint32_t branch = vgpu__number(&at, end);
  if (branch == 0 || branch > 0xffff || at >= end || *at != '.') return 0;
  at++;
  uint32_t minor = vgpu__number(&at, end);
  return branch << 16 | (minor & 0xffff);
}

/* Returns -1 also if a sandbox forbids the call. Then nothing is learnt and level 2 stays off. */
static int vgpu__transfer(long call, void *ours, uint64_t theirs, size_t size) {
  int kept = errno;
  struct iovec local = {.iov_base = ours, .iov_len = size};
  struct iovec remote = {.iov_base = (void *)(uintptr_t)theirs, .iov_len = size};
  long got = syscall(call, (long)getpid(), &local, 1L, &remote, 1L, 0L);
  errno = kept;
  return got == (long)size ? 0 : -1;
}

int vgpu__peek(void *into, uint64_t from, size_t size) { return vgpu__transfer(SYS_process_vm_readv, into, from, size); }

int vgpu__poke(uint64_t into, const void *from, size_t size) {
  return vgpu__transfer(SYS_process_vm_writev, (void *)(uintptr_t)from, into, size);
}

static uint32_t vgpu__u32(const unsigned char *bytes, size_t offset) {
  uint32_t value;
  memcpy(&value, bytes + offset, sizeof value);
  return value;
}

static uint64_t vgpu__u64(const unsigned char *bytes, size_t offset) {
  uint64_t value;
  memcpy(&value, bytes + offset, sizeof value);
  return value;
}

static void vgpu__parse_alloc(const unsigned char *bytes, size_t size, struct vgpu_rm_call *into) {
  into->kind = RM_KIND_ALLOC;
  into->client = vgpu__u32(bytes, 0);
  into->parent = vgpu__u32(bytes, 4);
  into->object = vgpu__u32(bytes, 8);
  into->class_number = vgpu__u32(bytes, 12);
  into->params = vgpu__u64(bytes, 16);
  int old = size == RM_ALLOC_SIZE;
  into->params_size = vgpu__u32(bytes, old ? 24 : 32);
  into->status_offset = old ? 28 : 40;
}

static void vgpu__parse_control(const unsigned char *bytes, struct vgpu_rm_call *into) {
  into->kind = RM_KIND_CONTROL;
  into->client = vgpu__u32(bytes, 0);
  into->object = vgpu__u32(bytes, 4);
  into->command = vgpu__u32(bytes, 8);
  into->params = vgpu__u64(bytes, 16);
  into->params_size = vgpu__u32(bytes, 24);
  into->status_offset = 28;
}

static void vgpu__parse_body(uint32_t number, uint32_t size, uint64_t at, struct vgpu_rm_call *into) {
  unsigned char bytes[RM_VERSION_SIZE];
  uint32_t wanted = number == RM_FREE            ? (uint32_t)RM_FREE_SIZE
                    : number == RM_CONTROL       ? (uint32_t)RM_CONTROL_SIZE
                    : number == RM_CHECK_VERSION ? (uint32_t)RM_VERSION_SIZE
                    : number != RM_ALLOC         ? 0
                    : size == RM_ALLOC_SIZE      ? (uint32_t)RM_ALLOC_SIZE
                                                 : (uint32_t)RM_ALLOC_RIGHTS_SIZE;
  if (wanted == 0 || size != wanted || vgpu__peek(bytes, at, size) != 0) return;
  into->at = at;
  if (number == RM_ALLOC) {
    vgpu__parse_alloc(bytes, size, into);
  } else if (number == RM_CONTROL) {
    vgpu__parse_control(bytes, into);
  } else if (number == RM_FREE) {
    into->kind = RM_KIND_FREE;
    into->client = vgpu__u32(bytes, 0);
    into->parent = vgpu__u32(bytes, 4);
    into->object = vgpu__u32(bytes, 8);
    into->status_offset = 12;
  } else {
    into->kind = RM_KIND_VERSION;
    into->version = vgpu__rm_version((const char *)bytes + 8, sizeof bytes - 8);
  }
  if (into->status_offset != 0) into->status = vgpu__u32(bytes, into->status_offset);
}

void vgpu__rm_parse(unsigned long request, uint64_t argument, struct vgpu_rm_call *into) {
  memset(into, 0, sizeof *into);
  uint32_t number = (uint32_t)(request & 0xff), magic = (uint32_t)(request >> 8 & 0xff);
  uint32_t size = (uint32_t)(request >> 16 & 0x3fff);
  if (magic != RM_MAGIC) return;
  if (number == RM_XFER) {
    unsigned char bytes[RM_XFER_SIZE];
    if (size != RM_XFER_SIZE || vgpu__peek(bytes, argument, sizeof bytes) != 0) return;
    number = vgpu__u32(bytes, 0);
    size = vgpu__u32(bytes, 4);
    argument = vgpu__u64(bytes, 8);
    if (number == RM_XFER) return; /* the driver nests it only once */
  }
  vgpu__parse_body(number, size, argument, into);
}
