/* Finds and loads the real NVML, and binds its functions. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../c/system/machine.h"
#include "interpose.h"
#include "sys.h"

static void *library;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static nvmlReturn_t vgpu__lacking(void) {
  return LOAD_ACQUIRE(library) != NULL ? NVML_FUNCTION_NOT_FOUND : NVML_UNINITIALIZED;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define PASS(name)
#define DENY(name)
#define HIDE(name)
#define HANDLED(name, params) \
  static nvmlReturn_t lacking_##name params { return vgpu__lacking(); }
#define TEXT(name, params) \
  static const char *lacking_##name params { return "Unknown Error"; }
#include "vgpu_nvml.def"
#undef HANDLED
#undef TEXT
#pragma GCC diagnostic pop

struct vgpu_nvml_real vgpu_nvml_real = {
#define HANDLED(name, params) .name = lacking_##name,
#define TEXT(name, params) .name = lacking_##name,
#include "vgpu_nvml.def"
#undef HANDLED
#undef TEXT
};

static const char *const USUAL_PLACES[] = {
    "/usr/lib/" VGPU_MULTIARCH "/libnvidia-ml.so.1",
    "/usr/lib64/libnvidia-ml.so.1",
    "/usr/lib/" VGPU_MULTIARCH "/nvidia/current/libnvidia-ml.so.1",
    "/usr/local/nvidia/lib64/libnvidia-ml.so.1",
    "/usr/local/nvidia/lib/libnvidia-ml.so.1",
    "/usr/lib/wsl/lib/libnvidia-ml.so.1",
    "/usr/lib/libnvidia-ml.so.1",
    "/run/opengl-driver/lib/libnvidia-ml.so.1",
};

const char *vgpu_nvml_version(void) { return "1"; }

/* Uses the C library's dlopen. The hook's comes first, and would return this very library. */
static void *vgpu__load_library(const char *path, int flags) {
  void *(*next)(const char *, int);
  void *found = dlsym(RTLD_NEXT, "dlopen");
  if (found == NULL) return NULL;
  memcpy(&next, &found, sizeof next);
  return next(path, flags);
}

static int vgpu__is_this(const char *path) {
  Dl_info self;
  struct stat mine, its;
  return dladdr((void *)(uintptr_t)&vgpu_nvml_version, &self) != 0 && vgpu__stat(path, &its) == 0 &&
         vgpu__stat(self.dli_fname, &mine) == 0 && its.st_dev == mine.st_dev && its.st_ino == mine.st_ino;
}

/*
 * Global scope, so that a program also finds functions by name that this library does not know. Local scope if our own
 * functions are not global: the real ones would then be found instead of ours.
 */
static int vgpu__scope(void) {
  return dlsym(RTLD_DEFAULT, "vgpu_nvml_version") == (void *)(uintptr_t)&vgpu_nvml_version ? RTLD_GLOBAL : RTLD_LOCAL;
}

static void *vgpu__open_real(const char *path) {
  struct stat seen;
  if (path[0] != '/' || vgpu__stat(path, &seen) != 0 || vgpu__is_this(path)) return NULL;
  void *opened = vgpu__load_library(path, RTLD_NOW | vgpu__scope());
  if (opened == NULL) {
    const char *why = dlerror();
    vgpu__say("cannot load NVML", why == NULL ? path : why);
    return NULL;
  }
  /* The marker identifies a copy of this library. */
  if (dlsym(opened, "vgpu_nvml_version") != NULL) return NULL;
  return dlsym(opened, "nvmlShutdown") == NULL ? NULL : opened;
}

static void *vgpu__find_real(void) {
  const char *named = getenv("VGPU_NVML");
  if (named != NULL && named[0] != '\0') return vgpu__open_real(named);
  for (size_t i = 0; i < sizeof USUAL_PLACES / sizeof *USUAL_PLACES; i++) {
    void *opened = vgpu__open_real(USUAL_PLACES[i]);
    if (opened != NULL) return opened;
  }
  return NULL;
}

static void vgpu__bind_all(void *opened) {
  void *found;
/* ISO C has no cast from an object pointer to a function pointer, and dlsym returns an object pointer. */
#define HANDLED(name, params)   \
  found = dlsym(opened, #name); \
  if (found != NULL) memcpy(&vgpu_nvml_real.name, &found, sizeof found);
#define TEXT(name, params) HANDLED(name, params)
#include "vgpu_nvml.def"
#undef HANDLED
#undef TEXT
}

int vgpu__real_load(void) {
  if (LOAD_ACQUIRE(library) != NULL) return 0;
  pthread_mutex_lock(&lock);
  if (library == NULL) {
    void *opened = vgpu__find_real();
    if (opened != NULL) {
      vgpu__bind_all(opened);
      __atomic_store_n(&library, opened, __ATOMIC_RELEASE);
    }
  }
  pthread_mutex_unlock(&lock);
  return library == NULL ? -1 : 0;
}

/* ---- called by the trampolines ---- */

enum refusal { NOT_REFUSED, DENIED, HIDDEN };

struct vgpu_nvml_slot {
  void *target;
  const char *name;
  uint64_t refusal; /* under a virtual GPU: enum refusal */
  uint64_t padding;
};

static nvmlReturn_t vgpu__denied(void) { return NVML_NO_PERMISSION; }

static nvmlReturn_t vgpu__hidden(void) { return NVML_NOT_SUPPORTED; }

void *vgpu__nvml_bind(struct vgpu_nvml_slot *slot) __attribute__((visibility("hidden")));

/* Called by trampolines-*.S. Keeps the address once the library is loaded. */
void *vgpu__nvml_bind(struct vgpu_nvml_slot *slot) {
  if (slot->refusal != NOT_REFUSED && vgpu__lease_mode() != VGPU_NVML_OPEN) {
    return slot->refusal == DENIED ? (void *)(uintptr_t)&vgpu__denied : (void *)(uintptr_t)&vgpu__hidden;
  }
  void *found = vgpu__real_load() == 0 ? dlsym(library, slot->name) : NULL;
  if (found == NULL) return (void *)(uintptr_t)&vgpu__lacking;
  __atomic_store_n(&slot->target, found, __ATOMIC_RELEASE);
  return found;
}

const char *nvmlErrorString(nvmlReturn_t code) {
  vgpu__real_load();
  return REAL(nvmlErrorString)(code);
}
