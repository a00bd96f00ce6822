// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
#include "rm_turn.h"

enum { MOST_TRIES = 50 };

static int vgpu__is_held(const struct vgpu_rm_book *book, const struct vgpu_rm_tenant *tenant) {
  return book->held && tenant->yields;
}

static void vgpu__unlist(struct vgpu_rm_object *group) {
  struct vgpu_rm_tenant *tenant = group->root->tenant;
  if (group->at_group == NULL) return;
  *group->at_group = group->next_group;
  if (group->next_group != NULL) group->next_group->at_group = group->at_group;
  if (tenant->stopping_end == &group->next_group) tenant->stopping_end = group->at_group;
  group->at_group = NULL;
  group->stopped = 0;
  if (group->resists) tenant->resisting--;
  group->resists = 0;
}

/* ---- weights ---- */

static struct vgpu_rm_engine *vgpu__engine(struct vgpu_rm_tenant *tenant, uint32_t engine) {
  return &tenant->engines[engine % VGPU_RM_ENGINES];
}

uint32_t vgpu__slice_of(const struct vgpu_rm_tenant *tenant, uint32_t engine, uint32_t more) {
  uint32_t groups = tenant->engines[engine % VGPU_RM_ENGINES].groups + more;
  uint64_t us = (uint64_t)VGPU_RM_ROUND_US * tenant->weight / 100;
  if (tenant->weight == 0) return 0;
  if (groups != 0) us /= groups;
  return us < VGPU_RM_LEAST_SLICE_US ? VGPU_RM_LEAST_SLICE_US : (uint32_t)us;
}

static uint32_t vgpu__slice_due(const struct vgpu_rm_engine *engine, const struct vgpu_rm_object *group) {
  return engine->slice_us != 0 ? engine->slice_us : group->own_us;
}

static void vgpu__set_anew(struct vgpu_rm_book *book, struct vgpu_rm_tenant *tenant, struct vgpu_rm_engine *engine) {
  engine->unequal = engine->first;
  tenant->unequal = 1;
  book->restless = 1;
}

/* The number of groups or the weight has changed. Looks at the groups only if their time slice changes with it: there
 * are few, since a slice cannot become shorter than the least one. */
static void vgpu__divide(struct vgpu_rm_book *book, struct vgpu_rm_tenant *tenant, struct vgpu_rm_engine *engine) {
  uint32_t us = vgpu__slice_of(tenant, (uint32_t)(engine - tenant->engines), 0);
  if (us == engine->slice_us) return;
  engine->slice_us = us;
  vgpu__set_anew(book, tenant, engine);
}

static void vgpu__slice_enter(struct vgpu_rm_book *book, struct vgpu_rm_object *group) {
  struct vgpu_rm_tenant *tenant = group->root->tenant;
  struct vgpu_rm_engine *engine = vgpu__engine(tenant, group->engine);
  if (group->at_slice == NULL) {
    group->next_slice = engine->first;
    if (engine->first != NULL) engine->first->at_slice = &group->next_slice;
    engine->first = group;
    group->at_slice = &engine->first;
    engine->groups++;
    vgpu__divide(book, tenant, engine);
  }
  if (group->slice_us == vgpu__slice_due(engine, group) && group->level == tenant->level) return;
  /* A slice that failed is set again at each SCHEDULE: the driver may have refused a group without channels. */
  vgpu__set_anew(book, tenant, engine);
}

static void vgpu__slice_leave(struct vgpu_rm_book *book, struct vgpu_rm_object *group) {
  struct vgpu_rm_engine *engine = vgpu__engine(group->root->tenant, group->engine);
  if (group->at_slice == NULL) return;
  if (engine->unequal == group) engine->unequal = group->next_slice;
  *group->at_slice = group->next_slice;
  if (group->next_slice != NULL) group->next_slice->at_slice = group->at_slice;
  group->at_slice = NULL;
  engine->groups--;
  vgpu__divide(book, group->root->tenant, engine);
}

