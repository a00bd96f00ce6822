/*
 * The programs of compat.c: each is a way to reach the driver, or to live and end as a process. Linked with
 * libcuda.so.1 and libnvidia-ml.so.1. Usage: compat_program ROLE [ARGUMENT]; the exit code is the number of failures,
 * each reported on stderr.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "compat.h"

int failures;
extern char **environ;

typedef void *handle;
/* ROW(function, parameters): the functions that the programs call; also declared, for the linked programs. */
#define FUNCTIONS(ROW)                                                                                                \
  ROW(cuInit, (unsigned flags))                                                                                       \
  ROW(cuDeviceGetCount, (int *count))                                                                                 \
  ROW(cuDeviceGet, (int *device, int ordinal))                                                                        \
  ROW(cuDevicePrimaryCtxRetain, (handle * context, int device))                                                       \
  ROW(cuDevicePrimaryCtxRelease_v2, (int device))                                                                     \
  ROW(cuCtxCreate_v2, (handle * context, unsigned flags, int device))                                                 \
  ROW(cuCtxDestroy_v2, (handle context))                                                                              \
  ROW(cuCtxSetCurrent, (handle context))                                                                              \
  ROW(cuMemAlloc_v2, (uint64_t * pointer, size_t bytes))                                                              \
  ROW(cuMemFree_v2, (uint64_t pointer))                                                                               \
  ROW(cuMemGetInfo_v2, (size_t * free, size_t * total))                                                               \
  ROW(cuModuleLoadData, (handle * module, const void *image))                                                         \
  ROW(cuModuleGetFunction, (handle * function, handle module, const char *name))                                      \
  ROW(cuLaunchKernel, (handle function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, \
                       unsigned shared, handle stream, void **parameters, void **extra))                              \
  ROW(cuGetProcAddress, (const char *name, void **found, int version, uint64_t flags))                                \
  ROW(cuGetProcAddress_v2, (const char *name, void **found, int version, uint64_t flags, int *why))

#define ROW(function, parameters) int function parameters;
FUNCTIONS(ROW)
#undef ROW

struct api {
#define ROW(function, parameters) int(*function) parameters;
  FUNCTIONS(ROW)
#undef ROW
};

static const char PTX[] =
    ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry vgpu_spin(.param .u64 ns)\n{\n ret;\n}\n";

/* ---- ways to the functions ---- */

static void *find_in; /* a library's handle, RTLD_DEFAULT or RTLD_NEXT */
static void *by_dlsym(const char *name) { return dlsym(find_in, name); }

static void *by_proc_address(const char *name) {
  char plain[64];
  void *found = NULL;
  snprintf(plain, sizeof plain, "%s", name);
  char *suffix = strstr(plain, "_v2");
  if (suffix != NULL && strcmp(name, "cuGetProcAddress_v2") != 0) *suffix = '\0';
  if (suffix != NULL && strcmp(name, "cuGetProcAddress_v2") == 0) return dlsym(RTLD_DEFAULT, name);
  CHECK(cuGetProcAddress(plain, &found, 11030, 0) == 0, "cuGetProcAddress(%s)", plain);
  return found;
}

static void *by_proc_address_v2(const char *name) {
  char plain[64];
  void *found = NULL;
  int why = -1;
  snprintf(plain, sizeof plain, "%s", name);
  char *suffix = strstr(plain, "_v2");
  if (suffix != NULL && strncmp(name, "cuGetProcAddress", 16) == 0) return dlsym(RTLD_DEFAULT, name);
  if (suffix != NULL) *suffix = '\0';
  CHECK(cuGetProcAddress_v2(plain, &found, 12000, 0, &why) == 0, "cuGetProcAddress_v2(%s): %d", plain, why);
  return found;
}

