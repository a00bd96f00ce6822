#include "rm_model.h"

#include "rm_abi.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { MAX_OBJECTS = 4096, MAX_FILES = 8, MAX_REFUSED = 8, MAX_TIMESLICE_US = 1000000 };

typedef struct {
    uint32_t client; /* 0: free */
    uint32_t handle;
    uint32_t parent;
    uint32_t class;
    ino_t file; /* clients: that made them */
    bool is_disabled;
    emu_gpu *gpu; /* groups: whose context they are */
    uint32_t context;
    uint64_t timeslice_us;
} rm_object;

typedef struct {
    bool read;
    bool stuck;
    uint32_t refused[MAX_REFUSED];
    int refused_count;
    uint64_t slow_us;
    char version[64];
} rm_behaviour;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static rm_object objects[MAX_OBJECTS];
static ino_t files[MAX_FILES];
static uint32_t clients_made;
static rm_behaviour behaviour;

static const uint64_t default_timeslice_us = 128 << 3;

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

/* With the lock: the file's inode, or 0 if it is none of ours. */
static ino_t our_file(int fd) {
    ino_t inode = fd < 0 ? 0 : inode_of(fd);
    for (int i = 0; i < MAX_FILES && inode != 0; i++) {
        if (files[i] == inode) {
            return inode;
        }
    }
    return 0;
}

/* A bad pointer is an error of the call, not a fault. */
static bool copy_in(void *to, uint64_t from, size_t size) {
    struct iovec local = {.iov_base = to, .iov_len = size};
    struct iovec remote = {.iov_base = (void *)(uintptr_t)from, .iov_len = size};
    return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)size;
}

static bool copy_out(uint64_t to, const void *from, size_t size) {
    struct iovec local = {.iov_base = (void *)(uintptr_t)from, .iov_len = size};
    struct iovec remote = {.iov_base = (void *)(uintptr_t)to, .iov_len = size};
    return process_vm_writev(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)size;
}

/* ---- how it misbehaves ---- */

static void read_behaviour(void) {
    const char *text = getenv("VGPU_EMULATOR_RM");
    behaviour.read = true;
    strcpy(behaviour.version, "580.00.00");
    while (text != NULL && *text != '\0') {
        size_t length = strcspn(text, ",");
        if (strncmp(text, "version=", 8) == 0 && length - 8 < sizeof behaviour.version) {
            memset(behaviour.version, 0, sizeof behaviour.version);
            memcpy(behaviour.version, text + 8, length - 8);
        } else if (strncmp(text, "refuse=", 7) == 0 && behaviour.refused_count < MAX_REFUSED) {
            behaviour.refused[behaviour.refused_count++] = (uint32_t)strtoul(text + 7, NULL, 16);
        } else if (strncmp(text, "slow=", 5) == 0) {
            behaviour.slow_us = strtoull(text + 5, NULL, 10);
        } else if (strncmp(text, "stuck", 5) == 0) {
            behaviour.stuck = true;
        }
        text += length + (text[length] == ',' ? 1 : 0);
    }
}

static bool is_refused(uint32_t command) {
    for (int i = 0; i < behaviour.refused_count; i++) {
        if (behaviour.refused[i] == command) {
            return true;
        }
    }
    return false;
}

/* ---- objects; all with the lock ---- */

static rm_object *find(uint32_t client, uint32_t handle) {
    for (int i = 0; i < MAX_OBJECTS && client != 0; i++) {
        if (objects[i].client == client && objects[i].handle == handle) {
            return &objects[i];
        }
    }
    return NULL;
}

static rm_object *free_object(void) {
    for (int i = 0; i < MAX_OBJECTS; i++) {
        if (objects[i].client == 0) {
            return &objects[i];
        }
    }
    return NULL;
}

/* A client is taken only with the file that made it: being another process, or root, does not
 * help. */
static bool owns(ino_t file, uint32_t client) {
    const rm_object *root = find(client, client);
    return root != NULL && root->file == file;
}

