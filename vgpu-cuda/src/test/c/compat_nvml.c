/* The programs of compat.c that call NVML. They never call CUDA, except for the processes that they look at. */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../main/nvml/nvml_abi.h"
#include "compat.h"

nvmlReturn_t nvmlInit_v2(void);
nvmlReturn_t nvmlShutdown(void);
const char *nvmlErrorString(nvmlReturn_t code);
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count);
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device);
nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device);
nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned *index);
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned size);
nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned *count);
nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned index, nvmlDevice_t *mig);
nvmlReturn_t nvmlDeviceGetTopologyNearestGpus(nvmlDevice_t device, int level, unsigned *count, nvmlDevice_t *near);
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned size);
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, struct nvml_memory *memory);
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, struct nvml_memory_v2 *memory);
nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, struct nvml_utilization *utilization);
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned *count, struct nvml_process_v1 *infos);
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count,
                                                     struct nvml_process_v2 *infos);
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned *count,
                                                      struct nvml_process_v2 *infos);
nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device, struct nvml_process_sample *samples, unsigned *count,
                                             unsigned long long since_us);
nvmlReturn_t nvmlSystemGetProcessName(unsigned pid, char *name, unsigned size);

static nvmlDevice_t first(void) {
  nvmlDevice_t device = NULL;
  nvmlReturn_t result = nvmlInit_v2();
  CHECK(result == NVML_SUCCESS, "nvmlInit_v2: %s", nvmlErrorString(result));
  CHECK(nvmlDeviceGetHandleByIndex_v2(0, &device) == NVML_SUCCESS, "the first device");
  return device;
}

static void shows_quota(nvmlDevice_t device, nvmlReturn_t (*get)(nvmlDevice_t, struct nvml_memory *)) {
  struct nvml_memory memory = {0};
  CHECK(get(device, &memory) == NVML_SUCCESS && memory.total == QUOTA, "total %llu", memory.total);
  CHECK(memory.used == 0 && memory.free == QUOTA, "used %llu free %llu", memory.used, memory.free);
}

static void role_nvml_linked(void) {
  struct nvml_memory_v2 second = {.version = NVML_VERSION(struct nvml_memory_v2, 2)};
  nvmlDevice_t device = first();
  shows_quota(device, nvmlDeviceGetMemoryInfo);
  CHECK(nvmlDeviceGetMemoryInfo_v2(device, &second) == NVML_SUCCESS, "the second form");
  CHECK(second.total == QUOTA && second.used == 0 && second.free == QUOTA && second.reserved == 0, "%llu",
        second.total);
  second.version = 1;
  CHECK(nvmlDeviceGetMemoryInfo_v2(device, &second) == NVML_VERSION_MISMATCH, "another version");
  CHECK(nvmlShutdown() == NVML_SUCCESS, "shutdown");
  CHECK(nvmlShutdown() == NVML_UNINITIALIZED, "again");
  CHECK(nvmlDeviceGetName(device, (char[64]){0}, 64) == NVML_UNINITIALIZED, "passed through after the end");
}

static void found_in(void *library) {
  nvmlReturn_t (*init)(void), (*handle)(unsigned, nvmlDevice_t *), (*memory)(nvmlDevice_t, struct nvml_memory *);
  nvmlDevice_t device = NULL;
  CHECK(library != NULL, "dlopen: %s", dlerror());
  if (library == NULL) return;
  void *found[] = {dlsym(library, "nvmlInit_v2"), dlsym(library, "nvmlDeviceGetHandleByIndex_v2"),
                   dlsym(library, "nvmlDeviceGetMemoryInfo")};
  memcpy(&init, &found[0], sizeof init);
  memcpy(&handle, &found[1], sizeof handle);
  memcpy(&memory, &found[2], sizeof memory);
  CHECK(init() == NVML_SUCCESS && handle(0, &device) == NVML_SUCCESS, "init");
  shows_quota(device, memory);
}

static void role_nvml_dlopen(void) { found_in(dlopen("libnvidia-ml.so.1", RTLD_NOW)); }
static void role_nvml_dlopen_path(void) { found_in(dlopen(getenv("VGPU_NVML"), RTLD_NOW)); }

