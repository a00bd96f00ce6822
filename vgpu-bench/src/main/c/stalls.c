/*
 * Traces the causes of stalls: records changes in the leases' pages some thousand times a second, and prints the
 * changes between two moments. It only reads existing pages, so the observed processes do no extra work.
 */
#define _GNU_SOURCE
#include "program.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "shm.h"

enum { MOST_LEASES = 8, SLOTS = 16, MOST_NOTES = 1 << 22, LOOK_NS = 150000, LATE_NS = 1000000, SILENT_NS = 2000000 };
enum { NANOSECONDS_A_MS = 1000000, HOLDER_MASK = 0xff, PATH = 512 };

enum kind { GATE, TURN, CAME, BUSY, WAITING, SILENT, GPU, SEAT, BLIND };
static const char *const NAMES[] = {"gate open", "turn",       "process",        "busy",         "waiting",
                                    "silent_us", "had_gpu_us", "seat_silent_us", "not_looked_us"};

struct note {
  uint64_t at_ns, value;
  uint8_t lease, slot, kind;
};

struct seen {
  uint64_t silent, gpu;
  uint32_t pid, busy, waiting;
};

static struct lease {
  const struct shm_header *header;
  const struct shm_grant *grant;
  const struct shm_ledger *ledger;
  const struct shm_slot *slots;
  uint32_t open, holder;
  uint64_t seat_silent;
  struct seen seen[SLOTS];
} leases[MOST_LEASES];
static unsigned lease_count;
static struct note *notes;
static _Atomic uint64_t note_count;

static void note(uint64_t at_ns, unsigned lease, unsigned slot, enum kind kind, uint64_t value) {
  uint64_t number = atomic_load(&note_count);
  notes[number % MOST_NOTES] = (struct note){
      .at_ns = at_ns, .value = value, .lease = (uint8_t)lease, .slot = (uint8_t)slot, .kind = (uint8_t)kind};
  atomic_store(&note_count, number + 1);
}

static void note32(uint64_t at_ns, unsigned lease, unsigned slot, enum kind kind, uint32_t *seen, uint32_t now) {
  if (*seen != now) {
    *seen = now;
    note(at_ns, lease, slot, kind, now);
  }
}

static uint32_t read32(const uint32_t *word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }

static uint64_t read64(const uint64_t *word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }

/* How long ago a heartbeat was, in whole milliseconds given in microseconds; 0 if it was recent. */
static uint64_t silence(uint64_t beat, uint64_t now) {
  return beat != 0 && now > beat + SILENT_NS ? (now - beat) / NANOSECONDS_A_MS * 1000 : 0;
}

static void look_at_slot(unsigned index, unsigned slot, uint64_t now) {
  struct lease *lease = &leases[index];
  struct seen *seen = &lease->seen[slot];
  const struct shm_slot *is = &lease->slots[slot];
  uint32_t pid = read32(&is->state) == SHM_SLOT_ATTACHED ? read32(&is->pid) : 0;
  note32(now, index, slot, CAME, &seen->pid, pid);
  note32(now, index, slot, BUSY, &seen->busy, pid == 0 ? 0 : read32(&is->busy));
  note32(now, index, slot, WAITING, &seen->waiting, pid == 0 ? 0 : read32(&is->waiting));
  uint64_t silent = pid == 0 || (seen->busy == 0 && seen->waiting == 0) ? 0 : silence(read64(&is->heartbeat_ns), now);
  if (silent != seen->silent) {
    seen->silent = silent;
    note(now, index, slot, SILENT, silent);
  }
  uint64_t gpu = read64(&is->gpu_ns);
  if (gpu != seen->gpu) {
    /* the next process in a slot begins at 0 */
    note(now, index, slot, GPU, (gpu > seen->gpu ? gpu - seen->gpu : gpu) / 1000);
    seen->gpu = gpu;
  }
}

static void look(uint64_t now) {
  for (unsigned i = 0; i < lease_count; i++) {
    struct lease *lease = &leases[i];
    note32(now, i, 0, GATE, &lease->open, read32(&lease->grant->word) & (uint32_t)SHM_GRANT_OPEN);
    note32(now, i, 0, TURN, &lease->holder, read32(&lease->ledger->turn) & HOLDER_MASK);
    uint64_t silent = silence(read64(&lease->header->heartbeat_ns), now);
    silent = silent < 5000 ? 0 : silent;
    if (silent != lease->seat_silent) {
      lease->seat_silent = silent;
      note(now, i, 0, SEAT, silent);
    }
    for (unsigned slot = 1; slot < SLOTS; slot++) {
      look_at_slot(i, slot, now);
    }
  }
}

static void *watch(void *unused) {
  (void)unused;
  prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
  for (uint64_t before = now_ns();;) {
    nanosleep(&(struct timespec){0, LOOK_NS}, NULL);
    uint64_t now = now_ns();
    if (now - before > LOOK_NS + LATE_NS) {
      note(now, 0, 0, BLIND, (now - before) / 1000);
    }
    look(now);
    before = now;
  }
  return NULL;
}

static const char *map(const char *directory, const char *name, size_t size) {
  char path[PATH];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  void *at = fd < 0 ? MAP_FAILED : mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) {
    fail(path, fd);
  }
  close(fd);
  return at;
}

static void tell(uint64_t from, uint64_t to) {
  uint64_t count = atomic_load(&note_count), first = count > MOST_NOTES ? count - MOST_NOTES : 0;
  for (uint64_t i = first; i < count; i++) {
    const struct note *is = &notes[i % MOST_NOTES];
    if (is->at_ns >= from && is->at_ns <= to) {
      say("  %+10.3f ms  lease %u slot %u  %s %llu", ((double)is->at_ns - (double)from) / NANOSECONDS_A_MS, is->lease,
          is->slot, NAMES[is->kind], (unsigned long long)is->value);
    }
  }
  say("end");
}

int mode_stalls(int count, char **arguments) {
  pthread_t thread;
  char line[128];
  unsigned long long from, to;
  if (count < 1 || count > MOST_LEASES) {
    return 2;
  }
  notes = calloc(MOST_NOTES, sizeof *notes);
  for (int i = 0; i < count; i++) {
    const char *grant = map(arguments[i], "grant", SHM_GRANT_SIZE),
               *report = map(arguments[i], "report", SHM_REPORT_SIZE);
    leases[i].header = (const void *)grant;
    leases[i].grant = (const void *)(grant + SHM_GRANT_OFFSET);
    leases[i].ledger = (const void *)(report + SHM_LEDGER_OFFSET);
    leases[i].slots = (const void *)(report + SHM_SLOTS_OFFSET);
  }
  lease_count = (unsigned)count;
  if (notes == NULL || pthread_create(&thread, NULL, watch, NULL) != 0) {
    fail("a thread's start", 0);
  }
  say("ready");
  while (next_line(line, sizeof line)) {
    if (sscanf(line, "tell %llu %llu", &from, &to) != 2) {
      return 2;
    }
    tell(from, to);
  }
  return 0;
}
