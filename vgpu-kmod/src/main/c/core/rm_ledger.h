/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The ledger: how many bytes each tenant holds, and in which objects of the driver. The caller of every function here
 * holds the book's lock, except for vgpu__book_begin and vgpu__book_end. No function sleeps or reads a caller's memory.
 *
 * The driver executes a call while the lock is free, so the order of overlapping calls is not known. If two outcomes
 * are possible, the ledger keeps the charge: it may be too high until the file is closed, and is never too low. Each
 * call gets a number (stamp) at its admission and each object one at its entry. A call removes only objects that were
 * in the book when the call was admitted.
 */
#ifndef VGPU_RM_LEDGER_H
#define VGPU_RM_LEDGER_H

#include "rm_port.h"

/* The host's memory allocator. Memory is zeroed. */
struct vgpu_rm_heap {
  void *(*make)(size_t size);
  void (*drop)(void *memory);
};

enum { VGPU_RM_ENGINES = 128 };

/* A tenant's channel groups on one engine. They divide the time of the tenant's weight: see rm_turn.h. */
struct vgpu_rm_engine {
  struct vgpu_rm_object *first, *unequal; /* unequal: the next one that may have to be set, or NULL */
  uint32_t groups;
  uint32_t slice_us; /* of each; 0: each has its own one */
};

struct vgpu_rm_tenant {
  struct vgpu_rm_tenant *next;
  uint64_t key;   /* 0: not found for any process */
  uint64_t limit; /* VGPU_RM_NO_LIMIT: no limit */
  uint64_t used;  /* including what is reserved for calls in the driver */
  uint64_t peak;
  uint64_t host_used;    /* host memory that the driver took for the tenant: counted, not limited */
  uint64_t most_objects; /* bounds the ledger's own memory */
  uint64_t objects;
  uint64_t refs;   /* held by the book or the owner, by clients, by blocks, and by calls in the driver */
  uint32_t weight; /* its time on an engine in percent of a round (rm_turn.h); 0: not set */
  uint32_t level;  /* the interleave level of its channel groups (rm_turn.h) */
  /* counters */
  uint64_t allocations, refused, filtered, undone, over, changed, unweighted, unlevelled, stops, unstopped, stuck;
  /* turns (rm_turn.h) */
  int yields; /* its channel groups are stopped while the book is held */
  struct vgpu_rm_object *running, *stopped;
  struct vgpu_rm_object *stopping, **stopping_end; /* stopping_end: where the next one goes; NULL: there was none */
  uint64_t resisting;                              /* those of `stopping` whose stop the driver refused: they go on */
  struct vgpu_rm_engine engines[VGPU_RM_ENGINES];  /* by the engine's type; the driver numbers them from 1 */
  int unequal;                /* one of the engines may have groups with another time slice or level */
  uint64_t news;              /* the book's `news` at the tenant's last change */
  struct vgpu_rm_block *kept; /* what unknown objects may hold: charged until the tenant has no objects */
};

/* A piece of memory that several objects may hold. */
struct vgpu_rm_block {
  struct vgpu_rm_tenant *tenant;
  uint64_t bytes;
  uint32_t refs;
  int on_host, kept;
  struct vgpu_rm_block *next_kept;
};

/*
 * A tenant's call in the driver that names memory or frees a name: ALLOC, DUP or FREE. A DUP may have duplicated what
 * an ALLOC or a DUP beside it made, although the ledger did not have that yet.
 */
struct vgpu_rm_flight {
  struct vgpu_rm_flight *next, **at;
  uint32_t client, handle;        /* the new name; handle 0: the driver chooses it, or FREE */
  uint32_t source, source_object; /* what a DUP duplicates */
  int frees;
  int duplicated; /* what it made may have been */
};

/* A client's position in a list. */
enum { IN_BOOK, BY_NAME, BY_FILE, BY_OWNER, VGPU_RM_LISTS };
struct vgpu_rm_place {
  struct vgpu_rm_object *next, **at; /* at NULL: not in the list */
};

