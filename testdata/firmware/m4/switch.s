    .syntax unified
    .cpu cortex-m4
    .thumb
    .text

@ Saves the interrupted task on its own stack and resumes the task that `next_task` returns.
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

@ void start_first_task(void *stack): thread mode changes to the process stack; handlers keep the main stack.
    .global start_first_task
    .type start_first_task, %function
    .thumb_func
start_first_task:
    adds r0, #36 + 32                   @ the frames of a switch and an exception
    msr psp, r0
    movs r0, #2
    msr control, r0
    isb
    b first_task
    .size start_first_task, . - start_first_task

@ Faults: EXC_RETURN says which stack was in use.
    .global UsageFault_Handler
    .type UsageFault_Handler, %function
    .thumb_func
UsageFault_Handler:
    mrs r0, psp
    b skip_instruction
    .size UsageFault_Handler, . - UsageFault_Handler

    .global BusFault_Handler
    .type BusFault_Handler, %function
    .thumb_func
BusFault_Handler:
    tst lr, #4
    ite eq
    mrseq r0, msp
    mrsne r0, psp
    b repair_address
    .size BusFault_Handler, . - BusFault_Handler

@ int save(struct place *)
    .global save
    .type save, %function
    .thumb_func
save:
    mov r12, sp
    stmia r0, {r4-r12, lr}
    movs r0, #0
    bx lr
    .size save, . - save

@ void jump_back(struct place *, int): returns from `save` a second time.
    .global jump_back
    .type jump_back, %function
    .thumb_func
jump_back:
    ldmia r0, {r4-r12, lr}
    mov sp, r12
    mov r0, r1
    bx lr
    .size jump_back, . - jump_back

@ Undefined instructions and accesses to unmapped memory, between and inside IT blocks.
    .global faults
    .type faults, %function
    .thumb_func
faults:
    push {r4, lr}
    udf #1
    mov r0, #0xa0000000                 @ unmapped
    ldr r1, [r0]
    cmp r1, #0
    it ne
    udfne #2
    it eq
    udfeq #3
    mov r0, #0xa0000000
    strb r1, [r0, #2]
    pop {r4, pc}
    .size faults, . - faults