/* Stops the context of a group, or lets it go on, as the group and its channels say. */
static void apply(const rm_object *group) {
    bool stopped = group->is_disabled;
    for (int i = 0; i < MAX_OBJECTS; i++) {
        stopped |= objects[i].client == group->client && objects[i].parent == group->handle &&
                   objects[i].is_disabled;
    }
    if (group->gpu != NULL && !behaviour.stuck) {
        emu_gpu_stop_context(group->gpu, group->context, stopped);
    }
}

static bool may_be_child(uint32_t class, uint32_t parent) {
    switch (class) {
        case RM_CLASS_DEVICE: return parent == RM_CLASS_ROOT;
        case RM_CLASS_SUBDEVICE:
        case RM_CLASS_CHANNEL_GROUP: return parent == RM_CLASS_DEVICE;
        case RM_CLASS_CHANNEL: return parent == RM_CLASS_CHANNEL_GROUP || parent == RM_CLASS_DEVICE;
        default: return false;
    }
}

static uint32_t make_root(ino_t file, uint32_t *made) {
    rm_object *object = free_object();
    if (object == NULL) {
        return RM_ERR_NO_MEMORY;
    }
    /* Not the same in two processes, nor for two clients of one. */
    uint32_t handle = 0xc1d00000u | ((uint32_t)getpid() << 6 & 0xfffc0u) | (clients_made++ & 0x3fu);
    *object = (rm_object){.client = handle, .handle = handle, .class = RM_CLASS_ROOT, .file = file};
    *made = handle;
    return RM_OK;
}

static uint32_t allocate(ino_t file, rm_alloc_rights *call) {
    if (call->class == RM_CLASS_ROOT || call->class == 0) {
        return make_root(file, &call->made);
    }
    if (!owns(file, call->root)) {
        return RM_ERR_INVALID_CLIENT;
    }
    const rm_object *parent = find(call->root, call->parent);
    if (parent == NULL) {
        return RM_ERR_INVALID_PARENT;
    }
    if (!may_be_child(call->class, parent->class)) {
        return RM_ERR_INVALID_CLASS;
    }
    if (call->class == RM_CLASS_CHANNEL_GROUP && call->params_size < sizeof(rm_group_params)) {
        return RM_ERR_INVALID_PARAM_STRUCT;
    }
    if (call->made == 0 || find(call->root, call->made) != NULL) {
        return call->made == 0 ? RM_ERR_INVALID_ARGUMENT : RM_ERR_DUPLICATE;
    }
    rm_object *object = free_object();
    if (object == NULL) {
        return RM_ERR_NO_MEMORY;
    }
    *object = (rm_object){.client = call->root,
                          .handle = call->made,
                          .parent = call->parent,
                          .class = call->class,
                          .timeslice_us = default_timeslice_us};
    return RM_OK;
}

/* Takes an object with all below it. */
static void drop(uint32_t client, uint32_t handle) {
    for (int i = 0; i < MAX_OBJECTS; i++) {
        if (objects[i].client == client && objects[i].handle != client &&
            objects[i].parent == handle) {
            uint32_t child = objects[i].handle;
            uint32_t parent = objects[i].parent;
            objects[i].parent = 0; /* however they were made: no circles */
            drop(client, child);
            rm_object *group = find(client, parent);
            if (group != NULL && group->class == RM_CLASS_CHANNEL_GROUP) {
                apply(group);
            }
        }
    }
    rm_object *object = find(client, handle);
    if (object != NULL) {
        *object = (rm_object){.client = 0};
    }
}

static uint32_t release(ino_t file, const rm_free *call) {
    if (!owns(file, call->root)) {
        return RM_ERR_INVALID_CLIENT;
    }
    if (find(call->root, call->old) == NULL) {
        return RM_ERR_OBJECT_NOT_FOUND;
    }
    drop(call->root, call->old);
    return RM_OK;
}

/* ---- control calls ---- */

