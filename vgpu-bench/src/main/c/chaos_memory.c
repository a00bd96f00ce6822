/* The random program's allocations, of all kinds. */
#define _GNU_SOURCE
#include "chaos.h"

static const size_t MAPPED_UNIT = 2u << 20;

#define CALLED(operation, wait, call) (chaos_enter(worker, operation), chaos_leave(worker, wait, call))

/* Sizes from one byte to a sixteenth of the quota, with every order of magnitude about equally likely. */
static uint64_t random_size(struct worker *worker) {
  uint64_t bits = random_next(&worker->random) % 20;
  uint64_t quota = worker->chaos->tenants[worker->tenant].quota;
  return 1 + random_next(&worker->random) % ((quota >> 4 >> bits) + 1);
}

/* Maps physical memory at a newly reserved address. */
static CUresult map(struct worker *worker, struct held *held) {
  struct chaos *chaos = worker->chaos;
  struct memory_access access = {.location_type = 1, .location_id = chaos->device, .flags = 3};
  CUresult result = CALLED(held->kind, WAIT_MEMORY, chaos->reserve(&held->key, held->size, 0, 0, 0));
  if (result == CUDA_SUCCESS) {
    result = CALLED(held->kind, WAIT_MEMORY, chaos->map(held->key, held->size, 0, held->handle, 0));
  }
  if (result == CUDA_SUCCESS) {
    result = CALLED(held->kind, WAIT_MEMORY, chaos->access(held->key, held->size, &access, 1));
  }
  return result;
}

static CUresult make_mapped(struct worker *worker, struct held *held) {
  struct chaos *chaos = worker->chaos;
  bool shared = chaos->share != NULL && random_next(&worker->random) % 2 == 0;
  struct memory_property property = {
      .type = 1, .handle_types = shared, .location_type = 1, .location_id = chaos->device};
  held->size = (held->size + MAPPED_UNIT - 1) / MAPPED_UNIT * MAPPED_UNIT;
  CUresult result = CALLED(MAPPED, WAIT_MEMORY, chaos->create(&held->handle, held->size, &property, 0));
  if (result != CUDA_SUCCESS) {
    return result;
  }
  held->bytes = held->size;
  if (shared) {
    chaos_send(worker, held->handle, held->size);
  }
  return map(worker, held);
}

/* Memory of another process, which is charged for it. */
static CUresult make_taken(struct worker *worker, struct held *held) {
  held->bytes = 0;
  CUresult result = chaos_take(worker, &held->handle, &held->size);
  return result != CUDA_SUCCESS ? result : map(worker, held);
}

static CUresult make_array(struct worker *worker, struct held *held, bool mipmap) {
  struct chaos *chaos = worker->chaos;
  CUarray array = NULL;
  size_t width = 16 + held->size % 497;
  struct array_shape flat = {width, 64, 0x20, 1};
  struct array3d_shape deep = {width, 64, 0, 0x20, 1, 0};
  CUresult result = mipmap ? CALLED(MIPMAP, WAIT_MEMORY, chaos->mipmap(&array, &deep, 3))
                           : CALLED(ARRAY, WAIT_MEMORY, chaos->array(&array, &flat));
  held->key = (uint64_t)(uintptr_t)array;
  held->bytes = width * 64 * 4;
  return result;
}

static CUresult make_context(struct worker *worker, struct held *held) {
  struct chaos *chaos = worker->chaos;
  CUcontext context = NULL;
  CUresult result = CALLED(CONTEXT, WAIT_MEMORY, chaos->driver.context_create(&context, 0, chaos->device));
  held->key = (uint64_t)(uintptr_t)context;
  chaos->driver.context_set(chaos->driver.context);
  return result;
}

static CUresult make(struct worker *worker, struct held *held) {
  struct chaos *chaos = worker->chaos;
  struct driver *driver = &chaos->driver;
  CUresult result;
  size_t pitch = 0;
  void *pinned = NULL;
  held->bytes = held->size;
  switch (held->kind) {
    case PLAIN: return CALLED(PLAIN, WAIT_MEMORY, driver->memory_alloc(&held->key, held->size));
    case MANAGED: return CALLED(MANAGED, WAIT_MEMORY, chaos->managed(&held->key, held->size, 1));
    case PITCH:
      held->bytes = (1 + held->size % 8000) * 16;
      return CALLED(PITCH, WAIT_MEMORY, chaos->pitch(&held->key, &pitch, 1 + held->size % 8000, 16, 4));
    case ASYNC: return CALLED(ASYNC, WAIT_LAUNCH, chaos->async(&held->key, held->size, worker->stream));
    case FROM_POOL:
      return CALLED(FROM_POOL, WAIT_LAUNCH, chaos->from_pool(&held->key, held->size, chaos->pool, worker->stream));
    case MAPPED: return make_mapped(worker, held);
    case ARRAY: return make_array(worker, held, false);
    case MIPMAP: return make_array(worker, held, true);
    case HOST:
      held->bytes = 0;
      result = CALLED(HOST, WAIT_MEMORY, chaos->host(&pinned, 1 + held->size % 100000, 0));
      held->key = (uint64_t)(uintptr_t)pinned;
      return result;
    case IMPORTED: held->bytes = 0; return chaos_import(worker, &held->key);
    case TAKEN: return make_taken(worker, held);
    default: held->bytes = 0; return make_context(worker, held);
  }
}

