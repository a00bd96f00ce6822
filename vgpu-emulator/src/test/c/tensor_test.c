/* Tensor maps: each documented limit is checked. */
#include "check.h"
#include "cuda_api.h"

#include <string.h>

#define TENSOR \
    CUtensorMap *map, int type, uint32_t rank, void *address, const uint64_t *lengths, \
        const uint64_t *strides
#define LAYOUT int interleave, int swizzle, int promotion, int fill
CUresult cuTensorMapEncodeTiled(TENSOR, const uint32_t *box, const uint32_t *steps, LAYOUT);
CUresult cuTensorMapEncodeIm2col(TENSOR, const int *lower, const int *upper, uint32_t channels,
                                 uint32_t pixels, const uint32_t *steps, LAYOUT);
CUresult cuTensorMapEncodeIm2colWide(TENSOR, int lower, int upper, uint32_t channels,
                                     uint32_t pixels, const uint32_t *steps, int interleave,
                                     int mode, int swizzle, int promotion, int fill);
CUresult cuTensorMapReplaceAddress(CUtensorMap *map, void *address);

enum { UINT8, FLOAT16 = 6, FLOAT32 = 7, U4_ALIGN8B = 13, U4_ALIGN16B, U6_ALIGN16B };

/* A valid matrix of 1,024 rows of 512 half-precision numbers, read in boxes of 64 by 128. */
typedef struct {
    CUtensorMap *map;
    int type;
    uint32_t rank;
    uint64_t address;
    uint64_t lengths[6];
    uint64_t strides[6];
    uint32_t box[6];
    uint32_t steps[6];
    int interleave;
    int swizzle;
    int promotion;
    int fill;
} arguments;

static CUtensorMap map[2];
static CUdeviceptr memory;

static arguments valid(void) {
    return (arguments){.map = map,
                       .type = FLOAT16,
                       .rank = 2,
                       .address = memory,
                       .lengths = {512, 1024, 16, 1, 1, 1},
                       .strides = {1024, 1 << 20, 1 << 24, 1 << 24, 1 << 24},
                       .box = {64, 128, 1, 1, 1, 1},
                       .steps = {1, 1, 1, 1, 1, 1},
                       .swizzle = 3};
}

static CUresult tiled(arguments a) {
    return cuTensorMapEncodeTiled(a.map, a.type, a.rank, (void *)(uintptr_t)a.address, a.lengths,
                                  a.strides, a.box, a.steps, a.interleave, a.swizzle, a.promotion,
                                  a.fill);
}

#define REFUSED(change) \
    do { \
        arguments a = valid(); \
        change; \
        CHECK_EQUAL(tiled(a), CUDA_ERROR_INVALID_VALUE); \
    } while (0)
#define TAKEN(change) \
    do { \
        arguments a = valid(); \
        change; \
        CHECK_OK(tiled(a)); \
    } while (0)

static void theLimitsOfAMatrix(void) {
    TAKEN((void)a);
    REFUSED(a.map = NULL);
    REFUSED(a.map = (CUtensorMap *)(void *)((char *)map + 32));
    REFUSED(a.type = 16);
    REFUSED(a.rank = 0);
    REFUSED(a.rank = 6);
    TAKEN(a.rank = 5);
    REFUSED(a.address += 8);
    REFUSED(a.address = 0);
    REFUSED(a.lengths[1] = 0);
    TAKEN(a.lengths[1] = UINT64_C(1) << 32);
    REFUSED(a.lengths[1] = (UINT64_C(1) << 32) + 1);
    REFUSED(a.strides[0] = 1032);
    REFUSED(a.strides[0] = UINT64_C(1) << 40);
    TAKEN(a.box[1] = 256);
    REFUSED(a.box[1] = 257);
    REFUSED(a.box[1] = 0);
    REFUSED(a.box[0] = 4);   /* 8 bytes */
    REFUSED(a.box[0] = 128); /* 256 bytes in a span of 128 */
    TAKEN(a.box[0] = 128; a.swizzle = 0);
    REFUSED(a.swizzle = 2); /* 128 bytes in a span of 64 */
    REFUSED(a.swizzle = 7);
    TAKEN(a.steps[1] = 8);
    REFUSED(a.steps[1] = 9);
    REFUSED(a.steps[1] = 0);
    TAKEN(a.steps[0] = 0); /* ignored without interleaving */
    REFUSED(a.promotion = 4);
    TAKEN(a.promotion = 3; a.fill = 1);
    REFUSED(a.fill = 2);
    REFUSED(a.type = UINT8; a.fill = 1); /* no NaN */
}

