/* Opens libraries through the C library's own dlopen, even if the hook's dlopen is preloaded. */
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "region.h"

void *vgpu__dlopen_next;

void vgpu__find_next(void **next, const char *name) {
  if (LOAD_ACQUIRE(*next) == NULL) {
    void *found = dlsym(RTLD_NEXT, name);
    STORE_RELEASE(*next, found);
  }
}

void *vgpu__dlopen(const char *path, int flags) {
  void *(*next)(const char *, int);
  vgpu__find_next(&vgpu__dlopen_next, "dlopen");
  memcpy(&next, &vgpu__dlopen_next, sizeof next);
  return next == NULL ? NULL : next(path, flags);
}

int vgpu__search(const char *name, void *map, char *into) {
  Dl_serinfo size, *list = NULL;
  struct stat seen;
  int found = 0;
  if (map == NULL || dlinfo(map, RTLD_DI_SERINFOSIZE, &size) != 0 || (list = malloc(size.dls_size)) == NULL) return -1;
  if (dlinfo(map, RTLD_DI_SERINFOSIZE, list) == 0 && dlinfo(map, RTLD_DI_SERINFO, list) == 0) {
    for (unsigned i = 0; i < list->dls_cnt && !found; i++) {
      int length = snprintf(into, PATH_MAX, "%s/%s", list->dls_serpath[i].dls_name, name);
      found = length > 0 && length < PATH_MAX && vgpu__stat(into, &seen) == 0;
    }
  }
  free(list);
  return found ? 0 : -1;
}