static void role_nvml_refused(void) {
  CHECK(nvmlInit_v2() == NVML_NO_PERMISSION, "a lease that is not there");
  CHECK(nvmlDeviceGetCount_v2(&(unsigned){0}) == NVML_UNINITIALIZED, "nothing else works");
  CHECK(strcmp(nvmlErrorString(NVML_NO_PERMISSION), "Insufficient Permissions") == 0, "texts do");
}

static void role_nvml_open(void) {
  struct nvml_memory memory = {0};
  CHECK(nvmlDeviceGetMemoryInfo(first(), &memory) == NVML_SUCCESS && memory.total == 1ull << 30, "%llu", memory.total);
}

/* Runs with CUDA_VISIBLE_DEVICES=1: the second of two GPUs. */
static void role_nvml_devices(void) {
  unsigned count = 0, index = 7;
  char uuid[96] = "", others[128] = "";
  nvmlDevice_t device = first(), other = NULL;
  CHECK(nvmlDeviceGetCount_v2(&count) == NVML_SUCCESS && count == 1, "%u devices", count);
  CHECK(nvmlDeviceGetIndex(device, &index) == NVML_SUCCESS && index == 0, "index %u", index);
  CHECK(nvmlDeviceGetHandleByIndex_v2(1, &other) == NVML_INVALID_ARGUMENT, "no second one");
  CHECK(nvmlDeviceGetUUID(device, uuid, sizeof uuid) == NVML_SUCCESS, "its UUID");
  CHECK(nvmlDeviceGetHandleByUUID(uuid, &other) == NVML_SUCCESS && other == device, "found by it");
  nvmlShutdown();
  setenv("CUDA_VISIBLE_DEVICES", "0", 1);
  CHECK(nvmlDeviceGetUUID(first(), others, sizeof others) == NVML_SUCCESS && strcmp(uuid, others) != 0, "%s", others);
  CHECK(nvmlDeviceGetHandleByUUID(uuid, &other) == NVML_NOT_FOUND, "the other is not there now");
  nvmlShutdown();
  uuid[12] = '\0';
  snprintf(others, sizeof others, "%s,0", uuid);
  setenv("CUDA_VISIBLE_DEVICES", others, 1);
  device = first();
  CHECK(nvmlDeviceGetCount_v2(&count) == NVML_SUCCESS && count == 2, "%s: %u devices", others, count);
  CHECK(nvmlDeviceGetIndex(device, &index) == NVML_SUCCESS && index == 0, "in that order: %u", index);
  nvmlShutdown();
  setenv("CUDA_VISIBLE_DEVICES", "", 1);
  CHECK(nvmlInit_v2() == NVML_SUCCESS && nvmlDeviceGetCount_v2(&count) == NVML_SUCCESS && count == 0, "none");
}

/* ---- beside a process that uses the GPU ---- */

static pid_t worker(int *input, const char *role) {
  int to[2], from[2];
  char ready = 0;
  CHECK(pipe(to) == 0 && pipe(from) == 0, "pipe");
  pid_t pid = fork();
  if (pid == 0) {
    dup2(to[0], 0);
    dup2(from[1], 1);
    close(to[0]), close(to[1]), close(from[0]), close(from[1]);
    execl("/proc/self/exe", "compat_program", role, (char *)NULL);
    _exit(127);
  }
  close(to[0]), close(from[1]);
  CHECK(read(from[0], &ready, 1) == 1, "the worker");
  close(from[0]);
  *input = to[1];
  return pid;
}

static void end(pid_t pid, int input) {
  int status;
  close(input);
  waitpid(pid, &status, 0);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the worker ended with %x", status);
}

