/*
 * Copies with attributes, single and in batches. Copies of a batch may run in any order; here they run one after the
 * other. If one is wrong, none runs.
 */
#include "array.h"
#include "base/copy_abi.h"
#include "driver/driver.h"
#include "transfer.h"

#include <string.h>

enum { MOST_FLAGS = 1, LEGACY_STREAM = 1 };

static bool is_order(int order) {
    return order >= CU_MEMCPY_SRC_ACCESS_ORDER_STREAM && order <= CU_MEMCPY_SRC_ACCESS_ORDER_ANY;
}

/* Batches do not run in the legacy stream. */
static bool is_legacy(CUstream stream, bool per_thread) {
    return (stream == NULL && !per_thread) || (uintptr_t)stream == LEGACY_STREAM;
}

/* A source that is read during the call cannot become a node, which reads it at each launch. */
static CUresult check_stream(CUstream handle, bool per_thread, bool reads_at_once) {
    EMU_CONTEXT(context);
    CUstream stream = NULL;
    CUresult result = emu_stream_of(context, handle, per_thread, &stream);
    return result == CUDA_SUCCESS && reads_at_once && emu_stream_is_captured(stream)
               ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
               : result;
}

static CUresult linear_of(CUdeviceptr target, CUdeviceptr source, size_t bytes,
                          const CUmemcpyAttributes *attributes, emu_operation *operation) {
    EMU_REQUIRE(is_order(attributes->order) && attributes->flags <= MOST_FLAGS);
    CUresult result = emu_copy_of(target, source, bytes, operation);
    operation->reads_at_once = attributes->order == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
    return result;
}

/* The caller's arrays, and where it wants to know which copy is wrong; NULL: nowhere. */
typedef struct {
    const CUdeviceptr *targets;
    const CUdeviceptr *sources;
    const size_t *sizes;
    size_t count;
    const CUmemcpyAttributes *attributes;
    const size_t *firsts; /* the first copy that each of the attributes applies to */
    size_t attribute_count;
} batch;

static bool is_batch(const batch *b) {
    if (b->targets == NULL || b->sources == NULL || b->sizes == NULL || b->count == 0 ||
        b->attributes == NULL || b->firsts == NULL || b->attribute_count == 0 ||
        b->attribute_count > b->count || b->firsts[0] != 0) {
        return false;
    }
    for (size_t i = 1; i < b->attribute_count; i++) {
        if (b->firsts[i] <= b->firsts[i - 1]) {
            return false;
        }
    }
    return b->firsts[b->attribute_count - 1] < b->count;
}

/* Where copies go, and whether they are submitted or only checked. *failed: the copy that fails. */
typedef struct {
    CUstream stream;
    bool per_thread;
    bool submits;
    size_t *failed;
} destination;

/* Takes copy number i, which `made` says is right. */
static CUresult take(const destination *to, size_t i, CUresult made,
                     const emu_operation *operation) {
    CUresult result = made;
    if (made == CUDA_SUCCESS) {
        result = to->submits ? emu_transfer(to->stream, to->per_thread, false, operation)
                             : check_stream(to->stream, to->per_thread, operation->reads_at_once);
    }
    if (result != CUDA_SUCCESS) {
        *to->failed = i;
    }
    return result;
}

static CUresult each_linear(const batch *b, const destination *to) {
    CUresult result = CUDA_SUCCESS;
    size_t at = 0;
    for (size_t i = 0; result == CUDA_SUCCESS && i < b->count; i++) {
        at += at + 1 < b->attribute_count && b->firsts[at + 1] == i ? 1 : 0;
        if (b->sizes[i] > 0) {
            emu_operation operation;
            result = linear_of(b->targets[i], b->sources[i], b->sizes[i], &b->attributes[at],
                               &operation);
            result = take(to, i, result, &operation);
        }
    }
    return result;
}

