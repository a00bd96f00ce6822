/* Which threads are changing what the GPU holds: see system.h. */
#include <string.h>

#include "system.h"

enum { CELLS = 1024, LINE = 64 };

struct cell {
  _Alignas(LINE) uint32_t inside;
};

static struct cell cells[CELLS]; /* never reused; threads beyond the last cell use the shared one */
static uint32_t cells_used;
__thread uint32_t *vgpu__changing_cell __attribute__((tls_model("initial-exec")));
uint32_t vgpu__changing_shared;

uint32_t *vgpu__changing_first(void) {
  uint32_t number = LOAD(cells_used) < CELLS ? __atomic_fetch_add(&cells_used, 1, __ATOMIC_SEQ_CST) : CELLS;
  vgpu__changing_cell = number < CELLS ? &cells[number].inside : &vgpu__changing_shared;
  return vgpu__changing_cell;
}

int vgpu__changing_any(void) {
  uint32_t used = LOAD_ACQUIRE(cells_used);
  if (LOAD_ACQUIRE(vgpu__changing_shared) != 0) return 1;
  for (uint32_t i = 0; i < used && i < CELLS; i++) {
    if (LOAD_ACQUIRE(cells[i].inside) != 0) return 1;
  }
  return 0;
}

/* In the child of a fork: the other threads exist only in the parent. */
void vgpu__changing_forget(void) {
  memset(cells, 0, sizeof cells);
  vgpu__changing_shared = 0;
}
