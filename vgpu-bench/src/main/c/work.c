/* Kernels that do a fixed amount of work, and note on the GPU when they began and ended. */
#include "program.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { PACE_LAUNCHES = 64, PACE_ROUNDS = 20000 };

static const char PTX[] = ".version 6.0\n"
                          ".target sm_52\n"
                          ".address_size 64\n"
                          ".visible .entry vgpu_work(.param .u64 ns, .param .u64 rounds, .param .u64 stamp)\n"
                          "{\n"
                          "  .reg .u64 %t<6>;\n"
                          "  .reg .u32 %x<2>;\n"
                          "  .reg .pred %p<3>;\n"
                          "  ld.param.u64 %t1, [rounds];\n"
                          "  ld.param.u64 %t2, [stamp];\n"
                          "  mov.u64 %t3, %globaltimer;\n"
                          "  mov.u32 %x1, %clock;\n"
                          "again:\n"
                          "  mad.lo.u32 %x1, %x1, 1664525, 1013904223;\n"
                          "  sub.u64 %t1, %t1, 1;\n"
                          "  setp.ne.u64 %p1, %t1, 0;\n"
                          "  @%p1 bra again;\n"
                          "  mov.u64 %t4, %globaltimer;\n"
                          /* Depends on the sum, so that the compiler keeps the loop. */
                          "  setp.eq.u32 %p2, %x1, 305419896;\n"
                          "  selp.u64 %t5, 0, %t4, %p2;\n"
                          "  st.global.u64 [%t2], %t3;\n"
                          "  st.global.u64 [%t2+8], %t5;\n"
                          "  ret;\n"
                          "}\n";

void work_open(struct work_kernel *work, const struct driver *driver, uint64_t kernel_ns, uint64_t rounds_per_ms) {
  CUmodule module;
  work->driver = driver;
  work->kernel_ns = kernel_ns;
  work->rounds = (uint64_t)((double)kernel_ns * (double)rounds_per_ms / 1e6);
  work->rounds += work->rounds == 0;
  check(driver->module_load(&module, PTX), "cuModuleLoadData");
  check(driver->module_function(&work->function, module, "vgpu_work"), "cuModuleGetFunction");
  CUresult (*host_alloc)(void **, size_t, unsigned) = driver_function("cuMemHostAlloc");
  check(host_alloc((void **)&work->stamps, sizeof(struct stamp) * STAMPS, 2 /* mapped */), "cuMemHostAlloc");
}

CUresult work_launch(struct work_kernel *work, unsigned grid) {
  CUdeviceptr stamp = (CUdeviceptr)(uintptr_t)&work->stamps[atomic_fetch_add(&work->launched, 1) % STAMPS];
  void *parameters[] = {&work->kernel_ns, &work->rounds, &stamp};
  return work->driver->launch(work->function, grid, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL);
}

size_t work_stamps(struct work_kernel *work, struct stamp *into) {
  uint64_t launched = atomic_load(&work->launched);
  uint64_t first = launched < STAMPS ? 0 : launched - STAMPS;
  size_t count = 0;
  for (uint64_t i = first; i < launched; i++) {
    struct stamp stamp = work->stamps[i % STAMPS];
    if (stamp.begin_ns != 0 && stamp.end_ns >= stamp.begin_ns) {
      into[count++] = stamp;
    }
  }
  return count;
}

int mode_pace(int count, char **arguments) {
  static struct stamp stamps[STAMPS];
  static uint64_t lengths[PACE_LAUNCHES];
  struct driver driver;
  struct work_kernel work;
  (void)count;
  (void)arguments;
  driver_start(&driver);
  work_open(&work, &driver, 1000000, PACE_ROUNDS);
  for (int i = 0; i < 10 * PACE_LAUNCHES; i++) { /* until the GPU has its usual clock */
    check(work_launch(&work, 1), "cuLaunchKernel");
  }
  check(driver.context_synchronize(), "cuCtxSynchronize");
  size_t done = work_stamps(&work, stamps), first = done < PACE_LAUNCHES ? 0 : done - PACE_LAUNCHES;
  for (size_t i = first; i < done; i++) {
    lengths[i - first] = stamps[i].end_ns - stamps[i].begin_ns;
  }
  uint64_t ns = median(lengths, done - first);
  say("pace rounds_per_ms %llu", ns == 0 ? 0ull : (unsigned long long)(PACE_ROUNDS * 1e6 / (double)ns));
  return 0;
}
