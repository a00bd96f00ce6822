// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
#include "rm_ledger.h"

#include "rm_abi.h"
#include "rm_turn.h"

int vgpu__book_begin(struct vgpu_rm_book *book, const struct vgpu_rm_heap *heap, uint32_t buckets, uint32_t salt) {
  *book = (struct vgpu_rm_book){.heap = *heap, .mask = buckets - 1, .salt = salt};
  book->table = heap->make(sizeof *book->table * buckets);
  book->names = heap->make(sizeof *book->names * buckets);
  book->files = heap->make(sizeof *book->files * buckets);
  if (book->table != NULL && book->names != NULL && book->files != NULL) return 0;
  if (book->table != NULL) heap->drop(book->table);
  if (book->names != NULL) heap->drop(book->names);
  if (book->files != NULL) heap->drop(book->files);
  return -1;
}

/* ---- tenants ---- */

void vgpu__tenant_add(struct vgpu_rm_book *book, struct vgpu_rm_tenant *tenant) {
  tenant->refs = 1;
  tenant->next = book->tenants;
  book->tenants = tenant;
}

void vgpu__tenant_remove(struct vgpu_rm_book *book, struct vgpu_rm_tenant *tenant) {
  for (struct vgpu_rm_tenant **at = &book->tenants; *at != NULL; at = &(*at)->next) {
    if (*at != tenant) continue;
    *at = tenant->next;
    tenant->key = 0;
    vgpu__tenant_release(book, tenant);
    return;
  }
}

struct vgpu_rm_tenant *vgpu__tenant_find(const struct vgpu_rm_book *book, uint64_t key) {
  for (struct vgpu_rm_tenant *tenant = book->tenants; tenant != NULL && key != 0; tenant = tenant->next) {
    if (tenant->key == key) return tenant;
  }
  return NULL;
}

void vgpu__tenant_hold(struct vgpu_rm_tenant *tenant) { tenant->refs++; }

void vgpu__tenant_release(struct vgpu_rm_book *book, struct vgpu_rm_tenant *tenant) {
  if (--tenant->refs == 0) book->heap.drop(tenant);
}

static void vgpu__note_peak(struct vgpu_rm_tenant *tenant) {
  if (tenant->used > tenant->peak) tenant->peak = tenant->used;
}

int vgpu__reserve(struct vgpu_rm_tenant *tenant, uint64_t bytes) {
  if (tenant->used > tenant->limit || bytes > tenant->limit - tenant->used) return -1;
  tenant->used += bytes;
  vgpu__note_peak(tenant);
  return 0;
}

uint64_t vgpu__force(struct vgpu_rm_tenant *tenant, uint64_t bytes) {
  uint64_t added = bytes > VGPU_RM_NO_LIMIT - tenant->used ? VGPU_RM_NO_LIMIT - tenant->used : bytes;
  tenant->used += added;
  vgpu__note_peak(tenant);
  return added;
}

void vgpu__refund(struct vgpu_rm_tenant *tenant, uint64_t bytes) {
  tenant->used -= bytes < tenant->used ? bytes : tenant->used;
}

void vgpu__block_release(struct vgpu_rm_book *book, struct vgpu_rm_block *block) {
  if (--block->refs != 0) return;
  if (block->on_host)
    block->tenant->host_used -= block->bytes < block->tenant->host_used ? block->bytes : block->tenant->host_used;
  else vgpu__refund(block->tenant, block->bytes);
  vgpu__tenant_release(book, block->tenant);
  book->heap.drop(block);
}

void vgpu__block_keep(struct vgpu_rm_block *block) {
  if (block->kept) return;
  block->kept = 1;
  block->refs++;
  block->next_kept = block->tenant->kept;
  block->tenant->kept = block;
}

/* ---- calls in the driver ---- */

void vgpu__flight_begin(struct vgpu_rm_book *book, struct vgpu_rm_flight *flight) {
  flight->next = book->flights;
  flight->at = &book->flights;
  if (flight->next != NULL) flight->next->at = &flight->next;
  book->flights = flight;
}

