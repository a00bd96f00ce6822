/* The core on the model of the resource manager: filters, weights, reported sizes and versions. */
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
  put32(PARAMS, 2); /* without a tenant, the driver decides */
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
    CHECK(do_alloc(&one, fd, what, &group) == RM_OK && group != 0 && model_timeslice(&rm, client, group) == 6144);
    CHECK(memcmp(arena + PARAMS, params, sizeof params) == 0 && get32(CALL) == client &&
          get32(CALL + 12) == RM_CLASS_GROUP);
    put64(PARAMS, 90000); /* a tenant's own setting is not forwarded */
    CHECK(do_control(&one, fd, client, group, RM_GROUP_SET_TIMESLICE, 8) == RM_OK &&
          model_timeslice(&rm, client, group) == 6144);
    tenants[1]->weight = 1;
    CHECK(do_alloc(&one, fd, what, &group) == RM_OK && model_timeslice(&rm, client, group) == 81);
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

/* ---- the engine ---- */

/* Tenants share the engine by their weights; one that is stopped has none of it. */
void test_engine(void) {
  begin(10 * MIB);
  int theirs = bed_open(&other, 1);
  uint32_t second = new_client(&other, theirs);
  tenants[1]->weight = 75;
  tenants[2]->weight = 25;
  CHECK(new_group(&one, fd, client, 7) == RM_OK && schedule(&one, fd, client, 7, 1) == RM_OK);
  CHECK(new_group(&other, theirs, second, 7) == RM_OK && schedule(&other, theirs, second, 7, 1) == RM_OK);
  model_run(&rm, 1000000);
  CHECK(rm.ran_us[1] + rm.ran_us[2] == 1000000 && rm.ran_us[1] > 740000 && rm.ran_us[1] < 760000);
  tenants[2]->yields = 1;
  book.held = 1;
  CHECK(carry_turns_out() == 0);
  uint64_t before = rm.ran_us[2];
  model_run(&rm, 1000000);
  CHECK(rm.ran_us[2] == before);
  end();
}

static uint64_t slice_of(uint32_t root, uint32_t group) { return model_timeslice(&rm, root, group); }

/* A group on an engine: 1 is the first graphics engine, 9 the first copy engine. */
static void begin_group(struct bed_process *process, int file, uint32_t root, uint32_t handle, uint32_t engine) {
  put32(PARAMS + 12, engine);
  CHECK(new_group(process, file, root, handle) == RM_OK);
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
  CHECK(carry_turns_out() == 0 && slice_of(client, 7) == 2048 && slice_of(second, 7) == 6144);
  begin_group(&one, fd, client, 8, 1);
  begin_group(&one, more, third, 7, 1); /* through another file */
  begin_group(&one, more, third, 8, 1);
  CHECK(carry_turns_out() == 0);
  CHECK(slice_of(client, 7) == 512 && slice_of(client, 8) == 512);
  CHECK(slice_of(third, 7) == 512 && slice_of(third, 8) == 512);
  model_run(&rm, 1000000);
  CHECK(rm.ran_us[2] > 740000 && rm.ran_us[2] < 760000);
  begin_group(&one, fd, client, 9, 9); /* another engine */
  CHECK(carry_turns_out() == 0 && slice_of(client, 9) == 2048 && slice_of(client, 7) == 512);
  CHECK(do_free(&one, fd, client, 8) == RM_OK && carry_turns_out() == 0 && slice_of(client, 7) == 2048 / 3);
  bed_close(&one, more); /* as when the process dies */
  CHECK(carry_turns_out() == 0 && slice_of(client, 7) == 2048);
  vgpu__weight_set(&book, tenants[1], 50);
  CHECK(carry_turns_out() == 0 && slice_of(client, 7) == 4096 && slice_of(client, 9) == 4096 &&
        slice_of(second, 7) == 6144);
  vgpu__weight_set(&book, tenants[1], 0); /* the driver's own slice again */
  CHECK(carry_turns_out() == 0 && slice_of(client, 7) == 1024);
  CHECK(tenants[1]->unweighted == 0 && tenants[2]->unweighted == 0);
  end();
}

static int set_slice(uint32_t group, uint64_t us) {
  put64(PARAMS, us);
  return do_control(&one, fd, client, group, RM_GROUP_SET_TIMESLICE, 8) == RM_OK;
}

