/*
 * Keeps the GPU busy: kernels of N microseconds, grid G, waiting for the GPU after every K of them, and says what it
 * got. Reaches the driver by dlopen.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "program.h"

enum launch_kind { LAUNCH_KERNEL, LAUNCH_EX, LAUNCH_COOPERATIVE, LAUNCH_GRAPH };

#define MOST_STREAMS 64u

static int binding = BIND_DLSYM;
static int kind = LAUNCH_KERNEL;
static double kernel_us = 1000;
static uint64_t grid = 1;
static uint64_t block = 32;
static uint64_t sync_every = 1;
static uint64_t streams = 0;
static uint64_t ordinal;
static uint64_t count;
static double seconds = 10;
static uint64_t hold;
static bool as_json;

static const struct option_row options[] = {
    {"us", OPTION_DECIMAL, &kernel_us, NULL, 0, 1e9, "what a kernel takes, in microseconds"},
    {"grid", OPTION_COUNT, &grid, NULL, 1, 2147483647, "blocks of a kernel"},
    {"block", OPTION_COUNT, &block, NULL, 1, 1024, "threads of a block"},
    {"sync", OPTION_COUNT, &sync_every, NULL, 0, 1e15, "wait for the GPU after that many kernels; 0: only at the end"},
    {"seconds", OPTION_DECIMAL, &seconds, NULL, 0, 1e9, "how long to go on"},
    {"count", OPTION_COUNT, &count, NULL, 0, 1e15, "stop after that many kernels; 0: go by the time"},
    {"streams", OPTION_COUNT, &streams, NULL, 0, MOST_STREAMS, "own streams, in turn; 0: the default stream"},
    {"hold", OPTION_SIZE, &hold, NULL, 0, 1e15, "hold that much memory meanwhile"},
    {"launch", OPTION_CHOICE, &kind, "kernel,ex,cooperative,graph", 0, 0, "how kernels are launched"},
    {"bind", OPTION_CHOICE, &binding, BINDING_CHOICES, 0, 0, "how the driver is reached"},
    {"device", OPTION_COUNT, &ordinal, NULL, 0, 1023, "which GPU"},
    {"json", OPTION_FLAG, &as_json, NULL, 0, 0, "print one JSON object"},
};

struct run {
  struct device device;
  CUfunction kernel;
  CUgraphExec graph;
  CUstream streams[MOST_STREAMS];
  CUdeviceptr held;
  uint64_t kernel_ns;
  uint64_t launched;
  uint64_t completed;
  uint64_t start_ns;
  uint64_t round_start_ns;
  uint64_t wall_ns;
  struct histogram launches; /* what a launch took to return */
  struct histogram rounds;   /* from the first launch of a round until the GPU had done all of it */
};

static struct run run;

static CUstream stream_of(uint64_t launch) { return streams == 0 ? NULL : run.streams[launch % streams]; }

static int launch(CUstream stream) {
  struct device *device = &run.device;
  void *parameters[] = {&run.kernel_ns};
  unsigned int blocks = (unsigned int)grid;
  unsigned int threads = (unsigned int)block;
  CUlaunchConfig config = {blocks, 1, 1, threads, 1, 1, 0, stream, NULL, 0};
  switch (kind) {
    case LAUNCH_EX: return CALL(device, cuLaunchKernelEx, &config, run.kernel, parameters, NULL);
    case LAUNCH_COOPERATIVE:
      return CALL(device, cuLaunchCooperativeKernel, run.kernel, blocks, 1, 1, threads, 1, 1, 0, stream, parameters);
    case LAUNCH_GRAPH:
      if (run.graph != NULL) {
        return CALL(device, cuGraphLaunch, run.graph, stream);
      }
      /* While the graph is recorded. */
      __attribute__((fallthrough));
    default: return CALL(device, cuLaunchKernel, run.kernel, blocks, 1, 1, threads, 1, 1, 0, stream, parameters, NULL);
  }
}

/* Records one kernel into a graph. */
static int record_graph(void) {
  struct device *device = &run.device;
  CUstream stream;
  CUgraph graph;
  if (CALL(device, cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING) != 0 ||
      CALL(device, cuStreamBeginCapture, stream, CU_STREAM_CAPTURE_MODE_RELAXED) != 0 || launch(stream) != 0 ||
      CALL(device, cuStreamEndCapture, stream, &graph) != 0 ||
      CALL(device, cuGraphInstantiateWithFlags, &run.graph, graph, 0) != 0) {
    return 1;
  }
  return CALL(device, cuStreamDestroy, stream);
}

