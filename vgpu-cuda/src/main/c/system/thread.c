/* The hook's own threads. */
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "system.h"

enum { STACK = 1 << 20 }; /* the C library also places the program's thread-local data in it */

/* 32 and 33: the C library sends the second one to each thread in setuid and the like, and waits for all of them. */
static const uint64_t BLOCKED = ~((uint64_t)3 << 31);

static int vgpu__start(void *(*body)(void *), size_t stack) {
  pthread_t thread;
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return -1;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  if (stack != 0) pthread_attr_setstacksize(&attributes, stack);
  int failed = pthread_create(&thread, &attributes, body, NULL);
  pthread_attr_destroy(&attributes);
  return failed ? -1 : 0;
}

/* A new thread inherits its creator's mask: so the hook's threads never handle the program's signals. */
int vgpu__thread_start(void *(*body)(void *)) {
  uint64_t before = 0;
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &BLOCKED, &before, sizeof BLOCKED);
  int failed = vgpu__start(body, STACK);
  if (failed) failed = vgpu__start(body, 0); /* a program with much thread-local data: use the default stack size */
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof before);
  return failed;
}
