/*
 * For gpu-check: a program whose channel groups are stopped and resumed, by itself or by another process. Uses no part
 * of vgpu.
 *   channels FILE        launches kernels all the time, and writes its channels' handles to FILE
 *   stop FILE PID        the same calls from another process, through the first one's open file (pidfd_getfd)
 * The calls are the resource manager's, as in NVIDIA's open-gpu-kernel-modules. The handles come from the driver's own
 * calls: the program replaces the driver library's import of ioctl.
 */
#define _GNU_SOURCE
#include "program.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__aarch64__)
enum { JUMP_SLOT = R_AARCH64_JUMP_SLOT, GLOB_DAT = R_AARCH64_GLOB_DAT };
#else
enum { JUMP_SLOT = R_X86_64_JUMP_SLOT, GLOB_DAT = R_X86_64_GLOB_DAT };
#endif

enum { ALLOC = 0x2b, CONTROL = 0x2a, TRANSFER = 211 };
enum { SUBDEVICE_CLASS = 0x2080, GROUP_CLASS = 0xa06c, CHANNEL_BYTE = 0x6f };
#define SCHEDULE UINT32_C(0xa06c0101)
#define SET_TIMESLICE UINT32_C(0xa06c0103)
#define GET_TIMESLICE UINT32_C(0xa06c0104)
#define PREEMPT UINT32_C(0xa06c0105)
#define GET_INTERLEAVE UINT32_C(0xa06c0108)
#define DISABLE_CHANNELS UINT32_C(0x2080110b)
enum { DISABLE_BYTES = 536, LISTED = 64, MOST = 256 };
enum { PREEMPT_TIMEOUT_US = 500000, MOST_PREEMPTS = 1000, KERNEL_NS = 2000000 };

typedef int ioctl_call(int fd, unsigned long word, ...);

/* An object of the resource manager, and the file through which it was made. */
struct object {
  int fd;
  uint32_t client, handle, parent, class_number;
};

/* The objects of one process. */
struct objects {
  struct object all[MOST];
  unsigned count;
};

static ioctl_call *driver_ioctl;
static struct objects own;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- what the driver library makes ---- */

static bool is_group(const struct object *object) { return object->class_number == GROUP_CLASS; }

static bool is_channel(const struct object *object) {
  return object->class_number != GROUP_CLASS && (object->class_number & 0xff) == CHANNEL_BYTE;
}

/* A successful call: the kernel has accessed its arguments, so they are valid. */
static void note(int fd, unsigned number, unsigned size, const unsigned char *call) {
  struct object made = {.fd = fd};
  uint32_t status;
  if (number == TRANSFER && size == 16) {
    uint32_t inner[2];
    const unsigned char *at;
    memcpy(inner, call, sizeof inner);
    memcpy(&at, call + 8, sizeof at);
    number = inner[0];
    size = inner[1];
    call = at;
  }
  if (number != ALLOC || (size != 32 && size != 48)) {
    return;
  }
  memcpy(&status, call + (size == 32 ? 28 : 40), sizeof status);
  memcpy(&made.client, call, sizeof made.client);
  memcpy(&made.parent, call + 4, sizeof made.parent);
  memcpy(&made.handle, call + 8, sizeof made.handle);
  memcpy(&made.class_number, call + 12, sizeof made.class_number);
  if (status != 0 || (made.class_number != SUBDEVICE_CLASS && !is_group(&made) && !is_channel(&made))) {
    return;
  }
  pthread_mutex_lock(&lock);
  if (own.count < MOST) {
    own.all[own.count++] = made;
  }
  pthread_mutex_unlock(&lock);
}

static int noting_ioctl(int fd, unsigned long word, ...) {
  va_list arguments;
  va_start(arguments, word);
  void *argument = va_arg(arguments, void *);
  va_end(arguments);
  int result = driver_ioctl(fd, word, argument);
  if (result == 0 && (word >> 8 & 0xff) == 'F') {
    note(fd, (unsigned)(word & 0xff), (unsigned)(word >> 16 & 0x3fff), argument);
  }
  return result;
}

static bool replace(void **slot) {
  uintptr_t page_size = (uintptr_t)sysconf(_SC_PAGESIZE);
  void *page = (void *)((uintptr_t)slot & ~(page_size - 1));
  if (mprotect(page, page_size, PROT_READ | PROT_WRITE) != 0) {
    return false;
  }
  driver_ioctl = (ioctl_call *)*slot;
  *slot = (void *)noting_ioctl;
  return true;
}

