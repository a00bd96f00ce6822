// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
#include "rm_call.h"

#include "rm_turn.h"

enum charge { NOTHING, DEVICE_MEMORY, HOST_MEMORY, DENIED };

/* A call in progress. */
struct request {
  struct vgpu_rm_book *book;
  const struct vgpu_rm_host *host;
  void *self;
  struct vgpu_rm_io io;
  uint64_t file, argument;
  uint32_t word;
  struct vgpu_rm_call call, after; /* before and after the driver's part */
  enum charge charge;
  uint64_t bytes, bytes_after;
  uint64_t stamp;                /* at its admission; 0: never assume that an object in the book is gone */
  struct vgpu_rm_tenant *tenant; /* a reference is held */
  uint64_t reserved;
  uint64_t target;               /* the stamp of the object that is freed or scheduled; 0: not an object in the book */
  struct vgpu_rm_block *shared;  /* DUP: a reference is held */
  struct vgpu_rm_tie *tie;
  /* Allocated before the lock is taken; dropped at the end if unused. */
  struct vgpu_rm_object *object, *client;
  struct vgpu_rm_block *block;
  uint64_t most, left; /* for answers that contain sizes */
  uint32_t engine;   /* of a new channel group */
  uint32_t slice_us; /* of a new channel group; 0: the driver's */
  uint32_t answer;
  int wanted; /* SCHEDULE: on or off */
  int undo, lost; /* lost: the answer could not be read */
};

static uint64_t vgpu__least(uint64_t one, uint64_t other) { return one < other ? one : other; }

static int vgpu__is_root(uint32_t class_number) { return class_number == 0 || class_number == RM_CLASS_ROOT; }

static enum charge vgpu__charge_of(const struct vgpu_rm_host *host, uint32_t class_number) {
  switch (class_number) {
    case RM_CLASS_LOCAL_MEMORY:
    case 0x3fu: /* the same, privileged */
    case 0x42u: /* extended */
      return DEVICE_MEMORY;
    case RM_CLASS_HOST_MEMORY: return HOST_MEMORY;
    case 0x82u: /* video memory by address */
    case 0xc2u:
    case 0xf8u: /* fabric memory: its size is in another form */
      return DENIED;
    default: return class_number != 0 && class_number == host->further_class ? DEVICE_MEMORY : NOTHING;
  }
}

/* Functions of RM_HEAP that only query or describe. The other ones allocate in forms that no current program uses. */
static int vgpu__heap_passes(uint32_t function) {
  return function == RM_HEAP_INFO || function == RM_HEAP_GET_ALIGNMENT || function == RM_HEAP_OS_DESCRIPTOR;
}

/* ---- before admission: steps that access the caller's memory, or allocate ---- */

static int vgpu__write32(const struct request *request, uint64_t at, uint32_t value) {
  return request->io.write(request->io.self, at, &value, sizeof value);
}

/*
 * An allocation of device memory is accepted only if the driver afterwards reports its size in a place that it does not
 * overwrite. That excludes the old forms, and parameters that overlap the call itself.
 */
static int vgpu__size_is_hidden(const struct vgpu_rm_call *call) {
  if (call->number != RM_ALLOC) return call->number != RM_HEAP;
  return call->bytes_at < call->at + call->size && call->at < call->bytes_at + sizeof(uint64_t);
}

static int vgpu__schedules(const struct vgpu_rm_call *call) {
  return call->kind == RM_KIND_CONTROL && (call->command == RM_GROUP_SCHEDULE || call->command == RM_CHANNEL_SCHEDULE);
}

