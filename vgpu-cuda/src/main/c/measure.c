/*
 * What contexts and modules take is in no call's arguments. It is measured: what NVML says that this process holds, less what is
 * charged to it. A context is charged a set size when it is made; a thread of its own asks NVML soon after, and again later, since
 * modules are loaded when they are first used. Nobody waits for it.
 *
 * Other processes do not matter: NVML tells of each by itself. Nor do this one's other threads: what is charged is reserved before the
 * driver is called and given back after, so it is at no moment less than what allocations really take. With the ledger unchanged around
 * a reading, NVML's figure less the charge is never more than what contexts and modules take beyond what they are charged: that much
 * can always be added. Less is believed only when several readings in a row say the same and no charge has changed meanwhile.
 */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../nvml/nvml_abi.h"
#include "hook.h"

enum { STACK = 256 * 1024, DEVICES = 64, PROCESSES = 512, READINGS = 12, ALIKE = 4, UNSEEN = 3, OWN_SEQ_BITS = 20 };
static const uint64_t SOON_NS = 20u * NS_PER_MS, AGAIN_NS = 5u * NS_PER_MS, LATER_NS = 1000u * NS_PER_MS, LEAVE_NS = 10u * NS_PER_MS;
static const uint64_t NEVER_NS = 3600u * 1000u * (uint64_t)NS_PER_MS, SUSPENDED_NS = 100u * NS_PER_MS;
static const unsigned long long NOT_AVAILABLE = ~0ull;

/* The real NVML; found and initialised by the thread. */
static struct {
  nvmlReturn_t (*init)(void);
  nvmlReturn_t (*count)(unsigned *count);
  nvmlReturn_t (*at)(unsigned index, nvmlDevice_t *device);
  nvmlReturn_t (*processes)(nvmlDevice_t device, unsigned *count, void *infos);
  size_t size; /* of one of the infos */
} nvml;

static struct {
  struct vgpu_lock lock; /* of starting */
  int runs;
  uint32_t wanted; /* how often it was asked for; waited on */
  uint32_t stop, inside;
  unsigned unseen;
} measure;
uint32_t vgpu__measure_less;

static void vgpu__tell(uint64_t how) {
  struct vgpu_tenant *tenant;
  for (unsigned i = 0; (tenant = vgpu__tenant_next(&i)) != NULL; i++) {
    STORE(tenant->slot->overhead_bytes, vgpu__contexts_bytes(tenant));
    STORE(tenant->slot->measured, (uint32_t)how);
  }
}

/* ---- NVML ---- */

static int vgpu__bind_one(void *library, void *into, const char *name) {
  void *found = dlsym(library, name);
  if (found != NULL) memcpy(into, &found, sizeof found);
  return found == NULL ? -1 : 0;
}

static const char *vgpu__nvml_open(void) {
  const char *path = vgpu__setting("VGPU_NVML");
  if (path == NULL || path[0] != '/') return "VGPU_NVML does not name it";
  void *library = vgpu__dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL || dlsym(library, "vgpu_nvml_version") != NULL) return "it cannot be loaded";
  int lacks = vgpu__bind_one(library, &nvml.init, "nvmlInit_v2") | vgpu__bind_one(library, &nvml.count, "nvmlDeviceGetCount_v2") |
              vgpu__bind_one(library, &nvml.at, "nvmlDeviceGetHandleByIndex_v2");
  nvml.size = sizeof(struct nvml_process_v2);
  if (vgpu__bind_one(library, &nvml.processes, "nvmlDeviceGetComputeRunningProcesses_v3") != 0 &&
      vgpu__bind_one(library, &nvml.processes, "nvmlDeviceGetComputeRunningProcesses_v2") != 0) {
    nvml.size = sizeof(struct nvml_process_v1);
    lacks |= vgpu__bind_one(library, &nvml.processes, "nvmlDeviceGetComputeRunningProcesses");
  }
  if (lacks) return "it lacks a function";
  return nvml.init() == NVML_SUCCESS ? NULL : "it cannot be initialised";
}

