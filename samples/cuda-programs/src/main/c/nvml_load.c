/* NVML as most programs find it: loaded by its name at run time. */
#include <dlfcn.h>
#include <string.h>

#include "nvml.h"

static int find(void *library, const char *name, void *function) {
  void *found = dlsym(library, name);
  memcpy(function, &found, sizeof found);
  return found != NULL;
}

const char *nvml_open(struct nvml *nvml) {
  void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  if (library == NULL) return dlerror();
  int all = find(library, "nvmlErrorString", &nvml->nvmlErrorString);
#define ROW(function, parameters) all &= find(library, #function, &nvml->function);
  NVML_FUNCTIONS(ROW)
#undef ROW
  return all ? NULL : "libnvidia-ml.so.1 lacks a function";
}
