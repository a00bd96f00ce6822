/* Calls that wait: they close the open batches before, and harvest them after. Also ends of streams, and captures. */
#include "../lane/lane.h"

static CUstream vgpu__own(CUstream stream) { return stream == NULL ? ABI_STREAM_PER_THREAD : stream; }

#define WAIT_FOR_STREAM(name, which)                               \
  abi_result name(CUstream stream) {                               \
    uint64_t since = vgpu__wait_stream(which);                     \
    abi_result result = REAL(name)(stream);                        \
    vgpu__waited_stream(which, result == ABI_SUCCESS ? since : 0); \
    vgpu__pools_settle();                                          \
    return result;                                                 \
  }

WAIT_FOR_STREAM(cuStreamSynchronize, stream)
WAIT_FOR_STREAM(cuStreamSynchronize_ptsz, vgpu__own(stream))

abi_result cuCtxSynchronize(void) {
  CUcontext context = NULL;
  REAL(cuCtxGetCurrent)(&context);
  uint64_t since = context == NULL ? 0 : vgpu__wait_context(context);
  abi_result result = REAL(cuCtxSynchronize)();
  if (context != NULL) vgpu__waited_context(context, result == ABI_SUCCESS ? since : 0);
  vgpu__pools_settle();
  return result;
}

abi_result cuCtxSynchronize_v2(CUcontext context) {
  /* the program calls it as the older form, without an argument: driver.c */
  if (vgpu__driver_symbol("cuCtxSynchronize_v2") == NULL) return cuCtxSynchronize();
  uint64_t since = context == NULL ? 0 : vgpu__wait_context(context);
  abi_result result = REAL(cuCtxSynchronize_v2)(context);
  if (context != NULL) vgpu__waited_context(context, result == ABI_SUCCESS ? since : 0);
  vgpu__pools_settle();
  return result;
}

abi_result cuEventSynchronize(CUevent event) {
  vgpu__close_thread();
  abi_result result = REAL(cuEventSynchronize)(event);
  vgpu__harvest_thread();
  vgpu__pools_settle();
  return result;
}

/* Polling is a wait too. */
abi_result cuEventQuery(CUevent event) {
  vgpu__close_thread();
  return REAL(cuEventQuery)(event);
}

abi_result cuStreamQuery(CUstream stream) {
  vgpu__close_thread();
  return REAL(cuStreamQuery)(stream);
}

abi_result cuStreamQuery_ptsz(CUstream stream) {
  vgpu__close_thread();
  return REAL(cuStreamQuery_ptsz)(stream);
}

abi_result cuStreamDestroy(CUstream stream) {
  vgpu__drop_stream(stream);
  return REAL(cuStreamDestroy)(stream);
}

abi_result cuStreamDestroy_v2(CUstream stream) {
  vgpu__drop_stream(stream);
  return REAL(cuStreamDestroy_v2)(stream);
}

/* Closes the open batch first: no batch can end in a stream that is being captured. */
#define BEGIN_CAPTURE(which, call) \
  vgpu__capture_stream(which);     \
  return call

abi_result cuStreamBeginCapture(CUstream stream) { BEGIN_CAPTURE(stream, REAL(cuStreamBeginCapture)(stream)); }

abi_result cuStreamBeginCapture_ptsz(CUstream stream) {
  BEGIN_CAPTURE(vgpu__own(stream), REAL(cuStreamBeginCapture_ptsz)(stream));
}

abi_result cuStreamBeginCapture_v2(CUstream stream, int mode) {
  BEGIN_CAPTURE(stream, REAL(cuStreamBeginCapture_v2)(stream, mode));
}

abi_result cuStreamBeginCapture_v2_ptsz(CUstream stream, int mode) {
  BEGIN_CAPTURE(vgpu__own(stream), REAL(cuStreamBeginCapture_v2_ptsz)(stream, mode));
}

abi_result cuStreamBeginCaptureToGraph(CUstream stream, void *graph, const void *nodes, const void *edges,
                                       size_t node_count, int mode) {
  BEGIN_CAPTURE(stream, REAL(cuStreamBeginCaptureToGraph)(stream, graph, nodes, edges, node_count, mode));
}

abi_result cuStreamBeginCaptureToGraph_ptsz(CUstream stream, void *graph, const void *nodes, const void *edges,
                                            size_t node_count, int mode) {
  BEGIN_CAPTURE(vgpu__own(stream),
                REAL(cuStreamBeginCaptureToGraph_ptsz)(stream, graph, nodes, edges, node_count, mode));
}

abi_result cuStreamBeginCaptureToCig(CUstream stream, void *params) {
  BEGIN_CAPTURE(stream, REAL(cuStreamBeginCaptureToCig)(stream, params));
}

abi_result cuStreamBeginCaptureToCig_ptsz(CUstream stream, void *params) {
  BEGIN_CAPTURE(vgpu__own(stream), REAL(cuStreamBeginCaptureToCig_ptsz)(stream, params));
}

abi_result cuStreamBeginRecaptureToGraph(CUstream stream, int mode, void *graph, void *callback, void *data) {
  BEGIN_CAPTURE(stream, REAL(cuStreamBeginRecaptureToGraph)(stream, mode, graph, callback, data));
}

abi_result cuStreamBeginRecaptureToGraph_ptsz(CUstream stream, int mode, void *graph, void *callback, void *data) {
  BEGIN_CAPTURE(vgpu__own(stream), REAL(cuStreamBeginRecaptureToGraph_ptsz)(stream, mode, graph, callback, data));
}
