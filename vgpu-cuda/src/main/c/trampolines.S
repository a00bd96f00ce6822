/*
 * One trampoline per passed-through function: counts the call and jumps to the real one with every register and the stack as
 * they came. A slot begins at its own lazy entry, which saves whatever may hold an argument, binds, and jumps.
 * Slots lie together: struct vgpu_pass of hook.h.
 */
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

  .text
  .type vgpu_lazy, @function
vgpu_lazy:
  .cfi_startproc
  pushq %rbp
  .cfi_def_cfa_offset 16
  .cfi_offset %rbp, -16
  movq %rsp, %rbp
  .cfi_def_cfa_register %rbp
  andq $-16, %rsp
  subq $192, %rsp
  movq %rdi, 0(%rsp)
  movq %rsi, 8(%rsp)
  movq %rdx, 16(%rsp)
  movq %rcx, 24(%rsp)
  movq %r8, 32(%rsp)
  movq %r9, 40(%rsp)
  movq %rax, 48(%rsp)
  movq %r10, 56(%rsp)
  movaps %xmm0, 64(%rsp)
  movaps %xmm1, 80(%rsp)
  movaps %xmm2, 96(%rsp)
  movaps %xmm3, 112(%rsp)
  movaps %xmm4, 128(%rsp)
  movaps %xmm5, 144(%rsp)
  movaps %xmm6, 160(%rsp)
  movaps %xmm7, 176(%rsp)
  movq %r11, %rdi
  call vgpu__bind
  movq %rax, %r11
  movaps 176(%rsp), %xmm7
  movaps 160(%rsp), %xmm6
  movaps 144(%rsp), %xmm5
  movaps 128(%rsp), %xmm4
  movaps 112(%rsp), %xmm3
  movaps 96(%rsp), %xmm2
  movaps 80(%rsp), %xmm1
  movaps 64(%rsp), %xmm0
  movq 56(%rsp), %r10
  movq 48(%rsp), %rax
  movq 40(%rsp), %r9
  movq 32(%rsp), %r8
  movq 24(%rsp), %rcx
  movq 16(%rsp), %rdx
  movq 8(%rsp), %rsi
  movq 0(%rsp), %rdi
  leave
  .cfi_def_cfa %rsp, 8
  jmp *%r11
  .cfi_endproc
  .size vgpu_lazy, . - vgpu_lazy

#include "vgpu_hooks.def"

/*
 * dlopen and dlmopen: what dlopen.c gives instead, else the C library's, by a jump, because that one looks at its return address
 * to find the caller's search path.
 */
.macro vgpu_open name
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

vgpu_open dlopen
vgpu_open dlmopen

  .data
  .p2align 5
  .globl vgpu_pass_end
  .hidden vgpu_pass_end
vgpu_pass_end:

  .section .note.GNU-stack, "", @progbits
