/*
 * The random program under several leases at once, like a JVM that serves several models. Each thread works for one
 * tenant at a time, frees allocations of other tenants, and uses streams and graphs of all tenants. One lease is left,
 * with nothing allocated, and entered again.
 */
#define _GNU_SOURCE
#include "chaos.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

/* One thread does ENTERING and DROPPING. During LEAVING all threads release what belongs to the lease. */
enum state { OUT, ENTERING, IN, LEAVING, DROPPING };

enum { VARIABLES = 256, UNDER_IT = -2 };

/* Adds the lease that a child process with this lease's environment would find. */
static int64_t add(const struct chaos *chaos, const char *lease) {
  const char *variables[VARIABLES + 1] = {NULL};
  char own[128], reason[512];
  size_t count = 0;
  snprintf(own, sizeof own, "VGPU_LEASE=%s", lease);
  variables[count++] = own;
  for (char **each = environ; *each != NULL && count < VARIABLES; each++) {
    if (strncmp(*each, "VGPU_LEASE=", strlen("VGPU_LEASE=")) != 0 &&
        strncmp(*each, "LD_PRELOAD=", strlen("LD_PRELOAD=")) != 0) {
      variables[count++] = *each;
    }
  }
  return chaos->tenant_add(variables, reason, sizeof reason);
}

/* May be refused: there is no seat, or the lease has ended. */
static int64_t enter(struct chaos *chaos, struct tenant *tenant) {
  int64_t handle = add(chaos, tenant->lease);
  if (handle > 0) {
    tenant->entered_as = handle;
    atomic_store(&tenant->handle, handle);
    atomic_fetch_add(&chaos->entered, 1);
  }
  atomic_store(&tenant->state, handle > 0 ? IN : OUT);
  return handle;
}

void chaos_enter_leases(struct chaos *chaos, char **leases, int count) {
  chaos->tenant_count = 1;
  *(void **)&chaos->tenant_add = dlsym(RTLD_DEFAULT, "vgpu_tenant_add");
  *(void **)&chaos->tenant_bind = dlsym(RTLD_DEFAULT, "vgpu_tenant_bind");
  *(void **)&chaos->tenant_drop = dlsym(RTLD_DEFAULT, "vgpu_tenant_drop");
  for (int i = 0; i < count && chaos->tenant_add != NULL; i++) {
    struct tenant *tenant = &chaos->tenants[chaos->tenant_count++];
    const char *colon = strchr(leases[i], ':');
    if (colon == NULL || (size_t)(colon - leases[i]) >= sizeof tenant->lease) {
      fail("a lease", i);
    }
    memcpy(tenant->lease, leases[i], (size_t)(colon - leases[i]));
    tenant->quota = strtoull(colon + 1, NULL, 10);
    enter(chaos, tenant);
  }
}

/* The hook returned a result that it must not return. */
static void wrong(struct worker *worker) { chaos_accept(worker, SCOPE, -1); }

void chaos_bind(struct worker *worker, int wanted) {
  struct chaos *chaos = worker->chaos;
  struct tenant *to = &chaos->tenants[wanted];
  if (wanted == worker->tenant) {
    return;
  }
  /* Before the handle is read: a leaving thread clears the handle first, then reads this count. */
  atomic_fetch_add(&to->inside, 1);
  int64_t handle = atomic_load(&to->handle);
  if (wanted != HOME && handle == 0) {
    atomic_fetch_sub(&to->inside, 1);
    return;
  }
  int64_t was = chaos->tenant_bind(handle);
  if (was != (worker->tenant == HOME ? 0 : chaos->tenants[worker->tenant].entered_as)) {
    wrong(worker);
  }
  atomic_fetch_sub(&chaos->tenants[worker->tenant].inside, 1);
  worker->tenant = wanted;
}

/* Releases what this thread holds of the lease. The thread that finds nothing left drops the lease. */
static void let_go(struct worker *worker, struct tenant *guest) {
  int leaving = LEAVING;
  if (worker->tenant == GUEST) {
    chaos_bind(worker, HOME);
  }
  for (size_t i = worker->held_count; i-- > 0;) {
    if (worker->held[i].tenant == GUEST) {
      chaos_release(worker, i);
    }
  }
  if (atomic_load(&guest->inside) == 0 && atomic_load(&guest->things) == 0 &&
      atomic_compare_exchange_strong(&guest->state, &leaving, DROPPING)) {
    if (worker->chaos->tenant_drop(guest->entered_as) != 0) {
      wrong(worker);
    }
    atomic_store(&guest->state, OUT);
  }
}

/* Leaves the guest lease, or enters a lease that the program is not in. */
static void change(struct worker *worker, int which) {
  struct tenant *tenant = &worker->chaos->tenants[which];
  int out = OUT, in = IN;
  if (atomic_compare_exchange_strong(&tenant->state, &out, ENTERING)) {
    if (enter(worker->chaos, tenant) == UNDER_IT) {
      wrong(worker);
    }
  } else if (which == GUEST && atomic_compare_exchange_strong(&tenant->state, &in, LEAVING)) {
    atomic_store(&tenant->handle, 0);
  }
}

/* Chooses a stream of the thread's tenant or of another one. */
static void choose_stream(struct worker *worker) {
  struct chaos *chaos = worker->chaos;
  if (worker->tenant == STAYS && worker->streams[STAYS] == NULL) {
    chaos_accept(worker, SCOPE, chaos->stream(&worker->streams[STAYS], 1));
  }
  CUstream chosen = worker->streams[random_next(&worker->random) % GUEST];
  worker->stream = chosen == NULL ? worker->streams[HOME] : chosen;
}

void chaos_scope(struct worker *worker) {
  struct chaos *chaos = worker->chaos;
  if (chaos->tenant_count == 1) {
    return;
  }
  struct tenant *guest = &chaos->tenants[GUEST];
  if (atomic_load(&guest->state) == LEAVING) {
    let_go(worker, guest);
  }
  uint64_t random = random_next(&worker->random);
  unsigned what = (unsigned)(random >> 8) % 64;
  int which = (int)((random >> 20) % (unsigned)chaos->tenant_count);
  if (what < 16) {
    chaos_bind(worker, which);
    choose_stream(worker);
  } else if (what == 16 && which != HOME) {
    change(worker, which);
  }
}
