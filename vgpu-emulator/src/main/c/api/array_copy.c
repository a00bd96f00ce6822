/* Copies of a number of bytes to or from an array of one dimension. */
#include "array.h"
#include "driver/driver.h"
#include "driver/memory.h"
#include "transfer.h"

/* One end of a copy: an offset in an array, or without an array, memory of the device or the host. */
typedef struct {
    CUarray array;
    uint64_t at;
    bool is_host;
} place;

static CUresult locate(place end, size_t bytes, bool is_written, uint64_t *address) {
    *address = end.at;
    if (end.array != NULL) {
        EMU_REQUIRE(emu_pool_has(&emu_arrays, end.array));
        CUarray array = end.array;
        EMU_REQUIRE(array->rows == 1 && array->slices == 1 && end.at <= array->row_bytes &&
                    bytes <= array->row_bytes - end.at);
        *address = array->address + end.at;
        emu_memory_writable(array->address, 1); /* marks the array as used */
        return CUDA_SUCCESS;
    }
    EMU_REQUIRE(end.at != 0);
    EMU_REQUIRE(end.is_host || (is_written ? emu_memory_writable(end.at, bytes)
                                           : emu_memory_readable(end.at, bytes)));
    return CUDA_SUCCESS;
}

static CUresult copy(place target, place source, size_t bytes, CUstream stream, bool per_thread,
                     bool wait) {
    EMU_CONTEXT(context);
    (void)context;
    if (bytes == 0) {
        return CUDA_SUCCESS;
    }
    emu_operation operation = {.kind = EMU_COPY, .copy = {.width = bytes, .height = 1, .depth = 1}};
    CUresult result = locate(target, bytes, true, &operation.copy.target);
    if (result == CUDA_SUCCESS) {
        result = locate(source, bytes, false, &operation.copy.source);
    }
    if (result != CUDA_SUCCESS) {
        return result;
    }
    emu_transfer_place(operation.copy.source, operation.copy.target, bytes, &operation);
    return emu_transfer(stream, per_thread, wait, &operation);
}

/* NULL is no array, and no place either. */
static place in_array(CUarray array, size_t offset) {
    return (place){.array = array, .at = array == NULL ? 0 : offset};
}

static place on_device(CUdeviceptr address) {
    return (place){.at = address};
}

static place on_host(const void *address) {
    return (place){.at = (uint64_t)(uintptr_t)address, .is_host = true};
}

/* A blocking copy, for both kinds of default stream; and the asynchronous one. */
#define COPY(name, parameters, target, source) \
    EMU_API CUresult name##_v2 parameters { \
        return copy(target, source, bytes, NULL, false, true); \
    } \
    EMU_API CUresult name##_v2_ptds parameters { \
        return copy(target, source, bytes, NULL, true, true); \
    }
#define COPY_ASYNC(name, parameters, target, source) \
    EMU_API CUresult name##_v2 parameters { \
        return copy(target, source, bytes, stream, false, false); \
    } \
    EMU_API CUresult name##_v2_ptsz parameters { \
        return copy(target, source, bytes, stream, true, false); \
    }

COPY(cuMemcpyHtoA, (CUarray to, size_t offset, const void *from, size_t bytes),
     in_array(to, offset), on_host(from))
COPY(cuMemcpyAtoH, (void *to, CUarray from, size_t offset, size_t bytes), on_host(to),
     in_array(from, offset))
COPY(cuMemcpyDtoA, (CUarray to, size_t offset, CUdeviceptr from, size_t bytes),
     in_array(to, offset), on_device(from))
COPY(cuMemcpyAtoD, (CUdeviceptr to, CUarray from, size_t offset, size_t bytes), on_device(to),
     in_array(from, offset))
COPY(cuMemcpyAtoA, (CUarray to, size_t offset, CUarray from, size_t from_offset, size_t bytes),
     in_array(to, offset), in_array(from, from_offset))
COPY_ASYNC(cuMemcpyHtoAAsync,
           (CUarray to, size_t offset, const void *from, size_t bytes, CUstream stream),
           in_array(to, offset), on_host(from))
COPY_ASYNC(cuMemcpyAtoHAsync,
           (void *to, CUarray from, size_t offset, size_t bytes, CUstream stream), on_host(to),
           in_array(from, offset))
