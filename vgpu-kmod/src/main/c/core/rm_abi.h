/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The driver's ioctl interface (/dev/nvidiactl): facts of the open kernel modules 535 to 595. Requests are parsed by
 * offset, never through a struct. The CUDA hook (vgpu-cuda, region/rm_decode.c) compiles this file and rm_decode.c too.
 */
#ifndef VGPU_RM_ABI_H
#define VGPU_RM_ABI_H

#include "rm_port.h"

#define RM_MAGIC 0x46u

enum {
  RM_ALLOC_MEMORY = 0x27,
  RM_ALLOC_OBJECT = 0x28,
  RM_FREE = 0x29,
  RM_CONTROL = 0x2a,
  RM_ALLOC = 0x2b,
  RM_DUP = 0x34,
  RM_HEAP = 0x4a,
  RM_REGISTER_FD = 201,
  RM_CHECK_VERSION = 210,
  RM_XFER = 211,
};

/* Request sizes. The two forms of an allocation are distinguished by their size. */
enum {
  RM_ALLOC_MEMORY_SIZE = 56,
  RM_ALLOC_OBJECT_SIZE = 20,
  RM_FREE_SIZE = 16,
  RM_ALLOC_SIZE = 32,
  RM_ALLOC_RIGHTS_SIZE = 48,
  RM_CONTROL_SIZE = 32,
  RM_DUP_SIZE = 28,
  RM_HEAP_SIZE = 184,
  RM_REGISTER_FD_SIZE = 4,
  RM_XFER_SIZE = 16,
  RM_VERSION_SIZE = 72,
  RM_DISABLE_SIZE = 536,
  RM_MOST_CHANNELS = 64, /* per call */
};

enum {
  RM_OK = 0,
  RM_INSUFFICIENT_RESOURCES = 0x1a,
  RM_INSUFFICIENT_PERMISSIONS = 0x1b,
  RM_INVALID_CLIENT = 0x23,
  RM_NO_MEMORY = 0x51,
  RM_NOT_SUPPORTED = 0x56,
  RM_OBJECT_NOT_FOUND = 0x57,
};

#define RM_CLASS_ROOT 0x41u
#define RM_CLASS_DEVICE 0x80u
#define RM_CLASS_SUBDEVICE 0x2080u
#define RM_CLASS_GROUP 0xa06cu
#define RM_CLASS_HOST_MEMORY 0x3eu
#define RM_CLASS_LOCAL_MEMORY 0x40u

#define RM_GROUP_SCHEDULE 0xa06c0101u
#define RM_GROUP_SET_TIMESLICE 0xa06c0103u
#define RM_GROUP_GET_TIMESLICE 0xa06c0104u
#define RM_GROUP_PREEMPT 0xa06c0105u
#define RM_GROUP_SET_INTERLEAVE 0xa06c0107u
#define RM_GROUP_MAKE_REALTIME 0xa06c0110u
#define RM_CHANNEL_SCHEDULE 0xa06f0103u
#define RM_CHANNEL_SET_INTERLEAVE 0xa06f0109u
#define RM_DISABLE_CHANNELS 0x2080110bu
#define RM_SET_SCHED_POLICY 0x20801115u
#define RM_FB_GET_INFO 0x20801301u /* 535 only: a list behind a pointer */
#define RM_FB_GET_INFO_V2 0x20801303u

/* Functions of RM_HEAP. */
enum {
  RM_HEAP_ALLOC_SIZE = 2,
  RM_HEAP_FREE = 3,
  RM_HEAP_INFO = 5,
  RM_HEAP_GET_ALIGNMENT = 18,
  RM_HEAP_OS_DESCRIPTOR = 27
};
#define RM_HEAP_FLAG_VIRTUAL 0x00080000u

/* KEPLER_CHANNEL_GPFIFO_A and its successors, up to Blackwell's. */
static inline int vgpu__rm_is_channel(uint32_t class_number) {
  switch (class_number) {
    case 0xa06fu:
    case 0xa16fu:
    case 0xb06fu:
    case 0xc06fu:
    case 0xc36fu:
    case 0xc46fu:
    case 0xc56fu:
    case 0xc86fu:
    case 0xc96fu:
    case 0xca6fu: return 1;
    default: return 0;
  }
}

/* The version-dependent part of the interface. */
struct vgpu_rm_abi {
  unsigned branch;        /* 0: unknown */
  unsigned schedule_size; /* of GPFIFO_SCHEDULE's parameters */
};
/* The layout of a branch (for example 580 of 580.95.05). Its branch is 0 if that branch has not been verified. */
struct vgpu_rm_abi vgpu__rm_abi(unsigned branch);
/* Parses "580.95.05" to 580 << 16 | 95; 0 if the text is not a version. */
uint32_t vgpu__rm_version(const char *text, size_t size);

/* Access to the caller's memory: 0, or another value if the address is not accessible. */
struct vgpu_rm_io {
  int (*read)(void *self, void *into, uint64_t from, size_t size);
  int (*write)(void *self, uint64_t into, const void *from, size_t size);
  void *self;
};

/* A decoded call. Fields that its form lacks are 0. */
enum vgpu_rm_kind {
  RM_KIND_OTHER,
  RM_KIND_ALLOC,
  RM_KIND_FREE,
  RM_KIND_CONTROL,
  RM_KIND_VERSION,
  RM_KIND_DUP,
  RM_KIND_HEAP, /* a function of RM_HEAP that neither allocates nor frees */
  RM_KIND_REGISTER,
};
struct vgpu_rm_call {
  enum vgpu_rm_kind kind;
  uint64_t at; /* the address of its fields; behind an XFER not the request's argument */
  uint32_t client, parent, object, class_number, command, params_size, status;
  uint64_t params;
  uint32_t status_offset;
  uint32_t version;
  uint32_t number, size;          /* of the ioctl; behind an XFER the inner ioctl's */
  uint32_t source, source_object; /* DUP: the object to duplicate */
  uint32_t function;              /* of RM_HEAP */
  int32_t fd;                     /* REGISTER_FD */
  uint64_t bytes_at;              /* the address of an allocation's size; 0: the call has none */
  uint64_t bytes;                 /* of RM_ALLOC_MEMORY and RM_HEAP; otherwise vgpu__rm_bytes reads it */
};

/*
 * Decodes a request. Does not trust anything that it reads, and reads only through io. As in the driver, only the
 * number and the size in the ioctl's word count. kind is OTHER for every call that the ledger does not follow.
 */
void vgpu__rm_decode(const struct vgpu_rm_io *io, uint32_t word, uint64_t argument, struct vgpu_rm_call *into);
/* The bytes that an allocation of a memory class requests, or received. Returns 0, or -1 if they cannot be read. */
int vgpu__rm_bytes(const struct vgpu_rm_io *io, const struct vgpu_rm_call *call, uint64_t *bytes);
/* The ioctl word of a call that this code makes itself. */
static inline uint32_t vgpu__rm_word(uint32_t number, uint32_t size) {
  return 3u << 30 | size << 16 | RM_MAGIC << 8 | number;
}

#endif
