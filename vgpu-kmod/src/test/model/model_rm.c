// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
#include "model_objects.h"

#define MIB (1024u * 1024u)

struct nvos00 {
  uint32_t root, parent, old, status;
};
struct nvos05 {
  uint32_t root, parent, made, class_number, status;
};
struct nvos21 {
  uint32_t root, parent, made, class_number;
  uint64_t params;
  uint32_t params_size, status;
};
struct nvos64 {
  uint32_t root, parent, made, class_number;
  uint64_t params, rights;
  uint32_t params_size, flags, status, pad;
};
struct nvos55 {
  uint32_t client, parent, object, source, source_object, flags, status;
};
struct nvos32 {
  uint32_t root, parent, function, vaspace;
  int16_t heap, pad;
  uint32_t status;
  uint64_t total, free;
  uint32_t owner, memory, type, flags, attr, more[7];
  uint64_t size, rest[11];
};
struct xfer {
  uint32_t command, size;
  uint64_t pointer;
};
struct memory_params {
  uint32_t owner, type, flags, width, height;
  int32_t pitch;
  uint32_t attr, attr2, format, more[2];
  uint64_t low, high, size;
};
_Static_assert(sizeof(struct nvos21) == 32 && sizeof(struct nvos64) == 48 && sizeof(struct nvos54) == 32,
               "as the driver has them");
_Static_assert(sizeof(struct nvos55) == 28 && sizeof(struct nvos32) == 184 && sizeof(struct nvos05) == 20,
               "as the driver has them");
_Static_assert(offsetof(struct nvos32, memory) == 44 && offsetof(struct nvos32, size) == 88, "as the driver has them");
_Static_assert(offsetof(struct memory_params, size) == 64, "as the driver has it");

struct block {
  uint64_t bytes;
  uint32_t refs, tag;
  int on_gpu;
};

/* ---- the tree ---- */

struct model_object *model_client(const struct model_rm *rm, uint32_t handle) {
  struct model_object *at = rm->clients;
  while (at != NULL && at->handle != handle) at = at->next;
  return at;
}

/* The object of a client that follows one of its objects; NULL after the last. */
struct model_object *model_following(const struct model_object *client, struct model_object *at) {
  if (at->child != NULL) return at->child;
  while (at != client && at->next == NULL) at = at->parent;
  return at == client ? NULL : at->next;
}

struct model_object *model_find(struct model_object *client, uint32_t handle) {
  struct model_object *at = client;
  while (at != NULL && at->handle != handle) at = model_following(client, at);
  return at;
}

static void let_go(struct model_rm *rm, struct block *block) {
  if (block == NULL || --block->refs != 0) return;
  if (block->on_gpu) {
    rm->taken -= block->bytes;
    rm->held[block->tag] -= block->bytes;
  }
  rm->drop(block);
}

static void destroy(struct model_rm *rm, struct model_object *object) {
  struct model_object *at = object;
  for (;;) {
    struct model_object *above, **link;
    if (at->child != NULL) {
      at = at->child;
      continue;
    }
    above = at == object ? NULL : at->parent;
    link = at->parent != NULL ? &at->parent->child : &rm->clients;
    while (*link != at) link = &(*link)->next;
    *link = at->next;
    let_go(rm, at->block);
    if (rm->running == at) rm->running = NULL;
    rm->drop(at);
    rm->objects--;
    if (above == NULL) return;
    at = above;
  }
}

static struct model_object *hang(struct model_rm *rm, struct model_object *parent, uint32_t handle,
                                 uint32_t class_number) {
  struct model_object *made = rm->make(sizeof *made);
  struct model_object **list = parent != NULL ? &parent->child : &rm->clients;
  if (made == NULL) return NULL;
  made->parent = parent;
  made->client = parent != NULL ? parent->client : made;
  made->handle = handle;
  made->class_number = class_number;
  made->next = *list;
  *list = made;
  rm->objects++;
  return made;
}

/* A client is accepted only on the file that it belongs to. */
static struct model_object *own_client(const struct model_rm *rm, const struct model_file *file, uint32_t handle) {
  struct model_object *client = model_client(rm, handle);
  return client != NULL && client->file == (file->tied != NULL ? file->tied : file) ? client : NULL;
}

/* ---- allocation ---- */

static uint64_t grain(uint64_t bytes) {
  uint64_t unit = bytes <= 65536 ? 4096 : bytes <= 2 * MIB ? 65536 : 2 * MIB;
  return bytes > ~(uint64_t)0 - unit ? 0 : (bytes + unit - 1) / unit * unit;
}

