/* What the stub driver shares with its processes and tells the tests. */
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
  uint64_t most; /* the greatest sum of all processes, ever */
  struct stub_process process[STUB_PROCESSES];
};

struct stub_counts {
  uint64_t launches, null_launches, gpu_ns, records, first_ns, last_ns;
  uint64_t most_ahead_ns; /* the longest that the GPU had to do at a launch */
  int64_t events;
  uint64_t polluted, violations; /* what the hook must not do to a capture */
  int32_t held_up_by;            /* a thread whose call has the driver's lock, or 0; queries of other threads wait */
  uint32_t held_up;              /* how many do */
  uint64_t legacy_records;       /* into the legacy stream by its name: it would wait for all others, and they for it */
};
struct stub_counts *stub_counts(void);

/* What the calling thread has called. */
struct stub_calls {
  uint64_t records, queries, elapsed;
};
struct stub_calls *stub_calls(void);

#endif
