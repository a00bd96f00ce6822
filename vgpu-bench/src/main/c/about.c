/* For gpu-check: describes the GPU and its driver, and how the driver behaves where vgpu relies on it. */
#define _GNU_SOURCE
#include "program.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CAPABILITY_MAJOR = 75, CAPABILITY_MINOR = 76, PROCESSORS = 16, COMPUTE_MODE = 20, COPY_ENGINES = 40 };
enum { DEEPEST = 8192, HELD_NS = 60000000, EVENTS = 2000, BLOCKED_NS = 1000000 };

/* Optional functions that only this file uses. */
static struct {
  CUresult (*driver_version)(int *);
  CUresult (*name)(char *, int, CUdevice);
  CUresult (*total)(size_t *, CUdevice);
  CUresult (*attribute)(int *, int, CUdevice);
  CUresult (*error_name)(CUresult, const char **);
} extra;

static void *library_symbol(const char *library, const char *name) {
  void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  return handle == NULL ? NULL : dlsym(handle, name);
}

static void find_extra(void) {
  *(void **)&extra.driver_version = library_symbol("libcuda.so.1", "cuDriverGetVersion");
  *(void **)&extra.name = library_symbol("libcuda.so.1", "cuDeviceGetName");
  *(void **)&extra.total = library_symbol("libcuda.so.1", "cuDeviceTotalMem_v2");
  *(void **)&extra.attribute = library_symbol("libcuda.so.1", "cuDeviceGetAttribute");
  *(void **)&extra.error_name = library_symbol("libcuda.so.1", "cuGetErrorName");
}

/* Prints a text without the characters that JSON would have to escape. */
static void print_text(const char *key, const char *text) {
  printf("\"%s\":\"", key);
  for (; *text != '\0'; text++) {
    if (*text >= ' ' && *text != '"' && *text != '\\') {
      putchar(*text);
    }
  }
  printf("\",");
}

static int attribute(int which, CUdevice device) {
  int value = 0;
  return extra.attribute != NULL && extra.attribute(&value, which, device) == CUDA_SUCCESS ? value : 0;
}

static void print_nvml_versions(void) {
  static const char *const asked[][2] = {{"driver", "nvmlSystemGetDriverVersion"},
                                         {"nvml", "nvmlSystemGetNVMLVersion"}};
  int (*init)(void);
  const char *path = getenv("VGPU_NVML");
  const char *library = path != NULL ? path : "libnvidia-ml.so.1";
  *(void **)&init = library_symbol(library, "nvmlInit_v2");
  bool is_there = init != NULL && init() == 0;
  for (size_t i = 0; is_there && i < sizeof asked / sizeof *asked; i++) {
    int (*version)(char *, unsigned);
    char text[96] = "";
    *(void **)&version = library_symbol(library, asked[i][1]);
    if (version != NULL && version(text, sizeof text) == 0) {
      print_text(asked[i][0], text);
    }
  }
}

/* Prints one JSON object. Fails if cuInit fails. */
int mode_about(int count, char **arguments) {
  struct driver driver;
  CUdevice device;
  char name[128] = "";
  const char *error = NULL;
  size_t total = 0;
  int version = 0;
  (void)count;
  (void)arguments;
  driver_load(&driver);
  find_extra();
  uint64_t begin = now_ns();
  CUresult result = driver.init(0);
  if (result != CUDA_SUCCESS) {
    say("error cuInit %d %s", result,
        extra.error_name != NULL && extra.error_name(result, &error) == CUDA_SUCCESS && error != NULL ? error : "");
    return 1;
  }
  uint64_t initialised = now_ns();
  check(driver.device_get(&device, 0), "cuDeviceGet");
  check(extra.name == NULL ? CUDA_SUCCESS : extra.name(name, sizeof name, device), "cuDeviceGetName");
  check(extra.total == NULL ? CUDA_SUCCESS : extra.total(&total, device), "cuDeviceTotalMem");
  check(extra.driver_version == NULL ? CUDA_SUCCESS : extra.driver_version(&version), "cuDriverGetVersion");
  printf("{");
  print_text("gpu", name);
  print_nvml_versions();
  printf("\"cuda_version\":%d,\"capability\":\"%d.%d\",\"sms\":%d,\"compute_mode\":%d,\"memory_bytes\":%zu,", version,
         attribute(CAPABILITY_MAJOR, device), attribute(CAPABILITY_MINOR, device), attribute(PROCESSORS, device),
         attribute(COMPUTE_MODE, device), total);
  printf("\"copy_engines\":%d,\"init_ms\":%.3f}\n", attribute(COPY_ENGINES, device),
         (double)(initialised - begin) / 1e6);
  fflush(stdout);
  return 0;
}

/* How many short kernels can queue behind a long one before a launch blocks; DEEPEST if none blocked. */
static unsigned queue_depth(const struct driver *driver) {
  unsigned depth = 0;
  check(spin(driver, HELD_NS), "cuLaunchKernel");
  for (uint64_t took = 0; depth < DEEPEST && took < BLOCKED_NS; depth++) {
    uint64_t begin = now_ns();
    check(spin(driver, 1000), "cuLaunchKernel");
    took = now_ns() - begin;
  }
  check(driver->context_synchronize(), "cuCtxSynchronize");
  return depth;
}