/* Allocates what the call may need after the driver has executed it, when a failure could no longer be handled. */
static int vgpu__prepare(struct request *request) {
  const struct vgpu_rm_heap *heap = &request->book->heap;
  const struct vgpu_rm_call *call = &request->call;
  if (call->kind == RM_KIND_REGISTER) {
    request->tie = heap->make(sizeof *request->tie);
    return request->tie != NULL ? 0 : -1;
  }
  if (vgpu__schedules(call)) {
    unsigned char enable = 1; /* if this process cannot read it, neither can the driver */
    if (request->io.read(request->io.self, &enable, call->params, sizeof enable) == 0) request->wanted = enable != 0;
  }
  if (call->kind != RM_KIND_ALLOC && call->kind != RM_KIND_DUP) return 0;
  request->object = heap->make(sizeof *request->object);
  request->client = heap->make(sizeof *request->client);
  if (request->object == NULL || request->client == NULL) return -1;
  if (call->kind == RM_KIND_DUP) return 0;
  /* engineType of NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS. */
  if (call->class_number == RM_CLASS_GROUP && call->params != 0 &&
      request->io.read(request->io.self, &request->engine, call->params + 12, sizeof request->engine) != 0) {
    request->engine = 0;
  }
  request->charge = vgpu__charge_of(request->host, call->class_number);
  if (request->charge != DEVICE_MEMORY && request->charge != HOST_MEMORY) return 0;
  if (request->charge == DEVICE_MEMORY && vgpu__size_is_hidden(call)) request->charge = DENIED;
  request->block = heap->make(sizeof *request->block);
  /* If this process cannot read it, neither can the driver. */
  if (vgpu__rm_bytes(&request->io, call, &request->bytes) != 0) request->bytes = 0;
  return request->block != NULL ? 0 : -1;
}

/* Whether the core must handle the call. Most calls are forwarded without a lock or an allocation. */
static int vgpu__concerns(const struct vgpu_rm_call *call) {
  if (call->kind == RM_KIND_OTHER || call->kind == RM_KIND_VERSION) return 0;
  if (call->kind != RM_KIND_CONTROL) return 1;
  switch (call->command) {
    case RM_GROUP_SCHEDULE:
    case RM_CHANNEL_SCHEDULE:
    case RM_GROUP_SET_TIMESLICE:
    case RM_GROUP_SET_INTERLEAVE:
    case RM_GROUP_MAKE_REALTIME:
    case RM_CHANNEL_SET_INTERLEAVE:
    case RM_DISABLE_CHANNELS:
    case RM_SET_SCHED_POLICY:
    case RM_FB_GET_INFO:
    case RM_FB_GET_INFO_V2: return 1;
    default: return 0;
  }
}

/* The caller holds the lock. */
static void vgpu__report(const struct request *request, const struct vgpu_rm_tenant *tenant, uint32_t status,
                         uint64_t bytes) {
  if (request->host->report != NULL && tenant != NULL) request->host->report(tenant, &request->call, status, bytes);
}

/* ---- admission: with the lock held, without access to the caller's memory ---- */

static int vgpu__refuse(struct request *request, uint32_t status) {
  request->answer = status;
  return -1;
}

static int vgpu__admit_alloc(struct request *request) {
  struct vgpu_rm_tenant *tenant = request->tenant;
  if (request->charge == DENIED) {
    tenant->filtered++;
    return vgpu__refuse(request, RM_INSUFFICIENT_PERMISSIONS);
  }
  if (tenant->objects >= tenant->most_objects) {
    tenant->refused++;
    return vgpu__refuse(request, RM_INSUFFICIENT_RESOURCES);
  }
  if (request->charge == DEVICE_MEMORY) {
    if (vgpu__reserve(tenant, request->bytes) != 0) {
      tenant->refused++;
      vgpu__note(request->book, tenant);
      return vgpu__refuse(request, RM_NO_MEMORY);
    }
    request->reserved = request->bytes;
  }
  return 0;
}

