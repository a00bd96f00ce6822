/*
 * Memory of graphs' allocation nodes. The driver takes it when a graph is launched (or uploaded), and keeps it for
 * graphs until cuDeviceGraphMemTrim. All that the driver keeps per device is charged. Before the launch of a graph with
 * allocation nodes, the most that it may add is reserved for the graph's tenant. Afterwards the driver's figure stays
 * charged, and the rest is given back.
 *
 * A graph of CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH first frees what its last launch has allocated. That makes
 * room if nothing may have freed memory of graphs since.
 */
#include <sys/mman.h>

#include "memory.h"

enum {
  DEVICES = 64,
  DEPTH = 8,
  NODE_GRAPH = 4,
  NODE_ALLOC = 10,
  NODE_FREE = 11,
  NODE_CONDITIONAL = 13,
  ATTRIBUTE_USED = 0,
  ATTRIBUTE_RESERVED = 2
};
enum { SEVERAL = DEVICES + 1, FIRST_PLACE = 1536, FREES = 256, OWNS = 256 };

static const uint64_t STEP = (uint64_t)32 << 20;

struct account {
  struct vgpu_lock lock;
  uint64_t charged[VGPU_TENANTS], sum;
  uint64_t pending; /* bytes of launches under way; charged even if a trim takes what was kept for them */
};

static struct account accounts[DEVICES];
uint32_t vgpu__graph_memory_seen;
uint64_t vgpu__graph_frees;

/* Graphs that free their own memory when they are launched again, and free none otherwise. */
static struct own {
  CUgraphExec exec; /* NULL: unused entry */
  int launched;
  uint64_t frees; /* vgpu__graph_frees before its last launch */
} owns[OWNS];
static struct vgpu_lock owns_lock;

/* Lock held. NULL: not one of these. */
static struct own *vgpu__own_of_graph(CUgraphExec exec) {
  for (int i = 0; i < OWNS; i++) {
    if (owns[i].exec == exec) return &owns[i];
  }
  return NULL;
}

/* Replaces the entry of one graph by another's; NULL: none. */
static void vgpu__own_put(CUgraphExec from, CUgraphExec to) {
  vgpu__lock(&owns_lock);
  struct own *own = vgpu__own_of_graph(from);
  if (own != NULL) *own = (struct own){.exec = to};
  vgpu__unlock(&owns_lock);
}

/* Whether the memory of its last launch is certainly still allocated, and is freed first by the next one. */
static int vgpu__own_is_kept(CUgraphExec exec) {
  vgpu__lock(&owns_lock);
  const struct own *own = vgpu__own_of_graph(exec);
  int kept = own != NULL && own->launched && own->frees == LOAD(vgpu__graph_frees);
  vgpu__unlock(&owns_lock);
  return kept;
}

static void vgpu__own_launched(CUgraphExec exec, uint64_t frees) {
  vgpu__lock(&owns_lock);
  struct own *own = vgpu__own_of_graph(exec);
  if (own != NULL) *own = (struct own){exec, 1, frees};
  vgpu__unlock(&owns_lock);
}

static int vgpu__figure(CUdevice device, int attribute, uint64_t *value) {
  *value = 0;
  return REAL(cuDeviceGetGraphMemAttribute)(device, attribute, value) == ABI_SUCCESS;
}

/*
 * The most memory that the device has for graphs once all launches under way, and this one, have begun. own: of it,
 * what this one frees first.
 */
static uint64_t vgpu__coming(const struct account *account, CUdevice device, uint64_t bytes, uint64_t own) {
  uint64_t used;
  if (account->pending + bytes == 0 || !vgpu__figure(device, ATTRIBUTE_USED, &used)) return 0;
  used -= own < used ? own : used;
  return (used + account->pending + bytes + STEP - 1) / STEP * STEP;
}

