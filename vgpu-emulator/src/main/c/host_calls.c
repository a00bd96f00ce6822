#include "host_calls.h"
#include "timeline.h"
bool emu_host_calls_take(CUstream stream, const emu_operation *operation, CUresult *result) {
    if (operation->kind != EMU_HOST) {
        return false;
    }
    emu_host_call host = operation->host;
    emu_timeline_wait(stream->context, emu_timeline_stream_end(stream->context, stream));
    pthread_mutex_unlock(&stream->context->lock);
    if (host.function != NULL) {
        host.function(host.data);
    } else {
        host.callback(host.handle, CUDA_SUCCESS, host.data);
    }
    pthread_mutex_lock(&stream->context->lock);
    *result = CUDA_SUCCESS;
    return true;
}
uint64_t emu_host_calls_before(CUstream stream) { (void)stream; return 0; }
void emu_host_calls_drain(CUstream stream) { (void)stream; }
void emu_host_calls_drain_all(CUcontext context) { (void)context; }
void emu_host_calls_drain_event(CUcontext context, CUevent event) { (void)context; (void)event; }
