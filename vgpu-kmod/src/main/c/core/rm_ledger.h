/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The ledger: what each tenant holds, to the byte, and which objects of the driver hold it. The caller has the book's lock
 * for every function here, but for vgpu__book_begin and vgpu__book_end. None of them sleeps or reads a caller's memory.
 *
 * The driver works on a call while the lock is free, so the order in which two calls were carried out is not known here where
 * they overlapped. Wherever that leaves two answers, the ledger keeps the charge: it may say too much until the file is
 * closed, and never too little. Each call has a number (stamp) from its admission, and each object one from its entry:
 * a call removes only objects that were in the book when the call was admitted.
 */
#ifndef VGPU_RM_LEDGER_H
#define VGPU_RM_LEDGER_H

#include "rm_port.h"

/* What the core needs of where it runs: memory that is zeroed. */
struct vgpu_rm_heap {
  void *(*make)(size_t size);
  void (*drop)(void *memory);
};

struct vgpu_rm_tenant {
  struct vgpu_rm_tenant *next;
  uint64_t key;   /* 0: no process is found by it */
  uint64_t limit; /* VGPU_RM_NO_LIMIT: none */
  uint64_t used;  /* with what is reserved for calls in the driver */
  uint64_t peak;
  uint64_t host_used;    /* host memory that the driver took for it: counted, not limited */
  uint64_t most_objects; /* bounds what the ledger itself takes */
  uint64_t objects;
  uint64_t refs;    /* the book's or the owner's, clients, blocks, and calls in the driver */
  uint32_t weight;  /* of the time slices of its channel groups, in percent of the driver's own; 0: not set */
  /* counts */
  uint64_t allocations, refused, filtered, undone, over, changed, unweighted, stops, unstopped, stuck;
  /* turns (rm_turn.h) */
  int yields; /* its channel groups stand while others have work */
  struct vgpu_rm_object *running, *stopped;
  uint64_t news; /* the book's, when something last happened to it */
};

/* Memory that several objects may hold. */
struct vgpu_rm_block {
  struct vgpu_rm_tenant *tenant;
  uint64_t bytes;
  uint32_t refs;
  int on_host;
};

struct vgpu_rm_object {
  struct vgpu_rm_object *chain;                             /* of the table */
  struct vgpu_rm_object *root, *parent, *child, *next, *previous; /* siblings */
  uint32_t client, handle, class_number;                    /* handle 0: not known; found by nobody */
  uint64_t stamp;
  struct vgpu_rm_block *block;
  /* Of a channel group alone: where it is in its tenant's lists; none until the tenant schedules it. */
  struct vgpu_rm_object *next_group, **at_group;
  int wanted; /* what the tenant asked for last */
  int ours;   /* stopped, or about to be given back: the tenant's wishes are only noted */
  uint32_t tries;
  /* Of a client (its own root) alone. */
  struct vgpu_rm_tenant *tenant;
  struct vgpu_rm_object *next_client;
  struct vgpu_rm_object *namesake; /* the next in its bucket of names */
  uint64_t file, owner;            /* that made it, and that it belongs to; 0: closed */
  int sure;                        /* the driver's answer was seen, and nothing that could have ended it */
};

/* A file that was tied to another by REGISTER_FD. */
struct vgpu_rm_tie {
  struct vgpu_rm_tie *next;
  uint64_t file, owner;
};

struct vgpu_rm_book {
  struct vgpu_rm_heap heap;
  struct vgpu_rm_tenant *tenants;
  struct vgpu_rm_object *clients;
  struct vgpu_rm_object **table; /* clients by owner and handle, objects by client and handle */
  struct vgpu_rm_object **names; /* clients by handle alone */
  struct vgpu_rm_tie **ties;     /* by file */
  uint32_t mask;
  uint32_t salt; /* so that nobody can choose handles that fall together */
  uint64_t stamp;
  uint64_t objects, tied;
  int held;     /* tenants that yield are stopped */
  int restless; /* there is something to stop that vgpu__turn_next has not given out */
  uint32_t pass; /* of tries to give back */
  uint64_t news;
};

/* buckets: a power of two. 0, or -1 without memory. */
int vgpu__book_begin(struct vgpu_rm_book *book, const struct vgpu_rm_heap *heap, uint32_t buckets, uint32_t salt);
/* Forgets everything; nobody may be in a call. */
void vgpu__book_end(struct vgpu_rm_book *book);

