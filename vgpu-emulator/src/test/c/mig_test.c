/*
 * MIG: geometry, instances that outlive their creators, and programs in instances. This process manages instances
 * through NVML; the programs are this program again, started with CUDA_VISIBLE_DEVICES.
 */
#include "check.h"
#include "cuda_api.h"
#include "base/nvml_abi.h"

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)
#define MS UINT64_C(1000000)

#define TOLD(type, ...) nvmlReturn_t type(__VA_ARGS__);
TOLD(nvmlInit_v2, void)
TOLD(nvmlShutdown, void)
TOLD(nvmlDeviceGetHandleByIndex_v2, unsigned int, nvmlDevice_t *)
TOLD(nvmlDeviceGetHandleByUUID, const char *, nvmlDevice_t *)
TOLD(nvmlDeviceGetUUID, nvmlDevice_t, char *, unsigned int)
TOLD(nvmlDeviceGetName, nvmlDevice_t, char *, unsigned int)
TOLD(nvmlDeviceGetMemoryInfo, nvmlDevice_t, nvmlMemory_t *)
TOLD(nvmlDeviceSetMigMode, nvmlDevice_t, unsigned int, nvmlReturn_t *)
TOLD(nvmlDeviceGetMigMode, nvmlDevice_t, unsigned int *, unsigned int *)
TOLD(nvmlDeviceGetGpuInstanceProfileInfo, nvmlDevice_t, unsigned int,
     nvmlGpuInstanceProfileInfo_t *)
TOLD(nvmlDeviceGetGpuInstanceProfileInfoV, nvmlDevice_t, unsigned int,
     nvmlGpuInstanceProfileInfo_v2_t *)
TOLD(nvmlDeviceGetGpuInstancePossiblePlacements_v2, nvmlDevice_t, unsigned int,
     nvmlGpuInstancePlacement_t *, unsigned int *)
TOLD(nvmlDeviceGetGpuInstanceRemainingCapacity, nvmlDevice_t, unsigned int, unsigned int *)
TOLD(nvmlDeviceCreateGpuInstance, nvmlDevice_t, unsigned int, nvmlGpuInstance_t *)
TOLD(nvmlDeviceCreateGpuInstanceWithPlacement, nvmlDevice_t, unsigned int,
     const nvmlGpuInstancePlacement_t *, nvmlGpuInstance_t *)
TOLD(nvmlGpuInstanceDestroy, nvmlGpuInstance_t)
TOLD(nvmlGpuInstanceGetInfo, nvmlGpuInstance_t, nvmlGpuInstanceInfo_t *)
TOLD(nvmlDeviceGetGpuInstances, nvmlDevice_t, unsigned int, nvmlGpuInstance_t *, unsigned int *)
TOLD(nvmlGpuInstanceCreateComputeInstance, nvmlGpuInstance_t, unsigned int, nvmlComputeInstance_t *)
TOLD(nvmlComputeInstanceDestroy, nvmlComputeInstance_t)
TOLD(nvmlComputeInstanceGetInfo_v2, nvmlComputeInstance_t, nvmlComputeInstanceInfo_t *)
TOLD(nvmlDeviceGetMigDeviceHandleByIndex, nvmlDevice_t, unsigned int, nvmlDevice_t *)
TOLD(nvmlDeviceGetAttributes_v2, nvmlDevice_t, nvmlDeviceAttributes_t *)
TOLD(nvmlDeviceGetGpuInstanceId, nvmlDevice_t, unsigned int *)

enum { ONE = 19, ONE_MEDIA = 20, ONE_DOUBLE = 15, TWO = 14, THREE = 9, FOUR = 5, SEVEN = 0 };

static nvmlDevice_t gpu;

/* ---- the programs' side */

static CUfunction spin;

static void open_gpu(void) {
    CUcontext context = NULL;
    CUmodule module = NULL;
    CHECK_OK(cuInit(0));
    CHECK_OK(cuCtxCreate_v2(&context, 0, 0));
    CHECK_OK(cuModuleLoadData(&module, test_ptx));
    CHECK_OK(cuModuleGetFunction(&spin, module, "vgpu_spin"));
}