/* Gives back what is charged beyond what the device keeps, starting with the tenant `first`. Lock held. */
static void vgpu__account_settle(struct account *account, CUdevice device, uint32_t first) {
  uint64_t reserved;
  if (!vgpu__figure(device, ATTRIBUTE_RESERVED, &reserved)) return;
  uint64_t coming = vgpu__coming(account, device, 0, 0);
  if (coming > reserved) reserved = coming;
  for (uint32_t i = 0; i < VGPU_TENANTS && account->sum > reserved; i++) {
    uint32_t who = (first + i) % VGPU_TENANTS;
    uint64_t part = account->sum - reserved < account->charged[who] ? account->sum - reserved : account->charged[who];
    if (part == 0) continue;
    account->charged[who] -= part;
    account->sum -= part;
    vgpu__give_back(vgpu__tenants[who], vgpu__gpu_of(vgpu__tenants[who], device), part);
  }
}

static void vgpu__account_look(CUdevice device) {
  if (device < 0 || device >= DEVICES) return;
  vgpu__lock(&accounts[device].lock);
  if (accounts[device].sum > 0) vgpu__account_settle(&accounts[device], device, 0);
  vgpu__unlock(&accounts[device].lock);
}

int vgpu__graph_memory_trim(void) {
  int trimmed = 0;
  if (LIKELY(!LOAD(vgpu__graph_memory_seen))) return 0;
  CHANGING();
  for (CUdevice device = 0; device < DEVICES; device++) {
    uint64_t before = LOAD(accounts[device].sum);
    if (before == 0 || REAL(cuDeviceGraphMemTrim)(device) != ABI_SUCCESS) continue;
    vgpu__account_look(device);
    trimmed |= LOAD(accounts[device].sum) < before;
  }
  return trimmed;
}

abi_result cuDeviceGraphMemTrim(CUdevice device) {
  CHANGING();
  abi_result result = REAL(cuDeviceGraphMemTrim)(device);
  if (result == ABI_SUCCESS) vgpu__account_look(device);
  return result;
}

void vgpu__graph_memory_reset(CUdevice device) {
  ADD(vgpu__graph_frees, 1);
  vgpu__account_look(device);
}

/* ---- what a graph and its child graphs hold ---- */

struct content {
  uint64_t bytes; /* of allocation nodes */
  unsigned place; /* their device + 1; SEVERAL: on several; 0: none was seen */
  int condition;  /* a conditional node, or something that could not be looked at */
  int frees;      /* a node that frees */
};

static void vgpu__graph_content(void *graph, int depth, struct content *content);

static void vgpu__node_content(void *node, int depth, struct content *content) {
  int type = -1;
  void *child = NULL;
  struct abi_mem_alloc_node params = {.bytes = 0};
  if (REAL(cuGraphNodeGetType)(node, &type) != ABI_SUCCESS || type == NODE_CONDITIONAL) content->condition = 1;
  if (type == NODE_FREE) content->frees = 1;
  if (type == NODE_ALLOC && REAL(cuGraphMemAllocNodeGetParams)(node, &params) == ABI_SUCCESS) {
    content->bytes += (params.bytes + SHM_MEMORY_UNIT - 1) / SHM_MEMORY_UNIT * SHM_MEMORY_UNIT;
    CUdevice device = abi_device_of(&params.pool.location);
    unsigned place = device < 0 || device >= DEVICES ? (unsigned)SEVERAL : (unsigned)device + 1;
    content->place = content->place == 0 || content->place == place ? place : (unsigned)SEVERAL;
  }
  if (type != NODE_GRAPH) return;
  if (REAL(cuGraphChildGraphNodeGetGraph)(node, &child) == ABI_SUCCESS) vgpu__graph_content(child, depth + 1, content);
  else content->condition = 1;
}

static void vgpu__graph_content(void *graph, int depth, struct content *content) {
  size_t count = 0, size = 0;
  if (depth == DEPTH || REAL(cuGraphGetNodes)(graph, NULL, &count) != ABI_SUCCESS) {
    content->condition = 1;
    return;
  }
  if (count == 0) return;
  size = count * sizeof(void *);
  void **nodes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (nodes == MAP_FAILED || REAL(cuGraphGetNodes)(graph, nodes, &count) != ABI_SUCCESS) {
    content->condition = 1;
  } else {
    for (size_t i = 0; i < count; i++) vgpu__node_content(nodes[i], depth, content);
  }
  if (nodes != MAP_FAILED) munmap(nodes, size);
}

