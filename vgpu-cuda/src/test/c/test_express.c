/* The express lane: an urgent process announces its work by a bit, and offline processes stop. Part of test_hook. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake_seat.h"
#include "test.h"

enum { TRIES = 10 };

struct express_round {
  struct fake_seat *seat;
  uint64_t bit;
  uint32_t stop;
};

/* Simulates an urgent process's monitor: sends heartbeats. */
static void *beat(void *argument) {
  struct express_round *round = argument;
  unsigned index = (unsigned)__builtin_ctzll(round->bit);
  while (!GET(round->stop)) {
    __atomic_store_n(&round->seat->express->beat_ns[index], seat_now(), __ATOMIC_SEQ_CST);
    usleep(500);
  }
  return NULL;
}

/* Waits until nothing is on the GPU, then checks for a while that nothing starts. */
static int express_stands_still(struct fake_seat *seat) {
  uint64_t since = seat_now();
  while (seat_busy(seat) != 0 && seat_now() - since < PATIENCE_NS) usleep(50);
  uint64_t before = seat_gpu_ns(seat);
  usleep(30000);
  return seat_busy(seat) == 0 && seat_gpu_ns(seat) == before;
}

/*
 * Sets one bit: the offline process stops while it is set, although its gate is open, and resumes when it is cleared.
 */
static void express_round(struct fake_seat *seat, uint64_t bit) {
  struct express_round round = {seat, bit, 0};
  pthread_t thread;
  __atomic_store_n(&seat->express->beat_ns[__builtin_ctzll(bit)], seat_now(), __ATOMIC_SEQ_CST);
  __atomic_fetch_or(&seat->express->busy, bit, __ATOMIC_SEQ_CST);
  pthread_create(&thread, NULL, beat, &round);
  int fine = 0; /* a busy machine may delay the beating thread; the bit then rightly goes stale */
  for (int i = 0; i < 20 && !fine; i++) fine = express_stands_still(seat);
  CHECK(fine, "work while bit %d is set", __builtin_ctzll(bit));
  for (uint64_t since = seat_now(); GET(seat->slots[1].waiting) != 1 && seat_now() - since < PATIENCE_NS;) usleep(50);
  CHECK(GET(seat->slots[1].waiting) == 1, "%u threads wait", GET(seat->slots[1].waiting));
  uint64_t before = seat_gpu_ns(seat), since = seat_now();
  seat_express_clear(seat, bit);
  CHECK(await_work(seat, before), "no work when bit %d is cleared", __builtin_ctzll(bit));
  printf("  bit %d cleared: work %llu us later\n", __builtin_ctzll(bit),
         (unsigned long long)(seat_now() - since) / 1000);
  __atomic_store_n(&round.stop, 1, __ATOMIC_SEQ_CST);
  pthread_join(thread, NULL);
}

void test_express_obeyed(void) {
  struct fake_seat seat;
  seat_open(&seat, 64u << 20, 1 << 20);
  seat_express(&seat, (uint32_t)SHM_CLASS_OFFLINE);
  seat_start(&seat);
  pid_t pid = start(&seat, "launch", "");
  CHECK(await_work(&seat, 0), "no work");
  CHECK(GET(seat.slots[1].express) == SHM_EXPRESS_OBEYS, "it says %u", GET(seat.slots[1].express));
  express_round(&seat, 1);
  express_round(&seat, (uint64_t)1 << 40);
  /* also without a seat */
  seat.grant->entitled_permille = 1000;
  seat_stop(&seat);
  express_round(&seat, (uint64_t)1 << 63);
  seat_start(&seat);
  /* A bit that the grant does not name, as in a floor turn. */
  __atomic_store_n(&seat.grant->express_mask, 1, __ATOMIC_SEQ_CST);
  __atomic_store_n(&seat.express->beat_ns[1], seat_now() + 10000000, __ATOMIC_SEQ_CST);
  __atomic_fetch_or(&seat.express->busy, 2, __ATOMIC_SEQ_CST);
  CHECK(await_work(&seat, seat_gpu_ns(&seat)), "a bit that does not count holds it");
  seat_express_clear(&seat, ~0ull);
  CHECK(stop_launching(&seat, pid) == 0, "role");
  seat_close(&seat);
}

