/*
 * One trampoline per function that is passed through, denied or hidden: it jumps to its slot's target. That is at first
 * the lazy entry, which binds and jumps. Slots are laid out as struct vgpu_nvml_slot of real.c.
 */
#include "../c/system/lazy-aarch64.h"

#define HANDLED(name, params)
#define TEXT(name, params)
#define PASS(name) vgpu_nvml_slot name, 0;
#define DENY(name) vgpu_nvml_slot name, 1;
#define HIDE(name) vgpu_nvml_slot name, 2;

.macro vgpu_nvml_slot name, refusal
  .section .rodata.str1.1, "aMS", %progbits, 1
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
  .type \name, %function
\name:
  BTI_C
  adrp x17, .Lslot_\name
  add x17, x17, :lo12:.Lslot_\name
  ldr x16, [x17]
  br x16
.Llazy_\name:
  BTI_C
  adrp x17, .Lslot_\name
  add x17, x17, :lo12:.Lslot_\name
  b vgpu_nvml_lazy
  .size \name, . - \name
.endm

vgpu_lazy_entry vgpu_nvml_lazy, vgpu__nvml_bind

#include "vgpu_nvml.def"

vgpu_branch_protection

  .section .note.GNU-stack, "", %progbits