static CUresult copy_batch(const batch *b, size_t *failed, CUstream stream, bool per_thread) {
    size_t unwanted = 0;
    failed = failed != NULL ? failed : &unwanted;
    EMU_INITIALIZED();
    *failed = SIZE_MAX;
    EMU_REQUIRE(is_batch(b) && !is_legacy(stream, per_thread));
    destination to = {stream, per_thread, false, failed};
    CUresult result = check_stream(stream, per_thread, false);
    if (result == CUDA_SUCCESS) {
        result = each_linear(b, &to);
    }
    to.submits = true;
    return result == CUDA_SUCCESS ? each_linear(b, &to) : result;
}

/* An end of a copy, in the form of cuMemcpy3D. */
static CUresult end_of(const CUmemcpy3DOperand *end, const CUDA_MEMCPY3D_BATCH_OP *op,
                       size_t element, bool is_target, CUDA_MEMCPY3D *copy) {
    bool is_array = end->type == CU_MEMCPY_OPERAND_TYPE_ARRAY;
    int type = is_array ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_UNIFIED;
    EMU_REQUIRE(is_array || end->type == CU_MEMCPY_OPERAND_TYPE_POINTER);
    size_t row = is_array || end->pointer.row_length == 0 ? op->width : end->pointer.row_length;
    size_t layer =
        is_array || end->pointer.layer_height == 0 ? op->height : end->pointer.layer_height;
    EMU_REQUIRE(row >= op->width && layer >= op->height && row <= SIZE_MAX / element);
    EMU_REQUIRE(!is_array || end->array.x <= SIZE_MAX / element);
    if (is_target) {
        copy->dst_type = type;
        copy->dst_array = is_array ? end->array.array : NULL;
        copy->dst_device = is_array ? 0 : end->pointer.address;
        copy->dst_x = is_array ? end->array.x * element : 0;
        copy->dst_y = is_array ? end->array.y : 0;
        copy->dst_z = is_array ? end->array.z : 0;
        copy->dst_pitch = row * element;
        copy->dst_height = layer;
    } else {
        copy->src_type = type;
        copy->src_array = is_array ? end->array.array : NULL;
        copy->src_device = is_array ? 0 : end->pointer.address;
        copy->src_x = is_array ? end->array.x * element : 0;
        copy->src_y = is_array ? end->array.y : 0;
        copy->src_z = is_array ? end->array.z : 0;
        copy->src_pitch = row * element;
        copy->src_height = layer;
    }
    return CUDA_SUCCESS;
}

/* The bytes of an array's element; 1 for memory; 0: not an array. */
static size_t element_of(const CUmemcpy3DOperand *end) {
    if (end->type != CU_MEMCPY_OPERAND_TYPE_ARRAY) {
        return 1;
    }
    CUarray array = end->array.array;
    return emu_pool_has(&emu_arrays, array) ? array->row_bytes / array->shape.width : 0;
}

static CUresult box_of(const CUDA_MEMCPY3D_BATCH_OP *op, emu_operation *operation) {
    EMU_REQUIRE(op->width > 0 && op->height > 0 && op->depth > 0 && is_order(op->order) &&
                op->flags <= MOST_FLAGS);
    size_t from = element_of(&op->source);
    size_t to = element_of(&op->target);
    bool arrays = op->source.type == CU_MEMCPY_OPERAND_TYPE_ARRAY &&
                  op->target.type == CU_MEMCPY_OPERAND_TYPE_ARRAY;
    EMU_REQUIRE(from > 0 && to > 0 && (!arrays || from == to));
    size_t element = from > to ? from : to;
    EMU_REQUIRE(op->width <= SIZE_MAX / element);
    CUDA_MEMCPY3D copy = {
        .width_bytes = op->width * element, .height = op->height, .depth = op->depth};
    CUresult result = end_of(&op->source, op, element, false, &copy);
    if (result == CUDA_SUCCESS) {
        result = end_of(&op->target, op, element, true, &copy);
    }
    if (result == CUDA_SUCCESS) {
        result = emu_box_of(&copy, operation);
    }
    operation->reads_at_once = op->order == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
    return result;
}

static CUresult each_box(const CUDA_MEMCPY3D_BATCH_OP *ops, size_t count, const destination *to) {
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; result == CUDA_SUCCESS && i < count; i++) {
        emu_operation operation;
        result = box_of(&ops[i], &operation);
        result = take(to, i, result, &operation);
    }
    return result;
}