static struct api bind(void *(*find)(const char *)) {
  struct api api;
  void *found;
#define ROW(function, parameters)                      \
  found = find(#function);                             \
  CHECK(found != NULL, "%s was not found", #function); \
  memcpy(&api.function, &found, sizeof found);
  FUNCTIONS(ROW)
#undef ROW
  return api;
}

static struct api linked(void) {
  return (struct api){
#define ROW(function, parameters) .function = function,
      FUNCTIONS(ROW)
#undef ROW
  };
}

static handle begin(const struct api *api) {
  handle context = NULL;
  int result = api->cuInit(0);
  CHECK(result == 0, "cuInit: %d", result);
  CHECK(api->cuDevicePrimaryCtxRetain(&context, 0) == 0, "retain");
  CHECK(api->cuCtxSetCurrent(context) == 0, "set current");
  return context;
}

/* Checks that these functions are the hook's: the whole quota is there, and not a byte more. */
static void is_held(const struct api *api) {
  uint64_t pointer = 0, more = 0;
  size_t left = 0, total = 0;
  begin(api);
  CHECK(api->cuMemGetInfo_v2(&left, &total) == 0 && total == QUOTA, "total %zu", total);
  CHECK(left == QUOTA - CONTEXT, "free %zu", left);
  CHECK(api->cuMemAlloc_v2(&pointer, QUOTA - CONTEXT) == 0, "the whole quota");
  CHECK(api->cuMemAlloc_v2(&more, 1) == 2, "a byte more");
  CHECK(api->cuMemFree_v2(pointer) == 0, "free");
  CHECK(api->cuDevicePrimaryCtxRelease_v2(0) == 0, "release");
}

static void hold_by(void *(*find)(const char *)) {
  struct api api = bind(find);
  if (failures == 0) is_held(&api);
}

void is_held_in(void *library) {
  find_in = library;
  if (library != NULL) hold_by(by_dlsym);
}

static void in_handle(const char *path, int flags) {
  void *library = dlopen(path, flags);
  CHECK(library != NULL, "dlopen %s: %s", path, dlerror());
  is_held_in(library);
}

static void role_linked(void) {
  struct api api = linked();
  is_held(&api);
}
static void role_dlopen(void) { in_handle("libcuda.so.1", RTLD_NOW | RTLD_LOCAL); }
static void role_dlopen_lazy(void) { in_handle("libcuda.so.1", RTLD_LAZY | RTLD_GLOBAL); }
static void role_dlopen_path(void) { in_handle(getenv("VGPU_CUDA_DRIVER"), RTLD_NOW); }

static void role_dlsym_default(void) {
  find_in = RTLD_DEFAULT;
  hold_by(by_dlsym);
}
static void role_dlsym_next(void) {
  find_in = RTLD_NEXT;
  hold_by(by_dlsym);
}
static void role_proc_address(void) {
  CHECK(cuInit(0) == 0, "cuInit");
  hold_by(by_proc_address);
}
static void role_proc_address_v2(void) {
  CHECK(cuInit(0) == 0, "cuInit");
  hold_by(by_proc_address_v2);
}

static void role_dlclose(void) {
  for (int i = 0; i < 3; i++) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    find_in = library;
    hold_by(by_dlsym);
    CHECK(library == NULL || dlclose(library) == 0, "dlclose");
  }
}

/* ---- processes ---- */

int status_of(pid_t pid) {
  int status = -1;
  while (waitpid(pid, &status, 0) < 0) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void role_fork(void) {
  struct api api = linked();
  uint64_t pointer = 0;
  begin(&api);
  CHECK(cuMemAlloc_v2(&pointer, 1 << 20) == 0, "before");
  pid_t pid = fork();
  if (pid == 0) {
    /* A forked child cannot use CUDA before its own cuInit, and with the real driver not even after that. */
    failures = 0;
    CHECK(cuMemAlloc_v2(&pointer, 1 << 20) != 0, "a child has nothing of its parent's");
    _exit(failures);
  }
  CHECK(status_of(pid) == 0, "the child");
  CHECK(cuMemFree_v2(pointer) == 0, "the parent goes on");
  CHECK(cuDevicePrimaryCtxRelease_v2(0) == 0, "release");
}

static void role_fork_first(void) {
  pid_t pid = fork();
  if (pid == 0) {
    failures = 0;
    role_linked();
    _exit(failures);
  }
  CHECK(status_of(pid) == 0, "the child");
  role_linked();
}

static void role_fork_exec(void) {
  begin(&(struct api){
      .cuInit = cuInit, .cuDevicePrimaryCtxRetain = cuDevicePrimaryCtxRetain, .cuCtxSetCurrent = cuCtxSetCurrent});
  CHECK(cuDevicePrimaryCtxRelease_v2(0) == 0, "release");
  pid_t pid = fork();
  if (pid == 0) {
    execl("/proc/self/exe", "compat_program", "linked", (char *)NULL);
    _exit(127);
  }
  CHECK(status_of(pid) == 0, "the child");
}

static void role_vfork_exec(void) {
  CHECK(cuInit(0) == 0, "cuInit");
  pid_t pid = vfork();
  if (pid == 0) {
    execl("/proc/self/exe", "compat_program", "linked", (char *)NULL);
    _exit(127);
  }
  CHECK(status_of(pid) == 0, "the child");
  role_linked();
}

static void role_posix_spawn(void) {
  char *arguments[] = {"compat_program", "dlopen", NULL};
  pid_t pid = 0;
  CHECK(cuInit(0) == 0, "cuInit");
  CHECK(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, arguments, environ) == 0, "posix_spawn");
  CHECK(status_of(pid) == 0, "the child");
  role_linked();
}

static void role_exec(void) {
  CHECK(cuInit(0) == 0, "cuInit");
  execl("/proc/self/exe", "compat_program", "linked", (char *)NULL);
  CHECK(0, "exec");
}

/* ---- threads, contexts, devices, endings ---- */

static handle spin(void) {
  handle module = NULL, function = NULL;
  CHECK(cuModuleLoadData(&module, PTX) == 0, "module");
  CHECK(cuModuleGetFunction(&function, module, "vgpu_spin") == 0, "function");
  return function;
}

static int launch(handle function) {
  uint64_t ns = 20000;
  void *parameters[] = {&ns};
  return cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL);
}

