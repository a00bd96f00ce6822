/* Maps the lease's pages read-only, without becoming one of its processes. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../c/system/shown.h"
#include "interpose.h"
#include "sys.h"

enum { OWN_SEQ_BITS = 20, EVERYTHING = 1000, MOST_GPUS = 8 /* MEMORY_GPUS */ };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t mode; /* enum vgpu_nvml_mode */
static const struct shm_grant *grant;
static const struct shm_grant_more *more;
static const struct shm_ledger *ledger;
static const struct shm_slot *slots;

static const char *vgpu__named(const char *name) {
  const char *value = getenv(name);
  return value == NULL || value[0] == '\0' ? NULL : value;
}

/* Returns NULL with the reason in `why`. */
static const char *vgpu__map_page(const char *name, uint64_t size, uint64_t magic, char *why, size_t why_size) {
  const char *directory = vgpu__named("VGPU_RUN_DIR"), *lease = vgpu__named("VGPU_LEASE");
  char path[1400];
  struct stat seen;
  if (directory == NULL || lease == NULL || directory[0] != '/' || strchr(lease, '/') != NULL || lease[0] == '.') {
    snprintf(why, why_size, "VGPU_RUN_DIR and VGPU_LEASE do not name a virtual GPU");
    return NULL;
  }
  int length = snprintf(path, sizeof path, "%s/leases/%s/%s", directory, lease, name);
  if (length < 0 || (size_t)length >= sizeof path) return NULL;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) {
    snprintf(why, why_size, "cannot open %s: %s", path, strerror(errno));
    return NULL;
  }
  void *page = MAP_FAILED;
  if (vgpu__fstat(fd, &seen) == 0 && S_ISREG(seen.st_mode) && (uint64_t)seen.st_size == size) {
    page = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, fd, 0);
  }
  close(fd);
  const struct shm_header *header = page;
  if (page == MAP_FAILED) {
    snprintf(why, why_size, "%s is not a valid shared-page file", path);
  } else if (LOAD_ACQUIRE(header->magic) != magic || header->size != size || header->slot_count != SHM_SLOT_COUNT ||
             header->layout_major != SHM_LAYOUT_MAJOR) {
    snprintf(why, why_size, "%s has another layout (%u; this library knows %u)", path, header->layout_major,
             (unsigned)SHM_LAYOUT_MAJOR);
    munmap(page, (size_t)size);
  } else {
    return page;
  }
  return NULL;
}

static int vgpu__map_pages(char *why, size_t why_size) {
  const char *granted = vgpu__map_page("grant", SHM_GRANT_SIZE, SHM_GRANT_MAGIC, why, why_size);
  if (granted == NULL) return -1;
  const char *report = vgpu__map_page("report", SHM_REPORT_SIZE, SHM_REPORT_MAGIC, why, why_size);
  if (report == NULL) {
    munmap((void *)(uintptr_t)granted, (size_t)SHM_GRANT_SIZE);
    return -1;
  }
  grant = (const void *)(granted + SHM_GRANT_OFFSET);
  more = (const void *)(granted + SHM_GRANT_MORE_OFFSET);
  ledger = (const void *)(report + SHM_LEDGER_OFFSET);
  slots = (const void *)(report + SHM_SLOTS_OFFSET);
  return 0;
}

enum vgpu_nvml_mode vgpu__lease_mode(void) { return LOAD_ACQUIRE(mode); }

