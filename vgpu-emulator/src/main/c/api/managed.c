/*
 * Managed memory: advice, prefetching, discarding, and what the program can query of it. The emulator keeps the advice;
 * all memory stays where it is.
 */
#include "driver/capture.h"
#include "driver/driver.h"
#include "driver/hints.h"
#include "driver/memory.h"

#include <string.h>

enum { DEVICE = 1, HOST, HOST_NUMA, HOST_NUMA_CURRENT };
enum {
    SET_READ_MOSTLY = 1,
    UNSET_READ_MOSTLY,
    SET_PREFERRED,
    UNSET_PREFERRED,
    SET_ACCESSED_BY,
    UNSET_ACCESSED_BY
};
enum { CPU = -1, NOWHERE = -2 }; /* CU_DEVICE_CPU, CU_DEVICE_INVALID */
enum { PAGE = 4096, ATTACH_GLOBAL = 1, ATTACH_HOST = 2, ATTACH_SINGLE = 4 };

/* Checks a range that must lie in one managed allocation, and widens it to whole pages of that allocation. */
static CUresult check_range(CUdeviceptr *address, size_t *bytes) {
    emu_allocation found;
    EMU_REQUIRE(*bytes > 0 && emu_memory_find(*address, &found) &&
                found.kind == EMU_MANAGED_MEMORY);
    EMU_REQUIRE(*bytes <= found.bytes - (*address - found.start));
    uint64_t start = *address / PAGE * PAGE;
    uint64_t end = (*address + *bytes + PAGE - 1) / PAGE * PAGE;
    start = start > found.start ? start : found.start;
    end = end < found.start + found.bytes ? end : found.start + found.bytes;
    *address = start;
    *bytes = end - start;
    return CUDA_SUCCESS;
}

