/* See tenant.h. */
#include "tenant.h"

unsigned char *arena;
struct bed_process plainly;
int failures;
const char *directory;

static long int80(long number, long one, long two, long three) {
  long result;
  __asm__ volatile("int $0x80"
                   : "=a"(result)
                   : "a"(number), "b"(one), "c"(two), "d"(three)
                   : "memory", "r8", "r9", "r10", "r11");
  return (int)result;
}

long bed_ioctl(struct bed_process *process, int fd, uint32_t word, uint64_t argument) {
  enum { IOCTL_OF_32_BIT = 54 };
  return process->compat ? int80(IOCTL_OF_32_BIT, fd, (long)word, (long)argument) : ioctl(fd, word, argument);
}

void bed_fail(const char *what) {
  printf("FAIL %s: %s\n", what, strerror(errno));
  exit(1);
}

void begin_arena(void) {
  arena = mmap(NULL, ARENA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
  if (arena == MAP_FAILED) bed_fail("mmap");
}
