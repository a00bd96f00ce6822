/* Mapped memory of another process or another driver, which is charged for it. */
#ifndef EMU_IMPORTED_H
#define EMU_IMPORTED_H

#include "driver.h"

typedef enum {
    IMPORTED_POINTER,  /* released by cuMemFree or cuMemFreeAsync */
    IMPORTED_HANDLE,   /* released by cuIpcCloseMemHandle */
    IMPORTED_EXTERNAL, /* released by cuMemFree */
} emu_import_kind;

/* Maps part of a shared memory and registers its address. */
CUresult emu_imported_map(int fd, uint64_t offset, uint64_t bytes, emu_gpu *gpu,
                          emu_import_kind kind, CUdeviceptr *address);

/* Unmaps the import that starts at that address, if its kind is one of `kinds` (a bit mask). */
CUresult emu_imported_unmap(CUdeviceptr address, unsigned int kinds);

#endif
