/*
 * The objects behind the driver's handles. They come from pools whose memory is never unmapped, so that a stale or wild
 * handle can be detected without touching unmapped memory.
 */
#ifndef EMU_OBJECTS_H
#define EMU_OBJECTS_H

#include "base/cuda_abi.h"
#include "gpu/gpu.h"

#include <pthread.h>

enum { EMU_LIMITS = 10, EMU_ENGINES = 3, EMU_ENGINE_COPIES = 64 };

typedef struct emu_object {
    uint32_t live; /* 0: free */
    uint32_t generation;
    struct emu_object *
        link; /* live: itself, so that no address inside an item looks like one; free: the next free item */
} emu_object;

typedef struct {
    pthread_mutex_t lock;
    size_t item_size;
    size_t capacity;
    size_t used; /* items that have been handed out at least once */
    char *items;
    emu_object *free;
} emu_pool;

#define EMU_POOL(type, count) \
    { .lock = PTHREAD_MUTEX_INITIALIZER, .item_size = sizeof(type), .capacity = (count) }

/* A zeroed item, or NULL. */
void *emu_pool_take(emu_pool *pool);
void emu_pool_give(emu_pool *pool, void *item);
/* As emu_pool_give, but the item is not reused: only emu_pool_revive makes it live again, zeroed. */
void emu_pool_retire(emu_pool *pool, void *item);
void *emu_pool_revive(emu_pool *pool, void *item);

static inline bool emu_pool_has(const emu_pool *pool, const void *item) {
    const char *items = __atomic_load_n(&pool->items, __ATOMIC_ACQUIRE);
    uintptr_t offset = (uintptr_t)item - (uintptr_t)items;
    if (items == NULL || offset >= pool->capacity * pool->item_size ||
        (uintptr_t)item % sizeof(void *) != 0) {
        return false;
    }
    const emu_object *object = item;
    return __atomic_load_n(&object->live, __ATOMIC_ACQUIRE) == 1 && object->link == object;
}

typedef struct emu_operation emu_operation;
typedef struct emu_capture emu_capture;

/* A set of graph nodes. */
typedef struct {
    CUgraphNode *items;
    size_t count;
} emu_nodes;

struct CUstream_st {
    emu_object object;
    CUcontext context;
    CUstream next; /* in the context's list */
    CUstream previous;
    uint64_t end_ns; /* the context's service at which all submitted work is done */
    uint64_t queued; /* the number of operations that ever took an entry */
    uint64_t *queue; /* a ring of their end times; NULL: none was queued yet */
    uint64_t id;
    uint64_t thread; /* a per-thread default stream: the thread's id */
    unsigned int flags;
    int priority;
    bool is_legacy;
    emu_operation *first_waiting; /* operations kept back behind a host function, in order */
    emu_operation *last_waiting;
    emu_capture *capture; /* not NULL: submitted work becomes part of a graph */
    emu_nodes captured;   /* the nodes that the next captured operation depends on */
    struct emu_stream_attributes *attributes; /* NULL: none has been set */
};

typedef enum { EMU_EVENT_DONE, EMU_EVENT_PENDING, EMU_EVENT_WAITING } emu_event_state;

struct CUevent_st {
    emu_object object;
    CUcontext context;
    CUcontext recorded_in; /* the context whose service end_ns refers to */
    uint32_t recorded_generation;
    unsigned int flags;
    emu_event_state state;
    bool recorded;
    uint64_t end_ns;    /* pending: done when the context's service reaches it */
    uint64_t time_ns;   /* done: the time */
    uint64_t waiting;   /* its records that are kept back behind a host function */
    uint64_t users;     /* its records and waits that are kept back */
    void *last_kept;    /* the last kept record; see host_calls.c */
    uint32_t is_doomed; /* destroyed, but still has users */
    uint32_t is_gone;   /* set by whoever removes the event: its last user or its destroyer */
    CUevent next_pending;
    CUevent previous_pending;
    struct emu_ipc_event
        *shared; /* shared with other processes; if set, the state and the records above are not
                                     used */
    emu_capture *capture; /* the event was last recorded in a stream that was being captured */
    uint32_t capture_generation;
    emu_nodes captured;
};

/* A copy engine's schedule: the stretches of the context's service that copies occupy, in order. */
typedef struct {
    uint32_t count;
    struct {
        uint64_t start_ns;
        uint64_t end_ns;
    } busy[EMU_ENGINE_COPIES];
} emu_engine;

struct CUctx_st {
    emu_object object;
    emu_gpu *gpu;
    CUdevice device;
    uint32_t index;         /* in the GPU's list of contexts */
    uint32_t channel_group; /* the resource manager's handle; 0: none */
    unsigned int flags;
    unsigned int api_version;
    bool is_primary;
    unsigned int attached; /* cuCtxAttach count, not including the creator */
    CUgreenCtx green;      /* the green context it belongs to; NULL: it has the whole device */
    CUcontext primary;     /* of a green context */
    int user;              /* a green context: the thread to which it is current; 0: none */
    uint32_t sms;          /* 0: all */
    /* owns what is allocated in it: this context's generation, or the primary context's */
    uint32_t owner;
    CUresult sticky; /* an error that persists until the context is destroyed */
    size_t limits[EMU_LIMITS];
    pthread_mutex_t lock; /* protects all fields below, and the streams */
    uint64_t demand_ns;
    uint64_t known_ns; /* an instant; known_service_ns is the service at that instant */
    uint64_t known_service_ns;
    uint64_t blocking_end_ns; /* the latest end of all streams that the legacy stream waits for */
    CUstream legacy;
    CUstream streams;
    CUevent first_pending;
    CUevent last_pending;
    uint64_t stream_count;
    pthread_cond_t progress; /* signalled when a kept operation has run */
    uint64_t kept;           /* operations kept back behind host functions */
    uint64_t sequence;       /* of the last operation that was kept back */
    emu_engine engines[EMU_ENGINES];
    uint64_t stack_bytes; /* the stack size per thread that the memory taken for stacks allows */
    uint64_t grown_bytes; /* taken since the context was created */
    bool has_printf;      /* has_printf, has_heap: the buffer's memory has been taken */
    bool has_heap;
};

extern emu_pool emu_contexts;
extern emu_pool emu_streams;
extern emu_pool emu_events;

#endif
