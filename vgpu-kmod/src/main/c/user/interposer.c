// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * The core in front of a process's own driver calls: a library to preload. It verifies the ledger on a driver without
 * loading a kernel module. It gives no protection, since a process can make the system calls directly.
 *
 *   VGPU_RM_LIMIT   bytes of device memory; without it nothing is refused
 *   VGPU_RM_REPORT  a file that always holds the ledger's current numbers
 *   VGPU_RM_EVENTS  a directory, for vgpu-turns: rm_events.h
 *
 * Only files that the process opened itself are followed. A child after fork has a ledger of its own: files that both
 * have open are counted in each.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "../core/rm_call.h"
#include "../core/rm_request.h"
#include "rm_events.h"

#define EXPORTED __attribute__((visibility("default")))
enum { DESCRIPTORS = 65536, BUCKETS = 4096 };

/* An open file of the driver. */
struct opened {
  uint64_t number;
  unsigned refs;        /* descriptors, and files tied to it */
  struct opened *owner; /* the file it is tied to, which the driver keeps open */
};

/* The functions that this library replaces. */
static struct {
  int (*open)(const char *path, int flags, ...);
  int (*openat)(int at, const char *path, int flags, ...);
  int (*close)(int fd);
  int (*dup)(int fd);
  int (*dup3)(int fd, int to, int flags);
  int (*dup2)(int fd, int to);
  int (*fcntl)(int fd, int command, ...);
  int (*ioctl)(int fd, unsigned long word, ...);
} real;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects all of the following */
static struct vgpu_rm_book book;
static struct vgpu_rm_tenant *self;
static struct opened *files[DESCRIPTORS];
static uint64_t next_number;
static int report = -1;
static const char *events_in; /* NULL: nothing is recorded */
static int events = -1;
static pid_t events_of; /* the process that has opened `events` */
static int usable;

/* ---- the host of the core ---- */

static void *user_make(size_t size) { return calloc(1, size); }

/* Reads through the kernel, so that an invalid address is an error, as for the driver. */
static int user_read(void *caller, void *into, uint64_t from, size_t size) {
  struct iovec here = {.iov_base = into, .iov_len = size},
               there = {.iov_base = (void *)(uintptr_t)from, .iov_len = size};
  (void)caller;
  return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == (ssize_t)size ? 0 : -1;
}

static int user_write(void *caller, uint64_t into, const void *from, size_t size) {
  struct iovec here = {.iov_base = (void *)(uintptr_t)from, .iov_len = size},
               there = {.iov_base = (void *)(uintptr_t)into, .iov_len = size};
  (void)caller;
  return process_vm_writev(getpid(), &here, 1, &there, 1, 0) == (ssize_t)size ? 0 : -1;
}

static void user_lock(struct vgpu_rm_book *of) {
  (void)of;
  pthread_mutex_lock(&lock);
}

static void user_unlock(struct vgpu_rm_book *of) {
  (void)of;
  pthread_mutex_unlock(&lock);
}

static struct vgpu_rm_tenant *user_tenant(void *caller, struct vgpu_rm_book *of) {
  (void)caller;
  (void)of;
  return self;
}

/* One call of the program. */
struct caller {
  int fd;
  struct opened *held; /* by the core */
};

static long user_forward(void *caller, uint32_t word, uint64_t argument) {
  int result = real.ioctl(((struct caller *)caller)->fd, (unsigned long)word, (void *)(uintptr_t)argument);
  return result >= 0 ? result : -(long)errno;
}

/* The caller holds the lock. */
static struct opened *file_at(int fd) { return fd >= 0 && fd < DESCRIPTORS ? files[fd] : NULL; }

static void put(struct opened *file);

static uint64_t user_file_of(void *caller, int32_t fd) {
  pthread_mutex_lock(&lock);
  put(((struct caller *)caller)->held);
  struct opened *file = ((struct caller *)caller)->held = file_at(fd);
  uint64_t number = file != NULL ? file->number : 0;
  if (file != NULL) file->refs++;
  pthread_mutex_unlock(&lock);
  return number;
}

