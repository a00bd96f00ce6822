#include "objects.h"

#include <string.h>
#include <sys/mman.h>

emu_pool emu_contexts = EMU_POOL(struct CUctx_st, 4096);
emu_pool emu_streams = EMU_POOL(struct CUstream_st, 1 << 18);
emu_pool emu_events = EMU_POOL(struct CUevent_st, 1 << 20);

/* Of all pools: a generation also identifies an owner of memory. */
static uint32_t generations;

static bool reserve(emu_pool *pool) {
    void *items = mmap(NULL, pool->capacity * pool->item_size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (items == MAP_FAILED) {
        return false;
    }
    __atomic_store_n(&pool->items, items,
                     __ATOMIC_RELEASE); /* pairs with the acquire in emu_pool_has */
    return true;
}

/* The caller holds the pool's lock. */
static void *begin(const emu_pool *pool, emu_object *item) {
    uint32_t generation = __atomic_add_fetch(&generations, 1, __ATOMIC_RELAXED);
    memset((char *)item + sizeof(emu_object), 0, pool->item_size - sizeof(emu_object));
    item->generation = generation;
    item->link = item;
    __atomic_store_n(&item->live, 1, __ATOMIC_RELEASE);
    return item;
}

void *emu_pool_take(emu_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    emu_object *item = NULL;
    if (pool->free != NULL) {
        item = pool->free;
        pool->free = item->link;
    } else if ((pool->items != NULL || reserve(pool)) && pool->used < pool->capacity) {
        item = (emu_object *)(void *)(pool->items + pool->used * pool->item_size);
        pool->used++;
    }
    if (item != NULL) {
        begin(pool, item);
    }
    pthread_mutex_unlock(&pool->lock);
    return item;
}

void emu_pool_retire(emu_pool *pool, void *item) {
    emu_object *object = item;
    pthread_mutex_lock(&pool->lock);
    __atomic_store_n(&object->live, 0, __ATOMIC_RELEASE);
    object->link = NULL;
    pthread_mutex_unlock(&pool->lock);
}

void *emu_pool_revive(emu_pool *pool, void *item) {
    pthread_mutex_lock(&pool->lock);
    begin(pool, item);
    pthread_mutex_unlock(&pool->lock);
    return item;
}

void emu_pool_give(emu_pool *pool, void *item) {
    emu_object *object = item;
    pthread_mutex_lock(&pool->lock);
    __atomic_store_n(&object->live, 0, __ATOMIC_RELEASE);
    object->link = pool->free;
    pool->free = object;
    pthread_mutex_unlock(&pool->lock);
}
