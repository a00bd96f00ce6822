/* Programs of test_memory.c whose contexts and modules take other amounts than the set size. NVML gives the amounts. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_seat.h"
#include "memory_test.h"

static const char PTX[] =
    ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry vgpu_spin(.param .u64 ns)\n{\n ret;\n}\n";

const struct shm_slot *own_slot(void) {
  char path[256];
  snprintf(path, sizeof path, "%s/leases/test/report", getenv("VGPU_RUN_DIR"));
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  char *pages = mmap(NULL, SHM_REPORT_SIZE, PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  return (const struct shm_slot *)(const void *)(pages + SHM_SLOTS_OFFSET) + 1;
}

/* Waits for the measurement, whose completion has no signal. */
static void await_exact(const char *what) {
  uint64_t until = seat_now() + PATIENCE_NS;
  while (ledger_bytes() != real_bytes() && seat_now() < until) usleep(2000);
  EXACT(what);
}

static uint32_t await_measured(const struct shm_slot *slot, uint64_t how) {
  uint64_t until = seat_now() + PATIENCE_NS;
  while (GET(slot->measured) != how && seat_now() < until) usleep(2000);
  return GET(slot->measured);
}

static uint32_t stop;

static void *churn(void *unused) {
  CU(cuCtxSetCurrent, context);
  for (CUdeviceptr p = 0; !GET(stop);) {
    if (CU(cuMemAlloc_v2, &p, (size_t)(3 * MIB)) == ABI_SUCCESS) CU(cuMemFree_v2, p);
  }
  return unused;
}

/* Set size 16 MiB, real size 64; each module 5. */
void role_measured(void) {
  void *module = NULL;
  CUcontext second = NULL;
  begin_inexact();
  EXACT("a context is measured before it is the program's");
  const struct shm_slot *slot = own_slot();
  CHECK(await_measured(slot, SHM_MEASURED_BY_NVML) == SHM_MEASURED_BY_NVML, "and says so: %u", GET(slot->measured));
  CHECK(CU(cuModuleLoadData, &module, PTX) == ABI_SUCCESS, "module");
  EXACT("a module is charged at once");
  CHECK(ledger_bytes() == CONTEXT + 5 * MIB, "%llu", (unsigned long long)ledger_bytes());
  CHECK(CU(cuModuleUnload, module) == ABI_SUCCESS, "unload");
  await_exact("and gone");
  CHECK(CU(cuCtxCreate_v2, &second, 0, 0) == ABI_SUCCESS && CU(cuModuleLoadData, &module, PTX) == ABI_SUCCESS,
        "a second context");
  EXACT("two contexts");
  CHECK(CU(cuCtxDestroy_v2, second) == ABI_SUCCESS, "destroyed with its module");
  await_exact("one is left");
  /* Allocations of other threads meanwhile do not count as a context's memory. */
  pthread_t thread;
  pthread_create(&thread, NULL, churn, NULL);
  CU(cuCtxSetCurrent, context);
  for (int i = 0; i < 20; i++) {
    CHECK(CU(cuModuleLoadData, &module, PTX) == ABI_SUCCESS, "module");
    usleep(10000);
    CHECK(CU(cuModuleUnload, module) == ABI_SUCCESS, "unload");
    CHECK(ledger_bytes() <= CONTEXT + 8 * MIB, "more than there is: %llu", (unsigned long long)ledger_bytes());
  }
  __atomic_store_n(&stop, 1, __ATOMIC_SEQ_CST);
  pthread_join(thread, NULL);
  await_exact("after all that");
}

/*
 * NVML lists a process no longer while its last context is being destroyed, which takes 100 ms here. The next context is
 * measured all the same.
 */
void role_measured_destroyed(void) {
  void *module = NULL;
  begin_inexact();
  CHECK(await_measured(own_slot(), SHM_MEASURED_BY_NVML) == SHM_MEASURED_BY_NVML, "told once");
  CHECK(CU(cuDevicePrimaryCtxRelease_v2, 0) == ABI_SUCCESS, "release");
  for (int i = 0; i < 3; i++) {
    CHECK(CU(cuCtxCreate_v2, &context, 0, 0) == ABI_SUCCESS && CU(cuModuleLoadData, &module, PTX) == ABI_SUCCESS,
          "another");
    EXACT("another context");
    CHECK(CU(cuModuleUnload, module) == ABI_SUCCESS && CU(cuCtxDestroy_v2, context) == ABI_SUCCESS, "destroyed");
  }
  CHECK(GET(own_slot()->measured) == SHM_MEASURED_BY_NVML, "still told: %u", GET(own_slot()->measured));
}

