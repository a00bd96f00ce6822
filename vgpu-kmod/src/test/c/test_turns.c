/* The core on the model of the resource manager: turns. */
#include "test_core.h"

uint32_t schedule(struct bed_process *process, int file, uint32_t root, uint32_t group, unsigned char on) {
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

void (*before_driver)(void);

/* A call of the worker, through the tenant's own file. */
static uint32_t control(void *file, uint32_t root, uint32_t object, uint32_t command, const void *params,
                        uint32_t size) {
  struct model_caller as = {.read = whole_read, .write = whole_write};
  unsigned char kept[RM_DISABLE_SIZE];
  uint64_t fields[4] = {(uint64_t)object << 32 | root, command, (uint64_t)(uintptr_t)kept, size};
  void (*before)(void) = before_driver;
  memcpy(kept, params, size);
  before_driver = NULL;
  if (before != NULL) before();
  model_ioctl(&rm, file, &as, vgpu__rm_word(RM_CONTROL, RM_CONTROL_SIZE), (uint64_t)(uintptr_t)fields);
  return (uint32_t)(fields[3] >> 32);
}

int carry_turns_out(void) {
  struct vgpu_rm_turn turn;
  int more;
  while ((more = vgpu__turn_next(&book, &turn)) > 0) {
    int file = number_of(&one, turn.file);
    struct bed_process *whose = file < BED_FILES ? &one : &other;
    if (whose == &other) file = number_of(&other, turn.file);
    vgpu__turn_carry_out(&turn, control, &whose->files[file]->model, 2);
    vgpu__turn_done(&book, &turn);
  }
  return more;
}

static void hold(int on) {
  book.held = on;
  book.round++;
}

static void hold_on(void) { hold(1); }

static int disabled(uint32_t channel) { return model_disabled(&rm, client, channel); }

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
  for (uint32_t handle = 7; handle < 10; handle++) CHECK(new_group(&one, fd, client, handle) == RM_OK);
  CHECK(new_group(&other, theirs, second, 7) == RM_OK && schedule(&other, theirs, second, 7, 1) == RM_OK);
  CHECK(schedule(&one, fd, client, 7, 1) == RM_OK && schedule(&one, fd, client, 8, 1) == RM_OK &&
        schedule(&one, fd, client, 8, 0) == RM_OK);
  CHECK(model_running(&rm, 1) == 2 && model_asked_off(&rm, 1) == 1 && model_running(&rm, 2) == 1);

  book.held = 1;
  CHECK(carry_turns_out() == 0 && model_running(&rm, 1) == 0 && model_running(&rm, 2) == 1);
  CHECK(tenants[1]->stops == 2 && tenants[2]->stops == 0);
  uint64_t before = rm.ran_us[1];
  model_run(&rm, 1000000);
  CHECK(rm.ran_us[1] == before && rm.ran_us[2] == 1000000);
  uint64_t calls = rm.calls;
  CHECK(schedule(&one, fd, client, 7, 0) == RM_OK && schedule(&one, fd, client, 8, 1) == RM_OK &&
        schedule(&one, fd, client, 9, 1) == RM_OK); /* recorded */
  CHECK(rm.calls == calls && model_running(&rm, 1) == 0 && model_asked_off(&rm, 1) == 1);
  uint32_t copy = new_client(&one, fd);
  /* No second name for a group or a channel. */
  CHECK(do_dup(&one, fd, copy, DEVICE, 70, client, 7) == RM_INSUFFICIENT_PERMISSIONS);
  CHECK(do_dup(&one, fd, copy, DEVICE, 70, client, CHANNEL_OF + 7) == RM_INSUFFICIENT_PERMISSIONS);
  CHECK(do_free(&one, fd, client, 9) == RM_OK);

  book.held = 0; /* given back, and the driver gets the requests: 7 off, 8 on */
  CHECK(carry_turns_out() == 0 && model_running(&rm, 1) == 2 && model_asked_off(&rm, 1) == 1);
  CHECK(tenants[1]->stopped == NULL && !vgpu__owes_groups(tenants[1]));
  CHECK(schedule(&one, fd, client, 7, 1) == RM_OK && model_asked_off(&rm, 1) == 0);
  calls = rm.calls;
  book.held = 1;
  carry_turns_out();
  book.held = 0; /* nothing was requested: one call to stop and one to give back, for each group */
  CHECK(carry_turns_out() == 0 && rm.calls == calls + 4 && model_running(&rm, 1) == 2);
  CHECK(new_group(&one, fd, client, 9) == RM_OK);

  bed_between = meanwhile_hold; /* the hold starts while a SCHEDULE is in progress */
  schedule_nine();
  CHECK(model_running(&rm, 1) == 1 && book.restless);
  CHECK(carry_turns_out() == 0 && model_running(&rm, 1) == 0 && !book.restless);

  rm.refuses = 2; /* failed calls are repeated later, without delaying other groups */
  book.held = 0;
  CHECK(carry_turns_out() < 0 && model_running(&rm, 1) == 1);
  rm.refuses = 2;
  while (carry_turns_out() != 0) continue;
  CHECK(model_running(&rm, 1) == 3 && tenants[1]->stuck == 0);
  book.held = 1;
  rm.refuses = 1;
  CHECK(carry_turns_out() == 0 && tenants[1]->unstopped == 1);
  book.held = 0;
  rm.refuses = 1000;
  while (carry_turns_out() != 0) continue; /* terminates */
  CHECK(tenants[1]->stuck == 3);
  end();
}

