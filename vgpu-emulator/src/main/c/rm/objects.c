#include "objects.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_OBJECTS = 4096, MAX_TIMESLICE_US = 1000000 };

typedef struct {
    uint32_t client; /* 0: free */
    uint32_t handle;
    uint32_t parent;
    uint32_t class;
    ino_t file; /* of a client: the file that created it */
    bool is_disabled;
    emu_gpu *gpu; /* of a group: its context's GPU */
    uint32_t context;
    uint64_t timeslice_us;
} rm_object;

static rm_object objects[MAX_OBJECTS];
static uint32_t clients_made;

static const uint64_t default_timeslice_us = 128 << 3;

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

/* A client is accepted only from the file that created it; not even root may use another file. */
static bool owns(ino_t file, uint32_t client) {
    const rm_object *root = find(client, client);
    return root != NULL && root->file == file;
}

/* Stops or resumes a group's context according to the group and its channels. */
static void apply(const rm_object *group) {
    bool stopped = group->is_disabled;
    for (int i = 0; i < MAX_OBJECTS; i++) {
        stopped |= objects[i].client == group->client && objects[i].parent == group->handle &&
                   objects[i].is_disabled;
    }
    if (group->gpu != NULL && !emu_rm_behaviour_now.stuck) {
        emu_gpu_stop_context(group->gpu, group->context, stopped);
    }
}

static bool may_be_child(uint32_t class, uint32_t parent) {
    switch (class) {
    case RM_CLASS_DEVICE:
        return parent == RM_CLASS_ROOT;
    case RM_CLASS_SUBDEVICE:
    case RM_CLASS_CHANNEL_GROUP:
        return parent == RM_CLASS_DEVICE;
    case RM_CLASS_CHANNEL:
        return parent == RM_CLASS_CHANNEL_GROUP || parent == RM_CLASS_DEVICE;
    default:
        return false;
    }
}

static uint32_t make_root(ino_t file, uint32_t *made) {
    rm_object *object = free_object();
    if (object == NULL) {
        return RM_ERR_NO_MEMORY;
    }
    /* Differs between processes, and between the clients of a process. */
    uint32_t handle = 0xc1d00000u | ((uint32_t)getpid() << 6 & 0xfffc0u) | (clients_made++ & 0x3fu);
    *object = (rm_object){.client = handle, .handle = handle, .class = RM_CLASS_ROOT, .file = file};
    *made = handle;
    return RM_OK;
}

uint32_t emu_rm_allocate(ino_t file, rm_alloc_rights *call) {
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

/* Frees an object with all its descendants. */
static void drop(uint32_t client, uint32_t handle) {
    for (int i = 0; i < MAX_OBJECTS; i++) {
        if (objects[i].client == client && objects[i].handle != client &&
            objects[i].parent == handle) {
            uint32_t child = objects[i].handle;
            uint32_t parent = objects[i].parent;
            objects[i].parent = 0; /* breaks any cycle */
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

uint32_t emu_rm_release(ino_t file, const rm_free *call) {
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

/* GPFIFO_SCHEDULE has one more byte since 575 (bSkipEnable). Any other size is refused. */
static uint32_t schedule_size(void) {
    unsigned long branch = strtoul(emu_rm_behaviour_now.version, NULL, 10);
    return branch != 0 && branch < 575 ? 2 : 3;
}

static uint32_t control_group(rm_object *group, const rm_control *call) {
    uint8_t bytes[8] = {0};
    if (call->params_size > sizeof bytes ||
        !emu_rm_copy_in(bytes, call->params, call->params_size)) {
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
        return call->params_size != 8 ? RM_ERR_INVALID_PARAM_STRUCT : set_timeslice(group, number);
    case RM_CTRL_GROUP_GET_TIMESLICE:
        return call->params_size == 8 && emu_rm_copy_out(call->params, &group->timeslice_us, 8)
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
    case RM_CTRL_GROUP_INTERLEAVE:
        return RM_ERR_INSUFFICIENT_PERMISSIONS;
    default:
        return RM_ERR_NOT_SUPPORTED;
    }
}

/* With late=, channels that were stopped for 2 ms can be resumed only some time after the first attempt. */
static bool is_too_early(bool stop) {
    static uint64_t stopped_ns, from_ns;
    uint64_t now = emu_now_ns();
    if (stop) {
        stopped_ns = now;
        from_ns = 0;
    } else if (from_ns == 0 && now - stopped_ns > 2000000) {
        from_ns = now + emu_rm_behaviour_now.late_us * 1000;
    }
    return !stop && now < from_ns;
}

static uint32_t disable_channels(const rm_control *call) {
    rm_disable_channels params;
    if (call->params_size != sizeof params ||
        !emu_rm_copy_in(&params, call->params, sizeof params)) {
        return RM_ERR_INVALID_PARAM_STRUCT;
    }
    if (params.count > 64 || params.event != 0) {
        return RM_ERR_INVALID_ARGUMENT;
    }
    for (uint32_t i = 0; i < params.count; i++) {
        const rm_object *channel = find(params.clients[i], params.channels[i]);
        /* It is unknown whether the real resource manager checks the clients; the emulator does. */
        if (params.clients[i] != call->client) {
            return RM_ERR_INVALID_CLIENT;
        }
        if (channel == NULL || channel->class != RM_CLASS_CHANNEL) {
            return RM_ERR_OBJECT_NOT_FOUND;
        }
    }
    if (is_too_early(params.disable != 0)) {
        return RM_ERR_NOT_SUPPORTED;
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

uint32_t emu_rm_control(ino_t file, const rm_control *call) {
    if (!owns(file, call->client)) {
        return RM_ERR_INVALID_CLIENT;
    }
    rm_object *object = find(call->client, call->object);
    if (object == NULL) {
        return RM_ERR_OBJECT_NOT_FOUND;
    }
    if (emu_rm_is_refused(call->command)) {
        return RM_ERR_NOT_SUPPORTED;
    }
    if (object->class == RM_CLASS_SUBDEVICE && call->command == RM_CTRL_DISABLE_CHANNELS) {
        return disable_channels(call);
    }
    return object->class == RM_CLASS_CHANNEL_GROUP ? control_group(object, call)
                                                   : RM_ERR_NOT_SUPPORTED;
}

bool emu_rm_objects_bind(uint32_t client, uint32_t group, emu_gpu *gpu, uint32_t context) {
    rm_object *object = find(client, group);
    bool found = object != NULL && object->class == RM_CLASS_CHANNEL_GROUP;
    if (found) {
        object->gpu = gpu;
        object->context = context;
        apply(object);
    }
    return found;
}

void emu_rm_objects_close(ino_t file) {
    for (int i = 0; i < MAX_OBJECTS; i++) {
        if (objects[i].client != 0 && objects[i].handle == objects[i].client &&
            objects[i].file == file) {
            drop(objects[i].client, objects[i].handle);
        }
    }
}

void emu_rm_objects_forget(void) {
    memset(objects, 0, sizeof objects);
}

uint32_t emu_rm_objects_count(void) {
    uint32_t count = 0;
    for (int i = 0; i < MAX_OBJECTS; i++) {
        count += objects[i].client != 0 ? 1 : 0;
    }
    return count;
}
