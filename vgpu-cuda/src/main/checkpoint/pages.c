/*
 * vgpu-checkpoint --pages: changes words in files that tenants write, by compare-and-swap, for the seat. A tenant may
 * truncate such a file at any moment. An access to its mapping then raises SIGBUS, which a JVM cannot survive. This
 * process can: it answers that the page is lost.
 *
 * A request is a struct request followed by the path's bytes; the answer is one byte. The process ends with its input.
 */
#include "pages.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CHANGED = 'y', OTHER = 'n', LOST = '-' };

struct request {
  uint64_t offset, expected, value;
  uint32_t size, path_length; /* of the file; of its path, without a terminating zero */
};
_Static_assert(sizeof(struct request) == 32, "as in PageChanger");

static sigjmp_buf cut_short;

static void met_the_end(int signal) {
  (void)signal;
  siglongjmp(cut_short, 1);
}

static int read_all(void *into, size_t size) {
  for (char *at = into; size > 0;) {
    ssize_t got = read(0, at, size);
    if (got == 0 || (got < 0 && errno != EINTR)) return -1;
    if (got > 0) {
      at += got;
      size -= (size_t)got;
    }
  }
  return 0;
}

static char change(const struct request *request, const char *path) {
  struct stat seen;
  char answer = LOST;
  int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return LOST;
  if (syscall(SYS_fstat, fd, &seen) != 0 || !S_ISREG(seen.st_mode) || (uint64_t)seen.st_size != request->size) {
    close(fd);
    return LOST;
  }
  void *page = mmap(NULL, request->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (page == MAP_FAILED) return LOST;
  if (sigsetjmp(cut_short, 1) == 0) {
    uint64_t expected = request->expected, *word = (void *)((char *)page + request->offset);
    int done = __atomic_compare_exchange_n(word, &expected, request->value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    answer = done ? CHANGED : OTHER;
  }
  munmap(page, request->size);
  return answer;
}

int serve_pages(void) {
  struct sigaction action = {.sa_handler = met_the_end};
  struct request request;
  char path[PATH_MAX];
  sigaction(SIGBUS, &action, NULL);
  signal(SIGINT, SIG_IGN); /* from the terminal: this process ends when the seat does */
  signal(SIGPIPE, SIG_IGN);
  while (read_all(&request, sizeof request) == 0) {
    if (request.path_length >= sizeof path || request.offset % 8 != 0 || request.size < 8 || request.offset > request.size - 8) return 2;
    if (read_all(path, request.path_length) != 0) return 0;
    path[request.path_length] = '\0';
    char answer = change(&request, path);
    if (write(1, &answer, 1) != 1) return 0;
  }
  return 0;
}