/* The driver refuses to stop groups: the tenant is not called stopped, and each scheduler message tries again. */
void test_refused_stops(void) {
  begin(10 * MIB);
  tenants[1]->yields = 1;
  for (uint32_t handle = 7; handle < 10; handle++) {
    CHECK(new_group(&one, fd, client, handle) == RM_OK && schedule(&one, fd, client, handle, 1) == RM_OK);
  }
  rm.refuses = 2;
  hold(1);
  CHECK(carry_turns_out() == 0 && model_running(&rm, 1) == 2);
  CHECK(tenants[1]->stops == 3 && tenants[1]->unstopped == 2 && tenants[1]->resisting == 2);
  CHECK(!vgpu__is_stopped(&book, tenants[1]) && vgpu__owes_groups(tenants[1]));
  uint64_t calls = rm.calls;
  CHECK(carry_turns_out() == 0 && rm.calls == calls);                    /* not again in the same round */
  CHECK(schedule(&one, fd, client, 7, 0) == RM_OK && rm.calls == calls); /* recorded */
  rm.refuses = 1;
  hold(1);
  CHECK(carry_turns_out() == 0 && rm.calls == calls + 2 && model_running(&rm, 1) == 1 && tenants[1]->resisting == 1);
  hold(1);
  CHECK(carry_turns_out() == 0 && rm.calls == calls + 3 && model_running(&rm, 1) == 0 && tenants[1]->resisting == 0);
  CHECK(tenants[1]->stops == 3 && tenants[1]->unstopped == 3 && vgpu__is_stopped(&book, tenants[1]));
  hold(0); /* given back, with the request */
  CHECK(carry_turns_out() == 0 && model_running(&rm, 1) == 3 && model_asked_off(&rm, 1) == 1 &&
        !vgpu__owes_groups(tenants[1]));

  /* A refused stop may have been executed in part, so the group is given back when the hold ends. */
  rm.refuses = 1000;
  hold(1);
  CHECK(carry_turns_out() == 0 && tenants[1]->resisting == 3 && !vgpu__is_stopped(&book, tenants[1]));
  CHECK(do_free(&one, fd, client, 8) == RM_OK && tenants[1]->resisting == 2);
  calls = rm.calls;
  hold(0);
  rm.refuses = 0;
  CHECK(carry_turns_out() == 0 && rm.calls == calls + 2 && tenants[1]->resisting == 0 && tenants[1]->stuck == 0);
  CHECK(!vgpu__is_stopped(&book, tenants[1]) && !vgpu__owes_groups(tenants[1]));

  /* A request that the driver refuses when the group is given back is repeated. */
  hold(1);
  CHECK(carry_turns_out() == 0 && schedule(&one, fd, client, 7, 1) == RM_OK);
  hold(0);
  rm.refuses_schedules = 3;
  while (carry_turns_out() != 0) continue;
  CHECK(model_asked_off(&rm, 1) == 0 && model_running(&rm, 1) == 2 && tenants[1]->stuck == 0);

  hold(1); /* a hold begins while the driver refuses to give a group back: it may have been given back in part */
  CHECK(carry_turns_out() == 0 && model_running(&rm, 1) == 0);
  hold(0);
  rm.refuses = 1;
  before_driver = hold_on;
  uint64_t stops = tenants[1]->stops;
  CHECK(carry_turns_out() == 0 && model_running(&rm, 1) == 0 && vgpu__is_stopped(&book, tenants[1]));
  CHECK(tenants[1]->stops == stops);
  hold(0);
  CHECK(carry_turns_out() == 0 && model_running(&rm, 1) == 2 && !vgpu__owes_groups(tenants[1]));
  rm.refuses = 1000;
  hold(1);
  CHECK(carry_turns_out() == 0 && tenants[1]->resisting == 2);
  bed_close(&one, fd);
  CHECK(tenants[1]->resisting == 0 && !vgpu__owes_groups(tenants[1]));
  end();
}

