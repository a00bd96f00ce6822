// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* After the driver's answer: commits or releases in the book, by what the driver has done. */
#include "rm_request.h"

#include "rm_turn.h"

static void vgpu__note_sizes(struct vgpu_rm_request *request) {
  const struct vgpu_rm_tenant *tenant = request->tenant;
  request->most = tenant->limit;
  request->left = tenant->used < tenant->limit ? tenant->limit - tenant->used : 0;
}

/* Whether the driver may have executed the call. If it could not write its answer, it has executed the call although
 * the caller sees an error. */
static int vgpu__done(const struct vgpu_rm_request *request, long result) {
  int creates = request->call.kind == RM_KIND_ALLOC && vgpu__is_root(request->call.class_number);
  /* No client has handle 0. */
  if ((creates ? request->after.object : request->call.client) == 0 && request->call.kind != RM_KIND_REGISTER) return 0;
  return (result >= 0 || result == VGPU_RM_FAULT) && request->after.status == RM_OK;
}

#define LARGEST_PAGE ((uint64_t)2 << 20)

void vgpu__call_look_again(struct vgpu_rm_request *request, long result) {
  const struct vgpu_rm_call *call = &request->call;
  vgpu__rm_decode(&request->io, request->word, request->argument, &request->after);
  /* Behind an XFER, the driver may have executed a call at another place, and written its answer there. */
  request->elsewhere = request->after.kind != RM_KIND_OTHER &&
                       (request->after.at != call->at || request->after.number != call->number);
  if (result == VGPU_RM_FAULT || request->after.kind != call->kind || request->elsewhere) {
    /* Assume the outcome that keeps the charge. */
    request->after = *call; /* with the requested handle */
    request->after.status = call->kind == RM_KIND_FREE ? RM_OBJECT_NOT_FOUND : RM_OK;
    request->stamp = 0;
    request->lost = 1;
  }
  request->bytes_after = request->bytes;
  if (request->block != NULL && vgpu__rm_bytes(&request->io, &request->call, &request->bytes_after) != 0) {
    request->bytes_after = request->bytes;
  }
  /* The driver may have read the parameters at the new address. */
  uint64_t moved;
  if (request->block != NULL && request->after.bytes_at != call->bytes_at &&
      vgpu__rm_bytes(&request->io, &request->after, &moved) == 0 && moved > request->bytes_after) {
    request->bytes_after = moved;
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

static int vgpu__has_other_parent(const struct vgpu_rm_request *request) {
  int creates = request->call.kind == RM_KIND_ALLOC && vgpu__is_root(request->call.class_number);
  return request->call.kind != RM_KIND_FREE && !creates && request->after.parent != request->call.parent;
}

/* Whether a field changed that the driver does not modify: another thread has written to the call. */
static int vgpu__changed(const struct vgpu_rm_request *request) {
  const struct vgpu_rm_call *before = &request->call, *after = &request->after;
  int creates = before->kind == RM_KIND_ALLOC && vgpu__is_root(before->class_number);
  return request->elsewhere || after->class_number != before->class_number ||
         (after->client != before->client && !creates) || (before->object != 0 && after->object != before->object) ||
         vgpu__has_other_parent(request) || after->params != before->params || after->source != before->source ||
         after->source_object != before->source_object || after->fd != before->fd;
}

/* The client of a call. If it is not known, enters one: it was created before the module was attached, or by a call
 * that is not settled yet. */
static struct vgpu_rm_object *vgpu__home(struct vgpu_rm_request *request) {
  struct vgpu_rm_book *book = request->book;
  struct vgpu_rm_object *root = vgpu__client_find(book, request->file, request->call.client);
  if (root != NULL) return root;
  root = vgpu__client_enter(book, request->client, request->tenant, request->call.client, request->file, request->stamp,
                            0);
  request->client = NULL;
  return root;
}

static void vgpu__enter(struct vgpu_rm_request *request, struct vgpu_rm_block *block, uint32_t class_number) {
  struct vgpu_rm_object *root = vgpu__home(request);
  uint32_t handle = request->call.object != 0 ? request->call.object : request->after.object;
  if (block != NULL && vgpu__flight_duplicated(request->book, &request->flight, handle)) vgpu__block_keep(block);
  /* If it is not known below which of two, it stays charged until the client is freed. */
  uint32_t parent = vgpu__has_other_parent(request) ? 0 : request->call.parent;
  vgpu__object_enter(request->book, request->object, root, parent, handle, class_number, block, request->stamp);
  request->object = NULL;
}

/* Commits an allocation. If the driver took more than requested, reserves the difference or marks the allocation for
 * undoing. If the call has changed, its object may have another name, and the driver reports success for freeing a name
 * that it does not know. So the allocation is then charged in excess of the limit instead. */
void vgpu__call_settle_alloc(struct vgpu_rm_request *request) {
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
    } else if (!request->undo && !request->changed) {
      request->undo = 1;
      return;
    } else {
      request->reserved += vgpu__force(tenant, more);
      tenant->over++;
    }
    *block = (struct vgpu_rm_block){
        .tenant = tenant, .bytes = on_host + request->reserved, .refs = 1, .on_host = request->charge == HOST_MEMORY};
    vgpu__tenant_hold(tenant);
    tenant->allocations++;
    vgpu__report(request, tenant, RM_OK, block->bytes);
    request->block = NULL;
    request->reserved = 0;
  }
  struct vgpu_rm_object *made = request->object;
  vgpu__enter(request, block, request->call.class_number);
  made->engine = request->engine;
  made->own_us = made->slice_us = VGPU_RM_DRIVERS_SLICE_US;
  if (request->call.class_number != RM_CLASS_GROUP || tenant->weight == 0) return;
  if (request->lost) { /* no call can be made there either; the first SCHEDULE has the slice set */
    vgpu__slice_kept(made, made->slice_us);
    return;
  }
  made->slice_us = request->slice_us = vgpu__slice_of(tenant, made->engine, 1);
}