static uint32_t take(struct model_rm *rm, struct model_object *client, uint64_t *bytes, int on_gpu,
                     struct block **into) {
  uint64_t size = grain(*bytes);
  if (*bytes == 0) return BAD_ARGUMENT;
  if (size == 0 || size > rm->total || (on_gpu && size > rm->total - rm->taken)) return NO_MEMORY;
  *into = rm->make(sizeof **into);
  if (*into == NULL) return NO_MEMORY;
  (*into)->bytes = *bytes = size;
  (*into)->refs = 1;
  (*into)->tag = client->tag;
  (*into)->on_gpu = on_gpu;
  if (on_gpu) {
    rm->taken += size;
    rm->held[client->tag] += size;
    if (rm->held[client->tag] > rm->most[client->tag]) rm->most[client->tag] = rm->held[client->tag];
  }
  return OK;
}

static int is_memory(uint32_t class_number) {
  return class_number == 0x40 || class_number == 0x3f || class_number == 0x3e || class_number == 0x90ce;
}

static int fits_below(uint32_t class_number, const struct model_object *parent) {
  switch (class_number) {
    case 0x80:
    case 0x90ce:
    case 0x79: return parent->parent == NULL;
    case 0x2080:
    case 0x40:
    case 0x3f:
    case 0x3e:
    case 0xa06c:
    case 0x50a0: return parent->class_number == 0x80;
    default: return model_is_channel(class_number) && (parent->class_number == 0xa06c || parent->class_number == 0x80);
  }
}

static uint32_t make_client(struct model_rm *rm, struct model_file *file, const struct model_caller *caller,
                            uint32_t *handle) {
  struct model_object *client;
  if (*handle == 0) {
    do *handle = 0xc1d00000u + (++rm->next_client & 0xfffff);
    while (model_client(rm, *handle) != NULL);
  }
  if (model_client(rm, *handle) != NULL) return DUPLICATE;
  client = hang(rm, NULL, *handle, 0x41);
  if (client == NULL) return NO_MEMORY;
  client->file = file->tied != NULL ? file->tied : file;
  client->tag = caller->tag;
  client->process = caller->process;
  return OK;
}

/* Parameters of memory are read and written by class, whatever size the caller states. */
static uint32_t take_by_params(struct model_rm *rm, struct model_object *client, const struct model_caller *caller,
                               uint32_t class_number, uint64_t at, struct block **into) {
  struct memory_params params;
  uint32_t status;
  if (at == 0 || caller->read(caller->self, &params, at, sizeof params) != 0) return BAD_ARGUMENT;
  status = take(rm, client, &params.size, class_number != 0x3e, into);
  if (status == OK && caller->write(caller->self, at, &params, sizeof params) != 0) {
    let_go(rm, *into);
    return BAD_ARGUMENT;
  }
  return status;
}

static uint32_t allocate(struct model_rm *rm, struct model_file *file, const struct model_caller *caller, uint32_t root,
                         uint32_t above, uint32_t *handle, uint32_t class_number, uint64_t params) {
  struct model_object *client, *parent, *made;
  struct block *block = NULL;
  uint32_t status;
  if (class_number == 0 || class_number == 0x41) return make_client(rm, file, caller, handle);
  client = own_client(rm, file, root);
  if (client == NULL) return BAD_CLIENT;
  parent = model_find(client, above);
  if (parent == NULL) return BAD_PARENT;
  if (!fits_below(class_number, parent))
    return is_memory(class_number) || class_number == 0xa06c ? BAD_PARENT : BAD_CLASS;
  if (class_number == 0x80 && !caller->has_gpu(caller->self)) return NOT_PERMITTED;
  if (*handle == 0) {
    do *handle = 0xcaf00000u + (++rm->next_handle & 0xfffff);
    while (model_find(client, *handle) != NULL);
  }
  if (model_find(client, *handle) != NULL) return DUPLICATE;
  if (is_memory(class_number)) {
    status = take_by_params(rm, client, caller, class_number, params, &block);
    if (status != OK) return status;
  }
  made = hang(rm, parent, *handle, class_number);
  if (made == NULL) {
    let_go(rm, block);
    return NO_MEMORY;
  }
  made->block = block;
  made->timeslice_us = class_number == 0xa06c ? 1024 : 0;
  made->number = ++rm->made;
  return OK;
}

/* ---- the other calls ---- */

static uint32_t free_object(struct model_rm *rm, struct model_file *file, uint32_t root, uint32_t handle) {
  struct model_object *client = own_client(rm, file, root), *object;
  if (client == NULL) return BAD_CLIENT;
  object = model_find(client, handle);
  if (object != NULL) destroy(rm, object);
  return OK; /* also for an unknown handle */
}

