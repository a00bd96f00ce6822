// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * vgpu-turns: the core's weights, levels and turns without the kernel module, for programs that libvgpu_rm.so is
 * preloaded to. A process of root makes the driver's calls through the program's own open file (pidfd_getfd), because
 * the driver accepts a client only on the client's own file. For the same reason a program that records wrong handles
 * reaches nothing but its own clients. The file is taken for one turn and closed: it would keep the memory of a program
 * that ends.
 *
 *   vgpu-turns DIRECTORY=CLASS[,WEIGHT]...
 *
 * DIRECTORY is a tenant's VGPU_RM_EVENTS. Standard input is as /dev/vgpu: "online MS". Each line is answered.
 *
 * There are two processes. The worker makes the calls. The guardian only waits for it: if the worker dies, or hangs
 * beyond the time of a hold, the guardian gives everything back. It reads from the programs' records what there is.
 * If both are killed, stopped channels stay disabled until vgpu-turns is started again, which begins by giving
 * everything back, or until the program ends.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../core/rm_call.h"
#include "../core/rm_turn.h"
#include "rm_events.h"

#ifndef SYS_pidfd_getfd
#define SYS_pidfd_open 434
#define SYS_pidfd_getfd 438
#endif

enum { MOST_TENANTS = 64, MOST_FILES = 1024, MOST_OBJECTS = 65536, BUCKETS = 4096, AGAIN_MS = 20, MOST_MS = 10000 };
enum { LATE_MS = 3000 }; /* the worker's delay at which the guardian takes over */

/* A process of a tenant. Its files have the numbers number << 32 | the program's own number. */
struct program {
  struct program *next;
  struct vgpu_rm_tenant *tenant;
  char name[sizeof RM_EVENTS_NAME]; /* of its file in the directory */
  uint64_t number;
  pid_t pid;
  int pidfd, events;
  off_t at;
  int fds[MOST_FILES]; /* by the file's number; with another file's descriptor, the driver refuses the client */
};

struct directory {
  const char *path;
  int fd;
  const char *class_name;
  struct vgpu_rm_tenant tenant;
};

static struct directory directories[MOST_TENANTS];
static int tenants;
static struct program *programs;
static uint64_t last_number;
static struct vgpu_rm_book book;
static uint32_t schedule_size;
static int recovering;               /* nothing is known of the groups' slices and levels */
static _Atomic uint64_t *held_until; /* in ms, shared with the guardian; 0: nothing is held */
static volatile sig_atomic_t ended;

static uint64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void *make(size_t size) {
  void *made = calloc(1, size);
  if (made == NULL) abort();
  return made;
}

/* ---- the programs' records ---- */

static struct vgpu_rm_object *client_of(uint64_t file, uint32_t client) {
  return vgpu__client_find(&book, file, client);
}

static void made(struct program *program, const struct vgpu_rm_event *event, uint64_t file) {
  struct vgpu_rm_tenant *tenant = program->tenant;
  if (tenant->objects >= MOST_OBJECTS || event->object == 0) return;
  if (event->class_number == 0 || event->class_number == RM_CLASS_ROOT) {
    vgpu__client_enter(&book, make(sizeof(struct vgpu_rm_object)), tenant, event->object, file, book.stamp, 1);
    return;
  }
  struct vgpu_rm_object *root = client_of(file, event->client), *object;
  if (root == NULL) return;
  object = make(sizeof *object);
  object->engine = event->value;
  object->slice_us = recovering ? 0 : VGPU_RM_DRIVERS_SLICE_US;
  object->level = recovering ? ~0u : VGPU_RM_LOW;
  vgpu__object_enter(&book, object, root, event->parent, event->object, event->class_number, NULL, book.stamp);
}

static void follow(struct program *program, const struct vgpu_rm_event *event) {
  if (event->file > UINT32_MAX) return;
  uint64_t file = program->number << 32 | event->file;
  struct vgpu_rm_object *root, *object;
  if (event->kind != RM_EVENT_CLOSED) program->fds[event->file % MOST_FILES] = event->fd;
  if (event->kind == RM_EVENT_MADE) made(program, event, file);
  else if (event->kind == RM_EVENT_CLOSED) vgpu__file_closed(&book, file);
  root = client_of(file, event->client);
  object = root != NULL ? vgpu__object_find(&book, root, event->object) : NULL;
  if (object == NULL) return;
  if (event->kind == RM_EVENT_FREED) vgpu__object_remove(&book, object, VGPU_RM_NO_LIMIT);
  else if (event->kind == RM_EVENT_SCHEDULED && (object = vgpu__group_of(object)) != NULL)
    vgpu__group_scheduled(&book, object, event->value != 0);
  else if (event->kind == RM_EVENT_DISABLED && vgpu__rm_is_channel(object->class_number) &&
           object->parent->class_number == RM_CLASS_GROUP)
    vgpu__channel_set(&book, object, 1, event->value != 0);
}

