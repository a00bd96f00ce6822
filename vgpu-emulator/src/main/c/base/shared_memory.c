#include "shared_memory.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* memfd_create() is newer than the oldest supported glibc. The numbers: arch/x86/entry/syscalls/syscall_64.tbl and
 * include/uapi/asm-generic/unistd.h of Linux. */
#if !defined(SYS_memfd_create) && defined(__aarch64__)
#define SYS_memfd_create 279
#elif !defined(SYS_memfd_create)
#define SYS_memfd_create 319
#endif
#define CLOSE_ON_EXEC 1u
#define PREFIX "vgpu-emulator-"

/* A mapping begins at a multiple of the kernel's page, which may have 64 KiB on aarch64. */
enum { PAGE = 65536, NAME_SIZE = 64 };

int emu_shared_memory_make(const char *what, uint64_t bytes) {
    char name[NAME_SIZE];
    snprintf(name, sizeof name, PREFIX "%s", what);
    int fd = (int)syscall(SYS_memfd_create, name, CLOSE_ON_EXEC);
    if (fd >= 0 && ftruncate(fd, (off_t)bytes) != 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

bool emu_shared_memory_is(int fd, const char *what) {
    char path[NAME_SIZE];
    char name[NAME_SIZE + 16];
    char found[NAME_SIZE + 64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(path, found, sizeof found - 1);
    if (length < 0) {
        return false;
    }
    found[length] = '\0';
    snprintf(name, sizeof name, "/memfd:" PREFIX "%s", what);
    return strncmp(found, name, strlen(name)) == 0 && strchr(" ", found[strlen(name)]) != NULL;
}

int emu_shared_memory_copy(int fd) {
    return fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

/* A direct system call, because glibc's fstat() has a symbol version newer than 2.17. */
bool emu_shared_memory_identify(int fd, uint64_t *inode, uint64_t *bytes) {
    struct stat status;
    if (syscall(SYS_fstat, fd, &status) != 0) {
        return false;
    }
    *inode = (uint64_t)status.st_ino;
    *bytes = (uint64_t)status.st_size;
    return true;
}

uint64_t emu_shared_memory_map(int fd, uint64_t offset, uint64_t bytes, uint64_t *base,
                               uint64_t *length) {
    uint64_t from = offset / PAGE * PAGE;
    if (bytes == 0 || bytes > UINT64_MAX / 2 || offset > UINT64_MAX / 4) {
        return 0;
    }
    *length = (offset + bytes - from + PAGE - 1) / PAGE * PAGE;
    void *map =
        mmap(NULL, *length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, (off_t)from);
    if (map == MAP_FAILED) {
        return 0;
    }
    madvise(map, *length, MADV_DONTFORK);
    *base = (uint64_t)(uintptr_t)map;
    return *base + (offset - from);
}
