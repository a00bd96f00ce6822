/*
 * One trampoline per function that is passed through, denied or hidden: it jumps to its slot's target. That is at first
 * the lazy entry, which binds and jumps. Slots are laid out as struct vgpu_nvml_slot of real.c.
 */
#include "../c/system/lazy-x86_64.h"

#define HANDLED(name, params)
#define TEXT(name, params)
#define PASS(name) vgpu_nvml_slot name, 0;
#define DENY(name) vgpu_nvml_slot name, 1;
#define HIDE(name) vgpu_nvml_slot name, 2;

.macro vgpu_nvml_slot name, refusal
  .section .rodata.str1.1, "aMS", @progbits, 1
.Ltext_\name:
  .string "\name"
  .data
  .p2align 5
.Lslot_\name:
  .quad .Llazy_\name
  .quad .Ltext_\name
  .quad \refusal
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

vgpu_lazy_entry vgpu_nvml_lazy, vgpu__nvml_bind

#include "vgpu_nvml.def"

  .section .note.GNU-stack, "", @progbits
