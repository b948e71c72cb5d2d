    .syntax unified
    .arch armv7-a
    .arm

@ Virtual addresses equal physical ones; the rest is unmapped, so that accesses to it abort.
    .section .rodata.translation_table, "a", %progbits
    .align 14
translation_table:
    .fill 0x1e0, 4, 0
    .word 0x1e000c12                    @ the cores' private peripherals: 1 MiB, never executed
    .fill 0x600 - 0x1e1, 4, 0
    .word 0x60000c02                    @ RAM: 1 MiB
    .fill 0x1000 - 0x601, 4, 0

    .section .vectors, "ax", %progbits
    .align 5
    .global vectors
vectors:
    b reset
    ldr pc, =undefined_handler
    ldr pc, =supervisor_handler
    ldr pc, =prefetch_abort_handler
    ldr pc, =data_abort_handler
    b .                                 @ reserved
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
    cps #0x17
    ldr sp, =abort_stack
    cps #0x1b
    ldr sp, =undefined_stack
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

@ The four exception returns of the architecture: MOVS PC, LDM with ^, SUBS PC and RFE.

@ Skips the instruction: LR is already after it in both instruction sets (in Thumb, all of them here are 16-bit).
    .global undefined_handler
    .type undefined_handler, %function
undefined_handler:
    push {r0, r1}
    ldr r0, =undefined_count
    ldr r1, [r0]
    add r1, r1, #1
    str r1, [r0]
    pop {r0, r1}
    movs pc, lr
    .size undefined_handler, . - undefined_handler

    .global supervisor_handler
    .type supervisor_handler, %function
supervisor_handler:
    push {r1-r3, r12, lr}
    bl serve_supervisor_call
    ldm sp!, {r1-r3, r12, pc}^
    .size supervisor_handler, . - supervisor_handler

@ A BKPT, or a jump to unmapped memory. The handler resumes after the faulting call or instruction, at the
@ address that the program left in r4.
    .global prefetch_abort_handler
    .type prefetch_abort_handler, %function
prefetch_abort_handler:
    mov lr, r4
    subs pc, lr, #0
    .size prefetch_abort_handler, . - prefetch_abort_handler

@ Points the base register, always r0 here, at mapped memory and repeats the instruction.
    .global data_abort_handler
    .type data_abort_handler, %function
data_abort_handler:
    ldr r0, =abort_count
    push {r1}
    ldr r1, [r0]
    add r1, r1, #1
    str r1, [r0]
    pop {r1}
    subs pc, lr, #8
    .size data_abort_handler, . - data_abort_handler

@ Serves the timer on the system stack, so that another interrupt may nest in the C function.
    .global irq_handler
    .type irq_handler, %function
irq_handler:
    sub lr, lr, #4
    srsdb sp!, #0x1f
    cps #0x1f
    push {r0-r3, r12, lr}
    and r1, sp, #4
    sub sp, sp, r1
    push {r1, lr}
    bl serve_timer
    pop {r1, lr}
    add sp, sp, r1
    pop {r0-r3, r12, lr}
    rfeia sp!
    .size irq_handler, . - irq_handler

@ Enters Thumb code by BX and by LDR PC, and returns by BX and by POP.
    .global through_bx
    .type through_bx, %function
through_bx:
    ldr r1, =thumb_leaf
    bx r1
    .size through_bx, . - through_bx

    .global through_load
    .type through_load, %function
through_load:
    push {r4, lr}
    mov r4, r0
    bl thumb_pair                       @ the linker makes this BLX
    add r0, r0, r4
    pop {r4, lr}
    ldr pc, =thumb_leaf
    .ltorg
    .size through_load, . - through_load

@ Runs an undefined instruction, an aborting load and store, a breakpoint and a jump to unmapped memory, in ARM state.
    .global arm_faults
    .type arm_faults, %function
arm_faults:
    push {r4, lr}
    udf #1
    mov r0, #0xe0000000                 @ no memory there
    ldr r1, [r0]
    mov r0, #0xe0000000
    strb r1, [r0, #8]
    adr r4, 1f
    bkpt #2
1:  adr r4, 2f
    mov r1, #0xe0000000
    blx r1
2:  pop {r4, pc}
    .size arm_faults, . - arm_faults

    .thumb

@ uint32_t thumb_leaf(uint32_t): a Thumb function without a frame.
    .global thumb_leaf
    .type thumb_leaf, %function
    .thumb_func
thumb_leaf:
    cmp r0, #9
    ite hi
    subhi r0, r0, #9
    addls r0, r0, #1
    bx lr
    .size thumb_leaf, . - thumb_leaf

@ Calls the ARM function `scale` and returns by POP.
    .global thumb_pair
    .type thumb_pair, %function
    .thumb_func
thumb_pair:
    push {r4, lr}
    cbz r0, 1f
    blx scale
1:  cmp r0, #40
    it gt
    popgt {r4, pc}
    adds r0, r0, #2
    pop {r4, pc}
    .size thumb_pair, . - thumb_pair

@ The same faults in Thumb state, one of them inside an IT block.
    .global thumb_faults
    .type thumb_faults, %function
    .thumb_func
thumb_faults:
    push {r4, lr}
    udf #1
    mov r0, #0xe0000000
    cmp r0, #0
    itte ne
    ldrne r1, [r0, #4]
    addne r1, r1, #1
    moveq r1, #0
    mov r0, #0xe0000000
    stmia.w r0, {r1, r2, r3}
    adr r4, 1f
    bkpt #2
    .align 2
1:  pop {r4, pc}
    .size thumb_faults, . - thumb_faults

@ uint32_t thumb_service(uint32_t): a supervisor call from Thumb state.
    .global thumb_service
    .type thumb_service, %function
    .thumb_func
thumb_service:
    svc #7
    bx lr
    .size thumb_service, . - thumb_service

@ Ends the emulation: semihosting SYS_EXIT, reason ADP_Stopped_ApplicationExit.
    .global finish
    .type finish, %function
    .thumb_func
finish:
    movs r0, #0x18
    ldr r1, =0x20026
    svc #0xab
1:  b 1b
    .size finish, . - finish
