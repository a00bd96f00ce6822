/*
 * A program with libvgpu_rm.so and user_driver.c preloaded and VGPU_RM_LIMIT=67108864. The library's report must equal
 * what the driver holds, and its records of channel groups what the program has done.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "../../main/c/core/rm_abi.h"
#include "../../main/c/user/rm_events.h"

#define MIB ((uint64_t)1 << 20)

struct bed_process {
  int unused;
};
static unsigned char *arena;
static uint64_t bed_at(size_t offset) { return (uint64_t)(uintptr_t)arena + offset; }
static long bed_ioctl(struct bed_process *process, int fd, uint32_t word, uint64_t argument) {
  (void)process;
  return ioctl(fd, word, argument);
}
static void bed_fail(const char *what) {
  fprintf(stderr, "FAIL %s\n", what);
  exit(1);
}

#include "calls.h"
#include "check.h"

static struct bed_process self;
static uint64_t (*held)(void);
static int failures;

/* A number in the report. */
static uint64_t told(const char *name) {
  char text[1024] = "";
  FILE *report = fopen(getenv("VGPU_RM_REPORT"), "r");
  if (report == NULL || fread(text, 1, sizeof text - 1, report) == 0) bed_fail("no report");
  fclose(report);
  const char *at = strstr(text, name);
  return at != NULL ? strtoull(at + strlen(name), NULL, 10) : UINT64_MAX;
}

static int is(uint64_t bytes) { return told("used ") == bytes && held() == bytes; }

/* The next record; kind 0: there is none. Only this process has a file. */
static struct vgpu_rm_event next_event(void) {
  static FILE *events;
  struct vgpu_rm_event event = {0};
  char path[4096];
  glob_t found;
  snprintf(path, sizeof path, "%s/" RM_EVENTS_PATTERN, getenv("VGPU_RM_EVENTS"));
  if (events == NULL && glob(path, 0, NULL, &found) == 0 && found.gl_pathc == 1) events = fopen(found.gl_pathv[0], "r");
  if (events == NULL) bed_fail("no records");
  clearerr(events);
  if (fread(&event, sizeof event, 1, events) != 1) event.kind = 0;
  return event;
}

static int is_next(uint32_t kind, uint32_t client, uint32_t object, uint32_t value) {
  struct vgpu_rm_event event = next_event();
  return event.kind == kind && event.client == client && event.object == object && event.value == value;
}

static void records(void) {
  int fd = open("/dev/nvidiactl", O_RDWR);
  while (next_event().kind != 0) continue;
  uint32_t client = new_client(&self, fd);
  struct vgpu_rm_event event = next_event();
  CHECK(event.kind == RM_EVENT_MADE && event.object == client && event.fd == fd);
  CHECK(is_next(RM_EVENT_MADE, client, DEVICE, 0) && is_next(RM_EVENT_MADE, client, SUBDEVICE, 0));
  CHECK(take(&self, fd, client, 7, MIB) == RM_OK && do_free(&self, fd, client, 7) == RM_OK);
  put32(PARAMS + 12, 3); /* the engine */
  CHECK(new_group(&self, fd, client, 50) == RM_OK);
  CHECK(is_next(RM_EVENT_MADE, client, 50, 3));
  CHECK(is_next(RM_EVENT_MADE, client, CHANNEL_OF + 50, 0));
  put64(PARAMS, 1);
  CHECK(do_control(&self, fd, client, 50, RM_GROUP_SCHEDULE, 2) == RM_OK);
  CHECK(is_next(RM_EVENT_SCHEDULED, client, 50, 1));
  CHECK(disable_channels(&self, fd, client, CHANNEL_OF + 50, 1, 1) == RM_OK);
  CHECK(is_next(RM_EVENT_DISABLED, client, CHANNEL_OF + 50, 1));
  CHECK(disable_channels(&self, fd, client, 12345, 1, 1) != RM_OK);
  CHECK(do_free(&self, fd, client, CHANNEL_OF + 50) == RM_OK);
  CHECK(is_next(RM_EVENT_FREED, client, CHANNEL_OF + 50, 0));
  close(fd);
  CHECK(is_next(RM_EVENT_CLOSED, 0, 0, 0) && next_event().kind == 0);
}

int main(void) {
  arena = calloc(1, 1 << 16);
  *(void **)&held = dlsym(RTLD_DEFAULT, "user_driver_held");
  if (arena == NULL || held == NULL) bed_fail("nothing is preloaded");
  int fd = open("/dev/nvidiactl", O_RDWR), card = open("/dev/nvidia0", O_RDWR), other = open("/dev/null", O_RDWR);
  uint32_t client = new_client(&self, fd);
  CHECK(take(&self, fd, client, 7, 40 * MIB) == RM_OK && is(40 * MIB));
  CHECK(take(&self, fd, client, 8, 25 * MIB) == RM_NO_MEMORY && is(40 * MIB) && told("refused ") == 1);
  CHECK(take(&self, fd, client, 8, 3 * MIB - 1) == RM_OK && is(44 * MIB)); /* the driver's granularity */
  CHECK(do_free(&self, fd, client, 7) == RM_OK && is(4 * MIB) && told("peak ") == 44 * MIB);
  CHECK(ioctl(fd, vgpu__rm_word(RM_ALLOC, 32), (void *)8) == -1 && errno == EFAULT);

  int copy = dup(fd), third = fcntl(fd, F_DUPFD_CLOEXEC, 100), fourth = dup2(fd, 120);
  CHECK(copy >= 0 && third >= 100 && fourth == 120);
  CHECK(close(fd) == 0 && close(third) == 0 && is(4 * MIB));
  CHECK(take(&self, copy, client, 9, 2 * MIB) == RM_OK && is(6 * MIB));
  CHECK(close(copy) == 0 && is(6 * MIB));
  CHECK(dup2(other, fourth) == fourth && close(fourth) == 0 && told("used ") == 0); /* closed by dup2 */
  CHECK(told("objects ") == 0);

  int late = open("/dev/nvidiactl", O_RDWR);
  CHECK(do_register(&self, card, late) == 0);
  client = new_client(&self, card);
  CHECK(take(&self, late, client, 7, 8 * MIB) == RM_OK && told("used ") == 8 * MIB);
  CHECK(close(late) == 0 && told("used ") == 8 * MIB); /* kept open by the card's file */
  CHECK(close(card) == 0 && told("used ") == 0 && told("objects ") == 0 && told("over ") == 0);
  records();
  if (failures == 0) printf("ok   interposer\n");
  return failures != 0;
}
