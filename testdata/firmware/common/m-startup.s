@ The startup code of the Cortex-M programs m0, m4, jumps, rev-old, rev-new and rust-m3, in ARMv6-M instructions.
    .syntax unified
    .thumb

    .macro handler name
    .word \name
    .weak \name
    .thumb_set \name, Unexpected_Handler
    .endm

    .section .vectors, "a", %progbits
    .global vectors
    .type vectors, %object
vectors:
    .word stack_top
    .word Reset_Handler
    handler NMI_Handler
    handler HardFault_Handler
    handler MemManage_Handler
    handler BusFault_Handler
    handler UsageFault_Handler
    .word 0, 0, 0, 0
    handler SVC_Handler
    handler DebugMonitor_Handler
    .word 0
    handler PendSV_Handler
    handler SysTick_Handler
    handler IRQ0_Handler
    handler IRQ1_Handler
    handler IRQ2_Handler
    handler IRQ3_Handler
    .rept 28
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
    str r2, [r0]
    adds r0, #4
    b 1b
2:  bl main

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
    .size Reset_Handler, . - Reset_Handler

    .global Unexpected_Handler
    .type Unexpected_Handler, %function
    .thumb_func
Unexpected_Handler:
    b Unexpected_Handler
    .size Unexpected_Handler, . - Unexpected_Handler

