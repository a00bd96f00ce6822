/* Modules, libraries, functions. */
#include "driver.h"
#include "machine_code.h"
#include "memory.h"
#include "module.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LARGEST_FILE = 1 << 30 };

emu_pool emu_modules = EMU_POOL(struct CUmod_st, 1 << 16);
emu_pool emu_functions = EMU_POOL(struct CUfunc_st, 1 << 20);

static pthread_mutex_t modules_lock = PTHREAD_MUTEX_INITIALIZER;
static CUmodule modules;

static CUfunction add_function(CUmodule module, const emu_ptx_item *item) {
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
    return item->kind == EMU_PTX_KERNEL ? add_function(module, item) != NULL
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

/* PTX text is read, and machine code's symbols, if they can be. */
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

/* What a module takes on its device. */
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
    pthread_mutex_lock(&modules_lock);
    if (!emu_function_is_loaded(function)) {
        emu_hold();
        result = take_memory(function->module, context->gpu);
        if (result == CUDA_SUCCESS) {
            emu_occupy(emu_driver.state.times.load_ns);
            __atomic_store_n(&function->is_loaded, 1, __ATOMIC_RELEASE);
        }
        emu_let_go();
    }
    pthread_mutex_unlock(&modules_lock);
    return result;
}

static CUresult load(CUmodule *result, const void *image, CUcontext context) {
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
    pthread_mutex_lock(&modules_lock);
    module->next = modules;
    if (modules != NULL) {
        modules->previous = module;
    }
    modules = module;
    pthread_mutex_unlock(&modules_lock);
    *result = module;
    return CUDA_SUCCESS;
}

/* With modules_lock. */
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
    pthread_mutex_lock(&modules_lock);
    for (CUmodule module = modules; module != NULL;) {
        CUmodule next = module->next;
        if (module->context == context) {
            unlink_module(module);
            free_module(module);
        }
        module = next;
    }
    pthread_mutex_unlock(&modules_lock);
}

static CUresult unload(CUmodule module) {
    pthread_mutex_lock(&modules_lock);
    bool known = emu_pool_has(&emu_modules, module);
    if (known) {
        unlink_module(module);
        free_module(module);
    }
    pthread_mutex_unlock(&modules_lock);
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult read_image(const char *path, char **image) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return CUDA_ERROR_FILE_NOT_FOUND;
    }
    off_t size = lseek(fd, 0, SEEK_END);
    char *text = size < 0 || size > LARGEST_FILE ? NULL : malloc((size_t)size + 1);
    if (text == NULL || pread(fd, text, (size_t)size, 0) != (ssize_t)size) {
        free(text);
        close(fd);
        return CUDA_ERROR_FILE_NOT_FOUND;
    }
    close(fd);
    text[size] = '\0';
    *image = text;
    return CUDA_SUCCESS;
}

EMU_API CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count,
                                    int *options, void **values) {
    EMU_CONTEXT(context);
    EMU_REQUIRE(count == 0 || (options != NULL && values != NULL));
    return load(module, image, context);
}

EMU_API CUresult cuModuleLoadData(CUmodule *module, const void *image) {
    EMU_CONTEXT(context);
    return load(module, image, context);
}

EMU_API CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image) {
    EMU_CONTEXT(context);
    return load(module, image, context);
}

EMU_API CUresult cuModuleLoad(CUmodule *module, const char *path) {
    EMU_CONTEXT(context);
    EMU_REQUIRE(module != NULL && path != NULL);
    char *image = NULL;
    CUresult result = read_image(path, &image);
    if (result == CUDA_SUCCESS) {
        result = load(module, image, context);
        free(image);
    }
    return result;
}

EMU_API CUresult cuModuleUnload(CUmodule module) {
    EMU_CONTEXT(context);
    (void)context;
    return unload(module);
}

EMU_API CUresult cuModuleGetLoadingMode(int *mode) {
    EMU_INITIALIZED();
    EMU_REQUIRE(mode != NULL);
    const char *wanted = getenv("CUDA_MODULE_LOADING");
    *mode = wanted != NULL && strcmp(wanted, "EAGER") == 0 ? 1 : 2; /* lazy, from 12.2 on */
    return CUDA_SUCCESS;
}

static CUresult get_function(CUfunction *result, CUmodule module, const char *name) {
    EMU_REQUIRE(result != NULL && name != NULL && name[0] != '\0');
    if (!emu_pool_has(&emu_modules, module)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    CUresult found = CUDA_ERROR_NOT_FOUND;
    pthread_mutex_lock(&modules_lock);
    CUfunction function = module->functions;
    while (function != NULL && strcmp(function->name, name) != 0) {
        function = function->next;
    }
    if (function == NULL && module->has_any_kernel) {
        emu_ptx_item *item = calloc(1, sizeof *item);
        if (item != NULL) {
            item->name = name;
            item->name_length = strlen(name);
            item->max_threads = 1024;
            function = add_function(module, item);
            free(item);
        }
    }
    if (function != NULL) {
        *result = function;
        found = CUDA_SUCCESS;
    }
    pthread_mutex_unlock(&modules_lock);
    return found;
}

EMU_API CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    EMU_CONTEXT(context);
    (void)context;
    return get_function(function, module, name);
}

