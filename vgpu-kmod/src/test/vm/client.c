/*
 * A tenant's program in the virtual machine.
 *   client checks DIRECTORY         one process's calls, compared with the values in the tenant's directory
 *   client take MIB                 allocates that much, reports it, and waits for the end of its input
 *   client run GROUPS               creates and schedules channel groups, reports it, waits for the end of its input;
 *                                   meanwhile `1` and `0` schedule the first one on and off, `e` enables the channels
 *                                   of all, `c` makes one more channel of the first one, and `d` frees it
 *   client forge CLIENT             records another process's client and its first group as its own, for vgpu-turns
 *   client arrive TIMES DIRECTORY [DEVICE]
 *                                   a channel group that gets work so often; reports its longest wait for the engine.
 *                                   DEVICE: the descriptor of the module's device, whose scheduler holds the offline
 *                                   tenants from then on until the group has had the engine; also reports how long
 *                                   the module takes for that
 *   client watch CGROUP             reads what the module's device reports of a process that is refused memory
 *   client seats KILLS DIRECTORY GROUPS
 *                                   schedulers that are killed, while the tenant has so many groups that run
 *   client storm DIRECTORY PROCESSES THREADS SECONDS
 *                                   processes that allocate, schedule, free, close and die; DIRECTORY: with which
 *                                   the driver is compared after each death, `-`: with none
 */
#include <poll.h>
#include <pthread.h>

#include "../../main/c/user/rm_events.h"
#include "client.h"
#include "tenant.h"

static struct bed_process by_compat = {.compat = 1};

/* The tenant's limit is 64 MiB. */
static void charge_deny_free(int fd, uint32_t client) {
  CHECK(memory(&plainly, fd, client, 7, 40 * MIB, 128, 0) == RM_OK && told("used", NULL) == 40 * MIB);
  CHECK(memory(&plainly, fd, client, 8, 25 * MIB, 128, 0) == RM_NO_MEMORY && told("used", NULL) == 40 * MIB);
  /* The stated size is not trusted. */
  CHECK(memory(&plainly, fd, client, 8, 24 * MIB, 0, 0) == RM_OK && told("used", NULL) == 64 * MIB);
  CHECK(memory(&plainly, fd, client, 9, 1, 128, 0) == RM_NO_MEMORY);
  /* Unknown to the driver, which reports success. */
  CHECK(do_free(&plainly, fd, client, 12345) == RM_OK && told("used", NULL) == 64 * MIB);
  CHECK(do_free(&plainly, fd, client, 7) == RM_OK && told("used", NULL) == 24 * MIB && told("peak", NULL) == 64 * MIB);
  CHECK(do_free(&plainly, fd, client, 8) == RM_OK && told("used", NULL) == 0);
}

static void other_ways_in(int fd, uint32_t client) {
  CHECK(memory(&by_compat, fd, client, 7, 40 * MIB, 128, 0) == RM_OK && told("used", NULL) == 40 * MIB);
  CHECK(memory(&by_compat, fd, client, 8, 40 * MIB, 128, 0) == RM_NO_MEMORY);
  CHECK(memory(&plainly, fd, client, 8, 8 * MIB, 128, 'X' << 8) == RM_OK && told("used", NULL) == 48 * MIB);
  put32(CALL + 8, 9);
  put64(PARAMS + 64, 16 * MIB);
  put32(OUTER, RM_ALLOC);
  put32(OUTER + 4, 32);
  put64(OUTER + 8, spot(CALL));
  CHECK(bed_ioctl(&plainly, fd, vgpu__rm_word(RM_XFER, 16), spot(OUTER)) == 0 && get32(CALL + 28) == RM_OK &&
        told("used", NULL) == 64 * MIB);
  put32(CALL + 8, 10);
  CHECK(bed_ioctl(&plainly, fd, vgpu__rm_word(RM_XFER, 16), spot(OUTER)) == 0 && get32(CALL + 28) == RM_NO_MEMORY);
  CHECK(do_free(&plainly, fd, client, DEVICE) == RM_OK && told("used", NULL) == 0);
}