static void hear(void) {
    char c = 0;
    CHECK(read(0, &c, 1) <= 1);
}

static void say(void) {
    CHECK_EQUAL(write(1, "x", 1), 1);
}

/* One device with exactly the instance's SMs and memory. */
static int role_look(const char *uuid) {
    int count = 0;
    int sms = 0;
    size_t total = 0;
    CUuuid own;
    char text[8];
    CUdeviceptr address = 0;
    open_gpu();
    CHECK_OK(cuDeviceGetCount(&count));
    CHECK_EQUAL(count, 1);
    CHECK_OK(cuDeviceGetAttribute(&sms, 16, 0));
    CHECK_EQUAL(sms, 60);
    CHECK_OK(cuDeviceTotalMem_v2(&total, 0));
    CHECK_EQUAL(total, 512 * MIB);
    CHECK_OK(cuDeviceGetUuid_v2(&own, 0));
    snprintf(text, sizeof text, "%02x%02x", (unsigned char)own.bytes[0],
             (unsigned char)own.bytes[1]);
    CHECK(strncmp(uuid + 4, text, 4) == 0);
    CHECK_EQUAL(cuMemAlloc_v2(&address, 512 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_OK(cuMemAlloc_v2(&address, 400 * MIB));
    CHECK_OK(cuMemFree_v2(address));
    CHECK_OK(cuMemAlloc_v2(&address, 400 * MIB)); /* the free gave the instance its memory back */
    say();
    hear();
    return check_failures;
}

static int role_none(void) {
    CHECK_EQUAL(cuInit(0), CUDA_ERROR_NO_DEVICE);
    return check_failures;
}

/* Runs 200 ms of GPU time behind a lead; again if the lead was over before all was queued, on a busy machine. */
static int role_run(void) {
    enum { TRIES = 20 };
    uint64_t lead = 100 * MS;
    uint64_t ns = 200 * MS;
    bool is_late = true;
    CUevent start = NULL;
    CUevent end = NULL;
    float ms = 0;
    open_gpu();
    CHECK_OK(cuEventCreate(&start, 0));
    CHECK_OK(cuEventCreate(&end, 0));
    say();
    hear();
    for (int i = 0; i < TRIES && is_late; i++) {
        CHECK_OK(cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&lead}, NULL));
        CHECK_OK(cuEventRecord(start, NULL));
        CHECK_OK(cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&ns}, NULL));
        CHECK_OK(cuEventRecord(end, NULL));
        is_late = cuEventQuery(start) == CUDA_SUCCESS;
        CHECK_OK(cuCtxSynchronize());
    }
    CHECK(!is_late);
    CHECK_OK(cuEventElapsedTime(&ms, start, end));
    CHECK(ms < 260); /* the model's time: only this program's own work */
    return check_failures;
}

/* ---- the manager's side */

typedef struct {
    pid_t pid;
    int in;
    int out;
} child;

static child begin(const char *role, const char *uuid) {
    int to[2];
    int from[2];
    CHECK_OK(pipe(to));
    CHECK_OK(pipe(from));
    child c = {.in = to[1], .out = from[0]};
    c.pid = fork();
    if (c.pid == 0) {
        dup2(to[0], 0);
        dup2(from[1], 1);
        close(to[1]);
        close(from[0]);
        setenv("CUDA_VISIBLE_DEVICES", uuid, 1);
        execl("/proc/self/exe", "mig_test", role, uuid, (char *)NULL);
        _exit(99);
    }
    close(to[0]);
    close(from[1]);
    return c;
}

static void await(const child *c) {
    char x = 0;
    CHECK_EQUAL(read(c->out, &x, 1), 1);
}

static void finish(child *c) {
    int status = 0;
    close(c->in);
    CHECK_EQUAL(waitpid(c->pid, &status, 0), c->pid);
    CHECK_EQUAL(status, 0);
    close(c->out);
}

static nvmlReturn_t make_at(unsigned int profile, unsigned int size, unsigned int start,
                            nvmlGpuInstance_t *instance) {
    nvmlGpuInstancePlacement_t placement = {start, size};
    return nvmlDeviceCreateGpuInstanceWithPlacement(gpu, profile, &placement, instance);
}

