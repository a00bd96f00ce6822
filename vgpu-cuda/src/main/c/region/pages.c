/* The shared pages: mapping their files, and the fixed address range of each tenant. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "region.h"

void *vgpu__map_file(const char *path, uint64_t size, uint64_t magic, uint64_t slot_count, int writable) {
  struct stat seen;
  int fd = vgpu__file_open(path, (writable ? O_RDWR : O_RDONLY) | O_NOFOLLOW);
  if (fd < 0) {
    vgpu__log("cannot open %s: %s", path, strerror(errno));
    return NULL;
  }
  /* Access beyond the file's end would raise SIGBUS, so check the size first. */
  if (vgpu__fstat(fd, &seen) != 0) seen.st_size = -1;
  if (seen.st_size < 0 || !S_ISREG(seen.st_mode) || (uint64_t)seen.st_size != size) {
    vgpu__log("%s has %lld bytes, not %llu", path, (long long)seen.st_size, (unsigned long long)size);
    vgpu__file_close(fd);
    return NULL;
  }
  int access = PROT_READ | (writable ? PROT_WRITE : 0);
  void *pages = mmap(NULL, (size_t)size, access, MAP_SHARED, fd, 0);
  vgpu__file_close(fd);
  if (pages == MAP_FAILED) {
    vgpu__log("cannot map %s: %s", path, strerror(errno));
    return NULL;
  }
  const struct shm_header *header = pages;
  uint64_t deadline = vgpu__now_ns() + (uint64_t)VGPU_PATIENCE_MS * NS_PER_MS;
  while (LOAD_ACQUIRE(header->magic) == 0 && vgpu__now_ns() < deadline) vgpu__sleep_ns(NS_PER_MS);
  if (LOAD_ACQUIRE(header->magic) != magic || header->size != size || header->slot_count != slot_count) {
    vgpu__log("%s is not a valid shared-page file", path);
  } else if (header->layout_major != SHM_LAYOUT_MAJOR) {
    vgpu__log("%s has layout %u; this hook knows %u", path, header->layout_major, (unsigned)SHM_LAYOUT_MAJOR);
  } else {
    return pages;
  }
  munmap(pages, (size_t)size);
  return NULL;
}

/*
 * A tenant's pages keep their address range for the life of the process: a thread may read them at any moment, even
 * after the lease has ended. A new mapping replaces the old one in one step.
 */
int vgpu__region_make(struct vgpu_tenant *tenant) {
  if (tenant->region != NULL) return 0;
  void *place = mmap(NULL, VGPU_REGION, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED) return -1;
  tenant->region = place;
  return 0;
}

void *vgpu__region_move(struct vgpu_tenant *tenant, size_t offset, void *pages, size_t size) {
  void *moved = mremap(pages, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, tenant->region + offset);
  if (moved != MAP_FAILED) return moved;
  munmap(pages, size);
  return NULL;
}

void vgpu__pages_leave(struct vgpu_tenant *tenant) {
  if (tenant->region == NULL) return;
  char *pages = mmap(NULL, VGPU_REGION, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return; /* the lease's own pages then say the same: it has ended */
  struct shm_grant *grant = (void *)(pages + SHM_GRANT_OFFSET);
  grant->word = (uint32_t)SHM_GRANT_REVOKED;
  vgpu__region_move(tenant, 0, pages, VGPU_REGION);
}