static void role_nvml_processes(void) {
  struct nvml_process_v2 infos[4] = {0};
  struct nvml_process_v1 old[4] = {0};
  struct nvml_memory memory = {0};
  unsigned count = 4;
  char name[256] = "";
  int input;
  nvmlDevice_t device = first();
  CHECK(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, infos) == NVML_SUCCESS && count == 0, "%u at first",
        count);
  pid_t pid = worker(&input, "hold");
  count = 0;
  CHECK(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, NULL) == NVML_INSUFFICIENT_SIZE && count == 1, "%u",
        count);
  CHECK(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, infos) == NVML_SUCCESS && count == 1, "%u", count);
  CHECK(infos[0].pid == (unsigned)pid && infos[0].bytes == CONTEXT + (32u << 20), "%u: %llu", infos[0].pid,
        infos[0].bytes);
  count = 4;
  CHECK(nvmlDeviceGetComputeRunningProcesses(device, &count, old) == NVML_SUCCESS && count == 1, "the first form");
  CHECK(old[0].pid == (unsigned)pid && old[0].bytes == infos[0].bytes, "%u: %llu", old[0].pid, old[0].bytes);
  count = 4;
  CHECK(nvmlDeviceGetGraphicsRunningProcesses_v3(device, &count, infos) == NVML_SUCCESS && count == 0, "graphics %u",
        count);
  CHECK(nvmlDeviceGetMemoryInfo(device, &memory) == NVML_SUCCESS && memory.used == CONTEXT + (32u << 20), "%llu",
        memory.used);
  CHECK(memory.free == QUOTA - memory.used, "free %llu", memory.free);
  CHECK(nvmlSystemGetProcessName((unsigned)pid, name, sizeof name) == NVML_SUCCESS, "%s", name);
  CHECK(nvmlSystemGetProcessName(1, name, sizeof name) == NVML_NOT_FOUND, "another's name");
  end(pid, input);
}

static void role_nvml_usage(void) {
  struct nvml_utilization busy = {0};
  struct nvml_process_sample sample[2];
  unsigned count = 2, most = 0;
  int input;
  nvmlDevice_t device = first();
  pid_t pid = worker(&input, "spin");
  for (int i = 0; i < 100 && most < 50; i++) {
    CHECK(nvmlDeviceGetUtilizationRates(device, &busy) == NVML_SUCCESS && busy.gpu <= 100, "%u", busy.gpu);
    if (busy.gpu > most) most = busy.gpu;
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
  }
  /*
   * With a share of half of the GPU, a process that never stops uses all that it may, and more; the figure is 100 at
   * most.
   */
  CHECK(most >= 50 && busy.memory <= busy.gpu, "busy: %u %%, memory %u %%", most, busy.memory);
  CHECK(nvmlDeviceGetProcessUtilization(device, sample, &count, 0) == NVML_SUCCESS && count == 1, "%u samples", count);
  CHECK(sample[0].pid == (unsigned)pid && sample[0].sm <= 100, "%u: %u %%", sample[0].pid, sample[0].sm);
  end(pid, input);
}

/* Over compat_stub_nvml.c. */
static nvmlDevice_t first_of_stub(const char *visible) {
  setenv("VGPU_NVML", getenv("COMPAT_STUB_NVML"), 1);
  setenv("CUDA_VISIBLE_DEVICES", visible, 1);
  return first();
}

/* Figures that the real library has only for all users of the GPU together. The process is its first user here. */
static void role_nvml_others(void) {
  struct nvml_gpm_support support = {.version = 1, .supported = 1};
  struct nvml_sample samples[4];
  nvmlReturn_t (*get)(nvmlDevice_t, void *, void *, void *);
  nvmlReturn_t (*query)(nvmlDevice_t, struct nvml_gpm_support *);
  nvmlReturn_t (*sample)(nvmlDevice_t, int, unsigned long long, int *, unsigned *, struct nvml_sample *);
  nvmlDevice_t device = first();
  void *found = dlsym(RTLD_DEFAULT, "nvmlGpmQueryDeviceSupport");
  memcpy(&query, &found, sizeof query);
  CHECK(found != NULL && query(device, &support) == NVML_SUCCESS && support.supported == 0, "as on a GPU without GPM");
  CHECK(query(NULL, &support) == NVML_INVALID_ARGUMENT, "no device");
  static const char *const hidden[] = {
      "nvmlGpmSampleGet",
      "nvmlGpmMigSampleGet",
      "nvmlGpmMetricsGet",
      "nvmlDeviceGetDynamicPstatesInfo",
      "nvmlDeviceGetEncoderSessions",
      "nvmlDeviceGetEncoderUtilization",
      "nvmlDeviceGetDecoderUtilization",
  };
  for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++) {
    unsigned values[64] = {0};
    found = dlsym(RTLD_DEFAULT, hidden[i]);
    memcpy(&get, &found, sizeof get);
    CHECK(found != NULL && get(device, &values[0], &values[16], &values[32]) == NVML_NOT_SUPPORTED, "%s", hidden[i]);
  }
  found = dlsym(RTLD_DEFAULT, "nvmlDeviceGetSamples");
  memcpy(&sample, &found, sizeof sample);
  for (int type = 0; type < 7; type++) {
    int is_of_all = type == 3 || type == 4, kind; /* encoder, decoder */
    unsigned count = 4;
    nvmlReturn_t result = sample(device, type, 0, &kind, &count, samples);
    CHECK((result == NVML_NOT_SUPPORTED) == is_of_all, "samples of type %d: %d", type, result);
  }
}

