/*
 * Unloads and loads the module under load: other processes, of the cgroup, call the driver all the time.
 *   cycles NUMBER MODULE DIRECTORY CGROUP LIMIT
 * In each cycle the module is unloaded and loaded. A tenant is made, is charged for an allocation of the load, and is
 * removed. After each of these steps the driver's operations are its own, or the module's, as they must be.
 */
#include <sys/stat.h>
#include <sys/syscall.h>

#include "tenant.h"

static const char TRUTH[] = "/proc/nvidia_model";
static const char *module, *cgroup, *limit;

static int unload(void) { return syscall(SYS_delete_module, "vgpu_kmod", O_NONBLOCK) == 0; }

static int load(void) {
  int fd = open(module, O_RDONLY | O_CLOEXEC);
  if (fd < 0) bed_fail(module);
  int loaded = syscall(SYS_finit_module, fd, "", 0) == 0;
  close(fd);
  return loaded;
}

static int make(void) {
  struct stat status;
  char number[32];
  if (stat(cgroup, &status) != 0 || mkdir(directory, 0755) != 0) return 0;
  snprintf(number, sizeof number, "%llu", (unsigned long long)status.st_ino);
  return set("limit", limit) == 0 && set("cgroup", number) == 0;
}

/* Waits for three minutes at most. */
static int charged(void) {
  for (int tries = 0; tries < 180000; tries++) {
    if (told("stats", "allocations ") > 0) return 1;
    usleep(1000);
  }
  errno = ETIMEDOUT;
  return 0;
}

static int remove_tenant(void) { return rmdir(directory) == 0; }

/* The steps of a cycle, with what they took in all cycles, and the calls that the driver answered meanwhile. */
static struct step {
  const char *name;
  int (*act)(void);
  uint64_t own; /* whether the driver's operations are its own afterwards */
  uint64_t us, most_us, calls;
} steps[] = {
    {.name = "unload", .act = unload, .own = 1},
    {.name = "load", .act = load},
    {.name = "make", .act = make},
    {.name = "charge", .act = charged},
    {.name = "remove", .act = remove_tenant},
};
enum { STEPS = sizeof steps / sizeof *steps };

static uint64_t now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static int go_through(struct step *step) {
  uint64_t calls = number_in(TRUTH, "calls "), began = now_us();
  int fine = step->act();
  uint64_t us = now_us() - began;
  if (!fine) printf("FAIL %s: %s\n", step->name, strerror(errno));
  step->us += us;
  if (us > step->most_us) step->most_us = us;
  step->calls += number_in(TRUTH, "calls ") - calls;
  if (number_in(TRUTH, "own ") != step->own) {
    printf("FAIL after %s the driver's operations are %s\n", step->name, step->own ? "not its own" : "its own");
    fine = 0;
  }
  return fine;
}

int main(int count, char **arguments) {
  if (count != 6) return 2;
  unsigned cycles = (unsigned)atoi(arguments[1]), done = 0;
  module = arguments[2];
  directory = arguments[3];
  cgroup = arguments[4];
  limit = arguments[5];
  for (; failures == 0 && done < cycles; done++) {
    for (int i = 0; failures == 0 && i < STEPS; i++) failures += !go_through(&steps[i]);
    if ((done + 1) % 100 == 0 && done + 1 < cycles) printf("%u cycles so far\n", done + 1);
    fflush(stdout);
  }
  printf("%u cycles\n", done - (unsigned)failures);
  for (int i = 0; done > 0 && i < STEPS; i++)
    printf("%s: %llu ms on average, %llu at most; calls meanwhile: %llu\n", steps[i].name,
           (unsigned long long)(steps[i].us / 1000 / done), (unsigned long long)(steps[i].most_us / 1000),
           (unsigned long long)steps[i].calls);
  /* The load went on in both. */
  CHECK(steps[0].calls >= done && steps[1].calls >= done);
  return failures != 0;
}
