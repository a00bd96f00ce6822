/*
 * What this process has allocated: open addressing with linear probing and backward-shift deletion, so that its cost does not
 * grow with what is alive. Pages come from mmap: the program's own malloc may be anything.
 */
#include <sys/mman.h>

#include "hook.h"

struct entry {
  uint64_t key;
  uint64_t value; /* units << 20 | context << 8 | kind; 0: free */
};

enum { FIRST_CAPACITY = 1 << 12, VALUE_SHIFT = 20, CONTEXT_SHIFT = 8, KIND_MASK = 0xff, CONTEXT_MASK = 0xfff };

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

/* Leaves no hole that would cut a probe short. */
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

int vgpu__table_put(enum vgpu_kind kind, uint64_t key, uint64_t bytes, unsigned context) {
  uint64_t units = bytes / SHM_MEMORY_UNIT + (bytes % SHM_MEMORY_UNIT != 0);
  if (context > CONTEXT_MASK) context = 0;
  vgpu__lock(&table_lock);
  int full = live * 2 >= capacity && grow() != 0 && live + 1 >= capacity;
  if (!full) {
    size_t at = find(key, kind);
    if (entries[at].value == 0) live++;
    entries[at] = (struct entry){key, units << VALUE_SHIFT | (uint64_t)context << CONTEXT_SHIFT | (uint64_t)kind};
  }
  vgpu__unlock(&table_lock);
  return full ? -1 : 0;
}

uint64_t vgpu__table_take(enum vgpu_kind kind, uint64_t key, unsigned *context) {
  uint64_t value = 0;
  vgpu__lock(&table_lock);
  if (capacity != 0) {
    size_t at = find(key, kind);
    value = entries[at].value;
    if (value != 0) erase(at);
  }
  vgpu__unlock(&table_lock);
  if (context != NULL) *context = (unsigned)(value >> CONTEXT_SHIFT) & CONTEXT_MASK;
  return bytes_of(value);
}

/* Takes all whose value, masked, is as wanted. A deletion may move an entry to where we are: look there again. */
static uint64_t take_all(uint64_t mask, uint64_t wanted) {
  uint64_t bytes = 0;
  vgpu__lock(&table_lock);
  for (size_t pass = 0; pass < 2; pass++) {
    for (size_t i = 0; i < capacity;) {
      if (entries[i].value != 0 && (entries[i].value & mask) == wanted) {
        bytes += bytes_of(entries[i].value);
        erase(i);
      } else {
        i++;
      }
    }
  }
  vgpu__unlock(&table_lock);
  return bytes;
}

uint64_t vgpu__table_take_context(unsigned context) {
  return context == 0 ? 0 : take_all((uint64_t)CONTEXT_MASK << CONTEXT_SHIFT, (uint64_t)context << CONTEXT_SHIFT);
}

uint64_t vgpu__table_take_kind(enum vgpu_kind kind) { return take_all(KIND_MASK, (uint64_t)kind); }

void vgpu__table_forget(void) {
  table_lock.word = 0;
  entries = NULL;
  capacity = 0;
  live = 0;
}