/* Whether the library calls ioctl through a slot that could be replaced. The library is bound at loading (RTLD_NOW). */
static bool replace_import(const struct link_map *library) {
  const ElfW(Rela) * tables[2] = {NULL, NULL};
  size_t sizes[2] = {0, 0};
  const ElfW(Sym) *symbols = NULL;
  const char *names = NULL;
  for (const ElfW(Dyn) *entry = library->l_ld; entry->d_tag != DT_NULL; entry++) {
    const void *address = (const void *)(uintptr_t)entry->d_un.d_ptr;
    switch (entry->d_tag) {
      case DT_JMPREL: tables[0] = address; break;
      case DT_PLTRELSZ: sizes[0] = entry->d_un.d_val / sizeof(ElfW(Rela)); break;
      case DT_RELA: tables[1] = address; break;
      case DT_RELASZ: sizes[1] = entry->d_un.d_val / sizeof(ElfW(Rela)); break;
      case DT_SYMTAB: symbols = address; break;
      case DT_STRTAB: names = address; break;
      default: break;
    }
  }
  for (int table = 0; table < 2 && symbols != NULL && names != NULL; table++) {
    for (size_t i = 0; tables[table] != NULL && i < sizes[table]; i++) {
      const ElfW(Rela) *entry = &tables[table][i];
      uint64_t type = ELF64_R_TYPE(entry->r_info);
      const ElfW(Sym) *symbol = &symbols[ELF64_R_SYM(entry->r_info)];
      if ((type == JUMP_SLOT || type == GLOB_DAT) && strcmp(names + symbol->st_name, "ioctl") == 0) {
        return replace((void **)(library->l_addr + entry->r_offset));
      }
    }
  }
  return false;
}

static void start(struct driver *driver) {
  struct link_map *library = NULL;
  driver_load(driver);
  if (dlinfo(dlopen("libcuda.so.1", RTLD_NOW), RTLD_DI_LINKMAP, &library) != 0 || !replace_import(library)) {
    fail("the driver has no import of ioctl", 0);
  }
  driver_start(driver);
  unsigned groups = 0;
  for (unsigned i = 0; i < own.count; i++) {
    groups += is_group(&own.all[i]);
  }
  if (groups == 0) {
    fail("the driver made no channel groups that this program saw", 0);
  }
}

static void write_objects(const char *path) {
  FILE *file = fopen(path, "w");
  for (unsigned i = 0; file != NULL && i < own.count; i++) {
    const struct object *each = &own.all[i];
    fprintf(file, "%d %" PRIx32 " %" PRIx32 " %" PRIx32 " %" PRIx32 "\n", each->fd, each->client, each->handle,
            each->parent, each->class_number);
  }
  if (file == NULL || fclose(file) != 0) {
    fail(path, errno);
  }
}

/* The objects of another process, with its files taken. */
static void read_objects(const char *path, int pid, struct objects *into) {
  FILE *file = fopen(path, "r");
  int pidfd = (int)syscall(434 /* pidfd_open */, pid, 0), from = -1, taken = -1;
  struct object next;
  if (file == NULL || pidfd < 0) {
    fail(file == NULL ? path : "pidfd_open", errno);
  }
  while (into->count < MOST && fscanf(file, "%d %" SCNx32 " %" SCNx32 " %" SCNx32 " %" SCNx32, &next.fd, &next.client,
                                      &next.handle, &next.parent, &next.class_number) == 5) {
    if (next.fd != from) {
      from = next.fd;
      taken = (int)syscall(438 /* pidfd_getfd */, pidfd, from, 0);
      if (taken < 0) {
        fail("pidfd_getfd", errno);
      }
    }
    next.fd = taken;
    into->all[into->count++] = next;
  }
  fclose(file);
}

/* ---- calls ---- */

/* The worst outcome of several calls: the driver's status, or -1 with the ioctl's error. */
struct outcome {
  long status;
  int error;
};

static void control(struct outcome *outcome, const struct object *through, uint32_t object, uint32_t command,
                    void *params, uint32_t size) {
  unsigned char call[32] = {0};
  uint64_t at = (uint64_t)(uintptr_t)params;
  uint32_t status = 0;
  memcpy(call, &through->client, 4);
  memcpy(call + 4, &object, 4);
  memcpy(call + 8, &command, 4);
  memcpy(call + 16, &at, 8);
  memcpy(call + 24, &size, 4);
  int result = driver_ioctl(through->fd, 3ul << 30 | 32ul << 16 | 'F' << 8 | CONTROL, (void *)call);
  memcpy(&status, call + 28, sizeof status);
  if (result != 0) {
    *outcome = (struct outcome){.status = -1, .error = errno};
  } else if (status != 0 && outcome->status == 0) {
    outcome->status = status;
  }
}