static void read_events(struct program *program) {
  struct vgpu_rm_event event;
  while (pread(program->events, &event, sizeof event, program->at) == (ssize_t)sizeof event) {
    program->at += (off_t)sizeof event;
    follow(program, &event);
  }
}

/* The process that has the file's lock; 0: none has; -1: it is not known, or in another namespace of processes. */
static pid_t locker(int fd) {
  struct flock found = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  if (fcntl(fd, F_GETLK, &found) != 0) return -1;
  if (found.l_type == F_UNLCK) return 0;
  return found.l_pid > 0 ? found.l_pid : -1;
}

static int has_ended(const struct program *program) {
  struct pollfd end = {.fd = program->pidfd, .events = POLLIN};
  return poll(&end, 1, 0) != 0;
}

static void forget(struct directory *directory, struct program **at) {
  struct program *program = *at;
  for (struct vgpu_rm_object *client = book.clients, *next; client != NULL; client = next) {
    next = client->places[IN_BOOK].next;
    if (client->file >> 32 == program->number) vgpu__object_remove(&book, client, VGPU_RM_NO_LIMIT);
  }
  unlinkat(directory->fd, program->name, 0);
  close(program->events);
  close(program->pidfd);
  *at = program->next;
  free(program);
}

static void find(struct directory *directory, const char *name) {
  struct program *program = programs;
  struct stat found;
  while (program != NULL && (program->tenant != &directory->tenant || strcmp(program->name, name) != 0))
    program = program->next;
  if (program != NULL) return;
  int events = openat(directory->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), pidfd = -1;
  if (events < 0) return;
  pid_t pid = fstat(events, &found) == 0 && S_ISREG(found.st_mode) ? locker(events) : -1;
  if (pid > 0) pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
  if (pidfd < 0 || locker(events) != pid) { /* not locked yet, or left over */
    if (pid == 0 && found.st_size > 0) unlinkat(directory->fd, name, 0);
    if (pidfd >= 0) close(pidfd);
    close(events);
    return;
  }
  program = make(sizeof *program);
  program->tenant = &directory->tenant;
  memcpy(program->name, name, sizeof program->name); /* by the pattern, it has that size */
  program->number = ++last_number;
  program->pid = pid;
  program->pidfd = pidfd;
  program->events = events;
  for (int i = 0; i < MOST_FILES; i++) program->fds[i] = -1;
  program->next = programs;
  programs = program;
}

