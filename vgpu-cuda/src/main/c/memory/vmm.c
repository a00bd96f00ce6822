/*
 * Physical memory made by cuMemCreate. It is charged until its handle is released as often as it was made and retained,
 * and no mapping of it is left. One small hash table holds the records of handles and mappings, under one lock.
 */
#include <sys/mman.h>

#include "memory.h"

struct record {
  uint64_t key;    /* the handle, or the address of the mapping */
  uint64_t bytes;  /* of the handle, or of the mapping */
  uint64_t handle; /* of a mapping; NOBODYS: not charged here */
  uint32_t kind;   /* FREE, HANDLE, MAPPING */
  uint32_t references, mappings;
  uint32_t payer; /* of the handle: its tenant's index * VGPU_GPUS + the account */
};

enum { FREE, HANDLE, MAPPING };
enum { NOBODYS /* the handle of a mapping without a record; no real handle has this value */ };

static const size_t FIRST_CAPACITY = 1 << 10;
static struct vgpu_lock vmm_lock;
struct vgpu_lock vgpu__vmm_call;
static struct record *records;
static size_t capacity, live;

static size_t home_of(uint64_t key, uint32_t kind) {
  return (size_t)(((key ^ (uint64_t)kind << 60) * 0x9e3779b97f4a7c15u) >> 24) & (capacity - 1);
}

static size_t find(uint64_t key, uint32_t kind) {
  size_t at = home_of(key, kind);
  while (records[at].kind != FREE && !(records[at].key == key && records[at].kind == kind)) {
    at = (at + 1) & (capacity - 1);
  }
  return at;
}

static struct record *lookup(uint64_t key, uint32_t kind) {
  if (capacity == 0) return NULL;
  struct record *found = &records[find(key, kind)];
  return found->kind == FREE ? NULL : found;
}

static int grow(void) {
  size_t next = capacity == 0 ? FIRST_CAPACITY : capacity * 2;
  void *pages = mmap(NULL, next * sizeof *records, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return -1;
  struct record *old = records;
  size_t old_capacity = capacity;
  records = pages;
  capacity = next;
  for (size_t i = 0; i < old_capacity; i++) {
    if (old[i].kind != FREE) records[find(old[i].key, old[i].kind)] = old[i];
  }
  if (old != NULL) munmap(old, old_capacity * sizeof *old);
  return 0;
}

static int put(struct record record) {
  if (live * 2 >= capacity && grow() != 0) return -1;
  struct record *at = &records[find(record.key, record.kind)];
  if (at->kind == FREE) live++;
  *at = record;
  return 0;
}

static void erase(struct record *record) {
  size_t hole = (size_t)(record - records);
  for (size_t at = (hole + 1) & (capacity - 1); records[at].kind != FREE; at = (at + 1) & (capacity - 1)) {
    size_t home = home_of(records[at].key, records[at].kind);
    if (((at - home) & (capacity - 1)) >= ((at - hole) & (capacity - 1))) {
      records[hole] = records[at];
      hole = at;
    }
  }
  records[hole].kind = FREE;
  live--;
}

/* Adds the bytes to give back if the handle has no references and no mappings left. */
static void settle(struct record *handle, struct vgpu_sums *sums) {
  if (handle->references > 0 || handle->mappings > 0) return;
  sums->bytes[handle->payer / VGPU_GPUS][handle->payer % VGPU_GPUS] += handle->bytes;
  erase(handle);
}

int vgpu__vmm_created(const struct vgpu_tenant *tenant, int gpu, uint64_t handle, uint64_t bytes) {
  vgpu__lock(&vmm_lock);
  uint32_t payer = tenant->index * VGPU_GPUS + (uint32_t)gpu;
  int failed = put((struct record){.key = handle, .bytes = bytes, .kind = HANDLE, .references = 1, .payer = payer});
  vgpu__unlock(&vmm_lock);
  return failed;
}

void vgpu__vmm_retained(uint64_t handle) {
  vgpu__lock(&vmm_lock);
  struct record *found = lookup(handle, HANDLE);
  if (found != NULL) found->references++;
  vgpu__unlock(&vmm_lock);
}

void vgpu__vmm_releasing(uint64_t handle, struct vgpu_release *release) {
  *release = (struct vgpu_release){.handle = handle};
  vgpu__lock(&vmm_lock);
  struct record *found = lookup(handle, HANDLE);
  if (found != NULL && found->references > 0) {
    release->known = 1;
    release->payer = found->payer;
    release->bytes = found->bytes;
    found->references--;
    release->gone = found->references == 0 && found->mappings == 0;
    if (release->gone) erase(found);
  }
  vgpu__unlock(&vmm_lock);
}

void vgpu__vmm_released(const struct vgpu_release *release, int done) {
  if (!release->known) return;
  if (done) {
    if (release->gone)
      vgpu__give_back(vgpu__tenants[release->payer / VGPU_GPUS], (int)(release->payer % VGPU_GPUS), release->bytes);
    return;
  }
  vgpu__lock(&vmm_lock);
  struct record *found = release->gone ? NULL : lookup(release->handle, HANDLE);
  if (found != NULL) found->references++;
  if (release->gone) {
    put((struct record){
        .key = release->handle, .bytes = release->bytes, .kind = HANDLE, .references = 1, .payer = release->payer});
  }
  vgpu__unlock(&vmm_lock);
}

/*
 * Also records mappings of memory that is not charged here (imported or host memory): an unmapped range may begin with
 * one.
 */
int vgpu__vmm_mapped(uint64_t handle, uint64_t address, uint64_t size) {
  if (!LOAD_ACQUIRE(vgpu__attached)) return 0;
  vgpu__lock(&vmm_lock);
  struct record *found = lookup(handle, HANDLE);
  if (found != NULL) found->mappings++;
  uint64_t charged = found == NULL ? NOBODYS : handle;
  int failed = put((struct record){.key = address, .bytes = size, .handle = charged, .kind = MAPPING});
  vgpu__unlock(&vmm_lock);
  return failed;
}

/* A range may span several consecutive mappings. */
void vgpu__vmm_unmapped(uint64_t address, uint64_t size, struct vgpu_sums *sums) {
  uint64_t end = address + size;
  vgpu__lock(&vmm_lock);
  while (address < end) {
    struct record *mapping = lookup(address, MAPPING);
    if (mapping == NULL || mapping->bytes == 0) break;
    uint64_t handle = mapping->handle;
    address += mapping->bytes;
    erase(mapping);
    struct record *found = lookup(handle, HANDLE);
    if (found != NULL && found->mappings > 0) {
      found->mappings--;
      settle(found, sums);
    }
  }
  vgpu__unlock(&vmm_lock);
}

uint64_t vgpu__vmm_tenants(void) {
  uint64_t bits = 0;
  vgpu__lock(&vmm_lock);
  for (size_t i = 0; i < capacity; i++) {
    if (records[i].kind == HANDLE) bits |= (uint64_t)1 << records[i].payer / VGPU_GPUS;
  }
  vgpu__unlock(&vmm_lock);
  return bits;
}

void vgpu__vmm_forget(void) {
  vmm_lock.word = 0;
  vgpu__vmm_call.word = 0;
  records = NULL;
  capacity = 0;
  live = 0;
}
