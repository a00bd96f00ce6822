/*
 * vgpu-checkpoint: suspends the CUDA part of another process through the driver's own functions (cuCheckpointProcess…,
 * driver 570 and later). It takes the options of NVIDIA's cuda-checkpoint, so that a caller can use either. It is a
 * program of its own for two reasons: a call of the driver may hang, and can then be killed; and the caller need not
 * load the driver.
 *
 * Exit codes: 0 done; 1 the driver refuses, or there is none; 2 wrong usage; 3 the driver has no such functions. It
 * dies with the process that started it.
 */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "pages.h"

#if !defined(VGPU_SANITIZED)
VGPU_OLD(dlopen);
#endif

enum { DONE, REFUSED, USAGE, TOO_OLD };
enum { CUDA_SUCCESS = 0, CUDA_ERROR_NOT_INITIALIZED = 3 };
enum { STATE_RUNNING, STATE_LOCKED, STATE_CHECKPOINTED, STATE_FAILED };

/* The arguments of every step are 64 bytes. Drivers have changed their layout, so all unused bytes are zero. */
typedef struct {
  uint32_t timeout_ms; /* of a lock */
  uint32_t rest[15];
} arguments;
_Static_assert(sizeof(arguments) == 64, "as in cuda.h");

typedef int step_function(int pid, arguments *with);
typedef int number_function(int pid, int *number);

static struct {
  step_function *lock;
  step_function *checkpoint;
  step_function *restore;
  step_function *unlock;
  number_function *state;
  number_function *restore_thread;
  int (*init)(unsigned int flags);
  int (*version)(int *version);
  int (*error_name)(int error, const char **name);
} driver;

typedef enum { NOTHING, ACTION, TOGGLE, GET_STATE, GET_RESTORE_TID, PROBE } operation;

static struct {
  operation operation;
  const char *action;
  int pid;
  uint32_t timeout_ms;
} asked;

static const char *const state_names[] = {"running", "locked", "checkpointed", "failed"};

static void *find(void *library, const char *name) { return dlsym(library, name); }

/* dlsym returns an object pointer, which ISO C cannot cast to a function pointer. */
#define FIND(library, member, name)               \
  do {                                            \
    void *found = find(library, name);            \
    memcpy(&driver.member, &found, sizeof found); \
  } while (0)

static int open_driver(void) {
  const char *path = getenv("VGPU_CUDA_DRIVER");
  path = path == NULL || path[0] == '\0' ? "libcuda.so.1" : path;
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "no driver: %s\n", dlerror());
    return REFUSED;
  }
  FIND(library, lock, "cuCheckpointProcessLock");
  FIND(library, checkpoint, "cuCheckpointProcessCheckpoint");
  FIND(library, restore, "cuCheckpointProcessRestore");
  FIND(library, unlock, "cuCheckpointProcessUnlock");
  FIND(library, state, "cuCheckpointProcessGetState");
  FIND(library, restore_thread, "cuCheckpointProcessGetRestoreThreadId");
  FIND(library, init, "cuInit");
  FIND(library, version, "cuDriverGetVersion");
  FIND(library, error_name, "cuGetErrorName");
  if (driver.lock == NULL || driver.checkpoint == NULL || driver.restore == NULL || driver.unlock == NULL ||
      driver.state == NULL || driver.init == NULL) {
    fprintf(stderr, "the driver has no checkpoint functions (570 and later have): library=%s\n", path);
    return TOO_OLD;
  }
  return DONE;
}

static int report(const char *what, int error) {
  const char *name = NULL;
  if (error == CUDA_SUCCESS) {
    return DONE;
  }
  if (driver.error_name == NULL || driver.error_name(error, &name) != CUDA_SUCCESS || name == NULL) {
    name = "a CUDA error";
  }
  fprintf(stderr, "%s: %s (%d)\n", what, name, error);
  return REFUSED;
}

/* Most steps need no cuInit, which may take a second. A restore needs it if no process has the GPU open. */
static int take(step_function *step, uint32_t timeout_ms) {
  arguments with;
  memset(&with, 0, sizeof with);
  with.timeout_ms = timeout_ms;
  int error = step == driver.restore ? driver.init(0) : CUDA_SUCCESS;
  if (error == CUDA_SUCCESS) {
    error = step(asked.pid, &with);
  }
  if (error == CUDA_ERROR_NOT_INITIALIZED && driver.init(0) == CUDA_SUCCESS) {
    error = step(asked.pid, &with);
  }
  return error;
}

static int read_state(int *state) {
  int error = driver.state(asked.pid, state);
  if (error == CUDA_ERROR_NOT_INITIALIZED && driver.init(0) == CUDA_SUCCESS) {
    error = driver.state(asked.pid, state);
  }
  return error;
}

