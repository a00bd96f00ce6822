/* All calls that start work: each passes the gate and joins a batch of its stream. */
#include <stdarg.h>
#include <string.h>

#include "../lane/lane.h"

/*
 * `stream` is the caller's. Forms whose default stream is the per-thread one name that explicitly. If another thread
 * closed the batch during the call, the work lies behind the batch's end: vgpu__slipped.
 */
#define ENTER(stream_given, thread)                                                                   \
  CUstream lane_stream = (thread) && (stream_given) == NULL ? ABI_STREAM_PER_THREAD : (stream_given); \
  struct vgpu_entry *entry = vgpu__entry_of(lane_stream);                                             \
  int counted = 1, fast = vgpu__enter_fast(entry, lane_stream);                                       \
  if (UNLIKELY(!fast)) {                                                                              \
    abi_result refused = vgpu__enter_slow(entry, lane_stream, &counted);                              \
    if (refused != ABI_SUCCESS) return refused;                                                       \
  }

#define LEAVE()                                                                          \
  if (LIKELY(fast)) {                                                                    \
    if (UNLIKELY(vgpu__lane_ticket(entry->lane) != entry->ticket)) vgpu__slipped(entry); \
  } else if (counted) {                                                                  \
    vgpu__leave_slow(entry, lane_stream);                                                \
  }

#define WORK(stream_given, thread, call) \
  ENTER(stream_given, thread)            \
  abi_result result = call;              \
  LEAVE()                                \
  return result

static __attribute__((noinline)) abi_result vgpu__after_slip(struct vgpu_entry *entry, abi_result result) {
  vgpu__slipped(entry);
  return result;
}

/*
 * A kernel launch. In the common case only the entry is live across the driver's call, since each live value costs a
 * save and a restore. `slow` takes the same arguments as the launch, so that the compiler can jump to it.
 */
#define LAUNCH(stream_given, thread, call, slow)                                                          \
  CUstream lane_stream = (thread) && (stream_given) == NULL ? ABI_STREAM_PER_THREAD : (stream_given);     \
  struct vgpu_entry *entry = vgpu__entry_of(lane_stream);                                                 \
  if (UNLIKELY(vgpu__is_fresh(function)) || UNLIKELY(!vgpu__enter_fast(entry, lane_stream))) return slow; \
  abi_result result = call;                                                                               \
  return LIKELY(vgpu__lane_ticket(entry->lane) == entry->ticket) ? result : vgpu__after_slip(entry, result)

#define LAUNCH_KERNEL(name, thread)                                                                                  \
  static __attribute__((noinline))                                                                                   \
  abi_result name##_slowly(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,     \
                           unsigned bz, unsigned shared_bytes, CUstream stream, void **params, void **extra) {       \
    vgpu__fresh_launch(function, (thread) && stream == NULL ? ABI_STREAM_PER_THREAD : stream);                       \
    WORK(stream, thread, REAL(name)(function, gx, gy, gz, bx, by, bz, shared_bytes, stream, params, extra));         \
  }                                                                                                                  \
  abi_result name(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, \
                  unsigned shared_bytes, CUstream stream, void **params, void **extra) {                             \
    LAUNCH(stream, thread, REAL(name)(function, gx, gy, gz, bx, by, bz, shared_bytes, stream, params, extra),        \
           name##_slowly(function, gx, gy, gz, bx, by, bz, shared_bytes, stream, params, extra));                    \
  }

LAUNCH_KERNEL(cuLaunchKernel, 0)
LAUNCH_KERNEL(cuLaunchKernel_ptsz, 1)

#define LAUNCH_CONFIGURED(name, thread)                                                                                \
  static __attribute__((noinline))                                                                                     \
  abi_result name##_slowly(const struct abi_launch_config *config, CUfunction function, void **params, void **extra) { \
    CUstream stream = config == NULL ? NULL : config->stream;                                                          \
    vgpu__fresh_launch(function, (thread) && stream == NULL ? ABI_STREAM_PER_THREAD : stream);                         \
    WORK(stream, thread, REAL(name)(config, function, params, extra));                                                 \
  }                                                                                                                    \
  abi_result name(const struct abi_launch_config *config, CUfunction function, void **params, void **extra) {          \
    CUstream stream = config == NULL ? NULL : config->stream;                                                          \
    LAUNCH(stream, thread, REAL(name)(config, function, params, extra),                                                \
           name##_slowly(config, function, params, extra));                                                            \
  }

LAUNCH_CONFIGURED(cuLaunchKernelEx, 0)
LAUNCH_CONFIGURED(cuLaunchKernelEx_ptsz, 1)

abi_result cuLaunchCooperativeKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                     unsigned by, unsigned bz, unsigned shared_bytes, CUstream stream, void **params) {
  vgpu__fresh_launch(function, stream);
  WORK(stream, 0, REAL(cuLaunchCooperativeKernel)(function, gx, gy, gz, bx, by, bz, shared_bytes, stream, params));
}

