/*
 * Textures and surfaces: bindings are checked and can be queried. Copies to and from arrays. Contexts that are attached
 * several times.
 */
#include "check.h"
#include "cuda_api.h"

#include <string.h>

CUresult cuTexObjectCreate(CUtexObject *result, const CUDA_RESOURCE_DESC *resource,
                           const CUDA_TEXTURE_DESC *texture, const CUDA_RESOURCE_VIEW_DESC *view);
CUresult cuTexObjectDestroy(CUtexObject handle);
CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC *resource, CUtexObject handle);
CUresult cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC *texture, CUtexObject handle);
CUresult cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC *view, CUtexObject handle);
CUresult cuSurfObjectCreate(CUtexObject *result, const CUDA_RESOURCE_DESC *resource);
CUresult cuSurfObjectDestroy(CUtexObject handle);
CUresult cuModuleGetTexRef(CUtexref *reference, CUmodule module, const char *name);
CUresult cuTexRefSetArray(CUtexref reference, CUarray array, unsigned int flags);
CUresult cuTexRefGetArray(CUarray *array, CUtexref reference);
CUresult cuTexRefSetAddress_v2(size_t *offset, CUtexref reference, CUdeviceptr address,
                               size_t bytes);
CUresult cuTexRefGetAddress_v2(CUdeviceptr *address, CUtexref reference);
CUresult cuTexRefGetFormat(int *format, int *channels, CUtexref reference);
CUresult cuTexRefSetFilterMode(CUtexref reference, int mode);
CUresult cuTexRefGetFilterMode(int *mode, CUtexref reference);
CUresult cuTexRefSetAddressMode(CUtexref reference, int dimension, int mode);
CUresult cuTexRefGetAddressMode(int *mode, CUtexref reference, int dimension);
CUresult cuParamSetTexRef(CUfunction function, int unit, CUtexref reference);
CUresult cuCtxAttach(CUcontext *context, unsigned int flags);
CUresult cuCtxDetach(CUcontext context);
CUresult cuMemcpyHtoA_v2(CUarray to, size_t offset, const void *from, size_t bytes);
CUresult cuMemcpyHtoA_v2_ptds(CUarray to, size_t offset, const void *from, size_t bytes);
CUresult cuMemcpyAtoH_v2(void *to, CUarray from, size_t offset, size_t bytes);
CUresult cuMemcpyDtoA_v2(CUarray to, size_t offset, CUdeviceptr from, size_t bytes);
CUresult cuMemcpyAtoD_v2(CUdeviceptr to, CUarray from, size_t offset, size_t bytes);
CUresult cuMemcpyAtoA_v2(CUarray to, size_t offset, CUarray from, size_t from_offset, size_t bytes);
CUresult cuMemcpyHtoAAsync_v2(CUarray to, size_t offset, const void *from, size_t bytes,
                              CUstream stream);
CUresult cuMemcpyAtoHAsync_v2(void *to, CUarray from, size_t offset, size_t bytes, CUstream stream);

static const char ptx[] = ".version 6.0\n.global .texref picture;\n.entry draw() { ret; }\n";

static CUarray make_array(void) {
    CUarray array = NULL;
    CUDA_ARRAY_DESCRIPTOR shape = {.width = 16, .height = 8, .format = 0x08, .channels = 4};
    CHECK_OK(cuArrayCreate_v2(&array, &shape));
    return array;
}

static CUarray make_line(void) {
    CUarray array = NULL;
    CUDA_ARRAY_DESCRIPTOR shape = {.width = 64, .format = 0x01, .channels = 1};
    CHECK_OK(cuArrayCreate_v2(&array, &shape));
    return array;
}

