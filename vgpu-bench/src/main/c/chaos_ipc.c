/*
 * The random program's memory for other processes: a handle in a file of its own, which any other of the node may read, at any moment,
 * also when the memory is freed or its owner is gone. Who owns it pays for it.
 */
#define _GNU_SOURCE
#include "chaos.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PREFIX "ipc-"

static bool place(char *path, size_t size, const char *name) {
  const char *run = getenv("VGPU_RUN_DIR");
  int length = run == NULL ? -1 : snprintf(path, size, "%s/../%s", run, name);
  return length > 0 && (size_t)length < size;
}

void chaos_export(struct worker *worker, CUdeviceptr pointer) {
  struct chaos *chaos = worker->chaos;
  struct ipc_handle handle;
  char name[32], path[512];
  snprintf(name, sizeof name, PREFIX "%d", (int)getpid());
  if (chaos->ipc_get == NULL || !place(path, sizeof path, name)) {
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
    (void)written; /* a reader takes a whole one or none */
    close(fd);
  }
}

/* The handle that one of the other processes has told of last, whoever it is. */
static bool find(struct worker *worker, struct ipc_handle *handle) {
  char directory[512], name[32], chosen[32] = "", path[512];
  unsigned seen = 0;
  snprintf(name, sizeof name, PREFIX "%d", (int)getpid());
  DIR *entries = place(directory, sizeof directory, "") ? opendir(directory) : NULL;
  for (struct dirent *entry = NULL; entries != NULL && (entry = readdir(entries)) != NULL;) {
    if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) == 0 && strcmp(entry->d_name, name) != 0 &&
        strlen(entry->d_name) < sizeof chosen && random_next(&worker->random) % ++seen == 0) {
      strcpy(chosen, entry->d_name);
    }
  }
  if (entries != NULL) {
    closedir(entries);
  }
  if (chosen[0] == '\0' || !place(path, sizeof path, chosen)) {
    return false;
  }
  int fd = open(path, O_RDONLY | O_CLOEXEC);
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
  /* It may be freed, or its owner gone. */
  bool gone = result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_INVALID_HANDLE || result == CUDA_ERROR_MAP_FAILED;
  return gone ? CUDA_ERROR_NOT_SUPPORTED : result;
}