static void tear_down(void) {
    static const unsigned int all[] = {ONE, ONE_MEDIA, ONE_DOUBLE, TWO, THREE, FOUR, SEVEN};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        nvmlGpuInstance_t instances[7];
        unsigned int count = 0;
        CHECK_OK(nvmlDeviceGetGpuInstances(gpu, all[i], instances, &count));
        for (unsigned int j = 0; j < count; j++) {
            CHECK_OK(nvmlGpuInstanceDestroy(instances[j]));
        }
    }
}

static void mode_is_set_and_read(void) {
    unsigned int current = 9;
    unsigned int pending = 9;
    nvmlReturn_t activation = NVML_ERROR_UNKNOWN;
    nvmlGpuInstance_t instance = NULL;
    CHECK_OK(nvmlDeviceGetMigMode(gpu, &current, &pending));
    CHECK_EQUAL(current, 0);
    CHECK_EQUAL(nvmlDeviceCreateGpuInstance(gpu, ONE, &instance), NVML_ERROR_NOT_SUPPORTED);
    setenv("VGPU_EMULATOR_UNPRIVILEGED", "1", 1);
    CHECK_EQUAL(nvmlDeviceSetMigMode(gpu, 1, &activation), NVML_ERROR_NO_PERMISSION);
    unsetenv("VGPU_EMULATOR_UNPRIVILEGED");
    CHECK_OK(nvmlDeviceSetMigMode(gpu, 1, &activation));
    CHECK_OK(activation);
    CHECK_OK(nvmlDeviceGetMigMode(gpu, &current, &pending));
    CHECK_EQUAL(current, 1);
    CHECK_EQUAL(pending, 1);
    setenv("VGPU_EMULATOR_UNPRIVILEGED", "1", 1);
    CHECK_EQUAL(nvmlDeviceCreateGpuInstance(gpu, ONE, &instance), NVML_ERROR_NO_PERMISSION);
    unsetenv("VGPU_EMULATOR_UNPRIVILEGED");
}

static void profiles_are_those_of_the_table(void) {
    nvmlGpuInstanceProfileInfo_t info;
    CHECK_OK(nvmlDeviceGetGpuInstanceProfileInfo(gpu, 2, &info));
    CHECK_EQUAL(info.id, THREE);
    CHECK_EQUAL(info.sliceCount, 3);
    CHECK_EQUAL(info.instanceCount, 2);
    CHECK_EQUAL(info.multiprocessorCount, 60);
    CHECK_EQUAL(info.memorySizeMB, 512);
    nvmlGpuInstanceProfileInfo_v2_t named = {.version = sizeof named | 2u << 24};
    CHECK_OK(nvmlDeviceGetGpuInstanceProfileInfoV(gpu, 4, &named));
    CHECK(strcmp(named.name, "MIG 7g.1gb") == 0);
    CHECK_EQUAL(named.multiprocessorCount, 132);
    CHECK_EQUAL(nvmlDeviceGetGpuInstanceProfileInfo(gpu, 6, &info), NVML_ERROR_NOT_SUPPORTED);
    nvmlGpuInstancePlacement_t places[7];
    unsigned int count = 7;
    CHECK_OK(nvmlDeviceGetGpuInstancePossiblePlacements_v2(gpu, TWO, places, &count));
    CHECK_EQUAL(count, 3);
    CHECK_EQUAL(places[2].start, 4);
    CHECK_EQUAL(places[2].size, 2);
}