static int compare(const void *left, const void *right) {
  float a = *(const float *)left, b = *(const float *)right;
  return (a > b) - (a < b);
}

/* An event, an empty kernel, an event: the elapsed time reported, and the smallest difference between two reports. */
static void print_events(const struct driver *driver) {
  static float ms[EVENTS];
  CUevent from, to;
  float step = 1e9f;
  check(driver->event_create(&from, 0), "cuEventCreate");
  check(driver->event_create(&to, 0), "cuEventCreate");
  for (int i = 0; i < EVENTS; i++) {
    check(driver->event_record(from, NULL), "cuEventRecord");
    check(driver->launch(driver->null_kernel, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL), "cuLaunchKernel");
    check(driver->event_record(to, NULL), "cuEventRecord");
    check(driver->event_synchronize(to), "cuEventSynchronize");
    check(driver->event_elapsed(&ms[i], from, to), "cuEventElapsedTime");
  }
  qsort(ms, EVENTS, sizeof *ms, compare);
  for (int i = 1; i < EVENTS; i++) {
    if (ms[i] > ms[i - 1] && ms[i] - ms[i - 1] < step) {
      step = ms[i] - ms[i - 1];
    }
  }
  printf("\"event_pair_us\":{\"min\":%.3f,\"p50\":%.3f,\"p99\":%.3f,\"max\":%.3f},\"event_step_us\":%.3f,",
         (double)ms[0] * 1e3, (double)ms[EVENTS / 2] * 1e3, (double)ms[EVENTS * 99 / 100] * 1e3,
         (double)ms[EVENTS - 1] * 1e3, step < 1e9f ? (double)step * 1e3 : 0);
}

/* The duration of kernels of known length, as events report it. Without the GPU's timer the value is coarse. */
static void print_spins(const struct driver *driver) {
  static const unsigned us[] = {5, 20, 50, 200, 1000, 5000};
  CUevent from, to;
  check(driver->event_create(&from, 0), "cuEventCreate");
  check(driver->event_create(&to, 0), "cuEventCreate");
  printf("\"spin_us\":{");
  for (size_t i = 0; i < sizeof us / sizeof *us; i++) {
    float ms = 0, sum = 0;
    for (int j = 0; j < 9; j++) {
      check(driver->event_record(from, NULL), "cuEventRecord");
      check(spin(driver, us[i] * 1000u), "cuLaunchKernel");
      check(driver->event_record(to, NULL), "cuEventRecord");
      check(driver->event_synchronize(to), "cuEventSynchronize");
      check(driver->event_elapsed(&ms, from, to), "cuEventElapsedTime");
      sum += ms;
    }
    printf("%s\"%u\":%.2f", i == 0 ? "" : ",", us[i], (double)sum / 9 * 1e3);
  }
  printf("},");
}

/* The result of cuEventElapsedTime for events of two contexts: 0, or the driver's error code. */
static CUresult across_contexts(const struct driver *driver, float *ms) {
  CUcontext other = NULL;
  CUdevice device;
  CUevent here, there;
  check(driver->event_create(&here, 0), "cuEventCreate");
  check(driver->event_record(here, NULL), "cuEventRecord");
  check(driver->context_synchronize(), "cuCtxSynchronize");
  check(driver->device_get(&device, 0), "cuDeviceGet");
  CUresult result = driver->context_create(&other, 0, device);
  if (result == CUDA_SUCCESS) {
    check(driver->event_create(&there, 0), "cuEventCreate");
    check(driver->event_record(there, NULL), "cuEventRecord");
    check(driver->context_synchronize(), "cuCtxSynchronize");
    result = driver->event_elapsed(ms, here, there);
    check(driver->context_set(driver->context), "cuCtxSetCurrent");
  }
  return result;
}

/* Prints one JSON object that describes the driver's behaviour. */
int mode_probe(int count, char **arguments) {
  struct driver driver;
  float ms = 0;
  size_t before = 0, after = 0, total = 0;
  CUdeviceptr pointer = 0;
  (void)count;
  (void)arguments;
  uint64_t begin = now_ns();
  driver_start(&driver);
  uint64_t started = now_ns();
  check(driver.launch(driver.null_kernel, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL), "cuLaunchKernel");
  check(driver.context_synchronize(), "cuCtxSynchronize");
  printf("{\"start_ms\":%.3f,\"first_kernel_ms\":%.3f,", (double)(started - begin) / 1e6,
         (double)(now_ns() - started) / 1e6);
  check(driver.memory_info(&before, &total), "cuMemGetInfo");
  check(driver.memory_alloc(&pointer, 1), "cuMemAlloc");
  check(driver.memory_info(&after, &total), "cuMemGetInfo");
  printf("\"free_bytes\":%zu,\"total_bytes\":%zu,\"one_byte_takes\":%zu,", before, total, before - after);
  print_events(&driver);
  print_spins(&driver);
  printf("\"queue_depth\":%u,", queue_depth(&driver));
  CUresult across = across_contexts(&driver, &ms);
  printf("\"across_contexts\":{\"code\":%d,\"us\":%.3f}}\n", across, (double)ms * 1e3);
  fflush(stdout);
  return 0;
}