enum { MANY = 150 };
/* The first channel that the call in progress does not list. */
static void free_the_next(void) { CHECK(do_free(&one, fd, client, CHANNEL_OF + 7 + MANY - 1 - 64) == RM_OK); }

/* A call lists at most 64 channels. */
void test_channels_of_a_group(void) {
  begin(10 * MIB);
  tenants[1]->yields = 1;
  CHECK(new_group(&one, fd, client, 7) == RM_OK);
  for (uint32_t i = 1; i < MANY; i++) CHECK(new_channel(&one, fd, client, 7, CHANNEL_OF + 7 + i) == RM_OK);
  CHECK(schedule(&one, fd, client, 7, 1) == RM_OK);
  uint64_t calls = rm.calls;
  hold(1);
  CHECK(carry_turns_out() == 0 && model_running(&rm, 1) == 0 && rm.calls == calls + 3);
  CHECK(tenants[1]->stops == 1 && vgpu__is_stopped(&book, tenants[1]));
  calls = rm.calls;
  hold(1);
  CHECK(carry_turns_out() == 0 && rm.calls == calls); /* not again */
  hold(0);
  CHECK(carry_turns_out() == 0 && rm.calls == calls + 3 && model_running(&rm, 1) == 1);
  for (uint32_t i = 0; i < MANY; i++) CHECK(disabled(CHANNEL_OF + 7 + i) == 0);

  hold(1);
  carry_turns_out();
  hold(0);
  before_driver = hold_on; /* a hold begins when a part has been given back */
  CHECK(carry_turns_out() == 0 && model_running(&rm, 1) == 0 && vgpu__is_stopped(&book, tenants[1]));
  hold(0);
  CHECK(carry_turns_out() == 0 && model_running(&rm, 1) == 1 && !vgpu__owes_groups(tenants[1]));
  rm.refuses = 1; /* one of the three calls: its channels are then disabled one by one */
  before_driver = free_the_next;
  hold(1);
  CHECK(carry_turns_out() == 0 && model_running(&rm, 1) == 0 && tenants[1]->unstopped == 0);

  rm.refuses = 66; /* a call and all of its channels; and meanwhile the next hold begins */
  before_driver = hold_on;
  hold(0);
  CHECK(carry_turns_out() == 0 && model_running(&rm, 1) == 0 && vgpu__is_stopped(&book, tenants[1]));
  end();
}

/* A stopped group's new channel does not run: its SCHEDULE is recorded, and it is disabled. */
void test_new_channels(void) {
  begin(10 * MIB);
  tenants[1]->yields = 1;
  CHECK(new_group(&one, fd, client, 7) == RM_OK && schedule(&one, fd, client, 7, 1) == RM_OK);
  hold(1);
  CHECK(carry_turns_out() == 0 && model_running(&rm, 1) == 0);
  hold(1);
  CHECK(new_channel(&one, fd, client, 7, 100) == RM_OK && schedule(&one, fd, client, 7, 1) == RM_OK);
  CHECK(model_running(&rm, 1) == 0 && book.restless);
  CHECK(carry_turns_out() == 0 && model_running(&rm, 1) == 0 && disabled(100) == 1);
  CHECK(tenants[1]->stops == 1 && vgpu__is_stopped(&book, tenants[1]));
  uint64_t calls = rm.calls; /* a storm of new channels does not keep the worker busy: once in a round */
  CHECK(new_channel(&one, fd, client, 7, 101) == RM_OK);
  CHECK(carry_turns_out() == 0 && rm.calls == calls + 1 && model_running(&rm, 1) == 0);
  put64(PARAMS, 1);
  CHECK(do_control(&one, fd, client, 101, RM_CHANNEL_SCHEDULE, 2) == RM_OK);
  CHECK(rm.calls == calls + 1 && model_running(&rm, 1) == 0);
  hold(1);
  CHECK(carry_turns_out() == 0 && disabled(101) == 1 && vgpu__is_stopped(&book, tenants[1]));
  hold(0);
  CHECK(carry_turns_out() == 0 && model_running(&rm, 1) == 1);
  CHECK(disabled(CHANNEL_OF + 7) == 0 && disabled(100) == 0 && disabled(101) == 0);
  CHECK(disable_channels(&one, fd, client, CHANNEL_OF + 7, 1, 1) == RM_OK);
  CHECK(model_running(&rm, 1) == 1); /* the new ones have been scheduled too */
  end();
}

