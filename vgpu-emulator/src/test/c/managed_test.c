/* Managed memory: what the program advised, where it prefetched to, and what it can query of that. */
#include "check.h"
#include "cuda_api.h"

CUresult cuMemAdvise(CUdeviceptr address, size_t bytes, int advice, CUdevice device);
CUresult cuMemAdvise_v2(CUdeviceptr address, size_t bytes, int advice, CUmemLocation location);
CUresult cuMemPrefetchAsync(CUdeviceptr address, size_t bytes, CUdevice device, CUstream stream);
CUresult cuMemPrefetchAsync_v2(CUdeviceptr address, size_t bytes, CUmemLocation location,
                               unsigned int flags, CUstream stream);
CUresult cuMemPrefetchBatchAsync(CUdeviceptr *addresses, size_t *sizes, size_t count,
                                 CUmemLocation *locations, size_t *firsts, size_t location_count,
                                 unsigned long long flags, CUstream stream);
CUresult cuMemDiscardBatchAsync(CUdeviceptr *addresses, size_t *sizes, size_t count,
                                unsigned long long flags, CUstream stream);
CUresult cuMemRangeGetAttribute(void *data, size_t size, int attribute, CUdeviceptr address,
                                size_t bytes);
CUresult cuMemRangeGetAttributes(void **data, size_t *sizes, int *attributes, size_t count,
                                 CUdeviceptr address, size_t bytes);
CUresult cuStreamAttachMemAsync(CUstream stream, CUdeviceptr address, size_t bytes,
                                unsigned int flags);

enum { PAGE = 4096, BYTES = 16 * PAGE };
enum { READ_MOSTLY = 1, PREFERRED, ACCESSED_BY, PREFETCHED };
enum { PREFERRED_TYPE = 5, PREFERRED_ID, PREFETCHED_TYPE, PREFETCHED_ID };
enum {
    SET_READ_MOSTLY = 1,
    UNSET_READ_MOSTLY,
    SET_PREFERRED,
    UNSET_PREFERRED,
    SET_ACCESSED_BY,
    UNSET_ACCESSED_BY
};
enum { DEVICE = 1, HOST, HOST_NUMA, CPU = -1, NOWHERE = -2 };

static CUstream stream;
static CUdeviceptr memory;

static int attribute(int which, CUdeviceptr address, size_t bytes) {
    int value = -77;
    CHECK_OK(cuMemRangeGetAttribute(&value, sizeof value, which, address, bytes));
    return value;
}

static void allocate(void) {
    CHECK_OK(cuMemAllocManaged(&memory, BYTES, 1));
}

static void release(void) {
    CHECK_OK(cuMemFree_v2(memory));
}

static void newMemoryHasNoAdvice(void) {
    for (int i = 0; i < 2; i++) { /* the second allocation has the address of the first one */
        allocate();
        CHECK_EQUAL(attribute(READ_MOSTLY, memory, BYTES), 0);
        CHECK_EQUAL(attribute(PREFERRED, memory, BYTES), NOWHERE);
        CHECK_EQUAL(attribute(PREFETCHED, memory, BYTES), NOWHERE);
        CHECK_EQUAL(attribute(PREFERRED_TYPE, memory, BYTES), 0);
        CHECK_OK(cuMemAdvise(memory, BYTES, SET_READ_MOSTLY, 0));
        CHECK_OK(cuMemAdvise(memory, BYTES, SET_PREFERRED, 1));
        CHECK_OK(cuMemPrefetchAsync(memory, BYTES, 1, stream));
        release();
    }
}

static void adviceHoldsForItsPages(void) {
    allocate();
    CHECK_OK(cuMemAdvise(memory + 4 * PAGE, 8 * PAGE, SET_READ_MOSTLY, 0));
    CHECK_OK(cuMemAdvise(memory + 6 * PAGE + 100, 10, UNSET_READ_MOSTLY, 0)); /* one page */
    CHECK_EQUAL(attribute(READ_MOSTLY, memory + 4 * PAGE, 2 * PAGE), 1);
    CHECK_EQUAL(attribute(READ_MOSTLY, memory + 4 * PAGE, 3 * PAGE), 0);
    CHECK_EQUAL(attribute(READ_MOSTLY, memory + 7 * PAGE, 5 * PAGE), 1);
    CHECK_EQUAL(attribute(READ_MOSTLY, memory + 7 * PAGE, 6 * PAGE), 0);
    CHECK_EQUAL(attribute(READ_MOSTLY, memory, BYTES), 0);
    CHECK_OK(cuMemAdvise(memory, BYTES, SET_READ_MOSTLY, 0));
    CHECK_EQUAL(attribute(READ_MOSTLY, memory, BYTES), 1);
    release();
}