struct vgpu_rm_object {
  struct vgpu_rm_object *chain;                                   /* in its bucket of `table` */
  struct vgpu_rm_object *root, *parent, *child, *next, *previous; /* siblings */
  uint32_t client, handle, class_number;                          /* handle 0: unknown, so it is never found */
  uint64_t stamp;
  struct vgpu_rm_block *block;
  /*
   * A channel group's position in the tenant's lists: in none until the tenant schedules the group. A channel's
   * position among its group's channels, and a subdevice's among its device's.
   */
  struct vgpu_rm_object *next_group, **at_group;
  struct vgpu_rm_object *members; /* of a channel group its channels, of a device its subdevices */
  _Bool disabled;                 /* a channel: the tenant's last request */
  _Bool shut;                     /* a channel: it may be disabled by us, and has to be given back */
  /* Only for channel groups (rm_turn.h). */
  struct vgpu_rm_object *cursor; /* the next channel of the pass; NULL: the pass has ended */
  _Bool giving;                  /* the pass gives back */
  _Bool refused;                 /* the driver refused a call of the pass */
  _Bool again;                   /* another pass is needed */
  _Bool at_once;                 /* and not only in the next round */
  _Bool asked;                   /* a SCHEDULE of the tenant was recorded, and not executed */
  _Bool stopped;                 /* it is in that list */
  int wanted;                    /* the tenant's last request */
  int ours;                      /* stopped, or about to be given back; the tenant's requests are only recorded */
  int resists;
  uint32_t tries;
  uint32_t round;                                /* the book's `round` at the last stop */
  struct vgpu_rm_object *next_slice, **at_slice; /* on its engine, once it has been scheduled */
  uint32_t engine, slice_us, level;
  uint32_t own_us; /* the time slice that the tenant has asked for, or the driver's */
  /* Only for clients (objects that are their own root). */
  struct vgpu_rm_tenant *tenant;
  struct vgpu_rm_place places[VGPU_RM_LISTS];
  uint64_t file, owner; /* the file that created it, and the file it belongs to; 0: closed */
  int sure;             /* the driver's answer was seen, and no possible end of the client since */
};

/* A file that REGISTER_FD tied to another file. */
struct vgpu_rm_tie {
  struct vgpu_rm_tie *next, *next_owned; /* in the buckets of its file and of its owner */
  uint64_t file, owner;
  int done; /* the driver has tied it */
};

/* A bucket of files. */
struct vgpu_rm_files {
  struct vgpu_rm_tie *ties, *owned;      /* of these files to others, and of others to these files */
  struct vgpu_rm_object *made, *clients; /* the clients that these files created, and those that belong to them */
};

struct vgpu_rm_book {
  struct vgpu_rm_heap heap;
  struct vgpu_rm_tenant *tenants;
  struct vgpu_rm_object *clients;
  struct vgpu_rm_object **table; /* clients by owner and handle, objects by client and handle */
  struct vgpu_rm_object **names; /* clients by handle only */
  struct vgpu_rm_files *files;   /* by file */
  struct vgpu_rm_flight *flights;
  uint32_t mask;
  uint32_t salt; /* random, so that no tenant can choose handles that collide */
  uint64_t stamp;
  uint64_t objects, tied;
  int held;       /* yielding tenants are stopped */
  uint32_t round; /* increased by the host to have refused stops tried again */
  int able;       /* the host can make calls of its own now */
  int restless;   /* there may be a call to make that vgpu__turn_next has not returned */
  uint32_t pass;  /* the number of passes over groups that could not be given back */
  uint64_t news;
};

/* buckets: a power of two. 0, or -1 if there is no memory. */
int vgpu__book_begin(struct vgpu_rm_book *book, const struct vgpu_rm_heap *heap, uint32_t buckets, uint32_t salt);
/* Forgets everything. No call may be in progress. */
void vgpu__book_end(struct vgpu_rm_book *book);

/* Adds a tenant. The caller has allocated it zeroed, and owns one reference until vgpu__tenant_remove. */
void vgpu__tenant_add(struct vgpu_rm_book *book, struct vgpu_rm_tenant *tenant);
/* The tenant is no longer found for any process. Its clients keep it, and its limit, until they are gone. */
void vgpu__tenant_remove(struct vgpu_rm_book *book, struct vgpu_rm_tenant *tenant);
struct vgpu_rm_tenant *vgpu__tenant_find(const struct vgpu_rm_book *book, uint64_t key);
void vgpu__tenant_hold(struct vgpu_rm_tenant *tenant);
void vgpu__tenant_release(struct vgpu_rm_book *book, struct vgpu_rm_tenant *tenant);

/* 0, or -1 if the limit does not allow it. */
int vgpu__reserve(struct vgpu_rm_tenant *tenant, uint64_t bytes);
/* Charges what the driver took in excess of the limit. Returns the bytes charged: fewer only if the counter would
 * overflow. */
