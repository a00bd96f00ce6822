/* Holds memory with known contents, and checks them. */
#define _GNU_SOURCE
#include "program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 64 << 20, MOST_PIECES = 4096 };

/* hold MIB: 'check' verifies the last word of each piece. Other input is ignored. */
int mode_hold(int count, char **arguments) {
  static CUdeviceptr pieces[MOST_PIECES];
  struct driver driver;
  char line[128];
  if (count != 1) {
    return 2;
  }
  driver_start(&driver);
  CUresult (*fill)(CUdeviceptr, unsigned, size_t);
  CUresult (*copy)(void *, CUdeviceptr, size_t);
  *(void **)&fill = driver_function("cuMemsetD32_v2");
  *(void **)&copy = driver_function("cuMemcpyDtoH_v2");
  size_t wanted = (size_t)atol(arguments[0]) / 64;
  for (size_t i = 0; i < wanted && i < MOST_PIECES; i++) {
    check(driver.memory_alloc(&pieces[i], PIECE), "cuMemAlloc");
    check(fill(pieces[i], 0x5eed0000u + (unsigned)i, PIECE / 4), "cuMemsetD32");
  }
  check(driver.context_synchronize(), "cuCtxSynchronize");
  say("ready");
  while (next_line(line, sizeof line)) {
    size_t wrong = 0;
    for (size_t i = 0; i < wanted && i < MOST_PIECES; i++) {
      unsigned last = 0;
      check(copy(&last, pieces[i] + PIECE - 4, sizeof last), "cuMemcpyDtoH");
      wrong += last != 0x5eed0000u + (unsigned)i;
    }
    say("wrong %zu", wrong);
  }
  return 0;
}
