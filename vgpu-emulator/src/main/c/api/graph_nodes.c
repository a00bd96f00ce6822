/* Getting and setting the parameters of graph nodes, in graphs and in executable graphs. */
#include "driver/driver.h"
#include "driver/graph.h"
#include "driver/host_calls.h"
#include "driver/memory.h"
#include "driver/module.h"
#include "launch.h"
#include "transfer.h"

#include <stdlib.h>
#include <string.h>

static bool is_kind(CUgraphNode node, emu_operation_kind kind) {
    return emu_is_node(node) && node->operation.kind == kind;
}

void **emu_graph_node_params(CUgraphNode node) {
    CUfunction function = node->operation.kernel.function;
    if (!emu_pool_has(&emu_functions, function) || function->param_count == 0 ||
        emu_function_argument_bytes(function) > EMU_KERNEL_ARGUMENTS) {
        return NULL;
    }
    free(node->params);
    node->params = calloc(function->param_count, sizeof *node->params);
    for (uint32_t i = 0; node->params != NULL && i < function->param_count; i++) {
        node->params[i] = node->operation.kernel.arguments + function->param_offset[i];
    }
    return node->params;
}

void emu_graph_node_describe(CUgraphNode node, const CUDA_MEMCPY3D *copy) {
    CUDA_MEMCPY3D *kept = node->copy != NULL ? node->copy : malloc(sizeof *kept);
    if (kept != NULL) {
        *kept = *copy;
    }
    node->copy = kept;
}

/* Replaces a node's operation with one of the same kind. */
static CUresult set_node(CUgraphNode node, const emu_operation *operation) {
    EMU_REQUIRE(is_kind(node, operation->kind));
    node->operation = *operation;
    return CUDA_SUCCESS;
}

/* As set_node, in an executable graph: for the step that was made from the node. */
static CUresult set_step(CUgraphExec exec, CUgraphNode node, const emu_operation *operation) {
    EMU_REQUIRE(emu_is_exec(exec) && node != NULL);
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&exec->lock);
    for (size_t i = 0; i < exec->count; i++) {
        if (exec->steps[i].node == node && exec->steps[i].operation.kind == operation->kind) {
            exec->steps[i].operation = *operation;
            emu_graph_exec_time(exec);
            result = CUDA_SUCCESS;
        }
    }
    pthread_mutex_unlock(&exec->lock);
    return result;
}

/* ---- kernels ---- */

static CUresult kernel_of(const CUDA_KERNEL_NODE_PARAMS_v1 *params, CUkernel kernel,
                          emu_operation *operation) {
    EMU_REQUIRE(params != NULL);
    return emu_graph_kernel(params, params->function != NULL ? params->function : kernel,
                            operation);
}

static CUresult set_kernel(CUgraphExec exec, CUgraphNode node,
                           const CUDA_KERNEL_NODE_PARAMS_v1 *params, CUkernel kernel) {
    EMU_INITIALIZED();
    emu_operation operation;
    CUresult result = kernel_of(params, kernel, &operation);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    return exec == NULL ? set_node(node, &operation) : set_step(exec, node, &operation);
}

EMU_API CUresult cuGraphKernelNodeSetParams(CUgraphNode node,
                                            const CUDA_KERNEL_NODE_PARAMS_v1 *params) {
    return set_kernel(NULL, node, params, NULL);
}

EMU_API CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node,
                                               const CUDA_KERNEL_NODE_PARAMS_v2 *params) {
    EMU_REQUIRE(params != NULL);
    return set_kernel(NULL, node, &params->v1, params->kernel);
}

EMU_API CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                const CUDA_KERNEL_NODE_PARAMS_v1 *params) {
    EMU_REQUIRE(exec != NULL);
    return set_kernel(exec, node, params, NULL);
}

EMU_API CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                                   const CUDA_KERNEL_NODE_PARAMS_v2 *params) {
    EMU_REQUIRE(exec != NULL && params != NULL);
    return set_kernel(exec, node, &params->v1, params->kernel);
}

