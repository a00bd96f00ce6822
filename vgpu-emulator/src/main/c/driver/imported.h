/* Memory that belongs to another process or another driver, mapped here: its owner is charged. */
#ifndef EMU_IMPORTED_H
#define EMU_IMPORTED_H

#include "driver.h"

typedef enum {
    IMPORTED_POINTER,  /* ends with cuMemFree or cuMemFreeAsync */
    IMPORTED_HANDLE,   /* ends with cuIpcCloseMemHandle */
    IMPORTED_EXTERNAL, /* ends with cuMemFree */
} emu_import_kind;

/* Maps part of a shared memory, and knows its address from now on. */
CUresult emu_imported_map(int fd, uint64_t offset, uint64_t bytes, emu_gpu *gpu,
                          emu_import_kind kind, CUdeviceptr *address);

/* Unmaps what starts at that address, if it ends that way. */
CUresult emu_imported_unmap(CUdeviceptr address, unsigned int kinds);

#endif
