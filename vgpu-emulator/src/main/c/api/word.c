/*
 * Stream memory operations: a stream writes a word in memory, or waits for one. A write happens when the stream reaches
 * it. A wait holds back the rest of the stream until the word has the value, whoever writes it.
 */
#include "driver/driver.h"
#include "driver/memory.h"
#include "driver/operation.h"

enum { MOST_OPERATIONS = 256 };

static CUresult submit(CUstream stream, emu_operation_kind kind, uint32_t bytes,
                       CUdeviceptr address, uint64_t value, unsigned int flags) {
    unsigned int test = flags & ~(unsigned int)CU_STREAM_WAIT_VALUE_FLUSH;
    EMU_REQUIRE(address != 0 && address % bytes == 0);
    EMU_REQUIRE(kind == EMU_WRITE_VALUE ? flags <= 1 : test <= CU_STREAM_WAIT_VALUE_NOR);
    emu_allocation found;
    if (emu_memory_find(address, &found) && !emu_memory_writable(address, bytes)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    emu_operation operation = {
        .kind = kind,
        .word = {.address = address,
                 .value = bytes == 8 ? value : (uint32_t)value,
                 .bytes = bytes,
                 .test = test},
    };
    return emu_enqueue(stream, &operation);
}

static CUresult submit_one(CUstream handle, emu_operation_kind kind, uint32_t bytes,
                           CUdeviceptr address, uint64_t value, unsigned int flags,
                           bool per_thread) {
    EMU_CONTEXT(context);
    CUstream stream = NULL;
    CUresult result = emu_stream_of(context, handle, per_thread, &stream);
    return result == CUDA_SUCCESS ? submit(stream, kind, bytes, address, value, flags) : result;
}

static CUresult check_one(const CUstreamBatchMemOpParams *one) {
    EMU_REQUIRE(one->operation >= CU_STREAM_MEM_OP_WAIT_VALUE_32 &&
                one->operation <= CU_STREAM_MEM_OP_BARRIER);
    return CUDA_SUCCESS;
}

static CUresult submit_batch(CUstream handle, unsigned int count,
                             const CUstreamBatchMemOpParams *list, unsigned int flags,
                             bool per_thread) {
    EMU_CONTEXT(context);
    EMU_REQUIRE(list != NULL && count <= MOST_OPERATIONS && flags == 0);
    CUstream stream = NULL;
    CUresult result = emu_stream_of(context, handle, per_thread, &stream);
    for (unsigned int i = 0; result == CUDA_SUCCESS && i < count; i++) {
        result = check_one(&list[i]);
    }
    for (unsigned int i = 0; result == CUDA_SUCCESS && i < count; i++) {
        const CUstreamBatchMemOpParams *one = &list[i];
        bool wide = one->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64 ||
                    one->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
        if (one->operation == CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES ||
            one->operation == CU_STREAM_MEM_OP_BARRIER) {
            continue; /* every write is visible at once here */
        }
        bool waits = one->operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 ||
                     one->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
        result = submit(stream, waits ? EMU_WAIT_VALUE : EMU_WRITE_VALUE, wide ? 8 : 4,
                        one->address, one->value, one->flags);
    }
    return result;
}

/* Four forms of each. Older and newer forms differ only in what they require of a device. */
#define WORD(name, kind, type) \
    EMU_API CUresult name(CUstream stream, CUdeviceptr address, type value, unsigned int flags) { \
        return submit_one(stream, kind, sizeof(type), address, value, flags, false); \
    } \
    EMU_API CUresult name##_ptsz(CUstream stream, CUdeviceptr address, type value, \
                                 unsigned int flags) { \
        return submit_one(stream, kind, sizeof(type), address, value, flags, true); \
    } \
    EMU_API CUresult name##_v2(CUstream stream, CUdeviceptr address, type value, \
                               unsigned int flags) { \
        return submit_one(stream, kind, sizeof(type), address, value, flags, false); \
    } \
    EMU_API CUresult name##_v2_ptsz(CUstream stream, CUdeviceptr address, type value, \
                                    unsigned int flags) { \
        return submit_one(stream, kind, sizeof(type), address, value, flags, true); \
    }

WORD(cuStreamWaitValue32, EMU_WAIT_VALUE, uint32_t)
WORD(cuStreamWaitValue64, EMU_WAIT_VALUE, uint64_t)
WORD(cuStreamWriteValue32, EMU_WRITE_VALUE, uint32_t)
WORD(cuStreamWriteValue64, EMU_WRITE_VALUE, uint64_t)

#define BATCH(name, per_thread) \
    EMU_API CUresult name(CUstream stream, unsigned int count, CUstreamBatchMemOpParams *list, \
                          unsigned int flags) { \
        return submit_batch(stream, count, list, flags, per_thread); \
    }

BATCH(cuStreamBatchMemOp, false)
BATCH(cuStreamBatchMemOp_ptsz, true)
BATCH(cuStreamBatchMemOp_v2, false)
BATCH(cuStreamBatchMemOp_v2_ptsz, true)
