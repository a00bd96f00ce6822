/*
 * Stands in for nvidia-smi in tests of gpu-check. Answers --query-gpu and --query-compute-apps from the NVML that the
 * loader finds, without any code of vgpu. NVIDIA_SMI_SAYS="field=value" replaces the value of one field for all GPUs.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct memory {
  unsigned version;
  unsigned long long total, reserved, free, used;
};
struct process {
  unsigned pid;
  unsigned long long memory;
  unsigned gpu_instance, compute_instance;
};

static void *library;

/* Calls a function of NVML with up to four words, and returns its code. */
static int call(const char *name, uintptr_t a, uintptr_t b, uintptr_t c) {
  int (*function)(uintptr_t, uintptr_t, uintptr_t);
  *(void **)&function = dlsym(library, name);
  return function == NULL ? 13 : function(a, b, c);
}

static void mebibytes(char *into, size_t size, unsigned long long bytes) { snprintf(into, size, "%llu", bytes >> 20); }

static void field_of(uintptr_t gpu, const char *field, char *into, size_t size) {
  struct memory memory = {.version = sizeof(struct memory) | 2u << 24};
  unsigned one = 0, other = 0;
  snprintf(into, size, "[N/A]");
  if (strcmp(field, "uuid") == 0 || strcmp(field, "gpu_uuid") == 0) {
    call("nvmlDeviceGetUUID", gpu, (uintptr_t)into, size);
  } else if (strcmp(field, "name") == 0) {
    call("nvmlDeviceGetName", gpu, (uintptr_t)into, size);
  } else if (strcmp(field, "driver_version") == 0) {
    call("nvmlSystemGetDriverVersion", (uintptr_t)into, size, 0);
  } else if (strncmp(field, "memory.", 7) == 0 && call("nvmlDeviceGetMemoryInfo_v2", gpu, (uintptr_t)&memory, 0) == 0) {
    mebibytes(into, size,
              strcmp(field, "memory.total") == 0      ? memory.total
              : strcmp(field, "memory.reserved") == 0 ? memory.reserved
                                                      : memory.used);
  } else if (strcmp(field, "mig.mode.current") == 0 &&
             call("nvmlDeviceGetMigMode", gpu, (uintptr_t)&one, (uintptr_t)&other) == 0) {
    snprintf(into, size, one == 1 ? "Enabled" : "Disabled");
  } else if (strcmp(field, "compute_mode") == 0 && call("nvmlDeviceGetComputeMode", gpu, (uintptr_t)&one, 0) == 0) {
    snprintf(into, size, one == 0 ? "Default" : one == 2 ? "Prohibited" : "Exclusive_Process");
  }
  const char *says = getenv("NVIDIA_SMI_SAYS");
  size_t length = strlen(field);
  if (says != NULL && strncmp(says, field, length) == 0 && says[length] == '=') {
    snprintf(into, size, "%s", says + length + 1);
  }
}

static void print_gpu(uintptr_t gpu, const char *fields) {
  char list[512], value[128], *rest = NULL;
  snprintf(list, sizeof list, "%s", fields);
  for (char *field = strtok_r(list, ",", &rest), *before = NULL; field != NULL;
       before = field, field = strtok_r(NULL, ",", &rest)) {
    field_of(gpu, field, value, sizeof value);
    printf("%s%s", before == NULL ? "" : ", ", value);
  }
  printf("\n");
}

static void print_processes(uintptr_t gpu) {
  static struct process processes[256];
  char uuid[128];
  unsigned count = 256;
  field_of(gpu, "uuid", uuid, sizeof uuid);
  if (call("nvmlDeviceGetComputeRunningProcesses_v3", gpu, (uintptr_t)&count, (uintptr_t)processes) == 0) {
    for (unsigned i = 0; i < count && i < 256; i++) {
      printf("%s, %u, %llu\n", uuid, processes[i].pid, processes[i].memory >> 20);
    }
  }
}

int main(int count, char **arguments) {
  static const char gpu_query[] = "--query-gpu=", process_query[] = "--query-compute-apps=";
  unsigned gpus = 0;
  library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL || call("nvmlInit_v2", 0, 0, 0) != 0 ||
      call("nvmlDeviceGetCount_v2", (uintptr_t)&gpus, 0, 0) != 0) {
    fprintf(stderr, "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n");
    return 9;
  }
  for (unsigned i = 0; i < gpus; i++) {
    uintptr_t gpu = 0;
    if (count < 2 || call("nvmlDeviceGetHandleByIndex_v2", i, (uintptr_t)&gpu, 0) != 0) {
      return 6;
    }
    if (strncmp(arguments[1], gpu_query, sizeof gpu_query - 1) == 0) {
      print_gpu(gpu, arguments[1] + sizeof gpu_query - 1);
    } else if (strncmp(arguments[1], process_query, sizeof process_query - 1) == 0) {
      print_processes(gpu);
    } else {
      printf("not known to this stand-in: %s\n", arguments[1]);
      return 2;
    }
  }
  return 0;
}
