/* What the emulator reads from PTX text: the names of its kernels and variables, and the kernels' parameters. */
#ifndef EMU_PTX_H
#define EMU_PTX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EMU_PTX_PARAMS = 128 };

typedef enum { EMU_PTX_KERNEL, EMU_PTX_VARIABLE } emu_ptx_kind;

typedef struct {
    emu_ptx_kind kind;
    const char *name; /* points into the text; not null-terminated */
    size_t name_length;
    uint64_t bytes; /* of a variable */
    uint32_t max_threads;
    uint64_t local_bytes; /* each thread's local memory, as declared in the kernel's body */
    bool has_printf;      /* the kernel's body calls printf; has_malloc: malloc */
    bool has_malloc;
    uint32_t param_count;
    uint32_t param_offset[EMU_PTX_PARAMS];
    uint32_t param_size[EMU_PTX_PARAMS];
} emu_ptx_item;

/* Called for each kernel and variable in turn; false stops. */
typedef bool (*emu_ptx_visitor)(const emu_ptx_item *item, void *data);

/* Whether a text starts as PTX does: with .version, after white space and comments. */
bool emu_ptx_is_text(const char *text);

/* Visits the items of a text. False if it is not PTX, or the visitor stopped. */
bool emu_ptx_read(const char *text, emu_ptx_visitor visitor, void *data);

#endif
