/*
 * The table of this process's allocations: open addressing with linear probing and backward-shift deletion, so that its
 * cost does not grow with the number of live entries. Its pages come from mmap: the program may replace malloc.
 */
#include <sys/mman.h>

#include "region.h"

struct entry {
  uint64_t key;
  uint64_t value; /* units << 24 | context << 13 | tenant << 7 | GPU << 4 | kind; 0: free */
};

enum { FIRST_CAPACITY = 1 << 12, VALUE_SHIFT = 24, CONTEXT_SHIFT = 13, TENANT_SHIFT = 7, GPU_SHIFT = 4 };
enum { KIND_MASK = 0xf, GPU_MASK = 0x7, TENANT_MASK = 0x3f, CONTEXT_MASK = 0x7ff };
_Static_assert((int)KIND_GREEN <= (int)KIND_MASK && (int)VGPU_GPUS <= (int)GPU_MASK + 1,
               "a kind in four bits, a GPU in three");
_Static_assert((int)VGPU_TENANTS <= (int)TENANT_MASK + 1, "a tenant in six bits");

static struct vgpu_lock table_lock;
static struct entry *entries;
static size_t capacity, live;

static size_t home_of(uint64_t key, uint64_t kind) {
  uint64_t mixed = (key ^ kind << 56) * 0x9e3779b97f4a7c15u;
  return (size_t)(mixed >> 20) & (capacity - 1);
}

static size_t find(uint64_t key, uint64_t kind) {
  size_t at = home_of(key, kind);
  while (entries[at].value != 0 && !(entries[at].key == key && (entries[at].value & KIND_MASK) == kind)) {
    at = (at + 1) & (capacity - 1);
  }
  return at;
}

static int grow(void) {
  size_t next = capacity == 0 ? FIRST_CAPACITY : capacity * 2;
  void *pages = mmap(NULL, next * sizeof *entries, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return -1;
  struct entry *old = entries;
  size_t old_capacity = capacity;
  entries = pages;
  capacity = next;
  for (size_t i = 0; i < old_capacity; i++) {
    if (old[i].value != 0) entries[find(old[i].key, old[i].value & KIND_MASK)] = old[i];
  }
  if (old != NULL) munmap(old, old_capacity * sizeof *old);
  return 0;
}

/* Closes the hole by backward shift, so that no probe is cut short. */
static void erase(size_t hole) {
  size_t at = hole;
  for (;;) {
    at = (at + 1) & (capacity - 1);
    if (entries[at].value == 0) break;
    size_t home = home_of(entries[at].key, entries[at].value & KIND_MASK);
    if (((at - home) & (capacity - 1)) >= ((at - hole) & (capacity - 1))) {
      entries[hole] = entries[at];
      hole = at;
    }
  }
  entries[hole].value = 0;
  live--;
}

static uint64_t bytes_of(uint64_t value) { return (value >> VALUE_SHIFT) * SHM_MEMORY_UNIT; }

static unsigned tenant_of(uint64_t value) { return (unsigned)(value >> TENANT_SHIFT) & TENANT_MASK; }

static int gpu_of(uint64_t value) { return (int)(value >> GPU_SHIFT & GPU_MASK); }

static struct vgpu_record record_of(uint64_t value) {
  return (struct vgpu_record){vgpu__tenants[tenant_of(value)], bytes_of(value),
                              (unsigned)(value >> CONTEXT_SHIFT) & CONTEXT_MASK, gpu_of(value)};
}

int vgpu__table_put(const struct vgpu_tenant *tenant, int gpu, enum vgpu_kind kind, uint64_t key, uint64_t bytes,
                    unsigned context) {
  uint64_t units = bytes / SHM_MEMORY_UNIT + (bytes % SHM_MEMORY_UNIT != 0);
  if (context > CONTEXT_MASK) context = 0;
  vgpu__lock(&table_lock);
  int full = live * 2 >= capacity && grow() != 0 && live + 1 >= capacity;
  if (!full) {
    size_t at = find(key, kind);
    if (entries[at].value == 0) live++;
    entries[at] = (struct entry){key, units << VALUE_SHIFT | (uint64_t)context << CONTEXT_SHIFT |
                                          (uint64_t)tenant->index << TENANT_SHIFT |
                                          ((uint64_t)gpu & GPU_MASK) << GPU_SHIFT | (uint64_t)kind};
  }
  vgpu__unlock(&table_lock);
  return full ? -1 : 0;
}

int vgpu__table_take(enum vgpu_kind kind, uint64_t key, struct vgpu_record *into) {
  uint64_t value = 0;
  vgpu__lock(&table_lock);
  if (capacity != 0) {
    size_t at = find(key, kind);
    value = entries[at].value;
    if (value != 0) erase(at);
  }
  vgpu__unlock(&table_lock);
  if (value == 0) return 0;
  *into = record_of(value);
  return 1;
}

int vgpu__table_find(enum vgpu_kind kind, uint64_t key, struct vgpu_record *into) {
  uint64_t value = 0;
  vgpu__lock(&table_lock);
  if (capacity != 0) value = entries[find(key, kind)].value;
  vgpu__unlock(&table_lock);
  if (value == 0) return 0;
  *into = record_of(value);
  return 1;
}

struct vgpu_tenant *vgpu__table_tenant(enum vgpu_kind kind, uint64_t key) {
  uint64_t value = 0;
  vgpu__lock(&table_lock);
  if (capacity != 0) value = entries[find(key, kind)].value;
  vgpu__unlock(&table_lock);
  return value == 0 ? NULL : vgpu__tenants[tenant_of(value)];
}

uint64_t vgpu__table_tenants(void) {
  uint64_t bits = 0;
  vgpu__lock(&table_lock);
  for (size_t i = 0; i < capacity; i++) {
    if (entries[i].value != 0) bits |= (uint64_t)1 << tenant_of(entries[i].value);
  }
  vgpu__unlock(&table_lock);
  return bits;
}

/* Removes all entries whose masked value equals `wanted`. A deletion may move an entry to index i: look there again. */
static void take_all(uint64_t mask, uint64_t wanted, struct vgpu_sums *sums) {
  vgpu__lock(&table_lock);
  for (size_t pass = 0; pass < 2; pass++) {
    for (size_t i = 0; i < capacity;) {
      if (entries[i].value != 0 && (entries[i].value & mask) == wanted) {
        uint64_t value = entries[i].value;
        int on_host = (value & KIND_MASK) == KIND_HOST;
        *(on_host ? &sums->host[tenant_of(value)] : &sums->bytes[tenant_of(value)][gpu_of(value)]) += bytes_of(value);
        erase(i);
      } else {
        i++;
      }
    }
  }
  vgpu__unlock(&table_lock);
}

void vgpu__table_take_context(unsigned context, struct vgpu_sums *sums) {
  if (context != 0) take_all((uint64_t)CONTEXT_MASK << CONTEXT_SHIFT, (uint64_t)context << CONTEXT_SHIFT, sums);
}

void vgpu__table_take_tagged(enum vgpu_kind kind, unsigned tag, struct vgpu_sums *sums) {
  take_all((uint64_t)CONTEXT_MASK << CONTEXT_SHIFT | KIND_MASK, (uint64_t)tag << CONTEXT_SHIFT | (uint64_t)kind, sums);
}

void vgpu__table_forget(void) {
  table_lock.word = 0;
  entries = NULL;
  capacity = 0;
  live = 0;
}