abi_result cuLaunchCooperativeKernel_ptsz(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                          unsigned by, unsigned bz, unsigned shared_bytes, CUstream stream,
                                          void **params) {
  vgpu__fresh_launch(function, stream == NULL ? ABI_STREAM_PER_THREAD : stream);
  WORK(stream, 1, REAL(cuLaunchCooperativeKernel_ptsz)(function, gx, gy, gz, bx, by, bz, shared_bytes, stream, params));
}

/* One launch on several devices, measured in the first stream, which stands for all. */
abi_result cuLaunchCooperativeKernelMultiDevice(struct abi_launch_params *list, unsigned count, unsigned flags) {
  CUstream stream = list == NULL || count == 0 ? NULL : list[0].stream;
  WORK(stream, 0, REAL(cuLaunchCooperativeKernelMultiDevice)(list, count, flags));
}

abi_result cuLaunch(CUfunction function) { WORK((CUstream)NULL, 0, REAL(cuLaunch)(function)); }

abi_result cuLaunchGrid(CUfunction function, int width, int height) {
  WORK((CUstream)NULL, 0, REAL(cuLaunchGrid)(function, width, height));
}

abi_result cuLaunchGridAsync(CUfunction function, int width, int height, CUstream stream) {
  WORK(stream, 0, REAL(cuLaunchGridAsync)(function, width, height, stream));
}

/* Work that is a batch of its own. */
#define PIECE(piece, stream_given, call)                                                        \
  CUstream piece_stream = stream_given;                                                         \
  struct vgpu_entry piece_entry = {.stream = NULL};                                             \
  int piece_counted;                                                                            \
  abi_result refused = vgpu__piece_enter(&piece_entry, &(piece), piece_stream, &piece_counted); \
  if (refused != ABI_SUCCESS) return refused;                                                   \
  abi_result result = call;                                                                     \
  if (piece_counted) vgpu__piece_leave(&piece_entry, &(piece), piece_stream);

/*
 * A graph belongs to the tenant in whose scope it was instantiated, whatever stream it is launched into. A short graph
 * shares a batch with other launches; a longer one is a batch of its own.
 */
#define LAUNCH_GRAPH(graph, stream, thread, launch)                                             \
  CUstream named = (thread) && (stream) == NULL ? ABI_STREAM_PER_THREAD : (stream);             \
  struct vgpu_tenant *owner = UNLIKELY(vgpu__are_several()) ? vgpu__graph_tenant(graph) : NULL; \
  if (UNLIKELY(owner != NULL) && vgpu__is_foreign(owner, named)) {                              \
    return vgpu__launch_as(owner, graph, stream, named, launch);                                \
  }                                                                                             \
  struct vgpu_piece piece;                                                                      \
  if (!vgpu__graph_piece(graph, &piece)) {                                                      \
    WORK(stream, thread, launch(graph, stream));                                                \
  }                                                                                             \
  PIECE(piece, named, launch(graph, stream))                                                    \
  return result

static abi_result vgpu__graph_launch(CUgraphExec graph, CUstream stream) {
  LAUNCH_GRAPH(graph, stream, 0, REAL(cuGraphLaunch));
}

static abi_result vgpu__graph_launch_ptsz(CUgraphExec graph, CUstream stream) {
  LAUNCH_GRAPH(graph, stream, 1, REAL(cuGraphLaunch_ptsz));
}

/* A graph that may allocate: its memory is charged around the launch. named: the stream of a launch; none of an upload. */
static __attribute__((noinline)) abi_result vgpu__launch_charged(CUgraphExec graph, CUstream stream,
                                                                 const CUstream *named,
                                                                 abi_result (*launch)(CUgraphExec, CUstream)) {
  CHANGING();
  struct vgpu_graph_charge charge;
  abi_result refused = vgpu__graph_memory_before(graph, &charge);
  if (refused != ABI_SUCCESS) return refused;
  abi_result result = launch(graph, stream);
  if (result != ABI_SUCCESS) ADD(vgpu__graph_frees, 1); /* it may have freed its memory already */
  vgpu__graph_memory_after(&charge, result == ABI_SUCCESS && named != NULL && !vgpu__is_capturing(*named));
  return result;
}

