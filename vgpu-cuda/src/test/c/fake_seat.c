/* The seat's side of the hook's protocol, written as plainly as possible; docs/memory-ledger.md. */
#include "fake_seat.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define GET(x) __atomic_load_n(&(x), __ATOMIC_SEQ_CST)
#define SET(x, v) __atomic_store_n(&(x), (v), __ATOMIC_SEQ_CST)
#define CAS(x, seen, v) __atomic_compare_exchange_n(&(x), &(seen), (v), 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)

static void must(int fine, const char *what) {
  if (fine) return;
  fprintf(stderr, "fake seat: %s: %s\n", what, strerror(errno));
  exit(3);
}

uint64_t seat_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void *make_file(const struct fake_seat *seat, const char *name, size_t size) {
  char path[128];
  snprintf(path, sizeof path, "%s/%s", seat->dir, name);
  int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  must(fd >= 0 && ftruncate(fd, (off_t)size) == 0, path);
  void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  must(pages != MAP_FAILED, path);
  close(fd);
  return pages;
}

static void fill_header(struct shm_header *header, uint64_t magic, uint64_t size, uint64_t slot_count) {
  header->layout_major = (uint32_t)SHM_LAYOUT_MAJOR;
  header->layout_minor = (uint32_t)SHM_LAYOUT_MINOR;
  header->size = size;
  header->slot_count = (uint32_t)slot_count;
  header->heartbeat_ns = seat_now();
  __atomic_store_n(&header->magic, magic, __ATOMIC_RELEASE);
}

void seat_open(struct fake_seat *seat, uint64_t quota, uint64_t context_bytes) {
  char path[128];
  memset(seat, 0, sizeof *seat);
  const char *place = getenv("TEST_DIR") != NULL ? getenv("TEST_DIR") : "/tmp";
  must((size_t)snprintf(seat->dir, sizeof seat->dir, "%s/vgpuXXXXXX", place) < sizeof seat->dir, "TEST_DIR");
  must(mkdtemp(seat->dir) != NULL, "mkdtemp");
  snprintf(path, sizeof path, "%s/leases", seat->dir);
  must(mkdir(path, 0700) == 0, path);
  snprintf(path, sizeof path, "%s/leases/test", seat->dir);
  must(mkdir(path, 0700) == 0, path);
  char *grant = make_file(seat, "leases/test/grant", SHM_GRANT_SIZE),
       *report = make_file(seat, "leases/test/report", SHM_REPORT_SIZE);
  seat->grant_header = (void *)grant;
  seat->grant = (void *)(grant + SHM_GRANT_OFFSET);
  seat->more = (void *)(grant + SHM_GRANT_MORE_OFFSET);
  struct stat space;
  must(stat("/proc/self/ns/pid", &space) == 0, "pid namespace");
  seat->more->pid_namespace = space.st_ino;
  memset(seat->more->secret, 's', sizeof seat->more->secret);
  seat->report_header = (void *)report;
  seat->ledger = (void *)(report + SHM_LEDGER_OFFSET);
  seat->slots = (void *)(report + SHM_SLOTS_OFFSET);
  seat->grant->word = (uint32_t)SHM_GRANT_OPEN;
  seat->grant->memory_limit = quota;
  seat->grant->entitled_permille = 500;
  seat->grant->inflight_us = 2000;
  seat->grant->context_bytes = context_bytes;
  fill_header(seat->grant_header, SHM_GRANT_MAGIC, SHM_GRANT_SIZE, SHM_SLOT_COUNT);
  fill_header(seat->report_header, SHM_REPORT_MAGIC, SHM_REPORT_SIZE, SHM_SLOT_COUNT);
  for (int i = 0; i < 128; i++) seat->connection[i] = -1;
  SET(seat->slots[0].state, (uint32_t)SHM_SLOT_ATTACHED);
}

/* ---- the express lane: slot n of an urgent lease has bit n - 1; an offline lease obeys every bit ---- */

