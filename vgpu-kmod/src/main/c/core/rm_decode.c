// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* Decoding of the driver's ioctls: the only place that reads layouts defined elsewhere. The input is not trusted. */
#include "rm_abi.h"

/*
 * The branches whose sources have been compared (github.com/NVIDIA/open-gpu-kernel-modules). Among everything used
 * here, three things differ between them. GPFIFO_SCHEDULE's parameters have a third byte since 575 (bSkipEnable of
 * NVA06C_CTRL_GPFIFO_SCHEDULE_PARAMS). NV_MEMORY_ALLOCATION_PARAMS grew at its end (550), as did FB_GET_INFO_V2's list.
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

static uint32_t vgpu__u32(const unsigned char *bytes, size_t offset) {
  uint32_t value;
  __builtin_memcpy(&value, bytes + offset, sizeof value);
  return value;
}

static uint64_t vgpu__u64(const unsigned char *bytes, size_t offset) {
  uint64_t value;
  __builtin_memcpy(&value, bytes + offset, sizeof value);
  return value;
}

/* The handles at the start of most forms. */
static void vgpu__handles(const unsigned char *bytes, struct vgpu_rm_call *into) {
  into->client = vgpu__u32(bytes, 0);
  into->parent = vgpu__u32(bytes, 4);
  into->object = vgpu__u32(bytes, 8);
}

static void vgpu__decode_alloc(const unsigned char *bytes, struct vgpu_rm_call *into) {
  int old = into->size == RM_ALLOC_SIZE;
  into->kind = RM_KIND_ALLOC;
  vgpu__handles(bytes, into);
  into->class_number = vgpu__u32(bytes, 12);
  into->params = vgpu__u64(bytes, 16);
  into->params_size = vgpu__u32(bytes, old ? 24 : 32);
  into->status_offset = old ? 28 : 40;
  if (into->params != 0) into->bytes_at = into->params + 64; /* NV_MEMORY_ALLOCATION_PARAMS.size, for a memory class */
}

static void vgpu__decode_alloc_memory(const unsigned char *bytes, struct vgpu_rm_call *into) {
  uint64_t limit = vgpu__u64(bytes, 32);
  into->kind = RM_KIND_ALLOC;
  vgpu__handles(bytes, into);
  into->class_number = vgpu__u32(bytes, 12);
  into->bytes = limit == VGPU_RM_NO_LIMIT ? limit : limit + 1;
  into->status_offset = 40;
}

static void vgpu__decode_control(const unsigned char *bytes, struct vgpu_rm_call *into) {
  into->kind = RM_KIND_CONTROL;
  into->client = vgpu__u32(bytes, 0);
  into->object = vgpu__u32(bytes, 4);
  into->command = vgpu__u32(bytes, 8);
  into->params = vgpu__u64(bytes, 16);
  into->params_size = vgpu__u32(bytes, 24);
  into->status_offset = 28;
}

/* RM_HEAP has functions of its own. Its allocation and its free are decoded like those of the other forms. */
static void vgpu__decode_heap(const unsigned char *bytes, struct vgpu_rm_call *into) {
  into->kind = RM_KIND_HEAP;
  into->client = vgpu__u32(bytes, 0);
  into->parent = vgpu__u32(bytes, 4);
  into->function = vgpu__u32(bytes, 8);
  into->status_offset = 20;
  if (into->function == RM_HEAP_FREE) {
    into->kind = RM_KIND_FREE;
    into->object = vgpu__u32(bytes, 44);
  } else if (into->function == RM_HEAP_ALLOC_SIZE) {
    uint32_t place = vgpu__u32(bytes, 56) >> 25 & 3; /* attr: 0 video memory, 1 host memory, 3 either */
    into->kind = RM_KIND_ALLOC;
    into->object = vgpu__u32(bytes, 44);
    into->class_number = place == 1 ? RM_CLASS_HOST_MEMORY : RM_CLASS_LOCAL_MEMORY;
    into->bytes_at = into->at + 88;
    if ((vgpu__u32(bytes, 52) & RM_HEAP_FLAG_VIRTUAL) != 0) { /* only addresses */
      into->class_number = 0x50a0;
      into->bytes_at = 0;
    }
    into->bytes = vgpu__u64(bytes, 88);
  }
}

