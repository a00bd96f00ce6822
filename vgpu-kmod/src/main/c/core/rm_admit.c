// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* Before the driver's part of a call: whether it may go on, and the reservation of its memory. */
#include "rm_request.h"

#include "rm_turn.h"

static enum vgpu_rm_charge vgpu__charge_of(const struct vgpu_rm_host *host, uint32_t class_number) {
  switch (class_number) {
    case RM_CLASS_LOCAL_MEMORY:
    case 0x3fu: /* the same, privileged */
    case 0x42u: /* extended */ return DEVICE_MEMORY;
    case RM_CLASS_HOST_MEMORY: return HOST_MEMORY;
    case 0x82u: /* video memory by address */
    case 0xc2u:
    case 0xf8u: /* fabric memory: its size is in another form */ return DENIED;
    default: return class_number != 0 && class_number == host->further_class ? DEVICE_MEMORY : NOTHING;
  }
}

/* Functions of RM_HEAP that only query or describe. The other ones allocate in forms that no current program uses. */
static int vgpu__heap_passes(uint32_t function) {
  return function == RM_HEAP_INFO || function == RM_HEAP_GET_ALIGNMENT || function == RM_HEAP_OS_DESCRIPTOR;
}

/* ---- with access to the caller's memory, without the lock ---- */

/*
 * An allocation of device memory is accepted only if the driver afterwards reports its size in a place that it does not
 * overwrite. That excludes the old forms, and parameters that overlap the call itself.
 */
static int vgpu__size_is_hidden(const struct vgpu_rm_call *call) {
  if (call->number != RM_ALLOC) return call->number != RM_HEAP;
  return call->bytes_at < call->at + call->size && call->at < call->bytes_at + sizeof(uint64_t);
}

/* Whether the driver's answer to an ALLOC can be written. A channel group with an unknown handle could neither be given
 * a time slice nor be stopped. Writes what is there. */
static int vgpu__can_answer(const struct vgpu_rm_request *request) {
  const struct vgpu_rm_call *call = &request->call;
  const struct vgpu_rm_io *io = &request->io;
  return io->write(io->self, call->at + 8, &call->object, sizeof call->object) == 0 &&
         io->write(io->self, call->at + call->status_offset, &call->status, sizeof call->status) == 0;
}

/* Allocates everything here: after the driver's part, a failure could no longer be handled. */
long vgpu__call_prepare(struct vgpu_rm_request *request) {
  const struct vgpu_rm_heap *heap = &request->book->heap;
  const struct vgpu_rm_call *call = &request->call;
  if (call->kind == RM_KIND_REGISTER) {
    request->tie = heap->make(sizeof *request->tie);
    return request->tie != NULL ? 0 : VGPU_RM_NO_LEDGER_MEMORY;
  }
  if (vgpu__schedules(call)) {
    unsigned char enable = 1; /* if this process cannot read it, neither can the driver */
    if (request->io.read(request->io.self, &enable, call->params, sizeof enable) == 0) request->wanted = enable != 0;
  }
  if (call->kind == RM_KIND_CONTROL && call->command == RM_GROUP_SET_TIMESLICE &&
      request->io.read(request->io.self, &request->wanted_us, call->params, sizeof request->wanted_us) != 0) {
    request->wanted_us = 0;
  }
  if (call->kind != RM_KIND_ALLOC && call->kind != RM_KIND_DUP) return 0;
  request->object = heap->make(sizeof *request->object);
  request->client = heap->make(sizeof *request->client);
  if (request->object == NULL || request->client == NULL) return VGPU_RM_NO_LEDGER_MEMORY;
  if (call->kind == RM_KIND_DUP) return 0;
  /* engineType of NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS. */
  if (call->class_number == RM_CLASS_GROUP && call->params != 0 &&
      request->io.read(request->io.self, &request->engine, call->params + 12, sizeof request->engine) != 0) {
    request->engine = 0;
  }
  if (call->class_number == RM_CLASS_GROUP && call->object == 0 && !vgpu__can_answer(request)) return VGPU_RM_FAULT;
  request->charge = vgpu__charge_of(request->host, call->class_number);
  if (request->charge != DEVICE_MEMORY && request->charge != HOST_MEMORY) return 0;
  if (request->charge == DEVICE_MEMORY && vgpu__size_is_hidden(call)) request->charge = DENIED;
  request->block = heap->make(sizeof *request->block);
  /* If this process cannot read it, neither can the driver. */
  if (vgpu__rm_bytes(&request->io, call, &request->bytes) != 0) request->bytes = 0;
  return request->block != NULL ? 0 : VGPU_RM_NO_LEDGER_MEMORY;
}

