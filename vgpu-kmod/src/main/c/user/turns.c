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
 * beyond the time of a hold, the guardian gives everything back. It reads from the programs' records what there is,
 * and from files beside them which time slices the groups had.
 * If both are killed, stopped channels stay disabled until vgpu-turns is started again, which begins by giving
 * everything back, or until the program ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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
#include "programs.h"

#ifndef SYS_pidfd_getfd
#define SYS_pidfd_open 434
#define SYS_pidfd_getfd 438
#endif

enum { BUCKETS = 4096, AGAIN_MS = 20, MOST_MS = 10000 };
enum { SOON_MS = 100, CHECK_MS = 1000, MOST_CHECKED = 256 }; /* of a tenant, at once */
enum { LATE_MS = 3000 };                                     /* the worker's delay at which the guardian takes over */

static struct programs programs;
static int unread; /* the last look left something */
static uint32_t schedule_size;
static uint64_t check_at;              /* in ms: when the groups' slices are looked at again; 0: never */
static uint64_t check_after = SOON_MS; /* how long after that the next time: longer and longer, up to CHECK_MS */
static _Atomic uint64_t *held_until;   /* in ms, shared with the guardian; 0: nothing is held */
static volatile sig_atomic_t ended;

static uint64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void look(void) { unread = programs_look(&programs); }

/* ---- the driver's calls ---- */