static int prepare(void) {
  struct device *device = &run.device;
  run.kernel_ns = (uint64_t)(kernel_us * 1000);
  if (device_kernel(device, &run.kernel, "vgpu_spin") != 0 ||
      (hold > 0 && CALL(device, cuMemAlloc, &run.held, (size_t)hold) != 0)) {
    return 1;
  }
  for (uint64_t i = 0; i < streams; i++) {
    if (CALL(device, cuStreamCreate, &run.streams[i], CU_STREAM_NON_BLOCKING) != 0) {
      return 1;
    }
  }
  return kind == LAUNCH_GRAPH ? record_graph() : 0;
}

static int synchronize(uint64_t launched) {
  if (CALL_NONE(&run.device, cuCtxSynchronize) != 0) {
    return 1;
  }
  uint64_t now = now_ns();
  histogram_add(&run.rounds, now - run.round_start_ns);
  run.round_start_ns = now;
  run.completed = launched;
  return 0;
}

static bool is_over(void) {
  if (program_stopped()) {
    return true;
  }
  if (count > 0) {
    return run.launched >= count;
  }
  return (double)(now_ns() - run.start_ns) >= seconds * 1e9;
}

static int spin(void) {
  int rc = 0;
  run.start_ns = now_ns();
  run.round_start_ns = run.start_ns;
  while (rc == 0 && !is_over()) {
    uint64_t before = now_ns();
    rc = launch(stream_of(run.launched));
    if (rc != 0) {
      break;
    }
    histogram_add(&run.launches, now_ns() - before);
    run.launched++;
    if (sync_every > 0 && run.launched % sync_every == 0) {
      rc = synchronize(run.launched);
    }
  }
  if (rc == 0 && run.completed < run.launched) {
    rc = synchronize(run.launched);
  }
  run.wall_ns = now_ns() - run.start_ns;
  return rc;
}

static double us(uint64_t ns) { return (double)ns / 1e3; }

static void print_json(double per_s, double share) {
  printf("{\"program\":\"spin\",\"device\":\"%s\",\"kernel_us\":%g,\"grid\":%llu,\"block\":%llu,\"sync_every\":%llu,",
         run.device.name, kernel_us, (unsigned long long)grid, (unsigned long long)block,
         (unsigned long long)sync_every);
  printf("\"kernels\":%llu,\"seconds\":%.6f,\"kernels_per_s\":%.3f,\"share_percent\":%.3f,",
         (unsigned long long)run.completed, (double)run.wall_ns / 1e9, per_s, share);
  printf("\"launch_us\":{\"p50\":%.3f,\"p90\":%.3f,\"p99\":%.3f,\"max\":%.3f},",
         us(histogram_percentile(&run.launches, 50)), us(histogram_percentile(&run.launches, 90)),
         us(histogram_percentile(&run.launches, 99)), us(run.launches.largest));
  printf("\"round_us\":{\"p50\":%.3f,\"p90\":%.3f,\"p99\":%.3f,\"max\":%.3f}}\n",
         us(histogram_percentile(&run.rounds, 50)), us(histogram_percentile(&run.rounds, 90)),
         us(histogram_percentile(&run.rounds, 99)), us(run.rounds.largest));
}

static void print_text(double per_s, double share) {
  printf("%s: %llu kernels of %g us in %.3f s: %.1f/s, %.2f %% of the time\n", run.device.name,
         (unsigned long long)run.completed, kernel_us, (double)run.wall_ns / 1e9, per_s, share);
  printf("launch us: p50 %.2f, p90 %.2f, p99 %.2f, worst %.2f\n", us(histogram_percentile(&run.launches, 50)),
         us(histogram_percentile(&run.launches, 90)), us(histogram_percentile(&run.launches, 99)),
         us(run.launches.largest));
  printf("round us (first launch to GPU done): p50 %.2f, p90 %.2f, p99 %.2f, worst %.2f\n",
         us(histogram_percentile(&run.rounds, 50)), us(histogram_percentile(&run.rounds, 90)),
         us(histogram_percentile(&run.rounds, 99)), us(run.rounds.largest));
}

int main(int argc, char **argv) {
  program_begin(argc, argv, "Keeps the GPU busy with kernels that take a given time, and says what it got.", options,
                sizeof(options) / sizeof(options[0]));
  if (device_open(&run.device, (enum binding)binding, (int)ordinal) != 0) {
    return 1;
  }
  int rc = prepare();
  if (rc == 0) {
    rc = spin();
    double wall_s = (double)run.wall_ns / 1e9;
    double per_s = wall_s > 0 ? (double)run.completed / wall_s : 0;
    double share = per_s * (double)run.kernel_ns / 1e7;
    if (as_json) {
      print_json(per_s, share);
    } else {
      print_text(per_s, share);
    }
  }
  device_close(&run.device);
  return rc;
}
