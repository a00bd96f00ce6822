/* Roles for the tests of work: test_work.c. */
#include "roles_work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda_calls.h"
#include "stub_driver.h"
#include "test.h"

static CUcontext begin(void) {
  CUcontext context = NULL;
  CHECK(cuInit(0) == ABI_SUCCESS, "cuInit");
  CHECK(cuDevicePrimaryCtxRetain(&context, 0) == ABI_SUCCESS, "retain");
  CHECK(cuCtxSetCurrent(context) == ABI_SUCCESS, "set current");
  return context;
}

static CUfunction kernel(const char *ns) {
  CUfunction function = NULL;
  CHECK(cuModuleGetFunction(&function, NULL, ns) == ABI_SUCCESS, "function");
  return function;
}

/* "NS SYNC PAUSE_US": kernels until the test has made the file "stop"; waits for each SYNCth, and then pauses. */
static void role_load(const char *argument) {
  char path[256], ns[32];
  unsigned sync = 0, pause_us = 0;
  CHECK(sscanf(argument, "%31s %u %u", ns, &sync, &pause_us) == 3, "argument %s", argument);
  snprintf(path, sizeof path, "%s/stop", getenv("VGPU_RUN_DIR"));
  begin();
  CUfunction function = kernel(ns);
  for (unsigned i = 1; access(path, F_OK) != 0; i++) {
    CHECK(launch(function, NULL) == ABI_SUCCESS, "launch");
    if (sync == 0 || i % sync != 0) continue;
    CHECK(cuCtxSynchronize() == ABI_SUCCESS, "sync");
    if (pause_us > 0) usleep(pause_us);
  }
}

static const struct {
  const char *name;
  void (*run)(const char *argument);
} roles[] = {
    {"load", role_load},
};

int run_work_role(const char *role, const char *argument) {
  for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
    if (strcmp(roles[i].name, role) != 0) continue;
    roles[i].run(argument);
    return failures == 0 ? 0 : 1;
  }
  return 2;
}
