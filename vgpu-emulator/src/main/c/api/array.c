/* Arrays, mipmapped arrays, and copies in two and three dimensions. */
#include "array.h"
#include "driver/driver.h"
#include "driver/memory.h"
#include "transfer.h"

#include <string.h>

emu_pool emu_arrays = EMU_POOL(struct CUarray_st, 1 << 18);
emu_pool emu_mipmapped_arrays = EMU_POOL(struct CUmipmappedArray_st, 1 << 14);

enum { LAYERED = 1, CUBE_MAP = 4, SPARSE = 0x40, DEFERRED_MAPPING = 0x80 };

static uint64_t element_bytes(int format) {
    switch (format) {
    case 0x01: /* 8-bit integers */
    case 0x08:
        return 1;
    case 0x02: /* 16-bit integers, half */
    case 0x09:
    case 0x10:
        return 2;
    case 0x03: /* 32-bit integers, float */
    case 0x0a:
    case 0x20:
        return 4;
    default:
        return 0;
    }
}

static CUresult make_array(CUcontext context, const CUDA_ARRAY3D_DESCRIPTOR *shape,
                           CUarray *result) {
    uint64_t element = element_bytes(shape->format) * shape->channels;
    EMU_REQUIRE(element != 0 &&
                (shape->channels == 1 || shape->channels == 2 || shape->channels == 4) &&
                shape->width > 0 && shape->width <= 1 << 28 && shape->height <= 1 << 20 &&
                shape->depth <= 1 << 20);
    if ((shape->flags & (SPARSE | DEFERRED_MAPPING)) != 0) {
        return CUDA_ERROR_NOT_SUPPORTED; /* memory is attached later, which this device does not support */
    }
    uint64_t rows = shape->height == 0 ? 1 : shape->height;
    uint64_t slices = shape->depth == 0 ? 1 : shape->depth;
    uint64_t bytes = 0;
    if (__builtin_mul_overflow(element * shape->width, rows, &bytes) ||
        __builtin_mul_overflow(bytes, slices, &bytes)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUarray array = emu_pool_take(&emu_arrays);
    if (array == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUresult allocated =
        emu_memory_allocate(context->gpu, bytes, EMU_ARRAY_MEMORY, context->owner, &array->address);
    if (allocated != CUDA_SUCCESS) {
        emu_pool_give(&emu_arrays, array);
        return allocated;
    }
    array->shape = *shape;
    array->row_bytes = element * shape->width;
    array->rows = rows;
    array->slices = slices;
    *result = array;
    return CUDA_SUCCESS;
}

static void free_array(CUarray array) {
    emu_memory_free(array->address, 1u << EMU_ARRAY_MEMORY);
    emu_pool_give(&emu_arrays, array);
}

EMU_API CUresult cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *shape) {
    EMU_CONTEXT(context);
    EMU_REQUIRE(array != NULL && shape != NULL);
    return make_array(context, shape, array);
}

EMU_API CUresult cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *shape) {
    EMU_CONTEXT(context);
    EMU_REQUIRE(array != NULL && shape != NULL);
    CUDA_ARRAY3D_DESCRIPTOR full = {.width = shape->width,
                                    .height = shape->height,
                                    .format = shape->format,
                                    .channels = shape->channels};
    return make_array(context, &full, array);
}

EMU_API CUresult cuArrayDestroy(CUarray array) {
    EMU_CONTEXT(context);
    (void)context;
    if (!emu_pool_has(&emu_arrays, array) || array->is_level) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    free_array(array);
    return CUDA_SUCCESS;
}

