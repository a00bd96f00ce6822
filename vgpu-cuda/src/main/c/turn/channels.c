/*
 * Follows the driver's ioctls to learn its clients, devices, channel groups and channels. The hook's own calls name
 * only objects that this process's driver made, and use only the file through which the driver made them. The driver
 * checks both.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "turn.h"

enum { OBJECTS = 2048, LEAST_TIMESLICE_US = 50 };

struct object {
  uint32_t client, handle, parent, class_number; /* client 0: free entry */
  int fd;
  uint64_t device, inode, special; /* identity of the file */
  int disabled;                    /* by the driver itself, so not ours to enable */
};

static struct vgpu_lock lock;
static struct object objects[OBJECTS];
static unsigned used;
static int overflow;
static uint32_t version;
static uint64_t most_timeslice_us;
static vgpu_ioctl *next;

/* ---- the table; lock held ---- */

static struct object *vgpu__find(uint32_t client, uint32_t handle) {
  for (unsigned i = 0; i < used && client != 0; i++) {
    if (objects[i].client == client && objects[i].handle == handle) return &objects[i];
  }
  return NULL;
}

static struct object *vgpu__free_one(void) {
  for (unsigned i = 0; i < used; i++) {
    if (objects[i].client == 0) return &objects[i];
  }
  if (used < OBJECTS) return &objects[used++];
  overflow = 1;
  return NULL;
}

static void vgpu__drop(uint32_t client, uint32_t handle) {
  struct object *object = vgpu__find(client, handle);
  int all = handle == client;
  if (object != NULL) object->client = 0;
  for (unsigned i = 0; i < used; i++) {
    if (objects[i].client != client) continue;
    if (all) objects[i].client = 0;
    else if (objects[i].parent == handle && objects[i].handle != handle) vgpu__drop(client, objects[i].handle);
  }
}

static int vgpu__follows(uint32_t class_number) {
  return class_number == 0 || class_number == RM_CLASS_ROOT || class_number == RM_CLASS_DEVICE ||
         class_number == RM_CLASS_SUBDEVICE || class_number == RM_CLASS_GROUP || vgpu__rm_is_channel(class_number);
}

static void vgpu__learn(int fd, const struct vgpu_rm_call *call) {
  int root = call->class_number == RM_CLASS_ROOT || call->class_number == 0;
  uint32_t client = root ? call->object : call->client;
  struct stat seen;
  if (client == 0 || call->object == 0 || vgpu__fstat(fd, &seen) != 0) return;
  if (!root && vgpu__find(client, client) == NULL) return; /* made before the redirection: not ours to name */
  vgpu__drop(client, call->object);                        /* a reused handle: the previous object is gone */
  struct object *object = vgpu__free_one();
  if (object == NULL) return;
  *object = (struct object){
      .client = client,
      .handle = call->object,
      .parent = root ? 0 : call->parent,
      .class_number = root ? RM_CLASS_ROOT : call->class_number,
      .fd = fd,
      .device = (uint64_t)seen.st_dev,
      .inode = (uint64_t)seen.st_ino,
      .special = (uint64_t)seen.st_rdev,
  };
}

/*
 * Whether the descriptor still refers to the client's file. A program may close any descriptor and open its own file
 * under that number.
 */
static int vgpu__usable(const struct object *root) {
  struct stat seen;
  return root != NULL && vgpu__fstat(root->fd, &seen) == 0 && (uint64_t)seen.st_dev == root->device &&
         (uint64_t)seen.st_ino == root->inode && (uint64_t)seen.st_rdev == root->special;
}

/* ---- the hook's own calls ---- */

static void vgpu__put32(unsigned char *bytes, size_t offset, uint32_t value) {
  memcpy(bytes + offset, &value, sizeof value);
}

/* Returns the driver's status; UINT32_MAX if the ioctl itself failed. */
static uint32_t vgpu__control(int fd, uint32_t client, uint32_t object, uint32_t command, void *params, uint32_t size) {
  unsigned char call[RM_CONTROL_SIZE] = {0};
  uint64_t at = (uint64_t)(uintptr_t)params;
  uint32_t status;
  vgpu__put32(call, 0, client);
  vgpu__put32(call, 4, object);
  vgpu__put32(call, 8, command);
  memcpy(call + 16, &at, sizeof at);
  vgpu__put32(call, 24, size);
  int kept = errno, result;
  int tries = 0;
  do {
    result = next(fd, (unsigned long)vgpu__rm_word(RM_CONTROL, RM_CONTROL_SIZE), (void *)call);
  } while (result != 0 && errno == EINTR && ++tries < 100);
  errno = kept;
  memcpy(&status, call + 28, sizeof status);
  return result == 0 ? status : UINT32_MAX;
}

