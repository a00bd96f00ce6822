#include "kernels.h"

#include "conditional.h"
#include "memory.h"

#include <string.h>

/* The modelled GPU's throughput per nanosecond, and the minimum duration of a kernel. */
enum { BYTES_PER_NS = 2000, FLOPS_PER_NS = 40000, SHORTEST_NS = 2000 };

static uint64_t u64_at(const uint8_t *arguments, size_t offset) {
    uint64_t value = 0;
    memcpy(&value, arguments + offset, sizeof value);
    return value;
}

static uint32_t u32_at(const uint8_t *arguments, size_t offset) {
    uint32_t value = 0;
    memcpy(&value, arguments + offset, sizeof value);
    return value;
}

static float f32_at(const uint8_t *arguments, size_t offset) {
    float value = 0;
    memcpy(&value, arguments + offset, sizeof value);
    return value;
}

/* Whether n elements of 4 bytes starting at an address lie in one allocation. */
static bool usable(uint64_t address, uint64_t n, bool written) {
    if (n == 0) {
        return true;
    }
    if (n > UINT64_MAX / 4 || address % 4 != 0) {
        return false;
    }
    return written ? emu_memory_writable(address, 4 * n) : emu_memory_readable(address, 4 * n);
}

static uint64_t null_ns(const uint8_t *arguments) {
    (void)arguments;
    return 0;
}

static uint64_t spin_ns(const uint8_t *arguments) {
    return u64_at(arguments, 0);
}

/* vgpu_fill(u32 *p, u32 value, u64 n) */
static bool fill(const uint8_t *arguments) {
    uint64_t address = u64_at(arguments, 0);
    uint32_t value = u32_at(arguments, 8);
    uint64_t n = u64_at(arguments, 16);
    if (!usable(address, n, true)) {
        return false;
    }
    uint32_t *p = (uint32_t *)(uintptr_t)address;
    for (uint64_t i = 0; i < n; i++) {
        p[i] = value;
    }
    return true;
}

static uint64_t fill_ns(const uint8_t *arguments) {
    return SHORTEST_NS + u64_at(arguments, 16) * 4 / BYTES_PER_NS;
}

/* vgpu_saxpy(float a, float *x, float *y, u64 n) */
static bool saxpy(const uint8_t *arguments) {
    float a = f32_at(arguments, 0);
    uint64_t x_address = u64_at(arguments, 8);
    uint64_t y_address = u64_at(arguments, 16);
    uint64_t n = u64_at(arguments, 24);
    if (!usable(x_address, n, false) || !usable(y_address, n, true)) {
        return false;
    }
    const float *x = (const float *)(uintptr_t)x_address;
    float *y = (float *)(uintptr_t)y_address;
    for (uint64_t i = 0; i < n; i++) {
        y[i] = a * x[i] + y[i];
    }
    return true;
}

static uint64_t saxpy_ns(const uint8_t *arguments) {
    return SHORTEST_NS + u64_at(arguments, 24) * 12 / BYTES_PER_NS;
}

/* vgpu_sgemm(float *A, float *B, float *C, u32 m, u32 n, u32 k): C = A·B, row-major. */
static bool sgemm(const uint8_t *arguments) {
    uint64_t m = u32_at(arguments, 24);
    uint64_t n = u32_at(arguments, 28);
    uint64_t k = u32_at(arguments, 32);
    if (!usable(u64_at(arguments, 0), m * k, false) ||
        !usable(u64_at(arguments, 8), k * n, false) ||
        !usable(u64_at(arguments, 16), m * n, true)) {
        return false;
    }
    const float *a = (const float *)(uintptr_t)u64_at(arguments, 0);
    const float *b = (const float *)(uintptr_t)u64_at(arguments, 8);
    float *c = (float *)(uintptr_t)u64_at(arguments, 16);
    for (uint64_t row = 0; row < m; row++) {
        float *out = c + row * n;
        memset(out, 0, n * sizeof(float));
        for (uint64_t i = 0; i < k;
             i++) { /* along rows of B, so that the inner loop can be vectorized */
            float factor = a[row * k + i];
            const float *in = b + i * n;
            for (uint64_t column = 0; column < n; column++) {
                out[column] += factor * in[column];
            }
        }
    }
    return true;
}

static uint64_t sgemm_ns(const uint8_t *arguments) {
    uint64_t m = u32_at(arguments, 24);
    uint64_t n = u32_at(arguments, 28);
    uint64_t k = u32_at(arguments, 32);
    return SHORTEST_NS + 2 * m * n * k / FLOPS_PER_NS;
}

/* vgpu_condition(u64 handle, u32 *count): takes one off the count, and sets the condition to what is left. */
static bool condition(const uint8_t *arguments) {
    uint64_t address = u64_at(arguments, 8);
    if (!usable(address, 1, true)) {
        return false;
    }
    uint32_t *count = (uint32_t *)(uintptr_t)address;
    *count -= *count > 0 ? 1 : 0;
    return emu_condition_set(u64_at(arguments, 0), *count);
}

static uint64_t condition_ns(const uint8_t *arguments) {
    (void)arguments;
    return SHORTEST_NS;
}

static const emu_kernel known[] = {
    {"vgpu_null", 0, NULL, null_ns},     {"vgpu_spin", 8, NULL, spin_ns},
    {"vgpu_fill", 24, fill, fill_ns},    {"vgpu_saxpy", 32, saxpy, saxpy_ns},
    {"vgpu_sgemm", 36, sgemm, sgemm_ns}, {"vgpu_condition", 16, condition, condition_ns},
    {"vgpu_work", 24, NULL, spin_ns},
};

const emu_kernel *emu_kernel_find(const char *name) {
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(known[i].name, name) == 0) {
            return &known[i];
        }
    }
    return NULL;
}

const emu_kernel_time *emu_kernel_time_find(const emu_kernel_times *times, const char *name) {
    for (uint64_t i = 0; i < times->kernel_count; i++) {
        if (strcmp(times->kernels[i].name, name) == 0) {
            return &times->kernels[i];
        }
    }
    return NULL;
}

uint64_t emu_kernel_modelled_ns(uint32_t sms, const emu_kernel_times *times, uint64_t blocks,
                                uint64_t threads) {
    uint64_t per_sm = threads == 0 ? 32 : 2048 / threads;
    per_sm = per_sm < 1 ? 1 : per_sm > 32 ? 32 : per_sm;
    uint64_t at_once = per_sm * sms;
    return (blocks + at_once - 1) / at_once * times->wave_ns;
}