static CUdeviceptr fill_but(uint64_t bytes) {
  CUdeviceptr p = 0;
  uint64_t more = QUOTA - ledger_bytes() - bytes;
  CHECK(CU(cuMemAlloc_v2, &p, (size_t)more) == ABI_SUCCESS, "all but %llu", (unsigned long long)bytes);
  return p;
}

/*
 * Set size 16 MiB, real size 64; a module 40. A change without room is refused and undone, as the driver's own account
 * shows.
 */
void role_measured_refused(void) {
  void *module = NULL, *untouched = &module;
  CUcontext second = NULL;
  CUdeviceptr q = 0;
  begin_inexact();
  CHECK(CU(cuModuleLoadData, &module, PTX) == ABI_SUCCESS, "a module that fits");
  EXACT("a module that fits");
  CUdeviceptr p = fill_but(30 * MIB);
  for (int i = 0; i < 3; i++) {
    CHECK(CU(cuModuleLoadData, &untouched, PTX) == ABI_OUT_OF_MEMORY, "a module without room");
    EXACT("a module without room");
    CHECK(CU(cuCtxCreate_v2, &second, 0, 0) == ABI_OUT_OF_MEMORY && second == NULL,
          "a context without room, though its set size has");
    EXACT("a context without room");
  }
  CHECK(CU(cuMemAlloc_v2, &q, (size_t)(30 * MIB)) == ABI_SUCCESS, "nothing of it is charged");
  CHECK(ledger_bytes() == QUOTA, "full: %llu", (unsigned long long)ledger_bytes());
  EXACT("full");
  CHECK(CU(cuMemFree_v2, q) == ABI_SUCCESS && CU(cuMemFree_v2, p) == ABI_SUCCESS, "free");
  CHECK(CU(cuModuleLoadData, &untouched, PTX) == ABI_SUCCESS && CU(cuCtxCreate_v2, &second, 0, 0) == ABI_SUCCESS,
        "with room");
  EXACT("with room");
  CHECK(CU(cuCtxDestroy_v2, second) == ABI_SUCCESS, "destroy");
  CU(cuCtxSetCurrent, context);
  CHECK(CU(cuDevicePrimaryCtxRelease_v2, 0) == ABI_SUCCESS, "release");
  CHECK(ledger_bytes() == 0, "all is given back with the last context: %llu", (unsigned long long)ledger_bytes());
}

static void *allocate_beside(void *bytes) {
  CU(cuCtxSetCurrent, context);
  for (CUdeviceptr p = 0; !GET(stop);) {
    CHECK(CU(cuMemAlloc_v2, &p, *(size_t *)bytes) == ABI_SUCCESS, "room for an allocation beside a load without room");
    CU(cuMemFree_v2, p);
  }
  return NULL;
}

/* A module of 40 MiB for which there is no room costs other threads nothing: not while it is loaded, and not after. */
void role_measured_refused_beside(void) {
  enum { LOADS = 200 };
  void *module = NULL;
  size_t bytes = 5 * MIB;
  pthread_t thread;
  begin_inexact();
  fill_but(30 * MIB);
  pthread_create(&thread, NULL, allocate_beside, &bytes);
  for (int i = 0; i < LOADS; i++) {
    CHECK(CU(cuModuleLoadData, &module, PTX) == ABI_OUT_OF_MEMORY, "a module without room");
  }
  __atomic_store_n(&stop, 1, __ATOMIC_SEQ_CST);
  pthread_join(thread, NULL);
  EXACT("after all that");
}

/* Set size 16 MiB, real size 600: the process's first context, for which no quota has room. */
void role_measured_large(void) {
  CUcontext primary = NULL;
  open_library();
  CHECK(CU(cuInit, 0) == ABI_SUCCESS, "cuInit");
  open_driver();
  for (int i = 0; i < 3; i++) {
    CHECK(CU(cuDevicePrimaryCtxRetain, &primary, 0) == ABI_OUT_OF_MEMORY && primary == NULL, "primary");
    CHECK(CU(cuCtxCreate_v2, &primary, 0, 0) == ABI_OUT_OF_MEMORY && primary == NULL, "created");
    CHECK(ledger_bytes() == 0, "%llu", (unsigned long long)ledger_bytes());
  }
  int active = 1;
  unsigned flags = 0;
  CHECK(CU(cuDevicePrimaryCtxGetState, 0, &flags, &active) == ABI_SUCCESS && !active, "it is gone");
}