int vgpu__graph_has_condition(void *graph) {
  struct content content = {.bytes = 0};
  vgpu__graph_content(graph, 0, &content);
  return content.condition;
}

void vgpu__graph_memory_made(void *graph, CUgraphExec exec, uint64_t flags) {
  if (LIKELY(!LOAD(vgpu__graph_memory_seen)) || exec == NULL) return;
  struct content content = {.bytes = 0};
  vgpu__graph_content(graph, 0, &content);
  /* the context's number of the record holds the place, beyond the numbers of contexts and pools; and whether it frees */
  int frees = content.frees || content.condition;
  if (content.bytes > 0 || frees) {
    vgpu__table_put(vgpu_tenant_current(), 0, KIND_GRAPH_MEMORY, (uint64_t)(uintptr_t)exec, content.bytes,
                    FIRST_PLACE + content.place + (frees ? (unsigned)FREES : 0));
  }
  if (content.bytes > 0 && !frees && (flags & ABI_INSTANTIATE_AUTO_FREE) != 0) vgpu__own_put(NULL, exec);
}

void vgpu__graph_memory_gone(CUgraphExec exec) {
  struct vgpu_record record;
  if (LIKELY(!LOAD(vgpu__graph_memory_seen)) || exec == NULL) return;
  if (vgpu__table_take(KIND_GRAPH_MEMORY, (uint64_t)(uintptr_t)exec, &record)) vgpu__own_put(exec, NULL);
}

/* ---- launches ---- */

static unsigned vgpu__graph_place(const struct vgpu_record *record) { return (record->context - FIRST_PLACE) % FREES; }

/*
 * The device that a graph's allocation nodes are on. For a lease with an account for each GPU it must be a single one.
 * Otherwise that of the current context stands for several until they are launched. -1: unknown.
 */
static CUdevice vgpu__graph_device(const struct vgpu_record *record) {
  CUdevice device = -1;
  unsigned place = vgpu__graph_place(record);
  if (place <= DEVICES) return (CUdevice)place - 1;
  if (record->tenant->gpus > 1) return -1;
  return REAL(cuCtxGetDevice)(&device) != ABI_SUCCESS || device >= DEVICES ? -1 : device;
}

/* The launch may wait at the gate. No lock is held meanwhile, and pending bytes are not given back. */
abi_result vgpu__graph_memory_before(CUgraphExec exec, struct vgpu_graph_charge *charge) {
  struct vgpu_record record;
  charge->device = -1;
  if (!vgpu__table_find(KIND_GRAPH_MEMORY, (uint64_t)(uintptr_t)exec, &record)) return ABI_SUCCESS;
  if (record.context >= FIRST_PLACE + FREES) ADD(vgpu__graph_frees, 1);
  if (record.bytes == 0 || !vgpu__is_charged(record.tenant)) return ABI_SUCCESS;
  CUdevice device = vgpu__graph_device(&record);
  if (device < 0 && record.tenant->gpus > 1) {
    vgpu__log("a graph allocates on several GPUs, for which this lease has accounts of their own: refused");
    return ABI_OUT_OF_MEMORY;
  }
  if (device < 0) return ABI_SUCCESS;
  struct account *account = &accounts[device];
  int several = vgpu__graph_place(&record) == SEVERAL;
  for (int again = 0;; again++) {
    vgpu__lock(&account->lock);
    uint64_t frees = LOAD(vgpu__graph_frees);
    uint64_t coming = vgpu__coming(account, device, record.bytes,
                                   !several && vgpu__own_is_kept(exec) ? record.bytes : 0);
    uint64_t missing = coming > account->sum ? coming - account->sum : 0;
    if (missing == 0 || vgpu__reserve(record.tenant, vgpu__gpu_of(record.tenant, device), missing) == 0) {
      account->charged[record.tenant->index] += missing;
      account->sum += missing;
      account->pending += record.bytes;
      vgpu__unlock(&account->lock);
      *charge = (struct vgpu_graph_charge){device, record.tenant, record.bytes, exec, frees, several};
      return ABI_SUCCESS;
    }
    vgpu__unlock(&account->lock);
    if (again > 0 || !(vgpu__pools_trim() | vgpu__graph_memory_trim())) return vgpu__refusal(record.tenant);
  }
}