static uint32_t duplicate(struct model_rm *rm, struct model_file *file, const struct model_caller *caller,
                          struct nvos55 *call) {
  struct model_object *client = own_client(rm, file, call->client), *theirs = model_client(rm, call->source), *parent,
                      *source, *made;
  if (client == NULL || theirs == NULL) return BAD_CLIENT;
  if (theirs->process != caller->process) return NOT_PERMITTED;
  parent = model_find(client, call->parent);
  source = model_find(theirs, call->source_object);
  if (parent == NULL) return BAD_PARENT;
  if (source == NULL) return NOT_FOUND;
  if (source->block == NULL || source->class_number == 0x90ce) return BAD_ARGUMENT;
  if (call->object == 0) {
    do call->object = 0xcaf00000u + (++rm->next_handle & 0xfffff);
    while (model_find(client, call->object) != NULL);
  }
  if (model_find(client, call->object) != NULL) return DUPLICATE;
  made = hang(rm, parent, call->object, source->class_number);
  if (made == NULL) return NO_MEMORY;
  made->block = source->block;
  made->block->refs++;
  return OK;
}

static uint32_t fb_info(const struct model_rm *rm, const struct model_caller *caller, const struct nvos54 *call) {
  uint32_t count, entry[2];
  uint64_t at = call->params + 4;
  if (call->params_size != rm->fb_info_size) return BAD_PARAMS;
  if (caller->read(caller->self, &count, call->params, 4) != 0) return BAD_ARGUMENT;
  if (count > (rm->fb_info_size - 4) / 8) return BAD_ARGUMENT;
  for (; count-- > 0; at += 8) {
    if (caller->read(caller->self, entry, at, 8) != 0) return BAD_ARGUMENT;
    switch (entry[0]) {
      case 0x07:
      case 0x08:
      case 0x09:
      case 0x20: entry[1] = (uint32_t)(rm->total >> 10); break;
      case 0x12:
      case 0x16: entry[1] = (uint32_t)((rm->total - rm->taken) >> 10); break;
      default: entry[1] = 256 << 10; break; /* for example the size of BAR1 */
    }
    if (caller->write(caller->self, at, entry, 8) != 0) return BAD_ARGUMENT;
  }
  return OK;
}

static uint32_t control(struct model_rm *rm, struct model_file *file, const struct model_caller *caller,
                        const struct nvos54 *call) {
  struct model_object *client = own_client(rm, file, call->client), *object;
  uint64_t us;
  uint32_t level;
  if (client == NULL) return BAD_CLIENT;
  object = model_find(client, call->object);
  if (object == NULL) return NOT_FOUND;
  switch (call->command) {
    case 0xa06c0103:
      if (rm->refuses_slices > 0) {
        rm->refuses_slices--;
        return NOT_SUPPORTED;
      }
      if (object->class_number != 0xa06c || call->params_size != 8) return BAD_PARAMS;
      if (caller->read(caller->self, &us, call->params, 8) != 0) return BAD_ARGUMENT;
      if (us < 50) return NOT_SUPPORTED;
      object->timeslice_us = us;
      return OK;
    case 0xa06c0104:
      if (object->class_number != 0xa06c || call->params_size != 8) return BAD_PARAMS;
      return caller->write(caller->self, call->params, &object->timeslice_us, 8) == 0 ? OK : BAD_ARGUMENT;
    case 0xa06c0101: return model_schedule(rm, caller, call, object);
    case 0xa06c0105:
      if (object->class_number != 0xa06c || call->params_size != 8) return BAD_PARAMS;
      if (rm->running == object) rm->left_us = 0;
      return OK;
    case 0xa06c0107:
      if (rm->refuses_levels > 0) {
        rm->refuses_levels--;
        return NOT_SUPPORTED;
      }
      if (object->class_number != 0xa06c || call->params_size != 4) return BAD_PARAMS;
      if (caller->read(caller->self, &level, call->params, 4) != 0) return BAD_ARGUMENT;
      if (level > 2) return BAD_ARGUMENT;
      object->level = level;
      return OK;
    case 0x2080110b: return model_disable(rm, caller, call, object);
    case 0x20801303: return object->class_number == 0x2080 ? fb_info(rm, caller, call) : BAD_ARGUMENT;
    default: return NOT_SUPPORTED;
  }
}

