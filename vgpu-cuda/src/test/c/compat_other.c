/* Another preloaded library, like an allocator or a profiler: it interposes malloc and dlopen, and passes them on. */
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

static unsigned long calls;

unsigned long other_calls(void);
unsigned long other_calls(void) { return __atomic_load_n(&calls, __ATOMIC_RELAXED); }

extern void *__libc_malloc(size_t size);

void *malloc(size_t size) {
  __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
  return __libc_malloc(size);
}

void *dlopen(const char *path, int flags) {
  void *(*next)(const char *, int);
  void *found = dlsym(RTLD_NEXT, "dlopen");
  __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
  memcpy(&next, &found, sizeof next);
  return next(path, flags);
}
