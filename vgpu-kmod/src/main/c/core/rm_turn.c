// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
#include "rm_turn.h"

#include "rm_abi.h"

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
  if (group->resists) tenant->resisting--;
  group->resists = 0;
}

/* ---- weights ---- */

static struct vgpu_rm_engine *vgpu__engine(struct vgpu_rm_tenant *tenant, uint32_t engine) {
  return &tenant->engines[engine % VGPU_RM_ENGINES];
}

uint32_t vgpu__slice_of(const struct vgpu_rm_tenant *tenant, uint32_t engine, uint32_t more) {
  uint32_t groups = tenant->engines[engine % VGPU_RM_ENGINES].groups + more;
  uint32_t us = VGPU_RM_DRIVERS_SLICE_US;
  if (tenant->weight != 0 && groups != 0) us = VGPU_RM_DRIVERS_SLICE_US * tenant->weight / 100 / groups;
  return us < VGPU_RM_LEAST_SLICE_US ? VGPU_RM_LEAST_SLICE_US : us;
}

/* The number of groups or the weight has changed. Looks at the groups only if their time slice changes with it: there
 * are few, since a slice cannot become shorter than the least one. */
static void vgpu__divide(struct vgpu_rm_book *book, struct vgpu_rm_tenant *tenant, struct vgpu_rm_engine *engine) {
  uint32_t us = vgpu__slice_of(tenant, (uint32_t)(engine - tenant->engines), 0);
  if (us == engine->slice_us) return;
  engine->slice_us = us;
  engine->unequal = engine->first;
  tenant->unequal = 1;
  book->restless = 1;
}