static void bytesGoToArraysAndBack(void) {
    static const char text[] = "a line of text";
    char back[64] = "";
    CUdeviceptr memory = 0;
    CUarray line = make_line();
    CUarray other = make_line();
    CUarray picture = make_array();
    CUstream stream = NULL;
    CHECK_OK(cuMemAlloc_v2(&memory, 64));
    CHECK_OK(cuStreamCreate(&stream, 0));
    CHECK_OK(cuMemcpyHtoA_v2(line, 8, text, sizeof text));
    CHECK_OK(cuMemcpyAtoA_v2(other, 0, line, 8, sizeof text));
    CHECK_OK(cuMemcpyAtoD_v2(memory, other, 0, sizeof text));
    CHECK_OK(cuMemcpyDtoA_v2(line, 32, memory, sizeof text));
    CHECK_OK(cuMemcpyAtoH_v2(back, line, 32, sizeof text));
    CHECK(strcmp(back, text) == 0);
    CHECK_OK(cuMemcpyHtoAAsync_v2(other, 40, "later", 6, stream));
    CHECK_OK(cuMemcpyAtoHAsync_v2(back, other, 40, 6, stream));
    CHECK_OK(cuStreamSynchronize(stream));
    CHECK(strcmp(back, "later") == 0);
    CHECK_OK(cuMemcpyHtoA_v2_ptds(line, 63, text, 1));
    CHECK_OK(cuMemcpyHtoA_v2(line, 99, text, 0)); /* nothing to copy */
    CHECK_EQUAL(cuMemcpyHtoA_v2(line, 63, text, 2), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuMemcpyHtoA_v2(line, SIZE_MAX, text, 2), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuMemcpyHtoA_v2(picture, 0, text, 2),
                CUDA_ERROR_INVALID_VALUE); /* two dimensions */
    CHECK_EQUAL(cuMemcpyHtoA_v2(NULL, 8, text, 2), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuMemcpyAtoH_v2(NULL, line, 0, 2), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuMemcpyAtoD_v2(memory + 63, line, 0, 2), CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(cuArrayDestroy(line));
    CHECK_EQUAL(cuMemcpyAtoH_v2(back, line, 0, 2), CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(cuArrayDestroy(other));
    CHECK_OK(cuArrayDestroy(picture));
    CHECK_OK(cuStreamDestroy_v2(stream));
    CHECK_OK(cuMemFree_v2(memory));
}

static void texturesTellWhatTheyAreOf(void) {
    CUtexObject texture = 0;
    CUtexObject surface = 0;
    CUDA_RESOURCE_DESC resource = {.type = 0, .array = make_array()};
    CUDA_TEXTURE_DESC how = {.filter_mode = 1, .address_mode = {1, 2, 3}, .max_anisotropy = 4};
    CUDA_RESOURCE_VIEW_DESC view = {.format = 3, .width = 16, .height = 8};
    CUDA_RESOURCE_DESC told;
    CUDA_TEXTURE_DESC told_how;
    CUDA_RESOURCE_VIEW_DESC told_view;
    CHECK_OK(cuTexObjectCreate(&texture, &resource, &how, &view));
    CHECK_OK(cuTexObjectGetResourceDesc(&told, texture));
    CHECK_OK(cuTexObjectGetTextureDesc(&told_how, texture));
    CHECK_OK(cuTexObjectGetResourceViewDesc(&told_view, texture));
    CHECK(told.array == resource.array && memcmp(&told_how, &how, sizeof how) == 0 &&
          told_view.format == 3);
    CHECK_OK(cuSurfObjectCreate(&surface, &resource));
    CHECK_EQUAL(cuTexObjectDestroy(surface), CUDA_ERROR_INVALID_VALUE); /* not a texture object */
    CHECK_OK(cuSurfObjectDestroy(surface));
    CHECK_OK(cuTexObjectDestroy(texture));
    CHECK_EQUAL(cuTexObjectDestroy(texture), CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(cuArrayDestroy(resource.array));
    CHECK_EQUAL(cuTexObjectCreate(&texture, &resource, &how, NULL), CUDA_ERROR_INVALID_HANDLE);
}

static void linearMemoryIsChecked(void) {
    CUtexObject texture = 0;
    CUdeviceptr p = 0;
    CUDA_TEXTURE_DESC how = {.filter_mode = 0};
    CHECK_OK(cuMemAlloc_v2(&p, 4096));
    CUDA_RESOURCE_DESC resource = {
        .type = 2, .linear = {.address = p, .format = 0x20, .channels = 1, .bytes = 4096}};
    CHECK_OK(cuTexObjectCreate(&texture, &resource, &how, NULL));
    CUDA_RESOURCE_VIEW_DESC view;
    CHECK_EQUAL(cuTexObjectGetResourceViewDesc(&view, texture), CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(cuTexObjectDestroy(texture));
    resource.linear.bytes = 1 << 30;
    CHECK_EQUAL(cuTexObjectCreate(&texture, &resource, &how, NULL), CUDA_ERROR_INVALID_VALUE);
    resource.linear.address = p + 4;
    resource.linear.bytes = 4;
    CHECK_EQUAL(cuTexObjectCreate(&texture, &resource, &how, NULL), CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(cuMemFree_v2(p));
}

static void modulesHaveReferences(void) {
    CUmodule module = NULL;
    CUfunction draw = NULL;
    CUtexref picture = NULL;
    CUtexref same = NULL;
    CUarray array = make_array();
    CUarray told = NULL;
    CUdeviceptr p = 0;
    CUdeviceptr bound = 0;
    size_t offset = 0;
    int value = 0;
    int channels = 0;
    CHECK_OK(cuModuleLoadData(&module, ptx));
    CHECK_OK(cuModuleGetFunction(&draw, module, "draw"));
    CHECK_EQUAL(cuModuleGetTexRef(&picture, module, "nothing"), CUDA_ERROR_NOT_FOUND);
    CHECK_OK(cuModuleGetTexRef(&picture, module, "picture"));
    CHECK_OK(cuModuleGetTexRef(&same, module, "picture"));
    CHECK(picture == same);
    CHECK_EQUAL(cuTexRefGetArray(&told, picture), CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(cuTexRefSetArray(picture, array, 1));
    CHECK_OK(cuTexRefGetArray(&told, picture));
    CHECK(told == array);
    CHECK_OK(cuTexRefGetFormat(&value, &channels, picture));
    CHECK(value == 0x08 && channels == 4);
    CHECK_OK(cuTexRefSetFilterMode(picture, 1));
    CHECK_OK(cuTexRefGetFilterMode(&value, picture));
    CHECK_EQUAL(value, 1);
    CHECK_EQUAL(cuTexRefSetFilterMode(picture, 2), CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(cuTexRefSetAddressMode(picture, 2, 3));
    CHECK_OK(cuTexRefGetAddressMode(&value, picture, 2));
    CHECK_EQUAL(value, 3);
    CHECK_OK(cuParamSetTexRef(draw, -1, picture));
    CHECK_OK(cuMemAlloc_v2(&p, 4096));
    CHECK_EQUAL(cuTexRefSetAddress_v2(NULL, picture, p + 64, 16), CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(cuTexRefSetAddress_v2(&offset, picture, p + 64, 16));
    CHECK_EQUAL(offset, 64);
    CHECK_OK(cuTexRefGetAddress_v2(&bound, picture));
    CHECK(bound == p + 64);
    CHECK_OK(cuModuleUnload(module));
    CHECK_EQUAL(cuTexRefGetFilterMode(&value, picture), CUDA_ERROR_INVALID_HANDLE);
    CHECK_OK(cuMemFree_v2(p));
    CHECK_OK(cuArrayDestroy(array));
}

static void contextsEndWithTheirLastUse(void) {
    CUcontext made = NULL;
    CUcontext same = NULL;
    CUdeviceptr p = 0;
    CHECK_OK(cuCtxCreate_v2(&made, 0, 0));
    CHECK_OK(cuCtxAttach(&same, 0));
    CHECK(same == made);
    CHECK_OK(cuCtxDetach(made));
    CHECK_OK(cuMemAlloc_v2(&p, 1));
    CHECK_OK(cuCtxDetach(made));
    CHECK_EQUAL(cuCtxPushCurrent_v2(made), CUDA_ERROR_INVALID_CONTEXT);
}

int main(void) {
    CUcontext context = NULL;
    CHECK_OK(cuInit(0));
    CHECK_OK(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK_OK(cuCtxSetCurrent(context));
    texturesTellWhatTheyAreOf();
    bytesGoToArraysAndBack();
    linearMemoryIsChecked();
    modulesHaveReferences();
    contextsEndWithTheirLastUse();
    return check_failures != 0;
}
