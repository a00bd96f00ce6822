/* The check of the C tests. A test program defines `failures`, and fails if it is not 0 at the end. */
#ifndef VGPU_TEST_CHECK_H
#define VGPU_TEST_CHECK_H

#include <stdio.h>

#define CHECK(fine)                                                   \
  do {                                                                \
    if (!(fine)) {                                                    \
      failures++;                                                     \
      fprintf(stderr, "FAIL %s:%d: %s\n", __FILE__, __LINE__, #fine); \
    }                                                                 \
  } while (0)

#endif