void seat_express(struct fake_seat *seat, uint32_t preemption_class) {
  char path[128];
  snprintf(path, sizeof path, "%s/express", seat->dir);
  must(mkdir(path, 0700) == 0, path);
  char *page = make_file(seat, "express/gpu", SHM_EXPRESS_SIZE);
  seat->express_header = (void *)page;
  seat->express = (void *)(page + SHM_EXPRESS_OFFSET);
  fill_header(seat->express_header, SHM_EXPRESS_MAGIC, SHM_EXPRESS_SIZE, SHM_EXPRESS_BITS);
  seat->urgent = preemption_class != SHM_CLASS_OFFLINE;
  seat->grant->preemption_class = preemption_class;
  seat->grant->express_mask = seat->urgent ? 0 : ~0ull;
  strcpy((char *)seat->grant->express_page, "gpu");
}

static void express_give(struct fake_seat *seat, uint32_t number) {
  if (seat->urgent && number <= SHM_EXPRESS_BITS) {
    SET(seat->grant->express_slots[number - 1], (uint8_t)number);
  }
}

void seat_express_clear(struct fake_seat *seat, uint64_t bits) {
  __atomic_fetch_and(&seat->express->busy, ~bits, __ATOMIC_SEQ_CST);
  for (int i = 0; i < 2; i++) {
    syscall(SYS_futex, (uint32_t *)(void *)&seat->express->busy + i, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
  }
}

static void express_take_back(struct fake_seat *seat, uint32_t number) {
  if (seat->urgent && number <= SHM_EXPRESS_BITS) {
    SET(seat->grant->express_slots[number - 1], 0);
    seat_express_clear(seat, (uint64_t)1 << (number - 1));
  }
}

/* ---- slot 0's own changes, and recovery of a dead process's memory ---- */

static uint64_t *word_of(const struct fake_seat *seat, uint32_t gpu) {
  return gpu == 0 ? &seat->ledger->memory_word : &seat->ledger->memory_words[gpu - 1];
}

static uint64_t *own_of(struct shm_slot *slot, uint32_t gpu) {
  return gpu == 0 ? &slot->memory_own : &slot->memory_owns[gpu - 1];
}

static uint64_t *done_of(struct shm_slot *slot, uint32_t gpu) {
  return gpu == 0 ? &slot->memory_done : &slot->memory_dones[gpu - 1];
}

static uint32_t accounts(const struct fake_seat *seat) {
  return seat->more->memory_gpus > 1 ? seat->more->memory_gpus : 1;
}

static int help(struct fake_seat *seat, uint32_t gpu, uint64_t word) {
  uint64_t who = word >> SHM_MEMORY_SLOT_SHIFT & SHM_MEMORY_SLOT_MASK, seq = word & SHM_MEMORY_SEQ_MASK;
  if (who == 0 || who >= SHM_SLOT_COUNT || seq == 0) return 1;
  uint64_t *done = done_of(&seat->slots[who], gpu), seen = GET(*done);
  if ((seen & SHM_MEMORY_SEQ_MASK) == seq) return 1;
  if (GET(*word_of(seat, gpu)) != word) return 0;
  return CAS(*done, seen, ((seen >> SHM_MEMORY_SLOT_SHIFT) + 1) << SHM_MEMORY_SLOT_SHIFT | seq);
}

static void change_by(struct fake_seat *seat, uint32_t gpu, int64_t delta) {
  struct shm_slot *own = &seat->slots[0];
  uint64_t seq = (GET(*own_of(own, gpu)) + 1) & SHM_MEMORY_SEQ_MASK, *word = word_of(seat, gpu);
  if (seq == 0) seq = 1;
  uint64_t *receipt = done_of(own, gpu), done = GET(*receipt);
  if ((done & SHM_MEMORY_SEQ_MASK) == seq || seq == 1) {
    while (!CAS(*receipt, done, ((done >> SHM_MEMORY_SLOT_SHIFT) + 1) << SHM_MEMORY_SLOT_SHIFT)) {
    }
  }
  SET(own->memory_delta, delta);
  SET(own->memory_seq, (uint64_t)gpu << SHM_MEMORY_GPU_SHIFT | seq);
  for (;;) {
    uint64_t seen = GET(*word);
    if (!help(seat, gpu, seen)) continue;
    uint64_t units = (seen >> SHM_MEMORY_UNITS_SHIFT) + (uint64_t)delta;
    if (CAS(*word, seen, units << SHM_MEMORY_UNITS_SHIFT | seq)) break;
  }
  SET(*own_of(own, gpu), seq);
}

static uint64_t held_on(struct fake_seat *seat, uint32_t number, uint32_t gpu) {
  struct shm_slot *slot = &seat->slots[number];
  uint64_t own = GET(*own_of(slot, gpu)), intent = GET(slot->memory_seq), seq = intent & SHM_MEMORY_SEQ_MASK;
  uint64_t units = own >> SHM_MEMORY_SLOT_SHIFT, all = GET(*word_of(seat, gpu)) >> SHM_MEMORY_UNITS_SHIFT;
  if (intent >> SHM_MEMORY_GPU_SHIFT == gpu && seq != (own & SHM_MEMORY_SEQ_MASK)) {
    uint64_t word = GET(*word_of(seat, gpu)), done = GET(*done_of(slot, gpu));
    int by_it = (word >> SHM_MEMORY_SLOT_SHIFT & SHM_MEMORY_SLOT_MASK) == number && (word & SHM_MEMORY_SEQ_MASK) == seq;
    if (by_it || (done & SHM_MEMORY_SEQ_MASK) == seq) units += (uint64_t)GET(slot->memory_delta);
  }
  return units > all ? all : units;
}

static void recover(struct fake_seat *seat, uint32_t number) {
  struct shm_slot *slot = &seat->slots[number];
  if (seat->died != NULL) seat->died(GET(slot->pid));
  SET(slot->state, (uint32_t)SHM_SLOT_RECLAIMING);
  express_take_back(seat, number);
  for (uint32_t gpu = 0; gpu < accounts(seat); gpu++) {
    uint64_t units = held_on(seat, number, gpu);
    SET(seat->slots[0].memory_target, (uint64_t)gpu << 28 | number);
    change_by(seat, gpu, -(int64_t)units);
  }
  SET(slot->memory_seq, 0);
  SET(slot->memory_delta, 0);
  for (uint32_t gpu = 0; gpu < accounts(seat); gpu++) {
    uint64_t *done = done_of(slot, gpu);
    SET(*own_of(slot, gpu), 0);
    SET(*done, ((GET(*done) >> SHM_MEMORY_SLOT_SHIFT) + 1) << SHM_MEMORY_SLOT_SHIFT);
  }
  __atomic_fetch_add(&seat->grant->retired_gpu_ns, GET(slot->gpu_ns), __ATOMIC_SEQ_CST);
  SET(slot->gpu_ns, 0);
  SET(slot->busy, 0);
  SET(slot->waiting, 0);
  SET(slot->state, (uint32_t)SHM_SLOT_FREE);
}

/* ---- the socket ---- */

/* Secrets of maximum length: the lease's, and a different one for each slot. */
static void slot_secret(uint32_t number, char into[41]) { snprintf(into, 41, "%040u", number); }

static int names_secrets(const struct fake_seat *seat, const struct shm_message *hello) {
  char wanted[82], of_slot[41];
  slot_secret(hello->slot_number, of_slot);
  snprintf(wanted, sizeof wanted, "%.40s%s%s", (const char *)seat->more->secret,
           hello->slot_number == SHM_NO_SLOT ? "" : " ", hello->slot_number == SHM_NO_SLOT ? "" : of_slot);
  return strncmp((const char *)hello->text, wanted, sizeof hello->text) == 0;
}

static void answer(struct fake_seat *seat, int fd, const struct shm_message *hello) {
  struct shm_message reply = {.type = (uint32_t)SHM_MESSAGE_WELCOME,
                              .version = (uint32_t)SHM_MESSAGE_VERSION,
                              .layout_major = (uint32_t)SHM_LAYOUT_MAJOR,
                              .slot_number = (uint32_t)SHM_NO_SLOT};
  __atomic_fetch_add(&seat->hellos, 1, __ATOMIC_SEQ_CST);
  uint32_t number = hello->slot_number;
  if (strcmp((const char *)hello->lease, "test") != 0) {
    reply.status = (uint32_t)SHM_STATUS_NO_LEASE;
    strcpy((char *)reply.text, "no such lease");
  } else if (!names_secrets(seat, hello)) {
    reply.status = (uint32_t)SHM_STATUS_SECRET;
    strcpy((char *)reply.text, "wrong secrets");
  } else if (number == SHM_NO_SLOT) {
    for (number = 1; number < SHM_SLOT_COUNT && GET(seat->slots[number].state) != SHM_SLOT_FREE; number++) {
    }
    if (number == SHM_SLOT_COUNT) reply.status = (uint32_t)SHM_STATUS_FULL;
  } else if (number >= SHM_SLOT_COUNT || GET(seat->slots[number].pid) != hello->pid) {
    reply.status = (uint32_t)SHM_STATUS_BAD;
  }
  if (reply.status == SHM_STATUS_OK) {
    reply.slot_number = number;
    slot_secret(number, (char *)reply.text);
    SET(seat->slots[number].pid, hello->pid);
    SET(seat->slots[number].start_time, hello->start_time);
    SET(seat->slots[number].state, (uint32_t)SHM_SLOT_ATTACHED);
    express_give(seat, number);
    if (seat->connection[number] >= 0) close(seat->connection[number]);
    seat->connection[number] = fd;
  } else {
    __atomic_fetch_add(&seat->welcomes_refused, 1, __ATOMIC_SEQ_CST);
  }
  if (send(fd, &reply, sizeof reply, MSG_NOSIGNAL) < 0 || reply.status != SHM_STATUS_OK) {
    if (reply.status != SHM_STATUS_OK) close(fd);
  }
}

/*
 * Whether a process without a connection is dead. In another pid namespace it cannot be looked up, and counts as dead.
 */
static int is_dead(const struct shm_slot *slot) {
  char path[64], text[512];
  struct stat own; /* not what the grant says: a test may have hidden the seat's process */
  uint64_t space = GET(slot->pid_namespace);
  must(stat("/proc/self/ns/pid", &own) == 0, "pid namespace");
  if (space != 0 && space != own.st_ino) return 1;
  snprintf(path, sizeof path, "/proc/%u/stat", GET(slot->pid));
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 1;
  ssize_t size = read(fd, text, sizeof text - 1);
  close(fd);
  if (size <= 0) return 1;
  text[size] = '\0';
  const char *state = strrchr(text, ')');
  return state == NULL || state[2] == 'Z' || state[2] == 'X';
}

/* Whether a live process has left the lease: it no longer maps the report. */
static int has_left(const struct fake_seat *seat, uint32_t pid) {
  char path[64], line[512], report[128];
  int maps = 0;
  snprintf(path, sizeof path, "/proc/%u/maps", pid);
  snprintf(report, sizeof report, "%s/leases/test/report", seat->dir);
  FILE *file = fopen(path, "re");
  if (file == NULL) return 0;
  while (!maps && fgets(line, sizeof line, file) != NULL) maps = strstr(line, report) != NULL;
  fclose(file);
  return !maps;
}

static void serve(struct fake_seat *seat) {
  int fd = accept4(seat->listener, NULL, NULL, SOCK_CLOEXEC);
  struct shm_message message;
  if (fd >= 0) {
    struct timeval patience = {0, 200000};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (recv(fd, &message, sizeof message, MSG_WAITALL) == sizeof message && message.type == SHM_MESSAGE_HELLO) {
      answer(seat, fd, &message);
    } else {
      close(fd);
    }
  }
  for (uint32_t i = 1; i < SHM_SLOT_COUNT; i++) {
    if (seat->connection[i] >= 0) {
      ssize_t size;
      while ((size = recv(seat->connection[i], &message, sizeof message, MSG_DONTWAIT)) > 0) {
        if (message.type == SHM_MESSAGE_WANT) __atomic_fetch_add(&seat->wants, 1, __ATOMIC_SEQ_CST);
        if (message.type == SHM_MESSAGE_IDLE) __atomic_fetch_add(&seat->idles, 1, __ATOMIC_SEQ_CST);
      }
      if (size == 0 || (size < 0 && errno != EAGAIN)) {
        close(seat->connection[i]);
        seat->connection[i] = -1;
        if (has_left(seat, GET(seat->slots[i].pid))) recover(seat, i);
      }
    }
    if (seat->connection[i] < 0 && GET(seat->slots[i].state) == SHM_SLOT_ATTACHED && is_dead(&seat->slots[i])) {
      recover(seat, i);
    }
  }
}

/* From now on, the kernel changes the word when this thread ends. */
static void own_thread_word(struct fake_seat *seat) {
  uint32_t *word = &seat->more->seat_thread;
  seat->thread_node.next = &seat->thread_list.list;
  seat->thread_list = (struct robust_list_head){.list = {.next = &seat->thread_node},
                                                .futex_offset = (char *)word - (char *)&seat->thread_node};
  SET(*word, 0);
  SET(seat->more->seat_thread_of, seat->grant_header->seat_pid);
  SET(*word, (uint32_t)syscall(SYS_gettid) | FUTEX_WAITERS);
  must(syscall(SYS_set_robust_list, &seat->thread_list, sizeof seat->thread_list) == 0, "set_robust_list");
}

static void *seat_loop(void *argument) {
  struct fake_seat *seat = argument;
  if (seat->tells_end) own_thread_word(seat);
  while (!GET(seat->stop)) {
    if (GET(seat->mute)) {
      usleep(1000);
      continue;
    }
    uint64_t now = seat_now(), gap = now - GET(seat->grant_header->heartbeat_ns);
    if (gap > GET(seat->longest_gap_ns)) SET(seat->longest_gap_ns, gap);
    SET(seat->grant_header->heartbeat_ns, now);
    struct pollfd wait = {.fd = seat->listener, .events = POLLIN};
    poll(&wait, 1, 1);
    serve(seat);
  }
  return NULL;
}

void seat_start(struct fake_seat *seat) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(address.sun_path, sizeof address.sun_path, "%s/hook.sock", seat->dir);
  unlink(address.sun_path);
  seat->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  must(bind(seat->listener, (struct sockaddr *)&address, sizeof address) == 0, "bind");
  must(listen(seat->listener, 64) == 0, "listen");
  SET(seat->stop, 0);
  must(pthread_create(&seat->thread, NULL, seat_loop, seat) == 0, "thread");
}

