/*
 * Where a program of the bundle begins, instead of the C library's own crt1.o, which since glibc 2.34 asks for a
 * __libc_start_main that older ones lack. The programs have no constructors, so there is nothing else to begin with.
 */
#ifdef __aarch64__
	.symver __libc_start_main, __libc_start_main@GLIBC_2.17
	.text
	.globl _start
	.type _start, %function
_start:
	mov x29, #0
	mov x30, #0
	mov x5, x0			/* what the loader wants to be called at the end */
	ldr x1, [sp]			/* argc */
	add x2, sp, #8			/* argv */
	mov x6, sp
	adrp x0, main
	add x0, x0, :lo12:main
	mov x3, #0			/* no init, no fini */
	mov x4, #0
	bl __libc_start_main
	brk #0
#else
	.symver __libc_start_main, __libc_start_main@GLIBC_2.2.5
	.text
	.globl _start
	.type _start, @function
_start:
	xorl %ebp, %ebp
	movq %rdx, %r9			/* what the loader wants to be called at the end */
	popq %rsi			/* argc */
	movq %rsp, %rdx			/* argv */
	andq $-16, %rsp
	pushq %rax
	pushq %rsp
	xorl %r8d, %r8d			/* no fini, no init */
	xorl %ecx, %ecx
	leaq main(%rip), %rdi
	call *__libc_start_main@GOTPCREL(%rip)
	hlt
#endif
	.section .note.GNU-stack, "", %progbits
