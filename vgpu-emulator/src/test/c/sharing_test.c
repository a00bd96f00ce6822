/*
 * Several processes on the same GPUs: each starts this program again with a role. Among them are
 * processes that are killed or stopped at random moments; whatever they were doing, the others go
 * on and every byte comes back.
 */
#include "check.h"
#include "cuda_api.h"
#include "gpu.h"
#include "suspend.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)
#define MS UINT64_C(1000000)
enum { WORKERS = 4 };

/* Fewer where a sanitizer makes starting slow. */
static int kills = 200;

static CUfunction spin;

static void open_gpu(void) {
    CUcontext context = NULL;
    CUmodule module = NULL;
    CHECK_OK(cuInit(0));
    CHECK_OK(cuCtxCreate_v2(&context, 0, 0));
    CHECK_OK(cuModuleLoadData(&module, test_ptx));
    CHECK_OK(cuModuleGetFunction(&spin, module, "vgpu_spin"));
}

static CUresult run(uint64_t ns) {
    return cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&ns}, NULL);
}

static size_t free_bytes(void) {
    size_t available = 0;
    size_t total = 0;
    CHECK_OK(cuMemGetInfo_v2(&available, &total));
    return available;
}

static void say(char c) {
    CHECK_EQUAL(write(1, &c, 1), 1);
}

/* Waits to be told (or for the end of the other side). */
static void hear(int fd) {
    char c = 0;
    while (read(fd, &c, 1) < 0 && errno == EINTR) {
    }
}

/* Roles. */

/* Queues nearly a second of work, says so, and waits. */
static void queue_up(void) {
    open_gpu();
    for (int i = 0; i < 900; i++) {
        CHECK_OK(run(MS));
    }
    say('q');
    hear(0);
}

/* Allocates, launches and waits as fast as it can, until it is killed. */
static void churn(unsigned int seed) {
    CUdeviceptr live[16] = {0};
    srand(seed);
    CHECK_OK(cuInit(0));
    CUcontext context = NULL;
    CUmodule module = NULL;
    CUresult made = cuCtxCreate_v2(&context, 0, 0);
    CHECK(made == CUDA_SUCCESS || made == CUDA_ERROR_OUT_OF_MEMORY);
    if (made != CUDA_SUCCESS) {
        return;
    }
    CHECK_OK(cuModuleLoadData(&module, test_ptx));
    CHECK_OK(cuModuleGetFunction(&spin, module, "vgpu_spin"));
    while (check_failures == 0) {
        int i = rand() % 16;
        if (live[i] != 0) {
            CHECK_OK(cuMemFree_v2(live[i]));
            live[i] = 0;
        } else {
            CUresult result = cuMemAlloc_v2(&live[i], (size_t)(1 + rand() % (8 << 20)));
            CHECK(result == CUDA_SUCCESS || result == CUDA_ERROR_OUT_OF_MEMORY);
            live[i] = result == CUDA_SUCCESS ? live[i] : 0;
        }
        CHECK_OK(run((uint64_t)(rand() % 100000)));
        if (rand() % 4 == 0) {
            CHECK_OK(cuCtxSynchronize());
        }
    }
}

