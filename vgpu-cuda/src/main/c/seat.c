/*
 * The socket to the seat. Never waits: attach.c and monitor.c decide how long to look for an answer. The program may close any
 * descriptor, and may then open files of its own under the same number: before each use ours is known by its inode.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "hook.h"
#include "seat.h"

/* Above what programs commonly use themselves, or close one by one. */
enum { FIRST_FD = 700 };

static struct vgpu_lock seat_lock;
static int fd = -1;
static ino_t inode;
static struct shm_message incoming;
static size_t incoming_size;

/* Is fd still the socket that we opened? If not, it is the program's: forget it, do not close it. */
static int vgpu__is_ours(void) {
  struct stat seen;
  if (fd < 0) return 0;
  if (vgpu__fstat(fd, &seen) == 0 && S_ISSOCK(seen.st_mode) && seen.st_ino == inode) return 1;
  fd = -1;
  return 0;
}

static void vgpu__hang_up(void) {
  if (vgpu__is_ours()) close(fd);
  fd = -1;
  incoming_size = 0;
}

static int vgpu__send_locked(const struct shm_message *message) {
  if (!vgpu__is_ours()) return -1;
  ssize_t sent = send(fd, message, sizeof *message, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent == (ssize_t)sizeof *message) return 0;
  /* A full buffer: the seat is stopped; whoever waits asks again. Part of a message, or an error: begin anew. */
  if (sent < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOBUFS)) return 0;
  vgpu__hang_up();
  return -1;
}

static void vgpu__fill(struct shm_message *message, uint32_t type) {
  memset(message, 0, sizeof *message);
  message->type = type;
  message->version = (uint32_t)SHM_MESSAGE_VERSION;
  message->layout_major = (uint32_t)SHM_LAYOUT_MAJOR;
  message->slot_number = LOAD(vgpu_hook.mode) == VGPU_ATTACHED ? vgpu_hook.slot_number : (uint32_t)SHM_NO_SLOT;
  message->pid = (uint32_t)getpid();
}

static int vgpu__open_socket(const char *run_dir) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  size_t length = strlen(run_dir);
  if (length + sizeof "/hook.sock" > sizeof address.sun_path) {
    vgpu__log("VGPU_RUN_DIR is too long for a socket: %s", run_dir);
    return -1;
  }
  memcpy(address.sun_path, run_dir, length);
  memcpy(address.sun_path + length, "/hook.sock", sizeof "/hook.sock");
  int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (made < 0) return -1;
  if (connect(made, (const struct sockaddr *)&address, sizeof address) != 0) {
    int why = errno;
    close(made);
    errno = why;
    return -1;
  }
  int higher = fcntl(made, F_DUPFD_CLOEXEC, FIRST_FD);
  if (higher >= 0) {
    close(made);
    made = higher;
  }
  return made;
}

int vgpu__seat_connect(const char *run_dir, const char *lease) {
  int kept = errno;
  struct shm_message hello;
  vgpu__fill(&hello, (uint32_t)SHM_MESSAGE_HELLO);
  hello.start_time = vgpu__start_time();
  hello.pid_namespace = vgpu__pid_namespace();
  size_t length = strlen(lease);
  if (length >= sizeof hello.lease) length = sizeof hello.lease - 1;
  memcpy(hello.lease, lease, length);
  vgpu__lock(&seat_lock);
  vgpu__hang_up();
  struct stat seen;
  fd = vgpu__open_socket(run_dir);
  int failed = fd < 0 || vgpu__fstat(fd, &seen) != 0;
  int why = errno;
  if (!failed) {
    inode = seen.st_ino;
    failed = vgpu__send_locked(&hello) != 0;
    why = errno;
  }
  vgpu__unlock(&seat_lock);
  errno = kept;
  return failed ? (why == 0 ? EIO : why) : 0;
}

void vgpu__seat_send(uint32_t type) {
  int kept = errno;
  struct shm_message message;
  vgpu__fill(&message, type);
  vgpu__lock(&seat_lock);
  vgpu__send_locked(&message);
  vgpu__unlock(&seat_lock);
  errno = kept;
}

int vgpu__seat_receive(struct shm_message *into) {
  int kept = errno;
  int result = VGPU_SEAT_NOTHING;
  vgpu__lock(&seat_lock);
  if (!vgpu__is_ours()) {
    result = VGPU_SEAT_GONE;
  } else {
    char *at = (char *)&incoming + incoming_size;
    ssize_t size = recv(fd, at, sizeof incoming - incoming_size, MSG_DONTWAIT);
    if (size > 0) {
      incoming_size += (size_t)size;
    } else if (size == 0 || (errno != EAGAIN && errno != EINTR)) {
      vgpu__hang_up();
      result = VGPU_SEAT_GONE;
    }
    if (incoming_size == sizeof incoming) {
      *into = incoming;
      incoming_size = 0;
      result = VGPU_SEAT_MESSAGE;
    }
  }
  vgpu__unlock(&seat_lock);
  errno = kept;
  return result;
}

int vgpu__seat_connected(void) {
  vgpu__lock(&seat_lock);
  int ours = vgpu__is_ours();
  vgpu__unlock(&seat_lock);
  return ours;
}

void vgpu__seat_close(void) {
  vgpu__lock(&seat_lock);
  vgpu__hang_up();
  vgpu__unlock(&seat_lock);
}

/* In the child of a fork: the connection is the parent's. */
void vgpu__seat_forget(void) {
  seat_lock.word = 0;
  vgpu__hang_up();
}
