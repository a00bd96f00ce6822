/* What NVML reports of processes while they start, are killed, and are replaced by others in their slots. */
#include "check.h"
#include "cuda_api.h"
#include "base/nvml_abi.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)

#define TOLD(type, ...) nvmlReturn_t type(__VA_ARGS__);
TOLD(nvmlInit_v2, void)
TOLD(nvmlDeviceGetHandleByIndex_v2, unsigned int, nvmlDevice_t *)
TOLD(nvmlDeviceGetComputeRunningProcesses_v3, nvmlDevice_t, unsigned int *, nvmlProcessInfo_t *)

enum { ROUNDS = 150, MOST = 64 };
#define CONTEXT (64 * MIB)
#define HELD (200 * MIB)

static nvmlDevice_t gpu;

/* Starts a process with a context and that much memory. It reports when it has them, and stays. */
static pid_t start(uint64_t bytes, int *said) {
    int pipes[2];
    CHECK_EQUAL(pipe(pipes), 0);
    pid_t pid = fork();
    if (pid == 0) {
        CUcontext context = NULL;
        CUdeviceptr memory = 0;
        bool has = cuInit(0) == CUDA_SUCCESS && cuCtxCreate_v2(&context, 0, 0) == CUDA_SUCCESS &&
                   (bytes == 0 || cuMemAlloc_v2(&memory, bytes) == CUDA_SUCCESS);
        if (!has || write(pipes[1], "x", 1) != 1) {
            _exit(1);
        }
        for (;;) {
            pause();
        }
    }
    close(pipes[1]);
    *said = pipes[0];
    return pid;
}

static void end(pid_t pid, int said) {
    close(said);
    CHECK_EQUAL(kill(pid, SIGKILL), 0);
    CHECK_EQUAL(waitpid(pid, NULL, 0), pid);
}

/* The memory that NVML reports for a process. */
static uint64_t told(pid_t pid) {
    nvmlProcessInfo_t infos[MOST];
    unsigned int count = MOST;
    CHECK_OK(nvmlDeviceGetComputeRunningProcesses_v3(gpu, &count, infos));
    for (unsigned int i = 0; i < count; i++) {
        if (infos[i].pid == (unsigned int)pid) {
            return infos[i].usedGpuMemory;
        }
    }
    return 0;
}

/* Polls while a process starts: it must never appear with the memory of the dead process whose slot it takes. */
static void test_nobody_has_what_the_dead_had(void) {
    char c = 0;
    for (int i = 0; i < ROUNDS && check_failures == 0; i++) {
        int said = -1;
        pid_t holder = start(HELD, &said);
        CHECK_EQUAL(read(said, &c, 1), 1);
        CHECK_EQUAL(told(holder), CONTEXT + HELD);
        end(holder, said);
        pid_t next = start(0, &said);
        CHECK_EQUAL(fcntl(said, F_SETFL, O_NONBLOCK), 0);
        uint64_t most = 0;
        while (read(said, &c, 1) < 0) {
            uint64_t bytes = told(next);
            most = bytes > most ? bytes : most;
        }
        CHECK(most <= CONTEXT);
        CHECK_EQUAL(told(next), CONTEXT);
        end(next, said);
    }
}

int main(void) {
    CHECK_OK(nvmlInit_v2());
    CHECK_OK(nvmlDeviceGetHandleByIndex_v2(0, &gpu));
    test_nobody_has_what_the_dead_had();
    return check_failures > 0;
}