/* A group without a weight has the time slice that its program has last asked for, as CUDA does after SCHEDULE. */
void test_own_slices(void) {
  begin(10 * MIB);
  book.able = 1;
  begin_group(&one, fd, client, 7, 1);
  begin_group(&one, fd, client, 8, 1);
  CHECK(set_slice(7, 2048) && slice_of(client, 7) == 2048 && tenants[1]->filtered == 0);
  vgpu__weight_set(&book, tenants[1], 50);
  CHECK(carry_turns_out() == 0 && slice_of(client, 7) == 2048 && slice_of(client, 8) == 2048);
  CHECK(set_slice(8, 3000) && carry_turns_out() == 0 && slice_of(client, 8) == 2048 && tenants[1]->filtered == 1);
  CHECK(set_slice(8, 0) && set_slice(8, UINT64_MAX)); /* no slices of any driver */
  vgpu__weight_set(&book, tenants[1], 100);
  CHECK(carry_turns_out() == 0 && slice_of(client, 7) == 4096 && slice_of(client, 8) == 4096);
  vgpu__weight_set(&book, tenants[1], 0);
  CHECK(carry_turns_out() == 0 && slice_of(client, 7) == 2048 && slice_of(client, 8) == 3000);
  begin_group(&one, fd, client, 9, 1);
  CHECK(carry_turns_out() == 0 && slice_of(client, 9) == 1024 && slice_of(client, 8) == 3000);
  CHECK(tenants[1]->unweighted == 0);
  end();
}

/* Without a scheduler, only a new group has its part; the others get theirs once there is one. */
void test_weights_later(void) {
  begin(10 * MIB);
  tenants[1]->weight = 50;
  begin_group(&one, fd, client, 7, 1);
  begin_group(&one, fd, client, 8, 1);
  CHECK(carry_turns_out() == 0 && slice_of(client, 7) == 4096 && slice_of(client, 8) == 2048);
  book.able = 1;
  CHECK(carry_turns_out() == 0 && slice_of(client, 7) == 2048 && slice_of(client, 8) == 2048);
  /* No slice is shorter than the driver's least one, whatever the number of groups. */
  for (uint32_t handle = 100; handle < 400; handle++) begin_group(&one, fd, client, handle, 1);
  CHECK(carry_turns_out() == 0 && slice_of(client, 7) == 50 && slice_of(client, 399) == 50);
  uint64_t calls = rm.calls;
  begin_group(&one, fd, client, 400, 1);
  CHECK(carry_turns_out() == 0 && rm.calls == calls + 4); /* the group, its slice, its channel, SCHEDULE: no other's */
  end();
}

/* A time slice that the driver refused is set again when the tenant schedules the group. */
void test_weights_refused(void) {
  begin(10 * MIB);
  tenants[1]->weight = 50;
  rm.refuses_slices = 1;
  begin_group(&one, fd, client, 7, 1);
  CHECK(slice_of(client, 7) == 1024 && tenants[1]->unweighted == 1);
  book.able = 1;
  CHECK(carry_turns_out() == 0 && slice_of(client, 7) == 4096);
  rm.refuses_slices = 1;
  vgpu__weight_set(&book, tenants[1], 25);
  carry_turns_out();
  CHECK(slice_of(client, 7) == 4096 && tenants[1]->unweighted == 2);
  CHECK(schedule(&one, fd, client, 7, 1) == RM_OK && carry_turns_out() == 0 && slice_of(client, 7) == 2048);
  /* One that is always refused is tried once for each request. */
  rm.refuses_slices = 1000;
  vgpu__weight_set(&book, tenants[1], 100);
  carry_turns_out();
  CHECK(schedule(&one, fd, client, 7, 1) == RM_OK);
  carry_turns_out();
  CHECK(rm.refuses_slices == 998 && slice_of(client, 7) == 2048);
  end();
}

/* A group whose answer could not be written gets its time slice with its first SCHEDULE. */
void test_weights_of_a_lost_answer(void) {
  begin(10 * MIB);
  tenants[1]->weight = 50;
  book.able = 1;
  put32(PARAMS + 12, 1);
  struct alloc what = a_group(client, 7);
  what.call = 64; /* read-only */
  CHECK(do_alloc(&one, fd, what, NULL) == UINT32_MAX && slice_of(client, 7) == 1024 && tenants[1]->unweighted == 1);
  CHECK(new_channel(&one, fd, client, 7, CHANNEL_OF + 7) == RM_OK && schedule(&one, fd, client, 7, 1) == RM_OK);
  CHECK(carry_turns_out() == 0 && slice_of(client, 7) == 4096 && tenants[1]->unweighted == 1);
  what.handle = 0; /* with a handle that nobody would know, there is none */
  uint64_t calls = rm.calls;
  CHECK(do_alloc(&one, fd, what, NULL) == UINT32_MAX && rm.calls == calls);
  end();
}