/* The subdevice of the device that the channel belongs to. */
static const struct object *vgpu__subdevice_of(const struct object *channel) {
  const struct object *at = channel;
  for (int depth = 0; depth < 8 && at != NULL && at->class_number != RM_CLASS_DEVICE; depth++) {
    at = vgpu__find(at->client, at->parent);
  }
  for (unsigned i = 0; i < used && at != NULL; i++) {
    if (objects[i].client == at->client && objects[i].parent == at->handle &&
        objects[i].class_number == RM_CLASS_SUBDEVICE) {
      return &objects[i];
    }
  }
  return NULL;
}

/*
 * Makes one call for the channels from index `from` on that share the first one's subdevice, and marks them in `done`.
 */
static uint32_t vgpu__disable_some(unsigned from, int stopped, unsigned char *done) {
  unsigned char params[RM_DISABLE_SIZE] = {0};
  const struct object *subdevice = vgpu__subdevice_of(&objects[from]);
  const struct object *root = vgpu__find(objects[from].client, objects[from].client);
  uint32_t count = 0;
  if (subdevice == NULL || !vgpu__usable(root)) {
    done[from] = 1;
    return RM_OBJECT_NOT_FOUND;
  }
  for (unsigned i = from; i < used && count < RM_MOST_CHANNELS; i++) {
    const struct object *channel = &objects[i];
    if (channel->client != objects[from].client || done[i] || channel->disabled ||
        !vgpu__rm_is_channel(channel->class_number))
      continue;
    if (vgpu__subdevice_of(channel) != subdevice) continue;
    vgpu__put32(params, 24 + 4 * (size_t)count, channel->client);
    vgpu__put32(params, 280 + 4 * (size_t)count, channel->handle);
    done[i] = 1;
    count++;
  }
  params[0] = stopped != 0;
  vgpu__put32(params, 4, count);
  uint32_t answer = vgpu__control(root->fd, subdevice->client, subdevice->handle, RM_DISABLE_CHANNELS, params,
                                  sizeof params);
  /*
   * A channel that was just freed fails the whole call. When resuming, retry one by one: every channel that can be
   * resumed must be.
   */
  for (uint32_t i = 0; answer != RM_OK && !stopped && count > 1 && i < count; i++) {
    unsigned char one[RM_DISABLE_SIZE] = {0};
    vgpu__put32(one, 4, 1);
    memcpy(one + 24, params + 24 + 4 * (size_t)i, 4);
    memcpy(one + 280, params + 280 + 4 * (size_t)i, 4);
    vgpu__control(root->fd, subdevice->client, subdevice->handle, RM_DISABLE_CHANNELS, one, sizeof one);
  }
  return answer;
}

static int vgpu__set_channels(int stopped, uint32_t *status) {
  unsigned char done[OBJECTS] = {0};
  int failed = 0;
  for (unsigned i = 0; i < used; i++) {
    if (objects[i].client == 0 || done[i] || objects[i].disabled || !vgpu__rm_is_channel(objects[i].class_number))
      continue;
    uint32_t answer = vgpu__disable_some(i, stopped, done);
    if (answer != RM_OK) {
      *status = answer;
      failed = -1;
    }
  }
  return failed;
}

static uint32_t vgpu__schedule_group(const struct object *group, int fd, int stopped, const struct vgpu_rm_abi *abi) {
  unsigned char on[4] = {(unsigned char)!stopped}, preempt[8] = {1}; /* bWait */
  uint32_t answer = vgpu__control(fd, group->client, group->handle, RM_GROUP_SCHEDULE, on, abi->schedule_size);
  if (answer == RM_OK && stopped) {
    answer = vgpu__control(fd, group->client, group->handle, RM_GROUP_PREEMPT, preempt, sizeof preempt);
  }
  return answer;
}