static void vgpu__settle_free(struct vgpu_rm_request *request, int done) {
  struct vgpu_rm_object *root = vgpu__client_find(request->book, request->file, request->call.client);
  struct vgpu_rm_object *freed = root != NULL ? vgpu__object_find(request->book, root, request->call.object) : NULL;
  if (freed == NULL || freed->stamp != request->target) return;
  if (done && !request->changed) vgpu__object_remove(request->book, freed, request->stamp);
  else if (request->lost || request->changed) freed->sure = 0; /* the object may be gone */
}

/* What was duplicated may be something else than what had the name at the admission, or has it now. */
static void vgpu__settle_source(struct vgpu_rm_request *request) {
  uint32_t count;
  struct vgpu_rm_object *root = vgpu__client_named(request->book, request->call.source, &count);
  const struct vgpu_rm_object *source = vgpu__source(request, root);
  vgpu__flight_duplicates(request->book, &request->flight, source != NULL && source->stamp == request->target);
  if (!request->changed) return;
  /* Or another thread has named another source. */
  const struct vgpu_rm_flight named = {.source = request->after.source, .source_object = request->after.source_object};
  vgpu__flight_duplicates(request->book, &named, 0);
  root = vgpu__client_named(request->book, named.source, &count);
  source = root != NULL ? vgpu__object_find(request->book, root, named.source_object) : NULL;
  if (source != NULL && source->block != NULL) vgpu__block_keep(source->block);
}

/* A client without a tenant has received the file and handle of a client in the book. The client in the book must
 * have gone unnoticed. */
static void vgpu__forget_namesake(struct vgpu_rm_request *request) {
  if (request->call.kind != RM_KIND_ALLOC || !vgpu__is_root(request->call.class_number)) return;
  struct vgpu_rm_object *there = vgpu__client_find(request->book, request->file, request->after.object);
  if (there != NULL && there->stamp <= request->stamp) vgpu__object_remove(request->book, there, request->stamp);
}

/* Two calls may name the same file: only the one that the driver executes first ties it. */
static void vgpu__settle_tie(struct vgpu_rm_request *request, long result) {
  if (result >= 0 || result == VGPU_RM_FAULT) {
    if (request->held != 0) vgpu__file_tied(request->book, request->file, request->held, &request->tie);
  } else if (request->tie == NULL) {
    vgpu__file_tie_failed(request->book, request->file);
  }
}

void vgpu__call_settle(struct vgpu_rm_request *request, long result) {
  int done = vgpu__done(request, result);
  if (request->call.kind == RM_KIND_REGISTER) vgpu__settle_tie(request, result);
  if (request->tenant == NULL) {
    if (done) vgpu__forget_namesake(request);
    return;
  }
  request->changed = done && vgpu__changed(request);
  if (request->changed) request->tenant->changed++;
  switch (request->call.kind) {
    case RM_KIND_ALLOC:
      if (done) vgpu__call_settle_alloc(request);
      break;
    case RM_KIND_FREE: vgpu__settle_free(request, done); break;
    case RM_KIND_DUP:
      if (!done) break;
      vgpu__settle_source(request);
      vgpu__enter(request, request->shared, 0);
      request->shared = NULL;
      break;
    case RM_KIND_CONTROL: {
      struct vgpu_rm_object *group = done && request->target != 0 ? vgpu__call_group(request) : NULL;
      if (group == NULL || group->stamp != request->target) break;
      if (vgpu__schedules(&request->call)) vgpu__group_scheduled(request->book, group, request->wanted);
      else if (request->call.command == RM_GROUP_SET_TIMESLICE)
        vgpu__slice_asked(request->book, group, request->wanted_us, 1);
      break;
    }
    default: break;
  }
  vgpu__note_sizes(request);
}