void vgpu__slice_asked(struct vgpu_rm_book *book, struct vgpu_rm_object *group, uint64_t us, int done) {
  struct vgpu_rm_tenant *tenant = group->root->tenant;
  if (us == 0 || us > ~(uint32_t)0) return;
  group->own_us = (uint32_t)us;
  if (!done) return;
  group->slice_us = (uint32_t)us;
  /* The weight may have come while the call was in the driver. */
  if (tenant->weight != 0) vgpu__set_anew(book, tenant, vgpu__engine(tenant, group->engine));
}

void vgpu__slice_kept(struct vgpu_rm_object *group, uint64_t wanted_us) {
  group->root->tenant->unweighted++;
  if (group->slice_us == wanted_us) group->slice_us = 0;
}

void vgpu__weight_set(struct vgpu_rm_book *book, struct vgpu_rm_tenant *tenant, uint32_t weight) {
  tenant->weight = weight;
  for (uint32_t i = 0; i < VGPU_RM_ENGINES; i++) {
    if (tenant->engines[i].groups != 0) vgpu__divide(book, tenant, &tenant->engines[i]);
  }
}

void vgpu__level_set(struct vgpu_rm_book *book, struct vgpu_rm_tenant *tenant, uint32_t level) {
  if (tenant->level == level) return;
  tenant->level = level;
  for (uint32_t i = 0; i < VGPU_RM_ENGINES; i++) {
    if (tenant->engines[i].groups != 0) vgpu__set_anew(book, tenant, &tenant->engines[i]);
  }
}

static struct vgpu_rm_turn vgpu__turn_of(const struct vgpu_rm_object *group) {
  return (struct vgpu_rm_turn){.file = group->root->file != 0 ? group->root->file : group->root->owner,
                               .root = group->root->stamp,
                               .stamp = group->stamp,
                               .client = group->root->handle,
                               .group = group->handle};
}

/* Has the next of a tenant's groups set whose time slice is another than its engine's, or its level than the tenant's.
 * Returns 0 if there is none. */
static int vgpu__unequal(struct vgpu_rm_tenant *tenant, struct vgpu_rm_turn *turn) {
  for (uint32_t i = 0; i < VGPU_RM_ENGINES && tenant->unequal; i++) {
    struct vgpu_rm_engine *engine = &tenant->engines[i];
    while (engine->unequal != NULL) {
      struct vgpu_rm_object *group = engine->unequal;
      const uint32_t due = vgpu__slice_due(engine, group);
      engine->unequal = group->next_slice;
      if (group->slice_us == due && group->level == tenant->level) continue;
      *turn = vgpu__turn_of(group);
      if (group->slice_us != due) turn->slice_us = due;
      turn->levels = group->level != tenant->level;
      turn->level = tenant->level;
      group->slice_us = due;
      group->level = tenant->level;
      return 1;
    }
  }
  tenant->unequal = 0;
  return 0;
}

void vgpu__group_forget(struct vgpu_rm_book *book, struct vgpu_rm_object *group) {
  vgpu__unlist(group);
  vgpu__slice_leave(book, group);
}

/* ---- turns ---- */

static void vgpu__list(struct vgpu_rm_object *group, struct vgpu_rm_object **list) {
  vgpu__unlist(group);
  group->next_group = *list;
  if (*list != NULL) (*list)->at_group = &group->next_group;
  *list = group;
  group->at_group = list;
}

static void vgpu__list_stopped(struct vgpu_rm_object *group) {
  vgpu__list(group, &group->root->tenant->stopped);
  group->stopped = 1;
}

/* Puts a group behind all others whose stop was handed out. */
static void vgpu__list_stopping(struct vgpu_rm_book *book, struct vgpu_rm_object *group) {
  struct vgpu_rm_tenant *tenant = group->root->tenant;
  vgpu__unlist(group);
  if (tenant->stopping_end == NULL) tenant->stopping_end = &tenant->stopping;
  vgpu__list(group, tenant->stopping_end);
  tenant->stopping_end = &group->next_group;
  group->round = book->round;
}