/* Starts a process in a role. in and out may be NULL. */
static pid_t start(const char *role, int *in, int *out) {
    int to[2];
    int from[2];
    CHECK_EQUAL(pipe2(to, O_CLOEXEC), 0);
    CHECK_EQUAL(pipe2(from, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(to[0], 0);
        dup2(from[1], 1);
        execl("/proc/self/exe", "sharing_test", role, (char *)NULL);
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

/* 0 if it ended by itself and well, or by that signal. */
static int end_of(pid_t pid, int signal_number) {
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return (WIFEXITED(status) && WEXITSTATUS(status) == 0) ||
                   (WIFSIGNALED(status) && WTERMSIG(status) == signal_number)
               ? 0
               : status;
}

/* Both have work all the time: their service differs by no more than the slices that are under way.
 */
static void twoProcessesGetHalfEach(emu_state *state) {
    int in[2];
    int out[2];
    pid_t pids[2];
    for (int i = 0; i < 2; i++) {
        pids[i] = start("queue", &in[i], &out[i]);
    }
    hear(out[0]);
    hear(out[1]);
    static emu_view before;
    static emu_view after;
    emu_gpu_watch(&state->gpus[0], &before);
    do {
        emu_sleep_until(emu_now_ns() + 10 * MS);
        emu_gpu_watch(&state->gpus[0], &after);
    } while (after.schedule.now_ns - before.schedule.now_ns < 200 * MS);
    uint64_t served[2];
    uint32_t found = 0;
    for (uint32_t i = 0; i < after.schedule.context_count; i++) {
        if (after.schedule.contexts[i].owner != 0 &&
            after.demand[i] > before.demand[i] - 900 * MS && found < 2) {
            served[found++] =
                after.schedule.contexts[i].served_ns - before.schedule.contexts[i].served_ns;
        }
    }
    CHECK_EQUAL(found, 2);
    uint64_t apart = served[0] > served[1] ? served[0] - served[1] : served[1] - served[0];
    CHECK(apart <= 2 * state->settings.slice_ns);
    /* One GPU, never idle: together they got all of the time that passed. */
    CHECK_EQUAL(served[0] + served[1], after.schedule.now_ns - before.schedule.now_ns);
    for (int i = 0; i < 2; i++) {
        close(in[i]);
        CHECK_EQUAL(end_of(pids[i], 0), 0);
        close(out[i]);
    }
}

/*
 * Between events lies what the GPU did, not the wait for another process's slice: a kernel shorter
 * than a slice takes its own time. (The least of several: it takes longer if this process is held
 * up between the calls.)
 */
static void eventsDoNotCountTheWaitForOthers(void) {
    int in = -1;
    int out = -1;
    pid_t other = start("queue", &in, &out);
    hear(out);
    float least = 1000;
    for (int i = 0; i < 20; i++) {
        CUevent a = NULL;
        CUevent b = NULL;
        float ms = 0;
        CHECK_OK(cuEventCreate(&a, 0));
        CHECK_OK(cuEventCreate(&b, 0));
        CHECK_OK(cuEventRecord(a, NULL));
        CHECK_OK(run(100000));
        CHECK_OK(cuEventRecord(b, NULL));
        CHECK_OK(cuEventSynchronize(b));
        CHECK_OK(cuEventElapsedTime(&ms, a, b));
        least = ms < least ? ms : least;
        CHECK_OK(cuEventDestroy_v2(a));
        CHECK_OK(cuEventDestroy_v2(b));
    }
    CHECK_EQUAL((int64_t)((double)least * 1000 + 0.5), 100);
    close(in);
    CHECK_EQUAL(end_of(other, 0), 0);
    close(out);
}

static CUevent record(CUstream stream, uint64_t ns) {
    CUevent event = NULL;
    CHECK_OK(cuEventCreate(&event, 0));
    CHECK_OK(cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, stream, (void *[]){&ns}, NULL));
    CHECK_OK(cuEventRecord(event, stream));
    return event;
}

/*
 * Another process was held up between reading the clock and asking for work: it comes in the past,
 * where it has most of the time that has passed since. What was seen done stays done.
 */
static void whatIsDoneStaysDone(emu_state *state) {
    emu_gpu *gpu = &state->gpus[0];
    CUstream streams[2];
    CUevent events[2];
    uint32_t late = emu_gpu_add_context(gpu);
    emu_gpu_slice_context(gpu, late, 1000000);
    CHECK_OK(cuCtxSynchronize());
    for (int i = 0; i < 2; i++) { /* the second is done first, and is not the first to be learnt of */
        CHECK_OK(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
        events[i] = record(streams[i], i == 0 ? 40 * MS : 4 * MS);
    }
    CHECK_OK(cuStreamSynchronize(streams[1]));
    emu_set_demand(gpu, late, emu_demand(gpu, late) + 1000 * MS);
    CHECK_OK(cuEventSynchronize(events[1]));
    CHECK_OK(cuEventQuery(events[1]));
    CHECK_OK(cuStreamQuery(streams[1]));
    emu_gpu_remove_context(gpu, late);
    CHECK_OK(cuCtxSynchronize());
    float ms = 0;
    CHECK_OK(cuEventElapsedTime(&ms, events[1], events[0]));
    CHECK(ms > 0);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(cuEventDestroy_v2(events[i]));
        CHECK_OK(cuStreamDestroy_v2(streams[i]));
    }
}

/* The memory of all who are gone is back, and the sums are right. */
static void check_ledger(emu_state *state) {
    static emu_ledger ledger;
    emu_ledger_read(&state->gpus[0], &ledger);
    uint64_t sum = 0;
    for (uint64_t i = 0; i < ledger.process_count; i++) {
        sum += emu_bits_get(ledger.suspended, (int)i) ? 0 : ledger.used_by[i];
    }
    CHECK_EQUAL(sum, ledger.used_bytes);
    CHECK(ledger.used_bytes <= state->settings.memory_bytes);
}

static void killedProcessesLeaveNothing(emu_state *state) {
    pid_t workers[WORKERS];
    size_t before = free_bytes();
    char role[32];
    for (int i = 0; i < WORKERS; i++) {
        snprintf(role, sizeof role, "churn%d", i);
        workers[i] = start(role, NULL, NULL);
    }
    for (int i = 0; i < kills; i++) {
        int victim = rand() % WORKERS;
        emu_sleep_until(emu_now_ns() + (uint64_t)(rand() % 8) * MS + (uint64_t)(rand() % 1000000));
        kill(workers[victim], SIGKILL);
        CHECK_OK(run(10000)); /* while it dies */
        CHECK_OK(cuCtxSynchronize());
        CHECK_EQUAL(end_of(workers[victim], SIGKILL), 0);
        check_ledger(state);
        snprintf(role, sizeof role, "churn%d", i + WORKERS);
        workers[victim] = start(role, NULL, NULL);
    }
    for (int i = 0; i < WORKERS; i++) {
        kill(workers[i], SIGKILL);
        CHECK_EQUAL(end_of(workers[i], SIGKILL), 0);
    }
    CHECK_EQUAL(free_bytes(), before);
    CUdeviceptr all = 0;
    CHECK_OK(cuMemAlloc_v2(&all, before)); /* to the last byte */
    CHECK_OK(cuMemFree_v2(all));
}

static void stoppedProcessesHoldNobodyUp(void) {
    pid_t worker = start("churn1000", NULL, NULL);
    for (int i = 0; i < kills / 3; i++) {
        emu_sleep_until(emu_now_ns() + (uint64_t)(rand() % 4000000));
        kill(worker, SIGSTOP);
        CUdeviceptr p = 0;
        CUresult result = cuMemAlloc_v2(&p, MIB); /* the other may have taken all */
        CHECK(result == CUDA_SUCCESS || result == CUDA_ERROR_OUT_OF_MEMORY);
        CHECK_OK(run(20000));
        CHECK_OK(cuCtxSynchronize());
        CHECK_OK(cuMemFree_v2(p));
        kill(worker, SIGCONT);
    }
    kill(worker, SIGKILL);
    CHECK_EQUAL(end_of(worker, SIGKILL), 0);
}

/* As with the real driver, the child of a fork cannot use what it inherited; and it holds nothing
 * of its parent's. */
static void forkedChildrenHaveNoDriver(void) {
    pid_t child = fork();
    if (child == 0) {
        CUdeviceptr p = 0;
        CUcontext now = NULL;
        int wrong = cuInit(0) != CUDA_ERROR_NOT_INITIALIZED ||
                    cuMemAlloc_v2(&p, 1) != CUDA_ERROR_NOT_INITIALIZED ||
                    cuCtxGetCurrent(&now) != CUDA_ERROR_NOT_INITIALIZED;
        _exit(wrong);
    }
    CHECK_EQUAL(end_of(child, 0), 0);
    CUdeviceptr p = 0;
    CHECK_OK(cuMemAlloc_v2(&p, MIB));
    CHECK_OK(cuMemFree_v2(p));
}

/* Forks a child that lives on, says how it went, and waits to be killed. */
static void fork_and_wait(void) {
    open_gpu();
    CUdeviceptr p = 0;
    CHECK_OK(cuMemAlloc_v2(&p, 10 * MIB));
    if (fork() == 0) {
        say('c');
        hear(0);
        _exit(0);
    }
    say('p');
    for (;;) {
        pause();
    }
}

static void memoryOfAForkedParentComesBack(void) {
    int in = -1;
    int out = -1;
    size_t before = free_bytes();
    pid_t parent = start("fork", &in, &out);
    hear(out);
    hear(out);
    CHECK_EQUAL(before - free_bytes(), 10 * MIB + 8 * MIB);
    kill(parent, SIGKILL);
    CHECK_EQUAL(end_of(parent, SIGKILL), 0);
    CHECK_EQUAL(free_bytes(), before);
    close(in);
    close(out);
}

/* Holds 16 MiB with something in it, and a second of work; then does what it is told, and says when
 * it has. */
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

/* Whether it says something soon. */
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
    CHECK_OK(lock_within(h->pid, 1000));
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

/* The memory is others' meanwhile, to the byte; what was in it comes back. */
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
    tell(&h, 'f'); /* what is freed meanwhile does not come back */
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

/* Each step from the one state that it wants; reserved bytes are zero; nobody locks himself. */
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
    tell(&h, 'a'); /* its allocations wait as well */
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

/* A checkpoint that is refused, or goes wrong, leaves the process locked: unlocking is our part. */
static void refusedCheckpointsLeaveTheProcessLocked(emu_state *state) {
    size_t before = free_bytes();
    holder h = start_holder();
    CHECK_OK(lock_within(h.pid, 1000));
    setenv("VGPU_EMULATOR_CHECKPOINT", "restore:1,checkpoint:999", 1);
    CHECK_EQUAL(cuCheckpointProcessCheckpoint(h.pid, NULL), CUDA_ERROR_UNKNOWN);
    CHECK_EQUAL(state_of(h.pid), EMU_LOCKED);
    unsetenv("VGPU_EMULATOR_CHECKPOINT");
    CHECK_OK(cuCheckpointProcessUnlock(h.pid, NULL));
    tell(&h, 'm'); /* allocates managed memory */
    hear(h.out);
    CHECK_OK(lock_within(h.pid, 1000));
    CHECK_EQUAL(cuCheckpointProcessCheckpoint(h.pid, NULL), CUDA_ERROR_NOT_SUPPORTED);
    CHECK_EQUAL(state_of(h.pid), EMU_LOCKED);
    CHECK_OK(cuCheckpointProcessUnlock(h.pid, NULL));
    CHECK_EQUAL(before - free_bytes(), 25 * MIB);
    setenv("VGPU_EMULATOR_CHECKPOINT", "lock:lost", 1);
    CHECK_EQUAL(lock_within(h.pid, 1000), CUDA_ERROR_UNKNOWN);
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
        holder next = start_holder(); /* in the same slot */
        tell(&next, 'r');
        hear(next.out);
        end_holder(&next);
    }
    CHECK_EQUAL(lock_within(getpid() + 1000000, 1), CUDA_ERROR_INVALID_VALUE);
}

/* It is waited for; after that it goes on as if nobody had tried. */
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

/* Says what cuInit returned. */
static void only_init(void) {
    say((char)('0' + (cuInit(0) == CUDA_SUCCESS ? 0 : 1)));
}

static char result_of(const char *role) {
    int out = -1;
    char c = 0;
    pid_t pid = start(role, NULL, &out);
    CHECK_EQUAL(read(out, &c, 1), 1);
    CHECK_EQUAL(end_of(pid, 0), 0);
    close(out);
    return c;
}

/* A state that is not one is replaced if nobody uses it, and refused if somebody does. */
static void damagedStatesAreReplaced(const char *directory) {
    char path[700];
    char other[600];
    snprintf(other, sizeof other, "%s/damaged", directory);
    setenv("VGPU_EMULATOR_DIR", other, 1);
    CHECK_EQUAL(result_of("init"), '0');
    snprintf(path, sizeof path, "%s/gpus", other);
    CHECK_EQUAL(truncate(path, 100), 0);
    CHECK_EQUAL(result_of("init"), '0');
    int fd = open(path, O_RDWR | O_CLOEXEC);
    unsigned char noise[4096];
    for (size_t i = 0; i < sizeof noise; i++) {
        noise[i] = (unsigned char)rand();
    }
    CHECK_EQUAL(pwrite(fd, noise, sizeof noise, 0), sizeof noise);
    CHECK_EQUAL(result_of("init"), '0');
    close(fd);
    fd = open(path, O_RDWR | O_CLOEXEC); /* the file that is in place now */
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = 4096, .l_len = 1};
    CHECK_EQUAL(fcntl(fd, F_OFD_SETLK, &lock), 0);
    CHECK_EQUAL(pwrite(fd, noise, 64, 0), 64);
    CHECK_EQUAL(result_of("init"), '1');
    close(fd);
    setenv("VGPU_EMULATOR_DIR", directory, 1);
    setenv("VGPU_EMULATOR_DIR", "/proc/nowhere", 1);
    CHECK_EQUAL(result_of("init"), '1');
    setenv("VGPU_EMULATOR_DIR", directory, 1);
}

