/* What all files of the hook use of the compiler, the C library and the kernel. */
#ifndef VGPU_SYSTEM_H
#define VGPU_SYSTEM_H

#include <stddef.h>
#include <stdint.h>

struct stat;

#define VGPU_INTERNAL __attribute__((visibility("hidden")))
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

#define LOAD(p) __atomic_load_n(&(p), __ATOMIC_RELAXED)
#define LOAD_ACQUIRE(p) __atomic_load_n(&(p), __ATOMIC_ACQUIRE)
#define STORE(p, v) __atomic_store_n(&(p), (v), __ATOMIC_RELAXED)
#define STORE_RELEASE(p, v) __atomic_store_n(&(p), (v), __ATOMIC_RELEASE)
#define ADD(p, v) ((void)__atomic_fetch_add(&(p), (v), __ATOMIC_RELAXED))

enum { NS_PER_US = 1000, NS_PER_MS = 1000000 };

/* ---- lock.c: a small futex lock, which the child of a fork may simply clear ---- */
struct vgpu_lock {
  uint32_t word; /* 0 free, 1 held, 2 held and waited for */
};
void vgpu__lock_slow(struct vgpu_lock *lock);
void vgpu__unlock_slow(struct vgpu_lock *lock);

static inline void vgpu__lock(struct vgpu_lock *lock) {
  uint32_t expected = 0;
  if (!__atomic_compare_exchange_n(&lock->word, &expected, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
    vgpu__lock_slow(lock);
  }
}

static inline int vgpu__try_lock(struct vgpu_lock *lock) {
  uint32_t expected = 0;
  return __atomic_compare_exchange_n(&lock->word, &expected, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static inline void vgpu__unlock(struct vgpu_lock *lock) {
  if (__atomic_exchange_n(&lock->word, 0, __ATOMIC_RELEASE) == 2) vgpu__unlock_slow(lock);
}

/* ---- system.c: what is asked of the C library and the kernel, never newer than glibc 2.17 ---- */
uint64_t vgpu__now_ns(void); /* CLOCK_MONOTONIC */
void vgpu__sleep_ns(uint64_t ns);
int vgpu__stat(const char *path, struct stat *into);
int vgpu__fstat(int fd, struct stat *into);
/* Waits while *word == seen, at most timeout_ns; the memory may be mapped read-only. */
void vgpu__futex_wait(const uint32_t *word, uint32_t seen, uint64_t timeout_ns);
uint64_t vgpu__parse_number(const char *text, uint64_t otherwise);
uint64_t vgpu__start_time(void);
int vgpu__process_runs(uint64_t pid, uint64_t start_time);
uint64_t vgpu__pid_namespace(void);

/* ---- log.c: off unless VGPU_HOOK_LOG says where; rate-limited; keeps the last reason for vgpu_attach ---- */
__attribute__((format(printf, 1, 2))) void vgpu__log(const char *format, ...);
void vgpu__last_reason(char *into, size_t size);

#endif
