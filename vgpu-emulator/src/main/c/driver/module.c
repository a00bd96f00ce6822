/* Modules and their functions: created from an image, loaded on use, released with their context. */
#include "base/machine_code.h"
#include "driver/driver.h"
#include "driver/memory.h"
#include "driver/module.h"

#include <stdlib.h>
#include <string.h>

emu_pool emu_modules = EMU_POOL(struct CUmod_st, 1 << 16);
emu_pool emu_functions = EMU_POOL(struct CUfunc_st, 1 << 20);
emu_pool emu_texture_references = EMU_POOL(struct CUtexref_st, 1 << 16);

pthread_mutex_t emu_modules_lock = PTHREAD_MUTEX_INITIALIZER;
static CUmodule modules;

CUfunction emu_module_add_function(CUmodule module, const emu_ptx_item *item) {
    CUfunction function = emu_pool_take(&emu_functions);
    if (function == NULL) {
        return NULL;
    }
    function->param_offset = malloc(2 * (item->param_count + 1) * sizeof(uint32_t));
    function->name = strndup(item->name, item->name_length);
    if (function->param_offset == NULL || function->name == NULL) {
        free(function->param_offset);
        free(function->name);
        emu_pool_give(&emu_functions, function);
        return NULL;
    }
    function->param_size = function->param_offset + item->param_count;
    memcpy(function->param_offset, item->param_offset, item->param_count * sizeof(uint32_t));
    memcpy(function->param_size, item->param_size, item->param_count * sizeof(uint32_t));
    function->param_count = item->param_count;
    function->max_threads = item->max_threads;
    function->local_bytes = item->local_bytes;
    function->has_printf = item->has_printf;
    function->has_malloc = item->has_malloc;
    function->module = module;
    const emu_kernel *known = emu_kernel_find(function->name);
    uint32_t bytes = item->param_count == 0 ? 0
                                            : item->param_offset[item->param_count - 1] +
                                                  item->param_size[item->param_count - 1];
    function->known = known != NULL && known->argument_bytes == bytes ? known : NULL;
    const emu_kernel_time *timed = emu_kernel_time_find(&emu_driver.state.times, function->name);
    if (timed != NULL) {
        function->is_timed = true;
        function->duration_ns = timed->duration_ns;
    } else if (function->known != NULL && bytes == 0) {
        function->is_timed = true;
        function->duration_ns = function->known->duration_ns(NULL);
    }
    function->is_loaded = !emu_driver.state.times.is_lazy;
    function->next = module->functions;
    module->functions = function;
    module->function_count++;
    return function;
}

static bool add_variable(CUmodule module, const emu_ptx_item *item) {
    emu_variable *variable = calloc(1, sizeof *variable + item->name_length + 1);
    if (variable == NULL) {
        return false;
    }
    memcpy(variable->name, item->name, item->name_length);
    variable->bytes = item->bytes;
    variable->next = module->variables;
    module->variables = variable;
    return true;
}

static bool add_item(const emu_ptx_item *item, void *module) {
    return item->kind == EMU_PTX_KERNEL ? emu_module_add_function(module, item) != NULL
                                        : add_variable(module, item);
}

static void free_module(CUmodule module) {
    while (module->functions != NULL) {
        CUfunction function = module->functions;
        module->functions = function->next;
        free(function->param_offset);
        free(function->name);
        free(function->legacy);
        emu_pool_give(&emu_functions, function);
    }
    while (module->variables != NULL) {
        emu_variable *variable = module->variables;
        module->variables = variable->next;
        if (variable->address != 0) {
            emu_memory_free(variable->address, 1u << EMU_DEVICE_MEMORY);
        }
        if (variable->reference != NULL) {
            emu_pool_give(&emu_texture_references, variable->reference);
        }
        free(variable);
    }
    if (module->gpu != NULL) {
        emu_gpu_refund(module->gpu, module->held_bytes);
    }
    emu_pool_give(&emu_modules, module);
}