static int vgpu__set_groups(int stopped, const struct vgpu_rm_abi *abi, uint32_t *status) {
  int failed = 0;
  for (unsigned i = 0; i < used; i++) {
    const struct object *group = &objects[i];
    if (group->client == 0 || group->class_number != RM_CLASS_GROUP || group->disabled) continue;
    const struct object *root = vgpu__find(group->client, group->client);
    uint32_t answer = vgpu__usable(root) ? vgpu__schedule_group(group, root->fd, stopped, abi) : RM_OBJECT_NOT_FOUND;
    if (answer != RM_OK) {
      *status = answer;
      failed = -1;
    }
  }
  return failed;
}

int vgpu__channels_set(enum vgpu_method method, int stopped, const struct vgpu_rm_abi *abi, uint32_t *status) {
  *status = RM_OK;
  vgpu__lock(&lock);
  int failed = method == VGPU_BY_CHANNELS ? vgpu__set_channels(stopped, status)
                                          : vgpu__set_groups(stopped, abi, status);
  vgpu__unlock(&lock);
  return failed;
}

int vgpu__channels_timeslice(uint64_t us, uint32_t *status) {
  int failed = 0;
  *status = RM_OK;
  vgpu__lock(&lock);
  for (unsigned i = 0; i < used; i++) {
    const struct object *group = &objects[i];
    if (group->client == 0 || group->class_number != RM_CLASS_GROUP) continue;
    const struct object *root = vgpu__find(group->client, group->client);
    if (!vgpu__usable(root)) continue;
    uint64_t params = us;
    uint32_t answer = vgpu__control(root->fd, group->client, group->handle, RM_GROUP_SET_TIMESLICE, &params,
                                    sizeof params);
    if (answer != RM_OK) {
      *status = answer;
      failed = -1;
    }
  }
  vgpu__unlock(&lock);
  return failed;
}

void vgpu__channels_limit_timeslice(uint64_t us) {
  STORE(most_timeslice_us, us != 0 && us < LEAST_TIMESLICE_US ? (uint64_t)LEAST_TIMESLICE_US : us);
}

/* The kernel module's version as it tells everybody. A driver that never asks for it names none in its calls. */
static uint32_t vgpu__module_version(void) {
  char text[64];
  int fd = vgpu__file_open("/sys/module/nvidia/version", O_RDONLY);
  ssize_t size = fd < 0 ? 0 : vgpu__file_read(fd, text, sizeof text);
  if (fd >= 0) vgpu__file_close(fd);
  return size <= 0 ? 0 : vgpu__rm_version(text, (size_t)size);
}

void vgpu__channels_seen(struct vgpu_channels_seen *into) {
  *into = (struct vgpu_channels_seen){.groups = 0};
  vgpu__lock(&lock);
  for (unsigned i = 0; i < used; i++) {
    if (objects[i].client == 0) continue;
    into->groups += objects[i].class_number == RM_CLASS_GROUP;
    into->channels += vgpu__rm_is_channel(objects[i].class_number) != 0;
  }
  into->overflow = overflow;
  into->version = version;
  vgpu__unlock(&lock);
  if (into->version == 0) into->version = vgpu__module_version();
}

/* ---- the driver's calls ---- */

/*
 * Records which channels the driver disabled or enabled itself. The hook does not enable channels that the driver
 * disabled.
 */
static void vgpu__note_disabling(const struct vgpu_rm_call *call) {
  unsigned char params[RM_DISABLE_SIZE];
  uint32_t count;
  if (call->params_size != sizeof params || vgpu__peek(params, call->params, sizeof params) != 0) return;
  memcpy(&count, params + 4, sizeof count);
  for (uint32_t i = 0; i < count && i < RM_MOST_CHANNELS; i++) {
    uint32_t client, handle;
    memcpy(&client, params + 24 + 4 * (size_t)i, sizeof client);
    memcpy(&handle, params + 280 + 4 * (size_t)i, sizeof handle);
    struct object *channel = vgpu__find(client, handle);
    if (channel != NULL) channel->disabled = params[0] != 0;
  }
}

static void vgpu__note_scheduling(const struct vgpu_rm_call *call) {
  unsigned char on;
  if (call->params_size < 1 || vgpu__peek(&on, call->params, sizeof on) != 0) return;
  struct object *object = vgpu__find(call->client, call->object);
  if (object != NULL) object->disabled = on == 0;
}

