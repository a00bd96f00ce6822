/*
 * Becoming a process of a lease: settings, the seat's WELCOME, the pages, the slot. tenants.c adds further leases;
 * region/tenant.c has the table.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "top.h"

/*
 * How long to wait in total for a seat that accepts connections, or whose holder has died: it may change hands, or be
 * late on an overloaded machine.
 */
enum { MOST_PATIENCE_MS = 10000, RETRY_MS = 2, CROWDED_RETRY_MS = 20 };
/* How long one wait for the answer is. It ends early with the answer; after it, the socket's name is looked at. */
static const uint64_t AWAIT_NS = 200u * NS_PER_MS;

static int quiet; /* vgpu_attach returns the reason to its caller instead */

/* Maps one of the lease's files. */
static void *vgpu__map(const struct vgpu_tenant *tenant, const char *name, uint64_t size, uint64_t magic,
                       int writable) {
  char path[VGPU_PATH + 256];
  int length = snprintf(path, sizeof path, "%s/leases/%s/%s", tenant->run_dir, tenant->lease, name);
  if (length < 0 || (size_t)length >= sizeof path) return NULL;
  return vgpu__map_file(path, size, magic, SHM_SLOT_COUNT, writable);
}

/* Reads the lease's secret for the HELLO. Without it the seat answers with the reason, most likely "no such lease". */
static void vgpu__read_secret(struct vgpu_tenant *tenant) {
  char path[VGPU_PATH + 256];
  _Static_assert(sizeof tenant->link.secret == sizeof((struct shm_grant_more *)NULL)->secret + 1, "with a zero");
  memset(tenant->link.secret, 0, sizeof tenant->link.secret);
  tenant->link.slot_secret[0] = '\0';
  int length = snprintf(path, sizeof path, "%s/leases/%s/grant", tenant->run_dir, tenant->lease);
  int fd = length < 0 || (size_t)length >= sizeof path ? -1 : vgpu__file_open(path, O_RDONLY | O_NOFOLLOW);
  if (fd < 0) return;
  off_t at = (off_t)(SHM_GRANT_MORE_OFFSET + offsetof(struct shm_grant_more, secret));
  if (vgpu__file_read_at(fd, tenant->link.secret, sizeof tenant->link.secret - 1, at) < 0)
    tenant->link.secret[0] = '\0';
  vgpu__file_close(fd);
}

static void vgpu__fill_slot(struct shm_slot *slot) {
  char name[17] = "";
  int fd = vgpu__file_open("/proc/self/comm", O_RDONLY);
  if (fd >= 0) {
    ssize_t size = vgpu__file_read(fd, name, sizeof name - 1);
    vgpu__file_close(fd);
    if (size > 0 && name[size - 1] == '\n') name[size - 1] = '\0';
  }
  STORE(slot->pid, (uint32_t)getpid());
  STORE(slot->start_time, vgpu__start_time());
  STORE(slot->pid_namespace, vgpu__pid_namespace());
  memcpy(slot->comm, name, sizeof slot->comm);
  STORE(slot->heartbeat_ns, vgpu__now_ns());
  STORE_RELEASE(slot->state, (uint32_t)SHM_SLOT_ATTACHED);
}

/*
 * Waits for the WELCOME to a HELLO. 1: *slot is set; 0: ask again; -1: asking again is useless. Whoever asks again is
 * behind all others that wait, so a seat that is late is not asked again, but its successor is.
 */
static int vgpu__await_welcome(struct vgpu_tenant *tenant, uint32_t *slot, uint64_t deadline) {
  struct shm_message message;
  for (;;) {
    int got = vgpu__seat_receive(tenant, &message);
    if (got == VGPU_SEAT_GONE) return 0;
    if (got == VGPU_SEAT_NOTHING) {
      if (vgpu__now_ns() > deadline || vgpu__seat_is_replaced(tenant)) return 0;
      /* A crowd that attaches at once must leave the processors to the seat. */
      vgpu__seat_await(tenant, AWAIT_NS);
      continue;
    }
    if (message.type != SHM_MESSAGE_WELCOME) continue;
    message.text[sizeof message.text - 1] = '\0';
    if (message.version != SHM_MESSAGE_VERSION || message.layout_major != SHM_LAYOUT_MAJOR) {
      vgpu__log("the seat uses message version %u, layout %u; this hook %u, %u", message.version, message.layout_major,
                (unsigned)SHM_MESSAGE_VERSION, (unsigned)SHM_LAYOUT_MAJOR);
      return -1;
    }
    if (message.status != SHM_STATUS_OK) {
      vgpu__log("the seat refuses lease %s: %s (status %u)", tenant->lease, (const char *)message.text, message.status);
      return -1;
    }
    if (message.slot_number == 0 || message.slot_number >= SHM_SLOT_COUNT) {
      vgpu__log("the seat gave slot %u, which does not exist", message.slot_number);
      return -1;
    }
    *slot = message.slot_number;
    vgpu__seat_welcomed(tenant, &message);
    return 1;
  }
}