/* ---- with the lock held, without access to the caller's memory ---- */

static int vgpu__admit_alloc(struct vgpu_rm_request *request) {
  struct vgpu_rm_tenant *tenant = request->tenant;
  if (request->charge == DENIED) {
    tenant->filtered++;
    return vgpu__call_refuse(request, RM_INSUFFICIENT_PERMISSIONS);
  }
  if (tenant->objects >= tenant->most_objects) {
    tenant->refused++;
    return vgpu__call_refuse(request, RM_INSUFFICIENT_RESOURCES);
  }
  if (request->charge == DEVICE_MEMORY) {
    if (vgpu__reserve(tenant, request->bytes) != 0) {
      tenant->refused++;
      vgpu__note(request->book, tenant);
      return vgpu__call_refuse(request, RM_NO_MEMORY);
    }
    request->reserved = request->bytes;
  }
  return 0;
}

/* Duplicates memory. It stays charged to the tenant that allocated it, and only that tenant may duplicate it. */
static int vgpu__admit_dup(struct vgpu_rm_request *request, struct vgpu_rm_tenant *tenant) {
  uint32_t count;
  struct vgpu_rm_object *root = vgpu__client_named(request->book, request->call.source, &count);
  const struct vgpu_rm_object *source = vgpu__source(request, root);
  if (root != NULL ? root->tenant != tenant : count != 0) { /* another tenant's, or an unknown tenant's */
    if (root != NULL) root->tenant->filtered++;
    else if (tenant != NULL) tenant->filtered++;
    return vgpu__call_refuse(request, RM_INVALID_CLIENT);
  }
  if (tenant != NULL && tenant->objects >= tenant->most_objects) {
    tenant->refused++;
    return vgpu__call_refuse(request, RM_INSUFFICIENT_RESOURCES);
  }
  /* A duplicate would be a second name of the group or the channel. */
  if (tenant != NULL && tenant->yields && source != NULL &&
      (source->class_number == RM_CLASS_GROUP || vgpu__rm_is_channel(source->class_number))) {
    tenant->filtered++;
    return vgpu__call_refuse(request, RM_INSUFFICIENT_PERMISSIONS);
  }
  if (source != NULL) request->target = source->stamp;
  if (tenant != NULL && source != NULL && source->block != NULL) {
    request->shared = source->block;
    request->shared->refs++;
  }
  return 0;
}

struct vgpu_rm_object *vgpu__call_group(struct vgpu_rm_request *request) {
  struct vgpu_rm_object *root = vgpu__client_find(request->book, request->file, request->call.client);
  return root != NULL ? vgpu__group_of(vgpu__object_find(request->book, root, request->call.object)) : NULL;
}

static int vgpu__admit_control(struct vgpu_rm_request *request) {
  struct vgpu_rm_tenant *tenant = request->tenant;
  struct vgpu_rm_object *group = vgpu__call_group(request);
  if (group != NULL) request->target = group->stamp;
  if (vgpu__schedules(&request->call)) {
    if (group == NULL) return 0;
    return vgpu__group_asked(request->book, group, request->wanted) ? vgpu__call_refuse(request, RM_OK) : 0;
  }
  switch (request->call.command) {
    case RM_GROUP_SET_TIMESLICE:
      if (tenant->weight == 0) return 0;
      if (group != NULL) vgpu__slice_asked(request->book, group, request->wanted_us, 0);
      tenant->filtered++; /* the tenant's weight sets its time slices */
      return vgpu__call_refuse(request, RM_OK);
    case RM_GROUP_SET_INTERLEAVE:
    case RM_GROUP_MAKE_REALTIME:
    case RM_CHANNEL_SET_INTERLEAVE:
    case RM_SET_SCHED_POLICY: tenant->filtered++; return vgpu__call_refuse(request, RM_INSUFFICIENT_PERMISSIONS);
    default: return 0;
  }
}