/* The process that set its bit is stopped or dead, and no seat clears it: its beat is old. */
void test_express_stale(void) {
  struct fake_seat seat;
  seat_open(&seat, 64u << 20, 1 << 20);
  seat_express(&seat, (uint32_t)SHM_CLASS_OFFLINE);
  seat_start(&seat);
  pid_t pid = start(&seat, "launch", "");
  CHECK(await_work(&seat, 0), "no work");
  __atomic_store_n(&seat.express->beat_ns[7], seat_now(), __ATOMIC_SEQ_CST);
  __atomic_fetch_or(&seat.express->busy, 1 << 7, __ATOMIC_SEQ_CST);
  usleep(40000);
  CHECK(await_work(&seat, seat_gpu_ns(&seat)), "a bit with an old beat holds it");
  __atomic_store_n(&seat.express->beat_ns[7], ~0ull, __ATOMIC_SEQ_CST);
  CHECK(await_work(&seat, seat_gpu_ns(&seat)), "a bit with a beat of the far future holds it");
  CHECK(stop_launching(&seat, pid) == 0, "role");
  seat_close(&seat);
}

/* Waits until the bits are as given; 1 if so in time. */
static int await_bits(const struct fake_seat *seat, uint64_t bits) {
  uint64_t since = seat_now();
  while (GET(seat->express->busy) != bits && seat_now() - since < PATIENCE_NS) usleep(20);
  return GET(seat->express->busy) == bits;
}

static void open_urgent(struct fake_seat *seat) {
  seat_open(seat, 64u << 20, 1 << 20);
  seat_express(seat, (uint32_t)SHM_CLASS_ONLINE);
  seat_start(seat);
}

/* Whether the bits stay as they are set, in one of several tries. */
static int bits_stay(struct fake_seat *seat, uint64_t bits) {
  int stay = 0;
  for (int tries = 0; tries < TRIES && !stay; tries++) {
    usleep(50000);
    __atomic_store_n(&seat->express->busy, bits, __ATOMIC_SEQ_CST);
    usleep(50000);
    stay = GET(seat->express->busy) == bits;
  }
  return stay;
}

void test_express_announced(void) {
  struct fake_seat seat;
  open_urgent(&seat);
  pid_t pid = start(&seat, "serve", "");
  for (int i = 0; i < 20; i++) {
    CHECK(await_bits(&seat, 1), "not announced");
    CHECK(await_bits(&seat, 0), "not withdrawn");
  }
  CHECK(GET(seat.slots[1].express) == SHM_EXPRESS_ANNOUNCES, "it says %u", GET(seat.slots[1].express));
  CHECK(GET(seat.wants) + GET(seat.idles) == 0, "%u wants, %u idles", GET(seat.wants), GET(seat.idles));
  /* While its own gate is shut, it holds no process back. If this seat is delayed, it may take it for gone. */
  int fine = 0;
  for (int tries = 0; tries < TRIES && !fine; tries++) {
    CHECK(await_bits(&seat, 1), "not announced");
    seat_gate(&seat, 0);
    CHECK(await_bits(&seat, 0), "not withdrawn at a shut gate");
    usleep(10000);
    fine = GET(seat.express->busy) == 0;
    seat_gate(&seat, (uint32_t)SHM_GRANT_OPEN);
  }
  CHECK(fine, "announced at a shut gate");
  /* The seat took it for stopped and cleared its bit: it sets the bit again. */
  for (int i = 0; i < 5; i++) {
    CHECK(await_bits(&seat, 1), "not announced");
    seat_express_clear(&seat, 1);
  }
  /* The bit now belongs to another process. It may be delayed between its look at that and its use of the bit. */
  __atomic_store_n(&seat.grant->express_slots[0], (uint8_t)2, __ATOMIC_SEQ_CST);
  CHECK(bits_stay(&seat, 1), "another process's bit was cleared");
  CHECK(bits_stay(&seat, 0), "another process's bit was set");
  __atomic_store_n(&seat.grant->express_slots[0], (uint8_t)1, __ATOMIC_SEQ_CST);
  CHECK(stop_launching(&seat, pid) == 0, "role");
  CHECK(await_bits(&seat, 0), "left behind");
  seat_close(&seat);
}

void test_express_fork(void) {
  struct fake_seat seat;
  open_urgent(&seat);
  pid_t pid = start(&seat, "serve", "forks");
  for (int i = 0; i < 10; i++) CHECK(await_bits(&seat, 1) && await_bits(&seat, 0), "the parent's bit");
  CHECK(stop_launching(&seat, pid) == 0, "role");
  seat_close(&seat);
}

