/*
 * Tensor maps: a tensor's place in memory and the box that a kernel reads of it, for the tensor memory accelerator.
 * Each map is checked against the documented limits. The description is the emulator's own, which no kernel here
 * reads.
 */
#include "driver/driver.h"
#include "driver/memory.h"

#include <string.h>

enum {
    FLOAT16 = 6,
    FLOAT32,
    FLOAT64,
    BFLOAT16,
    TFLOAT32_FTZ = 12,
    U4_ALIGN8B,
    U4_ALIGN16B,
    U6_ALIGN16B,
    DATA_TYPES
};
enum { NO_INTERLEAVE, INTERLEAVE_16B, INTERLEAVE_32B, INTERLEAVES };
enum {
    NO_SWIZZLE,
    SWIZZLE_32B,
    SWIZZLE_64B,
    SWIZZLE_128B,
    ATOM_32B,
    ATOM_32B_FLIP_8B,
    ATOM_64B,
    SWIZZLES
};
enum { L2_PROMOTIONS = 4, FILLS = 2, WIDE_MODES = 2 };
enum { MOST_RANK = 5, MOST_BOX = 256, MOST_PIXELS = 1024, MOST_STEP = 8, PACKED = 128 };
enum { LEAST_CAPABILITY = 9, WIDE_CAPABILITY = 10, MAP_ALIGNMENT = 64 };

#define MAP_MARK UINT64_C(0x70616d2d726f736e)
#define MOST_STRIDE (UINT64_C(1) << 40)
#define MOST_LENGTH (UINT64_C(1) << 32)

typedef struct {
    uint64_t mark;
    uint64_t address;
    uint64_t alignment; /* of the address */
    uint64_t lengths[MOST_RANK];
    uint32_t box[MOST_RANK];
    uint8_t steps[MOST_RANK];
    uint8_t type;
    uint8_t rank;
    uint8_t layout; /* interleave, swizzle and promotion */
    uint8_t fill;
    uint8_t reserved[3];
} description;
_Static_assert(sizeof(description) <= sizeof(CUtensorMap), "a description fits the map");

/* What all kinds of maps have. */
typedef struct {
    CUtensorMap *map;
    int type;
    uint32_t rank;
    uint64_t address;
    const uint64_t *lengths;
    const uint64_t *strides;
    const uint32_t *steps;
    int interleave;
    int swizzle;
    int promotion;
    int fill;
} tensor;

static bool is_packed(int type) {
    return type == U4_ALIGN16B || type == U6_ALIGN16B;
}

/* An element's bits in shared memory, where packed values have gaps. */
static uint64_t element_bits(int type) {
    static const uint8_t bits[DATA_TYPES] = {8,  16, 32, 32, 64, 64, 16, 32,
                                             64, 16, 32, 32, 32, 4,  8,  8};
    return bits[type];
}

static bool is_float(int type) {
    return type >= FLOAT16 && type <= TFLOAT32_FTZ;
}

static bool is_below(int value, int limit) {
    return value >= 0 && value < limit;
}

static uint64_t alignment_of(const tensor *t) {
    return t->interleave == INTERLEAVE_32B || is_packed(t->type) ? 32 : 16;
}

static bool has_valid_kinds(const tensor *t) {
    bool are_known = is_below(t->type, DATA_TYPES) && is_below(t->interleave, INTERLEAVES) &&
                     is_below(t->swizzle, SWIZZLES) && is_below(t->promotion, L2_PROMOTIONS) &&
                     is_below(t->fill, FILLS);
    if (!are_known || (t->fill == 1 && !is_float(t->type)) ||
        (t->interleave == INTERLEAVE_32B && t->swizzle != SWIZZLE_32B)) {
        return false;
    }
    bool is_plain =
        t->swizzle == NO_SWIZZLE || t->swizzle == SWIZZLE_128B || t->swizzle == ATOM_32B;
    switch (t->type) {
    case U4_ALIGN16B:
        return is_plain;
    case U6_ALIGN16B:
        return t->interleave == NO_INTERLEAVE && (is_plain || t->swizzle == ATOM_64B);
    default:
        return true;
    }
}

static bool has_valid_shape(const tensor *t) {
    uint64_t alignment = alignment_of(t);
    if (t->address == 0 || t->address % alignment != 0 || t->lengths == NULL || t->steps == NULL ||
        (t->rank > 1 && t->strides == NULL)) {
        return false;
    }
    for (uint32_t i = 0; i < t->rank; i++) {
        bool is_step = (i == 0 && t->interleave == NO_INTERLEAVE) ||
                       (t->steps[i] >= 1 && t->steps[i] <= MOST_STEP);
        bool is_stride =
            i + 1 >= t->rank || (t->strides[i] % alignment == 0 && t->strides[i] < MOST_STRIDE);
        if (t->lengths[i] == 0 || t->lengths[i] > MOST_LENGTH || !is_step || !is_stride) {
            return false;
        }
    }
    return (!is_packed(t->type) || t->lengths[0] % PACKED == 0) &&
           (t->type != U4_ALIGN8B || t->lengths[0] % 2 == 0);
}

/* The inner dimension of the box: with a swizzle it fits the span of the swizzle. */
static bool is_inner(const tensor *t, uint64_t elements) {
    static const uint32_t spans[SWIZZLES] = {0, 32, 64, 128, 128, 128, 128};
    uint64_t bits = elements * element_bits(t->type);
    return elements >= 1 && elements <= MOST_BOX && (!is_packed(t->type) || elements == PACKED) &&
           (t->interleave != NO_INTERLEAVE || t->swizzle == NO_SWIZZLE ||
            bits <= spans[t->swizzle] * 8);
}

