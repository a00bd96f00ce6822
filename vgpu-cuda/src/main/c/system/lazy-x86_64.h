/* clang-format off */
/*
 * The first call of a lazily bound function, for the trampolines of the hook and of the NVML stand-in. On entry r11
 * holds the function's slot. The macro saves every register that may hold an argument, calls `bind` with the slot, and
 * jumps to the address that `bind` returns.
 */
.macro vgpu_lazy_entry name, bind
  .text
  .type \name, @function
\name:
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
  call \bind
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
  .size \name, . - \name
.endm
