/*
 * A preloaded library that shifts a process's wall clock by the number of seconds in a shared file, without changing
 * the machine's clock. Only the time of day shifts; CLOCK_MONOTONIC does not, as when a clock is set.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *step_seconds;

__attribute__((constructor)) static void open_step(void) {
  const char *path = getenv("VGPU_CHAOS_CLOCK");
  int fd = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  if (fd >= 0) {
    void *page = mmap(NULL, sizeof *step_seconds, PROT_READ, MAP_SHARED, fd, 0);
    step_seconds = page == MAP_FAILED ? NULL : page;
    close(fd);
  }
}

__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *now) {
  int result = (int)syscall(SYS_clock_gettime, clock, now);
  if (result == 0 && step_seconds != NULL &&
      (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI)) {
    now->tv_sec += (time_t)*step_seconds;
  }
  return result;
}

__attribute__((visibility("default"))) int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  struct timespec precise;
  int result = clock_gettime(CLOCK_REALTIME, &precise);
  (void)zone;
  now->tv_sec = precise.tv_sec;
  now->tv_usec = precise.tv_nsec / 1000;
  return result;
}

__attribute__((visibility("default"))) time_t time(time_t *result) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (result != NULL) {
    *result = now.tv_sec;
  }
  return now.tv_sec;
}
