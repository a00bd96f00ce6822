/* The core on the model of the resource manager: calls made to deceive it, and the handles and files of others. */
#include "test_core.h"

void test_answer_cannot_be_written(void) {
  begin(10 * MIB);
  CHECK(take(&one, fd, client, 7, 4 * MIB) == RM_OK);
  struct alloc what = {
      .client = client, .parent = DEVICE, .handle = 8, .class_number = 0x40, .bytes = 4 * MIB, .call = 64};
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
void test_size_of_a_lost_answer(void) {
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
void test_number_taken_over_unseen(void) {
  begin(20 * MIB);
  uint32_t mine = new_client(&one, fd);
  CHECK(take(&one, fd, client, 7, MIB) == RM_OK);
  const uint32_t freed[4] = {client, 0, client, UINT32_MAX};
  memcpy(arena + 64, freed, sizeof freed);
  CHECK(bed_ioctl(&one, fd, vgpu__rm_word(RM_FREE, RM_FREE_SIZE), bed_at(64)) == VGPU_RM_FAULT && rm.held[1] == 0);
  int theirs = bed_open(&other, 1);
  CHECK(do_alloc(&other, theirs, (struct alloc){.handle = client, .class_number = 0x41, .call = 64}, NULL) ==
        UINT32_MAX);
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
void test_number_claimed_unseen(void) {
  begin(20 * MIB);
  uint32_t mine = new_client(&one, fd);
  CHECK(take(&one, fd, client, 7, MIB) == RM_OK);
  int theirs = bed_open(&other, 1);
  CHECK(do_alloc(&other, theirs, (struct alloc){.handle = client, .class_number = 0x41, .call = 64}, NULL) ==
        UINT32_MAX);
  CHECK(do_dup(&one, fd, mine, DEVICE, 9, client, 7) == RM_OK && used(1) == MIB);
  other.number = one.number;
  uint32_t second = new_client(&other, theirs);
  CHECK(do_dup(&other, theirs, second, DEVICE, 9, client, 7) == RM_INVALID_CLIENT && used(2) == 0);
  CHECK(do_free(&one, fd, client, 7) == RM_OK && do_free(&one, fd, mine, 9) == RM_OK && used(1) == 0);
  end();
}

void test_arguments_over_one_another(void) {
  begin(10 * MIB);
  for (size_t params = CALL - 96; params <= CALL + 8; params += 8) {
    struct alloc what = {
        .client = client, .parent = DEVICE, .handle = 7, .class_number = 0x40, .bytes = 4096, .params = params};
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
void test_arguments_that_change(void) {
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

static void free_another(void) { put32(CALL + 8, 12345); }
enum { OTHER_DEVICE = 0x5c000009, OTHER_CALL = CALL + 1024, OTHER_PARAMS = PARAMS + 1024 };
static void below_the_other_device(void) { put32(CALL + 4, OTHER_DEVICE); }
static void with_other_params(void) {
  put64(OTHER_PARAMS + 64, 8 * MIB);
  put64(CALL + 16, spot(OTHER_PARAMS));
}
static void tie_to_the_usual(void) { put32(CALL, (uint32_t)fd); }
static void duplicate_eight(void) { put32(CALL + 16, 8); }
static void call_elsewhere(void) { put64(OUTER + 8, spot(OTHER_CALL)); }
static void ask_for_more_and_undo_another(void) {
  ask_for_more();
  bed_between = free_another;
}

/* Another thread names another object, another parent, other parameters or another call between the check and the
 * driver. What the driver then holds is charged. */
void test_names_that_change(void) {
  begin(10 * MIB);
  CHECK(take(&one, fd, client, 7, 4 * MIB) == RM_OK);
  bed_between = free_another; /* the driver reports success for a handle that it does not know */
  CHECK(do_free(&one, fd, client, 7) == RM_OK && rm.held[1] == 4 * MIB && used(1) == 4 * MIB);
  CHECK(tenants[1]->changed == 1 && do_free(&one, fd, client, 7) == RM_OK && used(1) == 0);

  struct alloc device = {.client = client, .parent = client, .handle = OTHER_DEVICE, .class_number = 0x80};
  CHECK(do_alloc(&one, fd, device, NULL) == RM_OK);
  bed_between = below_the_other_device;
  CHECK(take(&one, fd, client, 7, 4 * MIB) == RM_OK && tenants[1]->changed == 2);
  CHECK(do_free(&one, fd, client, DEVICE) == RM_OK && rm.held[1] == 4 * MIB && used(1) == 4 * MIB);
  end();

  begin(10 * MIB);
  bed_between = with_other_params;
  CHECK(take(&one, fd, client, 7, MIB) == RM_OK && rm.held[1] == 8 * MIB && used(1) == 8 * MIB);
  CHECK(do_free(&one, fd, client, 7) == RM_OK && used(1) == 0);

  uint32_t copies = new_client(&one, fd);
  CHECK(take(&one, fd, client, 7, MIB) == RM_OK && take(&one, fd, client, 8, 8 * MIB) == RM_OK);
  bed_between = duplicate_eight;
  CHECK(do_dup(&one, fd, copies, DEVICE, 9, client, 7) == RM_OK);
  CHECK(do_free(&one, fd, client, client) == RM_OK && rm.held[1] == 8 * MIB && used(1) >= rm.held[1]);
  bed_close(&one, fd);
  CHECK(used(1) == 0);
  end();

  begin(10 * MIB);
  int card = bed_open(&one, 0), late = bed_open(&one, 1);
  bed_between = tie_to_the_usual;
  CHECK(do_register(&one, card, late) == 0 && tenants[1]->changed == 1);
  uint32_t tied = new_client(&one, card);
  CHECK(take(&one, card, tied, 7, 4 * MIB) == RM_OK);
  bed_close(&one, late);
  bed_close(&one, card); /* the client belongs to the file that the driver tied it to */
  CHECK(rm.held[1] == 4 * MIB && used(1) == 4 * MIB);
  CHECK(do_free(&one, fd, tied, 7) == RM_OK && used(1) == 0);
  end();

  begin(10 * MIB);
  struct alloc what = {.client = client, .parent = DEVICE, .handle = 7, .class_number = 0x40, .bytes = 4 * MIB};
  CHECK(do_alloc(&one, fd, what, NULL) == RM_OK && do_free(&one, fd, client, 7) == RM_OK);
  what.call = OTHER_CALL;
  CHECK(do_alloc(&one, fd, what, NULL) == RM_OK && do_free(&one, fd, client, 7) == RM_OK && used(1) == 0);
  memcpy(arena + CALL, arena + OTHER_CALL, 32); /* a call again: do_free was made there */
  put32(CALL + 28, RM_NO_MEMORY);               /* the answer that is found where the call was */
  put32(OUTER, RM_ALLOC);
  put32(OUTER + 4, 32);
  put64(OUTER + 8, spot(CALL));
  bed_between = call_elsewhere;
  CHECK(bed_ioctl(&one, fd, vgpu__rm_word(RM_XFER, 16), spot(OUTER)) == 0 && get32(OTHER_CALL + 28) == RM_OK);
  CHECK(rm.held[1] == 4 * MIB && used(1) == 4 * MIB);
  CHECK(do_free(&one, fd, client, 7) == RM_OK && used(1) == 0);

  bed_between = ask_for_more_and_undo_another;
  take(&one, fd, client, 7, MIB);
  CHECK(rm.held[1] == 20 * MIB && used(1) == 20 * MIB && tenants[1]->over == 1 && tenants[1]->undone == 0);
  CHECK(do_free(&one, fd, client, 7) == RM_OK && used(1) == 0);
  end();
}

static void ask_for_more_as_eight(void) {
  ask_for_more();
  put32(CALL + 8, 8);
}
static void spoil_the_undoing(void) { put32(CALL, 0); }
static void ask_for_more_and_spoil(void) {
  ask_for_more();
  bed_between = spoil_the_undoing;
}

/* What another thread got past the limit, and hindered from being undone, is charged in full until it is freed, or the
 * file is closed. */
void test_over_the_limit(void) {
  begin(10 * MIB);
  bed_between = ask_for_more_and_spoil;
  CHECK(take(&one, fd, client, 7, MIB) == RM_OK && rm.held[1] == 20 * MIB && used(1) == 20 * MIB);
  CHECK(tenants[1]->over == 1 && tenants[1]->undone == 0);
  CHECK(take(&one, fd, client, 8, 1) == RM_NO_MEMORY);
  CHECK(do_free(&one, fd, client, 7) == RM_OK && rm.held[1] == 0 && used(1) == 0);
  CHECK(take(&one, fd, client, 7, 10 * MIB) == RM_OK && do_free(&one, fd, client, 7) == RM_OK);
  bed_between = ask_for_more_as_eight; /* the driver reports success for a handle that it does not know */
  take(&one, fd, client, 7, MIB);
  CHECK(rm.held[1] == 20 * MIB && used(1) == 20 * MIB && tenants[1]->over == 2 && tenants[1]->changed == 1);
  CHECK(take(&one, fd, client, 9, 1) == RM_NO_MEMORY);
  CHECK(do_free(&one, fd, client, 8) == RM_OK && rm.held[1] == 0 && used(1) == 20 * MIB); /* too high, not too low */
  bed_exit(&one);
  CHECK(used(1) == 0 && tenants[1]->objects == 0);
  end();
}

void test_old_forms_of_memory(void) {
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
    struct alloc what = {
        .client = client, .parent = DEVICE, .handle = 7, .class_number = DENIED_CLASSES[i], .bytes = 4096};
    CHECK(do_alloc(&one, fd, what, NULL) == RM_INSUFFICIENT_PERMISSIONS);
  }
  end();
}

/* Handles of other tenants. The driver rejects most of them, but does not check the list of channels. */
void test_handles_of_others(void) {
  begin(10 * MIB);
  int theirs = bed_open(&other, 1);
  uint32_t second = new_client(&other, theirs);
  CHECK(take(&other, theirs, second, 7, MIB) == RM_OK);
  CHECK(take(&one, fd, second, 8, MIB) == RM_INVALID_CLIENT && used(1) == 0 && used(2) == MIB);
  CHECK(do_free(&one, fd, second, 7) == RM_INVALID_CLIENT && used(2) == MIB);
  one.number = other.number; /* as if the driver considered them one process */
  CHECK(do_dup(&one, fd, client, DEVICE, 9, second, 7) == RM_INVALID_CLIENT);
  CHECK(new_group(&one, fd, client, 50) == RM_OK && new_channel(&one, fd, client, 50, CHANNEL_OF + 51) == RM_OK);
  CHECK(new_group(&other, theirs, second, 50) == RM_OK && schedule(&other, theirs, second, 50, 1) == RM_OK);
  CHECK(disable_channels(&one, fd, client, CHANNEL_OF + 50, 2, 1) == RM_OK);
  put32(PARAMS + 28, second);
  put32(PARAMS + 284, CHANNEL_OF + 50);
  uint64_t calls = rm.calls;
  CHECK(do_control(&one, fd, client, SUBDEVICE, RM_DISABLE_CHANNELS, 536) == RM_INVALID_CLIENT && rm.calls == calls);
  int outside = bed_open(&nobody, 1);
  uint32_t third = new_client(&nobody, outside);
  put32(PARAMS + 24, third);
  CHECK(do_control(&nobody, outside, third, SUBDEVICE, RM_DISABLE_CHANNELS, 536) == RM_INVALID_CLIENT);
  CHECK(model_running(&rm, 2) == 1);
  end();
}

/* A file that a process of another tenant was passed, or has taken: it gets nothing in the client that is there, and
 * pays for a client of its own. */
void test_passed_file(void) {
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
  CHECK(take(&one, fd, own, 9, 1) == RM_INVALID_CLIENT);                       /* and the other way round */
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

static struct vgpu_rm_object *enter(struct vgpu_rm_book *into, struct vgpu_rm_tenant *tenant, uint32_t handle,
                                    uint64_t file) {
  return vgpu__client_enter(into, into->heap.make(sizeof(struct vgpu_rm_object)), tenant, handle, file, 0, 1);
}

/* A tenant with very many clients: neither its own files nor those of others take long to close. If each client or file
 * were searched for, this would take an hour, and the limit of time of all tests would end it. */
void test_many_clients(void) {
  enum { MANY = 200000 };
  struct vgpu_rm_book full;
  begin(10 * MIB);
  CHECK(vgpu__book_begin(&full, &book.heap, 65536, 54321) == 0);
  for (uint32_t i = 1; i <= MANY; i++) enter(&full, tenants[1], i, 1);            /* of one file */
  for (uint32_t i = 1; i <= MANY; i++) enter(&full, tenants[2], MANY + i, 1 + i); /* of a file each */
  CHECK(tenants[1]->objects == MANY + 3 && tenants[2]->objects == MANY);
  vgpu__file_closed(&full, 1);
  CHECK(tenants[1]->objects == 3 && full.objects == MANY);
  for (uint32_t i = 1; i <= MANY; i++) vgpu__file_closed(&full, 1 + i);
  CHECK(tenants[2]->objects == 0 && full.objects == 0 && full.clients == NULL);
  vgpu__book_end(&full);
  end();
}

static int closing;
static void name_it_again(void) { put32(CALL, (uint32_t)closing); }
static void close_and_name_another(void) {
  bed_meanwhile = name_it_again;
  put32(CALL, (uint32_t)fd);
  bed_close(&one, closing);
}

/* The descriptor of a REGISTER_FD changes between the check and the driver, and what it meant is closed. The driver
 * does not keep that file open, so the ledger must not refer to it. */
void test_tie_to_a_closed_file(void) {
  begin(10 * MIB);
  int card = bed_open(&one, 0);
  uint64_t id = one.files[card]->id;
  closing = bed_open(&one, 1);
  uint64_t closed = one.files[closing]->id;
  bed_between = close_and_name_another;
  CHECK(do_register(&one, card, closing) == 0 && vgpu__file_owner(&book, id) == id && book.tied == 0);
  new_client(&one, card);
  bed_close(&one, card);
  for (const struct vgpu_rm_object *at = book.clients; at != NULL; at = at->places[IN_BOOK].next)
    CHECK(at->file != closed && at->owner != closed);
  end();
}

/* A client whose tenant is gone, or has another cgroup now, stays with it. */
void test_tenant_replaced(void) {
  begin(10 * MIB);
  CHECK(take(&one, fd, client, 7, 4 * MIB) == RM_OK);
  struct vgpu_rm_tenant *gone = tenants[1];
  vgpu__tenant_remove(&book, gone);
  one.key = 2; /* its cgroup has another tenant */
  CHECK(take(&one, fd, client, 8, 6 * MIB) == RM_OK && gone->used == 10 * MIB && used(2) == 0);
  CHECK(take(&one, fd, client, 9, 1) == RM_NO_MEMORY);
  end();
}