/* Records a call that has succeeded. Returns 1 if channels may have begun to run. */
static int vgpu__note(int fd, const struct vgpu_rm_call *call) {
  int changed = 0;
  vgpu__lock(&lock);
  if (call->kind == RM_KIND_ALLOC && vgpu__follows(call->class_number)) {
    vgpu__learn(fd, call);
    changed = vgpu__rm_is_channel(call->class_number);
  } else if (call->kind == RM_KIND_FREE) {
    vgpu__drop(call->client, call->object);
  } else if (call->kind == RM_KIND_VERSION) {
    if (call->version != 0) version = call->version;
  } else if (call->kind == RM_KIND_CONTROL && call->command == RM_DISABLE_CHANNELS) {
    vgpu__note_disabling(call);
    changed = 1;
  } else if (call->kind == RM_KIND_CONTROL &&
             (call->command == RM_GROUP_SCHEDULE || call->command == RM_CHANNEL_SCHEDULE)) {
    vgpu__note_scheduling(call);
    changed = 1;
  }
  vgpu__unlock(&lock);
  return changed;
}

/* Whether the call names a client of another process. The driver may not check this, so the hook does. */
static int vgpu__names_others(const struct vgpu_rm_call *call) {
  unsigned char params[RM_DISABLE_SIZE];
  uint32_t count;
  int foreign = 0;
  if (call->params_size != sizeof params || vgpu__peek(params, call->params, sizeof params) != 0) return 0;
  memcpy(&count, params + 4, sizeof count);
  vgpu__lock(&lock);
  for (uint32_t i = 0; i < count && i < RM_MOST_CHANNELS && !overflow; i++) {
    uint32_t client;
    memcpy(&client, params + 24 + 4 * (size_t)i, sizeof client);
    foreign |= client != call->client && vgpu__find(client, client) == NULL;
  }
  vgpu__unlock(&lock);
  return foreign;
}

/* Writes a status to where the caller expects the driver to write it. */
static int vgpu__answer(const struct vgpu_rm_call *call, uint32_t status) {
  return vgpu__poke(call->at + call->status_offset, &status, sizeof status) == 0;
}

/* Cuts a time slice to the lease's maximum. Returns 1 if the call was answered here. */
static int vgpu__cut_timeslice(int fd, const struct vgpu_rm_call *call) {
  uint64_t us, most = LOAD(most_timeslice_us);
  if (most == 0 || call->params_size != sizeof us || vgpu__peek(&us, call->params, sizeof us) != 0 || us <= most)
    return 0;
  uint32_t status = vgpu__control(fd, call->client, call->object, call->command, &most, sizeof most);
  return status != UINT32_MAX && vgpu__answer(call, status);
}

/* Filters calls that would undo what the lease is held to. Returns 1 if the call was answered here. */
static int vgpu__filter(int fd, const struct vgpu_rm_call *call) {
  if (call->kind != RM_KIND_CONTROL) return 0;
  if (call->command == RM_GROUP_SET_TIMESLICE) return vgpu__cut_timeslice(fd, call);
  return call->command == RM_DISABLE_CHANNELS && vgpu__names_others(call) && vgpu__answer(call, RM_INVALID_CLIENT);
}

int vgpu__ioctl(int fd, unsigned long request, ...) {
  va_list arguments;
  struct vgpu_rm_call call;
  va_start(arguments, request);
  void *argument = va_arg(arguments, void *);
  va_end(arguments);
  if ((request >> 8 & 0xff) != RM_MAGIC) return next(fd, request, argument);
  vgpu__rm_parse(request, (uint64_t)(uintptr_t)argument, &call);
  if (call.kind == RM_KIND_OTHER) return next(fd, request, argument);
  if (vgpu__filter(fd, &call)) return 0;
  int result = next(fd, request, argument);
  if (result != 0) return result;
  int kept = errno;
  vgpu__rm_parse(request, (uint64_t)(uintptr_t)argument, &call); /* now with the fields that the driver filled in */
  if (call.status == RM_OK && vgpu__note(fd, &call)) vgpu__level2_channels_changed();
  errno = kept;
  return result;
}

void vgpu__channels_begin(vgpu_ioctl *to) { next = to; }

int vgpu__channels_watch(void *driver) {
  static int watching;
  vgpu_ioctl *self = vgpu__ioctl;
  void *ours;
  if (watching) return 0;
  memcpy(&ours, &self, sizeof ours); /* ISO C has no cast between these pointers */
  if (vgpu__redirect(driver, "ioctl", ours, (void **)&next) != 0) return -1;
  watching = 1;
  return 0;
}

void vgpu__channels_forget(void) {
  lock.word = 0;
  memset(objects, 0, sizeof objects);
  used = 0;
  overflow = 0;
}