static uint32_t heap(struct model_rm *rm, struct model_file *file, struct nvos32 *call) {
  struct model_object *client = own_client(rm, file, call->root), *parent, *made;
  struct block *block = NULL;
  uint32_t status = OK;
  if (client == NULL) return BAD_CLIENT;
  if (call->function == 3) status = free_object(rm, file, call->root, call->memory);
  else if (call->function == 2) {
    parent = model_find(client, call->parent);
    if (parent == NULL || parent->class_number != 0x80) return BAD_PARENT;
    if (call->memory == 0) call->memory = 0xcaf00000u + (++rm->next_handle & 0xfffff);
    if (model_find(client, call->memory) != NULL) return DUPLICATE;
    if ((call->flags & 0x80000) == 0) status = take(rm, client, &call->size, (call->attr >> 25 & 3) != 1, &block);
    if (status != OK) return status;
    made = hang(rm, parent, call->memory, 0x40);
    if (made == NULL) {
      let_go(rm, block);
      return NO_MEMORY;
    }
    made->block = block;
  } else if (call->function != 5) {
    return NOT_SUPPORTED;
  }
  call->total = rm->total;
  call->free = rm->total - rm->taken;
  return status;
}

static long tie(struct model_file *file, const struct model_caller *caller, int32_t fd) {
  struct model_file *control_file = caller->file_of(caller->self, fd);
  if (file->control || file->tied != NULL || control_file == NULL || !control_file->control) return INVALID;
  file->tied = control_file;
  return 0;
}

union body {
  struct nvos00 free;
  struct nvos05 object;
  struct nvos21 alloc;
  struct nvos64 rights;
  struct nvos54 control;
  struct nvos55 dup;
  struct nvos32 heap;
  int32_t fd;
};

static long carry_out(struct model_rm *rm, struct model_file *file, const struct model_caller *caller, uint32_t number,
                      size_t size, union body *body) {
  switch (number) {
    case 0x29: body->free.status = free_object(rm, file, body->free.root, body->free.old); return 0;
    case 0x28:
      body->object.status = is_memory(body->object.class_number)
                                ? (uint32_t)BAD_ARGUMENT
                                : allocate(rm, file, caller, body->object.root, body->object.parent, &body->object.made,
                                           body->object.class_number, 0);
      return 0;
    case 0x2a: body->control.status = control(rm, file, caller, &body->control); return 0;
    case 0x2b:
      if (size == sizeof body->alloc) {
        body->alloc.status = allocate(rm, file, caller, body->alloc.root, body->alloc.parent, &body->alloc.made,
                                      body->alloc.class_number, body->alloc.params);
      } else {
        body->rights.status = allocate(rm, file, caller, body->rights.root, body->rights.parent, &body->rights.made,
                                       body->rights.class_number, body->rights.params);
      }
      return 0;
    case 0x34: body->dup.status = duplicate(rm, file, caller, &body->dup); return 0;
    case 0x4a: body->heap.status = heap(rm, file, &body->heap); return 0;
    default: return tie(file, caller, body->fd);
  }
}

static size_t size_of(uint32_t number, size_t size) {
  switch (number) {
    case 0x28: return sizeof(struct nvos05);
    case 0x29: return sizeof(struct nvos00);
    case 0x2a: return sizeof(struct nvos54);
    case 0x2b: return size == sizeof(struct nvos21) ? sizeof(struct nvos21) : sizeof(struct nvos64);
    case 0x34: return sizeof(struct nvos55);
    case 0x4a: return sizeof(struct nvos32);
    case 201: return sizeof(int32_t);
    default: return 0;
  }
}

/* Only the number and the size in the ioctl's word count. */
long model_ioctl(struct model_rm *rm, struct model_file *file, const struct model_caller *caller, uint32_t word,
                 uint64_t argument) {
  uint32_t number = word & 0xff;
  size_t size = word >> 16 & 0x3fff;
  union body body;
  long result;
  rm->calls++;
  if (number == 211) {
    struct xfer xfer;
    if (size != sizeof xfer) return INVALID;
    if (caller->read(caller->self, &xfer, argument, sizeof xfer) != 0) return NO_ACCESS;
    number = xfer.command;
    size = xfer.size;
    argument = xfer.pointer;
  }
  if (size == 0 || size != size_of(number, size)) return INVALID;
  if (caller->read(caller->self, &body, argument, size) != 0) return NO_ACCESS;
  result = carry_out(rm, file, caller, number, size, &body);
  /* The call has been executed. */
  if (result == 0 && caller->write(caller->self, argument, &body, size) != 0) return NO_ACCESS;
  return result;
}

void model_close(struct model_rm *rm, struct model_file *file) {
  struct model_object *client = rm->clients;
  while (client != NULL) {
    if (client->file == file) {
      destroy(rm, client);
      client = rm->clients;
    } else {
      client = client->next;
    }
  }
}