/* It is put after the call, when what was tied to it has a reference. */
static void user_let_go(void *caller, uint64_t file) {
  (void)caller;
  (void)file;
}

static const struct vgpu_rm_host host = {
    .read = user_read,
    .write = user_write,
    .lock = user_lock,
    .unlock = user_unlock,
    .tenant = user_tenant,
    .forward = user_forward,
    .file_of = user_file_of,
    .let_go = user_let_go,
};

/* ---- the report ---- */

/* Writes the report if something has changed. Its length is constant. The caller holds the lock. */
static void tell(void) {
  static struct vgpu_rm_tenant told;
  char text[512];
  /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): padding that differs has it written once more */
  if (report < 0 || memcmp(&told, self, sizeof told) == 0) return;
  told = *self;
  int size = snprintf(
      text, sizeof text,
      "used %-20llu\npeak %-20llu\nhost_bytes %-20llu\nobjects %-20llu\nallocations %-20llu\nrefused %-20llu\n"
      "filtered %-20llu\nundone %-20llu\nover %-20llu\nchanged %-20llu\n",
      (unsigned long long)told.used, (unsigned long long)told.peak, (unsigned long long)told.host_used,
      (unsigned long long)told.objects, (unsigned long long)told.allocations, (unsigned long long)told.refused,
      (unsigned long long)told.filtered, (unsigned long long)told.undone, (unsigned long long)told.over,
      (unsigned long long)told.changed);
  ssize_t written = pwrite(report, text, (size_t)size, 0);
  (void)written; /* an error cannot be reported anywhere */
}

static void *find(const char *name) { return dlsym(RTLD_NEXT, name); }

static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork(void) { pthread_mutex_unlock(&lock); }

/* Parses VGPU_RM_LIMIT, in bytes. If it is invalid, prints a message and allows nothing, so that it cannot be
 * mistaken for no limit. */
static uint64_t wanted_limit(void) {
  const char *text = getenv("VGPU_RM_LIMIT");
  char *end;
  if (text == NULL) return VGPU_RM_NO_LIMIT;
  errno = 0;
  unsigned long long limit = strtoull(text, &end, 10);
  if (errno == 0 && *text >= '0' && *text <= '9' && *end == '\0') return limit;
  fprintf(stderr,
          "libvgpu_rm.so: VGPU_RM_LIMIT=%s is not a number of bytes; device memory is refused. Use digits only.\n",
          text);
  return 0;
}

static void begin(void) {
  static const struct vgpu_rm_heap heap = {.make = user_make, .drop = free};
  const char *path = getenv("VGPU_RM_REPORT");
  *(void **)&real.open = find("open");
  *(void **)&real.openat = find("openat");
  *(void **)&real.close = find("close");
  *(void **)&real.dup = find("dup");
  *(void **)&real.dup2 = find("dup2");
  *(void **)&real.dup3 = find("dup3");
  *(void **)&real.fcntl = find("fcntl");
  *(void **)&real.ioctl = find("ioctl");
  uint32_t seen = 0, probe = 1;
  if (user_read(NULL, &seen, (uint64_t)(uintptr_t)&probe, sizeof seen) != 0) {
    fprintf(stderr,
            "libvgpu_rm.so: nothing is counted: process_vm_readv is not allowed here (%s). In a container, allow it.\n",
            strerror(errno));
    return;
  }
  self = user_make(sizeof *self);
  if (self == NULL || vgpu__book_begin(&book, &heap, BUCKETS, (uint32_t)getpid()) != 0) return;
  self->key = 1;
  self->limit = wanted_limit();
  self->most_objects = VGPU_RM_NO_LIMIT;
  vgpu__tenant_add(&book, self);
  pthread_atfork(before_fork, after_fork, after_fork);
  if (path != NULL) {
    report = real.open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (report < 0) fprintf(stderr, "libvgpu_rm.so: VGPU_RM_REPORT=%s cannot be written: %s\n", path, strerror(errno));
  }
  events_in = getenv("VGPU_RM_EVENTS");
  usable = 1;
}