void seat_stop(struct fake_seat *seat) {
  SET(seat->stop, 1);
  pthread_join(seat->thread, NULL);
  close(seat->listener);
  for (int i = 0; i < 128; i++) {
    if (seat->connection[i] >= 0) close(seat->connection[i]);
    seat->connection[i] = -1;
  }
}

void seat_close(struct fake_seat *seat) {
  char command[128];
  seat_stop(seat);
  munmap(seat->grant_header, SHM_GRANT_SIZE);
  munmap(seat->report_header, SHM_REPORT_SIZE);
  if (seat->express != NULL) munmap(seat->express_header, SHM_EXPRESS_SIZE);
  snprintf(command, sizeof command, "rm -rf %s", seat->dir);
  must(strncmp(seat->dir, "/tmp/vgpu", 9) == 0 && system(command) == 0, "rm");
}

void seat_gate(struct fake_seat *seat, uint32_t flags) {
  uint32_t count = (GET(seat->grant->word) >> SHM_GRANT_COUNT_SHIFT) + 1;
  SET(seat->grant->word, count << SHM_GRANT_COUNT_SHIFT | flags);
  syscall(SYS_futex, &seat->grant->word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

uint32_t seat_busy(const struct fake_seat *seat) {
  uint32_t sum = 0;
  for (uint64_t i = 1; i < SHM_SLOT_COUNT; i++) sum += GET(seat->slots[i].busy);
  return sum;
}

uint64_t seat_units(const struct fake_seat *seat) {
  uint64_t sum = 0;
  for (uint32_t gpu = 0; gpu < accounts(seat); gpu++) sum += GET(*word_of(seat, gpu)) >> SHM_MEMORY_UNITS_SHIFT;
  return sum;
}

uint64_t seat_gpu_ns(const struct fake_seat *seat) {
  uint64_t sum = GET(seat->grant->retired_gpu_ns);
  for (uint64_t i = 1; i < SHM_SLOT_COUNT; i++) sum += GET(seat->slots[i].gpu_ns);
  return sum;
}

static int is_same_name(const char *a, const char *b) {
  size_t length = strcspn(a, "=");
  return length == strcspn(b, "=") && strncmp(a, b, length) == 0;
}

char **environment_with(const char *const *settings) {
  size_t count = 0, most = 1;
  while (settings[count] != NULL) count++;
  for (char **one = environ; *one != NULL; one++) most++;
  char **all = calloc(count + most, sizeof *all);
  size_t used = 0;
  must(all != NULL, "no memory");
  for (size_t i = 0; i < count + most - 1; i++) {
    const char *one = i < count ? settings[count - 1 - i] : environ[i - count];
    size_t at = 0;
    while (at < used && !is_same_name(all[at], one)) at++;
    if (at == used) all[used++] = (char *)(uintptr_t)one;
  }
  return all;
}
