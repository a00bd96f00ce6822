/*
 * The driver's calls as a tenant's program makes them: fields by offset at a place in the arena. Include bed.h, or a
 * replacement, first.
 */
#ifndef VGPU_CALLS_H
#define VGPU_CALLS_H

/* Places in the arena. */
enum { CALL = 8192, PARAMS = 12288, OUTER = 16384, PLACE = 65536 };
static _Thread_local size_t place; /* this thread's part of the arena */

static inline uint64_t spot(size_t at) { return bed_at(place + at); }

static inline void put32(size_t at, uint32_t value) { memcpy(arena + place + at, &value, sizeof value); }
static inline void put64(size_t at, uint64_t value) { memcpy(arena + place + at, &value, sizeof value); }
static inline uint32_t get32(size_t at) {
  uint32_t value;
  memcpy(&value, arena + place + at, sizeof value);
  return value;
}
static inline uint64_t get64(size_t at) {
  uint64_t value;
  memcpy(&value, arena + place + at, sizeof value);
  return value;
}

struct alloc {
  uint32_t client, parent, handle, class_number;
  uint64_t bytes;       /* for memory */
  uint32_t params_size; /* as the caller states it */
  int rights;           /* the longer form */
  uint32_t direction;   /* 0: the direction that programs use */
  size_t call, params;  /* 0: the usual places */
};

/* Returns the status; *made is the new handle. UINT32_MAX if the ioctl itself failed. */
static inline uint32_t do_alloc(struct bed_process *process, int fd, struct alloc what, uint32_t *made) {
  size_t call = what.call != 0 ? what.call : CALL, params = what.params != 0 ? what.params : PARAMS,
         size = what.rights ? 48 : 32;
  memset(arena + place + call, 0, size);
  if (what.bytes != 0) put64(params + 64, what.bytes);
  put32(call, what.client);
  put32(call + 4, what.parent);
  put32(call + 8, what.handle);
  put32(call + 12, what.class_number);
  put64(call + 16, what.bytes != 0 || what.class_number == RM_CLASS_GROUP ? spot(params) : 0);
  put32(call + (what.rights ? 32 : 24), what.params_size);
  uint32_t word = what.direction != 0 ? what.direction | (uint32_t)size << 16 | RM_ALLOC
                                      : vgpu__rm_word(RM_ALLOC, (uint32_t)size);
  long result = bed_ioctl(process, fd, word, spot(call));
  if (made != NULL) *made = get32(call + 8);
  return result == 0 ? get32(call + (what.rights ? 40 : 28)) : UINT32_MAX;
}

static inline uint32_t do_free(struct bed_process *process, int fd, uint32_t client, uint32_t object) {
  put32(CALL, client);
  put32(CALL + 4, 0);
  put32(CALL + 8, object);
  put32(CALL + 12, UINT32_MAX);
  long result = bed_ioctl(process, fd, vgpu__rm_word(RM_FREE, RM_FREE_SIZE), spot(CALL));
  return result == 0 ? get32(CALL + 12) : UINT32_MAX;
}

static inline uint32_t do_control(struct bed_process *process, int fd, uint32_t client, uint32_t object,
                                  uint32_t command, uint32_t size) {
  memset(arena + place + CALL, 0, RM_CONTROL_SIZE);
  put32(CALL, client);
  put32(CALL + 4, object);
  put32(CALL + 8, command);
  put64(CALL + 16, spot(PARAMS));
  put32(CALL + 24, size);
  long result = bed_ioctl(process, fd, vgpu__rm_word(RM_CONTROL, RM_CONTROL_SIZE), spot(CALL));
  return result == 0 ? get32(CALL + 28) : UINT32_MAX;
}

static inline uint32_t do_dup(struct bed_process *process, int fd, uint32_t client, uint32_t parent, uint32_t handle,
                              uint32_t source, uint32_t object) {
  const uint32_t fields[7] = {client, parent, handle, source, object, 0, UINT32_MAX};
  memcpy(arena + place + CALL, fields, sizeof fields);
  long result = bed_ioctl(process, fd, vgpu__rm_word(RM_DUP, RM_DUP_SIZE), spot(CALL));
  return result == 0 ? get32(CALL + 24) : UINT32_MAX;
}

