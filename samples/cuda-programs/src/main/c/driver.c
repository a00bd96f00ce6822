/* Finds the driver's functions, and opens a device. */
#include "driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "kernels_ptx.h"
#include "program.h"

#define DRIVER_LIBRARY "libcuda.so.1"
#define ASKED_VERSION 12000
#define ASKED_VERSION_V1 11030
#define PER_THREAD 2ull

typedef CUresult (*get_proc_address_v1)(const char *name, void **function, int version, uint64_t flags);
typedef CUresult (*get_proc_address_v2)(const char *name, void **function, int version, uint64_t flags, int *status);

/* Where functions are found; one of the three is set. */
struct source {
  void *library;
  get_proc_address_v1 v1;
  get_proc_address_v2 v2;
  uint64_t flags;
};

static void *find(const struct source *source, const char *name, const char *symbol, const char *thread_symbol) {
  void *function = NULL;
  int status = 0;
  CUresult error = CUDA_SUCCESS;
  if (source->v2 != NULL) {
    error = source->v2(name, &function, ASKED_VERSION, source->flags, &status);
  } else if (source->v1 != NULL) {
    error = source->v1(name, &function, ASKED_VERSION_V1, source->flags);
  } else {
    function = dlsym(source->library, (source->flags & PER_THREAD) != 0 ? thread_symbol : symbol);
  }
  return error == CUDA_SUCCESS ? function : NULL;
}

static void bind_all(struct driver *driver, const struct source *source) {
  void *found;
  /* A copy, because ISO C has no cast between pointers to functions and to objects. */
#define BIND(name, suffix, per_thread, parameters)                       \
  found = find(source, #name, #name #suffix, #name #suffix #per_thread); \
  memcpy(&driver->name, &found, sizeof(found));
  DRIVER_FUNCTIONS(BIND)
#undef BIND
}

static int find_proc_address(struct source *source, const char *symbol, void *to, size_t size) {
  void *found = dlsym(source->library, symbol);
  if (found == NULL) {
    program_error("the driver has no %s", symbol);
    return -1;
  }
  memcpy(to, &found, size);
  return 0;
}

int driver_bind(struct driver *driver, enum binding binding) {
  struct source source = {0};
  int rc = 0;
  memset(driver, 0, sizeof(*driver));
  if (binding == BIND_LINK) {
    return driver_link(driver);
  }
  source.library = dlopen(DRIVER_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (source.library == NULL) {
    program_error("no CUDA driver: %s", dlerror());
    return -1;
  }
  if (binding == BIND_DLSYM_THREAD || binding == BIND_PROC_ADDRESS_THREAD) {
    source.flags = PER_THREAD;
  }
  if (binding == BIND_PROC_ADDRESS || binding == BIND_PROC_ADDRESS_THREAD) {
    rc = find_proc_address(&source, "cuGetProcAddress_v2", &source.v2, sizeof(source.v2));
  } else if (binding == BIND_PROC_ADDRESS_V1) {
    rc = find_proc_address(&source, "cuGetProcAddress", &source.v1, sizeof(source.v1));
  }
  if (rc == 0) {
    bind_all(driver, &source);
  }
  return rc;
}

/* For a driver that cannot even tell the names of its errors. */
static const char *known_error_name(CUresult error) {
  static const struct {
    CUresult error;
    const char *name;
  } known[] = {{2, "CUDA_ERROR_OUT_OF_MEMORY"},      {3, "CUDA_ERROR_NOT_INITIALIZED"},
               {100, "CUDA_ERROR_NO_DEVICE"},        {101, "CUDA_ERROR_INVALID_DEVICE"},
               {800, "CUDA_ERROR_NOT_PERMITTED"},    {801, "CUDA_ERROR_NOT_SUPPORTED"},
               {802, "CUDA_ERROR_SYSTEM_NOT_READY"}, {999, "CUDA_ERROR_UNKNOWN"}};
  for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
    if (known[i].error == error) {
      return known[i].name;
    }
  }
  return "unknown error";
}

const char *driver_error_name(const struct driver *driver, CUresult error) {
  const char *text = NULL;
  if (driver->cuGetErrorName == NULL || driver->cuGetErrorName(error, &text) != CUDA_SUCCESS || text == NULL) {
    return known_error_name(error);
  }
  return text;
}

int device_failed(const struct device *device, const char *call, CUresult error) {
  program_error("%s: %s (%d)", call, driver_error_name(&device->driver, error), error);
  return 1;
}

int device_open(struct device *device, enum binding binding, int ordinal) {
  memset(device, 0, sizeof(*device));
  if (driver_bind(&device->driver, binding) != 0) {
    return 1;
  }
  if (CALL(device, cuInit, 0) != 0 || CALL(device, cuDeviceGet, &device->handle, ordinal) != 0 ||
      CALL(device, cuDeviceGetName, device->name, (int)sizeof(device->name), device->handle) != 0 ||
      CALL(device, cuDevicePrimaryCtxRetain, &device->context, device->handle) != 0) {
    return 1;
  }
  if (CALL(device, cuCtxSetCurrent, device->context) != 0 ||
      CALL(device, cuModuleLoadData, &device->module, kernels_ptx) != 0) {
    device_close(device);
    return 1;
  }
  return 0;
}

int device_kernel(const struct device *device, CUfunction *function, const char *name) {
  return CALL(device, cuModuleGetFunction, function, device->module, name);
}

void device_close(struct device *device) {
  if (device->module != NULL) {
    (void)CALL(device, cuModuleUnload, device->module);
  }
  if (device->context != NULL) {
    (void)CALL(device, cuDevicePrimaryCtxRelease, device->handle);
  }
  device->module = NULL;
  device->context = NULL;
}
