/* Wrappers for the kernel and the C library, as of glibc 2.17. */
#include "sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S UINT64_C(1000000000)

static uint64_t vgpu__clock_ns(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

uint64_t vgpu__now_ns(void) { return vgpu__clock_ns(CLOCK_MONOTONIC); }

uint64_t vgpu__epoch_us(void) { return vgpu__clock_ns(CLOCK_REALTIME) / 1000; }

void vgpu__sleep_ns(uint64_t ns) {
  int kept = errno;
  struct timespec span = {.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};
  nanosleep(&span, NULL);
  errno = kept;
}

/* stat and fstat are exported symbols only from glibc 2.33 on. The kernel for aarch64 has no call stat. */
int vgpu__stat(const char *path, struct stat *into) { return (int)syscall(SYS_newfstatat, AT_FDCWD, path, into, 0); }

int vgpu__fstat(int fd, struct stat *into) { return (int)syscall(SYS_fstat, fd, into); }

uint64_t vgpu__pid_namespace(void) {
  struct stat seen;
  return vgpu__stat("/proc/self/ns/pid", &seen) == 0 ? (uint64_t)seen.st_ino : 0;
}

int vgpu__process_exists(uint32_t pid, uint64_t start_time) {
  char path[64], text[1024];
  snprintf(path, sizeof path, "/proc/%u/stat", pid);
  int fd = pid == 0 ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  ssize_t size = read(fd, text, sizeof text - 1);
  close(fd);
  if (size <= 0) return 0;
  text[size] = '\0';
  /* The name in field 2 may contain spaces and parentheses. */
  const char *at = strrchr(text, ')');
  if (at == NULL || at[1] != ' ' || strchr("ZXx", at[2]) != NULL) return 0;
  for (int field = 2; at != NULL && field < 22; field++) at = strchr(at + 1, ' ');
  if (at == NULL) return 0;
  uint64_t value = 0;
  for (at++; *at >= '0' && *at <= '9'; at++) value = value * 10 + (uint64_t)(*at - '0');
  return value == start_time;
}

void vgpu__say(const char *what, const char *why) {
  char line[1700];
  int kept = errno;
  int length = snprintf(line, sizeof line, "vgpu: %s: %s\n", what, why);
  if (length > 0) {
    ssize_t written = write(2, line, (size_t)length < sizeof line ? (size_t)length : sizeof line - 1);
    (void)written;
  }
  errno = kept;
}
