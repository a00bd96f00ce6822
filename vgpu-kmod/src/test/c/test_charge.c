/*
 * The core on the model of the resource manager: what is charged, what frees it, and calls that are easily accounted
 * wrongly.
 */
#include "test_core.h"

void test_charged(void) {
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

void test_both_forms(void) {
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

void test_rounding_undone(void) {
  begin(MIB + 4095);
  CHECK(take(&one, fd, client, 7, 4095) == RM_OK && used(1) == 4096); /* charged in the driver's granularity */
  CHECK(take(&one, fd, client, 8, MIB - 1) == RM_NO_MEMORY);          /* fits as requested, but not as rounded */
  CHECK(used(1) == 4096 && rm.held[1] == 4096 && tenants[1]->undone == 1 && tenants[1]->over == 0);
  CHECK(do_free(&one, fd, client, 8) == RM_OK && used(1) == 4096);
  CHECK(do_heap(&one, fd, client, DEVICE, RM_HEAP_ALLOC_SIZE, 0x77, MIB - 1) == RM_NO_MEMORY && rm.held[1] == 4096);
  CHECK(take(&one, fd, client, 8, MIB - 65536) == RM_OK && used(1) == MIB - 65536 + 4096);
  end();
}

void test_limits(void) {
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
  CHECK(do_alloc(&one, fd, (struct alloc){.client = client, .parent = DEVICE, .class_number = 0x50a0}, NULL) ==
        RM_INSUFFICIENT_RESOURCES);
  end();
}

/* ---- what frees ---- */

void test_trees(void) {
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

void test_duplicates(void) {
  begin(10 * MIB);
  uint32_t second = new_client(&one, fd);
  CHECK(take(&one, fd, client, 7, 8 * MIB) == RM_OK);
  CHECK(do_dup(&one, fd, second, DEVICE, 70, client, 7) == RM_OK && used(1) == 8 * MIB);
  CHECK(do_free(&one, fd, client, client) == RM_OK && used(1) == 8 * MIB && rm.held[1] == 8 * MIB);
  CHECK(take(&one, fd, second, 8, 4 * MIB) == RM_NO_MEMORY);
  CHECK(do_free(&one, fd, second, 70) == RM_OK && used(1) == 0 && rm.held[1] == 0);
  end();
}

void test_tied_files(void) {
  begin(10 * MIB);
  int card = bed_open(&one, 0), late = bed_open(&one, 1);
  CHECK(do_register(&one, card, late) == 0);
  CHECK(do_register(&one, card, fd) != 0);  /* a second tie */
  uint32_t second = new_client(&one, card); /* belongs to the file that it is tied to */
  CHECK(take(&one, late, second, 7, MIB) == RM_OK && used(1) == MIB);
  bed_close(&one, late); /* kept open by the tie */
  CHECK(used(1) == MIB && rm.held[1] == MIB);
  bed_close(&one, card);
  CHECK(used(1) == 0 && rm.held[1] == 0);
  end();
}

void test_tenant_removed(void) {
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

void test_params_size_is_not_believed(void) {
  static const uint32_t SIZES[] = {0, 64, 72, 120, 128, 4096, UINT32_MAX};
  begin(100 * MIB);
  for (uint32_t i = 0; i < 7; i++) {
    struct alloc what = {.client = client,
                         .parent = DEVICE,
                         .handle = 70 + i,
                         .class_number = 0x40,
                         .bytes = MIB,
                         .params_size = SIZES[i]};
    CHECK(do_alloc(&one, fd, what, NULL) == RM_OK && used(1) == (i + 1) * MIB);
  }
  end();
}

void test_freeing_what_is_not_there(void) {
  begin(10 * MIB);
  CHECK(take(&one, fd, client, 7, 4 * MIB) == RM_OK);
  CHECK(do_free(&one, fd, client, 12345) == RM_OK && used(1) == 4 * MIB); /* the driver reports success */
  CHECK(do_free(&one, fd, client, 7) == RM_OK && used(1) == 0);
  CHECK(do_free(&one, fd, client, 7) == RM_OK && used(1) == 0);
  CHECK(do_free(&one, fd, client + 99, 7) == RM_INVALID_CLIENT);
  end();
}

void test_other_bits_of_the_word(void) {
  begin(10 * MIB);
  struct alloc what = {
      .client = client, .parent = DEVICE, .handle = 7, .class_number = 0x40, .bytes = 4 * MIB, .direction = 'X' << 8};
  CHECK(do_alloc(&one, fd, what, NULL) == RM_OK && used(1) == 4 * MIB);
  what.handle = 8;
  what.direction = 2u << 30 | 0xff00;
  CHECK(do_alloc(&one, fd, what, NULL) == RM_OK && used(1) == 8 * MIB);
  what.handle = 9;
  CHECK(do_alloc(&one, fd, what, NULL) == RM_NO_MEMORY && used(1) == 8 * MIB);
  end();
}

void test_behind_another_call(void) {
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
void test_files_never_seen(void) {
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

/* The calls of nvidia-uvm have plain numbers (UVM_INITIALIZE to UVM_MM_INITIALIZE). Some end like the resource
 * manager's own, such as 42 and 43. None is an allocation: managed memory is neither charged nor refused, and memory
 * that is mapped for the GPU (33) is not charged a second time. */
void test_managed_memory(void) {
  static const uint32_t NUMBERS[] = {0x30000001, 0x30000002, 23, 24, 25, 27, 31, 33, 34, 37, 39,
                                     41,         42,         43, 51, 52, 66, 68, 72, 73, 74, 75};
  begin(10 * MIB);
  CHECK(take(&one, fd, client, 7, 10 * MIB) == RM_OK && used(1) == 10 * MIB);
  for (size_t i = 0; i < sizeof NUMBERS / sizeof *NUMBERS; i++) {
    for (int full = 0; full < 2; full++) {
      /* What it points at looks like an allocation: within the quota, then beyond it. */
      struct alloc what = {.client = client, .parent = DEVICE, .handle = 8, .class_number = 0x40, .bytes = MIB};
      if (!full) tenants[1]->limit = 20 * MIB;
      put32(CALL, what.client);
      put32(CALL + 4, what.parent);
      put32(CALL + 8, what.handle);
      put32(CALL + 12, what.class_number);
      put64(CALL + 16, spot(PARAMS));
      put64(PARAMS + 64, what.bytes);
      uint64_t calls = rm.calls, objects = tenants[1]->objects;
      bed_ioctl(&one, fd, NUMBERS[i], spot(CALL));
      CHECK(rm.calls == calls + 1 && used(1) == 10 * MIB && tenants[1]->objects == objects);
      CHECK(tenants[1]->refused == 0 && tenants[1]->filtered == 0);
      tenants[1]->limit = 10 * MIB;
    }
  }
  end();
}
