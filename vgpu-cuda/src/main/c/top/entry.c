/* Ways in: cuInit, and both forms of cuGetProcAddress. For dlopen see dlopen.c. */
#include <string.h>

#include "top.h"

/* Up to this CUDA version the table in vgpu_hooks.def is trusted; for newer ones the driver is asked again. */
enum { KNOWN_VERSION = 13000 };

static uint32_t foreign; /* the driver shows a GPU outside the leases: this process gets nothing */

abi_result cuInit(unsigned flags) {
  if (vgpu__driver_load() != 0) return ABI_NO_DEVICE;
  enum vgpu_mode mode = vgpu__attach();
  if (mode == VGPU_REFUSED || mode == VGPU_UNATTACHED) return ABI_SYSTEM_NOT_READY;
  int first = !LOAD_ACQUIRE(vgpu__driver_initialised) && LOAD(vgpu__attached);
  if (first) vgpu__devices_show(), vgpu__held_began();
  abi_result result = REAL(cuInit)(flags);
  if (first && result == ABI_SUCCESS && !vgpu__devices_are_ours()) {
    STORE(foreign, 1);
    vgpu__tenants_end();
  }
  if (result == ABI_SUCCESS) {
    if (LOAD(vgpu__attached)) vgpu__monitor_at_exit();
    STORE_RELEASE(vgpu__driver_initialised, 1);
  }
  return result == ABI_SUCCESS && LOAD(foreign) ? ABI_SYSTEM_NOT_READY : result;
}

struct form {
  const char *name, *symbol;
  void *ours;
  size_t real_offset; /* of its pointer in struct vgpu_driver */
  int since, thread;
};

#define PASS(name, class, since)
#define HANDLED(name, class, symbol, since, thread, params) \
  {#name, #symbol, (void *)(uintptr_t)&name, offsetof(struct vgpu_driver, name), since, thread},
#define SYNC_WORK(name, symbol, since, thread, params, args) HANDLED(name, WORK, symbol, since, thread, params)
#define ASYNC_WORK(name, symbol, since, thread, params, args) HANDLED(name, WORK, symbol, since, thread, params)
static const struct form forms[] = {
#include "vgpu_hooks.def"
};

static void *vgpu__real_of(const struct form *form) {
  void *real;
  memcpy(&real, (const char *)&vgpu_driver + form->real_offset, sizeof real);
  return real;
}

/* Whether the name still means the same form in a version newer than KNOWN_VERSION. */
static int vgpu__is_same_form(const char *symbol, const void *real, uint64_t flags) {
  void *then = NULL;
  abi_result result = REAL(cuGetProcAddress_v2)(symbol, &then, KNOWN_VERSION, flags, NULL);
  if (result == ABI_NOT_SUPPORTED) result = REAL(cuGetProcAddress)(symbol, &then, KNOWN_VERSION, flags);
  return result == ABI_SUCCESS && then == real;
}

/* A header may map one function's name to another: cuGraphInstantiate of 12.0 is cuGraphInstantiateWithFlags. */
static void *vgpu__renamed(const void *real) {
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    if (vgpu__real_of(&forms[i]) == real) return forms[i].ours;
  }
  return NULL;
}

/*
 * Our form of the function that the driver answered with `real`. A known address decides. Otherwise the table of
 * versions does, up to KNOWN_VERSION. Beyond that a name may mean an unknown form, and the driver's answer stands.
 */
static void *vgpu__ours_for(const char *symbol, void *real, int version, uint64_t flags) {
  const struct form *best = NULL;
  int thread = (flags & ABI_PROC_PER_THREAD_STREAM) != 0;
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    const struct form *form = &forms[i];
    if (strcmp(form->symbol, symbol) != 0) continue;
    if (vgpu__real_of(form) == real) return form->ours;
    if (form->since > version || (form->thread && !thread)) continue;
    if (best == NULL || form->thread > best->thread || (form->thread == best->thread && form->since > best->since)) {
      best = form;
    }
  }
  void *renamed = vgpu__renamed(real);
  if (renamed != NULL) return renamed;
  if (best == NULL) return NULL;
  if (version > KNOWN_VERSION && !vgpu__is_same_form(symbol, real, flags)) {
    vgpu__log("%s of CUDA %d is newer than this hook: passed through", symbol, version);
    return NULL;
  }
  /* The driver does not export it by name, so our form calls the driver's answer. */
  if (vgpu__driver_symbol(best->name) == NULL) memcpy((char *)&vgpu_driver + best->real_offset, &real, sizeof real);
  return best->ours;
}

static void vgpu__replace(const char *symbol, void **found_at, int version, uint64_t flags) {
  if (symbol == NULL || found_at == NULL || *found_at == NULL) return;
  void *ours = vgpu__ours_for(symbol, *found_at, version, flags);
  if (ours != NULL) *found_at = ours;
  else ADD(vgpu_tenant_current()->slot->passed_through, 1);
}

abi_result cuGetProcAddress(const char *symbol, void **found_at, int version, uint64_t flags) {
  if (vgpu__driver_load() != 0) return ABI_NO_DEVICE;
  abi_result result = REAL(cuGetProcAddress)(symbol, found_at, version, flags);
  if (result == ABI_SUCCESS) vgpu__replace(symbol, found_at, version, flags);
  return result;
}

abi_result cuGetProcAddress_v2(const char *symbol, void **found_at, int version, uint64_t flags, int *found) {
  if (vgpu__driver_load() != 0) return ABI_NO_DEVICE;
  abi_result result = REAL(cuGetProcAddress_v2)(symbol, found_at, version, flags, found);
  if (result == ABI_SUCCESS) vgpu__replace(symbol, found_at, version, flags);
  return result;
}