static void aPreferredLocationIsTheSameEverywhereOrNone(void) {
    allocate();
    CHECK_OK(cuMemAdvise(memory, BYTES, SET_PREFERRED, 1));
    CHECK_EQUAL(attribute(PREFERRED, memory, BYTES), 1);
    CHECK_EQUAL(attribute(PREFERRED_TYPE, memory, BYTES), DEVICE);
    CHECK_EQUAL(attribute(PREFERRED_ID, memory, BYTES), 1);
    CHECK_OK(cuMemAdvise(memory + BYTES / 2, BYTES / 2, SET_PREFERRED, CPU));
    CHECK_EQUAL(attribute(PREFERRED, memory, BYTES), NOWHERE);
    CHECK_EQUAL(attribute(PREFERRED, memory + BYTES / 2, BYTES / 2), CPU);
    CHECK_EQUAL(attribute(PREFERRED_TYPE, memory + BYTES / 2, BYTES / 2), HOST);
    CHECK_OK(cuMemAdvise_v2(memory, BYTES, SET_PREFERRED, (CUmemLocation){HOST_NUMA, 0}));
    CHECK_EQUAL(attribute(PREFERRED_TYPE, memory, BYTES), HOST_NUMA);
    CHECK_EQUAL(attribute(PREFERRED, memory, BYTES), CPU);
    CHECK_OK(cuMemAdvise(memory, BYTES, UNSET_PREFERRED, 0));
    CHECK_EQUAL(attribute(PREFERRED, memory, BYTES), NOWHERE);
    release();
}

static void allAccessingDevicesAreListed(void) {
    int32_t list[4];
    allocate();
    CHECK_OK(cuMemAdvise(memory, BYTES, SET_ACCESSED_BY, 0));
    CHECK_OK(cuMemAdvise(memory, BYTES, SET_ACCESSED_BY, 1));
    CHECK_OK(cuMemAdvise(memory, PAGE, SET_ACCESSED_BY, CPU)); /* not the whole range */
    CHECK_OK(cuMemRangeGetAttribute(list, sizeof list, ACCESSED_BY, memory, BYTES));
    CHECK(list[0] == 0 && list[1] == 1 && list[2] == NOWHERE && list[3] == NOWHERE);
    CHECK_OK(cuMemRangeGetAttribute(list, sizeof list, ACCESSED_BY, memory, PAGE));
    CHECK(list[0] == 0 && list[1] == 1 && list[2] == CPU && list[3] == NOWHERE);
    CHECK_OK(cuMemAdvise(memory, BYTES, UNSET_ACCESSED_BY, 0));
    CHECK_OK(cuMemRangeGetAttribute(list, 4, ACCESSED_BY, memory, BYTES));
    CHECK(list[0] == 1 && list[1] == 1); /* no more than there is room for */
    release();
}

static void theLastPrefetchIsKnown(void) {
    allocate();
    CHECK_OK(cuMemPrefetchAsync(memory, BYTES / 2, 0, stream));
    CHECK_EQUAL(attribute(PREFETCHED, memory, BYTES / 2), 0);
    CHECK_EQUAL(attribute(PREFETCHED, memory, BYTES), NOWHERE);
    CHECK_OK(cuMemPrefetchAsync_v2(memory, BYTES, (CUmemLocation){HOST, 5}, 0, stream));
    CHECK_EQUAL(attribute(PREFETCHED, memory, BYTES), CPU);
    CHECK_EQUAL(attribute(PREFETCHED_TYPE, memory, BYTES), HOST);
    CUdeviceptr addresses[] = {memory, memory + 4 * PAGE, memory + 8 * PAGE};
    size_t sizes[] = {4 * PAGE, 4 * PAGE, 8 * PAGE};
    CUmemLocation locations[] = {{DEVICE, 1}, {DEVICE, 0}};
    size_t firsts[] = {0, 2};
    CHECK_OK(cuMemPrefetchBatchAsync(addresses, sizes, 3, locations, firsts, 2, 0, stream));
    CHECK_EQUAL(attribute(PREFETCHED_ID, memory, 8 * PAGE), 1);
    CHECK_EQUAL(attribute(PREFETCHED_ID, memory + 8 * PAGE, 8 * PAGE), 0);
    firsts[1] = 3;
    CHECK_EQUAL(cuMemPrefetchBatchAsync(addresses, sizes, 3, locations, firsts, 2, 0, stream),
                CUDA_ERROR_INVALID_VALUE);
    firsts[1] = 2;
    locations[1].id = 9;
    CHECK_EQUAL(cuMemPrefetchBatchAsync(addresses, sizes, 3, locations, firsts, 2, 0, stream),
                CUDA_ERROR_INVALID_DEVICE);
    CHECK_OK(cuMemDiscardBatchAsync(addresses, sizes, 3, 0, stream));
    CHECK_EQUAL(cuMemDiscardBatchAsync(addresses, sizes, 3, 1, stream), CUDA_ERROR_INVALID_VALUE);
    sizes[2] = 9 * PAGE;
    CHECK_EQUAL(cuMemDiscardBatchAsync(addresses, sizes, 3, 0, stream), CUDA_ERROR_INVALID_VALUE);
    release();
}

