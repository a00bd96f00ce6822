/* Checks, and the roles that a hooked program plays (roles.c). */
#ifndef VGPU_TEST_H
#define VGPU_TEST_H

#include <stdio.h>

#define GET(x) __atomic_load_n(&(x), __ATOMIC_SEQ_CST)
extern int failures;
#define CHECK(fine, ...)                                         \
  do {                                                           \
    if (!(fine)) {                                               \
      failures++;                                                \
      fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #fine); \
      fprintf(stderr, __VA_ARGS__);                              \
      fputc('\n', stderr);                                       \
    }                                                            \
  } while (0)

int run_as(const char *role, const char *argument);

#endif