/* Several threads load at once, with room for some of the modules. */
enum { LOADERS = 4 };

static void *load_some(void *loaded) {
  CU(cuCtxSetCurrent, context);
  for (int i = 0; i < 8; i++) {
    void *module = NULL;
    abi_result result = CU(cuModuleLoadData, &module, PTX);
    CHECK(result == ABI_SUCCESS || result == ABI_OUT_OF_MEMORY, "%d", (int)result);
    if (result == ABI_SUCCESS) __atomic_add_fetch((uint32_t *)loaded, 1, __ATOMIC_SEQ_CST);
  }
  return NULL;
}

void role_measured_crowd(void) {
  pthread_t threads[LOADERS], churner;
  uint32_t loaded = 0;
  begin_inexact();
  CUdeviceptr p = fill_but(220 * MIB);
  pthread_create(&churner, NULL, churn, NULL);
  for (int i = 0; i < LOADERS; i++) pthread_create(&threads[i], NULL, load_some, &loaded);
  for (int i = 0; i < LOADERS; i++) pthread_join(threads[i], NULL);
  __atomic_store_n(&stop, 1, __ATOMIC_SEQ_CST);
  pthread_join(churner, NULL);
  await_exact("after all that");
  CHECK(ledger_bytes() <= QUOTA && loaded >= 1 && loaded <= 5, "%u loaded, %llu bytes", loaded,
        (unsigned long long)ledger_bytes());
  CHECK(CU(cuMemFree_v2, p) == ABI_SUCCESS, "free");
  EXACT("freed");
}

/* Threads that do the same at the same moment. */
static pthread_barrier_t together;
static void *modules[LOADERS];

static void *load_together(void *module) {
  CU(cuCtxSetCurrent, context);
  pthread_barrier_wait(&together);
  CHECK(CU(cuModuleLoadData, (void **)module, PTX) == ABI_SUCCESS, "a module for which there is room");
  return NULL;
}

/* Holds the lock of the context that pays, again and again, so that the threads stand in line for it. */
static void *retain_beside(void *unused) {
  CUcontext same = NULL;
  while (!GET(stop)) {
    CHECK(CU(cuDevicePrimaryCtxRetain, &same, 0) == ABI_SUCCESS && CU(cuDevicePrimaryCtxRelease_v2, 0) == ABI_SUCCESS,
          "retain");
  }
  return unused;
}

static void all_together(void *(*body)(void *)) {
  pthread_t threads[LOADERS], beside[2];
  __atomic_store_n(&stop, 0, __ATOMIC_SEQ_CST);
  for (int i = 0; i < 2; i++) pthread_create(&beside[i], NULL, retain_beside, NULL);
  pthread_barrier_init(&together, NULL, LOADERS);
  for (int i = 0; i < LOADERS; i++) pthread_create(&threads[i], NULL, body, &modules[i]);
  for (int i = 0; i < LOADERS; i++) pthread_join(threads[i], NULL);
  __atomic_store_n(&stop, 1, __ATOMIC_SEQ_CST);
  for (int i = 0; i < 2; i++) pthread_join(beside[i], NULL);
  pthread_barrier_destroy(&together);
}

/* The room is just that for the modules of all threads. Each is charged once, whichever of them is measured first. */
void role_measured_together(void) {
  begin_inexact();
  CUdeviceptr p = fill_but(LOADERS * 40 * MIB);
  for (int round = 0; round < 20 && failures == 0; round++) {
    all_together(load_together);
    EXACT("all are loaded");
    CHECK(ledger_bytes() == QUOTA, "round %d: %llu", round, (unsigned long long)ledger_bytes());
    for (int i = 0; i < LOADERS; i++) CHECK(CU(cuModuleUnload, modules[i]) == ABI_SUCCESS, "unload");
    await_exact("and gone");
  }
  CHECK(CU(cuMemFree_v2, p) == ABI_SUCCESS, "free");
}

