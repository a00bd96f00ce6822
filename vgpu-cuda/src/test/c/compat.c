/*
 * Compatibility: each way in which a program reaches the driver and NVML, and lives and ends as a process, under the
 * hook over the emulated driver. Usage: compat HOOK NVML REAL_CUDA REAL_NVML OTHER [CASE...]; prints one line per case.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "compat.h"
#include "fake_seat.h"

int failures;

enum preload { HOOK_AND_NVML, OTHER_FIRST, OTHER_LAST, BY_FILE };
enum attaches { AT_LEAST_ONE, NONE };

/* ROW(case, role, preload, variable, whether a process of it may attach) */
#define CASES(ROW)                                                                                              \
  ROW("direct link", "linked", HOOK_AND_NVML, NULL, AT_LEAST_ONE)                                               \
  ROW("dlopen", "dlopen", HOOK_AND_NVML, NULL, AT_LEAST_ONE)                                                    \
  ROW("dlopen, lazy and global", "dlopen_lazy", HOOK_AND_NVML, NULL, AT_LEAST_ONE)                              \
  ROW("dlopen by absolute path", "dlopen_path", HOOK_AND_NVML, NULL, AT_LEAST_ONE)                              \
  ROW("dlopen by other names", "dlopen_names", HOOK_AND_NVML, NULL, AT_LEAST_ONE)                               \
  ROW("dlopen by links of other names", "dlopen_links", HOOK_AND_NVML, NULL, AT_LEAST_ONE)                      \
  ROW("dlopen by RPATH and RUNPATH", "dlopen_search", HOOK_AND_NVML, NULL, AT_LEAST_ONE)                        \
  ROW("dlopen within RTLD_DEEPBIND", "dlopen_deep", HOOK_AND_NVML, NULL, AT_LEAST_ONE)                          \
  ROW("linked by another name", "linked_names", HOOK_AND_NVML, NULL, AT_LEAST_ONE)                              \
  ROW("an image's own driver", "forward", HOOK_AND_NVML, NULL, AT_LEAST_ONE)                                    \
  ROW("dlmopen", "dlmopen", HOOK_AND_NVML, NULL, AT_LEAST_ONE)                                                  \
  ROW("dlsym RTLD_DEFAULT", "dlsym_default", HOOK_AND_NVML, NULL, AT_LEAST_ONE)                                 \
  ROW("dlsym RTLD_NEXT", "dlsym_next", HOOK_AND_NVML, NULL, AT_LEAST_ONE)                                       \
  ROW("cuGetProcAddress, old", "proc_address", HOOK_AND_NVML, NULL, AT_LEAST_ONE)                               \
  ROW("cuGetProcAddress, new", "proc_address_v2", HOOK_AND_NVML, NULL, AT_LEAST_ONE)                            \
  ROW("dlclose and again", "dlclose", HOOK_AND_NVML, NULL, AT_LEAST_ONE)                                        \
  ROW("another preload before it", "others_preloaded", OTHER_FIRST, NULL, AT_LEAST_ONE)                         \
  ROW("another preload behind it", "others_preloaded", OTHER_LAST, NULL, AT_LEAST_ONE)                          \
  ROW("ld.so.preload", "ld_so_preload", BY_FILE, NULL, AT_LEAST_ONE)                                            \
  ROW("fork with a context", "fork", HOOK_AND_NVML, NULL, AT_LEAST_ONE)                                         \
  ROW("fork before CUDA", "fork_first", HOOK_AND_NVML, NULL, AT_LEAST_ONE)                                      \
  ROW("fork and exec", "fork_exec", HOOK_AND_NVML, NULL, AT_LEAST_ONE)                                          \
  ROW("vfork and exec", "vfork_exec", HOOK_AND_NVML, NULL, AT_LEAST_ONE)                                        \
  ROW("posix_spawn", "posix_spawn", HOOK_AND_NVML, NULL, AT_LEAST_ONE)                                          \
  ROW("exec after cuInit", "exec", HOOK_AND_NVML, NULL, AT_LEAST_ONE)                                           \
  ROW("threads that end at any point", "threads", HOOK_AND_NVML, NULL, AT_LEAST_ONE)                            \
  ROW("exit while threads launch", "exit_in_the_middle", HOOK_AND_NVML, NULL, AT_LEAST_ONE)                     \
  ROW("main thread ends first", "main_thread_ends", HOOK_AND_NVML, NULL, AT_LEAST_ONE)                          \
  ROW("contexts and devices", "contexts", HOOK_AND_NVML, NULL, AT_LEAST_ONE)                                    \
  ROW("green contexts", "green_contexts", HOOK_AND_NVML, NULL, AT_LEAST_ONE)                                    \
  ROW("chooses its own devices", "visible", HOOK_AND_NVML, "CUDA_VISIBLE_DEVICES=1", AT_LEAST_ONE)              \
  ROW("never synchronises", "never_synchronises", HOOK_AND_NVML, NULL, AT_LEAST_ONE)                            \
  ROW("nvml: direct link", "nvml_linked", HOOK_AND_NVML, NULL, NONE)                                            \
  ROW("nvml: dlopen", "nvml_dlopen", HOOK_AND_NVML, NULL, NONE)                                                 \
  ROW("nvml: dlopen by absolute path", "nvml_dlopen_path", HOOK_AND_NVML, NULL, NONE)                           \
  ROW("nvml: refused without a lease", "nvml_refused", HOOK_AND_NVML, "VGPU_LEASE=none", NONE)                  \
  ROW("nvml: open without a lease", "nvml_open", HOOK_AND_NVML, "VGPU_LEASE=none VGPU_FAILURE_MODE=open", NONE) \
  ROW("nvml: visible devices", "nvml_devices", HOOK_AND_NVML, "CUDA_VISIBLE_DEVICES=1", NONE)                   \
  ROW("nvml: a GPU with the host's memory", "nvml_linked", HOOK_AND_NVML,                                       \
      "VGPU_EMULATOR=devices=2,memory=1GiB,context=64MiB,integrated=on", NONE)                                  \
  ROW("nvml: processes", "nvml_processes", HOOK_AND_NVML, NULL, AT_LEAST_ONE)                                   \
  ROW("nvml: utilisation", "nvml_usage", HOOK_AND_NVML, NULL, AT_LEAST_ONE)                                     \
  ROW("nvml: nothing of other tenants", "nvml_others", HOOK_AND_NVML, NULL, NONE)                               \
  ROW("nvml: accounting of others", "nvml_accounting", HOOK_AND_NVML, NULL, NONE)                               \
  ROW("nvml: MIG devices", "nvml_mig", HOOK_AND_NVML, NULL, NONE)                                               \
  ROW("nvml: topology, newer functions", "nvml_topology", HOOK_AND_NVML, NULL, NONE)                            \
  ROW("nvml: many threads", "nvml_threads", HOOK_AND_NVML, NULL, NONE)                                          \
  ROW("nvml: refusals", "nvml_denied", HOOK_AND_NVML, NULL, NONE)

