/*
 * System calls without the C library's own functions, each of which is a cancellation point: a program may cancel a
 * thread that is inside the hook (pthread_cancel), and the locks that the thread holds there would stay locked.
 * syscall() is no cancellation point. check_library.sh refuses a hook that uses one.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "system.h"

int vgpu__file_open(const char *path, int flags) {
  return (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, 0600);
}

ssize_t vgpu__file_read(int fd, void *into, size_t size) { return syscall(SYS_read, fd, into, size); }

ssize_t vgpu__file_read_at(int fd, void *into, size_t size, off_t at) {
  return syscall(SYS_pread64, fd, into, size, at);
}

ssize_t vgpu__file_write(int fd, const void *from, size_t size) { return syscall(SYS_write, fd, from, size); }

void vgpu__file_close(int fd) { syscall(SYS_close, fd); }

int vgpu__file_copy(int fd, int least) { return (int)syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, least); }

int vgpu__socket_connect(int fd, const struct sockaddr *address, socklen_t size) {
  return (int)syscall(SYS_connect, fd, address, size);
}

ssize_t vgpu__socket_send(int fd, const void *from, size_t size) {
  return syscall(SYS_sendto, fd, from, size, MSG_DONTWAIT | MSG_NOSIGNAL, NULL, 0);
}

ssize_t vgpu__socket_receive(int fd, void *into, size_t size) {
  return syscall(SYS_recvfrom, fd, into, size, MSG_DONTWAIT, NULL, NULL);
}

void vgpu__socket_wait(int fd, uint64_t ns) {
  int kept = errno;
  struct pollfd socket = {.fd = fd, .events = POLLIN};
  struct timespec span = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
  if (syscall(SYS_ppoll, &socket, 1, &span, NULL, 0) < 0 && errno != EINTR)
    vgpu__sleep_ns(ns < NS_PER_MS ? ns : NS_PER_MS);
  errno = kept;
}

void vgpu__sleep_ns(uint64_t ns) {
  int kept = errno;
  struct timespec span = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
  syscall(SYS_nanosleep, &span, NULL);
  errno = kept;
}
