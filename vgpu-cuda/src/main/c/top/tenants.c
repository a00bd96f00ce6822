/*
 * The calls of a program that serves several leases: adding one, dropping one, and binding a thread to one.
 *
 * A handle is index + 1, and above 8 bits the index's generation. So the handle of a dropped lease matches nothing.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "top.h"

enum { HANDLE_SHIFT = 8, HANDLE_MASK = 0xff };

/* How long an index rests. A driver call that began under the previous lease may still record what it made. */
static const uint64_t REST_NS = 2000u * (uint64_t)NS_PER_MS;

static int64_t vgpu__handle_of(const struct vgpu_tenant *tenant) {
  return (int64_t)((uint64_t)LOAD(tenant->generation) << HANDLE_SHIFT | (tenant->index + 1));
}

static struct vgpu_tenant *vgpu__tenant_of(int64_t handle) {
  uint64_t index = ((uint64_t)handle & HANDLE_MASK) - 1;
  if (handle <= 0 || index >= LOAD_ACQUIRE(vgpu__tenants_used)) return NULL;
  struct vgpu_tenant *tenant = vgpu__tenants[index];
  return LOAD_ACQUIRE(tenant->mode) == VGPU_ATTACHED && vgpu__handle_of(tenant) == handle ? tenant : NULL;
}

/* ---- the scope of a thread ---- */

int64_t vgpu_tenant_bind(int64_t handle) {
  struct vgpu_tenant *wanted = NULL;
  if (handle != 0 && (wanted = vgpu__tenant_of(handle)) == NULL) return -1;
  const struct vgpu_tenant *before = vgpu__scope.bound;
  int64_t was = before == NULL ? 0 : (int64_t)((uint64_t)vgpu__scope.generation << HANDLE_SHIFT | (before->index + 1));
  if (was == handle) return was;
  /* The thread's entries of default streams belong to the previous scope. */
  vgpu__entries_forget();
  vgpu__scope.generation = wanted == NULL ? 0 : LOAD(wanted->generation);
  vgpu__scope.bound = wanted;
  return was;
}

/* ---- adding ---- */

/* An index of which nothing is left, or a new one. */
static struct vgpu_tenant *vgpu__tenant_free(void) {
  uint32_t used = vgpu__tenants_used;
  if (used < VGPU_TENANTS) {
    struct vgpu_tenant *made = mmap(NULL, sizeof *made, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED) return NULL;
    vgpu__tenant_clear(made, used);
    made->generation = 1;
    made->mode = VGPU_DROPPED;
    vgpu__tenants[used] = made;
    STORE_RELEASE(vgpu__tenants_used, used + 1);
    return made;
  }
  uint64_t held = vgpu__table_tenants() | vgpu__vmm_tenants() | vgpu__context_tenants() | vgpu__lane_tenants() |
                  vgpu__pool_tenants() | vgpu__later_tenants() | vgpu__graph_memory_tenants() | vgpu__movable_tenants();
  uint64_t now = vgpu__now_ns();
  /* never index 0, whose streams are not recorded */
  for (uint32_t i = 1; i < used; i++) {
    struct vgpu_tenant *tenant = vgpu__tenants[i];
    if (LOAD(tenant->mode) == VGPU_DROPPED && (held >> i & 1) == 0 && now - tenant->dropped_ns > REST_NS) return tenant;
  }
  return NULL;
}

/* Resets all but what other threads may still read: the region and the generation. */
static void vgpu__tenant_renew(struct vgpu_tenant *tenant) {
  tenant->autonomous = 0;
  tenant->overlap = 1024;
  tenant->inflight_ns = 0;
  memset(tenant->owed_units, 0, sizeof tenant->owed_units);
  memset(tenant->debt_units, 0, sizeof tenant->debt_units);
  memset(tenant->overhead_units, 0, sizeof tenant->overhead_units);
  tenant->gate = (struct vgpu_gate){.told_idle = 1};
  vgpu__express_forget(tenant);
}

static int vgpu__is_under(const char *const *env) {
  const char *directory = vgpu__value_in(env, "VGPU_RUN_DIR"), *id = vgpu__value_in(env, "VGPU_LEASE");
  const struct vgpu_tenant *tenant;
  if (directory == NULL || id == NULL) return 0;
  for (unsigned i = 0; (tenant = vgpu__tenant_next(&i)) != NULL; i++) {
    if (strcmp(tenant->lease, id) == 0 && strcmp(tenant->run_dir, directory) == 0) return 1;
  }
  return 0;
}

static int vgpu__lists(const char *list, const char *item, size_t length) {
  for (const char *at = list; at != NULL && *at != '\0';) {
    size_t here = strcspn(at, ",");
    if (here == length && strncmp(at, item, length) == 0) return 1;
    at += here;
    if (*at == ',') at++;
  }
  return 0;
}

/*
 * The driver reads the list of visible GPUs once, in its cuInit. Until then the GPUs of further leases are added to it.
 * After that a lease's GPU must be in the list, or all GPUs must be visible.
 */