/* Puts a tenant in; the caller has made it, zeroed, and holds one ref until vgpu__tenant_remove. */
void vgpu__tenant_add(struct vgpu_rm_book *book, struct vgpu_rm_tenant *tenant);
/* No process is found by it any more. Its clients keep it, and its limit, until they are gone. */
void vgpu__tenant_remove(struct vgpu_rm_book *book, struct vgpu_rm_tenant *tenant);
struct vgpu_rm_tenant *vgpu__tenant_find(const struct vgpu_rm_book *book, uint64_t key);
void vgpu__tenant_hold(struct vgpu_rm_tenant *tenant);
void vgpu__tenant_release(struct vgpu_rm_book *book, struct vgpu_rm_tenant *tenant);

/* 0, or -1 where the limit does not allow it. */
int vgpu__reserve(struct vgpu_rm_tenant *tenant, uint64_t bytes);
/* What the driver took against the limit all the same; returns what there is room for in the number itself. */
uint64_t vgpu__force(struct vgpu_rm_tenant *tenant, uint64_t bytes);
void vgpu__refund(struct vgpu_rm_tenant *tenant, uint64_t bytes);

/* Something has happened to a tenant that its watchers may want to know. */
static inline void vgpu__note(struct vgpu_rm_book *book, struct vgpu_rm_tenant *tenant) { tenant->news = ++book->news; }

/* An object of a client; the client itself by its own handle. */
struct vgpu_rm_object *vgpu__object_find(const struct vgpu_rm_book *book, struct vgpu_rm_object *root, uint32_t handle);
/*
 * The client that a call on `file` means. The driver takes a client's handle on the client's own file alone. A handle can be
 * in the book several times: what ended the earlier client was not seen, and each belongs to another file.
 */
struct vgpu_rm_object *vgpu__client_find(const struct vgpu_rm_book *book, uint64_t file, uint32_t client);
/*
 * The client that has a handle now, on whatever file: the only one that is sure, or the only one at all. NULL where there is
 * none, or where it is not known which; *count tells how many there are.
 */
struct vgpu_rm_object *vgpu__client_named(const struct vgpu_rm_book *book, uint32_t client, uint32_t *count);
/* The client of a handle that was entered with this stamp, or NULL. */
struct vgpu_rm_object *vgpu__client_stamped(const struct vgpu_rm_book *book, uint32_t client, uint64_t stamp);
/*
 * Puts a client in; `sure` where the driver's answer was seen. One of its file and handle that was there when `stamp` was given
 * has gone without our seeing it, and goes now. One that came later stays in place of the new one, which is handed back: a
 * client's objects are then found below that.
 */
struct vgpu_rm_object *vgpu__client_enter(struct vgpu_rm_book *book, struct vgpu_rm_object *made, struct vgpu_rm_tenant *tenant, uint32_t client,
                                          uint64_t file, uint64_t stamp, int sure);
/* Puts an object in below its parent, or below its client where the parent is not known. */
void vgpu__object_enter(struct vgpu_rm_book *book, struct vgpu_rm_object *made, struct vgpu_rm_object *root, uint32_t parent, uint32_t handle,
                        uint32_t class_number, struct vgpu_rm_block *block, uint64_t stamp);
/* An object and all below it; what came after `stamp` stays, below the client. */
void vgpu__object_remove(struct vgpu_rm_book *book, struct vgpu_rm_object *object, uint64_t stamp);
void vgpu__block_release(struct vgpu_rm_book *book, struct vgpu_rm_block *block);

/* The file that a file's clients belong to: that which it was tied to, or itself. */
uint64_t vgpu__file_owner(const struct vgpu_rm_book *book, uint64_t file);
void vgpu__file_tie(struct vgpu_rm_book *book, struct vgpu_rm_tie *tie);
void vgpu__file_untie(struct vgpu_rm_book *book, uint64_t file);
/* The driver did not tie it: clients that were made meanwhile belong to the file itself. */
void vgpu__file_tie_failed(struct vgpu_rm_book *book, uint64_t file);
/* The driver has closed it. */
void vgpu__file_closed(struct vgpu_rm_book *book, uint64_t file);

#endif
