/*
 * The auditor of the chaos suite. It runs beside all programs and compares the memory of each process according to the
 * GPU (NVML) with the leases' ledgers (their pages). It also checks all the time that no lease exceeds its quota. It
 * trusts neither side.
 */
#define _GNU_SOURCE
#include "program.h"
#include "shm.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "nvml_reader.h"

enum { LEASES = 64, PROCESSES = 512, NAME = 96, LOOK_NS = 2000000 };

/* A killed process leaves the ledger shortly before it leaves the process table. */
enum { DEATH_NS = 50000000 };

struct lease {
  char name[NAME];
  const struct shm_grant *grant;
  const char *report;
  uint64_t truth; /* in the current snapshot: the memory of processes that are under this lease only */
};

struct member {
  unsigned pid;
  uint64_t leases; /* a bit for each */
};

struct audit {
  struct nvml nvml;
  struct lease leases[LEASES];
  size_t lease_count;
  struct nvml_process snapshot[PROCESSES];
  unsigned count;
  uint64_t owners[PROCESSES]; /* the leases of each process in the snapshot, a bit for each; 0: not known any more */
  struct member members[PROCESSES];
  unsigned member_count;
  uint64_t samples, over;
  char over_lease[NAME];
};

static const void *map_page(const char *lease, const char *file, size_t size) {
  char path[512];
  snprintf(path, sizeof path, "%s/leases/%s/%s", getenv("VGPU_RUN_DIR"), lease, file);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return NULL;
  }
  void *page = lseek(fd, 0, SEEK_END) < (off_t)size ? MAP_FAILED : mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  return page == MAP_FAILED ? NULL : page;
}

static void unmap(struct lease *lease) {
  munmap((void *)(uintptr_t)((const char *)lease->grant - SHM_GRANT_OFFSET), SHM_GRANT_SIZE);
  munmap((void *)(uintptr_t)lease->report, SHM_REPORT_SIZE);
}

static bool known(const struct audit *audit, const char *name) {
  for (size_t i = 0; i < audit->lease_count; i++) {
    if (strcmp(audit->leases[i].name, name) == 0) {
      return true;
    }
  }
  return false;
}

/* Adds new leases, and removes those whose directory is gone. */
static void scan(struct audit *audit) {
  char path[512];
  for (size_t i = 0; i < audit->lease_count;) {
    snprintf(path, sizeof path, "%s/leases/%s/grant", getenv("VGPU_RUN_DIR"), audit->leases[i].name);
    if (access(path, F_OK) != 0) {
      unmap(&audit->leases[i]);
      audit->leases[i] = audit->leases[--audit->lease_count];
    } else {
      i++;
    }
  }
  snprintf(path, sizeof path, "%s/leases", getenv("VGPU_RUN_DIR"));
  DIR *directory = opendir(path);
  for (struct dirent *entry = NULL; directory != NULL && (entry = readdir(directory)) != NULL;) {
    size_t length = strlen(entry->d_name);
    if (entry->d_name[0] == '.' || length >= NAME || audit->lease_count == LEASES || known(audit, entry->d_name)) {
      continue;
    }
    const char *grant = map_page(entry->d_name, "grant", SHM_GRANT_SIZE);
    const char *report = grant == NULL ? NULL : map_page(entry->d_name, "report", SHM_REPORT_SIZE);
    if (report == NULL || *(const volatile uint64_t *)(const void *)grant != SHM_GRANT_MAGIC) {
      continue; /* it is being created, or was never completed */
    }
    struct lease *lease = &audit->leases[audit->lease_count++];
    memcpy(lease->name, entry->d_name, length + 1);
    lease->grant = (const void *)(grant + SHM_GRANT_OFFSET);
    lease->report = report;
  }
  if (directory != NULL) {
    closedir(directory);
  }
}

static const struct shm_slot *slot_of(const struct lease *lease, unsigned number) {
  return (const void *)(lease->report + SHM_SLOTS_OFFSET + number * SHM_SLOT_SIZE);
}

/*
 * Records which processes have a slot in which lease. Called before and after NVML is read, so that processes that
 * leave in between are included.
 */
