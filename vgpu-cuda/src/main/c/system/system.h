/*
 * The lowest layer: the compiler, the C library and the kernel. It knows nothing of leases or CUDA.
 *
 * The file `layers` lists the layers, lowest first. A file includes the headers of its own layer, and of a lower layer
 * only the header named after that layer. No function calls into a higher layer; build/check-layers.sh fails the build
 * otherwise.
 */
#ifndef VGPU_SYSTEM_H
#define VGPU_SYSTEM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "machine.h"
#include "shown.h"

struct sockaddr;
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

/* ---- lock.c: a small futex lock; the child of a fork may simply clear it ---- */
struct vgpu_lock {
  uint32_t word; /* 0: free, 1: held, 2: held, with waiters */
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

/* ---- system.c: wrappers for the C library and the kernel that need nothing newer than glibc 2.17 ---- */
uint64_t vgpu__now_ns(void); /* CLOCK_MONOTONIC */
int vgpu__stat(const char *path, struct stat *into);
int vgpu__fstat(int fd, struct stat *into);
/* Waits while *word == seen, for at most timeout_ns. The memory may be mapped read-only. */
void vgpu__futex_wait(const uint32_t *word, uint32_t seen, uint64_t timeout_ns);
/*
 * Waits while each word has its value, for at most timeout_ns. Before Linux 5.16 only one word can be waited on: the
 * first one, for at most poll_ns.
 */
enum { VGPU_WORDS = 4 };
struct vgpu_words {
  const uint32_t *at[VGPU_WORDS];
  uint32_t seen[VGPU_WORDS];
  unsigned count;
};
void vgpu__words_add(struct vgpu_words *words, const uint32_t *at);
void vgpu__words_wait(const struct vgpu_words *words, uint64_t timeout_ns, uint64_t poll_ns);
uint64_t vgpu__parse_number(const char *text, uint64_t otherwise);
/* Total time for which this thread was runnable but had no processor; 0 if unknown. Takes some microseconds. */
uint64_t vgpu__unscheduled_ns(void);
uint64_t vgpu__start_time(void);
int vgpu__process_runs(uint64_t pid, uint64_t start_time);
int vgpu__process_is_hidden(uint64_t pid);
uint64_t vgpu__pid_namespace(void);

/* ---- calls.c: system calls that are no cancellation points ---- */
int vgpu__file_open(const char *path, int flags); /* closed by exec; a new file is its owner's */
ssize_t vgpu__file_read(int fd, void *into, size_t size);
ssize_t vgpu__file_read_at(int fd, void *into, size_t size, off_t at);
ssize_t vgpu__file_write(int fd, const void *from, size_t size);
void vgpu__file_close(int fd);
int vgpu__file_copy(int fd, int least); /* the copy's number is at least this */
int vgpu__socket_connect(int fd, const struct sockaddr *address, unsigned size);
ssize_t vgpu__socket_send(int fd, const void *from, size_t size); /* these two do not wait */
ssize_t vgpu__socket_receive(int fd, void *into, size_t size);
/* Waits until the socket has a message or an end, or for ns; for 1 ms where ppoll is denied. */
void vgpu__socket_wait(int fd, uint64_t ns);
void vgpu__sleep_ns(uint64_t ns);

/* ---- thread.c ---- */
int vgpu__thread_start(void *(*body)(void *)); /* 0; -1: failed. It handles none of the program's signals. */

/* ---- log.c: off unless VGPU_HOOK_LOG names a place; rate-limited; keeps the last reason for vgpu_attach ---- */
__attribute__((format(printf, 1, 2))) void vgpu__log(const char *format, ...);

/* In the child of a fork: no thread that held the lock exists there. */
void vgpu__log_forget(void);
void vgpu__last_reason(char *into, size_t size);

/* ---- settings.c: the VGPU_ variables ---- */
enum { VGPU_PATH = 1024 };
/* The value that vgpu_attach was given, else the environment's; NULL if unset or empty. */
const char *vgpu__setting(const char *name);
/* A value from an environment in the form that execve takes; NULL if unset or empty. */
const char *vgpu__value_in(const char *const *env, const char *name);
void vgpu__setting_give(const char *name, const char *value);

/* ---- pause.c: the total time for which this process has stood still ---- */
uint64_t vgpu__paused_ns(uint64_t now);
void vgpu__pause_tick(uint64_t now); /* called by the monitor */
void vgpu__pause_sleep(void);        /* suspends the ticks until the next vgpu__pause_tick */
void vgpu__pause_forget(void);

/*
 * ---- changing.c: whether a thread is changing what the GPU holds ----
 *
 * Memory is charged before the driver is asked for it, and given back after the driver has freed it. In between, the
 * charge exceeds what the process really holds, and a comparison of the two must not take the difference for memory
 * that contexts no longer need. A thread marks this interval in its own cell with two plain stores. A thread that ends
 * leaves its cell at zero.
 */
extern __thread uint32_t *vgpu__changing_cell __attribute__((tls_model("initial-exec"))) VGPU_INTERNAL;
extern uint32_t vgpu__changing_shared VGPU_INTERNAL; /* for threads without a cell of their own */
uint32_t *vgpu__changing_first(void);

/*
 * Whether any thread is inside such a change. After a result of 0, a new change also alters a charge before it is over.
 */
int vgpu__changing_any(void);
void vgpu__changing_forget(void);

static inline uint32_t *vgpu__changing_begin(void) {
  uint32_t *cell = vgpu__changing_cell;
  if (UNLIKELY(cell == NULL)) cell = vgpu__changing_first();
  if (UNLIKELY(cell == &vgpu__changing_shared)) __atomic_fetch_add(cell, 1, __ATOMIC_SEQ_CST);
  else STORE_RELEASE(*cell, LOAD(*cell) + 1);
  return cell;
}

static inline void vgpu__changing_end(uint32_t **cell) {
  if (UNLIKELY(*cell == &vgpu__changing_shared)) __atomic_fetch_sub(*cell, 1, __ATOMIC_SEQ_CST);
  else STORE_RELEASE(**cell, LOAD(**cell) - 1);
}

/* Marks a change from here to the end of the enclosing block. */
#define CHANGING() uint32_t *changing __attribute__((cleanup(vgpu__changing_end), unused)) = vgpu__changing_begin()

#endif