static const struct test {
  const char *name, *role;
  enum preload preload;
  const char *variables;
  enum attaches attaches;
} tests[] = {
#define ROW(name, role, preload, variables, attaches) {name, role, preload, variables, attaches},
    CASES(ROW)
#undef ROW
};

static char **given; /* HOOK NVML REAL_CUDA REAL_NVML OTHER */

static void set_preload(enum preload how) {
  char all[2048];
  snprintf(all, sizeof all, "%s%s%s:%s%s%s", how == OTHER_FIRST ? given[4] : "", how == OTHER_FIRST ? ":" : "",
           given[0], given[1], how == OTHER_LAST ? ":" : "", how == OTHER_LAST ? given[4] : "");
  setenv(how == BY_FILE ? "COMPAT_PRELOAD" : "LD_PRELOAD", all, 1);
}

/* NAME=VALUE, separated by spaces. */
static void set_variables(const char *variables) {
  char text[256], *rest = NULL;
  snprintf(text, sizeof text, "%s", variables == NULL ? "" : variables);
  for (char *at = strtok_r(text, " ", &rest); at != NULL; at = strtok_r(NULL, " ", &rest)) {
    char *value = strchr(at, '=');
    *value = '\0';
    setenv(at, value + 1, 1);
  }
}

static void set_emulator(const struct fake_seat *seat) {
  char directory[96];
  snprintf(directory, sizeof directory, "%s/emulator", seat->dir);
  setenv("VGPU_EMULATOR_DIR", directory, 1);
  setenv("VGPU_EMULATOR", "devices=2,memory=1GiB,context=64MiB", 1);
}

