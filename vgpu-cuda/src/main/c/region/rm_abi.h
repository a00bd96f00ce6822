/*
 * The driver's ioctl interface (/dev/nvidiactl) as far as the hook needs it, from the open kernel modules 535 to 595.
 * Requests are parsed by offset, never through a struct of ours. All input is checked first: sizes come from the
 * request.
 */
#ifndef VGPU_RM_ABI_H
#define VGPU_RM_ABI_H

#include <stddef.h>
#include <stdint.h>

#define RM_MAGIC 0x46u

enum {
  RM_FREE = 0x29,
  RM_CONTROL = 0x2a,
  RM_ALLOC = 0x2b,
  RM_CHECK_VERSION = 210,
  RM_XFER = 211,
};

/* Sizes. An allocation has two forms, distinguished by size. */
enum {
  RM_FREE_SIZE = 16,
  RM_ALLOC_SIZE = 32,
  RM_ALLOC_RIGHTS_SIZE = 48,
  RM_CONTROL_SIZE = 32,
  RM_XFER_SIZE = 16,
  RM_VERSION_SIZE = 72,
  RM_DISABLE_SIZE = 536,
  RM_MOST_CHANNELS = 64, /* in one call */
};

enum {
  RM_OK = 0,
  RM_INVALID_CLIENT = 0x23,
  RM_OBJECT_NOT_FOUND = 0x57,
};

#define RM_CLASS_ROOT 0x41u
#define RM_CLASS_DEVICE 0x80u
#define RM_CLASS_SUBDEVICE 0x2080u
#define RM_CLASS_GROUP 0xa06cu

#define RM_GROUP_SCHEDULE 0xa06c0101u
#define RM_GROUP_SET_TIMESLICE 0xa06c0103u
#define RM_GROUP_PREEMPT 0xa06c0105u
#define RM_CHANNEL_SCHEDULE 0xa06f0103u
#define RM_DISABLE_CHANNELS 0x2080110bu

/* KEPLER_CHANNEL_GPFIFO_A and its successors, up to Blackwell's. */
static inline int vgpu__rm_is_channel(uint32_t class_number) {
  switch (class_number) {
    case 0xa06fu: case 0xa16fu: case 0xb06fu: case 0xc06fu: case 0xc36fu: case 0xc46fu: case 0xc56fu: case 0xc86fu: case 0xc96fu:
    case 0xca6fu:
      return 1;
    default:
      return 0;
  }
}

/* What depends on the driver's version. */
struct vgpu_rm_abi {
  unsigned branch;        /* 0: unknown */
  unsigned schedule_size; /* of the parameters of GPFIFO_SCHEDULE */
};
/* The layout of a branch (580 of 580.95.05). branch is 0 if it was never compared; then level 2 is off. */
struct vgpu_rm_abi vgpu__rm_abi(unsigned branch);
/* "580.95.05" gives 580 << 16 | 95; 0 if the text is not a version. */
uint32_t vgpu__rm_version(const char *text, size_t size);

/* A parsed call; fields that its form lacks are 0. */
enum vgpu_rm_kind { RM_KIND_OTHER, RM_KIND_ALLOC, RM_KIND_FREE, RM_KIND_CONTROL, RM_KIND_VERSION };
struct vgpu_rm_call {
  enum vgpu_rm_kind kind;
  uint64_t at; /* address of its fields; with XFER not where the request points */
  uint32_t client, parent, object, class_number, command, params_size, status;
  uint64_t params;
  uint32_t status_offset;
  uint32_t version;
};
/*
 * Reads memory of this process that may be unmapped: 0, or -1. Slower than a load: only for the few calls that are
 * followed.
 */
int vgpu__peek(void *into, uint64_t from, size_t size);
int vgpu__poke(uint64_t into, const void *from, size_t size);
/* Parses a request; never reads unmapped memory. kind is OTHER for all calls that are not followed. */
void vgpu__rm_parse(unsigned long request, uint64_t argument, struct vgpu_rm_call *into);

#endif