static handle shared_context, shared_function;

static void *short_life(void *number) {
  uint64_t pointer = 0;
  uintptr_t n = (uintptr_t)number;
  if (n % 5 == 0) return NULL;
  CHECK(cuCtxSetCurrent(shared_context) == 0, "set current");
  if (n % 5 == 1) pthread_exit(NULL);
  CHECK(cuMemAlloc_v2(&pointer, 4096) == 0, "alloc");
  if (n % 5 >= 3) CHECK(launch(shared_function) == 0, "launch");
  CHECK(cuMemFree_v2(pointer) == 0, "free");
  if (n % 5 == 4) pthread_exit(NULL); /* with its own work in flight */
  return NULL;
}

static void role_threads(void) {
  struct api api = linked();
  shared_context = begin(&api);
  shared_function = spin();
  for (uintptr_t round = 0; round < 25; round++) {
    pthread_t threads[8];
    for (uintptr_t i = 0; i < 8; i++)
      CHECK(pthread_create(&threads[i], NULL, short_life, (void *)(round * 8 + i)) == 0, "thread");
    for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
  }
  CHECK(cuDevicePrimaryCtxRelease_v2(0) == 0, "release");
}

static void *endless(void *unused) {
  CHECK(cuCtxSetCurrent(shared_context) == 0, "set current");
  for (;;) launch(shared_function);
  return unused;
}

/* Ends while other threads are inside the driver. */
static void role_exit_in_the_middle(void) {
  pthread_t thread;
  struct api api = linked();
  shared_context = begin(&api);
  shared_function = spin();
  for (int i = 0; i < 3; i++) pthread_create(&thread, NULL, endless, NULL);
  for (int i = 0; i < 100; i++) launch(shared_function);
  exit(failures);
}

static void *goes_on(void *unused) {
  role_linked();
  exit(failures); /* a driver's own threads keep the process alive, and so do the hook's */
  return unused;
}

static void role_main_thread_ends(void) {
  pthread_t thread;
  CHECK(cuInit(0) == 0, "cuInit");
  CHECK(pthread_create(&thread, NULL, goes_on, NULL) == 0, "thread");
  pthread_exit(NULL);
}

static void role_contexts(void) {
  handle contexts[2] = {NULL, NULL}, primary = NULL;
  size_t left = 0, total = 0;
  int count = 0;
  CHECK(cuInit(0) == 0, "cuInit");
  CHECK(cuDeviceGetCount(&count) == 0 && count == 2, "%d devices", count);
  CHECK(cuCtxCreate_v2(&contexts[0], 0, 0) == 0, "create on the first");
  CHECK(cuCtxCreate_v2(&contexts[1], 0, 1) == 0, "create on the second");
  CHECK(cuDevicePrimaryCtxRetain(&primary, 0) == 0, "primary");
  CHECK(cuMemGetInfo_v2(&left, &total) == 0 && left == QUOTA - 3 * CONTEXT, "three contexts are charged: %zu left",
        left);
  CHECK(cuDevicePrimaryCtxRetain(&primary, 0) == 0, "again");
  CHECK(cuMemGetInfo_v2(&left, &total) == 0 && left == QUOTA - 3 * CONTEXT, "the same one: %zu left", left);
  CHECK(cuDevicePrimaryCtxRelease_v2(0) == 0 && cuDevicePrimaryCtxRelease_v2(0) == 0, "release");
  CHECK(cuCtxDestroy_v2(contexts[1]) == 0, "destroy");
  CHECK(cuCtxSetCurrent(contexts[0]) == 0, "set current");
  CHECK(cuMemGetInfo_v2(&left, &total) == 0 && left == QUOTA - CONTEXT, "one is left: %zu", left);
  CHECK(cuCtxDestroy_v2(contexts[0]) == 0, "destroy");
}

