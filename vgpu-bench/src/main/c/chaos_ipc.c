/*
 * The random program shares memory with other processes in two ways: a handle in a file that any process of the node
 * may read, and a descriptor sent to one of them. It does so at any moment, even if the memory is freed or its owner
 * has ended. The owner is charged.
 */
#define _GNU_SOURCE
#include "chaos.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define HANDLES "ipc-"
#define MAILBOXES "fd-"

enum { AS_DESCRIPTOR = 1 /* CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR */ };

static bool place(char *path, size_t size, const char *name) {
  const char *run = getenv("VGPU_RUN_DIR");
  int length = run == NULL ? -1 : snprintf(path, size, "%s/../%s", run, name);
  return length > 0 && (size_t)length < size;
}

static bool own_place(char *path, size_t size, const char *prefix) {
  char name[32];
  snprintf(name, sizeof name, "%s%d", prefix, (int)getpid());
  return place(path, size, name);
}

/* The path of a randomly chosen other process. */
static bool other_place(struct worker *worker, char *path, size_t size, const char *prefix) {
  char directory[512], name[32], chosen[32] = "";
  unsigned seen = 0;
  snprintf(name, sizeof name, "%s%d", prefix, (int)getpid());
  DIR *entries = place(directory, sizeof directory, "") ? opendir(directory) : NULL;
  for (struct dirent *entry = NULL; entries != NULL && (entry = readdir(entries)) != NULL;) {
    if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0 && strcmp(entry->d_name, name) != 0 &&
        strlen(entry->d_name) < sizeof chosen && random_next(&worker->random) % ++seen == 0) {
      strcpy(chosen, entry->d_name);
    }
  }
  if (entries != NULL) {
    closedir(entries);
  }
  return chosen[0] != '\0' && place(path, size, chosen);
}

/* ---- handles ---- */

void chaos_export(struct worker *worker, CUdeviceptr pointer) {
  struct chaos *chaos = worker->chaos;
  struct ipc_handle handle;
  char path[512];
  if (chaos->ipc_get == NULL || !own_place(path, sizeof path, HANDLES)) {
    return;
  }
  chaos_enter(worker, IMPORTED);
  CUresult result = chaos_leave(worker, WAIT_MEMORY, chaos->ipc_get(&handle, pointer));
  if (!chaos_accept(worker, IMPORTED, result)) {
    return;
  }
  int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd >= 0) {
    ssize_t written = pwrite(fd, &handle, sizeof handle, 0);
    (void)written; /* a reader gets a complete handle or none */
    close(fd);
  }
}

/* Reads the handle that another process announced last. */
static bool find(struct worker *worker, struct ipc_handle *handle) {
  char path[512];
  int fd = other_place(worker, path, sizeof path, HANDLES) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  bool whole = fd >= 0 && read(fd, handle, sizeof *handle) == (ssize_t)sizeof *handle;
  if (fd >= 0) {
    close(fd);
  }
  return whole;
}

CUresult chaos_import(struct worker *worker, CUdeviceptr *pointer) {
  struct ipc_handle handle;
  if (!find(worker, &handle)) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  chaos_enter(worker, IMPORTED);
  CUresult result = chaos_leave(worker, WAIT_MEMORY, worker->chaos->ipc_open(pointer, handle, 1));
  /* The memory may be freed, or its owner may have ended. */
  bool gone = result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_INVALID_HANDLE ||
              result == CUDA_ERROR_MAP_FAILED;
  return gone ? CUDA_ERROR_NOT_SUPPORTED : result;
}

/* ---- descriptors ---- */

struct letter {
  uint64_t size; /* of the memory */
  struct iovec part;
  union {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr aligned;
  } control;
  struct msghdr message;
};

static void prepare(struct letter *letter) {
  *letter = (struct letter){.part = {&letter->size, sizeof letter->size}};
  letter->message = (struct msghdr){.msg_iov = &letter->part,
                                    .msg_iovlen = 1,
                                    .msg_control = letter->control.bytes,
                                    .msg_controllen = sizeof letter->control.bytes};
}

void chaos_open_mailbox(struct chaos *chaos) {
  struct sockaddr_un name = {.sun_family = AF_UNIX};
  chaos->mailbox = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (chaos->mailbox >= 0 && own_place(name.sun_path, sizeof name.sun_path, MAILBOXES)) {
    unlink(name.sun_path); /* of an earlier process with this pid */
    if (bind(chaos->mailbox, (const struct sockaddr *)&name, sizeof name) == 0) {
      return;
    }
  }
  fail("a mailbox", chaos->mailbox);
}

void chaos_send(struct worker *worker, uint64_t handle, uint64_t size) {
  struct chaos *chaos = worker->chaos;
  struct sockaddr_un to = {.sun_family = AF_UNIX};
  struct letter letter;
  int fd = -1;
  if (!other_place(worker, to.sun_path, sizeof to.sun_path, MAILBOXES)) {
    return;
  }
  chaos_enter(worker, TAKEN);
  CUresult result = chaos_leave(worker, WAIT_MEMORY, chaos->share(&fd, handle, AS_DESCRIPTOR, 0));
  if (!chaos_accept(worker, TAKEN, result)) {
    return;
  }
  prepare(&letter);
  letter.size = size;
  letter.message.msg_name = &to;
  letter.message.msg_namelen = sizeof to;
  struct cmsghdr *header = CMSG_FIRSTHDR(&letter.message);
  *header = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
  memcpy(CMSG_DATA(header), &fd, sizeof fd);
  /* The receiver may be stopped, have a full queue, or have ended. */
  if (sendmsg(chaos->mailbox, &letter.message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno == ECONNREFUSED) {
    unlink(to.sun_path);
  }
  close(fd);
}

/* If nothing has arrived, returns the error of an unsupported call. */
CUresult chaos_take(struct worker *worker, uint64_t *handle, uint64_t *size) {
  struct chaos *chaos = worker->chaos;
  struct letter letter;
  int fd;
  prepare(&letter);
  ssize_t got = recvmsg(chaos->mailbox, &letter.message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  const struct cmsghdr *header = got < 0 ? NULL : CMSG_FIRSTHDR(&letter.message);
  if (header == NULL || header->cmsg_type != SCM_RIGHTS) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  memcpy(&fd, CMSG_DATA(header), sizeof fd);
  *size = letter.size;
  chaos_enter(worker, TAKEN);
  CUresult result = chaos_leave(worker, WAIT_MEMORY, chaos->import(handle, (void *)(intptr_t)fd, AS_DESCRIPTOR));
  close(fd);
  atomic_fetch_add(&chaos->taken, result == CUDA_SUCCESS);
  return result;
}
