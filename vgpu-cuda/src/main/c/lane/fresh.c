/*
 * Functions that were looked up and not launched yet. With lazy loading the driver loads a function in the call that
 * launches it first. That takes the host's time, not the GPU's. So that launch begins a batch, from which the call's
 * time is left out (vgpu__without_call).
 *
 * Two hash tables without collision lists: a function that another one displaces is launched like any other.
 */
#include "lane.h"

const void *vgpu__fresh[VGPU_FRESH];
static const void *loaded[VGPU_FRESH];

void vgpu__fresh_found(const void *function) {
  unsigned at = vgpu__fresh_index(function);
  if (function != NULL && LOAD(loaded[at]) != function) STORE(vgpu__fresh[at], function);
}

void vgpu__fresh_loaded(const void *function) {
  unsigned at = vgpu__fresh_index(function);
  STORE(loaded[at], function);
  if (LOAD(vgpu__fresh[at]) == function) STORE(vgpu__fresh[at], NULL);
}

void vgpu__fresh_launch(const void *function, CUstream stream) {
  if (function == NULL || !vgpu__is_fresh(function)) return;
  vgpu__fresh_loaded(function);
  vgpu__close_stream(stream);
  vgpu__stream_differs(stream);
}

void vgpu__fresh_forget(void) {
  for (int i = 0; i < VGPU_FRESH; i++) STORE(loaded[i], NULL);
}