/* Once found, the pages stay mapped for the life of the process. After a failure the next nvmlInit tries again. */
enum vgpu_nvml_mode vgpu__lease_find(void) {
  pthread_mutex_lock(&lock);
  uint32_t found = mode;
  if (found != VGPU_NVML_LEASED) {
    char why[1500] = "";
    int told = found == VGPU_NVML_REFUSED;
    const char *wish = vgpu__named("VGPU_FAILURE_MODE");
    if (vgpu__map_pages(why, sizeof why) == 0) {
      found = VGPU_NVML_LEASED;
    } else {
      found = wish != NULL && strcmp(wish, "open") == 0 ? VGPU_NVML_OPEN : VGPU_NVML_REFUSED;
      if (found == VGPU_NVML_REFUSED && !told) vgpu__say("no NVML for this program", why);
    }
    __atomic_store_n(&mode, found, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&lock);
  return found;
}

const char *vgpu__lease_devices(void) {
  if (LOAD_ACQUIRE(mode) != VGPU_NVML_LEASED || memchr(more->devices, 0, sizeof more->devices) == NULL) return "";
  return (const char *)more->devices;
}

static unsigned vgpu__share(void) {
  uint32_t permille = LOAD(grant->entitled_permille);
  if (LOAD(grant->policy) == SHM_POLICY_BEST_EFFORT || permille == 0 || permille > EVERYTHING) return EVERYTHING;
  return permille;
}

/* The first and the last account that concern a device: one of them if each of the lease's GPUs has one. */
static void vgpu__accounts_of(nvmlDevice_t device, unsigned *first, unsigned *last) {
  char uuid[NVML_UUID_SIZE] = "";
  uint32_t gpus = LOAD(more->memory_gpus);
  *first = 0;
  *last = gpus <= 1 ? 0 : gpus > MOST_GPUS ? MOST_GPUS - 1 : gpus - 1;
  if (*last == 0 || device == NULL || REAL(nvmlDeviceGetUUID)(device, uuid, sizeof uuid) != NVML_SUCCESS) return;
  int found = vgpu__shown_named(vgpu__lease_devices(), uuid);
  if (found >= 0 && (unsigned)found <= *last) *first = *last = (unsigned)found;
}

static uint64_t vgpu__held_by(const struct shm_slot *slot, unsigned first, unsigned last) {
  uint64_t units = 0;
  for (unsigned i = first; i <= last; i++)
    units += LOAD_ACQUIRE(*(i == 0 ? &slot->memory_own : &slot->memory_owns[i - 1])) >> OWN_SEQ_BITS;
  return units * SHM_MEMORY_UNIT;
}

static uint64_t vgpu__used(unsigned first, unsigned last) {
  uint64_t units = 0;
  for (unsigned i = first; i <= last; i++) {
    units += LOAD_ACQUIRE(*(i == 0 ? &ledger->memory_word : &ledger->memory_words[i - 1])) >> SHM_MEMORY_UNITS_SHIFT;
  }
  return units * SHM_MEMORY_UNIT;
}

void vgpu__lease_look(nvmlDevice_t device, struct vgpu_look *look) {
  unsigned first, last;
  vgpu__accounts_of(device, &first, &last);
  uint64_t space = vgpu__pid_namespace();
  look->now_ns = vgpu__now_ns();
  look->quota = LOAD_ACQUIRE(grant->memory_limit) * (last - first + 1);
  look->used = vgpu__used(first, last);
  look->gpu_ns = LOAD_ACQUIRE(grant->retired_gpu_ns);
  look->share_permille = vgpu__share();
  look->count = 0;
  for (uint32_t i = 1; i < SHM_SLOT_COUNT; i++) {
    const struct shm_slot *slot = &slots[i];
    if (LOAD_ACQUIRE(slot->state) != SHM_SLOT_ATTACHED) continue;
    struct vgpu_process process = {.pid = LOAD(slot->pid), .generation = LOAD(slot->generation), .slot = i};
    process.bytes = vgpu__held_by(slot, first, last);
    process.gpu_ns = LOAD_ACQUIRE(slot->gpu_ns);
    look->gpu_ns += process.gpu_ns;
    /* Without memory it is not on the GPU. In another namespace its pid means another process. */
    if (process.bytes == 0 || LOAD(slot->pid_namespace) != space) continue;
    if (!vgpu__process_exists(process.pid, LOAD(slot->start_time))) continue;
    look->processes[look->count++] = process;
  }
}
