    .syntax unified
    .cpu cortex-m3
    .thumb

    .section .vectors, "a", %progbits
    .global vectors
    .type vectors, %object
vectors:
    .word stack_top
    .word Reset_Handler
    .word Unexpected_Handler    @ NMI
    .word Unexpected_Handler    @ HardFault
    .word Unexpected_Handler    @ MemManage
    .word Unexpected_Handler    @ BusFault
    .word Unexpected_Handler    @ UsageFault
    .word 0, 0, 0, 0
    .word SVC_Handler
    .word Unexpected_Handler    @ DebugMonitor
    .word 0
    .word PendSV_Handler
    .word SysTick_Handler
    .word First_IRQHandler      @ IRQ 0
    .word Unexpected_Handler, Unexpected_Handler
    .word Third_IRQHandler      @ IRQ 3
    .rept 16
    .word Unexpected_Handler
    .endr
    .word Twentieth_IRQHandler  @ IRQ 20
    .rept 11
    .word Unexpected_Handler
    .endr
    .size vectors, . - vectors

    .text

    .global Reset_Handler
    .type Reset_Handler, %function
    .thumb_func
Reset_Handler:
    ldr r0, =bss_start
    ldr r1, =bss_end
    movs r2, #0
1:  cmp r0, r1
    bhs 2f
    str r2, [r0], #4
    b 1b
2:  ldr r0, =process_stack_top  @ thread mode runs on the process stack, handlers on the main stack
    msr psp, r0
    movs r0, #2
    msr control, r0
    isb
    bl main
    b finish
    .size Reset_Handler, . - Reset_Handler

@ uint32_t supervisor_call(uint32_t argument): the handler answers in the stacked r0.
    .global supervisor_call
    .type supervisor_call, %function
    .thumb_func
supervisor_call:
    svc #1
    bx lr
    .size supervisor_call, . - supervisor_call

@ The SVC handler reads from bit 2 of EXC_RETURN which stack was in use, and branches instead of calling:
@ the return from the C function is the exception return.
    .global SVC_Handler
    .type SVC_Handler, %function
    .thumb_func
SVC_Handler:
    tst lr, #4
    ite eq
    mrseq r0, msp
    mrsne r0, psp
    b serve_supervisor_call
    .size SVC_Handler, . - SVC_Handler

@ uint32_t choose(uint32_t selector): a halfword table branch, which the compiler emits only for large switches.
    .global choose
    .type choose, %function
    .thumb_func
choose:
    cmp r0, #3
    bhi 9f
    tbh [pc, r0, lsl #1]
8:  .hword (10f - 8b) / 2
    .hword (11f - 8b) / 2
    .hword (12f - 8b) / 2
    .hword (13f - 8b) / 2
9:  movs r0, #0
    bx lr
10: adds r0, #7
    bx lr
11: lsls r0, r0, #4
    b 10b
12: push {r4, lr}
    mov r4, r0
    bl fibonacci
    adds r0, r0, r4
    pop {r4, pc}
13: ldr pc, =ascending
    .size choose, . - choose

@ int32_t sign_and_parity(int32_t value): every form of IT block, with both outcomes and a branch at the end of one.
    .global sign_and_parity
    .type sign_and_parity, %function
    .thumb_func
sign_and_parity:
    cmp r0, #0
    itete mi
    rsbmi r0, r0, #0
    movpl r1, #1
    movmi.w r1, #-1
    addpl r0, r0, #0
    tst r0, #1
    itt ne
    mulne r0, r0, r1
    bxne lr
    cmp r0, #16
    it hi
    bhi 3f
    adds r0, r0, r1
    bx lr
3:  mvns r0, r0
    bx lr
    .size sign_and_parity, . - sign_and_parity

@ Ends the emulation: semihosting SYS_EXIT, reason ADP_Stopped_ApplicationExit.
    .global finish
    .type finish, %function
    .thumb_func
finish:
    movs r0, #0x18
    ldr r1, =0x20026
    bkpt #0xab
    b finish
    .size finish, . - finish

    .global Unexpected_Handler
    .type Unexpected_Handler, %function
    .thumb_func
Unexpected_Handler:
    b Unexpected_Handler
    .size Unexpected_Handler, . - Unexpected_Handler
