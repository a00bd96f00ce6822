/* Compiled, not run: compares cuda_abi.h with the real cuda.h, where installed. */
#include <cuda.h>

#include "../../main/c/region/cuda_abi.h"

#define SAME(ours, theirs) _Static_assert((long long)(ours) == (long long)(theirs), #ours)
#define AT(ours, field, theirs, their_field)                                                       \
  _Static_assert(offsetof(struct ours, field) == offsetof(theirs, their_field), #ours "." #field); \
  _Static_assert(sizeof(((struct ours *)0)->field) == sizeof(((theirs *)0)->their_field), #ours "." #field)

SAME(sizeof(abi_result), sizeof(CUresult));
SAME(sizeof(int), sizeof(CUstreamCaptureMode));
SAME(sizeof(int), sizeof(CUstreamCaptureStatus));
SAME(sizeof(int), sizeof(CUdriverProcAddressQueryResult));
SAME(sizeof(uint64_t), sizeof(CUmemGenericAllocationHandle));
SAME(sizeof(uint64_t), sizeof(CUmemLocation)); /* passed by value, in one register */
SAME(ABI_SUCCESS, CUDA_SUCCESS);
SAME(ABI_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE);
SAME(ABI_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
SAME(ABI_NOT_INITIALIZED, CUDA_ERROR_NOT_INITIALIZED);
SAME(ABI_NO_DEVICE, CUDA_ERROR_NO_DEVICE);
SAME(ABI_INVALID_CONTEXT, CUDA_ERROR_INVALID_CONTEXT);
SAME(ABI_NOT_FOUND, CUDA_ERROR_NOT_FOUND);
SAME(ABI_NOT_READY, CUDA_ERROR_NOT_READY);
SAME(ABI_CONTEXT_IS_DESTROYED, CUDA_ERROR_CONTEXT_IS_DESTROYED);
SAME(ABI_NOT_PERMITTED, CUDA_ERROR_NOT_PERMITTED);
SAME(ABI_NOT_SUPPORTED, CUDA_ERROR_NOT_SUPPORTED);
SAME(ABI_SYSTEM_NOT_READY, CUDA_ERROR_SYSTEM_NOT_READY);
SAME(ABI_CAPTURE_NONE, CU_STREAM_CAPTURE_STATUS_NONE);
SAME(ABI_CAPTURE_MODE_RELAXED, CU_STREAM_CAPTURE_MODE_RELAXED);
SAME(ABI_PROC_PER_THREAD_STREAM, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
SAME(ABI_PROC_FOUND, CU_GET_PROC_ADDRESS_SUCCESS);
SAME(ABI_LOCATION_NONE, CU_MEM_LOCATION_TYPE_INVALID);
SAME(ABI_LOCATION_DEVICE, CU_MEM_LOCATION_TYPE_DEVICE);
#if CUDA_VERSION >= 12030
SAME(ABI_LOCATION_HOST, CU_MEM_LOCATION_TYPE_HOST);
SAME(ABI_LOCATION_HOST_NUMA, CU_MEM_LOCATION_TYPE_HOST_NUMA);
SAME(ABI_LOCATION_HOST_NUMA_CURRENT, CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT);
#endif
#if CUDA_VERSION >= 13000
SAME(ABI_ALLOCATION_MANAGED, CU_MEM_ALLOCATION_TYPE_MANAGED);
#endif
SAME(ABI_ARRAY3D_LAYERED, CUDA_ARRAY3D_LAYERED);
SAME(ABI_ARRAY3D_SPARSE, CUDA_ARRAY3D_SPARSE);
SAME(ABI_ARRAY3D_DEFERRED, CUDA_ARRAY3D_DEFERRED_MAPPING);
SAME((uintptr_t)ABI_STREAM_LEGACY, (uintptr_t)CU_STREAM_LEGACY);
SAME((uintptr_t)ABI_STREAM_PER_THREAD, (uintptr_t)CU_STREAM_PER_THREAD);

SAME(sizeof(struct abi_array), sizeof(CUDA_ARRAY_DESCRIPTOR));
AT(abi_array, width, CUDA_ARRAY_DESCRIPTOR, Width);
AT(abi_array, height, CUDA_ARRAY_DESCRIPTOR, Height);
AT(abi_array, format, CUDA_ARRAY_DESCRIPTOR, Format);
AT(abi_array, channels, CUDA_ARRAY_DESCRIPTOR, NumChannels);
SAME(sizeof(struct abi_array3d), sizeof(CUDA_ARRAY3D_DESCRIPTOR));
AT(abi_array3d, width, CUDA_ARRAY3D_DESCRIPTOR, Width);
AT(abi_array3d, height, CUDA_ARRAY3D_DESCRIPTOR, Height);
AT(abi_array3d, depth, CUDA_ARRAY3D_DESCRIPTOR, Depth);
AT(abi_array3d, format, CUDA_ARRAY3D_DESCRIPTOR, Format);
AT(abi_array3d, channels, CUDA_ARRAY3D_DESCRIPTOR, NumChannels);
AT(abi_array3d, flags, CUDA_ARRAY3D_DESCRIPTOR, Flags);
AT(abi_mem_prop, type, CUmemAllocationProp, type);
AT(abi_mem_prop, handle_types, CUmemAllocationProp, requestedHandleTypes);
#if CUDA_VERSION >= 12000
SAME(ABI_INSTANTIATE_UPLOAD, CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD);
SAME(ABI_INSTANTIATE_ERROR, CUDA_GRAPH_INSTANTIATE_ERROR);
SAME(sizeof(struct abi_instantiate), sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS));
AT(abi_instantiate, flags, CUDA_GRAPH_INSTANTIATE_PARAMS, flags);
AT(abi_instantiate, stream, CUDA_GRAPH_INSTANTIATE_PARAMS, hUploadStream);
AT(abi_instantiate, error_node, CUDA_GRAPH_INSTANTIATE_PARAMS, hErrNode_out);
AT(abi_instantiate, result, CUDA_GRAPH_INSTANTIATE_PARAMS, result_out);
#endif
AT(abi_location, type, CUmemLocation, type);
AT(abi_location, id, CUmemLocation, id);
AT(abi_mem_prop, location, CUmemAllocationProp, location);
AT(abi_pool_props, type, CUmemPoolProps, allocType);
AT(abi_pool_props, location, CUmemPoolProps, location);
AT(abi_mem_alloc_node, access, CUDA_MEM_ALLOC_NODE_PARAMS, accessDescs);
AT(abi_mem_alloc_node, bytes, CUDA_MEM_ALLOC_NODE_PARAMS, bytesize);
AT(abi_mem_alloc_node, address, CUDA_MEM_ALLOC_NODE_PARAMS, dptr);
_Static_assert(sizeof(struct abi_mem_alloc_node) >= sizeof(CUDA_MEM_ALLOC_NODE_PARAMS), "room");
SAME(5, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
SAME(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT);
SAME(2, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT);
SAME(4, CU_GRAPH_NODE_TYPE_GRAPH);
SAME(10, CU_GRAPH_NODE_TYPE_MEM_ALLOC);
AT(abi_launch_config, gx, CUlaunchConfig, gridDimX);
AT(abi_launch_config, bz, CUlaunchConfig, blockDimZ);
AT(abi_launch_config, shared_bytes, CUlaunchConfig, sharedMemBytes);
AT(abi_launch_config, stream, CUlaunchConfig, hStream);
#if CUDA_VERSION >= 12080
SAME(ABI_OPERAND_POINTER, CU_MEMCPY_OPERAND_TYPE_POINTER);
SAME(sizeof(struct abi_operand), sizeof(CUmemcpy3DOperand));
AT(abi_operand, type, CUmemcpy3DOperand, type);
AT(abi_operand, pointer, CUmemcpy3DOperand, op.ptr.ptr);
SAME(sizeof(struct abi_batch_3d), sizeof(CUDA_MEMCPY3D_BATCH_OP));
AT(abi_batch_3d, source, CUDA_MEMCPY3D_BATCH_OP, src);
AT(abi_batch_3d, target, CUDA_MEMCPY3D_BATCH_OP, dst);
#endif
SAME(sizeof(struct abi_launch_params), sizeof(CUDA_LAUNCH_PARAMS));
AT(abi_launch_params, function, CUDA_LAUNCH_PARAMS, function);
AT(abi_launch_params, stream, CUDA_LAUNCH_PARAMS, hStream);
AT(abi_launch_params, params, CUDA_LAUNCH_PARAMS, kernelParams);
