/*
 * The ways in by the library's name, where we are preloaded (trampolines.S): whatever dlopen or dlmopen asks for as the driver or NVML, by
 * its name, by a relative or an absolute path, of any version, is the hook or what stands in for NVML.
 */
#include <dlfcn.h>
#include <string.h>

#include "hook.h"

void *vgpu__dlopen_next, *vgpu__dlmopen_next;

/* What is given instead. Not done: the C library is to answer, by a jump. */
struct vgpu_opened {
  void *handle;
  uint64_t done;
};
struct vgpu_opened vgpu__dlopen_own(const char *path, int flags);
struct vgpu_opened vgpu__dlmopen_own(Lmid_t space, const char *path, int flags);

static void vgpu__find_next(void **next, const char *name) {
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

/* "libcuda.so", "libcuda.so.1", "libcuda.so.580.95.05"; not "libcuda.sock". */
static int vgpu__is_named(const char *base, const char *library) {
  size_t length = strlen(library);
  return strncmp(base, library, length) == 0 && (base[length] == '\0' || base[length] == '.');
}

/* What stands in for NVML, if it was preloaded too; it is told by its marker. */
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

struct vgpu_opened vgpu__dlopen_own(const char *path, int flags) {
  void *own = NULL;
  vgpu__find_next(&vgpu__dlopen_next, "dlopen");
  if (path != NULL) {
    const char *slash = strrchr(path, '/'), *base = slash == NULL ? path : slash + 1;
    if (vgpu__is_named(base, "libcuda.so")) own = vgpu__dlopen_self(flags);
    else if (vgpu__is_named(base, "libnvidia-ml.so")) own = vgpu__dlopen_nvml(flags);
  }
  return (struct vgpu_opened){.handle = own, .done = own != NULL};
}

/* Whether what was opened in a namespace of its own brought a driver along, or an NVML where one stands in for it. */
static int vgpu__goes_past(void *opened) {
  if (dlsym(opened, "cuInit") != NULL && dlsym(opened, "vgpu_hook_version") == NULL) return 1;
  if (dlsym(opened, "nvmlInit_v2") == NULL || dlsym(opened, "vgpu_nvml_version") != NULL) return 0;
  void *stands_in = vgpu__dlopen_nvml(RTLD_NOW);
  if (stands_in != NULL) dlclose(stands_in);
  return stands_in != NULL;
}

/*
 * Another namespace has its own copy of each library, and nothing is preloaded there. The driver itself is the hook all the same; what
 * would bring another one along, as a library that is linked with it, is refused. dlerror says why: by the name of a file that is none.
 */
struct vgpu_opened vgpu__dlmopen_own(Lmid_t space, const char *path, int flags) {
  void *(*next)(Lmid_t, const char *, int);
  struct vgpu_opened own = vgpu__dlopen_own(path, flags);
  vgpu__find_next(&vgpu__dlmopen_next, "dlmopen");
  if (own.done || space == LM_ID_BASE || path == NULL) return own;
  memcpy(&next, &vgpu__dlmopen_next, sizeof next);
  own.handle = next(space, path, flags);
  if (own.handle == NULL) return own; /* asked for in its caller's name, it may be found */
  own.done = 1;
  if (vgpu__goes_past(own.handle)) {
    dlclose(own.handle);
    vgpu__log("%s is not opened: it brings a driver into a namespace of its own", path);
    own.handle = vgpu__dlopen("/vgpu: not opened, it brings a driver into a namespace of its own", RTLD_NOW);
  }
  return own;
}