/* Reads what all programs have recorded. */
static void look(void) {
  for (int i = 0; i < tenants; i++) {
    DIR *listed = fdopendir(openat(directories[i].fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    for (const struct dirent *each; listed != NULL && (each = readdir(listed)) != NULL;) {
      if (fnmatch(RM_EVENTS_PATTERN, each->d_name, 0) == 0) find(&directories[i], each->d_name);
    }
    if (listed != NULL) closedir(listed);
    for (struct program **at = &programs; *at != NULL;) {
      if ((*at)->tenant != &directories[i].tenant || !has_ended(*at)) at = &(*at)->next;
      else forget(&directories[i], at);
    }
  }
  for (struct program *each = programs; each != NULL; each = each->next) read_events(each);
}

/* ---- the driver's calls ---- */

/* Takes a program's control file; -1: it cannot be had. */
static int take(uint64_t file) {
  struct program *program = programs;
  struct stat found;
  while (program != NULL && program->number != file >> 32) program = program->next;
  if (program == NULL) return -1;
  int fd = (int)syscall(SYS_pidfd_getfd, program->pidfd, program->fds[file % MOST_FILES], 0);
  if (fd < 0) return -1;
  if (fstat(fd, &found) == 0 && S_ISCHR(found.st_mode) && found.st_rdev == makedev(195, 255)) return fd;
  close(fd);
  return -1;
}

static uint32_t control(void *taken, uint32_t client, uint32_t object, uint32_t command, const void *params,
                        uint32_t size) {
  struct {
    uint32_t client, object, command, flags;
    uint64_t params;
    uint32_t size, status;
  } call = {client, object, command, 0, (uint64_t)(uintptr_t)params, size, ~0u};
  _Static_assert(sizeof call == RM_CONTROL_SIZE, "as the driver has it");
  return ioctl(*(int *)taken, vgpu__rm_word(RM_CONTROL, RM_CONTROL_SIZE), &call) == 0 ? call.status : ~0u;
}

/* Makes the calls that are due. Refused ones are tried again for a limited time. */
static void settle(void) {
  const struct timespec again = {.tv_nsec = AGAIN_MS * 1000000L};
  struct vgpu_rm_turn turn;
  for (int more; (more = vgpu__turn_next(&book, &turn)) != 0;) {
    if (more < 0) {
      nanosleep(&again, NULL);
      look();
      continue;
    }
    int fd = take(turn.file);
    vgpu__turn_carry_out(&turn, fd >= 0 ? control : NULL, &fd, schedule_size);
    if (fd >= 0) close(fd);
    vgpu__turn_done(&book, &turn);
  }
}

static void set_held(int held, uint64_t ms) {
  if (held) atomic_store(held_until, now_ms() + ms);
  book.held = held;
  book.round++;
  look();
  settle();
  if (!held) atomic_store(held_until, 0);
}

/*
 * Gives back what an earlier process may have taken. It is not known what that was. So each group counts as stopped,
 * with another slice and level than the driver's.
 */
static void recover(void) {
  struct vgpu_rm_turn turn;
  for (int i = 0; i < tenants; i++) directories[i].tenant.yields = 1;
  recovering = 1;
  look();
  book.held = 1;
  book.able = 0;
  while (vgpu__turn_next(&book, &turn) > 0) {
    turn.refused = 0;
    turn.failed = turn.unlevelled = 0;
    vgpu__turn_done(&book, &turn);
  }
  book.able = 1;
  set_held(0, 0);
  recovering = 0;
  for (int i = 0; i < tenants; i++) directories[i].tenant.stops = 0;
}

/* Begins with an empty book. */
static void begin(void) {
  static const struct vgpu_rm_heap heap = {.make = make, .drop = free};
  if (vgpu__book_begin(&book, &heap, BUCKETS, (uint32_t)getpid()) != 0) abort();
  for (int i = 0; i < tenants; i++) {
    struct vgpu_rm_tenant *tenant = &directories[i].tenant;
    uint32_t weight = tenant->weight;
    *tenant = (struct vgpu_rm_tenant){.key = (uint64_t)i + 1, .limit = VGPU_RM_NO_LIMIT, .weight = weight};
    vgpu__tenant_add(&book, tenant);
  }
}

/* ---- the worker ---- */

static void end(int signal) {
  (void)signal;
  ended = 1;
}

static void tell(const char *what) {
  uint64_t stops = 0, resisting = 0, stuck = 0, kept = 0;
  for (int i = 0; i < tenants; i++) {
    const struct vgpu_rm_tenant *tenant = &directories[i].tenant;
    stops += tenant->stops;
    resisting += tenant->resisting;
    stuck += tenant->stuck;
    kept += tenant->unweighted + tenant->unlevelled;
  }
  printf("%s: stops %llu resisting %llu stuck %llu unset %llu\n", what, (unsigned long long)stops,
         (unsigned long long)resisting, (unsigned long long)stuck, (unsigned long long)kept);
  fflush(stdout);
}

static void obey(char *line) {
  unsigned ms;
  char rest;
  if (sscanf(line, "online %u%c", &ms, &rest) != 1 || ms > MOST_MS) {
    tell("not understood");
    return;
  }
  set_held(ms != 0, ms);
  tell(line);
}

/* Carries out the lines of standard input; -1 at its end. */
static int listen_to_input(void) {
  static char text[256];
  static size_t size;
  ssize_t more = read(0, text + size, sizeof text - 1 - size);
  if (more <= 0) return more < 0 && errno == EINTR ? 0 : -1;
  size += (size_t)more;
  for (char *end_of_line; (end_of_line = memchr(text, '\n', size)) != NULL;) {
    *end_of_line = '\0';
    obey(text);
    size -= (size_t)(end_of_line + 1 - text);
    memmove(text, end_of_line + 1, size);
  }
  if (size == sizeof text - 1) size = 0; /* no command is so long */
  return 0;
}

static int work(void) {
  static const char *const classes[] = {"offline", "nearline", "online"};
  struct pollfd news[] = {{.fd = 0, .events = POLLIN},
                          {.fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC), .events = POLLIN}};
  char changes[4096];
  sigset_t all;
  begin();
  for (int i = 0; i < tenants; i++) {
    if (inotify_add_watch(news[1].fd, directories[i].path, IN_CREATE | IN_MODIFY | IN_CLOSE_WRITE) < 0) return 1;
  }
  recover();
  for (int i = 0; i < tenants; i++) {
    struct directory *each = &directories[i];
    uint32_t level = 0;
    while (strcmp(classes[level], each->class_name) != 0) level++;
    each->tenant.yields = level == VGPU_RM_LOW;
    vgpu__level_set(&book, &each->tenant, level);
  }
  set_held(0, 0);
  tell("ready");
  sigemptyset(&all);
  while (!ended) {
    uint64_t until = atomic_load(held_until), now = now_ms(), left = until > now ? until - now : 0;
    if (until != 0 && left == 0) {
      set_held(0, 0);
      continue;
    }
    const struct timespec most = {.tv_sec = (time_t)(left / 1000), .tv_nsec = (long)(left % 1000) * 1000000};
    if (ppoll(news, 2, until != 0 ? &most : NULL, &all) < 0) continue;
    while (read(news[1].fd, changes, sizeof changes) > 0) continue;
    if (news[0].revents != 0 && listen_to_input() != 0) break;
    look();
    settle();
  }
  for (int i = 0; i < tenants; i++) {
    vgpu__weight_set(&book, &directories[i].tenant, 0);
    vgpu__level_set(&book, &directories[i].tenant, VGPU_RM_LOW);
  }
  set_held(0, 0);
  tell("given back");
  return 0;
}

/* ---- the guardian ---- */

/* Returns the worker's exit status; -1: it was killed, or it hung and was killed here. */
static int guard(pid_t worker, const sigset_t *signals) {
  for (;;) {
    const struct timespec most = {.tv_nsec = 200000000};
    int status, signal = sigtimedwait(signals, NULL, &most);
    uint64_t until = atomic_load(held_until);
    if (signal > 0 && signal != SIGCHLD) kill(worker, SIGTERM);
    if (waitpid(worker, &status, WNOHANG) == worker) return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (until == 0 || now_ms() < until + LATE_MS) continue;
    kill(worker, SIGKILL);
    waitpid(worker, &status, 0);
    return -1;
  }
}

static int start(void) {
  const struct sigaction action = {.sa_handler = end};
  pid_t guardian = getpid(), worker;
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGHUP);
  sigaddset(&signals, SIGCHLD);
  sigprocmask(SIG_BLOCK, &signals, NULL);
  signal(SIGPIPE, SIG_IGN);
  worker = fork();
  if (worker < 0) return 1;
  if (worker == 0) {
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0 || getppid() != guardian) return 1;
    return work();
  }
  int status = guard(worker, &signals);
  if (status >= 0) return status;
  for (int i = 0; i < tenants; i++) directories[i].tenant.weight = 0;
  begin();
  recover();
  tell("the worker was killed, and everything given back");
  return 1;
}