static bool can(const struct worker *worker, int kind) {
  const struct chaos *chaos = worker->chaos;
  /*
   * Memory that a pool retains is charged to the lease that caused it, even after everything is freed. A tenant that
   * uses a pool therefore cannot leave its lease with nothing allocated.
   */
  if (worker->tenant == GUEST && (kind == ASYNC || kind == FROM_POOL)) {
    return false;
  }
  switch (kind) {
    case MANAGED: return chaos->managed != NULL;
    case PITCH: return chaos->pitch != NULL;
    case ASYNC: return chaos->async != NULL && chaos->free_async != NULL;
    case FROM_POOL: return chaos->from_pool != NULL && chaos->pool != NULL;
    case MAPPED: return chaos->create != NULL && chaos->map != NULL && chaos->access != NULL;
    case ARRAY: return chaos->array != NULL;
    case MIPMAP: return chaos->mipmap != NULL;
    case HOST: return chaos->host != NULL;
    case CONTEXT: return chaos->context_destroy != NULL;
    case IMPORTED: return chaos->ipc_open != NULL && chaos->ipc_close != NULL;
    case TAKEN: return chaos->import != NULL && chaos->map != NULL && chaos->access != NULL;
    default: return true;
  }
}

void chaos_allocate(struct worker *worker, int kind) {
  struct held held = {.kind = kind, .tenant = worker->tenant, .size = random_size(worker), .stream = worker->stream};
  struct tenant *tenant = &worker->chaos->tenants[held.tenant];
  bool second = kind == CONTEXT && worker->contexts > 0;
  if (worker->held_count == HELD || second || !can(worker, kind)) {
    return;
  }
  CUresult result = make(worker, &held);
  if (!chaos_accept(worker, kind, result)) {
    if (held.handle != 0) { /* created before a later step was refused */
      worker->chaos->release(held.handle);
    }
    return;
  }
  if (kind == PLAIN && random_next(&worker->random) % 4 == 0) {
    chaos_export(worker, held.key);
  }
  worker->contexts += kind == CONTEXT;
  worker->held[worker->held_count++] = held;
  atomic_fetch_add(&tenant->things, 1);
  atomic_fetch_add(&tenant->bytes, held.bytes);
}

static CUresult give_back(struct worker *worker, const struct held *held) {
  struct chaos *chaos = worker->chaos;
  CUresult result;
  void *pointer = (void *)(uintptr_t)held->key;
  switch (held->kind) {
    case ASYNC:
    case FROM_POOL:
      if (random_next(&worker->random) % 4 != 0) {
        return CALLED(ASYNC, WAIT_LAUNCH, chaos->free_async(held->key, held->stream));
      }
      return CALLED(ASYNC, WAIT_SYNC, chaos->driver.memory_free(held->key));
    case MAPPED:
    case TAKEN:
      result = CALLED(held->kind, WAIT_SYNC, chaos->unmap(held->key, held->size));
      if (result == CUDA_SUCCESS) {
        result = CALLED(held->kind, WAIT_MEMORY, chaos->release(held->handle));
      }
      return result != CUDA_SUCCESS ? result : CALLED(held->kind, WAIT_MEMORY, chaos->unreserve(held->key, held->size));
    case ARRAY: return CALLED(ARRAY, WAIT_SYNC, chaos->array_destroy(pointer));
    case MIPMAP: return CALLED(MIPMAP, WAIT_SYNC, chaos->mipmap_destroy(pointer));
    case HOST: return CALLED(HOST, WAIT_SYNC, chaos->host_free(pointer));
    case CONTEXT: return CALLED(CONTEXT, WAIT_SYNC, chaos->context_destroy(pointer));
    case IMPORTED: return CALLED(IMPORTED, WAIT_SYNC, chaos->ipc_close(held->key));
    default: return CALLED(held->kind, WAIT_SYNC, chaos->driver.memory_free(held->key)); /* waits for the GPU */
  }
}

void chaos_release(struct worker *worker, size_t index) {
  struct held held = worker->held[index];
  struct tenant *tenant = &worker->chaos->tenants[held.tenant];
  atomic_fetch_sub(&tenant->bytes, held.bytes);
  worker->contexts -= held.kind == CONTEXT;
  worker->held[index] = worker->held[--worker->held_count];
  chaos_accept(worker, held.kind, give_back(worker, &held));
  atomic_fetch_sub(&tenant->things, 1);
}
