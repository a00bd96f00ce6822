#include "graph_memory.h"

#include "base/heap.h"
#include "driver.h"
#include "memory.h"
#include "mig.h"

enum { USED = 0, USED_HIGH = 1, RESERVED = 2, RESERVED_HIGH = 3, ATTRIBUTES = 4, AUTO_FREE = 1 };

/* Graph memory grows in these steps. */
#define STEP (UINT64_C(2) << 20)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t figures[EMU_MAX_DEVICES][ATTRIBUTES];

static uint64_t steps(uint64_t bytes) {
    return (bytes + STEP - 1) / STEP * STEP;
}

static emu_gpu *gpu_of(uint64_t address) {
    emu_allocation found;
    return emu_memory_find(address, &found) && found.kind == EMU_GRAPH_MEMORY
               ? emu_gpu_at((uint32_t)found.device)
               : NULL;
}

CUresult emu_graph_memory_node(emu_gpu *gpu, uint64_t bytes, emu_operation *operation) {
    if (bytes == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (bytes > gpu->state->settings.memory_bytes) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *operation = (emu_operation){.kind = EMU_ALLOC};
    return emu_memory_place(gpu, bytes, EMU_GRAPH_MEMORY, 0, &operation->address);
}

CUresult emu_graph_memory_capture(CUstream stream, emu_gpu *gpu, uint64_t bytes,
                                  CUdeviceptr *address) {
    emu_operation operation;
    CUresult result = emu_graph_memory_node(gpu, bytes, &operation);
    if (result == CUDA_SUCCESS) {
        result = emu_enqueue(stream, &operation);
        if (result == CUDA_SUCCESS) {
            *address = operation.address;
        } else {
            emu_memory_free(operation.address, 1u << EMU_GRAPH_MEMORY);
        }
    }
    return result;
}

/* In a block of graph memory, `owner` counts the nodes and steps that use it, and `charged` is nonzero while it is
 * allocated. */
static void count_user(uint64_t bytes, uint32_t *owner, uint64_t *charged, void *data) {
    int *change = data;
    (void)bytes;
    (void)charged;
    *owner = (uint32_t)((int64_t)*owner + *change);
    *change = *owner == 0 ? 0 : 1;
}

void emu_graph_memory_use(const emu_operation *operation, int change) {
    if (operation->kind != EMU_ALLOC) {
        return;
    }
    int left = change;
    if (emu_memory_change(operation->address, EMU_GRAPH_MEMORY, count_user, &left) && left == 0) {
        emu_graph_memory_free(operation->address);
        emu_memory_free(operation->address, 1u << EMU_GRAPH_MEMORY);
    }
}

typedef struct {
    bool allocate;
    uint64_t changed; /* the bytes whose state changed; 0: the block was already in that state */
} block_change;

static void set_allocated(uint64_t bytes, uint32_t *owner, uint64_t *charged, void *data) {
    block_change *change = data;
    (void)owner;
    if ((*charged != 0) != change->allocate) {
        change->changed = emu_heap_round(bytes);
        *charged = change->allocate ? change->changed : 0;
    }
}

static uint64_t set(uint64_t address, bool allocate) {
    block_change change = {.allocate = allocate};
    emu_memory_change(address, EMU_GRAPH_MEMORY, set_allocated, &change);
    return change.changed;
}

bool emu_graph_memory_free(uint64_t address) {
    emu_gpu *gpu = gpu_of(address);
    uint64_t bytes = gpu == NULL ? 0 : set(address, false);
    if (bytes == 0) {
        return false;
    }
    pthread_mutex_lock(&lock);
    uint64_t *used = &figures[gpu->index][USED];
    *used -= bytes < *used ? bytes : *used; /* after a reset there is nothing left to subtract */
    pthread_mutex_unlock(&lock);
    return true;
}

/* Charges the GPU so that `more` bytes fit besides those in use. The caller holds the lock. */
static bool grow(emu_gpu *gpu, uint64_t more) {
    uint64_t *f = figures[gpu->index];
    uint64_t needed = steps(f[USED] + more);
    if (needed > f[RESERVED]) {
        if (!emu_gpu_charge(gpu, needed - f[RESERVED])) {
            return false;
        }
        f[RESERVED] = needed;
        f[RESERVED_HIGH] = needed > f[RESERVED_HIGH] ? needed : f[RESERVED_HIGH];
    }
    return true;
}

CUresult emu_graph_memory_prepare(CUgraphExec exec) {
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < exec->count && result == CUDA_SUCCESS; i++) {
        const emu_operation *operation = &exec->steps[i].operation;
        emu_gpu *gpu = operation->kind == EMU_ALLOC ? gpu_of(operation->address) : NULL;
        if (gpu == NULL) {
            continue;
        }
        if ((exec->flags & AUTO_FREE) != 0) {
            emu_graph_memory_free(operation->address);
        }
        uint64_t bytes = set(operation->address, true);
        if (bytes == 0) {
            return CUDA_ERROR_INVALID_VALUE; /* not freed since the last launch */
        }
        pthread_mutex_lock(&lock);
        if (grow(gpu, bytes)) {
            uint64_t *f = figures[gpu->index];
            f[USED] += bytes;
            f[USED_HIGH] = f[USED] > f[USED_HIGH] ? f[USED] : f[USED_HIGH];
        } else {
            result = CUDA_ERROR_OUT_OF_MEMORY;
        }
        pthread_mutex_unlock(&lock);
        if (result != CUDA_SUCCESS) {
            set(operation->address, false);
            while (i-- > 0) {
                if (exec->steps[i].operation.kind == EMU_ALLOC) {
                    emu_graph_memory_free(exec->steps[i].operation.address);
                }
            }
            return result;
        }
    }
    return result;
}

