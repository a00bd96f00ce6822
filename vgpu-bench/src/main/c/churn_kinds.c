#define _GNU_SOURCE
#include "churn_kinds.h"

#include <dlfcn.h>
#include <string.h>

#define GRANULE (UINT64_C(2) << 20)

struct location {
  int type, id;
};

struct physical_properties {
  int type, handle_types;
  struct location location;
  void *unused;
  unsigned char flags[8];
};

struct array_shape {
  size_t width, height;
  int format;
  unsigned channels;
};

struct allocation_node {
  int type, handle_types;
  struct location location;
  char unused[72];
  const void *access;
  size_t access_count, bytes;
  CUdeviceptr address;
  char later[64];
};

#define KIND_CALLS(CALL)                                                                                        \
  CALL(alloc, "cuMemAlloc_v2", (CUdeviceptr *, size_t))                                                         \
  CALL(alloc_async, "cuMemAllocAsync", (CUdeviceptr *, size_t, CUstream))                                       \
  CALL(free_async, "cuMemFreeAsync", (CUdeviceptr, CUstream))                                                   \
  CALL(alloc_managed, "cuMemAllocManaged", (CUdeviceptr *, size_t, unsigned))                                   \
  CALL(free, "cuMemFree_v2", (CUdeviceptr))                                                                     \
  CALL(create, "cuMemCreate", (uint64_t *, size_t, const struct physical_properties *, unsigned long long))     \
  CALL(release, "cuMemRelease", (uint64_t))                                                                     \
  CALL(array_create, "cuArrayCreate_v2", (uint64_t *, const struct array_shape *))                              \
  CALL(array_destroy, "cuArrayDestroy", (uint64_t))                                                             \
  CALL(graph_create, "cuGraphCreate", (void **, unsigned))                                                      \
  CALL(graph_node, "cuGraphAddMemAllocNode", (void **, void *, const void *, size_t, struct allocation_node *)) \
  CALL(graph_instantiate, "cuGraphInstantiateWithFlags", (void **, void *, unsigned long long))                 \
  CALL(graph_launch, "cuGraphLaunch", (void *, CUstream))                                                       \
  CALL(exec_destroy, "cuGraphExecDestroy", (void *))                                                            \
  CALL(graph_destroy, "cuGraphDestroy", (void *))

static struct {
#define KIND_MEMBER(name, symbol, parameters) CUresult(*name) parameters;
  KIND_CALLS(KIND_MEMBER)
#undef KIND_MEMBER
} calls;

void kinds_load(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
#define KIND_LOOKUP(name, symbol, parameters)                              \
  *(void **)&calls.name = library == NULL ? NULL : dlsym(library, symbol); \
  if (calls.name == NULL) {                                                \
    fail("missing " symbol, 0);                                            \
  }
  KIND_CALLS(KIND_LOOKUP)
#undef KIND_LOOKUP
}

enum kind kind_named(const char *name) {
  static const char *const names[] = {"alloc", "async", "physical", "array", "managed", "graph", "mixed"};
  for (enum kind kind = 0; kind <= KIND_MIXED; kind++) {
    if (strcmp(names[kind], name) == 0) {
      return kind;
    }
  }
  return KINDS + 1;
}

static CUresult take_physical(struct piece *piece) {
  struct physical_properties properties = {.type = 1, .location = {1, 0}};
  piece->bytes = (piece->bytes + GRANULE - 1) / GRANULE * GRANULE;
  return calls.create(&piece->handle, piece->bytes, &properties, 0);
}

/* A two-dimensional array with rows of 64 KiB. */
static CUresult take_array(struct piece *piece) {
  struct array_shape shape = {.width = 4096, .height = piece->bytes / 65536 + 1, .format = 0x20, .channels = 4};
  piece->bytes = shape.width * shape.height * 16;
  return calls.array_create(&piece->handle, &shape);
}

static CUresult take_graph(struct piece *piece) {
  struct allocation_node node = {.type = 1, .location = {1, 0}, .bytes = piece->bytes};
  void *added = NULL;
  CUresult result = calls.graph_create(&piece->graph, 0);
  if (result != CUDA_SUCCESS) {
    return result;
  }
  piece->exec = NULL;
  result = calls.graph_node(&added, piece->graph, NULL, 0, &node);
  if (result == CUDA_SUCCESS) {
    result = calls.graph_instantiate(&piece->exec, piece->graph, 0);
  }
  if (result == CUDA_SUCCESS) {
    result = calls.graph_launch(piece->exec, NULL);
  }
  if (result != CUDA_SUCCESS) {
    if (piece->exec != NULL) {
      calls.exec_destroy(piece->exec);
    }
    calls.graph_destroy(piece->graph);
  }
  piece->handle = node.address;
  return result;
}

CUresult piece_take(struct piece *piece, enum kind kind, uint64_t bytes) {
  piece->kind = kind;
  piece->bytes = bytes;
  switch (kind) {
    case KIND_ASYNC: return calls.alloc_async(&piece->handle, bytes, NULL);
    case KIND_PHYSICAL: return take_physical(piece);
    case KIND_ARRAY: return take_array(piece);
    case KIND_MANAGED: return calls.alloc_managed(&piece->handle, bytes, 1);
    case KIND_GRAPH: return take_graph(piece);
    default: return calls.alloc(&piece->handle, bytes);
  }
}

CUresult piece_give(const struct piece *piece) {
  CUresult result;
  switch (piece->kind) {
    case KIND_ASYNC: return calls.free_async(piece->handle, NULL);
    case KIND_PHYSICAL: return calls.release(piece->handle);
    case KIND_ARRAY: return calls.array_destroy(piece->handle);
    case KIND_GRAPH:
      result = calls.free(piece->handle);
      calls.exec_destroy(piece->exec);
      calls.graph_destroy(piece->graph);
      return result;
    default: return calls.free(piece->handle);
  }
}