/* Puts a group before all others whose stop was handed out, as one that has not been tried in this round. */
static void vgpu__list_next(struct vgpu_rm_book *book, struct vgpu_rm_object *group) {
  struct vgpu_rm_tenant *tenant = group->root->tenant;
  vgpu__list(group, &tenant->stopping);
  if (group->next_group == NULL) tenant->stopping_end = &group->next_group;
  group->round = book->round - 1;
  book->restless = 1;
}

static void vgpu__list_running(struct vgpu_rm_book *book, struct vgpu_rm_object *group) {
  struct vgpu_rm_tenant *tenant = group->root->tenant;
  group->ours = 0;
  group->tries = 0;
  group->cursor = NULL;
  vgpu__list(group, &tenant->running);
  if (vgpu__is_held(book, tenant)) book->restless = 1;
}

/* A channel of a group that is ours may run. At once: not only in the next round. */
static void vgpu__once_more(struct vgpu_rm_book *book, struct vgpu_rm_object *group, int at_once) {
  group->again = 1; /* if a pass is in progress */
  group->at_once |= at_once != 0;
  if (!group->stopped || !vgpu__is_held(book, group->root->tenant)) return;
  if (at_once || group->round != book->round) vgpu__list_next(book, group);
  else vgpu__list_stopping(book, group);
  vgpu__note(book, group->root->tenant);
}

/* From now on the tenant's requests for the group are recorded, and executed when it is given back. */
static void vgpu__take(struct vgpu_rm_book *book, struct vgpu_rm_object *group) {
  struct vgpu_rm_tenant *tenant = group->root->tenant;
  int held = vgpu__is_held(book, tenant);
  if (group->ours) return;
  group->ours = 1;
  if (held && group->at_group != NULL) { /* about to be stopped */
    tenant->stops++;
    vgpu__list_next(book, group);
  } else { /* nothing to stop: it was never scheduled, or may run */
    vgpu__list_stopped(group);
    if (!held) book->restless = 1;
  }
}

static int vgpu__slice_next(struct vgpu_rm_book *book, struct vgpu_rm_turn *turn) {
  for (struct vgpu_rm_tenant *tenant = book->tenants; tenant != NULL && book->able; tenant = tenant->next) {
    if (vgpu__unequal(tenant, turn)) return 1;
  }
  return 0;
}

/* A group to stop. Groups that have not been tried in this round come first among those whose stop was handed out. */
static struct vgpu_rm_object *vgpu__stop_next(const struct vgpu_rm_book *book, const struct vgpu_rm_tenant *tenant) {
  struct vgpu_rm_object *refused = tenant->stopping;
  if (tenant->running != NULL) return tenant->running;
  return refused != NULL && refused->round != book->round ? refused : NULL;
}

/* A group to give back. In both lists, those with the fewest failures come first. */
static struct vgpu_rm_object *vgpu__give_next(const struct vgpu_rm_tenant *tenant) {
  struct vgpu_rm_object *refused = tenant->stopping, *stopped = tenant->stopped;
  if (refused == NULL || stopped == NULL) return refused != NULL ? refused : stopped;
  return stopped->tries < refused->tries ? stopped : refused;
}

int vgpu__is_stopped(const struct vgpu_rm_book *book, const struct vgpu_rm_tenant *tenant) {
  int others = tenant->stopping != NULL || tenant->running != NULL;
  if (vgpu__is_held(book, tenant)) return tenant->stopped != NULL && !others;
  return tenant->stopped != NULL || (tenant->stopping != NULL && tenant->stopping->giving);
}

int vgpu__owes_groups(const struct vgpu_rm_tenant *tenant) {
  return tenant->stopped != NULL || tenant->stopping != NULL;
}