/* ---- events ---- */

/* Opens a file of this process's own. The lock comes before the first record. */
static void begin_events(void) {
  char path[4096];
  const struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  events_of = getpid();
  events = -1;
  if (snprintf(path, sizeof path, "%s/" RM_EVENTS_NAME, events_in) < (int)sizeof path)
    events = mkostemp(path, O_CLOEXEC);
  if (events >= 0 && real.fcntl(events, F_SETLK, &whole) == 0) return;
  fprintf(stderr, "libvgpu_rm.so: nothing is recorded in VGPU_RM_EVENTS=%s: %s\n", events_in, strerror(errno));
  if (events >= 0) real.close(events);
  events = -1;
}

/* Records an event. A program that forks has a file in each process. The caller holds the lock. */
static void record(struct vgpu_rm_event event) {
  if (events_in == NULL) return;
  if (events_of != getpid()) begin_events();
  if (events < 0 || write(events, &event, sizeof event) == (ssize_t)sizeof event) return;
  fprintf(stderr, "libvgpu_rm.so: VGPU_RM_EVENTS=%s cannot be written: %s\n", events_in, strerror(errno));
  events = -1; /* stays open, so that the lock stays */
}

static int is_recorded(uint32_t class_number) {
  return vgpu__is_root(class_number) || class_number == RM_CLASS_DEVICE || class_number == RM_CLASS_SUBDEVICE ||
         class_number == RM_CLASS_GROUP || vgpu__rm_is_channel(class_number);
}

/* An event of a call, on the file that its client belongs to. The caller holds the lock. */
static struct vgpu_rm_event event_of(const struct opened *file, int fd, const struct vgpu_rm_call *call) {
  uint64_t owner = vgpu__file_owner(&book, file->number);
  for (int i = 0; i < DESCRIPTORS && owner != file->number; i++) {
    if (files[i] == NULL || files[i]->number != owner) continue;
    fd = i;
    break;
  }
  return (struct vgpu_rm_event){.fd = fd,
                                .file = owner,
                                .client = call->client,
                                .parent = call->parent,
                                .object = call->object,
                                .class_number = call->class_number};
}

/* Before the driver frees an object, because its handle can be used again at once. */
static void record_before(const struct opened *file, int fd, unsigned long word, uint64_t argument) {
  static const struct vgpu_rm_io io = {.read = user_read, .write = user_write};
  struct vgpu_rm_call call;
  if (events_in == NULL) return;
  vgpu__rm_decode(&io, (uint32_t)word, argument, &call);
  if (call.kind != RM_KIND_FREE) return;
  pthread_mutex_lock(&lock);
  struct vgpu_rm_object *root = vgpu__client_find(&book, file->number, call.client);
  const struct vgpu_rm_object *freed = root != NULL ? vgpu__object_find(&book, root, call.object) : NULL;
  struct vgpu_rm_event event = event_of(file, fd, &call);
  event.kind = RM_EVENT_FREED;
  if (freed != NULL && is_recorded(freed->class_number)) record(event);
  pthread_mutex_unlock(&lock);
}

/* The program's own FIFO_DISABLE_CHANNELS. The caller holds the lock. */
static void record_list(struct vgpu_rm_event event, const struct vgpu_rm_call *call) {
  struct {
    uint8_t disable, pad[3];
    uint32_t count, more[4], clients[RM_MOST_CHANNELS], channels[RM_MOST_CHANNELS];
  } list;
  _Static_assert(sizeof list == RM_DISABLE_SIZE, "as the driver has it");
  if (user_read(NULL, &list, call->params, sizeof list) != 0) return;
  event.kind = RM_EVENT_DISABLED;
  event.value = list.disable;
  for (uint32_t i = 0; i < list.count && i < RM_MOST_CHANNELS; i++) {
    event.object = list.channels[i];
    if (list.clients[i] == call->client) record(event);
  }
}

