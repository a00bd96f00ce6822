#include "ipc_event.h"

#include "base/shared_memory.h"
#include "driver.h"
#include "gpu/suspend.h"
#include "host_calls.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/*
 * A row is reused once its event has been destroyed. The counters are not reset, so late updates of the old event do no
 * harm.
 */
enum { EVENTS = 2048, EXPORTERS = 256, TABLE_BYTES = EVENTS * sizeof(emu_ipc_event) };
#define HANDLE_MAGIC UINT64_C(0x656c646e61686567)

typedef struct {
    uint64_t magic;
    uint64_t inode;
    uint32_t pid;
    uint32_t fd;
    uint32_t row;
    uint32_t reserved[9];
} event_handle;

_Static_assert(sizeof(event_handle) == sizeof(CUipcEventHandle), "a handle's size");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static emu_ipc_event *own; /* this process's rows */
static int own_fd = -1;
static struct {
    uint64_t inode;
    emu_ipc_event *rows; /* stays mapped, because streams may still wait there */
} others[EXPORTERS];
static int other_count;

static emu_ipc_event *map(int fd) {
    uint64_t base = 0;
    uint64_t length = 0;
    return (emu_ipc_event *)(uintptr_t)emu_shared_memory_map(fd, 0, TABLE_BYTES, &base, &length);
}

/* The caller holds the lock. */
static bool has_rows(void) {
    if (own != NULL) {
        return true;
    }
    int fd = emu_shared_memory_make("events", TABLE_BYTES);
    own = fd < 0 ? NULL : map(fd);
    if (own == NULL && fd >= 0) {
        close(fd);
        return false;
    }
    own_fd = fd;
    return own != NULL;
}

emu_ipc_event *emu_ipc_event_make(void) {
    emu_ipc_event *made = NULL;
    pthread_mutex_lock(&lock);
    for (int i = 0; has_rows() && made == NULL && i < EVENTS; i++) {
        if (own[i].in_use == 0) {
            made = &own[i];
            made->first = __atomic_load_n(&made->recorded, __ATOMIC_ACQUIRE);
            made->in_use = 1;
        }
    }
    pthread_mutex_unlock(&lock);
    return made;
}

static bool is_own(const emu_ipc_event *event) {
    return own != NULL && event >= own && event < own + EVENTS;
}

void emu_ipc_event_give(emu_ipc_event *event) {
    pthread_mutex_lock(&lock);
    if (is_own(event)) {
        event->in_use = 0;
    }
    pthread_mutex_unlock(&lock);
}

bool emu_ipc_event_is_done(const emu_ipc_event *event) {
    uint64_t recorded = __atomic_load_n(&event->recorded, __ATOMIC_ACQUIRE);
    return recorded == event->first || __atomic_load_n(&event->done, __ATOMIC_ACQUIRE) >= recorded;
}

static emu_operation operation_on(emu_ipc_event *event, emu_operation_kind kind, uint64_t value) {
    return (emu_operation){.kind = kind,
                           .word = {.address = (uint64_t)(uintptr_t)&event->done,
                                    .value = value,
                                    .bytes = sizeof value,
                                    .test = kind == EMU_WAIT_VALUE ? CU_STREAM_WAIT_VALUE_GEQ
                                                                   : EMU_WRITE_GREATER}};
}

emu_operation emu_ipc_event_record(emu_ipc_event *event) {
    return operation_on(event, EMU_WRITE_VALUE,
                        __atomic_add_fetch(&event->recorded, 1, __ATOMIC_ACQ_REL));
}

emu_operation emu_ipc_event_wait(emu_ipc_event *event) {
    uint64_t recorded = __atomic_load_n(&event->recorded, __ATOMIC_ACQUIRE);
    return operation_on(event, EMU_WAIT_VALUE, recorded == event->first ? 0 : recorded);
}

EMU_API CUresult cuIpcGetEventHandle(CUipcEventHandle *handle, CUevent event) {
    EMU_CONTEXT(context);
    (void)context;
    emu_checkpoint_hinder(&emu_driver.state, EMU_USED_IPC);
    EMU_REQUIRE(handle != NULL);
    if (!emu_event_known(event) || event->shared == NULL || !is_own(event->shared)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    event_handle exported = {.magic = HANDLE_MAGIC, .pid = (uint32_t)getpid()};
    uint64_t size = 0;
    if (!emu_shared_memory_identify(own_fd, &exported.inode, &size)) {
        return CUDA_ERROR_MAP_FAILED;
    }
    exported.fd = (uint32_t)own_fd;
    exported.row = (uint32_t)(event->shared - own);
    memcpy(handle, &exported, sizeof exported);
    return CUDA_SUCCESS;
}

/* The rows of another process, mapped once; NULL: the process is gone, or its rows have changed. */
static emu_ipc_event *rows_of(const event_handle *exported) {
    char path[64];
    uint64_t inode = 0;
    uint64_t size = 0;
    emu_ipc_event *rows = NULL;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < other_count && rows == NULL; i++) {
        rows = others[i].inode == exported->inode ? others[i].rows : NULL;
    }
    snprintf(path, sizeof path, "/proc/%u/fd/%u", exported->pid, exported->fd);
    int fd = rows == NULL && other_count < EXPORTERS ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd >= 0) {
        if (emu_shared_memory_identify(fd, &inode, &size) && inode == exported->inode &&
            size == TABLE_BYTES && (rows = map(fd)) != NULL) {
            others[other_count].inode = inode;
            others[other_count++].rows = rows;
        }
        close(fd);
    }
    pthread_mutex_unlock(&lock);
    return rows;
}

EMU_API CUresult cuIpcOpenEventHandle(CUevent *event, CUipcEventHandle handle) {
    EMU_CONTEXT(context);
    emu_checkpoint_hinder(&emu_driver.state, EMU_USED_IPC);
    event_handle exported;
    EMU_REQUIRE(event != NULL);
    memcpy(&exported, &handle, sizeof exported);
    EMU_REQUIRE(exported.magic == HANDLE_MAGIC && exported.row < EVENTS);
    if (exported.pid == (uint32_t)getpid()) {
        return CUDA_ERROR_INVALID_CONTEXT; /* only other processes may open it */
    }
    emu_ipc_event *rows = rows_of(&exported);
    if (rows == NULL || rows[exported.row].in_use == 0) {
        return CUDA_ERROR_MAP_FAILED;
    }
    CUevent opened = emu_pool_take(&emu_events);
    if (opened == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    opened->context = context;
    opened->flags = CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING;
    opened->state = EMU_EVENT_DONE;
    opened->shared = &rows[exported.row];
    *event = opened;
    return CUDA_SUCCESS;
}
