/* A module that must be compiled and loaded: its random constants keep it out of the driver's caches. */
#define _GNU_SOURCE
#include "program.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { COLD_KERNELS = 8, STEPS = 400, LINE_BYTES = 64, FRAME_BYTES = 512 };

static size_t add_kernel(char *text, size_t room, unsigned number, uint64_t *random) {
  size_t used = (size_t)snprintf(
      text, room,
      ".visible .entry vgpu_cold_%u(.param .u64 out)\n{\n  .reg .u64 %%t<2>;\n  .reg .u32 %%r<2>;\n"
      "  ld.param.u64 %%t1, [out];\n  mov.u32 %%r1, %%tid.x;\n",
      number);
  for (unsigned i = 0; i < STEPS; i++) {
    used += (size_t)snprintf(text + used, room - used, "  mad.lo.u32 %%r1, %%r1, 1664525, %u;\n",
                             (unsigned)(random_next(random) % 1000000007u));
  }
  return used + (size_t)snprintf(text + used, room - used, "  st.global.u32 [%%t1], %%r1;\n  ret;\n}\n");
}

CUmodule cold_module(const struct driver *driver, size_t variable_bytes) {
  uint64_t random = (now_ns() ^ (uint64_t)getpid() << 40) | 1;
  size_t room = (size_t)COLD_KERNELS * (STEPS * LINE_BYTES + FRAME_BYTES) + FRAME_BYTES;
  char *text = malloc(room);
  CUmodule module;
  if (text == NULL) {
    fail("malloc", 0);
  }
  size_t used = (size_t)snprintf(text, room, ".version 6.0\n.target sm_52\n.address_size 64\n");
  if (variable_bytes > 0) {
    used += (size_t)snprintf(text + used, room - used, ".visible .global .align 4 .b8 vgpu_cold_bytes[%zu];\n",
                             variable_bytes);
  }
  for (unsigned i = 0; i < COLD_KERNELS; i++) {
    used += add_kernel(text + used, room - used, i, &random);
  }
  check(driver->module_load(&module, text), "cuModuleLoadData");
  free(text);
  return module;
}

void cold_launches(const struct driver *driver, CUmodule module) {
  CUdeviceptr out;
  check(driver->memory_alloc(&out, 256), "cuMemAlloc");
  for (unsigned i = 0; i < COLD_KERNELS; i++) {
    char name[32];
    CUfunction function;
    void *parameters[] = {&out};
    snprintf(name, sizeof name, "vgpu_cold_%u", i);
    check(driver->module_function(&function, module, name), "cuModuleGetFunction");
    check(driver->launch(function, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL), "cuLaunchKernel");
  }
  check(driver->context_synchronize(), "cuCtxSynchronize");
  check(driver->memory_free(out), "cuMemFree");
}