/* If the driver has green contexts, they share the primary one; otherwise it says so. */
static void role_green_contexts(void) {
  int (*get)(int, void *, int) = NULL, (*create)(handle *, void *, int, unsigned) = NULL;
  char resource[256] = "";
  handle green = NULL;
  struct api api = linked();
  begin(&api);
  void *found = dlsym(RTLD_DEFAULT, "cuDeviceGetDevResource");
  memcpy(&get, &found, sizeof get);
  found = dlsym(RTLD_DEFAULT, "cuGreenCtxCreate");
  memcpy(&create, &found, sizeof create);
  CHECK(get != NULL && create != NULL, "the hook exports them");
  if (get == NULL || create == NULL) return;
  int result = get(0, resource, 1);
  CHECK(result == 0 || result == 801, "cuDeviceGetDevResource: %d", result);
  if (result != 0) CHECK(create(&green, NULL, 0, 1) == 801, "a driver without green contexts says so");
  CHECK(cuDevicePrimaryCtxRelease_v2(0) == 0, "release");
}

static void role_never_synchronises(void) {
  struct api api = linked();
  begin(&api);
  handle function = spin();
  for (int i = 0; i < 3000; i++) {
    int result = launch(function);
    CHECK(result == 0, "launch %d: %d", i, result);
    if (result != 0) break;
  }
}

/* ---- for the NVML programs to look at: they report when they are ready, and end with their input ---- */

static void until_told(void) {
  char byte;
  CHECK(write(1, "x", 1) == 1, "say so");
  while (read(0, &byte, 1) > 0) {
  }
}

static void role_hold(void) {
  struct api api = linked();
  uint64_t pointer = 0;
  begin(&api);
  CHECK(cuMemAlloc_v2(&pointer, 32u << 20) == 0, "alloc");
  until_told();
}

static void role_spin(void) {
  pthread_t thread;
  struct api api = linked();
  shared_context = begin(&api);
  shared_function = spin();
  CHECK(pthread_create(&thread, NULL, endless, NULL) == 0, "thread");
  until_told();
}

static void role_others_preloaded(void) {
  unsigned long (*calls)(void) = NULL;
  void *found = dlsym(RTLD_DEFAULT, "other_calls");
  CHECK(found != NULL, "the other library is not loaded");
  role_dlopen();
  role_dlopen_path();
  memcpy(&calls, &found, sizeof calls);
  CHECK(calls == NULL || calls() > 0, "it still gets its calls");
}

#define ROLE(name) \
  { #name, role_##name }
static const struct {
  const char *name;
  void (*run)(void);
} roles[] = {
    ROLE(linked),
    ROLE(dlopen),
    ROLE(dlopen_lazy),
    ROLE(dlopen_path),
    ROLE(dlopen_names),
    ROLE(dlopen_links),
    ROLE(dlopen_search),
    ROLE(dlopen_deep),
    ROLE(linked_names),
    ROLE(forward),
    ROLE(forward_chosen),
    ROLE(dlmopen),
    ROLE(dlsym_default),
    ROLE(dlsym_next),
    ROLE(proc_address),
    ROLE(proc_address_v2),
    ROLE(dlclose),
    ROLE(fork),
    ROLE(fork_first),
    ROLE(fork_exec),
    ROLE(vfork_exec),
    ROLE(posix_spawn),
    ROLE(exec),
    ROLE(threads),
    ROLE(exit_in_the_middle),
    ROLE(main_thread_ends),
    ROLE(contexts),
    ROLE(green_contexts),
    ROLE(never_synchronises),
    ROLE(hold),
    ROLE(spin),
    ROLE(ld_so_preload),
    ROLE(others_preloaded),
    ROLE(uuids),
    ROLE(visible),
};

int main(int count, char **arguments) {
  for (size_t i = 0; count > 1 && i < sizeof roles / sizeof *roles; i++) {
    if (strcmp(arguments[1], roles[i].name) == 0) {
      roles[i].run();
      return failures;
    }
  }
  return nvml_role(count > 1 ? arguments[1] : "");
}