EMU_API CUresult cuGraphKernelNodeSetAttribute(CUgraphNode node, int attribute, const void *value) {
    EMU_INITIALIZED();
    EMU_REQUIRE(is_kind(node, EMU_KERNEL) && attribute > 0 && attribute < EMU_NODE_ATTRIBUTES &&
                value != NULL);
    if (node->attributes == NULL) {
        node->attributes = calloc(EMU_NODE_ATTRIBUTES, sizeof *node->attributes);
    }
    if (node->attributes == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memcpy(node->attributes[attribute], value, EMU_NODE_ATTRIBUTE_SIZE);
    return CUDA_SUCCESS;
}

EMU_API CUresult cuGraphKernelNodeGetAttribute(CUgraphNode node, int attribute, void *value) {
    EMU_INITIALIZED();
    EMU_REQUIRE(is_kind(node, EMU_KERNEL) && attribute > 0 && attribute < EMU_NODE_ATTRIBUTES &&
                value != NULL);
    memset(value, 0, EMU_NODE_ATTRIBUTE_SIZE);
    if (node->attributes != NULL) {
        memcpy(value, node->attributes[attribute], EMU_NODE_ATTRIBUTE_SIZE);
    }
    return CUDA_SUCCESS;
}

EMU_API CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode target, CUgraphNode source) {
    EMU_INITIALIZED();
    EMU_REQUIRE(is_kind(target, EMU_KERNEL) && is_kind(source, EMU_KERNEL));
    for (int i = 1; source->attributes != NULL && i < EMU_NODE_ATTRIBUTES; i++) {
        CUresult result = cuGraphKernelNodeSetAttribute(target, i, source->attributes[i]);
        if (result != CUDA_SUCCESS) {
            return result;
        }
    }
    return CUDA_SUCCESS;
}

/* ---- copies and fills ---- */

/* Describes a captured copy as linear rows between two addresses. */
static CUDA_MEMCPY3D copy_of(const emu_box *box) {
    emu_allocation found;
    bool from_device = emu_memory_find(box->source, &found) && emu_is_on_device(found.kind);
    bool to_device = emu_memory_find(box->target, &found) && emu_is_on_device(found.kind);
    return (CUDA_MEMCPY3D){
        .src_type = from_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST,
        .src_host = from_device ? NULL : (const void *)(uintptr_t)box->source,
        .src_device = from_device ? box->source : 0,
        .src_pitch = box->source_pitch,
        .src_height = box->source_pitch == 0 ? 0 : box->source_slice / box->source_pitch,
        .dst_type = to_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST,
        .dst_host = to_device ? NULL : (void *)(uintptr_t)box->target,
        .dst_device = to_device ? box->target : 0,
        .dst_pitch = box->target_pitch,
        .dst_height = box->target_pitch == 0 ? 0 : box->target_slice / box->target_pitch,
        .width_bytes = box->width,
        .height = box->height,
        .depth = box->depth};
}

EMU_API CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D *copy) {
    EMU_INITIALIZED();
    EMU_REQUIRE(is_kind(node, EMU_COPY) && copy != NULL);
    *copy = node->copy != NULL ? *node->copy : copy_of(&node->operation.copy);
    return CUDA_SUCCESS;
}

EMU_API CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D *copy) {
    EMU_INITIALIZED();
    EMU_REQUIRE(is_kind(node, EMU_COPY) && copy != NULL);
    emu_operation operation;
    CUresult result = emu_box_of(copy, &operation);
    if (result == CUDA_SUCCESS) {
        node->operation = operation;
        emu_graph_node_describe(node, copy);
    }
    return result;
}

EMU_API CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                const CUDA_MEMCPY3D *copy, CUcontext context) {
    EMU_INITIALIZED();
    (void)context;
    EMU_REQUIRE(copy != NULL);
    emu_operation operation;
    CUresult result = emu_box_of(copy, &operation);
    return result == CUDA_SUCCESS ? set_step(exec, node, &operation) : result;
}

static CUresult fill_of(const CUDA_MEMSET_NODE_PARAMS *params, emu_operation *operation) {
    EMU_REQUIRE(params != NULL);
    return emu_fill_of(params->destination, params->pitch, params->value, params->element_size,
                       params->width, params->height, operation);
}

EMU_API CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS *params) {
    EMU_INITIALIZED();
    EMU_REQUIRE(is_kind(node, EMU_FILL) && params != NULL);
    const emu_fill *fill = &node->operation.fill;
    *params = (CUDA_MEMSET_NODE_PARAMS){fill->target,        fill->pitch, fill->value,
                                        fill->element_bytes, fill->width, fill->height};
    return CUDA_SUCCESS;
}

