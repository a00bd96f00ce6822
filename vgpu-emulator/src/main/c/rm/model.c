#include "model.h"

#include "objects.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { MAX_FILES = 8 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static ino_t files[MAX_FILES];
emu_rm_behaviour emu_rm_behaviour_now;

/* ---- files and memory, as the kernel sees them ---- */

static ino_t inode_of(int fd) {
    struct stat status;
    return syscall(SYS_fstat, fd, &status) == 0 ? status.st_ino : 0;
}

int emu_rm_open(void) {
    int fd = (int)syscall(SYS_memfd_create, "nvidiactl (emulated)", 1U /* close on exec */);
    ino_t inode = fd < 0 ? 0 : inode_of(fd);
    pthread_mutex_lock(&lock);
    int slot = 0;
    while (slot < MAX_FILES && files[slot] != 0) {
        slot++;
    }
    if (inode != 0 && slot < MAX_FILES) {
        files[slot] = inode;
        inode = 0;
    }
    pthread_mutex_unlock(&lock);
    if (fd >= 0 && inode != 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* The file's inode, or 0 if it is not one of ours. The caller holds the lock. */
static ino_t our_file(int fd) {
    ino_t inode = fd < 0 ? 0 : inode_of(fd);
    for (int i = 0; i < MAX_FILES && inode != 0; i++) {
        if (files[i] == inode) {
            return inode;
        }
    }
    return 0;
}

/* Like the kernel, fails the call on a bad pointer instead of faulting. */
bool emu_rm_copy_in(void *to, uint64_t from, size_t size) {
    struct iovec local = {.iov_base = to, .iov_len = size};
    struct iovec remote = {.iov_base = (void *)(uintptr_t)from, .iov_len = size};
    return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)size;
}

bool emu_rm_copy_out(uint64_t to, const void *from, size_t size) {
    struct iovec local = {.iov_base = (void *)(uintptr_t)from, .iov_len = size};
    struct iovec remote = {.iov_base = (void *)(uintptr_t)to, .iov_len = size};
    return process_vm_writev(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)size;
}

/* ---- configured misbehaviour ---- */

static void read_behaviour(void) {
    const char *text = getenv("VGPU_EMULATOR_RM");
    emu_rm_behaviour_now.read = true;
    strcpy(emu_rm_behaviour_now.version, "580.00.00");
    while (text != NULL && *text != '\0') {
        size_t length = strcspn(text, ",");
        if (strncmp(text, "version=", 8) == 0 && length - 8 < sizeof emu_rm_behaviour_now.version) {
            memset(emu_rm_behaviour_now.version, 0, sizeof emu_rm_behaviour_now.version);
            memcpy(emu_rm_behaviour_now.version, text + 8, length - 8);
        } else if (strncmp(text, "refuse=", 7) == 0 &&
                   emu_rm_behaviour_now.refused_count < RM_MAX_REFUSED) {
            emu_rm_behaviour_now.refused[emu_rm_behaviour_now.refused_count++] =
                (uint32_t)strtoul(text + 7, NULL, 16);
        } else if (strncmp(text, "slow=", 5) == 0) {
            emu_rm_behaviour_now.slow_us = strtoull(text + 5, NULL, 10);
        } else if (strncmp(text, "late=", 5) == 0) {
            emu_rm_behaviour_now.late_us = strtoull(text + 5, NULL, 10);
        } else if (strncmp(text, "stuck", 5) == 0) {
            emu_rm_behaviour_now.stuck = true;
        }
        text += length + (text[length] == ',' ? 1 : 0);
    }
}

bool emu_rm_is_refused(uint32_t command) {
    for (int i = 0; i < emu_rm_behaviour_now.refused_count; i++) {
        if (emu_rm_behaviour_now.refused[i] == command) {
            return true;
        }
    }
    return false;
}

/* ---- calls ---- */

static int fail(int why) {
    errno = why;
    return -1;
}

static int call_allocate(ino_t file, size_t size, uint64_t argument) {
    rm_alloc_rights call = {.status = RM_OK};
    rm_alloc old;
    if (size == sizeof call) {
        if (!emu_rm_copy_in(&call, argument, size)) {
            return fail(EFAULT);
        }
        call.status = emu_rm_allocate(file, &call);
        return emu_rm_copy_out(argument, &call, size) ? 0 : fail(EFAULT);
    }
    if (size != sizeof old) {
        return fail(EINVAL);
    }
    if (!emu_rm_copy_in(&old, argument, size)) {
        return fail(EFAULT);
    }
    call.root = old.root;
    call.parent = old.parent;
    call.made = old.made;
    call.class = old.class;
    call.params = old.params;
    call.params_size = old.params_size;
    old.status = emu_rm_allocate(file, &call);
    old.made = call.made;
    return emu_rm_copy_out(argument, &old, size) ? 0 : fail(EFAULT);
}

static int call_free(ino_t file, size_t size, uint64_t argument) {
    rm_free call;
    if (size != sizeof call) {
        return fail(EINVAL);
    }
    if (!emu_rm_copy_in(&call, argument, size)) {
        return fail(EFAULT);
    }
    call.status = emu_rm_release(file, &call);
    return emu_rm_copy_out(argument, &call, size) ? 0 : fail(EFAULT);
}

static int call_control(ino_t file, size_t size, uint64_t argument) {
    rm_control call;
    if (size != sizeof call) {
        return fail(EINVAL);
    }
    if (!emu_rm_copy_in(&call, argument, size)) {
        return fail(EFAULT);
    }
    call.status = emu_rm_control(file, &call);
    return emu_rm_copy_out(argument, &call, size) ? 0 : fail(EFAULT);
}

/* Both sides have the same version here, so it is returned whatever the caller asks. */
static int call_version(size_t size, uint64_t argument) {
    rm_version call;
    if (size != sizeof call) {
        return fail(EINVAL);
    }
    if (!emu_rm_copy_in(&call, argument, size)) {
        return fail(EFAULT);
    }
    memcpy(call.version, emu_rm_behaviour_now.version, sizeof call.version);
    call.reply = 1;
    return emu_rm_copy_out(argument, &call, size) ? 0 : fail(EFAULT);
}

static int dispatch(ino_t file, unsigned int number, size_t size, uint64_t argument) {
    switch (number) {
    case RM_ESC_ALLOC:
        return call_allocate(file, size, argument);
    case RM_ESC_FREE:
        return call_free(file, size, argument);
    case RM_ESC_CONTROL:
        return call_control(file, size, argument);
    case RM_ESC_CHECK_VERSION:
        return call_version(size, argument);
    default:
        return fail(EINVAL);
    }
}

static int model(ino_t file, unsigned long request, uint64_t argument) {
    unsigned int number = (unsigned int)_IOC_NR(request);
    size_t size = _IOC_SIZE(request);
    if (_IOC_TYPE(request) != RM_IOC_MAGIC) {
        return fail(EINVAL);
    }
    if (number == RM_ESC_XFER) {
        rm_xfer transfer;
        if (size != sizeof transfer || !emu_rm_copy_in(&transfer, argument, size)) {
            return fail(size == sizeof transfer ? EFAULT : EINVAL);
        }
        number = transfer.command;
        size = transfer.size;
        argument = transfer.pointer;
    }
    return dispatch(file, number, size, argument);
}

int emu_rm_ioctl(int fd, unsigned long request, ...) {
    va_list arguments;
    va_start(arguments, request);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    pthread_mutex_lock(&lock);
    ino_t file = our_file(fd);
    if (file == 0) {
        pthread_mutex_unlock(&lock);
        return (int)syscall(SYS_ioctl, fd, request, argument);
    }
    if (!emu_rm_behaviour_now.read) {
        read_behaviour();
    }
    uint64_t slow_us = _IOC_NR(request) == RM_ESC_CONTROL ? emu_rm_behaviour_now.slow_us : 0;
    int result = model(file, request, (uint64_t)(uintptr_t)argument);
    pthread_mutex_unlock(&lock);
    if (slow_us > 0) {
        int kept = errno;
        emu_sleep_until(emu_now_ns() + slow_us * 1000);
        errno = kept;
    }
    return result;
}

bool emu_rm_bind(uint32_t client, uint32_t group, emu_gpu *gpu, uint32_t context) {
    pthread_mutex_lock(&lock);
    bool found = emu_rm_objects_bind(client, group, gpu, context);
    pthread_mutex_unlock(&lock);
    return found;
}

/* Closing a file releases all clients that were created through it. */
void emu_rm_close(int fd) {
    pthread_mutex_lock(&lock);
    ino_t file = our_file(fd);
    if (file != 0) {
        emu_rm_objects_close(file);
    }
    for (int i = 0; i < MAX_FILES && file != 0; i++) {
        files[i] = files[i] == file ? 0 : files[i];
    }
    pthread_mutex_unlock(&lock);
    if (file != 0) {
        close(fd);
    }
}

void emu_rm_forget(int fd) {
    pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;
    memcpy(&lock, &unlocked, sizeof unlocked);
    if (our_file(fd) != 0) {
        close(fd);
    }
    emu_rm_objects_forget();
    memset(files, 0, sizeof files);
}

uint32_t emu_rm_object_count(void) {
    pthread_mutex_lock(&lock);
    uint32_t count = emu_rm_objects_count();
    pthread_mutex_unlock(&lock);
    return count;
}
