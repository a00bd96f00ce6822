/*
 * One trampoline per function that is passed through or denied: it jumps to where its slot says, at first to the lazy entry,
 * which keeps the registers that hold arguments (NVML's are whole numbers and addresses), binds, and jumps.
 * Slots lie as struct vgpu_nvml_slot of real.c.
 */
#define HANDLED(name, params)
#define TEXT(name, params)
#define PASS(name) vgpu_nvml_slot name, 0;
#define DENY(name) vgpu_nvml_slot name, 1;

.macro vgpu_nvml_slot name, denied
  .section .rodata.str1.1, "aMS", @progbits, 1
.Ltext_\name:
  .string "\name"
  .data
  .p2align 5
.Lslot_\name:
  .quad .Llazy_\name
  .quad .Ltext_\name
  .quad \denied
  .quad 0
  .text
  .p2align 4
  .globl \name
  .type \name, @function
\name:
  endbr64
  jmp *.Lslot_\name(%rip)
.Llazy_\name:
  leaq .Lslot_\name(%rip), %r11
  jmp vgpu_nvml_lazy
  .size \name, . - \name
.endm

  .text
  .type vgpu_nvml_lazy, @function
vgpu_nvml_lazy:
  .cfi_startproc
  pushq %rbp
  .cfi_def_cfa_offset 16
  .cfi_offset %rbp, -16
  movq %rsp, %rbp
  .cfi_def_cfa_register %rbp
  andq $-16, %rsp
  subq $64, %rsp
  movq %rdi, 0(%rsp)
  movq %rsi, 8(%rsp)
  movq %rdx, 16(%rsp)
  movq %rcx, 24(%rsp)
  movq %r8, 32(%rsp)
  movq %r9, 40(%rsp)
  movq %rax, 48(%rsp)
  movq %r11, %rdi
  call vgpu__nvml_bind
  movq %rax, %r11
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
  .size vgpu_nvml_lazy, . - vgpu_nvml_lazy

#include "vgpu_nvml.def"

  .section .note.GNU-stack, "", @progbits
