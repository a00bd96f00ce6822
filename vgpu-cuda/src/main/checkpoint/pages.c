/*
 * vgpu-checkpoint --pages: changes words in files that tenants write, by compare-and-swap, for the seat. A tenant may
 * truncate such a file at any moment. An access to its mapping then raises SIGBUS, which a JVM cannot survive. This
 * process can: it answers that the page is lost.
 *
 * It also makes a whole change of a memory ledger (MemoryLedger), because programs that change the ledger without a
 * pause are faster than answers go to and fro. It tries often, but not without end: a hostile program could go on.
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

#include "shm.h"

enum { CHANGED = 'y', OTHER = 'n', LOST = '-', MOST_ATTEMPTS = 100000 };

struct request {
  uint64_t offset, expected, value;
  uint32_t size, path_length; /* of the file; of its path, without a terminating zero */
  /*
   * For a change of a ledger, whose units are `expected`, and its sequence `value`: the offset of its marks in the
   * slots. 0: a compare-and-swap.
   */
  uint64_t marks;
};
_Static_assert(sizeof(struct request) == 40, "as in PageChanger");

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

static int swap(uint64_t *word, uint64_t expected, uint64_t value) {
  return __atomic_compare_exchange_n(word, &expected, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/* As MemoryLedger.tryApply: marks the change that the word names as done, then replaces the word. */
static int try_apply(const struct request *request, char *page, uint64_t *word) {
  uint64_t seen = __atomic_load_n(word, __ATOMIC_SEQ_CST), seq = seen & SHM_MEMORY_SEQ_MASK;
  uint64_t slot = seen >> SHM_MEMORY_SLOT_SHIFT & SHM_MEMORY_SLOT_MASK;
  if (slot != 0 && slot < SHM_SLOT_COUNT && seq != 0) {
    uint64_t *mark = (void *)(page + SHM_SLOTS_OFFSET + slot * SHM_SLOT_SIZE + request->marks);
    uint64_t done = __atomic_load_n(mark, __ATOMIC_SEQ_CST);
    uint64_t version = ((done >> SHM_MEMORY_SLOT_SHIFT) + 1) << SHM_MEMORY_SLOT_SHIFT;
    if ((done & SHM_MEMORY_SEQ_MASK) != seq &&
        (__atomic_load_n(word, __ATOMIC_SEQ_CST) != seen || !swap(mark, done, version | seq))) {
      return 0;
    }
  }
  int64_t units = (int64_t)(seen >> SHM_MEMORY_UNITS_SHIFT) + (int64_t)request->expected;
  return swap(word, seen, (uint64_t)(units < 0 ? 0 : units) << SHM_MEMORY_UNITS_SHIFT | request->value);
}

static int apply(const struct request *request, char *page, uint64_t *word) {
  if (request->marks == 0) return swap(word, request->expected, request->value);
  for (int i = 0; i < MOST_ATTEMPTS; i++) {
    if (try_apply(request, page, word)) return 1;
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
    answer = apply(request, page, (void *)((char *)page + request->offset)) ? CHANGED : OTHER;
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
    if (request.path_length >= sizeof path || request.offset % 8 != 0 || request.size < 8 ||
        request.offset > request.size - 8)
      return 2;
    if (request.marks % 8 != 0 || request.marks > SHM_SLOT_SIZE - 8) return 2;
    if (request.marks != 0 && request.size < SHM_SLOTS_OFFSET + SHM_SLOT_COUNT * SHM_SLOT_SIZE) return 2;
    if (read_all(path, request.path_length) != 0) return 0;
    path[request.path_length] = '\0';
    char answer = change(&request, path);
    if (write(1, &answer, 1) != 1) return 0;
  }
  return 0;
}