static uint64_t vgpu__patient_until(uint64_t most) {
  uint64_t until = vgpu__now_ns() + (uint64_t)VGPU_PATIENCE_MS * NS_PER_MS;
  return until < most ? until : most;
}

static int vgpu__ask_for_slot(struct vgpu_tenant *tenant, uint32_t *slot) {
  uint64_t begin = vgpu__now_ns(), most = begin + (uint64_t)MOST_PATIENCE_MS * NS_PER_MS;
  uint64_t deadline = vgpu__patient_until(most);
  do {
    vgpu__read_secret(tenant);
    int why = vgpu__seat_connect(tenant);
    if (why == 0) {
      int answer = vgpu__await_welcome(tenant, slot, most);
      if (answer != 0) return answer > 0 ? 0 : -1;
      deadline = vgpu__patient_until(most);
      vgpu__log("the seat closed the connection, or does not answer");
    } else {
      /* Its holder has died, and another process may be taking it over; or more wait than its socket has places for. */
      if (why == ECONNREFUSED || why == EAGAIN) deadline = most;
      vgpu__log("no seat at %s/hook.sock: %s", tenant->run_dir, strerror(why));
    }
    vgpu__sleep_ns((uint64_t)(why == EAGAIN ? CROWDED_RETRY_MS : RETRY_MS) * NS_PER_MS);
  } while (vgpu__now_ns() < deadline);
  return -1;
}

/* From the environment passed in with a lease, if any; else this process's setting. */
static const char *vgpu__setting_of(const char *const *env, const char *name) {
  return env == NULL ? vgpu__setting(name) : vgpu__value_in(env, name);
}

static int vgpu__read_settings(struct vgpu_tenant *tenant, const char *const *env) {
  const char *directory = vgpu__setting_of(env, "VGPU_RUN_DIR"), *id = vgpu__setting_of(env, "VGPU_LEASE");
  if (directory == NULL || id == NULL) {
    vgpu__log("%s is not set: this program is under no virtual GPU", id == NULL ? "VGPU_LEASE" : "VGPU_RUN_DIR");
    return -1;
  }
  if (directory[0] != '/' || strlen(directory) >= sizeof tenant->run_dir) {
    vgpu__log("VGPU_RUN_DIR is not a full path: %s", directory);
    return -1;
  }
  if (strlen(id) >= sizeof tenant->lease || strchr(id, '/') != NULL || id[0] == '.') {
    vgpu__log("VGPU_LEASE is not a valid lease id: %s", id);
    return -1;
  }
  strcpy(tenant->run_dir, directory);
  strcpy(tenant->lease, id);
  return 0;
}

/* Maps the lease's pages into the tenant's range. */
static int vgpu__map_pages(struct vgpu_tenant *tenant, uint32_t number) {
  if (vgpu__region_make(tenant) != 0) return -1;
  void *grant_file = vgpu__map(tenant, "grant", SHM_GRANT_SIZE, SHM_GRANT_MAGIC, 0);
  void *report_file = grant_file == NULL ? NULL : vgpu__map(tenant, "report", SHM_REPORT_SIZE, SHM_REPORT_MAGIC, 1);
  if (report_file == NULL) {
    if (grant_file != NULL) munmap(grant_file, (size_t)SHM_GRANT_SIZE);
    return -1;
  }
  char *grant = vgpu__region_move(tenant, 0, grant_file, (size_t)SHM_GRANT_SIZE);
  char *report = vgpu__region_move(tenant, VGPU_REGION_REPORT, report_file, (size_t)SHM_REPORT_SIZE);
  if (grant == NULL || report == NULL) return -1;
  tenant->seat = (const void *)grant;
  tenant->report = (void *)report;
  tenant->ledger = (void *)(report + SHM_LEDGER_OFFSET);
  tenant->slots = (void *)(report + SHM_SLOTS_OFFSET);
  tenant->slot = tenant->slots + number;
  tenant->slot_number = number;
  vgpu__gpus_join(tenant);
  STORE_RELEASE(tenant->grant, (const void *)(grant + SHM_GRANT_OFFSET));
  return 0;
}