/* If undoing fails, the program keeps the object, and its memory is owed. */
void role_measured_stuck(void) {
  void *module = NULL;
  CUcontext second = NULL;
  CUdeviceptr q = 0;
  begin_inexact();
  CUdeviceptr p = fill_but(20 * MIB);
  CHECK(CU(cuModuleLoadData, &module, PTX) == ABI_SUCCESS && module != NULL,
        "a module that the driver does not unload");
  CHECK(real_bytes() == QUOTA + 20 * MIB && ledger_bytes() <= QUOTA, "%llu", (unsigned long long)real_bytes());
  CHECK(CU(cuMemAlloc_v2, &q, (size_t)MIB) == ABI_OUT_OF_MEMORY, "nothing more");
  CHECK(CU(cuCtxCreate_v2, &second, 0, 0) == ABI_OUT_OF_MEMORY && second == NULL, "no context, not even its set size");
  CHECK(CU(cuMemFree_v2, p) == ABI_SUCCESS, "free");
  EXACT("it is charged");
  p = fill_but(20 * MIB);
  CHECK(CU(cuCtxCreate_v2, &second, 0, 0) == ABI_SUCCESS && second != NULL,
        "a context that the driver does not destroy");
  CHECK(CU(cuMemAlloc_v2, &q, (size_t)MIB) == ABI_OUT_OF_MEMORY, "nothing more");
  CHECK(CU(cuMemFree_v2, p) == ABI_SUCCESS, "free");
  EXACT("it is charged as well");
  CHECK(CU(cuCtxDestroy_v2, second) == ABI_SUCCESS, "now it goes");
  CU(cuCtxSetCurrent, context);
  CHECK(CU(cuModuleUnload, module) == ABI_SUCCESS, "and so does the module");
  await_exact("both are gone");
}

/* A variable of 40 MiB gets its memory at its look-up. This cannot be refused, so the memory is owed. */
static const char LARGE[] =
    ".version 6.0\n.target sm_50\n.address_size 64\n.visible .global .align 4 .b8 large[41943040];\n";

void role_measured_owed(void) {
  void *module = NULL, *another = NULL;
  CUdeviceptr global = 0, q = 0;
  size_t bytes = 0;
  begin_inexact();
  CHECK(CU(cuModuleLoadData, &module, LARGE) == ABI_SUCCESS, "module");
  EXACT("it has no memory yet");
  CUdeviceptr p = fill_but(30 * MIB), r = 0;
  CHECK(CU(cuMemAlloc_v2, &r, (size_t)(20 * MIB)) == ABI_SUCCESS, "10 MiB are left");
  CHECK(CU(cuModuleGetGlobal_v2, &global, &bytes, module, "large") == ABI_SUCCESS && bytes == 40 * MIB, "the variable");
  CHECK(real_bytes() == QUOTA + 30 * MIB, "over the quota, without our being asked: %llu",
        (unsigned long long)real_bytes());
  /* No further allocation succeeds at any moment. */
  CHECK(CU(cuMemAlloc_v2, &q, (size_t)MIB) == ABI_OUT_OF_MEMORY, "the quota is full");
  CHECK(ledger_bytes() == QUOTA, "%llu", (unsigned long long)ledger_bytes());
  CHECK(CU(cuModuleLoadData, &another, PTX) == ABI_OUT_OF_MEMORY, "no module either");
  CHECK(CU(cuMemFree_v2, r) == ABI_SUCCESS, "free 20");
  CHECK(ledger_bytes() == QUOTA, "they pay for what is owed: %llu", (unsigned long long)ledger_bytes());
  CHECK(CU(cuMemAlloc_v2, &q, (size_t)MIB) == ABI_OUT_OF_MEMORY, "and are nobody's");
  CHECK(CU(cuMemFree_v2, p) == ABI_SUCCESS, "free the rest");
  EXACT("all is charged");
  CHECK(CU(cuModuleUnload, module) == ABI_SUCCESS, "unload");
  await_exact("and given back");
}

static void *allocate_together(void *at) {
  CUdeviceptr p = 0;
  CU(cuCtxSetCurrent, context);
  pthread_barrier_wait(&together);
  CHECK(CU(cuMemAlloc_v2, &p, (size_t)MIB) == ABI_SUCCESS, "an allocation for which there is room");
  *(CUdeviceptr *)at = p;
  return NULL;
}

/* Threads that allocate, beside the hook's own, find the memory of a variable. It is charged once. */
void role_measured_found(void) {
  begin_inexact();
  for (int round = 0; round < 8 && failures == 0; round++) {
    void *module = NULL;
    CHECK(CU(cuModuleLoadData, &module, LARGE) == ABI_SUCCESS, "module");
    await_exact("it has no memory yet");
    CUdeviceptr p = fill_but((40 + LOADERS) * MIB);
    usleep(120000); /* a new reading is taken only after this time */
    CHECK(CU(cuModuleGetGlobal_v2, &(CUdeviceptr){0}, &(size_t){0}, module, "large") == ABI_SUCCESS, "the variable");
    all_together(allocate_together);
    EXACT("full");
    CHECK(ledger_bytes() == QUOTA, "round %d: %llu", round, (unsigned long long)ledger_bytes());
    for (int i = 0; i < LOADERS; i++)
      CHECK(CU(cuMemFree_v2, (CUdeviceptr)(uintptr_t)modules[i]) == ABI_SUCCESS, "free");
    CHECK(CU(cuMemFree_v2, p) == ABI_SUCCESS && CU(cuModuleUnload, module) == ABI_SUCCESS, "and the rest");
    await_exact("and gone");
  }
}

