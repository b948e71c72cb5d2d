//! The two stacks of M profile (DDI 0403E, B1.4.1).
//!
//! Register 13 is the stack pointer in use; the other one, and what decides which is in use, have numbers after the core registers.

use super::Prover;
use crate::bits::Width;
use crate::machine::Machine as _;
use crate::profile::Profile;
use crate::relation::Operation;
use crate::terms::Term;

/// The main stack pointer while the process stack is in use.
pub(crate) const MAIN: usize = 16;
/// The process stack pointer while the main stack is in use.
pub(crate) const PROCESS: usize = 17;
/// Whether thread mode uses the process stack (CONTROL.SPSEL).
pub(crate) const SELECTED: usize = 18;
/// Whether the processor is in handler mode.
pub(crate) const IN_HANDLER: usize = 19;
/// Whether thread mode may be without privilege, so that it cannot write special registers.
pub(crate) const UNPRIVILEGED: usize = 20;

/// The special registers (DDI 0403E, B5.1.1).
const MSP: u32 = 8;
const PSP: u32 = 9;
const CONTROL: u32 = 20;
/// Their numbers for the non-secure state (DDI 0553B).
const NON_SECURE: u32 = 0x80;

impl Prover<'_> {
    fn flag(&self, number: usize) -> Option<bool> {
        self.terms.value(self.registers[number]).map(|value| value == 1)
    }

    pub(super) fn set_flag(&mut self, number: usize, value: Option<bool>) {
        self.registers[number] = match value {
            Some(value) => Term::constant(value.into(), Width::Word),
            None => self.unknown_bit(),
        };
    }

    pub(super) fn is_in_handler(&self) -> Option<bool> {
        self.flag(IN_HANDLER)
    }

    /// Whether the process stack is in use.
    pub(super) fn uses_process_stack(&self) -> Option<bool> {
        if self.processor.has_one_stack {
            return Some(false);
        }
        if self.processor.has_security {
            return None;
        }
        match (self.flag(IN_HANDLER), self.flag(SELECTED)) {
            (Some(true), _) | (_, Some(false)) => Some(false),
            (Some(false), Some(true)) => Some(true),
            _ => None,
        }
    }

    /// Goes over to the process stack, or to the main stack.
    pub(super) fn use_stack(&mut self, process: bool) {
        let Some(before) = self.uses_process_stack() else {
            self.forget_bank();
            return;
        };
        if before != process {
            let (kept, used) = if process { (MAIN, PROCESS) } else { (PROCESS, MAIN) };
            self.registers[kept] = self.registers[13];
            self.change(13, self.registers[used]);
        }
    }

    /// Whether the code in execution may write special registers.
    fn is_privileged(&self) -> bool {
        self.flag(IN_HANDLER) == Some(true) || self.flag(UNPRIVILEGED) == Some(false)
    }

    /// MSR.
    pub(super) fn write_stack_register(&mut self, number: u32, value: Term) {
        if self.processor.profile != Profile::M || number & NON_SECURE != 0 {
            self.forget_bank();
            return;
        }
        match (number, self.uses_process_stack()) {
            (MSP | PSP | CONTROL, _) if !self.is_privileged() => {
                self.forget_bank();
                self.set_flag(SELECTED, None);
                self.set_flag(UNPRIVILEGED, None);
            }
            (MSP | PSP, None) => self.forget_bank(),
            (MSP | PSP, Some(process)) => {
                let is_aligned = self.terms.bits(value).field(0, 2).value() == Some(0);
                let mask = Term::constant(!3 & Width::Word.mask(), Width::Word);
                let aligned =
                    if is_aligned { value } else { self.binary(Operation::And, Width::Word, value, mask) };
                match (number == PSP, process) {
                    (true, true) | (false, false) => self.change(13, aligned),
                    (true, false) => self.registers[PROCESS] = aligned,
                    (false, true) => self.registers[MAIN] = aligned,
                }
            }
            (CONTROL, _) => {
                let bits = self.terms.bits(value);
                let bit = |low| bits.field(low, 1).value().map(|bit| bit == 1);
                // Handler mode always uses the main stack; whether it can select for thread mode depends on the architecture's version.
                let selected = if self.flag(IN_HANDLER) == Some(false) { bit(1) } else { None };
                match selected {
                    Some(process) => self.use_stack(process),
                    None if self.flag(IN_HANDLER) == Some(true) => {}
                    None => self.forget_bank(),
                }
                self.set_flag(SELECTED, selected);
                self.set_flag(UNPRIVILEGED, bit(0));
            }
            _ => {}
        }
    }

    /// MRS.
    pub(super) fn read_stack_register(&mut self, number: u32) -> Term {
        let is_readable = self.processor.profile == Profile::M && self.is_privileged();
        match (number, self.uses_process_stack()) {
            (MSP, Some(false)) | (PSP, Some(true)) if is_readable => self.registers[13],
            (MSP, Some(true)) if is_readable => self.registers[MAIN],
            (PSP, Some(false)) if is_readable => self.registers[PROCESS],
            _ => self.terms.unknown(Width::Word),
        }
    }
}