static void geometry_is_enforced(void) {
    nvmlGpuInstance_t three = NULL;
    nvmlGpuInstance_t other = NULL;
    unsigned int remaining = 9;
    CHECK_EQUAL(make_at(THREE, 4, 2, &three), NVML_ERROR_INSUFFICIENT_RESOURCES);
    CHECK_EQUAL(make_at(THREE, 3, 0, &three), NVML_ERROR_INVALID_ARGUMENT);
    CHECK_OK(make_at(THREE, 4, 4, &three));
    CHECK_EQUAL(make_at(ONE, 1, 5, &other), NVML_ERROR_INSUFFICIENT_RESOURCES);
    CHECK_OK(nvmlDeviceGetGpuInstanceRemainingCapacity(gpu, ONE, &remaining));
    CHECK_EQUAL(remaining, 4);
    CHECK_OK(make_at(FOUR, 4, 0, &other)); /* 7 compute slices */
    CHECK_EQUAL(nvmlDeviceCreateGpuInstance(gpu, ONE, &other), NVML_ERROR_INSUFFICIENT_RESOURCES);
    tear_down();
    CHECK_OK(make_at(ONE_MEDIA, 1, 0, &other));
    CHECK_EQUAL(make_at(ONE_MEDIA, 1, 1, &other), NVML_ERROR_INSUFFICIENT_RESOURCES);
    for (int i = 0; i < 6; i++) {
        CHECK_OK(nvmlDeviceCreateGpuInstance(gpu, ONE, &other));
    }
    CHECK_EQUAL(nvmlDeviceCreateGpuInstance(gpu, ONE, &other), NVML_ERROR_INSUFFICIENT_RESOURCES);
    tear_down();
}

static nvmlComputeInstance_t part_of(nvmlGpuInstance_t instance, unsigned int profile) {
    nvmlComputeInstance_t part = NULL;
    CHECK_OK(nvmlGpuInstanceCreateComputeInstance(instance, profile, &part));
    return part;
}

static void uuid_at(unsigned int index, char uuid[96]) {
    nvmlDevice_t device = NULL;
    uuid[0] = '\0';
    CHECK_OK(nvmlDeviceGetMigDeviceHandleByIndex(gpu, index, &device));
    CHECK_OK(nvmlDeviceGetUUID(device, uuid, 96));
}

static void a_program_sees_its_instance_alone(void) {
    nvmlGpuInstance_t instance = NULL;
    char uuid[96];
    char name[96];
    nvmlDevice_t device = NULL;
    nvmlDeviceAttributes_t attributes;
    nvmlMemory_t memory;
    child none = begin("none", "MIG-00000000-0000-0000-0000-000000000000");
    finish(&none);
    CHECK_OK(make_at(THREE, 4, 4, &instance));
    nvmlComputeInstance_t part = part_of(instance, 2);
    uuid_at(0, uuid);
    CHECK_OK(nvmlDeviceGetHandleByUUID(uuid, &device));
    CHECK_OK(nvmlDeviceGetName(device, name, sizeof name));
    CHECK(strcmp(name, "Test GPU MIG 3g.1gb") == 0);
    CHECK_OK(nvmlDeviceGetAttributes_v2(device, &attributes));
    CHECK_EQUAL(attributes.multiprocessorCount, 60);
    child c = begin("look", uuid);
    await(&c);
    CHECK_OK(nvmlDeviceGetMemoryInfo(device, &memory));
    CHECK_EQUAL(memory.total, 512 * MIB);
    CHECK_EQUAL(memory.used, 464 * MIB);
    CHECK_OK(nvmlDeviceGetMemoryInfo(gpu, &memory));
    CHECK_EQUAL(memory.used, 464 * MIB);
    CHECK_EQUAL(nvmlComputeInstanceDestroy(part), NVML_ERROR_IN_USE);
    CHECK_EQUAL(nvmlGpuInstanceDestroy(instance), NVML_ERROR_IN_USE);
    kill(c.pid, SIGKILL);
    waitpid(c.pid, NULL, 0);
    CHECK_OK(nvmlComputeInstanceDestroy(part));
    CHECK_EQUAL(nvmlDeviceGetMemoryInfo(device, &memory), NVML_ERROR_NOT_FOUND);
    close(c.in);
    close(c.out);
    part = part_of(instance, 2);
    c = begin("look",
              uuid); /* the same ids give the same UUID, and nothing of the dead process is left */
    await(&c);
    finish(&c);
    CHECK_OK(nvmlComputeInstanceDestroy(part));
    tear_down();
}