/* The next channels of a group's pass. One call sets them all to the same. */
static void vgpu__list_channels(struct vgpu_rm_object *group, struct vgpu_rm_turn *turn) {
  struct vgpu_rm_object *at = group->cursor, *device = group->parent;
  if (device->class_number == RM_CLASS_DEVICE && device->members != NULL) turn->subdevice = device->members->handle;
  turn->disable = turn->stops;
  for (int i = 0; i < RM_MOST_CHANNELS && at != NULL; i++, at = at->next_group) {
    if (turn->stops && at->handle == 0) group->refused = 1; /* not known, so it goes on */
    if (at->handle == 0 || (!turn->stops && !at->shut)) continue;
    if (!turn->stops && turn->count == 0) turn->disable = at->disabled;
    if (!turn->stops && turn->disable != at->disabled) break;
    at->shut = turn->stops != 0;
    turn->channels[turn->count++] = at->handle;
  }
  group->cursor = at;
}

/* Begins a pass over a group's channels, or goes on with it. */
static void vgpu__pass(struct vgpu_rm_object *group, struct vgpu_rm_turn *turn) {
  if (group->cursor == NULL || group->giving == turn->stops) {
    group->cursor = group->members;
    group->giving = !turn->stops;
    group->refused = group->again = group->at_once = 0;
  }
  turn->schedules = !turn->stops && group->asked;
  turn->enable = group->wanted;
  if (turn->schedules) group->asked = 0;
  vgpu__list_channels(group, turn);
}

int vgpu__turn_next(struct vgpu_rm_book *book, struct vgpu_rm_turn *turn) {
  int later = 0;
  book->restless = 0;
  for (struct vgpu_rm_tenant *tenant = book->tenants; tenant != NULL; tenant = tenant->next) {
    int held = vgpu__is_held(book, tenant);
    struct vgpu_rm_object *group = held ? vgpu__stop_next(book, tenant) : vgpu__give_next(tenant);
    if (group == NULL) continue;
    if (!held && group->tries > book->pass) { /* groups with the fewest failures come first */
      later = 1;
      continue;
    }
    if (held) {
      if (!group->ours) tenant->stops++;
      vgpu__list_stopping(book, group);
    } else {
      vgpu__unlist(group);
    }
    group->ours = 1;
    vgpu__note(book, tenant);
    *turn = vgpu__turn_of(group);
    turn->stops = held;
    vgpu__pass(group, turn);
    return 1;
  }
  if (vgpu__slice_next(book, turn)) return 1;
  book->pass = later ? book->pass + 1 : 0;
  return later ? -1 : 0;
}

/* What the driver refused. A channel that is gone by now does not count. */
static void vgpu__note_refused(struct vgpu_rm_book *book, struct vgpu_rm_object *group,
                               const struct vgpu_rm_turn *turn) {
  for (uint32_t i = 0; i < turn->count; i++) {
    struct vgpu_rm_object *channel = turn->refused >> i & 1 ? vgpu__object_find(book, group->root, turn->channels[i])
                                                            : NULL;
    if (channel == NULL || channel->parent != group || !vgpu__rm_is_channel(channel->class_number)) continue;
    channel->shut = 1;
    group->refused = 1;
  }
  if (turn->schedules && turn->failed) group->asked = group->refused = 1;
}

static void vgpu__stop_done(struct vgpu_rm_book *book, struct vgpu_rm_object *group) {
  struct vgpu_rm_tenant *tenant = group->root->tenant;
  if (group->cursor != NULL) {
    vgpu__list_next(book, group);
  } else if (group->refused) {
    tenant->unstopped++;
    tenant->resisting += !group->resists;
    group->resists = 1;
  } else if (group->at_once) {
    vgpu__list_next(book, group);
  } else if (!group->again) {
    group->tries = 0;
    vgpu__list_stopped(group);
  }
}

static void vgpu__give_done(struct vgpu_rm_book *book, struct vgpu_rm_object *group) {
  struct vgpu_rm_tenant *tenant = group->root->tenant;
  int unfinished = group->refused || group->again || group->asked;
  if (group->cursor != NULL || (unfinished && vgpu__is_held(book, tenant))) {
    vgpu__list_next(book, group);
  } else if (unfinished && ++group->tries < MOST_TRIES) {
    vgpu__list_stopping(book, group);
  } else {
    if (unfinished) tenant->stuck++;
    group->asked = 0;
    vgpu__list_running(book, group);
  }
}

