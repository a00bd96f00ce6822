/*
 * Textures and surfaces: objects, and references in modules. The emulator's kernels read none of them, so a program's
 * settings are only checked, kept and returned.
 */
#include "array.h"
#include "driver/driver.h"
#include "driver/memory.h"
#include "driver/module.h"

#include <string.h>

enum { ALIGNMENT = 512, PITCH_ALIGNMENT = 32, OVERRIDE_FORMAT = 1, DIMENSIONS = 3 };
enum { OF_ARRAY, OF_MIPMAPPED_ARRAY, LINEAR, PITCHED };

typedef struct {
    emu_object object;
    bool is_surface;
    bool has_view;
    CUDA_RESOURCE_DESC resource;
    CUDA_TEXTURE_DESC texture;
    CUDA_RESOURCE_VIEW_DESC view;
} texture_object;

static emu_pool objects = EMU_POOL(texture_object, 1 << 20);

/* ---- objects ---- */

static CUresult check_memory(CUdeviceptr address, size_t bytes) {
    return address % ALIGNMENT == 0 && bytes > 0 && emu_memory_readable(address, bytes)
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
}

static CUresult check_resource(const CUDA_RESOURCE_DESC *resource, bool is_surface) {
    EMU_REQUIRE(resource->flags == 0 && (!is_surface || resource->type == OF_ARRAY));
    switch (resource->type) {
    case OF_ARRAY:
        return emu_pool_has(&emu_arrays, resource->array) ? CUDA_SUCCESS
                                                          : CUDA_ERROR_INVALID_HANDLE;
    case OF_MIPMAPPED_ARRAY:
        return emu_pool_has(&emu_mipmapped_arrays, resource->mipmapped) ? CUDA_SUCCESS
                                                                        : CUDA_ERROR_INVALID_HANDLE;
    case LINEAR:
        return check_memory(resource->linear.address, resource->linear.bytes);
    case PITCHED:
        EMU_REQUIRE(resource->pitched.pitch % PITCH_ALIGNMENT == 0 && resource->pitched.height > 0);
        return check_memory(resource->pitched.address,
                            resource->pitched.pitch * resource->pitched.height);
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static CUresult create(CUtexObject *result, const CUDA_RESOURCE_DESC *resource,
                       const CUDA_TEXTURE_DESC *texture, const CUDA_RESOURCE_VIEW_DESC *view) {
    EMU_CONTEXT(context);
    (void)context;
    EMU_REQUIRE(result != NULL && resource != NULL);
    CUresult checked = check_resource(resource, texture == NULL);
    if (checked != CUDA_SUCCESS) {
        return checked;
    }
    EMU_REQUIRE(view == NULL || resource->type <= OF_MIPMAPPED_ARRAY);
    texture_object *made = emu_pool_take(&objects);
    if (made == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    made->resource = *resource;
    made->is_surface = texture == NULL;
    if (texture != NULL) {
        made->texture = *texture;
    }
    if (view != NULL) {
        made->view = *view;
        made->has_view = true;
    }
    *result = (CUtexObject)(uintptr_t)made;
    return CUDA_SUCCESS;
}

EMU_API CUresult cuTexObjectCreate(CUtexObject *result, const CUDA_RESOURCE_DESC *resource,
                                   const CUDA_TEXTURE_DESC *texture,
                                   const CUDA_RESOURCE_VIEW_DESC *view) {
    EMU_REQUIRE(texture != NULL);
    return create(result, resource, texture, view);
}

EMU_API CUresult cuSurfObjectCreate(CUtexObject *result, const CUDA_RESOURCE_DESC *resource) {
    return create(result, resource, NULL, NULL);
}

/* The object behind a handle, or NULL. */
static texture_object *object_of(CUtexObject handle, bool is_surface) {
    texture_object *object = (void *)(uintptr_t)handle;
    return emu_pool_has(&objects, object) && object->is_surface == is_surface ? object : NULL;
}

#define OBJECT(object, handle, is_surface, condition) \
    EMU_CONTEXT(context); \
    (void)context; \
    texture_object *object = object_of(handle, is_surface); \
    EMU_REQUIRE(object != NULL && (condition))

#define DESTROY(name, is_surface) \
    EMU_API CUresult name(CUtexObject handle) { \
        OBJECT(object, handle, is_surface, true); \
        emu_pool_give(&objects, object); \
        return CUDA_SUCCESS; \
    }

/* Returns a property of an object as the program gave it. */
#define TELL(name, type, is_surface, field, condition) \
    EMU_API CUresult name(type *told, CUtexObject handle) { \
        OBJECT(object, handle, is_surface, told != NULL && (condition)); \
        *told = object->field; \
        return CUDA_SUCCESS; \
    }

DESTROY(cuTexObjectDestroy, false)
DESTROY(cuSurfObjectDestroy, true)
TELL(cuTexObjectGetResourceDesc, CUDA_RESOURCE_DESC, false, resource, true)
TELL(cuSurfObjectGetResourceDesc, CUDA_RESOURCE_DESC, true, resource, true)
TELL(cuTexObjectGetTextureDesc, CUDA_TEXTURE_DESC, false, texture, true)
TELL(cuTexObjectGetResourceViewDesc, CUDA_RESOURCE_VIEW_DESC, false, view, object->has_view)

/* ---- references ---- */

#define REFERENCE(reference, condition) \
    EMU_CONTEXT(context); \
    (void)context; \
    if (!emu_pool_has(&emu_texture_references, reference)) { \
        return CUDA_ERROR_INVALID_HANDLE; \
    } \
    EMU_REQUIRE(condition)

EMU_API CUresult cuTexRefCreate(CUtexref *reference) {
    EMU_CONTEXT(context);
    (void)context;
    EMU_REQUIRE(reference != NULL);
    *reference = emu_texture_reference_open();
    return *reference == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

EMU_API CUresult cuTexRefDestroy(CUtexref reference) {
    REFERENCE(reference, true);
    emu_pool_give(&emu_texture_references, reference);
    return CUDA_SUCCESS;
}

static void bind(CUtexref reference, CUarray array, CUmipmappedArray mipmapped,
                 CUdeviceptr address) {
    reference->array = array;
    reference->mipmapped = mipmapped;
    reference->address = address;
}

EMU_API CUresult cuTexRefSetArray(CUtexref reference, CUarray array, unsigned int flags) {
    REFERENCE(reference, flags == OVERRIDE_FORMAT);
    if (!emu_pool_has(&emu_arrays, array)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    bind(reference, array, NULL, 0);
    reference->format = array->shape.format;
    reference->channels = (int)array->shape.channels;
    return CUDA_SUCCESS;
}

EMU_API CUresult cuTexRefGetArray(CUarray *array, CUtexref reference) {
    REFERENCE(reference, array != NULL && reference->array != NULL);
    *array = reference->array;
    return CUDA_SUCCESS;
}

EMU_API CUresult cuTexRefSetMipmappedArray(CUtexref reference, CUmipmappedArray mipmapped,
                                           unsigned int flags) {
    REFERENCE(reference, flags == OVERRIDE_FORMAT);
    if (!emu_pool_has(&emu_mipmapped_arrays, mipmapped)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    bind(reference, NULL, mipmapped, 0);
    return CUDA_SUCCESS;
}

EMU_API CUresult cuTexRefGetMipmappedArray(CUmipmappedArray *mipmapped, CUtexref reference) {
    REFERENCE(reference, mipmapped != NULL && reference->mipmapped != NULL);
    *mipmapped = reference->mipmapped;
    return CUDA_SUCCESS;
}

/* An unaligned address is bound at the next lower aligned one; the kernel adds the offset. */
EMU_API CUresult cuTexRefSetAddress_v2(size_t *offset, CUtexref reference, CUdeviceptr address,
                                       size_t bytes) {
    REFERENCE(reference, bytes > 0 && emu_memory_readable(address, bytes) &&
                             (offset != NULL || address % ALIGNMENT == 0));
    if (offset != NULL) {
        *offset = address % ALIGNMENT;
    }
    bind(reference, NULL, NULL, address);
    return CUDA_SUCCESS;
}

EMU_API CUresult cuTexRefSetAddress2D_v3(CUtexref reference, const CUDA_ARRAY_DESCRIPTOR *shape,
                                         CUdeviceptr address, size_t pitch) {
    REFERENCE(reference, shape != NULL && pitch % PITCH_ALIGNMENT == 0 && pitch > 0 &&
                             shape->height > 0 && address % ALIGNMENT == 0 &&
                             emu_memory_readable(address, pitch * shape->height));
    bind(reference, NULL, NULL, address);
    reference->format = shape->format;
    reference->channels = (int)shape->channels;
    return CUDA_SUCCESS;
}

EMU_API CUresult cuTexRefSetAddress2D_v2(CUtexref reference, const CUDA_ARRAY_DESCRIPTOR *shape,
                                         CUdeviceptr address, size_t pitch)
    __attribute__((alias("cuTexRefSetAddress2D_v3")));

EMU_API CUresult cuTexRefGetAddress_v2(CUdeviceptr *address, CUtexref reference) {
    REFERENCE(reference, address != NULL && reference->address != 0);
    *address = reference->address;
    return CUDA_SUCCESS;
}

EMU_API CUresult cuTexRefSetFormat(CUtexref reference, int format, int channels) {
    REFERENCE(reference, channels == 1 || channels == 2 || channels == 4);
    reference->format = format;
    reference->channels = channels;
    return CUDA_SUCCESS;
}

EMU_API CUresult cuTexRefGetFormat(int *format, int *channels, CUtexref reference) {
    REFERENCE(reference, format != NULL && channels != NULL);
    *format = reference->format;
    *channels = reference->channels;
    return CUDA_SUCCESS;
}

EMU_API CUresult cuTexRefSetAddressMode(CUtexref reference, int dimension, int mode) {
    REFERENCE(reference, dimension >= 0 && dimension < DIMENSIONS && mode >= 0 && mode <= 3);
    reference->texture.address_mode[dimension] = mode;
    return CUDA_SUCCESS;
}

EMU_API CUresult cuTexRefGetAddressMode(int *mode, CUtexref reference, int dimension) {
    REFERENCE(reference, mode != NULL && dimension >= 0 && dimension < DIMENSIONS);
    *mode = reference->texture.address_mode[dimension];
    return CUDA_SUCCESS;
}

/* A property that has a single value. */
#define PROPERTY(name, given, told, field, condition) \
    EMU_API CUresult cuTexRefSet##name(CUtexref reference, given value) { \
        REFERENCE(reference, condition); \
        reference->texture.field = value; \
        return CUDA_SUCCESS; \
    } \
    EMU_API CUresult cuTexRefGet##name(told *value, CUtexref reference) { \
        REFERENCE(reference, value != NULL); \
        *value = (told)reference->texture.field; \
        return CUDA_SUCCESS; \
    }

PROPERTY(FilterMode, int, int, filter_mode, value == 0 || value == 1)
PROPERTY(MipmapFilterMode, int, int, mipmap_filter_mode, value == 0 || value == 1)
PROPERTY(MipmapLevelBias, float, float, mipmap_level_bias, true)
PROPERTY(MaxAnisotropy, unsigned int, int, max_anisotropy, true)
PROPERTY(Flags, unsigned int, unsigned int, flags, true)

EMU_API CUresult cuTexRefSetMipmapLevelClamp(CUtexref reference, float least, float most) {
    REFERENCE(reference, true);
    reference->texture.least_mipmap_level = least;
    reference->texture.most_mipmap_level = most;
    return CUDA_SUCCESS;
}

EMU_API CUresult cuTexRefGetMipmapLevelClamp(float *least, float *most, CUtexref reference) {
    REFERENCE(reference, least != NULL && most != NULL);
    *least = reference->texture.least_mipmap_level;
    *most = reference->texture.most_mipmap_level;
    return CUDA_SUCCESS;
}

EMU_API CUresult cuTexRefSetBorderColor(CUtexref reference, float *color) {
    REFERENCE(reference, color != NULL);
    memcpy(reference->texture.border_color, color, sizeof reference->texture.border_color);
    return CUDA_SUCCESS;
}

EMU_API CUresult cuTexRefGetBorderColor(float *color, CUtexref reference) {
    REFERENCE(reference, color != NULL);
    memcpy(color, reference->texture.border_color, sizeof reference->texture.border_color);
    return CUDA_SUCCESS;
}

EMU_API CUresult cuParamSetTexRef(CUfunction function, int unit, CUtexref reference) {
    REFERENCE(reference, unit == -1); /* CU_PARAM_TR_DEFAULT */
    return emu_pool_has(&emu_functions, function) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

EMU_API CUresult cuSurfRefSetArray(CUtexref reference, CUarray array, unsigned int flags) {
    REFERENCE(reference, flags == 0);
    if (!emu_pool_has(&emu_arrays, array)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    bind(reference, array, NULL, 0);
    return CUDA_SUCCESS;
}

EMU_API CUresult cuSurfRefGetArray(CUarray *array, CUtexref reference) {
    return cuTexRefGetArray(array, reference);
}
