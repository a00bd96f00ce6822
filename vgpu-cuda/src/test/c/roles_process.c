/* Roles of test_hook.c: programs that change their user, fork, or end, beside the hook's threads. */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda_calls.h"
#include "test.h"

static int started, deaf; /* threads, and those of them that would never see the C library's own signals */

#ifndef VGPU_SANITIZED
/* Older C libraries give a new thread exactly its creator's mask; newer ones leave their own two signals out of it. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument) {
  int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
  uint64_t mask = 0, own = (uint64_t)3 << 31;
  void *found = dlsym(RTLD_NEXT, "pthread_create");
  memcpy(&next, &found, sizeof next);
  syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, sizeof mask);
  __atomic_fetch_add(&started, 1, __ATOMIC_SEQ_CST);
  if ((mask & own) != 0) __atomic_fetch_add(&deaf, 1, __ATOMIC_SEQ_CST);
  return next(thread, attributes, body, argument);
}
#endif

/* The C library changes the user in every thread, by a signal, and waits for all of them. */
void role_set_user(const char *plain) {
  CUcontext made = NULL;
  CHECK(cuInit(0) == ABI_SUCCESS && cuCtxCreate_v2(&made, 0, 0) == ABI_SUCCESS, "a context");
  alarm((unsigned)(PATIENCE_NS / 1000000000));
  CHECK(setgid(getgid()) == 0 && setuid(getuid()) == 0, "set");
  CHECK((GET(started) > 0 || plain[0] == '\0') && GET(deaf) == 0, "%d of %d threads would never let that return",
        GET(deaf), GET(started));
}

static void *attach_here(void *unused) {
  (void)unused;
  CHECK(cuInit(0) == ABI_SUCCESS, "cuInit in the parent");
  return NULL;
}

/* Forks while another thread attaches. The child attaches by itself. The seat answers once the child was made. */
void role_fork_attaching(const char *unused) {
  (void)unused;
  enum { SOCKET = 700 }; /* the hook's first one */
  char path[256];
  pthread_t thread;
  int status = -1;
  alarm((unsigned)(PATIENCE_NS / 1000000000));
  CHECK(pthread_create(&thread, NULL, attach_here, NULL) == 0, "thread");
  snprintf(path, sizeof path, "/proc/self/fd/%d", SOCKET);
  while (access(path, F_OK) != 0) usleep(100);
  pid_t child = fork();
  if (child == 0) {
    alarm((unsigned)(PATIENCE_NS / 1000000000));
    snprintf(path, sizeof path, "%s/forked", getenv("VGPU_RUN_DIR"));
    close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    _exit(cuInit(0) == ABI_SUCCESS ? 0 : 1);
  }
  CHECK(waitpid(child, &status, 0) == child && status == 0, "the child ended with %d", status);
  CHECK(pthread_join(thread, NULL) == 0, "join");
}
