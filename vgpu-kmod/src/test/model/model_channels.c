// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* Channels, and the engine that their groups have in turn. */
#include "model_objects.h"

int model_is_channel(uint32_t class_number) {
  return class_number == 0xa06f || class_number == 0xc56f || class_number == 0xc86f;
}

/* A channel group may run as long as one of its channels may. */
static int may_run(const struct model_object *group) {
  const struct model_object *at = group->class_number == 0xa06c ? group->child : NULL;
  while (at != NULL && !(at->scheduled && !at->disabled)) at = at->next;
  return at != NULL;
}

/* A group may run, and could not before. */
static void get_ready(const struct model_rm *rm, struct model_object *group, int could) {
  if (could || !may_run(group)) return;
  group->waits = 1;
  group->ready_us = rm->now_us;
}

/*
 * GPFIFO_SCHEDULE: off stops nothing that runs, as on a real GPU, although the driver reports success. It is not known
 * whether on enables channels that were disabled, so here it does.
 */
uint32_t model_schedule(struct model_rm *rm, const struct model_caller *caller, const struct nvos54 *call,
                        struct model_object *group) {
  unsigned char enable;
  int could = may_run(group);
  if (group->class_number != 0xa06c || call->params_size != 2) return BAD_PARAMS;
  if (caller->read(caller->self, &enable, call->params, 1) != 0) return BAD_ARGUMENT;
  if (rm->refuses_schedules > 0) {
    rm->refuses_schedules--;
    return NOT_SUPPORTED;
  }
  group->asked_off = !enable;
  for (struct model_object *at = group->child; at != NULL && enable; at = at->next) {
    at->scheduled = model_is_channel(at->class_number);
    at->disabled = 0;
  }
  get_ready(rm, group, could);
  return OK;
}

/*
 * FIFO_DISABLE_CHANNELS: whoever owns the channels. At the first one that does not exist it ends with an error. What it
 * disables leaves the engine at once.
 */
uint32_t model_disable(struct model_rm *rm, const struct model_caller *caller, const struct nvos54 *call,
                       const struct model_object *subdevice) {
  uint32_t count, handles[2];
  unsigned char off;
  if (subdevice->class_number != 0x2080 || call->params_size != 536) return BAD_PARAMS;
  if (caller->read(caller->self, &off, call->params, 1) != 0 ||
      caller->read(caller->self, &count, call->params + 4, 4) != 0 || count > 64)
    return BAD_ARGUMENT;
  if (rm->refuses > 0) {
    rm->refuses--;
    return NOT_SUPPORTED;
  }
  for (uint32_t i = 0; i < count; i++) {
    struct model_object *client, *channel;
    int could;
    if (caller->read(caller->self, &handles[0], call->params + 24 + 4 * (uint64_t)i, 4) != 0 ||
        caller->read(caller->self, &handles[1], call->params + 280 + 4 * (uint64_t)i, 4) != 0)
      return BAD_ARGUMENT;
    client = model_client(rm, handles[0]);
    channel = client != NULL ? model_find(client, handles[1]) : NULL;
    if (channel == NULL || !model_is_channel(channel->class_number)) return NOT_FOUND;
    could = may_run(channel->parent);
    channel->disabled = off != 0;
    get_ready(rm, channel->parent, could);
    if (rm->running == channel->parent && !may_run(channel->parent)) rm->left_us = 0;
  }
  return OK;
}

static uint32_t count_groups(const struct model_rm *rm, uint32_t tag, int (*counts)(const struct model_object *)) {
  uint32_t count = 0;
  for (struct model_object *client = rm->clients; client != NULL; client = client->next) {
    for (struct model_object *at = client; at != NULL && client->tag == tag; at = model_following(client, at))
      count += counts(at) != 0;
  }
  return count;
}

static int was_asked_off(const struct model_object *group) { return group->asked_off; }

uint32_t model_running(const struct model_rm *rm, uint32_t tag) { return count_groups(rm, tag, may_run); }
uint32_t model_asked_off(const struct model_rm *rm, uint32_t tag) { return count_groups(rm, tag, was_asked_off); }

/* Whether a group's turn comes before that of another one of its level: they follow each other by their age. */
static int is_before(const struct model_rm *rm, const struct model_object *one, const struct model_object *other) {
  uint64_t last = rm->last[one->level];
  if (other == NULL || (one->number > last) != (other->number > last)) return other == NULL || one->number > last;
  return one->number < other->number;
}

/* The channel group whose turn it is; NULL: there is none. */
static struct model_object *next_group(const struct model_rm *rm) {
  const uint64_t since[] = {0, rm->low, rm->lower};
  struct model_object *due = NULL, *first[3] = {NULL, NULL, NULL};
  for (struct model_object *client = rm->clients; client != NULL; client = client->next) {
    for (struct model_object *at = client; at != NULL; at = model_following(client, at)) {
      if (!may_run(at)) continue;
      if (is_before(rm, at, first[at->level])) first[at->level] = at;
      /* It has had no slice since the last one of a lower level. */
      if (at->started < since[at->level] &&
          (due == NULL || at->level > due->level || (at->level == due->level && is_before(rm, at, due))))
        due = at;
    }
  }
  for (int level = 0; level < 3 && due == NULL; level++) due = first[level];
  return due;
}

static void begin_slice(struct model_rm *rm, struct model_object *group) {
  rm->running = group;
  rm->left_us = group->timeslice_us;
  group->started = ++rm->started;
  rm->last[group->level] = group->number;
  if (group->level == 0) rm->low = rm->started;
  if (group->level < 2) rm->lower = rm->started;
  if (!group->waits) return;
  group->waits = 0;
  rm->waited_us[group->client->tag] = rm->now_us - group->ready_us;
}

void model_run(struct model_rm *rm, uint64_t us) {
  while (us > 0) {
    uint64_t runs;
    if (rm->running == NULL || rm->left_us == 0) {
      struct model_object *next = next_group(rm);
      rm->running = NULL;
      if (next == NULL) {
        rm->now_us += us;
        return;
      }
      begin_slice(rm, next);
    }
    runs = us < rm->left_us ? us : rm->left_us;
    rm->ran_us[rm->running->client->tag] += runs;
    rm->left_us -= runs;
    rm->now_us += runs;
    us -= runs;
  }
}

uint64_t model_timeslice(const struct model_rm *rm, uint32_t client, uint32_t group) {
  struct model_object *root = model_client(rm, client), *object = root != NULL ? model_find(root, group) : NULL;
  return object != NULL ? object->timeslice_us : 0;
}

int model_disabled(const struct model_rm *rm, uint32_t client, uint32_t channel) {
  struct model_object *root = model_client(rm, client), *object = root != NULL ? model_find(root, channel) : NULL;
  return object != NULL ? object->disabled : -1;
}

int model_level(const struct model_rm *rm, uint32_t client, uint32_t group) {
  struct model_object *root = model_client(rm, client), *object = root != NULL ? model_find(root, group) : NULL;
  return object != NULL ? (int)object->level : -1;
}