static void shown_and_filtered(int fd, uint32_t client) {
  uint32_t group = 0;
  struct alloc what = {.client = client, .parent = DEVICE, .class_number = RM_CLASS_GROUP, .rights = 1};
  put32(PARAMS, 2);
  put32(PARAMS + 4, 0x08);
  put32(PARAMS + 12, 0x16);
  CHECK(memory(&plainly, fd, client, 7, 16 * MIB, 128, 0) == RM_OK);
  put32(PARAMS, 2);
  CHECK(do_control(&plainly, fd, client, SUBDEVICE, RM_FB_GET_INFO_V2, 436) == RM_OK);
  CHECK(get32(PARAMS + 8) == 64 << 10 && get32(PARAMS + 16) == 48 << 10);
  CHECK(set("weight", "25") == 0);
  CHECK(do_alloc(&plainly, fd, what, &group) == RM_OK);
  put64(PARAMS, 100000);
  CHECK(do_control(&plainly, fd, client, group, RM_GROUP_SET_TIMESLICE, 8) == RM_OK);
  CHECK(do_control(&plainly, fd, client, group, 0xa06c0104, 8) == RM_OK && get64(PARAMS) == 2048);
  CHECK(do_control(&plainly, fd, client, group, RM_GROUP_SET_INTERLEAVE, 4) == RM_INSUFFICIENT_PERMISSIONS);
  CHECK(told("stats", "unweighted ") == 0 && told("stats", "filtered ") >= 2);
  CHECK(do_free(&plainly, fd, client, 7) == RM_OK);
}

/* The driver's own checks work as without the module. */
static void identity(int fd, int card) {
  int plain = open("/dev/null", O_RDWR), lone = open_device("/dev/nvidiactl");
  CHECK(open("/dev/nvidia77", O_RDWR) < 0 && errno == ENODEV);
  CHECK(do_register(&plainly, card, plain) != 0);
  CHECK(do_register(&plainly, card, fd) == 0);
  CHECK(do_register(&plainly, card, fd) != 0);
  uint32_t client = 0;
  CHECK(do_alloc(&plainly, card, (struct alloc){.class_number = 0x41}, &client) == RM_OK);
  CHECK(do_free(&plainly, lone, client, client) == RM_INVALID_CLIENT); /* another file's client */
  CHECK(do_free(&plainly, fd, client, client) == RM_OK);
  close(plain);
  close(lone);
}

static void without_a_card(void) {
  int fd = open_device("/dev/nvidiactl");
  uint32_t client = 0;
  CHECK(do_alloc(&plainly, fd, (struct alloc){.class_number = 0x41}, &client) == RM_OK);
  CHECK(do_alloc(&plainly, fd,
                 (struct alloc){.client = client, .parent = client, .handle = DEVICE, .class_number = 0x80},
                 NULL) == RM_INSUFFICIENT_PERMISSIONS);
  close(fd);
}

static void hostile(int fd, uint32_t client) {
  static const uint64_t POINTERS[] = {0, 1, 0xffff888000000000, 0xffffffff81000000, UINT64_MAX, UINT64_MAX - 63};
  for (int i = 0; i < 6; i++) {
    CHECK(ioctl(fd, vgpu__rm_word(RM_ALLOC, 32), POINTERS[i]) == -1 && errno == EFAULT);
    put32(CALL, client);
    put32(CALL + 4, DEVICE);
    put32(CALL + 8, 7);
    put32(CALL + 12, 0x40);
    put64(CALL + 16, POINTERS[i]);
    CHECK(ioctl(fd, vgpu__rm_word(RM_ALLOC, 32), spot(CALL)) == 0 && get32(CALL + 28) != RM_OK);
  }
  CHECK(told("used", NULL) == 0);
  /* The driver allocates but cannot write its answer: the charge stays. */
  memory(&plainly, fd, client, 7, 8 * MIB, 128, 0);
  put32(CALL + 8, 8);
  CHECK(mprotect(arena + 8192, 4096, PROT_READ) == 0);
  CHECK(ioctl(fd, vgpu__rm_word(RM_ALLOC, 32), spot(CALL)) == -1 && errno == EFAULT && told("used", NULL) == 16 * MIB);
  CHECK(mprotect(arena + 8192, 4096, PROT_READ | PROT_WRITE) == 0);
  CHECK(do_free(&plainly, fd, client, 8) == RM_OK && do_free(&plainly, fd, client, 7) == RM_OK &&
        told("used", NULL) == 0);
}

