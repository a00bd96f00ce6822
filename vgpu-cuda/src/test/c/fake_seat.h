/* A seat for tests: one lease, its pages, its socket, and recovery after deaths. The Java seat does the same. */
#ifndef VGPU_FAKE_SEAT_H
#define VGPU_FAKE_SEAT_H

#include <linux/futex.h>
#include <pthread.h>
#include <stdint.h>

#include "../../main/shm/shm.h"

struct fake_seat {
  char dir[64];
  struct shm_header *grant_header, *report_header;
  struct shm_grant *grant;
  struct shm_grant_more *more;
  struct shm_ledger *ledger;
  struct shm_slot *slots;
  struct shm_header *express_header; /* NULL: no express lane */
  struct shm_express *express;
  int urgent; /* its processes announce their work */
  int listener;
  int connection[128]; /* by slot; -1: none */
  pthread_t thread;
  int tells_end; /* its thread's end shows on the page: grant_more.seat_thread */
  struct robust_list thread_node;
  struct robust_list_head thread_list;
  uint32_t stop, mute;     /* mute: sends no heartbeat and no answer */
  uint64_t longest_gap_ns; /* the longest gap between two heartbeats of this seat */
  uint32_t wants, idles, hellos, welcomes_refused;
  void (*died)(uint32_t pid); /* called before a dead process's memory is taken back */
};

void seat_open(struct fake_seat *seat, uint64_t quota, uint64_t context_bytes);
void seat_express(struct fake_seat *seat, uint32_t preemption_class); /* before seat_start */
void seat_express_clear(struct fake_seat *seat, uint64_t bits);
void seat_start(struct fake_seat *seat);
void seat_stop(struct fake_seat *seat); /* simulates the death of the seat's holder: sockets close, the pages stay */
void seat_close(struct fake_seat *seat);
void seat_gate(struct fake_seat *seat, uint32_t flags);
uint32_t seat_busy(const struct fake_seat *seat); /* of all slots */
uint64_t seat_units(const struct fake_seat *seat);
uint64_t seat_gpu_ns(const struct fake_seat *seat);
uint64_t seat_now(void);

/*
 * The environment with these settings (NAME=value; NULL ends them; the last one of a name counts), to be freed. It is
 * made before a fork: a child of a process with threads must not allocate, as no thread releases a lock held then.
 */
char **environment_with(const char *const *settings);

#endif
