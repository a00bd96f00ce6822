/*
 * Random calls of a yielding tenant, holds and refusals. Whatever came before, a tenant that is held is stopped, and
 * one that is not held has what it asked for. VGPU_TEST_SEED repeats a run's random choices.
 */
#include <time.h>

#include "test_core.h"

enum { GROUPS = 4, CHANNELS = 80, FIRST_GROUP = 7, ROUNDS = 300 };

static uint64_t state;
static uint32_t below(uint32_t limit) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (uint32_t)(state >> 11) % limit;
}

/* What the tenant has, and asked for. */
static struct group {
  int there, off;
  struct channel {
    int there, disabled;
    int sure; /* `disabled` is what the driver must have: SCHEDULE on may enable */
  } channels[CHANNELS];
} groups[GROUPS];

static uint32_t handle_of(uint32_t group, uint32_t channel) { return 1000 * (group + 1) + channel; }

static void hold_or_not(void) {
  book.held = below(2) != 0;
  book.round++;
}

static int in_worker;
static void some_call(void);
static void call_in_worker(void) {
  in_worker = 1;
  some_call();
  in_worker = 0;
}

static void meanwhile(void) {
  hold_or_not();
  if (below(2)) carry_turns_out();
  before_driver = NULL;
}
static void keep_and_meanwhile(void) { keep_and(meanwhile); }

static void make_channel(uint32_t group, uint32_t channel) {
  struct channel *made = &groups[group].channels[channel];
  if (made->there) return;
  CHECK(new_channel(&one, fd, client, FIRST_GROUP + group, handle_of(group, channel)) == RM_OK);
  *made = (struct channel){.there = 1, .sure = 1};
}

static void some_call(void) {
  uint32_t group = below(GROUPS), channel = below(CHANNELS), root = FIRST_GROUP + group;
  struct group *at = &groups[group];
  struct channel *one_of = &at->channels[channel];
  if (!at->there) {
    CHECK(do_alloc(&one, fd, a_group(client, root), NULL) == RM_OK);
    *at = (struct group){.there = 1};
  }
  if (!in_worker && below(4) == 0) bed_between = keep_and_meanwhile;
  switch (below(12)) {
    case 0:
      for (uint32_t i = 0; i < CHANNELS && below(2) == 0; i++) make_channel(group, i);
      break;
    case 1:
      for (uint32_t i = 0; i < CHANNELS; i++) make_channel(group, i);
      break;
    case 2:
    case 3: make_channel(group, channel); break;
    case 4:
      if (one_of->there) CHECK(do_free(&one, fd, client, handle_of(group, channel)) == RM_OK);
      one_of->there = 0;
      break;
    case 5:
      if (below(4) != 0) break;
      CHECK(do_free(&one, fd, client, root) == RM_OK);
      at->there = 0;
      break;
    case 6:
    case 7: {
      int on = below(3) != 0;
      CHECK(schedule(&one, fd, client, root, (unsigned char)on) == RM_OK);
      at->off = !on;
      for (uint32_t i = 0; i < CHANNELS && on; i++) at->channels[i].sure = !at->channels[i].disabled;
      break;
    }
    case 8:
    case 9: {
      int disable = below(2) != 0;
      if (!one_of->there) break;
      uint32_t status = disable_channels(&one, fd, client, handle_of(group, channel), 1, disable);
      if (status == RM_OK) *one_of = (struct channel){.there = 1, .disabled = disable, .sure = 1};
      else CHECK(status == RM_NOT_SUPPORTED); /* the driver refused it */
      break;
    }
    default:
      bed_between = NULL; /* there is one worker */
      if (in_worker) {
        hold_or_not();
      } else {
        before_driver = below(2) ? call_in_worker : NULL;
        meanwhile();
      }
  }
  bed_between = NULL;
}

static void check_given_back(void) {
  uint32_t off = 0;
  for (uint32_t i = 0; i < GROUPS; i++) {
    off += groups[i].there && groups[i].off;
    for (uint32_t j = 0; j < CHANNELS && groups[i].there; j++) {
      const struct channel *each = &groups[i].channels[j];
      if (each->there && each->sure) CHECK(model_disabled(&rm, client, handle_of(i, j)) == each->disabled);
    }
  }
  CHECK(model_asked_off(&rm, 1) == off && !vgpu__owes_groups(tenants[1]) && tenants[1]->resisting == 0);
}

static void settle(int held) {
  rm.refuses = 0;
  for (int i = 0; i < 2; i++) { /* the second one for what came in the first one's round */
    book.held = held;
    book.round++;
    while (carry_turns_out() != 0) continue;
  }
}

void test_random_turns(void) {
  const char *given = getenv("VGPU_TEST_SEED");
  uint64_t seed = given != NULL ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
  int before = failures;
  state = 88172645463325252ull ^ seed * 0x9e3779b97f4a7c15ull;
  if (state == 0) state = 1;
  for (int i = 0; i < ROUNDS && failures == before; i++) {
    begin(10 * MIB);
    memset(groups, 0, sizeof groups);
    tenants[1]->yields = 1;
    for (int j = 0; j < 10 && failures == before; j++) {
      for (uint32_t calls = below(30); calls > 0; calls--) {
        rm.refuses = below(8) == 0 ? below(3) : 0;
        some_call();
      }
      if (below(2)) {
        settle(1);
        CHECK(model_running(&rm, 1) == 0 && tenants[1]->resisting == 0 && tenants[1]->stopping == NULL);
        if (below(2)) some_call();
      }
      settle(0);
      check_given_back();
      CHECK(tenants[1]->stuck == 0 && tenants[1]->filtered == 0);
    }
    end();
  }
  if (failures != before) fprintf(stderr, "VGPU_TEST_SEED=%llu repeats it\n", (unsigned long long)seed);
}