EMU_API CUresult cuGraphMemsetNodeSetParams(CUgraphNode node,
                                            const CUDA_MEMSET_NODE_PARAMS *params) {
    EMU_INITIALIZED();
    emu_operation operation;
    CUresult result = fill_of(params, &operation);
    return result == CUDA_SUCCESS ? set_node(node, &operation) : result;
}

EMU_API CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                const CUDA_MEMSET_NODE_PARAMS *params,
                                                CUcontext context) {
    EMU_INITIALIZED();
    (void)context;
    emu_operation operation;
    CUresult result = fill_of(params, &operation);
    return result == CUDA_SUCCESS ? set_step(exec, node, &operation) : result;
}

/* ---- host functions and events ---- */

static emu_operation host_of(const CUDA_HOST_NODE_PARAMS *params) {
    return (emu_operation){.kind = EMU_HOST,
                           .host = {.function = params->function, .data = params->data}};
}

EMU_API CUresult cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS *params) {
    EMU_INITIALIZED();
    EMU_REQUIRE(is_kind(node, EMU_HOST) && params != NULL);
    params->function = node->operation.host.function;
    params->data = node->operation.host.data;
    return CUDA_SUCCESS;
}

EMU_API CUresult cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS *params) {
    EMU_INITIALIZED();
    EMU_REQUIRE(params != NULL && params->function != NULL);
    emu_operation operation = host_of(params);
    return set_node(node, &operation);
}

EMU_API CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                              const CUDA_HOST_NODE_PARAMS *params) {
    EMU_INITIALIZED();
    EMU_REQUIRE(params != NULL && params->function != NULL);
    emu_operation operation = host_of(params);
    return set_step(exec, node, &operation);
}

static CUresult get_event(CUgraphNode node, CUevent *event, emu_operation_kind kind) {
    EMU_INITIALIZED();
    EMU_REQUIRE(is_kind(node, kind) && event != NULL);
    *event = node->operation.event.event;
    return CUDA_SUCCESS;
}

static CUresult set_event(CUgraphExec exec, CUgraphNode node, CUevent event,
                          emu_operation_kind kind) {
    EMU_INITIALIZED();
    if (!emu_event_known(event)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    EMU_REQUIRE(event->shared == NULL);
    emu_operation operation = {.kind = kind,
                               .event = {.event = event, .generation = event->object.generation}};
    return exec == NULL ? set_node(node, &operation) : set_step(exec, node, &operation);
}

#define EVENT_NODE(name, kind) \
    EMU_API CUresult cuGraph##name##NodeGetEvent(CUgraphNode node, CUevent *event) { \
        return get_event(node, event, kind); \
    } \
    EMU_API CUresult cuGraph##name##NodeSetEvent(CUgraphNode node, CUevent event) { \
        return set_event(NULL, node, event, kind); \
    } \
    EMU_API CUresult cuGraphExec##name##NodeSetEvent(CUgraphExec exec, CUgraphNode node, \
                                                     CUevent event) { \
        EMU_REQUIRE(exec != NULL); \
        return set_event(exec, node, event, kind); \
    }

EVENT_NODE(EventRecord, EMU_RECORD)
EVENT_NODE(EventWait, EMU_WAIT)

/* ---- disabled nodes ---- */

static bool can_be_disabled(const emu_step *step) {
    emu_operation_kind kind = step->operation.kind;
    return kind == EMU_KERNEL || kind == EMU_COPY || kind == EMU_FILL;
}

/* change: 0 or 1 sets the node's state, 2 only reads it. */
static CUresult enabled(CUgraphExec exec, CUgraphNode node, unsigned int change, unsigned int *is) {
    EMU_INITIALIZED();
    EMU_REQUIRE(emu_is_exec(exec) && node != NULL && is != NULL);
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&exec->lock);
    for (size_t i = 0; i < exec->count; i++) {
        emu_step *step = &exec->steps[i];
        if (step->node == node && can_be_disabled(step)) {
            step->is_disabled = change == 2 ? step->is_disabled : change == 0;
            *is = step->is_disabled ? 0 : 1;
            emu_graph_exec_time(exec);
            result = CUDA_SUCCESS;
        }
    }
    pthread_mutex_unlock(&exec->lock);
    return result;
}

EMU_API CUresult cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode node, unsigned int *is) {
    return enabled(exec, node, 2, is);
}

EMU_API CUresult cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned int is) {
    unsigned int now = 0;
    return enabled(exec, node, is != 0 ? 1 : 0, &now);
}
