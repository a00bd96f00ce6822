/* The pools of places: on a device, in managed memory, and on the host. */
#include "pool.h"

enum { PINNED = 1, MANAGED = 2 };
enum { NONE, DEVICE, HOST, HOST_NUMA, HOST_NUMA_CURRENT, INVISIBLE };
enum { HOST_POOLS = 12020, MANAGED_POOLS = 13000, LOCALITY_DOMAINS = 13040 };

/* Its default pool and its current one. Those of a device itself are in emu_device. */
static struct {
    CUmemoryPool usual;
    CUmemoryPool chosen;
} managed[EMU_MAX_DEVICES], host;
static pthread_mutex_t places_lock = PTHREAD_MUTEX_INITIALIZER;

CUresult emu_pool_place_of(const CUmemLocation *location, int type, emu_pool_place *place) {
    int version = emu_settings_cuda_version();
    bool is_domain = location->type > INVISIBLE && version >= LOCALITY_DOMAINS;
    bool on_host = location->type == HOST || location->type == HOST_NUMA;
    EMU_REQUIRE(type == PINNED || (type == MANAGED && version >= MANAGED_POOLS));
    EMU_REQUIRE(is_domain || location->type == DEVICE || (on_host && version >= HOST_POOLS) ||
                (location->type == NONE && type == MANAGED));
    *place = (emu_pool_place){type == MANAGED ? EMU_POOL_MANAGED
                              : on_host       ? EMU_POOL_HOST
                                              : EMU_POOL_DEVICE,
                              0};
    if (location->type == DEVICE) {
        place->device = location->id;
    } else if (is_domain) { /* the device is the first byte. Each device has one domain */
        EMU_REQUIRE((location->id & ~0xff) == 0);
        place->device = location->id & 0xff;
    }
    return emu_device_at(place->device) == NULL ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

/* The default pool of a place, or its current one. */
static CUresult pool_of(const CUmemLocation *location, int type, bool current, CUmemoryPool *pool) {
    EMU_INITIALIZED();
    EMU_REQUIRE(pool != NULL && location != NULL);
    emu_pool_place place;
    CUresult result = emu_pool_place_of(location, type, &place);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (place.kind == EMU_POOL_DEVICE) {
        return current ? cuDeviceGetMemPool(pool, place.device)
                       : cuDeviceGetDefaultMemPool(pool, place.device);
    }
    pthread_mutex_lock(&places_lock);
    CUmemoryPool *usual = place.kind == EMU_POOL_HOST ? &host.usual : &managed[place.device].usual;
    CUmemoryPool chosen = place.kind == EMU_POOL_HOST ? host.chosen : managed[place.device].chosen;
    if (*usual == NULL) {
        *usual = emu_pool_open(place, true);
    }
    *pool = current && emu_pool_is_at(chosen, place) ? chosen : *usual;
    pthread_mutex_unlock(&places_lock);
    return *pool == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

EMU_API CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool, CUmemLocation *location, int type) {
    return pool_of(location, type, false, pool);
}

EMU_API CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, int type) {
    return pool_of(location, type, true, pool);
}

EMU_API CUresult cuMemSetMemPool(CUmemLocation *location, int type, CUmemoryPool pool) {
    EMU_INITIALIZED();
    EMU_REQUIRE(location != NULL);
    emu_pool_place place;
    CUresult result = emu_pool_place_of(location, type, &place);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (place.kind == EMU_POOL_DEVICE) {
        return cuDeviceSetMemPool(place.device, pool);
    }
    EMU_REQUIRE(emu_pool_is_at(pool, place));
    pthread_mutex_lock(&places_lock);
    if (place.kind == EMU_POOL_HOST) {
        host.chosen = pool;
    } else {
        managed[place.device].chosen = pool;
    }
    pthread_mutex_unlock(&places_lock);
    return CUDA_SUCCESS;
}