static void interleavedAndPackedTensors(void) {
    REFUSED(a.interleave = 1);
    TAKEN(a.interleave = 1; a.rank = 3; a.box[0] = 4);
    REFUSED(a.interleave = 2; a.rank = 3);
    TAKEN(a.interleave = 2; a.rank = 3; a.swizzle = 1);
    REFUSED(a.interleave = 2; a.rank = 3; a.swizzle = 1; a.address += 16);
    REFUSED(a.interleave = 2; a.rank = 3; a.swizzle = 1; a.strides[0] = 1040);
    REFUSED(a.type = U4_ALIGN16B); /* a box of 64 */
    TAKEN(a.type = U4_ALIGN16B; a.box[0] = 128);
    REFUSED(a.type = U4_ALIGN16B; a.box[0] = 128; a.address += 16);
    REFUSED(a.type = U4_ALIGN16B; a.box[0] = 128; a.lengths[0] = 576);
    REFUSED(a.type = U4_ALIGN16B; a.box[0] = 128; a.swizzle = 6);
    TAKEN(a.type = U6_ALIGN16B; a.box[0] = 128; a.swizzle = 6);
    REFUSED(a.type = U6_ALIGN16B; a.box[0] = 128; a.interleave = 1; a.rank = 3);
    TAKEN(a.type = U4_ALIGN8B);
    REFUSED(a.type = U4_ALIGN8B; a.lengths[0] = 511);
}

static CUresult im2col(int lower, int upper, uint32_t channels, uint32_t pixels, uint32_t rank) {
    arguments a = valid();
    int lowers[] = {lower, lower, lower};
    int uppers[] = {upper, upper, upper};
    a.lengths[1] = a.lengths[2] = 32;
    a.lengths[3] = 32;
    return cuTensorMapEncodeIm2col(map, FLOAT16, rank, (void *)(uintptr_t)memory, a.lengths,
                                   a.strides, lowers, uppers, channels, pixels, a.steps, 0, 3, 0,
                                   0);
}

static void theLimitsOfPixels(void) {
    CHECK_OK(im2col(-1, -1, 64, 128, 4));
    CHECK_OK(im2col(-128, 127, 64, 1024, 4));
    CHECK_EQUAL(im2col(-129, 0, 64, 128, 4), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(im2col(0, 128, 64, 128, 4), CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(im2col(-32768, 32767, 64, 128, 3));
    CHECK_EQUAL(im2col(-17, 0, 64, 128, 5), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(im2col(16, -16, 64, 128, 4), CUDA_ERROR_INVALID_VALUE); /* no area */
    CHECK_EQUAL(im2col(0, 0, 64, 1025, 4), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(im2col(0, 0, 65, 128, 4), CUDA_ERROR_INVALID_VALUE); /* 130 bytes */
    CHECK_EQUAL(im2col(0, 0, 64, 128, 2), CUDA_ERROR_INVALID_VALUE);
    arguments a = valid();
    /* The GPU has compute capability 9.0; this form needs 10.0. */
    CHECK_EQUAL(cuTensorMapEncodeIm2colWide(map, FLOAT16, 4, (void *)(uintptr_t)memory, a.lengths,
                                            a.strides, 0, 0, 64, 128, a.steps, 0, 0, 3, 0, 0),
                CUDA_ERROR_NOT_SUPPORTED);
}

static void anAddressIsReplaced(void) {
    arguments a = valid();
    CUtensorMap first;
    a.address = memory + 1024;
    CHECK_OK(tiled(a));
    first = map[0];
    CHECK_OK(tiled(valid()));
    CHECK(memcmp(&first, &map[0], sizeof first) != 0);
    CHECK_OK(cuTensorMapReplaceAddress(map, (void *)(uintptr_t)(memory + 1024)));
    CHECK(memcmp(&first, &map[0], sizeof first) == 0);
    CHECK_EQUAL(cuTensorMapReplaceAddress(map, (void *)(uintptr_t)(memory + 8)),
                CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuTensorMapReplaceAddress(NULL, (void *)(uintptr_t)memory),
                CUDA_ERROR_INVALID_VALUE);
    memset(&map[1], 0, sizeof map[1]);
    CHECK_EQUAL(cuTensorMapReplaceAddress(&map[1], (void *)(uintptr_t)memory),
                CUDA_ERROR_INVALID_VALUE);
}

int main(void) {
    CUcontext context = NULL;
    CHECK_OK(cuInit(0));
    CHECK_EQUAL(tiled(valid()), CUDA_ERROR_INVALID_CONTEXT);
    CHECK_OK(cuCtxCreate_v2(&context, 0, 0));
    CHECK_OK(cuMemAlloc_v2(&memory, 1 << 20));
    theLimitsOfAMatrix();
    interleavedAndPackedTensors();
    theLimitsOfPixels();
    anAddressIsReplaced();
    CHECK_OK(cuCtxDestroy_v2(context));
    return check_failures == 0 ? 0 : 1;
}