/*
 * Whether a process of one tenant wants to create something in a client of another, through a file that it was passed
 * or has taken (SCM_RIGHTS, pidfd_getfd). Neither can be charged rightly: the client's tenant did not ask for it, and
 * the process's tenant may be gone while the client keeps it. A process without a tenant acts for the client's.
 */
static int vgpu__is_foreign(struct vgpu_rm_request *request, const struct vgpu_rm_object *root) {
  if (request->call.kind != RM_KIND_ALLOC && request->call.kind != RM_KIND_DUP) return 0;
  struct vgpu_rm_tenant *caller = request->host->tenant(request->self, request->book);
  if (caller == NULL || caller == root->tenant || root->tenant->key == 0) return 0;
  caller->filtered++;
  vgpu__report(request, caller, RM_INVALID_CLIENT, request->bytes);
  return 1;
}

int vgpu__call_admit(struct vgpu_rm_request *request) {
  struct vgpu_rm_book *book = request->book;
  const struct vgpu_rm_call *call = &request->call;
  struct vgpu_rm_object *root = vgpu__client_find(book, request->file, call->client);
  int creates = call->kind == RM_KIND_ALLOC && vgpu__is_root(call->class_number);
  struct vgpu_rm_tenant *tenant = root != NULL && !creates ? root->tenant : request->host->tenant(request->self, book);
  request->stamp = book->stamp;
  if (root != NULL && !creates && vgpu__is_foreign(request, root)) return vgpu__call_refuse(request, RM_INVALID_CLIENT);
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
      return vgpu__call_refuse(request, RM_NOT_SUPPORTED);
    case RM_KIND_FREE: {
      const struct vgpu_rm_object *freed = root != NULL ? vgpu__object_find(book, root, call->object) : NULL;
      if (freed != NULL) request->target = freed->stamp;
      return 0;
    }
    default: return 0;
  }
}

/* ---- lists of channels ---- */

/* NV2080_CTRL_FIFO_DISABLE_CHANNELS_PARAMS. */
struct vgpu_rm_list {
  unsigned char disable;
  uint32_t count, clients[RM_MOST_CHANNELS], channels[RM_MOST_CHANNELS];
};

/* Reads what the driver will read. 0, or -1 if there is nothing that it would execute. */
static int vgpu__read_list(struct vgpu_rm_request *request, struct vgpu_rm_list *list) {
  const struct vgpu_rm_io *io = &request->io;
  const uint64_t at = request->call.params;
  if (request->call.params_size != RM_DISABLE_SIZE || io->read(io->self, &list->disable, at, 1) != 0 ||
      io->read(io->self, &list->count, at + 4, sizeof list->count) != 0 ||
      io->read(io->self, list->clients, at + 24, sizeof list->clients) != 0 ||
      io->read(io->self, list->channels, at + 280, sizeof list->channels) != 0) {
    return -1;
  }
  if (list->count > RM_MOST_CHANNELS) list->count = RM_MOST_CHANNELS;
  return 0;
}

/* The driver itself does not check whose channels they are. */
static int vgpu__names_others(struct vgpu_rm_request *request, const struct vgpu_rm_list *list) {
  for (uint32_t i = 0; i < list->count; i++) {
    uint32_t known;
    const struct vgpu_rm_object *root = vgpu__client_named(request->book, list->clients[i], &known);
    if (list->clients[i] == request->call.client && known == 0) continue;
    if (root != NULL ? root->tenant != request->tenant : request->tenant != NULL || known != 0) return 1;
  }
  return 0;
}

