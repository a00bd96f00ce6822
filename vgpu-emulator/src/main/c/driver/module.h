/* Modules, libraries and their kernels. */
#ifndef EMU_MODULE_H
#define EMU_MODULE_H

#include "base/ptx.h"
#include "kernels.h"
#include "objects.h"

typedef struct emu_variable {
    struct emu_variable *next;
    uint64_t address;
    uint64_t bytes;
    CUtexref reference; /* of a texture or surface; NULL: nobody has asked for it */
    char name[];
} emu_variable;

typedef struct emu_legacy_launch emu_legacy_launch;

struct CUfunc_st {
    emu_object object;
    CUmodule module;
    CUfunction next;
    const emu_kernel *known;
    uint32_t is_loaded;
    bool is_timed; /* its duration does not depend on the launch */
    uint64_t duration_ns;
    uint32_t max_threads;
    uint64_t local_bytes; /* of each thread */
    bool has_printf;
    bool has_malloc;
    uint32_t param_count;
    uint32_t *param_offset; /* and behind them the sizes */
    uint32_t *param_size;
    int attributes[16];
    emu_legacy_launch *legacy; /* what cuFuncSetBlockShape and its like have set; NULL: nothing */
    char *name;
};

struct CUmod_st {
    emu_object object;
    CUcontext context; /* NULL: a library */
    uint32_t context_generation;
    CUmodule next;
    CUmodule previous;
    CUfunction functions;
    uint32_t function_count;
    emu_variable *variables;
    emu_gpu *gpu; /* on which it takes memory; NULL: it takes none */
    uint64_t held_bytes;
    bool has_any_kernel; /* nothing to read: it has every kernel that is asked for */
};

/* A texture's or a surface's. */
struct CUtexref_st {
    emu_object object;
    CUarray array;
    CUmipmappedArray mipmapped;
    CUdeviceptr address;
    int format;
    int channels;
    CUDA_TEXTURE_DESC texture;
};

enum { EMU_SHARED_DEFAULT = 49152 };

static inline bool emu_function_is_loaded(CUfunction function) {
    return __atomic_load_n(&function->is_loaded, __ATOMIC_ACQUIRE) != 0;
}

/* Loads it into the calling thread's context, if it is not loaded: takes its module's memory, and time. */
CUresult emu_function_load(CUfunction function);

/* A reference that nothing is bound to. NULL: no memory. */
CUtexref emu_texture_reference_open(void);
extern emu_pool emu_texture_references;

/* Of a context, or NULL for a library. */
CUresult emu_module_load(CUmodule *result, const void *image, CUcontext context);
CUresult emu_module_unload(CUmodule module);
/* NULL: no memory. */
CUfunction emu_module_add_function(CUmodule module, const emu_ptx_item *item);

extern emu_pool emu_modules;
extern pthread_mutex_t emu_modules_lock; /* of what modules hold, and the list of them */
extern emu_pool emu_functions;

#endif