static void disable_seven(void) { CHECK(disable_channels(&one, fd, client, CHANNEL_OF + 7, 1, 1) == RM_OK); }

/* A tenant's own DISABLE_CHANNELS does not restart what is stopped, and takes effect when it is given back. */
void test_own_requests(void) {
  begin(10 * MIB);
  tenants[1]->yields = 1;
  for (uint32_t handle = 7; handle < 10; handle++) {
    CHECK(new_group(&one, fd, client, handle) == RM_OK && schedule(&one, fd, client, handle, 1) == RM_OK);
  }
  CHECK(disable_channels(&one, fd, client, CHANNEL_OF + 7, 1, 1) == RM_OK && model_running(&rm, 1) == 2);
  hold(1);
  CHECK(carry_turns_out() == 0 && model_running(&rm, 1) == 0);
  hold(0); /* what the tenant has disabled itself stays so */
  CHECK(carry_turns_out() == 0 && model_running(&rm, 1) == 2 && disabled(CHANNEL_OF + 7) == 1);
  hold(1);
  carry_turns_out();
  uint64_t calls = rm.calls;
  CHECK(disable_channels(&one, fd, client, CHANNEL_OF + 7, 2, 0) == RM_OK);
  CHECK(disable_channels(&one, fd, client, CHANNEL_OF + 9, 1, 1) == RM_OK);
  CHECK(rm.calls == calls && model_running(&rm, 1) == 0 && tenants[1]->filtered == 0);
  hold(0);
  CHECK(carry_turns_out() == 0 && disabled(CHANNEL_OF + 7) == 0 && disabled(CHANNEL_OF + 8) == 0 &&
        disabled(CHANNEL_OF + 9) == 1);

  /* A channel outside groups is not stopped. A list with such a one cannot be recorded. */
  CHECK(new_channel(&one, fd, client, DEVICE, CHANNEL_OF + 10) == RM_OK);
  hold(1);
  carry_turns_out();
  calls = rm.calls;
  CHECK(disable_channels(&one, fd, client, CHANNEL_OF + 10, 1, 1) == RM_OK && rm.calls == calls + 1);
  CHECK(disable_channels(&one, fd, client, CHANNEL_OF + 8, 3, 0) == RM_NOT_SUPPORTED && rm.calls == calls + 1);
  CHECK(model_running(&rm, 1) == 0 && tenants[1]->filtered == 1);

  /* Before the worker has stopped the groups, or given them back. */
  hold(0);
  CHECK(carry_turns_out() == 0 && model_running(&rm, 1) == 2);
  hold(1);
  CHECK(disable_channels(&one, fd, client, CHANNEL_OF + 8, 2, 0) == RM_OK && schedule(&one, fd, client, 7, 0) == RM_OK);
  hold(0);
  CHECK(carry_turns_out() == 0 && model_running(&rm, 1) == 3 && model_asked_off(&rm, 1) == 1);
  CHECK(!vgpu__owes_groups(tenants[1]));
  hold(1);
  carry_turns_out();
  hold(0);
  CHECK(disable_channels(&one, fd, client, CHANNEL_OF + 7, 3, 1) == RM_OK);
  CHECK(carry_turns_out() == 0 && model_running(&rm, 1) == 0 && !vgpu__owes_groups(tenants[1]));
  CHECK(disable_channels(&one, fd, client, CHANNEL_OF + 7, 3, 0) == RM_OK && do_free(&one, fd, client, 8) == RM_OK &&
        do_free(&one, fd, client, 9) == RM_OK && model_running(&rm, 1) == 1);
  hold(1);
  carry_turns_out();
  hold(0);
  before_driver = disable_seven; /* while it is being given back */
  while (carry_turns_out() != 0) continue;
  CHECK(disabled(CHANNEL_OF + 7) == 1 && !vgpu__owes_groups(tenants[1]) && tenants[1]->stuck == 0);
  end();
}

