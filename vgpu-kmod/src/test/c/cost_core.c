/*
 * What the core adds to an ioctl of the driver, without the kernel: a driver that answers at once, and the same driver
 * behind the core. Prints medians of batches in nanoseconds for each call.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../main/c/core/rm_call.h"
#include "../../main/c/core/rm_turn.h"

enum { BATCHES = 501, CALLS = 400, OBJECTS = 1000, CLIENT = 0xc1d00001, OTHER_COMMAND = 0x13e, GROUPS = 3 };
enum { GROUP = CLIENT + 3, CHANNEL = GROUP + GROUPS, CHANNEL_CLASS = 0xa06f, SCHEDULE_SIZE = 3 };

static struct vgpu_rm_book book;
static struct vgpu_rm_tenant *tenant;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t call[12]; /* NVOS21 or NVOS54 */
static uint64_t params[16];

static void *make(size_t size) { return calloc(1, size); }
static int read_memory(void *self, void *into, uint64_t from, size_t size) {
  (void)self;
  memcpy(into, (const void *)(uintptr_t)from, size);
  return 0;
}
static int write_memory(void *self, uint64_t into, const void *from, size_t size) {
  (void)self;
  memcpy((void *)(uintptr_t)into, from, size);
  return 0;
}
static void take_lock(struct vgpu_rm_book *of) {
  (void)of;
  pthread_mutex_lock(&lock);
}
static void give_lock(struct vgpu_rm_book *of) {
  (void)of;
  pthread_mutex_unlock(&lock);
}
static struct vgpu_rm_tenant *tenant_of(void *self, struct vgpu_rm_book *of) {
  (void)self;
  return vgpu__tenant_find(of, 1);
}
static uint64_t file_of(void *self, int32_t fd) {
  (void)self;
  (void)fd;
  return 0;
}
static void let_go(void *self, uint64_t file) {
  (void)self;
  (void)file;
}
/* Every call succeeds. */
static long forward(void *self, uint32_t word, uint64_t argument) {
  (void)self;
  volatile uint32_t *fields = (volatile uint32_t *)(uintptr_t)argument;
  fields[(word & 0xff) == RM_FREE ? 3 : 7] = RM_OK;
  return 0;
}

static const struct vgpu_rm_host HOST = {.read = read_memory,
                                         .write = write_memory,
                                         .lock = take_lock,
                                         .unlock = give_lock,
                                         .tenant = tenant_of,
                                         .forward = forward,
                                         .file_of = file_of,
                                         .let_go = let_go};

static void ioctl_of(int through_core, uint32_t number, uint32_t size) {
  uint32_t word = vgpu__rm_word(number, size);
  long result = through_core ? vgpu__rm_ioctl(&book, &HOST, NULL, 7, word, (uint64_t)(uintptr_t)call)
                             : forward(NULL, word, (uint64_t)(uintptr_t)call);
  if (result != 0 || call[number == RM_FREE ? 3 : 7] != RM_OK) abort();
}

static void allocate(int through_core, uint32_t parent, uint32_t handle, uint32_t class_number) {
  uint64_t at = (uint64_t)(uintptr_t)params;
  uint32_t fields[8] = {CLIENT, parent, handle, class_number, (uint32_t)at, (uint32_t)(at >> 32), 128, UINT32_MAX};
  params[8] = 2 << 20;
  memcpy(call, fields, sizeof fields);
  ioctl_of(through_core, RM_ALLOC, 32);
}

static void other_call(int through_core) {
  uint64_t at = (uint64_t)(uintptr_t)params;
  uint32_t fields[8] = {CLIENT, CLIENT, OTHER_COMMAND, 0, (uint32_t)at, (uint32_t)(at >> 32), 64, UINT32_MAX};
  memcpy(call, fields, sizeof fields);
  ioctl_of(through_core, RM_CONTROL, RM_CONTROL_SIZE);
}

static void allocate_and_free(int through_core) {
  uint32_t fields[4] = {CLIENT, 0, 2, UINT32_MAX};
  allocate(through_core, CLIENT + 1, 2, RM_CLASS_LOCAL_MEMORY);
  memcpy(call, fields, sizeof fields);
  ioctl_of(through_core, RM_FREE, RM_FREE_SIZE);
}