/* Reads PTX text; reads machine code's symbols if possible. */
static CUresult fill_module(CUmodule module, const void *image) {
    const char *text = image;
    if (emu_machine_code_is(image)) {
        bool is_known = false;
        bool is_read = emu_machine_code_read(image, add_item, module, &is_known);
        module->has_any_kernel = !is_known;
        return is_read ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (!emu_ptx_is_text(text)) {
        return CUDA_ERROR_INVALID_IMAGE;
    }
    return emu_ptx_read(text, add_item, module) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Charges a module's memory on its device. */
static CUresult take_memory(CUmodule module, emu_gpu *gpu) {
    uint64_t bytes = emu_driver.state.times.module_bytes;
    if (bytes == 0 || module->gpu != NULL) {
        return CUDA_SUCCESS;
    }
    if (!emu_gpu_charge(gpu, bytes)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    module->gpu = gpu;
    module->held_bytes = bytes;
    return CUDA_SUCCESS;
}

CUresult emu_function_load(CUfunction function) {
    CUcontext context = NULL;
    if (emu_function_is_loaded(function)) {
        return CUDA_SUCCESS;
    }
    CUresult result = emu_current(&context);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    pthread_mutex_lock(&emu_modules_lock);
    if (!emu_function_is_loaded(function)) {
        emu_hold();
        result = take_memory(function->module, context->gpu);
        if (result == CUDA_SUCCESS) {
            emu_occupy(emu_driver.state.times.load_ns);
            __atomic_store_n(&function->is_loaded, 1, __ATOMIC_RELEASE);
        }
        emu_let_go();
    }
    pthread_mutex_unlock(&emu_modules_lock);
    return result;
}

CUresult emu_module_load(CUmodule *result, const void *image, CUcontext context) {
    EMU_REQUIRE(result != NULL && image != NULL);
    CUmodule module = emu_pool_take(&emu_modules);
    if (module == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    module->context = context;
    module->context_generation = context == NULL ? 0 : context->object.generation;
    CUresult filled = fill_module(module, image);
    if (filled == CUDA_SUCCESS && context != NULL && !emu_driver.state.times.is_lazy) {
        filled = take_memory(module, context->gpu);
        emu_cost(emu_driver.state.times.load_ns * module->function_count);
    }
    if (filled != CUDA_SUCCESS) {
        free_module(module);
        return filled;
    }
    pthread_mutex_lock(&emu_modules_lock);
    module->next = modules;
    if (modules != NULL) {
        modules->previous = module;
    }
    modules = module;
    pthread_mutex_unlock(&emu_modules_lock);
    *result = module;
    return CUDA_SUCCESS;
}

/* The caller holds emu_modules_lock. */
static void unlink_module(CUmodule module) {
    if (module->previous != NULL) {
        module->previous->next = module->next;
    } else {
        modules = module->next;
    }
    if (module->next != NULL) {
        module->next->previous = module->previous;
    }
}

void emu_modules_close(CUcontext context) {
    pthread_mutex_lock(&emu_modules_lock);
    for (CUmodule module = modules; module != NULL;) {
        CUmodule next = module->next;
        if (module->context == context) {
            unlink_module(module);
            free_module(module);
        }
        module = next;
    }
    pthread_mutex_unlock(&emu_modules_lock);
}

CUresult emu_module_unload(CUmodule module) {
    pthread_mutex_lock(&emu_modules_lock);
    bool known = emu_pool_has(&emu_modules, module);
    if (known) {
        unlink_module(module);
        free_module(module);
    }
    pthread_mutex_unlock(&emu_modules_lock);
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUtexref emu_texture_reference_open(void) {
    CUtexref reference = emu_pool_take(&emu_texture_references);
    if (reference != NULL) {
        reference->format = 0x20; /* float */
        reference->channels = 1;
    }
    return reference;
}