/* Two parts of one GPU instance run 200 ms of work each at the same time: neither waits for the other. */
static void instances_run_at_once(void) {
    nvmlGpuInstance_t instance = NULL;
    char first[96];
    char second[96];
    CHECK_OK(make_at(THREE, 4, 0, &instance));
    nvmlComputeInstance_t one = part_of(instance, 0);
    nvmlComputeInstance_t other = part_of(instance, 0);
    uuid_at(0, first);
    uuid_at(1, second);
    CHECK(strcmp(first, second) != 0);
    child a = begin("run", first);
    child b = begin("run", second);
    await(&a);
    await(&b);
    CHECK_EQUAL(write(a.in, "x", 1), 1);
    CHECK_EQUAL(write(b.in, "x", 1), 1);
    finish(&a);
    finish(&b);
    CHECK_OK(nvmlComputeInstanceDestroy(one));
    CHECK_OK(nvmlComputeInstanceDestroy(other));
    tear_down();
}

/* An instance outlives the process that created it. */
static int role_make(void) {
    nvmlGpuInstance_t instance = NULL;
    nvmlComputeInstance_t part = NULL;
    CHECK_OK(nvmlInit_v2());
    CHECK_OK(nvmlDeviceGetHandleByIndex_v2(0, &gpu));
    CHECK_OK(nvmlDeviceCreateGpuInstance(gpu, TWO, &instance));
    CHECK_OK(nvmlGpuInstanceCreateComputeInstance(instance, 1, &part));
    return check_failures;
}

static void instances_outlive_their_maker(void) {
    nvmlReturn_t activation = 0;
    nvmlGpuInstance_t instances[7];
    nvmlComputeInstance_t part = NULL;
    unsigned int count = 0;
    nvmlDevice_t device = NULL;
    unsigned int id = 99;
    child maker = begin("make", "");
    finish(&maker);
    CHECK_OK(nvmlDeviceGetGpuInstances(gpu, TWO, instances, &count));
    CHECK_EQUAL(count, 1);
    CHECK_OK(nvmlDeviceGetMigDeviceHandleByIndex(gpu, 0, &device));
    CHECK_OK(nvmlDeviceGetGpuInstanceId(device, &id));
    CHECK_EQUAL(id, 3);
    CHECK_OK(nvmlDeviceSetMigMode(gpu, 0, &activation));
    CHECK_EQUAL(activation, NVML_ERROR_IN_USE); /* pending while there are instances */
    CHECK_EQUAL(nvmlGpuInstanceCreateComputeInstance(instances[0], 0, &part),
                NVML_ERROR_INSUFFICIENT_RESOURCES);
}

static void write_settings(const char *text) {
    char path[300];
    char fresh[310];
    snprintf(path, sizeof path, "%s/nvml", getenv("VGPU_EMULATOR_DIR"));
    snprintf(fresh, sizeof fresh, "%s.new", path);
    FILE *file = fopen(fresh, "we");
    CHECK(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0 && rename(fresh, path) == 0);
}

static void errors_are_injected_into_functions_of_a_gpu(void) {
    nvmlDevice_t device = NULL;
    nvmlGpuInstance_t instance = NULL;
    write_settings(
        "fail.nvmlDeviceGetMigDeviceHandleByIndex=999\nfail.nvmlDeviceCreateGpuInstance=15\n");
    CHECK_EQUAL(nvmlDeviceGetMigDeviceHandleByIndex(gpu, 0, &device), NVML_ERROR_UNKNOWN);
    CHECK_EQUAL(nvmlDeviceCreateGpuInstance(gpu, TWO, &instance), NVML_ERROR_GPU_IS_LOST);
    write_settings("");
    CHECK_OK(nvmlDeviceGetMigDeviceHandleByIndex(gpu, 0, &device));
}

int main(int argc, char **argv) {
    if (argc == 3) {
        return strcmp(argv[1], "look") == 0   ? role_look(argv[2])
               : strcmp(argv[1], "none") == 0 ? role_none()
               : strcmp(argv[1], "run") == 0  ? role_run()
                                              : role_make();
    }
    CHECK_OK(nvmlInit_v2());
    CHECK_OK(nvmlDeviceGetHandleByIndex_v2(0, &gpu));
    mode_is_set_and_read();
    profiles_are_those_of_the_table();
    geometry_is_enforced();
    a_program_sees_its_instance_alone();
    instances_run_at_once();
    instances_outlive_their_maker();
    errors_are_injected_into_functions_of_a_gpu();
    CHECK_OK(nvmlShutdown());
    return check_failures == 0 ? 0 : 1;
}