/* The size of GPFIFO_SCHEDULE's parameters depends on the driver's version. The driver refuses the other one. */
static void schedule(struct outcome *outcome, const struct object *group, bool on) {
  unsigned char params[3] = {on};
  struct outcome newer = {0}, older = {0};
  control(&newer, group, group->handle, SCHEDULE, params, 3);
  if (newer.status == 0) {
    return;
  }
  control(&older, group, group->handle, SCHEDULE, params, 2);
  if (older.status != 0 && outcome->status == 0) {
    *outcome = older;
  }
}

static void preempt(struct outcome *outcome, const struct object *group) {
  unsigned char params[8] = {1 /* wait */, 1 /* with this timeout */};
  uint32_t timeout_us = PREEMPT_TIMEOUT_US;
  memcpy(params + 4, &timeout_us, sizeof timeout_us);
  control(outcome, group, group->handle, PREEMPT, params, sizeof params);
}

/* A subdevice for a list of channels: of the same device as the first group, if that is known. */
static const struct object *subdevice_of(const struct objects *objects) {
  const struct object *found = NULL;
  uint32_t device = 0;
  for (unsigned i = 0; i < objects->count && device == 0; i++) {
    device = is_group(&objects->all[i]) ? objects->all[i].parent : 0;
  }
  for (unsigned i = 0; i < objects->count; i++) {
    const struct object *each = &objects->all[i];
    if (each->class_number == SUBDEVICE_CLASS && (found == NULL || each->parent == device)) {
      found = each;
    }
  }
  if (found == NULL) {
    fail("the driver made no subdevice that this program saw", 0);
  }
  return found;
}

/* FIFO_DISABLE_CHANNELS for all of `objects`, through the file and the client of `caller`. */
static void disable(struct outcome *outcome, const struct objects *caller, const struct objects *objects,
                    bool stopped) {
  unsigned char params[DISABLE_BYTES] = {stopped};
  const struct object *through = subdevice_of(caller);
  uint32_t count = 0;
  for (unsigned i = 0; i < objects->count && count < LISTED; i++) {
    const struct object *each = &objects->all[i];
    if (is_channel(each)) {
      memcpy(params + 24 + 4 * count, &each->client, 4);
      memcpy(params + 280 + 4 * count, &each->handle, 4);
      count++;
    }
  }
  memcpy(params + 4, &count, sizeof count);
  control(outcome, through, through->handle, DISABLE_CHANNELS, params, sizeof params);
}

/* METHOD: schedule, channels (through the objects' own file), foreign (through this process's own file) */
static bool switch_all(const char *method, const struct objects *objects, bool on, struct outcome *outcome) {
  if (strcmp(method, "channels") == 0) {
    disable(outcome, objects, objects, !on);
  } else if (strcmp(method, "foreign") == 0) {
    disable(outcome, &own, objects, !on);
  } else if (strcmp(method, "schedule") == 0) {
    for (unsigned i = 0; i < objects->count; i++) {
      if (is_group(&objects->all[i])) {
        schedule(outcome, &objects->all[i], on);
      }
    }
    for (unsigned i = 0; !on && i < objects->count; i++) {
      if (is_group(&objects->all[i])) {
        preempt(outcome, &objects->all[i]);
      }
    }
  } else {
    return false;
  }
  return true;
}

static void time_preempts(const struct objects *objects, unsigned times) {
  static uint64_t took[MOST_PREEMPTS];
  struct outcome outcome = {0};
  unsigned done = 0;
  for (; done < times && done < MOST_PREEMPTS && outcome.status == 0; done++) {
    uint64_t began = now_ns();
    for (unsigned i = 0; i < objects->count; i++) {
      if (is_group(&objects->all[i])) {
        preempt(&outcome, &objects->all[i]);
      }
    }
    took[done] = now_ns() - began;
    rest_ns(1000000);
  }
  uint64_t p50 = median(took, done);
  say("preempt status %ld errno %d times %u p50_ns %llu max_ns %llu", outcome.status, outcome.error, done,
      (unsigned long long)p50, (unsigned long long)(done > 0 ? took[done - 1] : 0));
}