/* ---- arguments ---- */

static int add(char *words) {
  struct directory *made_one = &directories[tenants];
  char *class_name = strrchr(words, '='), *weight, *rest;
  if (tenants == MOST_TENANTS || class_name == NULL) return -1;
  *class_name++ = '\0';
  weight = strchr(class_name, ',');
  if (weight != NULL) {
    *weight++ = '\0';
    unsigned long percent = strtoul(weight, &rest, 10);
    if (*weight < '0' || *weight > '9' || *rest != '\0' || percent > 1000) return -1;
    made_one->tenant.weight = (uint32_t)percent;
  }
  if (strcmp(class_name, "online") != 0 && strcmp(class_name, "nearline") != 0 && strcmp(class_name, "offline") != 0)
    return -1;
  made_one->class_name = class_name;
  made_one->path = words;
  made_one->fd = open(words, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (made_one->fd < 0) {
    fprintf(stderr, "vgpu-turns: %s cannot be opened: %s\n", words, strerror(errno));
    exit(1);
  }
  tenants++;
  return 0;
}

/* Why this process cannot take files or make the calls; NULL: it can. */
static const char *obstacle(void) {
  char version[64] = "";
  int fd = open("/sys/module/nvidia/version", O_RDONLY | O_CLOEXEC), self, taken;
  if (fd < 0 || read(fd, version, sizeof version - 1) < 0) return "the driver is not loaded";
  schedule_size = vgpu__rm_abi(vgpu__rm_version(version, strlen(version)) >> 16).schedule_size;
  if (schedule_size == 0) return "the driver's version is not known";
  self = (int)syscall(SYS_pidfd_open, getpid(), 0);
  taken = (int)syscall(SYS_pidfd_getfd, self, fd, 0);
  if (taken < 0) return strerror(errno);
  close(taken);
  close(self);
  close(fd);
  return NULL;
}

int main(int count, char **arguments) {
  for (int i = 1; i < count || i == 1; i++) {
    if (i < count && add(arguments[i]) == 0) continue;
    fprintf(stderr, "Usage: vgpu-turns DIRECTORY=online|nearline|offline[,WEIGHT]...\n");
    return 2;
  }
  const char *why = obstacle();
  if (why != NULL) {
    fprintf(stderr, "vgpu-turns: open files cannot be taken (pidfd_getfd): %s\n", why);
    return 1;
  }
  held_until = mmap(NULL, sizeof *held_until, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return held_until != MAP_FAILED ? start() : 1;
}
