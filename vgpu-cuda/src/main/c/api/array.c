/* Arrays and mipmaps: their shape determines their memory. */
#include "../lane/lane.h"

/* Bits of one element. Other formats are compressed or planar, and are charged the next larger size. */
static uint64_t vgpu__format_bits(int format) {
  switch (format) {
    case 0x01: /* 8-bit integers, unsigned and signed */
    case 0x08:
    case 0xc0: /* normalised 8-bit integers */
    case 0xc1:
    case 0xc2:
    case 0xc3:
    case 0xc4:
    case 0xc5: return 8;
    case 0x02: /* 16-bit integers */
    case 0x09:
    case 0x10: /* half */
    case 0xc6:
    case 0xc7:
    case 0xc8:
    case 0xc9:
    case 0xca:
    case 0xcb: return 16;
    case 0x91:
    case 0x92:
    case 0x9d:
    case 0x9e: /* block-compressed, 4 bits per texel */
    case 0x93: return 8;
    default: return 32;
  }
}

static uint64_t vgpu__times(uint64_t a, uint64_t b) {
  uint64_t product;
  return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static uint64_t vgpu__array_bytes(const struct abi_array3d *shape) {
  if ((shape->flags & (ABI_ARRAY3D_SPARSE | ABI_ARRAY3D_DEFERRED)) != 0) return 0;
  uint64_t texels = vgpu__times(vgpu__times(shape->width, shape->height == 0 ? 1 : shape->height),
                                shape->depth == 0 ? 1 : shape->depth);
  uint64_t bits = vgpu__format_bits(shape->format) * (shape->channels == 0 ? 1 : shape->channels);
  return vgpu__times(texels, bits) == UINT64_MAX ? UINT64_MAX : texels * bits / 8;
}

static uint64_t vgpu__mipmap_bytes(struct abi_array3d shape, unsigned levels) {
  uint64_t sum = 0;
  int layered = (shape.flags & ABI_ARRAY3D_LAYERED) != 0;
  for (unsigned level = 0; level < levels && level < 32; level++) {
    uint64_t bytes = vgpu__array_bytes(&shape);
    /* Each level is an array of its own and starts at a whole unit. */
    uint64_t end = SHM_MEMORY_UNIT - 1;
    if (__builtin_add_overflow(bytes, end, &bytes) || __builtin_add_overflow(sum, bytes & ~end, &sum))
      return UINT64_MAX;
    if (shape.width > 1) shape.width /= 2;
    if (shape.height > 1) shape.height /= 2;
    if (shape.depth > 1 && !layered) shape.depth /= 2;
  }
  return sum;
}

static abi_result vgpu__keep(struct vgpu_tenant *tenant, int gpu, abi_result result, uint64_t key, uint64_t bytes) {
  if (result != ABI_SUCCESS) vgpu__give_back(tenant, gpu, bytes);
  else if (bytes != 0) vgpu__table_put(tenant, gpu, KIND_ARRAY, key, bytes, vgpu__context_number());
  return result;
}

#define MAKE_ARRAY(bytes_expression, call)                                          \
  CHANGING();                                                                       \
  struct vgpu_tenant *tenant = vgpu_tenant_current();                               \
  if (handle == NULL || shape == NULL || !vgpu__is_charged(tenant)) return call;    \
  uint64_t bytes = bytes_expression;                                                \
  int gpu = vgpu__gpu_here(tenant);                                                 \
  if (vgpu__reserve_or_trim(tenant, gpu, bytes) != 0) return vgpu__refusal(tenant); \
  abi_result result;                                                                \
  IN_ROOM(result, call);                                                            \
  return vgpu__keep(tenant, gpu, result, result == ABI_SUCCESS ? (uint64_t)(uintptr_t)*handle : 0, bytes)

#define SHAPE(h, d, f) \
  &(struct abi_array3d) { shape->width, h, d, shape->format, shape->channels, f }

abi_result cuArrayCreate(CUarray *handle, const struct abi_array_v1 *shape) {
  MAKE_ARRAY(vgpu__array_bytes(SHAPE(shape->height, 0, 0)), REAL(cuArrayCreate)(handle, shape));
}

abi_result cuArrayCreate_v2(CUarray *handle, const struct abi_array *shape) {
  MAKE_ARRAY(vgpu__array_bytes(SHAPE(shape->height, 0, 0)), REAL(cuArrayCreate_v2)(handle, shape));
}

abi_result cuArray3DCreate(CUarray *handle, const struct abi_array3d_v1 *shape) {
  MAKE_ARRAY(vgpu__array_bytes(SHAPE(shape->height, shape->depth, shape->flags)), REAL(cuArray3DCreate)(handle, shape));
}

abi_result cuArray3DCreate_v2(CUarray *handle, const struct abi_array3d *shape) {
  MAKE_ARRAY(vgpu__array_bytes(shape), REAL(cuArray3DCreate_v2)(handle, shape));
}

abi_result cuMipmappedArrayCreate(CUmipmappedArray *handle, const struct abi_array3d *shape, unsigned levels) {
  MAKE_ARRAY(vgpu__mipmap_bytes(*shape, levels), REAL(cuMipmappedArrayCreate)(handle, shape, levels));
}

#define FREE_ARRAY(call)                                                                          \
  CHANGING();                                                                                     \
  struct vgpu_record record;                                                                      \
  uint64_t key = (uint64_t)(uintptr_t)array;                                                      \
  int known = vgpu__table_take(KIND_ARRAY, key, &record);                                         \
  abi_result result = call;                                                                       \
  if (!known) return result;                                                                      \
  if (result == ABI_SUCCESS) vgpu__give_back(record.tenant, record.gpu, record.bytes);            \
  else vgpu__table_put(record.tenant, record.gpu, KIND_ARRAY, key, record.bytes, record.context); \
  return result

abi_result cuArrayDestroy(CUarray array) { FREE_ARRAY(REAL(cuArrayDestroy)(array)); }

abi_result cuMipmappedArrayDestroy(CUmipmappedArray array) { FREE_ARRAY(REAL(cuMipmappedArrayDestroy)(array)); }
