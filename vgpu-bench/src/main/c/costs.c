/* The cost of single calls: cuInit, launches, pairs of alloc and free. */
#define _GNU_SOURCE
#include "program.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAUNCHES = 512, PAIR_BYTES = 65536 };

/* Pins the thread to one core, so that it does not migrate within a block. Without permission, it runs anywhere. */
static void pin(const char *core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET((size_t)atol(core), &set);
  sched_setaffinity(0, sizeof set, &set);
}

/* With an argument, waits for a line before it begins and another before it ends, so that many can run in step. */
int mode_init(int count, char **arguments) {
  struct driver driver;
  CUdevice device;
  char line[128];
  uint64_t begin, initialised, end;
  (void)arguments;
  driver_load(&driver);
  if (count > 0) {
    say("ready");
    next_line(line, sizeof line);
  }
  begin = now_ns();
  check(driver.init(0), "cuInit");
  initialised = now_ns();
  check(driver.device_get(&device, 0), "cuDeviceGet");
  check(driver.context_create(&driver.context, 0, device), "cuCtxCreate");
  end = now_ns();
  say("init_ns %llu context_ns %llu", (unsigned long long)(initialised - begin),
      (unsigned long long)(end - initialised));
  if (count > 0) {
    next_line(line, sizeof line);
  }
  return 0;
}

static uint64_t launch_block(const struct driver *driver, CUgraphExec graph, unsigned launches) {
  uint64_t begin = now_ns();
  CUresult worst = CUDA_SUCCESS;
  for (unsigned i = 0; i < launches; i++) {
    CUresult result = graph != NULL ? driver->graph_launch(graph, NULL)
                                    : driver->launch(driver->null_kernel, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
    worst = result > worst ? result : worst;
  }
  uint64_t passed = now_ns() - begin;
  check(worst, "cuLaunchKernel");
  check(driver->context_synchronize(), "cuCtxSynchronize");
  return passed;
}

/* Runs kernels of equal length to completion, with a wait after each one or only after the last. */
static uint64_t work_block(const struct driver *driver, uint64_t kernel_ns, bool waits, unsigned launches) {
  uint64_t begin = now_ns();
  for (unsigned i = 0; i < launches; i++) {
    check(spin(driver, kernel_ns), "cuLaunchKernel");
    if (waits || i == launches - 1) {
      check(driver->context_synchronize(), "cuCtxSynchronize");
    }
  }
  return now_ns() - begin;
}

static void report(const char *what, uint64_t *block_ns, size_t blocks, size_t per_block) {
  uint64_t middle = median(block_ns, blocks);
  size_t slow = 0;
  for (size_t i = 0; i < blocks; i++) {
    slow += block_ns[i] > 3 * middle;
  }
  /* The blocks are sorted now. */
  say("%s median_ns %.3f p10_ns %.3f slow_percent %.2f", what, (double)middle / (double)per_block,
      (double)block_ns[blocks / 10] / (double)per_block, 100.0 * (double)slow / (double)blocks);
}

/* launch CPU [graph | work NS never|each] */
int mode_launch(int count, char **arguments) {
  struct driver driver;
  char line[128];
  CUgraphExec graph = NULL;
  uint64_t work_ns = count == 4 && strcmp(arguments[1], "work") == 0 ? strtoull(arguments[2], NULL, 10) : 0;
  if (count < 1) {
    return 2;
  }
  driver_start(&driver);
  pin(arguments[0]);
  if (count > 1 && strcmp(arguments[1], "graph") == 0) {
    graph = graph_of(&driver, driver.null_kernel, 1, 1, 0);
  }
  launch_block(&driver, graph, LAUNCHES);
  say("ready");
  while (next_line(line, sizeof line)) {
    unsigned blocks, launches;
    if (sscanf(line, "run %u %u", &blocks, &launches) != 2 || blocks == 0) {
      return 2;
    }
    uint64_t *block_ns = calloc(blocks, sizeof *block_ns);
    for (unsigned i = 0; i < blocks; i++) {
      block_ns[i] = work_ns == 0 ? launch_block(&driver, graph, launches)
                                 : work_block(&driver, work_ns, strcmp(arguments[3], "each") == 0, launches);
    }
    report("launch", block_ns, blocks, launches);
    free(block_ns);
  }
  return 0;
}

static uint64_t pair_block(const struct driver *driver, unsigned pairs) {
  CUresult worst = CUDA_SUCCESS;
  uint64_t begin = now_ns();
  for (unsigned i = 0; i < pairs; i++) {
    CUdeviceptr pointer = 0;
    CUresult result = driver->memory_alloc(&pointer, PAIR_BYTES);
    worst = result > worst ? result : worst;
    result = driver->memory_free(pointer);
    worst = result > worst ? result : worst;
  }
  uint64_t passed = now_ns() - begin;
  check(worst, "cuMemAlloc or cuMemFree");
  return passed;
}

static void set_live(const struct driver *driver, CUdeviceptr **live, size_t *held, size_t wanted) {
  for (; *held > wanted; (*held)--) {
    check(driver->memory_free((*live)[*held - 1]), "cuMemFree");
  }
  *live = realloc(*live, (wanted + 1) * sizeof **live);
  for (; *held < wanted; (*held)++) {
    check(driver->memory_alloc(&(*live)[*held], PAIR_BYTES), "cuMemAlloc");
  }
}

int mode_alloc(int count, char **arguments) {
  struct driver driver;
  char line[128];
  CUdeviceptr *live = NULL;
  size_t held = 0;
  if (count != 1) {
    return 2;
  }
  driver_start(&driver);
  pin(arguments[0]);
  say("ready");
  while (next_line(line, sizeof line)) {
    unsigned blocks, pairs;
    size_t wanted;
    if (sscanf(line, "live %zu", &wanted) == 1) {
      set_live(&driver, &live, &held, wanted);
      say("live %zu", held);
    } else if (sscanf(line, "run %u %u", &blocks, &pairs) == 2 && blocks > 0) {
      uint64_t *block_ns = calloc(blocks, sizeof *block_ns);
      for (unsigned i = 0; i < blocks; i++) {
        block_ns[i] = pair_block(&driver, pairs);
      }
      report("alloc", block_ns, blocks, pairs);
      free(block_ns);
    } else {
      return 2;
    }
  }
  return 0;
}
