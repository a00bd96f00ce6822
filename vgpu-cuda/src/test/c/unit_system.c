/* Tests of system/system.c alone: what /proc says of a process, as the kernel writes it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "unit.h"

enum { PID = 4711, START = 123456 };

static char text[512];
static const char *const PATH = "/proc/4711/stat";

int vgpu__file_open(const char *path, int flags) {
  (void)flags;
  CHECK(strcmp(path, PATH) == 0, "%s", path);
  return text[0] == '\0' ? -1 : 7;
}

ssize_t vgpu__file_read(int fd, void *into, size_t size) {
  IS(fd, 7);
  size_t length = strlen(text);
  CHECK(length <= size, "no room");
  memcpy(into, text, length);
  return (ssize_t)length;
}

void vgpu__file_close(int fd) { IS(fd, 7); }

/* Fields 1 to 24 and the first of the rest; the flags are field 9. */
static void says(const char *name, char state, unsigned flags) {
  snprintf(text, sizeof text,
           "%d (%s) %c 1 4711 4711 0 -1 %u 102 0 0 0 5 6 7 8 20 0 31 0 %d 2998272 414 18446744073709551615 1\n", PID,
           name, state, flags, START);
}

static void test_runs(void) {
  static const unsigned JVM = 0x400040;
  says("java", 'S', JVM);
  IS(vgpu__process_runs(PID, START), 1);
  IS(vgpu__process_runs(PID, START + 1), 0);
  says("a) R 4 (b", 'R', 0);
  IS(vgpu__process_runs(PID, START), 1);
  for (const char *state = "TtZXx"; *state != '\0'; state++) {
    says("java", *state, JVM);
    IS(vgpu__process_runs(PID, START), 0);
  }
}

/* A killed process shows as running until its memory is unmapped, and only then as a zombie. */
static void test_ending(void) {
  says("java", 'R', 0x400044);
  IS(vgpu__process_runs(PID, START), 0);
  says("java", 'D', 4);
  IS(vgpu__process_runs(PID, START), 0);
}

static void test_none(void) {
  text[0] = '\0';
  IS(vgpu__process_runs(PID, START), 0);
  snprintf(text, sizeof text, "%d (java) R 1 2 3", PID);
  IS(vgpu__process_runs(PID, START), 0);
  IS(vgpu__process_runs(0, START), 0);
}

int main(void) {
  begin();
  test_runs();
  test_ending();
  test_none();
  unlocked();
  printf("%s system\n", failures == 0 ? "ok  " : "FAIL");
  return failures != 0;
}
