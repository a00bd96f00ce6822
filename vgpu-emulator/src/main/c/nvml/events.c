/*
 * NVML events. They are lines "INDEX TYPE DATA" in the file "nvml.events" in the emulator's directory; appending a line
 * triggers an event. A set delivers the lines that were appended after its creation.
 */
#include "mig.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_EVERY_NS = 20000000, LOOK_LATEST_MS = 250, LINE_SIZE = 96 };
#define NS_PER_MS UINT64_C(1000000)
/* Single-bit and double-bit ECC errors, critical errors (XID), clock changes. */
#define SUPPORTED UINT64_C(0x1b)

struct emu_nvml_events {
    off_t offset;
    unsigned long long wanted[EMU_MAX_DEVICES];
};

static int open_events(void) {
    char path[600];
    snprintf(path, sizeof path, "%s/nvml.events", emu_nvml_directory());
    return open(path, O_RDONLY | O_CLOEXEC);
}

EMU_API nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set) {
    EMU_NVML_ENTER(set != NULL);
    nvmlEventSet_t made = calloc(1, sizeof *made);
    if (made == NULL) {
        return NVML_ERROR_UNKNOWN;
    }
    int fd = open_events();
    if (fd >= 0) {
        made->offset = lseek(fd, 0, SEEK_END);
        close(fd);
    }
    *set = made;
    return NVML_SUCCESS;
}

EMU_API nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) {
    EMU_NVML_ENTER(set != NULL);
    free(set);
    return NVML_SUCCESS;
}

EMU_API nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device,
                                                      unsigned long long *types) {
    EMU_NVML_GPU(device, types != NULL);
    *types = emu_nvml_number("event_types", (int)gpu->index, SUPPORTED);
    return NVML_SUCCESS;
}

EMU_API nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types,
                                              nvmlEventSet_t set) {
    EMU_NVML_GPU(device, set != NULL);
    uint64_t supported = emu_nvml_number("event_types", (int)gpu->index, SUPPORTED);
    if ((types & ~supported) != 0 || supported == 0) {
        return NVML_ERROR_NOT_SUPPORTED;
    }
    set->wanted[gpu->index] |= types;
    return NVML_SUCCESS;
}

/* Reads the set's next complete matching line; false if there is none. */
static bool next(nvmlEventSet_t set, int fd, nvmlEventData_t *data) {
    char line[LINE_SIZE];
    for (;;) {
        ssize_t length = pread(fd, line, sizeof line - 1, set->offset);
        char *end = length <= 0 ? NULL : memchr(line, '\n', (size_t)length);
        if (end == NULL) {
            return false;
        }
        *end = '\0';
        set->offset += end - line + 1;
        char *rest = NULL;
        unsigned long index = strtoul(line, &rest, 10);
        unsigned long long type = strtoull(rest, &rest, 0);
        unsigned long long number = strtoull(rest, &rest, 0);
        if (index < EMU_MAX_DEVICES && (set->wanted[index] & type) != 0) {
            *data = (nvmlEventData_t){.device = emu_nvml_device_at((uint32_t)index),
                                      .eventType = type,
                                      .eventData = number,
                                      .gpuInstanceId = UINT32_MAX,
                                      .computeInstanceId = UINT32_MAX};
            return true;
        }
    }
}

/* Like the real NVML, returns an error if one of the set's GPUs is gone. */
static nvmlReturn_t presence(nvmlEventSet_t set) {
    nvmlReturn_t result = emu_nvml_enter("nvmlEventSetWait_v2");
    for (uint32_t i = 0; result == NVML_SUCCESS && i < emu_nvml_devices(); i++) {
        if (set->wanted[i] != 0) {
            result = emu_nvml_presence(emu_nvml_device_at(i)->gpu);
        }
    }
    return result;
}

/* Watches the emulator's directory for changes; negative: failed. */
static int open_changes(void) {
    int changes = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    uint32_t kinds = IN_CREATE | IN_MODIFY | IN_MOVED_TO | IN_DELETE;
    if (changes >= 0 && inotify_add_watch(changes, emu_nvml_directory(), kinds) < 0) {
        close(changes);
        return -1;
    }
    return changes;
}

/* Waits for a change, for at most LOOK_LATEST_MS, because not every change of a GPU changes a file. */
static void await_change(int changes, uint64_t until) {
    uint64_t now = emu_now_ns();
    uint64_t left_ms = until > now ? (until - now) / NS_PER_MS + 1 : 1;
    struct pollfd change = {.fd = changes, .events = POLLIN};
    if (changes >= 0 &&
        poll(&change, 1, left_ms < LOOK_LATEST_MS ? (int)left_ms : LOOK_LATEST_MS) <= 0) {
        return;
    }
    char events[4096];
    while (changes >= 0 && read(changes, events, sizeof events) > 0) {
    }
    uint64_t left_ns = left_ms * NS_PER_MS;
    struct timespec look = {.tv_nsec = left_ns < LOOK_EVERY_NS ? (long)left_ns : LOOK_EVERY_NS};
    nanosleep(&look, NULL); /* limits the polling rate when many changes occur */
}

static nvmlReturn_t wait_until(nvmlEventSet_t set, nvmlEventData_t *data, uint64_t until,
                               int changes) {
    for (;;) {
        int fd = open_events();
        bool found = fd >= 0 && next(set, fd, data);
        if (fd >= 0) {
            close(fd);
        }
        if (found) {
            return NVML_SUCCESS;
        }
        nvmlReturn_t result = presence(set);
        if (result != NVML_SUCCESS) {
            return result;
        }
        if (emu_now_ns() >= until) {
            return NVML_ERROR_TIMEOUT;
        }
        await_change(changes, until);
    }
}

EMU_API nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data,
                                         unsigned int timeout_ms) {
    EMU_NVML_ENTER(set != NULL && data != NULL);
    int changes = timeout_ms * NS_PER_MS > LOOK_EVERY_NS ? open_changes() : -1;
    nvmlReturn_t result = wait_until(set, data, emu_now_ns() + timeout_ms * NS_PER_MS, changes);
    if (changes >= 0) {
        close(changes);
    }
    return result;
}

EMU_API nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_t *data,
                                      unsigned int timeout_ms) {
    return nvmlEventSetWait_v2(set, data, timeout_ms);
}
