/*
 * For gpu-check: runs a step as a process in its own session, and terminates it with everything that it started. Also
 * finds this machine's driver.
 */
#define _GNU_SOURCE
#include "program.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TIMED_OUT = 124, CANNOT_RUN = 127, GRACE_MS = 2000, SWEEPS = 150, SWEEP_MS = 20 };

static long parent_of(const char *pid) {
  char path[64], line[512];
  snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
  FILE *file = fopen(path, "r");
  if (file == NULL) {
    return -1;
  }
  char *read = fgets(line, sizeof line, file);
  fclose(file);
  char *name_end = read == NULL ? NULL : strrchr(line, ')');
  long parent = -1;
  return name_end != NULL && sscanf(name_end + 1, " %*c %ld", &parent) == 1 ? parent : -1;
}

/* Orphaned descendants are reparented to this process (subreaper), even from other sessions. */
static void kill_children(void) {
  DIR *proc = opendir("/proc");
  if (proc == NULL) {
    return;
  }
  for (struct dirent *entry; (entry = readdir(proc)) != NULL;) {
    if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' && parent_of(entry->d_name) == (long)getpid()) {
      kill((pid_t)atol(entry->d_name), SIGKILL);
    }
  }
  closedir(proc);
}

static void rest_ms(long ms) {
  struct timespec time = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&time, NULL);
}

static void sweep(pid_t child) {
  kill(-child, SIGKILL);
  for (int i = 0; i < SWEEPS; i++) {
    kill_children();
    while (waitpid(-1, NULL, WNOHANG) > 0) {
    }
    if (waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD) {
      return;
    }
    rest_ms(SWEEP_MS);
  }
}

/* Waits until the child ends: true, with its status. False at the deadline, or on a signal to terminate. */
static bool await(pid_t child, uint64_t deadline_ns, const sigset_t *signals, int *status) {
  for (;;) {
    pid_t ended;
    while ((ended = waitpid(-1, status, WNOHANG)) > 0) {
      if (ended == child) {
        return true;
      }
    }
    uint64_t now = now_ns();
    if (now >= deadline_ns) {
      return false;
    }
    uint64_t left = deadline_ns - now;
    struct timespec timeout = {(time_t)(left / 1000000000u), (long)(left % 1000000000u)};
    int got = sigtimedwait(signals, NULL, &timeout);
    if (got > 0 && got != SIGCHLD) {
      return false;
    }
  }
}

/*
 * session SECONDS COMMAND...: exits with the command's code, or 124 at the limit or after SIGTERM. Kills descendants.
 */
int mode_session(int count, char **arguments) {
  sigset_t signals, before;
  int status = 0;
  if (count < 2) {
    return 2;
  }
  sigemptyset(&signals);
  for (size_t i = 0; i < 4; i++) {
    sigaddset(&signals, (const int[]){SIGCHLD, SIGTERM, SIGINT, SIGHUP}[i]);
  }
  sigprocmask(SIG_BLOCK, &signals, &before);
  prctl(PR_SET_CHILD_SUBREAPER, 1ul, 0ul, 0ul, 0ul);
  prctl(PR_SET_PDEATHSIG, (unsigned long)SIGTERM, 0ul, 0ul, 0ul);
  pid_t self = getpid(), child = fork();
  if (child == 0) {
    /* If the parent is killed, the step terminates itself and what it started. */
    prctl(PR_SET_PDEATHSIG, (unsigned long)SIGTERM, 0ul, 0ul, 0ul);
    if (getppid() != self) {
      _exit(CANNOT_RUN);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    setsid();
    execvp(arguments[1], arguments + 1);
    fprintf(stderr, "cannot run %s: %s\n", arguments[1], strerror(errno));
    _exit(CANNOT_RUN);
  }
  if (child < 0) {
    fail("fork", errno);
  }
  bool ended = await(child, now_ns() + (uint64_t)(strtod(arguments[0], NULL) * 1e9), &signals, &status);
  if (!ended) {
    kill(-child, SIGTERM);
    if (await(child, now_ns() + (uint64_t)GRACE_MS * 1000000u, &signals, &status)) {
      rest_ms(SWEEP_MS);
    }
  }
  sweep(child);
  return !ended ? TIMED_OUT : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* where NAME...: prints the file of each library as the loader finds it, or why it does not; "path NAME FILE" */
int mode_where(int count, char **arguments) {
  for (int i = 0; i < count; i++) {
    void *library = dlopen(arguments[i], RTLD_NOW | RTLD_LOCAL);
    struct link_map *map = NULL;
    if (library == NULL) {
      say("none %s %s", arguments[i], dlerror());
    } else if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0 || map == NULL) {
      say("none %s its place is not known", arguments[i]);
    } else {
      say("path %s %s", arguments[i], map->l_name);
    }
  }
  return 0;
}
