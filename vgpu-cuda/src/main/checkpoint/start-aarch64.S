/*
 * Where the program begins: what a new C library's own start file does, but by the oldest version of
 * __libc_start_main, so that the program runs with glibc 2.17 wherever it was built.
 */
#include "../c/system/lazy-aarch64.h"
        .symver __libc_start_main, __libc_start_main@GLIBC_2.17
        .text
        .globl  _start
        .type   _start, %function
_start:
        BTI_C
        mov     x29, #0
        mov     x30, #0
        mov     x5, x0                  /* rtld_fini */
        ldr     x1, [sp]                /* argc */
        add     x2, sp, #8              /* argv */
        mov     x6, sp                  /* stack_end */
        mov     x3, #0                  /* no init of our own, */
        mov     x4, #0                  /* no fini */
        adrp    x0, main
        add     x0, x0, :lo12:main
        adrp    x16, :got:__libc_start_main
        ldr     x16, [x16, :got_lo12:__libc_start_main]
        blr     x16
        brk     #1
        .size   _start, . - _start

vgpu_branch_protection

        .section .note.GNU-stack,"",%progbits
