/*
 * The legacy stream. What is put into it follows all earlier work of the blocking streams of its context, and all their
 * later work follows it (CUDA Runtime API, stream synchronization behavior). The hook's event there is harmless as part
 * of a call that puts work into the legacy stream: that work does the same. Later it may not be: a blocking stream may
 * wait for another one meanwhile, which would then wait for the event. So a batch that is closed later has no end event
 * if a blocking stream was used since it was opened.
 *
 * While a blocking stream is being captured, the legacy stream must not even be queried: the capture would fail (CUDA
 * programming guide, prohibited and unhandled operations).
 */
#include "lane.h"

enum { NON_BLOCKING = 1 };
static const uint64_t UNKNOWN_NS = 1000u * (uint64_t)NS_PER_MS;

int vgpu__is_legacy(CUstream stream) { return stream == NULL || stream == ABI_STREAM_LEGACY; }

/*
 * A stream that is being captured counts as blocking, since cuStreamGetFlags would end the capture. The header does not
 * say so: driver 580.159 answers with CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (./vgpu gpu-check, calls.capture_ended_by).
 */
int vgpu__is_blocking(CUstream stream) {
  unsigned flags = 0;
  if (vgpu__is_special(stream)) return !vgpu__is_legacy(stream);
  if (vgpu__is_capturing(stream)) return 1;
  return REAL(cuStreamGetFlags)(stream, &flags) != ABI_SUCCESS || (flags & NON_BLOCKING) == 0;
}

void vgpu__blocking_used(struct vgpu_context *context) { STORE(context->blocking_ns, vgpu__now_ns()); }

struct vgpu_context *vgpu__blocking_ordered(CUstream stream) {
  if (!vgpu__is_blocking(stream)) return NULL;
  struct vgpu_context *context = vgpu__context_for(stream);
  if (context != NULL) vgpu__blocking_used(context);
  return context;
}

/* Work that joins an open batch leaves no time of its own. */
static int vgpu__blocking_works(const struct vgpu_context *context) {
  const struct vgpu_lane *lane;
  for (unsigned i = 0; (lane = vgpu__lane_at(i)) != NULL; i++) {
    if (LOAD_ACQUIRE(lane->state) == LANE_LIVE && lane->context == context && LOAD(lane->blocking) &&
        (vgpu__lane_ticket(lane) & 1) != 0) {
      return 1;
    }
  }
  return 0;
}

abi_result vgpu__query_stream(const struct vgpu_lane *lane, uint64_t since) {
  int may = lane->state == LANE_LIVE && !vgpu__holds_others_up(lane, since) && !vgpu__is_capturing(lane->stream);
  if (may) return REAL(cuStreamQuery)(lane->stream);
  return vgpu__now_ns() - since < UNKNOWN_NS ? ABI_NOT_READY : ABI_SUCCESS;
}

int vgpu__holds_others_up(const struct vgpu_lane *lane, uint64_t since) {
  if (!vgpu__is_legacy(lane->stream)) return 0;
  uint64_t used_ns = LOAD(lane->context->blocking_ns);
  return used_ns != 0 && ((int64_t)(used_ns - since) >= 0 || vgpu__blocking_works(lane->context));
}