/* Duplicates memory. It stays charged to the tenant that allocated it, and only that tenant may duplicate it. */
static int vgpu__admit_dup(struct request *request, struct vgpu_rm_tenant *tenant) {
  uint32_t count;
  struct vgpu_rm_object *root = vgpu__client_named(request->book, request->call.source, &count);
  const struct vgpu_rm_object *source =
      root != NULL ? vgpu__object_find(request->book, root, request->call.source_object) : NULL;
  if (root != NULL ? root->tenant != tenant : count != 0) { /* another tenant's, or an unknown tenant's */
    if (root != NULL) root->tenant->filtered++;
    else if (tenant != NULL) tenant->filtered++;
    return vgpu__refuse(request, RM_INVALID_CLIENT);
  }
  if (tenant != NULL && tenant->objects >= tenant->most_objects) {
    tenant->refused++;
    return vgpu__refuse(request, RM_INSUFFICIENT_RESOURCES);
  }
  /* A duplicate would be a second name of the group. */
  if (tenant != NULL && tenant->yields && source != NULL && source->class_number == RM_CLASS_GROUP) {
    tenant->filtered++;
    return vgpu__refuse(request, RM_INSUFFICIENT_PERMISSIONS);
  }
  if (tenant != NULL && source != NULL && source->block != NULL) {
    request->shared = source->block;
    request->shared->refs++;
  }
  return 0;
}

static struct vgpu_rm_object *vgpu__group_named(struct request *request) {
  struct vgpu_rm_object *root = vgpu__client_find(request->book, request->file, request->call.client);
  return root != NULL ? vgpu__group_of(vgpu__object_find(request->book, root, request->call.object)) : NULL;
}

static int vgpu__admit_control(struct request *request) {
  struct vgpu_rm_tenant *tenant = request->tenant;
  if (vgpu__schedules(&request->call)) {
    struct vgpu_rm_object *group = vgpu__group_named(request);
    if (group == NULL) return 0;
    request->target = group->stamp;
    return vgpu__group_asked(request->book, group, request->wanted) ? vgpu__refuse(request, RM_OK) : 0;
  }
  switch (request->call.command) {
    case RM_GROUP_SET_TIMESLICE:
      if (tenant->weight == 0) return 0;
      tenant->filtered++; /* the tenant's weight sets its time slices */
      return vgpu__refuse(request, RM_OK);
    case RM_GROUP_SET_INTERLEAVE:
    case RM_GROUP_MAKE_REALTIME:
    case RM_CHANNEL_SET_INTERLEAVE:
    case RM_SET_SCHED_POLICY: tenant->filtered++; return vgpu__refuse(request, RM_INSUFFICIENT_PERMISSIONS);
    default: return 0;
  }
}

static void vgpu__note_sizes(struct request *request) {
  const struct vgpu_rm_tenant *tenant = request->tenant;
  request->most = tenant->limit;
  request->left = tenant->used < tenant->limit ? tenant->limit - tenant->used : 0;
}

/*
 * Whether a process of one tenant wants to create something in a client of another, through a file that it was passed
 * or has taken (SCM_RIGHTS, pidfd_getfd). Neither can be charged rightly: the client's tenant did not ask for it, and
 * the process's tenant may be gone while the client keeps it. A process without a tenant acts for the client's.
 */
static int vgpu__is_foreign(struct request *request, const struct vgpu_rm_object *root) {
  if (request->call.kind != RM_KIND_ALLOC && request->call.kind != RM_KIND_DUP) return 0;
  struct vgpu_rm_tenant *caller = request->host->tenant(request->self, request->book);
  if (caller == NULL || caller == root->tenant || root->tenant->key == 0) return 0;
  caller->filtered++;
  vgpu__report(request, caller, RM_INVALID_CLIENT, request->bytes);
  return 1;
}