int vgpu__join(struct vgpu_tenant *tenant, const char *const *env) {
  uint32_t number;
  tenant->link.barred = 0;
  if (vgpu__read_settings(tenant, env) != 0) return -1;
  if (vgpu__ask_for_slot(tenant, &number) != 0 || vgpu__map_pages(tenant, number) != 0) {
    vgpu__seat_bar(tenant); /* a late seat may still give a slot */
    return -1;
  }
  tenant->context_bytes = tenant->grant->context_bytes;
  if (tenant->context_bytes == 0) {
    tenant->context_bytes = vgpu__parse_number(vgpu__setting_of(env, "VGPU_CONTEXT_MEMORY"), 256u << 20);
  }
  tenant->watch = (struct vgpu_watch){.welcome = 1};
  vgpu__peers_join(tenant);
  vgpu__fill_slot(tenant->slot);
  vgpu__express_join(tenant);
  STORE_RELEASE(tenant->mode, (uint32_t)VGPU_ATTACHED);
  STORE_RELEASE(vgpu__attached, 1);
  if (vgpu__monitor_start() != 0) {
    vgpu__log("cannot start a thread");
    STORE_RELEASE(tenant->mode, (uint32_t)VGPU_REFUSED);
    vgpu__seat_bar(tenant);
    return -1;
  }
  vgpu__level2_join(tenant);
  vgpu__log("attached to lease %s, slot %u", tenant->lease, number);
  return 0;
}

static void vgpu__say_refused(void) {
  char reason[512], line[640];
  vgpu__last_reason(reason, sizeof reason);
  int length = snprintf(line, sizeof line, "vgpu: no CUDA for this program: %s\n", reason);
  const char *sink = vgpu__setting("VGPU_HOOK_LOG");
  if (length <= 0 || (sink != NULL && strcmp(sink, "stderr") == 0)) return;
  ssize_t written = vgpu__file_write(2, line, (size_t)length < sizeof line ? (size_t)length : sizeof line - 1);
  (void)written;
}

enum vgpu_mode vgpu__attach(void) {
  enum vgpu_mode mode = LOAD_ACQUIRE(vgpu__home.mode);
  if (mode != VGPU_UNATTACHED) return mode;
  int kept = errno;
  vgpu__fork_watch();
  vgpu__lock(&vgpu__attach_lock);
  mode = LOAD_ACQUIRE(vgpu__home.mode);
  if (mode == VGPU_UNATTACHED) {
    if (vgpu__join(&vgpu__home, NULL) == 0) {
      mode = VGPU_ATTACHED;
    } else {
      const char *wish = vgpu__setting("VGPU_FAILURE_MODE");
      mode = wish != NULL && strcmp(wish, "open") == 0 ? VGPU_OPEN : VGPU_REFUSED;
      STORE_RELEASE(vgpu__home.mode, (uint32_t)mode);
      if (mode == VGPU_REFUSED && !quiet) vgpu__say_refused();
    }
  }
  vgpu__unlock(&vgpu__attach_lock);
  errno = kept;
  return mode;
}

/*
 * In a JVM the caller passes the variables that a child process would get in its environment. They are also set in the
 * environment, where the driver reads its own.
 */
static void vgpu__take_settings(const char *const *env) {
  for (; env != NULL && *env != NULL; env++) {
    const char *equals = strchr(*env, '=');
    if (equals == NULL) continue;
    size_t length = (size_t)(equals - *env);
    char name[128];
    if (length == 0 || length >= sizeof name) continue;
    memcpy(name, *env, length);
    name[length] = '\0';
    vgpu__setting_give(name, equals + 1);
    if (strcmp(name, "LD_PRELOAD") != 0) setenv(name, equals + 1, 1);
  }
}

int vgpu_attach(const char *const *env, char *reason, size_t reason_size) {
  if (reason != NULL && reason_size > 0) reason[0] = '\0';
  vgpu__fork_watch();
  vgpu__lock(&vgpu__attach_lock);
  if (LOAD(vgpu__home.mode) == VGPU_REFUSED) STORE(vgpu__home.mode, (uint32_t)VGPU_UNATTACHED);
  int fresh = LOAD(vgpu__home.mode) == VGPU_UNATTACHED;
  if (fresh) vgpu__take_settings(env);
  quiet = 1;
  vgpu__unlock(&vgpu__attach_lock);
  if (!fresh) {
    vgpu__log("this process is attached already");
    vgpu__last_reason(reason, reason_size);
    return -1;
  }
  if (vgpu__dlopen_name() != 0) vgpu__log("libcuda.so is not this library's name here, libcuda.so.1 is");
  if (vgpu__driver_load() == 0 && vgpu__attach() == VGPU_ATTACHED) return 0;
  vgpu__last_reason(reason, reason_size);
  return -1;
}

void vgpu__publish_passed(void) {
  static uint64_t told;
  uint64_t sum = 0;
  for (const struct vgpu_pass *at = vgpu_pass_begin; at < vgpu_pass_end; at++) sum += LOAD(at->count);
  ADD(vgpu__home.slot->passed_through, sum - told);
  told = sum;
}