static inline uint32_t do_heap(struct bed_process *process, int fd, uint32_t client, uint32_t parent, uint32_t function,
                               uint32_t memory, uint64_t bytes) {
  memset(arena + place + CALL, 0, RM_HEAP_SIZE);
  put32(CALL, client);
  put32(CALL + 4, parent);
  put32(CALL + 8, function);
  put32(CALL + 20, UINT32_MAX);
  put32(CALL + 44, memory);
  put64(CALL + 88, bytes);
  long result = bed_ioctl(process, fd, vgpu__rm_word(RM_HEAP, RM_HEAP_SIZE), spot(CALL));
  return result == 0 ? get32(CALL + 20) : UINT32_MAX;
}

static inline long do_register(struct bed_process *process, int fd, int control) {
  put32(CALL, (uint32_t)control);
  return bed_ioctl(process, fd, vgpu__rm_word(RM_REGISTER_FD, 4), spot(CALL));
}

/* A client with a device and a subdevice, which every program creates first. */
enum { DEVICE = 0x5c000001, SUBDEVICE = 0x5c000002 };
static inline uint32_t new_client(struct bed_process *process, int fd) {
  uint32_t client = 0;
  if (do_alloc(process, fd, (struct alloc){.class_number = 0x41}, &client) != RM_OK || client == 0)
    bed_fail("no client");
  if (do_alloc(process, fd, (struct alloc){.client = client, .parent = client, .handle = DEVICE, .class_number = 0x80},
               NULL) != RM_OK ||
      do_alloc(process, fd,
               (struct alloc){.client = client, .parent = DEVICE, .handle = SUBDEVICE, .class_number = 0x2080},
               NULL) != RM_OK) {
    bed_fail("no device");
  }
  return client;
}

/* A channel of a group; and a group that has one. A group without channels has nothing to run. */
enum { CHANNEL_OF = 0x10000 };
static inline uint32_t new_channel(struct bed_process *process, int fd, uint32_t client, uint32_t group,
                                   uint32_t handle) {
  struct alloc what = {.client = client, .parent = group, .handle = handle, .class_number = 0xc86f, .rights = 1};
  return do_alloc(process, fd, what, NULL);
}

static inline uint32_t new_group(struct bed_process *process, int fd, uint32_t client, uint32_t handle) {
  struct alloc what = {
      .client = client, .parent = DEVICE, .handle = handle, .class_number = RM_CLASS_GROUP, .rights = 1};
  uint32_t status = do_alloc(process, fd, what, NULL);
  return status == RM_OK ? new_channel(process, fd, client, handle, CHANNEL_OF + handle) : status;
}

/* A tenant's own FIFO_DISABLE_CHANNELS, for `count` channels with successive handles. */
static inline uint32_t disable_channels(struct bed_process *process, int fd, uint32_t client, uint32_t first,
                                        uint32_t count, int disable) {
  memset(arena + place + PARAMS, 0, RM_DISABLE_SIZE);
  arena[place + PARAMS] = (unsigned char)disable;
  put32(PARAMS + 4, count);
  for (uint32_t i = 0; i < count; i++) {
    put32(PARAMS + 24 + 4 * i, client);
    put32(PARAMS + 280 + 4 * i, first + i);
  }
  return do_control(process, fd, client, SUBDEVICE, RM_DISABLE_CHANNELS, RM_DISABLE_SIZE);
}

static inline uint32_t take(struct bed_process *process, int fd, uint32_t client, uint32_t handle, uint64_t bytes) {
  return do_alloc(process, fd,
                  (struct alloc){.client = client,
                                 .parent = DEVICE,
                                 .handle = handle,
                                 .class_number = 0x40,
                                 .bytes = bytes,
                                 .params_size = 128},
                  NULL);
}

#endif
