/*
 * The part of the resource manager's ioctl interface (/dev/nvidiactl) that the emulator implements: what a CUDA driver
 * needs to create and schedule channel groups. These are our own declarations; numbers and offsets are those of the
 * open kernel modules 535 to 595.
 */
#ifndef EMU_RM_ABI_H
#define EMU_RM_ABI_H

#include <stdint.h>

enum { RM_IOC_MAGIC = 'F' };

enum {
    RM_ESC_FREE = 0x29,
    RM_ESC_CONTROL = 0x2a,
    RM_ESC_ALLOC = 0x2b, /* rm_alloc or rm_alloc_rights, distinguished by size */
    RM_ESC_CHECK_VERSION = 210,
    RM_ESC_XFER = 211
};

enum {
    RM_OK = 0,
    RM_ERR_DUPLICATE = 0x19,
    RM_ERR_INSUFFICIENT_PERMISSIONS = 0x1b,
    RM_ERR_INVALID_ARGUMENT = 0x1f,
    RM_ERR_INVALID_CLASS = 0x22,
    RM_ERR_INVALID_CLIENT = 0x23,
    RM_ERR_INVALID_PARENT = 0x36,
    RM_ERR_INVALID_PARAM_STRUCT = 0x3a,
    RM_ERR_NO_MEMORY = 0x51,
    RM_ERR_NOT_SUPPORTED = 0x56,
    RM_ERR_OBJECT_NOT_FOUND = 0x57
};

#define RM_CLASS_ROOT UINT32_C(0x41)
#define RM_CLASS_DEVICE UINT32_C(0x80)
#define RM_CLASS_SUBDEVICE UINT32_C(0x2080)
#define RM_CLASS_CHANNEL_GROUP UINT32_C(0xa06c)
#define RM_CLASS_CHANNEL UINT32_C(0xc86f)

#define RM_CTRL_GROUP_SCHEDULE UINT32_C(0xa06c0101)
#define RM_CTRL_GROUP_SET_TIMESLICE UINT32_C(0xa06c0103)
#define RM_CTRL_GROUP_GET_TIMESLICE UINT32_C(0xa06c0104)
#define RM_CTRL_GROUP_PREEMPT UINT32_C(0xa06c0105)
#define RM_CTRL_GROUP_INTERLEAVE UINT32_C(0xa06c0107)
#define RM_CTRL_DISABLE_CHANNELS UINT32_C(0x2080110b)

typedef struct {
    uint32_t root;
    uint32_t parent;
    uint32_t old;
    uint32_t status;
} rm_free;

typedef struct {
    uint32_t root;
    uint32_t parent;
    uint32_t made;
    uint32_t class;
    uint64_t params;
    uint32_t params_size;
    uint32_t status;
} rm_alloc;

typedef struct {
    uint32_t root;
    uint32_t parent;
    uint32_t made;
    uint32_t class;
    uint64_t params;
    uint64_t rights;
    uint32_t params_size;
    uint32_t flags;
    uint32_t status;
    uint32_t padding;
} rm_alloc_rights;

typedef struct {
    uint32_t client;
    uint32_t object;
    uint32_t command;
    uint32_t flags;
    uint64_t params;
    uint32_t params_size;
    uint32_t status;
} rm_control;

typedef struct {
    uint32_t command;
    uint32_t size;
    uint64_t pointer;
} rm_xfer;

typedef struct {
    uint32_t command;
    uint32_t reply;
    char version[64];
} rm_version;

typedef struct {
    uint32_t compute_flags;
    uint32_t reserved;
    uint32_t address_space;
    uint32_t engine;
    uint32_t bypass;
} rm_group_params;

typedef struct {
    uint8_t disable;
    uint8_t padding0[3];
    uint32_t count;
    uint8_t only_scheduling;
    uint8_t rewind;
    uint8_t padding1[6];
    uint64_t event; /* for the kernel only: must be 0 */
    uint32_t clients[64];
    uint32_t channels[64];
} rm_disable_channels;

_Static_assert(sizeof(rm_free) == 16 && sizeof(rm_alloc) == 32 && sizeof(rm_alloc_rights) == 48 &&
                   sizeof(rm_control) == 32 && sizeof(rm_xfer) == 16 && sizeof(rm_version) == 72 &&
                   sizeof(rm_group_params) == 20 && sizeof(rm_disable_channels) == 536,
               "as the kernel modules have them");

#endif