static void forked(int fd, uint32_t client) {
  pid_t child = fork();
  if (child == 0) _exit(memory(&plainly, fd, client, 7, 8 * MIB, 128, 0) == RM_OK ? 0 : 1);
  int status = -1;
  CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
  CHECK(told("used", NULL) == 8 * MIB); /* the file is still open in this process */
  CHECK(do_free(&plainly, fd, client, 7) == RM_OK && told("used", NULL) == 0);
}

static int checks(void) {
  without_a_card();
  int fd = open_device("/dev/nvidiactl"), card = open_device("/dev/nvidia0");
  uint32_t client = new_client(&plainly, fd);
  identity(fd, card);
  charge_deny_free(fd, client);
  other_ways_in(fd, client);
  client = new_client(&plainly, fd);
  shown_and_filtered(fd, client);
  hostile(fd, client);
  forked(fd, client);
  CHECK(memory(&plainly, fd, client, 7, 8 * MIB, 128, 0) == RM_OK); /* released by closing the files */
  close(fd);
  close(card);
  CHECK(told("used", NULL) == 0 && told("stats", "objects ") == 0 && told("stats", "over ") == 0);
  if (failures == 0) printf("ok   checks\n");
  return failures != 0;
}

static int take_and_wait(uint64_t mib) {
  char byte;
  int fd = open_device("/dev/nvidiactl"), card = open_device("/dev/nvidia0");
  uint32_t client = new_client(&plainly, fd), status = memory(&plainly, fd, client, 7, mib * MIB, 128, 0);
  printf("%s\n", status == RM_OK ? "took" : status == RM_NO_MEMORY ? "refused" : "failed");
  fflush(stdout);
  if (status != RM_OK) return 0;
  while (read(0, &byte, 1) > 0) continue;
  status = do_free(&plainly, fd, client, 7); /* works even if modules were loaded or unloaded meanwhile */
  close(card);
  return status != RM_OK;
}

static uint32_t schedule(int fd, uint32_t client, uint32_t group, int on) {
  put64(PARAMS, (uint64_t)on);
  return do_control(&plainly, fd, client, group, RM_GROUP_SCHEDULE, 2);
}

static int run_and_wait(uint32_t groups) {
  char byte;
  int fd = open_device("/dev/nvidiactl"), card = open_device("/dev/nvidia0");
  uint32_t client = new_client(&plainly, fd);
  for (uint32_t i = 0; i < groups; i++) {
    CHECK(new_group(&plainly, fd, client, 50 + i) == RM_OK && schedule(fd, client, 50 + i, 1) == RM_OK);
  }
  printf("%s\nclient %u\n", failures == 0 ? "runs" : "failed", client);
  fflush(stdout);
  while (read(0, &byte, 1) > 0) { /* on command */
    if (byte == 'e') CHECK(disable_channels(&plainly, fd, client, CHANNEL_OF + 50, groups, 0) == RM_OK);
    else if (byte == 'c') CHECK(new_channel(&plainly, fd, client, 50, 40) == RM_OK);
    else if (byte == 'd') CHECK(do_free(&plainly, fd, client, 40) == RM_OK);
    else CHECK(schedule(fd, client, 50, byte == '1') == RM_OK);
    printf("asked %c\n", byte);
    fflush(stdout);
  }
  close(card);
  close(fd);
  return failures != 0;
}