abi_result cuGraphLaunch(CUgraphExec graph, CUstream stream) {
  if (UNLIKELY(LOAD(vgpu__graph_memory_seen))) return vgpu__launch_charged(graph, stream, &stream, vgpu__graph_launch);
  return vgpu__graph_launch(graph, stream);
}

abi_result cuGraphLaunch_ptsz(CUgraphExec graph, CUstream stream) {
  CUstream named = stream == NULL ? ABI_STREAM_PER_THREAD : stream;
  if (UNLIKELY(LOAD(vgpu__graph_memory_seen)))
    return vgpu__launch_charged(graph, stream, &named, vgpu__graph_launch_ptsz);
  return vgpu__graph_launch_ptsz(graph, stream);
}

/* An upload takes the memory that the first launch would take. */
abi_result cuGraphUpload(CUgraphExec graph, CUstream stream) {
  return vgpu__launch_charged(graph, stream, NULL, REAL(cuGraphUpload));
}

abi_result cuGraphUpload_ptsz(CUgraphExec graph, CUstream stream) {
  return vgpu__launch_charged(graph, stream, NULL, REAL(cuGraphUpload_ptsz));
}

/* The upload that its flag asks for takes memory, so it follows as a call of its own, which is charged. */
static abi_result vgpu__instantiate(CUgraphExec *graph, void *of, struct abi_instantiate *params, int thread) {
  if (graph == NULL || params == NULL || (params->flags & ABI_INSTANTIATE_UPLOAD) == 0) {
    return vgpu__graph_instantiate(graph, of, params, thread);
  }
  CUgraphExec before = *graph;
  struct abi_instantiate alone = *params;
  alone.flags &= ~(uint64_t)ABI_INSTANTIATE_UPLOAD;
  abi_result result = vgpu__graph_instantiate(graph, of, &alone, thread);
  params->error_node = alone.error_node;
  params->result = alone.result;
  if (result != ABI_SUCCESS) return result;
  result = thread ? cuGraphUpload_ptsz(*graph, params->stream) : cuGraphUpload(*graph, params->stream);
  if (result != ABI_SUCCESS) {
    cuGraphExecDestroy(*graph);
    *graph = before;
    params->result = ABI_INSTANTIATE_ERROR;
  }
  return result;
}

abi_result cuGraphInstantiateWithParams(CUgraphExec *graph, void *of, struct abi_instantiate *params) {
  return vgpu__instantiate(graph, of, params, 0);
}

abi_result cuGraphInstantiateWithParams_ptsz(CUgraphExec *graph, void *of, struct abi_instantiate *params) {
  return vgpu__instantiate(graph, of, params, 1);
}

/*
 * Copies and memsets. A call that waits for the GPU and ends on the host closes the batch, as a synchronisation does:
 * the host may pause afterwards, and pauses are not charged.
 */
static inline __attribute__((always_inline)) int vgpu__ends_on_host(const char *name) {
  return __builtin_strstr(name, "HtoD") == NULL && __builtin_strstr(name, "HtoA") == NULL &&
         __builtin_strstr(name, "cuMemset") == NULL;
}

/*
 * Where a copy runs. Copies between host and device, and between devices, run on copy engines, beside the kernels of
 * the tenant that has the GPU. Memsets, and copies within a device, run on its processors. If the name does not tell,
 * the memory types do; else it counts as GPU time.
 */
enum where {
  WHERE_PROCESSORS,
  WHERE_ENGINE,
  WHERE_POINTERS,
  WHERE_SHAPE_2D,
  WHERE_SHAPE_3D,
  WHERE_LISTS,
  WHERE_OPERANDS,
  WHERE_OPERAND
};
enum { MEMORY_TYPE = 2 /* CU_POINTER_ATTRIBUTE_MEMORY_TYPE */, TYPE_HOST = 1, TYPE_DEVICE = 2 };

