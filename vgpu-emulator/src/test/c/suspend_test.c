/* Suspending processes with cuCheckpointProcess*. Each process is this program again, started with a role. */
#include "gpu/suspend.h"
#include "processes.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

enum { LONG_MS = 30000 /* for a lock that must succeed, however slow the process is */ };

/* Holds 16 MiB with known content and a second of work, then executes commands and reports when each is done. */
static void hold(void) {
    enum { WORDS = 16 << 18 };
    CUdeviceptr held = 0;
    CUdeviceptr more = 0;
    unsigned int *copy = malloc(WORDS * sizeof *copy);
    open_gpu();
    CHECK_OK(cuMemAlloc_v2(&held, WORDS * sizeof *copy));
    CHECK_OK(cuMemsetD32_v2(held, 0xabcd1234, WORDS));
    say('h');
    for (char c = 0; read(0, &c, 1) == 1;) {
        if (c == 'a') {
            CHECK_OK(cuMemAlloc_v2(&more, MIB));
        } else if (c == 'm') {
            CHECK_OK(cuMemAllocManaged(&more, MIB, 1));
        } else if (c == 'f') {
            CHECK_OK(cuMemFree_v2(more));
        } else if (c == 'r') {
            CHECK_OK(run(MS));
            CHECK_OK(cuCtxSynchronize());
        } else {
            CHECK_OK(cuMemcpyDtoH_v2(copy, held, WORDS * sizeof *copy));
            for (size_t i = 0; copy != NULL && i < WORDS; i++) {
                CHECK_EQUAL(copy[i], 0xabcd1234);
            }
        }
        say(c);
    }
    free(copy);
}

typedef struct {
    pid_t pid;
    int in;
    int out;
} holder;

static holder start_holder(void) {
    holder h;
    h.pid = start("hold", &h.in, &h.out);
    hear(h.out);
    return h;
}

static void tell(const holder *h, char c) {
    CHECK_EQUAL(write(h->in, &c, 1), 1);
}

/* Whether the process reports something within the timeout. */
static bool answers(const holder *h, int ms) {
    struct pollfd poller = {.fd = h->out, .events = POLLIN};
    return poll(&poller, 1, ms) == 1;
}

static void end_holder(holder *h) {
    close(h->in);
    CHECK_EQUAL(end_of(h->pid, SIGKILL), 0);
    close(h->out);
}

static int state_of(pid_t pid) {
    int state = -1;
    CUresult result = cuCheckpointProcessGetState(pid, &state);
    return result == CUDA_SUCCESS ? state : -(int)result;
}

static CUresult lock_within(pid_t pid, unsigned int ms) {
    CUcheckpointLockArgs arguments = {.timeout_ms = ms};
    return cuCheckpointProcessLock(pid, &arguments);
}

static void suspend_holder(const holder *h) {
    CHECK_OK(lock_within(h->pid, LONG_MS));
    CHECK_EQUAL(state_of(h->pid), EMU_LOCKED);
    CHECK_OK(cuCheckpointProcessCheckpoint(h->pid, NULL));
    CHECK_EQUAL(state_of(h->pid), EMU_CHECKPOINTED);
}

static void resume_holder(const holder *h) {
    CHECK_OK(cuCheckpointProcessRestore(h->pid, NULL));
    CHECK_EQUAL(state_of(h->pid), EMU_LOCKED);
    CHECK_OK(cuCheckpointProcessUnlock(h->pid, NULL));
    CHECK_EQUAL(state_of(h->pid), EMU_RUNNING);
}

