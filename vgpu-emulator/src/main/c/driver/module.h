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
    CUtexref reference; /* the reference to a texture or surface; NULL: not requested yet */
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
    uint64_t local_bytes; /* per thread */
    bool has_printf;
    bool has_malloc;
    uint32_t param_count;
    uint32_t *param_offset; /* followed by the sizes */
    uint32_t *param_size;
    int attributes[16];
    emu_legacy_launch *legacy; /* set by cuFuncSetBlockShape and similar calls; NULL: nothing set */
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
    emu_gpu *gpu; /* the GPU that is charged for it; NULL: none */
    uint64_t held_bytes;
    bool has_any_kernel; /* the image was not readable: the module accepts any kernel name */
};

/* A texture reference or a surface reference. */
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

/* Loads a function into the calling thread's context if it is not loaded yet. Takes its module's memory, and time. */
CUresult emu_function_load(CUfunction function);

/* A reference without a binding. NULL: no memory. */
CUtexref emu_texture_reference_open(void);
extern emu_pool emu_texture_references;

/* Loads an image into a context; NULL: as a library. */
CUresult emu_module_load(CUmodule *result, const void *image, CUcontext context);
CUresult emu_module_unload(CUmodule module);
/* NULL: no memory. */
CUfunction emu_module_add_function(CUmodule module, const emu_ptx_item *item);

extern emu_pool emu_modules;
extern pthread_mutex_t emu_modules_lock; /* protects the list of modules and their contents */
extern emu_pool emu_functions;

#endif
