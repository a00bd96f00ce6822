/* Modules, libraries, functions. */
#include "driver/driver.h"
#include "driver/memory.h"
#include "driver/module.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LARGEST_FILE = 1 << 30 };

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
    return emu_module_load(module, image, context);
}

EMU_API CUresult cuModuleLoadData(CUmodule *module, const void *image) {
    EMU_CONTEXT(context);
    return emu_module_load(module, image, context);
}

EMU_API CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image) {
    EMU_CONTEXT(context);
    return emu_module_load(module, image, context);
}

EMU_API CUresult cuModuleLoad(CUmodule *module, const char *path) {
    EMU_CONTEXT(context);
    EMU_REQUIRE(module != NULL && path != NULL);
    char *image = NULL;
    CUresult result = read_image(path, &image);
    if (result == CUDA_SUCCESS) {
        result = emu_module_load(module, image, context);
        free(image);
    }
    return result;
}

EMU_API CUresult cuModuleUnload(CUmodule module) {
    EMU_CONTEXT(context);
    (void)context;
    return emu_module_unload(module);
}

EMU_API CUresult cuModuleGetLoadingMode(int *mode) {
    EMU_INITIALIZED();
    EMU_REQUIRE(mode != NULL);
    *mode = emu_driver.state.times.is_lazy ? 2 : 1;
    return CUDA_SUCCESS;
}

static CUresult get_function(CUfunction *result, CUmodule module, const char *name) {
    EMU_REQUIRE(result != NULL && name != NULL && name[0] != '\0');
    if (!emu_pool_has(&emu_modules, module)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    CUresult found = CUDA_ERROR_NOT_FOUND;
    pthread_mutex_lock(&emu_modules_lock);
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
            function = emu_module_add_function(module, item);
            free(item);
        }
    }
    if (function != NULL) {
        *result = function;
        found = CUDA_SUCCESS;
    }
    pthread_mutex_unlock(&emu_modules_lock);
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

/* A variable gets its memory when a program first asks for it. A library's variables lie on the device of the asking
 * context. */
static CUresult get_variable(CUcontext context, uint64_t *address, size_t *bytes, CUmodule module,
                             const char *name) {
    EMU_REQUIRE(name != NULL && (address != NULL || bytes != NULL));
    if (!emu_pool_has(&emu_modules, module)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    CUresult result = CUDA_ERROR_NOT_FOUND;
    pthread_mutex_lock(&emu_modules_lock);
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
    pthread_mutex_unlock(&emu_modules_lock);
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
    pthread_mutex_lock(&emu_modules_lock);
    for (emu_variable *v = module->variables; v != NULL; v = v->next) {
        if (strcmp(v->name, name) == 0) {
            v->reference = v->reference != NULL ? v->reference : emu_texture_reference_open();
            *reference = v->reference;
            result = v->reference == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
            break;
        }
    }
    pthread_mutex_unlock(&emu_modules_lock);
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
    (void)values; /* may be NULL for options without a value */
    (void)library_values;
    EMU_REQUIRE((count == 0 || options != NULL) && (library_count == 0 || library_options != NULL));
    return emu_module_load(library, code, NULL);
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
    return emu_module_unload(library);
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
