/* Prints the shared region's layout as C sees it, in the same form as the generator of the Java constants. */
#include <inttypes.h>
#include <stdio.h>

#include "../../main/shm/shm.h"

int main(void) {
#define CONST(name, value, doc) printf("CONST %s %" PRIu64 "\n", #name, SHM_##name);
#define BLOCK(block, size, doc)
#define FIELD(block, type, name, offset, writer, order, doc)
#define ARRAY(block, type, count, name, offset, writer, order, doc)
#include "vgpu_shm.def"
#undef CONST
#undef BLOCK
#undef FIELD
#undef ARRAY
#define CONST(name, value, doc)
#define BLOCK(block, size, doc) printf("BLOCK %s %zu\n", #block, sizeof(struct shm_##block));
#define FIELD(block, type, name, offset, writer, order, doc)                            \
  printf("FIELD %s %s %zu %zu %s\n", #block, #name, offsetof(struct shm_##block, name), \
         sizeof(((struct shm_##block *)0)->name), #type);
#define ARRAY(block, type, count, name, offset, writer, order, doc) FIELD(block, type, name, offset, writer, order, doc)
#include "vgpu_shm.def"
  return 0;
}
