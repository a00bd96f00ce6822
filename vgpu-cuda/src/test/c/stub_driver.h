/* State that the stub driver shares between processes, and its counts for the tests. */
#ifndef VGPU_STUB_DRIVER_H
#define VGPU_STUB_DRIVER_H

#include <pthread.h>
#include <stdint.h>

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

struct stub_counts {
  uint64_t launches, null_launches, gpu_ns, records, first_ns, last_ns;
  uint64_t most_ahead_ns; /* the longest queue of GPU work at a launch */
  int64_t events;
  uint64_t polluted, violations; /* violations of captures, which the hook must not cause */
  int32_t held_up_by;            /* a thread whose call holds the driver's lock, or 0; other threads' queries wait */
  uint32_t held_up;              /* number of waiting threads */
  uint64_t legacy_records;       /* by name; an event there would wait for all other streams, and they for it */
};
struct stub_counts *stub_counts(void);

/* Number of calls by the calling thread. */
struct stub_calls {
  uint64_t records, queries, elapsed;
};
struct stub_calls *stub_calls(void);

#endif