/* Of the first group: sets a time slice, reads it back, and restores what was there. */
static void try_timeslice(const struct objects *objects, uint64_t us) {
  uint64_t before = 0, after = 0;
  struct outcome outcome = {0};
  const struct object *group = objects->all;
  while (!is_group(group)) {
    group++;
  }
  control(&outcome, group, group->handle, GET_TIMESLICE, &before, sizeof before);
  if (outcome.status == 0) {
    control(&outcome, group, group->handle, SET_TIMESLICE, &us, sizeof us);
    control(&outcome, group, group->handle, GET_TIMESLICE, &after, sizeof after);
    control(&outcome, group, group->handle, SET_TIMESLICE, &before, sizeof before);
  }
  say("slice status %ld errno %d before_us %llu after_us %llu", outcome.status, outcome.error,
      (unsigned long long)before, (unsigned long long)after);
}

/* Of each group: its handle, its time slice and its level; a call that failed gives the driver's status, negative. */
static void tell_slices(const struct objects *objects) {
  char text[2048] = "";
  size_t size = 0;
  for (unsigned i = 0; i < objects->count && size < sizeof text - 64; i++) {
    const struct object *group = &objects->all[i];
    uint64_t us = 0;
    uint32_t level = 0;
    struct outcome slice = {0}, interleave = {0};
    if (!is_group(group)) {
      continue;
    }
    control(&slice, group, group->handle, GET_TIMESLICE, &us, sizeof us);
    control(&interleave, group, group->handle, GET_INTERLEAVE, &level, sizeof level);
    size += (size_t)snprintf(text + size, sizeof text - size, " %" PRIx32 "=%ld/%ld", group->handle,
                             slice.status == 0 ? (long)us : -labs(slice.status),
                             interleave.status == 0 ? (long)level : -labs(interleave.status));
  }
  say("slices%s", text);
}

/* 'off METHOD', 'on METHOD', 'slice US', 'slices', 'preempt TIMES' */
static bool obey(const char *line, const struct objects *objects) {
  char method[32], word[8];
  unsigned long long number;
  if (strcmp(line, "slices") == 0) {
    tell_slices(objects);
  } else if (sscanf(line, "slice %llu", &number) == 1) {
    try_timeslice(objects, number);
  } else if (sscanf(line, "preempt %llu", &number) == 1) {
    time_preempts(objects, (unsigned)number);
  } else if (sscanf(line, "%7s %31s", word, method) == 2 && (strcmp(word, "on") == 0 || strcmp(word, "off") == 0)) {
    struct outcome outcome = {0};
    uint64_t began = now_ns();
    if (!switch_all(method, objects, strcmp(word, "on") == 0, &outcome)) {
      return false;
    }
    say("%s status %ld errno %d ns %llu", word, outcome.status, outcome.error, (unsigned long long)(now_ns() - began));
  } else {
    return false;
  }
  return true;
}

/* ---- the two programs ---- */

static struct driver driver;
static atomic_ullong kernels;

static void *launch_all_the_time(void *unused) {
  (void)unused;
  check(driver.context_set(driver.context), "cuCtxSetCurrent");
  for (;;) {
    check(spin(&driver, KERNEL_NS), "cuLaunchKernel");
    check(driver.context_synchronize(), "cuCtxSynchronize");
    kernels++;
  }
  return NULL;
}

/* channels FILE: 'read' and what obey() takes */
int mode_channels(int count, char **arguments) {
  char line[128];
  pthread_t thread;
  if (count != 1) {
    return 2;
  }
  start(&driver);
  write_objects(arguments[0]);
  if (pthread_create(&thread, NULL, launch_all_the_time, NULL) != 0) {
    fail("pthread_create", errno);
  }
  say("ready");
  while (next_line(line, sizeof line)) {
    if (strcmp(line, "read") == 0) {
      say("read kernels %llu", (unsigned long long)kernels);
    } else if (!obey(line, &own)) {
      return 2;
    }
  }
  _exit(0); /* the driver's own end would wait for stopped work */
}

/* stop FILE PID: what obey() takes */
int mode_stop(int count, char **arguments) {
  static struct objects theirs;
  char line[128];
  if (count != 2) {
    return 2;
  }
  start(&driver);
  read_objects(arguments[0], atoi(arguments[1]), &theirs);
  say("ready");
  while (next_line(line, sizeof line)) {
    if (!obey(line, &theirs)) {
      return 2;
    }
  }
  return 0;
}
