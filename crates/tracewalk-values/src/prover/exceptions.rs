//! Entry to exceptions and return from them.
//!
//! M profile (ARMv7-M Architecture Reference Manual, DDI 0403E, B1.5.6 and B1.5.8) stacks r0 to r3, r12, lr, the return address and
//! xPSR. Other profiles change the mode, whose stack pointer and link register are others.

use super::Prover;
use super::flags::FlagState;
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
    flags: FlagState,
    it_block: ItBlock,
}

/// The registers in the order of the frame.
const STACKED: [usize; 6] = [0, 1, 2, 3, 12, 14];
/// The bit of the stacked xPSR that states whether the frame was aligned by a word.
const ALIGNED: u32 = 9;

impl Prover<'_> {
    pub(super) fn enter_exception(&mut self, returns_to: Option<Address>, is_tail_chained: bool) {
        let (flags, it_block) = (self.flags, self.it_block);
        self.flags = FlagState::default();
        self.it_block = ItBlock::default();
        self.maybe_in_it_block = 0;
        if self.processor.profile != Profile::M {
            self.forget_bank();
            return;
        }
        if is_tail_chained {
            for register in STACKED {
                let value = self.terms.unknown(Width::Word);
                self.change(register, value);
            }
            return;
        }
        let before = self.registers[13];
        let is_odd = self.terms.bits(before).field(2, 1).value();
        let at = match is_odd {
            Some(0) => before.plus(32_u64.wrapping_neg()),
            Some(_) => before.plus(36_u64.wrapping_neg()),
            None => self.terms.known(Bits { known: 7 | !Width::Word.mask(), ones: 0 }, Width::Word),
        };
        self.terms.is_stack_pointer(at);
        let status = self.terms.unknown(Width::Word);
        if let Some(is_odd) = is_odd {
            self.terms.learn(status, Bits { known: 1 << ALIGNED, ones: is_odd << ALIGNED });
        }
        let resume = match returns_to {
            Some(address) => Term::constant(address.get(), Width::Word),
            None => self.terms.unknown(Width::Word),
        };
        // EXC_RETURN (DDI 0553B, B3.19): its high bits are ones.
        let link = Bits { known: 0xffff_ff80 | !Width::Word.mask(), ones: 0xffff_ff80 };
        let link = self.terms.known(link, Width::Word);
        if self.processor.has_basic_frames {
            let values = STACKED.map(|register| self.registers[register]);
            for (index, value) in values.into_iter().chain([resume, status]).enumerate() {
                self.frame_access(at, index, value, Kind::Store);
            }
            // The handler may have a stack of its own.
            let handler = if self.processor.has_one_stack { at } else { self.terms.unknown(Width::Word) };
            self.frames.push(Frame { at, before, handler, link, status, returns_to, flags, it_block });
            self.change(13, handler);
        } else {
            // A frame with floating-point registers is longer, and part of it is written later.
            self.forget_bank();
            self.forget_memory();
        }
        self.change(14, link);
    }

    pub(super) fn return_from_exception(&mut self, next: Option<Address>) {
        self.flags = FlagState::default();
        self.it_block = ItBlock::default();
        if self.processor.profile != Profile::M {
            self.forget_bank();
            if let Some(next) = next {
                self.maybe_in_it_block = self.image.instructions_maybe_in_it_block(next.get());
            }
            return;
        }
        let Some(next) = next else { return };
        let frame = self.frames.pop().filter(|frame| self.is_returned_from(frame));
        let at = match frame {
            Some(frame) => frame.at,
            None if self.processor.has_one_stack && self.processor.has_basic_frames => self.registers[13],
            None => {
                for register in STACKED {
                    let value = self.terms.unknown(Width::Word);
                    self.change(register, value);
                }
                self.forget_bank();
                self.maybe_in_it_block = self.image.instructions_maybe_in_it_block(next.get());
                return;
            }
        };
        for (index, register) in STACKED.into_iter().enumerate() {
            let value = self.frame_load(at, index);
            self.change(register, value);
        }
        let resume = self.frame_load(at, 6);
        self.terms.learn(resume, Bits { known: !1, ones: next.get() & !1 });
        let status = self.frame_load(at, 7);
        match frame {
            Some(frame) if frame.returns_to == Some(next) => {
                self.change(13, frame.before);
                self.it_block = frame.it_block;
                if self.terms.place(status) == self.terms.place(frame.status) {
                    self.flags = frame.flags;
                }
            }
            _ => {
                self.frames.clear();
                let padding = self.field(status, ALIGNED, 1, false, Width::Word);
                let two = self.word(2);
                let padding = self.binary(Operation::Shift(Shift::Left), Width::Word, padding, two);
                let pointer = self.add(at.plus(32), padding, Width::Word);
                self.change(13, pointer);
                self.maybe_in_it_block = self.image.instructions_maybe_in_it_block(next.get());
            }
        }
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
        self.memory.push(access, &mut self.terms, self.image);
    }

    fn frame_load(&mut self, at: Term, index: usize) -> Term {
        let value = self.terms.unknown(Width::Word);
        self.frame_access(at, index, value, Kind::Load);
        value
    }
}
