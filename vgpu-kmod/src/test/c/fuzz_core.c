/*
 * Random requests to the core, on the model of the resource manager.
 *
 * A round has one of three kinds of tenants, and checks after each request:
 *   honest    its memory is accessible: the ledger equals what the driver holds
 *   racing    calls overlap, answers cannot be written, arguments are not mapped: the ledger is never below what the
 *             driver holds
 *   hostile   memory changes while the driver works: only checks that everything is given back at the end
 * After each round every file is closed, and nothing may be left.
 */
#include "bed.h"

#include "../../main/c/core/rm_turn.h"
#include "calls.h"
#include "fuzz.h"

enum { MOST_REQUESTS = 2000 }; /* in a round */

enum kind { HONEST, RACING, HOSTILE, KINDS };
static enum kind kind;
static struct bed_process processes[4];
static uint64_t requests;
static uint32_t clients[8], usual; /* the client of this request, mostly; 0: any */
static struct bed_process *owners[8];
static int owners_fd[8], depth;

static const uint32_t CLASSES[] = {0x40,   0x40,   0x3f, 0x3e,   0x90ce, 0xa06c, 0xa06c, 0xc86f, 0xc86f,
                                   0xc86f, 0x50a0, 0x80, 0x2080, 0x41,   0,      0x82,   0xf8,   0x42};
static const uint32_t COMMANDS[] = {0xa06c0101, 0xa06c0103, 0xa06c0107, 0x2080110b,
                                    0x20801303, 0x20801301, 0x20801115, 0x20800102};
/* The sizes of their parameters, as this driver has them. */
static const uint32_t SIZES[] = {2, 8, 4, 536, 1028, 8, 8, 8};
static const uint32_t NUMBERS[] = {RM_ALLOC,       RM_ALLOC,        RM_ALLOC,       RM_ALLOC, RM_FREE,
                                   RM_FREE,        RM_CONTROL,      RM_CONTROL,     RM_DUP,   RM_HEAP,
                                   RM_REGISTER_FD, RM_ALLOC_MEMORY, RM_ALLOC_OBJECT};

static uint32_t some_client(void) {
  if (usual != 0 && below(4) != 0) return usual;
  return kind != HONEST && below(30) == 0 ? (uint32_t)random64() : clients[below(8)];
}

static uint32_t some_handle(void) {
  switch (below(20)) {
    case 0: return 0;
    case 1: return some_client();
    case 2: return (uint32_t)random64();
    case 3:
    case 4:
    case 5: return DEVICE;
    case 6: return SUBDEVICE;
    default: return 0x100 + below(12);
  }
}

static uint64_t some_size(void) {
  switch (below(12)) {
    case 0: return random64();
    case 1: return random64() >> 32;
    case 2: return (uint64_t)1 << below(64);
    case 3: return UINT64_MAX - below(3);
    default: return ((uint64_t)below(64) + 1) << (10 + below(8));
  }
}

static uint32_t plain_handle(void) { return 0x100 + below(12); }
static uint32_t group_handle(void) { return 0x100 + below(3); }

/* Where an object of this class belongs, mostly. */
static uint32_t some_parent(uint32_t class_number) {
  if (below(4) == 0) return some_handle();
  return class_number == 0x80 ? some_client() : class_number == 0xc86f ? group_handle() : DEVICE;
}

static uint32_t some_name(uint32_t class_number) {
  if (below(4) == 0) return some_handle();
  return class_number == 0x80     ? (uint32_t)DEVICE
         : class_number == 0x2080 ? (uint32_t)SUBDEVICE
         : class_number == 0xa06c ? group_handle()
                                  : plain_handle();
}

/* The place of a call's fields; for an honest tenant never in read-only memory. */
static size_t some_place(size_t usual) {
  if (kind == HONEST) return usual;
  switch (below(16)) {
    case 0: return below(BED_READ_ONLY);
    case 1: return BED_ARENA - below(256);
    case 2: return CALL + below(256);
    default: return usual;
  }
}

static void fill(size_t at, size_t size) {
  if (at < BED_ARENA) random_bytes(arena + at, size < BED_ARENA - at ? size : BED_ARENA - at);
}