/* A listed channel of the call's tenant that is in a group, or NULL. */
static struct vgpu_rm_object *vgpu__listed(struct vgpu_rm_request *request, const struct vgpu_rm_list *list,
                                           uint32_t i) {
  uint32_t known;
  struct vgpu_rm_object *root = vgpu__client_named(request->book, list->clients[i], &known);
  if (root == NULL || root->tenant != request->tenant) return NULL;
  struct vgpu_rm_object *channel = vgpu__object_find(request->book, root, list->channels[i]);
  if (channel == NULL || !vgpu__rm_is_channel(channel->class_number)) return NULL;
  return channel->parent->class_number == RM_CLASS_GROUP ? channel : NULL;
}

/* If one of the channels is stopped, all are only recorded: the driver would run them. */
static int vgpu__record_list(struct vgpu_rm_request *request, const struct vgpu_rm_list *list) {
  uint32_t in_groups = 0;
  int ours = 0;
  for (uint32_t i = 0; i < list->count; i++) {
    const struct vgpu_rm_object *channel = vgpu__listed(request, list, i);
    in_groups += channel != NULL;
    ours |= channel != NULL && vgpu__channel_is_ours(request->book, channel);
  }
  if (!ours) return 0;
  if (in_groups != list->count) { /* the others could not be set when the groups are given back */
    request->tenant->filtered++;
    return vgpu__call_refuse(request, RM_NOT_SUPPORTED);
  }
  for (uint32_t i = 0; i < list->count; i++) {
    vgpu__channel_asked(request->book, vgpu__listed(request, list, i), list->disable);
  }
  return vgpu__call_refuse(request, RM_OK);
}

int vgpu__call_admit_list(struct vgpu_rm_request *request) {
  struct vgpu_rm_list list;
  int answered = 0;
  if (vgpu__read_list(request, &list) != 0) return 0; /* the driver refuses it */
  request->host->lock(request->book);
  if (vgpu__names_others(request, &list)) {
    if (request->tenant != NULL) request->tenant->filtered++;
    answered = vgpu__call_refuse(request, RM_INVALID_CLIENT);
  } else if (request->tenant != NULL) {
    answered = vgpu__record_list(request, &list);
  }
  if (answered) vgpu__report(request, request->tenant, request->answer, 0);
  request->host->unlock(request->book);
  return answered;
}

void vgpu__call_settle_list(struct vgpu_rm_request *request, int done) {
  struct vgpu_rm_list list;
  if (request->tenant == NULL || vgpu__read_list(request, &list) != 0) return;
  request->host->lock(request->book);
  for (uint32_t i = 0; i < list.count; i++) {
    struct vgpu_rm_object *channel = vgpu__listed(request, &list, i);
    if (channel != NULL) vgpu__channel_set(request->book, channel, done, list.disable);
  }
  request->host->unlock(request->book);
}

/* Ties a file before the driver does, so that a client created meanwhile is not attributed to the file alone. */
static void vgpu__tie(struct vgpu_rm_request *request) {
  struct vgpu_rm_tie *tie = request->tie;
  if (request->held == 0 || vgpu__file_owner(request->book, request->file) != request->file) return;
  tie->file = request->file;
  tie->owner = request->held;
  vgpu__file_tie(request->book, tie);
  request->tie = NULL;
}

void vgpu__call_depart(struct vgpu_rm_request *request) {
  const struct vgpu_rm_call *call = &request->call;
  struct vgpu_rm_flight *flight = &request->flight;
  if (call->kind == RM_KIND_REGISTER) vgpu__tie(request);
  if (request->tenant == NULL) return;
  flight->client = call->client;
  flight->frees = call->kind == RM_KIND_FREE;
  if (!flight->frees) flight->handle = call->object;
  flight->source = call->source;
  flight->source_object = call->source_object;
  if (request->block != NULL || flight->frees || call->kind == RM_KIND_DUP) vgpu__flight_begin(request->book, flight);
}