static CUresult check_location(CUmemLocation *location) {
    if (location->type == DEVICE) {
        return emu_device_at(location->id) == NULL ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
    }
    EMU_REQUIRE(location->type >= HOST && location->type <= HOST_NUMA_CURRENT);
    if (location->type == HOST_NUMA && location->id < 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (location->type == HOST_NUMA_CURRENT) { /* the emulated machine has one node */
        *location = (CUmemLocation){HOST_NUMA, 0};
    }
    if (location->type == HOST) {
        location->id = 0;
    }
    return CUDA_SUCCESS;
}

/* The location that the older functions name by a device. */
static CUmemLocation location_of(CUdevice device) {
    return device == CPU ? (CUmemLocation){HOST, 0} : (CUmemLocation){DEVICE, device};
}

typedef struct {
    int advice;
    CUmemLocation location;
} advised;

static void advise_piece(emu_hints *hints, const void *data) {
    const advised *what = data;
    CUmemLocation location = what->location;
    uint32_t bit = location.type == DEVICE ? UINT32_C(1) << location.id : 0;
    bool is_host = location.type == HOST;
    switch (what->advice) {
    case SET_READ_MOSTLY:
    case UNSET_READ_MOSTLY:
        hints->is_read_mostly = what->advice == SET_READ_MOSTLY;
        break;
    case SET_PREFERRED:
        hints->preferred = location;
        break;
    case UNSET_PREFERRED:
        hints->preferred = (CUmemLocation){0, 0};
        break;
    case SET_ACCESSED_BY:
        hints->accessed_by |= bit;
        hints->is_accessed_by_host = hints->is_accessed_by_host || is_host;
        break;
    default:
        hints->accessed_by &= ~bit;
        hints->is_accessed_by_host = hints->is_accessed_by_host && !is_host;
        break;
    }
}

static CUresult advise(CUdeviceptr address, size_t bytes, int advice, CUmemLocation location) {
    EMU_CONTEXT(context);
    (void)context;
    EMU_REQUIRE(advice >= SET_READ_MOSTLY && advice <= UNSET_ACCESSED_BY);
    CUresult result = check_range(&address, &bytes);
    bool is_access = advice == SET_ACCESSED_BY || advice == UNSET_ACCESSED_BY;
    if (result == CUDA_SUCCESS && (is_access || advice == SET_PREFERRED)) {
        EMU_REQUIRE(!is_access || location.type == DEVICE || location.type == HOST);
        result = check_location(&location);
    }
    advised what = {advice, location};
    if (result == CUDA_SUCCESS && !emu_hints_change(address, bytes, advise_piece, &what)) {
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    return result;
}

EMU_API CUresult cuMemAdvise(CUdeviceptr address, size_t bytes, int advice, CUdevice device) {
    return advise(address, bytes, advice, location_of(device));
}

EMU_API CUresult cuMemAdvise_v2(CUdeviceptr address, size_t bytes, int advice,
                                CUmemLocation location) {
    return advise(address, bytes, advice, location);
}

static void prefetch_piece(emu_hints *hints, const void *data) {
    hints->prefetched = *(const CUmemLocation *)data;
}

static CUresult check_stream(CUstream handle, bool per_thread) {
    EMU_CONTEXT(context);
    CUstream stream = NULL;
    return emu_stream_of(context, handle, per_thread, &stream);
}

static CUresult prefetch(CUdeviceptr address, size_t bytes, CUmemLocation location, CUstream stream,
                         bool per_thread) {
    CUresult result = check_stream(stream, per_thread);
    if (result == CUDA_SUCCESS) {
        result = check_range(&address, &bytes);
    }
    if (result == CUDA_SUCCESS) {
        result = check_location(&location);
    }
    if (result == CUDA_SUCCESS && !emu_hints_change(address, bytes, prefetch_piece, &location)) {
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    return result;
}

/* Ranges, and the locations from `firsts[i]` on to which they go; without locations, they go nowhere. */
static CUresult prefetch_batch(const CUdeviceptr *addresses, const size_t *sizes, size_t count,
                               const CUmemLocation *locations, const size_t *firsts,
                               size_t location_count, unsigned long long flags, CUstream stream,
                               bool per_thread) {
    CUresult result = check_stream(stream, per_thread);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    EMU_REQUIRE(addresses != NULL && sizes != NULL && count > 0 && flags == 0);
    bool moves = locations != NULL;
    EMU_REQUIRE(!moves || (firsts != NULL && location_count > 0 && location_count <= count &&
                           firsts[0] == 0 && firsts[location_count - 1] < count));
    for (size_t i = 0; moves && i < location_count; i++) {
        CUmemLocation location = locations[i];
        EMU_REQUIRE(i == 0 || firsts[i] > firsts[i - 1]);
        result = result == CUDA_SUCCESS ? check_location(&location) : result;
    }
    for (size_t i = 0; result == CUDA_SUCCESS && i < count; i++) {
        CUdeviceptr address = addresses[i];
        size_t bytes = sizes[i];
        result = check_range(&address, &bytes);
    }
    for (size_t i = 0, at = 0; moves && result == CUDA_SUCCESS && i < count; i++) {
        at += at + 1 < location_count && firsts[at + 1] == i ? 1 : 0;
        result = prefetch(addresses[i], sizes[i], locations[at], stream, per_thread);
    }
    return result;
}

/* The value of an attribute over a whole range. */
typedef struct {
    bool is_first;
    bool is_read_mostly;
    bool is_accessed_by_host;
    uint32_t accessed_by;
    CUmemLocation preferred; /* type 0: none, or not the same everywhere */
    CUmemLocation prefetched;
} summary;

static bool is_same(CUmemLocation one, CUmemLocation other) {
    return one.type == other.type && one.id == other.id;
}

static void add_piece(const emu_hints *hints, void *data) {
    static const CUmemLocation none;
    summary *all = data;
    bool is_first = all->is_first;
    all->is_first = false;
    all->is_read_mostly = all->is_read_mostly && hints->is_read_mostly;
    all->is_accessed_by_host = all->is_accessed_by_host && hints->is_accessed_by_host;
    all->accessed_by &= hints->accessed_by;
    all->preferred =
        is_first || is_same(all->preferred, hints->preferred) ? hints->preferred : none;
    all->prefetched =
        is_first || is_same(all->prefetched, hints->prefetched) ? hints->prefetched : none;
}

/* The older attributes know devices and the CPU. */
static int32_t device_of(CUmemLocation location) {
    return location.type == DEVICE ? location.id : location.type == 0 ? NOWHERE : CPU;
}

static void list_accessing(const summary *all, int32_t *list, size_t room) {
    size_t count = 0;
    for (int32_t i = 0; i < 32 && count < room; i++) {
        if ((all->accessed_by >> i & 1) != 0) {
            list[count++] = i;
        }
    }
    if (all->is_accessed_by_host && count < room) {
        list[count++] = CPU;
    }
    while (count < room) {
        list[count++] = NOWHERE;
    }
}

static CUresult give_attribute(const summary *all, int attribute, void *data, size_t size) {
    enum { READ_MOSTLY = 1, PREFERRED, ACCESSED_BY, PREFETCHED };
    enum { PREFERRED_TYPE = 5, PREFERRED_ID, PREFETCHED_TYPE, PREFETCHED_ID };
    EMU_REQUIRE(data != NULL && size > 0 && size % sizeof(int32_t) == 0 &&
                (size == sizeof(int32_t) || attribute == ACCESSED_BY));
    int32_t *value = data;
    switch (attribute) {
    case READ_MOSTLY:
        *value = all->is_read_mostly ? 1 : 0;
        return CUDA_SUCCESS;
    case PREFERRED:
        *value = device_of(all->preferred);
        return CUDA_SUCCESS;
    case ACCESSED_BY:
        list_accessing(all, value, size / sizeof *value);
        return CUDA_SUCCESS;
    case PREFETCHED:
        *value = device_of(all->prefetched);
        return CUDA_SUCCESS;
    case PREFERRED_TYPE:
        *value = all->preferred.type;
        return CUDA_SUCCESS;
    case PREFERRED_ID:
        *value = all->preferred.id;
        return CUDA_SUCCESS;
    case PREFETCHED_TYPE:
        *value = all->prefetched.type;
        return CUDA_SUCCESS;
    case PREFETCHED_ID:
        *value = all->prefetched.id;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

EMU_API CUresult cuMemRangeGetAttributes(void **data, size_t *sizes, int *attributes, size_t count,
                                         CUdeviceptr address, size_t bytes) {
    EMU_CONTEXT(context);
    (void)context;
    EMU_REQUIRE(data != NULL && sizes != NULL && attributes != NULL && count > 0);
    CUresult result = check_range(&address, &bytes);
    summary all = {true, true, true, UINT32_MAX, {0, 0}, {0, 0}};
    if (result == CUDA_SUCCESS) {
        emu_hints_see(address, bytes, add_piece, &all);
    }
    for (size_t i = 0; result == CUDA_SUCCESS && i < count; i++) {
        result = give_attribute(&all, attributes[i], data[i], sizes[i]);
    }
    return result;
}

EMU_API CUresult cuMemRangeGetAttribute(void *data, size_t size, int attribute, CUdeviceptr address,
                                        size_t bytes) {
    return cuMemRangeGetAttributes(&data, &size, &attribute, 1, address, bytes);
}

/* A managed allocation as a whole belongs to all streams, to the host, or to one stream. Nothing here depends on it. */
static CUresult attach(CUstream handle, CUdeviceptr address, size_t bytes, unsigned int flags,
                       bool per_thread) {
    EMU_CONTEXT(context);
    CUstream stream = NULL;
    CUresult result = emu_stream_of(context, handle, per_thread, &stream);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    emu_allocation found;
    EMU_REQUIRE(flags == ATTACH_GLOBAL || flags == ATTACH_HOST || flags == ATTACH_SINGLE);
    EMU_REQUIRE(flags != ATTACH_SINGLE || !stream->is_legacy);
    EMU_REQUIRE(emu_memory_find(address, &found) && found.kind == EMU_MANAGED_MEMORY &&
                address == found.start && (bytes == 0 || bytes == found.bytes));
    if (!emu_stream_is_captured(stream)) {
        return CUDA_SUCCESS;
    }
    pthread_mutex_lock(&context->lock);
    result = emu_capture_of(stream) == NULL
                 ? CUDA_SUCCESS
                 : emu_capture_fail(stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    pthread_mutex_unlock(&context->lock);
    return result;
}

#define RANGES CUdeviceptr *addresses, size_t *sizes, size_t count
#define PLACES CUmemLocation *locations, size_t *firsts, size_t location_count
#define FORMS(suffix, per_thread) \
    EMU_API CUresult cuMemPrefetchAsync##suffix(CUdeviceptr address, size_t bytes, \
                                                CUdevice device, CUstream stream) { \
        return prefetch(address, bytes, location_of(device), stream, per_thread); \
    } \
    EMU_API CUresult cuMemPrefetchAsync_v2##suffix(CUdeviceptr address, size_t bytes, \
                                                   CUmemLocation location, unsigned int flags, \
                                                   CUstream stream) { \
        EMU_REQUIRE(flags == 0); \
        return prefetch(address, bytes, location, stream, per_thread); \
    } \
    EMU_API CUresult cuMemPrefetchBatchAsync##suffix(RANGES, PLACES, unsigned long long flags, \
                                                     CUstream stream) { \
        EMU_REQUIRE(locations != NULL); \
        return prefetch_batch(addresses, sizes, count, locations, firsts, location_count, flags, \
                              stream, per_thread); \
    } \
    EMU_API CUresult cuMemDiscardBatchAsync##suffix(RANGES, unsigned long long flags, \
                                                    CUstream stream) { \
        return prefetch_batch(addresses, sizes, count, NULL, NULL, 0, flags, stream, per_thread); \
    } \
    EMU_API CUresult cuMemDiscardAndPrefetchBatchAsync##suffix( \
        RANGES, PLACES, unsigned long long flags, CUstream stream) { \
        EMU_REQUIRE(locations != NULL); \
        return prefetch_batch(addresses, sizes, count, locations, firsts, location_count, flags, \
                              stream, per_thread); \
    } \
    EMU_API CUresult cuStreamAttachMemAsync##suffix(CUstream stream, CUdeviceptr address, \
                                                    size_t bytes, unsigned int flags) { \
        return attach(stream, address, bytes, flags, per_thread); \
    }

FORMS(, false)
FORMS(_ptsz, true)