/* Killed with its bit set: the seat clears it, and the beat soon goes stale. */
void test_express_killed(void) {
  struct fake_seat seat;
  open_urgent(&seat);
  for (int i = 0; i < 10; i++) {
    pid_t pid = start(&seat, "serve", "");
    CHECK(await_bits(&seat, 1), "not announced");
    uint64_t since = seat_now();
    kill(pid, SIGKILL);
    CHECK(finish(pid) == 1000 + SIGKILL, "killed");
    CHECK(await_bits(&seat, 0), "left behind");
    if (i == 0) printf("  killed: bit cleared %llu us later\n", (unsigned long long)(seat_now() - since) / 1000);
    CHECK(GET(seat.express->beat_ns[0]) <= seat_now(), "beat");
  }
  seat_close(&seat);
}

/* It ends by itself while its bit lingers, and the seat is mute. */
void test_express_exit(void) {
  struct fake_seat seat;
  open_urgent(&seat);
  seat.grant->express_linger_us = 20000;
  pid_t pid = start(&seat, "serve-once", "told");
  CHECK(await_bits(&seat, 1), "not announced");
  __atomic_store_n(&seat.mute, 1, __ATOMIC_SEQ_CST);
  CHECK(stop_launching(&seat, pid) == 0, "role");
  CHECK(GET(seat.express->busy) == 0, "left behind");
  __atomic_store_n(&seat.mute, 0, __ATOMIC_SEQ_CST);
  seat_close(&seat);
}

/* Random bytes in the page, which any urgent process may write: an obeying process waits, goes on and ends. */
void test_express_garbage(void) {
  struct fake_seat seat;
  seat_open(&seat, 64u << 20, 1 << 20);
  seat_express(&seat, (uint32_t)SHM_CLASS_OFFLINE);
  seat_start(&seat);
  pid_t pid = start(&seat, "launch", "");
  CHECK(await_work(&seat, 0), "no work");
  unsigned seed = test_seed();
  for (uint64_t until = seat_now() + 200000000u; seat_now() < until;) {
    uint64_t value = (uint64_t)rand_r(&seed) << 40 ^ (uint64_t)rand_r(&seed) << 20 ^ (uint64_t)rand_r(&seed);
    __atomic_store_n((uint64_t *)(void *)seat.express + (unsigned)rand_r(&seed) % (sizeof(struct shm_express) / 8),
                     value, __ATOMIC_SEQ_CST);
    usleep(200);
  }
  seat_express_clear(&seat, ~0ull);
  CHECK(await_work(&seat, seat_gpu_ns(&seat)), "no work afterwards");
  CHECK(stop_launching(&seat, pid) == 0, "role");
  seat_close(&seat);
}

/* The page cannot be written, as in a container: the seat gets a message each time, and sets the bit. */
void test_express_told(void) {
  struct fake_seat seat;
  open_urgent(&seat);
  strcpy((char *)seat.grant->express_page, "nothing");
  pid_t pid = start(&seat, "serve", "");
  uint64_t since = seat_now();
  while ((GET(seat.wants) < 5 || GET(seat.idles) < 5) && seat_now() - since < PATIENCE_NS) usleep(1000);
  CHECK(GET(seat.wants) >= 5 && GET(seat.idles) >= 5, "%u wants, %u idles", GET(seat.wants), GET(seat.idles));
  CHECK(GET(seat.slots[1].express) == SHM_EXPRESS_TOLD, "it says %u", GET(seat.slots[1].express));
  CHECK(stop_launching(&seat, pid) == 0, "role");
  seat_close(&seat);
}

/* If the page is invalid or missing, messages are used, as without an express lane. */
void test_express_missing(void) {
  struct fake_seat seat;
  open_urgent(&seat);
  seat.express_header->layout_major = 7;
  play_role(&seat, "serve-once", "");
  seat.express_header->layout_major = (uint32_t)SHM_LAYOUT_MAJOR;
  strcpy((char *)seat.grant->express_page, "../../etc");
  play_role(&seat, "serve-once", "");
  strcpy((char *)seat.grant->express_page, "nothing");
  play_role(&seat, "serve-once", "");
  CHECK(GET(seat.express->busy) == 0, "announced");
  seat_close(&seat);
}
