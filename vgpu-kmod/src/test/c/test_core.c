/* The core on the model of the resource manager. Usage: test_core [TEST...] */
#include "bed.h"

#include "calls.h"

#include "../../main/c/core/rm_turn.h"

static struct bed_process one, other, nobody;
static int fd;
static uint32_t client;
static int failures;

#define CHECK(fine)                                                      \
  do {                                                                   \
    if (!(fine)) {                                                       \
      failures++;                                                        \
      fprintf(stderr, "FAIL %s:%d: %s\n", __FILE__, __LINE__, #fine);    \
    }                                                                    \
  } while (0)

static uint64_t used(int tenant) { return tenants[tenant]->used; }

static void begin(uint64_t limit) {
  bed_begin(limit);
  one = (struct bed_process){.key = 1, .tag = 1, .number = 101};
  other = (struct bed_process){.key = 2, .tag = 2, .number = 102};
  nobody = (struct bed_process){.number = 103};
  fd = bed_open(&one, 1);
  client = new_client(&one, fd);
}

static void end(void) {
  bed_exit(&one);
  bed_exit(&other);
  bed_exit(&nobody);
  bed_end();
}

/* ---- charge, deny, free ---- */

static void test_charged(void) {
  begin(10 * MIB);
  CHECK(take(&one, fd, client, 7, 4 * MIB) == RM_OK);
  CHECK(used(1) == 4 * MIB && rm.held[1] == 4 * MIB);
  uint64_t calls = rm.calls;
  CHECK(take(&one, fd, client, 8, 6 * MIB + 1) == RM_NO_MEMORY);
  CHECK(rm.calls == calls); /* the driver was not called */
  CHECK(take(&one, fd, client, 8, 6 * MIB) == RM_OK);
  CHECK(used(1) == 10 * MIB && rm.held[1] == 10 * MIB);
  CHECK(take(&one, fd, client, 9, 1) == RM_NO_MEMORY);
  CHECK(do_free(&one, fd, client, 7) == RM_OK && used(1) == 6 * MIB);
  CHECK(take(&one, fd, client, 7, 4 * MIB) == RM_OK);
  CHECK(tenants[1]->peak == 10 * MIB && tenants[1]->refused == 2 && tenants[1]->allocations == 3);
  CHECK(used(2) == 0);
  end();
}

static void test_both_forms(void) {
  begin(10 * MIB);
  struct alloc what = {.client = client, .parent = DEVICE, .class_number = 0x40, .bytes = MIB, .rights = 1};
  uint32_t made = 0;
  CHECK(do_alloc(&one, fd, what, &made) == RM_OK && made != 0 && used(1) == MIB);
  CHECK(do_free(&one, fd, client, made) == RM_OK && used(1) == 0);
  CHECK(do_heap(&one, fd, client, DEVICE, RM_HEAP_ALLOC_SIZE, 0x77, 2 * MIB) == RM_OK && used(1) == 2 * MIB);
  CHECK(do_heap(&one, fd, client, DEVICE, RM_HEAP_ALLOC_SIZE, 0x78, 9 * MIB) == RM_NO_MEMORY);
  CHECK(do_heap(&one, fd, client, DEVICE, RM_HEAP_FREE, 0x77, 0) == RM_OK && used(1) == 0);
  what.class_number = 0x90ce;
  what.parent = client;
  CHECK(do_alloc(&one, fd, what, &made) == RM_OK && used(1) == MIB);
  what.class_number = RM_CLASS_HOST_MEMORY;
  what.parent = DEVICE;
  CHECK(do_alloc(&one, fd, what, &made) == RM_OK && used(1) == MIB && tenants[1]->host_used == MIB);
  end();
}

static void test_rounding_undone(void) {
  begin(MIB + 4095);
  CHECK(take(&one, fd, client, 7, 4095) == RM_OK && used(1) == 4096); /* charged in the driver's granularity */
  CHECK(take(&one, fd, client, 8, MIB - 1) == RM_NO_MEMORY);          /* fits as requested, but not as rounded */
  CHECK(used(1) == 4096 && rm.held[1] == 4096 && tenants[1]->undone == 1 && tenants[1]->over == 0);
  CHECK(do_free(&one, fd, client, 8) == RM_OK && used(1) == 4096);
  CHECK(do_heap(&one, fd, client, DEVICE, RM_HEAP_ALLOC_SIZE, 0x77, MIB - 1) == RM_NO_MEMORY && rm.held[1] == 4096);
  CHECK(take(&one, fd, client, 8, MIB - 65536) == RM_OK && used(1) == MIB - 65536 + 4096);
  end();
}

static void test_limits(void) {
  begin(VGPU_RM_NO_LIMIT);
  tenants[2]->limit = 0;
  CHECK(take(&one, fd, client, 7, 4096 * MIB) == RM_OK); /* without a limit, all memory is available */
  CHECK(take(&one, fd, client, 8, 1) == RM_NO_MEMORY && used(1) == 4096 * MIB);
  int theirs = bed_open(&other, 1);
  uint32_t second = new_client(&other, theirs);
  CHECK(take(&other, theirs, second, 7, 1) == RM_NO_MEMORY && used(2) == 0);
  tenants[1]->limit = MIB; /* below the current use: no further allocation, but everything can be freed */
  CHECK(do_free(&one, fd, client, 7) == RM_OK && used(1) == 0);
  CHECK(take(&one, fd, client, 7, MIB) == RM_OK);
  for (int i = 0; i < 64; i++) CHECK(take(&one, fd, client, 9, (uint64_t)1 << i) != RM_OK);
  CHECK(take(&one, fd, client, 9, UINT64_MAX) == RM_NO_MEMORY && used(1) == MIB);
  tenants[1]->most_objects = tenants[1]->objects;
  CHECK(do_alloc(&one, fd, (struct alloc){.client = client, .parent = DEVICE, .class_number = 0x50a0},
                 NULL) == RM_INSUFFICIENT_RESOURCES);
  end();
}

/* ---- what frees ---- */

static void test_trees(void) {
  begin(100 * MIB);
  uint32_t second = new_client(&one, fd);
  CHECK(take(&one, fd, client, 7, MIB) == RM_OK && take(&one, fd, client, 8, MIB) == RM_OK &&
        take(&one, fd, second, 7, 2 * MIB) == RM_OK);
  CHECK(used(1) == 4 * MIB);
  CHECK(do_free(&one, fd, client, DEVICE) == RM_OK && used(1) == 2 * MIB);
  CHECK(do_free(&one, fd, second, second) == RM_OK && used(1) == 0 && rm.held[1] == 0);
  int again = bed_open(&one, 1);
  uint32_t third = new_client(&one, again);
  CHECK(take(&one, again, third, 7, 3 * MIB) == RM_OK);
  bed_close(&one, again);
  CHECK(used(1) == 0 && rm.held[1] == 0);
  end();
}

static void test_duplicates(void) {
  begin(10 * MIB);
  uint32_t second = new_client(&one, fd);
  CHECK(take(&one, fd, client, 7, 8 * MIB) == RM_OK);
  CHECK(do_dup(&one, fd, second, DEVICE, 70, client, 7) == RM_OK && used(1) == 8 * MIB);
  CHECK(do_free(&one, fd, client, client) == RM_OK && used(1) == 8 * MIB && rm.held[1] == 8 * MIB);
  CHECK(take(&one, fd, second, 8, 4 * MIB) == RM_NO_MEMORY);
  CHECK(do_free(&one, fd, second, 70) == RM_OK && used(1) == 0 && rm.held[1] == 0);
  end();
}

static void test_tied_files(void) {
  begin(10 * MIB);
  int card = bed_open(&one, 0), late = bed_open(&one, 1);
  CHECK(do_register(&one, card, late) == 0);
  CHECK(do_register(&one, card, fd) != 0);      /* a second tie */
  uint32_t second = new_client(&one, card);     /* belongs to the file that it is tied to */
  CHECK(take(&one, late, second, 7, MIB) == RM_OK && used(1) == MIB);
  bed_close(&one, late);                        /* kept open by the tie */
  CHECK(used(1) == MIB && rm.held[1] == MIB);
  bed_close(&one, card);
  CHECK(used(1) == 0 && rm.held[1] == 0);
  end();
}

static void test_tenant_removed(void) {
  begin(10 * MIB);
  CHECK(take(&one, fd, client, 7, 4 * MIB) == RM_OK);
  struct vgpu_rm_tenant *gone = tenants[1];
  vgpu__tenant_remove(&book, gone);
  CHECK(take(&one, fd, client, 8, 8 * MIB) == RM_NO_MEMORY); /* its clients stay limited */
  CHECK(take(&one, fd, client, 8, 6 * MIB) == RM_OK && gone->used == 10 * MIB);
  int next = bed_open(&one, 1);
  new_client(&one, next); /* without a tenant */
  CHECK(gone->used == 10 * MIB);
  end();
}

/* ---- calls that are easily accounted wrongly ---- */

static void test_params_size_is_not_believed(void) {
  static const uint32_t SIZES[] = {0, 64, 72, 120, 128, 4096, UINT32_MAX};
  begin(100 * MIB);
  for (uint32_t i = 0; i < 7; i++) {
    struct alloc what = {.client = client, .parent = DEVICE, .handle = 70 + i, .class_number = 0x40, .bytes = MIB,
                         .params_size = SIZES[i]};
    CHECK(do_alloc(&one, fd, what, NULL) == RM_OK && used(1) == (i + 1) * MIB);
  }
  end();
}

static void test_freeing_what_is_not_there(void) {
  begin(10 * MIB);
  CHECK(take(&one, fd, client, 7, 4 * MIB) == RM_OK);
  CHECK(do_free(&one, fd, client, 12345) == RM_OK && used(1) == 4 * MIB); /* the driver reports success */
  CHECK(do_free(&one, fd, client, 7) == RM_OK && used(1) == 0);
  CHECK(do_free(&one, fd, client, 7) == RM_OK && used(1) == 0);
  CHECK(do_free(&one, fd, client + 99, 7) == RM_INVALID_CLIENT);
  end();
}

static void test_other_bits_of_the_word(void) {
  begin(10 * MIB);
  struct alloc what = {.client = client, .parent = DEVICE, .handle = 7, .class_number = 0x40, .bytes = 4 * MIB,
                       .direction = 'X' << 8};
  CHECK(do_alloc(&one, fd, what, NULL) == RM_OK && used(1) == 4 * MIB);
  what.handle = 8;
  what.direction = 2u << 30 | 0xff00;
  CHECK(do_alloc(&one, fd, what, NULL) == RM_OK && used(1) == 8 * MIB);
  what.handle = 9;
  CHECK(do_alloc(&one, fd, what, NULL) == RM_NO_MEMORY && used(1) == 8 * MIB);
  end();
}

static void test_behind_another_call(void) {
  begin(10 * MIB);
  struct alloc what = {.client = client, .parent = DEVICE, .handle = 7, .class_number = 0x40, .bytes = 4 * MIB};
  CHECK(do_alloc(&one, fd, what, NULL) == RM_OK);
  put32(OUTER, RM_ALLOC);
  put32(OUTER + 4, 32);
  put64(OUTER + 8, bed_at(CALL));
  put32(CALL + 8, 8); /* the same call with another handle */
  CHECK(bed_ioctl(&one, fd, vgpu__rm_word(RM_XFER, 16), bed_at(OUTER)) == 0 && get32(CALL + 28) == RM_OK &&
        used(1) == 8 * MIB);
  put32(CALL + 8, 9);
  CHECK(bed_ioctl(&one, fd, vgpu__rm_word(RM_XFER, 16), bed_at(OUTER)) == 0 && get32(CALL + 28) == RM_NO_MEMORY &&
        used(1) == 8 * MIB);
  end();
}

/* Closing a file that was opened before; a file whose open failed is never closed. */
static void test_files_never_seen(void) {
  begin(10 * MIB);
  CHECK(take(&one, fd, client, 7, MIB) == RM_OK);
  vgpu__file_closed(&book, 0xfeed);
  CHECK(used(1) == MIB);
  int early = bed_open(&nobody, 1);
  uint32_t second = new_client(&nobody, early);
  CHECK(used(1) == MIB && tenants[1]->objects == 4);
  nobody.key = nobody.tag = 1; /* from now on a tenant's process: what it takes is charged */
  CHECK(take(&nobody, early, second, 7, 2 * MIB) == RM_OK && used(1) == 3 * MIB);
  bed_close(&nobody, early);
  CHECK(used(1) == MIB);
  nobody.key = nobody.tag = 0;
  end();
}

/* ---- hostile calls ---- */

static void test_answer_cannot_be_written(void) {
  begin(10 * MIB);
  CHECK(take(&one, fd, client, 7, 4 * MIB) == RM_OK);
  struct alloc what = {.client = client, .parent = DEVICE, .handle = 8, .class_number = 0x40, .bytes = 4 * MIB,
                       .call = 64};
  CHECK(do_alloc(&one, fd, what, NULL) == UINT32_MAX); /* EFAULT, although it is done */
  CHECK(rm.held[1] == 8 * MIB && used(1) == 8 * MIB);
  what.handle = 7; /* the driver rejects this one; the existing object must not be considered gone */
  what.bytes = 4096;
  CHECK(do_alloc(&one, fd, what, NULL) == UINT32_MAX && used(1) >= rm.held[1]);
  CHECK(do_alloc(&one, fd, (struct alloc){.handle = client, .class_number = 0x41, .call = 64}, NULL) == UINT32_MAX);
  CHECK(used(1) >= rm.held[1] && used(1) <= 10 * MIB);
  end();
}

/* RM_HEAP carries the size in its answer: if that cannot be written, the rounded size is lost. */
static void test_size_of_a_lost_answer(void) {
  begin(10 * MIB);
  const uint64_t bytes = 1024;
  const uint32_t fields[4] = {client, DEVICE, RM_HEAP_ALLOC_SIZE, 0}, handle = 7;
  memset(arena, 0, RM_HEAP_SIZE);
  memcpy(arena, fields, sizeof fields);
  memcpy(arena + 44, &handle, sizeof handle);
  memcpy(arena + 88, &bytes, sizeof bytes);
  CHECK(bed_ioctl(&one, fd, vgpu__rm_word(RM_HEAP, RM_HEAP_SIZE), bed_at(0)) == VGPU_RM_FAULT);
  CHECK(rm.held[1] == 4096 && used(1) >= rm.held[1]);
  CHECK(do_free(&one, fd, client, 7) == RM_OK && rm.held[1] == 0 && used(1) == 0);
  end();
}

/* One tenant frees its client and another creates one with the same handle, with both answers lost. */
static void test_number_taken_over_unseen(void) {
  begin(20 * MIB);
  uint32_t mine = new_client(&one, fd);
  CHECK(take(&one, fd, client, 7, MIB) == RM_OK);
  const uint32_t freed[4] = {client, 0, client, UINT32_MAX};
  memcpy(arena + 64, freed, sizeof freed);
  CHECK(bed_ioctl(&one, fd, vgpu__rm_word(RM_FREE, RM_FREE_SIZE), bed_at(64)) == VGPU_RM_FAULT && rm.held[1] == 0);
  int theirs = bed_open(&other, 1);
  CHECK(do_alloc(&other, theirs, (struct alloc){.handle = client, .class_number = 0x41, .call = 64},
                 NULL) == UINT32_MAX);
  CHECK(do_alloc(&other, theirs,
                 (struct alloc){.client = client, .parent = client, .handle = DEVICE, .class_number = 0x80},
                 NULL) == RM_OK);
  CHECK(take(&other, theirs, client, 7, 8 * MIB) == RM_OK);
  /* The first one's charge stays until its file is closed. */
  CHECK(rm.held[2] == 8 * MIB && used(2) == 8 * MIB && used(1) == MIB);
  CHECK(take(&other, theirs, client, 8, 13 * MIB) == RM_NO_MEMORY && tenants[2]->refused == 1);
  one.number = other.number; /* as if the driver considered them one process */
  CHECK(do_dup(&one, fd, mine, DEVICE, 9, client, 7) == RM_INVALID_CLIENT); /* the owner is ambiguous */
  CHECK(do_free(&other, theirs, client, 7) == RM_OK && used(2) == 0 && used(1) == MIB);
  CHECK(do_free(&other, theirs, client, client) == RM_OK && used(1) == MIB);
  CHECK(take(&one, fd, mine, 7, 20 * MIB) == RM_NO_MEMORY);
  bed_close(&one, fd);
  CHECK(used(1) == 0);
  end();
}

/* A call whose answer is lost does not take a handle from its owner. */
static void test_number_claimed_unseen(void) {
  begin(20 * MIB);
  uint32_t mine = new_client(&one, fd);
  CHECK(take(&one, fd, client, 7, MIB) == RM_OK);
  int theirs = bed_open(&other, 1);
  CHECK(do_alloc(&other, theirs, (struct alloc){.handle = client, .class_number = 0x41, .call = 64},
                 NULL) == UINT32_MAX);
  CHECK(do_dup(&one, fd, mine, DEVICE, 9, client, 7) == RM_OK && used(1) == MIB);
  other.number = one.number;
  uint32_t second = new_client(&other, theirs);
  CHECK(do_dup(&other, theirs, second, DEVICE, 9, client, 7) == RM_INVALID_CLIENT && used(2) == 0);
  CHECK(do_free(&one, fd, client, 7) == RM_OK && do_free(&one, fd, mine, 9) == RM_OK && used(1) == 0);
  end();
}

static void test_arguments_over_one_another(void) {
  begin(10 * MIB);
  for (size_t params = CALL - 96; params <= CALL + 8; params += 8) {
    struct alloc what = {.client = client, .parent = DEVICE, .handle = 7, .class_number = 0x40, .bytes = 4096,
                         .params = params};
    uint32_t status = do_alloc(&one, fd, what, NULL);
    int over = params + 64 < CALL + 32 && CALL < params + 72;
    CHECK(status == (over ? RM_INSUFFICIENT_PERMISSIONS : RM_OK));
    CHECK(rm.held[1] <= used(1));
    if (status == RM_OK) CHECK(do_free(&one, fd, client, 7) == RM_OK && used(1) == 0);
  }
  end();
}

static void ask_for_more(void) { put64(PARAMS + 64, 20 * MIB); }
static void ask_for_some_more(void) { put64(PARAMS + 64, 6 * MIB); }
static void ask_for_less(void) { put64(PARAMS + 64, MIB); }
static void ask_for_memory(void) { put32(CALL + 12, 0x40); }

/* Another thread changes arguments between the check and the driver: sizes are enforced, another class is only
 * detected. */
static void test_arguments_that_change(void) {
  begin(10 * MIB);
  bed_between = ask_for_more;
  CHECK(take(&one, fd, client, 7, MIB) == RM_NO_MEMORY && rm.held[1] == 0 && used(1) == 0 && tenants[1]->undone == 1);
  bed_between = ask_for_some_more;
  CHECK(take(&one, fd, client, 7, MIB) == RM_OK && rm.held[1] == 6 * MIB && used(1) == 6 * MIB);
  bed_between = ask_for_less;
  /* Too high, not too low. */
  CHECK(take(&one, fd, client, 8, 4 * MIB) == RM_OK && rm.held[1] == 7 * MIB && used(1) == 10 * MIB);
  CHECK(do_free(&one, fd, client, 7) == RM_OK && do_free(&one, fd, client, 8) == RM_OK && used(1) == 0);
  bed_between = ask_for_memory;
  struct alloc what = {.client = client, .parent = DEVICE, .handle = 7, .class_number = 0x50a0, .bytes = 4 * MIB};
  CHECK(do_alloc(&one, fd, what, NULL) == RM_OK && tenants[1]->changed == 1);
  end();
}

static void test_old_forms_of_memory(void) {
  begin(10 * MIB);
  const uint32_t object[5] = {client, DEVICE, 7, 0x40, UINT32_MAX};
  memcpy(arena + CALL, object, sizeof object);
  CHECK(bed_ioctl(&one, fd, vgpu__rm_word(RM_ALLOC_OBJECT, 20), bed_at(CALL)) == 0 &&
        get32(CALL + 16) == RM_INSUFFICIENT_PERMISSIONS);
  memset(arena + CALL, 0, 56);
  memcpy(arena + CALL, object, 16);
  CHECK(bed_ioctl(&one, fd, vgpu__rm_word(RM_ALLOC_MEMORY, 56), bed_at(CALL)) == 0 &&
        get32(CALL + 40) == RM_INSUFFICIENT_PERMISSIONS);
  for (uint32_t function = 0; function < 64; function++) {
    uint32_t status = do_heap(&one, fd, client, DEVICE, function, 7, MIB);
    int known = function == RM_HEAP_ALLOC_SIZE || function == RM_HEAP_FREE || function == RM_HEAP_INFO;
    CHECK(status == (known ? (uint32_t)RM_OK : (uint32_t)RM_NOT_SUPPORTED));
  }
  CHECK(used(1) == 0 && rm.held[1] == 0);
  static const uint32_t DENIED_CLASSES[] = {0x82, 0xc2, 0xf8};
  for (int i = 0; i < 3; i++) {
    struct alloc what = {.client = client, .parent = DEVICE, .handle = 7, .class_number = DENIED_CLASSES[i],
                         .bytes = 4096};
    CHECK(do_alloc(&one, fd, what, NULL) == RM_INSUFFICIENT_PERMISSIONS);
  }
  end();
}

/* Handles of other tenants. The driver rejects most of them, but does not check the list of channels. */
static void test_handles_of_others(void) {
  begin(10 * MIB);
  int theirs = bed_open(&other, 1);
  uint32_t second = new_client(&other, theirs);
  CHECK(take(&other, theirs, second, 7, MIB) == RM_OK);
  CHECK(take(&one, fd, second, 8, MIB) == RM_INVALID_CLIENT && used(1) == 0 && used(2) == MIB);
  CHECK(do_free(&one, fd, second, 7) == RM_INVALID_CLIENT && used(2) == MIB);
  one.number = other.number; /* as if the driver considered them one process */
  CHECK(do_dup(&one, fd, client, DEVICE, 9, second, 7) == RM_INVALID_CLIENT);
  memset(arena + PARAMS, 0, 536);
  put32(PARAMS, 1);
  put32(PARAMS + 4, 2);
  put32(PARAMS + 24, client);
  put32(PARAMS + 28, client);
  CHECK(do_control(&one, fd, client, SUBDEVICE, RM_DISABLE_CHANNELS, 536) == RM_OK);
  put32(PARAMS + 28, second);
  uint64_t calls = rm.calls;
  CHECK(do_control(&one, fd, client, SUBDEVICE, RM_DISABLE_CHANNELS, 536) == RM_INVALID_CLIENT && rm.calls == calls);
  int outside = bed_open(&nobody, 1);
  uint32_t third = new_client(&nobody, outside);
  put32(PARAMS + 24, third);
  CHECK(do_control(&nobody, outside, third, SUBDEVICE, RM_DISABLE_CHANNELS, 536) == RM_INVALID_CLIENT);
  end();
}

static struct alloc a_group(uint32_t root, uint32_t handle) {
  return (struct alloc){.client = root, .parent = DEVICE, .handle = handle, .class_number = RM_CLASS_GROUP,
                        .rights = 1};
}

/* A file that a process of another tenant was passed, or has taken: it gets nothing in the client that is there, and
 * pays for a client of its own. */
static void test_passed_file(void) {
  begin(10 * MIB);
  CHECK(take(&one, fd, client, 7, 4 * MIB) == RM_OK);
  other.files[5] = nobody.files[5] = one.files[fd];
  one.files[fd]->refs += 2;
  uint64_t calls = rm.calls;
  CHECK(take(&other, 5, client, 8, MIB) == RM_INVALID_CLIENT);
  CHECK(do_heap(&other, 5, client, DEVICE, RM_HEAP_ALLOC_SIZE, 8, MIB) == RM_INVALID_CLIENT);
  CHECK(do_dup(&other, 5, client, DEVICE, 8, client, 7) == RM_INVALID_CLIENT);
  CHECK(do_alloc(&other, 5, a_group(client, 8), NULL) == RM_INVALID_CLIENT);
  CHECK(rm.calls == calls && tenants[2]->filtered == 4 && used(1) == 4 * MIB && used(2) == 0);
  uint32_t own = new_client(&other, 5);
  CHECK(take(&other, 5, own, 8, 10 * MIB) == RM_OK && used(2) == 10 * MIB && used(1) == 4 * MIB);
  CHECK(take(&other, 5, own, 9, 1) == RM_NO_MEMORY);
  CHECK(take(&one, fd, own, 9, 1) == RM_INVALID_CLIENT); /* and the other way round */
  CHECK(take(&nobody, 5, client, 8, 6 * MIB) == RM_OK && used(1) == 10 * MIB); /* without a tenant: the client's pays */
  CHECK(take(&nobody, 5, client, 9, 1) == RM_NO_MEMORY);
  bed_close(&one, fd);
  bed_close(&nobody, 5);
  CHECK(used(1) == 10 * MIB);
  CHECK(do_free(&other, 5, client, 7) == RM_OK && used(1) == 6 * MIB); /* it may free */
  vgpu__tenant_remove(&book, tenants[1]);
  bed_close(&other, 5);
  CHECK(used(2) == 0);
  end();
}

/* A client whose tenant is gone, or has another cgroup now, stays with it. */
static void test_tenant_replaced(void) {
  begin(10 * MIB);
  CHECK(take(&one, fd, client, 7, 4 * MIB) == RM_OK);
  struct vgpu_rm_tenant *gone = tenants[1];
  vgpu__tenant_remove(&book, gone);
  one.key = 2; /* its cgroup has another tenant */
  CHECK(take(&one, fd, client, 8, 6 * MIB) == RM_OK && gone->used == 10 * MIB && used(2) == 0);
  CHECK(take(&one, fd, client, 9, 1) == RM_NO_MEMORY);
  end();
}

/* ---- overlapping calls: the driver never holds more than the ledger says ---- */

static void nested(void (*meanwhile)(void)) { bed_meanwhile = meanwhile; }
static void keep_and(void (*then)(void)) {
  unsigned char kept[4096];
  memcpy(kept, arena + CALL, sizeof kept); /* the outer call's arguments belong to its own thread */
  then();
  memcpy(arena + CALL, kept, sizeof kept);
}

static void free_client(void) { CHECK(do_free(&one, fd, client, client) == RM_OK); }
static void meanwhile_free_client(void) { keep_and(free_client); }
static void free_and_take_seven(void) {
  CHECK(do_free(&one, fd, client, 7) == RM_OK);
  put64(PARAMS + 64, 0);
  CHECK(take(&one, fd, client, 7, 8 * MIB) == RM_OK);
}
static void meanwhile_free_and_take(void) { keep_and(free_and_take_seven); }
static void new_device_and_take(void) {
  CHECK(do_alloc(&one, fd, (struct alloc){.client = client, .parent = client, .handle = DEVICE, .class_number = 0x80},
                 NULL) == RM_OK);
  CHECK(take(&one, fd, client, 7, 8 * MIB) == RM_OK);
}
static void meanwhile_new_device(void) { keep_and(new_device_and_take); }
static void take_seven(void) { CHECK(take(&one, fd, client, 7, 8 * MIB) == RM_OK); }
static void meanwhile_take_seven(void) { keep_and(take_seven); }

static void lower_the_limit(void) { tenants[1]->limit = MIB; }

static void test_overlapping_calls(void) {
  begin(20 * MIB);
  nested(lower_the_limit);
  CHECK(take(&one, fd, client, 7, 4 * MIB) == RM_OK && used(1) == 4 * MIB); /* what was admitted stays */
  CHECK(take(&one, fd, client, 8, 1) == RM_NO_MEMORY);
  end();

  begin(20 * MIB);
  nested(meanwhile_free_client);
  CHECK(take(&one, fd, client, 7, 4 * MIB) == RM_OK);
  CHECK(rm.held[1] == 0 && used(1) <= 4 * MIB); /* may be too high until the file is closed */
  end();

  begin(20 * MIB);
  nested(meanwhile_free_and_take);
  CHECK(take(&one, fd, client, 7, 4096) == RM_OK);
  CHECK(rm.held[1] == 8 * MIB && used(1) >= 8 * MIB);
  end();

  begin(20 * MIB);
  nested(meanwhile_new_device);
  CHECK(do_free(&one, fd, client, DEVICE) == RM_OK);
  CHECK(rm.held[1] == 8 * MIB && used(1) >= 8 * MIB);
  end();

  begin(20 * MIB);
  CHECK(take(&one, fd, client, 7, 4096) == RM_OK);
  nested(meanwhile_take_seven);
  CHECK(do_free(&one, fd, client, 7) == RM_OK);
  CHECK(rm.held[1] == 8 * MIB && used(1) >= 8 * MIB);
  CHECK(do_free(&one, fd, client, 7) == RM_OK && used(1) == 0);
  end();
}

/* ---- filters, weights, reported sizes ---- */

static void test_filters(void) {
  begin(10 * MIB);
  uint32_t group = 0;
  struct alloc what = {.client = client, .parent = DEVICE, .class_number = RM_CLASS_GROUP, .rights = 1};
  CHECK(do_alloc(&one, fd, what, &group) == RM_OK);
  put64(PARAMS, 5000);
  CHECK(do_control(&one, fd, client, group, RM_GROUP_SET_TIMESLICE, 8) == RM_OK &&
        model_timeslice(&rm, client, group) == 5000);
  static const uint32_t REFUSED[] = {RM_GROUP_SET_INTERLEAVE, RM_GROUP_MAKE_REALTIME, RM_CHANNEL_SET_INTERLEAVE,
                                     RM_SET_SCHED_POLICY};
  for (int i = 0; i < 4; i++) CHECK(do_control(&one, fd, client, group, REFUSED[i], 4) == RM_INSUFFICIENT_PERMISSIONS);
  CHECK(tenants[1]->filtered == 4);
  int outside = bed_open(&nobody, 1);
  uint32_t second = new_client(&nobody, outside), theirs = 0;
  what.client = second;
  CHECK(do_alloc(&nobody, outside, what, &theirs) == RM_OK);
  /* Without a tenant, the driver decides. */
  CHECK(do_control(&nobody, outside, second, theirs, RM_GROUP_SET_INTERLEAVE, 4) == RM_OK);
  end();
}

static void test_weights(void) {
  begin(10 * MIB);
  unsigned char params[20];
  for (int i = 0; i < 20; i++) params[i] = (unsigned char)(i + 1);
  for (int rights = 0; rights < 2; rights++) {
    uint32_t group = 0;
    memcpy(arena + PARAMS, params, sizeof params);
    tenants[1]->weight = 75;
    struct alloc what = {.client = client, .parent = DEVICE, .class_number = RM_CLASS_GROUP, .rights = rights};
    CHECK(do_alloc(&one, fd, what, &group) == RM_OK && group != 0 && model_timeslice(&rm, client, group) == 768);
    CHECK(memcmp(arena + PARAMS, params, sizeof params) == 0 && get32(CALL) == client &&
          get32(CALL + 12) == RM_CLASS_GROUP);
    put64(PARAMS, 90000); /* a tenant's own setting is not forwarded */
    CHECK(do_control(&one, fd, client, group, RM_GROUP_SET_TIMESLICE, 8) == RM_OK &&
          model_timeslice(&rm, client, group) == 768);
    tenants[1]->weight = 1;
    CHECK(do_alloc(&one, fd, what, &group) == RM_OK && model_timeslice(&rm, client, group) == 50);
  }
  CHECK(tenants[1]->unweighted == 0);
  end();
}

/* Whether exactly one report came since the last look: of tenant 1, with these values. */
static int reported(uint32_t number, uint32_t status, uint64_t bytes) {
  static uint64_t seen;
  int one_more = bed_reported.count == seen + 1;
  seen = bed_reported.count;
  return one_more && bed_reported.tenant == tenants[1] && bed_reported.number == number &&
         bed_reported.status == status && bed_reported.bytes == bytes;
}

static void test_reports(void) {
  begin(MIB + 4095);
  uint32_t group = 0;
  reported(0, 0, 0);
  CHECK(take(&one, fd, client, 7, 4095) == RM_OK && reported(RM_ALLOC, RM_OK, 4096));
  CHECK(take(&one, fd, client, 8, 2 * MIB) == RM_NO_MEMORY && reported(RM_ALLOC, RM_NO_MEMORY, 2 * MIB));
  CHECK(take(&one, fd, client, 8, MIB - 1) == RM_NO_MEMORY && reported(RM_ALLOC, RM_NO_MEMORY, MIB)); /* undone */
  CHECK(do_heap(&one, fd, client, DEVICE, RM_HEAP_ALLOC_SIZE, 9, 4096) == RM_OK && reported(RM_HEAP, RM_OK, 4096));
  struct alloc what = {.client = client, .parent = DEVICE, .class_number = RM_CLASS_GROUP, .rights = 1};
  CHECK(do_alloc(&one, fd, what, &group) == RM_OK && !reported(0, 0, 0)); /* no memory, so no report */
  CHECK(do_control(&one, fd, client, group, RM_GROUP_SET_INTERLEAVE, 4) == RM_INSUFFICIENT_PERMISSIONS);
  CHECK(reported(RM_CONTROL, RM_INSUFFICIENT_PERMISSIONS, 0));
  end();
}

/* ---- turns ---- */

static uint32_t schedule(struct bed_process *process, int file, uint32_t root, uint32_t group, unsigned char on) {
  put64(PARAMS, on);
  return do_control(process, file, root, group, RM_GROUP_SCHEDULE, 2);
}

static int whole_read(void *self, void *into, uint64_t from, size_t size) {
  (void)self;
  memcpy(into, (void *)(uintptr_t)from, size);
  return 0;
}
static int whole_write(void *self, uint64_t into, const void *from, size_t size) {
  (void)self;
  memcpy((void *)(uintptr_t)into, from, size);
  return 0;
}

/* The descriptor of an open file; BED_FILES: the process does not have it. */
static int number_of(const struct bed_process *process, uint64_t id) {
  int file = 0;
  while (file < BED_FILES && (process->files[file] == NULL || process->files[file]->id != id)) file++;
  return file;
}

/* As in the kernel's worker, the driver's calls go through the tenant's own file. */
static int carry_turns_out(void) {
  struct vgpu_rm_turn turn;
  int more;
  while ((more = vgpu__turn_next(&book, &turn)) > 0) {
    int file = number_of(&one, turn.file);
    struct bed_process *whose = file < BED_FILES ? &one : &other;
    if (whose == &other) file = number_of(&other, turn.file);
    struct model_caller as = {.read = whole_read, .write = whole_write, .tag = whose->tag};
    unsigned char params[8] = {(unsigned char)turn.enable};
    uint64_t slice = turn.slice_us;
    uint64_t fields[4] = {(uint64_t)turn.group << 32 | turn.client, RM_GROUP_SCHEDULE, (uint64_t)(uintptr_t)params, 2};
    if (slice != 0) {
      memcpy(params, &slice, sizeof slice);
      fields[1] = RM_GROUP_SET_TIMESLICE;
      fields[3] = sizeof slice;
    }
    model_ioctl(&rm, &whose->files[file]->model, &as, vgpu__rm_word(RM_CONTROL, RM_CONTROL_SIZE),
                (uint64_t)(uintptr_t)fields);
    vgpu__turn_done(&book, &turn, fields[3] >> 32 != RM_OK);
  }
  return more;
}

static void schedule_nine(void) { CHECK(schedule(&one, fd, client, 9, 1) == RM_OK); }
static void hold_meanwhile(void) {
  book.held = 1;
  carry_turns_out();
}
static void meanwhile_hold(void) { keep_and(hold_meanwhile); }

static void test_turns(void) {
  begin(10 * MIB);
  int theirs = bed_open(&other, 1);
  uint32_t second = new_client(&other, theirs);
  tenants[1]->yields = 1;
  for (uint32_t handle = 7; handle < 10; handle++) CHECK(do_alloc(&one, fd, a_group(client, handle), NULL) == RM_OK);
  CHECK(do_alloc(&other, theirs, a_group(second, 7), NULL) == RM_OK && schedule(&other, theirs, second, 7, 1) == RM_OK);
  CHECK(schedule(&one, fd, client, 7, 1) == RM_OK && schedule(&one, fd, client, 8, 1) == RM_OK &&
        schedule(&one, fd, client, 8, 0) == RM_OK);
  CHECK(model_scheduled(&rm, 1) == 1 && model_scheduled(&rm, 2) == 1);

  book.held = 1;
  CHECK(carry_turns_out() == 0 && model_scheduled(&rm, 1) == 0 && model_scheduled(&rm, 2) == 1);
  CHECK(tenants[1]->stops == 2 && tenants[2]->stops == 0);
  uint64_t calls = rm.calls;
  CHECK(schedule(&one, fd, client, 7, 1) == RM_OK && schedule(&one, fd, client, 9, 1) == RM_OK); /* recorded */
  CHECK(rm.calls == calls && model_scheduled(&rm, 1) == 0);
  uint32_t copy = new_client(&one, fd);
  CHECK(do_dup(&one, fd, copy, DEVICE, 70, client, 7) == RM_INSUFFICIENT_PERMISSIONS); /* no second name for a group */
  CHECK(do_free(&one, fd, client, 9) == RM_OK);

  book.held = 0; /* given back as last requested: 7 runs, 8 does not */
  CHECK(carry_turns_out() == 0 && model_scheduled(&rm, 1) == 1 && tenants[1]->stopped == NULL);
  CHECK(schedule(&one, fd, client, 8, 1) == RM_OK && model_scheduled(&rm, 1) == 2);
  CHECK(do_alloc(&one, fd, a_group(client, 9), NULL) == RM_OK);

  bed_between = meanwhile_hold; /* the hold starts while a SCHEDULE is in progress */
  schedule_nine();
  CHECK(model_scheduled(&rm, 1) == 1 && book.restless);
  CHECK(carry_turns_out() == 0 && model_scheduled(&rm, 1) == 0 && !book.restless);

  rm.refuses = 4; /* failed calls are repeated, without delaying other tenants */
  book.held = 0;
  while (carry_turns_out() != 0) continue;
  CHECK(model_scheduled(&rm, 1) == 3 && tenants[1]->stuck == 0);
  book.held = 1;
  rm.refuses = 1;
  CHECK(carry_turns_out() == 0 && tenants[1]->unstopped == 1);
  book.held = 0;
  rm.refuses = 1000;
  while (carry_turns_out() != 0) continue; /* terminates */
  CHECK(tenants[1]->stuck == 3);
  end();
}

/* Tenants share the engine by their weights; one that is stopped has none of it. */
static void test_engine(void) {
  begin(10 * MIB);
  int theirs = bed_open(&other, 1);
  uint32_t second = new_client(&other, theirs);
  tenants[1]->weight = 75;
  tenants[2]->weight = 25;
  CHECK(do_alloc(&one, fd, a_group(client, 7), NULL) == RM_OK && schedule(&one, fd, client, 7, 1) == RM_OK);
  CHECK(do_alloc(&other, theirs, a_group(second, 7), NULL) == RM_OK && schedule(&other, theirs, second, 7, 1) == RM_OK);
  model_run(&rm, 1000000);
  CHECK(rm.ran_us[1] + rm.ran_us[2] == 1000000 && rm.ran_us[1] > 740000 && rm.ran_us[1] < 760000);
  tenants[2]->yields = 1;
  book.held = 1;
  CHECK(carry_turns_out() == 0);
  uint64_t before = rm.ran_us[2];
  model_run(&rm, 1000000);
  CHECK(rm.ran_us[2] - before <= 256); /* the rest of its slice, since this test does not preempt */
  before = rm.ran_us[2];
  model_run(&rm, 1000000);
  CHECK(rm.ran_us[2] == before);
  end();
}

static uint64_t slice_of(uint32_t root, uint32_t group) { return model_timeslice(&rm, root, group); }

/* A group on an engine: 1 is the first graphics engine, 9 the first copy engine. */
static void begin_group(struct bed_process *process, int file, uint32_t root, uint32_t handle, uint32_t engine) {
  put32(PARAMS + 12, engine);
  CHECK(do_alloc(process, file, a_group(root, handle), NULL) == RM_OK);
  CHECK(schedule(process, file, root, handle, 1) == RM_OK);
}

/* A tenant's channel groups on an engine divide the tenant's weight, in whichever processes they are. */
static void test_weights_of_tenants(void) {
  begin(10 * MIB);
  int theirs = bed_open(&other, 1), more = bed_open(&one, 1);
  uint32_t second = new_client(&other, theirs), third = new_client(&one, more);
  tenants[1]->weight = 25;
  tenants[2]->weight = 75;
  book.able = 1;
  begin_group(&one, fd, client, 7, 1);
  begin_group(&other, theirs, second, 7, 1);
  CHECK(carry_turns_out() == 0 && slice_of(client, 7) == 256 && slice_of(second, 7) == 768);
  begin_group(&one, fd, client, 8, 1);
  begin_group(&one, more, third, 7, 1); /* through another file */
  begin_group(&one, more, third, 8, 1);
  CHECK(carry_turns_out() == 0);
  CHECK(slice_of(client, 7) == 64 && slice_of(client, 8) == 64 && slice_of(third, 7) == 64 && slice_of(third, 8) == 64);
  model_run(&rm, 1000000);
  CHECK(rm.ran_us[2] > 740000 && rm.ran_us[2] < 760000);
  begin_group(&one, fd, client, 9, 9); /* another engine */
  CHECK(carry_turns_out() == 0 && slice_of(client, 9) == 256 && slice_of(client, 7) == 64);
  CHECK(do_free(&one, fd, client, 8) == RM_OK && carry_turns_out() == 0 && slice_of(client, 7) == 256 / 3);
  bed_close(&one, more); /* as when the process dies */
  CHECK(carry_turns_out() == 0 && slice_of(client, 7) == 256);
  vgpu__weight_set(&book, tenants[1], 50);
  CHECK(carry_turns_out() == 0 && slice_of(client, 7) == 512 && slice_of(client, 9) == 512 &&
        slice_of(second, 7) == 768);
  vgpu__weight_set(&book, tenants[1], 0); /* the driver's own slice again */
  CHECK(carry_turns_out() == 0 && slice_of(client, 7) == 1024);
  CHECK(tenants[1]->unweighted == 0 && tenants[2]->unweighted == 0);
  end();
}

/* Without a scheduler, only a new group has its part; the others get theirs once there is one. */
static void test_weights_later(void) {
  begin(10 * MIB);
  tenants[1]->weight = 50;
  begin_group(&one, fd, client, 7, 1);
  begin_group(&one, fd, client, 8, 1);
  CHECK(carry_turns_out() == 0 && slice_of(client, 7) == 512 && slice_of(client, 8) == 256);
  book.able = 1;
  CHECK(carry_turns_out() == 0 && slice_of(client, 7) == 256 && slice_of(client, 8) == 256);
  /* No slice is shorter than the driver's least one, whatever the number of groups. */
  for (uint32_t handle = 100; handle < 400; handle++) begin_group(&one, fd, client, handle, 1);
  CHECK(carry_turns_out() == 0 && slice_of(client, 7) == 50 && slice_of(client, 399) == 50);
  uint64_t calls = rm.calls;
  begin_group(&one, fd, client, 400, 1);
  CHECK(carry_turns_out() == 0 && rm.calls == calls + 3); /* created, weighed, scheduled: the others stay as they are */
  end();
}

static void test_sizes_shown(void) {
  static const uint32_t LAYOUTS[] = {436, 444, 460, 1028};
  begin(1000 * MIB);
  CHECK(take(&one, fd, client, 7, 600 * MIB) == RM_OK);
  for (int i = 0; i < 4; i++) {
    static const uint32_t INDICES[] = {0x07, 0x08, 0x09, 0x20, 0x16, 0x12, 0x05};
    rm.fb_info_size = LAYOUTS[i];
    put32(PARAMS, 7);
    for (size_t j = 0; j < 7; j++) put32(PARAMS + 4 + 8 * j, INDICES[j]);
    CHECK(do_control(&one, fd, client, SUBDEVICE, RM_FB_GET_INFO_V2, LAYOUTS[i]) == RM_OK);
    for (size_t j = 0; j < 7; j++) {
      uint32_t shown = get32(PARAMS + 8 + 8 * j);
      CHECK(shown == (j < 4 ? 1000u << 10 : j < 6 ? 400u << 10 : 256u << 10)); /* the last one is BAR1's */
    }
  }
  put32(PARAMS, UINT32_MAX);
  CHECK(do_control(&one, fd, client, SUBDEVICE, RM_FB_GET_INFO_V2, 1028) != RM_OK);
  CHECK(do_heap(&one, fd, client, DEVICE, RM_HEAP_INFO, 0, 0) == RM_OK);
  CHECK(get64(CALL + 24) == 1000 * MIB && get64(CALL + 32) == 400 * MIB);
  end();
}

static void test_versions(void) {
  static const unsigned KNOWN[] = {535, 550, 555, 560, 565, 570, 575, 580, 590, 595};
  for (int i = 0; i < 10; i++) {
    struct vgpu_rm_abi abi = vgpu__rm_abi(KNOWN[i]);
    CHECK(abi.branch == KNOWN[i] && abi.schedule_size == (KNOWN[i] < 575 ? 2 : 3));
  }
  for (unsigned branch = 0; branch < 1000; branch++) {
    int known = 0;
    for (int i = 0; i < 10; i++) known |= KNOWN[i] == branch;
    CHECK((vgpu__rm_abi(branch).branch != 0) == known);
  }
  CHECK(vgpu__rm_version("580.95.05", 9) == (580u << 16 | 95));
  CHECK(vgpu__rm_version("", 0) == 0 && vgpu__rm_version("580", 3) == 0 && vgpu__rm_version("x.1", 3) == 0);
}

static const struct {
  const char *name;
  void (*run)(void);
} TESTS[] = {
    {"charged", test_charged},
    {"both-forms", test_both_forms},
    {"rounding-undone", test_rounding_undone},
    {"limits", test_limits},
    {"trees", test_trees},
    {"duplicates", test_duplicates},
    {"tied-files", test_tied_files},
    {"tenant-removed", test_tenant_removed},
    {"params-size-is-not-believed", test_params_size_is_not_believed},
    {"freeing-what-is-not-there", test_freeing_what_is_not_there},
    {"other-bits-of-the-word", test_other_bits_of_the_word},
    {"behind-another-call", test_behind_another_call},
    {"files-never-seen", test_files_never_seen},
    {"answer-cannot-be-written", test_answer_cannot_be_written},
    {"size-of-a-lost-answer", test_size_of_a_lost_answer},
    {"number-taken-over-unseen", test_number_taken_over_unseen},
    {"number-claimed-unseen", test_number_claimed_unseen},
    {"arguments-over-one-another", test_arguments_over_one_another},
    {"arguments-that-change", test_arguments_that_change},
    {"old-forms-of-memory", test_old_forms_of_memory},
    {"handles-of-others", test_handles_of_others},
    {"passed-file", test_passed_file},
    {"tenant-replaced", test_tenant_replaced},
    {"overlapping-calls", test_overlapping_calls},
    {"filters", test_filters},
    {"weights", test_weights},
    {"reports", test_reports},
    {"turns", test_turns},
    {"engine", test_engine},
    {"weights-of-tenants", test_weights_of_tenants},
    {"weights-later", test_weights_later},
    {"sizes-shown", test_sizes_shown},
    {"versions", test_versions},
};

int main(int count, char **names) {
  for (size_t i = 0; i < sizeof TESTS / sizeof *TESTS; i++) {
    int wanted = count == 1, before = failures;
    for (int j = 1; j < count; j++) wanted |= strcmp(names[j], TESTS[i].name) == 0;
    if (!wanted) continue;
    TESTS[i].run();
    if (failures == before) printf("ok   %s\n", TESTS[i].name);
    fflush(stdout);
  }
  return failures != 0;
}