static inline __attribute__((always_inline)) enum where vgpu__where(const char *name) {
  if (__builtin_strstr(name, "HtoD") != NULL || __builtin_strstr(name, "DtoH") != NULL ||
      __builtin_strstr(name, "HtoA") != NULL || __builtin_strstr(name, "AtoH") != NULL ||
      __builtin_strstr(name, "Prefetch") != NULL || __builtin_strstr(name, "Peer") != NULL) {
    return WHERE_ENGINE;
  }
  if (__builtin_strncmp(name, "cuMemcpyBatchAsync", 18) == 0) return WHERE_LISTS;
  if (__builtin_strncmp(name, "cuMemcpy3DBatchAsync", 20) == 0) return WHERE_OPERANDS;
  if (__builtin_strncmp(name, "cuMemcpy3DWithAttributesAsync", 29) == 0) return WHERE_OPERAND;
  if (__builtin_strncmp(name, "cuMemcpy2D", 10) == 0)
    return __builtin_strstr(name, "_v2") == NULL ? WHERE_PROCESSORS : WHERE_SHAPE_2D;
  if (__builtin_strncmp(name, "cuMemcpy3D", 10) == 0)
    return __builtin_strstr(name, "_v2") == NULL ? WHERE_PROCESSORS : WHERE_SHAPE_3D;
  if (__builtin_strcmp(name, "cuMemcpy") == 0 || __builtin_strcmp(name, "cuMemcpy_ptds") == 0 ||
      __builtin_strncmp(name, "cuMemcpyAsync", 13) == 0 ||
      __builtin_strncmp(name, "cuMemcpyWithAttributesAsync", 27) == 0) {
    return WHERE_POINTERS;
  }
  return WHERE_PROCESSORS;
}

/* A pointer unknown to the driver is unregistered host memory. */
static int vgpu__is_on_device(CUdeviceptr pointer) {
  unsigned type = 0;
  return REAL(cuPointerGetAttribute)(&type, MEMORY_TYPE, pointer) == ABI_SUCCESS && type == TYPE_DEVICE;
}

/*
 * A batch counts as GPU time if one of its copies is within the device, or if it has more copies than are examined. The
 * lists are read some copies at a time.
 */
enum { MOST_COPIES = 65536, SOME_COPIES = 128, SOME_OPERATIONS = 16 };

static enum vgpu_piece_kind vgpu__kind_of_lists(uint64_t targets, uint64_t sources, uint64_t count) {
  uint64_t to[SOME_COPIES], from[SOME_COPIES];
  if (count == 0 || count > MOST_COPIES) return PIECE_WORK;
  for (uint64_t first = 0; first < count; first += SOME_COPIES) {
    size_t some = count - first < SOME_COPIES ? (size_t)(count - first) : (size_t)SOME_COPIES;
    uint64_t offset = first * sizeof *to;
    if (vgpu__peek(to, targets + offset, some * sizeof *to) != 0) return PIECE_WORK;
    if (vgpu__peek(from, sources + offset, some * sizeof *from) != 0) return PIECE_WORK;
    for (size_t i = 0; i < some; i++) {
      if (vgpu__is_on_device(to[i]) && vgpu__is_on_device(from[i])) return PIECE_WORK;
    }
  }
  return PIECE_COPY;
}

static int vgpu__operand_is_on_device(const struct abi_operand *operand) {
  return operand->type != ABI_OPERAND_POINTER || vgpu__is_on_device(operand->pointer);
}

static enum vgpu_piece_kind vgpu__kind_of_operands(uint64_t list, uint64_t count) {
  struct abi_batch_3d all[SOME_OPERATIONS];
  if (count == 0 || count > MOST_COPIES) return PIECE_WORK;
  for (uint64_t first = 0; first < count; first += SOME_OPERATIONS) {
    size_t some = count - first < SOME_OPERATIONS ? (size_t)(count - first) : (size_t)SOME_OPERATIONS;
    if (vgpu__peek(all, list + first * sizeof *all, some * sizeof *all) != 0) return PIECE_WORK;
    for (size_t i = 0; i < some; i++) {
      if (vgpu__operand_is_on_device(&all[i].source) && vgpu__operand_is_on_device(&all[i].target)) return PIECE_WORK;
    }
  }
  return PIECE_COPY;
}

/*
 * The variadic arguments are the first arguments of the call: pointers, lists, or a CUDA_MEMCPY2D or 3D, whose memory
 * types lie at these offsets.
 */
static enum vgpu_piece_kind vgpu__kind(int where, ...) {
  enum { SOURCE_2D = 16, TARGET_2D = 72, SOURCE_3D = 32, TARGET_3D = 120 };
  int types[2] = {0, 0};
  va_list arguments;
  va_start(arguments, where);
  uint64_t first = va_arg(arguments, uint64_t);
  if (where == WHERE_POINTERS) {
    uint64_t second = va_arg(arguments, uint64_t);
    va_end(arguments);
    return vgpu__is_on_device(first) && vgpu__is_on_device(second) ? PIECE_WORK : PIECE_COPY;
  }
  if (where == WHERE_LISTS) {
    uint64_t second = va_arg(arguments, uint64_t), sizes = va_arg(arguments, uint64_t),
             count = va_arg(arguments, uint64_t);
    (void)sizes;
    va_end(arguments);
    return vgpu__kind_of_lists(first, second, count);
  }
  if (where == WHERE_OPERANDS) {
    uint64_t list = va_arg(arguments, uint64_t);
    va_end(arguments);
    return vgpu__kind_of_operands(list, first);
  }
  va_end(arguments);
  if (where == WHERE_OPERAND) return vgpu__kind_of_operands(first, 1);
  if (first == 0) return PIECE_WORK;
  const char *shape = (const char *)(uintptr_t)first;
  memcpy(&types[0], shape + (where == WHERE_SHAPE_2D ? SOURCE_2D : SOURCE_3D), sizeof types[0]);
  memcpy(&types[1], shape + (where == WHERE_SHAPE_2D ? TARGET_2D : TARGET_3D), sizeof types[1]);
  return types[0] == TYPE_HOST || types[1] == TYPE_HOST ? PIECE_COPY : PIECE_WORK;
}