static void severalAttributesComeAtOnce(void) {
    int read_mostly = 0;
    int32_t list[2] = {0};
    void *data[] = {&read_mostly, list};
    size_t sizes[] = {sizeof read_mostly, sizeof list};
    int which[] = {READ_MOSTLY, ACCESSED_BY};
    allocate();
    CHECK_OK(cuMemAdvise(memory, BYTES, SET_READ_MOSTLY, 0));
    CHECK_OK(cuMemAdvise(memory, BYTES, SET_ACCESSED_BY, 1));
    CHECK_OK(cuMemRangeGetAttributes(data, sizes, which, 2, memory, BYTES));
    CHECK(read_mostly == 1 && list[0] == 1 && list[1] == NOWHERE);
    CHECK_EQUAL(cuMemRangeGetAttributes(data, sizes, which, 0, memory, BYTES),
                CUDA_ERROR_INVALID_VALUE);
    sizes[0] = 8;
    CHECK_EQUAL(cuMemRangeGetAttributes(data, sizes, which, 2, memory, BYTES),
                CUDA_ERROR_INVALID_VALUE);
    release();
}

static void wrongRangesAndPlacesAreRefused(void) {
    CUdeviceptr plain = 0;
    int value = 0;
    allocate();
    CHECK_OK(cuMemAlloc_v2(&plain, PAGE));
    CHECK_EQUAL(cuMemAdvise(plain, PAGE, SET_READ_MOSTLY, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuMemRangeGetAttribute(&value, 4, READ_MOSTLY, plain, PAGE),
                CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuMemRangeGetAttribute(&value, 4, READ_MOSTLY, memory, BYTES + 1),
                CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuMemRangeGetAttribute(&value, 4, 9, memory, BYTES), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuMemRangeGetAttribute(&value, 3, ACCESSED_BY, memory, BYTES),
                CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuMemAdvise(memory, BYTES, 7, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuMemAdvise(memory, BYTES, SET_PREFERRED, 7), CUDA_ERROR_INVALID_DEVICE);
    CHECK_EQUAL(cuMemAdvise_v2(memory, BYTES, SET_ACCESSED_BY, (CUmemLocation){HOST_NUMA, 0}),
                CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuMemPrefetchAsync(memory, BYTES, 7, stream), CUDA_ERROR_INVALID_DEVICE);
    CHECK_EQUAL(cuMemPrefetchAsync_v2(memory, BYTES, (CUmemLocation){0, 0}, 0, stream),
                CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(cuMemFree_v2(plain));
    release();
}

static void memoryIsAttachedAsAWhole(void) {
    CUgraph graph = NULL;
    allocate();
    CHECK_OK(cuStreamAttachMemAsync(stream, memory, 0, 4));
    CHECK_OK(cuStreamAttachMemAsync(NULL, memory, BYTES, 1));
    CHECK_EQUAL(cuStreamAttachMemAsync(NULL, memory, 0, 4),
                CUDA_ERROR_INVALID_VALUE); /* no single stream */
    CHECK_EQUAL(cuStreamAttachMemAsync(stream, memory, BYTES / 2, 4), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuStreamAttachMemAsync(stream, memory, 0, 3), CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(cuStreamBeginCapture_v2(stream, 0));
    CHECK_EQUAL(cuStreamAttachMemAsync(stream, memory, 0, 4),
                CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK_EQUAL(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    release();
}

int main(void) {
    CUcontext context = NULL;
    CHECK_OK(cuInit(0));
    CHECK_OK(cuCtxCreate_v2(&context, 0, 0));
    CHECK_OK(cuStreamCreate(&stream, 0));
    newMemoryHasNoAdvice();
    adviceHoldsForItsPages();
    aPreferredLocationIsTheSameEverywhereOrNone();
    allAccessingDevicesAreListed();
    theLastPrefetchIsKnown();
    severalAttributesComeAtOnce();
    wrongRangesAndPlacesAreRefused();
    memoryIsAttachedAsAWhole();
    CHECK_OK(cuCtxDestroy_v2(context));
    return check_failures == 0 ? 0 : 1;
}
