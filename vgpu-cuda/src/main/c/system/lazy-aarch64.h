/* clang-format off */
/*
 * The first call of a lazily bound function, for the trampolines of the hook and of the NVML stand-in. On entry x17
 * holds the function's slot. The macro saves every register that may hold an argument (x0 to x7, q0 to q7), x8, which
 * may hold the address of the result, and the return address. It calls `bind` with the slot, and jumps to the address
 * that `bind` returns. Registers by the Procedure Call Standard for the Arm 64-bit Architecture (AAPCS64).
 *
 * The landing pads and the signing of the return address are hints: processors without BTI and PAC take them for
 * no-operations. Jumps use x16 or x17, because a landing pad for calls accepts a jump only from these.
 */
#define BTI_C hint #34
#define PACIASP hint #25 /* also a landing pad for calls */
#define AUTIASP hint #29

.macro vgpu_lazy_entry name, bind
  .text
  .p2align 2
  .type \name, %function
\name:
  .cfi_startproc
  PACIASP
  .cfi_negate_ra_state
  stp x29, x30, [sp, #-224]!
  .cfi_def_cfa_offset 224
  .cfi_offset x29, -224
  .cfi_offset x30, -216
  mov x29, sp
  stp x0, x1, [sp, #16]
  stp x2, x3, [sp, #32]
  stp x4, x5, [sp, #48]
  stp x6, x7, [sp, #64]
  str x8, [sp, #80]
  stp q0, q1, [sp, #96]
  stp q2, q3, [sp, #128]
  stp q4, q5, [sp, #160]
  stp q6, q7, [sp, #192]
  mov x0, x17
  bl \bind
  mov x16, x0
  ldp q6, q7, [sp, #192]
  ldp q4, q5, [sp, #160]
  ldp q2, q3, [sp, #128]
  ldp q0, q1, [sp, #96]
  ldr x8, [sp, #80]
  ldp x6, x7, [sp, #64]
  ldp x4, x5, [sp, #48]
  ldp x2, x3, [sp, #32]
  ldp x0, x1, [sp, #16]
  ldp x29, x30, [sp], #224
  .cfi_def_cfa_offset 0
  .cfi_restore x29
  .cfi_restore x30
  AUTIASP
  .cfi_negate_ra_state
  br x16
  .cfi_endproc
  .size \name, . - \name
.endm

/* Says that the code in this file has landing pads and signed return addresses (GNU_PROPERTY_AARCH64_FEATURE_1_AND). */
.macro vgpu_branch_protection
  .section .note.gnu.property, "a", %note
  .p2align 3
  .word 4, 16, 5
  .asciz "GNU"
  .word 0xc0000000, 4, 3, 0
.endm