EMU_API CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *shape, CUarray array) {
    EMU_CONTEXT(context);
    (void)context;
    EMU_REQUIRE(shape != NULL);
    if (!emu_pool_has(&emu_arrays, array)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    *shape = array->shape;
    return CUDA_SUCCESS;
}

EMU_API CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *shape, CUarray array) {
    EMU_CONTEXT(context);
    (void)context;
    EMU_REQUIRE(shape != NULL);
    if (!emu_pool_has(&emu_arrays, array)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    *shape = (CUDA_ARRAY_DESCRIPTOR){.width = array->shape.width,
                                     .height = array->shape.height,
                                     .format = array->shape.format,
                                     .channels = array->shape.channels};
    return CUDA_SUCCESS;
}

static void free_mipmapped(CUmipmappedArray array) {
    for (unsigned int i = 0; i < array->count; i++) {
        free_array(array->levels[i]);
    }
    emu_pool_give(&emu_mipmapped_arrays, array);
}

static size_t half(size_t length) {
    return length <= 1 ? length : length / 2;
}

EMU_API CUresult cuMipmappedArrayCreate(CUmipmappedArray *result,
                                        const CUDA_ARRAY3D_DESCRIPTOR *shape, unsigned int levels) {
    EMU_CONTEXT(context);
    EMU_REQUIRE(result != NULL && shape != NULL && levels > 0);
    CUmipmappedArray array = emu_pool_take(&emu_mipmapped_arrays);
    if (array == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUDA_ARRAY3D_DESCRIPTOR level = *shape;
    CUresult made = CUDA_SUCCESS;
    for (unsigned int i = 0; i < levels && i < EMU_ARRAY_LEVELS; i++) {
        made = make_array(context, &level, &array->levels[i]);
        if (made != CUDA_SUCCESS) {
            break;
        }
        array->levels[i]->is_level = true;
        array->count++;
        if (level.width <= 1 && level.height <= 1 && level.depth <= 1) {
            break;
        }
        level.width = half(level.width);
        level.height = half(level.height);
        level.depth = (shape->flags & (LAYERED | CUBE_MAP)) != 0 ? level.depth : half(level.depth);
    }
    if (made != CUDA_SUCCESS) {
        free_mipmapped(array);
        return made;
    }
    *result = array;
    return CUDA_SUCCESS;
}

EMU_API CUresult cuMipmappedArrayDestroy(CUmipmappedArray array) {
    EMU_CONTEXT(context);
    (void)context;
    if (!emu_pool_has(&emu_mipmapped_arrays, array)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    free_mipmapped(array);
    return CUDA_SUCCESS;
}

EMU_API CUresult cuMipmappedArrayGetLevel(CUarray *level, CUmipmappedArray array,
                                          unsigned int index) {
    EMU_CONTEXT(context);
    (void)context;
    EMU_REQUIRE(level != NULL);
    if (!emu_pool_has(&emu_mipmapped_arrays, array)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    EMU_REQUIRE(index < array->count);
    *level = array->levels[index];
    return CUDA_SUCCESS;
}

/* One end of a copy: the address of its first byte, and the distance between rows and between slices. */
typedef struct {
    int type;
    uint64_t host;
    uint64_t device;
    CUarray array;
    size_t x;
    size_t y;
    size_t z;
    size_t pitch;
    size_t height;
    bool is_written;
} copy_end;

static CUresult resolve(const copy_end *end, const CUDA_MEMCPY3D *copy, uint64_t *address,
                        uint64_t *pitch, uint64_t *slice) {
    if (end->type == CU_MEMORYTYPE_ARRAY) {
        EMU_REQUIRE(emu_pool_has(&emu_arrays, end->array));
        CUarray array = end->array;
        EMU_REQUIRE(end->x + copy->width_bytes <= array->row_bytes &&
                    end->y + copy->height <= array->rows && end->z + copy->depth <= array->slices);
        *pitch = array->row_bytes;
        *slice = array->row_bytes * array->rows;
        *address = array->address + end->z * *slice + end->y * *pitch + end->x;
        emu_memory_writable(array->address, 1); /* marks the array as used */
        return CUDA_SUCCESS;
    }
    uint64_t base = end->type == CU_MEMORYTYPE_HOST ? end->host : end->device;
    EMU_REQUIRE(end->type >= CU_MEMORYTYPE_HOST && end->type <= CU_MEMORYTYPE_UNIFIED && base != 0);
    *pitch = end->pitch == 0 ? copy->width_bytes : end->pitch;
    *slice = *pitch * (end->height == 0 ? copy->height : end->height);
    EMU_REQUIRE(*pitch >= copy->width_bytes || copy->height <= 1);
    *address = base + end->z * *slice + end->y * *pitch + end->x;
    uint64_t last =
        *address + (copy->depth - 1) * *slice + (copy->height - 1) * *pitch + copy->width_bytes;
    emu_allocation found;
    if (end->type == CU_MEMORYTYPE_DEVICE || emu_memory_find(*address, &found)) {
        EMU_REQUIRE(end->is_written ? emu_memory_writable(*address, last - *address)
                                    : emu_memory_readable(*address, last - *address));
    }
    return CUDA_SUCCESS;
}

CUresult emu_box_of(const CUDA_MEMCPY3D *copy, emu_operation *operation) {
    EMU_REQUIRE(copy->width_bytes > 0 && copy->height > 0 && copy->depth > 0);
    copy_end source = {copy->src_type,   (uint64_t)(uintptr_t)copy->src_host,
                       copy->src_device, copy->src_array,
                       copy->src_x,      copy->src_y,
                       copy->src_z,      copy->src_pitch,
                       copy->src_height, false};
    copy_end target = {copy->dst_type,   (uint64_t)(uintptr_t)copy->dst_host,
                       copy->dst_device, copy->dst_array,
                       copy->dst_x,      copy->dst_y,
                       copy->dst_z,      copy->dst_pitch,
                       copy->dst_height, true};
    memset(operation, 0, sizeof *operation);
    operation->kind = EMU_COPY;
    emu_box *box = &operation->copy;
    CUresult result = resolve(&source, copy, &box->source, &box->source_pitch, &box->source_slice);
    if (result == CUDA_SUCCESS) {
        result = resolve(&target, copy, &box->target, &box->target_pitch, &box->target_slice);
    }
    box->width = copy->width_bytes;
    box->height = copy->height;
    box->depth = copy->depth;
    if (result == CUDA_SUCCESS) {
        emu_transfer_place(box->source, box->target, box->width * box->height * box->depth,
                           operation);
    }
    return result;
}

static CUresult copy_box(const CUDA_MEMCPY3D *copy, CUstream stream, bool per_thread, bool wait) {
    EMU_INITIALIZED();
    EMU_REQUIRE(copy != NULL);
    if (copy->width_bytes == 0 || copy->height == 0 || copy->depth == 0) {
        return CUDA_SUCCESS;
    }
    emu_operation operation;
    CUresult result = emu_box_of(copy, &operation);
    return result == CUDA_SUCCESS ? emu_transfer(stream, per_thread, wait, &operation) : result;
}

static CUresult copy_rectangle(const CUDA_MEMCPY2D *c, CUstream stream, bool per_thread,
                               bool wait) {
    EMU_REQUIRE(c != NULL);
    CUDA_MEMCPY3D full = {.src_x = c->src_x,
                          .src_y = c->src_y,
                          .src_type = c->src_type,
                          .src_host = c->src_host,
                          .src_device = c->src_device,
                          .src_array = c->src_array,
                          .src_pitch = c->src_pitch,
                          .dst_x = c->dst_x,
                          .dst_y = c->dst_y,
                          .dst_type = c->dst_type,
                          .dst_host = c->dst_host,
                          .dst_device = c->dst_device,
                          .dst_array = c->dst_array,
                          .dst_pitch = c->dst_pitch,
                          .width_bytes = c->width_bytes,
                          .height = c->height,
                          .depth = 1};
    return copy_box(&full, stream, per_thread, wait);
}

#define BLOCKING(name, type, copy) \
    EMU_API CUresult name(const type *what) { \
        return copy(what, NULL, false, true); \
    } \
    EMU_API CUresult name##_ptds(const type *what) { \
        return copy(what, NULL, true, true); \
    }
#define ASYNCHRONOUS(name, type, copy) \
    EMU_API CUresult name(const type *what, CUstream stream) { \
        return copy(what, stream, false, false); \
    } \
    EMU_API CUresult name##_ptsz(const type *what, CUstream stream) { \
        return copy(what, stream, true, false); \
    }

BLOCKING(cuMemcpy2D_v2, CUDA_MEMCPY2D, copy_rectangle)
BLOCKING(cuMemcpy2DUnaligned_v2, CUDA_MEMCPY2D, copy_rectangle)
BLOCKING(cuMemcpy3D_v2, CUDA_MEMCPY3D, copy_box)
BLOCKING(cuMemcpy3DPeer, CUDA_MEMCPY3D, copy_box)
ASYNCHRONOUS(cuMemcpy2DAsync_v2, CUDA_MEMCPY2D, copy_rectangle)
ASYNCHRONOUS(cuMemcpy3DAsync_v2, CUDA_MEMCPY3D, copy_box)
ASYNCHRONOUS(cuMemcpy3DPeerAsync, CUDA_MEMCPY3D, copy_box)
