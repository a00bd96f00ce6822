/* Observers: the device's memory according to NVML, and the machine's own lateness. */
#define _GNU_SOURCE
#include "program.h"

#include "nvml_reader.h"

#include <dlfcn.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct reading {
  uint64_t samples;
  uint64_t now; /* bytes that live processes hold */
  uint64_t peak;
  uint64_t over;       /* the largest excess over the limit */
  uint64_t device_now; /* used bytes of the device */
  unsigned processes;
};

static void *find(void *library, const char *name) {
  void *function = dlsym(library, name);
  if (function == NULL) {
    fail(name, 0);
  }
  return function;
}

void nvml_start(struct nvml *nvml) {
  const char *path = getenv("VGPU_NVML");
  void *library = dlopen(path != NULL ? path : "libnvidia-ml.so.1", RTLD_NOW);
  if (library == NULL) {
    fail("dlopen of NVML", 0);
  }
  *(void **)&nvml->init = find(library, "nvmlInit_v2");
  *(void **)&nvml->handle = find(library, "nvmlDeviceGetHandleByIndex_v2");
  *(void **)&nvml->processes = find(library, "nvmlDeviceGetComputeRunningProcesses_v3");
  *(void **)&nvml->memory = find(library, "nvmlDeviceGetMemoryInfo");
  if (nvml->init() != 0 || nvml->handle(0, &nvml->device) != 0) {
    fail("nvmlInit", 0);
  }
}

/* False for a process that has ended, reaped or not: its memory is being reclaimed. */
bool nvml_is_alive(unsigned pid) {
  char path[64];
  char state = 'X';
  snprintf(path, sizeof path, "/proc/%u/stat", pid);
  FILE *file = fopen(path, "r");
  if (file == NULL) {
    return false;
  }
  if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1) {
    state = 'X';
  }
  fclose(file);
  return state != 'Z' && state != 'X';
}

unsigned nvml_read(const struct nvml *nvml, struct nvml_process *processes, unsigned room) {
  unsigned count = room;
  if (nvml->processes(nvml->device, &count, processes) != 0) {
    fail("NVML", 0);
  }
  return count;
}

unsigned long long nvml_used(const struct nvml *nvml) {
  struct nvml_memory memory;
  if (nvml->memory(nvml->device, &memory) != 0) {
    fail("NVML", 0);
  }
  return memory.used;
}

static uint64_t sum(const struct nvml_process *processes, unsigned count, bool only_living) {
  uint64_t bytes = 0;
  for (unsigned i = 0; i < count; i++) {
    bytes += !only_living || nvml_is_alive(processes[i].pid) ? processes[i].used : 0;
  }
  return bytes;
}

static void sample(const struct nvml *nvml, uint64_t limit, struct reading *reading) {
  struct nvml_process processes[512];
  unsigned count = nvml_read(nvml, processes, sizeof processes / sizeof *processes);
  uint64_t bytes = sum(processes, count, false);
  if (bytes > limit) {
    bytes = sum(processes, count, true);
  }
  reading->samples++;
  reading->processes = count;
  reading->now = bytes;
  reading->device_now = nvml_used(nvml);
  reading->peak = bytes > reading->peak ? bytes : reading->peak;
  if (bytes > limit && bytes - limit > reading->over) {
    reading->over = bytes - limit;
  }
}

static bool has_process(const struct nvml *nvml, unsigned pid) {
  struct nvml_process processes[512];
  unsigned count = nvml_read(nvml, processes, sizeof processes / sizeof *processes);
  for (unsigned i = 0; i < count; i++) {
    if (processes[i].pid == pid) {
      return true;
    }
  }
  return false;
}

static bool input_waits(int timeout_ms) { return poll(&(struct pollfd){STDIN_FILENO, POLLIN, 0}, 1, timeout_ms) > 0; }

int mode_observe(int count, char **arguments) {
  struct nvml nvml;
  struct reading reading = {0};
  char line[128];
  if (count != 1) {
    return 2;
  }
  setvbuf(stdin, NULL, _IONBF, 0); /* unbuffered, so that poll sees each line */
  uint64_t limit = strtoull(arguments[0], NULL, 10);
  nvml_start(&nvml);
  say("ready");
  for (;;) {
    while (!input_waits(0)) {
      sample(&nvml, limit, &reading);
      nanosleep(&(struct timespec){0, 20000}, NULL);
    }
    if (!next_line(line, sizeof line)) {
      return 0;
    }
    if (strncmp(line, "has ", 4) == 0) {
      say("observe has %d", has_process(&nvml, (unsigned)strtoul(line + 4, NULL, 10)));
      continue;
    }
    sample(&nvml, limit, &reading);
    say("observe samples %llu now %llu peak %llu over %llu device_now %llu processes %u",
        (unsigned long long)reading.samples, (unsigned long long)reading.now, (unsigned long long)reading.peak,
        (unsigned long long)reading.over, (unsigned long long)reading.device_now, reading.processes);
    reading.peak = 0;
    reading.over = 0;
  }
}

/* The longest delay with which this machine wakes a thread. */
int mode_noise(int count, char **arguments) {
  uint64_t worst = 0;
  char line[128];
  (void)count;
  (void)arguments;
  setvbuf(stdin, NULL, _IONBF, 0);
  say("ready");
  for (;;) {
    while (!input_waits(0)) {
      uint64_t begin = now_ns();
      nanosleep(&(struct timespec){0, 1000000}, NULL);
      uint64_t late = now_ns() - begin - 1000000;
      worst = late > worst ? late : worst;
    }
    if (!next_line(line, sizeof line)) {
      return 0;
    }
    say("noise worst_ns %llu", (unsigned long long)worst);
    worst = 0;
  }
}