static void enable_seven(void) { CHECK(disable_channels(&one, fd, client, CHANNEL_OF + 7, 1, 0) == RM_OK); }
static void stop_meanwhile(void) {
  hold(1);
  carry_turns_out();
}
static void meanwhile_stop(void) { keep_and(stop_meanwhile); }
static void enable_seven_late(void) {
  bed_between = meanwhile_stop;
  enable_seven();
}
static void schedule_seven_late(void) {
  bed_between = meanwhile_stop;
  CHECK(schedule(&one, fd, client, 7, 1) == RM_OK);
}

/* The core sees the answer to a SCHEDULE of before the hold. */
static void schedule_seven_is_answered(void) {
  struct vgpu_rm_object *root = vgpu__client_find(&book, one.files[fd]->id, client);
  vgpu__group_scheduled(&book, vgpu__object_find(&book, root, 7), 1);
}

/* A tenant's call that was on its way when the group was stopped: the group is stopped again. */
void test_calls_on_their_way(void) {
  static void (*const LATE[])(void) = {enable_seven_late, schedule_seven_late};
  for (int i = 0; i < 2; i++) {
    begin(10 * MIB);
    tenants[1]->yields = 1;
    CHECK(new_group(&one, fd, client, 7) == RM_OK && schedule(&one, fd, client, 7, 1) == RM_OK);
    LATE[i]();
    CHECK(model_running(&rm, 1) == 1 && book.restless && !vgpu__is_stopped(&book, tenants[1]));
    CHECK(carry_turns_out() == 0 && model_running(&rm, 1) == 0 && vgpu__is_stopped(&book, tenants[1]));
    CHECK(tenants[1]->stops == 1);
    hold(0);
    CHECK(carry_turns_out() == 0 && model_running(&rm, 1) == 1 && !vgpu__owes_groups(tenants[1]));
    LATE[i]();
    hold(0); /* before it could be stopped again */
    CHECK(carry_turns_out() == 0 && model_running(&rm, 1) == 1 && !vgpu__owes_groups(tenants[1]));
    uint64_t calls = rm.calls;
    before_driver = schedule_seven_is_answered; /* the driver may execute it after the stop */
    hold(1);
    CHECK(carry_turns_out() == 0 && rm.calls == calls + 2 && vgpu__is_stopped(&book, tenants[1]));
    end();
  }
}

/* The driver has freed the channel, and the core has not seen the answer yet. */
static void free_in_driver(void) {
  struct model_caller as = {.read = whole_read, .write = whole_write};
  uint32_t fields[4] = {client, 0, CHANNEL_OF + 7, UINT32_MAX};
  model_ioctl(&rm, &one.files[fd]->model, &as, vgpu__rm_word(RM_FREE, RM_FREE_SIZE), (uint64_t)(uintptr_t)fields);
}

static void late_channel(void) { CHECK(new_channel(&one, fd, client, 7, 102) == RM_OK); }
static void keep_and_late_channel(void) { keep_and(late_channel); }
static void replace_hundred(void) {
  CHECK(do_free(&one, fd, client, 100) == RM_OK && new_channel(&one, fd, client, 7, 100) == RM_OK);
}
static void free_seven(void) { CHECK(do_free(&one, fd, client, CHANNEL_OF + 7) == RM_OK); }
static void free_the_group(void) { CHECK(do_free(&one, fd, client, 7) == RM_OK); }