static int forge(uint32_t victim) {
  char path[256], byte;
  const struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  int fd = open_device("/dev/nvidiactl"), card = open_device("/dev/nvidia0");
  uint32_t own = new_client(&plainly, fd);
  snprintf(path, sizeof path, "%s/vgpu-rm-forged", getenv("VGPU_RM_EVENTS"));
  int events = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  CHECK(fcntl(events, F_SETLK, &whole) == 0);
  for (int i = 0; i < 2; i++) {
    uint32_t client = i == 0 ? victim : own;
    const struct vgpu_rm_event all[] = {
        {.kind = RM_EVENT_MADE, .fd = fd, .object = client, .class_number = RM_CLASS_ROOT},
        {.kind = RM_EVENT_MADE,
         .fd = fd,
         .client = client,
         .parent = client,
         .object = DEVICE,
         .class_number = RM_CLASS_DEVICE},
        {.kind = RM_EVENT_MADE,
         .fd = fd,
         .client = client,
         .parent = DEVICE,
         .object = SUBDEVICE,
         .class_number = RM_CLASS_SUBDEVICE},
        {.kind = RM_EVENT_MADE,
         .fd = fd,
         .client = client,
         .parent = DEVICE,
         .object = 50,
         .class_number = RM_CLASS_GROUP},
        {.kind = RM_EVENT_MADE,
         .fd = fd,
         .client = client,
         .parent = 50,
         .object = CHANNEL_OF + 50,
         .class_number = 0xa06f},
        {.kind = RM_EVENT_SCHEDULED, .fd = fd, .client = client, .object = 50, .value = 1},
    };
    CHECK(write(events, all, sizeof all) == (ssize_t)sizeof all);
  }
  printf("forged\n");
  fflush(stdout);
  while (read(0, &byte, 1) > 0) continue;
  close(card);
  close(fd);
  return failures != 0;
}

/* Holds the offline tenants, or lets them go on. Returns after how many microseconds the module has done so. */
static uint64_t hold(int device, const char *line) {
  struct timespec begin, end;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  CHECK(write(device, line, strlen(line)) == (ssize_t)strlen(line));
  clock_gettime(CLOCK_MONOTONIC, &end);
  return (uint64_t)((end.tv_sec - begin.tv_sec) * 1000000 + (end.tv_nsec - begin.tv_nsec) / 1000);
}

enum { MOST_ARRIVALS = 1000 };

static int by_size(const void *one, const void *other) {
  uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
  return (a > b) - (a < b);
}

/* The wait is in microseconds of the engine's own clock, on which it does not matter how slow this machine is. */
static int arrive(unsigned times, int device) {
  uint64_t number = told("cgroup", NULL), longest = 0, calls[MOST_ARRIVALS] = {0};
  char ran[64], waited[64], weight[32];
  unsigned seed = test_seed();
  int fd = open_device("/dev/nvidiactl"), card = open_device("/dev/nvidia0");
  uint32_t client = new_client(&plainly, fd);
  snprintf(ran, sizeof ran, "\nran of %llu ", (unsigned long long)number);
  snprintf(waited, sizeof waited, "\nwaited of %llu ", (unsigned long long)number);
  snprintf(weight, sizeof weight, "%llu", (unsigned long long)told("weight", NULL));
  CHECK(new_group(&plainly, fd, client, 50) == RM_OK && schedule(fd, client, 50, 1) == RM_OK);
  CHECK(times > 0 && times <= MOST_ARRIVALS);
  CHECK(set("weight", weight) == 0); /* returns when the module has set what it has to set */
  for (unsigned i = 0; i < times && failures == 0; i++) {
    CHECK(disable_channels(&plainly, fd, client, CHANNEL_OF + 50, 1, 1) == RM_OK);
    uint64_t before = number_in("/proc/nvidia_model", ran);
    usleep((unsigned)rand_r(&seed) % 5000);
    CHECK(disable_channels(&plainly, fd, client, CHANNEL_OF + 50, 1, 0) == RM_OK);
    if (device >= 0) calls[i] = hold(device, "online 10000");
    while (number_in("/proc/nvidia_model", ran) == before) usleep(1000);
    uint64_t us = number_in("/proc/nvidia_model", waited);
    if (device >= 0) hold(device, "online 0");
    if (us > longest) longest = us;
  }
  qsort(calls, times, sizeof *calls, by_size);
  if (device >= 0) printf("%llu %llu ", (unsigned long long)calls[times / 2], (unsigned long long)calls[times - 1]);
  printf("%llu\n", (unsigned long long)longest);
  close(card);
  close(fd);
  return failures != 0;
}

