/*
 * Random input for everything that the hook reads from others: the driver's ioctls (rm_decode.c, channels.c), the shared
 * pages (gate.c, express.c, ledger.c), the seat's messages (seat.c). fuzz.sh builds it from the hook's own sources
 * under sanitizers. Usage: fuzz_hook ioctl|region|socket SECONDS SEED. Whatever is read, each call must return, and
 * must name no other process's objects.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../main/c/top/top.h"

static uint64_t state = 88172645463325252ull;

static uint64_t random64(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

static uint32_t below(uint32_t limit) { return (uint32_t)(random64() % limit); }

static void fill(void *into, size_t size) {
  unsigned char *bytes = into;
  for (size_t i = 0; i < size; i++) bytes[i] = (unsigned char)random64();
}

static void fail(const char *what) {
  fprintf(stderr, "fuzz: %s, state %llu\n", what, (unsigned long long)state);
  _exit(3);
}

/* ---- the driver's ioctls ---- */

enum { ARENA = 8192, CLIENTS = 4 };
static unsigned char *arena; /* followed by an inaccessible page */
static const uint32_t CLIENT_HANDLES[CLIENTS] = {0xc1d00001, 0xc1d00002, 0xc1d00003, 7};
static const uint32_t CLASSES[] = {0, 0x41, 0x80, 0x2080, 0xa06c, 0xa06f, 0xc56f, 0xc86f, 0x40, 0x3e};
static const uint32_t COMMANDS[] = {0xa06c0101, 0xa06c0103, 0xa06c0105, 0xa06f0103, 0x2080110b, 0x20801303};
static uint32_t made[64];
static int own_call; /* inside one of the hook's own calls */

static void put(uint64_t at, uint32_t value) {
  if (vgpu__poke(at, &value, sizeof value) != 0) return;
}

/* Stands for the kernel: answers at random, sometimes as asked. */
static int answer(int fd, unsigned long request, ...) {
  va_list arguments;
  va_start(arguments, request);
  uint64_t at = (uint64_t)(uintptr_t)va_arg(arguments, void *);
  va_end(arguments);
  (void)fd;
  struct vgpu_rm_call call;
  vgpu__rm_parse(request, at, &call);
  if (own_call && call.kind == RM_KIND_CONTROL && call.command == RM_DISABLE_CHANNELS) {
    unsigned char params[RM_DISABLE_SIZE];
    uint32_t count, client;
    if (call.params_size != sizeof params || vgpu__peek(params, call.params, sizeof params) != 0)
      fail("a bad call of our own");
    memcpy(&count, params + 4, 4);
    if (count > RM_MOST_CHANNELS) fail("too many channels in a call");
    for (uint32_t i = 0; i < count; i++) {
      memcpy(&client, params + 24 + 4 * (size_t)i, 4);
      if (client != call.client) fail("another client's channel");
    }
  }
  if (below(8) == 0) {
    errno = below(2) ? EINTR : EFAULT;
    return -1;
  }
  if (call.status_offset != 0) put(call.at + call.status_offset, below(4) == 0 ? (uint32_t)random64() : 0);
  return 0;
}

static uint64_t place(size_t size) {
  switch (below(12)) {
    case 0: return random64();
    case 1: return 0;
    case 2: return (uint64_t)(uintptr_t)arena + ARENA - below((uint32_t)size + 8); /* runs into the inaccessible page */
    default: return (uint64_t)(uintptr_t)arena + below(ARENA - 1024);
  }
}

static uint32_t handle(void) { return below(4) == 0 ? (uint32_t)random64() : made[below(64)]; }
static uint32_t client(void) { return CLIENT_HANDLES[below(CLIENTS)]; }

static void store(uint64_t at, size_t offset, uint32_t value) { put(at + offset, value); }

static void one_ioctl(void) {
  static const uint32_t NUMBERS[] = {0x29, 0x2a, 0x2a, 0x2b, 0x2b, 0x2b, 0xd2, 0xd3, 0x4e, 0x27};
  static const uint32_t SIZES[] = {16, 32, 32, 32, 48, 72, 16, 28, 0, 1};
  uint32_t number = NUMBERS[below(10)], size = below(3) == 0    ? SIZES[below(10)]
                                               : number == 0x29 ? 16
                                               : number == 0xd2 ? 72
                                               : number == 0xd3 ? 16
                                                                : 32;
  if (number == 0x2b && below(2)) size = 48;
  uint64_t at = place(size), params = place(536);
  unsigned char noise[80];
  fill(noise, sizeof noise);
  if (vgpu__poke(at, noise, size < sizeof noise ? size : sizeof noise) == 0 && below(8) != 0) {
    store(at, 0, client());
    store(at, 4, below(2) ? client() : handle());
    store(at, 8, number == 0x2a ? COMMANDS[below(6)] : below(3) == 0 ? client() : handle());
    if (number == 0x2b) store(at, 12, CLASSES[below(10)]);
    store(at, 16, (uint32_t)params);
    store(at, 20, (uint32_t)(params >> 32));
    store(at, 24, below(2) ? 536 : below(16));
  }
  unsigned long request = 3ul << 30 | (unsigned long)size << 16 | 0x46ul << 8 | number;
  if (below(4) == 0) { /* wrapped in an XFER */
    uint64_t outer = place(16);
    store(outer, 0, number);
    store(outer, 4, below(8) == 0 ? (uint32_t)random64() : size);
    store(outer, 8, (uint32_t)at);
    store(outer, 12, (uint32_t)(at >> 32));
    request = 3ul << 30 | 16ul << 16 | 0x46ul << 8 | 0xd3;
    at = outer;
  }
  if (below(20) == 0) request = random64();
  vgpu__ioctl((int)below(4) - 1, request, (void *)(uintptr_t)at);
}

