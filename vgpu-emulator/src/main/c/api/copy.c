/* Copies and fills of linear ranges. */
#include "driver/driver.h"
#include "driver/memory.h"
#include "transfer.h"

/* Bytes moved in one nanosecond between host and device, within a device and between devices; and the minimum
 * duration of a transfer. */
enum {
    HOST_BYTES_PER_NS = 25,
    DEVICE_BYTES_PER_NS = 2000,
    PEER_BYTES_PER_NS = 300,
    SHORTEST_NS = 1500
};

/* The driver gives each direction its own copy engine, as far as there are enough. */
typedef enum { NO_ENGINE, ENGINE_TO_DEVICE, ENGINE_TO_HOST, ENGINE_TO_PEER } engine;

void emu_transfer_place(uint64_t source, uint64_t target, uint64_t bytes,
                        emu_operation *operation) {
    emu_allocation from;
    emu_allocation to;
    bool from_device = emu_memory_find(source, &from) && emu_is_on_device(from.kind);
    bool to_device = emu_memory_find(target, &to) && emu_is_on_device(to.kind);
    uint64_t rate = HOST_BYTES_PER_NS;
    uint64_t wanted = to_device ? ENGINE_TO_DEVICE : from_device ? ENGINE_TO_HOST : NO_ENGINE;
    if (from_device && to_device) {
        bool is_peer = from.device != to.device;
        rate = is_peer ? PEER_BYTES_PER_NS : DEVICE_BYTES_PER_NS;
        wanted = is_peer ? ENGINE_TO_PEER : NO_ENGINE; /* within a device, a kernel does the copy */
    }
    uint64_t engines = emu_driver.state.times.copy_engines;
    operation->engine = (uint32_t)(wanted < engines ? wanted : engines);
    operation->duration_ns = SHORTEST_NS + bytes / rate;
}

uint64_t emu_fill_ns(uint64_t bytes) {
    return SHORTEST_NS + bytes / DEVICE_BYTES_PER_NS;
}

CUresult emu_transfer(CUstream handle, bool per_thread, bool wait, const emu_operation *operation) {
    EMU_CONTEXT(context);
    CUstream stream = NULL;
    CUresult result = emu_stream_of(context, handle, per_thread, &stream);
    if (result == CUDA_SUCCESS && wait && emu_stream_is_captured(stream)) {
        result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    if (result == CUDA_SUCCESS) {
        result = emu_enqueue(stream, operation);
    }
    return result == CUDA_SUCCESS && wait ? emu_stream_drain(stream) : result;
}

typedef enum { FROM_HOST = 1, TO_HOST = 2, ANYWHERE = 4 } direction;

/* Checks a linear copy and describes it. */
static CUresult copy_of(uint64_t target, uint64_t source, uint64_t bytes, direction where,
                        emu_operation *operation) {
    EMU_REQUIRE(target != 0 && source != 0);
    emu_allocation found;
    bool target_ok = where == TO_HOST || (where == ANYWHERE && !emu_memory_find(target, &found)) ||
                     emu_memory_writable(target, bytes);
    bool source_ok = where == FROM_HOST ||
                     (where == ANYWHERE && !emu_memory_find(source, &found)) ||
                     emu_memory_readable(source, bytes);
    EMU_REQUIRE(target_ok && source_ok);
    *operation = (emu_operation){
        .kind = EMU_COPY,
        .copy = {.source = source, .target = target, .width = bytes, .height = 1, .depth = 1}};
    emu_transfer_place(source, target, bytes, operation);
    return CUDA_SUCCESS;
}

CUresult emu_copy_of(uint64_t target, uint64_t source, uint64_t bytes, emu_operation *operation) {
    return copy_of(target, source, bytes, ANYWHERE, operation);
}

static CUresult copy(uint64_t target, uint64_t source, size_t bytes, direction where,
                     CUstream stream, bool per_thread, bool wait) {
    EMU_INITIALIZED();
    if (bytes == 0) {
        return CUDA_SUCCESS;
    }
    emu_operation operation;
    CUresult result = copy_of(target, source, bytes, where, &operation);
    return result == CUDA_SUCCESS ? emu_transfer(stream, per_thread, wait, &operation) : result;
}

#define HOST(pointer) (uint64_t)(uintptr_t)(pointer)

/* A blocking copy and its per-thread-default-stream form, followed by the two asynchronous forms. */
#define COPY(name, parameters, target, source, bytes, where) \
    EMU_API CUresult name parameters { \
        return copy(target, source, bytes, where, NULL, false, true); \
    } \
    EMU_API CUresult name##_ptds parameters { \
        return copy(target, source, bytes, where, NULL, true, true); \
    }
#define COPY_ASYNC(name, parameters, target, source, bytes, where) \
    EMU_API CUresult name parameters { \
        return copy(target, source, bytes, where, stream, false, false); \
    } \
    EMU_API CUresult name##_ptsz parameters { \
        return copy(target, source, bytes, where, stream, true, false); \
    }

COPY(cuMemcpyHtoD_v2, (CUdeviceptr to, const void *from, size_t bytes), to, HOST(from), bytes,
     FROM_HOST)
