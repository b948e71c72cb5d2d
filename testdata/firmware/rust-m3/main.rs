//! Example program for a Cortex-M3 in Rust: work that SysTick interrupts at ever different places, with PendSV
//! tail-chained behind it.
#![no_std]
#![no_main]

#[path = "../common/work.rs"]
mod work;

use core::ptr::{read_volatile, write_volatile};
use core::sync::atomic::{AtomicU32, Ordering};

const SYST_CSR: *mut u32 = 0xe000_e010 as *mut u32;
const SYST_RVR: *mut u32 = 0xe000_e014 as *mut u32;
const SYST_CVR: *mut u32 = 0xe000_e018 as *mut u32;
const SCB_ICSR: *mut u32 = 0xe000_ed04 as *mut u32;
const SCB_SHPR3: *mut u32 = 0xe000_ed20 as *mut u32;
const PENDSVSET: u32 = 1 << 28;

static TICKS: AtomicU32 = AtomicU32::new(0);
static DEFERRED: AtomicU32 = AtomicU32::new(0);
/// What the program computed, for a debugger to look at.
#[unsafe(no_mangle)]
static mut RESULT: u32 = 0;

#[unsafe(no_mangle)]
extern "C" fn SysTick_Handler() {
    let ticks = TICKS.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the registers of the architecture.
    unsafe {
        write_volatile(SYST_RVR, 260 + (ticks * 37 & 127));
        if ticks % 2 == 0 {
            write_volatile(SCB_ICSR, PENDSVSET);
        }
    }
}

#[unsafe(no_mangle)]
extern "C" fn PendSV_Handler() {
    DEFERRED.fetch_add(work::ackermann(1, 2), Ordering::Relaxed);
}

#[unsafe(no_mangle)]
extern "C" fn main() {
    // SAFETY: the registers of the architecture; `RESULT` is only used here.
    unsafe {
        write_volatile(SCB_SHPR3, 0x80e0_0000);
        write_volatile(SYST_RVR, 300);
        write_volatile(SYST_CVR, 0);
        write_volatile(SYST_CSR, 7);
        for round in 0..4 {
            let result = read_volatile(&raw const RESULT);
            write_volatile(&raw mut RESULT, result.wrapping_add(work::everything(round)));
        }
        write_volatile(SYST_CSR, 0);
    }
}