/* 0: forward the call to the driver; otherwise `answer` is the caller's result. */
static int vgpu__admit(struct request *request) {
  struct vgpu_rm_book *book = request->book;
  const struct vgpu_rm_call *call = &request->call;
  struct vgpu_rm_object *root = vgpu__client_find(book, request->file, call->client);
  int creates = call->kind == RM_KIND_ALLOC && vgpu__is_root(call->class_number);
  struct vgpu_rm_tenant *tenant = root != NULL && !creates ? root->tenant : request->host->tenant(request->self, book);
  request->stamp = book->stamp;
  if (root != NULL && !creates && vgpu__is_foreign(request, root)) return vgpu__refuse(request, RM_INVALID_CLIENT);
  if (call->kind == RM_KIND_DUP && vgpu__admit_dup(request, tenant) != 0) return -1;
  if (tenant == NULL) return 0;
  vgpu__tenant_hold(tenant);
  request->tenant = tenant;
  switch (call->kind) {
    case RM_KIND_ALLOC: return vgpu__admit_alloc(request);
    case RM_KIND_CONTROL: return vgpu__admit_control(request);
    case RM_KIND_HEAP:
      if (vgpu__heap_passes(call->function)) return 0;
      tenant->filtered++;
      return vgpu__refuse(request, RM_NOT_SUPPORTED);
    case RM_KIND_FREE: {
      const struct vgpu_rm_object *freed = root != NULL ? vgpu__object_find(book, root, call->object) : NULL;
      if (freed != NULL) request->target = freed->stamp;
      return 0;
    }
    default: return 0;
  }
}

/* Whether the list names a channel of another tenant. The driver itself does not check that. Reads the list in
 * parts, to keep the stack small. */
static int vgpu__names_others(struct request *request) {
  const struct vgpu_rm_call *call = &request->call;
  struct vgpu_rm_book *book = request->book;
  uint32_t count, clients[RM_MOST_CHANNELS];
  int foreign = 0;
  if (call->params_size != RM_DISABLE_SIZE) return 0; /* the driver refuses it */
  if (request->io.read(request->io.self, &count, call->params + 4, sizeof count) != 0) return 0;
  if (request->io.read(request->io.self, clients, call->params + 24, sizeof clients) != 0) return 0;
  if (count > RM_MOST_CHANNELS) count = RM_MOST_CHANNELS;
  request->host->lock(book);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t known;
    const struct vgpu_rm_object *root = vgpu__client_named(book, clients[i], &known);
    if (clients[i] == call->client && known == 0) continue;
    foreign |= root != NULL ? root->tenant != request->tenant : request->tenant != NULL || known != 0;
  }
  if (foreign && request->tenant != NULL) {
    request->tenant->filtered++;
    vgpu__report(request, request->tenant, RM_INVALID_CLIENT, 0);
  }
  request->host->unlock(book);
  return foreign;
}

/* Ties a file before the driver does, so that a client created meanwhile is not attributed to the file alone. */
static void vgpu__tie(struct request *request) {
  struct vgpu_rm_tie *tie = request->tie;
  if (tie->owner == 0 || vgpu__file_owner(request->book, request->file) != request->file) return;
  tie->file = request->file;
  vgpu__file_tie(request->book, tie);
  request->tie = NULL;
}

/* ---- after the driver's answer ---- */

/* Whether the driver may have executed the call. If it could not write its answer, it has executed the call although
 * the caller sees an error. */
static int vgpu__done(const struct request *request, long result) {
  int creates = request->call.kind == RM_KIND_ALLOC && vgpu__is_root(request->call.class_number);
  /* No client has handle 0. */
  if ((creates ? request->after.object : request->call.client) == 0 && request->call.kind != RM_KIND_REGISTER) return 0;
  return (result >= 0 || result == VGPU_RM_FAULT) && request->after.status == RM_OK;
}

#define LARGEST_PAGE ((uint64_t)2 << 20)