/* Takes a program's control file; -1: it cannot be had. */
static int take(uint64_t file) {
  struct program *program = programs.first;
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

/* ---- time slices ---- */

static struct group *group_of(const struct vgpu_rm_turn *turn) {
  struct vgpu_rm_object *root = vgpu__client_stamped(&programs.book, turn->client, turn->root);
  struct vgpu_rm_object *group = root != NULL ? vgpu__object_find(&programs.book, root, turn->group) : NULL;
  return group != NULL && group->stamp == turn->stamp ? (struct group *)group : NULL;
}

/* The group's time slice; 0: the driver does not tell it. */
static uint32_t slice_now(int *fd, const struct group *group) {
  uint64_t us = 0;
  const struct vgpu_rm_object *object = &group->object;
  uint32_t status = control(fd, object->root->handle, object->handle, RM_GROUP_GET_TIMESLICE, &us, sizeof us);
  return status == RM_OK && us <= UINT32_MAX ? (uint32_t)us : 0;
}

static int set_slice(int *fd, const struct group *group, uint64_t us) {
  const struct vgpu_rm_object *object = &group->object;
  return control(fd, object->root->handle, object->handle, RM_GROUP_SET_TIMESLICE, &us, sizeof us) == RM_OK ? 0 : -1;
}

static int is_about(uint32_t us, uint32_t as_set) { /* the driver may round it */
  return us > as_set - as_set / 8 && us < as_set + as_set / 8;
}

/*
 * Gives a group this time slice. One that it has and that was not set here is the program's own, which CUDA sets after
 * the group's first SCHEDULE.
 */
static int weigh(int *fd, struct group *group, uint32_t us) {
  uint32_t seen = slice_now(fd, group);
  if (seen != 0 && seen != group->set_us) {
    group->object.own_us = seen;
    group->asked_us = 0;
  }
  if (group->asked_us == us) return 0;
  if (programs_keep(&programs, group, us) != 0 || set_slice(fd, group, us) != 0) return -1;
  group->asked_us = group->set_us = us;
  seen = slice_now(fd, group);
  if (is_about(seen, us)) group->set_us = seen;
  return 0;
}

/* Gives a group its own time slice. One that was not set here stays: the program has set it meanwhile. */
static int unweigh(int *fd, struct group *group) {
  const struct kept_slice *found = group->found;
  if (group->set_us == 0) return 0;
  uint32_t seen = slice_now(fd, group);
  int is_set_here = seen == 0 || seen == group->set_us;
  if (programs.recovering && found != NULL)
    is_set_here |= is_about(seen, found->set_us) || is_about(seen, found->before_us);
  if (is_set_here && set_slice(fd, group, group->object.own_us) != 0) return -1;
  group->asked_us = group->set_us = 0;
  group->found = NULL;
  return 0;
}

static int set_as_due(int *fd, struct group *group) {
  const uint32_t us = vgpu__slice_of(group->object.root->tenant, group->object.engine, 0);
  return us != 0 ? weigh(fd, group, us) : unweigh(fd, group);
}

/* Sets what is not as it is due, of groups that a program has scheduled; those of a tenant with very many, in parts. */
static void check_slices(struct directory *directory, int most) {
  uint32_t number = 0, from = directory->checked;
  for (int i = 0; i < VGPU_RM_ENGINES; i++) {
    struct vgpu_rm_object *each = directory->tenant.engines[i].first;
    for (; each != NULL; each = each->next_slice) {
      if (number++ < from) continue;
      if (number > from + (uint32_t)most) {
        directory->checked = number - 1;
        return;
      }
      int fd = take(each->root->file);
      if (fd < 0) continue;
      set_as_due(&fd, (struct group *)each);
      close(fd);
    }
  }
  directory->checked = 0;
}

static void check_all_slices(int most) {
  int any = 0;
  for (int i = 0; i < programs.tenants; i++) {
    struct directory *each = &programs.directories[i];
    if (each->tenant.weight == 0 && most == MOST_CHECKED) continue;
    check_slices(each, most);
    any |= each->tenant.objects != 0;
  }
  check_at = any ? now_ms() + check_after : 0;
  check_after = check_after < CHECK_MS / 2 ? 2 * check_after : CHECK_MS;
}

/* ---- turns ---- */

/* A group's slice, and the rest of the turn. */
static void carry_out(struct vgpu_rm_turn *turn, int *fd) {
  struct group *group = turn->slice_us != 0 ? group_of(turn) : NULL;
  const uint32_t us = turn->slice_us;
  turn->slice_us = 0;
  vgpu__turn_carry_out(turn, *fd >= 0 ? control : NULL, fd, schedule_size);
  turn->slice_us = us;
  if (us == 0) return;
  turn->failed = group == NULL || *fd < 0 || set_as_due(fd, group) != 0;
  check_after = SOON_MS;
  if (check_at == 0 || check_at > now_ms() + SOON_MS) check_at = now_ms() + SOON_MS;
}

/* Makes the calls that are due. Refused ones are tried again for a limited time. */
static void settle(void) {
  const struct timespec again = {.tv_nsec = AGAIN_MS * 1000000L};
  struct vgpu_rm_turn turn;
  for (int more; (more = vgpu__turn_next(&programs.book, &turn)) != 0;) {
    if (more < 0) {
      nanosleep(&again, NULL);
      look();
      continue;
    }
    int fd = take(turn.file);
    carry_out(&turn, &fd);
    if (fd >= 0) close(fd);
    vgpu__turn_done(&programs.book, &turn);
  }
  if (!programs.book.held) programs_drop_lost(&programs);
}

static void set_held(int held, uint64_t ms) {
  if (held) atomic_store(held_until, now_ms() + ms);
  programs.book.held = held;
  programs.book.round++;
  look();
  settle();
  if (!held) atomic_store(held_until, 0);
}

/*
 * Gives back what an earlier process may have taken. It is not known what that was. So each group counts as stopped,
 * with another slice and level than the driver's.
 */
static void give_back_all(void) {
  struct vgpu_rm_turn turn;
  programs.book.held = 1;
  programs.book.able = 0;
  while (vgpu__turn_next(&programs.book, &turn) > 0) {
    turn.refused = 0;
    turn.failed = turn.unlevelled = 0;
    vgpu__turn_done(&programs.book, &turn);
  }
  programs.book.able = 1;
  set_held(0, 0);
}

/* A program that has recorded much is given back after the others: they do not wait until that is read. */
static void recover(void) {
  for (int i = 0; i < programs.tenants; i++) programs.directories[i].tenant.yields = 1;
  programs.recovering = 1;
  look();
  const uint64_t last = programs.last_number;
  const int behind = programs_behind(&programs, last);
  give_back_all();
  if (behind) {
    while (programs_behind(&programs, last)) look();
    give_back_all();
  }
  programs_drop_kept(&programs);
  programs.recovering = 0;
  for (int i = 0; i < programs.tenants; i++) programs.directories[i].tenant.stops = 0;
}

/* Begins with an empty book. */
static void begin(void) {
  static const struct vgpu_rm_heap heap = {.make = programs_make, .drop = free};
  if (vgpu__book_begin(&programs.book, &heap, BUCKETS, (uint32_t)getpid()) != 0) abort();
  for (int i = 0; i < programs.tenants; i++) {
    struct vgpu_rm_tenant *tenant = &programs.directories[i].tenant;
    *tenant = (struct vgpu_rm_tenant){.key = (uint64_t)i + 1, .limit = VGPU_RM_NO_LIMIT};
    vgpu__tenant_add(&programs.book, tenant);
  }
}

/* ---- the worker ---- */

static void end(int signal) {
  (void)signal;
  ended = 1;
}

static void tell(const char *what) {
  uint64_t stops = 0, resisting = 0, stuck = 0, kept = 0;
  for (int i = 0; i < programs.tenants; i++) {
    const struct vgpu_rm_tenant *tenant = &programs.directories[i].tenant;
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

/* In ms; UINT64_MAX: nothing is due. */
static uint64_t until_next(uint64_t now) {
  uint64_t until = atomic_load(held_until);
  if (check_at != 0 && (until == 0 || check_at < until)) until = check_at;
  return until == 0 ? UINT64_MAX : until > now ? until - now : 0;
}

/* The tenants' classes and weights apply from now on. */
static void apply(void) {
  static const char *const classes[] = {"offline", "nearline", "online"};
  for (int i = 0; i < programs.tenants; i++) {
    struct directory *each = &programs.directories[i];
    uint32_t level = 0;
    while (strcmp(classes[level], each->class_name) != 0) level++;
    each->tenant.yields = level == VGPU_RM_LOW;
    vgpu__level_set(&programs.book, &each->tenant, level);
    vgpu__weight_set(&programs.book, &each->tenant, each->weight);
  }
  set_held(0, 0);
  check_all_slices(MOST_CHECKED); /* a weight may give the slice that the core thinks is there */
}

/* From now on there are no classes and weights. */
static void give_back(void) {
  for (int i = 0; i < programs.tenants; i++) {
    programs.directories[i].checked = 0;
    vgpu__weight_set(&programs.book, &programs.directories[i].tenant, 0);
    vgpu__level_set(&programs.book, &programs.directories[i].tenant, VGPU_RM_LOW);
  }
  set_held(0, 0);
  check_all_slices(INT_MAX);
  programs_drop_kept(&programs);
}

static int work(void) {
  struct pollfd news[] = {{.fd = 0, .events = POLLIN},
                          {.fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC), .events = POLLIN}};
  char changes[4096];
  sigset_t all;
  begin();
  for (int i = 0; i < programs.tenants; i++) {
    if (inotify_add_watch(news[1].fd, programs.directories[i].path, IN_CREATE | IN_MODIFY | IN_CLOSE_WRITE) < 0)
      return 1;
  }
  recover();
  apply();
  tell("ready");
  sigemptyset(&all);
  while (!ended) {
    uint64_t until = atomic_load(held_until), now = now_ms(), left;
    if (until != 0 && now >= until) set_held(0, 0);
    if (check_at != 0 && now >= check_at) check_all_slices(MOST_CHECKED);
    left = unread ? 0 : until_next(now_ms());
    const struct timespec most = {.tv_sec = (time_t)(left / 1000), .tv_nsec = (long)(left % 1000) * 1000000};
    if (ppoll(news, 2, left != UINT64_MAX ? &most : NULL, &all) < 0) continue;
    /* Once: those who record without a pause also fill this. */
    if (news[1].revents != 0 && read(news[1].fd, changes, sizeof changes) < 0) continue;
    if (news[0].revents != 0 && listen_to_input() != 0) break;
    look();
    settle();
  }
  give_back();
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
  begin();
  recover();
  tell("the worker was killed, and everything given back");
  return 1;
}

/* ---- arguments ---- */

static int add(char *words) {
  struct directory *made_one = &programs.directories[programs.tenants];
  char *class_name = strrchr(words, '='), *weight, *rest;
  if (programs.tenants == MOST_TENANTS || class_name == NULL) return -1;
  *class_name++ = '\0';
  weight = strchr(class_name, ',');
  if (weight != NULL) {
    *weight++ = '\0';
    unsigned long percent = strtoul(weight, &rest, 10);
    if (*weight < '0' || *weight > '9' || *rest != '\0' || percent > 1000) return -1;
    made_one->weight = (uint32_t)percent;
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
  programs.tenants++;
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