static void store(size_t at, const void *from, size_t size) {
  if (at + size <= BED_ARENA) memcpy(arena + at, from, size);
}

static void store32(size_t at, uint32_t value) { store(at, &value, sizeof value); }
static void store64(size_t at, uint64_t value) { store(at, &value, sizeof value); }

static uint32_t form(uint32_t number) {
  switch (number) {
    case RM_ALLOC: return below(2) ? 32 : 48;
    case RM_FREE: return 16;
    case RM_CONTROL: return 32;
    case RM_DUP: return 28;
    case RM_HEAP: return 184;
    case RM_ALLOC_MEMORY: return 56;
    case RM_ALLOC_OBJECT: return 20;
    default: return 4;
  }
}

static void draw_fields(size_t at, uint32_t number, uint32_t size, size_t params) {
  fill(at, size);
  store32(at, some_client());
  store32(at + 4, some_handle());
  store32(at + 8, number == RM_HEAP ? below(20) == 0 ? below(32) : 2 + below(2)
                  : below(32) == 0 ? some_handle()
                                    : plain_handle());
  switch (number) {
    case RM_ALLOC: {
      uint32_t class_number = CLASSES[below(18)];
      store32(at + 4, some_parent(class_number));
      store32(at + 8, some_name(class_number));
      store32(at + 12, class_number);
      store64(at + 16, below(40) == 0 && kind != HONEST ? random64() : bed_at(params));
      store64(params + 64, some_size());
      if (class_number == 0x41 && below(2)) store32(at + 8, 0);
      break;
    }
    case RM_CONTROL: {
      uint32_t command = below(8);
      if (below(4) != 0) store32(at + 4, command < 3 ? group_handle() : SUBDEVICE);
      store32(at + 8, COMMANDS[command]);
      store64(at + 16, bed_at(params));
      store32(at + 24, below(8) == 0 ? (uint32_t)random64() : below(8) == 0 ? SIZES[below(8)] : SIZES[command]);
      store32(params, below(4) != 0 ? below(140) : (uint32_t)random64());
      if (COMMANDS[command] == 0x20801303) {
        for (uint32_t i = 0; i < 4; i++) store32(params + 4 + 8 * i, below(64));
        break;
      }
      for (uint32_t i = 0; i < 8; i++) store32(params + 24 + 4 * i, some_client());
      for (uint32_t i = 0; i < 8; i++) store32(params + 280 + 4 * i, some_handle());
      if (below(2)) store32(params + 4, below(9));
      break;
    }
    case RM_DUP:
      store32(at + 12, some_client());
      store32(at + 16, some_handle());
      break;
    case RM_HEAP:
      store32(at + 44, some_handle());
      store32(at + 56, below(4) << 25);
      store64(at + 88, some_size());
      break;
    case RM_ALLOC_MEMORY: store32(at + 12, CLASSES[below(18)]); break;
    case RM_ALLOC_OBJECT: store32(at + 12, CLASSES[below(18)]); break;
    case RM_REGISTER_FD: store32(at, below(9) == 0 ? (uint32_t)random64() : below(BED_FILES)); break;
    default: break;
  }
}

static void one_request(void);

/* Other requests, which leave the arguments of the one in progress as they are: wherever `some_place` may put them. */
static void meanwhile(void) {
  enum { LOW = BED_READ_ONLY + 4096, MIDDLE = OUTER + 4096 - CALL, HIGH = 512 };
  static unsigned char low[LOW], middle[MIDDLE], high[HIGH];
  memcpy(low, arena, LOW);
  memcpy(middle, arena + CALL, MIDDLE);
  memcpy(high, arena + BED_ARENA - HIGH, HIGH);
  depth++;
  for (uint32_t i = below(4); i > 0; i--) one_request();
  depth--;
  memcpy(arena, low, LOW);
  memcpy(arena + CALL, middle, MIDDLE);
  memcpy(arena + BED_ARENA - HIGH, high, HIGH);
  if (kind == HOSTILE) fill(CALL + below(200), below(64));
  if (kind == HOSTILE && below(2)) fill(PARAMS + 56 + below(16), 1 + below(16));
}