/* A channel that has just been freed makes the driver refuse the whole list: the others are stopped all the same. */
void test_channels_that_go(void) {
  begin(10 * MIB);
  tenants[1]->yields = 1;
  CHECK(new_group(&one, fd, client, 7) == RM_OK && new_channel(&one, fd, client, 7, 100) == RM_OK);
  CHECK(new_channel(&one, fd, client, 7, 101) == RM_OK && schedule(&one, fd, client, 7, 1) == RM_OK);
  before_driver = free_in_driver;
  hold(1);
  CHECK(carry_turns_out() == 0 && model_running(&rm, 1) == 0 && disabled(100) == 1 && disabled(101) == 1);
  CHECK(tenants[1]->resisting == 1); /* as far as the core knows */
  free_seven();
  hold(1);
  CHECK(carry_turns_out() == 0 && tenants[1]->resisting == 0 && vgpu__is_stopped(&book, tenants[1]));
  hold(0);
  CHECK(carry_turns_out() == 0 && model_running(&rm, 1) == 1 && disabled(100) == 0 && disabled(101) == 0);

  CHECK(new_channel(&one, fd, client, 7, CHANNEL_OF + 7) == RM_OK);
  before_driver = free_seven;
  hold(1);
  CHECK(carry_turns_out() == 0 && model_running(&rm, 1) == 0 && vgpu__is_stopped(&book, tenants[1]));
  CHECK(tenants[1]->unstopped == 1); /* that of before */
  hold(0);
  CHECK(carry_turns_out() == 0 && model_running(&rm, 1) == 1);

  before_driver = replace_hundred; /* the driver disables the new one */
  hold(1);
  CHECK(schedule(&one, fd, client, 7, 1) == RM_OK && carry_turns_out() == 0 && model_running(&rm, 1) == 0);
  hold(0);
  CHECK(carry_turns_out() == 0 && disabled(100) == 0 && !vgpu__owes_groups(tenants[1]));
  CHECK(disable_channels(&one, fd, client, 100, 1, 1) == RM_OK);
  hold(1);
  CHECK(carry_turns_out() == 0);
  hold(0);
  before_driver = replace_hundred; /* and here too, because the tenant has disabled the earlier one */
  while (carry_turns_out() != 0) continue;
  CHECK(disabled(100) == 0 && !vgpu__owes_groups(tenants[1]) && tenants[1]->stuck == 0);
  hold(1);
  CHECK(carry_turns_out() == 0);
  before_driver = free_the_group;
  hold(0);
  CHECK(carry_turns_out() == 0 && !vgpu__owes_groups(tenants[1]) && tenants[1]->stuck == 0);

  CHECK(new_group(&one, fd, client, 7) == RM_OK && schedule(&one, fd, client, 7, 1) == RM_OK);
  bed_between = keep_and_late_channel; /* the driver frees the group with it; the core cannot know */
  free_the_group();
  hold(1);
  CHECK(carry_turns_out() == 0 && do_free(&one, fd, client, 102) == RM_OK && tenants[1]->objects == 3);
  end();
}

/* What the ledger does not know the handle of goes on, so the tenant is not called stopped. */
void test_unknown_channel(void) {
  begin(10 * MIB);
  tenants[1]->yields = 1;
  CHECK(new_group(&one, fd, client, 7) == RM_OK);
  struct alloc unseen = {.client = client, .parent = 7, .class_number = 0xc86f, .call = 64};
  CHECK(do_alloc(&one, fd, unseen, NULL) == UINT32_MAX); /* the driver chose its handle, and could not write it */
  CHECK(schedule(&one, fd, client, 7, 1) == RM_OK);
  hold(1);
  CHECK(carry_turns_out() == 0 && model_running(&rm, 1) == 1 && disabled(CHANNEL_OF + 7) == 1);
  CHECK(tenants[1]->resisting == 1 && !vgpu__is_stopped(&book, tenants[1]));
  hold(0);
  CHECK(carry_turns_out() == 0 && disabled(CHANNEL_OF + 7) == 0 && !vgpu__owes_groups(tenants[1]));
  end();
}

/* Without a subdevice the driver cannot be asked. The group goes on, and is not called stopped. */
void test_unknown_subdevice(void) {
  begin(10 * MIB);
  tenants[1]->yields = 1;
  CHECK(new_group(&one, fd, client, 7) == RM_OK && schedule(&one, fd, client, 7, 1) == RM_OK);
  CHECK(do_free(&one, fd, client, SUBDEVICE) == RM_OK);
  hold(1);
  CHECK(carry_turns_out() == 0 && model_running(&rm, 1) == 1);
  CHECK(tenants[1]->resisting == 1 && !vgpu__is_stopped(&book, tenants[1]));
  struct alloc again = {.client = client, .parent = DEVICE, .handle = 77, .class_number = RM_CLASS_SUBDEVICE};
  CHECK(do_alloc(&one, fd, again, NULL) == RM_OK);
  hold(1);
  CHECK(carry_turns_out() == 0 && model_running(&rm, 1) == 0 && tenants[1]->resisting == 0);
  hold(0);
  CHECK(carry_turns_out() == 0 && model_running(&rm, 1) == 1);
  end();
}
