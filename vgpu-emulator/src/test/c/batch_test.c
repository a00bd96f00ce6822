/* Copies with attributes, single and in batches. */
#include "base/copy_abi.h"
#include "check.h"
#include "cuda_api.h"

#include <string.h>

CUresult cuMemcpyBatchAsync(CUdeviceptr *targets, CUdeviceptr *sources, size_t *sizes, size_t count,
                            CUmemcpyAttributes *attributes, size_t *firsts, size_t attribute_count,
                            size_t *failed, CUstream stream);
CUresult cuMemcpyBatchAsync_v2(CUdeviceptr *targets, CUdeviceptr *sources, size_t *sizes,
                               size_t count, CUmemcpyAttributes *attributes, size_t *firsts,
                               size_t attribute_count, CUstream stream);
CUresult cuMemcpyBatchAsync_v2_ptsz(CUdeviceptr *targets, CUdeviceptr *sources, size_t *sizes,
                                    size_t count, CUmemcpyAttributes *attributes, size_t *firsts,
                                    size_t attribute_count, CUstream stream);
CUresult cuMemcpy3DBatchAsync(size_t count, CUDA_MEMCPY3D_BATCH_OP *ops, size_t *failed,
                              unsigned long long flags, CUstream stream);
CUresult cuMemcpy3DBatchAsync_v2(size_t count, CUDA_MEMCPY3D_BATCH_OP *ops,
                                 unsigned long long flags, CUstream stream);
CUresult cuMemcpyWithAttributesAsync(CUdeviceptr target, CUdeviceptr source, size_t bytes,
                                     CUmemcpyAttributes *attributes, CUstream stream);

enum { N = 64, STREAM = 1, DURING_CALL = 2 };

static CUstream stream;
static CUdeviceptr memory;

static CUdeviceptr at(const void *host) {
    return (CUdeviceptr)(uintptr_t)host;
}

static uint32_t word(size_t index) {
    uint32_t value = 0;
    CHECK_OK(cuMemcpyDtoH_v2(&value, memory + 4 * index, sizeof value));
    return value;
}

static void aBatchMovesAllItsCopies(void) {
    uint32_t from[2] = {1, 2};
    uint32_t to = 0;
    CUdeviceptr targets[] = {memory, memory + 4, at(&to)};
    CUdeviceptr sources[] = {at(&from[0]), at(&from[1]), memory + 8};
    size_t sizes[] = {4, 4, 4};
    CUmemcpyAttributes attributes[] = {{.order = STREAM}, {.order = 3, .flags = 1}};
    size_t firsts[] = {0, 2};
    size_t failed = 0;
    CHECK_OK(cuMemsetD32_v2(memory, 7, N));
    CHECK_OK(
        cuMemcpyBatchAsync(targets, sources, sizes, 3, attributes, firsts, 2, &failed, stream));
    CHECK_OK(cuStreamSynchronize(stream));
    CHECK_EQUAL(word(0), 1);
    CHECK_EQUAL(word(1), 2);
    CHECK_EQUAL(to, 7);
    from[0] = 5;
    CHECK_OK(cuMemcpyBatchAsync_v2(targets, sources, sizes, 3, attributes, firsts, 2, stream));
    CHECK_OK(cuStreamSynchronize(stream));
    CHECK_EQUAL(word(0), 5);
    from[0] = 6;
    CHECK_OK(cuMemcpyBatchAsync_v2_ptsz(targets, sources, sizes, 3, attributes, firsts, 2, NULL));
    CHECK_OK(cuCtxSynchronize());
    CHECK_EQUAL(word(0), 6);
}

