/* Modules and libraries. Their device memory is measured after loading: see measure.c. */
#include "../lane/lane.h"

/* If the quota has no room, the load is undone. If undoing fails, the memory is owed. */
#define LOADED(call, undo)                                                                \
  vgpu__load_begins();                                                                    \
  abi_result result = call;                                                               \
  int undone = result == ABI_SUCCESS && vgpu__measure_made() != 0 && undo == ABI_SUCCESS; \
  vgpu__load_ends();                                                                      \
  if (!undone) return result;                                                             \
  vgpu__measure_settle();                                                                 \
  return ABI_OUT_OF_MEMORY

#define MODULE(call) LOADED(call, REAL(cuModuleUnload)(*module))
#define LIBRARY(call) LOADED(call, REAL(cuLibraryUnload)(*library))

#define UNLOADED(call)                             \
  abi_result result = call;                        \
  vgpu__fresh_forget();                            \
  if (result == ABI_SUCCESS) vgpu__measure_soon(); \
  return result

abi_result cuModuleLoad(void **module, const char *path) { MODULE(REAL(cuModuleLoad)(module, path)); }

abi_result cuModuleLoadData(void **module, const void *image) { MODULE(REAL(cuModuleLoadData)(module, image)); }

abi_result cuModuleLoadDataEx(void **module, const void *image, unsigned count, void *options, void **values) {
  MODULE(REAL(cuModuleLoadDataEx)(module, image, count, options, values));
}

abi_result cuModuleLoadFatBinary(void **module, const void *image) {
  MODULE(REAL(cuModuleLoadFatBinary)(module, image));
}

abi_result cuModuleUnload(void *module) { UNLOADED(REAL(cuModuleUnload)(module)); }

abi_result cuLibraryLoadData(void **library, const void *code, void *jit_options, void **jit_values, unsigned jit_count,
                             void *options, void **values, unsigned count) {
  LIBRARY(REAL(cuLibraryLoadData)(library, code, jit_options, jit_values, jit_count, options, values, count));
}

abi_result cuLibraryLoadFromFile(void **library, const char *path, void *jit_options, void **jit_values,
                                 unsigned jit_count, void *options, void **values, unsigned count) {
  LIBRARY(REAL(cuLibraryLoadFromFile)(library, path, jit_options, jit_values, jit_count, options, values, count));
}

abi_result cuLibraryUnload(void *library) { UNLOADED(REAL(cuLibraryUnload)(library)); }

/* The kernels' stack, heap and print buffer are device memory. */
abi_result cuCtxSetLimit(int limit, size_t value) {
  size_t before = 0;
  abi_result known = REAL(cuCtxGetLimit)(&before, limit);
  LOADED(REAL(cuCtxSetLimit)(limit, value), (known != ABI_SUCCESS ? known : REAL(cuCtxSetLimit)(limit, before)));
}

/*
 * With lazy loading a module gets its memory when one of these is first called, or at its first launch. That call looks
 * like any other, and cannot be undone.
 */
#define PERHAPS_LOADED(name, params, args, then) \
  abi_result name params {                       \
    abi_result result = REAL(name) args;         \
    if (result != ABI_SUCCESS) return result;    \
    vgpu__measure_perhaps();                     \
    then;                                        \
    return result;                               \
  }

PERHAPS_LOADED(cuFuncLoad, (CUfunction function), (function), vgpu__fresh_loaded(function))
PERHAPS_LOADED(cuKernelGetFunction, (CUfunction * function, void *kernel), (function, kernel),
               vgpu__fresh_found(*function))
PERHAPS_LOADED(cuModuleGetFunction, (CUfunction * function, void *module, const char *name), (function, module, name),
               vgpu__fresh_found(*function))
PERHAPS_LOADED(cuLibraryGetKernel, (void **kernel, void *library, const char *name), (kernel, library, name),
               vgpu__fresh_found(*kernel))
PERHAPS_LOADED(cuLibraryGetModule, (void **module, void *library), (module, library), )
PERHAPS_LOADED(cuModuleGetGlobal, (uint32_t * pointer, unsigned *bytes, void *module, const char *name),
               (pointer, bytes, module, name), )
PERHAPS_LOADED(cuModuleGetGlobal_v2, (CUdeviceptr * pointer, size_t *bytes, void *module, const char *name),
               (pointer, bytes, module, name), )
PERHAPS_LOADED(cuLibraryGetGlobal, (CUdeviceptr * pointer, size_t *bytes, void *library, const char *name),
               (pointer, bytes, library, name), )

abi_result cuLibraryGetManaged(CUdeviceptr *pointer, size_t *bytes, void *library, const char *name) {
  STORE(vgpu__measure_less, 1);
  abi_result result = REAL(cuLibraryGetManaged)(pointer, bytes, library, name);
  if (result == ABI_SUCCESS) vgpu__measure_perhaps();
  return result;
}
