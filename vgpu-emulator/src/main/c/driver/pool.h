/* Memory pools, and where their memory is. */
#ifndef EMU_POOL_H
#define EMU_POOL_H

#include "driver.h"

typedef enum {
    EMU_POOL_DEVICE,
    EMU_POOL_MANAGED, /* charged to the GPU: there it goes first */
    EMU_POOL_HOST     /* takes nothing of the GPU */
} emu_pool_kind;

typedef struct {
    emu_pool_kind kind;
    CUdevice device;
} emu_pool_place;

/* The place that a program names by a location and a type of memory. */
CUresult emu_pool_place_of(const CUmemLocation *location, int type, emu_pool_place *place);

CUmemoryPool emu_pool_open(emu_pool_place place, bool is_default);
CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device);
CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool);
CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device);

bool emu_pool_is_at(CUmemoryPool pool, emu_pool_place place);

#endif