static void aBatchWithAWrongCopyMovesNothing(void) {
    uint32_t from[2] = {11, 12};
    CUdeviceptr targets[] = {memory, memory + 4 * N};
    CUdeviceptr sources[] = {at(&from[0]), at(&from[1])};
    size_t sizes[] = {4, 4};
    CUmemcpyAttributes attributes = {.order = STREAM};
    size_t first = 0;
    size_t failed = 0;
    CHECK_OK(cuMemsetD32_v2(memory, 7, N));
    sizes[0] = 4 * N + 4; /* more than the allocation */
    CHECK_EQUAL(cuMemcpyBatchAsync(targets, sources, sizes, 1, &attributes, &first, 1, &failed,
                                   stream),
                CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(failed, 0);
    sizes[0] = 4;
    targets[1] = 0;
    CHECK_EQUAL(cuMemcpyBatchAsync(targets, sources, sizes, 2, &attributes, &first, 1, &failed,
                                   stream),
                CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(failed, 1);
    CHECK_OK(cuStreamSynchronize(stream));
    CHECK_EQUAL(word(0), 7); /* not even the first one */
}

static void aBatchNeedsAttributesAndAStream(void) {
    uint32_t from = 1;
    CUdeviceptr targets[] = {memory, memory + 4};
    CUdeviceptr sources[] = {at(&from), at(&from)};
    size_t sizes[] = {4, 4};
    CUmemcpyAttributes attributes[] = {{.order = STREAM}, {.order = STREAM}};
    size_t firsts[] = {0, 1};
    size_t failed = 0;
#define FAILS(count, list, list_count, queue) \
    failed = 0; \
    CHECK_EQUAL(cuMemcpyBatchAsync(targets, sources, sizes, count, attributes, list, list_count, \
                                   &failed, queue), \
                CUDA_ERROR_INVALID_VALUE); \
    CHECK(failed == SIZE_MAX)
    FAILS(0, firsts, 1, stream);
    FAILS(2, firsts, 0, stream);
    FAILS(2, NULL, 1, stream);
    FAILS(1, firsts, 2, stream);
    FAILS(2, firsts, 2, NULL);
    FAILS(2, firsts, 2, CU_STREAM_LEGACY);
    size_t late[] = {1};
    size_t twice[] = {0, 0};
    size_t beyond[] = {0, 2};
    FAILS(2, late, 1, stream);
    FAILS(2, twice, 2, stream);
    FAILS(2, beyond, 2, stream);
    attributes[1].order = 0;
    CHECK_EQUAL(cuMemcpyBatchAsync(targets, sources, sizes, 2, attributes, firsts, 2, &failed,
                                   stream),
                CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(failed, 1);
    attributes[0].flags = 2;
    CHECK_EQUAL(cuMemcpyBatchAsync_v2(targets, sources, sizes, 2, attributes, firsts, 1, stream),
                CUDA_ERROR_INVALID_VALUE);
}

static void awaitOne(void *flag) {
    while (__atomic_load_n((int *)flag, __ATOMIC_ACQUIRE) == 0) {
        usleep(100);
    }
}

/* The order in the stream holds, unless the program says that the source is read during the call. */
static void aBatchWaitsForItsStream(void) {
    uint32_t in_order = 1;
    uint32_t at_once = 1;
    int flag = 0;
    CUdeviceptr targets[] = {memory, memory + 4};
    CUdeviceptr sources[] = {at(&in_order), at(&at_once)};
    size_t sizes[] = {4, 4};
    CUmemcpyAttributes attributes[] = {{.order = STREAM}, {.order = DURING_CALL}};
    size_t firsts[] = {0, 1};
    CHECK_OK(cuLaunchHostFunc(stream, awaitOne, &flag));
    CHECK_OK(cuMemcpyBatchAsync_v2(targets, sources, sizes, 2, attributes, firsts, 2, stream));
    in_order = 2;
    at_once = 2;
    CHECK_EQUAL(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    __atomic_store_n(&flag, 1, __ATOMIC_RELEASE);
    CHECK_OK(cuStreamSynchronize(stream));
    CHECK_EQUAL(word(0), 2);
    CHECK_EQUAL(word(1), 1);
}

static void aBatchIsCaptured(void) {
    uint32_t from = 1;
    CUdeviceptr target = memory;
    CUdeviceptr source = at(&from);
    size_t size = 4;
    size_t first = 0;
    size_t nodes = 0;
    CUmemcpyAttributes attributes = {.order = STREAM};
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    CHECK_OK(cuStreamBeginCapture_v2(stream, 0));
    CHECK_OK(cuMemcpyBatchAsync_v2(&target, &source, &size, 1, &attributes, &first, 1, stream));
    attributes.order = DURING_CALL;
    CHECK_EQUAL(cuMemcpyBatchAsync_v2(&target, &source, &size, 1, &attributes, &first, 1, stream),
                CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK_OK(cuStreamEndCapture(stream, &graph));
    CHECK_OK(cuGraphGetNodes(graph, NULL, &nodes));
    CHECK_EQUAL(nodes, 1);
    CHECK_OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    from = 9;
    CHECK_OK(cuGraphLaunch(exec, stream));
    CHECK_OK(cuStreamSynchronize(stream));
    CHECK_EQUAL(word(0), 9);
    CHECK_OK(cuGraphExecDestroy(exec));
    CHECK_OK(cuGraphDestroy(graph));
}

static CUmemcpy3DOperand linear(CUdeviceptr address, size_t row, size_t layer) {
    return (CUmemcpy3DOperand){
        .type = CU_MEMCPY_OPERAND_TYPE_POINTER,
        .pointer = {.address = address, .row_length = row, .layer_height = layer}};
}

/* Lengths are in elements of the array, and in bytes between pointers. */
static void boxesGoThroughArrays(void) {
    float from[2][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}};
    float to[2] = {0};
    CUarray array = NULL;
    CUDA_ARRAY_DESCRIPTOR shape = {.width = 4, .height = 4, .format = 0x20, .channels = 1};
    CHECK_OK(cuArrayCreate_v2(&array, &shape));
    CUmemcpy3DOperand inside = {.type = CU_MEMCPY_OPERAND_TYPE_ARRAY,
                                .array = {.array = array, .x = 1, .y = 2}};
    CUDA_MEMCPY3D_BATCH_OP in = {.source = linear(at(from), 4, 0),
                                 .target = inside,
                                 .width = 3,
                                 .height = 2,
                                 .depth = 1,
                                 .order = STREAM};
    CUDA_MEMCPY3D_BATCH_OP out = {.source = inside,
                                  .target = linear(at(to), 0, 0),
                                  .width = 2,
                                  .height = 1,
                                  .depth = 1,
                                  .order = STREAM};
    size_t failed = 0;
    CHECK_OK(cuMemcpy3DBatchAsync(1, &in, &failed, 0, stream));
    CHECK_OK(cuMemcpy3DBatchAsync_v2(1, &out, 0, stream));
    CHECK_OK(cuStreamSynchronize(stream));
    CHECK(to[0] == 1.0f && to[1] == 2.0f);
    out.source.array.y = 3;
    CUDA_MEMCPY3D_BATCH_OP both[] = {out, in};
    both[1].width = 4; /* beyond the array's row */
    CHECK_EQUAL(cuMemcpy3DBatchAsync(2, both, &failed, 0, stream), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(failed, 1);
    both[1] = in;
    both[1].source.pointer.row_length = 2; /* less than the width */
    CHECK_EQUAL(cuMemcpy3DBatchAsync(2, both, &failed, 0, stream), CUDA_ERROR_INVALID_VALUE);
    both[1] = in;
    both[1].depth = 0;
    CHECK_EQUAL(cuMemcpy3DBatchAsync_v2(2, both, 0, stream), CUDA_ERROR_INVALID_VALUE);
    both[1].depth = 1;
    CHECK_EQUAL(cuMemcpy3DBatchAsync_v2(2, both, 1, stream), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuMemcpy3DBatchAsync_v2(2, both, 0, NULL), CUDA_ERROR_INVALID_VALUE);
    CHECK(to[0] == 1.0f);
    CHECK_OK(cuMemcpy3DBatchAsync_v2(2, both, 0, stream));
    CHECK_OK(cuStreamSynchronize(stream));
    CHECK(to[0] == 5.0f && to[1] == 6.0f);
    CHECK_OK(cuArrayDestroy(array));
}

static void aCopyHasAttributes(void) {
    uint32_t from = 21;
    CUmemcpyAttributes attributes = {.order = STREAM};
    CHECK_OK(cuMemcpyWithAttributesAsync(memory, at(&from), 4, &attributes, stream));
    CHECK_OK(cuStreamSynchronize(stream));
    CHECK_EQUAL(word(0), 21);
    attributes.order = 4;
    CHECK_EQUAL(cuMemcpyWithAttributesAsync(memory, at(&from), 4, &attributes, stream),
                CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuMemcpyWithAttributesAsync(memory, at(&from), 4, NULL, stream),
                CUDA_ERROR_INVALID_VALUE);
}

/* A program gets the form of the CUDA version that it was built for. */
static void theVersionChoosesTheForm(void) {
    void *old = NULL;
    void *new = NULL;
    int status = 0;
    CHECK_OK(cuGetProcAddress_v2("cuMemcpyBatchAsync", &old, 12080, 0, &status));
    CHECK_OK(cuGetProcAddress_v2("cuMemcpyBatchAsync", &new, 13000, 0, &status));
    CHECK(old != NULL && new != NULL &&old != new);
    CHECK(cuGetProcAddress_v2("cuMemcpyBatchAsync", &old, 12070, 0, &status) != CUDA_SUCCESS ||
          old == NULL);
}

int main(void) {
    CUcontext context = NULL;
    CHECK_OK(cuInit(0));
    CHECK_OK(cuCtxCreate_v2(&context, 0, 0));
    CHECK_OK(cuStreamCreate(&stream, 0));
    CHECK_OK(cuMemAlloc_v2(&memory, 4 * N));
    aBatchMovesAllItsCopies();
    aBatchWithAWrongCopyMovesNothing();
    aBatchNeedsAttributesAndAStream();
    aBatchWaitsForItsStream();
    aBatchIsCaptured();
    boxesGoThroughArrays();
    aCopyHasAttributes();
    theVersionChoosesTheForm();
    CHECK_OK(cuCtxDestroy_v2(context));
    return check_failures == 0 ? 0 : 1;
}