void vgpu__flight_end(struct vgpu_rm_flight *flight) {
  if (flight->at == NULL) return;
  *flight->at = flight->next;
  if (flight->next != NULL) flight->next->at = flight->at;
}

int vgpu__flight_duplicated(const struct vgpu_rm_book *book, const struct vgpu_rm_flight *flight, uint32_t handle) {
  const struct vgpu_rm_flight *dup = book->flights;
  if (flight->duplicated) return 1;
  while (dup != NULL && (dup->source != flight->client || dup->source_object != handle)) dup = dup->next;
  return dup != NULL;
}

void vgpu__flight_duplicates(struct vgpu_rm_book *book, const struct vgpu_rm_flight *dup, int sure) {
  for (const struct vgpu_rm_flight *at = book->flights; at != NULL && sure; at = at->next) {
    sure = !at->frees || at->client != dup->source;
  }
  for (struct vgpu_rm_flight *at = book->flights; at != NULL; at = at->next) {
    if (at->client != dup->source || at->frees) continue;
    if (at->handle == dup->source_object || (at->handle == 0 && !sure)) at->duplicated = 1;
  }
}

/* ---- the tables ---- */

static uint32_t vgpu__bucket(const struct vgpu_rm_book *book, uint64_t of, uint32_t handle) {
  uint64_t mixed = (of ^ book->salt) * 0x9e3779b97f4a7c15u + handle;
  mixed = (mixed ^ mixed >> 29) * 0xbf58476d1ce4e5b9u;
  mixed = (mixed ^ mixed >> 32) * (book->salt | 1u);
  return (uint32_t)(mixed >> 32 ^ mixed) & book->mask;
}

/* An object is hashed by its client's stamp, which is unique. */
static struct vgpu_rm_object **vgpu__place(const struct vgpu_rm_book *book, const struct vgpu_rm_object *object) {
  return &book->table[vgpu__bucket(book, object->root == object ? object->owner : object->root->stamp, object->handle)];
}

struct vgpu_rm_object *vgpu__object_find(const struct vgpu_rm_book *book, struct vgpu_rm_object *root,
                                         uint32_t handle) {
  if (handle == 0 || handle == root->handle) return handle == 0 ? NULL : root;
  for (struct vgpu_rm_object *at = book->table[vgpu__bucket(book, root->stamp, handle)]; at != NULL; at = at->chain) {
    if (at->root == root && at->handle == handle) return at;
  }
  return NULL;
}

struct vgpu_rm_object *vgpu__client_find(const struct vgpu_rm_book *book, uint64_t file, uint32_t client) {
  uint64_t owner = vgpu__file_owner(book, file);
  for (struct vgpu_rm_object *at = book->table[vgpu__bucket(book, owner, client)]; at != NULL; at = at->chain) {
    if (at->root == at && at->owner == owner && at->handle == client) return at;
  }
  return NULL;
}

struct vgpu_rm_object *vgpu__client_named(const struct vgpu_rm_book *book, uint32_t client, uint32_t *count) {
  struct vgpu_rm_object *sure = NULL, *any = NULL;
  uint32_t sures = 0;
  *count = 0;
  for (struct vgpu_rm_object *at = book->names[vgpu__bucket(book, 0, client)]; at != NULL;
       at = at->places[BY_NAME].next) {
    if (at->handle != client) continue;
    any = at;
    ++*count;
    if (!at->sure) continue;
    sure = at;
    sures++;
  }
  if (sures == 1) return sure;
  return *count == 1 ? any : NULL;
}

struct vgpu_rm_object *vgpu__client_stamped(const struct vgpu_rm_book *book, uint32_t client, uint64_t stamp) {
  struct vgpu_rm_object *at = book->names[vgpu__bucket(book, 0, client)];
  while (at != NULL && at->stamp != stamp) at = at->places[BY_NAME].next;
  return at;
}

static struct vgpu_rm_files *vgpu__files(const struct vgpu_rm_book *book, uint64_t file) {
  return &book->files[vgpu__bucket(book, file, 0)];
}

