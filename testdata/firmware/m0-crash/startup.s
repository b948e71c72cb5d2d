    .syntax unified
    .cpu cortex-m0plus
    .thumb

    .section .vectors, "a", %progbits
    .global vectors
    .type vectors, %object
vectors:
    .word stack_top
    .word Reset_Handler
    .word NMI_Handler
    .word HardFault_Handler
    .word 0, 0, 0, 0, 0, 0, 0
    .word SVC_Handler
    .word 0, 0
    .word PendSV_Handler
    .word SysTick_Handler
    .rept 32
    .word Default_IRQHandler
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
    spinning_handler HardFault_Handler
    spinning_handler SVC_Handler
    spinning_handler PendSV_Handler
    spinning_handler Default_IRQHandler
