/*
 * An inference server. Requests arrive when they are due, whether or not earlier ones are done. Each request is a chain
 * of kernels, as many as its tokens need, then the answer. Requests are served one at a time, in the order of their
 * arrival.
 *
 * IN has a line for each request, "DUE PREFILL DECODE" in ns: its arrival, counted from T0, and the GPU time of the
 * prompt and of the answer. OUT gets a line for each, "DUE BEGIN END" in ns from T0; END is 0 for requests not served
 * by T0 + LIMIT.
 */
#define _GNU_SOURCE
#include "program.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

/* The longest kernel of a request. */
#define PREFILL_KERNEL_NS 500000u
#define DECODE_KERNEL_NS 100000u

struct request {
  uint64_t due_ns;
  uint64_t prefill_ns;
  uint64_t decode_ns;
  uint64_t begin_ns;
  uint64_t end_ns;
};

struct requests {
  struct request *all;
  size_t count;
};

static void read_requests(const char *path, struct requests *requests) {
  FILE *file = fopen(path, "r");
  size_t room = 0;
  unsigned long long due, prefill, decode;
  if (file == NULL) {
    fail("opening the requests", errno);
  }
  while (fscanf(file, "%llu %llu %llu", &due, &prefill, &decode) == 3) {
    if (requests->count == room) {
      room = room == 0 ? 1024 : 2 * room;
      requests->all = realloc(requests->all, room * sizeof *requests->all);
      if (requests->all == NULL) {
        fail("realloc", errno);
      }
    }
    requests->all[requests->count++] = (struct request){due, prefill, decode, 0, 0};
  }
  fclose(file);
}

static void write_requests(const char *path, const struct requests *requests) {
  FILE *file = fopen(path, "w");
  if (file == NULL) {
    fail("writing the results", errno);
  }
  for (size_t i = 0; i < requests->count; i++) {
    const struct request *request = &requests->all[i];
    fprintf(file, "%llu %llu %llu\n", (unsigned long long)request->due_ns, (unsigned long long)request->begin_ns,
            (unsigned long long)request->end_ns);
  }
  if (fclose(file) != 0) {
    fail("writing the results", errno);
  }
}

static void sleep_until(uint64_t deadline_ns) {
  struct timespec deadline = {(time_t)(deadline_ns / 1000000000u), (long)(deadline_ns % 1000000000u)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, NULL) == EINTR) {
  }
}

/* Launches the fewest kernels that the longest length allows, of about equal length; together exactly TOTAL. */
static CUresult launch_chain(const struct driver *driver, uint64_t total_ns, uint64_t longest_ns) {
  uint64_t kernels = (total_ns + longest_ns - 1) / longest_ns;
  CUresult result = CUDA_SUCCESS;
  for (uint64_t left = kernels; left > 0 && result == CUDA_SUCCESS; left--) {
    uint64_t ns = total_ns / left;
    total_ns -= ns;
    result = spin(driver, ns);
  }
  return result;
}

static void serve(const struct driver *driver, struct requests *requests, uint64_t t0_ns, uint64_t limit_ns) {
  for (size_t i = 0; i < requests->count; i++) {
    struct request *request = &requests->all[i];
    sleep_until(t0_ns + request->due_ns);
    request->begin_ns = now_ns() - t0_ns;
    if (request->begin_ns >= limit_ns) {
      return;
    }
    check(launch_chain(driver, request->prefill_ns, PREFILL_KERNEL_NS), "cuLaunchKernel");
    check(launch_chain(driver, request->decode_ns, DECODE_KERNEL_NS), "cuLaunchKernel");
    check(driver->context_synchronize(), "cuCtxSynchronize");
    request->end_ns = now_ns() - t0_ns;
  }
}

int mode_serve(int count, char **arguments) {
  static struct driver driver;
  struct requests requests = {0};
  unsigned long long t0, limit;
  char line[128];
  if (count != 2) {
    return 2;
  }
  prctl(PR_SET_TIMERSLACK, 1000ul, 0ul, 0ul, 0ul); /* so that requests begin on time */
  read_requests(arguments[0], &requests);
  driver_start(&driver);
  say("ready");
  while (next_line(line, sizeof line)) {
    if (sscanf(line, "go %llu %llu", &t0, &limit) == 2) {
      serve(&driver, &requests, t0, limit);
      write_requests(arguments[1], &requests);
      say("served now_ns %llu requests %zu", (unsigned long long)now_ns(), requests.count);
    }
  }
  return 0;
}