/* Tenants choose the lengths of all lists of clients, so nothing searches a list for the one to remove. */
static void vgpu__join(struct vgpu_rm_object **list, struct vgpu_rm_object *client, int which) {
  struct vgpu_rm_place *place = &client->places[which];
  place->next = *list;
  place->at = list;
  if (*list != NULL) (*list)->places[which].at = &place->next;
  *list = client;
}

static void vgpu__part(struct vgpu_rm_object *client, int which) {
  struct vgpu_rm_place *place = &client->places[which];
  if (place->at == NULL) return;
  *place->at = place->next;
  if (place->next != NULL) place->next->places[which].at = place->at;
  place->at = NULL;
}

static void vgpu__link(struct vgpu_rm_book *book, struct vgpu_rm_object *object) {
  if (object->handle == 0) return;
  struct vgpu_rm_object **bucket = vgpu__place(book, object);
  object->chain = *bucket;
  *bucket = object;
}

static void vgpu__unlink(struct vgpu_rm_book *book, struct vgpu_rm_object *object) {
  if (object->handle == 0) return;
  struct vgpu_rm_object **at = vgpu__place(book, object);
  while (*at != object) at = &(*at)->chain;
  *at = object->chain;
}

static void vgpu__chain(struct vgpu_rm_book *book, struct vgpu_rm_object *object) {
  object->stamp = ++book->stamp;
  book->objects++;
  vgpu__link(book, object);
}

static void vgpu__unchain(struct vgpu_rm_book *book, struct vgpu_rm_object *object) {
  book->objects--;
  vgpu__unlink(book, object);
}

/* ---- the tree ---- */

static void vgpu__hang(struct vgpu_rm_object *object, struct vgpu_rm_object *parent) {
  object->parent = parent;
  object->previous = NULL;
  object->next = parent->child;
  if (parent->child != NULL) parent->child->previous = object;
  parent->child = object;
}

static void vgpu__unhang(struct vgpu_rm_object *object) {
  if (object->parent == NULL) return;
  if (object->previous != NULL) object->previous->next = object->next;
  else object->parent->child = object->next;
  if (object->next != NULL) object->next->previous = object->previous;
  object->parent = NULL;
}

/* Removes an object that has no children. */
static void vgpu__discard(struct vgpu_rm_book *book, struct vgpu_rm_object *object) {
  struct vgpu_rm_tenant *tenant = object->root->tenant;
  vgpu__turn_leave(object);
  vgpu__unhang(object);
  vgpu__unchain(book, object);
  if (--tenant->objects == 0) vgpu__note(book, tenant);
  vgpu__group_forget(book, object);
  if (object->block != NULL) vgpu__block_release(book, object->block);
  while (tenant->objects == 0 && tenant->kept != NULL) {
    struct vgpu_rm_block *block = tenant->kept;
    tenant->kept = block->next_kept;
    block->kept = 0;
    vgpu__block_release(book, block);
  }
  if (object->root == object) {
    for (int which = 0; which < VGPU_RM_LISTS; which++) vgpu__part(object, which);
    vgpu__tenant_release(book, tenant);
  }
  book->heap.drop(object);
}

void vgpu__object_remove(struct vgpu_rm_book *book, struct vgpu_rm_object *object, uint64_t stamp) {
  struct vgpu_rm_object *root = object->root, *at = object;
  int kept = 0;
  for (;;) { /* not recursive, because tenants choose the depth */
    struct vgpu_rm_object *child = at->child, *above = at->parent;
    if (child != NULL && child->stamp <= stamp) {
      at = child;
    } else if (child != NULL) {
      vgpu__turn_leave(child);
      vgpu__unhang(child);
      if (object != root) {
        vgpu__hang(child, root);
      } else { /* set aside, so that the loop does not visit it again */
        child->next = root->next;
        root->next = child;
        kept = 1;
      }
    } else if (at == object) {
      break;
    } else {
      vgpu__discard(book, at);
      at = above;
    }
  }
  if (!kept) {
    vgpu__discard(book, object);
    return;
  }
  while (root->next != NULL) { /* a client has no siblings, so its `next` held the children to keep */
    struct vgpu_rm_object *child = root->next;
    root->next = child->next;
    vgpu__hang(child, root);
  }
}