/* What this process holds on all GPUs. 1: told; 0: it is not among the processes; -1: not told. */
static int vgpu__nvml_read(uint64_t *bytes) {
  static _Alignas(8) char infos[PROCESSES * sizeof(struct nvml_process_v2)];
  unsigned devices = 0, self = (unsigned)getpid();
  int seen = 0;
  *bytes = 0;
  if (nvml.count(&devices) != NVML_SUCCESS) return -1;
  for (unsigned i = 0; i < devices && i < DEVICES; i++) {
    nvmlDevice_t device;
    unsigned count = PROCESSES;
    if (nvml.at(i, &device) != NVML_SUCCESS) continue;
    nvmlReturn_t result = nvml.processes(device, &count, infos);
    if (result != NVML_SUCCESS) return -1;
    for (unsigned j = 0; j < count && j < PROCESSES; j++) {
      struct nvml_process_v1 info; /* with which the later forms begin */
      memcpy(&info, infos + j * nvml.size, sizeof info);
      if (info.pid != self) continue;
      if (info.bytes == NOT_AVAILABLE) return -1;
      *bytes += info.bytes;
      seen = 1;
    }
  }
  return seen;
}

/* ---- the comparison ---- */

/* What is charged to all leases for this process; *mark changes with every charge. */
static uint64_t vgpu__charged(uint64_t *mark) {
  const struct vgpu_tenant *tenant;
  uint64_t units = 0;
  *mark = 0;
  for (unsigned i = 0; (tenant = vgpu__tenant_next(&i)) != NULL; i++) {
    uint64_t own = LOAD_ACQUIRE(tenant->slot->memory_own);
    units += own >> OWN_SEQ_BITS;
    *mark = *mark * 31 + own + LOAD(tenant->slot->moved_bytes);
  }
  return units * SHM_MEMORY_UNIT;
}

enum look { LOOK_TOLD, LOOK_AGAIN, LOOK_NOT };

static enum look vgpu__look(int64_t *beyond, uint64_t *mark) {
  uint64_t held, after, charged = vgpu__charged(mark);
  int told = vgpu__nvml_read(&held);
  vgpu__charged(&after);
  if (vgpu__suspended_any()) return LOOK_AGAIN; /* its memory is away, its charge is not */
  if (told < 0) return LOOK_NOT;
  if (told == 0) return ++measure.unseen < (unsigned)UNSEEN ? LOOK_AGAIN : LOOK_NOT;
  measure.unseen = 0;
  if (*mark != after) return LOOK_AGAIN;
  held = (held + SHM_MEMORY_UNIT - 1) / SHM_MEMORY_UNIT * SHM_MEMORY_UNIT;
  *beyond = (int64_t)(held - charged);
  return LOOK_TOLD;
}

/* Makes the charge what NVML says. 0; -1: NVML does not tell. */
static int vgpu__measure_now(void) {
  int64_t beyond = 0, before = 0;
  uint64_t mark = 0, first_mark = 0;
  unsigned alike = 0;
  for (int i = 0; i < READINGS && vgpu__contexts_any(); i++) {
    if (i > 0) vgpu__sleep_ns(AGAIN_NS);
    if (LOAD(measure.stop)) return 0;
    enum look look = vgpu__look(&beyond, &mark);
    if (look == LOOK_NOT) return -1;
    if (look == LOOK_AGAIN) {
      alike = 0;
      continue;
    }
    if (beyond == 0) break;
    if (beyond > 0) {
      if (vgpu__context_adjust(beyond) < beyond) {
        vgpu__log("contexts and modules take %lld bytes for which the quota has no room", (long long)beyond);
        break; /* owed: asked for again when something changes */
      }
      alike = 0;
      continue;
    }
    alike = alike > 0 && beyond == before && mark == first_mark ? alike + 1 : 1;
    before = beyond;
    first_mark = mark;
    if (alike >= ALIKE && !LOAD(vgpu__measure_less)) {
      vgpu__context_adjust(beyond);
      break;
    }
  }
  vgpu__tell(SHM_MEASURED_BY_NVML);
  return 0;
}