/* Charges what the device keeps now. `bytes` of a launch are not under way any more. */
static void vgpu__account_take(CUdevice device, struct vgpu_tenant *tenant, uint64_t bytes) {
  struct account *account = &accounts[device];
  uint64_t reserved;
  vgpu__lock(&account->lock);
  account->pending -= bytes;
  if (vgpu__figure(device, ATTRIBUTE_RESERVED, &reserved)) {
    if (reserved > account->sum) { /* more than the steps reserved: charged if there is room, else logged */
      uint64_t more = reserved - account->sum;
      if (vgpu__reserve(tenant, vgpu__gpu_of(tenant, device), more) == 0) {
        account->charged[tenant->index] += more;
        account->sum += more;
      } else {
        vgpu__log("a graph took %llu bytes more than the quota has room for", (unsigned long long)more);
      }
    }
    vgpu__account_settle(account, device, tenant->index);
  }
  vgpu__unlock(&account->lock);
}

void vgpu__graph_memory_after(const struct vgpu_graph_charge *charge, int ran) {
  if (charge->device < 0) return;
  if (ran) vgpu__own_launched(charge->exec, charge->frees);
  vgpu__account_take(charge->device, charge->tenant, charge->bytes);
  for (CUdevice device = 0; charge->several && device < DEVICES; device++) {
    if (device != charge->device) vgpu__account_take(device, charge->tenant, 0);
  }
}

uint64_t vgpu__graph_memory_tenants(void) {
  uint64_t bits = 0;
  for (int i = 0; i < DEVICES; i++) {
    for (uint32_t t = 0; t < VGPU_TENANTS; t++) bits |= (uint64_t)(LOAD(accounts[i].charged[t]) != 0) << t;
  }
  return bits;
}

void vgpu__graph_memory_forget(void) {
  for (int i = 0; i < DEVICES; i++) accounts[i] = (struct account){.sum = 0};
  for (int i = 0; i < OWNS; i++) owns[i] = (struct own){.exec = NULL};
  owns_lock.word = 0;
  vgpu__graph_memory_seen = 0;
}

/* ---- nodes that allocate ---- */

abi_result cuGraphAddMemAllocNode(void **node, void *graph, void *const *needs, size_t count,
                                  struct abi_mem_alloc_node *params) {
  STORE(vgpu__graph_memory_seen, 1);
  return REAL(cuGraphAddMemAllocNode)(node, graph, needs, count, params);
}

abi_result cuGraphAddNode(void **node, void *graph, void *const *needs, size_t count, void *params) {
  if (params != NULL && *(const int *)params == NODE_ALLOC) STORE(vgpu__graph_memory_seen, 1);
  return REAL(cuGraphAddNode)(node, graph, needs, count, params);
}

abi_result cuGraphAddNode_v2(void **node, void *graph, void *const *needs, const void *edges, size_t count,
                             void *params) {
  if (params != NULL && *(const int *)params == NODE_ALLOC) STORE(vgpu__graph_memory_seen, 1);
  return REAL(cuGraphAddNode_v2)(node, graph, needs, edges, count, params);
}

abi_result cuGraphAddNode_v3(void **node, void *graph, void *const *needs, const void *edges, size_t count,
                             void *params) {
  if (params != NULL && *(const int *)params == NODE_ALLOC) STORE(vgpu__graph_memory_seen, 1);
  return REAL(cuGraphAddNode_v3)(node, graph, needs, edges, count, params);
}