static void add_free(uint64_t bytes, uint32_t *owner, uint64_t *charged, void *data) {
    uint64_t *sum = data;
    (void)owner;
    *sum += *charged == 0 ? emu_heap_round(bytes) : 0;
}

CUresult emu_graph_memory_upload(CUgraphExec exec) {
    uint64_t more[EMU_MAX_DEVICES] = {0};
    bool fits = true;
    for (size_t i = 0; i < exec->count; i++) {
        const emu_operation *operation = &exec->steps[i].operation;
        emu_gpu *gpu = operation->kind == EMU_ALLOC ? gpu_of(operation->address) : NULL;
        if (gpu != NULL) {
            emu_memory_change(operation->address, EMU_GRAPH_MEMORY, add_free, &more[gpu->index]);
        }
    }
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < EMU_MAX_DEVICES && fits; i++) {
        fits = more[i] == 0 || grow(emu_gpu_at(i), more[i]);
    }
    pthread_mutex_unlock(&lock);
    return fits ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* An allocation has already been made, before the launch. */
void emu_graph_memory_run(const emu_operation *operation) {
    if (operation->kind == EMU_FREE) {
        emu_graph_memory_free(operation->address);
    }
}

void emu_graph_memory_reset(emu_gpu *gpu) {
    pthread_mutex_lock(&lock);
    emu_gpu_refund(gpu, figures[gpu->index][RESERVED]);
    figures[gpu->index][USED] = 0;
    figures[gpu->index][RESERVED] = 0;
    pthread_mutex_unlock(&lock);
}

/* ---- entry points ---- */

