// The reset at EL3 and the descent to EL0; the vectors and handlers of EL3, EL2 and EL1.
    .arch armv8-a

    .macro vector target
    .balign 0x80
    b \target
    .endm

// A vector table: current level with SP_EL0 and SP_ELx, then lower level in AArch64 and AArch32.
    .macro vectors name, synchronous, interrupt, lower_synchronous, lower_interrupt
    .balign 0x800
\name:
    vector stray
    vector stray
    vector stray
    vector stray
    vector \synchronous
    vector \interrupt
    vector stray
    vector stray
    vector \lower_synchronous
    vector \lower_interrupt
    vector stray
    vector stray
    vector \lower_synchronous
    vector \lower_interrupt
    vector stray
    vector stray
    .endm

    .section .vectors, "ax", %progbits
    vectors vectors_el3, stray, stray, monitor_call, stray
    vectors vectors_el2, stray, stray, hypervisor_call, stray
    vectors vectors_el1, synchronous_in_kernel, interrupt_in_kernel, synchronous, interrupt

    .text
    .global reset
    .type reset, %function
reset:
    ldr x0, =vectors_el3
    msr vbar_el3, x0
    ldr x0, =monitor_stack
    mov sp, x0
    ldr x0, =bss_start
    ldr x1, =bss_end
1:  cmp x0, x1
    b.hs 2f
    str xzr, [x0], #8
    b 1b
2:  bl set_up_secure
    mov x0, #0x501                      // SCR_EL3: AArch64, HVC, Non-secure
    msr scr_el3, x0
    mov x0, #0x3c9                      // EL2h, all masked
    msr spsr_el3, x0
    adr x0, 3f
    msr elr_el3, x0
    isb
    eret
3:  ldr x0, =vectors_el2
    msr vbar_el2, x0
    ldr x0, =hypervisor_stack
    mov sp, x0
    mov x0, #1 << 31                    // HCR_EL2: EL1 is AArch64
    msr hcr_el2, x0
    msr cntvoff_el2, xzr
    mov x0, #0x3c5                      // EL1h, all masked
    msr spsr_el2, x0
    adr x0, 4f
    msr elr_el2, x0
    isb
    eret
4:  ldr x0, =vectors_el1
    msr vbar_el1, x0
    isb
    ldr x0, =kernel_stack
    mov sp, x0
    sub sp, sp, #272
    mov x0, sp
    bl set_up_kernel
    b resume
    .size reset, . - reset

