/*
 * The socket to the seat. Nothing here blocks: attach.c and monitor.c decide how long to wait for an answer. The
 * program may close any descriptor and then open its own files under the same number. So the socket is checked by its
 * inode before each use.
 */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "region.h"

/* Above the numbers that programs commonly use, or close one by one. */
enum { FIRST_FD = 700 };
static const uint64_t LATE_NS = 250u * NS_PER_MS;
static const uint64_t ASK_NS = 5u * NS_PER_MS; /* how often the kernel is asked about a seat that is late */

/* Whether fd is still the socket that the hook opened. If not, it is the program's: forget it, do not close it. */
static int vgpu__is_ours(struct vgpu_link *link) {
  struct stat seen;
  if (link->fd < 0) return 0;
  if (vgpu__fstat(link->fd, &seen) == 0 && S_ISSOCK(seen.st_mode) && seen.st_ino == link->inode) return 1;
  link->fd = -1;
  return 0;
}

/*
 * shutdown() first: the child of a fork may hold a copy of the descriptor, and the seat must see the end all the same.
 */
static void vgpu__hang_up(struct vgpu_link *link) {
  if (vgpu__is_ours(link)) {
    shutdown(link->fd, SHUT_RDWR);
    vgpu__file_close(link->fd);
  }
  link->fd = -1;
  link->incoming_size = 0;
}

static int vgpu__send_locked(struct vgpu_link *link, const struct shm_message *message) {
  if (!vgpu__is_ours(link)) return -1;
  ssize_t sent = vgpu__socket_send(link->fd, message, sizeof *message);
  if (sent == (ssize_t)sizeof *message) return 0;
  /* Full buffer: the seat is stopped, and a waiting thread asks again. Partial message or other error: reconnect. */
  if (sent < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOBUFS)) return 0;
  vgpu__hang_up(link);
  return -1;
}

static void vgpu__fill(const struct vgpu_tenant *tenant, struct shm_message *message, uint32_t type) {
  memset(message, 0, sizeof *message);
  message->type = type;
  message->version = (uint32_t)SHM_MESSAGE_VERSION;
  message->layout_major = (uint32_t)SHM_LAYOUT_MAJOR;
  message->slot_number = LOAD(tenant->mode) == VGPU_ATTACHED ? tenant->slot_number : (uint32_t)SHM_NO_SLOT;
  message->pid = (uint32_t)getpid();
}

/* A container sees only its own lease's directory, which contains the same socket. */
static int vgpu__name_socket(const struct vgpu_tenant *tenant, const char *within, struct sockaddr_un *address) {
  int in_lease = within[0] != '\0';
  int length = snprintf(address->sun_path, sizeof address->sun_path, "%s%s%s/hook.sock", tenant->run_dir, within,
                        in_lease ? tenant->lease : "");
  if (length >= 0 && (size_t)length < sizeof address->sun_path) return 0;
  if (!in_lease) vgpu__log("VGPU_RUN_DIR is too long for a socket: %s", tenant->run_dir);
  errno = ENAMETOOLONG;
  return -1;
}

static int vgpu__open_socket(struct vgpu_tenant *tenant, const char *within) {
  struct vgpu_link *link = &tenant->link;
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  struct stat seen;
  if (vgpu__name_socket(tenant, within, &address) != 0) return -1;
  /* First: if another socket gets the name in between, the connection seems replaced, and is made anew. */
  link->within = within;
  link->named_inode = vgpu__stat(address.sun_path, &seen) == 0 ? seen.st_ino : 0;
  link->named_device = link->named_inode == 0 ? 0 : seen.st_dev;
  int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (made < 0) return -1;
  if (vgpu__socket_connect(made, (const struct sockaddr *)&address, sizeof address) != 0) {
    int why = errno;
    vgpu__file_close(made);
    errno = why;
    return -1;
  }
  int higher = vgpu__file_copy(made, FIRST_FD);
  if (higher >= 0) {
    vgpu__file_close(made);
    made = higher;
  }
  return made;
}

void vgpu__seat_welcomed(struct vgpu_tenant *tenant, const struct shm_message *welcome) {
  _Static_assert(sizeof tenant->link.slot_secret < sizeof welcome->text, "it fits");
  memcpy(tenant->link.slot_secret, welcome->text, sizeof tenant->link.slot_secret);
  tenant->link.slot_secret[sizeof tenant->link.slot_secret - 1] = '\0';
}

