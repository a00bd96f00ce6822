/* Shows the GPUs as nvidia-smi does: memory, utilisation, temperature, and the processes that use them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nvml.h"
#include "program.h"

enum { TEXT = 96, MOST_PROCESSES = 256, NAME_SHOWN = 40, SUCCESS = 0, NOT_SUPPORTED = 3 };

static bool as_json, as_list;
static struct nvml nvml;

struct gpu {
  unsigned index;
  char name[TEXT], uuid[TEXT];
  struct nvml_memory memory;
  struct nvml_memory_v2 memory_v2;
  struct nvml_utilization rates;
  unsigned celsius, milliwatts, mig_count, process_count;
  struct nvml_process processes[MOST_PROCESSES];
};

/* Ends the program where a call failed. */
static void check(const char *call, int result) {
  if (result == SUCCESS) return;
  program_error("%s: %s (%d)", call, nvml.nvmlErrorString(result), result);
  exit(1);
}
#define CALL(function, ...) check(#function, nvml.function(__VA_ARGS__))

static void read_gpu(nvml_device device, struct gpu *gpu) {
  CALL(nvmlDeviceGetIndex, device, &gpu->index);
  CALL(nvmlDeviceGetName, device, gpu->name, sizeof gpu->name);
  CALL(nvmlDeviceGetUUID, device, gpu->uuid, sizeof gpu->uuid);
  CALL(nvmlDeviceGetMemoryInfo, device, &gpu->memory);
  gpu->memory_v2.version = (unsigned)sizeof gpu->memory_v2 | 2u << 24;
  CALL(nvmlDeviceGetMemoryInfo_v2, device, &gpu->memory_v2);
  if (nvml.nvmlDeviceGetTemperature(device, 0, &gpu->celsius) != SUCCESS) gpu->celsius = 0;
  if (nvml.nvmlDeviceGetPowerUsage(device, &gpu->milliwatts) != SUCCESS) gpu->milliwatts = 0;
  if (nvml.nvmlDeviceGetMaxMigDeviceCount(device, &gpu->mig_count) != SUCCESS) gpu->mig_count = 0;
  int result = nvml.nvmlDeviceGetUtilizationRates(device, &gpu->rates); /* not for a GPU that is cut into instances */
  if (result != NOT_SUPPORTED) check("nvmlDeviceGetUtilizationRates", result);
  gpu->process_count = MOST_PROCESSES;
  CALL(nvmlDeviceGetComputeRunningProcesses_v3, device, &gpu->process_count, gpu->processes);
}

static const char *process_name(unsigned pid, char *name, unsigned size) {
  return nvml.nvmlSystemGetProcessName(pid, name, size) == SUCCESS ? name : "-";
}

static void print_json(const struct gpu *gpu, bool first) {
  char name[256];
  printf("%s{\"index\":%u,\"name\":\"%s\",\"uuid\":\"%s\",\"total\":%llu,\"used\":%llu,\"free\":%llu,",
         first ? "" : ",", gpu->index, gpu->name, gpu->uuid, gpu->memory.total, gpu->memory.used, gpu->memory.free);
  printf("\"total_v2\":%llu,\"used_v2\":%llu,\"free_v2\":%llu,\"utilization\":%u,\"processes\":[", gpu->memory_v2.total,
         gpu->memory_v2.used, gpu->memory_v2.free, gpu->rates.gpu);
  for (unsigned i = 0; i < gpu->process_count; i++) {
    printf("%s{\"pid\":%u,\"bytes\":%llu,\"name\":\"%s\"}", i == 0 ? "" : ",", gpu->processes[i].pid,
           gpu->processes[i].bytes, process_name(gpu->processes[i].pid, name, sizeof name));
  }
  printf("]}");
}

static void print_list(nvml_device device, const struct gpu *gpu) {
  printf("GPU %u: %s (UUID: %s)\n", gpu->index, gpu->name, gpu->uuid);
  for (unsigned i = 0; i < gpu->mig_count; i++) {
    char uuid[TEXT];
    nvml_device mig;
    if (nvml.nvmlDeviceGetMigDeviceHandleByIndex(device, i, &mig) != SUCCESS) continue;
    CALL(nvmlDeviceGetUUID, mig, uuid, sizeof uuid);
    printf("  MIG Device %u: (UUID: %s)\n", i, uuid);
  }
}

static void print_row(const struct gpu *gpu) {
  printf("| %3u  %-30.30s  %3uC  %5.0fW | %7lluMiB / %7lluMiB | %7u%% |\n", gpu->index, gpu->name, gpu->celsius,
         gpu->milliwatts / 1000.0, gpu->memory.used >> 20, gpu->memory.total >> 20, gpu->rates.gpu);
}

static void print_processes(const struct gpu *gpu) {
  char name[256];
  for (unsigned i = 0; i < gpu->process_count; i++) {
    const char *shown = process_name(gpu->processes[i].pid, name, sizeof name);
    size_t length = strlen(shown);
    printf("| %3u  %10u  %-40s  %10lluMiB          |\n", gpu->index, gpu->processes[i].pid,
           length > NAME_SHOWN ? shown + length - NAME_SHOWN : shown, gpu->processes[i].bytes >> 20);
  }
}

static void rule(void) {
  puts("+-------------------------------------------------------------------------------------+");
}

static void print_table(const struct gpu *gpus, unsigned count) {
  char driver[TEXT];
  int cuda;
  CALL(nvmlSystemGetDriverVersion, driver, sizeof driver);
  CALL(nvmlSystemGetCudaDriverVersion_v2, &cuda);
  rule();
  printf("| Driver Version: %-26s CUDA Version: %d.%-22d|\n", driver, cuda / 1000, cuda % 1000 / 10);
  printf("| GPU  Name                            Temp  Power |               Memory |     Util |\n");
  rule();
  for (unsigned i = 0; i < count; i++) print_row(&gpus[i]);
  rule();
  printf("| GPU         PID  Process name                                     Memory         |\n");
  for (unsigned i = 0; i < count; i++) print_processes(&gpus[i]);
  rule();
}

int main(int argc, char **argv) {
  const struct option_row options[] = {
      {"json", OPTION_FLAG, &as_json, NULL, 0, 0, "print JSON"},
      {"list", OPTION_FLAG, &as_list, NULL, 0, 0, "print names and UUIDs only"},
  };
  program_begin(argc, argv, "shows the GPUs and who uses them, by NVML", options, sizeof options / sizeof *options);
  const char *problem = nvml_open(&nvml);
  if (problem != NULL) {
    program_error("%s", problem);
    return 1;
  }
  unsigned count = 0;
  check("nvmlInit_v2", nvml.nvmlInit_v2());
  CALL(nvmlDeviceGetCount_v2, &count);
  struct gpu *gpus = calloc(count + 1, sizeof *gpus);
  if (gpus == NULL) return 1;
  if (as_json) printf("{\"gpus\":[");
  for (unsigned i = 0; i < count; i++) {
    nvml_device device;
    CALL(nvmlDeviceGetHandleByIndex_v2, i, &device);
    read_gpu(device, &gpus[i]);
    if (as_json) print_json(&gpus[i], i == 0);
    else if (as_list) print_list(device, &gpus[i]);
  }
  if (as_json) printf("]}\n");
  else if (!as_list) print_table(gpus, count);
  free(gpus);
  check("nvmlShutdown", nvml.nvmlShutdown());
  return 0;
}
