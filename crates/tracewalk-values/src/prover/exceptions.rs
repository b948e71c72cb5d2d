//! Entry to exceptions and return from them.
//!
//! M profile (ARMv7-M Architecture Reference Manual, DDI 0403E, B1.5.6 and B1.5.8) stacks r0 to r3, r12, lr, the return address and
//! xPSR. Other profiles change the mode, whose stack pointer and link register are others.

use super::Prover;
use super::flags::FlagState;
use super::stacks::{IN_HANDLER, MAIN, PROCESS, SELECTED};
use crate::bits::{Bits, Width};
use crate::machine::Machine;
use crate::memory::{Access, Kind};
use crate::path::ItBlock;
use crate::profile::Profile;
use crate::relation::{Operation, Shift};
use crate::terms::Term;
use tracewalk::ids::Address;

/// A frame that an exception stacked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    /// The frame's address.
    at: Term,
    /// The stack pointer before, and in the handler.
    before: Term,
    handler: Term,
    /// EXC_RETURN.
    link: Term,
    /// The stacked xPSR.
    status: Term,
    returns_to: Option<Address>,
    /// Whether it is on the process stack.
    is_of_process: Option<bool>,
    /// Whether a handler was interrupted.
    is_of_handler: Option<bool>,
    flags: FlagState,
    it_block: ItBlock,
}

/// The registers in the order of the frame.
const STACKED: [usize; 6] = [0, 1, 2, 3, 12, 14];
/// The bit of the stacked xPSR that states whether the frame was aligned by a word.
const ALIGNED: u32 = 9;
/// Its bits for the IT block in execution (DDI 0403E, B1.4.2).
const IT_BLOCK: u64 = 0x0600_fc00;
const ALIGNMENT: Operation = Operation::Insert { low: 9, count: 1 };