uint64_t vgpu__force(struct vgpu_rm_tenant *tenant, uint64_t bytes);
void vgpu__refund(struct vgpu_rm_tenant *tenant, uint64_t bytes);

/* Marks a tenant as changed, for the readers of the device. */
static inline void vgpu__note(struct vgpu_rm_book *book, struct vgpu_rm_tenant *tenant) { tenant->news = ++book->news; }

/* An object of a client. A client's own handle finds the client itself. */
struct vgpu_rm_object *vgpu__object_find(const struct vgpu_rm_book *book, struct vgpu_rm_object *root, uint32_t handle);
/*
 * The client that a call on `file` refers to. The driver accepts a client's handle only on the client's own file. A
 * handle can be in the book several times, each for another file, if the end of an earlier client was not seen.
 */
struct vgpu_rm_object *vgpu__client_find(const struct vgpu_rm_book *book, uint64_t file, uint32_t client);
/*
 * The client that has a handle now, on any file: the only one that is sure, or the only one at all. NULL if there is
 * none or if that is ambiguous. *count is the number of clients with that handle.
 */
struct vgpu_rm_object *vgpu__client_named(const struct vgpu_rm_book *book, uint32_t client, uint32_t *count);
/* The client with a handle that was entered with this stamp, or NULL. */
struct vgpu_rm_object *vgpu__client_stamped(const struct vgpu_rm_book *book, uint32_t client, uint64_t stamp);
/*
 * Enters a client; `sure`: the driver's answer was seen. An earlier client with the same file and handle that existed
 * at `stamp` has ended unnoticed, and is removed now. If a later one exists, it stays, and is returned instead of the
 * new one: the client's objects are then entered below it.
 */
struct vgpu_rm_object *vgpu__client_enter(struct vgpu_rm_book *book, struct vgpu_rm_object *made,
                                          struct vgpu_rm_tenant *tenant, uint32_t client, uint64_t file, uint64_t stamp,
                                          int sure);
/* Enters an object below its parent, or below its client if the parent is not known. */
void vgpu__object_enter(struct vgpu_rm_book *book, struct vgpu_rm_object *made, struct vgpu_rm_object *root,
                        uint32_t parent, uint32_t handle, uint32_t class_number, struct vgpu_rm_block *block,
                        uint64_t stamp);
/* Removes an object and its descendants. Those entered after `stamp` are kept, below the client. */
void vgpu__object_remove(struct vgpu_rm_book *book, struct vgpu_rm_object *object, uint64_t stamp);
void vgpu__block_release(struct vgpu_rm_book *book, struct vgpu_rm_block *block);
/* An object that the ledger does not know may hold the block. */
void vgpu__block_keep(struct vgpu_rm_block *block);

void vgpu__flight_begin(struct vgpu_rm_book *book, struct vgpu_rm_flight *flight);
void vgpu__flight_end(struct vgpu_rm_flight *flight); /* nothing, if it has not begun */
/* Whether what `flight` made under this handle may have been duplicated by a call beside it. */
int vgpu__flight_duplicated(const struct vgpu_rm_book *book, const struct vgpu_rm_flight *flight, uint32_t handle);
/* A DUP was executed. `sure`: its source is in the book, and nothing else can have had its name meanwhile. */
void vgpu__flight_duplicates(struct vgpu_rm_book *book, const struct vgpu_rm_flight *dup, int sure);

/* The file that a file's clients belong to: the file it is tied to, or itself. */
uint64_t vgpu__file_owner(const struct vgpu_rm_book *book, uint64_t file);
void vgpu__file_tie(struct vgpu_rm_book *book, struct vgpu_rm_tie *tie);
void vgpu__file_untie(struct vgpu_rm_book *book, uint64_t file);
/* The driver tied a file to `owner`, or may have. *spare: a tie to enter if there is none; it is then NULL. */
void vgpu__file_tied(struct vgpu_rm_book *book, uint64_t file, uint64_t owner, struct vgpu_rm_tie **spare);
/* The driver did not tie the file, unless another call did: clients created meanwhile belong to the file itself. */
void vgpu__file_tie_failed(struct vgpu_rm_book *book, uint64_t file);
/* The driver has closed the file. What the ledger had tied to it was not tied to it in the driver, which keeps such a
 * file open. */
void vgpu__file_closed(struct vgpu_rm_book *book, uint64_t file);

#endif