static uint32_t set_timeslice(rm_object *group, uint64_t timeslice_us) {
    if (timeslice_us < 1 || timeslice_us > MAX_TIMESLICE_US) {
        return RM_ERR_NOT_SUPPORTED;
    }
    group->timeslice_us = timeslice_us;
    if (group->gpu != NULL) {
        emu_gpu_slice_context(group->gpu, group->context, (uint32_t)timeslice_us);
    }
    return RM_OK;
}

/* GPFIFO_SCHEDULE has one more byte from 575 on (bSkipEnable); a size that is not exact is refused. */
static uint32_t schedule_size(void) {
    unsigned long branch = strtoul(behaviour.version, NULL, 10);
    return branch != 0 && branch < 575 ? 2 : 3;
}

static uint32_t control_group(rm_object *group, const rm_control *call) {
    uint8_t bytes[8] = {0};
    if (call->params_size > sizeof bytes || !copy_in(bytes, call->params, call->params_size)) {
        return RM_ERR_INVALID_PARAM_STRUCT;
    }
    uint64_t number = 0;
    memcpy(&number, bytes, sizeof number);
    switch (call->command) {
        case RM_CTRL_GROUP_SCHEDULE:
            if (call->params_size != schedule_size()) {
                return RM_ERR_INVALID_PARAM_STRUCT;
            }
            group->is_disabled = bytes[0] == 0;
            apply(group);
            return RM_OK;
        case RM_CTRL_GROUP_SET_TIMESLICE:
            return call->params_size != 8 ? RM_ERR_INVALID_PARAM_STRUCT
                                          : set_timeslice(group, number);
        case RM_CTRL_GROUP_GET_TIMESLICE:
            return call->params_size == 8 && copy_out(call->params, &group->timeslice_us, 8)
                       ? RM_OK
                       : RM_ERR_INVALID_PARAM_STRUCT;
        case RM_CTRL_GROUP_PREEMPT:
            if (call->params_size != 8) {
                return RM_ERR_INVALID_PARAM_STRUCT;
            }
            if (group->gpu != NULL) {
                emu_gpu_kick_context(group->gpu, group->context);
            }
            return RM_OK;
        case RM_CTRL_GROUP_INTERLEAVE: return RM_ERR_INSUFFICIENT_PERMISSIONS;
        default: return RM_ERR_NOT_SUPPORTED;
    }
}

static uint32_t disable_channels(const rm_control *call) {
    rm_disable_channels params;
    if (call->params_size != sizeof params || !copy_in(&params, call->params, sizeof params)) {
        return RM_ERR_INVALID_PARAM_STRUCT;
    }
    if (params.count > 64 || params.event != 0) {
        return RM_ERR_INVALID_ARGUMENT;
    }
    for (uint32_t i = 0; i < params.count; i++) {
        const rm_object *channel = find(params.clients[i], params.channels[i]);
        /* Whether the real one looks at the clients is not known; here it does. */
        if (params.clients[i] != call->client) {
            return RM_ERR_INVALID_CLIENT;
        }
        if (channel == NULL || channel->class != RM_CLASS_CHANNEL) {
            return RM_ERR_OBJECT_NOT_FOUND;
        }
    }
    for (uint32_t i = 0; i < params.count; i++) {
        rm_object *channel = find(params.clients[i], params.channels[i]);
        channel->is_disabled = params.disable != 0;
        const rm_object *group = find(channel->client, channel->parent);
        if (group != NULL && group->class == RM_CLASS_CHANNEL_GROUP) {
            apply(group);
        }
    }
    return RM_OK;
}

