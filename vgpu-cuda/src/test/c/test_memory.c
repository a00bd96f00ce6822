/*
 * Tests of the charge, over the emulated driver: after each step the ledger holds exactly what the driver has given by
 * its own account. The seat runs in this process; the hooked program is this binary again, in a role. Usage:
 * test_memory HOOK DRIVER [ROLE...]. Prints one line per role.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../main/c/region/driver.h"
#include "../../main/shm/shm.h"
#include "fake_seat.h"
#include "memory_test.h"

int failures;
static const char *hook, *driver, *self;

/* ---- the program's side ---- */

void *library, *real;
CUcontext context;

void *look(void *where, const char *name) {
  void *found = dlsym(where, name);
  CHECK(found != NULL, "no %s", name);
  return found;
}

uint64_t ledger_bytes_of(int gpu) {
  static const struct shm_ledger *ledger;
  if (ledger == NULL) {
    char path[256];
    snprintf(path, sizeof path, "%s/leases/test/report", getenv("VGPU_RUN_DIR"));
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char *pages = mmap(NULL, SHM_REPORT_SIZE, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    ledger = (const void *)(pages + SHM_LEDGER_OFFSET);
  }
  uint64_t word = gpu == 0 ? GET(ledger->memory_word) : GET(ledger->memory_words[gpu - 1]);
  return (word >> SHM_MEMORY_UNITS_SHIFT) * SHM_MEMORY_UNIT;
}

uint64_t ledger_bytes(void) { return ledger_bytes_of(0); }

/* Bytes that the driver has given out; only this process uses it. */
uint64_t real_bytes(void) {
  size_t left = 0, total = 0;
  CHECK(((abi_result(*)(size_t *, size_t *))look(real, "cuMemGetInfo_v2"))(&left, &total) == 0,
        "the driver's own account");
  return total - left;
}

/* The hook, or the driver alone. With sanitizers the hook is linked into this program. */
void open_library(void) {
  library = dlopen(getenv("TEST_SELF") != NULL ? NULL : "libcuda.so.1", RTLD_NOW);
  CHECK(library != NULL, "%s", dlerror());
}

/* By the C library's own dlopen: the hook's would return the hook, which shows the quota. */
static void open_really(int flags) {
  void *(*open_real)(const char *, int);
  void *found = look(dlopen("libc.so.6", RTLD_NOW), "dlopen");
  memcpy(&open_real, &found, sizeof open_real);
  real = open_real(getenv("VGPU_CUDA_DRIVER"), RTLD_NOW | flags);
}

void open_driver_alone(void) {
  open_really(0);
  CHECK(real != NULL, "the driver");
}

void open_driver(void) {
  open_really(RTLD_NOLOAD);
  CHECK(real != NULL && dlsym(real, "vgpu_hook_version") == NULL, "the driver itself");
}

void begin_inexact(void) {
  open_library();
  CHECK(CU(cuInit, 0) == ABI_SUCCESS, "cuInit");
  open_driver();
  CHECK(CU(cuDevicePrimaryCtxRetain, &context, 0) == ABI_SUCCESS, "retain");
  CHECK(CU(cuCtxSetCurrent, context) == ABI_SUCCESS, "set current");
}

void begin(void) {
  begin_inexact();
  EXACT("a context");
}

#define ERRORS                                                                                                  \
  "VGPU_EMULATOR_FAIL=cuMemAlloc:2@3/4,cuMemFree:719@2/5,cuMemAllocAsync:2@2/5,cuMemFreeAsync:999@3/7,"         \
  "cuMemCreate:2@1/4,cuMemRelease:999@2/4,cuArrayCreate:2@2/3,cuArrayDestroy:400@2/3,cuCtxCreate:2@1/3,"        \
  "cuCtxDestroy:999@1/3,cuMemPoolGetAttribute:999@5/9,cuGraphLaunch:2@2/3,cuMemMap:999@1/3,cuMemUnmap:999@2/4," \
  "cuCtxSynchronize:999@1/3"

#define LATE "VGPU_EMULATOR=memory=1GiB,reap-delay=100ms"

/* Runs bare and hooked: the GPU is as large as the quota. */
#define REPLAYED "VGPU_EMULATOR=memory=512MiB"

#define GANG "VGPU_EMULATOR=devices=2,memory=1GiB"

static const struct {
  const char *name;
  void (*run)(void);
  const char *variable; /* NAME=VALUE in the program's environment */
} roles[] = {
    {"plain", role_plain, NULL},
    {"detached", role_detached, NULL},
    {"pools", role_pools, NULL},
    {"pools-later", role_pools_later, NULL},
    {"pools-reset", role_pools_reset, NULL},
    {"pools-elsewhere", role_pools_elsewhere, "VGPU_EMULATOR=memory=1GiB,cuda=13.4"},
    {"graphs", role_graphs, NULL},
    {"graphs-auto-free", role_graphs_auto_free, NULL},
    {"uploads", role_uploads, NULL},
    {"graphs-newer", role_graphs_newer, "VGPU_EMULATOR=memory=1GiB,cuda=13.4"},
    {"physical", role_physical, NULL},
    {"arrays", role_arrays, NULL},
    {"managed", role_managed, "VGPU_MANAGED_MEMORY=oversubscribe"},
    {"shared", role_shared, NULL},
    {"errors", role_errors, ERRORS},
    {"errors-found", role_errors_found, ERRORS},
    {"errors-found-next", role_errors_found_next, ERRORS},
    {"zeros", role_zeros, NULL},
    {"inputs", role_inputs, NULL},
    {"green", role_green, NULL},
    {"green-alone", role_green_alone, "VGPU_EMULATOR=memory=1GiB,single-green=on"},
    {"ipc", role_ipc, NULL},
    {"ipc-other", role_ipc_other, NULL},
    {"measured", role_measured, "VGPU_EMULATOR=memory=1GiB,module=5MiB,lazy=off"},
    {"measured-destroyed", role_measured_destroyed,
     "VGPU_EMULATOR=memory=1GiB,module=5MiB,lazy=off,destroy-cost=100ms"},
    {"measured-refused", role_measured_refused, "VGPU_EMULATOR=memory=1GiB,module=40MiB,lazy=off"},
    {"measured-refused-beside", role_measured_refused_beside, "VGPU_EMULATOR=memory=1GiB,module=40MiB,lazy=off"},
    {"measured-large", role_measured_large, "VGPU_EMULATOR=memory=1GiB,context=600MiB"},
    {"measured-crowd", role_measured_crowd, "VGPU_EMULATOR=memory=1GiB,module=40MiB,lazy=off"},
    {"measured-together", role_measured_together, "VGPU_EMULATOR=memory=1GiB,module=40MiB,lazy=off"},
    {"measured-found", role_measured_found, "VGPU_EMULATOR=memory=1GiB,module=0"},
    {"measured-owed", role_measured_owed, "VGPU_EMULATOR=memory=1GiB,module=0"},
    {"measured-stuck", role_measured_stuck, "VGPU_EMULATOR=memory=1GiB,module=40MiB,lazy=off"},
    {"measured-less", role_measured_less, "VGPU_EMULATOR=memory=1GiB,context=9728KiB"},
    {"measured-unused", role_measured_unused, "VGPU_EMULATOR=memory=1GiB,context=9728KiB"},
    {"measured-paused", role_measured_paused, "VGPU_EMULATOR=memory=1GiB,module=0"},
    {"measured-private", role_measured_private, "VGPU_EMULATOR=memory=1GiB,module=5MiB,lazy=off"},
    {"measured-apart", role_measured_apart, "VGPU_EMULATOR=memory=1GiB,module=5MiB,lazy=off"},
    {"measured-apart-old", role_measured_apart_old, "VGPU_EMULATOR_NVML=driver_version=560.35.03"},
    {"measured-beside", role_measured_beside, NULL}, /* started by "measured-apart" */
    {"killed", role_killed, LATE},
    {"killed-physical", role_killed_physical, LATE},
    {"killed-array", role_killed_array, LATE},
    {"killed-other", role_killed_other, NULL}, /* started by these */
    {"replay-libraries", role_replay_libraries, REPLAYED},
    {"replay-primary", role_replay_primary, REPLAYED},
    {"replay-threads", role_replay_threads, REPLAYED},
    {"replay-allocator", role_replay_allocator, REPLAYED},
    {"replay-graphs", role_replay_graphs, REPLAYED},
    {"replay-captures", role_replay_captures, REPLAYED},
    {"replay-workspaces", role_replay_workspaces, REPLAYED},
    {"replay-inference", role_replay_inference, REPLAYED},
    {"replay-legacy", role_replay_legacy, REPLAYED},
    {"replay-legacy-capture", role_replay_legacy_capture, REPLAYED},
    {"replay-legacy-waits", role_replay_legacy_waits, REPLAYED},
    {"replay-legacy-frees", role_replay_legacy_frees, REPLAYED},
    {"movable", role_movable, NULL},
    {"movable-threads", role_movable_threads, NULL},
    {"graphs-elsewhere", role_graphs_elsewhere, GANG},
    {"gang", role_gang, GANG},
    {"gang-kinds", role_gang_kinds, GANG},
    {"gang-newer", role_gang_newer, GANG ",cuda=13.4"},
    {"gang-killed", role_gang_killed, GANG},
    {"gang-other", role_gang_other, GANG}, /* started by "gang-killed" */
    {"measured-gang", role_measured_gang, "VGPU_EMULATOR=devices=2,memory=1GiB,module=5MiB,lazy=off"},
    {"measured-not", role_measured_not, "VGPU_NVML=/nowhere/libnvidia-ml.so.1"},
};
enum { ROLES = sizeof roles / sizeof *roles };

/* ---- the seat's side ---- */

/* hooked = 0: the driver alone. Standard output goes to the file `output`, if given. */
static int run(const struct fake_seat *seat, size_t role, int hooked, const char *output) {
  const char *name = roles[role].name, *settings[16] = {NULL};
  char dir[96], emulator[160], real[4096], nvml[4096], preload[4096];
  int count = 0, inside = strcmp(hook, "-") == 0, quiet = getenv("TEST_LOUD") == NULL;
  snprintf(dir, sizeof dir, "VGPU_RUN_DIR=%s", seat->dir);
  snprintf(emulator, sizeof emulator, "VGPU_EMULATOR_DIR=%s/emulator", seat->dir);
  snprintf(real, sizeof real, "VGPU_CUDA_DRIVER=%s", driver);
  /* The emulated NVML is beside the emulated driver. */
  snprintf(nvml, sizeof nvml, "VGPU_NVML=%.*slibnvidia-ml.so.1", (int)(strrchr(driver, '/') + 1 - driver), driver);
  snprintf(preload, sizeof preload, "LD_PRELOAD=%s", hooked ? hook : driver);
  settings[count++] = dir;
  settings[count++] = "VGPU_LEASE=test";
  settings[count++] = real;
  settings[count++] = emulator;
  settings[count++] = "VGPU_EMULATOR=memory=1GiB";
  if (strncmp(name, "measured", 8) == 0) settings[count++] = nvml;
  if (roles[role].variable != NULL) settings[count++] = roles[role].variable;
  if (strcmp(name, "measured-stuck") == 0)
    settings[count++] = "VGPU_EMULATOR_FAIL=cuModuleUnload:999@1,cuCtxDestroy:999@1";
  if (hooked && inside) settings[count++] = "TEST_SELF=1";
  if (!hooked || !inside) settings[count++] = preload;
  char **with = environment_with(settings);
  pid_t pid = fork();
  if (pid == 0) {
    environ = with;
    if (output != NULL) {
      int fd = open(output, O_WRONLY | O_CREAT | O_TRUNC, 0600);
      dup2(fd, 1);
      if (quiet) dup2(open("/dev/null", O_WRONLY), 2);
    }
    if (strstr(name, "apart") != NULL) exec_apart(self, name);
    else execl(self, self, "--role", name, (char *)NULL);
    _exit(127);
  }
  free(with);
  int status = -1;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/* An account for each of the emulator's two GPUs, with their UUIDs. */
static void seat_gang(struct fake_seat *seat) {
  int ends[2], status = -1;
  CHECK(pipe(ends) == 0, "pipe");
  pid_t pid = fork();
  if (pid == 0) {
    char emulator[160];
    failures = 0; /* those of earlier roles are not this process's */
    snprintf(emulator, sizeof emulator, "%s/emulator", seat->dir);
    setenv("VGPU_EMULATOR_DIR", emulator, 1);
    putenv((char *)(uintptr_t)GANG);
    setenv("VGPU_CUDA_DRIVER", driver, 1);
    open_driver_alone();
    CHECK(OF_DRIVER(cuInit, 0) == ABI_SUCCESS, "cuInit");
    for (int i = 0; i < 2; i++) {
      unsigned char u[16] = {0};
      CHECK(OF_DRIVER(cuDeviceGetUuid_v2, u, i) == ABI_SUCCESS, "UUID");
      dprintf(ends[1], "%sGPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", i == 0 ? "" : ",",
              u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14], u[15]);
    }
    _exit(failures);
  }
  close(ends[1]);
  ssize_t size = waitpid(pid, &status, 0) == pid ? read(ends[0], seat->more->devices, sizeof seat->more->devices - 1)
                                                 : -1;
  close(ends[0]);
  CHECK(status == 0 && size == 81, "the UUIDs: %s", (const char *)seat->more->devices);
  seat->more->memory_gpus = 2;
}

static void compare(const char *bare, const char *hooked) {
  char command[512];
  snprintf(command, sizeof command, "! grep -vxFf %s %s", hooked, bare); /* the driver may lack some functions */
  CHECK(system(command) == 0, "bad input is answered otherwise than by the driver alone");
}

static void compare_whole(const char *bare, const char *hooked) {
  char command[512];
  snprintf(command, sizeof command, "test -s %s && diff %s %s", bare, bare, hooked);
  CHECK(system(command) == 0, "a program runs otherwise than on the driver alone");
}

/* Whether a role compares what was charged with what its work takes: a delay of its process may be charged too. */
static int measures(const char *name) {
  return strncmp(name, "green", 5) == 0 || strncmp(name, "ipc", 3) == 0 || strncmp(name, "replay-legacy", 13) == 0;
}

/* Returns whether it counts for nothing, because a check has failed in a process that was delayed. */
static int test(size_t role) {
  /* started by other roles */
  if (strstr(roles[role].name, "-other") != NULL || strcmp(roles[role].name, "measured-beside") == 0) return 0;
  int inputs = strcmp(roles[role].name, "inputs") == 0, compared = strcmp(hook, "-") != 0;
  int replayed = compared && strncmp(roles[role].name, "replay", 6) == 0;
  int zeros = compared && (inputs || strcmp(roles[role].name, "zeros") == 0);
  if (replayed) test_seed(); /* the same seed for both runs */
  /* A program with the hook linked in cannot run the driver alone. */
  if (!compared && strcmp(roles[role].name, "zeros") == 0) return 0;
  int inexact = strncmp(roles[role].name, "measured", 8) == 0 && strcmp(roles[role].name, "measured-less") != 0 &&
                strcmp(roles[role].name, "measured-not") != 0;
  struct fake_seat seat;
  seat_open(&seat, QUOTA, inexact ? 16 * MIB : CONTEXT);
  if (strstr(roles[role].name, "gang") != NULL) seat_gang(&seat);
  seat_start(&seat);
  char bare[160], hooked[160];
  snprintf(bare, sizeof bare, "%s/bare", seat.dir);
  snprintf(hooked, sizeof hooked, "%s/hooked", seat.dir);
  int status = run(&seat, role, 1, zeros || replayed ? hooked : NULL), delayed = status == DELAYED;
  CHECK(status == 0, "role %s ended with %d", roles[role].name, status);
  if ((zeros || replayed) && !delayed) {
    status = run(&seat, role, 0, bare);
    CHECK(status == 0, "the driver alone ended with %d", status);
    if (replayed) compare_whole(bare, hooked);
    else compare(bare, hooked);
  }
  uint64_t until = seat_now() + PATIENCE_NS;
  while (seat_units(&seat) != 0 && seat_now() < until) usleep(1000);
  CHECK(seat_units(&seat) == 0, "%llu units left", (unsigned long long)seat_units(&seat));
  seat_close(&seat);
  return delayed;
}

int main(int count, char **arguments) {
  if (count > 2 && strcmp(arguments[1], "--role") == 0) {
    if (measures(arguments[2])) delays_watch();
    for (size_t i = 0; i < ROLES; i++) {
      if (strcmp(roles[i].name, arguments[2]) == 0) roles[i].run();
    }
    return failures == 0 ? 0 : measures(arguments[2]) && delays_were_long() ? DELAYED : 1;
  }
  if (count < 3) return 2;
  setvbuf(stdout, NULL, _IOLBF, 0);
  hook = arguments[1];
  driver = arguments[2];
  self = realpath("/proc/self/exe", NULL);
  for (size_t i = 0; i < ROLES; i++) {
    int wanted = count == 3, before = failures;
    for (int j = 3; j < count; j++) wanted |= strcmp(arguments[j], roles[i].name) == 0;
    if (!wanted) continue;
    uint64_t since = seat_now();
    for (int tries = 0, delayed = 1; tries < 10 && delayed; tries++) {
      failures = before;
      delayed = test(i);
    }
    printf("%s %s (%llu ms)\n", failures == before ? "ok  " : "FAIL", roles[i].name,
           (unsigned long long)(seat_now() - since) / 1000000);
  }
  return failures == 0 ? 0 : 1;
}