EMU_API CUresult cuModuleGetFunctionCount(unsigned int *count, CUmodule module) {
    EMU_INITIALIZED();
    EMU_REQUIRE(count != NULL);
    if (!emu_pool_has(&emu_modules, module)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    *count = module->function_count;
    return CUDA_SUCCESS;
}

EMU_API CUresult cuModuleEnumerateFunctions(CUfunction *functions, unsigned int count,
                                            CUmodule module) {
    EMU_INITIALIZED();
    EMU_REQUIRE(functions != NULL);
    if (!emu_pool_has(&emu_modules, module)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    unsigned int i = 0;
    for (CUfunction f = module->functions; f != NULL && i < count; f = f->next) {
        functions[i++] = f;
    }
    return CUDA_SUCCESS;
}

/* Variables get their memory when first asked for. A library's lie on the device of the context
 * that asks. */
static CUresult get_variable(CUcontext context, uint64_t *address, size_t *bytes, CUmodule module,
                             const char *name) {
    EMU_REQUIRE(name != NULL && (address != NULL || bytes != NULL));
    if (!emu_pool_has(&emu_modules, module)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    CUresult result = CUDA_ERROR_NOT_FOUND;
    pthread_mutex_lock(&modules_lock);
    for (emu_variable *v = module->variables; v != NULL; v = v->next) {
        if (strcmp(v->name, name) != 0) {
            continue;
        }
        result = CUDA_SUCCESS;
        if (v->address == 0) {
            result = emu_memory_allocate(context->gpu, v->bytes, EMU_DEVICE_MEMORY, 0, &v->address);
        }
        if (result == CUDA_SUCCESS) {
            if (address != NULL) {
                *address = v->address;
            }
            if (bytes != NULL) {
                *bytes = v->bytes;
            }
        }
        break;
    }
    pthread_mutex_unlock(&modules_lock);
    return result;
}

static CUresult get_reference(CUtexref *reference, CUmodule module, const char *name) {
    EMU_CONTEXT(context);
    (void)context;
    EMU_REQUIRE(reference != NULL && name != NULL);
    if (!emu_pool_has(&emu_modules, module)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    CUresult result = CUDA_ERROR_NOT_FOUND;
    pthread_mutex_lock(&modules_lock);
    for (emu_variable *v = module->variables; v != NULL; v = v->next) {
        if (strcmp(v->name, name) == 0) {
            v->reference = v->reference != NULL ? v->reference : emu_texture_reference_open();
            *reference = v->reference;
            result = v->reference == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
            break;
        }
    }
    pthread_mutex_unlock(&modules_lock);
    return result;
}

EMU_API CUresult cuModuleGetTexRef(CUtexref *reference, CUmodule module, const char *name) {
    return get_reference(reference, module, name);
}

EMU_API CUresult cuModuleGetSurfRef(CUtexref *reference, CUmodule module, const char *name) {
    return get_reference(reference, module, name);
}

EMU_API CUresult cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *bytes, CUmodule module,
                                      const char *name) {
    EMU_CONTEXT(context);
    return get_variable(context, address, bytes, module, name);
}

EMU_API CUresult cuLibraryGetGlobal(CUdeviceptr *address, size_t *bytes, CUlibrary library,
                                    const char *name) {
    EMU_CONTEXT(context);
    return get_variable(context, address, bytes, library, name);
}

EMU_API CUresult cuLibraryLoadData(CUlibrary *library, const void *code, int *options,
                                   void **values, unsigned int count, int *library_options,
                                   void **library_values, unsigned int library_count) {
    EMU_INITIALIZED();
    (void)values; /* of options that have none it may be NULL */
    (void)library_values;
    EMU_REQUIRE((count == 0 || options != NULL) && (library_count == 0 || library_options != NULL));
    return load(library, code, NULL);
}

EMU_API CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *path, int *options,
                                       void **values, unsigned int count, int *library_options,
                                       void **library_values, unsigned int library_count) {
    EMU_INITIALIZED();
    EMU_REQUIRE(library != NULL && path != NULL);
    char *image = NULL;
    CUresult result = read_image(path, &image);
    if (result == CUDA_SUCCESS) {
        result = cuLibraryLoadData(library, image, options, values, count, library_options,
                                   library_values, library_count);
        free(image);
    }
    return result;
}

EMU_API CUresult cuLibraryUnload(CUlibrary library) {
    EMU_INITIALIZED();
    return unload(library);
}

EMU_API CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name) {
    EMU_INITIALIZED();
    return get_function(kernel, library, name);
}

EMU_API CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library) {
    EMU_CONTEXT(context);
    (void)context;
    EMU_REQUIRE(module != NULL);
    *module = library;
    return emu_pool_has(&emu_modules, library) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

EMU_API CUresult cuLibraryGetKernelCount(unsigned int *count, CUlibrary library) {
    return cuModuleGetFunctionCount(count, library);
}

EMU_API CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned int count,
                                           CUlibrary library) {
    return cuModuleEnumerateFunctions(kernels, count, library);
}

EMU_API CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel) {
    EMU_CONTEXT(context);
    (void)context;
    EMU_REQUIRE(function != NULL);
    *function = kernel;
    return emu_pool_has(&emu_functions, kernel) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

EMU_API CUresult cuKernelGetLibrary(CUlibrary *library, CUkernel kernel) {
    EMU_INITIALIZED();
    EMU_REQUIRE(library != NULL);
    if (!emu_pool_has(&emu_functions, kernel)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    *library = kernel->module;
    return CUDA_SUCCESS;
}