EMU_API CUresult cuDeviceGetGraphMemAttribute(CUdevice ordinal, int attribute, void *value) {
    EMU_INITIALIZED();
    EMU_REQUIRE(value != NULL && attribute >= 0 && attribute < ATTRIBUTES);
    emu_device *device = emu_device_at(ordinal);
    if (device == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    pthread_mutex_lock(&lock);
    *(uint64_t *)value = figures[device->gpu->index][attribute];
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

/* Writing 0 resets a high-water mark to the current value. */
EMU_API CUresult cuDeviceSetGraphMemAttribute(CUdevice ordinal, int attribute, void *value) {
    EMU_INITIALIZED();
    EMU_REQUIRE(value != NULL && (attribute == USED_HIGH || attribute == RESERVED_HIGH) &&
                *(const uint64_t *)value == 0);
    emu_device *device = emu_device_at(ordinal);
    if (device == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    pthread_mutex_lock(&lock);
    uint64_t *f = figures[device->gpu->index];
    f[attribute] = f[attribute - 1];
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

EMU_API CUresult cuDeviceGraphMemTrim(CUdevice ordinal) {
    EMU_INITIALIZED();
    emu_device *device = emu_device_at(ordinal);
    if (device == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    pthread_mutex_lock(&lock);
    uint64_t *f = figures[device->gpu->index];
    uint64_t kept = steps(f[USED]);
    if (kept < f[RESERVED]) {
        emu_gpu_refund(device->gpu, f[RESERVED] - kept);
        f[RESERVED] = kept;
    }
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

static CUresult add(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs, size_t count,
                    const emu_operation *operation) {
    for (size_t i = 0; i < count; i++) {
        EMU_REQUIRE(emu_pool_has(&emu_nodes_pool, needs[i]) && needs[i]->graph == graph);
    }
    *node = emu_graph_add(graph, operation, needs, count);
    return *node == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

EMU_API CUresult cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs,
                                        size_t count, CUDA_MEM_ALLOC_NODE_PARAMS *params) {
    EMU_INITIALIZED();
    EMU_REQUIRE(node != NULL && emu_pool_has(&emu_graphs, graph) && (count == 0 || needs != NULL) &&
                params != NULL && params->pool.alloc_type == 1 && params->pool.location.type == 1 &&
                params->pool.handle_types == 0);
    emu_device *device = emu_device_at(params->pool.location.id);
    if (device == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    emu_operation operation;
    CUresult result = emu_graph_memory_node(device->gpu, params->bytes, &operation);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    result = add(node, graph, needs, count, &operation);
    if (result != CUDA_SUCCESS) {
        emu_memory_free(operation.address, 1u << EMU_GRAPH_MEMORY);
        return result;
    }
    params->address = operation.address;
    return CUDA_SUCCESS;
}

EMU_API CUresult cuGraphAddMemFreeNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs,
                                       size_t count, CUdeviceptr address) {
    EMU_INITIALIZED();
    EMU_REQUIRE(node != NULL && emu_pool_has(&emu_graphs, graph) && (count == 0 || needs != NULL) &&
                gpu_of(address) != NULL);
    emu_operation operation = {.kind = EMU_FREE, .address = address};
    return add(node, graph, needs, count, &operation);
}

EMU_API CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node,
                                              CUDA_MEM_ALLOC_NODE_PARAMS *params) {
    EMU_INITIALIZED();
    emu_allocation found;
    EMU_REQUIRE(emu_pool_has(&emu_nodes_pool, node) && params != NULL &&
                node->operation.kind == EMU_ALLOC &&
                emu_memory_find(node->operation.address, &found));
    *params = (CUDA_MEM_ALLOC_NODE_PARAMS){.bytes = found.bytes, .address = found.start};
    params->pool.alloc_type = 1;
    params->pool.location.type = 1;
    for (int i = 0; i < emu_driver.device_count; i++) {
        if (emu_driver.devices[i].gpu->index == (uint32_t)found.device) {
            params->pool.location.id = i;
        }
    }
    return CUDA_SUCCESS;
}

EMU_API CUresult cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr *address) {
    EMU_INITIALIZED();
    EMU_REQUIRE(emu_pool_has(&emu_nodes_pool, node) && address != NULL &&
                node->operation.kind == EMU_FREE);
    *address = node->operation.address;
    return CUDA_SUCCESS;
}
