/*
 * Multiplies matrices on the GPU and checks every element against the CPU. Reaches the driver by cuGetProcAddress, as
 * the CUDA runtime does.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "program.h"

#define TILE 16u

static int binding = BIND_PROC_ADDRESS;
static uint64_t rows = 192;
static uint64_t columns = 160;
static uint64_t inner = 128;
static uint64_t repeat = 1;
static double seconds;
static uint64_t ordinal;
static bool as_json;

static const struct option_row options[] = {
    {"m", OPTION_COUNT, &rows, NULL, 1, 16384, "rows of A and C"},
    {"n", OPTION_COUNT, &columns, NULL, 1, 16384, "columns of B and C"},
    {"k", OPTION_COUNT, &inner, NULL, 1, 16384, "columns of A, rows of B"},
    {"repeat", OPTION_COUNT, &repeat, NULL, 1, 1e12, "multiply that often"},
    {"seconds", OPTION_DECIMAL, &seconds, NULL, 0, 1e9, "multiply for so long instead"},
    {"bind", OPTION_CHOICE, &binding, BINDING_CHOICES, 0, 0, "how the driver is reached"},
    {"device", OPTION_COUNT, &ordinal, NULL, 0, 1023, "which GPU"},
    {"json", OPTION_FLAG, &as_json, NULL, 0, 0, "print one JSON object"},
};

static struct device device;
static float *a;
static float *b;
static float *c;
static float *expected;

/* Small whole numbers and quarters: sums are exact, so that nothing is lost to the order of the additions. */
static void make_inputs(void) {
  uint32_t state = 12345;
  for (uint64_t i = 0; i < rows * inner; i++) {
    state = state * 1664525u + 1013904223u;
    a[i] = (float)(int)(state >> 29) - 4.0f;
  }
  for (uint64_t i = 0; i < inner * columns; i++) {
    state = state * 1664525u + 1013904223u;
    b[i] = ((float)(int)(state >> 29) - 4.0f) / 4.0f;
  }
}

static void multiply_here(void) {
  for (uint64_t row = 0; row < rows; row++) {
    for (uint64_t i = 0; i < inner; i++) {
      for (uint64_t column = 0; column < columns; column++) {
        expected[row * columns + column] += a[row * inner + i] * b[i * columns + column];
      }
    }
  }
}

static int multiply(CUfunction kernel, CUdeviceptr d_a, CUdeviceptr d_b, CUdeviceptr d_c, uint64_t *times) {
  uint32_t m = (uint32_t)rows;
  uint32_t n = (uint32_t)columns;
  uint32_t k = (uint32_t)inner;
  void *parameters[] = {&d_a, &d_b, &d_c, &m, &n, &k};
  uint64_t start = now_ns();
  int rc = 0;
  do {
    rc = CALL(&device, cuLaunchKernel, kernel, (n + TILE - 1) / TILE, (m + TILE - 1) / TILE, 1, TILE, TILE, 1, 0, NULL,
              parameters, NULL);
    if (rc == 0) {
      rc = CALL_NONE(&device, cuCtxSynchronize);
      (*times)++;
    }
  } while (rc == 0 && !program_stopped() &&
           (seconds > 0 ? (double)(now_ns() - start) < seconds * 1e9 : *times < repeat));
  return rc;
}

/* How many elements differ; says which is the first. */
static uint64_t compare(void) {
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < rows * columns; i++) {
    if (!(fabsf(c[i] - expected[i]) <= 1e-3f)) {
      if (wrong == 0) {
        program_error("C[%llu][%llu] is %g, not %g", (unsigned long long)(i / columns),
                      (unsigned long long)(i % columns), (double)c[i], (double)expected[i]);
      }
      wrong++;
    }
  }
  return wrong;
}

static void print(uint64_t times, uint64_t wrong, uint64_t wall_ns) {
  double gflops = wall_ns == 0 ? 0 : 2.0 * (double)(rows * columns * inner) * (double)times / (double)wall_ns;
  if (as_json) {
    printf("{\"program\":\"sgemm\",\"device\":\"%s\",\"m\":%llu,\"n\":%llu,\"k\":%llu,\"times\":%llu,\"wrong\":%llu,"
           "\"seconds\":%.6f,\"gflops\":%.3f}\n",
           device.name, (unsigned long long)rows, (unsigned long long)columns, (unsigned long long)inner,
           (unsigned long long)times, (unsigned long long)wrong, (double)wall_ns / 1e9, gflops);
  } else {
    printf("%s: %llu x %llu x %llu, %llu times: %s, %.2f GFLOP/s\n", device.name, (unsigned long long)rows,
           (unsigned long long)columns, (unsigned long long)inner, (unsigned long long)times,
           wrong == 0 ? "correct" : "WRONG", gflops);
  }
}

static int sgemm(void) {
  size_t a_bytes = (size_t)(rows * inner) * sizeof(float);
  size_t b_bytes = (size_t)(inner * columns) * sizeof(float);
  size_t c_bytes = (size_t)(rows * columns) * sizeof(float);
  CUfunction kernel;
  CUdeviceptr d_a;
  CUdeviceptr d_b;
  CUdeviceptr d_c;
  uint64_t times = 0;
  if (device_kernel(&device, &kernel, "vgpu_sgemm") != 0 || CALL(&device, cuMemAlloc, &d_a, a_bytes) != 0 ||
      CALL(&device, cuMemAlloc, &d_b, b_bytes) != 0 || CALL(&device, cuMemAlloc, &d_c, c_bytes) != 0 ||
      CALL(&device, cuMemcpyHtoD, d_a, a, a_bytes) != 0 || CALL(&device, cuMemcpyHtoD, d_b, b, b_bytes) != 0) {
    return 1;
  }
  uint64_t start = now_ns();
  int rc = multiply(kernel, d_a, d_b, d_c, &times);
  uint64_t wall_ns = now_ns() - start;
  if (rc != 0 || CALL(&device, cuMemcpyDtoH, c, d_c, c_bytes) != 0) {
    return 1;
  }
  uint64_t wrong = compare();
  print(times, wrong, wall_ns);
  return (CALL(&device, cuMemFree, d_a) | CALL(&device, cuMemFree, d_b) | CALL(&device, cuMemFree, d_c)) != 0 ||
         wrong > 0;
}

int main(int argc, char **argv) {
  program_begin(argc, argv, "Multiplies matrices on the GPU and checks the result; exit code 1 if it is wrong.",
                options, sizeof(options) / sizeof(options[0]));
  a = calloc((size_t)(rows * inner), sizeof(float));
  b = calloc((size_t)(inner * columns), sizeof(float));
  c = calloc((size_t)(rows * columns), sizeof(float));
  expected = calloc((size_t)(rows * columns), sizeof(float));
  if (a == NULL || b == NULL || c == NULL || expected == NULL) {
    program_error("no memory");
    return 1;
  }
  make_inputs();
  multiply_here();
  if (device_open(&device, (enum binding)binding, (int)ordinal) != 0) {
    return 1;
  }
  int rc = sgemm();
  device_close(&device);
  free(a);
  free(b);
  free(c);
  free(expected);
  return rc;
}