/* The second form of a process's accounting names the process in what it fills. */
static void role_nvml_accounting(void) {
  unsigned stats[32] = {(unsigned)getpid()};
  nvmlReturn_t (*get)(nvmlDevice_t, unsigned *);
  nvmlDevice_t device = first_of_stub("GPU-a");
  void *found = dlsym(RTLD_DEFAULT, "nvmlDeviceGetAccountingStats_v2");
  memcpy(&get, &found, sizeof get);
  CHECK(found != NULL && get(device, stats) == NVML_NOT_FOUND, "a process without a context");
  stats[0] = 1;
  CHECK(get(device, stats) == NVML_NOT_FOUND && stats[2] == 0, "another's");
  CHECK(get(device, NULL) == NVML_INVALID_ARGUMENT, "NULL");
}

/* Calls that would change the GPU for all, and invalid calls. */
static void role_nvml_denied(void) {
  nvmlReturn_t (*set)(nvmlDevice_t, unsigned), (*query)(nvmlDevice_t, unsigned *);
  nvmlDevice_t device = first();
  void *found = dlsym(RTLD_DEFAULT, "nvmlDeviceSetComputeMode");
  memcpy(&set, &found, sizeof set);
  CHECK(found != NULL && set(device, 3) == NVML_NO_PERMISSION, "a setting");
  found = dlsym(RTLD_DEFAULT, "nvmlDeviceGetIrqNum");
  memcpy(&query, &found, sizeof query);
  CHECK(found != NULL && query(device, &(unsigned){0}) == NVML_FUNCTION_NOT_FOUND, "what the real library lacks");
  CHECK(nvmlDeviceGetMemoryInfo(device, NULL) == NVML_INVALID_ARGUMENT, "NULL");
  CHECK(nvmlDeviceGetMemoryInfo(NULL, &(struct nvml_memory){0}) == NVML_INVALID_ARGUMENT, "no device");
  CHECK(nvmlDeviceGetComputeRunningProcesses_v3(device, NULL, NULL) == NVML_INVALID_ARGUMENT, "no count");
  CHECK(nvmlDeviceGetComputeRunningProcesses_v3(NULL, &(unsigned){0}, NULL) == NVML_INVALID_ARGUMENT, "no device");
  CHECK(nvmlDeviceGetHandleByIndex_v2(0, NULL) == NVML_INVALID_ARGUMENT, "nowhere to put it");
  CHECK(nvmlDeviceGetHandleByUUID("GPU-nobody", &device) == NVML_NOT_FOUND, "nobody's");
  CHECK(nvmlDeviceGetUtilizationRates(device, NULL) == NVML_INVALID_ARGUMENT, "NULL");
}

static void *asks(void *unused) {
  for (int i = 0; i < 50; i++) {
    struct nvml_utilization rates = {0};
    struct nvml_memory memory = {0};
    unsigned count = 0;
    nvmlDevice_t device = first();
    CHECK(nvmlDeviceGetMemoryInfo(device, &memory) == NVML_SUCCESS && memory.total == QUOTA, "%llu", memory.total);
    CHECK(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, NULL) == NVML_SUCCESS && count == 0, "%u", count);
    if (i % 25 == 0)
      CHECK(nvmlDeviceGetUtilizationRates(device, &rates) == NVML_SUCCESS && rates.gpu == 0, "%u", rates.gpu);
    CHECK(nvmlShutdown() == NVML_SUCCESS, "shutdown");
  }
  return unused;
}

static void role_nvml_threads(void) {
  pthread_t threads[8];
  for (int i = 0; i < 8; i++) CHECK(pthread_create(&threads[i], NULL, asks, NULL) == 0, "thread");
  for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
}