/* Set size 64 MiB, real size 9.5. With managed memory a smaller figure is not believed. */
void role_measured_less(void) {
  CUdeviceptr managed = 0;
  CUcontext second = NULL;
  begin_inexact();
  await_exact("a context takes less than the set size");
  CHECK(CU(cuMemAllocManaged, &managed, (size_t)MIB, 1) == ABI_SUCCESS, "managed");
  CHECK(CU(cuCtxCreate_v2, &second, 0, 0) == ABI_SUCCESS, "a second context");
  usleep(200000);
  CHECK(ledger_bytes() == real_bytes() + CONTEXT - 9728 * 1024, "less is believed no more: %llu",
        (unsigned long long)ledger_bytes());
}

/* The same for a program whose only context is one of its own, in which it has called nothing yet. */
void role_measured_unused(void) {
  open_library();
  CHECK(CU(cuInit, 0) == ABI_SUCCESS, "cuInit");
  open_driver();
  CHECK(CU(cuCtxCreate_v2, &context, 0, 0) == ABI_SUCCESS, "create");
  await_exact("a context is measured before it is first used");
}

/* ---- threads that stand still in the middle of a call, as without a processor ---- */

enum { STANDING = 4, ROUNDS = 12 };
static uint32_t stand_still, standing;

static void on_pause(int signal) {
  (void)signal;
  __atomic_add_fetch(&standing, 1, __ATOMIC_SEQ_CST);
  while (GET(stand_still)) usleep(500);
}

/* All threads of a round allocate and free, and are stopped wherever they are while the context is measured. */
static void measure_round(void *module) {
  pthread_t threads[STANDING];
  CUdeviceptr value = 0;
  size_t size = 0;
  __atomic_store_n(&stop, 0, __ATOMIC_SEQ_CST);
  __atomic_store_n(&stand_still, 1, __ATOMIC_SEQ_CST);
  __atomic_store_n(&standing, 0, __ATOMIC_SEQ_CST);
  for (int i = 0; i < STANDING; i++) pthread_create(&threads[i], NULL, churn, NULL);
  usleep(120000); /* a new reading is taken only after this time */
  CU(cuModuleGetGlobal_v2, &value, &size, module, "large");
  for (int i = 0; i < STANDING; i++) pthread_kill(threads[i], SIGUSR1);
  uint64_t until = seat_now() + 100000000u;
  while (GET(standing) < STANDING && seat_now() < until) usleep(500);
  usleep(80000); /* until all readings are taken */
  __atomic_store_n(&stop, 1, __ATOMIC_SEQ_CST);
  __atomic_store_n(&stand_still, 0, __ATOMIC_SEQ_CST);
  for (int i = 0; i < STANDING; i++) pthread_join(threads[i], NULL);
}

void role_measured_paused(void) {
  void *module = NULL;
  struct sigaction action = {.sa_handler = on_pause};
  sigaction(SIGUSR1, &action, NULL);
  begin_inexact();
  CHECK(CU(cuModuleLoadData, &module, LARGE) == ABI_SUCCESS, "module");
  CU(cuModuleGetGlobal_v2, &(CUdeviceptr){0}, &(size_t){0}, module, "large");
  await_exact("with the variable");
  for (int i = 0; i < ROUNDS; i++) {
    measure_round(module);
    CHECK(ledger_bytes() >= real_bytes(), "%llu of %llu bytes are charged", (unsigned long long)ledger_bytes(),
          (unsigned long long)real_bytes());
  }
  await_exact("after all that");
}

void role_measured_not(void) {
  begin();
  const struct shm_slot *slot = own_slot();
  CHECK(await_measured(slot, SHM_MEASURED_NOT) == SHM_MEASURED_NOT, "it says so: %u", GET(slot->measured));
  EXACT("the set size");
}

