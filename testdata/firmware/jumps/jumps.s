    .syntax unified
    .cpu cortex-m4
    .thumb
    .text

@ int setjmp(jmp_buf): with the C library's name, by which a profiler recognises a long jump.
    .global setjmp
    .type setjmp, %function
    .thumb_func
setjmp:
    mov r12, sp
    stmia r0, {r4-r12, lr}
    movs r0, #0
    bx lr
    .size setjmp, . - setjmp

@ void longjmp(jmp_buf, int): returns from `setjmp` a second time.
    .global longjmp
    .type longjmp, %function
    .thumb_func
longjmp:
    ldmia r0, {r4-r12, lr}
    mov sp, r12
    movs r0, r1
    it eq
    moveq r0, #1
    bx lr
    .size longjmp, . - longjmp
