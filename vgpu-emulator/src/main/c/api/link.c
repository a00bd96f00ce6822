/* The driver's linker: PTX is added piece by piece, and the result is loaded as a module. */
#include "base/ptx.h"
#include "driver/driver.h"

#include <stdlib.h>
#include <string.h>

typedef struct CUlinkState_st {
    emu_object object;
    char *text;
    size_t size;
} * CUlinkState;

enum { INPUT_PTX = 1, LARGEST_TEXT = 1 << 28 };

static emu_pool links = EMU_POOL(struct CUlinkState_st, 1 << 14);

EMU_API CUresult cuLinkCreate_v2(unsigned int count, int *options, void **values,
                                 CUlinkState *state) {
    EMU_CONTEXT(context);
    (void)context;
    EMU_REQUIRE(state != NULL && (count == 0 || (options != NULL && values != NULL)));
    *state = emu_pool_take(&links);
    return *state == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

/* Only PTX can be linked. It is text, so the pieces are concatenated. */
EMU_API CUresult cuLinkAddData_v2(CUlinkState state, int type, void *data, size_t size,
                                  const char *name, unsigned int count, int *options,
                                  void **values) {
    EMU_INITIALIZED();
    (void)name;
    EMU_REQUIRE(emu_pool_has(&links, state) && data != NULL && size > 0 && size < LARGEST_TEXT &&
                (count == 0 || (options != NULL && values != NULL)));
    if (type != INPUT_PTX) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    size_t length = strnlen(data, size);
    char *text = realloc(state->text, state->size + length + 2);
    if (text == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memcpy(text + state->size, data, length);
    text[state->size + length] = '\n';
    text[state->size + length + 1] = '\0';
    if (!emu_ptx_is_text(text + state->size)) {
        text[state->size] = '\0';
        state->text = text;
        return CUDA_ERROR_INVALID_PTX;
    }
    state->text = text;
    state->size += length + 1;
    return CUDA_SUCCESS;
}

EMU_API CUresult cuLinkComplete(CUlinkState state, void **image, size_t *size) {
    EMU_INITIALIZED();
    EMU_REQUIRE(emu_pool_has(&links, state) && image != NULL);
    if (state->text == NULL) {
        return CUDA_ERROR_INVALID_IMAGE;
    }
    *image = state->text;
    if (size != NULL) {
        *size = state->size + 1;
    }
    return CUDA_SUCCESS;
}

EMU_API CUresult cuLinkDestroy(CUlinkState state) {
    EMU_INITIALIZED();
    EMU_REQUIRE(emu_pool_has(&links, state));
    free(state->text);
    state->text = NULL;
    emu_pool_give(&links, state);
    return CUDA_SUCCESS;
}