/*
 * A small copy is not measured by events, which would take longer than the copy. Its time is estimated: one
 * microsecond, plus its bytes at 25 GB/s. In these forms the third argument is the number of bytes.
 */
enum { SMALL_BYTES = 65536, SMALL_NS = 1000, BYTES_A_NS = 25 };

static inline __attribute__((always_inline)) int vgpu__tells_bytes(const char *name) {
  int one_way = __builtin_strstr(name, "HtoD") != NULL || __builtin_strstr(name, "DtoH") != NULL;
  return one_way ? __builtin_strstr(name, "_v2") != NULL
                 : __builtin_strcmp(name, "cuMemcpy") == 0 || __builtin_strcmp(name, "cuMemcpy_ptds") == 0 ||
                       __builtin_strncmp(name, "cuMemcpyAsync", 13) == 0;
}

static uint64_t vgpu__small_ns(int ignored, ...) {
  va_list arguments;
  va_start(arguments, ignored);
  (void)va_arg(arguments, uint64_t);
  (void)va_arg(arguments, uint64_t);
  uint64_t bytes = va_arg(arguments, uint64_t);
  va_end(arguments);
  return bytes > SMALL_BYTES ? 0 : SMALL_NS + bytes / BYTES_A_NS;
}

#define ARGUMENTS(...) __VA_ARGS__
#define ESTIMATE(piece, name, args, last)                                          \
  piece.cost_ns = vgpu__tells_bytes(name) ? vgpu__small_ns(0, ARGUMENTS args) : 0; \
  piece.size = piece.cost_ns == 0 ? PIECE_LARGE : (last) ? PIECE_SMALL_LAST : PIECE_SMALL
#define KIND(name, args)                                \
  (vgpu__where(name) == WHERE_ENGINE       ? PIECE_COPY \
   : vgpu__where(name) == WHERE_PROCESSORS ? PIECE_WORK \
                                           : vgpu__kind((int)vgpu__where(name), ARGUMENTS args))

#define PASS(name, class, since)
#define HANDLED(name, class, symbol, since, thread, params)
#define SYNC_WORK(name, symbol, since, thread, params, args)                     \
  abi_result name params {                                                       \
    struct vgpu_piece piece = {.kind = KIND(#name, args), .waits = 1};           \
    if (piece.kind == PIECE_COPY) {                                              \
      ESTIMATE(piece, #name, args, 1);                                           \
      CUstream which = (thread) ? ABI_STREAM_PER_THREAD : NULL;                  \
      uint64_t waits = vgpu__ends_on_host(#name) ? vgpu__wait_stream(which) : 0; \
      PIECE(piece, which, REAL(name) args)                                       \
      vgpu__waited_stream(which, result == ABI_SUCCESS ? waits : 0);             \
      return result;                                                             \
    }                                                                            \
    ENTER((CUstream)NULL, thread)                                                \
    abi_result result = REAL(name) args;                                         \
    LEAVE()                                                                      \
    if (vgpu__ends_on_host(#name)) vgpu__settle_stream(lane_stream);             \
    return result;                                                               \
  }
#define ASYNC_WORK(name, symbol, since, thread, params, args)                                    \
  abi_result name params {                                                                       \
    struct vgpu_piece piece = {.kind = KIND(#name, args)};                                       \
    if (piece.kind == PIECE_COPY) {                                                              \
      ESTIMATE(piece, #name, args, vgpu__ends_on_host(#name));                                   \
      PIECE(piece, (thread) && stream == NULL ? ABI_STREAM_PER_THREAD : stream, REAL(name) args) \
      return result;                                                                             \
    }                                                                                            \
    WORK(stream, thread, REAL(name) args);                                                       \
  }
#include "vgpu_hooks.def"
