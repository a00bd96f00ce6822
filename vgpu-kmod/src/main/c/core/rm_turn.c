// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
#include "rm_turn.h"

#include "rm_abi.h"

enum { MOST_TRIES = 50 };

static int vgpu__is_held(const struct vgpu_rm_book *book, const struct vgpu_rm_tenant *tenant) {
  return book->held && tenant->yields;
}

void vgpu__group_forget(struct vgpu_rm_object *group) {
  if (group->at_group == NULL) return;
  *group->at_group = group->next_group;
  if (group->next_group != NULL) group->next_group->at_group = group->at_group;
  group->at_group = NULL;
}

static void vgpu__list(struct vgpu_rm_object *group, struct vgpu_rm_object **list) {
  vgpu__group_forget(group);
  group->next_group = *list;
  if (*list != NULL) (*list)->at_group = &group->next_group;
  *list = group;
  group->at_group = list;
}

static void vgpu__list_running(struct vgpu_rm_book *book, struct vgpu_rm_object *group) {
  struct vgpu_rm_tenant *tenant = group->root->tenant;
  group->ours = 0;
  group->tries = 0;
  vgpu__list(group, &tenant->running);
  if (vgpu__is_held(book, tenant)) book->restless = 1;
}

int vgpu__turn_next(struct vgpu_rm_book *book, struct vgpu_rm_turn *turn) {
  int later = 0;
  book->restless = 0;
  for (struct vgpu_rm_tenant *tenant = book->tenants; tenant != NULL; tenant = tenant->next) {
    int held = vgpu__is_held(book, tenant);
    struct vgpu_rm_object *group = held ? tenant->running : tenant->stopped;
    if (group == NULL) continue;
    if (!held && group->tries > book->pass) { /* groups with the fewest failures come first */
      later = 1;
      continue;
    }
    if (held) {
      vgpu__list(group, &tenant->stopped);
      tenant->stops++;
    } else {
      vgpu__group_forget(group);
    }
    group->ours = 1;
    vgpu__note(book, tenant);
    *turn = (struct vgpu_rm_turn){.file = group->root->file != 0 ? group->root->file : group->root->owner,
                                  .root = group->root->stamp,
                                  .stamp = group->stamp,
                                  .client = group->root->handle,
                                  .group = group->handle,
                                  .enable = !held && group->wanted,
                                  .stops = held};
    return 1;
  }
  book->pass = later ? book->pass + 1 : 0;
  return later ? -1 : 0;
}

void vgpu__turn_done(struct vgpu_rm_book *book, const struct vgpu_rm_turn *turn, int failed) {
  struct vgpu_rm_object *root = vgpu__client_stamped(book, turn->client, turn->root);
  struct vgpu_rm_object *group = root != NULL ? vgpu__object_find(book, root, turn->group) : NULL;
  if (group == NULL || group->stamp != turn->stamp || !group->ours) return;
  struct vgpu_rm_tenant *tenant = root->tenant;
  vgpu__note(book, tenant);
  if (turn->stops) {
    if (failed) tenant->unstopped++;
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
  }
  return 1;
}

void vgpu__group_scheduled(struct vgpu_rm_book *book, struct vgpu_rm_object *group, int wanted) {
  group->wanted = wanted;
  vgpu__list_running(book, group);
}
