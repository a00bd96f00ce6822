/* The core on the model of the resource manager: filters, weights, reported sizes, turns and versions. */
#include "test_core.h"

/* ---- filters, weights, reported sizes ---- */

void test_filters(void) {
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

void test_weights(void) {
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

void test_reports(void) {
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

void test_turns(void) {
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

static void hold(int on) {
  book.held = on;
  book.round++;
}

/* The driver refuses to stop groups: the tenant is not called stopped, and each scheduler message tries again. */
void test_refused_stops(void) {
  begin(10 * MIB);
  tenants[1]->yields = 1;
  for (uint32_t handle = 7; handle < 10; handle++) {
    CHECK(do_alloc(&one, fd, a_group(client, handle), NULL) == RM_OK && schedule(&one, fd, client, handle, 1) == RM_OK);
  }
  rm.refuses = 2;
  hold(1);
  CHECK(carry_turns_out() == 0 && model_scheduled(&rm, 1) == 2);
  CHECK(tenants[1]->stops == 3 && tenants[1]->unstopped == 2 && tenants[1]->resisting == 2);
  CHECK(!vgpu__is_stopped(&book, tenants[1]) && vgpu__owes_groups(tenants[1]));
  uint64_t calls = rm.calls;
  CHECK(carry_turns_out() == 0 && rm.calls == calls); /* not again in the same round */
  CHECK(schedule(&one, fd, client, 7, 0) == RM_OK && rm.calls == calls); /* recorded */
  rm.refuses = 1;
  hold(1);
  CHECK(carry_turns_out() == 0 && rm.calls == calls + 2 && model_scheduled(&rm, 1) == 1 && tenants[1]->resisting == 1);
  hold(1);
  CHECK(carry_turns_out() == 0 && rm.calls == calls + 3 && model_scheduled(&rm, 1) == 0 && tenants[1]->resisting == 0);
  CHECK(tenants[1]->stops == 3 && tenants[1]->unstopped == 3 && vgpu__is_stopped(&book, tenants[1]));
  hold(0); /* given back as last requested */
  CHECK(carry_turns_out() == 0 && model_scheduled(&rm, 1) == 2 && !vgpu__owes_groups(tenants[1]));

  /* A refused stop may have been executed in part, so the group is started when the hold ends. */
  rm.refuses = 1000;
  hold(1);
  CHECK(carry_turns_out() == 0 && tenants[1]->resisting == 3 && !vgpu__is_stopped(&book, tenants[1]));
  CHECK(do_free(&one, fd, client, 8) == RM_OK && tenants[1]->resisting == 2);
  calls = rm.calls;
  hold(0);
  rm.refuses = 0;
  CHECK(carry_turns_out() == 0 && rm.calls == calls + 2 && tenants[1]->resisting == 0 && tenants[1]->stuck == 0);
  CHECK(!vgpu__is_stopped(&book, tenants[1]) && !vgpu__owes_groups(tenants[1]));
  rm.refuses = 1000;
  hold(1);
  CHECK(carry_turns_out() == 0 && tenants[1]->resisting == 2);
  bed_close(&one, fd);
  CHECK(tenants[1]->resisting == 0 && !vgpu__owes_groups(tenants[1]));
  end();
}

/* Tenants share the engine by their weights; one that is stopped has none of it. */
void test_engine(void) {
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
void test_weights_of_tenants(void) {
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
void test_weights_later(void) {
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

void test_sizes_shown(void) {
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

void test_versions(void) {
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
