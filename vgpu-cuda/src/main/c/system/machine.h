/* What differs between the architectures, besides the files that are named for one (NAME-ARCHITECTURE.S). */
#ifndef VGPU_MACHINE_H
#define VGPU_MACHINE_H

#if defined(__x86_64__)
#define VGPU_MULTIARCH "x86_64-linux-gnu" /* Debian's and Ubuntu's directory of libraries, below /usr/lib */
#define VGPU_RELOC_JUMP_SLOT R_X86_64_JUMP_SLOT
#define VGPU_RELOC_GLOB_DAT R_X86_64_GLOB_DAT
#define VGPU_RELAX() __builtin_ia32_pause() /* between two tries of a short wait */
#elif defined(__aarch64__)
#define VGPU_MULTIARCH "aarch64-linux-gnu"
#define VGPU_RELOC_JUMP_SLOT R_AARCH64_JUMP_SLOT
#define VGPU_RELOC_GLOB_DAT R_AARCH64_GLOB_DAT
#define VGPU_RELAX() __asm__ volatile("yield")
#else
#error "vgpu knows x86-64 and aarch64"
#endif

#endif
