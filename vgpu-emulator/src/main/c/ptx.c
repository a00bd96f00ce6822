#include "ptx.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { WORD_SIZE = EMU_PTX_NAME };

typedef struct {
    const char *at;
    char word[WORD_SIZE]; /* the last word read; empty at the end */
} reader;

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

/* A directive, a name or number, or one character of punctuation. */
static const char *next_word(reader *r) {
    skip_blank(r);
    size_t length = 0;
    if (*r->at == '"') { /* only in .file, .pragma and debug sections */
        r->at++;
        while (*r->at != '\0' && *r->at != '"') {
            r->at++;
        }
        r->at += *r->at == '"' ? 1 : 0;
        r->word[length++] = '"';
    } else if (in_word(*r->at)) {
        while (in_word(*r->at)) {
            if (length < WORD_SIZE - 1) {
                r->word[length++] = *r->at;
            }
            r->at++;
        }
    } else if (*r->at != '\0') {
        r->word[length++] = *r->at++;
    }
    r->word[length] = '\0';
    return r->word;
}

static uint32_t type_size(const char *type) {
    static const struct {
        const char *name;
        uint32_t size;
    } sizes[] = {{".b8", 1},   {".u8", 1},    {".s8", 1},     {".b16", 2},        {".u16", 2},
                 {".s16", 2},  {".f16", 2},   {".bf16", 2},   {".b32", 4},        {".u32", 4},
                 {".s32", 4},  {".f32", 4},   {".b64", 8},    {".u64", 8},        {".s64", 8},
                 {".f64", 8},  {".b128", 16}, {".texref", 8}, {".samplerref", 8}, {".surfref", 8},
                 {".f16x2", 4}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        if (strcmp(type, sizes[i].name) == 0) {
            return sizes[i].size;
        }
    }
    return 0;
}

typedef struct {
    char name[WORD_SIZE];
    uint32_t align;
    uint64_t bytes;
} declaration;

/* What follows .param or .global: attributes, a type, a name, and [sizes]. Stops before , ) ; or =.
 */
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
        const char *word = next_word(r);
        if (strcmp(word, ".align") == 0) {
            d->align = (uint32_t)strtoul(next_word(r), NULL, 10);
        } else if (strcmp(word, ".v2") == 0) {
            vector = 2;
        } else if (strcmp(word, ".v4") == 0) {
            vector = 4;
        } else if (strcmp(word, "[") == 0) {
            count *= strtoull(next_word(r), NULL, 10);
            next_word(r); /* ] */
        } else if (word[0] == '.') {
            uint32_t size = type_size(word);
            element = size != 0 ? size : element;
        } else if (word[0] == '_' || word[0] == '$' || word[0] == '%' ||
                   isalpha((unsigned char)word[0])) {
            memcpy(d->name, word, WORD_SIZE);
        }
    }
    d->bytes = element * vector * count;
    d->align = d->align != 0 ? d->align : (uint32_t)(element * vector);
}

/* ( .param … , .param … ) */
static void read_params(reader *r, emu_ptx_item *item) {
    uint32_t offset = 0;
    while (strcmp(next_word(r), ")") != 0 && r->word[0] != '\0') {
        if (strcmp(r->word, ".param") != 0) {
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
        uint32_t number = (uint32_t)strtoul(next_word(r), NULL, 10);
        threads *= number == 0 || number > 1024 ? 1 : number;
        skip_blank(r);
        if (*r->at != ',') {
            return threads > 1024 ? 1024 : threads;
        }
        next_word(r);
    }
}

/* Behind .entry: name, parameters, directives; up to the body or the end of a declaration. True if
 * it has a body. */
static bool read_kernel(reader *r, emu_ptx_item *item) {
    memset(item, 0, sizeof *item);
    item->kind = EMU_PTX_KERNEL;
    item->max_threads = 1024;
    memcpy(item->name, next_word(r), EMU_PTX_NAME);
    for (;;) {
        const char *word = next_word(r);
        if (word[0] == '\0' || strcmp(word, ";") == 0) {
            return false;
        }
        if (strcmp(word, "{") == 0) {
            return true;
        }
        if (strcmp(word, "(") == 0) {
            read_params(r, item);
        } else if (strcmp(word, ".maxntid") == 0 || strcmp(word, ".reqntid") == 0) {
            item->max_threads = read_threads(r);
        }
    }
}

static void skip_body(reader *r) {
    for (int depth = 1; depth > 0 && *r->at != '\0';) {
        const char *word = next_word(r);
        depth += strcmp(word, "{") == 0 ? 1 : strcmp(word, "}") == 0 ? -1 : 0;
    }
}

bool emu_ptx_is_text(const char *text) {
    reader r = {.at = text};
    return strcmp(next_word(&r), ".version") == 0;
}

bool emu_ptx_read(const char *text, emu_ptx_visitor visitor, void *data) {
    reader r = {.at = text};
    if (strcmp(next_word(&r), ".version") != 0) {
        return false;
    }
    emu_ptx_item *item = malloc(sizeof *item);
    bool going = item != NULL;
    while (going && next_word(&r)[0] != '\0') {
        if (strcmp(r.word, ".entry") == 0) {
            if (read_kernel(&r, item)) {
                skip_body(&r);
                going = visitor(item, data);
            }
        } else if (strcmp(r.word, ".global") == 0 || strcmp(r.word, ".const") == 0) {
            declaration d;
            read_declaration(&r, &d);
            memset(item, 0, sizeof *item);
            item->kind = EMU_PTX_VARIABLE;
            item->bytes = d.bytes;
            memcpy(item->name, d.name, EMU_PTX_NAME);
            going = d.name[0] == '\0' || d.bytes == 0 || visitor(item, data);
        } else if (strcmp(r.word, "{") == 0) {
            skip_body(&r);
        }
    }
    free(item);
    return going;
}