static uint32_t control(ino_t file, const rm_control *call) {
    if (!owns(file, call->client)) {
        return RM_ERR_INVALID_CLIENT;
    }
    rm_object *object = find(call->client, call->object);
    if (object == NULL) {
        return RM_ERR_OBJECT_NOT_FOUND;
    }
    if (is_refused(call->command)) {
        return RM_ERR_NOT_SUPPORTED;
    }
    if (object->class == RM_CLASS_SUBDEVICE && call->command == RM_CTRL_DISABLE_CHANNELS) {
        return disable_channels(call);
    }
    return object->class == RM_CLASS_CHANNEL_GROUP ? control_group(object, call)
                                                   : RM_ERR_NOT_SUPPORTED;
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
        if (!copy_in(&call, argument, size)) {
            return fail(EFAULT);
        }
        call.status = allocate(file, &call);
        return copy_out(argument, &call, size) ? 0 : fail(EFAULT);
    }
    if (size != sizeof old) {
        return fail(EINVAL);
    }
    if (!copy_in(&old, argument, size)) {
        return fail(EFAULT);
    }
    call.root = old.root;
    call.parent = old.parent;
    call.made = old.made;
    call.class = old.class;
    call.params = old.params;
    call.params_size = old.params_size;
    old.status = allocate(file, &call);
    old.made = call.made;
    return copy_out(argument, &old, size) ? 0 : fail(EFAULT);
}

static int call_free(ino_t file, size_t size, uint64_t argument) {
    rm_free call;
    if (size != sizeof call) {
        return fail(EINVAL);
    }
    if (!copy_in(&call, argument, size)) {
        return fail(EFAULT);
    }
    call.status = release(file, &call);
    return copy_out(argument, &call, size) ? 0 : fail(EFAULT);
}

static int call_control(ino_t file, size_t size, uint64_t argument) {
    rm_control call;
    if (size != sizeof call) {
        return fail(EINVAL);
    }
    if (!copy_in(&call, argument, size)) {
        return fail(EFAULT);
    }
    call.status = control(file, &call);
    return copy_out(argument, &call, size) ? 0 : fail(EFAULT);
}

/* The version is the same on both sides here: it is told, whatever is asked. */
static int call_version(size_t size, uint64_t argument) {
    rm_version call;
    if (size != sizeof call) {
        return fail(EINVAL);
    }
    if (!copy_in(&call, argument, size)) {
        return fail(EFAULT);
    }
    memcpy(call.version, behaviour.version, sizeof call.version);
    call.reply = 1;
    return copy_out(argument, &call, size) ? 0 : fail(EFAULT);
}

static int dispatch(ino_t file, unsigned int number, size_t size, uint64_t argument) {
    switch (number) {
        case RM_ESC_ALLOC: return call_allocate(file, size, argument);
        case RM_ESC_FREE: return call_free(file, size, argument);
        case RM_ESC_CONTROL: return call_control(file, size, argument);
        case RM_ESC_CHECK_VERSION: return call_version(size, argument);
        default: return fail(EINVAL);
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
        if (size != sizeof transfer || !copy_in(&transfer, argument, size)) {
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
    if (!behaviour.read) {
        read_behaviour();
    }
    uint64_t slow_us = _IOC_NR(request) == RM_ESC_CONTROL ? behaviour.slow_us : 0;
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
    rm_object *object = find(client, group);
    bool found = object != NULL && object->class == RM_CLASS_CHANNEL_GROUP;
    if (found) {
        object->gpu = gpu;
        object->context = context;
        apply(object);
    }
    pthread_mutex_unlock(&lock);
    return found;
}

/* Closing the last file takes all clients that it made. */
void emu_rm_close(int fd) {
    pthread_mutex_lock(&lock);
    ino_t file = our_file(fd);
    for (int i = 0; i < MAX_OBJECTS && file != 0; i++) {
        if (objects[i].client != 0 && objects[i].handle == objects[i].client &&
            objects[i].file == file) {
            drop(objects[i].client, objects[i].handle);
        }
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
    memset(objects, 0, sizeof objects);
    memset(files, 0, sizeof files);
}

uint32_t emu_rm_object_count(void) {
    uint32_t count = 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MAX_OBJECTS; i++) {
        count += objects[i].client != 0 ? 1 : 0;
    }
    pthread_mutex_unlock(&lock);
    return count;
}
