// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
#include "programs.h"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../core/rm_turn.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

enum { MOST_OBJECTS = 65536, MOST_KEPT = 65536 };

void *programs_make(size_t size) {
  void *made = calloc(1, size);
  if (made == NULL) abort();
  return made;
}

/* ---- the groups' own time slices ---- */

static const struct directory *directory_of(const struct programs *programs, const struct program *program) {
  return &programs->directories[program->tenant->key - 1];
}

static const char *slices_name(const struct program *program) {
  static char name[sizeof program->name + sizeof ".slices"];
  snprintf(name, sizeof name, "%s.slices", program->name);
  return name;
}

/* The tenant may own the directory. So a file is made anew, and only one of this user's is read. */
int programs_keep(struct programs *programs, struct group *group, uint32_t us) {
  const struct vgpu_rm_object *root = group->object.root;
  struct program *program = programs->first;
  while (program != NULL && program->number != root->file >> 32) program = program->next;
  if (program == NULL) return -1;
  if (program->slices < 0) {
    int at = directory_of(programs, program)->fd;
    unlinkat(at, slices_name(program), 0);
    program->slices = openat(at, slices_name(program), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  }
  if (program->slices < 0) return -1;
  if (group->kept_at == 0 && program->kept < MOST_KEPT) group->kept_at = ++program->kept;
  if (group->kept_at == 0) return 0; /* so many groups have been there that the file would become too large */
  const struct kept_slice kept = {.file = root->file & UINT32_MAX,
                                  .client = root->handle,
                                  .group = group->object.handle,
                                  .own_us = group->object.own_us,
                                  .set_us = us,
                                  .before_us = group->set_us};
  off_t at = (off_t)(sizeof kept * (group->kept_at - 1));
  return pwrite(program->slices, &kept, sizeof kept, at) == (ssize_t)sizeof kept ? 0 : -1;
}

static void read_kept(const struct directory *directory, struct program *program) {
  struct stat found;
  int fd = openat(directory->fd, slices_name(program), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return;
  if (fstat(fd, &found) == 0 && S_ISREG(found.st_mode) && found.st_uid == geteuid() && found.st_size > 0 &&
      found.st_size <= (off_t)(MOST_KEPT * sizeof *program->found_kept)) {
    program->found_kept = programs_make((size_t)found.st_size);
    ssize_t size = pread(fd, program->found_kept, (size_t)found.st_size, 0);
    program->found_count = size > 0 ? (size_t)size / sizeof *program->found_kept : 0;
  }
  close(fd);
}

/* NULL: the group has its own time slice, as far as is known. */
static struct kept_slice *found_kept(const struct program *program, uint32_t file, uint32_t client, uint32_t group) {
  for (size_t i = program->found_count; i > 0; i--) { /* of groups with the same handle, the last one */
    struct kept_slice *each = &program->found_kept[i - 1];
    if (each->file == file && each->client == client && each->group == group) return each;
  }
  return NULL;
}

static void drop_kept(const struct directory *directory, struct program *program) {
  unlinkat(directory->fd, slices_name(program), 0);
  if (program->slices >= 0) close(program->slices);
  free(program->found_kept);
  program->slices = -1;
  program->found_kept = NULL;
  program->kept = 0;
  program->found_count = 0;
}

void programs_drop_kept(struct programs *programs) {
  for (struct program *each = programs->first; each != NULL; each = each->next)
    drop_kept(directory_of(programs, each), each);
}

/* ---- records ---- */

static void made(struct programs *programs, struct program *program, const struct vgpu_rm_event *event, uint64_t file) {
  struct vgpu_rm_book *book = &programs->book;
  struct vgpu_rm_tenant *tenant = program->tenant;
  if (tenant->objects >= MOST_OBJECTS || event->object == 0) return;
  if (event->class_number == 0 || event->class_number == RM_CLASS_ROOT) {
    vgpu__client_enter(book, programs_make(sizeof(struct vgpu_rm_object)), tenant, event->object, file, book->stamp, 1);
    return;
  }
  struct vgpu_rm_object *root = vgpu__client_find(book, file, event->client), *object;
  struct group *group;
  if (root == NULL) return;
  group = programs_make(sizeof *group);
  object = &group->object;
  object->own_us = VGPU_RM_DRIVERS_SLICE_US;
  if (event->class_number == RM_CLASS_GROUP) {
    group->found = found_kept(program, (uint32_t)event->file, event->client, event->object);
    if (group->found != NULL) {
      object->own_us = group->found->own_us;
      group->set_us = group->found->set_us;
    }
  }
  object->engine = event->value;
  object->slice_us = programs->recovering || tenant->weight != 0 ? 0 : VGPU_RM_DRIVERS_SLICE_US;
  object->level = programs->recovering ? ~0u : VGPU_RM_LOW;
  vgpu__object_enter(book, object, root, event->parent, event->object, event->class_number, NULL, book->stamp);
}

static void follow(struct programs *programs, struct program *program, const struct vgpu_rm_event *event) {
  struct vgpu_rm_book *book = &programs->book;
  if (event->file > UINT32_MAX) return;
  uint64_t file = program->number << 32 | event->file;
  struct vgpu_rm_object *root, *object;
  if (event->kind != RM_EVENT_CLOSED) program->fds[event->file % MOST_FILES] = event->fd;
  if (event->kind == RM_EVENT_MADE) made(programs, program, event, file);
  else if (event->kind == RM_EVENT_CLOSED) vgpu__file_closed(book, file);
  root = vgpu__client_find(book, file, event->client);
  object = root != NULL ? vgpu__object_find(book, root, event->object) : NULL;
  if (object == NULL) return;
  if (event->kind == RM_EVENT_FREED) vgpu__object_remove(book, object, VGPU_RM_NO_LIMIT);
  else if (event->kind == RM_EVENT_SCHEDULED && (object = vgpu__group_of(object)) != NULL)
    vgpu__group_scheduled(book, object, event->value != 0);
  else if (event->kind == RM_EVENT_DISABLED && vgpu__rm_is_channel(object->class_number) &&
           object->parent->class_number == RM_CLASS_GROUP)
    vgpu__channel_set(book, object, 1, event->value != 0);
}

/* Whether no library writes this. A hole in the file is of such records. */
static int is_nonsense(const struct vgpu_rm_event *event) {
  return event->kind < RM_EVENT_MADE || event->kind > RM_EVENT_CLOSED;
}

/* Returns whether there may be more. */
static int read_events(struct programs *programs, struct program *program) {
  struct vgpu_rm_event events[64];
  struct stat file;
  for (int left = EVENTS_OF_A_LOOK; left > 0 && !program->lost;) {
    ssize_t size = pread(program->events, events, sizeof events, program->at);
    int count = size < 0 ? 0 : (int)((size_t)size / sizeof *events);
    for (int i = 0; i < count && !program->lost; i++) {
      program->lost = is_nonsense(&events[i]);
      if (!program->lost) follow(programs, program, &events[i]);
    }
    program->at += (off_t)((size_t)count * sizeof *events);
    left -= count;
    if (count < (int)(sizeof events / sizeof *events)) return 0;
  }
  if (fstat(program->events, &file) != 0 || (file.st_size - program->at) / (off_t)sizeof *events > MOST_UNREAD)
    program->lost = 1;
  return !program->lost;
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

static void forget_clients(struct vgpu_rm_book *book, const struct program *program) {
  for (struct vgpu_rm_object *client = book->clients, *next; client != NULL; client = next) {
    next = client->places[IN_BOOK].next;
    if (client->file >> 32 == program->number) vgpu__object_remove(book, client, VGPU_RM_NO_LIMIT);
  }
}

static void forget(struct vgpu_rm_book *book, const struct directory *directory, struct program **at) {
  struct program *program = *at;
  forget_clients(book, program);
  drop_kept(directory, program);
  unlinkat(directory->fd, program->name, 0);
  close(program->events);
  close(program->pidfd);
  *at = program->next;
  free(program);
}

static void find(struct programs *programs, struct directory *directory, const char *name) {
  struct program *program = programs->first;
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
  program = programs_make(sizeof *program);
  program->tenant = &directory->tenant;
  memcpy(program->name, name, sizeof program->name); /* by the pattern, it has that size */
  program->number = ++programs->last_number;
  program->pid = pid;
  program->pidfd = pidfd;
  program->events = events;
  program->found = found.st_size;
  program->slices = -1;
  if (programs->recovering) read_kept(directory, program);
  for (int i = 0; i < MOST_FILES; i++) program->fds[i] = -1;
  program->next = programs->first;
  programs->first = program;
}

int programs_look(struct programs *programs) {
  int more = 0;
  for (int i = 0; i < programs->tenants; i++) {
    struct directory *directory = &programs->directories[i];
    DIR *listed = fdopendir(openat(directory->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    for (const struct dirent *each; listed != NULL && (each = readdir(listed)) != NULL;) {
      if (fnmatch(RM_EVENTS_PATTERN, each->d_name, 0) == 0) find(programs, directory, each->d_name);
    }
    if (listed != NULL) closedir(listed);
    for (struct program **at = &programs->first; *at != NULL;) {
      if ((*at)->tenant != &directory->tenant || !has_ended(*at)) at = &(*at)->next;
      else forget(&programs->book, directory, at);
    }
  }
  for (struct program *each = programs->first; each != NULL; each = each->next) more |= read_events(programs, each);
  return more;
}

int programs_behind(const struct programs *programs, uint64_t last) {
  for (const struct program *each = programs->first; each != NULL; each = each->next) {
    off_t whole = each->found - each->found % (off_t)sizeof(struct vgpu_rm_event);
    if (each->number <= last && !each->lost && each->at < whole) return 1;
  }
  return 0;
}

void programs_drop_lost(struct programs *programs) {
  for (struct program *each = programs->first; each != NULL; each = each->next) {
    if (each->lost) forget_clients(&programs->book, each);
  }
}