// Saves the registers of the interrupted task on the kernel's stack: x0 to x30, SP_EL0, ELR, SPSR.
    .macro save_frame
    sub sp, sp, #272
    stp x0, x1, [sp]
    stp x2, x3, [sp, #16]
    stp x4, x5, [sp, #32]
    stp x6, x7, [sp, #48]
    stp x8, x9, [sp, #64]
    stp x10, x11, [sp, #80]
    stp x12, x13, [sp, #96]
    stp x14, x15, [sp, #112]
    stp x16, x17, [sp, #128]
    stp x18, x19, [sp, #144]
    stp x20, x21, [sp, #160]
    stp x22, x23, [sp, #176]
    stp x24, x25, [sp, #192]
    stp x26, x27, [sp, #208]
    stp x28, x29, [sp, #224]
    mrs x0, sp_el0
    stp x30, x0, [sp, #240]
    mrs x0, elr_el1
    mrs x1, spsr_el1
    stp x0, x1, [sp, #256]
    .endm

    .type synchronous, %function
synchronous:
    save_frame
    mov x0, sp
    mrs x1, esr_el1
    bl serve
    b resume
    .size synchronous, . - synchronous

    .type interrupt, %function
interrupt:
    save_frame
    mov x0, sp
    bl serve_interrupt
    b resume
    .size interrupt, . - interrupt

// Exceptions of the kernel itself: the kernel resumes its own work.
    .type synchronous_in_kernel, %function
synchronous_in_kernel:
    save_frame
    mov x0, sp
    mrs x1, esr_el1
    bl serve_kernel
    b resume
    .size synchronous_in_kernel, . - synchronous_in_kernel

    .type interrupt_in_kernel, %function
interrupt_in_kernel:
    save_frame
    bl acknowledge
    b resume
    .size interrupt_in_kernel, . - interrupt_in_kernel

// Resumes the task in the frame, which may be another one.
    .type resume, %function
resume:
    ldp x0, x1, [sp, #256]
    msr elr_el1, x0
    msr spsr_el1, x1
    ldp x30, x0, [sp, #240]
    msr sp_el0, x0
    ldp x28, x29, [sp, #224]
    ldp x26, x27, [sp, #208]
    ldp x24, x25, [sp, #192]
    ldp x22, x23, [sp, #176]
    ldp x20, x21, [sp, #160]
    ldp x18, x19, [sp, #144]
    ldp x16, x17, [sp, #128]
    ldp x14, x15, [sp, #112]
    ldp x12, x13, [sp, #96]
    ldp x10, x11, [sp, #80]
    ldp x8, x9, [sp, #64]
    ldp x6, x7, [sp, #48]
    ldp x4, x5, [sp, #32]
    ldp x2, x3, [sp, #16]
    ldp x0, x1, [sp], #272
    eret
    .size resume, . - resume

// EL2: every second call asks the monitor.
    .type hypervisor_call, %function
hypervisor_call:
    tbz x0, #0, 1f
    smc #0
1:  add x0, x0, #1
    eret
    .size hypervisor_call, . - hypervisor_call

    .type monitor_call, %function
monitor_call:
    add x0, x0, #100
    eret
    .size monitor_call, . - monitor_call

stray:
    b stray

// uint64_t ask_hypervisor(uint64_t), ask_monitor(uint64_t): from EL1.
    .global ask_hypervisor
    .type ask_hypervisor, %function
ask_hypervisor:
    hvc #0
    ret
    .size ask_hypervisor, . - ask_hypervisor

    .global ask_monitor
    .type ask_monitor, %function
ask_monitor:
    smc #0
    ret
    .size ask_monitor, . - ask_monitor

// int save(struct place *), void jump_back(struct place *, int)
    .global save
    .type save, %function
save:
    mov x1, sp
    stp x19, x20, [x0]
    stp x21, x22, [x0, #16]
    stp x23, x24, [x0, #32]
    stp x25, x26, [x0, #48]
    stp x27, x28, [x0, #64]
    stp x29, x30, [x0, #80]
    str x1, [x0, #96]
    mov w0, #0
    ret
    .size save, . - save

    .global jump_back
    .type jump_back, %function
jump_back:
    ldp x19, x20, [x0]
    ldp x21, x22, [x0, #16]
    ldp x23, x24, [x0, #32]
    ldp x25, x26, [x0, #48]
    ldp x27, x28, [x0, #64]
    ldp x29, x30, [x0, #80]
    ldr x2, [x0, #96]
    mov sp, x2
    mov w0, w1
    br x30
    .size jump_back, . - jump_back

// uint64_t table(uint64_t): a branch by register into a table of branches, TBZ, CBNZ, calls by register.
    .global table
    .type table, %function
table:
    cmp x0, #5
    b.hi 9f
    adr x1, 8f
    add x1, x1, x0, lsl #2
    br x1
8:  b 1f
    b 2f
    b 3f
    b 4f
    b 5f
    b 9f
1:  mov x0, #11
    ret
2:  stp x29, x30, [sp, #-16]!
    adr x2, fibonacci_of_three
    blr x2
    add x0, x0, #2
    ldp x29, x30, [sp], #16
    ret
3:  tbz w0, #1, 9f
    tbnz x0, #63, 9f
    mov x0, #3
    ret x30
4:  sub x0, x0, #1
    cbnz x0, 4b
    ret
5:  mov x2, x30
    bl 6f
6:  mov x30, x2
    cbz wzr, 7f
    nop
7:  ret
9:  mov x0, #-1
    ret
fibonacci_of_three:
    mov w0, #3
    b fibonacci
    .size table, . - table

// Ends the emulation: semihosting SYS_EXIT, reason ADP_Stopped_ApplicationExit.
    .global finish
    .type finish, %function
finish:
    ldr x1, =exit_reason
    mov w0, #0x18
    hlt #0xf000
1:  b 1b
    .size finish, . - finish

    .section .rodata
    .balign 8
exit_reason:
    .quad 0x20026, 0
