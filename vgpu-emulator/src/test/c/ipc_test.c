/* Events shared between two processes. The other process is this program, started again. */
#include "check.h"
#include "cuda_api.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr address);
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *address, CUipcMemHandle handle, unsigned int flags);
CUresult cuIpcGetEventHandle(CUipcEventHandle *handle, CUevent event);
CUresult cuIpcOpenEventHandle(CUevent *event, CUipcEventHandle handle);
CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr address, uint32_t value,
                             unsigned int flags);

enum { SHARED = CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING, RELAXED = 2 };

typedef struct {
    CUipcMemHandle memory;
    CUipcEventHandle theirs; /* recorded by the first process; the other process waits for it */
    CUipcEventHandle ours;   /* recorded by the other process */
} parcel;

static void open_gpu(void) {
    CUcontext context = NULL;
    CHECK_OK(cuInit(0));
    CHECK_OK(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK_OK(cuCtxSetCurrent(context));
}

/* The first process's stream does not reach its record until this process writes a word. */
static int other(void) {
    parcel got;
    CUdeviceptr word = 0;
    CUevent theirs = NULL;
    CUevent ours = NULL;
    CUstream stream = NULL;
    float milliseconds = 0;
    CHECK_EQUAL(read(0, &got, sizeof got), sizeof got);
    open_gpu();
    CHECK_OK(cuStreamCreate(&stream, 1));
    CHECK_OK(cuIpcOpenMemHandle_v2(&word, got.memory, 1));
    CHECK_OK(cuIpcOpenEventHandle(&theirs, got.theirs));
    CHECK_OK(cuIpcOpenEventHandle(&ours, got.ours));
    CHECK_EQUAL(cuIpcOpenEventHandle(NULL, got.ours), CUDA_ERROR_INVALID_VALUE);
    CUipcEventHandle again;
    CHECK_EQUAL(cuIpcGetEventHandle(&again, theirs), CUDA_ERROR_INVALID_HANDLE);
    CHECK_OK(cuEventQuery(ours)); /* never recorded */
    CHECK_EQUAL(cuEventQuery(theirs), CUDA_ERROR_NOT_READY);
    CHECK_EQUAL(cuEventElapsedTime(&milliseconds, ours, theirs), CUDA_ERROR_INVALID_HANDLE);
    CHECK_OK(cuStreamWaitEvent(stream, theirs, 0));
    CHECK_OK(cuEventRecord(ours, stream)); /* ordered after the wait */
    CHECK_EQUAL(cuEventQuery(ours), CUDA_ERROR_NOT_READY);
    CHECK_EQUAL(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    CHECK_OK(cuMemsetD8_v2(word, 1, 1));
    CHECK_OK(cuEventSynchronize(theirs));
    CHECK_OK(cuStreamSynchronize(stream));
    CHECK_OK(cuEventQuery(ours));
    CHECK_OK(cuEventDestroy_v2(ours));
    CHECK_OK(cuEventDestroy_v2(theirs));
    CHECK_EQUAL(cuEventQuery(theirs), CUDA_ERROR_INVALID_HANDLE);
    return check_failures == 0 ? 0 : 1;
}

static pid_t start_other(const parcel *sent) {
    int ends[2];
    CHECK_EQUAL(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[0], 0);
        execl("/proc/self/exe", "ipc_test", "other", (char *)NULL);
        _exit(127);
    }
    CHECK_EQUAL(write(ends[1], sent, sizeof *sent), sizeof *sent);
    close(ends[0]);
    close(ends[1]);
    return pid;
}

static void anEventOrdersTwoProcesses(void) {
    parcel sent;
    CUdeviceptr word = 0;
    CUevent theirs = NULL;
    CUevent ours = NULL;
    CUstream stream = NULL;
    CHECK_OK(cuMemAlloc_v2(&word, 4));
    CHECK_OK(cuMemsetD8_v2(word, 0, 4));
    CHECK_OK(cuStreamCreate(&stream, 1));
    CHECK_OK(cuEventCreate(&theirs, SHARED));
    CHECK_OK(cuEventCreate(&ours, SHARED));
    CHECK_OK(cuIpcGetMemHandle(&sent.memory, word));
    CHECK_OK(cuIpcGetEventHandle(&sent.theirs, theirs));
    CHECK_OK(cuIpcGetEventHandle(&sent.ours, ours));
    CHECK_OK(cuStreamWaitValue32(stream, word, 1, 0));
    CHECK_OK(cuEventRecord(theirs, stream));
    CHECK_EQUAL(cuEventQuery(theirs), CUDA_ERROR_NOT_READY);
    int status = -1;
    pid_t pid = start_other(&sent);
    CHECK_EQUAL(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK_OK(cuEventQuery(theirs));
    CHECK_OK(cuEventSynchronize(ours)); /* recorded by the other process, which has ended */
    CHECK_OK(cuEventDestroy_v2(theirs));
    CHECK_OK(cuEventDestroy_v2(ours));
    CHECK_OK(cuMemFree_v2(word));
}

static void eventHandlesAreChecked(void) {
    CUevent shared = NULL;
    CUevent plain = NULL;
    CUevent none = NULL;
    CUstream stream = NULL;
    CUgraph graph = NULL;
    CUipcEventHandle handle;
    CHECK_EQUAL(cuEventCreate(&none, CU_EVENT_INTERPROCESS),
                CUDA_ERROR_INVALID_VALUE); /* timing is not disabled */
    CHECK_OK(cuEventCreate(&shared, SHARED));
    CHECK_OK(cuEventCreate(&plain, CU_EVENT_DISABLE_TIMING));
    CHECK_EQUAL(cuIpcGetEventHandle(NULL, shared), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuIpcGetEventHandle(&handle, plain), CUDA_ERROR_INVALID_HANDLE);
    CHECK_EQUAL(cuIpcGetEventHandle(&handle, NULL), CUDA_ERROR_INVALID_HANDLE);
    CHECK_OK(cuIpcGetEventHandle(&handle, shared));
    CHECK_EQUAL(cuIpcOpenEventHandle(&none, handle),
                CUDA_ERROR_INVALID_CONTEXT); /* the process's own event */
    memset(&handle, 0x5a, sizeof handle);
    CHECK_EQUAL(cuIpcOpenEventHandle(&none, handle), CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(cuStreamCreate(&stream, 1));
    CHECK_OK(cuStreamBeginCapture_v2(stream, RELAXED));
    CHECK_EQUAL(cuEventRecord(shared, stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK_EQUAL(cuStreamWaitEvent(stream, shared, 0), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK_EQUAL(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CHECK_OK(cuEventDestroy_v2(shared));
    CHECK_OK(cuEventDestroy_v2(plain));
    for (int i = 0; i < 5000; i++) { /* more than can exist at once */
        CHECK_OK(cuEventCreate(&shared, SHARED));
        CHECK_OK(cuEventRecord(shared, NULL));
        CHECK_OK(cuEventDestroy_v2(shared));
    }
}

int main(int count, char **arguments) {
    if (count > 1) {
        (void)arguments;
        return other();
    }
    setenv("VGPU_EMULATOR", "memory=64MiB,context=8MiB", 1);
    open_gpu();
    eventHandlesAreChecked();
    anEventOrdersTwoProcesses();
    return check_failures == 0 ? 0 : 1;
}
