    .syntax unified
    .arch armv7ve
    .arm

@ Virtual addresses equal physical ones; the rest is unmapped.
    .section .rodata.translation_table, "a", %progbits
    .align 14
translation_table:
    .fill 0x2c0, 4, 0
    .word 0x2c000c12                    @ the interrupt controller: 1 MiB, never executed
    .fill 0x800 - 0x2c1, 4, 0
    .word 0x80000c02                    @ RAM: 1 MiB
    .fill 0x1000 - 0x801, 4, 0

    .section .vectors, "ax", %progbits
    .align 5
    .global vectors
vectors:
    b reset
    b .                                 @ undefined instruction
    ldr pc, =supervisor_handler
    b .                                 @ prefetch abort
    b .                                 @ data abort
    b .                                 @ Hyp trap
    ldr pc, =irq_handler
    b .                                 @ FIQ
    .ltorg

    .text

    .global reset
    .type reset, %function
reset:
    ldr r0, =vectors
    mcr p15, 0, r0, c12, c0, 0          @ VBAR
    cps #0x12
    ldr sp, =irq_stack
    cps #0x13
    ldr sp, =supervisor_stack
    cps #0x1f
    ldr sp, =system_stack
    ldr r0, =bss_start
    ldr r1, =bss_end
    mov r2, #0
1:  cmp r0, r1
    strlo r2, [r0], #4
    blo 1b
    ldr r0, =translation_table
    mcr p15, 0, r0, c2, c0, 0           @ TTBR0
    mov r0, #1
    mcr p15, 0, r0, c3, c0, 0           @ DACR: the only domain checks permissions
    mrc p15, 0, r0, c1, c0, 0
    orr r0, r0, #1
    mcr p15, 0, r0, c1, c0, 0           @ SCTLR.M
    isb
    bl main
    b finish
    .size reset, . - reset

@ Every supervisor call is counted; the one with r0 = 0 requests a switch by a software interrupt.
    .global supervisor_handler
    .type supervisor_handler, %function
supervisor_handler:
    push {r0-r3, r12, lr}
    blx serve_supervisor_call
    ldm sp!, {r0-r3, r12, pc}^
    .size supervisor_handler, . - supervisor_handler

@ Saves the interrupted task on its own stack and resumes the task that `switch_task` returns.
    .global irq_handler
    .type irq_handler, %function
irq_handler:
    sub lr, lr, #4
    srsdb sp!, #0x1f
    cps #0x1f
    push {r0-r12, lr}
    mov r0, sp
    bl switch_task
    mov sp, r0
    pop {r0-r12, lr}
    rfeia sp!
    .size irq_handler, . - irq_handler

@ int save(struct place *)
    .global save
    .type save, %function
save:
    stmia r0, {r4-r11, sp, lr}
    mov r0, #0
    bx lr
    .size save, . - save

@ void jump_back(struct place *, int): returns from `save` a second time.
    .global jump_back
    .type jump_back, %function
jump_back:
    ldmia r0, {r4-r11, sp, lr}
    movs r0, r1
    bx lr
    .size jump_back, . - jump_back

@ uint32_t table(uint32_t): branches by ADD PC, LDR PC with an index, LDM and MOV PC.
    .global table
    .type table, %function
table:
    cmp r0, #5
    ldrls pc, [pc, r0, lsl #2]
    b 9f
    .word 1f, 2f, 3f, 4f, 5f, 9f
1:  mov r0, #11
    mov pc, lr
2:  push {r4, lr}
    mov r4, r0
    bl fibonacci_of_three
    add r0, r0, r4
    ldm sp!, {r4, pc}
3:  and r0, r0, #1
    add pc, pc, r0, lsl #2
    nop
    mov r0, #3
    bx lr
4:  subs r0, r0, #1
    bxeq lr
    addne r0, r0, #40
    bxne lr
5:  push {lr}
    mov r0, #5
    ldr pc, [sp], #4
9:  mvn r0, #0
    bx lr
fibonacci_of_three:
    mov r0, #3
    b fibonacci
    .size table, . - table

@ Ends the emulation: semihosting SYS_EXIT, reason ADP_Stopped_ApplicationExit.
    .thumb
    .global finish
    .type finish, %function
    .thumb_func
finish:
    movs r0, #0x18
    ldr r1, =0x20026
    svc #0xab
1:  b 1b
    .size finish, . - finish
