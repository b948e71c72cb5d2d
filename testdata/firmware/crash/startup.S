@ The startup code of the crashing programs. Only the watchdog's interrupt has a handler.
    .syntax unified
    .thumb

    .section .vectors, "a", %progbits
    .global vectors
    .type vectors, %object
vectors:
    .word stack_top
    .word Reset_Handler
#ifdef __ARM_ARCH_6M__
    .word NMI_Handler
#else
    .word Watchdog_Handler
#endif
    .word HardFault_Handler
    .word MemManage_Handler
    .word BusFault_Handler
    .word UsageFault_Handler
    .word 0, 0, 0, 0
    .word Default_Handler, Default_Handler
    .word 0
#ifdef OWN_SYSTICK_HANDLER
    .word Default_Handler, SysTick_Handler
#else
    .word Default_Handler, Default_Handler
#endif
    .rept 8
    .word Default_Handler
    .endr
#ifdef __ARM_ARCH_6M__
    .word Watchdog_Handler
#else
    .word Default_Handler
#endif
    .rept 23
    .word Default_Handler
    .endr
    .size vectors, . - vectors

    .text

    .global Reset_Handler
    .type Reset_Handler, %function
    .thumb_func
Reset_Handler:
    ldr r0, =data_start
    ldr r1, =data_end
    ldr r2, =data_load
    b 2f
1:  ldmia r2!, {r3}
    stmia r0!, {r3}
2:  cmp r0, r1
    blo 1b
    ldr r0, =bss_start
    ldr r1, =bss_end
    movs r2, #0
    b 4f
3:  stmia r0!, {r2}
4:  cmp r0, r1
    blo 3b
#ifdef __ARM_FP
    @ After the first use of the floating-point unit, exceptions also reserve stack space for its registers.
    ldr r0, =0xe000ed88
    ldr r1, =0x00f00000
    str r1, [r0]
    dsb
    isb
    vmov.f32 s0, #1.0
#endif
    bl main
    b .
    .size Reset_Handler, . - Reset_Handler

    .macro spinning_handler name
    .global \name
    .type \name, %function
    .thumb_func
\name:
    b \name
    .size \name, . - \name
    .endm

    spinning_handler NMI_Handler
#ifndef OWN_HARD_FAULT_HANDLER
    spinning_handler HardFault_Handler
#endif
    spinning_handler MemManage_Handler
    spinning_handler BusFault_Handler
    spinning_handler UsageFault_Handler
    spinning_handler Default_Handler

#ifdef __ARM_FP
    @ Room for an exception that is taken after the stack has overflowed.
    .section .noinit, "aw", %nobits
    .space 128
#endif