static void schedule(uint32_t group) {
  uint64_t at = (uint64_t)(uintptr_t)params;
  uint32_t fields[8] = {CLIENT,        group,     RM_GROUP_SCHEDULE, 0, (uint32_t)at, (uint32_t)(at >> 32),
                        SCHEDULE_SIZE, UINT32_MAX};
  params[0] = 1;
  memcpy(call, fields, sizeof fields);
  ioctl_of(1, RM_CONTROL, RM_CONTROL_SIZE);
}

static unsigned controls;
static uint32_t control(void *self, uint32_t client, uint32_t object, uint32_t command, const void *given,
                        uint32_t size) {
  uint64_t at = (uint64_t)(uintptr_t)given;
  uint32_t fields[8] = {client, object, command, 0, (uint32_t)at, (uint32_t)(at >> 32), size, UINT32_MAX};
  (void)self;
  memcpy(call, fields, sizeof fields);
  ioctl_of(0, RM_CONTROL, RM_CONTROL_SIZE);
  controls++;
  return call[7];
}

static void turns(int held) {
  struct vgpu_rm_turn turn;
  book.held = held;
  book.round++;
  while (vgpu__turn_next(&book, &turn) > 0) {
    vgpu__turn_carry_out(&turn, control, NULL, SCHEDULE_SIZE);
    vgpu__turn_done(&book, &turn);
  }
}

/* Class preemption of a tenant with GROUPS channel groups: one call of the driver for each, and one to give it back. */
static void stop_and_give_back(int through_core) {
  unsigned char disable[RM_DISABLE_SIZE] = {1};
  if (!through_core) {
    for (int i = 0; i < 2 * GROUPS; i++)
      control(NULL, CLIENT, CLIENT + 2, RM_DISABLE_CHANNELS, disable, sizeof disable);
    return;
  }
  turns(1);
  if (!vgpu__is_stopped(&book, tenant)) abort();
  turns(0);
  if (vgpu__owes_groups(tenant)) abort();
}

static int compare(const void *one, const void *other) {
  double a = *(const double *)one, b = *(const double *)other;
  return (a > b) - (a < b);
}

static double median(void (*what)(int), int through_core) {
  static double batches[BATCHES];
  for (int i = 0; i < BATCHES; i++) {
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int j = 0; j < CALLS; j++) what(through_core);
    clock_gettime(CLOCK_MONOTONIC, &end);
    batches[i] = ((double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec)) / CALLS;
  }
  qsort(batches, BATCHES, sizeof *batches, compare);
  return batches[BATCHES / 2];
}

static void print(const char *name, void (*what)(int)) {
  double driver = median(what, 0), both = median(what, 1);
  printf("%-20s driver %.0f ns, with the core %.0f ns, added %.0f ns\n", name, driver, both, both - driver);
}

int main(void) {
  struct vgpu_rm_heap heap = {.make = make, .drop = free};
  tenant = calloc(1, sizeof *tenant);
  if (tenant == NULL || vgpu__book_begin(&book, &heap, 4096, 12345) != 0) return 1;
  tenant->key = 1;
  tenant->limit = (uint64_t)1 << 40;
  tenant->most_objects = 1 << 20;
  vgpu__tenant_add(&book, tenant);
  allocate(1, 0, CLIENT, RM_CLASS_ROOT);
  allocate(1, CLIENT, CLIENT + 1, RM_CLASS_DEVICE);
  for (uint32_t i = 0; i < OBJECTS; i++) allocate(1, CLIENT + 1, 1000 + i, RM_CLASS_LOCAL_MEMORY);
  if (tenant->used != (uint64_t)OBJECTS * (2 << 20)) return 1;
  allocate(1, CLIENT + 1, CLIENT + 2, RM_CLASS_SUBDEVICE);
  for (uint32_t i = 0; i < GROUPS; i++) {
    allocate(1, CLIENT + 1, GROUP + i, RM_CLASS_GROUP);
    allocate(1, GROUP + i, CHANNEL + i, CHANNEL_CLASS);
    schedule(GROUP + i);
  }
  print("not ours", other_call);
  print("allocate and free", allocate_and_free);
  tenant->yields = 1;
  book.able = 1;
  turns(0);
  controls = 0;
  stop_and_give_back(1);
  if (controls != 2 * GROUPS) return 1;
  print("stop and give back", stop_and_give_back);
  return tenant->used != (uint64_t)OBJECTS * (2 << 20);
}