static void note_members(struct audit *audit) {
  for (size_t i = 0; i < audit->lease_count; i++) {
    for (unsigned number = 1; number < SHM_SLOT_COUNT; number++) {
      const struct shm_slot *slot = slot_of(&audit->leases[i], number);
      if (__atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) == SHM_SLOT_FREE) {
        continue;
      }
      unsigned pid = __atomic_load_n(&slot->pid, __ATOMIC_RELAXED), m = 0;
      while (m < audit->member_count && audit->members[m].pid != pid) {
        m++;
      }
      if (m == audit->member_count) {
        if (m == PROCESSES) {
          return;
        }
        audit->members[audit->member_count++] = (struct member){.pid = pid};
      }
      audit->members[m].leases |= UINT64_C(1) << i;
    }
  }
}

/* The lease that a process was started under, according to its environment, which a forked child inherits. */
static uint64_t started_under(const struct audit *audit, unsigned pid) {
  char path[64];
  static char environment[65536];
  uint64_t found = 0;
  snprintf(path, sizeof path, "/proc/%u/environ", pid);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return 0;
  }
  size_t length = 0;
  for (ssize_t got; length < sizeof environment - 1 &&
                    (got = read(fd, environment + length, sizeof environment - 1 - length)) > 0;) {
    length += (size_t)got;
  }
  close(fd);
  environment[length] = '\0';
  for (size_t at = 0; at < length; at += strlen(environment + at) + 1) {
    for (size_t i = 0; strncmp(environment + at, "VGPU_LEASE=", 11) == 0 && i < audit->lease_count; i++) {
      if (strcmp(environment + at + 11, audit->leases[i].name) == 0) {
        found = UINT64_C(1) << i;
      }
    }
  }
  return found;
}

/* A process may be under several leases, and a forked child under one that its environment does not name. */
static uint64_t find_owners(const struct audit *audit, unsigned pid) {
  for (unsigned m = 0; m < audit->member_count; m++) {
    if (audit->members[m].pid == pid) {
      return audit->members[m].leases;
    }
  }
  return started_under(audit, pid);
}

static void take_snapshot(struct audit *audit) {
  scan(audit);
  audit->member_count = 0;
  note_members(audit);
  audit->count = nvml_read(&audit->nvml, audit->snapshot, PROCESSES);
  note_members(audit);
  for (unsigned i = 0; i < audit->count; i++) {
    audit->owners[i] = find_owners(audit, audit->snapshot[i].pid);
  }
  audit->samples++;
}

static bool is_one(uint64_t bits) { return (bits & (bits - 1)) == 0; }

/* Sums the memory of live processes only: that of dead ones is being reclaimed. */
static void sum_up(struct audit *audit) {
  for (size_t i = 0; i < audit->lease_count; i++) {
    audit->leases[i].truth = 0;
    for (unsigned p = 0; p < audit->count; p++) {
      if (audit->owners[p] == UINT64_C(1) << i && nvml_is_alive(audit->snapshot[p].pid)) {
        audit->leases[i].truth += audit->snapshot[p].used;
      }
    }
  }
}

static uint64_t limit_of(const struct lease *lease) {
  return __atomic_load_n(&lease->grant->memory_limit, __ATOMIC_ACQUIRE);
}

/*
 * The leases that are connected by processes under several of them. The GPU does not tell to which lease the memory of
 * such a process belongs.
 */
static uint64_t tied_to(const struct audit *audit, uint64_t leases) {
  for (uint64_t before = 0; before != leases;) {
    before = leases;
    for (unsigned p = 0; p < audit->count; p++) {
      leases |= (audit->owners[p] & leases) != 0 ? audit->owners[p] : 0;
    }
  }
  return leases;
}

static uint64_t over_together(const struct audit *audit, uint64_t leases) {
  uint64_t truth = 0, limit = 0;
  for (size_t i = 0; i < audit->lease_count; i++) {
    if ((leases >> i & 1) != 0) {
      truth += audit->leases[i].truth;
      limit += limit_of(&audit->leases[i]);
    }
  }
  for (unsigned p = 0; p < audit->count; p++) {
    if ((audit->owners[p] & leases) != 0 && !is_one(audit->owners[p]) && nvml_is_alive(audit->snapshot[p].pid)) {
      truth += audit->snapshot[p].used;
    }
  }
  return truth > limit ? truth - limit : 0;
}