static void record_after(const struct opened *file, int fd, unsigned long word, uint64_t argument) {
  static const struct vgpu_rm_io io = {.read = user_read, .write = user_write};
  struct vgpu_rm_call call;
  uint8_t on = 0;
  if (events_in == NULL) return;
  vgpu__rm_decode(&io, (uint32_t)word, argument, &call);
  if (call.status != RM_OK) return;
  pthread_mutex_lock(&lock);
  struct vgpu_rm_event event = event_of(file, fd, &call);
  if (call.kind == RM_KIND_ALLOC && is_recorded(call.class_number)) {
    struct vgpu_rm_object *root = vgpu__client_find(&book, file->number, call.client);
    const struct vgpu_rm_object *made = root != NULL ? vgpu__object_find(&book, root, call.object) : NULL;
    event.kind = RM_EVENT_MADE;
    if (made != NULL) event.value = made->engine;
    record(event);
  } else if (vgpu__schedules(&call) && user_read(NULL, &on, call.params, sizeof on) == 0) {
    event.kind = RM_EVENT_SCHEDULED;
    event.value = on;
    record(event);
  } else if (call.kind == RM_KIND_CONTROL && call.command == RM_DISABLE_CHANNELS) {
    record_list(event, &call);
  }
  pthread_mutex_unlock(&lock);
}

/* ---- descriptors ---- */

/* Drops one reference. After the last one the driver has closed the file. The caller holds the lock. */
static void put(struct opened *file) {
  while (file != NULL && --file->refs == 0) {
    struct opened *owner = file->owner;
    vgpu__file_closed(&book, file->number);
    if (events_of == getpid()) record((struct vgpu_rm_event){.kind = RM_EVENT_CLOSED, .file = file->number});
    free(file);
    file = owner;
  }
}

/* Records what a descriptor refers to now: a file of the driver, or NULL for any other file. */
static void set(int fd, struct opened *file) {
  if (fd < 0 || fd >= DESCRIPTORS) return;
  struct opened *before = files[fd];
  if (file != NULL) file->refs++;
  files[fd] = file;
  put(before);
  tell();
}

/* Whether a path names nvidiactl, nvidia0 and so on. */
static int is_drivers(const char *path) {
  static const char PREFIX[] = "/dev/nvidia";
  if (path == NULL || strncmp(path, PREFIX, sizeof PREFIX - 1) != 0) return 0;
  path += sizeof PREFIX - 1;
  return strcmp(path, "ctl") == 0 || (*path != '\0' && strspn(path, "0123456789") == strlen(path));
}

static int opened(int fd, const char *path) {
  int error = errno;
  struct opened *file = NULL;
  if (fd < 0) return fd;
  pthread_mutex_lock(&lock);
  if (usable && fd < DESCRIPTORS && is_drivers(path)) file = calloc(1, sizeof *file);
  if (file != NULL) file->number = ++next_number;
  if (file != NULL || file_at(fd) != NULL) set(fd, file); /* the old one was closed without our seeing it */
  pthread_mutex_unlock(&lock);
  errno = error;
  return fd;
}

static int copied(int from, int to) {
  int error = errno;
  if (to < 0 || from == to) return to;
  pthread_mutex_lock(&lock);
  if (file_at(from) != NULL || file_at(to) != NULL) set(to, file_at(from));
  pthread_mutex_unlock(&lock);
  errno = error;
  return to;
}

/* ---- the replaced functions ---- */

/* The mode argument, which open takes if it may create a file. */
#define MODE(flags, into)                           \
  do {                                              \
    if (((flags) & (O_CREAT | __O_TMPFILE)) != 0) { \
      va_list more;                                 \
      va_start(more, flags);                        \
      (into) = va_arg(more, mode_t);                \
      va_end(more);                                 \
    }                                               \
  } while (0)

