/* Prints the layout as the C compiler sees it, in the text form of LayoutGenerator. */
#include <inttypes.h>
#include <stdio.h>

#include "shm.h"

#define CONST(name, value, doc) printf("CONST %s %" PRIu64 "\n", #name, SHM_##name);
#define BLOCK(block, size, doc) printf("BLOCK %s %zu\n", #block, sizeof(struct shm_##block));
#define ROW(block, type, name)                                                          \
  printf("FIELD %s %s %zu %zu %s\n", #block, #name, offsetof(struct shm_##block, name), \
         sizeof(((struct shm_##block *)0)->name), #type);
#define FIELD(block, type, name, offset, writer, order, doc) ROW(block, type, name)
#define ARRAY(block, type, count, name, offset, writer, order, doc) ROW(block, type, name)

int main(void) {
#include "vgpu_shm.def"
  return 0;
}