COPY(cuMemcpyDtoH_v2, (void *to, CUdeviceptr from, size_t bytes), HOST(to), from, bytes, TO_HOST)
COPY(cuMemcpyDtoD_v2, (CUdeviceptr to, CUdeviceptr from, size_t bytes), to, from, bytes,
     (direction)0)
COPY(cuMemcpy, (CUdeviceptr to, CUdeviceptr from, size_t bytes), to, from, bytes, ANYWHERE)
COPY(cuMemcpyPeer,
     (CUdeviceptr to, CUcontext there, CUdeviceptr from, CUcontext here, size_t bytes),
     ((void)there, (void)here, to), from, bytes, (direction)0)
COPY_ASYNC(cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void *from, size_t bytes, CUstream stream),
           to, HOST(from), bytes, FROM_HOST)
COPY_ASYNC(cuMemcpyDtoHAsync_v2, (void *to, CUdeviceptr from, size_t bytes, CUstream stream),
           HOST(to), from, bytes, TO_HOST)
COPY_ASYNC(cuMemcpyDtoDAsync_v2, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream),
           to, from, bytes, (direction)0)
COPY_ASYNC(cuMemcpyAsync, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream), to,
           from, bytes, ANYWHERE)
COPY_ASYNC(cuMemcpyPeerAsync,
           (CUdeviceptr to, CUcontext there, CUdeviceptr from, CUcontext here, size_t bytes,
            CUstream stream),
           ((void)there, (void)here, to), from, bytes, (direction)0)

CUresult emu_fill_of(uint64_t target, uint64_t pitch, uint32_t value, uint32_t element,
                     uint64_t width, uint64_t height, emu_operation *operation) {
    EMU_REQUIRE((element == 1 || element == 2 || element == 4) && target != 0 &&
                target % element == 0 && width > 0 && height > 0 && width <= SIZE_MAX / element);
    EMU_REQUIRE(height == 1 || (pitch >= width * element && height <= SIZE_MAX / pitch));
    EMU_REQUIRE(emu_memory_writable(target, (height - 1) * pitch + width * element));
    *operation = (emu_operation){.kind = EMU_FILL,
                                 .duration_ns = emu_fill_ns(width * height * element),
                                 .fill = {.target = target,
                                          .pitch = pitch,
                                          .width = width,
                                          .height = height,
                                          .value = value,
                                          .element_bytes = element}};
    return CUDA_SUCCESS;
}

static CUresult fill(uint64_t target, uint64_t pitch, uint32_t value, uint32_t element,
                     uint64_t width, uint64_t height, CUstream stream, bool per_thread, bool wait) {
    EMU_INITIALIZED();
    if (width == 0 || height == 0) {
        return CUDA_SUCCESS;
    }
    emu_operation operation;
    CUresult result = emu_fill_of(target, pitch, value, element, width, height, &operation);
    return result == CUDA_SUCCESS ? emu_transfer(stream, per_thread, wait, &operation) : result;
}

/* cuMemset… for one element size: 1D and 2D, blocking and asynchronous, each for both kinds of default stream. */
#define FILL(bits, type, element) \
    EMU_API CUresult cuMemsetD##bits##_v2(CUdeviceptr to, type value, size_t n) { \
        return fill(to, 0, value, element, n, 1, NULL, false, true); \
    } \
    EMU_API CUresult cuMemsetD##bits##_v2_ptds(CUdeviceptr to, type value, size_t n) { \
        return fill(to, 0, value, element, n, 1, NULL, true, true); \
    } \
    EMU_API CUresult cuMemsetD2D##bits##_v2(CUdeviceptr to, size_t pitch, type value, \
                                            size_t width, size_t height) { \
        return fill(to, pitch, value, element, width, height, NULL, false, true); \
    } \
    EMU_API CUresult cuMemsetD2D##bits##_v2_ptds(CUdeviceptr to, size_t pitch, type value, \
                                                 size_t width, size_t height) { \
        return fill(to, pitch, value, element, width, height, NULL, true, true); \
    } \
    EMU_API CUresult cuMemsetD##bits##Async(CUdeviceptr to, type value, size_t n, \
                                            CUstream stream) { \
        return fill(to, 0, value, element, n, 1, stream, false, false); \
    } \
    EMU_API CUresult cuMemsetD##bits##Async_ptsz(CUdeviceptr to, type value, size_t n, \
                                                 CUstream stream) { \
        return fill(to, 0, value, element, n, 1, stream, true, false); \
    } \
    EMU_API CUresult cuMemsetD2D##bits##Async(CUdeviceptr to, size_t pitch, type value, \
                                              size_t width, size_t height, CUstream stream) { \
        return fill(to, pitch, value, element, width, height, stream, false, false); \
    } \
    EMU_API CUresult cuMemsetD2D##bits##Async_ptsz(CUdeviceptr to, size_t pitch, type value, \
                                                   size_t width, size_t height, CUstream stream) { \
        return fill(to, pitch, value, element, width, height, stream, true, false); \
    }

FILL(8, unsigned char, 1)
FILL(16, unsigned short, 2)
FILL(32, unsigned int, 4)