/* ---- the thread ---- */

static const char *vgpu__why_not(void) {
  unsigned i = 0;
  const char *wish = vgpu__setting("VGPU_MEASURE");
  if (wish != NULL && strcmp(wish, "off") == 0) return "VGPU_MEASURE is off";
  const struct vgpu_tenant *tenant = vgpu__tenant_next(&i);
  if (tenant == NULL) return "this process is under no lease";
  const struct shm_grant_more *more = (const void *)((const char *)tenant->seat + SHM_GRANT_MORE_OFFSET);
  if (LOAD(more->pid_namespace) == 0 || LOAD(more->pid_namespace) != vgpu__pid_namespace()) {
    return "this process has other numbers than NVML knows: it is in a container";
  }
  return vgpu__nvml_open();
}

static void *vgpu__measurer(void *unused) {
  const char *why = NULL;
  (void)unused;
  prctl(PR_SET_NAME, "vgpu-measure", 0, 0, 0);
  uint32_t seen = 0;
  for (int late = 0; why == NULL;) {
    uint32_t now = LOAD_ACQUIRE(measure.wanted);
    if (now == seen && !late) {
      vgpu__futex_wait(&measure.wanted, now, NEVER_NS);
      continue;
    }
    /* When a second has passed without more, once more. */
    late = now != seen;
    seen = now;
    if (late) vgpu__sleep_ns(SOON_NS);
    while (vgpu__suspended_any() && !LOAD(measure.stop)) vgpu__sleep_ns(SUSPENDED_NS);
    __atomic_store_n(&measure.inside, 1, __ATOMIC_SEQ_CST);
    if (!__atomic_load_n(&measure.stop, __ATOMIC_SEQ_CST)) {
      if (nvml.size == 0) why = vgpu__why_not();
      if (why == NULL && vgpu__measure_now() != 0) why = "NVML does not tell what this process holds";
    }
    STORE_RELEASE(measure.inside, 0);
    if (LOAD(measure.stop)) return NULL;
    if (late && why == NULL) vgpu__futex_wait(&measure.wanted, seen, LATER_NS);
  }
  vgpu__tell(SHM_MEASURED_NOT);
  vgpu__log("a context is charged the set size, modules nothing: %s", why);
  return NULL;
}

static void vgpu__measure_start(void) {
  pthread_t thread;
  pthread_attr_t attributes;
  uint64_t all = ~(uint64_t)0, before = 0;
  vgpu__lock(&measure.lock);
  if (!measure.runs && pthread_attr_init(&attributes) == 0) {
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof all);
    if (pthread_create(&thread, &attributes, vgpu__measurer, NULL) == 0) STORE_RELEASE(measure.runs, 1);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof before);
    pthread_attr_destroy(&attributes);
  }
  vgpu__unlock(&measure.lock);
}

void vgpu__measure_soon(void) {
  if (!LOAD(vgpu__attached)) return;
  int kept = errno;
  ADD(measure.wanted, 1);
  if (UNLIKELY(!LOAD_ACQUIRE(measure.runs))) vgpu__measure_start();
  syscall(SYS_futex, &measure.wanted, FUTEX_WAKE, 1, NULL, NULL, 0);
  errno = kept;
}

/* In the child of a fork: its thread is its parent's. */
void vgpu__measure_forget(void) {
  memset(&measure, 0, sizeof measure);
  memset(&nvml, 0, sizeof nvml);
  vgpu__measure_less = 0;
}

/* NVML may end with the program: nothing of it is called any more. */
__attribute__((destructor)) static void vgpu__measure_end(void) {
  uint64_t deadline = vgpu__now_ns() + LEAVE_NS;
  __atomic_store_n(&measure.stop, 1, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(&measure.inside, __ATOMIC_SEQ_CST) && vgpu__now_ns() < deadline) vgpu__sleep_ns(20u * NS_PER_US);
}
