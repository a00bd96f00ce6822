/*
 * The time of graphs. A graph is launched as a batch of its own until its time is known, and always if that is long. So
 * its launch counts against the bound with the graph's own time, not with that of the kernels beside it. An unmeasured
 * graph is assumed to take as long as the longer first-measured graphs, or to fill the bound. None of it counts as over
 * before it has ended.
 *
 * A graph with a conditional node varies: the GPU decides at each launch how long it takes. So each launch is a batch of
 * its own, and counts as half the bound at least: one runs, and one is queued. An update of a graph that can be launched
 * neither adds nor removes such a node (its topology must stay the same), so one look at its instantiation is enough.
 */
#include "lane.h"

enum { GRAPHS = 4096, PROBES = 16, MEASURE_EVERY = 4096 };
static const uint64_t SHORT_NS = 50u * NS_PER_US;

struct graph {
  CUgraphExec exec; /* NULL: free entry */
  uint32_t generation;
  int due;    /* to be measured at its next launch */
  int varies; /* it has a conditional node */
  uint64_t each_ns;
};

static struct graph graphs[GRAPHS];
static struct vgpu_lock graphs_lock;
static uint32_t generations;
static uint32_t conditions; /* the program made a condition: graphs may vary */
static uint32_t epoch = 1;  /* changes when a graph is destroyed */
static uint64_t typical_ns; /* time of graphs at their first measurement: follows the longer ones */

/* The short graph that this thread launched last; it need not be looked up for `left` more launches. */
static __thread struct {
  CUgraphExec exec;
  uint32_t epoch, left;
} recent __attribute__((tls_model("initial-exec")));

/* Lock held. NULL if it is not in the table, or with `make`, if there is no room. */
static struct graph *vgpu__graph_of(CUgraphExec exec, int make) {
  uint64_t at = ((uint64_t)(uintptr_t)exec * 0x9e3779b97f4a7c15u) >> 52;
  struct graph *vacant = NULL;
  for (unsigned i = 0; i < PROBES; i++) {
    struct graph *graph = &graphs[(at + i) % GRAPHS];
    if (graph->exec == exec) return graph;
    if (graph->exec == NULL && vacant == NULL) vacant = graph;
  }
  if (!make || vacant == NULL) return NULL;
  *vacant = (struct graph){.exec = exec, .generation = ++generations};
  return vacant;
}

int vgpu__graph_piece(CUgraphExec exec, struct vgpu_piece *piece) {
  int alone = 1;
  if (LIKELY(recent.exec == exec && recent.left > 0 && recent.epoch == LOAD_ACQUIRE(epoch))) {
    recent.left--;
    return 0;
  }
  *piece = (struct vgpu_piece){.kind = PIECE_WORK};
  if (exec == NULL) return 0;
  vgpu__lock(&graphs_lock);
  struct graph *graph = vgpu__graph_of(exec, 1);
  if (graph != NULL) {
    alone = graph->each_ns == 0 || graph->each_ns > SHORT_NS || graph->due || graph->varies;
    graph->due = !alone; /* short: shares batches until this thread's next look-up, which measures it */
    if (!alone) {
      recent.exec = exec;
      recent.epoch = LOAD(epoch);
      recent.left = MEASURE_EVERY;
    }
    *piece = (struct vgpu_piece){
        .kind = PIECE_WORK, .graph = exec, .generation = graph->generation, .cost_ns = graph->each_ns};
    if (graph->each_ns == 0) {
      piece->cost_ns = typical_ns;
      piece->guessed = 1;
    }
  }
  piece->varies = graph == NULL ? LOAD(conditions) != 0 : graph->varies;
  piece->guessed |= piece->varies;
  vgpu__unlock(&graphs_lock);
  return alone;
}

/* As for launches: up at once, down slowly. A new graph at the same address has another generation. */
void vgpu__graph_measured(CUgraphExec exec, uint32_t generation, uint64_t took_ns) {
  uint64_t each = took_ns + 1;
  vgpu__lock(&graphs_lock);
  struct graph *graph = vgpu__graph_of(exec, 0);
  if (graph != NULL && graph->generation == generation) {
    if (graph->each_ns == 0) typical_ns = each > typical_ns ? each : typical_ns - typical_ns / 8 + each / 8;
    graph->each_ns = each > graph->each_ns ? each : graph->each_ns - graph->each_ns / 4 + each / 4;
  }
  vgpu__unlock(&graphs_lock);
}

void vgpu__graph_forget(CUgraphExec exec) {
  vgpu__lock(&graphs_lock);
  struct graph *graph = exec == NULL ? NULL : vgpu__graph_of(exec, 0);
  if (graph != NULL) *graph = (struct graph){.exec = NULL};
  STORE_RELEASE(epoch, epoch + 1);
  vgpu__unlock(&graphs_lock);
}

void vgpu__graphs_forget(void) {
  graphs_lock.word = 0;
  typical_ns = 0;
  conditions = 0;
  epoch++;
  for (unsigned i = 0; i < GRAPHS; i++) graphs[i] = (struct graph){.exec = NULL};
}

/* Graphs are searched for conditional nodes only once there is a condition, which each such node needs. */
abi_result cuGraphConditionalHandleCreate(uint64_t *handle, void *graph, CUcontext context, unsigned initial,
                                          unsigned flags) {
  STORE(conditions, 1);
  return REAL(cuGraphConditionalHandleCreate)(handle, graph, context, initial, flags);
}

void vgpu__graph_instantiated(void *graph, CUgraphExec exec) {
  if (LIKELY(LOAD(conditions) == 0) || exec == NULL || !vgpu__graph_has_condition(graph)) return;
  vgpu__lock(&graphs_lock);
  struct graph *made = vgpu__graph_of(exec, 1);
  if (made != NULL) *made = (struct graph){.exec = exec, .generation = ++generations, .varies = 1};
  STORE_RELEASE(epoch, epoch + 1);
  vgpu__unlock(&graphs_lock);
}