static void vgpu__slice_enter(struct vgpu_rm_book *book, struct vgpu_rm_object *group) {
  struct vgpu_rm_engine *engine = vgpu__engine(group->root->tenant, group->engine);
  if (group->at_slice != NULL) return;
  group->next_slice = engine->first;
  if (engine->first != NULL) engine->first->at_slice = &group->next_slice;
  engine->first = group;
  group->at_slice = &engine->first;
  engine->groups++;
  vgpu__divide(book, group->root->tenant, engine);
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

void vgpu__weight_set(struct vgpu_rm_book *book, struct vgpu_rm_tenant *tenant, uint32_t weight) {
  tenant->weight = weight;
  for (uint32_t i = 0; i < VGPU_RM_ENGINES; i++) {
    if (tenant->engines[i].groups != 0) vgpu__divide(book, tenant, &tenant->engines[i]);
  }
}

/* The next of a tenant's groups whose time slice is another than its engine's, or NULL. */
static struct vgpu_rm_object *vgpu__unequal(struct vgpu_rm_tenant *tenant) {
  for (uint32_t i = 0; i < VGPU_RM_ENGINES && tenant->unequal; i++) {
    struct vgpu_rm_engine *engine = &tenant->engines[i];
    while (engine->unequal != NULL) {
      struct vgpu_rm_object *group = engine->unequal;
      engine->unequal = group->next_slice;
      if (group->slice_us == engine->slice_us) continue;
      group->slice_us = engine->slice_us;
      return group;
    }
  }
  tenant->unequal = 0;
  return NULL;
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

/* Puts a group behind all others whose stop was handed out. */
static void vgpu__list_stopping(struct vgpu_rm_book *book, struct vgpu_rm_object *group) {
  struct vgpu_rm_tenant *tenant = group->root->tenant;
  vgpu__unlist(group);
  if (tenant->stopping_end == NULL) tenant->stopping_end = &tenant->stopping;
  vgpu__list(group, tenant->stopping_end);
  tenant->stopping_end = &group->next_group;
  group->round = book->round;
}

static void vgpu__list_running(struct vgpu_rm_book *book, struct vgpu_rm_object *group) {
  struct vgpu_rm_tenant *tenant = group->root->tenant;
  group->ours = 0;
  group->tries = 0;
  vgpu__list(group, &tenant->running);
  if (vgpu__is_held(book, tenant)) book->restless = 1;
}

static struct vgpu_rm_turn vgpu__turn_of(const struct vgpu_rm_object *group) {
  return (struct vgpu_rm_turn){.file = group->root->file != 0 ? group->root->file : group->root->owner,
                               .root = group->root->stamp,
                               .stamp = group->stamp,
                               .client = group->root->handle,
                               .group = group->handle};
}

static int vgpu__slice_next(struct vgpu_rm_book *book, struct vgpu_rm_turn *turn) {
  for (struct vgpu_rm_tenant *tenant = book->tenants; tenant != NULL && book->able; tenant = tenant->next) {
    const struct vgpu_rm_object *group = vgpu__unequal(tenant);
    if (group == NULL) continue;
    *turn = vgpu__turn_of(group);
    turn->slice_us = group->slice_us;
    return 1;
  }
  return 0;
}

/* A group to stop. Groups that have not been tried in this round come first among those that the driver refused. */
static struct vgpu_rm_object *vgpu__stop_next(const struct vgpu_rm_book *book, const struct vgpu_rm_tenant *tenant) {
  struct vgpu_rm_object *refused = tenant->stopping;
  if (tenant->running != NULL) return tenant->running;
  return refused != NULL && refused->round != book->round ? refused : NULL;
}

int vgpu__is_stopped(const struct vgpu_rm_book *book, const struct vgpu_rm_tenant *tenant) {
  int all = tenant->stopping == NULL && tenant->running == NULL;
  return tenant->stopped != NULL && (all || !vgpu__is_held(book, tenant));
}

int vgpu__owes_groups(const struct vgpu_rm_tenant *tenant) {
  return tenant->stopped != NULL || tenant->stopping != NULL;
}

int vgpu__turn_next(struct vgpu_rm_book *book, struct vgpu_rm_turn *turn) {
  int later = 0;
  book->restless = 0;
  for (struct vgpu_rm_tenant *tenant = book->tenants; tenant != NULL; tenant = tenant->next) {
    int held = vgpu__is_held(book, tenant);
    struct vgpu_rm_object *group = held ? vgpu__stop_next(book, tenant) : tenant->stopping;
    if (!held && group == NULL) group = tenant->stopped;
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
    turn->enable = !held && group->wanted;
    turn->stops = held;
    return 1;
  }
  if (vgpu__slice_next(book, turn)) return 1;
  book->pass = later ? book->pass + 1 : 0;
  return later ? -1 : 0;
}

void vgpu__turn_done(struct vgpu_rm_book *book, const struct vgpu_rm_turn *turn, int failed) {
  struct vgpu_rm_object *root = vgpu__client_stamped(book, turn->client, turn->root);
  struct vgpu_rm_object *group = root != NULL ? vgpu__object_find(book, root, turn->group) : NULL;
  if (group == NULL || group->stamp != turn->stamp) return;
  struct vgpu_rm_tenant *tenant = root->tenant;
  if (turn->slice_us != 0) {
    if (failed) tenant->unweighted++;
    return;
  }
  if (!group->ours) return;
  vgpu__note(book, tenant);
  if (turn->stops) {
    if (!failed) {
      vgpu__list(group, &tenant->stopped);
      return;
    }
    tenant->unstopped++;
    tenant->resisting += !group->resists;
    group->resists = 1;
    return;
  }
  if (failed && ++group->tries < MOST_TRIES) {
    struct vgpu_rm_object **end = &tenant->stopped;
    while (*end != NULL) end = &(*end)->next_group;
    vgpu__list(group, end);
    return;
  }
  if (failed) tenant->stuck++;
  if (!failed && group->wanted != turn->enable) vgpu__list(group, &tenant->stopped);
  else vgpu__list_running(book, group);
}

struct vgpu_rm_object *vgpu__group_of(struct vgpu_rm_object *object) {
  if (object == NULL || object->class_number == RM_CLASS_GROUP) return object;
  return object->parent != NULL && object->parent->class_number == RM_CLASS_GROUP ? object->parent : NULL;
}

int vgpu__group_asked(struct vgpu_rm_book *book, struct vgpu_rm_object *group, int wanted) {
  int held = vgpu__is_held(book, group->root->tenant);
  if (!group->ours && !held) return 0;
  group->wanted = wanted;
  if (!group->ours && group->at_group == NULL) { /* never scheduled, so there is nothing to stop */
    group->ours = 1;
    vgpu__list(group, &group->root->tenant->stopped);
    vgpu__slice_enter(book, group);
  }
  return 1;
}

void vgpu__group_scheduled(struct vgpu_rm_book *book, struct vgpu_rm_object *group, int wanted) {
  group->wanted = wanted;
  vgpu__list_running(book, group);
  vgpu__slice_enter(book, group);
}
