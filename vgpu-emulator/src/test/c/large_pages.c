/*
 * To be preloaded: lets a program map memory only as a kernel with pages of 64 KiB does, which aarch64 has. A mapping
 * begins at a multiple of 64 KiB, in memory and in its file, or the call fails with EINVAL. A mapping or a removal
 * covers whole pages. sysconf still tells this machine's page size, which the libraries' own segments follow.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 65536 };

static size_t whole(size_t length) {
    return (length + PAGE - 1) / PAGE * PAGE;
}

static int is_aligned(const void *address) {
    return (uintptr_t)address % PAGE == 0;
}

static void *refused(void) {
    errno = EINVAL;
    return MAP_FAILED;
}

static void *map(void *at, size_t length, int protection, int flags, int fd, off_t offset) {
    return (void *)(uintptr_t)syscall(SYS_mmap, at, length, protection, flags, fd, offset);
}

void *mmap(void *at, size_t length, int protection, int flags, int fd, off_t offset) {
    if (offset % PAGE != 0 || ((flags & MAP_FIXED) != 0 && !is_aligned(at)) || length == 0)
        return refused();
    if ((flags & MAP_FIXED) != 0)
        return map(at, whole(length), protection, flags, fd, offset);
    size_t taken = whole(length) + PAGE;
    char *place = map(NULL, taken, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (place == MAP_FAILED)
        return MAP_FAILED;
    char *from = (char *)(whole((size_t)(uintptr_t)place)), *to = from + whole(length);
    if (from > place)
        syscall(SYS_munmap, place, (size_t)(from - place));
    if (place + taken > to)
        syscall(SYS_munmap, to, (size_t)(place + taken - to));
    void *mapped = map(from, whole(length), protection, flags | MAP_FIXED, fd, offset);
    if (mapped == MAP_FAILED)
        syscall(SYS_munmap, from, whole(length));
    return mapped;
}

int munmap(void *at, size_t length) {
    if (!is_aligned(at)) {
        errno = EINVAL;
        return -1;
    }
    return (int)syscall(SYS_munmap, at, whole(length));
}

void *mremap(void *at, size_t length, size_t new_length, int flags, ...) {
    va_list values;
    va_start(values, flags);
    void *to = (flags & MREMAP_FIXED) != 0 ? va_arg(values, void *) : NULL;
    va_end(values);
    if (!is_aligned(at) || ((flags & MREMAP_FIXED) != 0 && !is_aligned(to)))
        return refused();
    return (void *)(uintptr_t)syscall(SYS_mremap, at, whole(length), whole(new_length), flags, to);
}