/* Many start at once in a directory that is not there. */
static void manyStartAtOnce(const char *directory) {
    char other[600];
    pid_t pids[12];
    int out[12];
    snprintf(other, sizeof other, "%s/deep/down", directory);
    setenv("VGPU_EMULATOR_DIR", other, 1);
    for (int i = 0; i < 12; i++) {
        pids[i] = start("init", NULL, &out[i]);
    }
    for (int i = 0; i < 12; i++) {
        char c = 0;
        CHECK_EQUAL(read(out[i], &c, 1), 1);
        CHECK_EQUAL(c, '0');
        CHECK_EQUAL(end_of(pids[i], 0), 0);
        close(out[i]);
    }
    setenv("VGPU_EMULATOR_DIR", directory, 1);
}

static int visible_count(void) {
    int count = 0;
    CUresult result = cuInit(0);
    return result == CUDA_ERROR_NO_DEVICE                            ? 0
           : result == CUDA_SUCCESS && cuDeviceGetCount(&count) == 0 ? count
                                                                     : 9;
}

static void visibleDevicesAreChosen(void) {
    static const char *const cases[][2] = {{"0,1", "2"}, {"1", "1"},   {"", "0"},    {"1,5,0", "1"},
                                           {"-1", "0"},  {"0,0", "0"}, {"GPU-", "0"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        setenv("CUDA_VISIBLE_DEVICES", cases[i][0], 1);
        CHECK_EQUAL(result_of("count"), cases[i][1][0]);
    }
    unsetenv("CUDA_VISIBLE_DEVICES");
}

static int play(const char *role) {
    if (strcmp(role, "queue") == 0) {
        queue_up();
    } else if (strncmp(role, "churn", 5) == 0) {
        churn((unsigned int)atoi(role + 5));
    } else if (strcmp(role, "hold") == 0) {
        hold();
    } else if (strcmp(role, "init") == 0) {
        only_init();
    } else if (strcmp(role, "fork") == 0) {
        fork_and_wait();
    } else if (strcmp(role, "count") == 0) {
        say((char)('0' + visible_count()));
    }
    return check_failures == 0 ? 0 : 1;
}

int main(int count, char **arguments) {
    if (count > 1) {
        return play(arguments[1]);
    }
    static emu_state state;
    char problem[700];
    const char *directory = getenv("VGPU_EMULATOR_DIR");
    if (getenv("VGPU_TEST_KILLS") != NULL) {
        kills = atoi(getenv("VGPU_TEST_KILLS"));
    }
    setenv("VGPU_EMULATOR", "devices=2,memory=64MiB,context=8MiB", 1);
    srand((unsigned int)getpid());
    signal(SIGPIPE, SIG_IGN);
    CHECK(directory != NULL);
    CHECK_OK(emu_state_open(&state, problem, sizeof problem)); /* looks only */
    visibleDevicesAreChosen();
    manyStartAtOnce(directory);
    damagedStatesAreReplaced(directory);
    twoProcessesGetHalfEach(&state);
    open_gpu();
    eventsDoNotCountTheWaitForOthers();
    forkedChildrenHaveNoDriver();
    memoryOfAForkedParentComesBack();
    static emu_state other;
    CHECK_OK(emu_state_open(&other, problem, sizeof problem));
    CHECK_OK(emu_state_join(&other, problem, sizeof problem));
    whatIsDoneStaysDone(&other);
    suspendedProcessesKeepTheirMemoryElsewhere(&other);
    checkpointStepsHaveAnOrder(&other);
    refusedCheckpointsLeaveTheProcessLocked(&other);
    processKilledWhileSuspendedLeavesNothing(&other);
    stoppedProcessesResistSuspension(&other);
    emu_state_close(&other);
    killedProcessesLeaveNothing(&state);
    stoppedProcessesHoldNobodyUp();
    return check_failures == 0 ? 0 : 1;
}
