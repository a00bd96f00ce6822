/*
 * Binds this library's import of `ioctl` to emu_rm_ioctl at load time, before other code can redirect the import again.
 * As in the real driver, the import has a slot in the library's relocated part, which is read-only afterwards.
 */
#include "model.h"

#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__aarch64__)
enum { JUMP_SLOT = R_AARCH64_JUMP_SLOT, GLOB_DAT = R_AARCH64_GLOB_DAT };
#else
enum { JUMP_SLOT = R_X86_64_JUMP_SLOT, GLOB_DAT = R_X86_64_GLOB_DAT };
#endif

extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

static void put(uintptr_t *slot, uintptr_t value) {
    uintptr_t page_size = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t page = (uintptr_t)slot & ~(page_size - 1);
    if (mprotect((void *)page, page_size, PROT_READ | PROT_WRITE) == 0) {
        *slot = value;
        mprotect((void *)page, page_size, PROT_READ);
    }
}

__attribute__((constructor)) static void redirect_import(void) {
    const ElfW(Rela) * relocations[2] = {NULL, NULL};
    size_t sizes[2] = {0, 0};
    const ElfW(Sym) *symbols = NULL;
    const char *names = NULL;
    for (const ElfW(Dyn) *entry = _DYNAMIC; entry->d_tag != DT_NULL; entry++) {
        const void *address = (const void *)(uintptr_t)entry->d_un.d_ptr;
        switch (entry->d_tag) {
        case DT_JMPREL:
            relocations[0] = address;
            break;
        case DT_PLTRELSZ:
            sizes[0] = entry->d_un.d_val / sizeof(ElfW(Rela));
            break;
        case DT_RELA:
            relocations[1] = address;
            break;
        case DT_RELASZ:
            sizes[1] = entry->d_un.d_val / sizeof(ElfW(Rela));
            break;
        case DT_SYMTAB:
            symbols = address;
            break;
        case DT_STRTAB:
            names = address;
            break;
        default:
            break;
        }
    }
    for (int table = 0; table < 2 && symbols != NULL && names != NULL; table++) {
        for (size_t i = 0; relocations[table] != NULL && i < sizes[table]; i++) {
            const ElfW(Rela) *relocation = &relocations[table][i];
            uint64_t type = ELF64_R_TYPE(relocation->r_info);
            const ElfW(Sym) *symbol = &symbols[ELF64_R_SYM(relocation->r_info)];
            if ((type == JUMP_SLOT || type == GLOB_DAT) &&
                strcmp(names + symbol->st_name, "ioctl") == 0) {
                put((uintptr_t *)((uintptr_t)&__ehdr_start + relocation->r_offset),
                    (uintptr_t)&emu_rm_ioctl);
            }
        }
    }
}
