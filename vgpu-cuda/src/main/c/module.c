/* Modules and libraries: what they take on the device is measured after they were loaded, see measure.c. */
#include "hook.h"

#define MEASURED(call)                                \
  abi_result result = call;                           \
  if (result == ABI_SUCCESS) vgpu__measure_soon();    \
  return result

abi_result cuModuleLoad(void **module, const char *path) { MEASURED(REAL(cuModuleLoad)(module, path)); }

abi_result cuModuleLoadData(void **module, const void *image) { MEASURED(REAL(cuModuleLoadData)(module, image)); }

abi_result cuModuleLoadDataEx(void **module, const void *image, unsigned count, void *options, void **values) {
  MEASURED(REAL(cuModuleLoadDataEx)(module, image, count, options, values));
}

abi_result cuModuleLoadFatBinary(void **module, const void *image) { MEASURED(REAL(cuModuleLoadFatBinary)(module, image)); }

abi_result cuModuleUnload(void *module) { MEASURED(REAL(cuModuleUnload)(module)); }

abi_result cuLibraryLoadData(void **library, const void *code, void *jit_options, void **jit_values, unsigned jit_count, void *options,
                             void **values, unsigned count) {
  MEASURED(REAL(cuLibraryLoadData)(library, code, jit_options, jit_values, jit_count, options, values, count));
}

abi_result cuLibraryLoadFromFile(void **library, const char *path, void *jit_options, void **jit_values, unsigned jit_count,
                                 void *options, void **values, unsigned count) {
  MEASURED(REAL(cuLibraryLoadFromFile)(library, path, jit_options, jit_values, jit_count, options, values, count));
}

abi_result cuLibraryUnload(void *library) { MEASURED(REAL(cuLibraryUnload)(library)); }

/* Stack, heap and print buffer of kernels lie on the device. */
abi_result cuCtxSetLimit(int limit, size_t value) { MEASURED(REAL(cuCtxSetLimit)(limit, value)); }