struct vgpu_rm_object *vgpu__client_enter(struct vgpu_rm_book *book, struct vgpu_rm_object *made,
                                          struct vgpu_rm_tenant *tenant, uint32_t client, uint64_t file, uint64_t stamp,
                                          int sure) {
  struct vgpu_rm_object *there = vgpu__client_find(book, file, client), *other;
  uint32_t count;
  if (there != NULL && there->stamp <= stamp) {
    vgpu__object_remove(book, there, stamp);
    there = vgpu__client_find(book, file, client);
  }
  if (there != NULL) {
    book->heap.drop(made);
    return there;
  }
  /* The driver has a handle only once. Either this client is already gone, or the end of the other one is about to
   * be seen. */
  other = vgpu__client_named(book, client, &count);
  made->root = made;
  made->client = made->handle = client;
  made->class_number = RM_CLASS_ROOT;
  made->tenant = tenant;
  made->file = file;
  made->owner = vgpu__file_owner(book, file);
  made->sure = sure && (other == NULL || !other->sure);
  vgpu__join(&book->clients, made, IN_BOOK);
  vgpu__join(&book->names[vgpu__bucket(book, 0, client)], made, BY_NAME);
  vgpu__join(&vgpu__files(book, file)->made, made, BY_FILE);
  vgpu__join(&vgpu__files(book, made->owner)->clients, made, BY_OWNER);
  if (tenant->objects++ == 0) vgpu__note(book, tenant);
  vgpu__tenant_hold(tenant);
  vgpu__chain(book, made);
  return made;
}

void vgpu__object_enter(struct vgpu_rm_book *book, struct vgpu_rm_object *made, struct vgpu_rm_object *root,
                        uint32_t parent, uint32_t handle, uint32_t class_number, struct vgpu_rm_block *block,
                        uint64_t stamp) {
  struct vgpu_rm_object *there = vgpu__object_find(book, root, handle);
  if (there != NULL && there != root && there->stamp <= stamp) {
    vgpu__object_remove(book, there, stamp);
    there = NULL;
  }
  struct vgpu_rm_object *above = vgpu__object_find(book, root, parent);
  made->root = root;
  made->client = root->client;
  /* It is unknown which of the two the driver has now, so both stay charged. */
  made->handle = there == NULL ? handle : 0;
  made->class_number = class_number;
  made->block = block;
  if (block != NULL && made->handle == 0) vgpu__block_keep(block); /* a DUP will not find it */
  root->tenant->objects++;
  vgpu__chain(book, made);
  vgpu__hang(made, above != NULL ? above : root);
  vgpu__turn_enter(book, made);
}

/* ---- files ---- */

static struct vgpu_rm_tie **vgpu__tie_of(const struct vgpu_rm_book *book, uint64_t file) {
  struct vgpu_rm_tie **at = &vgpu__files(book, file)->ties;
  while (*at != NULL && (*at)->file != file) at = &(*at)->next;
  return at;
}

uint64_t vgpu__file_owner(const struct vgpu_rm_book *book, uint64_t file) {
  const struct vgpu_rm_tie *tie = *vgpu__tie_of(book, file);
  return tie != NULL ? tie->owner : file;
}

void vgpu__file_tie(struct vgpu_rm_book *book, struct vgpu_rm_tie *tie) {
  struct vgpu_rm_tie **at = vgpu__tie_of(book, tie->file);
  struct vgpu_rm_files *owner = vgpu__files(book, tie->owner);
  tie->next = *at;
  *at = tie;
  tie->next_owned = owner->owned;
  owner->owned = tie;
  book->tied++;
}