static uint32_t vgpu__size_of(uint32_t number, uint32_t size) {
  switch (number) {
    case RM_ALLOC_MEMORY: return RM_ALLOC_MEMORY_SIZE;
    case RM_ALLOC_OBJECT: return RM_ALLOC_OBJECT_SIZE;
    case RM_FREE: return RM_FREE_SIZE;
    case RM_CONTROL: return RM_CONTROL_SIZE;
    case RM_ALLOC: return size == RM_ALLOC_SIZE ? RM_ALLOC_SIZE : RM_ALLOC_RIGHTS_SIZE;
    case RM_DUP: return RM_DUP_SIZE;
    case RM_HEAP: return RM_HEAP_SIZE;
    case RM_REGISTER_FD: return RM_REGISTER_FD_SIZE;
    case RM_CHECK_VERSION: return RM_VERSION_SIZE;
    default: return 0;
  }
}

static void vgpu__decode_body(const unsigned char *bytes, struct vgpu_rm_call *into) {
  switch (into->number) {
    case RM_ALLOC: vgpu__decode_alloc(bytes, into); break;
    case RM_CONTROL: vgpu__decode_control(bytes, into); break;
    case RM_HEAP: vgpu__decode_heap(bytes, into); break;
    case RM_ALLOC_MEMORY: vgpu__decode_alloc_memory(bytes, into); break;
    case RM_FREE:
      into->kind = RM_KIND_FREE;
      vgpu__handles(bytes, into);
      into->status_offset = 12;
      break;
    case RM_ALLOC_OBJECT:
      into->kind = RM_KIND_ALLOC;
      vgpu__handles(bytes, into);
      into->class_number = vgpu__u32(bytes, 12);
      into->status_offset = 16;
      break;
    case RM_DUP:
      into->kind = RM_KIND_DUP;
      vgpu__handles(bytes, into);
      into->source = vgpu__u32(bytes, 12);
      into->source_object = vgpu__u32(bytes, 16);
      into->status_offset = 24;
      break;
    case RM_REGISTER_FD:
      into->kind = RM_KIND_REGISTER;
      into->fd = (int32_t)vgpu__u32(bytes, 0);
      break;
    default:
      into->kind = RM_KIND_VERSION;
      into->version = vgpu__rm_version((const char *)bytes + 8, RM_VERSION_SIZE - 8);
      break;
  }
  if (into->status_offset != 0) into->status = vgpu__u32(bytes, into->status_offset);
}

void vgpu__rm_decode(const struct vgpu_rm_io *io, uint32_t word, uint64_t argument, struct vgpu_rm_call *into) {
  unsigned char bytes[RM_HEAP_SIZE];
  *into = (struct vgpu_rm_call){.kind = RM_KIND_OTHER, .number = word & 0xff, .size = word >> 16 & 0x3fff};
  if (into->number == RM_XFER) {
    if (into->size != RM_XFER_SIZE || io->read(io->self, bytes, argument, RM_XFER_SIZE) != 0) return;
    into->number = vgpu__u32(bytes, 0);
    into->size = vgpu__u32(bytes, 4);
    argument = vgpu__u64(bytes, 8);
    if (into->number == RM_XFER) return; /* the driver accepts one level of nesting */
  }
  uint32_t wanted = vgpu__size_of(into->number, into->size);
  if (wanted == 0 || into->size != wanted || io->read(io->self, bytes, argument, wanted) != 0) return;
  into->at = argument;
  vgpu__decode_body(bytes, into);
}

int vgpu__rm_bytes(const struct vgpu_rm_io *io, const struct vgpu_rm_call *call, uint64_t *bytes) {
  *bytes = call->bytes;
  if (call->bytes_at == 0) return 0;
  return io->read(io->self, bytes, call->bytes_at, sizeof *bytes) == 0 ? 0 : -1;
}
