#include "rm.h"

#include "base/log.h"
#include "base/rm_abi.h"
#include "rm/model.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

enum { FIRST_HANDLE = 0x5c000001, CHANNEL_PARAMS = 368 };

static struct {
    int fd;
    uint32_t client;
    uint32_t next_handle;
    uint32_t devices[EMU_MAX_DEVICES];
} rm = {.fd = -1, .next_handle = FIRST_HANDLE};

#define CALL(fd, number, argument) \
    ioctl(fd, _IOC(_IOC_READ | _IOC_WRITE, RM_IOC_MAGIC, number, sizeof *(argument)), argument)

static uint32_t handle(void) {
    return __atomic_fetch_add(&rm.next_handle, 1, __ATOMIC_RELAXED);
}

/* Creates an object; 0: refused. Like the real driver, the emulator uses three forms of this call. */
static uint32_t make(uint32_t parent, uint32_t class, void *params, uint32_t size) {
    rm_alloc_rights call = {.root = rm.client,
                            .parent = parent,
                            .made = handle(),
                            .class = class,
                            .params = (uint64_t)(uintptr_t)params,
                            .params_size = size};
    return CALL(rm.fd, RM_ESC_ALLOC, &call) == 0 && call.status == RM_OK ? call.made : 0;
}

static uint32_t make_indirectly(uint32_t parent, uint32_t class, void *params, uint32_t size) {
    rm_alloc call = {.root = rm.client,
                     .parent = parent,
                     .made = handle(),
                     .class = class,
                     .params = (uint64_t)(uintptr_t)params,
                     .params_size = size};
    rm_xfer transfer = {
        .command = RM_ESC_ALLOC, .size = sizeof call, .pointer = (uint64_t)(uintptr_t)&call};
    return CALL(rm.fd, RM_ESC_XFER, &transfer) == 0 && call.status == RM_OK ? call.made : 0;
}

static uint32_t make_client(void) {
    rm_alloc call = {.class = RM_CLASS_ROOT};
    return CALL(rm.fd, RM_ESC_ALLOC, &call) == 0 && call.status == RM_OK ? call.made : 0;
}

void emu_rm_start(int devices) {
    int kept = errno;
    rm.fd = emu_rm_open();
    /* The real driver passes its version, and is refused if the kernel's differs. */
    rm_version version = {.command = 0, .version = ""};
    if (rm.fd >= 0 && CALL(rm.fd, RM_ESC_CHECK_VERSION, &version) == 0) {
        rm.client = make_client();
    }
    for (int i = 0; i < devices && rm.client != 0; i++) {
        rm.devices[i] = make(rm.client, RM_CLASS_DEVICE, NULL, 0);
        if (rm.devices[i] != 0) {
            make(rm.devices[i], RM_CLASS_SUBDEVICE, NULL, 0);
        }
    }
    if (rm.client == 0) {
        emu_log("no client at the resource manager: fd=%d errno=%d", rm.fd, errno);
    }
    errno = kept;
}

static void schedule(uint32_t group) {
    uint8_t params[3] = {1, 0, 0};
    rm_control call = {.client = rm.client,
                       .object = group,
                       .command = RM_CTRL_GROUP_SCHEDULE,
                       .params = (uint64_t)(uintptr_t)params,
                       .params_size = sizeof params};
    CALL(rm.fd, RM_ESC_CONTROL, &call);
    if (call.status == RM_ERR_INVALID_PARAM_STRUCT) { /* an older kernel module */
        call.params_size = 2;
        CALL(rm.fd, RM_ESC_CONTROL, &call);
    }
}

void emu_rm_context_opened(CUcontext context) {
    int kept = errno;
    uint32_t device = rm.devices[context->device];
    context->channel_group = 0;
    if (device != 0) {
        rm_group_params params = {.engine = 1};
        uint8_t channel[CHANNEL_PARAMS] = {0};
        uint32_t group = make(device, RM_CLASS_CHANNEL_GROUP, &params, sizeof params);
        if (group != 0 && emu_rm_bind(rm.client, group, context->gpu, context->index)) {
            context->channel_group = group;
            make(group, RM_CLASS_CHANNEL, channel, sizeof channel);
            make_indirectly(group, RM_CLASS_CHANNEL, channel, sizeof channel);
            schedule(group);
        }
    }
    errno = kept;
}

void emu_rm_context_closing(CUcontext context) {
    int kept = errno;
    if (context->channel_group != 0) {
        rm_free call = {.root = rm.client,
                        .parent = rm.devices[context->device],
                        .old = context->channel_group};
        CALL(rm.fd, RM_ESC_FREE, &call);
        context->channel_group = 0;
    }
    errno = kept;
}

void emu_rm_after_fork(void) {
    emu_rm_forget(rm.fd);
    memset(&rm, 0, sizeof rm);
    rm.fd = -1;
    rm.next_handle = FIRST_HANDLE;
}
