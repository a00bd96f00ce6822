/* Finding and loading the real driver, and binding its functions. */
#include <dlfcn.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "region.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
static int loaded;

static abi_result vgpu__missing(void) {
  return __atomic_load_n(&loaded, __ATOMIC_RELAXED) ? ABI_NOT_SUPPORTED : ABI_NOT_INITIALIZED;
}

#define PASS(name, class, since)
#define HANDLED(name, class, symbol, since, thread, params) \
  static abi_result missing_##name params { return vgpu__missing(); }
#define SYNC_WORK(name, symbol, since, thread, params, args) HANDLED(name, WORK, symbol, since, thread, params)
#define ASYNC_WORK(name, symbol, since, thread, params, args) HANDLED(name, WORK, symbol, since, thread, params)
#define OWN(name, params) \
  static abi_result missing_##name params { return vgpu__missing(); }
#include "vgpu_hooks.def"
VGPU_OWN_CALLS(OWN)
#undef HANDLED
#undef OWN
#pragma GCC diagnostic pop

struct vgpu_driver vgpu_driver = {
#define HANDLED(name, class, symbol, since, thread, params) .name = missing_##name,
#define OWN(name, params) .name = missing_##name,
#include "vgpu_hooks.def"
    VGPU_OWN_CALLS(OWN)
#undef HANDLED
#undef OWN
};

static void *handle;
static struct vgpu_lock load_lock;

static const char *const USUAL_PLACES[] = {
    "/usr/lib/" VGPU_MULTIARCH "/libcuda.so.1",
    "/usr/lib64/libcuda.so.1",
    "/usr/lib/" VGPU_MULTIARCH "/nvidia/current/libcuda.so.1",
    "/usr/local/nvidia/lib64/libcuda.so.1",
    "/usr/local/nvidia/lib/libcuda.so.1",
    "/usr/lib/wsl/lib/libcuda.so.1",
    "/usr/lib/libcuda.so.1",
    "/run/opengl-driver/lib/libcuda.so.1",
    "/usr/local/cuda/compat/libcuda.so.1",
};

