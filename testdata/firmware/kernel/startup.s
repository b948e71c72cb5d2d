    .syntax unified
    .cpu cortex-m3
    .thumb

    .section .vectors, "a", %progbits
    .global vectors
    .type vectors, %object
vectors:
    .word stack_top
    .word Reset_Handler
    .rept 9
    .word Unexpected_Handler
    .endr
    .word SVC_Handler
    .word Unexpected_Handler, Unexpected_Handler
    .word PendSV_Handler
    .word SysTick_Handler
    .rept 8
    .word Unexpected_Handler
    .endr
    .word Timer0_Handler
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

    .type Unexpected_Handler, %function
    .thumb_func
Unexpected_Handler:
    b Unexpected_Handler
    .size Unexpected_Handler, . - Unexpected_Handler

@ Saves the interrupted task on its own stack and resumes the task that `next_task` chooses.
    .global PendSV_Handler
    .type PendSV_Handler, %function
    .thumb_func
PendSV_Handler:
    mrs r0, psp
    stmdb r0!, {r4-r11, lr}
    bl next_task
    ldmia r0!, {r4-r11, lr}
    msr psp, r0
    bx lr
    .size PendSV_Handler, . - PendSV_Handler

@ Resumes the first task.
    .global SVC_Handler
    .type SVC_Handler, %function
    .thumb_func
SVC_Handler:
    bl first_stack
    ldmia r0!, {r4-r11, lr}
    msr psp, r0
    bx lr
    .size SVC_Handler, . - SVC_Handler

    .global start_first_task
    .type start_first_task, %function
    .thumb_func
start_first_task:
    svc #0
    b Unexpected_Handler
    .size start_first_task, . - start_first_task
