/* What the emulator needs to know of PTX text: the names of its kernels and variables, and how
 * kernels are called. */
#ifndef EMU_PTX_H
#define EMU_PTX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EMU_PTX_PARAMS = 128 };

typedef enum { EMU_PTX_KERNEL, EMU_PTX_VARIABLE } emu_ptx_kind;

typedef struct {
    emu_ptx_kind kind;
    const char *name; /* in the text, without an end of its own */
    size_t name_length;
    uint64_t bytes; /* of a variable */
    uint32_t max_threads;
    uint64_t local_bytes; /* of each thread's own memory that a kernel's body declares */
    bool has_printf;      /* a kernel's body calls printf, or malloc */
    bool has_malloc;
    uint32_t param_count;
    uint32_t param_offset[EMU_PTX_PARAMS];
    uint32_t param_size[EMU_PTX_PARAMS];
} emu_ptx_item;

/* Gets each kernel and variable in turn; false stops. */
typedef bool (*emu_ptx_visitor)(const emu_ptx_item *item, void *data);

/* Whether this starts as PTX text does: with .version, behind blanks and comments. */
bool emu_ptx_is_text(const char *text);

/* Goes through a text. False if it is not PTX, or the visitor stopped. */
bool emu_ptx_read(const char *text, emu_ptx_visitor visitor, void *data);

#endif