int vgpu__same_file(const char *a, const char *b) {
  struct stat x, y;
  return vgpu__stat(a, &x) == 0 && vgpu__stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

int vgpu__driver_is(const char *path) {
  const char *named = vgpu__setting("VGPU_CUDA_DRIVER");
  if (named != NULL) return vgpu__same_file(path, named);
  for (size_t i = 0; i < sizeof USUAL_PLACES / sizeof *USUAL_PLACES; i++) {
    if (vgpu__same_file(path, USUAL_PLACES[i])) return 1;
  }
  return 0;
}

/* Opens `path` if it is a driver and not this library. The exported marker also identifies a copy of this library. */
static void *vgpu__open_driver(const char *path) {
  Dl_info self;
  if (dladdr((void *)(uintptr_t)&vgpu_hook_version, &self) != 0 && vgpu__same_file(path, self.dli_fname)) {
    vgpu__log("%s is this hook itself", path);
    return NULL;
  }
  void *opened = vgpu__dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (opened == NULL) {
    const char *why = dlerror();
    vgpu__log("cannot load the driver: %s", why == NULL ? path : why);
    return NULL;
  }
  if (dlsym(opened, "vgpu_hook_version") != NULL || dlsym(opened, "cuInit") == NULL) {
    vgpu__log("%s is not a CUDA driver", path);
    return NULL;
  }
  return opened;
}

/*
 * Forward compatibility: an image may bring a newer driver, in a directory that NVIDIA's packages call compat. It is
 * used where the dynamic linker would have used it: if it is the first in the program's search path.
 */
static void *vgpu__open_compatible(void) {
  char path[PATH_MAX];
  if (vgpu__search("libcuda.so.1", vgpu__dlopen(NULL, RTLD_NOW), path) != 0 || strstr(path, "/compat/") == NULL)
    return NULL;
  return vgpu__open_driver(path);
}

static void *vgpu__find_driver(void) {
  const char *path = vgpu__setting("VGPU_CUDA_DRIVER");
  void *compatible = vgpu__open_compatible();
  if (compatible != NULL) return compatible;
  if (path != NULL) {
    if (path[0] != '/') {
      vgpu__log("VGPU_CUDA_DRIVER=%s is not a full path", path);
      return NULL;
    }
    return vgpu__open_driver(path);
  }
  for (size_t i = 0; i < sizeof USUAL_PLACES / sizeof *USUAL_PLACES; i++) {
    struct stat seen;
    if (vgpu__stat(USUAL_PLACES[i], &seen) == 0) {
      void *opened = vgpu__open_driver(USUAL_PLACES[i]);
      if (opened != NULL) return opened;
    }
  }
  vgpu__log("no CUDA driver in the usual places; set VGPU_CUDA_DRIVER");
  return NULL;
}

static void vgpu__bind_all(void) {
  void *found;
/* ISO C has no cast from an object pointer to a function pointer, and dlsym returns an object pointer. */
#define OWN(name, params)       \
  found = dlsym(handle, #name); \
  if (found != NULL) memcpy(&vgpu_driver.name, &found, sizeof found);
#define HANDLED(name, class, symbol, since, thread, params) OWN(name, params)
#include "vgpu_hooks.def"
  VGPU_OWN_CALLS(OWN)
#undef HANDLED
#undef OWN
}

int vgpu__driver_load(void) {
  if (__atomic_load_n(&loaded, __ATOMIC_ACQUIRE)) return 0;
  vgpu__lock(&load_lock);
  if (!loaded) {
    void *opened = vgpu__find_driver();
    if (opened != NULL) {
      handle = opened;
      vgpu__bind_all();
      __atomic_store_n(&loaded, 1, __ATOMIC_RELEASE);
    }
  }
  vgpu__unlock(&load_lock);
  return loaded ? 0 : -1;
}

void vgpu__driver_forget(void) { load_lock.word = 0; }

void *vgpu__driver_handle(void) { return __atomic_load_n(&loaded, __ATOMIC_ACQUIRE) ? handle : NULL; }

void *vgpu__driver_symbol(const char *name) { return vgpu__driver_load() == 0 ? dlsym(handle, name) : NULL; }

/* The target of a trampoline's slot if the driver lacks the function, or if there is no driver. */
static abi_result vgpu__not_supported(void) { return vgpu__missing(); }

/*
 * Newer forms whose arguments begin with those of the older form. A program such as Numba looks up each name and takes
 * the newest form it finds. It finds these in the hook although the driver lacks them, and calls them as the older
 * form. The fourth, cuCtxSynchronize_v2, is in sync.c.
 */
static const struct {
  const char *name, *older;
} forms[] = {
    {"cuCtxGetDevice_v2", "cuCtxGetDevice"},
    {"cuDeviceGetUuid_v2", "cuDeviceGetUuid"},
    {"cuEventElapsedTime_v2", "cuEventElapsedTime"},
};

static void *vgpu__older_form(const char *name) {
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    if (strcmp(forms[i].name, name) == 0) return vgpu__driver_symbol(forms[i].older);
  }
  return NULL;
}

/* Called by trampolines-*.S at the first call of a function. Keeps the address only once the driver is loaded. */
void *vgpu__bind(struct vgpu_pass *slot) {
  void *found = vgpu__driver_symbol(slot->name);
  if (found == NULL) found = vgpu__older_form(slot->name);
  if (found == NULL) found = (void *)(uintptr_t)&vgpu__not_supported;
  if (__atomic_load_n(&loaded, __ATOMIC_RELAXED)) {
    __atomic_store_n(&slot->target, found, __ATOMIC_RELEASE);
  }
  return found;
}

/* The marker by which the hook recognises itself and its copies. */
const char *vgpu_hook_version(void) { return "1"; }