static void refused_child(const char *cgroup) {
  char path[256], pid[32];
  snprintf(path, sizeof path, "%s/cgroup.procs", cgroup);
  CHECK(put_into(path, pid, (size_t)snprintf(pid, sizeof pid, "%d", getpid())) == 0);
  int fd = open_device("/dev/nvidiactl"), card = open_device("/dev/nvidia0");
  uint32_t client = new_client(&plainly, fd);
  CHECK(memory(&plainly, fd, client, 7, 4096 * MIB, 128, 0) == RM_NO_MEMORY);
  close(card);
  close(fd);
}

/* The tenant must be called `one`, and nothing else may happen meanwhile. */
static int watch(const char *cgroup) {
  char text[4096];
  int device = open("/dev/vgpu", O_RDONLY | O_NONBLOCK | O_CLOEXEC), status = -1;
  struct pollfd ready = {.fd = device, .events = POLLIN};
  ssize_t size = read(device, text, sizeof text - 1);
  CHECK(device >= 0 && size > 0);
  text[size > 0 ? size : 0] = '\0';
  CHECK(strstr(text, "one class ") != NULL && strstr(text, "two class ") != NULL);
  CHECK(poll(&ready, 1, 0) == 0 && read(device, text, sizeof text) < 0 && errno == EAGAIN);
  CHECK(read(device, text, 8) < 0 && errno == EINVAL && write(device, "online 1", 8) < 0 && errno == EBADF);
  uint64_t refused = number_in("/sys/kernel/config/vgpu/one/stats", "refused ");
  pid_t child = fork();
  if (child == 0) {
    refused_child(cgroup);
    _exit(failures != 0);
  }
  CHECK(poll(&ready, 1, 60000) == 1 && (ready.revents & POLLIN) != 0);
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  size = read(device, text, sizeof text - 1);
  text[size > 0 ? size : 0] = '\0';
  const char *at = strstr(text, " refused ");
  CHECK(strncmp(text, "one class ", 10) == 0 && at != NULL && strtoull(at + 9, NULL, 10) == refused + 1);
  return failures != 0;
}

enum { MOST_PROCESSES = 16, MOST_THREADS = 8 };

/* A thread of a process in the storm. Threads share the files and the client; each has handles of its own. */
struct stormer {
  pthread_t thread;
  size_t number;
  unsigned seed;
  int fd;
  uint32_t client;
};

static void *storm_thread(void *self) {
  struct stormer *each = self;
  uint32_t base = 1000 * (1 + (uint32_t)each->number), client = each->client;
  int fd = each->fd;
  unsigned seed = each->seed;
  place = PLACE * each->number;
  for (int i = rand_r(&seed) % 2000; i > 0; i--) {
    uint32_t handle = base + (uint32_t)rand_r(&seed) % 12, group = base + 100 + handle % 3;
    if (rand_r(&seed) % 20 == 0) new_group(&plainly, fd, client, group);
    if (rand_r(&seed) % 20 == 0) schedule(fd, client, group, rand_r(&seed) % 4 != 0);
    if (rand_r(&seed) % 40 == 0) disable_channels(&plainly, fd, client, CHANNEL_OF + group, 1, rand_r(&seed) % 2 == 0);
    if (rand_r(&seed) % 60 == 0) do_free(&plainly, fd, client, CHANNEL_OF + group);
    if (rand_r(&seed) % 80 == 0) do_free(&plainly, fd, client, group);
    if (rand_r(&seed) % 3 == 0) do_free(&plainly, fd, client, handle);
    else
      memory(rand_r(&seed) % 8 == 0 ? &by_compat : &plainly, fd, client, handle,
             (1 + (uint64_t)rand_r(&seed) % 8) * 2 * MIB, 128, 0);
  }
  return NULL;
}

/* Ends with its parent process. */
static void storm_alone(unsigned seed, size_t threads, pid_t parent) {
  struct stormer all[MOST_THREADS];
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) return;
  for (;;) {
    int fd = open_device("/dev/nvidiactl"), card = open_device("/dev/nvidia0");
    uint32_t client = new_client(&plainly, fd);
    for (size_t i = 0; i < threads; i++) {
      all[i] = (struct stormer){.number = i, .seed = (unsigned)rand_r(&seed), .fd = fd, .client = client};
      if (pthread_create(&all[i].thread, NULL, storm_thread, &all[i]) != 0) bed_fail("pthread_create");
    }
    for (size_t i = 0; i < threads; i++) pthread_join(all[i].thread, NULL);
    close(card);
    close(fd);
  }
}

