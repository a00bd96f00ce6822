/*
 * Ways in by the library's name, if the hook is preloaded (trampolines-*.S). Every request of dlopen or dlmopen for the
 * driver or NVML gets the hook or the NVML stand-in: by name, by a relative or an absolute path, of any version, or by
 * another name of the same file.
 */
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "top.h"

void *vgpu__dlmopen_next;

/* The handle to return instead. done = 0: trampolines-*.S jumps to the C library's function. */
struct vgpu_opened {
  void *handle;
  uint64_t done;
};
/* caller: an address in the calling code. */
struct vgpu_opened vgpu__dlopen_own(const char *path, int flags, void *caller);
struct vgpu_opened vgpu__dlmopen_own(Lmid_t space, const char *path, int flags, void *caller);

/* "libcuda.so", "libcuda.so.1", "libcuda.so.580.95.05"; not "libcuda.sock". */
static int vgpu__is_named(const char *base, const char *library) {
  size_t length = strlen(library);
  return strncmp(base, library, length) == 0 && (base[length] == '\0' || base[length] == '.');
}

/* The NVML stand-in, if it is preloaded too; recognised by its marker. */
static void *vgpu__dlopen_nvml(int flags) {
  void *found = vgpu__dlopen("libnvidia-ml.so.1", flags | RTLD_NOLOAD);
  if (found == NULL || dlsym(found, "vgpu_nvml_version") != NULL) return found;
  dlclose(found);
  return NULL;
}

static void *vgpu__dlopen_self(int flags) {
  Dl_info self;
  return dladdr((void *)(uintptr_t)&vgpu_hook_version, &self) == 0 ? NULL : vgpu__dlopen(self.dli_fname, flags);
}

/*
 * Makes this library known as libcuda.so too; needed if it is not preloaded, since then dlopen is not ours. The C
 * library knows it as libcuda.so.1, by its SONAME. It learns another name by a search that leads to the same file: a
 * link of that name beside it (found by RPATH, which comes first in the search). 0: it is known as libcuda.so.
 */
int vgpu__dlopen_name(void) {
  Dl_info self;
  char path[PATH_MAX];
  if (dladdr((void *)(uintptr_t)&vgpu_hook_version, &self) == 0) return -1;
  const char *slash = strrchr(self.dli_fname, '/');
  int length = slash == NULL
                   ? -1
                   : snprintf(path, sizeof path, "%.*s/libcuda.so", (int)(slash - self.dli_fname), self.dli_fname);
  if (length < 0 || (size_t)length >= sizeof path || !vgpu__same_file(path, self.dli_fname)) return -1;
  return vgpu__dlopen("libcuda.so", RTLD_LAZY | RTLD_NOLOAD) == NULL ? -1 : 0;
}

static void *vgpu__map_of(void *address) {
  Dl_info info;
  void *map = NULL;
  return dladdr1(address, &info, &map, RTLD_DL_LINKMAP) == 0 ? NULL : map;
}

/* The handle to return for this path and file; NULL: the file itself. */
static void *vgpu__stand_in(const char *path, const char *file, int flags) {
  const char *slash = strrchr(path, '/'), *base = slash == NULL ? path : slash + 1, *nvml = vgpu__setting("VGPU_NVML");
  if (vgpu__is_named(base, "libcuda.so") || (file != NULL && vgpu__driver_is(file))) return vgpu__dlopen_self(flags);
  if (!vgpu__is_named(base, "libnvidia-ml.so") && (file == NULL || nvml == NULL || !vgpu__same_file(file, nvml)))
    return NULL;
  return vgpu__dlopen_nvml(flags);
}

/*
 * A library opened with RTLD_DEEPBIND finds the C library's dlopen before ours, and so do the libraries that it brings
 * along. So their imports are redirected to ours. Libraries brought along come after it in the linker's list.
 */
static void *vgpu__open_deep(const char *path, const char *file, int flags) {
  void *opened = vgpu__dlopen(path, flags | RTLD_NOLOAD), *before;
  if (opened != NULL) return opened; /* already loaded: its search order stays */
  opened = vgpu__dlopen(file == NULL ? path : file, flags);
  for (struct link_map *map = opened; map != NULL; map = map->l_next) {
    vgpu__redirect(map, "dlopen", (void *)(uintptr_t)&dlopen, &before);
    vgpu__redirect(map, "dlmopen", (void *)(uintptr_t)&dlmopen, &before);
  }
  return opened;
}

struct vgpu_opened vgpu__dlopen_own(const char *path, int flags, void *caller) {
  char found[PATH_MAX];
  vgpu__find_next(&vgpu__dlopen_next, "dlopen");
  if (path == NULL) return (struct vgpu_opened){.done = 0};
  const char *file = strchr(path, '/') != NULL                              ? path
                     : vgpu__search(path, vgpu__map_of(caller), found) == 0 ? found
                                                                            : NULL;
  void *own = vgpu__stand_in(path, file, flags);
  if (own != NULL) return (struct vgpu_opened){.handle = own, .done = 1};
  /* The dynamic linker replaces $ORIGIN and the like on behalf of the caller. */
  if ((flags & RTLD_DEEPBIND) == 0 || strchr(path, '$') != NULL) return (struct vgpu_opened){.done = 0};
  return (struct vgpu_opened){.handle = vgpu__open_deep(path, file, flags), .done = 1};
}

/* Whether a library opened in another namespace brought a driver along, or an NVML although the stand-in is loaded. */
static int vgpu__goes_past(void *opened) {
  if (dlsym(opened, "cuInit") != NULL && dlsym(opened, "vgpu_hook_version") == NULL) return 1;
  if (dlsym(opened, "nvmlInit_v2") == NULL || dlsym(opened, "vgpu_nvml_version") != NULL) return 0;
  void *stands_in = vgpu__dlopen_nvml(RTLD_NOW);
  if (stands_in != NULL) dlclose(stands_in);
  return stands_in != NULL;
}

/*
 * Another namespace has its own copy of each library, and nothing is preloaded there. A request for the driver itself
 * still gets the hook. A library that would bring another driver along, because it is linked with it, is refused.
 * dlerror shows the reason: it is the name of a missing file.
 */
struct vgpu_opened vgpu__dlmopen_own(Lmid_t space, const char *path, int flags, void *caller) {
  void *(*next)(Lmid_t, const char *, int);
  char found[PATH_MAX];
  struct vgpu_opened own = vgpu__dlopen_own(path, space == LM_ID_BASE ? flags : flags & ~RTLD_DEEPBIND, caller);
  vgpu__find_next(&vgpu__dlmopen_next, "dlmopen");
  if (own.done || space == LM_ID_BASE || path == NULL) return own;
  memcpy(&next, &vgpu__dlmopen_next, sizeof next);
  own.handle = next(space, path, flags);
  if (own.handle == NULL && strchr(path, '$') != NULL)
    return own; /* only the dynamic linker knows what this means there */
  /* The caller's own search path may still lead to it. */
  if (own.handle == NULL && strchr(path, '/') == NULL && vgpu__search(path, vgpu__map_of(caller), found) == 0) {
    own.handle = next(space, found, flags);
  }
  own.done = 1;
  if (own.handle != NULL && vgpu__goes_past(own.handle)) {
    dlclose(own.handle);
    vgpu__log("%s is not opened: it would load another driver into its linker namespace", path);
    own.handle = vgpu__dlopen("/vgpu: not opened, it would load another driver into its linker namespace", RTLD_NOW);
  }
  return own;
}