static struct vgpu_rm_tie *vgpu__tie_take(struct vgpu_rm_book *book, uint64_t file) {
  struct vgpu_rm_tie **at = vgpu__tie_of(book, file), *tie = *at;
  if (tie == NULL) return NULL;
  *at = tie->next;
  at = &vgpu__files(book, tie->owner)->owned;
  while (*at != tie) at = &(*at)->next_owned;
  *at = tie->next_owned;
  book->tied--;
  return tie;
}

void vgpu__file_untie(struct vgpu_rm_book *book, uint64_t file) {
  struct vgpu_rm_tie *tie = vgpu__tie_take(book, file);
  if (tie != NULL) book->heap.drop(tie);
}

static void vgpu__own(struct vgpu_rm_book *book, struct vgpu_rm_object *client, uint64_t owner) {
  vgpu__unlink(book, client);
  vgpu__part(client, BY_OWNER);
  client->owner = owner;
  vgpu__link(book, client);
  vgpu__join(&vgpu__files(book, owner)->clients, client, BY_OWNER);
}

/* The clients that a file created for one owner belong to another. */
static void vgpu__own_all(struct vgpu_rm_book *book, uint64_t file, uint64_t from, uint64_t to) {
  struct vgpu_rm_object *client = vgpu__files(book, file)->made;
  for (; client != NULL && from != to; client = client->places[BY_FILE].next) {
    if (client->file == file && client->owner == from) vgpu__own(book, client, to);
  }
}

void vgpu__file_tied(struct vgpu_rm_book *book, uint64_t file, uint64_t owner, struct vgpu_rm_tie **spare) {
  uint64_t before = vgpu__file_owner(book, file);
  struct vgpu_rm_tie *tie = vgpu__tie_take(book, file);
  if (tie == NULL) {
    tie = *spare;
    *spare = NULL;
  }
  if (tie == NULL) return;
  tie->file = file;
  tie->owner = owner;
  tie->done = 1;
  vgpu__file_tie(book, tie);
  vgpu__own_all(book, file, before, owner);
}

void vgpu__file_tie_failed(struct vgpu_rm_book *book, uint64_t file) {
  const struct vgpu_rm_tie *tie = *vgpu__tie_of(book, file);
  if (tie == NULL || tie->done) return;
  uint64_t owner = tie->owner;
  vgpu__file_untie(book, file);
  vgpu__own_all(book, file, owner, file);
}

void vgpu__file_closed(struct vgpu_rm_book *book, uint64_t file) {
  struct vgpu_rm_files *files = vgpu__files(book, file);
  vgpu__file_untie(book, file);
  for (struct vgpu_rm_tie *tie = files->owned, *after; tie != NULL; tie = after) {
    after = tie->next_owned;
    if (tie->owner == file) vgpu__file_untie(book, tie->file);
  }
  for (struct vgpu_rm_object *client = files->made, *next; client != NULL; client = next) {
    next = client->places[BY_FILE].next;
    if (client->file != file) continue;
    vgpu__part(client, BY_FILE);
    client->file = 0;
    if (client->owner == 0) vgpu__object_remove(book, client, VGPU_RM_NO_LIMIT);
  }
  for (struct vgpu_rm_object *client = files->clients, *next; client != NULL; client = next) {
    next = client->places[BY_OWNER].next;
    if (client->owner != file) continue;
    vgpu__own(book, client, client->file);
    if (client->file == 0) vgpu__object_remove(book, client, VGPU_RM_NO_LIMIT);
  }
}

void vgpu__book_end(struct vgpu_rm_book *book) {
  while (book->clients != NULL) vgpu__object_remove(book, book->clients, VGPU_RM_NO_LIMIT);
  for (uint32_t i = 0; i <= book->mask; i++) {
    while (book->files[i].ties != NULL) vgpu__file_untie(book, book->files[i].ties->file);
  }
  while (book->tenants != NULL) vgpu__tenant_remove(book, book->tenants);
  book->heap.drop(book->table);
  book->heap.drop(book->names);
  book->heap.drop(book->files);
  book->table = book->names = NULL;
  book->files = NULL;
}
