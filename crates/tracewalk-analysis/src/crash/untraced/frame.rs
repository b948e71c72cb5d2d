//! The frame that an exception stacked, and whether it did.

use tracewalk::ids::Address;

use super::Halted;
use crate::crash::path::{LR, SP};
use crate::crash::state::StackedFrame;

/// A frame, and the value of EXC_RETURN that goes with it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) stacked: StackedFrame,
    pub(super) link: ExceptionReturn,
}

/// EXC_RETURN (DDI 0403E, B1.5.8; DDI 0553B, D1.2.95).
#[derive(Clone, Copy, Debug)]
pub(super) struct ExceptionReturn(u32);

/// xPSR: the exception number, the state of Thumb, and the word that aligned the frame (DDI 0403E, B1.4.2 and B1.5.7).
pub(super) const EXCEPTION: u32 = 0x1ff;
pub(super) const THUMB: u32 = 1 << 24;
const ALIGNED: u32 = 1 << 9;
const RESERVED: u32 = 0b1111 << 20;

impl ExceptionReturn {
    const TO_SECURE_HANDLER: u32 = 1 << 0;
    const PROCESS_STACK: u32 = 1 << 2;
    const TO_THREAD: u32 = 1 << 3;
    const BASIC: u32 = 1 << 4;
    const WITHOUT_CALLEE_REGISTERS: u32 = 1 << 5;
    const SECURE_STACK: u32 = 1 << 6;

    /// `None` for a return address, and for the value of lr after a reset.
    pub(super) fn new(link: u32) -> Option<Self> {
        (link & 0xffff_ff82 == 0xffff_ff80).then_some(Self(link))
    }

    const fn has(self, flag: u32) -> bool {
        self.0 & flag != 0
    }

    /// Whether the frame is on a stack of the other security state, whose stack pointer debuggers print by another name.
    const fn is_elsewhere(self) -> bool {
        self.has(Self::SECURE_STACK) != self.has(Self::TO_SECURE_HANDLER)
    }

    /// The bytes of r4 to r11 and two more words, which the Secure state stacks below the frame (DDI 0553B, B3.19).
    const fn callee_registers(self) -> u32 {
        if self.has(Self::SECURE_STACK) && !self.has(Self::WITHOUT_CALLEE_REGISTERS) { 40 } else { 0 }
    }
}

impl Frame {
    /// The exception number of what was interrupted; 0 for a thread.
    pub(super) fn interrupted(self) -> u32 {
        self.status() & EXCEPTION
    }

    pub(super) const fn status(self) -> u32 {
        let [.., status] = self.stacked.words;
        status
    }

    /// The stack pointer before the exception: the frame has 8 words, or 26 with floating-point registers.
    pub(super) fn stack_pointer(self) -> u32 {
        let bytes = if self.link.has(ExceptionReturn::BASIC) { 0x20 } else { 0x68 };
        let aligned = if self.status() & ALIGNED == 0 { 0 } else { 4 };
        self.stacked.address.low_word().wrapping_add(bytes + aligned)
    }
}

impl Halted<'_> {
    /// The frame of the fault, if it was stored: the registers that no handler has changed yet are the stacked ones.
    pub(super) fn frame(&self, number: u16) -> Option<Frame> {
        let registers = &self.snapshot.registers;
        let halted = Address::from(registers[15]? & !1);
        let handlers = self.handlers(number);
        let may_start = |at| self.code.symbols.function(at).is_none_or(|function| function.start == at);
        let is_first = if handlers.is_empty() { may_start(halted) } else { handlers.contains(&halted) };
        if self.snapshot.fault_status().is_not_stacked() || !is_first {
            return None;
        }
        let link = ExceptionReturn::new(registers[usize::from(LR)]?)?;
        let frame = self.stacked(link, registers[usize::from(SP)])?;
        let [r0, r1, r2, r3, r12, ..] = frame.stacked.words;
        let kept = [(0, r0), (1, r1), (2, r2), (3, r3), (12, r12)];
        let is_kept = kept.iter().all(|(register, word)| registers[*register] == Some(*word));
        // Zeros are what memory has where nothing was stored.
        let is_evidence = kept.iter().any(|(_, word)| *word != 0) || self.is_code(frame);
        (is_kept && is_evidence).then_some(frame)
    }

    /// The words that an exception stacked, if they can be a frame.
    pub(super) fn stacked(&self, link: ExceptionReturn, stack_pointer: Option<u32>) -> Option<Frame> {
        let is_process = link.has(ExceptionReturn::PROCESS_STACK);
        let start = if is_process { self.snapshot.stack_pointers[1] } else { stack_pointer }?;
        if link.is_elsewhere() || start % 4 != 0 {
            return None;
        }
        let address = start.checked_add(link.callee_registers())?;
        let mut words = [0; 8];
        for (word, offset) in words.iter_mut().zip((0..).step_by(4)) {
            *word = self.snapshot.word(address.checked_add(offset)?)?;
        }
        let frame = Frame { stacked: StackedFrame { address: Address::from(address), words }, link };
        let [.., counter, status] = words;
        let is_thread = status & EXCEPTION == 0;
        let can_be =
            counter & 1 == 0 && status & RESERVED == 0 && is_thread == link.has(ExceptionReturn::TO_THREAD);
        can_be.then_some(frame)
    }

    /// Whether an instruction of the program was interrupted.
    pub(super) fn is_code(&self, frame: Frame) -> bool {
        let at = frame.stacked.returns_to();
        let is_code = self.code.symbols.function(at).is_some() && self.code.program.code(at).is_some();
        is_code && frame.status() & THUMB != 0
    }
}
