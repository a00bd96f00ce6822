/*
 * Several processes on the same GPUs; each is this program again, started with a role. Some processes are killed or
 * stopped at random moments. Whatever they were doing, the others must continue, and all memory must be returned.
 */
#include "processes.h"

#include <stdlib.h>
#include <string.h>

CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr address, uint32_t value,
                             unsigned int flags);

enum { WORKERS = 4 };

/* reduced under a sanitizer, which makes process starts slow */
static int kills = 200;

/* Roles. */

/* Queues a minute of work, which no delay of this or another process uses up, reports that, and waits. */
static void queue_up(void) {
    open_gpu();
    for (int i = 0; i < 600; i++) {
        CHECK_OK(run(100 * MS));
    }
    say('q');
    hear(0);
}

/* Allocates, launches and waits as fast as possible until it is killed. */
static void churn(unsigned int seed) {
    CUdeviceptr live[16] = {0};
    srand(test_seed() + seed);
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

/* Both processes have work all the time: their service may differ only by the slices in progress. */
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
            after.demand[i] > after.schedule.contexts[i].served_ns && found < 2) {
            served[found++] =
                after.schedule.contexts[i].served_ns - before.schedule.contexts[i].served_ns;
        }
    }
    CHECK_EQUAL(found, 2);
    uint64_t apart = served[0] > served[1] ? served[0] - served[1] : served[1] - served[0];
    CHECK(apart <= 2 * state->settings.slice_ns);
    /* One GPU, idle only while it changes: together they received all other time that passed. */
    const emu_settings *settings = &state->settings;
    uint64_t passed = after.schedule.now_ns - before.schedule.now_ns;
    uint64_t changes = passed / (settings->slice_ns + settings->switch_ns) + 2;
    CHECK_EQUAL(served[0] + served[1], after.schedule.busy_ns - before.schedule.busy_ns);
    CHECK(served[0] + served[1] + changes * settings->switch_ns >= passed);
    for (int i = 0; i < 2; i++) {
        close(in[i]);
        CHECK_EQUAL(end_of(pids[i], 0), 0);
        close(out[i]);
    }
}

/*
 * The time between two events is GPU work, without the wait for another process's slice: a kernel shorter than a slice
 * takes its own time. (The minimum of several runs, because a delay of this process between the calls adds time.)
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

/* An event in a context that the GPU must change to first has the time after the change. */
static void eventsDoNotCountTheChange(void) {
    CUcontext context = NULL;
    CUcontext other = NULL;
    CUevent events[2];
    CUdeviceptr memory = 0;
    static char bytes[1 << 16];
    float least = 1000;
    CHECK_OK(cuCtxGetCurrent(&context));
    CHECK_OK(cuEventCreate(&events[0], 0));
    CHECK_OK(cuEventCreate(&events[1], 0));
    CHECK_OK(cuCtxCreate_v2(&other, 0, 0));
    CHECK_OK(cuMemAlloc_v2(&memory, sizeof bytes));
    for (int i = 0; i < 20; i++) {
        float ms = 0;
        CHECK_OK(cuCtxSetCurrent(other));
        CHECK_OK(cuMemcpyHtoD_v2(memory, bytes, sizeof bytes));
        CHECK_OK(cuCtxSynchronize());
        CHECK_OK(cuCtxSetCurrent(context));
        CHECK_OK(cuEventRecord(events[0], NULL));
        CHECK_OK(run(100000));
        CHECK_OK(cuEventRecord(events[1], NULL));
        CHECK_OK(cuEventSynchronize(events[1]));
        CHECK_OK(cuEventElapsedTime(&ms, events[0], events[1]));
        least = ms < least ? ms : least;
    }
    CHECK_EQUAL((int64_t)((double)least * 1000 + 0.5), 100);
    CHECK_OK(cuEventDestroy_v2(events[0]));
    CHECK_OK(cuEventDestroy_v2(events[1]));
    CHECK_OK(cuCtxDestroy_v2(other));
    CHECK_OK(cuCtxSetCurrent(context));
}