impl Prover<'_> {
    pub(super) fn enter_exception(&mut self, returns_to: Option<Address>, is_tail_chained: bool) {
        let (flags, it_block) = (self.flags, self.it_block);
        if let Some(at) = returns_to.filter(|_| self.maybe_in_it_block == 0 && !is_tail_chained) {
            self.it_blocks.insert(at, it_block);
        }
        self.flags = FlagState::default();
        self.it_block = ItBlock::default();
        self.maybe_in_it_block = 0;
        if self.processor.profile != Profile::M {
            self.forget_bank();
            return;
        }
        let Some(is_tail_chained) =
            (if is_tail_chained { Some(true) } else { self.replaces_handler(returns_to) })
        else {
            self.forget_everything();
            self.set_flag(IN_HANDLER, Some(true));
            return;
        };
        if is_tail_chained {
            self.set_flag(IN_HANDLER, Some(true));
            // It returns as the handler that it follows, or takes the place of, would have.
            let link = self.last_target.or(self.frames.last().map(|frame| frame.link));
            for register in STACKED {
                let value = self.terms.unknown(Width::Word);
                self.change(register, value);
            }
            if let Some(link) = link.filter(|_| !self.processor.has_security) {
                self.change(14, link);
            }
            return;
        }
        let before = self.registers[13];
        let is_odd = self.terms.bits(before).field(2, 1).value();
        let mut status = self.terms.unknown(Width::Word);
        let at = match is_odd {
            Some(0) => before.plus(32_u64.wrapping_neg()),
            Some(_) => before.plus(36_u64.wrapping_neg()),
            None => {
                let is_odd = self.field(before, 2, 1, false, Width::Word);
                status = self.binary(ALIGNMENT, Width::Word, status, is_odd);
                let multiple = Term::constant(!7 & Width::Word.mask(), Width::Word);
                self.binary(Operation::And, Width::Word, before.plus(32_u64.wrapping_neg()), multiple)
            }
        };
        self.terms.is_stack_pointer(at);
        if let Some(is_odd) = is_odd {
            self.terms.learn(status, Bits { known: 1 << ALIGNED, ones: is_odd << ALIGNED });
        }
        let resume = match returns_to {
            Some(address) => Term::constant(address.get(), Width::Word),
            None => self.terms.unknown(Width::Word),
        };
        let (is_of_process, is_of_handler) = (self.uses_process_stack(), self.is_in_handler());
        // EXC_RETURN (DDI 0553B, B3.19): its high bits are ones; bit 3 is for thread mode, bit 2 for its process stack.
        let mut link = Bits { known: 0xffff_ff80 | !Width::Word.mask(), ones: 0xffff_ff80 };
        if let Some(is_of_handler) = is_of_handler {
            link = Bits { known: link.known | 8, ones: link.ones | u64::from(!is_of_handler) << 3 };
        }
        if let (Some(false), Some(is_of_process)) = (is_of_handler, is_of_process) {
            link = Bits { known: link.known | 4, ones: link.ones | u64::from(is_of_process) << 2 };
        }
        if self.processor.is_armv7m && self.processor.has_basic_frames {
            // Its other bits are constant (DDI 0403E, B1.5.8).
            let main = if is_of_handler == Some(true) { 4 } else { 0 };
            link = Bits { known: link.known | 0x73 | main, ones: link.ones | 0x71 };
        }
        let mut link = self.terms.known(link, Width::Word);
        if let (Some(false), None, false) = (is_of_handler, is_of_process, self.processor.has_security) {
            let selected = self.registers[SELECTED];
            link = self.binary(Operation::Insert { low: 2, count: 1 }, Width::Word, link, selected);
        }
        if self.processor.has_basic_frames {
            let values = STACKED.map(|register| self.registers[register]);
            for (index, value) in values.into_iter().chain([resume, status]).enumerate() {
                self.frame_access(at, index, value, Kind::Store);
            }
            self.change(13, at);
            match (is_of_process, is_of_handler) {
                (Some(_), _) => self.use_stack(false),
                // What EXC_RETURN selected may become known.
                (None, Some(false)) if !self.processor.has_security => {
                    let [main, process, selected] =
                        [MAIN, PROCESS, SELECTED].map(|slot| self.registers[slot]);
                    self.registers[PROCESS] = self.select(selected, at, process);
                    let handler = self.select(selected, main, at);
                    self.change(13, handler);
                }
                // The handler may have a stack of its own.
                _ => self.forget_stacks(),
            }
            let handler = self.registers[13];
            self.frames.push(Frame {
                at,
                before,
                handler,
                link,
                status,
                returns_to,
                is_of_process,
                is_of_handler,
                flags,
                it_block,
            });
        } else {
            // A frame with floating-point registers is longer, and part of it is written later.
            self.forget_bank();
            self.forget_memory();
        }
        self.set_flag(IN_HANDLER, Some(true));
        self.change(14, link);
    }

    /// Whether the handler before ended, though the trace does not state that: it jumped to EXC_RETURN.
    fn replaces_handler(&mut self, returns_to: Option<Address>) -> Option<bool> {
        let (None, Some(target)) = (returns_to, self.last_target) else { return Some(false) };
        let high = |prover: &Self| prover.terms.bits(target).field(28, 4).value();
        if high(self).is_none() && self.solves_left > 0 {
            // All that comes depends on it.
            self.solves_left -= 1;
            self.solve(None);
        }
        Some(high(self)? == 0xf)
    }

    pub(super) fn return_from_exception(&mut self, next: Option<Address>) {
        self.flags = FlagState::default();
        (self.it_block, self.is_outside_it_block) = (ItBlock::default(), None);
        if self.processor.profile != Profile::M {
            self.forget_bank();
            if let Some(next) = next {
                self.maybe_in_it_block = self.image.instructions_maybe_in_it_block(next.get());
            }
            return;
        }
        let Some(next) = next else { return };
        let newest = self.frames.pop();
        let frame = newest.filter(|frame| self.is_returned_from(frame));
        let (to_process, mut to_handler) = match frame {
            Some(frame) => (frame.is_of_process, frame.is_of_handler),
            None => self.returned_to(),
        };
        // The outermost exception returns to thread mode, also if it is to another task.
        to_handler = to_handler.or(newest.and_then(|newest| newest.is_of_handler));
        let selected = match (to_process, to_handler, self.last_target) {
            (None, Some(false), Some(target)) if !self.processor.has_security => {
                Some(self.field(target, 2, 1, false, Width::Word))
            }
            _ => None,
        };
        let at = match (to_process, selected) {
            (Some(true), _) => Some(self.registers[PROCESS]),
            (Some(false), _) => Some(self.registers[13]),
            (None, Some(selected)) => {
                Some(self.select(selected, self.registers[PROCESS], self.registers[13]))
            }
            (None, None) => frame.map(|frame| frame.at),
        };
        let Some(at) = at.filter(|_| self.processor.has_basic_frames) else {
            for register in STACKED {
                let value = self.terms.unknown(Width::Word);
                self.change(register, value);
            }
            self.forget_bank();
            self.set_flag(IN_HANDLER, to_handler);
            self.set_flag(SELECTED, None);
            self.maybe_in_it_block = self.image.instructions_maybe_in_it_block(next.get());
            return;
        };
        // The handler's own pointer stays while the process stack is in use.
        let frame = frame.filter(|frame| self.terms.place(frame.at) == self.terms.place(at));
        for (index, register) in STACKED.into_iter().enumerate() {
            let value = self.frame_load(at, index);
            self.change(register, value);
        }
        let resume = self.frame_load(at, 6);
        self.terms.learn(resume, Bits { known: !1, ones: next.get() & !1 });
        let status = self.frame_load(at, 7);
        let pointer = match frame {
            Some(frame) if frame.returns_to == Some(next) => {
                self.it_block = frame.it_block;
                if self.terms.place(status) == self.terms.place(frame.status) {
                    self.flags = frame.flags;
                }
                frame.before
            }
            _ => {
                self.frames.clear();
                let padding = self.field(status, ALIGNED, 1, false, Width::Word);
                let two = self.word(2);
                let padding = self.binary(Operation::Shift(Shift::Left), Width::Word, padding, two);
                self.resume_in_it_block(next);
                let it_block = Term::constant(IT_BLOCK, Width::Word);
                let it_block = self.binary(Operation::And, Width::Word, status, it_block);
                self.is_outside_it_block = Some(self.unary(Operation::IsZero, Width::Word, it_block));
                self.add(at.plus(32), padding, Width::Word)
            }
        };
        match (to_process, selected) {
            (Some(true), _) | (None, Some(_)) => self.registers[MAIN] = self.registers[13],
            (Some(false), _) => {}
            (None, None) => self.forget_stacks(),
        }
        self.change(13, pointer);
        self.set_flag(IN_HANDLER, to_handler);
        match (to_handler, selected) {
            (_, Some(selected)) => self.registers[SELECTED] = selected,
            (Some(false), None) => self.set_flag(SELECTED, to_process),
            _ => {}
        }
    }

    /// Execution goes on where another exception may have been taken.
    fn resume_in_it_block(&mut self, next: Address) {
        match self.it_blocks.get(&next) {
            Some(known) => (self.it_block, self.maybe_in_it_block) = (*known, 0),
            None => self.maybe_in_it_block = self.image.instructions_maybe_in_it_block(next.get()),
        }
    }

    /// One of two values: the first if the bit is set.
    fn select(&mut self, bit: Term, set: Term, clear: Term) -> Term {
        self.operation(Operation::Select, Width::Word, [set, clear, bit])
    }

    /// Whether a return goes to the process stack, and whether to a handler, by EXC_RETURN.
    fn returned_to(&self) -> (Option<bool>, Option<bool>) {
        let bits = self.last_target.map_or(Bits::unknown(Width::Word), |target| self.terms.bits(target));
        let bit = |low| bits.field(low, 1).value().map(|bit| bit == 1);
        let to_handler = bit(3).map(|is_thread| !is_thread);
        let to_process = match (to_handler, bit(2)) {
            _ if self.processor.has_one_stack => Some(false),
            (Some(true), _) => Some(false),
            (Some(false), selected) => selected,
            (None, _) => None,
        };
        (to_process, to_handler)
    }

    /// Whether a return uses the newest frame: the stack pointer and EXC_RETURN are those of the entry.
    fn is_returned_from(&self, frame: &Frame) -> bool {
        let is_same = |left, right| self.terms.place(left) == self.terms.place(right);
        let has_link = || self.last_target.is_some_and(|target| is_same(target, frame.link));
        is_same(self.registers[13], frame.handler) && (self.processor.has_one_stack || has_link())
    }

    fn frame_access(&mut self, at: Term, index: usize, value: Term, kind: Kind) {
        let address = at.plus(4 * index as u64);
        let access =
            Access { address, value, bytes: 4, kind, guard: None, is_of_stack: true, is_literal: false };
        self.accesses.push(access);
        self.memory.push(access, &mut self.terms, self.image);
    }

    fn frame_load(&mut self, at: Term, index: usize) -> Term {
        let value = self.terms.unknown(Width::Word);
        self.frame_access(at, index, value, Kind::Load);
        value
    }
}
