/*
 * A tenant's attacks, in the virtual machine. Usage: hostile. It runs as root, enters the cgroups `one` and `two`, and
 * prints `ok NAME` or FAIL for each attack. The attacks are in hostile_calls.c (the fields of a call),
 * hostile_processes.c (signals, forks, files and handles of others) and hostile_cgroups.c (cgroups and directories).
 */
#include "hostile.h"

int control, card;
uint32_t client;

uint64_t used_by(const char *tenant) {
  char path[128];
  snprintf(path, sizeof path, TENANTS "%s/used", tenant);
  return number_in(path, NULL);
}

uint64_t stat_of(const char *tenant, const char *line) {
  char path[128];
  snprintf(path, sizeof path, TENANTS "%s/stats", tenant);
  return number_in(path, line);
}

uint64_t truth(const char *line) { return number_in("/proc/nvidia_model", line); }

void go_to(const char *cgroup) {
  char path[128];
  snprintf(path, sizeof path, CGROUPS "%s/cgroup.procs", cgroup);
  if (put_into(path, "0", 1) != 0) bed_fail(path);
}

void begin_as(const char *cgroup) {
  go_to(cgroup);
  control = open_device("/dev/nvidiactl");
  card = open_device("/dev/nvidia0");
  client = new_client(&plainly, control);
}

void end_empty(void) {
  close(control);
  close(card);
  CHECK(used_by("one") == 0 && used_by("two") == 0);
  CHECK(stat_of("one", "objects ") == 0 && stat_of("two", "objects ") == 0);
  CHECK(truth("objects ") == 0 && truth("taken ") == 0);
}

uint32_t take_mib(uint32_t handle, uint64_t mib) {
  return memory(&plainly, control, client, handle, mib * MIB, 128, 0);
}

pid_t in_child(void (*body)(int), int socket) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    failures = 0;
    body(socket);
    fflush(stdout);
    _exit(failures != 0);
  }
  return child;
}

int went_well(pid_t child) {
  int status = -1;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

int main(void) {
  static const struct {
    const char *name;
    void (*run)(void);
  } ATTEMPTS[] = {
      {"pointers-of-the-kernel", pointers_of_the_kernel},
      {"sizes-and-handles", sizes_and_handles},
      {"buffers-over-one-another", buffers_over_one_another},
      {"arguments-that-change", arguments_that_change},
      {"random-requests", random_requests},
      {"signals-all-the-time", signals_all_the_time},
      {"files-passed-on", files_passed_on},
      {"files-taken", files_taken},
      {"forked-into-another-cgroup", forked_into_another_cgroup},
      {"cgroup-moved-and-removed", cgroup_moved_and_removed},
      {"cgroup-of-another", cgroup_of_another},
      {"rubbish-in-directories", rubbish_in_directories},
      {"handles-of-others", handles_of_others},
  };
  begin_arena();
  int sum = 0;
  for (size_t i = 0; i < sizeof ATTEMPTS / sizeof *ATTEMPTS; i++) {
    failures = 0;
    ATTEMPTS[i].run();
    printf("%s %s\n", failures == 0 ? "ok  " : "FAIL", ATTEMPTS[i].name);
    fflush(stdout);
    sum += failures;
  }
  return sum != 0;
}
