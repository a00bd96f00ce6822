/* Programs of test_level2.c. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../main/shm/shm.h"
#include "test.h"

#define MS 1000000ull

typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;

static struct {
  int (*init)(unsigned);
  int (*create)(CUcontext *, unsigned, int);
  int (*load)(CUmodule *, const void *);
  int (*function)(CUfunction *, CUmodule, const char *);
  int (*launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **,
                void **);
  int (*wait)(void);
} cuda;
static CUfunction spin;

static const char PTX[] =
    ".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry vgpu_spin(.param .u64 ns)\n{\nret;\n}\n";

static void bind(void *library, const char *name, void *into) {
  void *found = dlsym(library, name);
  if (found == NULL) _exit(21);
  memcpy(into, &found, sizeof found);
}

static void must(int result) {
  if (result != 0) _exit(result % 100 + 100);
}

static void begin(void) {
  CUcontext context;
  CUmodule module;
  /* With sanitizers the hook is linked into this program. */
  void *library = dlopen(getenv("LD_PRELOAD") == NULL ? NULL : "libcuda.so.1", RTLD_NOW);
  if (library == NULL) _exit(20);
  bind(library, "cuInit", &cuda.init);
  bind(library, "cuCtxCreate_v2", &cuda.create);
  bind(library, "cuModuleLoadData", &cuda.load);
  bind(library, "cuModuleGetFunction", &cuda.function);
  bind(library, "cuLaunchKernel", &cuda.launch);
  bind(library, "cuCtxSynchronize", &cuda.wait);
  must(cuda.init(0));
  must(cuda.create(&context, 0, 0));
  must(cuda.load(&module, PTX));
  must(cuda.function(&spin, module, "vgpu_spin"));
}

static void launch(uint64_t ns) {
  void *parameters[] = {&ns};
  must(cuda.launch(spin, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
}

/* This process's: the test's seat gives it the first one. */
static const struct shm_slot *own_slot(void) {
  char path[256];
  snprintf(path, sizeof path, "%s/leases/test/report", getenv("VGPU_RUN_DIR"));
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  char *pages = mmap(NULL, SHM_REPORT_SIZE, PROT_READ, MAP_SHARED, fd, 0);
  if (pages == MAP_FAILED) _exit(22);
  close(fd);
  return (const void *)(pages + SHM_SLOTS_OFFSET + SHM_SLOT_SIZE);
}

/* Works until level 2 was tried, then waits until the test has created the file "stop". */
static void await_stop(void) {
  const struct shm_slot *slot = own_slot();
  char path[256];
  while (GET(slot->level2) == SHM_LEVEL2_OFF && GET(slot->level2_reason) == SHM_LEVEL2_WHY_NONE) {
    launch(MS);
    must(cuda.wait());
  }
  snprintf(path, sizeof path, "%s/stop", getenv("VGPU_RUN_DIR"));
  while (access(path, F_OK) != 0) usleep(1000);
}

/*
 * Registered before the driver's own exit handler, so it runs after that one, in which the driver waits for its work: the
 * work must not be stopped any more.
 */
static void must_run(void) {
  if (GET(own_slot()->level2) == SHM_LEVEL2_STOPPED) _exit(40);
}

int run_as(const char *role, const char *unused) {
  (void)unused;
  if (strcmp(role, "long") == 0) atexit(must_run);
  begin();
  if (strcmp(role, "flood") == 0) {
    for (;;) {
      launch(10 * MS);
      must(cuda.wait());
    }
  }
  if (strcmp(role, "long") == 0) { /* ends with work on the GPU */
    await_stop();
    launch(300 * MS);
    usleep(100000);
    return 0;
  }
  if (strcmp(role, "fork") == 0) {
    await_stop();
    launch(200 * MS);
    usleep(50000);
    pid_t child = fork();
    if (child == 0) {
      usleep(50000);
      _exit(cuda.init(0) == 0 ? 9 : 0); /* fails, as with the bare driver */
    }
    int status = 1;
    waitpid(child, &status, 0);
    must(cuda.wait());
    return status == 0 ? 0 : 30;
  }
  return 2;
}