#define OPEN(name, more_flags)                                        \
  EXPORTED int name(const char *path, int flags, ...) {               \
    mode_t mode = 0;                                                  \
    pthread_once(&once, begin);                                       \
    MODE(flags, mode);                                                \
    return opened(real.open(path, flags | (more_flags), mode), path); \
  }
#define OPENAT(name, more_flags)                                            \
  EXPORTED int name(int at, const char *path, int flags, ...) {             \
    mode_t mode = 0;                                                        \
    pthread_once(&once, begin);                                             \
    MODE(flags, mode);                                                      \
    return opened(real.openat(at, path, flags | (more_flags), mode), path); \
  }
OPEN(open, 0)
OPEN(open64, O_LARGEFILE)
OPENAT(openat, 0)
OPENAT(openat64, O_LARGEFILE)

EXPORTED int close(int fd) {
  struct opened *file;
  pthread_once(&once, begin);
  pthread_mutex_lock(&lock);
  file = file_at(fd);
  if (file != NULL) files[fd] = NULL; /* before the kernel can reuse the number */
  pthread_mutex_unlock(&lock);
  int result = real.close(fd);
  if (file == NULL) return result;
  int error = errno;
  pthread_mutex_lock(&lock);
  put(file);
  tell();
  pthread_mutex_unlock(&lock);
  errno = error;
  return result;
}

EXPORTED int dup(int fd) {
  pthread_once(&once, begin);
  return copied(fd, real.dup(fd));
}

EXPORTED int dup2(int fd, int to) {
  pthread_once(&once, begin);
  return copied(fd, real.dup2(fd, to));
}

EXPORTED int dup3(int fd, int to, int flags) {
  pthread_once(&once, begin);
  return copied(fd, real.dup3(fd, to, flags));
}

/* The argument is a number or an address; the kernel takes either as a whole word. */
#define FCNTL(name)                                                                        \
  EXPORTED int name(int fd, int command, ...) {                                            \
    va_list more;                                                                          \
    va_start(more, command);                                                               \
    void *argument = va_arg(more, void *);                                                 \
    va_end(more);                                                                          \
    pthread_once(&once, begin);                                                            \
    int result = real.fcntl(fd, command, argument);                                        \
    return command == F_DUPFD || command == F_DUPFD_CLOEXEC ? copied(fd, result) : result; \
  }
FCNTL(fcntl)
FCNTL(fcntl64)

/* The driver keeps the file that a file is tied to open as long as the tied file. The caller holds the lock. */
static void note_tie(struct opened *file) {
  uint64_t owner = vgpu__file_owner(&book, file->number);
  if (file->owner != NULL || owner == file->number) return;
  for (int fd = 0; fd < DESCRIPTORS && file->owner == NULL; fd++) {
    if (files[fd] != NULL && files[fd]->number == owner) file->owner = files[fd];
  }
  if (file->owner != NULL) file->owner->refs++;
}

EXPORTED int ioctl(int fd, unsigned long word, ...) {
  va_list more;
  va_start(more, word);
  void *argument = va_arg(more, void *);
  va_end(more);
  pthread_once(&once, begin);
  pthread_mutex_lock(&lock);
  struct opened *file = file_at(fd);
  if (file != NULL) file->refs++; /* another thread may close it meanwhile */
  pthread_mutex_unlock(&lock);
  if (file == NULL) return real.ioctl(fd, word, argument);
  struct caller caller = {.fd = fd};
  record_before(file, fd, word, (uint64_t)(uintptr_t)argument);
  long result = vgpu__rm_ioctl(&book, &host, &caller, file->number, (uint32_t)word, (uint64_t)(uintptr_t)argument);
  if (result >= 0) record_after(file, fd, word, (uint64_t)(uintptr_t)argument);
  pthread_mutex_lock(&lock);
  note_tie(file);
  put(caller.held);
  put(file);
  tell();
  pthread_mutex_unlock(&lock);
  if (result >= 0) return (int)result;
  errno = (int)-result;
  return -1;
}
