/*
 * Redirecting an import. Each library has a table of the addresses through which it calls other libraries; the dynamic
 * linker fills it from the relocations. This file reads the relocations of one library and writes one word of its
 * table.
 */
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "region.h"

struct imports {
  uintptr_t base;
  const ElfW(Rela) * tables[2];
  size_t sizes[2];
  const ElfW(Sym) * symbols;
  const char *names;
};

static void vgpu__read_dynamic(const struct link_map *map, struct imports *into) {
  *into = (struct imports){.base = (uintptr_t)map->l_addr};
  for (const ElfW(Dyn) *at = map->l_ld; at->d_tag != DT_NULL; at++) {
    const void *address = (const void *)(uintptr_t)at->d_un.d_ptr;
    switch (at->d_tag) {
      case DT_JMPREL: into->tables[0] = address; break;
      case DT_PLTRELSZ: into->sizes[0] = at->d_un.d_val / sizeof(ElfW(Rela)); break;
      case DT_RELA: into->tables[1] = address; break;
      case DT_RELASZ: into->sizes[1] = at->d_un.d_val / sizeof(ElfW(Rela)); break;
      case DT_SYMTAB: into->symbols = address; break;
      case DT_STRTAB: into->names = address; break;
      default: break;
    }
  }
}

static void **vgpu__find_slot(const struct imports *imports, const char *name) {
  for (int table = 0; table < 2 && imports->symbols != NULL && imports->names != NULL; table++) {
    for (size_t i = 0; imports->tables[table] != NULL && i < imports->sizes[table]; i++) {
      const ElfW(Rela) *relocation = &imports->tables[table][i];
      uint64_t type = ELF64_R_TYPE(relocation->r_info);
      if (type != VGPU_RELOC_JUMP_SLOT && type != VGPU_RELOC_GLOB_DAT) continue;
      const ElfW(Sym) *symbol = &imports->symbols[ELF64_R_SYM(relocation->r_info)];
      if (symbol->st_shndx == SHN_UNDEF && strcmp(imports->names + symbol->st_name, name) == 0) {
        return (void **)(imports->base + relocation->r_offset);
      }
    }
  }
  return NULL;
}

/* The RELRO segment that holds the slot: the part that is read-only after relocation. from == to: there is none. */
struct region {
  uintptr_t base, slot, from, to;
};

static int vgpu__look_for_relro(struct dl_phdr_info *info, size_t size, void *data) {
  struct region *region = data;
  (void)size;
  if (info->dlpi_addr != region->base) return 0;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *part = &info->dlpi_phdr[i];
    /* The dynamic linker protects whole pages only, so a partial last page stays writable. */
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t from = info->dlpi_addr + part->p_vaddr, to = (from + part->p_memsz) & ~(page - 1);
    if (part->p_type == PT_GNU_RELRO && region->slot >= from && region->slot < to) {
      region->from = from;
      region->to = to;
    }
  }
  return 1;
}

/*
 * Whether the slot is still unbound. It then points to PLT code through which the dynamic linker would fill the slot,
 * and overwrite the redirection. On x86-64 it points to the import's own PLT entry, which pushes a number and jumps. On
 * aarch64 all such slots point to the first PLT entry, which begins by saving x16 and x30.
 */
static int vgpu__is_lazy(const void *target) {
#if defined(__aarch64__)
  static const uint32_t LANDING = 0xd503245f /* bti c */, SAVING = 0xa9bf7bf0 /* stp x16, x30, [sp, #-16]! */;
  uint32_t code[2];
  memcpy(code, target, sizeof code);
  return code[code[0] == LANDING] == SAVING;
#else
  const unsigned char *code = target;
  static const unsigned char landing[] = {0xf3, 0x0f, 0x1e, 0xfa};
  if (memcmp(code, landing, sizeof landing) == 0) code += sizeof landing;
  return code[0] == 0x68 && (code[5] == 0xe9 || (code[5] == 0xf2 && code[6] == 0xe9));
#endif
}

int vgpu__redirect(void *handle, const char *name, void *to, void **next) {
  struct link_map *map = NULL;
  struct imports imports;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || map == NULL) return -1;
  vgpu__read_dynamic(map, &imports);
  void **slot = vgpu__find_slot(&imports, name);
  if (slot == NULL) return -1;
  void *before = *slot;
  if (before == to || before == NULL) return -1; /* NULL: an undefined weak symbol */
  *next = vgpu__is_lazy(before) ? dlsym(RTLD_DEFAULT, name) : before;
  if (*next == NULL) return -1;
  struct region region = {.base = imports.base, .slot = (uintptr_t)slot};
  dl_iterate_phdr(vgpu__look_for_relro, &region);
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = (uintptr_t)slot & ~(page - 1);
  if (region.from != region.to && mprotect((void *)start, page, PROT_READ | PROT_WRITE) != 0) return -1;
  __atomic_store_n(slot, to, __ATOMIC_RELEASE);
  if (region.from != region.to) mprotect((void *)start, page, PROT_READ);
  return 0;
}
