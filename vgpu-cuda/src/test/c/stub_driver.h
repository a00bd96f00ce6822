/* State that the stub driver shares between processes, and its counts for the tests. */
#ifndef VGPU_STUB_DRIVER_H
#define VGPU_STUB_DRIVER_H

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <unistd.h>

enum { STUB_PROCESSES = 128, STUB_CONTEXT = 1 << 20 };
#define STUB_MEMORY (64ull << 30)

struct stub_process {
  int32_t pid;
  uint64_t held;
};

struct stub_shared {
  pthread_mutex_t lock;
  uint64_t most; /* the greatest sum over all processes so far */
  struct stub_process process[STUB_PROCESSES];
};

/*
 * Takes the robust lock. It does not wait in the kernel, which wakes one waiter when an owner dies: if that one is
 * killed before it runs, nobody else is woken.
 */
static inline void stub_share(struct stub_shared *shared) {
  int got;
  while ((got = pthread_mutex_trylock(&shared->lock)) == EBUSY) usleep(20);
  if (got == EOWNERDEAD) pthread_mutex_consistent(&shared->lock);
}

struct stub_counts {
  uint64_t launches, null_launches, gpu_ns, records, first_ns, last_ns;
  uint64_t most_ahead_ns; /* the longest queue of GPU work at a launch */
  int64_t events;
  uint64_t polluted, violations; /* violations of captures, which the hook must not cause */
  int32_t held_up_by;            /* a thread whose call holds the driver's lock, or 0; other threads' queries wait */
  uint32_t held_up;              /* number of waiting threads */
  uint64_t conditional_ns;       /* 0, or how long a graph with a conditional node now takes */
  uint64_t gone_queries;         /* of destroyed streams */
  uint32_t pauses;               /* 1, set by the test: the next record pauses; then 2 */
  uint32_t waits_fail;           /* set by the test: waits for a stream return an error */
  uint64_t legacy_records;       /* by name; an event there would wait for all other streams, and they for it */
};
struct stub_counts *stub_counts(void);

/*
 * Two functions that the hook passes on. Here they take and return more than the real ones, so that a test sees whether
 * every argument gets through: those in registers, of both kinds, those on the stack, and the place of the result.
 */
struct stub_many {
  uint64_t integers, weighted; /* the sum, and the sum of each times its place */
  double reals, weighted_reals;
};
typedef struct stub_many stub_takes_many(uint64_t i1, double r1, uint64_t i2, double r2, uint64_t i3, double r3,
                                         uint64_t i4, double r4, uint64_t i5, double r5, uint64_t i6, double r6,
                                         uint64_t i7, double r7, uint64_t i8, double r8, uint64_t i9, double r9,
                                         uint64_t i10, double r10);
typedef struct stub_many stub_takes_any(int pairs, ...); /* of uint64_t and double */
extern stub_takes_many cuDeviceGetNvSciSyncAttributes;
extern stub_takes_any cuDeviceGetTexture1DLinearMaxWidth;

/* Number of calls by the calling thread. */
struct stub_calls {
  uint64_t records, queries, elapsed;
};
struct stub_calls *stub_calls(void);

#endif