int vgpu__seat_connect(struct vgpu_tenant *tenant) {
  struct vgpu_link *link = &tenant->link;
  int kept = errno;
  struct shm_message hello;
  vgpu__fill(tenant, &hello, (uint32_t)SHM_MESSAGE_HELLO);
  hello.start_time = vgpu__start_time();
  hello.pid_namespace = vgpu__pid_namespace();
  size_t length = strlen(tenant->lease);
  if (length >= sizeof hello.lease) length = sizeof hello.lease - 1;
  memcpy(hello.lease, tenant->lease, length);
  _Static_assert(sizeof link->secret + sizeof link->slot_secret < sizeof hello.text, "both fit");
  int has_slot = hello.slot_number != SHM_NO_SLOT;
  snprintf((char *)hello.text, sizeof hello.text, "%s%s%s", link->secret, has_slot ? " " : "",
           has_slot ? link->slot_secret : "");
  vgpu__lock(&link->lock);
  vgpu__hang_up(link);
  struct stat seen;
  link->fd = link->barred ? -1 : vgpu__open_socket(tenant, "");
  if (link->fd < 0 && !link->barred && errno == ENOENT) link->fd = vgpu__open_socket(tenant, "/leases/");
  int failed = link->fd < 0 || vgpu__fstat(link->fd, &seen) != 0;
  int why = errno;
  if (!failed) {
    link->inode = seen.st_ino;
    failed = vgpu__send_locked(link, &hello) != 0;
    why = errno;
  }
  vgpu__unlock(&link->lock);
  errno = kept;
  return failed ? (why == 0 ? EIO : why) : 0;
}

void vgpu__seat_send(struct vgpu_tenant *tenant, uint32_t type) {
  struct vgpu_link *link = &tenant->link;
  int kept = errno;
  struct shm_message message;
  vgpu__fill(tenant, &message, type);
  vgpu__lock(&link->lock);
  vgpu__send_locked(link, &message);
  vgpu__unlock(&link->lock);
  errno = kept;
}

int vgpu__seat_receive(struct vgpu_tenant *tenant, struct shm_message *into) {
  struct vgpu_link *link = &tenant->link;
  int kept = errno;
  int result = VGPU_SEAT_NOTHING;
  vgpu__lock(&link->lock);
  if (!vgpu__is_ours(link)) {
    result = VGPU_SEAT_GONE;
  } else {
    char *at = (char *)&link->incoming + link->incoming_size;
    ssize_t size = vgpu__socket_receive(link->fd, at, sizeof link->incoming - link->incoming_size);
    if (size > 0) {
      link->incoming_size += (size_t)size;
    } else if (size == 0 || (errno != EAGAIN && errno != EINTR)) {
      vgpu__hang_up(link);
      result = VGPU_SEAT_GONE;
    }
    if (link->incoming_size == sizeof link->incoming) {
      *into = link->incoming;
      link->incoming_size = 0;
      result = VGPU_SEAT_MESSAGE;
    }
  }
  vgpu__unlock(&link->lock);
  errno = kept;
  return result;
}

void vgpu__seat_await(struct vgpu_tenant *tenant, uint64_t ns) {
  struct vgpu_link *link = &tenant->link;
  vgpu__lock(&link->lock);
  int fd = vgpu__is_ours(link) ? link->fd : -1;
  vgpu__unlock(&link->lock);
  if (fd >= 0) vgpu__socket_wait(fd, ns);
}

/* A socket keeps its inode while one connection to it is open, so no other one has the same. */
int vgpu__seat_is_replaced(struct vgpu_tenant *tenant) {
  struct vgpu_link *link = &tenant->link;
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  struct stat seen;
  int kept = errno;
  vgpu__lock(&link->lock);
  int replaced = link->named_inode != 0 && vgpu__name_socket(tenant, link->within, &address) == 0 &&
                 vgpu__stat(address.sun_path, &seen) == 0 &&
                 (seen.st_ino != link->named_inode || seen.st_dev != link->named_device);
  vgpu__unlock(&link->lock);
  errno = kept;
  return replaced;
}

int vgpu__seat_connected(struct vgpu_tenant *tenant) {
  struct vgpu_link *link = &tenant->link;
  vgpu__lock(&link->lock);
  int ours = vgpu__is_ours(link);
  vgpu__unlock(&link->lock);
  return ours;
}

