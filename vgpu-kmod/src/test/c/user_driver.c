/*
 * Replaces the kernel and its driver below libvgpu_rm.so: a library to preload after it. A file of the driver is a
 * memory file. The model of the resource manager serves it, and is told when its last descriptor is closed.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "../model/model_rm.h"

enum { FILES = 32, DESCRIPTORS = 256 };
static struct file {
  struct model_file model;
  ino_t inode; /* 0: free */
  int ties;    /* of other files to this one */
  int closed;
} files[FILES];
static struct model_rm rm = {.total = (uint64_t)4096 << 20, .fb_info_size = 436};

static void *make(size_t size) { return calloc(1, size); }

static ino_t inode_of(int fd) {
  struct stat found;
  return fstat(fd, &found) == 0 ? found.st_ino : 0;
}

static struct file *file_of(int fd) {
  ino_t inode = inode_of(fd);
  for (int i = 0; i < FILES && inode != 0; i++) {
    if (files[i].inode == inode) return &files[i];
  }
  return NULL;
}

static int copy_in(void *self, void *into, uint64_t from, size_t size) {
  struct iovec here = {into, size}, there = {(void *)(uintptr_t)from, size};
  (void)self;
  return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == (ssize_t)size ? 0 : -1;
}
static int copy_out(void *self, uint64_t into, const void *from, size_t size) {
  struct iovec here = {(void *)(uintptr_t)from, size}, there = {(void *)(uintptr_t)into, size};
  (void)self;
  return process_vm_writev(getpid(), &here, 1, &there, 1, 0) == (ssize_t)size ? 0 : -1;
}
static struct model_file *model_of(void *self, int32_t fd) {
  struct file *file = file_of(fd);
  (void)self;
  return file != NULL ? &file->model : NULL;
}
static int has_gpu(void *self) {
  (void)self;
  return 1;
}

/* For comparison by the tests. */
uint64_t user_driver_held(void);
uint64_t user_driver_held(void) { return rm.taken; }

int open(const char *path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  if (strncmp(path, "/dev/nvidia", 11) != 0) return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
  int fd = memfd_create(path, MFD_CLOEXEC), i = 0;
  while (i < FILES && files[i].inode != 0) i++;
  if (fd < 0 || i == FILES) abort();
  rm.make = make;
  rm.drop = free;
  files[i] = (struct file){.model = {.control = strcmp(path, "/dev/nvidiactl") == 0}, .inode = inode_of(fd)};
  return fd;
}

static void release(struct file *file) {
  struct file *tied = (struct file *)(void *)file->model.tied;
  model_close(&rm, &file->model);
  file->inode = 0;
  if (tied != NULL && --tied->ties == 0 && tied->closed) release(tied);
}

int close(int fd) {
  struct file *file = file_of(fd);
  int result = (int)syscall(SYS_close, fd);
  if (file == NULL) return result;
  for (int i = 0; i < DESCRIPTORS; i++) {
    if (inode_of(i) == file->inode) return result;
  }
  file->closed = 1;
  if (file->ties == 0) release(file);
  return result;
}

int ioctl(int fd, unsigned long word, ...) {
  va_list more;
  va_start(more, word);
  uint64_t argument = (uint64_t)(uintptr_t)va_arg(more, void *);
  va_end(more);
  struct file *file = file_of(fd);
  if (file == NULL) return (int)syscall(SYS_ioctl, fd, word, argument);
  struct model_caller caller = {
      .read = copy_in, .write = copy_out, .file_of = model_of, .has_gpu = has_gpu, .process = 1};
  struct model_file *tied = file->model.tied;
  long result = model_ioctl(&rm, &file->model, &caller, (uint32_t)word, argument);
  if (file->model.tied != tied) ((struct file *)(void *)file->model.tied)->ties++;
  if (result >= 0) return (int)result;
  errno = (int)-result;
  return -1;
}