static CUresult copy_boxes(const CUDA_MEMCPY3D_BATCH_OP *ops, size_t count, size_t *failed,
                           unsigned long long flags, CUstream stream, bool per_thread) {
    size_t unwanted = 0;
    failed = failed != NULL ? failed : &unwanted;
    EMU_INITIALIZED();
    *failed = SIZE_MAX;
    EMU_REQUIRE(ops != NULL && count > 0 && flags == 0);
    destination to = {stream, per_thread, false, failed};
    CUresult result = check_stream(stream, per_thread, false);
    if (result == CUDA_SUCCESS) {
        result = each_box(ops, count, &to);
    }
    to.submits = true;
    return result == CUDA_SUCCESS ? each_box(ops, count, &to) : result;
}

static CUresult copy_one(CUdeviceptr target, CUdeviceptr source, size_t bytes,
                         const CUmemcpyAttributes *attributes, CUstream stream, bool per_thread) {
    EMU_REQUIRE(attributes != NULL);
    emu_operation operation;
    CUresult result = linear_of(target, source, bytes, attributes, &operation);
    if (result == CUDA_SUCCESS) {
        result = check_stream(stream, per_thread, operation.reads_at_once);
    }
    return result == CUDA_SUCCESS ? emu_transfer(stream, per_thread, false, &operation) : result;
}

/* Each function for both kinds of default stream. The forms of CUDA 12.8 also say which copy is wrong. */
#define FORMS(suffix, per_thread) \
    EMU_API CUresult cuMemcpyBatchAsync##suffix(CUdeviceptr *targets, CUdeviceptr *sources, \
                                                size_t *sizes, size_t count, \
                                                CUmemcpyAttributes *attributes, size_t *firsts, \
                                                size_t attribute_count, size_t *failed, \
                                                CUstream stream) { \
        batch b = {targets, sources, sizes, count, attributes, firsts, attribute_count}; \
        return copy_batch(&b, failed, stream, per_thread); \
    } \
    EMU_API CUresult cuMemcpyBatchAsync_v2##suffix(CUdeviceptr *targets, CUdeviceptr *sources, \
                                                   size_t *sizes, size_t count, \
                                                   CUmemcpyAttributes *attributes, size_t *firsts, \
                                                   size_t attribute_count, CUstream stream) { \
        batch b = {targets, sources, sizes, count, attributes, firsts, attribute_count}; \
        return copy_batch(&b, NULL, stream, per_thread); \
    } \
    EMU_API CUresult cuMemcpy3DBatchAsync##suffix(size_t count, CUDA_MEMCPY3D_BATCH_OP *ops, \
                                                  size_t *failed, unsigned long long flags, \
                                                  CUstream stream) { \
        EMU_REQUIRE(!is_legacy(stream, per_thread)); \
        return copy_boxes(ops, count, failed, flags, stream, per_thread); \
    } \
    EMU_API CUresult cuMemcpy3DBatchAsync_v2##suffix(size_t count, CUDA_MEMCPY3D_BATCH_OP *ops, \
                                                     unsigned long long flags, CUstream stream) { \
        EMU_REQUIRE(!is_legacy(stream, per_thread)); \
        return copy_boxes(ops, count, NULL, flags, stream, per_thread); \
    } \
    EMU_API CUresult cuMemcpyWithAttributesAsync##suffix(CUdeviceptr target, CUdeviceptr source, \
                                                         size_t bytes, \
                                                         CUmemcpyAttributes *attributes, \
                                                         CUstream stream) { \
        EMU_INITIALIZED(); \
        return copy_one(target, source, bytes, attributes, stream, per_thread); \
    } \
    EMU_API CUresult cuMemcpy3DWithAttributesAsync##suffix( \
        CUDA_MEMCPY3D_BATCH_OP *op, unsigned long long flags, CUstream stream) { \
        return copy_boxes(op, 1, NULL, flags, stream, per_thread); \
    }

FORMS(, false)
FORMS(_ptsz, true)
