/*
 * Shared code of the tenants' programs in the virtual machine (tenant.c). They are linked statically, so no preloaded
 * library affects them.
 */
#ifndef VGPU_TENANT_H
#define VGPU_TENANT_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../main/c/core/rm_abi.h"

#define MIB ((uint64_t)1 << 20)
enum { ARENA = 1 << 20 }; /* with a part for each thread: `place` in calls.h */

/* Replaces bed.h for calls.h: here the driver is in the kernel. */
struct bed_process {
  int compat; /* use 32-bit system calls */
};
extern unsigned char *arena; /* below 4 GiB, for 32-bit system calls */
extern struct bed_process plainly;

static inline uint64_t bed_at(size_t offset) { return (uint64_t)(uintptr_t)arena + offset; }

long bed_ioctl(struct bed_process *process, int fd, uint32_t word, uint64_t argument);
void bed_fail(const char *what); /* ends the program */

#include "../c/calls.h"

extern int failures;
#define CHECK(fine)                                          \
  do {                                                       \
    if (!(fine)) {                                           \
      failures++;                                            \
      printf("FAIL %s:%d: %s\n", __FILE__, __LINE__, #fine); \
    }                                                        \
  } while (0)

/* The seed of random tests: VGPU_TEST_SEED, or a new number; it is printed. */
static inline unsigned test_seed(void) {
  const char *given = getenv("VGPU_TEST_SEED");
  unsigned seed = given != NULL ? (unsigned)strtoul(given, NULL, 10) : (unsigned)time(NULL) ^ (unsigned)getpid() << 12;
  printf("VGPU_TEST_SEED=%u repeats what this draws\n", seed);
  return seed;
}

extern const char *directory; /* the tenant's directory */

/* The number at the start of a file, or after the first occurrence of `line` in it. */
static inline uint64_t number_in(const char *path, const char *line) {
  char text[4096] = "";
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0 || read(fd, text, sizeof text - 1) < 0) bed_fail(path);
  close(fd);
  const char *at = line == NULL ? text : strstr(text, line);
  return at == NULL ? UINT64_MAX : strtoull(at + (line == NULL ? 0 : strlen(line)), NULL, 0);
}

/* Returns 0, or the error. */
static inline int put_into(const char *path, const char *value, size_t size) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) bed_fail(path);
  int error = write(fd, value, size) < 0 ? errno : 0;
  close(fd);
  return error;
}

static inline uint64_t told(const char *name, const char *line) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  return number_in(path, line);
}

static inline int set(const char *name, const char *value) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  return put_into(path, value, strlen(value));
}

static inline int open_device(const char *path) {
  int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) bed_fail(path);
  return fd;
}

static inline uint32_t memory(struct bed_process *process, int fd, uint32_t client, uint32_t handle, uint64_t bytes,
                              uint32_t params_size, uint32_t direction) {
  struct alloc what = {.client = client,
                       .parent = DEVICE,
                       .handle = handle,
                       .class_number = 0x40,
                       .bytes = bytes,
                       .params_size = params_size,
                       .direction = direction};
  return do_alloc(process, fd, what, NULL);
}

void begin_arena(void);

#endif