static int vgpu__show_devices(const char *const *env) {
  const char *wanted = vgpu__value_in(env, "CUDA_VISIBLE_DEVICES"), *shown = getenv("CUDA_VISIBLE_DEVICES");
  if (wanted == NULL || shown == NULL || shown[0] == '\0') return 0;
  for (const char *at = wanted; *at != '\0';) {
    size_t length = strcspn(at, ",");
    if (length > 0 && !vgpu__lists(shown, at, length)) {
      size_t before = strlen(shown);
      char *longer = LOAD(vgpu__driver_initialised) ? NULL : malloc(before + length + 2);
      if (longer == NULL) {
        vgpu__log(
            "CUDA was initialised in this process with CUDA_VISIBLE_DEVICES=%s, and the lease is on %s: attach it before the "
            "first use of CUDA, or start the program with both GPUs visible",
            shown, wanted);
        return -1;
      }
      memcpy(longer, shown, before);
      longer[before] = ',';
      memcpy(longer + before + 1, at, length);
      longer[before + 1 + length] = '\0';
      setenv("CUDA_VISIBLE_DEVICES", longer, 1);
      free(longer);
      shown = getenv("CUDA_VISIBLE_DEVICES");
    }
    at += length;
    if (*at == ',') at++;
  }
  return 0;
}

static int64_t vgpu__add_locked(const char *const *env) {
  const char *driver = vgpu__value_in(env, "VGPU_CUDA_DRIVER"), *ours = vgpu__setting("VGPU_CUDA_DRIVER");
  if (vgpu__is_under(env)) {
    vgpu__log("this process is under lease %s already", vgpu__value_in(env, "VGPU_LEASE"));
    return -2;
  }
  if (driver != NULL && (ours == NULL || strcmp(driver, ours) != 0)) {
    vgpu__log("a process has one CUDA driver: this one has %s, and the lease wants %s",
              ours == NULL ? "the machine's" : ours, driver);
    return -1;
  }
  struct vgpu_tenant *tenant = vgpu__tenant_free();
  if (tenant == NULL) {
    vgpu__log("this process has the maximum of %d leases, or still holds memory or streams of dropped ones",
              (int)VGPU_TENANTS);
    return -1;
  }
  vgpu__tenant_renew(tenant);
  if (vgpu__show_devices(env) != 0 || vgpu__join(tenant, env) != 0) return -1;
  if (LOAD(vgpu__unbound->mode) == VGPU_DROPPED) STORE_RELEASE(vgpu__unbound, tenant);
  vgpu__monitor_wake();
  return vgpu__handle_of(tenant);
}

int64_t vgpu_tenant_add(const char *const *env, char *reason, size_t reason_size) {
  if (reason != NULL && reason_size > 0) reason[0] = '\0';
  uint32_t mode = LOAD_ACQUIRE(vgpu__home.mode);
  if (mode == VGPU_UNATTACHED || mode == VGPU_REFUSED) {
    return vgpu_attach(env, reason, reason_size) == 0 ? vgpu__handle_of(&vgpu__home) : -1;
  }
  int kept = errno;
  vgpu__lock(&vgpu__attach_lock);
  int64_t handle = vgpu__add_locked(env);
  vgpu__unlock(&vgpu__attach_lock);
  errno = kept;
  if (handle < 0) vgpu__last_reason(reason, reason_size);
  return handle;
}

/* ---- dropping ---- */

static struct vgpu_tenant *vgpu__oldest(void) {
  unsigned i = 0;
  return vgpu__tenant_next(&i);
}

/* No handle and no bound thread is the tenant's from now on. Lock held. */
static void vgpu__end_locked(struct vgpu_tenant *tenant) {
  __atomic_fetch_add(&tenant->generation, 1, __ATOMIC_SEQ_CST);
  tenant->dropped_ns = vgpu__now_ns();
  STORE_RELEASE(tenant->mode, (uint32_t)VGPU_DROPPED);
  struct vgpu_tenant *next = vgpu__oldest();
  if (vgpu__unbound == tenant && next != NULL) STORE_RELEASE(vgpu__unbound, next);
}

static void vgpu__drop_locked(struct vgpu_tenant *tenant) {
  vgpu__end_locked(tenant);
  vgpu__express_leave(tenant);
  /* The seat takes back the slot on BYE, so replace the pages first. */
  vgpu__pages_leave(tenant);
  STORE_RELEASE(tenant->autonomous, 0);
  vgpu__seat_bar(tenant);
  vgpu__drop_tenant(tenant);
  vgpu__log("left lease %s", tenant->lease);
}

int vgpu_tenant_drop(int64_t handle) {
  int kept = errno;
  vgpu__lock(&vgpu__attach_lock);
  struct vgpu_tenant *tenant = vgpu__tenant_of(handle);
  if (tenant != NULL) vgpu__drop_locked(tenant);
  vgpu__unlock(&vgpu__attach_lock);
  errno = kept;
  return tenant == NULL ? -1 : 0;
}

/* Joining a lease may take seconds, for which the monitor must not wait. */
int vgpu__tenant_lost(struct vgpu_tenant *tenant) {
  if (!vgpu__try_lock(&vgpu__attach_lock)) return 0;
  if (LOAD(tenant->mode) == VGPU_ATTACHED) vgpu__end_locked(tenant);
  vgpu__unlock(&vgpu__attach_lock);
  return 1;
}

void vgpu__tenants_end(void) {
  struct vgpu_tenant *tenant;
  int kept = errno;
  vgpu__lock(&vgpu__attach_lock);
  for (unsigned i = 0; (tenant = vgpu__tenant_next(&i)) != NULL; i++) vgpu__drop_locked(tenant);
  vgpu__unlock(&vgpu__attach_lock);
  errno = kept;
}
