// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
#include "rm_call.h"

#include "rm_request.h"
#include "rm_turn.h"

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

static int vgpu__write32(const struct vgpu_rm_request *request, uint64_t at, uint32_t value) {
  return request->io.write(request->io.self, at, &value, sizeof value);
}

/* ---- our own calls, made through the caller's memory because the driver accepts no other ---- */

static int vgpu__same(const unsigned char *one, const unsigned char *other, size_t size) {
  size_t i = 0;
  while (i < size && one[i] == other[i]) i++;
  return i == size;
}

/*
 * Executes one of our own calls in place of the caller's fields, and restores those. Returns the driver's status, or
 * UINT32_MAX, also if another thread has changed the fields: what the driver executed is then not known. `size` is at
 * most RM_CONTROL_SIZE, and at most the size of the caller's own call.
 */
static uint32_t vgpu__own(struct vgpu_rm_request *request, uint32_t number, const unsigned char *fields, size_t size,
                          size_t status_at) {
  unsigned char kept[RM_CONTROL_SIZE], after[RM_CONTROL_SIZE];
  uint32_t status = ~(uint32_t)0;
  uint64_t at = request->call.at;
  if (request->io.read(request->io.self, kept, at, size) != 0) return status;
  if (request->io.write(request->io.self, at, fields, size) == 0 &&
      request->host->forward(request->self, vgpu__rm_word(number, (uint32_t)size), at) >= 0 &&
      request->io.read(request->io.self, after, at, size) == 0 && vgpu__same(fields, after, status_at)) {
    __builtin_memcpy(&status, after + status_at, sizeof status);
  }
  if (request->io.write(request->io.self, at, kept, size) != 0) return ~(uint32_t)0;
  return status;
}

static void vgpu__put32(unsigned char *bytes, size_t offset, uint32_t value) {
  __builtin_memcpy(bytes + offset, &value, sizeof value);
}

/* Frees an allocation that became larger than the remaining quota, and reports out of memory to the caller. */
static void vgpu__undo(struct vgpu_rm_request *request) {
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
    vgpu__call_settle_alloc(request);
  }
  request->host->unlock(request->book);
}

/* Gives a new channel group its part of its tenant's time slice. Uses 8 of the 20 bytes of the group's parameters. */
static void vgpu__weigh(struct vgpu_rm_request *request) {
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
  struct vgpu_rm_object *root = vgpu__client_find(request->book, request->file, request->call.client);
  struct vgpu_rm_object *group = root != NULL ? vgpu__object_find(request->book, root, handle) : NULL;
  if (group != NULL && root->tenant == request->tenant) vgpu__slice_kept(group, us);
  else request->tenant->unweighted++;
  request->host->unlock(request->book);
}

/* ---- the sizes that the caller sees ---- */

/* The limit for an entry of FB_GET_INFO (in bytes; the entry is in KiB): of total memory, of free memory, or none. */
static uint64_t vgpu__size_shown(const struct vgpu_rm_request *request, uint32_t index) {
  switch (index) {
    case 0x07:
    case 0x08:
    case 0x09:
    case 0x0a:
    case 0x20:
    case 0x33: return request->most;
    case 0x12:
    case 0x16:
    case 0x34: return request->left;
    default: return VGPU_RM_NO_LIMIT;
  }
}

static void vgpu__scale_info(const struct vgpu_rm_request *request) {
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

static void vgpu__scale_heap(const struct vgpu_rm_request *request) {
  uint64_t sizes[2]; /* total, free */
  if (request->io.read(request->io.self, sizes, request->call.at + 24, sizeof sizes) != 0) return;
  sizes[0] = vgpu__least(sizes[0], request->most);
  sizes[1] = vgpu__least(sizes[1], request->left);
  request->io.write(request->io.self, request->call.at + 24, sizes, sizeof sizes);
}

static void vgpu__scale(const struct vgpu_rm_request *request, long result) {
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

static void vgpu__finish(struct vgpu_rm_request *request) {
  struct vgpu_rm_book *book = request->book;
  request->host->lock(book);
  if (request->reserved != 0) vgpu__refund(request->tenant, request->reserved);
  vgpu__flight_end(&request->flight);
  if (request->shared != NULL) vgpu__block_release(book, request->shared);
  if (request->tenant != NULL) vgpu__tenant_release(book, request->tenant);
  request->host->unlock(book);
}

static void vgpu__drop_spares(struct vgpu_rm_request *request) {
  void (*drop)(void *) = request->book->heap.drop;
  if (request->object != NULL) drop(request->object);
  if (request->client != NULL) drop(request->client);
  if (request->block != NULL) drop(request->block);
  if (request->tie != NULL) drop(request->tie);
}

static int vgpu__lists_channels(const struct vgpu_rm_call *call) {
  return call->kind == RM_KIND_CONTROL && call->command == RM_DISABLE_CHANNELS;
}

/* Executes an admitted call. */
static long vgpu__carry_out(struct vgpu_rm_request *request) {
  long result = request->host->forward(request->self, request->word, request->argument);
  vgpu__call_look_again(request, result);
  /* The driver may have read the other descriptor. */
  if (request->call.kind == RM_KIND_REGISTER && request->after.fd != request->call.fd) {
    if (request->held != 0) request->host->let_go(request->self, request->held);
    request->held = request->host->file_of(request->self, request->after.fd);
  }
  request->host->lock(request->book);
  vgpu__call_settle(request, result);
  request->host->unlock(request->book);
  if (vgpu__lists_channels(&request->call)) {
    vgpu__call_settle_list(request, (result >= 0 || request->lost) && request->after.status == RM_OK);
  }
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
  struct vgpu_rm_request request = {
      .book = book, .host = host, .self = self, .file = file, .word = word, .argument = argument};
  long result;
  request.io = (struct vgpu_rm_io){.read = host->read, .write = host->write, .self = self};
  vgpu__rm_decode(&request.io, word, argument, &request.call);
  if (!vgpu__concerns(&request.call)) return host->forward(self, word, argument);
  result = vgpu__call_prepare(&request);
  if (result == 0) {
    if (request.call.kind == RM_KIND_REGISTER) request.held = host->file_of(self, request.call.fd);
    host->lock(book);
    int refused = vgpu__call_admit(&request);
    if (refused) vgpu__report(&request, request.tenant, request.answer, request.bytes);
    if (!refused) vgpu__call_depart(&request);
    host->unlock(book);
    if (!refused && vgpu__lists_channels(&request.call)) refused = vgpu__call_admit_list(&request);
    if (!refused) {
      result = vgpu__carry_out(&request);
    } else {
      result = vgpu__write32(&request, request.call.at + request.call.status_offset, request.answer) == 0
                   ? 0
                   : VGPU_RM_FAULT;
    }
    vgpu__finish(&request);
    /* Not earlier: until the driver has tied the file, or has refused to, nobody else keeps the other one open. */
    if (request.held != 0) host->let_go(self, request.held);
  }
  vgpu__drop_spares(&request);
  return result;
}