static void is_named(nvmlDevice_t device, const char *name) {
  char uuid[96] = "";
  CHECK(nvmlDeviceGetUUID(device, uuid, sizeof uuid) == NVML_SUCCESS && strcmp(uuid, name) == 0, "%s, not %s", uuid,
        name);
}

static void role_nvml_mig(void) {
  struct nvml_memory memory = {0};
  unsigned count = 9, index = 9;
  nvmlDevice_t gpu = first_of_stub("MIG-y,MIG-z"), mig = NULL, other = NULL;
  is_named(gpu, "GPU-a");
  CHECK(nvmlDeviceGetCount_v2(&count) == NVML_SUCCESS && count == 1, "%u GPUs", count);
  CHECK(nvmlDeviceGetMaxMigDeviceCount(gpu, &count) == NVML_SUCCESS && count == 2, "%u MIG devices", count);
  CHECK(nvmlDeviceGetMigDeviceHandleByIndex(gpu, 1, &mig) == NVML_SUCCESS, "the second");
  is_named(mig, "MIG-z");
  CHECK(nvmlDeviceGetIndex(mig, &index) == NVML_SUCCESS && index == 1, "its index %u", index);
  CHECK(nvmlDeviceGetMigDeviceHandleByIndex(gpu, 2, &mig) == NVML_NOT_FOUND, "no third");
  CHECK(nvmlDeviceGetHandleByUUID("MIG-x", &other) == NVML_NOT_FOUND, "another tenant's");
  CHECK(nvmlDeviceGetHandleByUUID("GPU-b", &other) == NVML_NOT_FOUND, "another GPU");
  CHECK(nvmlDeviceGetHandleByUUID("MIG-y", &mig) == NVML_SUCCESS, "one's own");
  CHECK(nvmlDeviceGetMemoryInfo(mig, &memory) == NVML_SUCCESS && memory.total == QUOTA, "%llu", memory.total);
  CHECK(nvmlDeviceGetMemoryInfo(gpu, &memory) == NVML_SUCCESS && memory.total == QUOTA, "%llu", memory.total);
  nvmlShutdown();
  gpu = first_of_stub("GPU-a");
  CHECK(nvmlDeviceGetMaxMigDeviceCount(gpu, &count) == NVML_SUCCESS && count == 3, "of a whole GPU all: %u", count);
}

static void role_nvml_topology(void) {
  int (*future)(void) = NULL;
  unsigned count = 0;
  nvmlDevice_t near = NULL, gpu = first_of_stub("GPU-b");
  CHECK(nvmlDeviceGetTopologyNearestGpus(gpu, 0, &count, NULL) == NVML_SUCCESS && count == 0, "%u near", count);
  nvmlShutdown();
  gpu = first_of_stub("GPU-b,GPU-a");
  CHECK(nvmlDeviceGetTopologyNearestGpus(gpu, 0, &count, NULL) == NVML_SUCCESS && count == 1, "%u near", count);
  CHECK(nvmlDeviceGetTopologyNearestGpus(gpu, 0, &count, &near) == NVML_SUCCESS && count == 1, "%u near", count);
  is_named(near, "GPU-a");
  void *found = dlsym(RTLD_DEFAULT, "nvmlOfTheFuture");
  memcpy(&future, &found, sizeof future);
  CHECK(found != NULL && future() == 4711, "a function that only the real library has");
}

#define ROLE(name) \
  { #name, role_##name }
static const struct {
  const char *name;
  void (*run)(void);
} roles[] = {
    ROLE(nvml_linked),     ROLE(nvml_dlopen),    ROLE(nvml_dlopen_path), ROLE(nvml_refused), ROLE(nvml_open),
    ROLE(nvml_devices),    ROLE(nvml_processes), ROLE(nvml_usage),       ROLE(nvml_denied),  ROLE(nvml_others),
    ROLE(nvml_accounting), ROLE(nvml_mig),       ROLE(nvml_topology),    ROLE(nvml_threads),
};

int nvml_role(const char *role) {
  for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
    if (strcmp(role, roles[i].name) == 0) {
      roles[i].run();
      return failures;
    }
  }
  fprintf(stderr, "no such role: %s\n", role);
  return 99;
}
