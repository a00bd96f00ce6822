/*
 * Programs of compat.c that choose their GPUs by CUDA_VISIBLE_DEVICES before their cuInit. The lease is on the second
 * of two GPUs. COMPAT_DEVICES has the UUIDs of both.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../main/nvml/nvml_abi.h"
#include "compat.h"

int cuInit(unsigned flags);
int cuDeviceGet(int *device, int ordinal);
int cuDeviceGetCount(int *count);
int cuDeviceGetUuid_v2(unsigned char *uuid, int device);
nvmlReturn_t nvmlInit_v2(void);
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count);
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device);
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned size);

enum { NO_DEVICE = 100, UUID_TEXT = 40 };

static void tell_uuid(int device, char *into) {
  unsigned char u[16] = {0};
  CHECK(cuDeviceGetUuid_v2(u, device) == 0, "the UUID of device %d", device);
  snprintf(into, UUID_TEXT + 1, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0], u[1],
           u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14], u[15]);
}

/* For compat.c: runs without the hook. */
void role_uuids(void) {
  char first[UUID_TEXT + 1], second[UUID_TEXT + 1];
  CHECK(cuInit(0) == 0, "cuInit");
  tell_uuid(0, first);
  tell_uuid(1, second);
  printf("%s,%s", first, second);
}

static void see(const char *wish, const char *expected) {
  char uuid[96] = "";
  int count = -1, result = cuInit(0);
  unsigned nvml_count = 9;
  nvmlDevice_t device = NULL;
  if (expected == NULL) {
    CHECK(result == NO_DEVICE, "%s: cuInit gives %d", wish, result);
  } else {
    CHECK(result == 0 && cuDeviceGetCount(&count) == 0 && count == 1, "%s: cuInit gives %d, %d devices", wish, result,
          count);
    tell_uuid(0, uuid);
    CHECK(strcmp(uuid, expected) == 0, "%s: CUDA shows %s", wish, uuid);
  }
  CHECK(nvmlInit_v2() == NVML_SUCCESS && nvmlDeviceGetCount_v2(&nvml_count) == NVML_SUCCESS, "%s: NVML", wish);
  CHECK(nvml_count == (expected != NULL), "%s: NVML shows %u", wish, nvml_count);
  if (expected == NULL || nvml_count != 1) return;
  CHECK(nvmlDeviceGetHandleByIndex_v2(0, &device) == NVML_SUCCESS &&
            nvmlDeviceGetUUID(device, uuid, sizeof uuid) == NVML_SUCCESS,
        "UUID");
  CHECK(strcmp(uuid, expected) == 0, "%s: NVML shows %s", wish, uuid);
}

void role_visible(void) {
  char both[128], prefix[16], mixed[300];
  snprintf(both, sizeof both, "%s", getenv("COMPAT_DEVICES"));
  char *ours = strchr(both, ',');
  CHECK(ours != NULL, "no devices to test with: %s", both);
  if (ours == NULL) return;
  *ours++ = '\0';
  snprintf(prefix, sizeof prefix, "%.12s", ours);
  snprintf(mixed, sizeof mixed, "%s,%s", ours, both);
  const struct {
    const char *wish, *shown;
  } cases[] = {
      {NULL, ours},   {"0", ours},   {" 0 ", ours},        {"0,1", ours},   {ours, ours},
      {prefix, ours}, {mixed, ours}, {"1", NULL},          {"-1", NULL},    {"", NULL},
      {both, NULL},   {"1,0", NULL}, {"NoDevFiles", NULL}, {"00000", NULL}, {",0", NULL},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int status = -1;
    pid_t pid = fork();
    if (pid == 0) {
      failures = 0;
      if (cases[i].wish == NULL) unsetenv("CUDA_VISIBLE_DEVICES");
      else setenv("CUDA_VISIBLE_DEVICES", cases[i].wish, 1);
      see(cases[i].wish == NULL ? "(none)" : cases[i].wish, cases[i].shown);
      _exit(failures != 0);
    }
    CHECK(waitpid(pid, &status, 0) == pid && status == 0, "CUDA_VISIBLE_DEVICES=%s", cases[i].wish);
  }
}