/* Checks what all kinds of maps have. */
static CUresult check(const tensor *t, uint32_t least_rank, uint32_t capability) {
    EMU_CONTEXT(context);
    if (context->gpu->state->settings.capability_major < capability) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    EMU_REQUIRE(t->map != NULL && (uintptr_t)t->map % MAP_ALIGNMENT == 0);
    EMU_REQUIRE(t->rank >= least_rank && t->rank <= MOST_RANK);
    EMU_REQUIRE(has_valid_kinds(t) && has_valid_shape(t));
    return CUDA_SUCCESS;
}

/* box: the elements of each dimension. */
static CUresult describe(const tensor *t, const uint32_t *box) {
    description d = {.mark = MAP_MARK,
                     .address = t->address,
                     .alignment = alignment_of(t),
                     .type = (uint8_t)t->type,
                     .rank = (uint8_t)t->rank,
                     .layout = (uint8_t)(t->interleave | t->swizzle << 2 | t->promotion << 5),
                     .fill = (uint8_t)t->fill};
    for (uint32_t i = 0; i < t->rank; i++) {
        d.lengths[i] = t->lengths[i];
        d.box[i] = box[i];
        d.steps[i] = (uint8_t)t->steps[i];
    }
    memset(t->map, 0, sizeof *t->map);
    memcpy(t->map, &d, sizeof d);
    return CUDA_SUCCESS;
}

#define TENSOR \
    CUtensorMap *map, int type, uint32_t rank, void *address, const uint64_t *lengths, \
        const uint64_t *strides
#define LAYOUT int interleave, int swizzle, int promotion, int fill
#define THE_TENSOR \
    { \
        map, type, rank, (uint64_t)(uintptr_t)address, lengths, strides, steps, interleave, \
            swizzle, promotion, fill \
    }

EMU_API CUresult cuTensorMapEncodeTiled(TENSOR, const uint32_t *box, const uint32_t *steps,
                                        LAYOUT) {
    tensor t = THE_TENSOR;
    CUresult result = check(&t, interleave == NO_INTERLEAVE ? 1 : 3, LEAST_CAPABILITY);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    EMU_REQUIRE(box != NULL && is_inner(&t, box[0]));
    for (uint32_t i = 1; i < rank; i++) {
        EMU_REQUIRE(box[i] >= 1 && box[i] <= MOST_BOX);
    }
    EMU_REQUIRE(interleave != NO_INTERLEAVE || box[0] * element_bits(type) % 128 == 0);
    return describe(&t, box);
}

/* A box of pixels given by its corners' distance from the corners of the image; its first dimension is W. */
static bool are_corners(const tensor *t, const int *lower, const int *upper, uint32_t count,
                        int limit, uint32_t *box) {
    for (uint32_t i = 0; i < count; i++) {
        int64_t length = (int64_t)t->lengths[1 + i] + upper[i] - lower[i];
        if (lower[i] < -limit || lower[i] >= limit || upper[i] < -limit || upper[i] >= limit ||
            length <= 0) {
            return false;
        }
        box[1 + i] = (uint32_t)(length > UINT32_MAX ? UINT32_MAX : length);
    }
    return true;
}

EMU_API CUresult cuTensorMapEncodeIm2col(TENSOR, const int *lower, const int *upper,
                                         uint32_t channels, uint32_t pixels, const uint32_t *steps,
                                         LAYOUT) {
    static const int limits[] = {32768, 128, 16}; /* by the number of dimensions of a pixel */
    tensor t = THE_TENSOR;
    CUresult result = check(&t, 3, LEAST_CAPABILITY);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    uint32_t box[MOST_RANK] = {channels};
    EMU_REQUIRE(lower != NULL && upper != NULL && is_inner(&t, channels) && pixels <= MOST_PIXELS);
    EMU_REQUIRE(are_corners(&t, lower, upper, rank - 2, limits[rank - 3], box));
    box[rank - 1] = pixels;
    return describe(&t, box);
}

EMU_API CUresult cuTensorMapEncodeIm2colWide(TENSOR, int lower, int upper, uint32_t channels,
                                             uint32_t pixels, const uint32_t *steps, int interleave,
                                             int mode, int swizzle, int promotion, int fill) {
    tensor t = THE_TENSOR;
    CUresult result = check(&t, 3, WIDE_CAPABILITY);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    uint32_t box[MOST_RANK] = {channels};
    EMU_REQUIRE(is_below(mode, WIDE_MODES) && is_inner(&t, channels));
    EMU_REQUIRE(mode == 1 || pixels <= MOST_PIXELS);
    EMU_REQUIRE(swizzle >= SWIZZLE_64B && swizzle <= ATOM_32B);
    EMU_REQUIRE(are_corners(&t, &lower, &upper, 1, 32768, box));
    box[rank - 1] = pixels;
    return describe(&t, box);
}

EMU_API CUresult cuTensorMapReplaceAddress(CUtensorMap *map, void *address) {
    EMU_CONTEXT(context);
    (void)context;
    EMU_REQUIRE(map != NULL && (uintptr_t)map % MAP_ALIGNMENT == 0 && address != NULL);
    description d;
    memcpy(&d, map, sizeof d);
    EMU_REQUIRE(d.mark == MAP_MARK && (uintptr_t)address % d.alignment == 0);
    d.address = (uint64_t)(uintptr_t)address;
    memcpy(map, &d, sizeof d);
    return CUDA_SUCCESS;
}