static uint64_t most_over(const struct audit *audit, const char **name) {
  uint64_t most = 0;
  for (size_t i = 0; i < audit->lease_count; i++) {
    const struct lease *lease = &audit->leases[i];
    uint64_t limit = limit_of(lease), alone = lease->truth > limit ? lease->truth - limit : 0;
    uint64_t together = over_together(audit, tied_to(audit, UINT64_C(1) << i));
    uint64_t over = alone > together ? alone : together;
    if (over > most) {
      most = over;
      *name = lease->name;
    }
  }
  return most;
}

static void look(struct audit *audit) {
  const char *name = "";
  take_snapshot(audit);
  sum_up(audit);
  if (most_over(audit, &name) > 0) {
    nanosleep(&(struct timespec){0, DEATH_NS}, NULL); /* the same snapshot again, without processes that were dying */
    sum_up(audit);
    uint64_t over = most_over(audit, &name);
    if (over > audit->over) {
      audit->over = over;
      snprintf(audit->over_lease, sizeof audit->over_lease, "%s", name);
    }
  }
}

static uint64_t units(uint64_t word, uint64_t shift) { return (word >> shift) * SHM_MEMORY_UNIT; }

/*
 * Prints a line for each process that the GPU or a ledger knows. slot_bytes or truth_bytes is -1 if the ledger or the
 * GPU does not know the process. A process under several leases is printed for each, with all its memory on the GPU.
 */
static void tell_processes(const struct audit *audit, size_t index) {
  const struct lease *lease = &audit->leases[index];
  bool told[PROCESSES] = {false};
  for (unsigned number = 1; number < SHM_SLOT_COUNT; number++) {
    const struct shm_slot *slot = slot_of(lease, number);
    if (__atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) == SHM_SLOT_FREE) {
      continue;
    }
    long long truth = -1;
    unsigned pid = __atomic_load_n(&slot->pid, __ATOMIC_RELAXED);
    for (unsigned p = 0; p < audit->count; p++) {
      if (audit->snapshot[p].pid == pid && (audit->owners[p] >> index & 1) != 0) {
        truth = (long long)audit->snapshot[p].used;
        told[p] = true;
      }
    }
    say("process pid %u slot %u slot_bytes %llu truth_bytes %lld alive %d express %u", pid, number,
        (unsigned long long)units(__atomic_load_n(&slot->memory_own, __ATOMIC_ACQUIRE), 20), truth, nvml_is_alive(pid),
        __atomic_load_n(&slot->express, __ATOMIC_RELAXED));
  }
  for (unsigned p = 0; p < audit->count; p++) {
    if (!told[p] && (audit->owners[p] >> index & 1) != 0) {
      say("process pid %u slot 0 slot_bytes -1 truth_bytes %llu alive %d express 0", audit->snapshot[p].pid,
          audit->snapshot[p].used, nvml_is_alive(audit->snapshot[p].pid));
    }
  }
}

static void tell(struct audit *audit) {
  look(audit);
  for (size_t i = 0; i < audit->lease_count; i++) {
    const struct lease *lease = &audit->leases[i];
    const struct shm_ledger *ledger = (const void *)(lease->report + SHM_LEDGER_OFFSET);
    uint64_t word = __atomic_load_n(&ledger->memory_word, __ATOMIC_ACQUIRE);
    uint32_t grant = __atomic_load_n(&lease->grant->word, __ATOMIC_ACQUIRE);
    say("lease %s", lease->name);
    say("sum quota %llu ledger %llu truth %llu open %d revoked %d", (unsigned long long)limit_of(lease),
        (unsigned long long)units(word, SHM_MEMORY_UNITS_SHIFT), (unsigned long long)lease->truth,
        (grant & SHM_GRANT_OPEN) != 0, (grant & SHM_GRANT_REVOKED) != 0);
    tell_processes(audit, i);
  }
  say("audit samples %llu device %llu over %llu over_lease %s", (unsigned long long)audit->samples,
      (unsigned long long)nvml_used(&audit->nvml), (unsigned long long)audit->over, audit->over_lease);
}

int mode_audit(int count, char **arguments) {
  static struct audit audit;
  char line[128];
  (void)count;
  (void)arguments;
  setvbuf(stdin, NULL, _IONBF, 0); /* unbuffered, so that poll sees each line */
  nvml_start(&audit.nvml);
  say("ready");
  for (;;) {
    look(&audit);
    if (poll(&(struct pollfd){STDIN_FILENO, POLLIN, 0}, 1, LOOK_NS / 1000000) > 0) {
      if (!next_line(line, sizeof line)) {
        return 0;
      }
      tell(&audit);
    }
  }
}