static void vgpu__look_again(struct request *request, long result) {
  const struct vgpu_rm_call *call = &request->call;
  vgpu__rm_decode(&request->io, vgpu__rm_word(call->number, call->size), call->at, &request->after);
  if (result == VGPU_RM_FAULT || request->after.kind != call->kind) { /* assume the outcome that keeps the charge */
    request->after = *call; /* with the requested handle */
    request->after.status = call->kind == RM_KIND_FREE ? RM_OBJECT_NOT_FOUND : RM_OK;
    request->stamp = 0;
    request->lost = 1;
  }
  request->bytes_after = request->bytes;
  if (request->block != NULL && vgpu__rm_bytes(&request->io, &request->call, &request->bytes_after) != 0) {
    request->bytes_after = request->bytes;
  }
  /* This form carries the size in its answer, so a lost answer loses the size too. Assume rounding up to the largest
   * page. */
  if (request->lost && call->number == RM_HEAP) {
    request->bytes_after = request->bytes > VGPU_RM_NO_LIMIT - LARGEST_PAGE
                               ? VGPU_RM_NO_LIMIT
                               : (request->bytes + LARGEST_PAGE - 1) & ~(LARGEST_PAGE - 1);
  }
  /* The driver rounds up, so a smaller number is not the driver's. */
  if (request->bytes_after < request->bytes) request->bytes_after = request->bytes;
}

/* Whether a field changed that the driver does not modify: another thread has written to the call. */
static int vgpu__changed(const struct request *request) {
  const struct vgpu_rm_call *before = &request->call, *after = &request->after;
  int creates = before->kind == RM_KIND_ALLOC && vgpu__is_root(before->class_number);
  return after->class_number != before->class_number || (after->client != before->client && !creates) ||
         (before->object != 0 && after->object != before->object);
}

/* The client of a call. If it is not known, enters one: it was created before the module was attached, or by a call
 * that is not settled yet. */
static struct vgpu_rm_object *vgpu__home(struct request *request) {
  struct vgpu_rm_book *book = request->book;
  struct vgpu_rm_object *root = vgpu__client_find(book, request->file, request->call.client);
  if (root != NULL) return root;
  root = vgpu__client_enter(book, request->client, request->tenant, request->call.client, request->file,
                            request->stamp, 0);
  request->client = NULL;
  return root;
}

static void vgpu__enter(struct request *request, struct vgpu_rm_block *block, uint32_t class_number) {
  struct vgpu_rm_object *root = vgpu__home(request);
  uint32_t handle = request->call.object != 0 ? request->call.object : request->after.object;
  vgpu__object_enter(request->book, request->object, root, request->call.parent, handle, class_number, block,
                     request->stamp);
  request->object = NULL;
}

/* Commits an allocation. If the driver took more than requested, reserves the difference or marks the allocation for
 * undoing. */
static void vgpu__settle_alloc(struct request *request) {
  struct vgpu_rm_tenant *tenant = request->tenant;
  if (vgpu__is_root(request->call.class_number)) {
    vgpu__client_enter(request->book, request->client, tenant, request->after.object, request->file, request->stamp,
                       !request->lost);
    request->client = NULL;
    return;
  }
  struct vgpu_rm_block *block = request->block;
  if (block != NULL) {
    uint64_t more = request->bytes_after - request->bytes, on_host = 0;
    if (request->charge == HOST_MEMORY) {
      on_host = vgpu__least(request->bytes_after, VGPU_RM_NO_LIMIT - tenant->host_used);
      tenant->host_used += on_host;
    } else if (more == 0 || vgpu__reserve(tenant, more) == 0) {
      request->reserved += more;
    } else if (!request->undo) {
      request->undo = 1;
      return;
    } else {
      request->reserved += vgpu__force(tenant, more);
      tenant->over++;
    }
    *block = (struct vgpu_rm_block){.tenant = tenant, .bytes = on_host + request->reserved, .refs = 1,
                                    .on_host = request->charge == HOST_MEMORY};
    vgpu__tenant_hold(tenant);
    tenant->allocations++;
    vgpu__report(request, tenant, RM_OK, block->bytes);
    request->block = NULL;
    request->reserved = 0;
  }
  struct vgpu_rm_object *made = request->object;
  vgpu__enter(request, block, request->call.class_number);
  made->engine = request->engine;
  made->slice_us = VGPU_RM_DRIVERS_SLICE_US;
  if (request->call.class_number != RM_CLASS_GROUP || tenant->weight == 0) return;
  made->slice_us = request->slice_us = vgpu__slice_of(tenant, made->engine, 1);
}

