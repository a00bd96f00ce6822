/*
 * The memory that this process holds on its GPUs, according to NVML. The thread of measure.c opens the real NVML; any
 * thread may read.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../nvml/nvml_abi.h"
#include "region.h"

enum { DEVICES = 64, PROCESSES = 512 };
static const unsigned long long NOT_AVAILABLE = ~0ull;

static struct {
  nvmlReturn_t (*init)(void);
  nvmlReturn_t (*count)(unsigned *count);
  nvmlReturn_t (*at)(unsigned index, nvmlDevice_t *device);
  nvmlReturn_t (*named)(const char *uuid, nvmlDevice_t *device); /* NULL: it cannot be asked about one GPU */
  nvmlReturn_t (*processes)(nvmlDevice_t device, unsigned *count, void *infos);
  size_t size;           /* of one entry of infos */
  struct vgpu_lock lock; /* guards infos in vgpu__held_on */
} nvml;

static int vgpu__bind_one(void *library, void *into, const char *name) {
  void *found = dlsym(library, name);
  if (found != NULL) memcpy(into, &found, sizeof found);
  return found == NULL ? -1 : 0;
}

/*
 * Since 565, drivers identify processes by their pid in the caller's pid namespace: _gpuMatchClientPid in gpu_rmapi.c
 * of open-gpu-kernel-modules. Older drivers use the pid of the initial namespace, whose inode is in Linux's proc_ns.h.
 */
static int vgpu__numbers_are_ours(void *library) {
  static const uint64_t FIRST_NAMESPACE = 0xEFFFFFFC;
  enum { TRANSLATES = 565 };
  nvmlReturn_t (*version)(char *into, unsigned size) = NULL;
  char text[NVML_UUID_SIZE] = "";
  if (vgpu__pid_namespace() == FIRST_NAMESPACE) return 1;
  return vgpu__bind_one(library, &version, "nvmlSystemGetDriverVersion") == 0 &&
         version(text, sizeof text) == NVML_SUCCESS && strtoul(text, NULL, 10) >= TRANSLATES;
}

const char *vgpu__held_open(void) {
  const char *path = vgpu__setting("VGPU_NVML");
  if (path == NULL || path[0] != '/') return "VGPU_NVML is not set to a full path";
  void *library = vgpu__dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL || dlsym(library, "vgpu_nvml_version") != NULL) return "it cannot be loaded";
  int lacks = vgpu__bind_one(library, &nvml.init, "nvmlInit_v2") |
              vgpu__bind_one(library, &nvml.count, "nvmlDeviceGetCount_v2") |
              vgpu__bind_one(library, &nvml.at, "nvmlDeviceGetHandleByIndex_v2");
  vgpu__bind_one(library, &nvml.named, "nvmlDeviceGetHandleByUUID");
  nvml.size = sizeof(struct nvml_process_v2);
  if (vgpu__bind_one(library, &nvml.processes, "nvmlDeviceGetComputeRunningProcesses_v3") != 0 &&
      vgpu__bind_one(library, &nvml.processes, "nvmlDeviceGetComputeRunningProcesses_v2") != 0) {
    nvml.size = sizeof(struct nvml_process_v1);
    lacks |= vgpu__bind_one(library, &nvml.processes, "nvmlDeviceGetComputeRunningProcesses");
  }
  if (lacks) return "it lacks a function";
  if (nvml.init() != NVML_SUCCESS) return "it cannot be initialised";
  return vgpu__numbers_are_ours(library) ? NULL
                                         : "the driver is older than 565 and does not use this pid namespace's pids";
}

static uint32_t began; /* the thread that called cuInit */

void vgpu__held_began(void) { STORE(began, (uint32_t)syscall(SYS_gettid)); }

/*
 * Drivers up to 570.86 identify a process by the thread that initialised CUDA: os_get_pid_info uses PIDTYPE_PID there,
 * and PIDTYPE_TGID later. If that thread has ended, its number still counts as ours until another process or thread has
 * it.
 */
static int vgpu__is_ours(unsigned pid) {
  struct stat seen;
  char path[64];
  if (pid == (unsigned)getpid()) return 1;
  snprintf(path, sizeof path, "/proc/self/task/%u", pid);
  if (vgpu__stat(path, &seen) == 0) return 1;
  snprintf(path, sizeof path, "/proc/%u", pid);
  return pid == LOAD(began) && vgpu__stat(path, &seen) != 0;
}

/* Adds what this process holds on a device. 1: it is listed; 0: it is not; -1: no figure. */
static int vgpu__held_on(nvmlDevice_t device, uint64_t *bytes) {
  static _Alignas(8) char infos[PROCESSES * sizeof(struct nvml_process_v2)];
  unsigned count = PROCESSES;
  int seen = 0;
  if (nvml.processes(device, &count, infos) != NVML_SUCCESS) return -1;
  for (unsigned j = 0; j < count && j < PROCESSES; j++) {
    struct nvml_process_v1 info; /* the later forms begin with these fields */
    memcpy(&info, infos + j * nvml.size, sizeof info);
    if (!vgpu__is_ours(info.pid)) continue;
    if (info.bytes == NOT_AVAILABLE) return -1;
    *bytes += info.bytes;
    seen = 1;
  }
  return seen;
}

static int vgpu__held_by_us(uint64_t *bytes) {
  unsigned devices = 0;
  int seen = 0;
  if (nvml.count(&devices) != NVML_SUCCESS) return -1;
  for (unsigned i = 0; i < devices && i < DEVICES; i++) {
    nvmlDevice_t device;
    if (nvml.at(i, &device) != NVML_SUCCESS) continue;
    int here = vgpu__held_on(device, bytes);
    if (here < 0) return -1;
    seen |= here;
  }
  return seen;
}

int vgpu__held_read(const char *uuid, uint64_t *bytes) {
  nvmlDevice_t device;
  *bytes = 0;
  vgpu__lock(&nvml.lock);
  int told = uuid[0] == '\0'                                                   ? vgpu__held_by_us(bytes)
             : nvml.named == NULL || nvml.named(uuid, &device) != NVML_SUCCESS ? -1
                                                                               : vgpu__held_on(device, bytes);
  vgpu__unlock(&nvml.lock);
  return told;
}

void vgpu__held_forget(void) { memset(&nvml, 0, sizeof nvml); }