/* The highest number of an engine, COMP_DECOMP_COPY1, is not the first one's. */
void test_weights_of_the_last_engine(void) {
  begin(10 * MIB);
  tenants[1]->weight = 50;
  book.able = 1;
  begin_group(&one, fd, client, 7, 1);
  begin_group(&one, fd, client, 8, 0x41);
  CHECK(carry_turns_out() == 0 && slice_of(client, 7) == 4096 && slice_of(client, 8) == 4096);
  end();
}

/* The longest wait of a tenant's group that gets work 1,000 times, at any moment of the others' slices. */
static uint64_t longest_wait(uint32_t group) {
  uint64_t longest = 0;
  for (uint64_t i = 0; i < 1000; i++) {
    CHECK(disable_channels(&one, fd, client, CHANNEL_OF + group, 1, 1) == RM_OK);
    model_run(&rm, 3000 + 37 * i % 5000);
    CHECK(disable_channels(&one, fd, client, CHANNEL_OF + group, 1, 0) == RM_OK);
    model_run(&rm, 10000);
    if (rm.waited_us[1] > longest) longest = rm.waited_us[1];
  }
  return longest;
}

/* A group of a higher level waits for one slice of a lower one, and not for those of all lower ones. */
void test_levels(void) {
  begin(10 * MIB);
  int theirs = bed_open(&other, 1);
  uint32_t second = new_client(&other, theirs);
  tenants[1]->weight = 5;
  tenants[2]->weight = 30;
  book.able = 1;
  begin_group(&one, fd, client, 7, 1);
  for (uint32_t group = 20; group < 24; group++) begin_group(&other, theirs, second, group, 1);
  CHECK(carry_turns_out() == 0 && slice_of(second, 20) == 614 && model_level(&rm, client, 7) == VGPU_RM_LOW);
  uint64_t alike = longest_wait(7);
  vgpu__level_set(&book, tenants[1], VGPU_RM_HIGH);
  CHECK(carry_turns_out() == 0 && model_level(&rm, client, 7) == VGPU_RM_HIGH);
  uint64_t above = longest_wait(7);
  printf("an online group waits for %llu us at most, and for %llu us if its level is that of the four others\n",
         (unsigned long long)above, (unsigned long long)alike);
  CHECK(above <= 614 && alike > 2 * 614 && alike <= 4 * 614);
  begin_group(&one, fd, client, 8, 1); /* a new group has its tenant's level */
  CHECK(carry_turns_out() == 0 && model_level(&rm, client, 8) == VGPU_RM_HIGH && slice_of(client, 8) == 204);
  vgpu__level_set(&book, tenants[2], VGPU_RM_MEDIUM);
  CHECK(carry_turns_out() == 0 && model_level(&rm, second, 23) == VGPU_RM_MEDIUM && longest_wait(7) <= 614);
  vgpu__level_set(&book, tenants[1], VGPU_RM_LOW);
  CHECK(carry_turns_out() == 0 && model_level(&rm, client, 8) == VGPU_RM_LOW);
  CHECK(tenants[1]->unlevelled == 0 && tenants[2]->unlevelled == 0);
  end();
}

/* A level that the driver refuses is tried once, until the tenant's changes. The slice is set all the same. */
void test_levels_refused(void) {
  begin(10 * MIB);
  tenants[1]->weight = 50;
  tenants[1]->level = VGPU_RM_HIGH;
  book.able = 1;
  rm.refuses_levels = 1;
  begin_group(&one, fd, client, 7, 1);
  begin_group(&one, fd, client, 8, 1);
  CHECK(carry_turns_out() == 0 && tenants[1]->unlevelled == 1 && tenants[1]->unweighted == 0);
  CHECK(slice_of(client, 7) == 2048 && model_level(&rm, client, 7) + model_level(&rm, client, 8) == VGPU_RM_HIGH);
  uint64_t calls = rm.calls;
  CHECK(schedule(&one, fd, client, 7, 1) == RM_OK && carry_turns_out() == 0 && rm.calls == calls + 1);
  vgpu__level_set(&book, tenants[1], VGPU_RM_MEDIUM);
  CHECK(carry_turns_out() == 0 && model_level(&rm, client, 7) == VGPU_RM_MEDIUM &&
        model_level(&rm, client, 8) == VGPU_RM_MEDIUM);
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