static void vgpu__settle_free(struct request *request, int done) {
  struct vgpu_rm_object *root = vgpu__client_find(request->book, request->file, request->call.client);
  struct vgpu_rm_object *freed = root != NULL ? vgpu__object_find(request->book, root, request->call.object) : NULL;
  if (freed == NULL || freed->stamp != request->target) return;
  if (done) vgpu__object_remove(request->book, freed, request->stamp);
  else if (request->lost) freed->sure = 0; /* the object may be gone */
}

/* A client without a tenant has received the file and handle of a client in the book. The client in the book must
 * have gone unnoticed. */
static void vgpu__forget_namesake(struct request *request) {
  if (request->call.kind != RM_KIND_ALLOC || !vgpu__is_root(request->call.class_number)) return;
  struct vgpu_rm_object *there = vgpu__client_find(request->book, request->file, request->after.object);
  if (there != NULL && there->stamp <= request->stamp) vgpu__object_remove(request->book, there, request->stamp);
}

/* The caller holds the lock. */
static void vgpu__settle(struct request *request, long result) {
  int done = vgpu__done(request, result);
  if (request->call.kind == RM_KIND_REGISTER && result < 0 && request->tie == NULL)
    vgpu__file_tie_failed(request->book, request->file);
  if (request->tenant == NULL) {
    if (done) vgpu__forget_namesake(request);
    return;
  }
  if (done && vgpu__changed(request)) request->tenant->changed++;
  switch (request->call.kind) {
    case RM_KIND_ALLOC:
      if (done) vgpu__settle_alloc(request);
      break;
    case RM_KIND_FREE:
      vgpu__settle_free(request, done);
      break;
    case RM_KIND_DUP:
      if (!done) break;
      vgpu__enter(request, request->shared, 0);
      request->shared = NULL;
      break;
    case RM_KIND_CONTROL: {
      struct vgpu_rm_object *group = done && vgpu__schedules(&request->call) ? vgpu__group_named(request) : NULL;
      if (group != NULL && group->stamp == request->target)
        vgpu__group_scheduled(request->book, group, request->wanted);
      break;
    }
    default: break;
  }
  vgpu__note_sizes(request);
}

/* ---- our own calls, made through the caller's memory because the driver accepts no other ---- */

/*
 * Executes one of our own calls in place of the caller's fields, and restores those. Returns the driver's status, or
 * UINT32_MAX. `size` is at most RM_CONTROL_SIZE, and at most the size of the caller's own call.
 */
static uint32_t vgpu__own(struct request *request, uint32_t number, const unsigned char *fields, size_t size,
                          size_t status_at) {
  unsigned char kept[RM_CONTROL_SIZE];
  uint32_t status = ~(uint32_t)0;
  uint64_t at = request->call.at;
  if (request->io.read(request->io.self, kept, at, size) != 0) return status;
  if (request->io.write(request->io.self, at, fields, size) == 0 &&
      request->host->forward(request->self, vgpu__rm_word(number, (uint32_t)size), at) >= 0 &&
      request->io.read(request->io.self, &status, at + status_at, sizeof status) != 0) {
    status = ~(uint32_t)0;
  }
  if (request->io.write(request->io.self, at, kept, size) != 0) return ~(uint32_t)0;
  return status;
}

static void vgpu__put32(unsigned char *bytes, size_t offset, uint32_t value) {
  __builtin_memcpy(bytes + offset, &value, sizeof value);
}