static void fuzz_ioctl(void) {
  for (int i = 0; i < 64; i++) made[i] = i < 4 ? CLIENT_HANDLES[i] : 0x5c000000u + (uint32_t)i;
  for (int i = 0; i < 500; i++) one_ioctl();
  struct vgpu_rm_abi abi = vgpu__rm_abi(below(2) ? 580 : 535);
  struct vgpu_channels_seen seen;
  uint32_t status;
  own_call = 1;
  vgpu__channels_set(below(2) ? VGPU_BY_CHANNELS : VGPU_BY_GROUPS, (int)below(2), &abi, &status);
  vgpu__channels_timeslice(below(2000), &status);
  own_call = 0;
  vgpu__channels_limit_timeslice(below(3) * 500);
  vgpu__channels_seen(&seen);
  if (below(20) == 0) vgpu__channels_forget();
  char text[24];
  fill(text, sizeof text);
  for (size_t i = 0; i < sizeof text; i++)
    text[i] = (char)(below(4) == 0 ? text[i] : below(3) == 0 ? '.' : '0' + (int)below(10));
  vgpu__rm_version(text, below(sizeof text + 1));
}

static uint32_t decreed; /* the status of `obey` */

/* Stands for the kernel: answers as `decreed`, at the place that the form of the call has for it. */
static int obey(int fd, unsigned long request, ...) {
  va_list arguments;
  va_start(arguments, request);
  unsigned char *at = va_arg(arguments, unsigned char *);
  va_end(arguments);
  (void)fd;
  size_t size = request >> 16 & 0x3fff;
  memcpy(at + (size == 20 ? 16 : size == 16 ? 12 : 28), &decreed, sizeof decreed);
  return 0;
}

static uint32_t channels_after(int fd, uint32_t number, uint32_t size, const uint32_t fields[4]) {
  unsigned char call[32] = {0};
  struct vgpu_channels_seen seen;
  memcpy(call, fields, 16);
  vgpu__ioctl(fd, 3ul << 30 | (unsigned long)size << 16 | 0x46ul << 8 | number, (void *)call);
  vgpu__channels_seen(&seen);
  return seen.channels;
}

/* A channel is followed in whichever form its allocation comes: NVOS05 (0x28) has 20 bytes, and its status at 16. */
static void older_form(void) {
  const uint32_t root[4] = {0, 0, 7, 0x41}, device[4] = {7, 7, 8, 0x80}, channel[4] = {7, 8, 9, 0xc86f},
                 freed[4] = {7, 8, 9, UINT32_MAX};
  int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  vgpu__channels_begin(obey);
  if (fd < 0 || channels_after(fd, 0x2b, 32, root) != 0 || channels_after(fd, 0x2b, 32, device) != 0) fail("a client");
  decreed = 0x56;
  if (channels_after(fd, 0x28, 20, channel) != 0) fail("a channel that the driver refused");
  decreed = 0;
  if (channels_after(fd, 0x28, 20, channel) != 1) fail("a channel of the older form is not followed");
  if (channels_after(fd, 0x29, 16, freed) != 0) fail("a freed channel is still followed");
  close(fd);
  vgpu__channels_forget();
  vgpu__channels_begin(answer);
  printf("ok   older form\n");
}

/* ---- the shared pages ---- */