/* Contexts that the hook sees only at their first use, like those made through the driver's private tables. */
void role_measured_private(void) {
  CUcontext second = NULL, back = NULL;
  CUdeviceptr p = 0;
  CUstream stream = NULL;
  void *module = NULL;
  CUfunction function = NULL;
  open_library();
  CHECK(CU(cuInit, 0) == ABI_SUCCESS, "cuInit");
  open_driver();
  CHECK(OF_DRIVER(cuDevicePrimaryCtxRetain, &context, 0) == ABI_SUCCESS &&
            OF_DRIVER(cuCtxSetCurrent, context) == ABI_SUCCESS,
        "primary");
  CHECK(CU(cuMemAlloc_v2, &p, (size_t)(3 * MIB)) == ABI_SUCCESS, "memory");
  await_exact("a primary context");
  CHECK(CU(cuDevicePrimaryCtxRetain, &back, 0) == ABI_SUCCESS && back == context, "retained");
  await_exact("charged once");
  CHECK(OF_DRIVER(cuCtxCreate_v2, &second, 0u, 0) == ABI_SUCCESS && CU(cuStreamCreate, &stream, 0u) == ABI_SUCCESS,
        "another one");
  CHECK(CU(cuModuleLoadData, &module, PTX) == ABI_SUCCESS &&
            CU(cuModuleGetFunction, &function, module, "vgpu_spin") == ABI_SUCCESS,
        "kernel");
  uint64_t ns = 1000;
  void *arguments[] = {&ns};
  CHECK(CU(cuLaunchKernel, function, 1u, 1u, 1u, 1u, 1u, 1u, 0u, stream, arguments, NULL) == ABI_SUCCESS, "launch");
  await_exact("another one, with work in it");
  CHECK(CU(cuCtxDestroy_v2, second) == ABI_SUCCESS && CU(cuCtxSetCurrent, context) == ABI_SUCCESS, "destroyed");
  await_exact("destroyed");
  CHECK(CU(cuDevicePrimaryCtxReset_v2, 0) == ABI_SUCCESS && ledger_bytes() == 0, "reset: %llu",
        (unsigned long long)ledger_bytes());
}

/* ---- in its own pid namespace, in which this process is number 1, as another process is in its own ---- */

int exec_apart(const char *program, const char *role) {
  return execlp("unshare", "unshare", geteuid() == 0 ? "--mount" : "--map-root-user", "--propagation", "unchanged",
                "--pid", "--fork", "--mount-proc", program, "--role", role, (char *)NULL);
}

/* Runs until its input ends. */
void role_measured_beside(void) {
  CUdeviceptr p = 0;
  char end;
  begin_inexact();
  CHECK(CU(cuMemAlloc_v2, &p, (size_t)(16 * MIB)) == ABI_SUCCESS, "memory");
  await_exact("the other one");
  CHECK(write(1, "1", 1) == 1 && read(0, &end, 1) == 0, "the end of the input");
}

void role_measured_apart(void) {
  void *module = NULL;
  int to[2], from[2];
  char program[256] = "", begun;
  CHECK(getpid() == 1 && readlink("/proc/self/exe", program, sizeof program - 1) > 0, "process %d", getpid());
  begin_inexact();
  EXACT("a context is measured before it is the program's");
  CHECK(await_measured(own_slot(), SHM_MEASURED_BY_NVML) == SHM_MEASURED_BY_NVML, "and says so: %u",
        GET(own_slot()->measured));
  CHECK(pipe(to) == 0 && pipe(from) == 0, "pipes");
  pid_t other = fork();
  if (other == 0) {
    dup2(to[0], 0);
    dup2(from[1], 1);
    for (int i = 3; i < 64; i++) close(i);
    _exit(exec_apart(program, "measured-beside"));
  }
  close(from[1]);
  CHECK(read(from[0], &begun, 1) == 1, "the other one");
  CHECK(CU(cuModuleLoadData, &module, PTX) == ABI_SUCCESS, "module");
  EXACT("what the other one has is not charged twice");
  close(to[0]);
  close(to[1]);
  int status = -1;
  CHECK(waitpid(other, &status, 0) == other && status == 0, "the other one ended with %d", status);
}

/* The driver takes its number for that of another process. */
void role_measured_apart_old(void) {
  begin_inexact();
  CHECK(await_measured(own_slot(), SHM_MEASURED_NOT) == SHM_MEASURED_NOT, "it says so: %u", GET(own_slot()->measured));
  CHECK(ledger_bytes() == 16 * MIB, "%llu", (unsigned long long)ledger_bytes());
}
