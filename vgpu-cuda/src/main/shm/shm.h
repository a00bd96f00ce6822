/* The structs and constants of the shared region. The preprocessor makes them from vgpu_shm.def. */
#ifndef VGPU_SHM_H
#define VGPU_SHM_H

#include <stddef.h>
#include <stdint.h>

typedef uint8_t shm_u8;
typedef uint32_t shm_u32;
typedef uint64_t shm_u64;
typedef int64_t shm_i64;

/* Each BLOCK closes the struct before it and opens its own. The first and last braces are written here. */
struct shm_none {
  char none;
#define CONST(name, value, doc)
#define BLOCK(block, size, doc) \
  }                             \
  ;                             \
  struct shm_##block {
#define FIELD(block, type, name, offset, writer, order, doc) shm_##type name;
#define ARRAY(block, type, count, name, offset, writer, order, doc) shm_##type name[count];
#include "vgpu_shm.def"
#undef CONST
#undef BLOCK
#undef FIELD
#undef ARRAY
};

#define CONST(name, value, doc) static const uint64_t SHM_##name __attribute__((unused)) = value;
#define BLOCK(block, size, doc) _Static_assert(sizeof(struct shm_##block) == (size), #block);
#define FIELD(block, type, name, offset, writer, order, doc) \
  _Static_assert(offsetof(struct shm_##block, name) == (offset), #block "." #name);
#define ARRAY(block, type, count, name, offset, writer, order, doc) \
  _Static_assert(offsetof(struct shm_##block, name) == (offset), #block "." #name);
#include "vgpu_shm.def"
#undef CONST
#undef BLOCK
#undef FIELD
#undef ARRAY

#endif