void vgpu__turn_done(struct vgpu_rm_book *book, const struct vgpu_rm_turn *turn) {
  struct vgpu_rm_object *root = vgpu__client_stamped(book, turn->client, turn->root);
  struct vgpu_rm_object *group = root != NULL ? vgpu__object_find(book, root, turn->group) : NULL;
  if (group == NULL || group->stamp != turn->stamp) return;
  if (turn->slice_us != 0 || turn->levels) {
    if (turn->slice_us != 0 && turn->failed) vgpu__slice_kept(group, turn->slice_us);
    if (turn->levels && turn->unlevelled) root->tenant->unlevelled++;
    return;
  }
  if (!group->ours) return;
  vgpu__note(book, root->tenant);
  vgpu__note_refused(book, group, turn);
  if (turn->stops) vgpu__stop_done(book, group);
  else vgpu__give_done(book, group);
}

struct vgpu_rm_object *vgpu__group_of(struct vgpu_rm_object *object) {
  if (object == NULL || object->class_number == RM_CLASS_GROUP) return object;
  return object->parent != NULL && object->parent->class_number == RM_CLASS_GROUP ? object->parent : NULL;
}

int vgpu__group_asked(struct vgpu_rm_book *book, struct vgpu_rm_object *group, int wanted) {
  if (!group->ours && !vgpu__is_held(book, group->root->tenant)) return 0;
  group->wanted = wanted;
  group->asked = 1;
  vgpu__take(book, group);
  vgpu__slice_enter(book, group);
  return 1;
}

void vgpu__group_scheduled(struct vgpu_rm_book *book, struct vgpu_rm_object *group, int wanted) {
  if (!group->asked) group->wanted = wanted; /* otherwise a later request is recorded */
  if (group->ours) vgpu__once_more(book, group, 1);
  else vgpu__list_running(book, group);
  vgpu__slice_enter(book, group);
}

/* ---- channels ---- */

int vgpu__channel_is_ours(const struct vgpu_rm_book *book, const struct vgpu_rm_object *channel) {
  return channel->parent->ours || vgpu__is_held(book, channel->root->tenant);
}

void vgpu__channel_asked(struct vgpu_rm_book *book, struct vgpu_rm_object *channel, int disable) {
  channel->disabled = disable != 0;
  channel->shut = 1; /* giving back sets it as requested */
  if (channel->parent->ours && !vgpu__is_held(book, channel->root->tenant)) channel->parent->again = 1;
  vgpu__take(book, channel->parent);
}

void vgpu__channel_set(struct vgpu_rm_book *book, struct vgpu_rm_object *channel, int done, int disable) {
  if (done) channel->disabled = disable != 0;
  if (!channel->parent->ours) return;
  channel->shut = 1;
  vgpu__once_more(book, channel->parent, 1);
}

void vgpu__turn_enter(struct vgpu_rm_book *book, struct vgpu_rm_object *object) {
  struct vgpu_rm_object *parent = object->parent;
  int in_group = parent->class_number == RM_CLASS_GROUP && vgpu__rm_is_channel(object->class_number);
  int of_device = parent->class_number == RM_CLASS_DEVICE && object->class_number == RM_CLASS_SUBDEVICE;
  if (!in_group && (!of_device || object->handle == 0)) return;
  vgpu__list(object, &parent->members);
  if (!in_group || !parent->ours) return;
  object->shut = 1; /* a call in progress may be for an earlier channel with the same handle */
  if (vgpu__is_held(book, object->root->tenant)) vgpu__once_more(book, parent, 0);
  else if (parent->at_group == NULL) parent->again = 1;
}

void vgpu__turn_leave(struct vgpu_rm_object *object) {
  struct vgpu_rm_object *parent = object->parent;
  if (parent == NULL || object->class_number == RM_CLASS_GROUP) return;
  if (parent->cursor == object) parent->cursor = object->next_group;
  vgpu__unlist(object);
}