static int act(void) {
  if (strcmp(asked.action, "lock") == 0) {
    return report("lock", take(driver.lock, asked.timeout_ms));
  }
  if (strcmp(asked.action, "checkpoint") == 0) {
    return report("checkpoint", take(driver.checkpoint, 0));
  }
  if (strcmp(asked.action, "restore") == 0) {
    return report("restore", take(driver.restore, 0));
  }
  if (strcmp(asked.action, "unlock") == 0) {
    return report("unlock", take(driver.unlock, 0));
  }
  fprintf(stderr, "no such action: %s\n", asked.action);
  return USAGE;
}

/* A step that fails halfway is undone, so that no process is left locked. */
static int toggle(void) {
  int state = STATE_FAILED;
  int error = read_state(&state);
  if (error != CUDA_SUCCESS) {
    return report("state", error);
  }
  if (state == STATE_RUNNING) {
    error = take(driver.lock, asked.timeout_ms);
    if (error == CUDA_SUCCESS) {
      error = take(driver.checkpoint, 0);
      if (error != CUDA_SUCCESS) {
        report("unlock", take(driver.unlock, 0));
      }
    }
    return report("suspend", error);
  }
  if (state == STATE_CHECKPOINTED) {
    error = take(driver.restore, 0);
  }
  return report("resume", error == CUDA_SUCCESS ? take(driver.unlock, 0) : error);
}

static int perform(void) {
  int number = 0;
  int error = CUDA_SUCCESS;
  switch (asked.operation) {
    case ACTION: return act();
    case TOGGLE: return toggle();
    case GET_STATE:
      error = read_state(&number);
      if (error == CUDA_SUCCESS && number >= STATE_RUNNING && number <= STATE_FAILED) {
        puts(state_names[number]);
      }
      return report("state", error);
    case GET_RESTORE_TID:
      error = driver.restore_thread == NULL ? 801 : driver.restore_thread(asked.pid, &number);
      if (error == CUDA_SUCCESS) {
        printf("%d\n", number);
      }
      return report("restore thread", error);
    case PROBE:
      if (driver.version != NULL && driver.version(&number) == CUDA_SUCCESS) {
        printf("CUDA %d.%d\n", number / 1000, number % 1000 / 10);
      }
      return DONE;
    default: return USAGE;
  }
}

static long number_of(const char *text) {
  char *end = NULL;
  errno = 0;
  long number = strtol(text, &end, 10);
  return errno != 0 || end == text || *end != '\0' || number < 0 || number > INT32_MAX ? -1 : number;
}

static int help(void) {
  puts("Suspends the CUDA part of another process, and resumes it.\n"
       "--get-state --pid PID: prints running, locked, checkpointed or failed\n"
       "--action lock|checkpoint|restore|unlock --pid PID [--timeout MS]: one step; a lock waits at most so long\n"
       "--toggle --pid PID [--timeout MS]: suspends a running process, resumes a suspended one\n"
       "--get-restore-tid --pid PID: prints the thread that restores\n"
       "--probe: prints whether the driver supports this\n"
       "The driver is the library in VGPU_CUDA_DRIVER, else libcuda.so.1.");
  return DONE;
}

static int wrong(const char *argument) {
  fprintf(stderr, "invalid usage: %s; see --help\n", argument);
  return USAGE;
}

/* Parses one option, and its value from `value`. Returns the number of words used, or 0 if it is wrong. */
static int option(const char *name, const char *value) {
  operation wanted = strcmp(name, "--toggle") == 0            ? TOGGLE
                     : strcmp(name, "--get-state") == 0       ? GET_STATE
                     : strcmp(name, "--get-restore-tid") == 0 ? GET_RESTORE_TID
                     : strcmp(name, "--probe") == 0           ? PROBE
                                                              : NOTHING;
  if (wanted != NOTHING) {
    asked.operation = wanted;
    return 1;
  }
  if (value == NULL) {
    return 0;
  }
  if (strcmp(name, "--action") == 0) {
    asked.operation = ACTION;
    asked.action = value;
    return 2;
  }
  long number = number_of(value);
  if (strcmp(name, "--pid") == 0 || strcmp(name, "-p") == 0) {
    asked.pid = (int)number;
  } else if (strcmp(name, "--timeout") == 0 || strcmp(name, "-t") == 0) {
    asked.timeout_ms = (uint32_t)number;
  } else {
    return 0;
  }
  return number < 0 ? 0 : 2;
}

int main(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], "--pages") == 0) {
    return serve_pages(); /* it ends with its input */
  }
  /* Must not outlive the process that started it: the next one looks at what is left. */
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (int i = 1; i < argc;) {
    if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
      return help();
    }
    int words = option(argv[i], i + 1 < argc ? argv[i + 1] : NULL);
    if (words == 0) {
      return wrong(argv[i]);
    }
    i += words;
  }
  if (asked.operation == NOTHING || (asked.operation != PROBE && asked.pid <= 0)) {
    return wrong("an operation and --pid are needed");
  }
  int rc = open_driver();
  rc = rc == DONE ? perform() : rc;
  fflush(stdout);
  return rc;
}