static void fuzz_region(void) {
  static struct vgpu_tenant tenant;
  static _Alignas(64) char seat[8192]; /* the grant page */
  struct shm_header *header = (void *)seat;
  struct shm_grant_more *more = (void *)(seat + SHM_GRANT_MORE_OFFSET);
  static struct shm_header report;
  static struct shm_grant grant;
  static struct shm_ledger ledger;
  static struct shm_slot slots[128];
  static struct shm_express express;
  if (SHM_GRANT_MORE_OFFSET + sizeof *more > sizeof seat) fail("the grant page is larger");
  fill(seat, sizeof seat);
  fill(&report, sizeof report);
  fill(&grant, sizeof grant);
  fill(&ledger, sizeof ledger);
  fill(slots, sizeof slots);
  fill(&express, sizeof express);
  uint64_t now = vgpu__now_ns(), heed, held = 0;
  if (below(2)) header->heartbeat_ns = now - below(1000000000);
  if (below(2)) grant.word |= (uint32_t)SHM_GRANT_OPEN;
  if (below(2)) more->memory_gpus = (uint32_t)below(10);
  if (below(2)) ledger.memory_word &= 0xffffffff;
  if (below(2)) express.beat_ns[below(64)] = now;
  memset(&tenant, 0, sizeof tenant);
  tenant.grant = &grant;
  tenant.seat = header;
  tenant.report = &report;
  tenant.ledger = &ledger;
  tenant.slots = slots;
  tenant.slot = slots + 1 + below(127);
  tenant.slot_number = (uint32_t)(tenant.slot - slots);
  tenant.overlap = 1024;
  tenant.link.fd = -1;
  tenant.express.page = &express;
  tenant.express.index = below(64);
  tenant.express.bit = below(2) ? 1ull << tenant.express.index : 0;
  held = vgpu__express_held(&tenant, &heed);
  if ((held & ~grant.express_mask) != 0) fail("held back by a bit that the grant does not name");
  vgpu__express_tend(&tenant, now);
  vgpu__express_idle(&tenant);
  vgpu__express_announce(&tenant);
  vgpu__seat_is_silent(&tenant, now);
  vgpu__gate_set_autonomous(&tenant, (int)below(2));
  vgpu__gate_tend(&tenant, now);
  vgpu__gpus_join(&tenant);
  if (vgpu__gpus(&tenant) < 1 || vgpu__gpus(&tenant) > VGPU_GPUS) fail("more accounts than there can be");
  int gpu = (int)below((uint64_t)vgpu__gpus(&tenant));
  vgpu__lease_bytes(&tenant, gpu);
  uint64_t added = vgpu__charge(&tenant, now - below(1000000), now);
  if (added > 1000000) fail("more GPU time than there was");
  if (vgpu__reserve(&tenant, gpu, below(1 << 20)) == 0) vgpu__give_back(&tenant, gpu, below(1 << 20));
  vgpu__level2_stopped_ns(random64(), random64());
}

/* ---- the seat's messages ---- */

static void fuzz_socket(void) {
  static struct vgpu_tenant tenant;
  struct shm_message message;
  struct stat seen;
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0) fail("socketpair");
  memset(&tenant, 0, sizeof tenant);
  if (vgpu__fstat(pair[0], &seen) != 0) fail("fstat");
  tenant.link.fd = pair[0];
  tenant.link.inode = seen.st_ino;
  for (int i = 0; i < 40; i++) {
    unsigned char bytes[700];
    size_t size = below(sizeof bytes);
    fill(bytes, sizeof bytes);
    if (size > 0 && send(pair[1], bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != EAGAIN) break;
    if (below(100) == 0) shutdown(pair[1], SHUT_RDWR);
    for (int j = 0; j < 4; j++) {
      int got = vgpu__seat_receive(&tenant, &message);
      if (got != VGPU_SEAT_NOTHING && got != VGPU_SEAT_MESSAGE && got != VGPU_SEAT_GONE) fail("receive");
      if (tenant.link.incoming_size >= sizeof message) fail("more than a message is kept");
    }
  }
  vgpu__seat_close(&tenant);
  close(pair[1]);
}

int main(int count, char **arguments) {
  if (count != 4) return 2;
  void (*step)(void) = strcmp(arguments[1], "ioctl") == 0    ? fuzz_ioctl
                       : strcmp(arguments[1], "region") == 0 ? fuzz_region
                       : strcmp(arguments[1], "socket") == 0 ? fuzz_socket
                                                             : NULL;
  if (step == NULL) return 2;
  state ^= strtoull(arguments[3], NULL, 10) * 0x9e3779b97f4a7c15ull;
  if (state == 0) state = 1;
  arena = mmap(NULL, ARENA + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (arena == MAP_FAILED || mprotect(arena + ARENA, 4096, PROT_NONE) != 0) fail("mmap");
  if (step == fuzz_ioctl) older_form();
  vgpu__channels_begin(answer);
  uint64_t until = vgpu__now_ns() + strtoull(arguments[2], NULL, 10) * 1000000000ull, rounds = 0;
  for (; vgpu__now_ns() < until; rounds++) step();
  printf("ok   fuzz %s: %llu rounds, seed %s\n", arguments[1], (unsigned long long)rounds, arguments[3]);
  fflush(stdout);
  _exit(0); /* skips the hook's destructors, which are not tested here */
}
