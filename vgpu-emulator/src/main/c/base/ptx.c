#include "ptx.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *at;
    const char *word; /* the last word read, `length` characters of the text; none at the end */
    size_t length;
} reader;

static bool is(const reader *r, const char *word) {
    return strlen(word) == r->length && memcmp(word, r->word, r->length) == 0;
}

static void skip_blank(reader *r) {
    for (;;) {
        while (isspace((unsigned char)*r->at)) {
            r->at++;
        }
        if (r->at[0] == '/' && r->at[1] == '/') {
            r->at += strcspn(r->at, "\n");
        } else if (r->at[0] == '/' && r->at[1] == '*') {
            const char *end = strstr(r->at + 2, "*/");
            r->at = end == NULL ? r->at + strlen(r->at) : end + 2;
        } else {
            return;
        }
    }
}

static bool in_word(char c) {
    return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%' || c == '.';
}

/* Reads a directive, a name or number, or one punctuation character. False at the end of the text. */
static bool next_word(reader *r) {
    skip_blank(r);
    r->word = r->at;
    if (*r->at ==
        '"') { /* only in .file, .pragma and debug sections: the quote stands for the string */
        r->at++;
        r->at += strcspn(r->at, "\"");
        r->at += *r->at == '"' ? 1 : 0;
        r->length = 1;
        return true;
    }
    while (in_word(*r->at)) {
        r->at++;
    }
    if (r->at == r->word && *r->at != '\0') {
        r->at++;
    }
    r->length = (size_t)(r->at - r->word);
    return r->length != 0;
}

/* Reads the next word as a number; 0 if it is not one. */
static uint64_t next_number(reader *r) {
    next_word(r);
    return isdigit((unsigned char)r->word[0]) ? strtoull(r->word, NULL, 10) : 0;
}

static uint32_t type_size(const reader *type) {
    static const struct {
        const char *name;
        uint32_t size;
    } sizes[] = {{".b8", 1},   {".u8", 1},    {".s8", 1},     {".b16", 2},        {".u16", 2},
                 {".s16", 2},  {".f16", 2},   {".bf16", 2},   {".b32", 4},        {".u32", 4},
                 {".s32", 4},  {".f32", 4},   {".b64", 8},    {".u64", 8},        {".s64", 8},
                 {".f64", 8},  {".b128", 16}, {".texref", 8}, {".samplerref", 8}, {".surfref", 8},
                 {".f16x2", 4}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        if (is(type, sizes[i].name)) {
            return sizes[i].size;
        }
    }
    return 0;
}

typedef struct {
    const char *name; /* NULL: no name */
    size_t name_length;
    uint32_t align;
    uint64_t bytes;
} declaration;

/* Reads what follows .param or .global: attributes, a type, a name, and [sizes]. Stops before , ) ; or =. */
static void read_declaration(reader *r, declaration *d) {
    uint32_t element = 0;
    uint64_t vector = 1;
    *d = (declaration){.align = 0, .bytes = 0};
    uint64_t count = 1;
    for (;;) {
        skip_blank(r);
        if (*r->at == '\0' || strchr(",);={", *r->at) != NULL) {
            break;
        }
        next_word(r);
        char first = r->word[0];
        if (is(r, ".align")) {
            d->align = (uint32_t)next_number(r);
        } else if (is(r, ".v2")) {
            vector = 2;
        } else if (is(r, ".v4")) {
            vector = 4;
        } else if (is(r, "[")) {
            count *= next_number(r);
            next_word(r); /* ] */
        } else if (first == '.') {
            uint32_t size = type_size(r);
            element = size != 0 ? size : element;
        } else if (first == '_' || first == '$' || first == '%' || isalpha((unsigned char)first)) {
            d->name = r->word;
            d->name_length = r->length;
        }
    }
    d->bytes = element * vector * count;
    d->align = d->align != 0 ? d->align : (uint32_t)(element * vector);
}

/* ( .param … , .param … ) */
static void read_params(reader *r, emu_ptx_item *item) {
    uint32_t offset = 0;
    while (next_word(r) && !is(r, ")")) {
        if (!is(r, ".param")) {
            continue;
        }
        declaration d;
        read_declaration(r, &d);
        if (item->param_count < EMU_PTX_PARAMS && d.bytes <= 65536) {
            uint32_t align = d.align == 0 || d.align > 256 ? 1 : d.align;
            offset = (offset + align - 1) / align * align;
            item->param_offset[item->param_count] = offset;
            item->param_size[item->param_count] = (uint32_t)d.bytes;
            item->param_count++;
            offset += (uint32_t)d.bytes;
        }
    }
}

static uint32_t read_threads(reader *r) {
    uint32_t threads = 1;
    for (;;) {
        uint32_t number = (uint32_t)next_number(r);
        threads *= number == 0 || number > 1024 ? 1 : number;
        skip_blank(r);
        if (*r->at != ',') {
            return threads > 1024 ? 1024 : threads;
        }
        next_word(r);
    }
}

/* Reads what follows .entry: name, parameters and directives, up to the body or the end of the declaration. True if
 * there is a body. */
static bool read_kernel(reader *r, emu_ptx_item *item) {
    memset(item, 0, sizeof *item);
    item->kind = EMU_PTX_KERNEL;
    item->max_threads = 1024;
    next_word(r);
    item->name = r->word;
    item->name_length = r->length;
    while (next_word(r) && !is(r, ";")) {
        if (is(r, "{")) {
            return true;
        }
        if (is(r, "(")) {
            read_params(r, item);
        } else if (is(r, ".maxntid") || is(r, ".reqntid")) {
            item->max_threads = read_threads(r);
        }
    }
    return false;
}

static void skip_body(reader *r) {
    for (int depth = 1; depth > 0 && next_word(r);) {
        depth += is(r, "{") ? 1 : is(r, "}") ? -1 : 0;
    }
}

/* As skip_body, but also records what the kernel needs from its context besides its code. */
static void read_body(reader *r, emu_ptx_item *item) {
    for (int depth = 1; depth > 0 && next_word(r);) {
        declaration d;
        if (is(r, ".local")) {
            read_declaration(r, &d);
            item->local_bytes += d.bytes;
        }
        item->has_printf |= is(r, "vprintf");
        item->has_malloc |= is(r, "malloc");
        depth += is(r, "{") ? 1 : is(r, "}") ? -1 : 0;
    }
}

bool emu_ptx_is_text(const char *text) {
    reader r = {.at = text};
    return next_word(&r) && is(&r, ".version");
}

bool emu_ptx_read(const char *text, emu_ptx_visitor visitor, void *data) {
    reader r = {.at = text};
    if (!next_word(&r) || !is(&r, ".version")) {
        return false;
    }
    emu_ptx_item *item = malloc(sizeof *item);
    bool going = item != NULL;
    while (going && next_word(&r)) {
        if (is(&r, ".entry")) {
            if (read_kernel(&r, item)) {
                read_body(&r, item);
                going = visitor(item, data);
            }
        } else if (is(&r, ".global") || is(&r, ".const")) {
            declaration d;
            read_declaration(&r, &d);
            memset(item, 0, sizeof *item);
            item->kind = EMU_PTX_VARIABLE;
            item->bytes = d.bytes;
            item->name = d.name;
            item->name_length = d.name_length;
            going = d.name == NULL || d.bytes == 0 || visitor(item, data);
        } else if (is(&r, "{")) {
            skip_body(&r);
        }
    }
    free(item);
    return going;
}