/* Frees an allocation that became larger than the remaining quota, and reports out of memory to the caller. */
static void vgpu__undo(struct request *request) {
  unsigned char fields[RM_FREE_SIZE] = {0};
  uint32_t handle = request->call.object != 0 ? request->call.object : request->after.object;
  vgpu__put32(fields, 0, request->call.client);
  vgpu__put32(fields, 4, request->call.parent);
  vgpu__put32(fields, 8, handle);
  vgpu__put32(fields, 12, ~(uint32_t)0);
  int freed = handle != 0 && vgpu__own(request, RM_FREE, fields, sizeof fields, 12) == RM_OK;
  if (freed) vgpu__write32(request, request->call.at + request->call.status_offset, RM_NO_MEMORY);
  request->host->lock(request->book);
  if (freed) {
    request->tenant->undone++;
    request->tenant->refused++;
    vgpu__report(request, request->tenant, RM_NO_MEMORY, request->bytes_after);
  } else {
    vgpu__settle_alloc(request);
  }
  request->host->unlock(request->book);
}

/* Gives a new channel group its part of its tenant's time slice. Uses 8 of the 20 bytes of the group's parameters. */
static void vgpu__weigh(struct request *request) {
  unsigned char fields[RM_CONTROL_SIZE] = {0};
  uint64_t kept, us = request->slice_us, at = request->call.params;
  uint32_t handle = request->call.object != 0 ? request->call.object : request->after.object, status = ~(uint32_t)0;
  vgpu__put32(fields, 0, request->call.client);
  vgpu__put32(fields, 4, handle);
  vgpu__put32(fields, 8, RM_GROUP_SET_TIMESLICE);
  __builtin_memcpy(fields + 16, &at, sizeof at);
  vgpu__put32(fields, 24, sizeof us);
  vgpu__put32(fields, 28, ~(uint32_t)0);
  if (request->call.size >= RM_CONTROL_SIZE && request->io.read(request->io.self, &kept, at, sizeof kept) == 0) {
    if (request->io.write(request->io.self, at, &us, sizeof us) == 0) {
      status = vgpu__own(request, RM_CONTROL, fields, sizeof fields, 28);
    }
    if (request->io.write(request->io.self, at, &kept, sizeof kept) != 0) status = ~(uint32_t)0;
  }
  if (status == RM_OK) return;
  request->host->lock(request->book);
  request->tenant->unweighted++;
  request->host->unlock(request->book);
}

/* ---- the sizes that the caller sees ---- */

/* The limit for an entry of FB_GET_INFO (in bytes; the entry is in KiB): of total memory, of free memory, or none. */
static uint64_t vgpu__size_shown(const struct request *request, uint32_t index) {
  switch (index) {
    case 0x07: case 0x08: case 0x09: case 0x0a: case 0x20: case 0x33: return request->most;
    case 0x12: case 0x16: case 0x34: return request->left;
    default: return VGPU_RM_NO_LIMIT;
  }
}

static void vgpu__scale_info(const struct request *request) {
  const struct vgpu_rm_call *call = &request->call;
  uint32_t count, entry[2];
  uint64_t at = call->params + 4;
  if (request->io.read(request->io.self, &count, call->params, sizeof count) != 0) return;
  if (call->command == RM_FB_GET_INFO) {
    if (request->io.read(request->io.self, &at, call->params + 8, sizeof at) != 0) return;
  } else if (count > (call->params_size - 4) / sizeof entry) {
    return;
  }
  for (uint32_t i = 0; i < count && i < 128; i++, at += sizeof entry) {
    if (request->io.read(request->io.self, entry, at, sizeof entry) != 0) return;
    uint64_t shown = vgpu__size_shown(request, entry[0]) >> 10;
    if (entry[1] > shown && vgpu__write32(request, at + 4, (uint32_t)shown) != 0) return;
  }
}

