/* A library that opens others for its callers. */
#include <dlfcn.h>

void *opens(const char *path, int flags);
void *opens_apart(Lmid_t space, const char *path, int flags);

void *opens(const char *path, int flags) {
  void *opened = dlopen(path, flags);
  return opened; /* no tail call: dlopen must see this library as its caller */
}

void *opens_apart(Lmid_t space, const char *path, int flags) {
  void *opened = dlmopen(space, path, flags);
  return opened;
}
