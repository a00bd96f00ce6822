/* cuGetProcAddress: entry points by name, version and kind of default stream. */
#include "driver/driver.h"

#include <string.h>

/* The entry points have different types; only their addresses matter here. */
#define DECLARE(symbol) extern const char symbol##_entry[] __asm__(#symbol);
#define ENTRY(name, version, symbol) DECLARE(symbol)
#define ENTRY_OF_THREAD(name, version, symbol, of_thread) DECLARE(symbol) DECLARE(of_thread)
#include "driver_api.def"
#undef ENTRY
#undef ENTRY_OF_THREAD

typedef struct {
    const char *name;
    const char *symbol;
    int version;
    const char *entry;
    const char *of_thread; /* NULL: there is none */
} api_entry;

static const api_entry entries[] = {
#define ENTRY(name, version, symbol) {#name, #symbol, version, symbol##_entry, NULL},
#define ENTRY_OF_THREAD(name, version, symbol, of_thread) \
    {#name, #symbol, version, symbol##_entry, of_thread##_entry},
#include "driver_api.def"
#undef ENTRY
#undef ENTRY_OF_THREAD
};

/* The newest form of a function that a program built for that version knows. */
static const api_entry *find(const char *name, int version, int *status) {
    const api_entry *best = NULL;
    *status = CU_PROC_NOT_FOUND;
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        if (strcmp(entries[i].name, name) != 0) {
            continue;
        }
        if (entries[i].version > version) {
            *status = best == NULL ? CU_PROC_VERSION : CU_PROC_FOUND;
        } else if (best == NULL || entries[i].version > best->version) {
            best = &entries[i];
            *status = CU_PROC_FOUND;
        }
    }
    return best;
}

/* A name with a suffix is a symbol; some programs ask for symbols. */
static const api_entry *find_symbol(const char *symbol) {
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        if (strcmp(entries[i].symbol, symbol) == 0) {
            return &entries[i];
        }
    }
    return NULL;
}

EMU_API CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version,
                                     uint64_t flags, int *status) {
    EMU_REQUIRE(symbol != NULL && function != NULL && flags < 3 &&
                version <= emu_settings_cuda_version());
    int found = CU_PROC_NOT_FOUND;
    *function = NULL;
    const api_entry *entry = find(symbol, version, &found);
    if (entry == NULL && found == CU_PROC_NOT_FOUND) {
        entry = find_symbol(symbol);
        found = entry == NULL ? CU_PROC_NOT_FOUND : CU_PROC_FOUND;
    }
    if (entry != NULL) {
        bool of_thread = flags == CU_PROC_ADDRESS_PER_THREAD && entry->of_thread != NULL;
        uintptr_t address = (uintptr_t)(of_thread ? entry->of_thread : entry->entry);
        *function = (void *)address;
    }
    if (status != NULL) {
        *status = found;
    }
    return CUDA_SUCCESS; /* also if the function was not found */
}

EMU_API CUresult cuGetProcAddress(const char *symbol, void **function, int version,
                                  uint64_t flags) {
    CUresult result = cuGetProcAddress_v2(symbol, function, version, flags, NULL);
    return result == CUDA_SUCCESS && *function == NULL ? CUDA_ERROR_NOT_FOUND : result;
}
