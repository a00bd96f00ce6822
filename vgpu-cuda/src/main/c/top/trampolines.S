/*
 * One trampoline per passed-through function: counts the call and jumps to the real one with every register and the
 * stack as they came. A slot begins at its own lazy entry, which saves whatever may hold an argument, binds, and jumps.
 * Slots lie together: struct vgpu_pass of region.h.
 */
#include "../system/lazy.h"

#define HANDLED(name, class, symbol, since, thread, params)
#define SYNC_WORK(name, symbol, since, thread, params, args)
#define ASYNC_WORK(name, symbol, since, thread, params, args)
#define PASS(name, class, since) vgpu_pass name;

.macro vgpu_pass name
  .section .rodata.str1.1, "aMS", @progbits, 1
.Ltext_\name:
  .string "\name"
  .data
.Lslot_\name:
  .quad .Llazy_\name
  .quad 0
  .quad .Ltext_\name
  .quad 0
  .text
  .p2align 4
  .globl \name
  .type \name, @function
\name:
  endbr64
  incq .Lslot_\name+8(%rip)
  jmp *.Lslot_\name(%rip)
.Llazy_\name:
  leaq .Lslot_\name(%rip), %r11
  jmp vgpu_lazy
  .size \name, . - \name
.endm

  .data
  .p2align 5
  .globl vgpu_pass_begin
  .hidden vgpu_pass_begin
vgpu_pass_begin:

vgpu_lazy_entry vgpu_lazy, vgpu__bind

#include "vgpu_hooks.def"

/*
 * dlopen and dlmopen: what dlopen.c gives instead, else the C library's, by a jump, because that one looks at its
 * return address to find the caller's search path; dlopen.c is told that address too.
 */
.macro vgpu_open name, caller
  .text
  .p2align 4
  .globl \name
  .type \name, @function
\name:
  .cfi_startproc
  endbr64
  pushq %rdi
  .cfi_adjust_cfa_offset 8
  pushq %rsi
  .cfi_adjust_cfa_offset 8
  pushq %rdx
  .cfi_adjust_cfa_offset 8
  movq 24(%rsp), \caller
  call vgpu__\name\()_own
  testq %rdx, %rdx
  popq %rdx
  .cfi_adjust_cfa_offset -8
  popq %rsi
  .cfi_adjust_cfa_offset -8
  popq %rdi
  .cfi_adjust_cfa_offset -8
  jnz 1f
  jmp *vgpu__\name\()_next(%rip)
1:
  ret
  .cfi_endproc
  .size \name, . - \name
.endm

vgpu_open dlopen, %rdx
vgpu_open dlmopen, %rcx

  .data
  .p2align 5
  .globl vgpu_pass_end
  .hidden vgpu_pass_end
vgpu_pass_end:

  .section .note.GNU-stack, "", @progbits
