#include "machine_code.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

/* KERNEL: the bit of st_other that marks a function as launchable. Device functions do not have it. */
enum { KERNEL = 0x10, CUDA_MACHINE = 190, WRAPPER_MAGIC = 0x466243b1 };
static const uint32_t fat_magic = 0xba55ed50;

typedef struct {
    uint32_t magic;
    uint32_t version;
    const void *fat;
} wrapper;

typedef struct {
    uint32_t magic;
    uint16_t version;
    uint16_t header_bytes;
    uint64_t bytes; /* of the entries that follow the header */
} fat_header;

typedef struct {
    uint16_t kind;
    uint16_t version;
    uint32_t header_bytes;
    uint64_t bytes;
} fat_entry;

static uint32_t magic_of(const void *image) {
    uint32_t magic = 0;
    const char *text = image;
    if (text[0] != '\0' && text[1] != '\0' && text[2] != '\0') { /* a shorter text may end here */
        memcpy(&magic, image, sizeof magic);
    }
    return magic;
}

static bool is_elf(const void *image) {
    const char *text = image;
    return magic_of(image) != 0 && memcmp(text, ELFMAG, SELFMAG) == 0;
}

bool emu_machine_code_is(const void *image) {
    uint32_t magic = magic_of(image);
    return is_elf(image) || magic == fat_magic || magic == WRAPPER_MAGIC;
}

static bool visit_symbol(const Elf64_Sym *symbol, const char *names, emu_ptx_item *item,
                         emu_ptx_visitor visitor, void *data) {
    int type = ELF64_ST_TYPE(symbol->st_info);
    bool is_kernel = type == STT_FUNC && (symbol->st_other & KERNEL) != 0;
    if (symbol->st_shndx == SHN_UNDEF || (!is_kernel && type != STT_OBJECT)) {
        return true;
    }
    memset(item, 0, sizeof *item);
    item->kind = is_kernel ? EMU_PTX_KERNEL : EMU_PTX_VARIABLE;
    item->name = names + symbol->st_name;
    item->name_length = strlen(item->name);
    item->bytes = symbol->st_size;
    item->max_threads = 1024;
    return (!is_kernel && item->bytes == 0) || visitor(item, data);
}

static bool read_symbols(const char *image, const Elf64_Shdr *sections, const Elf64_Shdr *table,
                         emu_ptx_visitor visitor, void *data) {
    const Elf64_Sym *symbols = (const void *)(image + table->sh_offset);
    const char *names = image + sections[table->sh_link].sh_offset;
    emu_ptx_item *item = malloc(sizeof *item);
    bool going = item != NULL;
    for (uint64_t i = 0; going && i < table->sh_size / sizeof *symbols; i++) {
        Elf64_Sym symbol;
        memcpy(&symbol, &symbols[i], sizeof symbol);
        going = visit_symbol(&symbol, names, item, visitor, data);
    }
    free(item);
    return going;
}

static bool read_elf(const char *image, emu_ptx_visitor visitor, void *data, bool *is_known) {
    Elf64_Ehdr header;
    memcpy(&header, image, EI_NIDENT);
    if (header.e_ident[EI_CLASS] != ELFCLASS64) {
        return true;
    }
    memcpy(&header, image, sizeof header);
    if (header.e_machine != CUDA_MACHINE || header.e_shentsize != sizeof(Elf64_Shdr)) {
        return true;
    }
    bool going = true;
    Elf64_Shdr *sections = calloc(header.e_shnum + 1u, sizeof *sections);
    if (sections == NULL) {
        return false;
    }
    memcpy(sections, image + header.e_shoff, header.e_shnum * sizeof *sections);
    for (unsigned int i = 0; going && i < header.e_shnum; i++) {
        const Elf64_Shdr *section = &sections[i];
        if (section->sh_type == SHT_SYMTAB && section->sh_link < header.e_shnum) {
            *is_known = true;
            going = read_symbols(image, sections, section, visitor, data);
        }
    }
    free(sections);
    return going;
}

/* The entries follow one another: machine code for several kinds of GPU, and PTX. All contain the same names. */
static bool read_fat(const char *image, emu_ptx_visitor visitor, void *data, bool *is_known) {
    fat_header header;
    memcpy(&header, image, sizeof header);
    const char *at = image + header.header_bytes;
    const char *end = at + header.bytes;
    while (!*is_known && (size_t)(end - at) > sizeof(fat_entry)) {
        fat_entry entry;
        memcpy(&entry, at, sizeof entry);
        uint64_t left = (uint64_t)(end - at);
        if (entry.header_bytes < sizeof entry || entry.header_bytes > left ||
            entry.bytes > left - entry.header_bytes || entry.bytes < sizeof(Elf64_Ehdr)) {
            return true;
        }
        const char *payload = at + entry.header_bytes;
        if (is_elf(payload)) {
            if (!read_elf(payload, visitor, data, is_known)) {
                return false;
            }
        }
        at = payload + entry.bytes;
    }
    return true;
}

bool emu_machine_code_read(const void *image, emu_ptx_visitor visitor, void *data, bool *is_known) {
    *is_known = false;
    if (is_elf(image)) {
        return read_elf(image, visitor, data, is_known);
    }
    const void *fat = image;
    if (magic_of(image) == WRAPPER_MAGIC) {
        wrapper outer;
        memcpy(&outer, image, sizeof outer);
        fat = outer.fat;
    }
    return fat == NULL || magic_of(fat) != fat_magic || read_fat(fat, visitor, data, is_known);
}