static void note_client(uint32_t client, struct bed_process *process, int fd) {
  uint32_t i = below(8);
  clients[i] = client;
  owners[i] = process;
  owners_fd[i] = fd;
}

static void learn(struct bed_process *process, int fd, uint32_t number, size_t at, long result) {
  uint32_t made;
  if (number != RM_ALLOC || result != 0 || at + 16 > BED_ARENA) return;
  memcpy(&made, arena + at + 12, sizeof made);
  if (made != 0 && made != 0x41) return;
  memcpy(&made, arena + at + 8, sizeof made);
  if (made != 0) note_client(made, process, fd);
}

/* A group that is ours is in a list, and so is given back; what has been disabled for a stop is in such a group. A
 * channel whose handle is not known cannot be disabled. */
static void check_turns(void) {
  for (struct vgpu_rm_object *client = book.clients; client != NULL; client = client->places[IN_BOOK].next) {
    for (const struct vgpu_rm_object *at = client; at != NULL;) {
      const struct vgpu_rm_object *group = at->parent;
      if (at->ours && at->at_group == NULL) bed_fail("a stopped group is in no list");
      if (at->shut && at->handle != 0 && group->class_number == RM_CLASS_GROUP && !group->ours &&
          client->tenant->stuck == 0)
        bed_fail("a stopped channel is in a group that is not");
      if (at->child != NULL) {
        at = at->child;
        continue;
      }
      while (at != client && at->next == NULL) at = at->parent;
      at = at == client ? NULL : at->next;
    }
  }
}

/* A call of the scheduler's, which never gets to the driver. */
static uint32_t answer(void *self, uint32_t client, uint32_t object, uint32_t command, const void *params,
                       uint32_t size) {
  (void)self;
  for (uint32_t i = 0; i < 5; i++) {
    if (COMMANDS[i] == command && SIZES[i] == size && client != 0 && object != 0 && params != NULL)
      return below(3) == 0 ? RM_NOT_SUPPORTED : RM_OK;
  }
  bed_fail("a call that the driver does not know");
  return RM_NOT_SUPPORTED;
}

/* Exercises the core's part of turns. The driver's state of groups is not checked: test_turns_random.c does that. */
static void some_turns(void) {
  struct vgpu_rm_turn turn;
  tenants[1 + below(3)]->yields = below(2) != 0;
  book.held = below(2) != 0;
  book.round += below(2);
  book.able = below(4) != 0;
  while (below(50) != 0 && vgpu__turn_next(&book, &turn) > 0) {
    vgpu__turn_carry_out(&turn, below(8) != 0 ? answer : NULL, NULL, SIZES[0]);
    vgpu__turn_done(&book, &turn);
  }
  check_turns();
}

static void one_request(void) {
  struct bed_process *process = &processes[below(4)];
  int fd = (int)below(BED_FILES);
  uint32_t owned = below(10);
  requests++;
  usual = 0;
  if (owned < 8 && clients[owned] != 0 && owners[owned]->files[owners_fd[owned]] != NULL) {
    process = owners[owned];
    fd = owners_fd[owned];
    usual = clients[owned];
  }
  if (process->files[fd] == NULL) {
    if (below(4) == 0) bed_open(process, below(3) != 0);
    return;
  }
  if (depth == 0 && below(300) == 0) {
    if (below(10) == 0) bed_exit(process);
    else bed_close(process, fd);
    return;
  }
  if (below(200) == 0) tenants[1 + below(3)]->limit = below(8) == 0 ? VGPU_RM_NO_LIMIT : (uint64_t)below(512) << 16;
  if (below(200) == 0) some_turns();
  if (below(200) == 0) vgpu__level_set(&book, tenants[1 + below(3)], below(3));
  if (below(200) == 0) vgpu__weight_set(&book, tenants[1 + below(3)], below(3) * 60);
  uint32_t number = NUMBERS[below(13)], size = form(number), word = vgpu__rm_word(number, size);
  size_t at = some_place(CALL), params = some_place(PARAMS);
  draw_fields(at, number, size, params);
  uint64_t argument = bed_at(at);
  if (below(6) == 0) { /* inside an XFER */
    size_t outer = some_place(OUTER);
    store32(outer, below(50) == 0 ? RM_XFER : number);
    store32(outer + 4, below(20) == 0 ? (uint32_t)random64() : size);
    store64(outer + 8, argument);
    argument = bed_at(outer);
    word = vgpu__rm_word(RM_XFER, 16);
  }
  if (below(60) == 0) word = (uint32_t)random64();
  if (below(20) == 0) word ^= (uint32_t)random64() & 0xc000ff00;
  if (kind != HONEST && depth == 0 && below(3) == 0) bed_meanwhile = meanwhile;
  long result = bed_ioctl(process, fd, word, argument);
  if (depth == 0) bed_meanwhile = NULL;
  learn(process, fd, number, at, result);
}

