/*
 * The owner of a stream or a graph: the tenant in whose scope it was made, whichever thread launches into it. Streams
 * are recorded only for tenants other than the process's first, so that a process of one lease pays nothing.
 */
#include "lane.h"

struct vgpu_tenant *vgpu__stream_tenant(CUstream stream) {
  struct vgpu_tenant *recorded = vgpu__table_tenant(KIND_STREAM, (uint64_t)(uintptr_t)stream);
  return recorded == NULL ? &vgpu__home : recorded;
}

void vgpu__stream_gone(CUstream stream) {
  struct vgpu_record record;
  if (vgpu__are_several()) vgpu__table_take(KIND_STREAM, (uint64_t)(uintptr_t)stream, &record);
}

static abi_result vgpu__stream_made(abi_result result, const CUstream *stream) {
  const struct vgpu_tenant *tenant = vgpu_tenant_current();
  if (result != ABI_SUCCESS || stream == NULL || !vgpu__are_several()) return result;
  /* A stream that was destroyed with its context may have left a record. */
  vgpu__stream_gone(*stream);
  if (tenant->index != 0)
    vgpu__table_put(tenant, 0, KIND_STREAM, (uint64_t)(uintptr_t)*stream, 0, vgpu__context_number());
  return result;
}

/* Objects made in a scope that has ended would belong to no tenant. */
#define REFUSED_AFTER_THE_END \
  if (UNLIKELY(vgpu_tenant_current() == &vgpu__ended)) return ABI_NOT_PERMITTED

abi_result cuStreamCreate(CUstream *stream, unsigned flags) {
  REFUSED_AFTER_THE_END;
  return vgpu__stream_made(REAL(cuStreamCreate)(stream, flags), stream);
}

abi_result cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority) {
  REFUSED_AFTER_THE_END;
  return vgpu__stream_made(REAL(cuStreamCreateWithPriority)(stream, flags, priority), stream);
}

abi_result cuGreenCtxStreamCreate(CUstream *stream, void *context, unsigned flags, int priority) {
  REFUSED_AFTER_THE_END;
  return vgpu__stream_made(REAL(cuGreenCtxStreamCreate)(stream, context, flags, priority), stream);
}

/* ---- graphs ---- */

/* Changes whenever a graph is made or destroyed. Then the graphs that threads have cached are invalid. */
static uint32_t graphs_epoch = 1;

static __thread struct {
  CUgraphExec graph;
  struct vgpu_tenant *tenant;
  uint32_t epoch;
} last __attribute__((tls_model("initial-exec")));

struct vgpu_tenant *vgpu__graph_tenant(CUgraphExec graph) {
  uint32_t epoch = LOAD_ACQUIRE(graphs_epoch);
  if (LIKELY(last.graph == graph && last.epoch == epoch)) return last.tenant;
  last.tenant = vgpu__table_tenant(KIND_GRAPH, (uint64_t)(uintptr_t)graph);
  last.graph = graph;
  last.epoch = epoch;
  return last.tenant;
}

abi_result vgpu__graph_made(abi_result result, const CUgraphExec *graph) {
  const struct vgpu_tenant *tenant = vgpu_tenant_current();
  if (result != ABI_SUCCESS || graph == NULL || !vgpu__are_several()) return result;
  /* Also for the first tenant: with several tenants its graph may be launched into another tenant's stream. */
  vgpu__table_put(tenant, 0, KIND_GRAPH, (uint64_t)(uintptr_t)*graph, 0, vgpu__context_number());
  __atomic_fetch_add(&graphs_epoch, 1, __ATOMIC_RELEASE);
  return result;
}

void vgpu__graph_gone(CUgraphExec graph) {
  struct vgpu_record record;
  if (!vgpu__are_several()) return;
  vgpu__table_take(KIND_GRAPH, (uint64_t)(uintptr_t)graph, &record);
  __atomic_fetch_add(&graphs_epoch, 1, __ATOMIC_RELEASE);
}

#define INSTANTIATE(call, flags)                \
  REFUSED_AFTER_THE_END;                        \
  abi_result result = call;                     \
  if (result == ABI_SUCCESS && graph != NULL) { \
    vgpu__graph_memory_made(of, *graph, flags); \
    vgpu__graph_instantiated(of, *graph);       \
  }                                             \
  return vgpu__graph_made(result, graph)

abi_result cuGraphInstantiate(CUgraphExec *graph, void *of, void **error_node, char *log, size_t log_size) {
  INSTANTIATE(REAL(cuGraphInstantiate)(graph, of, error_node, log, log_size), 0);
}

abi_result cuGraphInstantiate_v2(CUgraphExec *graph, void *of, void **error_node, char *log, size_t log_size) {
  INSTANTIATE(REAL(cuGraphInstantiate_v2)(graph, of, error_node, log, log_size), 0);
}

abi_result cuGraphInstantiateWithFlags(CUgraphExec *graph, void *of, unsigned long long flags) {
  INSTANTIATE(REAL(cuGraphInstantiateWithFlags)(graph, of, flags), flags);
}

abi_result vgpu__graph_instantiate(CUgraphExec *graph, void *of, struct abi_instantiate *params, int thread) {
  INSTANTIATE(thread ? REAL(cuGraphInstantiateWithParams_ptsz)(graph, of, params)
                     : REAL(cuGraphInstantiateWithParams)(graph, of, params),
              params == NULL ? 0 : params->flags);
}

abi_result cuGraphExecDestroy(CUgraphExec graph) {
  vgpu__graph_gone(graph);
  vgpu__graph_memory_gone(graph);
  vgpu__graph_forget(graph);
  return REAL(cuGraphExecDestroy)(graph);
}

int vgpu__is_foreign(const struct vgpu_tenant *owner, CUstream named) {
  int special = (uintptr_t)named <= (uintptr_t)ABI_STREAM_PER_THREAD;
  const struct vgpu_tenant *whose = special ? vgpu_tenant_current() : vgpu__stream_tenant(named);
  return owner != whose;
}

/*
 * Closes the stream's own batch first, and launches the graph as a batch of its own: neither measures the other's work.
 */
abi_result vgpu__launch_as(struct vgpu_tenant *owner, CUgraphExec graph, CUstream stream, CUstream named,
                           abi_result (*launch)(CUgraphExec, CUstream)) {
  struct vgpu_entry entry = {.stream = NULL};
  int counted = 0;
  vgpu__close_stream(named);
  vgpu__scope.as = owner;
  struct vgpu_piece piece = {.kind = PIECE_WORK}; /* of a short graph that this thread launched last nothing is told */
  vgpu__graph_piece(graph, &piece);
  abi_result result = vgpu__piece_enter(&entry, &piece, named, &counted);
  if (result == ABI_SUCCESS) {
    result = launch(graph, stream);
    if (counted) vgpu__piece_leave(&entry, &piece, named);
  }
  vgpu__scope.as = NULL;
  return result;
}
