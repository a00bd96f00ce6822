/*
 * Requests at a given rate, with the GPU idle in between: what an inference service asks of a GPU. Prints how long the
 * requests took, from when each was due. Linked with the driver.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "program.h"

static int binding;
static double rate = 20;
static uint64_t kernels = 10;
static double kernel_us = 500;
static uint64_t grid = 1;
static double seconds = 10;
static uint64_t hold;
static uint64_t ordinal;
static bool is_poisson;
static bool as_json;

static const struct option_row options[] = {
    {"rate", OPTION_DECIMAL, &rate, NULL, 0.001, 1e6, "requests each second"},
    {"kernels", OPTION_COUNT, &kernels, NULL, 1, 1e6, "kernels of a request"},
    {"us", OPTION_DECIMAL, &kernel_us, NULL, 0, 1e9, "what a kernel takes, in microseconds"},
    {"grid", OPTION_COUNT, &grid, NULL, 1, 2147483647, "blocks of a kernel"},
    {"seconds", OPTION_DECIMAL, &seconds, NULL, 0, 1e9, "how long to go on"},
    {"hold", OPTION_SIZE, &hold, NULL, 0, 1e15, "hold that much memory meanwhile"},
    {"poisson", OPTION_FLAG, &is_poisson, NULL, 0, 0, "requests come at random, the same in each run"},
    {"bind", OPTION_CHOICE, &binding, "link," BINDING_CHOICES, 0, 0, "how the driver is reached"},
    {"device", OPTION_COUNT, &ordinal, NULL, 0, 1023, "which GPU"},
    {"json", OPTION_FLAG, &as_json, NULL, 0, 0, "print one JSON object"},
};

static struct device device;
static struct histogram latencies;

static uint64_t gap_ns(void) {
  static uint64_t state = 88172645463325252ull;
  if (!is_poisson) {
    return (uint64_t)(1e9 / rate);
  }
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  double uniform = ((double)(state >> 11) + 0.5) / 9007199254740992.0;
  return (uint64_t)(-log(uniform) * 1e9 / rate);
}

static int serve(CUfunction kernel) {
  uint64_t kernel_ns = (uint64_t)(kernel_us * 1000);
  void *parameters[] = {&kernel_ns};
  int rc = 0;
  for (uint64_t i = 0; i < kernels && rc == 0; i++) {
    rc = CALL(&device, cuLaunchKernel, kernel, (unsigned int)grid, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL);
  }
  return rc != 0 ? rc : CALL(&device, cuStreamSynchronize, NULL);
}

static double ms(uint64_t ns) { return (double)ns / 1e6; }

static void print(double wall_s) {
  double work_ms = (double)kernels * kernel_us / 1e3;
  double p50 = ms(histogram_percentile(&latencies, 50));
  double p90 = ms(histogram_percentile(&latencies, 90));
  double p99 = ms(histogram_percentile(&latencies, 99));
  double mean = latencies.count == 0 ? 0 : ms(latencies.sum) / (double)latencies.count;
  if (as_json) {
    printf("{\"program\":\"burst\",\"device\":\"%s\",\"rate\":%g,\"kernels\":%llu,\"kernel_us\":%g,\"work_ms\":%.3f,",
           device.name, rate, (unsigned long long)kernels, kernel_us, work_ms);
    printf("\"requests\":%llu,\"seconds\":%.6f,\"latency_ms\":{\"mean\":%.3f,\"p50\":%.3f,\"p90\":%.3f,\"p99\":%.3f,"
           "\"max\":%.3f}}\n",
           (unsigned long long)latencies.count, wall_s, mean, p50, p90, p99, ms(latencies.largest));
  } else {
    printf("%s: %llu requests of %.2f ms in %.3f s\n", device.name, (unsigned long long)latencies.count, work_ms,
           wall_s);
    printf("latency ms: mean %.2f, p50 %.2f, p90 %.2f, p99 %.2f, worst %.2f\n", mean, p50, p90, p99,
           ms(latencies.largest));
  }
}

static int burst(void) {
  CUfunction kernel;
  CUdeviceptr held;
  if (device_kernel(&device, &kernel, "vgpu_spin") != 0 ||
      (hold > 0 && CALL(&device, cuMemAlloc, &held, (size_t)hold) != 0)) {
    return 1;
  }
  uint64_t start = now_ns();
  uint64_t end = start + (uint64_t)(seconds * 1e9);
  uint64_t due = start;
  int rc = 0;
  while (rc == 0 && due < end) {
    sleep_until(due);
    if (program_stopped()) {
      break;
    }
    rc = serve(kernel);
    if (rc == 0) {
      histogram_add(&latencies, now_ns() - due);
    }
    due += gap_ns();
  }
  print((double)(now_ns() - start) / 1e9);
  return rc;
}

int main(int argc, char **argv) {
  program_begin(argc, argv, "Requests with idle gaps between them; prints their latencies.", options,
                sizeof(options) / sizeof(options[0]));
  /* The choice "link" stands first. */
  if (device_open(&device, binding == 0 ? BIND_LINK : (enum binding)(binding - 1), (int)ordinal) != 0) {
    return 1;
  }
  int rc = burst();
  device_close(&device);
  return rc;
}