static CUevent record(CUstream stream, uint64_t ns) {
    CUevent event = NULL;
    CHECK_OK(cuEventCreate(&event, 0));
    CHECK_OK(cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, stream, (void *[]){&ns}, NULL));
    CHECK_OK(cuEventRecord(event, stream));
    return event;
}

/*
 * Another process was delayed between reading the clock and raising its demand, so it asks for work in the past and
 * receives most of the time since. Work that was seen as done stays done. Both streams begin together, also where this
 * program is delayed between the launches.
 */
static void whatIsDoneStaysDone(emu_state *state) {
    emu_gpu *gpu = &state->gpus[0];
    CUstream gate;
    CUevent open;
    volatile uint32_t word = 0;
    CUstream streams[2];
    CUevent events[2];
    uint32_t late = emu_gpu_add_context(gpu);
    emu_gpu_slice_context(gpu, late, 1000000);
    CHECK_OK(cuCtxSynchronize());
    CHECK_OK(cuStreamCreate(&gate, CU_STREAM_NON_BLOCKING));
    CHECK_OK(cuEventCreate(&open, 0));
    CHECK_OK(cuStreamWaitValue32(gate, (CUdeviceptr)(uintptr_t)&word, 1, 0));
    CHECK_OK(cuEventRecord(open, gate));
    for (int i = 0; i < 2;
         i++) { /* the second event completes first, but is not the first to be queried */
        CHECK_OK(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
        CHECK_OK(cuStreamWaitEvent(streams[i], open, 0));
        events[i] = record(streams[i], i == 0 ? 40 * MS : 4 * MS);
    }
    word = 1;
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
    CHECK_OK(cuEventDestroy_v2(open));
    CHECK_OK(cuStreamDestroy_v2(gate));
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
        CHECK_OK(run(10000)); /* while the process dies */
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
    CHECK_OK(cuMemAlloc_v2(&all, before)); /* all memory, to the last byte */
    CHECK_OK(cuMemFree_v2(all));
}

static void stoppedProcessesHoldNobodyUp(void) {
    pid_t worker = start("churn1000", NULL, NULL);
    for (int i = 0; i < kills / 3; i++) {
        emu_sleep_until(emu_now_ns() + (uint64_t)(rand() % 4000000));
        kill(worker, SIGSTOP);
        CUdeviceptr p = 0;
        CUresult result = cuMemAlloc_v2(&p, MIB); /* the other process may have taken everything */
        CHECK(result == CUDA_SUCCESS || result == CUDA_ERROR_OUT_OF_MEMORY);
        CHECK_OK(run(20000));
        CHECK_OK(cuCtxSynchronize());
        CHECK_OK(cuMemFree_v2(p));
        kill(worker, SIGCONT);
    }
    kill(worker, SIGKILL);
    CHECK_EQUAL(end_of(worker, SIGKILL), 0);
}

/* As with the real driver, the child of a fork cannot use what it inherited. It must not hold anything of its
 * parent's. */
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

/* Forks a child that lives on, reports the result, and waits to be killed. */
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

/* Reports what cuInit returned. */
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

/* A damaged state file is replaced if no process uses it, and refused otherwise. */
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
    fd = open(path, O_RDWR | O_CLOEXEC); /* the file that is now in place */
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

/* Many processes start at once in a directory that does not exist. */
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
    srand(test_seed());
    signal(SIGPIPE, SIG_IGN);
    CHECK(directory != NULL);
    CHECK_OK(emu_state_open(&state, problem, sizeof problem)); /* only looks */
    visibleDevicesAreChosen();
    manyStartAtOnce(directory);
    damagedStatesAreReplaced(directory);
    twoProcessesGetHalfEach(&state);
    open_gpu();
    eventsDoNotCountTheWaitForOthers();
    eventsDoNotCountTheChange();
    forkedChildrenHaveNoDriver();
    memoryOfAForkedParentComesBack();
    static emu_state other;
    CHECK_OK(emu_state_open(&other, problem, sizeof problem));
    CHECK_OK(emu_state_join(&other, problem, sizeof problem));
    whatIsDoneStaysDone(&other);
    emu_state_close(&other);
    killedProcessesLeaveNothing(&state);
    stoppedProcessesHoldNobodyUp();
    return check_failures == 0 ? 0 : 1;
}
