/*
 * One trampoline per passed-through function: counts the call and jumps to the real function with every argument
 * register, the return address and the stack unchanged. A slot's target is at first its lazy entry, which saves all
 * possible argument registers, binds, and jumps. Slots are contiguous: struct vgpu_pass of region.h.
 */
#include "../system/lazy-aarch64.h"

#define HANDLED(name, class, symbol, since, thread, params)
#define SYNC_WORK(name, symbol, since, thread, params, args)
#define ASYNC_WORK(name, symbol, since, thread, params, args)
#define PASS(name, class, since) vgpu_pass name;

.macro vgpu_pass name
  .section .rodata.str1.1, "aMS", %progbits, 1
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
  .type \name, %function
\name:
  BTI_C
  adrp x17, .Lslot_\name
  add x17, x17, :lo12:.Lslot_\name
  ldr x16, [x17, #8]
  add x16, x16, #1
  str x16, [x17, #8]
  ldr x16, [x17]
  br x16
.Llazy_\name:
  BTI_C
  adrp x17, .Lslot_\name
  add x17, x17, :lo12:.Lslot_\name
  b vgpu_lazy
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
  .type \name, %function
\name:
  .cfi_startproc
  BTI_C
  mov \caller, x30
  PACIASP
  .cfi_negate_ra_state
  stp x29, x30, [sp, #-48]!
  .cfi_def_cfa_offset 48
  .cfi_offset x29, -48
  .cfi_offset x30, -40
  mov x29, sp
  stp x0, x1, [sp, #16]
  str x2, [sp, #32]
  bl vgpu__\name\()_own
  cbnz x1, 1f
  ldp x0, x1, [sp, #16]
  ldr x2, [sp, #32]
  .cfi_remember_state
  ldp x29, x30, [sp], #48
  .cfi_def_cfa_offset 0
  .cfi_restore x29
  .cfi_restore x30
  AUTIASP
  .cfi_negate_ra_state
  adrp x16, vgpu__\name\()_next
  ldr x16, [x16, :lo12:vgpu__\name\()_next]
  br x16
1:
  .cfi_restore_state
  ldp x29, x30, [sp], #48
  .cfi_def_cfa_offset 0
  .cfi_restore x29
  .cfi_restore x30
  AUTIASP
  .cfi_negate_ra_state
  ret
  .cfi_endproc
  .size \name, . - \name
.endm

vgpu_open dlopen, x2
vgpu_open dlmopen, x3

  .data
  .p2align 5
  .globl vgpu_pass_end
  .hidden vgpu_pass_end
vgpu_pass_end:

vgpu_branch_protection

  .section .note.GNU-stack, "", %progbits
