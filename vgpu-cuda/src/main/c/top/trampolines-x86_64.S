/*
 * One trampoline per passed-through function: counts the call and jumps to the real function with every register and
 * the stack unchanged. A slot's target is at first its lazy entry, which saves all possible argument registers, binds,
 * and jumps. Slots are contiguous: struct vgpu_pass of region.h.
 */
#include "../system/lazy-x86_64.h"

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
 * dlopen and dlmopen: return the handle from dlopen.c, or else jump to the C library's function. A jump, because that
 * function finds the caller's search path by its return address. dlopen.c gets that address too.
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
