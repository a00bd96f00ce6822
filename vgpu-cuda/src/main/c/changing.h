/*
 * Who is about to change what the GPU holds. A charge is made before the driver is asked for memory, and given back after the driver
 * has freed it: between the two the charge is more than the truth, and whoever compares them must not take that for what contexts do
 * not need. A thread says so in a cell of its own, by two plain stores; one that ends leaves its cell at zero.
 */
#ifndef VGPU_CHANGING_H
#define VGPU_CHANGING_H

#include "hook.h"

extern __thread uint32_t *vgpu__changing_cell __attribute__((tls_model("initial-exec"))) VGPU_INTERNAL;
extern uint32_t vgpu__changing_shared VGPU_INTERNAL; /* for threads that found no cell of their own */
uint32_t *vgpu__changing_first(void);

/* Whether any thread is within such a change. What changes after this has seen none changes a charge as well, before it is over. */
int vgpu__changing_any(void);
void vgpu__changing_forget(void);

static inline uint32_t *vgpu__changing_begin(void) {
  uint32_t *cell = vgpu__changing_cell;
  if (UNLIKELY(cell == NULL)) cell = vgpu__changing_first();
  if (UNLIKELY(cell == &vgpu__changing_shared)) __atomic_fetch_add(cell, 1, __ATOMIC_SEQ_CST);
  else STORE_RELEASE(*cell, LOAD(*cell) + 1);
  return cell;
}

static inline void vgpu__changing_end(uint32_t **cell) {
  if (UNLIKELY(*cell == &vgpu__changing_shared)) __atomic_fetch_sub(*cell, 1, __ATOMIC_SEQ_CST);
  else STORE_RELEASE(**cell, LOAD(**cell) - 1);
}

/* From here to the end of the block. */
#define CHANGING() uint32_t *changing __attribute__((cleanup(vgpu__changing_end), unused)) = vgpu__changing_begin()

#endif
