@ The vectors of both states, the reset handler in Secure state, and the calls between the states.
    .syntax unified
    .cpu cortex-m33
    .thumb

    .macro vectors stack, reset, svc, pendsv, systick, irq0
    .word \stack, \reset
    .rept 9
    .word stray
    .endr
    .word \svc
    .rept 2
    .word stray
    .endr
    .word \pendsv, \systick
    .rept 32
    .word \irq0
    .endr
    .endm

    .section .vectors, "a", %progbits
    .global vectors
vectors:
    vectors secure_stack, reset, secure_svc, stray, secure_systick, secure_device

    .section .vectors_ns, "a", %progbits
    .global vectors_ns
vectors_ns:
    vectors nonsecure_stack, stray, nonsecure_svc, nonsecure_pendsv, nonsecure_systick, nonsecure_device

    .text

    .global reset
    .type reset, %function
    .thumb_func
reset:
    ldr r0, =bss_start
    ldr r1, =bss_end
    bl clear
    bl set_up
    ldr r0, =bss_ns_start
    ldr r1, =bss_ns_end
    bl clear
    ldr r0, =nonsecure_stack
    msr msp_ns, r0
    b secure_main

clear:
    movs r2, #0
1:  cmp r0, r1
    it hs
    bxhs lr
    str r2, [r0], #4
    b 1b
    .size reset, . - reset

@ uint32_t call(uint32_t argument, uint32_t (*nonsecure)(uint32_t)): calls a function of the Non-secure state.
    .global call
    .type call, %function
    .thumb_func
call:
    push {r4-r11, lr}
    bic r1, r1, #1
    blxns r1
    pop {r4-r11, pc}
    .size call, . - call

@ The functions that the gateways enter; they return to the Non-secure state by BXNS, one of them conditionally.
    .type enter_checksum, %function
    .thumb_func
enter_checksum:
    push {r4, lr}
    bl secure_checksum
    pop {r4, lr}
    bxns lr
    .size enter_checksum, . - enter_checksum

    .type enter_count, %function
    .thumb_func
enter_count:
    push {r4, lr}
    bl secure_count
    pop {r4, lr}
    cmp r0, #3
    it lo
    bxnslo lr
    movs r0, #3
    bxns lr
    .size enter_count, . - enter_count

@ Calls a function of the Non-secure state that called this one.
    .type enter_back, %function
    .thumb_func
enter_back:
    push {r4, lr}
    bl call
    pop {r4, lr}
    bxns lr
    .size enter_back, . - enter_back

@ Ends the emulation: semihosting SYS_EXIT, reason ADP_Stopped_ApplicationExit.
    .global finish
    .type finish, %function
    .thumb_func
finish:
    movs r0, #0x18
    ldr r1, =0x20026
    bkpt #0xab
1:  b 1b
    .size finish, . - finish

    .type stray, %function
    .thumb_func
stray:
    b stray
    .size stray, . - stray

@ Non-secure callable: the only entries to the Secure state.
    .section .gateways, "ax", %progbits
    .macro gateway name, target
    .global \name
    .type \name, %function
    .thumb_func
\name:
    sg
    b.w \target
    .size \name, . - \name
    .endm

    gateway ask_checksum, enter_checksum
    gateway ask_count, enter_count
    gateway ask_back, enter_back
