/* Everything that starts work: through the gate, into a batch of its stream. */
#include "hook.h"

/*
 * `stream` is the caller's; forms whose default stream is the thread's own name it explicitly. When the batch was closed under
 * the call, the work lies behind its end: vgpu__slipped.
 */
#define ENTER(stream_given, thread)                                                          \
  CUstream lane_stream = (thread) && (stream_given) == NULL ? ABI_STREAM_PER_THREAD : (stream_given); \
  struct vgpu_entry *entry = vgpu__entry_of(lane_stream);                                    \
  int counted = 1, fast = vgpu__enter_fast(entry, lane_stream);                              \
  if (UNLIKELY(!fast)) {                                                                     \
    abi_result refused = vgpu__enter_slow(entry, lane_stream, &counted);                     \
    if (refused != ABI_SUCCESS) return refused;                                              \
  }

#define LEAVE()                                                                    \
  if (LIKELY(fast)) {                                                              \
    if (UNLIKELY(vgpu__lane_ticket(entry->lane) != entry->ticket)) vgpu__slipped(entry); \
  } else if (counted) {                                                            \
    vgpu__leave_slow(entry, lane_stream);                                          \
  }

#define WORK(stream_given, thread, call) \
  ENTER(stream_given, thread)            \
  abi_result result = call;              \
  LEAVE()                                \
  return result

abi_result cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                          unsigned shared_bytes, CUstream stream, void **params, void **extra) {
  WORK(stream, 0, REAL(cuLaunchKernel)(function, gx, gy, gz, bx, by, bz, shared_bytes, stream, params, extra));
}

abi_result cuLaunchKernel_ptsz(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                               unsigned shared_bytes, CUstream stream, void **params, void **extra) {
  WORK(stream, 1, REAL(cuLaunchKernel_ptsz)(function, gx, gy, gz, bx, by, bz, shared_bytes, stream, params, extra));
}

abi_result cuLaunchKernelEx(const struct abi_launch_config *config, CUfunction function, void **params, void **extra) {
  CUstream stream = config == NULL ? NULL : config->stream;
  WORK(stream, 0, REAL(cuLaunchKernelEx)(config, function, params, extra));
}

abi_result cuLaunchKernelEx_ptsz(const struct abi_launch_config *config, CUfunction function, void **params, void **extra) {
  CUstream stream = config == NULL ? NULL : config->stream;
  WORK(stream, 1, REAL(cuLaunchKernelEx_ptsz)(config, function, params, extra));
}

abi_result cuLaunchCooperativeKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                     unsigned bz, unsigned shared_bytes, CUstream stream, void **params) {
  WORK(stream, 0, REAL(cuLaunchCooperativeKernel)(function, gx, gy, gz, bx, by, bz, shared_bytes, stream, params));
}

abi_result cuLaunchCooperativeKernel_ptsz(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                          unsigned bz, unsigned shared_bytes, CUstream stream, void **params) {
  WORK(stream, 1, REAL(cuLaunchCooperativeKernel_ptsz)(function, gx, gy, gz, bx, by, bz, shared_bytes, stream, params));
}

/* One launch on several devices; a lease has one GPU, so the first stream stands for all. */
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

/* A graph belongs to the tenant in whose scope it was instantiated, whatever stream it is launched into. */
#define LAUNCH_GRAPH(graph, stream, thread, launch)                                            \
  struct vgpu_tenant *owner = UNLIKELY(vgpu__are_several()) ? vgpu__graph_tenant(graph) : NULL; \
  if (UNLIKELY(owner != NULL)) {                                                               \
    CUstream named = (thread) && (stream) == NULL ? ABI_STREAM_PER_THREAD : (stream);          \
    if (vgpu__is_foreign(owner, named)) return vgpu__launch_as(owner, graph, stream, named, launch); \
  }                                                                                            \
  WORK(stream, thread, launch(graph, stream))

abi_result cuGraphLaunch(CUgraphExec graph, CUstream stream) { LAUNCH_GRAPH(graph, stream, 0, REAL(cuGraphLaunch)); }

abi_result cuGraphLaunch_ptsz(CUgraphExec graph, CUstream stream) { LAUNCH_GRAPH(graph, stream, 1, REAL(cuGraphLaunch_ptsz)); }

/*
 * Copies and memsets. One that waits for the GPU and ends on the host ends the batch, as a synchronisation does: what follows may
 * be a pause, and no pause is charged.
 */
static inline __attribute__((always_inline)) int vgpu__ends_on_host(const char *name) {
  return __builtin_strstr(name, "HtoD") == NULL && __builtin_strstr(name, "HtoA") == NULL &&
         __builtin_strstr(name, "cuMemset") == NULL;
}

static void vgpu__settle_copy(CUstream stream) {
  vgpu__close_stream(stream);
  vgpu__harvest_stream(stream);
}

#define PASS(name, class, since)
#define HANDLED(name, class, symbol, since, thread, params)
#define SYNC_WORK(name, symbol, since, thread, params, args)        \
  abi_result name params {                                          \
    ENTER((CUstream)NULL, thread)                                   \
    abi_result result = REAL(name) args;                            \
    LEAVE()                                                         \
    if (vgpu__ends_on_host(#name)) vgpu__settle_copy(lane_stream);  \
    return result;                                                  \
  }
#define ASYNC_WORK(name, symbol, since, thread, params, args) \
  abi_result name params { WORK(stream, thread, REAL(name) args); }
#include "vgpu_hooks.def"