static void vgpu__scale_heap(const struct request *request) {
  uint64_t sizes[2]; /* total, free */
  if (request->io.read(request->io.self, sizes, request->call.at + 24, sizeof sizes) != 0) return;
  sizes[0] = vgpu__least(sizes[0], request->most);
  sizes[1] = vgpu__least(sizes[1], request->left);
  request->io.write(request->io.self, request->call.at + 24, sizes, sizeof sizes);
}

static void vgpu__scale(const struct request *request, long result) {
  const struct vgpu_rm_call *call = &request->call;
  if (request->tenant == NULL || request->most == VGPU_RM_NO_LIMIT || result < 0 || request->after.status != RM_OK)
    return;
  if (call->kind == RM_KIND_CONTROL && call->params_size >= 4 &&
      (call->command == RM_FB_GET_INFO || call->command == RM_FB_GET_INFO_V2)) {
    vgpu__scale_info(request);
  } else if (call->number == RM_HEAP) {
    vgpu__scale_heap(request);
  }
}

/* ---- the complete call ---- */

static void vgpu__finish(struct request *request) {
  struct vgpu_rm_book *book = request->book;
  request->host->lock(book);
  if (request->reserved != 0) vgpu__refund(request->tenant, request->reserved);
  if (request->shared != NULL) vgpu__block_release(book, request->shared);
  if (request->tenant != NULL) vgpu__tenant_release(book, request->tenant);
  request->host->unlock(book);
}

static void vgpu__drop_spares(struct request *request) {
  void (*drop)(void *) = request->book->heap.drop;
  if (request->object != NULL) drop(request->object);
  if (request->client != NULL) drop(request->client);
  if (request->block != NULL) drop(request->block);
  if (request->tie != NULL) drop(request->tie);
}

/* Executes an admitted call. */
static long vgpu__carry_out(struct request *request) {
  long result = request->host->forward(request->self, request->word, request->argument);
  vgpu__look_again(request, result);
  request->host->lock(request->book);
  vgpu__settle(request, result);
  request->host->unlock(request->book);
  if (request->undo) {
    vgpu__undo(request);
  } else if (request->slice_us != 0 && result >= 0 && request->after.status == RM_OK) {
    vgpu__weigh(request);
  }
  vgpu__scale(request, result);
  return result;
}

long vgpu__rm_ioctl(struct vgpu_rm_book *book, const struct vgpu_rm_host *host, void *self, uint64_t file,
                    uint32_t word, uint64_t argument) {
  struct request request = {.book = book, .host = host, .self = self, .file = file, .word = word, .argument = argument};
  long result = VGPU_RM_NO_LEDGER_MEMORY;
  request.io = (struct vgpu_rm_io){.read = host->read, .write = host->write, .self = self};
  vgpu__rm_decode(&request.io, word, argument, &request.call);
  if (!vgpu__concerns(&request.call)) return host->forward(self, word, argument);
  if (vgpu__prepare(&request) == 0) {
    if (request.tie != NULL) request.tie->owner = host->file_of(self, request.call.fd);
    host->lock(book);
    int refused = vgpu__admit(&request);
    if (refused) vgpu__report(&request, request.tenant, request.answer, request.bytes);
    if (!refused && request.call.kind == RM_KIND_REGISTER) vgpu__tie(&request);
    host->unlock(book);
    if (!refused && request.call.kind == RM_KIND_CONTROL && request.call.command == RM_DISABLE_CHANNELS &&
        vgpu__names_others(&request)) {
      refused = vgpu__refuse(&request, RM_INVALID_CLIENT);
    }
    if (!refused) {
      result = vgpu__carry_out(&request);
    } else {
      result = vgpu__write32(&request, request.call.at + request.call.status_offset, request.answer) == 0
                   ? 0
                   : VGPU_RM_FAULT;
    }
    vgpu__finish(&request);
  }
  vgpu__drop_spares(&request);
  return result;
}
