/* Schedulers that are killed: what they hold is given back, and the next one takes over. */
#include <sys/stat.h>

#include "client.h"
#include "tenant.h"

#define SEAT "/sys/kernel/config/vgpu/seat"

/* What a scheduler has come to. It lies in memory that its parent shares. */
struct progress {
  unsigned tenants, opens, holds;
};

/* Makes a tenant, holds the offline ones, and changes everything that a scheduler may change, until it is killed. */
static void be_seat(struct progress *seen, unsigned seed, pid_t parent) {
  static const char *const CLASSES[] = {"offline", "nearline", "offline", "online"};
  char number[32];
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent || mkdir(SEAT, 0755) != 0) return;
  seen->tenants++;
  int device = open("/dev/vgpu", O_RDWR | O_CLOEXEC);
  if (device < 0) return;
  seen->opens++;
  for (unsigned i = 0; write(device, "online 10000", 12) == 12; i++) {
    seen->holds++;
    size_t size = (size_t)snprintf(number, sizeof number, "%d", rand_r(&seed) % 1000);
    if (put_into(SEAT "/limit", number, size) != 0 || put_into(SEAT "/weight", number, size) != 0) return;
    if (put_into(SEAT "/class", CLASSES[(i + 1) % 4], strlen(CLASSES[(i + 1) % 4])) != 0) return;
    if (set("weight", number) != 0 || set("class", CLASSES[i % 4]) != 0) return;
  }
}

static int await_groups(const char *running, unsigned groups) {
  for (int tries = 0; tries < 180000; tries++) {
    if (number_in("/proc/nvidia_model", running) == groups && told("stats", "resisting ") == 0) return 1;
    usleep(1000);
  }
  return 0;
}

/* Waits until one more scheduler has the device. */
static int await_open(const unsigned *opens, unsigned before) {
  for (int tries = 0; tries < 180000; tries++) {
    if (__atomic_load_n(opens, __ATOMIC_RELAXED) != before) return 1;
    usleep(1000);
  }
  return 0;
}

static uint64_t now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* The next scheduler opens the device without waiting, stops the groups, and gives them back. */
static void take_over(const char *running, unsigned groups) {
  int device = open("/dev/vgpu", O_RDWR | O_CLOEXEC);
  CHECK(device >= 0);
  if (device < 0) return;
  CHECK(set("class", "offline") == 0 && write(device, "online 10000", 12) == 12);
  CHECK(number_in("/proc/nvidia_model", running) == 0);
  CHECK(write(device, "online 0", 8) == 8 && await_groups(running, groups));
  close(device);
}

int seats(unsigned kills, unsigned groups) {
  struct progress *seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  uint64_t most_us = 0;
  unsigned seed = test_seed(), done = 0;
  char running[64];
  pid_t self = getpid();
  if (seen == MAP_FAILED) bed_fail("mmap");
  snprintf(running, sizeof running, "running of %llu ", (unsigned long long)told("cgroup", NULL));
  CHECK(await_groups(running, groups));
  for (; failures == 0 && done < kills; done++) {
    int status = 0;
    unsigned opens = seen->opens;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
      be_seat(seen, (unsigned)rand_r(&seed), self);
      _exit(1);
    }
    /* Every second one dies with the device, and the others also while they come to it. */
    CHECK(done % 2 == 0 || await_open(&seen->opens, opens));
    usleep((unsigned)rand_r(&seed) % 20000);
    uint64_t began = now_us();
    CHECK(kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child && WIFSIGNALED(status));
    CHECK(await_groups(running, groups) && told("stats", "stuck ") == 0);
    uint64_t us = now_us() - began;
    if (us > most_us) most_us = us;
    CHECK(rmdir(SEAT) == 0 || errno == ENOENT);
    take_over(running, groups);
    if ((done + 1) % 100 == 0 && done + 1 < kills) printf("%u kills so far\n", done + 1);
  }
  printf("%u kills: %u seats made a tenant, %u opened the device and held %u times; given back after %llu ms at most\n",
         done, seen->tenants, seen->opens, seen->holds, (unsigned long long)most_us / 1000);
  CHECK(failures != 0 || seen->opens >= kills / 2);
  return failures != 0;
}
