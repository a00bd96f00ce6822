/*
 * What the handles of the driver's interface point to. Handles come from pools whose memory is
 * never given back, so a stale or wild handle is told from a live one without touching memory that
 * may not be there.
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
    struct emu_object
        *link; /* live: itself, so that no address inside an item looks like one; free: the next */
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
    {.lock = PTHREAD_MUTEX_INITIALIZER, .item_size = sizeof(type), .capacity = (count)}

/* A zeroed item, or NULL. */
void *emu_pool_take(emu_pool *pool);
void emu_pool_give(emu_pool *pool, void *item);
/* As emu_pool_give, but nobody else gets the item: emu_pool_revive makes it live again, zeroed. */
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
    CUstream next; /* of the context */
    CUstream previous;
    uint64_t end_ns; /* the context's service at which all that was submitted is done */
    uint64_t queued; /* operations that took an entry, ever */
    uint64_t *queue; /* their ends, in a ring; NULL: nothing took one */
    uint64_t id;
    uint64_t thread; /* per-thread default streams: whose */
    unsigned int flags;
    int priority;
    bool is_legacy;
    emu_operation *first_waiting; /* operations behind a host function, in order */
    emu_operation *last_waiting;
    emu_capture *capture; /* what is submitted becomes part of a graph */
    emu_nodes captured;   /* the nodes that what is captured next depends on */
};

typedef enum { EMU_EVENT_DONE, EMU_EVENT_PENDING, EMU_EVENT_WAITING } emu_event_state;

struct CUevent_st {
    emu_object object;
    CUcontext context;
    CUcontext recorded_in; /* the context whose service end_ns is */
    uint32_t recorded_generation;
    unsigned int flags;
    emu_event_state state;
    bool recorded;
    uint64_t end_ns;    /* pending: done when the context's service reaches it */
    uint64_t time_ns;   /* done: when */
    uint64_t waiting;   /* records of it that wait behind a host function */
    uint64_t users;     /* records and waits of it that do */
    void *last_kept;    /* the last of these records; see host_calls.c */
    uint32_t is_doomed; /* destroyed, yet with users */
    uint32_t is_gone;   /* the last user, or who destroyed it, has taken it away */
    CUevent next_pending;
    CUevent previous_pending;
    struct emu_ipc_event *shared; /* with other processes; then what comes before is not used */
    emu_capture *capture; /* recorded last in a stream that was being captured */
    uint32_t capture_generation;
    emu_nodes captured;
};

/* A copy engine's time: stretches of the context's service, in order, that copies have. */
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
    uint32_t index; /* among the GPU's contexts */
    uint32_t channel_group; /* its handle at the resource manager; 0: none */
    unsigned int flags;
    unsigned int api_version;
    bool is_primary;
    unsigned int attached; /* by cuCtxAttach, beside who made it */
    CUgreenCtx green;  /* whose it is; NULL: it has the whole device */
    CUcontext primary; /* of a green one */
    int user;          /* of a green one: the thread to which it is current; 0: none */
    uint32_t sms;      /* 0: all */
    uint32_t owner;    /* who owns what is allocated in it: itself, or the primary one */
    CUresult sticky; /* an error that only the end of the context clears */
    size_t limits[EMU_LIMITS];
    pthread_mutex_t lock; /* all below, and the streams */
    uint64_t demand_ns;
    uint64_t known_ns; /* an instant, and the service at that instant */
    uint64_t known_service_ns;
    uint64_t blocking_end_ns; /* the latest end of all streams that the legacy stream waits for */
    CUstream legacy;
    CUstream streams;
    CUevent first_pending;
    CUevent last_pending;
    uint64_t stream_count;
    pthread_cond_t progress;           /* something that was kept back has been done */
    uint64_t kept;                     /* operations kept back behind host functions */
    uint64_t sequence;                 /* of the last operation that was kept back */
    emu_engine engines[EMU_ENGINES];
    uint64_t stack_bytes; /* of each thread: as many as the memory for stacks has room for */
    uint64_t grown_bytes; /* taken since it was made */
    bool has_printf;      /* whose buffer has its memory */
    bool has_heap;
};

extern emu_pool emu_contexts;
extern emu_pool emu_streams;
extern emu_pool emu_events;

#endif