void vgpu__seat_close(struct vgpu_tenant *tenant) {
  struct vgpu_link *link = &tenant->link;
  vgpu__lock(&link->lock);
  vgpu__hang_up(link);
  vgpu__unlock(&link->lock);
}

/*
 * Sends BYE and bars the link: the lease was left, or was not joined although the seat may have given it a slot. The
 * monitor, which may be reconnecting at this moment, then connects no more.
 */
void vgpu__seat_bar(struct vgpu_tenant *tenant) {
  struct shm_message message;
  vgpu__fill(tenant, &message, (uint32_t)SHM_MESSAGE_BYE);
  vgpu__lock(&tenant->link.lock);
  tenant->link.barred = 1;
  vgpu__send_locked(&tenant->link, &message);
  vgpu__hang_up(&tenant->link);
  vgpu__unlock(&tenant->link.lock);
}

/* In the child of a fork: the connection is the parent's, so close without shutdown(). */
void vgpu__seat_forget(struct vgpu_tenant *tenant) {
  struct vgpu_link *link = &tenant->link;
  link->lock.word = 0;
  if (vgpu__is_ours(link)) vgpu__file_close(link->fd);
  link->fd = -1;
  link->incoming_size = 0;
}

static const struct shm_grant_more *vgpu__grant_more(const struct vgpu_tenant *tenant) {
  return (const void *)((const char *)tenant->seat + SHM_GRANT_MORE_OFFSET);
}

/* Whether nothing can be said of the seat's process from here. */
static int vgpu__seat_is_hidden(const struct vgpu_tenant *tenant, uint64_t pid) {
  if (tenant->region == NULL || pid == 0) return 0;
  return LOAD(vgpu__grant_more(tenant)->pid_namespace) != vgpu__pid_namespace() || vgpu__process_is_hidden(pid);
}

/* A seat that is hidden runs as long as its connection has not ended. */
static int vgpu__seat_runs(struct vgpu_tenant *tenant, uint64_t now) {
  if ((int64_t)(now - LOAD(tenant->seat_ran_ns)) < (int64_t)ASK_NS) return 1;
  int kept = errno;
  uint64_t pid = LOAD(tenant->seat->seat_pid);
  int runs = vgpu__process_runs(pid, LOAD(tenant->seat->seat_start)) ||
             (vgpu__seat_is_hidden(tenant, pid) && vgpu__seat_connected(tenant));
  errno = kept;
  if (runs) STORE(tenant->seat_ran_ns, now);
  return runs;
}

/* The word of an earlier holder tells nothing: the present one may be of a version that does not write it. */
const uint32_t *vgpu__seat_thread(const struct vgpu_tenant *tenant) {
  if (tenant->region == NULL) return NULL;
  const struct shm_grant_more *more = vgpu__grant_more(tenant);
  uint64_t pid = LOAD(tenant->seat->seat_pid);
  return pid == 0 || LOAD(more->seat_thread_of) != pid || LOAD_ACQUIRE(more->seat_thread) == 0 ? NULL
                                                                                               : &more->seat_thread;
}

int vgpu__seat_has_ended(const struct vgpu_tenant *tenant) {
  const uint32_t *thread = vgpu__seat_thread(tenant);
  return thread != NULL && (LOAD_ACQUIRE(*thread) & SHM_SEAT_THREAD_ENDED) != 0;
}

void vgpu__seat_pass_on_end(const struct vgpu_tenant *tenant) {
  const uint32_t *thread = vgpu__seat_thread(tenant);
  int kept = errno;
  if (thread != NULL) syscall(SYS_futex, thread, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
  errno = kept;
}

/*
 * Whether the seat counts as silent. A heartbeat from the future counts as none. A live seat may be scheduled late
 * under load; going on without it would exceed the lease's share, or lose it. So the seat is given LATE_NS while its
 * process runs. A resting seat beats seldom, and also gets LATE_NS.
 */
int vgpu__seat_is_silent(struct vgpu_tenant *tenant, uint64_t now) {
  if (vgpu__seat_has_ended(tenant)) return 1;
  uint64_t beat = LOAD_ACQUIRE(tenant->seat->heartbeat_ns);
  if (beat > now + 1000u * (uint64_t)NS_PER_MS || beat + LATE_NS < now) return 1;
  if (beat + VGPU_SILENCE_NS >= now || vgpu__seat_rests(tenant)) return 0;
  return !vgpu__seat_runs(tenant, now);
}
