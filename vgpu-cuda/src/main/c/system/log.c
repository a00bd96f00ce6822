/* The log: one sink, off by default, limited to a few lines a second. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "system.h"

enum { LINES_PER_SECOND = 20, LINE = 400 };

static struct vgpu_lock log_lock;
static char last_reason[LINE];
static uint64_t window_ns;
static unsigned in_window, left_out;

void vgpu__last_reason(char *into, size_t size) {
  if (into == NULL || size == 0) return;
  vgpu__lock(&log_lock);
  size_t length = strlen(last_reason);
  if (length >= size) length = size - 1;
  memcpy(into, last_reason, length);
  into[length] = '\0';
  vgpu__unlock(&log_lock);
}

/* Opened and closed for each line: a program that closes all descriptors cannot redirect the log into its own files. */
static void vgpu__write_line(const char *sink, const char *text) {
  char line[LINE + 64];
  int length = snprintf(line, sizeof line, "vgpu[%d]: %s\n", (int)getpid(), text);
  if (length <= 0) return;
  if ((size_t)length >= sizeof line) length = (int)sizeof line - 1;
  int to_stderr = strcmp(sink, "stderr") == 0;
  int fd = to_stderr ? 2 : vgpu__file_open(sink, O_WRONLY | O_APPEND | O_CREAT | O_NOCTTY);
  if (fd < 0) return;
  ssize_t written = vgpu__file_write(fd, line, (size_t)length);
  (void)written;
  if (!to_stderr) vgpu__file_close(fd);
}

void vgpu__log(const char *format, ...) {
  int kept = errno;
  char text[LINE];
  va_list values;
  va_start(values, format);
  vsnprintf(text, sizeof text, format, values);
  va_end(values);
  const char *sink = vgpu__setting("VGPU_HOOK_LOG");
  uint64_t now = vgpu__now_ns();
  vgpu__lock(&log_lock);
  memcpy(last_reason, text, sizeof text);
  if (now - window_ns > 1000u * NS_PER_MS) {
    window_ns = now;
    in_window = 0;
  }
  int write_it = sink != NULL && in_window < LINES_PER_SECOND;
  unsigned before = 0;
  if (write_it) {
    in_window++;
    before = left_out;
    left_out = 0;
  } else {
    left_out++;
  }
  vgpu__unlock(&log_lock);
  if (write_it) {
    if (before > 0 && in_window == 1) vgpu__write_line(sink, "(lines were left out)");
    vgpu__write_line(sink, text);
  }
  errno = kept;
}

void vgpu__log_forget(void) { log_lock.word = 0; }
