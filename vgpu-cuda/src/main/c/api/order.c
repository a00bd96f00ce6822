/*
 * Calls that make a stream wait, signal, or call the host. They take no GPU time, so they close the open batch, and the
 * stream's wait is not charged. They are not held at a shut gate, since another stream, process or thread may wait for
 * them, and work behind them is held itself. After the lease's end they are refused, except waits between streams,
 * which start nothing.
 */
#include "../lane/lane.h"

static abi_result vgpu__ordering(CUstream stream, int thread, int starts) {
  if (!LOAD_ACQUIRE(vgpu__attached)) return ABI_SUCCESS;
  CUstream named = thread && stream == NULL ? ABI_STREAM_PER_THREAD : stream;
  int special = (uintptr_t)named <= (uintptr_t)ABI_STREAM_PER_THREAD;
  const struct vgpu_tenant *tenant = special || !vgpu__are_several() ? vgpu_tenant_current()
                                                                     : vgpu__stream_tenant(named);
  if (starts && (tenant == NULL || (LOAD_ACQUIRE(tenant->grant->word) & SHM_GRANT_REVOKED) != 0))
    return ABI_NOT_PERMITTED;
  vgpu__order_stream(named, starts);
  return ABI_SUCCESS;
}

#define ORDER(name, thread, starts, params, args)                \
  abi_result name params {                                       \
    abi_result refused = vgpu__ordering(stream, thread, starts); \
    return refused != ABI_SUCCESS ? refused : REAL(name) args;   \
  }
#define BOTH(name, starts, params, args) \
  ORDER(name, 0, starts, params, args)   \
  ORDER(name##_ptsz, 1, starts, params, args)
#define VALUE(name, type)                                                                                            \
  BOTH(name, 1, (CUstream stream, CUdeviceptr address, type value, unsigned flags), (stream, address, value, flags)) \
  BOTH(name##_v2, 1, (CUstream stream, CUdeviceptr address, type value, unsigned flags),                             \
       (stream, address, value, flags))
#define BATCH(name) \
  BOTH(name, 1, (CUstream stream, unsigned count, void *list, unsigned flags), (stream, count, list, flags))
#define SEMAPHORES(name) \
  BOTH(name, 1, (const void *list, const void *params, unsigned count, CUstream stream), (list, params, count, stream))

BOTH(cuStreamWaitEvent, 0, (CUstream stream, CUevent event, unsigned flags), (stream, event, flags))
BOTH(cuLaunchHostFunc, 1, (CUstream stream, void (*function)(void *), void *data), (stream, function, data))
BOTH(cuLaunchHostFunc_v2, 1, (CUstream stream, void (*function)(void *), void *data, unsigned mode),
     (stream, function, data, mode))
BOTH(cuStreamAddCallback, 1,
     (CUstream stream, void (*callback)(CUstream, abi_result, void *), void *data, unsigned flags),
     (stream, callback, data, flags))
VALUE(cuStreamWaitValue32, uint32_t)
VALUE(cuStreamWaitValue64, uint64_t)
VALUE(cuStreamWriteValue32, uint32_t)
VALUE(cuStreamWriteValue64, uint64_t)
BATCH(cuStreamBatchMemOp)
BATCH(cuStreamBatchMemOp_v2)
SEMAPHORES(cuSignalExternalSemaphoresAsync)
SEMAPHORES(cuWaitExternalSemaphoresAsync)
