//! Example program for a Cortex-A9 in Rust: Thumb code with supervisor calls, whose handler starts in ARM code.
#![no_std]
#![no_main]

#[path = "../common/work.rs"]
mod work;

use core::arch::global_asm;
use core::ptr::{read_volatile, write_volatile};

global_asm!(
    r#"
    .syntax unified
    .arm
    .section .vectors, "ax", %progbits
    .global reset
    .type reset, %function
vectors:
    b reset
    b .
    b supervisor_handler
    b .
    b .
    b .
    b .
    b .
    .type supervisor_handler, %function
supervisor_handler:
    push {{r1-r3, r12, lr}}
    bl serve
    ldm sp!, {{r1-r3, r12, pc}}^
    .size supervisor_handler, . - supervisor_handler
reset:
    ldr r0, =vectors
    mcr p15, 0, r0, c12, c0, 0
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
    bl main
    mov r0, #0x18
    ldr r1, =0x20026
    svc #0x123456
2:  b 2b
    .size reset, . - reset
    .ltorg
    .text
    .global call_supervisor
    .type call_supervisor, %function
call_supervisor:
    push {{r4, lr}}
    svc #1
    pop {{r4, pc}}
    .size call_supervisor, . - call_supervisor
"#
);

unsafe extern "C" {
    safe fn call_supervisor(value: u32) -> u32;
}

/// What the program computed, for a debugger to look at.
#[unsafe(no_mangle)]
static mut RESULT: u32 = 0;

#[unsafe(no_mangle)]
extern "C" fn serve(value: u32) -> u32 {
    if value % 2 == 0 { value / 2 } else { value.wrapping_mul(3).wrapping_add(1) }
}

#[unsafe(no_mangle)]
extern "C" fn main() {
    for round in 0..4 {
        // SAFETY: `RESULT` is only used here.
        unsafe {
            let result = read_volatile(&raw const RESULT);
            let more = call_supervisor(work::everything(round));
            write_volatile(&raw mut RESULT, result.wrapping_add(more));
        }
    }
}