static void check(void) {
  for (int i = 1; i < BED_TENANTS; i++) {
    uint64_t held = rm.held[i], used = tenants[i]->used;
    if (kind == HONEST && used != held) {
      fprintf(stderr, "request %llu, tenant %d: the ledger says %llu, the driver holds %llu\n",
              (unsigned long long)requests, i, (unsigned long long)used, (unsigned long long)held);
      bed_fail("honest");
    }
    if (kind == RACING && used < held) {
      fprintf(stderr, "request %llu, tenant %d: the ledger says %llu, the driver holds %llu\n",
              (unsigned long long)requests, i, (unsigned long long)used, (unsigned long long)held);
      bed_fail("racing");
    }
  }
}

static int by_address(const void *one, const void *other) {
  const struct vgpu_rm_block *left = *(struct vgpu_rm_block *const *)one,
                             *right = *(struct vgpu_rm_block *const *)other;
  return left < right ? -1 : left > right;
}

/* The accounts must equal the sums over the book, whatever the kind of tenants. */
static void check_sums(void) {
  static struct vgpu_rm_block *blocks[65536];
  size_t count = 0;
  uint64_t used[BED_TENANTS] = {0};
  for (struct vgpu_rm_object *client = book.clients; client != NULL; client = client->places[IN_BOOK].next) {
    for (struct vgpu_rm_object *at = client; at != NULL;) {
      if (at->block != NULL && count < 65536) blocks[count++] = at->block;
      if (at->child != NULL) {
        at = at->child;
        continue;
      }
      while (at != client && at->next == NULL) at = at->parent;
      at = at == client ? NULL : at->next;
    }
  }
  for (int j = 1; j < BED_TENANTS; j++) {
    for (struct vgpu_rm_block *at = tenants[j]->kept; at != NULL && count < 65536; at = at->next_kept)
      blocks[count++] = at;
  }
  qsort(blocks, count, sizeof *blocks, by_address);
  for (size_t i = 0; i < count; i++) {
    if ((i > 0 && blocks[i] == blocks[i - 1]) || blocks[i]->on_host) continue;
    for (int j = 1; j < BED_TENANTS; j++) used[j] += blocks[i]->tenant == tenants[j] ? blocks[i]->bytes : 0;
  }
  for (int j = 1; j < BED_TENANTS; j++) {
    if (used[j] != tenants[j]->used) bed_fail("an account is not the sum of its blocks");
  }
}

uint64_t play_round(void) {
  requests = 0;
  kind = (enum kind)below(KINDS);
  bed_begin((uint64_t)below(1024) << 16);
  rm.total = (uint64_t)(1 + below(64)) * MIB;
  memset(clients, 0, sizeof clients);
  for (uint32_t i = 0; i < 4; i++) {
    uint32_t tenant = i < 3 ? 1 + i : below(4);
    processes[i] = (struct bed_process){.key = tenant, .tag = tenant, .number = 1 + i / 2};
    int fd = bed_open(&processes[i], 1);
    clients[i] = new_client(&processes[i], fd);
    owners[i] = &processes[i];
    owners_fd[i] = fd;
  }
  while (requests < MOST_REQUESTS && !is_at_end()) {
    one_request();
    check();
    if (requests % 64 == 0) check_sums();
  }
  check_sums();
  for (int i = 0; i < 4; i++) bed_exit(&processes[i]);
  bed_end();
  return requests;
}
