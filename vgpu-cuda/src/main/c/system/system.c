/* Wrappers for the kernel and the C library, as of glibc 2.17. */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "system.h"

uint64_t vgpu__now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* stat and fstat are exported symbols only from glibc 2.33 on. The kernel for aarch64 has no call stat. */
int vgpu__stat(const char *path, struct stat *into) { return (int)syscall(SYS_newfstatat, AT_FDCWD, path, into, 0); }

int vgpu__fstat(int fd, struct stat *into) { return (int)syscall(SYS_fstat, fd, into); }

void vgpu__futex_wait(const uint32_t *word, uint32_t seen, uint64_t timeout_ns) {
  int kept = errno;
  struct timespec span = {.tv_sec = (time_t)(timeout_ns / 1000000000u), .tv_nsec = (long)(timeout_ns % 1000000000u)};
  syscall(SYS_futex, word, FUTEX_WAIT, seen, &span, NULL, 0);
  errno = kept;
}

void vgpu__words_add(struct vgpu_words *words, const uint32_t *at) {
  words->at[words->count] = at;
  words->seen[words->count++] = LOAD_ACQUIRE(*at);
}

/* futex_waitv(2) and its argument, which headers before Linux 5.16 lack. */
enum { FUTEX_WAITV_CALL = 449, FUTEX_32_BITS = 2 };
struct waitv {
  uint64_t value, address;
  uint32_t flags, reserved;
};

void vgpu__words_wait(const struct vgpu_words *words, uint64_t timeout_ns, uint64_t poll_ns) {
  static uint32_t missing;
  if (words->count > 1 && !LOAD(missing)) {
    int kept = errno;
    struct waitv each[VGPU_WORDS];
    for (unsigned i = 0; i < words->count; i++) {
      each[i] = (struct waitv){.value = words->seen[i], .address = (uintptr_t)words->at[i], .flags = FUTEX_32_BITS};
    }
    uint64_t until = vgpu__now_ns() + timeout_ns;
    struct timespec end = {.tv_sec = (time_t)(until / 1000000000u), .tv_nsec = (long)(until % 1000000000u)};
    long woken = syscall(FUTEX_WAITV_CALL, each, words->count, 0, &end, CLOCK_MONOTONIC);
    int failed = woken < 0 && errno != EAGAIN && errno != ETIMEDOUT && errno != EINTR;
    errno = kept;
    if (!failed) return;
    STORE(missing, 1);
  }
  vgpu__futex_wait(words->at[0], words->seen[0], words->count > 1 ? poll_ns : timeout_ns);
}

uint64_t vgpu__parse_number(const char *text, uint64_t otherwise) {
  uint64_t value = 0;
  if (text == NULL || *text == '\0') return otherwise;
  for (; *text != '\0'; text++) {
    if (*text < '0' || *text > '9' || value > (UINT64_MAX - 9) / 10) return otherwise;
    value = value * 10 + (uint64_t)(*text - '0');
  }
  return value;
}

enum { EXITING = 4 }; /* in field 9: the kernel's PF_EXITING. The state is Z only once its memory is unmapped. */

static uint64_t vgpu__number(const char *at) {
  uint64_t value = 0;
  for (; *at >= '0' && *at <= '9'; at++) value = value * 10 + (uint64_t)(*at - '0');
  return value;
}

/*
 * Fields 3 and 22 of /proc/PID/stat; state X: the process is ending. The name in field 2 may contain spaces and
 * parentheses, so parse from the last ')'.
 */
static uint64_t vgpu__read_stat(const char *path, char *state) {
  char text[1024];
  int fd = vgpu__file_open(path, O_RDONLY);
  if (fd < 0) return 0;
  ssize_t size = vgpu__file_read(fd, text, sizeof text - 1);
  vgpu__file_close(fd);
  if (size <= 0) return 0;
  text[size] = '\0';
  const char *at = strrchr(text, ')');
  if (at == NULL || at[1] != ' ') return 0;
  *state = at[2];
  for (int field = 2; at != NULL && field < 22; field++) {
    if (field == 9 && (vgpu__number(at + 1) & EXITING) != 0) *state = 'X';
    at = strchr(at + 1, ' ');
  }
  return at == NULL ? 0 : vgpu__number(at + 1);
}

uint64_t vgpu__start_time(void) {
  char state;
  return vgpu__read_stat("/proc/self/stat", &state);
}

/* The second number of /proc/PID/schedstat: proc(5). */
uint64_t vgpu__unscheduled_ns(void) {
  char text[96];
  int kept = errno, fd = vgpu__file_open("/proc/thread-self/schedstat", O_RDONLY);
  ssize_t size = fd < 0 ? 0 : vgpu__file_read(fd, text, sizeof text - 1);
  if (fd >= 0) vgpu__file_close(fd);
  errno = kept;
  text[size > 0 ? size : 0] = '\0';
  const char *at = strchr(text, ' ');
  return at == NULL ? 0 : vgpu__number(at + 1);
}

static uint64_t vgpu__read_stat_of(uint64_t pid, char *state) {
  char path[64] = "/proc/", digits[24];
  size_t count = 0, at = strlen(path);
  for (uint64_t rest = pid; rest != 0; rest /= 10) digits[count++] = (char)('0' + rest % 10);
  while (count > 0) path[at++] = digits[--count];
  memcpy(path + at, "/stat", sizeof "/stat");
  return vgpu__read_stat(path, state);
}

/*
 * Whether the process exists and is neither dead nor stopped. In another pid namespace the pid is missing, or belongs
 * to a process with another start time.
 */
int vgpu__process_runs(uint64_t pid, uint64_t start_time) {
  char state = 'X';
  return pid != 0 && vgpu__read_stat_of(pid, &state) == start_time && strchr("TtZXx", state) == NULL;
}

/* Whether a process with this pid exists here, but /proc does not show it (its option hidepid, or no /proc at all). */
int vgpu__process_is_hidden(uint64_t pid) {
  char state;
  int exists = pid != 0 && pid <= INT32_MAX && (kill((pid_t)pid, 0) == 0 || errno == EPERM);
  return exists && vgpu__read_stat_of(pid, &state) == 0;
}

uint64_t vgpu__pid_namespace(void) {
  struct stat seen;
  return vgpu__stat("/proc/self/ns/pid", &seen) == 0 ? (uint64_t)seen.st_ino : 0;
}