static void become(const char *role) {
  char program[4096];
  ssize_t length = readlink("/proc/self/exe", program, sizeof program - 16);
  program[length < 0 ? 0 : length] = '\0';
  strcat(program, "_program");
  alarm(60);
  execl(program, "compat_program", role, (char *)NULL);
  _exit(127);
}

/* Puts the lease on the second of two GPUs. A program without the hook prints their UUIDs. */
static void lease_second(const struct fake_seat *seat) {
  char devices[128] = "";
  int from[2], status = -1;
  CHECK(pipe(from) == 0, "pipe");
  pid_t pid = fork();
  if (pid == 0) {
    dup2(from[1], 1);
    set_emulator(seat);
    become("uuids");
  }
  close(from[1]);
  ssize_t size = read(from[0], devices, sizeof devices - 1);
  close(from[0]);
  CHECK(waitpid(pid, &status, 0) == pid && status == 0 && size > 80, "the UUIDs: %s", devices);
  setenv("COMPAT_DEVICES", devices, 1);
  strcpy((char *)seat->more->devices, strchr(devices, ',') == NULL ? "" : strchr(devices, ',') + 1);
}

static int run(const struct fake_seat *seat, const struct test *test) {
  int status = -1;
  pid_t pid = fork();
  if (pid == 0) {
    setenv("VGPU_RUN_DIR", seat->dir, 1);
    setenv("VGPU_LEASE", "test", 1);
    setenv("VGPU_CUDA_DRIVER", given[2], 1);
    setenv("VGPU_NVML", given[3], 1);
    set_emulator(seat);
    set_variables(test->variables);
    set_preload(test->preload);
    become(test->role);
  }
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void run_test(const struct test *test) {
  struct fake_seat seat;
  int before = failures;
  uint64_t since = seat_now();
  seat_open(&seat, QUOTA, CONTEXT);
  seat.grant->policy = (uint32_t)SHM_POLICY_FIXED_SHARE;
  if (strcmp(test->role, "visible") == 0) lease_second(&seat);
  seat_start(&seat);
  int status = run(&seat, test);
  CHECK(status == 0, "%s ended with %d", test->name, status);
  uint64_t until = seat_now() + 30000000000u;
  while (seat_units(&seat) != 0 && seat_now() < until) usleep(1000);
  CHECK(seat_units(&seat) == 0, "%s: %llu units left", test->name, (unsigned long long)seat_units(&seat));
  CHECK((GET(seat.hellos) > 0) == (test->attaches == AT_LEAST_ONE), "%s: %u attached", test->name, GET(seat.hellos));
  seat_close(&seat);
  printf("%s %s (%llu ms)\n", failures == before ? "ok  " : "FAIL", test->name,
         (unsigned long long)(seat_now() - since) / 1000000);
}

int main(int count, char **arguments) {
  if (count < 6) return 2;
  setvbuf(stdout, NULL, _IOLBF, 0);
  given = arguments + 1;
  for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
    int wanted = count == 6;
    for (int j = 6; j < count; j++) wanted |= strcmp(arguments[j], tests[i].name) == 0;
    if (wanted) run_test(&tests[i]);
  }
  return failures == 0 ? 0 : 1;
}