/* Compares the ledger with the driver while all processes of the tenant stand. Returns whether they are equal. */
static int equal_when_all_stand(const pid_t *pids, int processes, const char *held) {
  for (int i = 0; i < processes; i++) {
    if (pids[i] != 0) kill(pids[i], SIGSTOP);
  }
  for (int i = 0; i < processes; i++) {
    if (pids[i] != 0 && waitpid(pids[i], NULL, WUNTRACED) != pids[i]) return 0;
  }
  uint64_t used = told("used", NULL), truth = number_in("/proc/nvidia_model", held);
  if (used != truth)
    printf("FAIL the ledger has %llu, the driver %llu\n", (unsigned long long)used, (unsigned long long)truth);
  for (int i = 0; i < processes; i++) {
    if (pids[i] != 0) kill(pids[i], SIGCONT);
  }
  return used == truth;
}

/* Processes that are killed at random moments and replaced. After each death the tenant, whose only processes they are,
 * is charged for exactly what the driver holds for it. */
static int storm(int processes, size_t threads, int seconds) {
  pid_t pids[MOST_PROCESSES] = {0}, self = getpid();
  unsigned seed = test_seed() + (unsigned)processes, deaths = 0; /* tenants differ in their number */
  time_t until = time(NULL) + seconds;
  char held[64];
  int equal = 1;
  if (directory != NULL) snprintf(held, sizeof held, "cgroup %llu ", (unsigned long long)told("cgroup", NULL));
  if (processes > MOST_PROCESSES) processes = MOST_PROCESSES;
  if (threads > MOST_THREADS) threads = MOST_THREADS;
  while (equal && time(NULL) < until) {
    for (int i = 0; i < processes; i++) {
      if (pids[i] != 0) continue;
      fflush(stdout);
      pids[i] = fork();
      if (pids[i] == 0) {
        storm_alone(seed + (unsigned)i, threads, self);
        _exit(1);
      }
      seed += 7919;
    }
    usleep(20000 + (unsigned)rand_r(&seed) % 80000);
    int killed = rand_r(&seed) % processes;
    kill(pids[killed], SIGKILL);
    if (waitpid(pids[killed], NULL, 0) != pids[killed]) return 1;
    pids[killed] = 0;
    deaths++;
    if (directory != NULL) equal = equal_when_all_stand(pids, processes, held);
  }
  for (int i = 0; i < processes; i++) {
    if (pids[i] != 0 && (kill(pids[i], SIGKILL) != 0 || waitpid(pids[i], NULL, 0) != pids[i])) return 1;
  }
  printf("%u deaths of %d processes with %u threads\n", deaths, processes, (unsigned)threads);
  return !equal;
}

int main(int count, char **arguments) {
  begin_arena();
  if (count == 3 && strcmp(arguments[1], "checks") == 0) {
    directory = arguments[2];
    return checks();
  }
  if (count == 3 && strcmp(arguments[1], "take") == 0) return take_and_wait(strtoull(arguments[2], NULL, 10));
  if (count == 3 && strcmp(arguments[1], "run") == 0) return run_and_wait((uint32_t)atoi(arguments[2]));
  if (count == 3 && strcmp(arguments[1], "forge") == 0) return forge((uint32_t)strtoul(arguments[2], NULL, 10));
  if ((count == 4 || count == 5) && strcmp(arguments[1], "arrive") == 0) {
    directory = arguments[3];
    return arrive((unsigned)atoi(arguments[2]), count == 5 ? atoi(arguments[4]) : -1);
  }
  if (count == 3 && strcmp(arguments[1], "watch") == 0) return watch(arguments[2]);
  if (count == 5 && strcmp(arguments[1], "seats") == 0) {
    directory = arguments[3];
    return seats((unsigned)atoi(arguments[2]), (unsigned)atoi(arguments[4]));
  }
  if (count == 6 && strcmp(arguments[1], "storm") == 0) {
    if (strcmp(arguments[2], "-") != 0) directory = arguments[2];
    return storm(atoi(arguments[3]), (size_t)atoi(arguments[4]), atoi(arguments[5]));
  }
  return 2;
}