/* Other processes can use exactly that memory meanwhile. Its content is restored. */
static void suspendedProcessesKeepTheirMemoryElsewhere(emu_state *state) {
    size_t before = free_bytes();
    holder h = start_holder();
    size_t held = before - free_bytes();
    CHECK_EQUAL(held, 24 * MIB);
    CHECK_EQUAL(state_of(h.pid), EMU_RUNNING);
    suspend_holder(&h);
    CHECK_EQUAL(free_bytes(), before);
    check_ledger(state);
    CUdeviceptr all = 0;
    CHECK_OK(cuMemAlloc_v2(&all, before));
    CHECK_EQUAL(cuCheckpointProcessRestore(h.pid, NULL), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_EQUAL(state_of(h.pid), EMU_CHECKPOINTED);
    CHECK_OK(cuMemsetD32_v2(all, 7, before / 4));
    CHECK_OK(cuMemFree_v2(all));
    tell(&h, 'a');
    CHECK(!answers(&h, 20));
    resume_holder(&h);
    hear(h.out);
    CHECK_EQUAL(before - free_bytes(), held + MIB);
    tell(&h, 'c');
    hear(h.out);
    suspend_holder(&h);
    tell(&h, 'f'); /* memory freed meanwhile does not come back */
    hear(h.out);
    tell(&h, 'r');
    CHECK(!answers(&h, 20));
    resume_holder(&h);
    hear(h.out);
    CHECK_EQUAL(before - free_bytes(), held);
    check_ledger(state);
    end_holder(&h);
    CHECK_EQUAL(free_bytes(), before);
}

/* Each step requires its one state, reserved bytes must be zero, and a process cannot lock itself. */
static void checkpointStepsHaveAnOrder(emu_state *state) {
    (void)state;
    holder h = start_holder();
    CUcheckpointLockArgs bad = {.reserved1 = {0, 1}};
    CUcheckpointRestoreArgs remap = {.gpu_pairs_count = 1};
    CUcheckpointRestoreArgs spoilt = {.reserved1 = 1};
    CHECK_EQUAL(cuCheckpointProcessLock(h.pid, &bad), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuCheckpointProcessCheckpoint(h.pid, NULL), CUDA_ERROR_ILLEGAL_STATE);
    CHECK_EQUAL(cuCheckpointProcessRestore(h.pid, NULL), CUDA_ERROR_ILLEGAL_STATE);
    CHECK_EQUAL(cuCheckpointProcessUnlock(h.pid, NULL), CUDA_ERROR_ILLEGAL_STATE);
    CHECK_OK(lock_within(h.pid, 0));
    CHECK_EQUAL(lock_within(h.pid, 0), CUDA_ERROR_ILLEGAL_STATE);
    tell(&h, 'a'); /* its allocations wait too */
    CHECK(!answers(&h, 20));
    CHECK_EQUAL(cuCheckpointProcessRestore(h.pid, NULL), CUDA_ERROR_ILLEGAL_STATE);
    CHECK_OK(cuCheckpointProcessCheckpoint(h.pid, NULL));
    CHECK_EQUAL(cuCheckpointProcessUnlock(h.pid, NULL), CUDA_ERROR_ILLEGAL_STATE);
    CHECK_EQUAL(cuCheckpointProcessRestore(h.pid, &remap), CUDA_ERROR_NOT_SUPPORTED);
    CHECK_EQUAL(cuCheckpointProcessRestore(h.pid, &spoilt), CUDA_ERROR_INVALID_VALUE);
    resume_holder(&h);
    hear(h.out);
    end_holder(&h);
    CHECK_EQUAL(state_of(h.pid), -CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(state_of(getpid()), -CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuCheckpointProcessGetState(h.pid, NULL), CUDA_ERROR_INVALID_VALUE);
}

/* A refused or failed checkpoint leaves the process locked; the caller must unlock it. */
static void refusedCheckpointsLeaveTheProcessLocked(emu_state *state) {
    size_t before = free_bytes();
    holder h = start_holder();
    CHECK_OK(lock_within(h.pid, LONG_MS));
    setenv("VGPU_EMULATOR_CHECKPOINT", "restore:1,checkpoint:999", 1);
    CHECK_EQUAL(cuCheckpointProcessCheckpoint(h.pid, NULL), CUDA_ERROR_UNKNOWN);
    CHECK_EQUAL(state_of(h.pid), EMU_LOCKED);
    unsetenv("VGPU_EMULATOR_CHECKPOINT");
    CHECK_OK(cuCheckpointProcessUnlock(h.pid, NULL));
    tell(&h, 'm'); /* allocates managed memory */
    hear(h.out);
    CHECK_OK(lock_within(h.pid, LONG_MS));
    CHECK_EQUAL(cuCheckpointProcessCheckpoint(h.pid, NULL), CUDA_ERROR_NOT_SUPPORTED);
    CHECK_EQUAL(state_of(h.pid), EMU_LOCKED);
    CHECK_OK(cuCheckpointProcessUnlock(h.pid, NULL));
    CHECK_EQUAL(before - free_bytes(), 25 * MIB);
    setenv("VGPU_EMULATOR_CHECKPOINT", "lock:lost", 1);
    CHECK_EQUAL(lock_within(h.pid, LONG_MS), CUDA_ERROR_UNKNOWN);
    unsetenv("VGPU_EMULATOR_CHECKPOINT");
    CHECK_EQUAL(state_of(h.pid), EMU_FAILED);
    CHECK_EQUAL(cuCheckpointProcessUnlock(h.pid, NULL), CUDA_ERROR_ILLEGAL_STATE);
    end_holder(&h);
    CHECK_EQUAL(free_bytes(), before);
    check_ledger(state);
}

static void processKilledWhileSuspendedLeavesNothing(emu_state *state) {
    size_t before = free_bytes();
    for (int i = 0; i < 5; i++) {
        holder h = start_holder();
        suspend_holder(&h);
        tell(&h, 'r');
        kill(h.pid, SIGKILL);
        end_holder(&h);
        CHECK_EQUAL(state_of(h.pid), -CUDA_ERROR_INVALID_VALUE);
        CHECK_EQUAL(cuCheckpointProcessRestore(h.pid, NULL), CUDA_ERROR_INVALID_VALUE);
        CHECK_EQUAL(free_bytes(), before);
        check_ledger(state);
        holder next = start_holder(); /* takes the same slot */
        tell(&next, 'r');
        hear(next.out);
        end_holder(&next);
    }
    CHECK_EQUAL(lock_within(getpid() + 1000000, 1), CUDA_ERROR_INVALID_VALUE);
}

/* The caller waits for a stopped process, which then continues as if nothing had been tried. */
static void stoppedProcessesResistSuspension(emu_state *state) {
    size_t before = free_bytes();
    holder h = start_holder();
    kill(h.pid, SIGSTOP);
    while (!emu_process_stopped(state, emu_slot_of(state, (uint64_t)h.pid))) {
        emu_sleep_until(emu_now_ns() + MS);
    }
    CHECK_EQUAL(lock_within(h.pid, 20), CUDA_ERROR_NOT_READY);
    CHECK_EQUAL(state_of(h.pid), EMU_RUNNING);
    CHECK_EQUAL(before - free_bytes(), 24 * MIB);
    kill(h.pid, SIGCONT);
    tell(&h, 'r');
    hear(h.out);
    end_holder(&h);
    check_ledger(state);
}

int main(int count, char **arguments) {
    if (count > 1) {
        CHECK_EQUAL(strcmp(arguments[1], "hold"), 0);
        hold();
        return check_failures == 0 ? 0 : 1;
    }
    static emu_state state;
    char problem[700];
    setenv("VGPU_EMULATOR", "devices=2,memory=64MiB,context=8MiB", 1);
    signal(SIGPIPE, SIG_IGN);
    open_gpu();
    CHECK_OK(emu_state_open(&state, problem, sizeof problem));
    CHECK_OK(emu_state_join(&state, problem, sizeof problem));
    suspendedProcessesKeepTheirMemoryElsewhere(&state);
    checkpointStepsHaveAnOrder(&state);
    refusedCheckpointsLeaveTheProcessLocked(&state);
    processKilledWhileSuspendedLeavesNothing(&state);
    stoppedProcessesResistSuspension(&state);
    emu_state_close(&state);
    return check_failures == 0 ? 0 : 1;
}
