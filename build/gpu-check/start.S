/*
 * Where a program of the bundle begins, instead of the C library's own crt1.o, which since glibc 2.34 asks for a
 * __libc_start_main that older ones lack. The programs have no constructors, so there is nothing else to begin with.
 */
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
	.section .note.GNU-stack, "", @progbits
