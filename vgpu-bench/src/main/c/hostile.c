/* Programs that misbehave under a virtual GPU. */
#define _GNU_SOURCE
#include "program.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int open_report(struct stat *stat) {
  char path[512];
  snprintf(path, sizeof path, "%s/leases/%s/report", getenv("VGPU_RUN_DIR"), getenv("VGPU_LEASE"));
  int file = open(path, O_RDWR);
  if (file < 0 || fstat(file, stat) != 0) {
    fail("open of the report page", 0);
  }
  return file;
}

/* Truncates the report page of its own lease. What happens to this program afterwards does not matter. */
int mode_truncate(int count, char **arguments) {
  static struct driver driver;
  struct stat stat;
  (void)count;
  (void)arguments;
  driver_start(&driver);
  int file = open_report(&stat);
  say("ready");
  if (ftruncate(file, 0) != 0) {
    fail("ftruncate", 0);
  }
  nanosleep(&(struct timespec){1, 0}, NULL);
  say("done");
  return 0;
}

/* Writes random bytes over the report page of its own lease, header and slots, while it goes on calling the driver. */
int mode_hostile(int count, char **arguments) {
  static struct driver driver;
  struct stat stat;
  uint64_t random = 1 + (uint64_t)getpid();
  uint64_t kernel_ns = 100000;
  void *parameters[] = {&kernel_ns};
  if (count != 1) {
    return 2;
  }
  driver_start(&driver);
  int file = open_report(&stat);
  volatile uint64_t *words = mmap(NULL, (size_t)stat.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (words == MAP_FAILED) {
    fail("mmap of the report page", 0);
  }
  say("ready");
  uint64_t end = now_ns() + strtoull(arguments[0], NULL, 10) * 1000000000u;
  while (now_ns() < end) {
    for (int i = 0; i < 2000; i++) {
      uint64_t where = random_next(&random) % ((uint64_t)stat.st_size / 8);
      words[where] = random_next(&random) >> random_next(&random) % 64;
    }
    CUdeviceptr pointer = 0;
    driver.memory_alloc(&pointer, 4096); /* any result is accepted: the program has damaged its own lease */
    driver.memory_free(pointer);
    driver.launch(driver.spin_kernel, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL);
  }
  say("done");
  return 0;
}

/* The parent holds memory. Its child inherits every descriptor and never calls exec. */
int mode_fork(int count, char **arguments) {
  static struct driver driver;
  CUdeviceptr pointer;
  char line[128];
  (void)count;
  (void)arguments;
  driver_start(&driver);
  check(driver.memory_alloc(&pointer, 64u << 20), "cuMemAlloc");
  pid_t child = fork();
  if (child == 0) {
    size_t free_bytes = 0;
    size_t total = 0;
    CUresult initialised = driver.init(0);
    CUresult told = driver.memory_info(&free_bytes, &total);
    say("child %d init %d info %d", (int)getpid(), initialised, told);
    for (int i = 0; i < 600 && getppid() != 1; i++) { /* outlives the parent by far */
      nanosleep(&(struct timespec){0, 100000000}, NULL);
    }
    nanosleep(&(struct timespec){20, 0}, NULL);
    _exit(0);
  }
  say("parent %d child %d", (int)getpid(), (int)child);
  while (next_line(line, sizeof line)) {
    CUresult allocated = driver.memory_alloc(&pointer, 4096);
    say("alloc %d", allocated);
  }
  return 0;
}
