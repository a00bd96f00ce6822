/* Helpers for tests with several processes. A process is this program again, started with a role. */
#ifndef EMU_PROCESSES_H
#define EMU_PROCESSES_H

#include "check.h"
#include "cuda_api.h"
#include "gpu/gpu.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)
#define MS UINT64_C(1000000)

static CUfunction spin;

static inline void open_gpu(void) {
    CUcontext context = NULL;
    CUmodule module = NULL;
    CHECK_OK(cuInit(0));
    CHECK_OK(cuCtxCreate_v2(&context, 0, 0));
    CHECK_OK(cuModuleLoadData(&module, test_ptx));
    CHECK_OK(cuModuleGetFunction(&spin, module, "vgpu_spin"));
}

static inline CUresult run(uint64_t ns) {
    return cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&ns}, NULL);
}

static inline size_t free_bytes(void) {
    size_t available = 0;
    size_t total = 0;
    CHECK_OK(cuMemGetInfo_v2(&available, &total));
    return available;
}

static inline void say(char c) {
    CHECK_EQUAL(write(1, &c, 1), 1);
}

/* Waits for a message, or for the end of the other side. */
static inline void hear(int fd) {
    char c = 0;
    while (read(fd, &c, 1) < 0 && errno == EINTR) {
    }
}

/* Starts a process with a role. in and out may be NULL. */
static inline pid_t start(const char *role, int *in, int *out) {
    int to[2];
    int from[2];
    CHECK_EQUAL(pipe2(to, O_CLOEXEC), 0);
    CHECK_EQUAL(pipe2(from, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(to[0], 0);
        dup2(from[1], 1);
        execl("/proc/self/exe", "test", role, (char *)NULL);
        _exit(99);
    }
    close(to[0]);
    close(from[1]);
    if (in != NULL) {
        *in = to[1];
    } else {
        close(to[1]);
    }
    if (out != NULL) {
        *out = from[0];
    } else {
        close(from[0]);
    }
    return pid;
}

/* 0 if the process exited with status 0, or was killed by that signal. */
static inline int end_of(pid_t pid, int signal_number) {
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return (WIFEXITED(status) && WEXITSTATUS(status) == 0) ||
                   (WIFSIGNALED(status) && WTERMSIG(status) == signal_number)
               ? 0
               : status;
}

/* Checks that the memory of all ended processes has been returned, and that the sums are right. */
static inline void check_ledger(emu_state *state) {
    static emu_ledger ledger;
    emu_ledger_read(&state->gpus[0], &ledger);
    uint64_t sum = 0;
    for (uint64_t i = 0; i < ledger.process_count; i++) {
        sum += emu_bits_get(ledger.suspended, (int)i) ? 0 : ledger.used_by[i];
    }
    CHECK_EQUAL(sum, ledger.used_bytes);
    CHECK(ledger.used_bytes <= state->settings.memory_bytes);
}

#endif
